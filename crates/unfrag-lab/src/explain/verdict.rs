//! The verdict: why the request failed, the first of the rows that matches. `spec: K.4`
//!
//! Invariant: a row is decided only by numbers that are in the text; where one is missing that the row needs, the
//! verdict is [`Verdict::Incomplete`].

use super::zones::{Judged, Lacking};
use unfrag_linux::kernel_log::report::Letters;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The OOM killer was run by hand.
    Manual,
    /// The limit of a control group was reached.
    Cgroup,
    /// No block of that order can exist, or no memory of that size.
    TooLarge,
    /// No room in the kernel's range of addresses.
    AddressSpace,
    /// The caller asked for what cannot be given: nothing.
    Caller,
    /// No page was refused: a handler said "out of memory".
    NotAPage,
    /// A try whose caller goes on without it.
    Harmless,
    /// A number that decides is missing.
    Incomplete,
    /// By the numbers printed the request would succeed.
    Raced,
    /// A block is there, and the mark forbids taking it.
    Marks,
    /// Blocks are there on closed lists alone.
    Reserved,
    /// There is memory enough, in small pieces.
    Fragmented,
    /// There is memory enough in contiguous memory areas alone.
    Cma,
    /// `lowmem_reserve` keeps the memory.
    Protected,
    /// The memory is in a zone that the request may not use.
    Zone,
    /// There is too little memory.
    Short,
}

impl Verdict {
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Manual => "manual",
            Verdict::Cgroup => "cgroup",
            Verdict::TooLarge => "too-large",
            Verdict::AddressSpace => "address-space",
            Verdict::Caller => "caller",
            Verdict::NotAPage => "not-a-page",
            Verdict::Harmless => "harmless",
            Verdict::Incomplete => "incomplete",
            Verdict::Raced => "raced",
            Verdict::Marks => "marks",
            Verdict::Reserved => "reserved",
            Verdict::Fragmented => "fragmented",
            Verdict::Cma => "cma",
            Verdict::Protected => "protected",
            Verdict::Zone => "zone",
            Verdict::Short => "short",
        }
    }
}

/// Zones below this share of memory, in percent, decide nothing in two rows, as DMA is protected at all times; and what is
/// kept below this share is not why a request failed.
const SMALL_PERCENT: u64 = 5;

/// The verdict by the zones, for a request of `order` of `request_kib`.
pub fn of_zones(
    zones: &[Judged],
    order: u8,
    orders: Option<usize>,
    request_kib: u64,
    lacking: Lacking,
) -> Verdict {
    if orders.is_some_and(|n| usize::from(order) >= n) {
        return Verdict::TooLarge;
    }
    let allowed: Vec<&Judged> = zones.iter().filter(|z| z.is_allowed).collect();
    let sizes: Option<Vec<u64>> = allowed.iter().map(|z| z.size_kib).collect();
    if let Some(sizes) = sizes.filter(|s| !s.is_empty() && !lacking.usable)
        && request_kib > sizes.iter().fold(0, |sum, s| s.saturating_add(sum))
    {
        return Verdict::TooLarge;
    }
    if zones.is_empty() || zones.iter().any(|z| z.is_nonsense) {
        return Verdict::Incomplete;
    }
    let any = |test: fn(&Judged) -> Option<bool>| allowed.iter().any(|z| test(z) == Some(true));
    if any(|z| z.passes) {
        return Verdict::Raced;
    }
    let is_known = |z: &&Judged| z.passes.is_some() && z.has_room.is_some();
    if lacking.usable || !allowed.iter().all(is_known) {
        return Verdict::Incomplete;
    }
    // Where memory is enough, a mark forbids only what kernels to 4.3 ask of each order by itself.
    if order > 0 && any(|z| Some(z.has_block? && z.has_room? && !z.passes_unprotected?)) {
        return Verdict::Marks;
    }
    if any(|z| Some(z.has_room? && !z.has_block? && z.closed != Letters::default())) {
        return Verdict::Reserved;
    }
    if any(|z| z.has_room) {
        return Verdict::Fragmented;
    }
    // A reserve that is taken off whole though none of it is free.
    if any(|z| z.passes_by_free_reserve) {
        return Verdict::Reserved;
    }
    if allowed.iter().any(|z| z.may_pass_by_free_reserve) {
        return Verdict::Incomplete;
    }
    if any(|z| z.has_room_with_cma) {
        return Verdict::Cma;
    }
    let total = zones
        .iter()
        .filter_map(|z| z.size_kib)
        .fold(0, u64::saturating_add);
    let small = total / 100 * SMALL_PERCENT;
    let is_large = |z: &Judged| z.size_kib.is_some_and(|s| s >= small);
    let kept = allowed
        .iter()
        .filter(|z| is_large(z) && z.has_room_unprotected == Some(true))
        .filter_map(|z| Some(z.answer.protection_kib?.min(z.size_kib?)))
        .fold(0, u64::saturating_add);
    // Shares of memory are known only of all of it.
    if kept > small {
        return match lacking.others {
            true => Verdict::Incomplete,
            false => Verdict::Protected,
        };
    }
    let others = || zones.iter().filter(|z| !z.is_allowed && is_large(z));
    if others().any(|z| z.has_any_block == Some(true) && z.is_above_min == Some(true)) {
        return Verdict::Zone;
    }
    let may_have_room =
        |z: &Judged| z.has_any_block != Some(false) && z.is_above_min != Some(false);
    if lacking.others || others().any(may_have_room) {
        return Verdict::Incomplete;
    }
    Verdict::Short
}

/// The lists that a verdict of [`Verdict::Reserved`] is about.
pub fn closed_lists(zones: &[Judged]) -> Vec<&'static str> {
    let closed = zones
        .iter()
        .filter(|z| z.is_allowed && z.has_room == Some(true))
        .fold(Letters::default(), |all, z| all.with(z.closed));
    names(closed)
}

/// The names of lists that are closed to some requests.
pub fn names(closed: Letters) -> Vec<&'static str> {
    let names = [
        (Letters::CMA, "contiguous memory areas (CMA)"),
        (Letters::HIGHATOMIC, "the high-atomic reserve"),
        (Letters::RESERVE, "the reserve"),
    ];
    names
        .iter()
        .filter(|(list, _)| closed.has(*list))
        .map(|(_, name)| *name)
        .collect()
}
