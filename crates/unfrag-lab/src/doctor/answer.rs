//! The answer to `--huge N`: whether so many huge pages can be had, and the commands that take them.
//!
//! Invariant: every command names the pool of the page size that was counted. What the files do not decide is said to be
//! not known, with the file that would decide; what a forecast alone says is neither promised nor ruled out.

use super::diagnosis::Diagnosis;
use super::forecast::Attainability;
use super::gate::answer::Room;
use crate::report::number::{bytes, thousands};
use std::fmt::Write as _;

/// `vm.percpu_pagelist_high_fraction` at which per-CPU lists are as short as they can be: four batches.
/// `spec: 3.2`
const SHORT_LISTS: u32 = 100_000;

/// The pool of huge pages of the size that the diagnosis counts: its file, and how many it has; the number is `None`
/// where no file tells it.
pub(super) fn pool(d: &Diagnosis) -> (String, Option<u64>) {
    if d.default_huge_page_bytes == Some(d.huge_page_bytes) {
        return ("/proc/sys/vm/nr_hugepages".into(), d.huge_pages_in_pool);
    }
    let kib = d.huge_page_bytes >> 10;
    (
        format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages"),
        None,
    )
}

/// After what so many can be had, and how many then by the forecast; [`Attainability::Unknown`] where `room`, what there is
/// after any means, neither promises so many nor rules them out.
pub fn settled(d: &Diagnosis, wanted: u64, room: Option<Room>) -> (Attainability, Option<u64>) {
    let (action, n) = d.huge_pages.attainability(wanted);
    let at_most = room.and_then(|r| r.at_most);
    let is_forecast = d.huge_pages.by_asking_again.is_some();
    match action {
        Attainability::Now | Attainability::Unknown => (action, n),
        _ if at_most.is_some_and(|most| most < wanted) => (Attainability::Not, at_most),
        Attainability::Not if !is_forecast => (action, n),
        Attainability::Not => (Attainability::Unknown, n),
        _ if room.is_some_and(|r| r.at_least < wanted) => (Attainability::Unknown, n),
        _ => (action, n),
    }
}

/// The answer to `--huge N`: a line that says it, and the commands that do it, or try it. `room` is what there is after any
/// means.
pub fn answer(d: &Diagnosis, wanted: u64, room: Option<Room>) -> (String, Vec<String>) {
    let (action, n) = settled(d, wanted, room);
    let by_forecast = match d.huge_pages.attainability(wanted) {
        (Attainability::Unknown, _) => None,
        (by_forecast, _) => Some(by_forecast),
    };
    let wanted_text = thousands(wanted);
    let n_text = n.map_or_else(|| "an unknown number of".into(), thousands);
    let (pool, has) = pool(d);
    // What the pool has already is added by the shell where it is not known here.
    let target = has.map_or_else(
        || format!("$(($(cat {pool}) + {wanted}))"),
        |has| has.saturating_add(wanted).to_string(),
    );
    let take = format!("echo {target} > {pool}");
    let [compact, drop] = [COMPACT, DROP].map(str::to_owned);
    let with_short_lists = |commands, last| {
        let mut all = with_short_lists(d, commands);
        all.push(last);
        all
    };
    let to_ask_again = || {
        with_short_lists(
            vec![
                format!("pool={pool}; wanted={target}; idle=0"),
                "while n=$(cat $pool); [ $n -lt $wanted ] && [ $idle -lt 100 ]; do".into(),
                "  echo $wanted > $pool; [ $(cat $pool) -gt $n ] && idle=0 || idle=$((idle + 1)); done".into(),
            ],
            "cat $pool".into(),
        )
    };
    match action {
        Attainability::Unknown if by_forecast.is_some() => {
            let f = &d.huge_pages;
            let is_by_asking = f.after_reclaim < n || f.compaction_unhindered != Some(true);
            let (after, commands) = match by_forecast {
                Some(Attainability::AfterCompaction) => {
                    ("after compaction", with_short_lists(vec![compact], take))
                }
                Some(Attainability::ByAskingAgain) => ("by asking again", to_ask_again()),
                Some(Attainability::Not) if is_by_asking => ("by asking again", to_ask_again()),
                _ => (
                    "after dropping caches and compaction",
                    with_short_lists(vec![drop, compact], take),
                ),
            };
            let least = room.map_or(0, |r| r.at_least);
            let most = room
                .and_then(|r| r.at_most)
                .map_or_else(String::new, |n| format!(", {} at most", thousands(n)));
            (
                format!(
                    "not known: the model expects {n_text} huge pages {after}, for the {wanted_text} wanted; {} for certain{most}; try:",
                    thousands(least)
                ),
                commands,
            )
        }
        Attainability::Now => (
            format!("yes: {wanted_text} huge pages can be had now; there are {n_text}"),
            vec![take],
        ),
        Attainability::AfterCompaction => (
            format!(
                "yes, after compaction: {n_text} huge pages then, for the {wanted_text} wanted"
            ),
            with_short_lists(vec![compact], take),
        ),
        Attainability::AfterReclaim => (
            format!(
                "yes, after dropping caches and compaction: {n_text} huge pages then, for the {wanted_text} wanted"
            ),
            with_short_lists(vec![drop, compact], take),
        ),
        Attainability::ByAskingAgain => (
            format!(
                "yes, by asking again while the pool grows: {n_text} huge pages in the end, for the {wanted_text} wanted"
            ),
            to_ask_again(),
        ),
        // The pool takes as many as it gets, so asking does no harm.
        Attainability::Unknown => match only_types_missing(d, wanted) {
            Some(most) => (
                format!(
                    "perhaps: {} huge pages are free for it at most; what of them is kept back for others, /proc/pagetypeinfo would tell, that is root",
                    thousands(most)
                ),
                vec![take, format!("cat {pool}")],
            ),
            None => (unknown(d), vec![]),
        },
        Attainability::Not => (
            format!(
                "no: {n_text} huge pages at most, of the {wanted_text} wanted; end programs, or reserve at boot with hugepages="
            ),
            vec![],
        ),
    }
}

