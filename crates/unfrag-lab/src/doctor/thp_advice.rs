//! When faults should wait for their huge page: `defrag` of transparent huge pages.
//!
//! Invariant: a mode is advised for what faults did while the host was watched.

use super::advice::{Advice, Change, Lasts, Sure, Unit};
use super::diagnosis::Diagnosis;
use super::evidence::Evidence;
use super::needs::{fallen_back, in_vain, in_vain_since_boot, in_vain_while_watched, most};
use super::setting_advice::Judged;
use super::standing::{LONGER, Standing, of_setting};
use super::watch::Watch;
use crate::report::number::{duration, percent, thousands};

/// Share of faults without a huge page above which a `defrag` that waits is worth it.
const MISSED: f64 = 0.10;

fn thp_defrag(
    now: &str,
    value: &str,
    reason: String,
    cost: &str,
    change: Option<Change>,
) -> Advice {
    Advice {
        command: format!("echo {value} > /sys/kernel/mm/transparent_hugepage/defrag"),
        lasts: Lasts::Setting,
        setting: None,
        current: Some(now.to_owned()),
        value: Some(value.into()),
        reason,
        change,
        cost: cost.into(),
        prediction: None,
        predicted: None,
        huge_pages: None,
    }
}

/// A THP `defrag` mode that waits, where faults do not get huge pages.
pub(super) fn huge_page_faults(e: &Evidence, watch: &Watch) -> Judged {
    let defrag = e.host.settings.get("thp_defrag")?;
    if matches!(defrag.as_str(), "always" | "madvise" | "defer+madvise") {
        return None;
    }
    let (all, share) = fallen_back(|name| watch.rose(name)).filter(|(_, share)| *share > MISSED)?;
    let standing = of_setting(watch, false, |step| {
        most(step, "thp_fault_fallback", "thp_fault_alloc", MISSED)
    })?;
    let time = duration(watch.watched().seconds?);
    let change = Change {
        what: format!(
            "faults in {time} that got small pages, of {}",
            thousands(all)
        ),
        unit: Unit::Number,
        from: watch.rose("thp_fault_fallback")?,
        to: 0,
        sure: Sure::AtBest,
    };
    let advice = thp_defrag(
        defrag,
        "defer+madvise",
        format!(
            "{} of the faults that wanted a huge page in the last {time} did not get one",
            percent(share)
        ),
        "programs that ask with madvise wait for compaction; for the others kcompactd works",
        Some(change),
    );
    Some((advice, standing))
}

/// A THP `defrag` mode that waits less, where each fault that may have a huge page compacts for it, in vain mostly.
pub(super) fn stalling_faults(d: &Diagnosis, e: &Evidence, watch: &Watch) -> Judged {
    let defrag = e.host.settings.get("thp_defrag")?;
    if defrag != "always" {
        return None;
    }
    let is_watched = watch.watched().readings > 1;
    let (stalls, share) = match is_watched {
        true => in_vain_while_watched(watch)?,
        false => in_vain_since_boot(d)?,
    };
    let standing = match of_setting(watch, true, in_vain) {
        Some(standing) => standing,
        // In vain in all, and not in half of the steps: a longer look decides.
        None if watch.is_long() => return None,
        None => Standing::Needs(LONGER.into()),
    };
    // With `enabled` at madvise all faults that may have a huge page are of memory for which a program asked: `madvise`
    // and `defer+madvise` would let them wait as before.
    let (value, cost) = match e.host.settings.get("thp_enabled").map(String::as_str) {
        Some("madvise") => (
            "defer",
            "programs that ask with madvise get small pages first, and huge ones from kcompactd and khugepaged later",
        ),
        _ => (
            "madvise",
            "programs that do not ask with madvise get a huge page only where one is free; khugepaged makes others later",
        ),
    };
    let time = match watch.watched().seconds {
        Some(s) => format!("in the last {}", duration(s)),
        None => "since boot".into(),
    };
    let change = is_watched.then(|| Change {
        what: format!("compactions {time} that a request waited for"),
        unit: Unit::Number,
        from: stalls,
        to: 0,
        sure: Sure::AtBest,
    });
    let reason = format!(
        "each fault that may have a huge page waits for compaction: {} waits {time}, {} of them in vain",
        thousands(stalls),
        percent(share)
    );
    Some((thp_defrag(defrag, value, reason, cost, change), standing))
}
