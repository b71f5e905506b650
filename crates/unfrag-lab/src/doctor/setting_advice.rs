//! Settings, each with the number that it changes.
//!
//! Invariant: the value that is advised follows from the present setting, so that a host read twice gets the same one or none.

use super::advice::{Advice, Change, Lasts, Sure, Unit};
use super::atomic::{self, FEW};
use super::diagnosis::{Diagnosis, ZoneDiagnosis};
use super::evidence::Evidence;
use super::frames::FrameUse;
use super::needs::{in_vain_clause, in_vain_since_boot, needs, wants_large};
use super::proactive::{proactive_marks, score};
use super::setting_values::{self, Marked};
use super::standing::{REPLAY, Standing, of_setting, of_state};
use super::watch::Watch;
use crate::era::Era;
use crate::host::{Zone, settings};
use crate::report::number::{bytes, duration, thousands};
use unfrag_eras::preset;

/// Share of spoiled blocks above which advice is given.
const SPOILED_SHARE: f64 = 0.10;

/// Advice and its standing; `None` where nothing speaks for it.
pub(super) type Judged = Option<(Advice, Standing)>;

fn sysctl(e: &Evidence, name: &str, value: u64, reason: String, cost: String) -> Advice {
    Advice {
        command: format!("sysctl -w vm.{name}={value}"),
        lasts: Lasts::Setting,
        setting: Some(format!("vm.{name}")),
        current: e.host.settings.get(name).cloned(),
        value: Some(value.to_string()),
        reason,
        change: None,
        cost,
        prediction: None,
        predicted: None,
        huge_pages: None,
    }
}

/// Whether the kernel may have a sysctl.
fn has(e: &Evidence, name: &str) -> bool {
    settings::may_have(&e.host.settings, name)
}

/// What advice for large blocks hangs on: requests for them that go unserved, or, where nothing was watched, did since boot.
fn for_large(d: Option<&Diagnosis>, watch: &Watch) -> Option<(String, Standing)> {
    let past = d.and_then(in_vain_since_boot);
    let needs = needs(watch);
    if watch.watched().readings > 1 && needs.is_empty() {
        return None;
    }
    let standing = of_setting(watch, past.is_some(), wants_large)?;
    let past = past.map(|found| in_vain_clause(found, "since boot"));
    let reason = match needs.is_empty() {
        true => past?,
        false => needs.join("; "),
    };
    Some((reason, standing))
}

/// A standing, with what is lacking where no formula tells the number that a setting changes.
fn without_number(standing: Standing) -> Standing {
    match standing {
        Standing::Given => Standing::Needs(REPLAY.into()),
        other => other,
    }
}

/// A higher `min_free_kbytes` where requests that may not wait are about to fail.
pub(super) fn atomic_reserve(d: &Diagnosis, e: &Evidence, era: Era) -> Judged {
    if d.zones.iter().any(|z| z.filled_by_slab_pages.is_some()) {
        return None;
    }
    let is_bad = |verdict: &str| matches!(verdict, "fails" | "at risk");
    let worst = d.atomic.iter().filter(|r| is_bad(r.verdict));
    let worst = worst.min_by_key(|r| r.in_a_row_at_least)?;
    let kib = |pages: u64| pages.saturating_mul(d.page_size / 1024);
    if e.host.zoneinfo.is_none() || !e.host.gaps().is_empty() {
        return None;
    }
    let current = e
        .setting("min_free_kbytes")
        .or_else(|| Some(kib(set_marks(&e.host.zones)?)))?;
    // Never from a part of memory.
    let sum = |of: fn(&ZoneDiagnosis) -> Option<u64>| d.zones.iter().map(of).sum::<Option<u64>>();
    let (managed, free) = (sum(|z| z.managed_pages)?, sum(|z| z.free_pages)?);
    let can_be_free = kib(free).saturating_add(d.reclaimable_bytes.unwrap_or(0) / 1024);
    // More than can be free would be below its marks for good.
    let value =
        setting_values::min_free_kbytes(current, kib(managed)).filter(|&n| n <= can_be_free)?;
    let of_node = e.host.zones.iter().filter(|z| z.node == worst.node);
    if !of_node.into_iter().any(|z| would_free(z, value, current)) {
        return None;
    }
    let rules = &preset(era.preset())?.rules;
    let standing = of_state(e, |zones| {
        let of_node: Vec<&Zone> = zones.iter().filter(|z| z.node == worst.node).collect();
        let risks = atomic::risks(&of_node, true, rules);
        risks
            .iter()
            .any(|r| r.order == worst.order && is_bad(r.verdict))
    })?;
    let now = match worst.in_a_row {
        Some(0) => "not one succeeds now".to_owned(),
        Some(n) => format!("{n} in a row succeed now, fewer than {FEW}"),
        None => format!("fewer than {FEW} in a row succeed now"),
    };
    let advice = sysctl(
        e,
        "min_free_kbytes",
        value,
        format!(
            "atomic requests of order {} on node {}: {now}",
            worst.order, worst.node
        ),
        format!("{} more are kept free", bytes((value - current) << 10)),
    );
    let change = Change {
        what: "what all zones keep free for such requests (their min marks)".into(),
        unit: Unit::Bytes,
        from: current << 10,
        to: value << 10,
        sure: Sure::Exact,
    };
    Some((with(advice, change), standing))
}

