//! The arithmetic of slabs: orders, objects a slab, limits of lists. Pure functions, each with the
//! vectors of `spec: 6.1-6.3` as tests.

use crate::rules::{Design, OrderSearch, SlqbRules, SlubRules};
use unfrag::frame::MAX_ORDER;

/// Bytes of a page.
pub const PAGE: u32 = 4096;
const PAGE_SHIFT: u32 = 12;
/// Most objects of a slab: they are counted in 16 bits.
pub const MAX_OBJECTS: u32 = u16::MAX as u32;
/// Bytes of a cache line: step of colours, alignment of `HWCACHE_ALIGN`.
pub const LINE: u32 = 64;
/// Bytes at the head of a slab that keeps SLAB's management data itself (`struct slab`).
pub const SLAB_HEAD: u32 = 48;
/// SLAB's management bytes for each object (`kmem_bufctl_t`).
pub const BUFCTL: u32 = 4;
/// Size from which on SLAB keeps management data apart.
pub const OFF_SLAB: u32 = PAGE / 8;

/// Position of the highest set bit, from 1; 0 for 0.
pub const fn fls(x: u64) -> u32 {
    64 - x.leading_zeros()
}

/// Least order whose block holds `bytes`.
pub const fn order_for(bytes: u64) -> u8 {
    if bytes <= PAGE as u64 {
        0
    } else {
        (fls(bytes - 1) - PAGE_SHIFT) as u8
    }
}

/// Bytes of a block of `2^order` pages; orders up to 19 fit.
pub const fn bytes(order: u8) -> u32 {
    PAGE << order
}

/// Objects that SLUB wants in a slab for so many CPUs, unless the rules say. `spec: 6.2`
pub const fn slub_min_objects(cpus: u32) -> u32 {
    4 * (fls(cpus as u64) + 1)
}

/// Whether the largest block holds an object of so many bytes, of which there is one at least.
const fn holds(size: u32) -> bool {
    size > 0 && size <= bytes(MAX_ORDER)
}

/// Order of SLUB's slabs for objects of `size` bytes; `None` if even the largest block is too small.
/// `spec: 6.2`
pub fn slub_order(size: u32, cpus: u32, rules: &SlubRules) -> Option<u8> {
    if !holds(size) {
        return None;
    }
    let (min_order, max_order) = (
        rules.min_order.min(MAX_ORDER),
        rules.max_order.min(MAX_ORDER),
    );
    let mut m = match rules.min_objects {
        0 => slub_min_objects(cpus),
        m => m,
    };
    let fractions: &[u32] = match rules.search {
        OrderSearch::Ceil => &[16, 8, 4, 2],
        _ => &[16, 8, 4],
    };
    if rules.search != OrderSearch::Halve {
        m = m.min(bytes(max_order) / size).max(1);
    }
    while m > 1 || (m == 1 && rules.search == OrderSearch::Ceil) {
        for f in fractions {
            if let Some(order) = fitting(size, m, *f, min_order, max_order) {
                return Some(order);
            }
        }
        m = match rules.search {
            OrderSearch::Halve => m / 2,
            OrderSearch::Decrement => m - 1,
            OrderSearch::Ceil => 0,
        };
    }
    if rules.search == OrderSearch::Ceil {
        let order = order_for(size.into());
        return (order <= MAX_ORDER).then_some(order);
    }
    fitting(size, 1, 1, min_order, max_order).or_else(|| fitting(size, 1, 1, min_order, MAX_ORDER))
}

/// First order that holds `m` objects and wastes at most a share of `1/fraction`.
fn fitting(size: u32, m: u32, fraction: u32, min_order: u8, max_order: u8) -> Option<u8> {
    if bytes(min_order) / size > MAX_OBJECTS {
        return Some(order_for(u64::from(size) * u64::from(MAX_OBJECTS)).saturating_sub(1));
    }
    let want = u64::from(m) * u64::from(size);
    let start = min_order.max(order_for(want));
    (start..=max_order).find(|&o| {
        let b = bytes(o);
        u64::from(b) >= want && b % size <= b / fraction
    })
}

/// Empty slabs that a node of SLUB keeps, for objects of `size` bytes; `of_half`: by half of the
/// logarithm, as 6.x does. `spec: 6.2`
pub const fn slub_min_partial(size: u32, of_half: bool) -> u32 {
    let log = fls(size as u64).saturating_sub(1);
    let n = if of_half { log / 2 } else { log };
    if n < 5 {
        5
    } else if n > 10 {
        10
    } else {
        n
    }
}

