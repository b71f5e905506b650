//! A whole replay: from a recording and a question to a report.
//!
//! The recording is prepared once ([`Prepared`]). Then each kernel that was asked for replays it, several
//! times where the model's own reclaim makes the result depend on the pace of kswapd ([`ensemble`]).

use super::accuracy::{Forecast, measure};
use super::ensemble;
use super::member::Member;
use super::observe::observe;
use super::options::{Mode, Options};
use super::report::{Ensemble, KernelReport, RecordingSummary, Report, Sample};
use super::watch::{ProgressOnly, Watch};
use crate::error::Result;
use crate::parallel::threads;
use crate::replay::input::Input;
use crate::replay::model::Prepared;
use crate::replay::start::{StartChoice, zone_facts};
use unfrag_linux::recording::Recording;

impl Prepared<'_> {
    /// Replays the recording under one kernel.
    fn replay_kernel(
        &self,
        name: &str,
        options: &Options,
        recorded: &[Sample],
        watch: &mut dyn Watch,
    ) -> Result<KernelReport> {
        let q = self.question(name, options)?;
        let reclaims = self.modelled_reclaim(options).is_some();
        let asked = options.members.unwrap_or(ensemble::MEMBERS);
        ensemble::check(asked)?;
        let paces = ensemble::paces(if reclaims { asked } else { 1 });
        let one = |pace, watch: &mut dyn Watch| self.replay_once(&q, pace, watch);
        let mut members = ensemble::run(&paces, threads(), one, watch)?;
        let pooled = members.len() > 1;
        let samples = if pooled {
            ensemble::samples(&members)
        } else {
            std::mem::take(&mut members[0].samples)
        };
        let (totals, failures) = (ensemble::totals(&members), ensemble::failures(&members));
        let anchor = recorded.first().filter(|_| q.as_recorded);
        let taken = anchor.map(|anchor| self.taken(anchor)).transpose()?;
        let taken = taken.unwrap_or_default();
        let judge = |samples: &[Sample]| {
            let forecast = Forecast {
                anchor: anchor?,
                taken: &taken,
            };
            let lost = lost_events(self.input.recording);
            Some(measure(&samples[1..], &recorded[1..], &forecast, lost))
        };
        let skills = || {
            let own = |m: &Member| judge(&m.samples)?.free_pages_error.skill;
            let mut all: Vec<f64> = members.iter().filter_map(own).collect();
            all.sort_by(f64::total_cmp);
            Some([*all.first()?, all[all.len() / 2], *all.last()?])
        };
        let ensemble = pooled.then(|| Ensemble {
            members: members.len() as u64,
            pace: ensemble::range(&paces),
            free_pages_skill: skills(),
        });
        let mut accuracy = judge(&samples);
        let first = members.swap_remove(0);
        if let Some(a) = &mut accuracy {
            a.frame_match = self.exact.then_some(first.frames);
            a.huge_faults = first.huge_faults;
        }
        let mut notes = first.notes;
        notes.extend(ensemble.as_ref().map(Ensemble::sentence));
        if options.members.is_some_and(|n| n > 1) && !reclaims {
            notes.push("Nothing was reclaimed by the model, so that one replay says all.".into());
        }
        Ok(KernelReport {
            kernel: q.preset.name.into(),
            recorded_era: q.recorded_era,
            settings: first.settings,
            accuracy,
            accuracy_from_counts: None,
            ensemble,
            samples,
            totals,
            failures,
            block_map: first.block_map,
            notes,
        })
    }
}

fn lost_events(rec: &Recording) -> u64 {
    // A gap of unknown size counts as one event at least.
    rec.meta.lost.iter().map(|l| l.count.unwrap_or(1)).sum()
}

/// Replays the kernel of `report` from a start by counts, which every host has, and notes by how much
/// the errors of the two starts differ.
fn compare_starts(
    input: &Input<'_>,
    report: &mut KernelReport,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<()> {
    let prepared = Prepared::new(input.clone(), StartChoice::Counts)?;
    let recorded = prepared.recorded_samples()?;
    let mut watch = ProgressOnly(watch);
    let counts = prepared.replay_kernel(&report.kernel, options, &recorded, &mut watch)?;
    if let (Some(exact), Some(counts)) = (&report.accuracy, &counts.accuracy) {
        report.notes.push(format!(
            "Error of the start: from the kernel's exact state the median error of the order distribution is \
             {:.4} and that of free pages {:.4}; from counts, as on an ordinary host, {:.4} and {:.4}.",
            exact.order_distribution_error.median,
            exact.free_pages_error.median,
            counts.order_distribution_error.median,
            counts.free_pages_error.median,
        ));
    }
    report.accuracy_from_counts = counts.accuracy;
    Ok(())
}

/// Replays a recording. `file` is its name as the report shows it.
///
/// # Errors
/// If the recording lacks what a replay needs, or the options ask for what does not exist.
pub fn replay<'r>(
    input: impl Into<Input<'r>>,
    file: &str,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Report> {
    let input = input.into();
    let rec = input.recording;
    let prepared = Prepared::new(input.clone(), options.start)?;
    let recorded = prepared.recorded_samples()?;
    let mut kernels = vec![];
    let mut observed = None;
    match options.mode {
        Mode::Observe => observed = Some(observe(&prepared)?),
        Mode::Predict => {
            let own = [prepared.era.preset().to_string()];
            let names = if options.kernels.is_empty() {
                &own[..]
            } else {
                &options.kernels
            };
            for name in names {
                let mut report = prepared.replay_kernel(name, options, &recorded, watch)?;
                if prepared.exact && report.accuracy.is_some() {
                    compare_starts(&input, &mut report, options, watch)?;
                }
                kernels.push(report);
            }
        }
    }
    let zones = zone_facts(prepared.snapshots[0].1)?;
    let last = input.events.span()?.map_or(0, |(_, last)| last);
    Ok(Report {
        recording: RecordingSummary {
            file: file.into(),
            kernel_release: rec.meta.kernel_release.clone(),
            cpus: rec.meta.cpus.max(prepared.start.cpus as u32),
            events: input.events.len(),
            lost_events: lost_events(rec),
            seconds: prepared.seconds(last),
            managed_bytes: zones.iter().map(|z| z.config.managed * 4096).sum(),
            snapshots: recorded.len() as u64,
        },
        mode: match options.mode {
            Mode::Predict => "predict".into(),
            Mode::Observe => "observe".into(),
        },
        start: match (prepared.exact, prepared.occupancy) {
            (true, _) => "exact".into(),
            (_, true) => "occupancy".into(),
            _ => "counts".into(),
        },
        start_lists: prepared.start.order_shown,
        recorded,
        kernels,
        observe: observed,
    })
}
