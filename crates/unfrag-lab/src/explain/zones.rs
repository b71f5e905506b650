//! The zones of a report, judged for the request. `spec: K.4, 1.5, 1.6`
//!
//! Invariant: what the text does not say is `None`, and never decides; the watermark check is the eras'.

use super::amounts::kind_of;
use super::answer::ZoneAnswer;
use super::kernel::Kernel;
use super::missing;
use super::protection::{populated_above, protection};
use crate::usable::{self, Request, ZoneView};
use unfrag_eras::kernel::MarkCheck;
use unfrag_eras::{AllocFlags, Gfp, ZoneKind};
use unfrag_linux::kernel_log::report::Letters;
use unfrag_linux::kernel_log::{Memory, Report, Zone};

/// A zone, judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What is shown of it.
    pub answer: ZoneAnswer,
    /// Whether the request may use it.
    pub is_allowed: bool,
    /// What counts for the request at most, in KiB: the lists may add up to less than the counter.
    pub at_most_kib: Option<u64>,
    /// Its size in KiB.
    pub size_kib: Option<u64>,
    /// Whether it has room for the request.
    pub has_room: Option<bool>,
    /// Whether it would have room if contiguous memory areas counted.
    pub has_room_with_cma: Option<bool>,
    /// Whether it would have room without `lowmem_reserve`.
    pub has_room_unprotected: Option<bool>,
    /// Whether it would pass if the marks had no boost; `None` where there is none.
    pub passes_unboosted: Option<bool>,
    /// Whether it would pass if only what is free of the high-atomic reserve were taken off; `None` where the kernel does
    /// so, or what is free is not known.
    pub passes_by_free_reserve: Option<bool>,
    /// Whether the whole check holds and an open list has a block.
    pub passes: Option<bool>,
    /// Whether it would pass if only what its lists add up to were free; `None` where that is not less.
    pub passes_by_lists: Option<bool>,
    /// Whether the check holds without `lowmem_reserve`.
    pub passes_unprotected: Option<bool>,
    /// Whether an open list has a block of the order.
    pub has_block: Option<bool>,
    /// Lists that have a block of the order and are closed to the request.
    pub closed: Letters,
    /// Whether it may pass by [`Judged::passes_by_free_reserve`], which is not known because its free blocks are not.
    pub may_pass_by_free_reserve: bool,
    /// Blocks of the order that larger ones and those on open lists make; at least so many.
    pub open_blocks: u64,
    /// Whether any list has a block of the order.
    pub has_any_block: Option<bool>,
    /// Whether its free memory is above its own min mark, for whoever may use it.
    pub is_above_min: Option<bool>,
    /// Whether a number is nonsense, by a bug of that kernel.
    pub is_nonsense: bool,
}

impl Judged {
    /// Whether requests with these flags may use zones of this kind, whatever nodes they are limited to.
    pub fn may_be_used_by(&self, gfp: Gfp) -> bool {
        self.answer.zone != "Device" && usable::may_use(kind_of(&self.answer.zone), gfp)
    }
}

/// More KiB than any machine has: 1 PiB.
const NONSENSE_KIB: u64 = 1 << 40;
/// More pages than any machine has.
const NONSENSE_PAGES: u64 = NONSENSE_KIB / 4;

/// Zones that are not in the text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lacking {
    /// Some that the request may use.
    pub usable: bool,
    /// Perhaps some that it may not use.
    pub others: bool,
}

/// The zones of a report, judged for a request.
#[derive(Debug, Default)]
pub struct Judgement {
    /// The zones, in order.
    pub zones: Vec<Judged>,
    /// Which are not in the text.
    pub lacking: Lacking,
}

/// What a text may leave open of a request.
#[derive(Clone, Debug)]
pub struct Given {
    /// KiB of a page.
    pub page_kib: u64,
    /// Nodes that the task's cpuset has; `None` if it has all.
    pub mems_allowed: Option<Vec<u32>>,
}

