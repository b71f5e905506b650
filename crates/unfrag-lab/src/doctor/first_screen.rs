//! The first screen: whether anything is wrong, why, and what to do, for somebody who has never seen a [`Diagnosis`].
//!
//! Invariant: what happens while the host is watched and what happened since boot are never in one sentence; every number
//! is one of the diagnosis, or a bound of the gate; below `DO:` a line is a command, or a comment of the shell, and nothing
//! stands there that need not be done.

use super::advice::{JudgedSetting, Lasts, SettingVerdict};
use super::advice_text::while_watched;
use super::answer::what_would_tell;
pub use super::asked::Asked;
use super::diagnosis::{Diagnosis, Obstacle, ZoneDiagnosis};
use super::frames::FrameUse;
use super::gate::means::Means;
use super::history;
use super::to_do;
use crate::report::number::{bytes, duration, percent, thousands};
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::fmt::Write as _;

/// Zones that are named as fragmented or short.
const ZONES: usize = 3;
/// Slab caches that are named.
const CACHES: usize = unfrag_linux::procfs::slabinfo::LARGEST;
/// Zones with less than this share of memory say nothing of the cause, as DMA is never whole.
const SMALL: u64 = 20;
/// The first screen.
pub fn render(d: &Diagnosis, asked: Asked, screen: &Screen) -> Text {
    let mut out = Text::new();
    out.push_head(screen, &title(d, asked.is_now));
    let when = if asked.is_now { "NOW: " } else { "THEN: " };
    paragraph(&mut out, screen, when, &happening(d, asked.is_now));
    for risk in at_risk(d) {
        paragraph(&mut out, screen, "  ", &risk);
    }
    let size = format!("HUGE PAGES of {}: ", bytes(d.huge_page_bytes));
    paragraph(&mut out, screen, &size, &huge_pages(d, &asked));
    // Where nothing fails there is no cause to look for.
    let is_fine = !is_failing(d) && is_fine(d);
    match is_failing(d) {
        true => paragraph(&mut out, screen, "CAUSE: ", &cause(d)),
        false => paragraph(&mut out, screen, "STATE: ", &state(d, is_fine)),
    }
    if !is_fine {
        paragraph(&mut out, screen, "  ", &caches(d).unwrap_or_default());
    }
    for w in d.withheld.iter().filter(|w| is_set_aside(&w.name)) {
        paragraph(&mut out, screen, "SET ASIDE: ", &printable(&w.text));
    }
    to_do::push(d, asked, screen, &mut out);
    let since = format!("HISTORY {}: ", history::head(&d.history));
    paragraph(&mut out, screen, &since, &past(d));
    paragraph(&mut out, screen, "SETTINGS: ", &settings(d));
    for note in &d.notes {
        paragraph(&mut out, screen, "NOTE: ", &printable(note));
    }
    paragraph(&mut out, screen, "NOT SEEN: ", &not_seen(d));
    if !asked.has_tables {
        let more = format!(
            "{} --all (every zone, what stands in the way, slab caches, counters); --huge N: can I have N huge pages?",
            asked.command
        );
        paragraph(&mut out, screen, "MORE: ", &more);
    }
    out
}

/// Appends a paragraph; of no text none.
fn paragraph(out: &mut Text, screen: &Screen, label: &str, text: &str) {
    if !text.is_empty() {
        let text = format!("{label}{text}");
        wrapped(out, Place::Hanging("  "), screen.width, &text);
    }
}

fn title(d: &Diagnosis, is_now: bool) -> String {
    let mut out = match is_now {
        true => "this host".to_owned(),
        false => printable(&d.source),
    };
    if let Some(release) = &d.kernel_release {
        let _ = write!(out, ", kernel {}", printable(release));
    }
    let managed = || -> Option<String> {
        let pages = d.zones.iter().map(|z| z.managed_pages).sum::<Option<u64>>();
        let pages = pages.filter(|&n| n > 0)?;
        Some(bytes(pages.saturating_mul(d.page_size)))
    };
    if let Some(whole) = d.memory.whole().or_else(managed) {
        let _ = write!(out, ", {whole}");
    }
    if let Some(seconds) = d.uptime_seconds {
        let _ = write!(out, ", up {}", long(seconds));
    }
    out += &match d.unread.len() {
        0 => "; all files were read".to_owned(),
        1 => "; a file was not read (NOT SEEN, below)".into(),
        n => format!("; {n} files were not read (NOT SEEN, below)"),
    };
    out
}