/// Whether kswapd would free memory of a zone with another `min_free_kbytes`. Where it would in no zone, more is free already
/// than the setting keeps, and its blocks are small.
fn would_free(zone: &Zone, value: u64, current: u64) -> bool {
    let is_closed = matches!(zone.name.as_str(), "Movable" | "Device");
    let high = unboosted(zone, "high").map(|high| setting_values::mark_under(high, current, value));
    let known = zone.free_pages.zip(high);
    !is_closed && known.is_none_or(|(free, high)| free < high)
}

fn with(advice: Advice, change: Change) -> Advice {
    Advice {
        change: Some(change),
        ..advice
    }
}

/// The pages that `min_free_kbytes` set, by the marks: without the boost, and without those of zones that have marks of
/// their own. `None` where a zone's are not told.
fn set_marks(zones: &[Zone]) -> Option<u64> {
    let of = |z: &Zone| unboosted(z, "min");
    zones
        .iter()
        .filter(|z| !matches!(z.name.as_str(), "HighMem" | "Movable" | "Device"))
        .map(of)
        .try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
}

/// A mark without the boost, which kernels before 5.0 do not have.
fn unboosted(zone: &Zone, mark: &str) -> Option<u64> {
    Some(
        zone.told(mark)?
            .saturating_sub(zone.told("boost").unwrap_or(0)),
    )
}

/// The watermark boost, where it is off and large blocks are wanted.
pub(super) fn watermark_boost(e: &Evidence, watch: &Watch) -> Judged {
    if e.setting("watermark_boost_factor")? != 0 {
        return None;
    }
    let (reason, standing) = match watch.watched().readings {
        0 | 1 => (String::new(), of_setting(watch, true, wants_large)?),
        _ => for_large(None, watch).map(|(reason, s)| (format!("; {reason}"), s))?,
    };
    let advice = sysctl(
        e,
        "watermark_boost_factor",
        15000,
        format!(
            "the boost is off: nothing makes room after types were mixed in a pageblock{reason}"
        ),
        "kswapd reclaims up to 1.5 times the high watermark more, for a short time".into(),
    );
    Some((advice, without_number(standing)))
}

/// Compaction of unevictable memory, where it is off and such memory alone spoils blocks that are wanted.
pub(super) fn unevictable(d: &Diagnosis, e: &Evidence, watch: &Watch) -> Judged {
    if e.setting("compact_unevictable_allowed")? != 0 {
        return None;
    }
    let all = d.obstacles.as_ref()?;
    let o = all.iter().find(|o| o.kind == FrameUse::Unevictable)?;
    if o.blocks_alone == 0 {
        return None;
    }
    let (reason, standing) = for_large(Some(d), watch)?;
    let now = d.huge_pages.after_compaction?;
    let advice = sysctl(
        e,
        "compact_unevictable_allowed",
        1,
        format!(
            "unevictable memory alone is in the way of {} huge pages; {reason}",
            thousands(o.blocks_alone)
        ),
        "a process with mlocked memory may wait for a page that is being moved".into(),
    );
    let change = Change {
        what: format!(
            "huge pages of {} that compaction can make",
            bytes(d.huge_page_bytes)
        ),
        unit: Unit::Number,
        from: now,
        to: now.saturating_add(o.blocks_alone),
        sure: Sure::AtBest,
    };
    Some((with(advice, change), standing))
}

/// A `compaction_proactiveness` at which compaction begins at the scores that the host has all the time.
pub(super) fn proactive(d: &Diagnosis, e: &Evidence, era: Era, watch: &Watch) -> Judged {
    let now = e.setting("compaction_proactiveness")?;
    let node = d.nodes.iter().max_by_key(|n| n.score)?;
    let last = node.score?;
    let f = &node.huge_pages;
    let (free, compacted) = (f.now?, f.after_compaction?);
    let of_node = |zones: &'_ [Zone]| -> Option<u64> {
        score(zones.iter().filter(|z| z.node == node.node), d.huge_order)
    };
    let earlier = e.readings.iter().filter(|r| !r.zones.is_empty());
    let scores = earlier.map(|r| of_node(&r.zones)).chain([Some(last)]);
    let scores: Vec<u64> = scores.collect::<Option<_>>()?;
    let (least, most) = (*scores.iter().min()?, *scores.iter().max()?);
    let begins = |p: u64| proactive_marks(p, era)[1];
    // Where it begins at the present setting now and then, that works already.
    if now > 0 && most > begins(now) {
        return None;
    }
    let value = setting_values::compaction_proactiveness(now, least, era)?;
    let [low, high] = proactive_marks(value, era);
    let of = |z: &&ZoneDiagnosis| z.node == node.node;
    let pages: Option<u64> = d.zones.iter().filter(of).map(|z| z.free_pages).sum();
    // At the score where it ends so much of free memory is in whole blocks.
    let whole = (pages?.saturating_mul(100 - low.min(100)) / 100) >> d.huge_order;
    let to = whole.min(compacted);
    if to <= free || (to - free) * 10 < to {
        return None;
    }
    let (reason, standing) = for_large(Some(d), watch)?;
    let range = match least == most {
        true => format!("{least}"),
        false => format!("{least} to {most} in {} readings", scores.len()),
    };
    let advice = sysctl(
        e,
        "compaction_proactiveness",
        value,
        format!(
            "{reason}; node {} scores {range} (percent of free memory outside huge pages), where with {now} proactive compaction does not begin",
            node.node
        ),
        format!("kcompactd runs while the score is above {high}, until it is {low}"),
    );
    let change = Change {
        what: format!(
            "free huge pages of {} on node {}",
            bytes(d.huge_page_bytes),
            node.node
        ),
        unit: Unit::Number,
        from: free,
        to,
        sure: Sure::About,
    };
    Some((with(advice, change), standing))
}

