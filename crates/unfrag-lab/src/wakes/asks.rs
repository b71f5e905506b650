//! What a request's flags let happen to it.
//!
//! Invariant: a flag means what it means on the recorded kernel; of a kernel that is not known nothing is said.

use serde::Serialize;
use unfrag_linux::gfp_text::Era;

/// Orders above this one are given up on without more ado. `spec: 4.8`
const COSTLY: u64 = 3;

/// Whether a request may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MayFail {
    /// It is tried again until it succeeds, if need be by killing a process.
    No,
    /// After reclaim and compaction did not help.
    AfterAll,
    /// After one attempt of them.
    Soon,
    /// It never reclaims or compacts itself: it only wakes the daemons.
    AtOnce,
}

impl MayFail {
    /// In a word or two.
    pub(super) fn text(self) -> &'static str {
        match self {
            MayFail::No => "no",
            MayFail::AfterAll => "at last",
            MayFail::Soon => "soon",
            MayFail::AtOnce => "at once",
        }
    }
}

/// Flags that decide, on one kernel.
pub(super) struct Flags {
    era: Era,
    direct: u64,
    no_retry: u64,
    retry: u64,
    no_fail: u64,
}

impl Flags {
    /// Of a release; `None` if it is not known.
    pub fn of(release: &str) -> Option<Flags> {
        let era = Era::of_release(release)?;
        let mask = |names: &[&str]| {
            let mut known = names.iter().filter_map(|n| era.parse(n).ok());
            known.next().unwrap_or(0)
        };
        Some(Flags {
            era,
            direct: mask(&["__GFP_DIRECT_RECLAIM", "__GFP_WAIT"]),
            no_retry: mask(&["__GFP_NORETRY"]),
            retry: mask(&["__GFP_RETRY_MAYFAIL"]),
            no_fail: mask(&["__GFP_NOFAIL"]),
        })
    }

    /// Whether a request of this order with these flags may fail. Without flags it is the kernel's own affair, and none.
    pub fn may_fail(&self, order: u64, gfp: u64) -> Option<MayFail> {
        let has = |mask: u64| mask != 0 && gfp & mask != 0;
        Some(match () {
            () if gfp == 0 => return None,
            () if has(self.no_fail) => MayFail::No,
            () if self.direct != 0 && !has(self.direct) => MayFail::AtOnce,
            () if has(self.no_retry) => MayFail::Soon,
            () if has(self.retry) || order > COSTLY => MayFail::AfterAll,
            () => MayFail::No,
        })
    }

    /// The flags as that kernel prints them.
    pub fn print(&self, gfp: u64) -> String {
        self.era.print(gfp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_request_may_fail_is_in_its_flags_and_its_order() {
        let flags = Flags::of("6.1.0").unwrap();
        let era = Era::of_release("6.1.0").unwrap();
        for (text, order, may_fail) in [
            ("GFP_KERNEL", 0, Some(MayFail::No)),
            ("GFP_KERNEL", 3, Some(MayFail::No)),
            ("GFP_KERNEL", 4, Some(MayFail::AfterAll)),
            ("GFP_KERNEL|__GFP_RETRY_MAYFAIL", 1, Some(MayFail::AfterAll)),
            ("GFP_KERNEL|__GFP_NORETRY", 9, Some(MayFail::Soon)),
            ("GFP_KERNEL|__GFP_NOFAIL", 9, Some(MayFail::No)),
            ("GFP_TRANSHUGE_LIGHT", 9, Some(MayFail::AtOnce)),
            ("GFP_ATOMIC", 0, Some(MayFail::AtOnce)),
            ("none", 0, None),
        ] {
            let mask = era.parse(text).unwrap();
            assert_eq!(flags.may_fail(order, mask), may_fail, "{text} {order}");
        }
        let old = Flags::of("2.6.32").unwrap();
        assert_eq!(old.may_fail(0, 0x20), Some(MayFail::AtOnce));
        assert!(Flags::of("").is_none());
    }
}