/// A time since boot, by its two largest units.
fn long(seconds: f64) -> String {
    match seconds as u64 / 60 {
        0 => format!("{} s", seconds as u64),
        minutes @ ..60 => format!("{minutes} min"),
        minutes @ 60..1440 => format!("{} h {} min", minutes / 60, minutes % 60),
        minutes => format!("{} d {} h", thousands(minutes / 1440), minutes % 1440 / 60),
    }
}

/// A counter that tells whether something fails or waits.
struct Sign {
    counter: &'static str,
    some: &'static str,
    none: &'static str,
}

const SIGNS: [Sign; 5] = [
    Sign {
        counter: "oom_kill",
        some: "processes were killed for lack of memory",
        none: "no process was killed",
    },
    Sign {
        counter: "htlb_buddy_alloc_fail",
        some: "huge pages were refused to the hugetlb pool",
        none: "no huge page was refused to the pool",
    },
    Sign {
        counter: "thp_fault_fallback",
        some: "faults got small pages instead of a huge one",
        none: "no fault missed its huge page",
    },
    Sign {
        counter: "allocstall",
        some: "requests had to reclaim (free memory first)",
        none: "no request had to reclaim (free memory first)",
    },
    Sign {
        counter: "compact_stall",
        some: "requests had to compact (move pages together first)",
        none: "none had to compact (move pages together)",
    },
];

/// Whether anything is wrong: a zone is short, requests are at risk, or something failed or waited while the host was watched.
fn is_failing(d: &Diagnosis) -> bool {
    let is_short = d.zones.iter().any(|z| z.below.is_some());
    let fails = |s: &Sign| while_watched(d, s.counter).is_some_and(|n| n > 0);
    is_short || !at_risk(d).is_empty() || SIGNS.iter().any(fails)
}

/// Whether anything is wrong at this moment.
fn happening(d: &Diagnosis, is_now: bool) -> String {
    let is = if is_now { "is" } else { "was" };
    let mut said: Vec<String> = d.zones.iter().filter_map(|z| short(z, d, is)).collect();
    if said.len() > ZONES {
        let more = said.len() - ZONES;
        said.truncate(ZONES);
        said.push(format!("and {more} more zones {is} short"));
    }
    let Some(seconds) = d.watched.seconds.filter(|_| !d.work.is_empty()) else {
        said.push(not_watched(d, is_now).into());
        return said.join("; ") + ".";
    };
    let time = match is_now {
        true => format!("in the last {}", duration(seconds)),
        false => format!("in the {} before", duration(seconds)),
    };
    let each = SIGNS.map(|s| (while_watched(d, s.counter), s));
    let some: Vec<String> = each
        .iter()
        .filter_map(|(n, s)| Some(format!("{} {}", thousands(n.filter(|&n| n > 0)?), s.some)))
        .collect();
    let none: Vec<&str> = each
        .iter()
        .filter(|(n, _)| *n == Some(0))
        .map(|(_, s)| s.none)
        .collect();
    let is_all = each.iter().all(|(n, _)| n.is_some());
    said.push(match (some.is_empty(), none.is_empty()) {
        (false, _) => format!("{time} {}", some.join(", ")),
        (true, false) if is_all && said.is_empty() => {
            format!("nothing {is} failing; {time} {}", none.join(", "))
        }
        (true, false) => format!("{time} {}", none.join(", ")),
        (true, true) => "not judged: the kernel's counters were not read twice".into(),
    });
    said.join("; ") + "."
}

