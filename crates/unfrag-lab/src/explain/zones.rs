//! The zones of a report, judged for the request. `spec: K.4, 1.5, 1.6`
//!
//! Invariant: what the text does not say is `None`, and never decides; the watermark check is the core's.

use super::answer::ZoneAnswer;
use super::kernel::Kernel;
use crate::usable::{self, Blocks, Request, ZoneView};
use unfrag::Gfp;
use unfrag::frame::ZoneKind;
use unfrag_linux::kernel_log::report::Letters;
use unfrag_linux::kernel_log::{Memory, Report, Zone};

/// A zone, judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What is shown of it.
    pub answer: ZoneAnswer,
    /// Whether the request may use it.
    pub is_allowed: bool,
    /// Its size in KiB.
    pub size_kib: Option<u64>,
    /// Whether it has room for the request.
    pub has_room: Option<bool>,
    /// Whether it would have room if contiguous memory areas counted.
    pub has_room_with_cma: Option<bool>,
    /// Whether it would have room without `lowmem_reserve`.
    pub has_room_unprotected: Option<bool>,
    /// Whether the whole check holds and an open list has a block.
    pub passes: Option<bool>,
    /// Whether the check holds without `lowmem_reserve`.
    pub passes_unprotected: Option<bool>,
    /// Whether an open list has a block of the order.
    pub has_block: Option<bool>,
    /// Lists that have a block of the order and are closed to the request.
    pub closed: Letters,
    /// Whether any list has a block of the order.
    pub has_any_block: Option<bool>,
    /// Whether its free memory is above its own min mark, for whoever may use it.
    pub is_above_min: Option<bool>,
    /// Whether a number is nonsense, by a bug of that kernel.
    pub is_nonsense: bool,
}

/// More KiB than any machine has: 256 PiB.
const NONSENSE_KIB: u64 = 1 << 48;
/// More pages than any machine has.
const NONSENSE_PAGES: u64 = 1 << 46;

/// KiB of a page in a memory report; `None` if it does not tell.
pub fn page_kib(memory: &Memory) -> Option<u64> {
    memory
        .page_kib()
        .filter(|k| k.is_power_of_two() && *k <= 1024)
        .or_else(|| {
            let pages = *memory.pages.get("free").filter(|n| **n > 0)?;
            let kib: u64 = memory
                .zones
                .iter()
                .filter_map(|z| z.kib("free"))
                .fold(0, u64::saturating_add);
            [4, 8, 16, 64].into_iter().find(|page| {
                let expected = pages.saturating_mul(*page);
                kib > 0 && expected.abs_diff(kib) < kib / 4
            })
        })
}

/// The zone of a name.
pub fn kind_of(name: &str) -> ZoneKind {
    match name {
        "DMA" => ZoneKind::Dma,
        "DMA32" => ZoneKind::Dma32,
        "HighMem" => ZoneKind::HighMem,
        // Device memory is for no ordinary request.
        "Movable" | "Device" => ZoneKind::Movable,
        _ => ZoneKind::Normal,
    }
}

/// Judges all zones of a report.
pub fn judge(r: &Report, memory: &Memory, kernel: &Kernel, gfp: Gfp, order: u8) -> Vec<Judged> {
    let request = Request {
        gfp,
        order,
        rules: &kernel.preset.rules,
    };
    let page = page_kib(memory).unwrap_or(4);
    let highest = highest(gfp, memory);
    memory
        .zones
        .iter()
        .map(|z| one(z, r, memory, &request, (page, highest)))
        .collect()
}

/// A zone of a report whose request is not known, or that has none.
pub fn shown(z: &Zone, page: u64) -> ZoneAnswer {
    let lists = z
        .blocks
        .as_ref()
        .filter(|b| b.is_whole())
        .map(|b| b.orders.as_slice());
    let largest = lists.and_then(|l| u8::try_from(l.iter().rposition(|(n, _)| *n > 0)?).ok());
    ZoneAnswer {
        node: z.node,
        zone: z.name.clone(),
        allowed: None,
        free_kib: z.kib("free"),
        usable_kib: None,
        mark_kib: z.kib("min"),
        protection_kib: z
            .reserve
            .as_ref()
            .and_then(|r| r.last())
            .map(|n| n.saturating_mul(page)),
        largest_usable_order: None,
        largest_order: largest,
    }
}

/// The highest zone that the request may use, among those that the kernel has.
fn highest(gfp: Gfp, memory: &Memory) -> ZoneKind {
    let has = |kind| memory.zones.iter().any(|z| kind_of(&z.name) == kind);
    match unfrag::highest_zone(gfp) {
        // A kernel without the zone takes Normal in its place.
        kind @ (ZoneKind::Dma | ZoneKind::Dma32) if !has(kind) => ZoneKind::Normal,
        kind => kind,
    }
}