/// Judges all zones of a report.
pub fn judge(
    r: &Report,
    memory: &Memory,
    kernel: &Kernel,
    (gfp, order): (Gfp, u8),
    given: &Given,
) -> Judgement {
    let has = |kind| memory.zones.iter().any(|z| kind_of(&z.name) == kind);
    let mut asked = gfp;
    // A kernel without a zone takes Normal in its place.
    for (bit, kind) in [(Gfp::DMA, ZoneKind::Dma), (Gfp::DMA32, ZoneKind::Dma32)] {
        if !has(kind) {
            asked -= bit;
        }
    }
    let rules = &kernel.preset.rules;
    let mut request = Request::new(order, asked, rules);
    // The flag that the second check asks for was given up in 6.3.
    if rules.boost().is_some() && kernel.era.is_at_least(6, 3) && asked.contains(Gfp::HIGH) {
        request.rights |= AllocFlags::UNBOOSTED_RECHECK;
    }
    let highest = unfrag_eras::highest_zone(asked);
    let case = Asked {
        report: r,
        memory,
        request,
        check: rules.marks.check,
        highest,
        page: given.page_kib,
        mems_allowed: given.mems_allowed.as_deref(),
    };
    Judgement {
        zones: memory.zones.iter().map(|z| case.judge(z)).collect(),
        lacking: Lacking {
            usable: missing::lacks(r, memory, highest),
            others: missing::may_lack_any(memory),
        },
    }
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
        free_kib: z.kib("free").filter(|k| *k <= NONSENSE_KIB),
        usable_kib: None,
        mark_kib: z.kib("min").filter(|k| *k <= NONSENSE_KIB),
        boost_kib: z.kib("boost"),
        protection_kib: z
            .reserve
            .as_ref()
            .and_then(|r| r.last())
            .filter(|n| **n <= NONSENSE_PAGES)
            .map(|n| n.saturating_mul(page)),
        largest_usable_order: None,
        largest_order: largest,
        blocks_whole: lists.is_some(),
        why: None,
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
    mems_allowed: Option<&'a [u32]>,
}

