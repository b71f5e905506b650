//! The zones of a report, judged for the request. `spec: K.4, 1.5, 1.6`
//!
//! Invariant: what the text does not say is `None`, and never decides; the watermark check is the core's.

use super::answer::ZoneAnswer;
use super::kernel::Kernel;
use crate::usable::{self, Request, ZoneView};
use unfrag::kernel::MarkCheck;
use unfrag::{AllocFlags, Gfp, ZoneKind};
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
fn kind_of(name: &str) -> ZoneKind {
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
    let has = |kind| memory.zones.iter().any(|z| kind_of(&z.name) == kind);
    let mut asked = gfp;
    // A kernel without a zone takes Normal in its place.
    for (bit, kind) in [(Gfp::DMA, ZoneKind::Dma), (Gfp::DMA32, ZoneKind::Dma32)] {
        if !has(kind) {
            asked -= bit;
        }
    }
    let case = Asked {
        report: r,
        memory,
        request: Request::new(order, asked, &kernel.preset.rules),
        check: kernel.preset.rules.marks.check,
        highest: unfrag::highest_zone(asked),
        page: page_kib(memory).unwrap_or(4),
    };
    memory.zones.iter().map(|z| case.judge(z)).collect()
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

/// A request and the memory report beside it.
struct Asked<'a> {
    report: &'a Report,
    memory: &'a Memory,
    request: Request,
    check: MarkCheck,
    highest: ZoneKind,
    /// KiB of a page.
    page: u64,
}

