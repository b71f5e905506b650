//! Why each zone did not serve a request, in the row of its numbers. `spec: K.4`
//!
//! Invariant: each zone that was judged has a reason, and the KiB in it are what its row's columns give by subtraction.

use super::case::Case;
use super::verdict::names;
use super::zones::Judged;
use crate::report::number::thousands;
use unfrag_linux::kernel_log::report::Letters;

/// KiB that a block of an order takes beside its last page: the kernel takes them off what is free before it compares.
pub fn own_kib(order: Option<i32>, page_kib: Option<u64>) -> u64 {
    let order = order.and_then(|o| u32::try_from(o).ok()).unwrap_or(0);
    let pages = 1u64.checked_shl(order).unwrap_or(1) - 1;
    pages.saturating_mul(page_kib.unwrap_or(4))
}

/// What a zone must keep free of the request, in KiB.
pub fn must_keep(z: &Judged) -> Option<u64> {
    Some(z.answer.mark_kib?.saturating_add(z.answer.protection_kib?))
}

/// The reason; `None` where the numbers do not tell it.
pub fn why(z: &Judged, case: &Case, order: Option<i32>) -> Option<String> {
    if !z.is_allowed {
        return Some("not for this request".into());
    }
    if z.is_nonsense {
        return Some("its numbers are nonsense, by a bug of that kernel".into());
    }
    let own = own_kib(order, case.page_kib);
    let short = || short(z, own);
    if case.page_kib.is_none() {
        // Of pages of unknown size only what does not depend on it is known.
        let is_less = must_keep(z)
            .zip(z.answer.usable_kib)
            .is_some_and(|(keep, n)| n <= keep);
        return is_less.then(short).flatten();
    }
    if z.passes == Some(true) {
        return Some(match z.passes_by_lists {
            Some(false) => "would serve it by the counter, not by its free blocks".into(),
            _ => "would serve it".into(),
        });
    }
    match (z.has_room, z.has_block) {
        (Some(false), _) => short(),
        (Some(true), Some(false)) if z.closed != Letters::default() => Some(format!(
            "pieces so large lie in {} alone",
            names(z.closed).join(" and ")
        )),
        (Some(true), Some(false)) => Some("no piece is large enough".into()),
        (Some(true), Some(true)) if z.passes == Some(false) => {
            Some("too little is free in pieces so large or larger".into())
        }
        _ => Some("not all of its numbers are in the text".into()),
    }
}

/// How much is missing in a zone that has too little.
fn short(z: &Judged, own: u64) -> Option<String> {
    let Some((free, keep)) = z.answer.usable_kib.zip(must_keep(z)) else {
        return Some("too little is free".into());
    };
    let kib = |n: u64| format!("{} KiB", thousands(n));
    let except = match (z.passes_by_free_reserve, z.has_room_with_cma) {
        (Some(true), _) => ", as the whole high-atomic reserve is taken off",
        (_, Some(true)) => " without contiguous memory areas (CMA)",
        _ => "",
    };
    Some(match keep.checked_sub(free) {
        Some(0) => format!("not above what it must keep{except}"),
        Some(n) => format!("{} short{except}", kib(n)),
        None => match keep.saturating_add(own).checked_sub(free) {
            None => "too little is free".into(),
            Some(0) => format!(
                "not above what it must keep, as {} of the request count",
                kib(own)
            ),
            Some(n) => format!("{} short, as {} of the request count", kib(n), kib(own)),
        },
    })
}
