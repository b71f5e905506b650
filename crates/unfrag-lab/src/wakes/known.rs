//! What of the answer a recording can tell: by the kinds of events that it holds.

use super::report::Measure;
use super::sums::Work;
use crate::input::Input;
use unfrag_linux::event::{Coverage, Kind};

/// What the recording tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// That kswapd and kcompactd were woken.
    asked: [bool; 2],
    /// That they woke, and slept.
    awake: [bool; 2],
    /// That tasks compacted.
    direct: bool,
    switches: bool,
    /// What was asked for.
    requests: bool,
}

impl Known {
    /// The kinds of events that tell it.
    pub const KINDS: [Kind; 12] = [
        Kind::Alloc,
        Kind::CompactTry,
        Kind::CompactBegin,
        Kind::CompactEnd,
        Kind::WakeupKcompactd,
        Kind::KcompactdWake,
        Kind::KcompactdSleep,
        Kind::WakeupKswapd,
        Kind::KswapdWake,
        Kind::KswapdSleep,
        Kind::Switch,
        Kind::Stack,
    ];

    /// Of a recording.
    pub fn of(input: &Input) -> Known {
        let coverage = Coverage::of(input.recording);
        let has = |kind| coverage.has(kind);
        Known {
            asked: [has(Kind::WakeupKswapd), has(Kind::WakeupKcompactd)],
            awake: [
                has(Kind::KswapdWake) && has(Kind::KswapdSleep),
                has(Kind::KcompactdWake) && has(Kind::KcompactdSleep),
            ],
            direct: has(Kind::CompactBegin) && has(Kind::CompactEnd),
            switches: has(Kind::Switch),
            requests: has(Kind::Alloc),
        }
    }

    /// Which wake-ups it tells, of kswapd and of kcompactd.
    pub fn asked(self) -> [bool; 2] {
        self.asked
    }

    /// Whether kswapd and kcompactd say when they wake and sleep.
    pub fn awake(self) -> [bool; 2] {
        self.awake
    }

    /// Whether it tells requests.
    pub fn requests(self) -> bool {
        self.requests
    }

    /// Whether there is an answer at all.
    pub fn anything(self) -> bool {
        self.direct || self.asked.contains(&true) || self.awake.contains(&true)
    }

    /// How each work is measured, where it is: by switches of its tasks and their wakings, which there were so many of.
    pub fn measures(self, switches: [u64; 3], wakings: [u64; 3]) -> [Option<Measure>; 3] {
        let of = |work: Work| {
            let at = work as usize;
            // Switches of other tasks alone say nothing of a daemon.
            let has_switches = self.switches && (switches[at] > 0 || wakings[at] == 0);
            match () {
                () if !self.asked[at] && !self.awake[at] => None,
                () if has_switches => Some(Measure::OnCpu),
                () if self.awake[at] => Some(Measure::Awake),
                () => None,
            }
        };
        let direct = self.direct.then_some(Measure::BeginToEnd);
        [of(Work::Kswapd), of(Work::Kcompactd), direct]
    }
}
