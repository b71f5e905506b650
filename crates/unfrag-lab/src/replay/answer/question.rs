//! One kernel and its settings, as a replay is asked for them.

use super::options::{CompactionChoice, Options, ReclaimChoice};
use super::proactiveness::proactiveness;
use crate::era::sysctl;
use crate::error::{Asked, Error, Result};
use crate::replay::causes::RecordedReclaim;
use crate::replay::model::Prepared;
use unfrag::Sysctl;
use unfrag::kernel::{MarkGap, PRESETS, Preset, preset};

/// A kernel and its settings.
pub(super) struct Question<'q> {
    pub(super) preset: &'static Preset,
    pub(super) sysctl: Sysctl,
    /// Whether it is the era that was recorded.
    pub(super) recorded_era: bool,
    /// Whether it is the recorded kernel with its recorded settings, so that its snapshots can be compared.
    pub(super) as_recorded: bool,
    /// Whether the recorded marks hold.
    pub(super) keep_marks: bool,
    pub(super) options: &'q Options,
}

impl Question<'_> {
    /// Whether a value of this setting is asked for.
    pub(super) fn asks_for(&self, setting: &str) -> bool {
        self.options.set.iter().any(|(name, _)| name == setting)
    }
}

impl Prepared<'_> {
    pub(super) fn question<'q>(&self, name: &str, options: &'q Options) -> Result<Question<'q>> {
        let p = preset(name).ok_or_else(|| {
            let known: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
            Error::option(Asked::Kernel, format!("there is no kernel `{name}`"))
                .help(format!("kernels are {}", known.join(", ")))
        })?;
        let mut sysctl = sysctl::recorded(self.input.recording);
        let recorded = sysctl::recorded_proactiveness(self.input.recording);
        let seen = proactiveness(&self.causes, &self.start, &self.snapshots, recorded);
        sysctl.compaction_proactiveness = seen.unwrap_or(sysctl.compaction_proactiveness);
        for (n, v) in &options.set {
            sysctl::set(&mut sysctl, n, v)?;
        }
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
        let asked = options.set.iter().any(|(n, _)| sysctl::changes_marks(n));
        Ok(Question {
            preset: p,
            sysctl,
            recorded_era,
            as_recorded: recorded_era && options.set.is_empty() && options.memory.is_none(),
            // Modern kernels with huge pages raise the marks alike; old ones had their own.
            keep_marks: p.rules.marks.gap == MarkGap::Scaled && !asked && options.memory.is_none(),
            options,
        })
    }

    /// What the model's own reclaim needs of the recording, if the model is to reclaim.
    pub(super) fn modelled_reclaim(&self, options: &Options) -> Option<&RecordedReclaim> {
        let modelled = options.reclaim == ReclaimChoice::Modelled;
        Some(&self.reclaim).filter(|r| modelled && r.pages > 0)
    }
}