/// Free objects of `size` bytes that a CPU of SLUB may keep in partial slabs. `spec: 6.2`
pub const fn slub_cpu_partial_objects(size: u32) -> u32 {
    match size {
        4096.. => 6,
        1024.. => 24,
        256.. => 52,
        _ => 120,
    }
}

/// Slabs that a CPU of SLUB may keep, each taken for half full. `spec: 6.2`
pub const fn slub_cpu_partial_slabs(size: u32, objects_per_slab: u32) -> u32 {
    let objects_per_slab = if objects_per_slab == 0 {
        1
    } else {
        objects_per_slab
    };
    (slub_cpu_partial_objects(size) * 2).div_ceil(objects_per_slab)
}

/// Limits of SLAB's arrays, in objects. `spec: 6.1`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayLimits {
    /// Most objects of a CPU's array.
    pub limit: u32,
    /// Objects moved at a time.
    pub batch: u32,
    /// Batches that the array shared by a node's CPUs holds; 0 is none.
    pub shared: u32,
}

/// SLAB's limits for objects of `size` bytes on so many CPUs.
pub const fn array_limits(size: u32, cpus: u32) -> ArrayLimits {
    let limit = match size {
        131_073.. => 1,
        4097.. => 8,
        1025.. => 24,
        257.. => 54,
        _ => 120,
    };
    let shared = if size <= PAGE && cpus > 1 { 8 } else { 0 };
    ArrayLimits {
        limit,
        batch: limit.div_ceil(2),
        shared,
    }
}

/// How SLAB fills a slab: objects, and bytes of management data within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabFit {
    /// Objects.
    pub objects: u32,
    /// Bytes before the first object; 0 if they are kept apart.
    pub head: u32,
    /// Unused bytes, for colours.
    pub left_over: u32,
}

/// SLAB's fit into a block: objects of 1 byte to the largest block, aligned to a page at most. `spec: 6.1`
pub fn slab_fit(size: u32, align: u32, order: u8, off_slab: bool) -> SlabFit {
    let (size, align) = (size.clamp(1, bytes(MAX_ORDER)), align.min(PAGE));
    let total = bytes(order.min(MAX_ORDER));
    if off_slab {
        let objects = (total / size).min(MAX_OBJECTS);
        return SlabFit {
            objects,
            head: 0,
            left_over: total - objects * size,
        };
    }
    let head = |n: u32| (SLAB_HEAD + BUFCTL * n).next_multiple_of(align.max(8));
    let mut objects = (total.saturating_sub(SLAB_HEAD) / (size + BUFCTL)).min(MAX_OBJECTS);
    while objects > 0 && head(objects) + objects * size > total {
        objects -= 1;
    }
    let used = head(objects) + objects * size;
    SlabFit {
        objects,
        head: head(objects),
        left_over: total.saturating_sub(used),
    }
}

/// Order of SLAB's slabs. `reclaimable`: a shrinker gives the objects back; `large_memory`: the
/// machine has more than 32 MiB. `spec: 6.1`
pub fn slab_order(size: u32, align: u32, reclaimable: bool, large_memory: bool) -> Option<u8> {
    if !holds(size) {
        return None;
    }
    let break_order = u8::from(large_memory);
    let fits = (0..=MAX_ORDER).map(|o| (o, slab_fit(size, align, o, size >= OFF_SLAB)));
    let mut fits = fits.filter(|(_, f)| f.objects > 0);
    let stops = |&(o, f): &(u8, SlabFit)| {
        reclaimable || o >= break_order || u64::from(f.left_over) * 8 <= u64::from(bytes(o))
    };
    fits.find(stops).map(|(o, _)| o)
}

/// Bounds of SLQB's lists, in objects. `spec: 6.3`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlqbLimits {
    /// Objects moved at a time.
    pub freebatch: u32,
    /// Objects of a CPU's free list above which a batch goes back to its slabs.
    pub hiwater: u32,
}

/// SLQB's bounds for objects of `size` bytes.
pub fn slqb_limits(size: u32) -> SlqbLimits {
    let size = size.max(1);
    let few = 4 * PAGE / size;
    let freebatch = few.max(256.min(64 * PAGE / size)).max(1);
    SlqbLimits {
        freebatch,
        hiwater: 4 * freebatch,
    }
}

