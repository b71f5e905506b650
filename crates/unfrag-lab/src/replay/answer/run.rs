//! A whole replay: from a recording and a question to a report.
//!
//! The recording is prepared once ([`Prepared`]), and a second time from counts alone where its start is exact, so that
//! the report can say what that is worth: one replay is. Then each kernel that was asked for replays it, several times where
//! the model's own reclaim makes the result depend on the pace of kswapd ([`ensemble`]). Those of one thread are one as
//! far as they are the same (`course`). All else is independent, and runs on all CPUs.

use super::accuracy::{Forecast, measure};
use super::breakdown::breakdown;
use super::chance::{Chance, chances};
use super::course;
use super::ensemble::{self, Job, Parts};
use super::member::Member;
use super::observe::observe;
use super::options::{LEAST_SHARE, Mode, Options};
use super::question::Question;
use super::report::{Accuracy, Ensemble, KernelReport, RecordingSummary, Report, Sample};
use super::schedule::PROACTIVENESS;
use super::watch::Watch;
use super::what_if::class::Begins;
use super::what_if::compare::{Compared, withhold_free_memory};
use super::what_if::found::WhatIf;
use super::what_if::measured::Measured;
use crate::afford;
use crate::era::settings::Setting;
use crate::error::{Asked, Error, Remedy, Result};
use crate::geometry::{Sizes, large_order};
use crate::host::Host;
use crate::input::Input;
use crate::parallel::{both, threads};
use crate::replay::causes::clock::Clock;
use crate::replay::model::{Prepared, resized};
use crate::replay::start::{StartChoice, zone_facts};
use crate::report::number::percent;
use std::sync::Arc;
use unfrag_linux::share::Share;

/// The share of what the host allocated that is in the events, which has to be enough for what is asked.
fn share(input: &Input<'_>, options: &Options) -> Result<Option<Share>> {
    let share = input.share()?;
    let is_little = |s: &Share| s.fraction() < LEAST_SHARE;
    let Some(little) = share.filter(is_little) else {
        return Ok(share);
    };
    // Where nothing is foretold, there is nothing to refuse.
    if options.any_share || options.mode == Mode::Observe {
        return Ok(share);
    }
    let meta = &input.recording.meta;
    let what = format!(
        "its trace has {} of the pages that the host allocated meanwhile; the rest changed memory too, so that below \
         {} a replay tells nothing",
        percent(little.fraction()),
        percent(LEAST_SHARE)
    );
    let is_of_command = meta.facts.get("scope").is_some_and(|s| s == "command");
    Err(
        Error::lacking(what).remedy(match meta.lost_events() > 0 && !is_of_command {
            true => Remedy::RecordWithoutLoss,
            false => Remedy::RecordHost,
        }),
    )
}

/// What a recording becomes from one start, and what its kernel showed from there on.
struct Beginning<'r> {
    prepared: Prepared<'r>,
    recorded: Vec<Sample>,
}

impl<'r> Beginning<'r> {
    fn new(
        input: Input<'r>,
        choice: StartChoice,
        clock: Option<Arc<Clock>>,
    ) -> Result<Beginning<'r>> {
        let prepared = Prepared::with_clock(input, choice, clock)?;
        let recorded = prepared.recorded_samples()?;
        Ok(Beginning { prepared, recorded })
    }

    /// A kernel that replays from here.
    fn ask<'a>(&'a self, name: &str, options: &'a Options) -> Result<KernelReplay<'a, 'r>> {
        self.ask_of(options.members.unwrap_or(ensemble::MEMBERS), name, options)
    }

    /// The same, with so many members where the model reclaims.
    fn ask_of<'a>(
        &'a self,
        asked: u32,
        name: &str,
        options: &'a Options,
    ) -> Result<KernelReplay<'a, 'r>> {
        let question = self.prepared.question(name, options)?;
        let reclaims = question.reclaims(&self.prepared.reclaim);
        ensemble::check(asked)?;
        Ok(KernelReplay {
            from: self,
            question,
            reclaims,
            chances: chances(if reclaims { asked } else { 1 }),
        })
    }
}

/// A kernel that replays a recording.
struct KernelReplay<'a, 'r> {
    from: &'a Beginning<'r>,
    question: Question<'a>,
    /// Whether the model reclaims by itself.
    reclaims: bool,
    /// Of each member.
    chances: Vec<Chance>,
}