fn one(
    z: &Zone,
    r: &Report,
    memory: &Memory,
    request: &Request,
    (page, highest): (u64, ZoneKind),
) -> Judged {
    let pages = |kib: u64| kib / page;
    let kind = kind_of(&z.name);
    let in_nodes = |nodes: &Option<Vec<u32>>| nodes.as_ref().is_none_or(|n| n.contains(&z.node));
    // Only requests for user memory keep to the cpuset strictly.
    let in_cpuset = !request.gfp.contains(Gfp::HARDWALL) || in_nodes(&r.mems_allowed);
    let is_allowed = kind <= highest && z.name != "Device" && in_nodes(&r.nodemask) && in_cpuset;
    let free_kib = z.kib("free");
    let blocks = z
        .blocks
        .as_ref()
        .filter(|b| b.is_whole() && (!b.orders.is_empty() || b.total_kib == Some(0)));
    // A line that was cut off before its first block of the order says nothing of larger ones.
    let lists = blocks.map(|b| b.orders.as_slice());
    let rights = usable::rights(request);
    let open = |letters: Letters| letters.is_empty() || letters.has(usable_letters(&rights));
    let largest = |wanted: &dyn Fn(Letters) -> bool| {
        let at = lists?
            .iter()
            .rposition(|(n, letters)| *n > 0 && wanted(*letters))?;
        u8::try_from(at).ok()
    };
    let at_least = |wanted: &dyn Fn(Letters) -> bool| {
        lists.map(|l| {
            l.iter()
                .skip(request.order.into())
                .any(|(n, letters)| *n > 0 && wanted(*letters))
        })
    };
    // What lies on closed lists alone is known to be out of reach, where the kernel prints no sum of it.
    let closed_kib = |list: Letters| {
        let only = |letters: Letters| letters.has(list) && !open(letters);
        let sum = lists
            .into_iter()
            .flatten()
            .enumerate()
            .filter(|(_, (_, letters))| only(*letters));
        sum.map(|(o, (n, _))| n.saturating_mul(page.saturating_mul(1 << o.min(40))))
            .fold(0, u64::saturating_add)
    };
    let cma_kib = z
        .kib("free_cma")
        .unwrap_or_else(|| closed_kib(Letters::CMA));
    let reserve_kib = z
        .kib("reserved_highatomic")
        .unwrap_or_else(|| closed_kib(Letters::HIGHATOMIC));
    let counted_kib = match (free_kib, blocks.and_then(|b| b.total_kib)) {
        // On many CPUs the counter drifts.
        (Some(free), Some(sum)) if sum < free - free / 10 => Some(sum),
        (free, sum) => free.or(sum),
    };
    let keep = protection(z, memory, highest);
    let is_highest = !populated_above(z, memory, highest).any(|_| true);
    let keep = keep.or(is_highest.then_some(0));
    let min_kib = z.kib("min");
    let numbers = [free_kib, min_kib, z.size_kib(), z.kib("present")];
    let is_nonsense = numbers.iter().flatten().any(|k| *k > NONSENSE_KIB)
        || keep.is_some_and(|k| k > NONSENSE_PAGES);
    let bits = |wanted: &dyn Fn(Letters) -> bool| {
        let on = lists
            .into_iter()
            .flatten()
            .enumerate()
            .filter(|(_, (n, letters))| *n > 0 && wanted(*letters));
        on.fold(0u32, |bits, (o, _)| bits | 1 << o.min(31))
    };
    let view = ZoneView {
        free_pages: counted_kib.map(pages),
        cma_pages: pages(cma_kib),
        highatomic_pages: pages(reserve_kib),
        min_pages: min_kib.map(pages),
        blocks: lists.map(|l| Blocks {
            free: l
                .iter()
                .map(|(n, _)| u32::try_from(*n).unwrap_or(u32::MAX))
                .collect(),
            ordinary: bits(&|l| {
                l.is_empty()
                    || l.has(Letters::ORDINARY)
                    || l.has(usable_letters(&rights)) && l.has(Letters::RESERVE)
            }),
            highatomic: bits(&|l| l.has(Letters::HIGHATOMIC)),
            cma: bits(&|l| l.has(Letters::CMA)),
        }),
    };
    let kept = keep.unwrap_or(0);
    let room = |keep, cma| usable::has_room(&view, request, keep, cma);
    // Without protection known, only what fails even without it is known.
    let sure = |answer: Option<bool>| match keep {
        None if answer == Some(true) => None,
        _ => answer,
    };
    Judged {
        answer: ZoneAnswer {
            node: z.node,
            zone: z.name.clone(),
            allowed: Some(is_allowed),
            free_kib,
            usable_kib: counted_kib
                .map(|k| k.saturating_sub(page * usable::withheld(&view, request))),
            mark_kib: min_kib.map(|k| page.saturating_mul(usable::lowered_mark(pages(k), request))),
            protection_kib: keep.map(|k| k.saturating_mul(page)),
            largest_usable_order: largest(&open),
            largest_order: largest(&|_| true),
        },
        is_allowed,
        size_kib: z.size_kib(),
        has_room: sure(room(kept, false)),
        has_room_with_cma: sure(room(kept, true)),
        has_room_unprotected: room(0, false),
        passes: sure(usable::passes(&view, request, kept)),
        passes_unprotected: usable::passes(&view, request, 0),
        has_block: at_least(&open),
        closed: lists
            .into_iter()
            .flatten()
            .skip(request.order.into())
            .filter(|(n, l)| *n > 0 && !open(*l))
            .fold(Letters::default(), |all, (_, l)| all.with(*l)),
        has_any_block: at_least(&|_| true),
        is_above_min: free_kib.zip(min_kib).map(|(free, min)| free > min),
        is_nonsense,
    }
}