impl Asked<'_> {
    fn judge(&self, z: &Zone) -> Judged {
        let (page, request) = (self.page, &self.request);
        let (lists, is_whole) = known(z);
        let order = usize::from(request.order);
        let is_open =
            |letters: Letters| letters.is_empty() || letters.has(open_lists(request.rights));
        // A cut line tells of what it has, and of nothing else.
        let at_least = |wanted: &dyn Fn(Letters) -> bool| {
            let mut large = lists.iter().skip(order);
            let has = large.any(|(n, letters)| *n > 0 && wanted(*letters));
            (has || is_whole).then_some(has)
        };
        let largest = |wanted: &dyn Fn(Letters) -> bool| {
            let at = lists
                .iter()
                .rposition(|(n, letters)| *n > 0 && wanted(*letters))?;
            u8::try_from(at).ok().filter(|_| is_whole)
        };
        let keep = self.keep(z);
        let view = self.view(z, keep.unwrap_or(0));
        let unprotected = view.as_ref().map(|v| ZoneView {
            protection: 0,
            ..v.clone()
        });
        let room = |v: &Option<ZoneView>, with_cma| {
            let v = v.as_ref()?;
            let has = usable::has_room(v, request, self.check, with_cma);
            // What a cut line may still take off decides against the zone alone.
            (!has || !self.hides_aside(z)).then_some(has)
        };
        let passes = |v: &Option<ZoneView>| {
            let has_room = room(v, false)?;
            let v = v.as_ref()?;
            match (is_whole, has_room) {
                (_, false) => Some(false),
                (true, true) => Some(usable::serves(v, request, self.check)),
                (false, true) => {
                    // The counter may have drifted from the lists: those that the text has must bear it out.
                    let listed = pages_of(lists.iter().copied());
                    let by_lists = ZoneView {
                        free_pages: listed.min(v.free_pages),
                        ..v.clone()
                    };
                    let is_borne_out = listed.saturating_mul(10) >= v.free_pages.saturating_mul(9)
                        || usable::has_room(&by_lists, request, self.check, false);
                    let has = order == 0 && !lists.is_empty()
                        || lists.len() > order && usable::serves(v, request, self.check);
                    (is_borne_out && has).then_some(true)
                }
            }
        };
        // Without its protection known, only what fails even without it is known.
        let sure = |answer: Option<bool>| answer.filter(|yes| !yes || keep.is_some());
        let with = |change: &dyn Fn(ZoneView) -> ZoneView| view.clone().map(change);
        let boost = z.kib("boost").filter(|k| *k > 0);
        let unboosted = boost.filter(|_| !self.ignores_boost()).map(|boost| {
            with(&|v| ZoneView {
                min: v.min.saturating_sub(boost / page),
                ..v
            })
        });
        let without_reserve = with(&|v| ZoneView {
            highatomic_pages: 0,
            ..v
        });
        let by_free_reserve = self.free_reserve(z).map(|free| {
            with(&|v| ZoneView {
                highatomic_pages: free,
                ..v
            })
        });
        let listed = z.blocks.as_ref().and_then(|b| b.total_kib);
        let by_lists = listed.filter(|sum| Some(*sum) < z.kib("free")).map(|sum| {
            with(&|v| ZoneView {
                free_pages: v.free_pages.min(sum / page),
                ..v
            })
        });
        let is_nonsense =
            z.kib.values().any(|k| *k > NONSENSE_KIB) || keep.is_some_and(|k| k > NONSENSE_PAGES);
        let (free_kib, min_kib) = (z.kib("free"), z.kib("min"));
        let shown = |k: &u64| *k <= NONSENSE_KIB;
        let counts = counted_kib(z).filter(shown).map(|k| {
            let withheld = view.as_ref().map_or(0, |v| usable::withheld(v, request));
            k.saturating_sub(page.saturating_mul(withheld))
        });
        Judged {
            at_most_kib: counts,
            is_allowed: self.is_allowed(z),
            size_kib: z.size_kib(),
            has_room: sure(room(&view, false)),
            has_room_with_cma: sure(room(&view, true)),
            has_room_unprotected: room(&unprotected, false),
            passes: sure(passes(&view)),
            passes_by_lists: by_lists.and_then(|v| sure(passes(&v))),
            passes_unprotected: passes(&unprotected),
            passes_unboosted: unboosted.and_then(|v| sure(passes(&v))),
            passes_by_free_reserve: by_free_reserve.and_then(|v| sure(passes(&v))),
            may_pass_by_free_reserve: !is_whole
                && z.kib("reserved_highatomic").is_some_and(|k| k > 0)
                && z.kib("free_highatomic").is_none()
                && room(&without_reserve, false) != Some(false),
            has_block: at_least(&is_open),
            open_blocks: {
                let large = lists.iter().enumerate().skip(order);
                let open = large.filter(|(_, (_, letters))| is_open(*letters));
                open.fold(0, |sum, (o, (n, _))| {
                    sum.saturating_add(n.saturating_mul(1 << (o - order).min(40)))
                })
            },
            closed: {
                let large = lists.iter().skip(order);
                let closed = large.filter(|(n, letters)| *n > 0 && !is_open(*letters));
                closed.fold(Letters::default(), |all, (_, letters)| all.with(*letters))
            },
            has_any_block: at_least(&|_| true),
            is_above_min: free_kib.zip(min_kib).map(|(free, min)| free > min),
            is_nonsense,
            answer: ZoneAnswer {
                node: z.node,
                zone: z.name.clone(),
                allowed: Some(self.is_allowed(z)),
                free_kib: free_kib.filter(shown),
                // Only the row of free blocks tells whether the counter has drifted, and of a reserve that has no field.
                usable_kib: counts.filter(|_| is_whole || is_borne_out(z, lists, page)),
                mark_kib: view
                    .as_ref()
                    .filter(|v| v.min <= NONSENSE_PAGES)
                    .map(|v| page.saturating_mul(usable::lowered_mark(v.min, request, self.check))),
                boost_kib: z.kib("boost"),
                protection_kib: keep
                    .filter(|k| *k <= NONSENSE_PAGES)
                    .map(|k| k.saturating_mul(page)),
                largest_usable_order: largest(&is_open),
                largest_order: largest(&|_| true),
                blocks_whole: is_whole,
                why: None,
            },
        }
    }

    /// Pages that the zone keeps from the request; `None` where the text does not tell.
    fn keep(&self, z: &Zone) -> Option<u64> {
        if missing::lacks_above(z, self.memory) {
            return missing::kept_by_columns(z, self.memory, self.highest);
        }
        let is_highest = populated_above(z, self.memory, self.highest)
            .next()
            .is_none()
            && missing::is_surely_highest(z, self.memory, self.highest);
        protection(z, self.memory, self.highest).or(is_highest.then_some(0))
    }

    /// Whether the kernel checks this request a second time, without the boost.
    fn ignores_boost(&self) -> bool {
        let rights = self.request.rights;
        self.request.order == 0 && rights.contains(AllocFlags::UNBOOSTED_RECHECK)
    }

    /// Free pages of the high-atomic reserve at most, where the kernel takes it off whole and the lists tell.
    fn free_reserve(&self, z: &Zone) -> Option<u64> {
        let reserved = z.kib("reserved_highatomic")? / self.page;
        let (lists, is_whole) = known(z);
        if z.kib("free_highatomic").is_some() || !is_whole {
            return None;
        }
        let on = |(n, letters): &(u64, Letters)| match letters.has(Letters::HIGHATOMIC) {
            true => *n,
            false => 0,
        };
        let free = lists.iter().enumerate().fold(0, |sum: u64, (o, l)| {
            sum.saturating_add(on(l).saturating_mul(1 << o.min(40)))
        });
        (free < reserved).then_some(free)
    }

    /// Whether the zone's line is cut off before what does not count for the request, and nothing else tells of it.
    fn hides_aside(&self, z: &Zone) -> bool {
        let (_, is_whole) = known(z);
        let is_cut = z.size_kib().is_none() || z.is_elided;
        if !is_cut || is_whole {
            return false;
        }
        let has_no_areas = self.memory.cma_pages == Some(0)
            || self.memory.pages.get("free_cma") == Some(&0)
            || z.kib("free_cma").is_some();
        // The fields that follow the reserve's are there, or its own.
        let shows_reserve = ["reserved_highatomic", "active_anon", "active"]
            .iter()
            .any(|name| z.kib(name).is_some());
        let rights = self.request.rights;
        let reserve = AllocFlags::NON_BLOCK | AllocFlags::MIN_RESERVE;
        (!has_no_areas && !rights.contains(AllocFlags::CMA))
            || (!shows_reserve && !rights.intersects(reserve))
    }

    fn is_allowed(&self, z: &Zone) -> bool {
        let in_nodes = |nodes: Option<&[u32]>| nodes.is_none_or(|n| n.contains(&z.node));
        // Only requests for user memory keep to the cpuset strictly.
        let in_cpuset = !self.request.gfp.contains(Gfp::HARDWALL) || in_nodes(self.mems_allowed);
        let may_use = usable::may_use(kind_of(&z.name), self.request.gfp);
        may_use && z.name != "Device" && in_nodes(self.report.nodemask.as_deref()) && in_cpuset
    }

    /// The zone as the watermark test sees it; `None` where free memory or the mark is not in the text.
    fn view(&self, z: &Zone, protection: u64) -> Option<ZoneView> {
        let (lists, _) = known(z);
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
        let pages = |blocks: &[u64]| pages_of(blocks.iter().map(|n| (*n, ())));
        let (cma, highatomic) = (on(Letters::CMA), on(Letters::HIGHATOMIC));
        let is_reserve_open = open_lists(self.request.rights).has(Letters::RESERVE);
        // What is on such lists alone does not count where the kernel prints no sum of it.
        let printed = |name: &str, blocks: &[u64]| {
            z.kib(name).map_or_else(|| pages(blocks), |k| k / self.page)
        };
        // Kernels that print how much of the reserve is free take off that alone.
        let reserve = match z.kib("free_highatomic") {
            Some(_) => "free_highatomic",
            None => "reserved_highatomic",
        };
        let boost = z.kib("boost").filter(|_| self.ignores_boost()).unwrap_or(0);
        Some(ZoneView {
            kind: kind_of(&z.name),
            free_pages: counted_kib(z)? / self.page,
            cma_pages: printed("free_cma", &cma),
            highatomic_pages: printed(reserve, &highatomic),
            cma_by_order: Some(cma),
            highatomic_by_order: highatomic,
            isolated_by_order: if is_reserve_open {
                vec![]
            } else {
                on(Letters::RESERVE)
            },
            free_by_order: lists.iter().map(|(n, _)| *n).collect(),
            min: z.kib("min")?.saturating_sub(boost) / self.page,
            protection,
        })
    }
}