impl KernelReplay<'_, '_> {
    /// Whether its samples can be held against the recorded ones.
    fn is_measured(&self) -> bool {
        self.question.as_recorded && !self.from.recorded.is_empty()
    }

    /// Where it begins.
    fn begins(&self) -> Begins {
        let (q, prepared) = (&self.question, &self.from.prepared);
        match (q.inherits(prepared), prepared.exact, prepared.occupancy) {
            (false, ..) => Begins::Anew,
            (_, true, _) => Begins::Exact,
            (_, _, true) => Begins::Occupancy,
            _ => Begins::Counts,
        }
    }

    /// What it would change; `own` are the replays of the recorded kernel as it was.
    fn what_if(&self, members: &[Member], own: Option<&[Member]>) -> Option<WhatIf> {
        let works =
            |all: &[Member]| breakdown(&ensemble::totals(all), &ensemble::failures(all)).is_none();
        if self.from.recorded.is_empty() || !works(members) {
            return None;
        }
        let compared = Compared {
            asked: members,
            own: own.filter(|own| works(own)).unwrap_or_default(),
            is_own: self.question.as_recorded,
            rests_on_a_guess: self.question.guessed.is_some(),
            other_kernel: !self.question.recorded_era,
            other_memory: self.question.options.memory.is_some(),
            start: self.begins(),
            recorded: &self.from.recorded,
            large: large_order(self.from.prepared.start.geometry),
        };
        Some(compared.what_if(Measured::shipped()))
    }

    /// The jobs of its members, `wanted` at least where there are so many members. Its snapshots may be watched.
    fn jobs(&self, kernel: usize, wanted: usize, watched: bool) -> Vec<Job> {
        let (of, q) = (&self.from.prepared, &self.question);
        let parts = Parts {
            wanted: match course::has_twins(q) {
                true => wanted,
                false => self.chances.len(),
            },
            alike: &|a, b| course::begins_alike(of, q, a, b),
            watched,
        };
        Job::ensemble(kernel, &self.chances, &parts)
    }

    /// The report of its members, and the accuracy of the first of them.
    fn report(
        &self,
        mut members: Vec<Member>,
        what_if: Option<WhatIf>,
    ) -> Result<(KernelReport, Option<Accuracy>)> {
        let (q, Beginning { prepared, recorded }) = (&self.question, self.from);
        let pooled = members.len() > 1;
        let of_first = pooled.then(|| members[0].samples.clone());
        let samples = if pooled {
            ensemble::samples(&members)
        } else {
            std::mem::take(&mut members[0].samples)
        };
        let (totals, failures) = (ensemble::totals(&members), ensemble::failures(&members));
        let anchor = recorded.first().filter(|_| q.as_recorded);
        let taken = anchor.map(|anchor| prepared.taken(anchor)).transpose()?;
        let taken = taken.unwrap_or_default();
        let judge = |samples: &[Sample]| {
            let forecast = Forecast {
                anchor: anchor?,
                taken: &taken,
                large_order: large_order(prepared.start.geometry),
            };
            let lost = prepared.input.recording.meta.lost_events();
            measure(&samples[1..], &recorded[1..], &forecast, lost)
        };
        let skills = || {
            let own = |m: &Member| judge(&m.samples)?.free_pages_error.skill;
            let mut all: Vec<f64> = members.iter().filter_map(own).collect();
            all.sort_by(f64::total_cmp);
            Some([*all.first()?, all[all.len() / 2], *all.last()?])
        };
        let ensemble = pooled.then(|| Ensemble {
            members: members.len() as u64,
            pace: ensemble::range(&self.chances),
            free_pages_skill: skills(),
        });
        let mut accuracy = judge(&samples);
        let accuracy_of_first = match of_first {
            Some(samples) => judge(&samples),
            None => accuracy.clone(),
        };
        let first = members.swap_remove(0);
        if let Some(a) = &mut accuracy {
            a.frame_match = prepared.exact.then_some(first.frames);
            a.huge_faults = first.huge_faults;
        }
        let mut notes = first.notes;
        notes.extend(ensemble.as_ref().map(Ensemble::sentence));
        if q.options.members.is_some_and(|n| n > 1) && !self.reclaims {
            notes.push("Nothing was reclaimed by the model, so that one replay says all.".into());
        }
        let mut report = KernelReport {
            kernel: q.preset.name.into(),
            recorded_era: q.recorded_era,
            broke_down: breakdown(&totals, &failures),
            what_if,
            guessed_settings: q.guessed.iter().map(|_| PROACTIVENESS.into()).collect(),
            settings: first.settings,
            accuracy,
            accuracy_from_counts: None,
            ensemble,
            samples,
            totals,
            failures,
            block_map: first.block_map,
            notes,
        };
        if report.broke_down.is_some() {
            report.leave_out_numbers();
        }
        Ok((report, accuracy_of_first))
    }
}

