//! Whether a kernel reclaims by generations (MGLRU) in a replay: what the recorded host says of itself, what its counters
//! show, and what distributions build.
//!
//! Invariant: what is not recorded is said to be assumed.

use crate::era::settings::{RecordedSettings, Setting};
use crate::era::sysctl;
use crate::replay::causes::reclaimed_by_generations;
use unfrag_eras::kernel::Preset;
use unfrag_linux::recording::Snapshot;

/// `/sys/kernel/mm/lru_gen/enabled`.
pub(super) const ENABLED: &str = "lru_gen/enabled";

/// How it is known whether a kernel reclaims by generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The recording says it.
    Recorded,
    /// Counters of the recording show it.
    Inferred,
    /// Debian builds this kernel so. No recording is of it, or its recording does not tell.
    AsBuilt,
}

/// Whether a kernel reclaims by generations at the beginning, if it can, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generations {
    pub(super) on: bool,
    pub(super) known: Known,
}

/// Whether Debian's build of an era reclaims by generations. `spec: 4.10`
fn as_built(p: &Preset) -> bool {
    p.rules.generations().is_some() && p.name != "6.1"
}

/// Of the recorded kernel, an era's: at a time.
pub(super) fn recorded(
    own: &Preset,
    recorded: &RecordedSettings,
    snapshots: &[(u64, &Snapshot)],
    time: u64,
) -> Generations {
    let said = recorded.value(ENABLED, time);
    let (on, known) = match said.and_then(sysctl::switch) {
        Some(on) => (on, Known::Recorded),
        None => match reclaimed_by_generations(snapshots.iter().map(|s| s.1)) {
            Some(on) => (on, Known::Inferred),
            None => (as_built(own), Known::AsBuilt),
        },
    };
    Generations { on, known }
}

/// Of another kernel: as it is built. What the recorded host's administrator chose against its own kernel's build is chosen
/// for others, too.
pub(super) fn of_another(asked: &Preset, own: &Preset, recorded: Generations) -> Generations {
    let can = |p: &Preset| p.rules.generations().is_some();
    let chosen = can(own) && recorded.known != Known::AsBuilt && recorded.on != as_built(own);
    Generations {
        on: if chosen {
            recorded.on && can(asked)
        } else {
            as_built(asked)
        },
        known: Known::AsBuilt,
    }
}

/// The setting that says so from the beginning on.
pub(super) fn setting(on: bool) -> Setting {
    Setting {
        name: ENABLED.into(),
        value: if on { "y" } else { "n" }.into(),
        at: None,
    }
}