/// Why nothing is said of what fails.
fn not_watched(d: &Diagnosis, is_now: bool) -> &'static str {
    match (d.work.is_empty(), is_now) {
        (true, _) => {
            "whether anything fails is not judged: no file has the kernel's counters (vmstat)"
        }
        (false, true) => {
            "whether anything fails is not judged, as the counters were read once: --for 2 watches for 2 seconds"
        }
        (false, false) => {
            "whether anything failed is not judged, as the counters are there once: what rose, two copies or a recording tell"
        }
    }
}

fn short(z: &ZoneDiagnosis, d: &Diagnosis, is: &str) -> Option<String> {
    let free = bytes(z.free_pages?.saturating_mul(d.page_size));
    let what = match z.below? {
        "min" => "less than it must keep for requests that may not wait (its min mark)",
        _ => "so little that the kernel must free some (below its low mark)",
    };
    let mut out = format!("{} {is} short of memory: {free} free, {what}", place(z));
    if let Some(slab) = z.filled_by_slab_pages {
        let slab = bytes(slab.saturating_mul(d.page_size));
        let _ = write!(out, "; slab that cannot be reclaimed fills {slab}");
    }
    Some(out)
}

fn place(z: &ZoneDiagnosis) -> String {
    match z.node {
        0 => format!("zone {}", printable(&z.zone)),
        n => format!("zone {} of node {n}", printable(&z.zone)),
    }
}

/// Requests that may not wait and would fail.
fn at_risk(d: &Diagnosis) -> Vec<String> {
    let bad = d
        .atomic
        .iter()
        .filter(|r| matches!(r.verdict, "fails" | "at risk"));
    let one = |r: &super::atomic::AtomicRisk| {
        let size = bytes(d.page_size << r.order);
        let what = match (r.verdict, r.in_a_row) {
            ("fails", _) => "fail".to_owned(),
            (_, Some(n)) => format!("are at risk: {} in a row succeed", thousands(n)),
            (_, None) => "are at risk".into(),
        };
        format!(
            "Requests for {size} in a row that may not wait (network and other drivers) {what} on node {}.",
            r.node
        )
    };
    bad.take(2).map(one).collect()
}

fn huge_pages(d: &Diagnosis, asked: &Asked) -> String {
    if d.zones.is_empty() {
        return "not judged, as no file tells of the zones.".into();
    }
    let f = &d.huge_pages;
    let size = |n: u64| bytes(n.saturating_mul(d.huge_page_bytes));
    // Not all that is free can be had: zones keep some for the kernel.
    let when = if asked.is_now {
        "can be had now"
    } else {
        "could be had then"
    };
    let added = match d.memory.added_when_asked() {
        Some(n) => format!(", of which the kernel adds {} when asked", bytes(n)),
        None => String::new(),
    };
    let mut out = match (f.now, f.now_at_most) {
        (Some(n), _) => format!("{} {when} ({}{added})", thousands(n), size(n)),
        (None, Some(n)) => format!("at most {} {when} ({}{added})", thousands(n), size(n)),
        (None, None) => format!("how many {when} is not known"),
    };
    let within = |n: u64, means: Means| {
        let room = asked.rooms.map(|all| all[means as usize]);
        let Some((least, most)) = room.and_then(|r| Some((r.at_least, r.at_most?))) else {
            return thousands(n);
        };
        match (least <= n && n <= most, least == most) {
            (true, true) => thousands(n),
            (true, false) => format!(
                "{} ({} to {})",
                thousands(n),
                thousands(least),
                thousands(most)
            ),
            // What the gate takes off for what is used again at once.
            (false, _) => format!("{} to {}", thousands(least), thousands(most)),
        }
    };
    match (f.after_compaction, f.after_reclaim, f.by_asking_again) {
        (Some(c), Some(r), Some(a)) => {
            let _ = write!(
                out,
                "; by the model {} after compaction (pages are moved together), {} if caches are dropped first",
                within(c, Means::Compact),
                within(r, Means::DropCompact)
            );
            if a > r {
                let again = thousands(a);
                let _ = write!(
                    out,
                    ", {again} by writing vm.nr_hugepages until it grows no more"
                );
            }
            out.push('.');
        }
        _ => match f.at_most {
            Some(most) => {
                let _ = write!(
                    out,
                    "; at most {} by any means. How many by which means is not known without page flags (/proc/kpageflags, which root may read).",
                    thousands(most)
                );
            }
            None => {
                let _ = write!(out, "; how many at most {}.", what_would_tell(d));
            }
        },
    }
    out
}