/// The question for the recorded kernel as it was, beside which every other is put. It has as many members as the others, so
/// that no number depends on whether it was asked for too.
fn as_recorded(options: &Options) -> Options {
    Options {
        kernels: vec![],
        set: vec![],
        memory: None,
        start: match options.start {
            StartChoice::Boot => StartChoice::Auto,
            start => start,
        },
        ..options.clone()
    }
}

/// Notes in `report`, which is from the kernel's exact state, by how much the errors of a start by counts differ, which
/// every host has. Where the report is of several replays, `first` is the accuracy of the first of them, at the recorded
/// pace: what there is from counts is one such replay.
fn compare_starts(report: &mut KernelReport, first: Option<&Accuracy>, counts: KernelReport) {
    if let (true, Some(exact), Some(counts)) = (report.accuracy.is_some(), first, &counts.accuracy)
    {
        let of = match report.ensemble {
            Some(_) => "of one replay at the recorded pace ",
            None => "",
        };
        report.notes.push(format!(
            "Error of the start: from the kernel's exact state the median error {of}of the order distribution is \
             {:.4} and that of free pages {:.4}; from counts, as on an ordinary host, {:.4} and {:.4}.",
            exact.order_distribution_error.median,
            exact.free_pages_error.median,
            counts.order_distribution_error.median,
            counts.free_pages_error.median,
        ));
    }
    if report.broke_down.is_none() {
        report.accuracy_from_counts = counts.accuracy;
    }
}

/// The kernels that were asked for, and the recorded one as it was where that is none of them.
type Replayed = (Vec<KernelReport>, Option<KernelReport>);

/// Replays the kernels that were asked for, and the recorded one beside which they are put.
fn replay_kernels<'r>(
    main: &Beginning<'r>,
    counts: Option<Result<Beginning<'r>>>,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Replayed> {
    let own = [main.prepared.era.preset().to_string()];
    let names = if options.kernels.is_empty() {
        &own[..]
    } else {
        &options.kernels
    };
    let asked = names.iter().map(|name| main.ask(name, options));
    let mut asked = asked.collect::<Result<Vec<_>>>()?;
    let as_recorded = as_recorded(options);
    // Every what-if is held against the recorded kernel's replay, which is not shown unless it is asked for.
    let base = asked.iter().position(|a| a.question.as_recorded);
    let hidden = base.is_none() && !main.recorded.is_empty();
    if hidden {
        asked.push(main.ask(&own[0], &as_recorded)?);
    }
    let base = base.or(hidden.then_some(asked.len() - 1));
    // Of each of these there is a second replay, from counts.
    let compared = |i: &usize| main.prepared.exact && asked[*i].is_measured();
    let compared: Vec<usize> = (0..names.len()).filter(compared).collect();
    let counts = match counts {
        Some(counts) if !compared.is_empty() => Some(counts?),
        _ => None,
    };
    let several = asked.len();
    if let Some(counts) = &counts {
        for &i in &compared {
            asked.push(counts.ask_of(1, &names[i], options)?);
        }
    }
    let ensembles = asked.iter().filter(|a| a.chances.len() > 1).count();
    let wanted = threads().div_ceil(ensembles.max(1));
    let watches = watch.wants_snapshots();
    let jobs: Vec<Job> = asked
        .iter()
        .enumerate()
        .flat_map(|(k, asked)| asked.jobs(k, wanted, watches && k < names.len()))
        .collect();
    if let Some(bytes) = options.memory {
        let geometry = main.prepared.start.geometry;
        resized(&main.prepared.start.zone_configs(), bytes, geometry)?;
        let (frames, page) = (bytes >> geometry.page_shift, 1 << geometry.page_shift);
        let of = |job: &Job| 1 + u64::from(job.members.len() > 1);
        let mut models: Vec<u64> = jobs.iter().map(of).collect();
        models.sort_unstable();
        let most = models.iter().rev().take(threads()).sum();
        afford::check_pages(frames, page, afford::MODEL, most)
            .map_err(|e| Error::option(Asked::Memory, e).remedy(Remedy::Other(Asked::Memory)))?;
    }
    let one = |job: &Job, watch: &mut dyn Watch| {
        let KernelReplay { from, question, .. } = &asked[job.kernel];
        let chances: Vec<Chance> = job.members.iter().map(|m| m.1).collect();
        let is_drawn = job.members.first().is_some_and(|m| m.0 == 0);
        course::replay_alike(&from.prepared, question, &chances, is_drawn, watch)
    };
    let mut members = ensemble::run(&jobs, threads(), one, watch)?.into_iter();
    let members = asked
        .iter()
        .map(|a| members.by_ref().take(a.chances.len()).collect());
    let members: Vec<Vec<Member>> = members.collect();
    let own = base.map(|base| &members[base][..]);
    let what_ifs = asked.iter().zip(&members).take(several);
    let mut what_ifs: Vec<_> = what_ifs.map(|(a, m)| a.what_if(m, own)).collect();
    what_ifs.resize(asked.len(), None);
    let all = asked.iter().zip(members).zip(what_ifs);
    let all = all.map(|((asked, members), what_if)| asked.report(members, what_if));
    let (mut reports, firsts): (Vec<_>, Vec<_>) =
        all.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let from_counts = reports.split_off(several);
    for (i, counts) in compared.into_iter().zip(from_counts) {
        compare_starts(&mut reports[i], firsts[i].as_ref(), counts);
    }
    withhold(&mut reports, base);
    let own = reports.split_off(names.len()).pop();
    Ok((reports, own))
}

