//! Settings of vm that would have helped, with the values that the doctor gives for the same host.
//!
//! A log shows one moment and a setting stays, so each says to look longer first, and none is to be made now.
//!
//! Invariant: a value is computed only where all zones are in the text, by [`setting_values`]; a setting is named only for
//! kernels that have it, and one that keeps more free only where more was not free already.

use super::amounts::{size_kib, sum};
use super::answer::{Advice, When};
use super::case::Case;
use super::verdict::Verdict;
use super::zones::Judged;
use crate::doctor::proactive::score_of;
use crate::doctor::setting_values::{self, Marked};
use crate::report::number::{bytes, thousands};
use unfrag_eras::Order;
use unfrag_eras::stat::extfrag_for_order;
use unfrag_linux::kernel_log::{Memory, Zone};

/// What shows whether a setting is due.
const LOOK: &str = "unfrag doctor --for 10m";

/// Pages of files, which reclaim could free, in KiB.
pub fn file_kib(case: &Case) -> u64 {
    let of = |name: &str| case.amount(name).unwrap_or(0) / 1024;
    of("active_file").saturating_add(of("inactive_file"))
}

/// A setting and its value.
fn setting(
    (name, value): (&'static str, u64),
    action: String,
    cost: String,
    sure: &'static str,
) -> Advice {
    Advice {
        action,
        command: Some(format!("sysctl -w {name}={value}")),
        setting: Some(name),
        value: Some(value),
        when: When::of_lasting(sure),
        look_first: Some(LOOK),
        cost,
        sure,
    }
}

/// KiB of so many pages.
fn kib_of(case: &Case, pages: u64) -> u64 {
    pages.saturating_mul(case.page_kib.unwrap_or(4))
}

/// Whether kswapd, which would free memory up to what `high` says of a zone in KiB, would have freed any in a zone that had
/// enough for the request. Where none of them has that little, no mark was in the way.
fn would_free(case: &Case, high: impl Fn(&Zone) -> Option<u64>) -> bool {
    let zones = case.report.memory.iter().flat_map(|m| &m.zones);
    let is_below = |(z, zone): (&Judged, &Zone)| {
        let is_enough = z.is_allowed && z.has_room == Some(true);
        is_enough
            && zone
                .kib("free")
                .zip(high(zone))
                .is_some_and(|(free, high)| free < high)
    };
    case.verdict != Some(Verdict::Fragmented) || case.zones.iter().zip(zones).any(is_below)
}

/// A mark without the boost, in KiB.
fn unboosted(z: &Zone, mark: &str) -> Option<u64> {
    Some(z.kib(mark)?.saturating_sub(z.kib("boost").unwrap_or(0)))
}

/// A larger `vm.min_free_kbytes`, as far as there is memory for it.
pub fn more_reserve(case: &Case, why: &str, sure: &'static str) -> Option<Advice> {
    let memory = case.report.memory.as_ref()?;
    let current = case.setting?;
    let value = setting_values::min_free_kbytes(current, size_kib(memory))?;
    // Marks above what can be free would stop every allocation.
    let can_be_free = sum(memory, "free").saturating_add(file_kib(case));
    let high = |z: &Zone| {
        Some(setting_values::mark_under(
            unboosted(z, "high")?,
            current,
            value,
        ))
    };
    if value > can_be_free || !would_free(case, high) {
        return None;
    }
    let more = value.saturating_sub(current).saturating_mul(1024);
    Some(setting(
        ("vm.min_free_kbytes", value),
        format!("keep more memory free: {why}"),
        format!(
            "{} less for programs and page cache; it was about {}",
            bytes(more),
            thousands(current)
        ),
        sure,
    ))
}

/// The marks of all zones.
fn marked(case: &Case, memory: &Memory) -> Option<Vec<Marked>> {
    let page = case.page_kib?;
    let of = |z: &Zone| {
        Some(Marked {
            managed: z.size_kib()? / page,
            min: unboosted(z, "min")? / page,
        })
    };
    memory.zones.iter().map(of).collect()
}

/// The factor that the distances of the marks follow from: the default, unless one is more than the quarter of min that it
/// has at least. The largest zone tells it best.
fn scale_factor(case: &Case, memory: &Memory, marked: &[Marked]) -> Option<u64> {
    const DEFAULT: u64 = 10;
    let page = case.page_kib?;
    let (zone, m) = memory
        .zones
        .iter()
        .zip(marked)
        .max_by_key(|(_, m)| m.managed)?;
    let gap = zone.kib("low")?.checked_sub(zone.kib("min")?)? / page;
    Some(match gap > m.min / 4 {
        true => gap.saturating_mul(10_000).div_ceil(m.managed.max(1)),
        false => DEFAULT,
    })
}

/// `vm.watermark_scale_factor`, so that kswapd begins earlier.
pub fn gap(case: &Case) -> Option<Advice> {
    let memory = case.report.memory.as_ref()?;
    if !case.kernel.is_surely(4, 6) {
        return None;
    }
    case.setting?;
    let marked = marked(case, memory)?;
    let now = scale_factor(case, memory, &marked)?;
    let value = setting_values::watermark_scale_factor(now, Some(&marked))?;
    let gap_kib = |m: &Marked, factor| kib_of(case, m.gap(factor));
    let high = |z: &Zone| {
        let at = memory.zones.iter().position(|o| std::ptr::eq(o, z))?;
        Some(unboosted(z, "min")?.saturating_add(2 * gap_kib(&marked[at], value)))
    };
    if !would_free(case, high) {
        return None;
    }
    let all = |factor| {
        marked
            .iter()
            .fold(0u64, |sum, m| sum.saturating_add(gap_kib(m, factor)))
    };
    let more = all(value).saturating_sub(all(now)).saturating_mul(2 * 1024);
    Some(setting(
        ("vm.watermark_scale_factor", value),
        "let kswapd begin earlier: it then frees memory before urgent requests need it".into(),
        format!("up to {} less for programs and page cache", bytes(more)),
        "likely",
    ))
}

/// `vm.compaction_proactiveness`, where at the default compaction ahead of demand does not begin by the free blocks of the
/// text, and at a higher one does.
pub fn proactive(case: &Case) -> Option<Advice> {
    /// The default, as the setting is not in a report.
    const DEFAULT: u64 = 20;
    /// Order of a huge page where a page has 4 KiB.
    const HUGE: u8 = 9;
    let memory = case.report.memory.as_ref()?;
    if !case.kernel.is_surely(5, 9) || case.page_kib != Some(4) || case.setting.is_none() {
        return None;
    }
    let score = |node: u32| {
        let of_node = memory.zones.iter().filter(|z| z.node == node);
        let each: Option<Vec<(u64, u64)>> = of_node.map(|z| outside(z, HUGE)).collect();
        Some(score_of(&each?))
    };
    let nodes = memory.zones.iter().map(|z| z.node);
    let most = nodes
        .map(score)
        .collect::<Option<Vec<u64>>>()?
        .into_iter()
        .max()?;
    let era = case.kernel.era;
    let begins = |p: u64| crate::doctor::proactive_marks(p, era)[1];
    if most > begins(DEFAULT) {
        return None;
    }
    let value = setting_values::compaction_proactiveness(DEFAULT, most, era)?;
    Some(setting(
        ("vm.compaction_proactiveness", value),
        format!(
            "let kcompactd compact ahead of demand: {most} % of what was free lay outside huge pages, and at the default of {DEFAULT} it begins above {} %",
            begins(DEFAULT)
        ),
        "CPU time of kcompactd in the background".into(),
        "possible",
    ))
}

/// Pages of a zone, and the percent of its free memory outside blocks of an order; `None` where its blocks are not in the
/// text, or more than it can have.
fn outside(z: &Zone, order: u8) -> Option<(u64, u64)> {
    let present = z.kib("present")? / 4;
    let blocks = z.blocks.as_ref().filter(|b| b.is_whole() && !b.is_elided)?;
    let free: Vec<u64> = blocks.orders.iter().map(|(n, _)| *n).collect();
    let is_possible = free.len() > usize::from(order)
        && free.len() < 24
        && free.iter().enumerate().all(|(o, n)| *n <= present >> o);
    is_possible.then(|| (present, extfrag_for_order(&free, Order(order))))
}

/// `vm.watermark_boost_factor`, where a zone would have passed without its boost.
pub fn no_boost(case: &Case) -> Option<Advice> {
    let would_pass = |z: &&Judged| z.is_allowed && z.passes_unboosted == Some(true);
    let zone = case.zones.iter().find(would_pass)?;
    let kib = zone.answer.boost_kib?;
    Some(setting(
        ("vm.watermark_boost_factor", 0),
        format!(
            "keep the marks from rising: of the mark of node {} {} {} KiB are a boost, and without it the zone would have served the request",
            zone.answer.node,
            zone.answer.zone,
            thousands(kib)
        ),
        "kswapd no longer frees ahead where pageblocks get mixed, so memory fragments sooner"
            .into(),
        "likely",
    ))
}

/// `vm.lowmem_reserve_ratio`, so that lower zones keep less.
pub fn less_protection() -> Advice {
    Advice {
        command: Some("cat /proc/sys/vm/lowmem_reserve_ratio".into()),
        value: None,
        ..setting(
            ("vm.lowmem_reserve_ratio", 0),
            "let requests for higher zones use more of the lower ones: larger numbers in vm.lowmem_reserve_ratio keep less; read them, and write back four times as much".into(),
            "requests that can use only the low zones fail sooner".into(),
            "likely",
        )
    }
}