/// Zones that are large enough to say something, with the percent of free memory outside huge pages, the worst first.
fn by_score(d: &Diagnosis) -> Vec<(&ZoneDiagnosis, u64)> {
    let all = d.zones.iter().filter_map(|z| z.managed_pages);
    let all = all.fold(0, u64::saturating_add);
    let mut judged: Vec<(&ZoneDiagnosis, u64)> = d
        .zones
        .iter()
        .filter(|z| z.managed_pages.is_none_or(|n| n >= all / SMALL))
        .filter(|z| z.free_pages != Some(0))
        .filter_map(|z| Some((z, z.extfrag_for_order_9?)))
        .collect();
    judged.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    judged
}

/// Whether nearly all that is free can be had as huge pages. A zone in pieces does no harm where others have enough, or the
/// kernel adds some when asked.
fn is_fine(d: &Diagnosis) -> bool {
    let had = d
        .huge_pages
        .now
        .map(|n| n.saturating_mul(d.huge_page_bytes));
    match (had, d.memory.free()) {
        (Some(had), Some(free)) => had > 0 && had >= free / 100 * (100 - LITTLE),
        _ => by_score(d)
            .first()
            .is_some_and(|(_, worst)| *worst < LITTLE),
    }
}

/// How fragmented memory is, where nothing fails.
fn state(d: &Diagnosis, is_fine: bool) -> String {
    let judged = by_score(d);
    let is_little = judged.first().is_none_or(|(_, worst)| *worst < LITTLE);
    let unharmed = match is_fine || is_little {
        true => "",
        false => "; nothing is known to fail of it",
    };
    let Some(how) = fragmented(d, &judged, unharmed) else {
        return unknown(d);
    };
    match (is_fine, d.huge_pages.now) {
        (true, Some(n)) => format!("fine: {} huge pages can be had; {how}.", thousands(n)),
        (true, None) => format!("fine: {how}."),
        (false, _) => format!("{how}{}.", stays(d)),
    }
}

/// Why it fails.
fn cause(d: &Diagnosis) -> String {
    let judged = by_score(d);
    let Some(how) = fragmented(d, &judged, "") else {
        return unknown(d);
    };
    match judged[0].1 < LITTLE {
        true => format!("not fragmentation: {how}{}.", stays(d)),
        false => format!("{how}{}.", stays(d)),
    }
}

fn unknown(d: &Diagnosis) -> String {
    match d.zones.is_empty() {
        true => "not judged, as no file tells of the zones.".into(),
        false => "not known, as no file tells free blocks by size.".into(),
    }
}

/// Percent of free memory outside huge pages up to which it is little fragmented.
const LITTLE: u64 = 20;

