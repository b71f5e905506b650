//! Settings of vm that would have helped, with values computed from a report.
//!
//! Invariant: a value is computed only where all zones are in the text and lies in the range of its sysctl; a setting is
//! named only for kernels that have it.

use super::amounts::{size_kib, sum};
use super::answer::Advice;
use super::case::Case;

/// Pages of files, which reclaim could free, in KiB.
pub fn file_kib(case: &Case) -> u64 {
    let of = |name: &str| case.amount(name).unwrap_or(0) / 1024;
    of("active_file").saturating_add(of("inactive_file"))
}

/// `vm.min_free_kbytes` at twice what it is, as far as there is memory for it.
pub fn more_reserve(case: &Case, why: &str, sure: &'static str) -> Option<Advice> {
    let memory = case.report.memory.as_ref()?;
    let current = case.setting?;
    let size = size_kib(memory);
    if current == 0 || size == 0 || current > size {
        return None;
    }
    // More than a twentieth of memory starves programs, and marks above what can be freed stop every allocation.
    let within = size / 20;
    let reclaimable = sum(memory, "free").saturating_add(file_kib(case));
    let value = current.saturating_mul(2).min(within).min(reclaimable);
    (value > current + current / 10).then(|| Advice {
        action: format!("keep more memory free: {why}"),
        command: Some(format!("sysctl -w vm.min_free_kbytes={value}")),
        setting: Some("vm.min_free_kbytes"),
        value: Some(value),
        cost: format!(
            "{} KiB less for programs and page cache (it was about {current})",
            value - current
        ),
        sure,
    })
}

/// `vm.watermark_scale_factor`, so that kswapd begins earlier. What it was is not in a report: the distance of the marks
/// follows from it only where it is more than a quarter of min.
pub fn gap(case: &Case) -> Option<Advice> {
    if !case.kernel.is_surely(4, 6) {
        return None;
    }
    let memory = case.report.memory.as_ref()?;
    case.setting?;
    let size = size_kib(memory);
    let gap = sum(memory, "low").checked_sub(sum(memory, "min"))?;
    let now = gap.saturating_mul(10_000).checked_div(size)?.max(10);
    let value = now.saturating_mul(4).clamp(40, 1000);
    (value > now).then(|| Advice {
        action: "let kswapd begin earlier: it then frees memory before urgent requests need it"
            .into(),
        command: Some(format!("sysctl -w vm.watermark_scale_factor={value}")),
        setting: Some("vm.watermark_scale_factor"),
        value: Some(value),
        cost: format!(
            "about {} KiB less for programs and page cache",
            (size / 10_000).saturating_mul(value - now)
        ),
        sure: "likely",
    })
}

/// `vm.watermark_boost_factor`, where a zone would have passed without its boost.
pub fn no_boost(case: &Case) -> Option<Advice> {
    let would_pass = |z: &&super::zones::Judged| z.is_allowed && z.passes_unboosted == Some(true);
    let zone = case.zones.iter().find(would_pass)?;
    let kib = zone.answer.boost_kib?;
    Some(Advice {
        action: format!(
            "keep the marks from rising: of the mark of node {} {} {kib} KiB are a boost, and without it the zone would have served the request",
            zone.answer.node, zone.answer.zone
        ),
        command: Some("sysctl -w vm.watermark_boost_factor=0".into()),
        setting: Some("vm.watermark_boost_factor"),
        value: Some(0),
        cost: "kswapd no longer frees ahead where pageblocks get mixed, so memory fragments sooner"
            .into(),
        sure: "likely",
    })
}

/// `vm.lowmem_reserve_ratio`, so that lower zones keep less.
pub fn less_protection() -> Advice {
    Advice {
        action: "let requests for higher zones use more of the lower ones: larger numbers in vm.lowmem_reserve_ratio keep less; read them, and write back four times as much".into(),
        command: Some("cat /proc/sys/vm/lowmem_reserve_ratio".into()),
        setting: Some("vm.lowmem_reserve_ratio"),
        value: None,
        cost: "requests that can use only the low zones fail sooner".into(),
        sure: "likely",
    }
}