/// A folio whose writeback begins between sync and compaction ends the run: hence ten runs.
const COMPACT: &str = "for i in $(seq 10); do sync; echo 1 > /proc/sys/vm/compact_memory; done";
pub(super) const DROP: &str = "sync; echo 3 > /proc/sys/vm/drop_caches";

/// The commands that drop caches and compact, as far as that is wanted, without others before them or after.
pub(super) fn preparing(d: &Diagnosis, drops: bool, compacts: bool) -> Vec<String> {
    let wanted = [(drops, DROP), (compacts, COMPACT)].into_iter();
    let commands: Vec<String> = wanted
        .filter(|(is, _)| *is)
        .map(|(_, command)| command.to_owned())
        .collect();
    match commands.is_empty() {
        true => commands,
        false => with_short_lists(d, commands),
    }
}

/// Why commands shorten the lists of freed pages, as a clause; `None` if they do not.
pub fn short_lists_note(commands: &str) -> Option<&'static str> {
    commands.contains("percpu_pagelist_high_fraction").then_some(
        "percpu_pagelist_high_fraction: else each CPU keeps freed pages for itself, and they stay in pieces",
    )
}

/// The commands with per-CPU lists short meanwhile, where freed pages would stay on them: a fraction this large empties them
/// within `vm.stat_interval`, a second.
fn with_short_lists(d: &Diagnosis, commands: Vec<String>) -> Vec<String> {
    let lists = d.empties_pcp_lists.then(|| {
        (
            format!("lists=/proc/sys/vm/percpu_pagelist_high_fraction; was=$(cat $lists); echo {SHORT_LISTS} > $lists; sleep 2"),
            "echo $was > $lists".to_owned(),
        )
    });
    let (first, back) = lists.unzip();
    first.into_iter().chain(commands).chain(back).collect()
}

/// Huge pages that are free at most, where these are enough, and only what is kept back for others is not known.
fn only_types_missing(d: &Diagnosis, wanted: u64) -> Option<u64> {
    let f = &d.huge_pages;
    let most = f.now_at_most.filter(|&n| f.now.is_none() && n >= wanted)?;
    let unread = |file| d.unread.iter().any(|u| u.file == file);
    (unread("pagetypeinfo") && !unread("zoneinfo") && !unread("buddyinfo")).then_some(most)
}

/// The answer where the files that were read do not decide.
fn unknown(d: &Diagnosis) -> String {
    let f = &d.huge_pages;
    let now = match (f.now, f.now_at_most) {
        (Some(n), _) => thousands(n),
        (None, Some(n)) => format!("{} at most", thousands(n)),
        (None, None) => "an unknown number".into(),
    };
    if let Some(most) = f.at_most {
        return format!(
            "perhaps: {now} can be had now, {} by any means; which of them needs /proc/kpageflags, that is root",
            thousands(most)
        );
    }
    let mut out = "not known: ".to_owned();
    if d.zones.iter().all(|z| z.free_huge_blocks.is_none()) {
        out += "no file tells free blocks";
    } else {
        let _ = write!(out, "{now} can be had now");
    }
    if let Some(most) = f.now_at_most
        && out.ends_with("free blocks")
    {
        let _ = write!(out, ", so {} can be had now at most", thousands(most));
    }
    if f.perhaps_now > 0 {
        let zones: Vec<String> = d
            .zones
            .iter()
            .filter(|z| z.huge_pages.perhaps_now > 0)
            .map(|z| format!("zone {} of node {}", z.zone, z.node))
            .collect();
        let _ = write!(
            out,
            ", {} of them if {} does not keep them for itself (zoneinfo would tell its protection)",
            thousands(f.perhaps_now),
            zones.join(", ")
        );
    }
    if let Some(cache) = d.reclaimable_bytes
        && let Some(some) = roughly(cache / d.huge_page_bytes)
    {
        let _ = write!(
            out,
            "; perhaps {some} after dropping caches and compaction, as meminfo shows {} of caches",
            bytes(cache)
        );
    }
    let _ = write!(out, "; how many at most {}", what_would_tell(d));
    out
}

/// What would tell how many huge pages can be had at most.
pub(super) fn what_would_tell(d: &Diagnosis) -> &'static str {
    if d.unread.iter().any(|u| u.file == "zoneinfo") {
        "is not known: zoneinfo and page flags would tell (/proc/kpageflags, that is root)"
    } else {
        "is not known: this zoneinfo counts no page cache; page flags would tell (/proc/kpageflags, that is root)"
    }
}

/// The magnitude of a number in words; `None` for a few.
fn roughly(n: u64) -> Option<&'static str> {
    match n {
        0..10 => None,
        10..100 => Some("some tens"),
        100..1000 => Some("some hundreds"),
        1000..50_000 => Some("some thousands"),
        _ => Some("many thousands"),
    }
}