/// Order of SLQB's slabs. `spec: 6.3`
pub fn slqb_order(size: u32, rules: &SlqbRules) -> Option<u8> {
    if !holds(size) {
        return None;
    }
    let low = (0..=rules.max_order.min(MAX_ORDER)).find(|&o| {
        let b = bytes(o);
        let objects = b / size;
        objects >= rules.min_objects.max(1) && objects <= MAX_OBJECTS && (b % size) * 4 <= b
    });
    let least = order_for(size.into());
    low.or((least <= MAX_ORDER).then_some(least))
}

/// Order and objects of a design's slabs: what its formula says for objects of `size` bytes, padding
/// included.
pub fn order_and_objects(
    design: Design,
    size: u32,
    align: u32,
    cpus: u32,
    rules: &crate::rules::Rules,
) -> Option<(u8, u32)> {
    let order = match design {
        Design::Slab => slab_order(size, align, false, true),
        Design::Slub => slub_order(size, cpus, &rules.slub),
        Design::Slqb => slqb_order(size, &rules.slqb),
    }?;
    let objects = match design {
        Design::Slab => slab_fit(size, align, order, size >= OFF_SLAB).objects,
        _ => (bytes(order) / size).min(MAX_OBJECTS),
    };
    Some((order, objects))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    const ALL: [OrderSearch; 3] = [
        OrderSearch::Halve,
        OrderSearch::Decrement,
        OrderSearch::Ceil,
    ];

    fn with(search: OrderSearch) -> SlubRules {
        SlubRules {
            search,
            ..SlubRules::V2_6_28
        }
    }

    /// `spec: 6.2`
    #[test]
    fn slub_wants_twenty_objects_on_eight_cpus() {
        assert_eq!(slub_min_objects(1), 8);
        assert_eq!(slub_min_objects(2), 12);
        assert_eq!(slub_min_objects(8), 20);
    }

    /// `spec: 6.2, 6.4`
    #[test]
    fn slub_orders_of_source_s2() {
        for search in ALL {
            let order = |size| slub_order(size, 8, &with(search));
            assert_eq!(order(4096), Some(3), "{search:?}");
            for size in [192, 168, 104, 24] {
                assert_eq!(order(size), Some(0), "{search:?} {size}");
            }
        }
    }

    /// `spec: 8.5`
    #[test]
    fn slub_max_order_moves_the_order_of_names_cache() {
        for search in ALL {
            for max_order in [0, 1, 3] {
                let rules = SlubRules {
                    max_order,
                    ..with(search)
                };
                assert_eq!(slub_order(4096, 8, &rules), Some(max_order), "{search:?}");
            }
        }
    }

    #[test]
    fn a_large_object_gets_the_least_order_that_holds_it() {
        for search in ALL {
            assert_eq!(slub_order(100_000, 8, &with(search)), Some(5));
            assert_eq!(slub_order(5 << 20, 8, &with(search)), None, "over 4 MiB");
        }
        assert_eq!(slab_order(5 << 20, 8, false, true), None);
        assert_eq!(slqb_order(5 << 20, &SlqbRules::POSTED), None);
    }

    #[test]
    fn slub_min_order_and_min_objects_are_heeded() {
        let rules = SlubRules {
            min_order: 2,
            ..SlubRules::V6
        };
        assert_eq!(slub_order(64, 8, &rules), Some(2));
        let rules = SlubRules {
            min_objects: 100,
            ..SlubRules::V2_6_28
        };
        assert_eq!(
            slub_order(192, 8, &rules),
            Some(3),
            "19,200 bytes want order 3"
        );
    }

    #[test]
    fn no_slab_has_more_objects_than_can_be_counted() {
        let rules = SlubRules {
            min_order: 10,
            max_order: 10,
            ..SlubRules::V2_6_28
        };
        let order = slub_order(8, 8, &rules).unwrap();
        assert!(bytes(order) / 8 <= MAX_OBJECTS, "order {order}");
    }

    /// `spec: 6.2`
    #[test]
    fn partial_limits_of_slub() {
        let old = |size| slub_min_partial(size, false);
        assert_eq!(
            [old(8), old(64), old(256), old(1024), old(8192)],
            [5, 6, 8, 10, 10]
        );
        let new = |size| slub_min_partial(size, true);
        assert_eq!([new(64), new(1024), new(4096), new(1 << 20)], [5, 5, 6, 10]);
        let objects = [8192, 4096, 4095, 1024, 1023, 256, 255, 8].map(slub_cpu_partial_objects);
        assert_eq!(objects, [6, 6, 24, 24, 52, 52, 120, 120]);
        assert_eq!(slub_cpu_partial_slabs(192, 21), 12, "240 / 21, rounded up");
        assert_eq!(slub_cpu_partial_slabs(4096, 8), 2);
    }

    /// `spec: 6.1`
    #[test]
    fn array_limits_by_size() {
        let limit = |size| array_limits(size, 8).limit;
        assert_eq!([limit(131_073), limit(131_072), limit(4097)], [1, 8, 8]);
        assert_eq!(
            [limit(4096), limit(1025), limit(1024), limit(257)],
            [24, 24, 54, 54]
        );
        assert_eq!([limit(256), limit(8)], [120, 120]);
        let all = |size, cpus| {
            let l = array_limits(size, cpus);
            (l.limit, l.batch, l.shared)
        };
        assert_eq!(all(64, 8), (120, 60, 8));
        assert_eq!(all(1024, 8), (54, 27, 8));
        assert_eq!(all(4097, 8), (8, 4, 0), "no shared array above a page");
        assert_eq!(all(1 << 20, 8), (1, 1, 0));
        assert_eq!(all(64, 1), (120, 60, 0), "nor on one CPU");
    }

    /// `spec: 6.1`
    #[test]
    fn slab_orders_and_fits() {
        let order = |size| slab_order(size, 8, false, true);
        for size in [4096, 192, 168, 104, 32] {
            assert_eq!(order(size), Some(0), "{size}");
        }
        // 8192 mod 2200 = 1592 is more than an eighth, but order 1 is where the search breaks off.
        assert_eq!(order(2200), Some(1));
        assert_eq!(slab_order(2200, 8, true, true), Some(0), "RECLAIM_ACCOUNT");
        assert_eq!(
            slab_order(2200, 8, false, false),
            Some(0),
            "32 MiB of memory"
        );
        let fit = |size| slab_fit(size, 8, 0, size >= OFF_SLAB).objects;
        assert_eq!([fit(32), fit(64), fit(104), fit(192)], [112, 59, 37, 20]);
        assert_eq!([fit(511), fit(512), fit(4096)], [7, 8, 1]);
    }

    #[test]
    fn management_data_and_objects_of_a_slab_never_overlap() {
        for size in (8..OFF_SLAB).step_by(if cfg!(miri) { 104 } else { 8 }) {
            for order in 0..4 {
                for align in [8, 64] {
                    let f = slab_fit(size.next_multiple_of(align), align, order, false);
                    assert!(f.head >= SLAB_HEAD + BUFCTL * f.objects);
                    let size = size.next_multiple_of(align);
                    assert_eq!(f.head + f.objects * size + f.left_over, bytes(order));
                }
            }
        }
    }

    /// `spec: 6.3`
    #[test]
    fn watermarks_of_slqb() {
        let all = |size| {
            let l = slqb_limits(size);
            (l.freebatch, l.hiwater)
        };
        assert_eq!(all(64), (256, 1024));
        assert_eq!(all(8), (2048, 8192));
        assert_eq!(all(4096), (64, 256));
        assert_eq!(all(1024), (256, 1024));
        assert_eq!(all(1 << 20), (1, 4));
    }

    /// `spec: 6.3`
    #[test]
    fn orders_of_slqb() {
        let order = |size| slqb_order(size, &SlqbRules::POSTED);
        for size in [4096, 192, 168, 104] {
            assert_eq!(order(size), Some(0), "{size}");
        }
        assert_eq!(order(1400), Some(1), "a third of a page would be wasted");
        assert_eq!(
            order(12_000),
            Some(2),
            "more than order 1 only if one object needs it"
        );
    }

    #[test]
    fn every_size_gets_an_order_that_holds_it() {
        for size in (8..100_000).step_by(if cfg!(miri) { 9992 } else { 8 }) {
            for design in Design::ALL {
                for rules in [Rules::S2, Rules::MODERN] {
                    let (order, objects) = order_and_objects(design, size, 8, 8, &rules).unwrap();
                    assert!(objects >= 1, "{design} {size}");
                    assert!(u64::from(objects) * u64::from(size) <= bytes(order).into());
                }
            }
        }
    }
}