/// How fragmented memory is where it is worst, as a clause with another after it; `None` where no file tells.
fn fragmented(d: &Diagnosis, judged: &[(&ZoneDiagnosis, u64)], then: &str) -> Option<String> {
    let &(_, worst) = judged.first()?;
    let size = bytes(d.huge_page_bytes);
    let how = match worst {
        0..LITTLE => "free memory is little fragmented",
        LITTLE..60 => "free memory is fragmented",
        _ => "free memory is badly fragmented",
    };
    // A zone that is less fragmented than the worst is no part of that verdict.
    let of = |score: u64| [LITTLE, 60].iter().filter(|&&from| score >= from).count();
    let (bad, others): (Vec<_>, Vec<_>) = judged
        .iter()
        .take(ZONES)
        .partition(|(_, score)| of(*score) == of(worst));
    let zones: Vec<String> = bad.iter().map(|(z, _)| place(z)).collect();
    let shares: Vec<String> = bad.iter().map(|(_, s)| format!("{s} %")).collect();
    let mut out = format!(
        "{how} in {}: {} of what is free there is in pieces smaller than {size}",
        zones.join(", "),
        shares.join(", ")
    );
    let less: Vec<String> = others
        .iter()
        .map(|(z, score)| format!("{score} % in {}", place(z)))
        .collect();
    if !less.is_empty() {
        let _ = write!(out, " (only {})", less.join(", "));
    }
    out += then;
    if let Some(gained) = gained(d).filter(|_| worst >= LITTLE) {
        let _ = write!(out, ". {gained}");
    }
    Some(out)
}

/// What cannot be moved, as a sentence to add.
fn stays(d: &Diagnosis) -> String {
    let (Some(o), Some(blocks)) = (worst_obstacle(d), blocks(d)) else {
        return String::new();
    };
    format!(
        ". Cannot be moved: {}, {} in {} of {} blocks; in {} of them nothing else is in the way",
        kind(o),
        bytes(o.pages.saturating_mul(d.page_size)),
        thousands(o.blocks),
        thousands(blocks),
        thousands(o.blocks_alone)
    )
}

/// What could be made whole again, where that is more than the worst obstacle alone keeps from being so: then it is no
/// matter of what cannot be moved.
fn gained(d: &Diagnosis) -> Option<String> {
    let f = &d.huge_pages;
    let (now, compacted) = (f.now?, f.after_compaction?);
    let dropped = f.after_reclaim.unwrap_or(compacted);
    let (by_moving, by_dropping) = (
        compacted.saturating_sub(now),
        dropped.saturating_sub(compacted),
    );
    let alone = worst_obstacle(d).map_or(0, |o| o.blocks_alone);
    if by_moving.saturating_add(by_dropping) <= alone {
        return None;
    }
    let mut parts = vec![];
    if by_moving > 0 {
        parts.push(format!(
            "compaction makes {} blocks whole",
            thousands(by_moving)
        ));
    }
    if by_dropping > 0 {
        let more = if by_moving > 0 { " more" } else { "" };
        parts.push(format!(
            "dropping caches too {}{more}",
            thousands(by_dropping)
        ));
    }
    Some(format!(
        "Most is not in the way for good: by the model {}",
        parts.join(", ")
    ))
}

fn kind(o: &Obstacle) -> &'static str {
    match o.kind {
        FrameUse::Slab => "slab (the kernel's own objects)",
        kind => kind.name(),
    }
}

fn blocks(d: &Diagnosis) -> Option<u64> {
    d.zones.iter().map(|z| z.blocks).sum()
}

fn worst_obstacle(d: &Diagnosis) -> Option<&Obstacle> {
    let all = d.obstacles.iter().flatten();
    all.filter(|o| o.blocks > 0 && o.kind != FrameUse::Reserved)
        .max_by_key(|o| (o.blocks_alone, o.blocks))
}

/// The largest caches, where slab is in the way.
fn caches(d: &Diagnosis) -> Option<String> {
    let is_slab = worst_obstacle(d).is_some_and(|o| o.kind == FrameUse::Slab);
    if d.slabs.is_empty() || !is_slab {
        return None;
    }
    let mut all: Vec<_> = d.slabs.iter().filter(|s| s.pages > 0).collect();
    all.sort_by_key(|s| std::cmp::Reverse(s.pages));
    let each: Vec<String> = all
        .iter()
        .take(CACHES)
        .map(|s| {
            let size = bytes(s.pages.saturating_mul(d.page_size));
            format!(
                "{} {size} ({} allocated)",
                printable(&s.name),
                percent(s.used)
            )
        })
        .collect();
    let frees = d.reclaimable_slab_bytes.map_or(String::new(), |n| {
        format!(
            "; allocated is not in use: dropping caches frees {} of all slab at best",
            bytes(n)
        )
    });
    (!each.is_empty()).then(|| format!("Large slab caches: {}{frees}.", each.join(", ")))
}