/// Pages in blocks by order.
fn pages_of<T>(blocks: impl IntoIterator<Item = (u64, T)>) -> u64 {
    let each = blocks.into_iter().enumerate();
    each.fold(0, |sum: u64, (o, (n, _))| {
        sum.saturating_add(n.saturating_mul(1 << o.min(40)))
    })
}

/// The free blocks of a zone as far as the text has them, and whether that is all. The last column of a cut line may have
/// lost its letters.
fn known(z: &Zone) -> (&[(u64, Letters)], bool) {
    // Of a row with columns left out it is not known which orders have blocks.
    let Some(blocks) = z.blocks.as_ref().filter(|b| !b.is_elided) else {
        return (&[], false);
    };
    match blocks.orders.split_last() {
        Some(((n, letters), rest)) if !blocks.is_whole() && *n > 0 && letters.is_empty() => {
            (rest, false)
        }
        _ => (&blocks.orders, blocks.is_whole()),
    }
}

/// Whether the free blocks that a cut row has add up to the counter, so that nothing is in those that were cut off.
fn is_borne_out(z: &Zone, lists: &[(u64, Letters)], page: u64) -> bool {
    let listed = pages_of(lists.iter().copied()).saturating_mul(page);
    !lists.is_empty() && z.kib("free").is_some_and(|free| listed >= free)
}

/// Free memory: the counter, or the sum of the lists where that is smaller by more than a tenth, as the counter drifts
/// on many CPUs. `spec: K.4`
fn counted_kib(z: &Zone) -> Option<u64> {
    match (z.kib("free"), z.blocks.as_ref().and_then(|b| b.total_kib)) {
        (Some(free), Some(sum)) if sum < free - free / 10 => Some(sum),
        // Without the zone's own line it is not known what of the sum is CMA or kept back.
        (None, _) if z.kib.is_empty() => None,
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
