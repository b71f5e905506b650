//! One kernel and its settings, as a replay is asked for them.

use super::generations::{self, Generations, Known};
use super::huge_setting::{HugeQuestion, huge_question, is_of_huge_pages};
use super::options::{CompactionChoice, Options, ReclaimChoice};
use super::proactiveness::{Guess, proactiveness};
use super::schedule::{PROACTIVENESS, Schedule};
use crate::era::settings::{RecordedSettings, Setting};
use crate::error::{Asked, Error, Result};
use crate::replay::causes::RecordedReclaim;
use crate::replay::model::{Prepared, recorded_preset};
use crate::replay::start::StartChoice;
use std::collections::BTreeSet;
use unfrag_eras::kernel::{MarkGap, Preset, kernels, preset};

/// A kernel and its settings.
pub(super) struct Question<'q> {
    pub(super) preset: &'static Preset,
    /// Its settings over time.
    pub(super) schedule: Schedule,
    /// What of huge pages is asked for.
    pub(super) huge: HugeQuestion,
    /// What of the recorded host's settings is guessed.
    pub(super) guessed: Option<Guess>,
    /// Whether it reclaims by generations, where nothing else is asked for.
    generations: Generations,
    /// Whether it is the era that was recorded.
    pub(super) recorded_era: bool,
    /// Whether it is the recorded kernel with its recorded settings, so that its snapshots can be compared.
    pub(super) as_recorded: bool,
    /// Whether the recorded marks hold.
    pub(super) keep_marks: bool,
    pub(super) options: &'q Options,
}

impl Prepared<'_> {
    pub(super) fn question<'q>(&self, name: &str, options: &'q Options) -> Result<Question<'q>> {
        let p = preset(name).ok_or_else(|| {
            let known: Vec<_> = kernels().map(|p| p.name).collect();
            Error::option(Asked::Kernel, format!("there is no kernel `{name}`"))
                .help(format!("kernels are {}", known.join(", ")))
        })?;
        let mut given = options.recorded.clone();
        let recorded = self.settings(&given);
        let guessed = proactiveness(&self.causes, &self.start, &self.snapshots, &recorded);
        given.extend(guessed.iter().map(|g| Setting {
            name: PROACTIVENESS.into(),
            value: g.percent.to_string(),
            at: Some(self.since_first(g.from)),
        }));
        let recorded = self.settings(&given);
        let own = recorded_preset(self.era);
        let generations = generations::recorded(own, &recorded, &self.snapshots, self.start.time);
        let generations = match p.name == own.name {
            true => generations,
            false => generations::of_another(p, own, generations),
        };
        if generations.known != Known::Recorded {
            given.push(generations::setting(generations.on));
        }
        let recorded = self.settings(&given);
        let time_of = |ns| self.after_first(ns);
        self.check_times(&options.set)?;
        check_names(p, options)?;
        let huge = huge_question(&recorded, &options.set)?;
        let sysctls = options.set.iter().filter(|s| !is_of_huge_pages(s));
        let sysctls: Vec<Setting> = sysctls.cloned().collect();
        let mut schedule = Schedule::of(&recorded, &sysctls, self.start.time, time_of)?;
        schedule.is_recorded &= huge.asked.is_empty();
        if options.compaction() == CompactionChoice::Modelled
            && options.reclaim == ReclaimChoice::Given
        {
            let e = Error::option(
                Asked::Compaction,
                "the model compacts by itself only where it reclaims by itself",
            );
            return Err(e.help("take reclaim and compaction both as modelled, or both as given"));
        }
        let recorded_era = p.name == self.era.preset();
        let question = Question {
            preset: p,
            recorded_era,
            as_recorded: recorded_era
                && schedule.is_recorded
                && options.memory.is_none()
                && options.start != StartChoice::Boot,
            // Modern kernels with huge pages raise the marks alike; old ones had their own.
            keep_marks: p.rules.marks.gap == MarkGap::Scaled
                && !schedule.moves_marks
                && options.memory.is_none(),
            guessed,
            generations,
            schedule,
            huge,
            options,
        };
        question.check_swappiness(self, &recorded)?;
        Ok(question)
    }
}

/// Each setting is asked for once at a time, and a single kernel has it.
fn check_names(p: &Preset, options: &Options) -> Result<()> {
    for (i, s) in options.set.iter().enumerate() {
        let same = |o: &&Setting| o.name == s.name && o.at == s.at;
        if let Some(other) = options.set[..i].iter().find(same) {
            let twice = format!(
                "{} is asked for twice: as {} and as {}",
                s.name, other.value, s.value
            );
            return Err(Error::option(Asked::Setting, twice).help("leave one of them out"));
        }
        let has = match &s.name[..] {
            PROACTIVENESS => p.rules.compact.is_some_and(|c| c.proactive.is_some()),
            "vm.defrag_mode" => p.rules.pageblocks().is_some_and(|b| b.defrag_mode),
            name if name.starts_with("lru_gen/") => p.rules.generations().is_some(),
            _ => true,
        };
        if !has && options.kernels.len() <= 1 {
            let none = format!("{} has no {}", p.name, s.name);
            return Err(Error::option(Asked::Setting, none)
                .help("leave it out, or ask for a kernel that has it (--kernel)"));
        }
    }
    Ok(())
}