/// Memory that is of no use to anybody as long as it is set aside.
fn is_set_aside(name: &str) -> bool {
    ["hugetlb_idle", "highatomic", "kexec"]
        .iter()
        .any(|n| name.starts_with(n))
}

fn past(d: &Diagnosis) -> String {
    // What all of them say of now is said once.
    let now = |p: &super::history::Past| Some(p.text.rsplit_once("; ")?.1.to_owned());
    let first = d.history.first().and_then(now);
    let is_same = d.history.len() > 1 && d.history.iter().all(|p| now(p) == first);
    let one = |p: &super::history::Past| {
        let text = match p.text.rsplit_once("; ").filter(|_| is_same) {
            Some((what, _)) => what,
            None => &p.text,
        };
        match p.next {
            Some(next) => format!("{text} (why: {next})"),
            None => text.to_owned(),
        }
    };
    let mut each: Vec<String> = d.history.iter().map(one).collect();
    each.extend(
        first
            .filter(|_| is_same)
            .map(|now| format!("of all: {now}")),
    );
    match each.is_empty() {
        true => String::new(),
        false => each.join("; ") + ".",
    }
}

fn settings(d: &Diagnosis) -> String {
    let now = |s: &JudgedSetting| match &s.current {
        Some(value) => format!("{}={}", printable(&s.setting), printable(value)),
        None => printable(&s.setting),
    };
    let one = |s: &JudgedSetting| {
        let why = printable(&s.why);
        let colon = if why.is_empty() { "" } else { ": " };
        let to = s
            .advised
            .as_deref()
            .map_or(String::new(), |to| format!(" {}", printable(to)));
        let what = match s.verdict {
            SettingVerdict::Leave => format!("{why}: leave it"),
            SettingVerdict::NotYet => format!("not yet{to}{colon}{why}"),
            SettingVerdict::Change => format!("to{to}: see DO"),
            SettingVerdict::NotJudged => format!("not judged{colon}{why}"),
        };
        format!("{} ({what})", now(s))
    };
    let is_plain = |s: &&JudgedSetting| s.verdict == SettingVerdict::Leave && s.why.is_empty();
    let mut each: Vec<String> = d
        .judged_settings
        .iter()
        .filter(|s| !is_plain(s))
        .map(one)
        .collect();
    let plain: Vec<String> = d.judged_settings.iter().filter(is_plain).map(now).collect();
    if !plain.is_empty() {
        each.push(format!("leave as they are {}", plain.join(", ")));
    }
    if each.is_empty() {
        return "not read, so not judged.".into();
    }
    let mut out = each.join("; ") + ".";
    // What each of them lacks is said once where it is the same.
    let settings = d
        .candidates
        .iter()
        .filter(|n| n.advice.lasts == Lasts::Setting);
    let mut lacks: Vec<&str> = settings.map(|n| n.why_not.as_str()).collect();
    lacks.sort_unstable();
    lacks.dedup();
    if !lacks.is_empty() {
        let _ = write!(out, " Not yet: it needs {}.", printable(&lacks.join("; ")));
    }
    out
}

/// The files that were not read, those with one reason together.
fn not_seen(d: &Diagnosis) -> String {
    let mut by_reason: Vec<(&str, Vec<String>)> = vec![];
    for u in &d.unread {
        let file = printable(&u.file);
        match by_reason.iter_mut().find(|(why, _)| *why == u.why) {
            Some((_, files)) => files.push(file),
            None => by_reason.push((&u.why, vec![file])),
        }
    }
    let each: Vec<String> = by_reason
        .iter()
        .map(|(why, files)| format!("{}: {}", files.join(", "), printable(why)))
        .collect();
    each.join(". ")
}