/// Letters of the lists that a request with these rights may take from.
fn usable_letters(rights: &unfrag::AllocFlags) -> Letters {
    let mut open = Letters::ORDINARY;
    if rights.contains(unfrag::AllocFlags::CMA) {
        open = open.with(Letters::CMA);
    }
    if rights.intersects(unfrag::AllocFlags::HIGHATOMIC.union(unfrag::AllocFlags::OOM)) {
        open = open.with(Letters::HIGHATOMIC);
    }
    // The reserve of kernels to 4.3 is for urgent requests.
    if rights.contains(unfrag::AllocFlags::MIN_RESERVE) {
        open = open.with(Letters::RESERVE);
    }
    open
}

/// The populated zones of the node above `z` that the request could use.
fn populated_above<'m>(
    z: &'m Zone,
    memory: &'m Memory,
    highest: ZoneKind,
) -> impl Iterator<Item = &'m Zone> {
    memory.zones.iter().filter(move |other| {
        let kind = kind_of(&other.name);
        let is_populated = other.size_kib() != Some(0);
        other.node == z.node
            && other.name != "Device"
            && kind > kind_of(&z.name)
            && kind <= highest
            && is_populated
    })
}

/// Pages that a zone keeps from the request. `lowmem_reserve` grows with each populated zone above; so the request's
/// number is the one after as many steps as it could use zones above. `spec: 1.6`
fn protection(z: &Zone, memory: &Memory, highest: ZoneKind) -> Option<u64> {
    let reserve = z.reserve.as_ref()?;
    let longest = memory
        .zones
        .iter()
        .filter_map(|z| Some(z.reserve.as_ref()?.len()))
        .max();
    if longest.is_some_and(|n| reserve.len() < n) {
        // The line was cut off.
        return None;
    }
    let steps = populated_above(z, memory, highest).count();
    let mut value = 0;
    let mut taken = 0;
    for &pages in reserve {
        if pages > value {
            if taken == steps {
                break;
            }
            taken += 1;
            value = pages;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str, reserve: &[u64]) -> Zone {
        Zone {
            name: name.into(),
            kib: [("managed".to_owned(), 1000)].into(),
            reserve: Some(reserve.to_vec()),
            ..Zone::default()
        }
    }

    /// `spec: 1.6`
    #[test]
    fn protection_is_by_the_highest_zone_of_the_request() {
        let memory = Memory {
            zones: vec![
                zone("DMA", &[0, 865, 3024, 3024]),
                zone("Normal", &[0, 0, 17270, 17270]),
                zone("HighMem", &[0, 0, 0, 0]),
            ],
            ..Memory::default()
        };
        let of = |zone: usize, highest| protection(&memory.zones[zone], &memory, highest);
        assert_eq!(of(0, ZoneKind::Dma), Some(0));
        assert_eq!(of(0, ZoneKind::Normal), Some(865));
        assert_eq!(of(0, ZoneKind::Movable), Some(3024));
        assert_eq!(of(1, ZoneKind::Normal), Some(0));
        assert_eq!(of(1, ZoneKind::HighMem), Some(17270));
    }

    /// `spec: 1.6`
    #[test]
    fn zones_without_pages_do_not_count() {
        // x86-64 with 4 GiB: Normal is configured and empty.
        let memory = Memory {
            zones: vec![
                zone("DMA", &[0, 3839, 3839, 3839, 3839]),
                zone("DMA32", &[0, 0, 0, 0, 0]),
            ],
            ..Memory::default()
        };
        assert_eq!(
            protection(&memory.zones[0], &memory, ZoneKind::Normal),
            Some(3839)
        );
        assert_eq!(
            protection(&memory.zones[1], &memory, ZoneKind::Normal),
            Some(0)
        );
    }
}