impl Prepared<'_> {
    /// Each setting is asked for from a time on that was recorded.
    fn check_times(&self, set: &[Setting]) -> Result<()> {
        let last = self.snapshots.iter().map(|s| s.0).max().unwrap_or(0);
        let late = set.iter().find_map(|s| {
            let at = s.at.filter(|&at| self.after_first(at) >= last)?;
            Some((s, at))
        });
        let Some((s, at)) = late else {
            return Ok(());
        };
        let seconds = |ns: u64| ns as f64 / 1e9;
        let what = format!(
            "{}: the recording ends before {} s, so that it would change nothing",
            s.name,
            seconds(at)
        );
        let end = seconds(self.since_first(last));
        Err(Error::option(Asked::Setting, what)
            .help(format!("ask for a time before {end:.1} s, or for none")))
    }
}

impl Question<'_> {
    /// Whether it begins with the recorded host's memory as it was.
    pub(super) fn inherits(&self, prepared: &Prepared<'_>) -> bool {
        let can = self.recorded_era || prepared.start.can_be_inherited(&self.preset.rules);
        can && self.options.memory.is_none() && self.options.start != StartChoice::Boot
    }

    /// Whether the model reclaims by itself: where the recorded kernel did, and where less memory or other marks may make
    /// it necessary.
    pub(super) fn reclaims(&self, recorded: &RecordedReclaim) -> bool {
        let tighter = self.schedule.moves_marks || self.options.memory.is_some();
        self.options.reclaim == ReclaimChoice::Modelled && (recorded.pages > 0 || tighter)
    }

    /// Another `vm.swappiness` changes nothing where nothing is reclaimed, or no swap is left to reclaim to. Elsewhere
    /// it decides which memory of programs goes, and a recording shows of that only what its own kernel took.
    fn check_swappiness(&self, prepared: &Prepared<'_>, recorded: &RecordedSettings) -> Result<()> {
        let name = "vm.swappiness";
        let mut asked = self.options.set.iter().filter(|s| s.name == name);
        let was = recorded.value(name, prepared.start.time).unwrap_or("60");
        let Some(other) = asked.find(|s| s.value != was) else {
            return Ok(());
        };
        if !self.reclaims(&prepared.reclaim) || prepared.reclaim.pace.swap_pages == 0 {
            return Ok(());
        }
        Err(Error::option(
            Asked::Setting,
            format!(
                "{other}: which memory of programs would have gone to swap, and when it would have been needed again, is not in a recording"
            ),
        )
        .help("record the load with this setting, and compare the recordings"))
    }

    /// What a reader must know of the settings.
    pub(super) fn notes(&self, prepared: &Prepared<'_>) -> Vec<String> {
        let mut all = vec![];
        let recorded = prepared.settings(&self.options.recorded);
        all.extend(self.huge.note(prepared.causes.classes.collapses));
        all.extend(self.guessed.map(|g| {
            format!(
                "Nobody recorded {PROACTIVENESS} after it was changed: that it was {} from {:.1} s on is a guess, by where \
                 the recorded kernel's runs ended. Say what it was (--recorded {PROACTIVENESS}=VALUE@SECONDS).",
                g.percent,
                prepared.seconds(g.from)
            )
        }));
        let unknown = |s: &&Setting| recorded.values(&s.name).is_empty();
        let asked: BTreeSet<&str> = self
            .options
            .set
            .iter()
            .filter(unknown)
            .map(|s| &s.name[..])
            .collect();
        if self.recorded_era && !asked.is_empty() {
            let names: Vec<&str> = asked.into_iter().collect();
            all.push(format!(
                "The recording does not show {} of its host. If what was asked for is what it had, say so (--recorded), \
                 and the answer is held against it.",
                names.join(", ")
            ));
        }
        let is_asked = self
            .options
            .set
            .iter()
            .any(|s| s.name == generations::ENABLED);
        if !is_asked
            && self.preset.rules.generations().is_some()
            && self.reclaims(&prepared.reclaim)
        {
            all.extend(self.said_of_generations());
        }
        all
    }

    /// What a reader must know of whether the kernel reclaims by generations, if nobody recorded it.
    fn said_of_generations(&self) -> Option<String> {
        let Generations { on, known } = self.generations;
        let does = if on {
            "reclaims by generations (MGLRU)"
        } else {
            "reclaims by active and inactive lists, not by generations (MGLRU)"
        };
        let (name, kernel) = (generations::ENABLED, self.preset.name);
        Some(match known {
            Known::Recorded => return None,
            Known::Inferred => format!(
                "Counters of the recording show that its kernel {does}; {name} was not recorded."
            ),
            Known::AsBuilt if self.recorded_era => format!(
                "The recording does not show {name} of its host. That its kernel {does} is assumed, as Debian builds \
                 {kernel}: say what it was (--recorded {name}=y or n)."
            ),
            Known::AsBuilt => format!(
                "{kernel} {does}, as Debian builds it; ask for the other with --set {name}={}.",
                if on { "n" } else { "y" }
            ),
        })
    }
}