/// Takes back what is said of free memory where the model of the recorded kernel, the `base`, follows it worse than counting
/// pages would.
fn withhold(reports: &mut [KernelReport], base: Option<usize>) {
    let own = base.and_then(|base| reports[base].accuracy.as_ref());
    if own.is_some_and(Accuracy::is_worse_than_counting) {
        let what_ifs = reports.iter_mut().filter_map(|r| r.what_if.as_mut());
        what_ifs.for_each(withhold_free_memory);
    }
}

/// Whether the replay from an exact start will be compared with one from counts.
fn may_compare(input: &Input<'_>, options: &Options) -> bool {
    let mut snapshots = input.recording.snapshots.iter();
    options.mode == Mode::Predict
        && matches!(options.start, StartChoice::Auto | StartChoice::Exact)
        && options.memory.is_none()
        && snapshots.any(|s| s.content("freelists").is_some())
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
    // Both starts have the same clock. What is wrong with it is said where it is needed.
    let (share, clock) = both(|| share(&input, options), || Clock::of(input.clone()));
    let (share, clock) = (share?, clock.ok().map(Arc::new));
    let begin = |choice| Beginning::new(input.clone(), choice, clock.clone());
    let (main, counts) = both(
        || begin(options.start),
        || may_compare(&input, options).then(|| begin(StartChoice::Counts)),
    );
    let main = main?;
    let ((kernels, own), observed) = match options.mode {
        Mode::Observe => ((vec![], None), Some(observe(&main.prepared)?)),
        Mode::Predict => (replay_kernels(&main, counts, options, watch)?, None),
    };
    let Beginning { prepared, recorded } = main;
    let sizes = Sizes::of(prepared.start.geometry);
    let zones = zone_facts(&Host::recorded(prepared.snapshots[0].1)?)?;
    let last = input.events.span().map_or(0, |(_, last)| last);
    Ok(Report {
        recording: RecordingSummary {
            file: file.into(),
            kernel_release: rec.meta.kernel_release.clone(),
            cpus: prepared.start.cpus.len() as u32,
            events: input.events.len(),
            lost_events: rec.meta.lost_events(),
            share_of_allocations: share.map(Share::fraction),
            seconds: prepared.seconds(last),
            managed_bytes: sizes.bytes(zones.iter().map(|z| z.config.managed).sum()),
            snapshots: recorded.len() as u64,
            sizes,
        },
        mode: match options.mode {
            Mode::Predict => "predict".into(),
            Mode::Observe => "observe".into(),
        },
        start: match (options.start, prepared.exact, prepared.occupancy) {
            (StartChoice::Boot, ..) => "boot".into(),
            (_, true, _) => "exact".into(),
            (_, _, true) => "occupancy".into(),
            _ => "counts".into(),
        },
        asked_settings: options.set.iter().map(Setting::to_string).collect(),
        start_lists: prepared.start.order_shown,
        recorded,
        kernels,
        own,
        observe: observed,
    })
}
