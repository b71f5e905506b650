//! What happened since boot: told as history, and no reason to act now.
//!
//! Invariant: each entry says what of it happened while the host was watched, or that it was not watched.

use super::watch::Watch;
use super::work::{Work, share_of};
use crate::report::number::{duration, percent, thousands};
use serde::Serialize;

/// Something that happened since boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Past {
    /// The counter that tells it.
    pub counter: &'static str,
    /// How often since boot.
    pub since_boot: u64,
    /// How often while the host was watched; `null` if it was not.
    pub while_watched: Option<u64>,
    /// As a sentence.
    pub text: String,
    /// The command that tells more.
    pub next: Option<&'static str>,
}

/// Head of what happened since boot, which is no reason to act where nothing of it happened while the host was watched.
pub(super) fn head(all: &[Past]) -> &'static str {
    match all.iter().any(|p| p.while_watched > Some(0)) {
        true => "since boot",
        false => "since boot, no reason to act now",
    }
}

/// What happened since boot, the gravest first.
pub(super) fn history(work: &[Work], watch: &Watch) -> Vec<Past> {
    let total = |name: &str| work.iter().find(|w| w.counter == name).map(|w| w.total);
    let watched = watch.watched().seconds.map(duration);
    let one = |counter: &'static str, what: String, next| {
        let since_boot = total(counter).filter(|&n| n > 0)?;
        let while_watched = watch.rose(counter);
        let now = match (&watched, while_watched) {
            (Some(time), Some(0)) => format!("none in the last {time}"),
            (Some(time), Some(n)) => format!("{} in the last {time}", thousands(n)),
            _ => "when is not known by one reading".into(),
        };
        Some(Past {
            counter,
            since_boot,
            while_watched,
            text: format!("{} {what}; {now}", thousands(since_boot)),
            next,
        })
    };
    let share = |part: &str, rest: &str, of: &str| {
        let (part, rest) = (total(part)?, total(rest)?);
        let all = thousands(part.saturating_add(rest));
        Some(format!(
            " ({} of {all} {of})",
            percent(share_of(part, rest))
        ))
    };
    let vain = share(
        "compact_fail",
        "compact_success",
        "compactions that a request waited for were in vain",
    );
    let fell = share(
        "thp_fault_fallback",
        "thp_fault_alloc",
        "faults that wanted a huge page",
    );
    let all = [
        one(
            "oom_kill",
            "processes ended for lack of memory".into(),
            Some("unfrag explain --journal"),
        ),
        one(
            "compact_stall",
            format!("requests had to compact first{}", vain.unwrap_or_default()),
            None,
        ),
        one(
            "thp_fault_fallback",
            format!(
                "faults got small pages instead of a huge one{}",
                fell.unwrap_or_default()
            ),
            None,
        ),
        one(
            "htlb_buddy_alloc_fail",
            "huge pages that the hugetlb pool did not get".into(),
            None,
        ),
        one("allocstall", "requests had to reclaim first".into(), None),
    ];
    all.into_iter().flatten().collect()
}