/// A `watermark_scale_factor` that wakes kswapd earlier, where requests stall.
pub(super) fn early_kswapd(d: &Diagnosis, e: &Evidence, era: Era, watch: &Watch) -> Judged {
    /// The kernel's default, for a host whose settings were not read.
    const DEFAULT: u64 = 10;
    /// Stalls a second from which it is worth it.
    const RATE: f64 = 1.0;
    if !era.is_at_least(4, 6) || !has(e, "watermark_scale_factor") {
        return None;
    }
    let now = e.setting("watermark_scale_factor").unwrap_or(DEFAULT);
    let stalls = watch.rose("allocstall").filter(|&n| n > 0)?;
    let standing = of_setting(watch, false, |step| {
        step.rose("allocstall")
            .is_some_and(|n| n as f64 >= RATE * step.seconds)
    })?;
    let seconds = watch.watched().seconds?;
    let marked = |z: &Zone| {
        Some(Marked {
            managed: z.managed?,
            min: unboosted(z, "min")?,
        })
    };
    let zones = e.host.zones.iter().filter(|_| e.host.gaps().is_empty());
    let zones: Option<Vec<Marked>> = zones.map(marked).collect();
    let value = setting_values::watermark_scale_factor(now, zones.as_deref())?;
    let low = |factor: u64| {
        let all = zones.iter().flatten();
        all.fold(0u64, |sum, z| {
            sum.saturating_add(z.min).saturating_add(z.gap(factor))
        })
    };
    let has_marks = zones.iter().flatten().any(|z| z.min > 0);
    let marks = has_marks.then(|| (low(now), low(value)));
    let size = |pages: u64| pages.saturating_mul(d.page_size);
    let advice = sysctl(
        e,
        "watermark_scale_factor",
        value,
        format!(
            "{} requests had to reclaim first in the last {} ({:.1} a second): kswapd begins too late",
            thousands(stalls),
            duration(seconds),
            stalls as f64 / seconds
        ),
        marks.map_or_else(
            || {
                format!(
                    "up to {} ten-thousandths of memory more are kept free",
                    2 * (value - now)
                )
            },
            |(from, to)| {
                format!(
                    "up to {} more are kept free",
                    bytes(size(2 * to.saturating_sub(from)))
                )
            },
        ),
    );
    let Some((from, to)) = marks else {
        let lacks = "the number that it changes: zoneinfo of all zones would tell";
        return Some((advice, Standing::Needs(lacks.into())));
    };
    let change = Change {
        what: "free memory at which kswapd begins (the low marks of all zones)".into(),
        unit: Unit::Bytes,
        from: size(from),
        to: size(to),
        sure: Sure::About,
    };
    Some((with(advice, change), standing))
}

/// `defrag_mode`, where the kernel's memory is scattered over many blocks that are wanted.
pub(super) fn defrag_mode(d: &Diagnosis, e: &Evidence, era: Era, watch: &Watch) -> Judged {
    if !era.is_at_least(6, 15) || !has(e, "defrag_mode") || e.setting("defrag_mode") == Some(1) {
        return None;
    }
    let blocks: u64 = d.zones.iter().filter_map(|z| z.blocks).sum();
    let kernel = d
        .obstacles
        .as_ref()?
        .iter()
        .filter(|o| o.kind != FrameUse::Reserved);
    let (pages, spoiled) = kernel.fold((0, 0), |(p, b), o| (p + o.pages, b + o.blocks));
    let scattered = spoiled as f64 > SPOILED_SHARE * blocks as f64 && pages < spoiled * 512 / 4;
    if !scattered {
        return None;
    }
    let (reason, standing) = for_large(Some(d), watch)?;
    let advice = sysctl(
        e,
        "defrag_mode",
        1,
        format!(
            "{} blocks hold {} of the kernel's memory: types are mixed; {reason}",
            thousands(spoiled),
            bytes(pages.saturating_mul(d.page_size))
        ),
        "more reclaim and compaction before a request takes a block of another type; requests that may \
         not wait fail sooner"
            .into(),
    );
    Some((advice, without_number(standing)))
}