impl Asked<'_> {
    fn judge(&self, z: &Zone) -> Judged {
        let (page, request) = (self.page, &self.request);
        let lists = whole(z);
        let is_open =
            |letters: Letters| letters.is_empty() || letters.has(open_lists(request.rights));
        let at_least = |wanted: &dyn Fn(Letters) -> bool| {
            let mut large = lists?.iter().skip(request.order.into());
            Some(large.any(|(n, letters)| *n > 0 && wanted(*letters)))
        };
        let largest = |wanted: &dyn Fn(Letters) -> bool| {
            let at = lists?
                .iter()
                .rposition(|(n, letters)| *n > 0 && wanted(*letters))?;
            u8::try_from(at).ok()
        };
        let (free_kib, min_kib) = (z.kib("free"), z.kib("min"));
        let is_highest = populated_above(z, self.memory, self.highest)
            .next()
            .is_none();
        let keep = protection(z, self.memory, self.highest).or(is_highest.then_some(0));
        let view = self.view(z, keep.unwrap_or(0));
        let unprotected = view.as_ref().map(|v| ZoneView {
            protection: 0,
            ..v.clone()
        });
        let room = |v: &Option<ZoneView>, with_cma| {
            Some(usable::has_room(v.as_ref()?, request, self.check, with_cma))
        };
        let passes = |v: &Option<ZoneView>| {
            let v = v.as_ref()?;
            match (lists, usable::has_room(v, request, self.check, false)) {
                (_, false) => Some(false),
                (Some(_), true) => Some(usable::serves(v, request, self.check)),
                // Of single pages there is one wherever there is memory.
                (None, true) => (request.order == 0).then_some(true),
            }
        };
        // Without its protection known, only what fails even without it is known.
        let sure = |answer: Option<bool>| answer.filter(|yes| !yes || keep.is_some());
        let numbers = [free_kib, min_kib, z.size_kib(), z.kib("present")];
        Judged {
            is_allowed: self.is_allowed(z),
            size_kib: z.size_kib(),
            has_room: sure(room(&view, false)),
            has_room_with_cma: sure(room(&view, true)),
            has_room_unprotected: room(&unprotected, false),
            passes: sure(passes(&view)),
            passes_unprotected: passes(&unprotected),
            has_block: at_least(&is_open),
            closed: {
                let large = lists.into_iter().flatten().skip(request.order.into());
                let closed = large.filter(|(n, letters)| *n > 0 && !is_open(*letters));
                closed.fold(Letters::default(), |all, (_, letters)| all.with(*letters))
            },
            has_any_block: at_least(&|_| true),
            is_above_min: free_kib.zip(min_kib).map(|(free, min)| free > min),
            is_nonsense: numbers.iter().flatten().any(|k| *k > NONSENSE_KIB)
                || keep.is_some_and(|k| k > NONSENSE_PAGES),
            answer: ZoneAnswer {
                node: z.node,
                zone: z.name.clone(),
                allowed: Some(self.is_allowed(z)),
                free_kib,
                usable_kib: counted_kib(z).map(|k| {
                    let withheld = view.as_ref().map_or(0, |v| usable::withheld(v, request));
                    k.saturating_sub(page.saturating_mul(withheld))
                }),
                mark_kib: min_kib.map(|k| {
                    page.saturating_mul(usable::lowered_mark(k / page, request, self.check))
                }),
                protection_kib: keep.map(|k| k.saturating_mul(page)),
                largest_usable_order: largest(&is_open),
                largest_order: largest(&|_| true),
            },
        }
    }

    fn is_allowed(&self, z: &Zone) -> bool {
        let in_nodes =
            |nodes: &Option<Vec<u32>>| nodes.as_ref().is_none_or(|n| n.contains(&z.node));
        // Only requests for user memory keep to the cpuset strictly.
        let in_cpuset =
            !self.request.gfp.contains(Gfp::HARDWALL) || in_nodes(&self.report.mems_allowed);
        let may_use = usable::may_use(kind_of(&z.name), self.request.gfp);
        may_use && z.name != "Device" && in_nodes(&self.report.nodemask) && in_cpuset
    }

    /// The zone as the watermark test sees it; `None` where free memory or the mark is not in the text.
    fn view(&self, z: &Zone, protection: u64) -> Option<ZoneView> {
        let lists = whole(z).unwrap_or_default();
        // Letters tell that a list has blocks of an order, not how many: one where there are others too.
        let on = |list: Letters| {
            let blocks = lists
                .iter()
                .map(move |(n, letters)| match letters.has(list) {
                    true if letters.has(list.others()) => (*n).min(1),
                    true => *n,
                    false => 0,
                });
            blocks.collect::<Vec<u64>>()
        };
        let pages = |blocks: &[u64]| {
            let each = blocks.iter().enumerate();
            each.fold(0, |sum: u64, (o, n)| {
                sum.saturating_add(n.saturating_mul(1 << o.min(40)))
            })
        };
        let (cma, highatomic) = (on(Letters::CMA), on(Letters::HIGHATOMIC));
        let is_reserve_open = open_lists(self.request.rights).has(Letters::RESERVE);
        // What is on such lists alone does not count where the kernel prints no sum of it.
        let printed = |name: &str, blocks: &[u64]| {
            z.kib(name).map_or_else(|| pages(blocks), |k| k / self.page)
        };
        Some(ZoneView {
            kind: kind_of(&z.name),
            free_pages: counted_kib(z)? / self.page,
            cma_pages: printed("free_cma", &cma),
            highatomic_pages: printed("reserved_highatomic", &highatomic),
            cma_by_order: Some(cma),
            highatomic_by_order: highatomic,
            isolated_by_order: if is_reserve_open {
                vec![]
            } else {
                on(Letters::RESERVE)
            },
            free_by_order: lists.iter().map(|(n, _)| *n).collect(),
            min: z.kib("min")? / self.page,
            protection,
        })
    }
}

/// The free blocks of a zone, if the line is whole.
fn whole(z: &Zone) -> Option<&[(u64, Letters)]> {
    let blocks = z.blocks.as_ref().filter(|b| b.is_whole())?;
    Some(&blocks.orders)
}

/// Free memory: the counter, or the sum of the lists where that is smaller by more than a tenth, as the counter drifts
/// on many CPUs. `spec: K.4`
fn counted_kib(z: &Zone) -> Option<u64> {
    match (z.kib("free"), z.blocks.as_ref().and_then(|b| b.total_kib)) {
        (Some(free), Some(sum)) if sum < free - free / 10 => Some(sum),
        (free, sum) => free.or(sum),
    }
}

/// The lists that a request with these rights may take from.
fn open_lists(rights: AllocFlags) -> Letters {
    let mut open = Letters::ORDINARY;
    if rights.contains(AllocFlags::CMA) {
        open = open.with(Letters::CMA);
    }
    if rights.contains(AllocFlags::HIGHATOMIC) {
        open = open.with(Letters::HIGHATOMIC);
    }
    // The reserve of kernels to 4.3 is for urgent requests.
    if rights.contains(AllocFlags::MIN_RESERVE) {
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
