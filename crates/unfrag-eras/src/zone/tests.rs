//! Watermark checks and the high-atomic limit, on numbers alone.

use super::highatomic::limit;
use super::watermark::{View, block_exists, per_order};
use super::{Marks, watermark};
use crate::frame::{ORDER_SLOTS, Order};
use crate::gfp::AllocFlags;
use crate::kernel::{HighAtomicLimit, Sysctl};

const NONE: AllocFlags = AllocFlags::empty();
const HIGH: AllocFlags = AllocFlags::MIN_RESERVE;
const HARDER: AllocFlags = AllocFlags::NON_BLOCK;

fn blocks(per_order: &[u32]) -> [u32; ORDER_SLOTS] {
    let mut n = [0; ORDER_SLOTS];
    n[..per_order.len()].copy_from_slice(per_order);
    n
}

/// A zone with these free blocks, all of ordinary types.
fn view(nr_free: &[u32; ORDER_SLOTS]) -> View<'_> {
    let free = nr_free.iter().enumerate().map(|(o, n)| i64::from(*n) << o);
    let fits = nr_free.iter().enumerate().filter(|(_, n)| **n > 0);
    View {
        free: free.sum(),
        nr_free,
        ordinary: fits.map(|(o, _)| 1 << o).sum(),
        highatomic: 0,
        cma: 0,
        hidden: 0,
        cma_pages: 0,
    }
}

/// `spec: 1.5`
#[test]
fn old_check_counts_only_blocks_that_are_large_enough() {
    let n = blocks(&[200]);
    assert!(per_order(&view(&n), Order(0), 100, 0, NONE));
    assert!(!per_order(&view(&n), Order(1), 100, 0, NONE));
    let n = blocks(&[40, 20, 0, 15]);
    assert_eq!(view(&n).free, 200);
    assert!(per_order(&view(&n), Order(3), 100, 0, NONE));
    // Each step decides: 153 > 50 fails once 54 more pages are of order 0.
    let n = blocks(&[153, 7, 0, 5]);
    assert_eq!(view(&n).free, 207);
    assert!(
        per_order(&view(&n), Order(1), 100, 0, NONE),
        "206 - 153 = 53 > 50"
    );
    let n = blocks(&[157, 5, 0, 5]);
    assert!(
        !per_order(&view(&n), Order(1), 100, 0, NONE),
        "206 - 157 = 49"
    );
}

/// `spec: 1.5`
#[test]
fn old_check_lowers_the_mark_for_high_then_for_harder() {
    // 100 → 50 → 38.
    let at = |free| blocks(&[free]);
    assert!(!per_order(&view(&at(38)), Order(0), 100, 0, HIGH | HARDER));
    assert!(per_order(&view(&at(39)), Order(0), 100, 0, HIGH | HARDER));
    assert!(!per_order(&view(&at(50)), Order(0), 100, 0, HIGH));
    assert!(per_order(&view(&at(51)), Order(0), 100, 0, HIGH));
    // HARDER alone counts here: 100 → 75.
    assert!(!per_order(&view(&at(75)), Order(0), 100, 0, HARDER));
    assert!(per_order(&view(&at(76)), Order(0), 100, 0, HARDER));
}

/// `spec: 1.5`
#[test]
fn old_check_adds_the_lowmem_reserve_once() {
    let n = blocks(&[40, 20, 0, 15]);
    assert!(per_order(&view(&n), Order(3), 100, 92, NONE), "193 > 192");
    assert!(!per_order(&view(&n), Order(3), 100, 93, NONE));
}

/// `spec: 1.5`
#[test]
fn modern_check_wants_one_block() {
    let n = blocks(&[200]);
    assert!(block_exists(&view(&n), Order(0), 100, 0, NONE));
    assert!(!block_exists(&view(&n), Order(1), 100, 0, NONE), "no block");
    let n = blocks(&[200, 0, 0, 1]);
    assert!(
        block_exists(&view(&n), Order(3), 100, 0, NONE),
        "one is enough"
    );
    assert!(!block_exists(&view(&n), Order(4), 100, 0, NONE));
    // u = 2^order - 1: 208 - 7 = 201.
    assert!(block_exists(&view(&n), Order(3), 200, 0, NONE));
    assert!(!block_exists(&view(&n), Order(3), 201, 0, NONE));
    assert!(!block_exists(&view(&n), Order(3), 100, 101, NONE));
}

/// `spec: 1.5`
#[test]
fn modern_rights_lower_the_mark() {
    let at = |free| blocks(&[free]);
    let passes = |free, flags| block_exists(&view(&at(free)), Order(0), 100, 0, flags);
    assert!(!passes(100, HARDER), "NON_BLOCK alone gives nothing");
    assert!(passes(51, HIGH) && !passes(50, HIGH));
    assert!(
        passes(39, HIGH | HARDER) && !passes(38, HIGH | HARDER),
        "100 → 50 → 38"
    );
    assert!(passes(51, AllocFlags::OOM) && !passes(50, AllocFlags::OOM));
    let all = HIGH | HARDER | AllocFlags::OOM;
    assert!(passes(20, all) && !passes(19, all), "38 → 19");
}

/// `spec: 1.5`
#[test]
fn reserves_are_hidden_from_those_without_rights() {
    let n = blocks(&[200]);
    let mut v = view(&n);
    v.hidden = 100;
    assert!(!block_exists(&v, Order(0), 100, 0, NONE));
    for right in [HIGH, HARDER, AllocFlags::HIGHATOMIC, AllocFlags::OOM] {
        assert!(block_exists(&v, Order(0), 100, 0, right), "{right:?}");
    }
    v.hidden = 0;
    v.cma_pages = 100;
    assert!(!block_exists(&v, Order(0), 100, 0, NONE));
    assert!(block_exists(&v, Order(0), 100, 0, AllocFlags::CMA));
}

/// `spec: 1.5`
#[test]
fn high_atomic_and_cma_blocks_count_for_their_users() {
    let n = blocks(&[200]);
    let mut v = view(&n);
    v.highatomic = 1 << 5;
    assert!(!block_exists(&v, Order(3), 10, 0, HIGH | HARDER));
    assert!(block_exists(&v, Order(3), 10, 0, AllocFlags::HIGHATOMIC));
    assert!(block_exists(&v, Order(3), 10, 0, AllocFlags::OOM));
    v.highatomic = 0;
    v.cma = 1 << 5;
    assert!(!block_exists(&v, Order(3), 10, 0, NONE));
    assert!(block_exists(&v, Order(3), 10, 0, AllocFlags::CMA));
}

/// `spec: 4, 4.7`
#[test]
fn high_atomic_limits_of_one_gibibyte() {
    // A block is added as long as the reserve is below the limit.
    let blocks = |rule, managed| {
        let mut reserved = 0;
        while limit(rule, managed, 512).is_some_and(|most| reserved < most) {
            reserved += 512;
        }
        reserved / 512
    };
    assert_eq!(blocks(HighAtomicLimit::PercentPlusBlock, 262_144), 7);
    assert_eq!(
        limit(HighAtomicLimit::PercentRoundedUp, 262_144, 512),
        Some(3072)
    );
    assert_eq!(blocks(HighAtomicLimit::PercentRoundedUp, 262_144), 6);
    // No zone is too small in 6.1; in 6.18 one per cent must be a block.
    assert_eq!(blocks(HighAtomicLimit::PercentPlusBlock, 4096), 2);
    assert_eq!(blocks(HighAtomicLimit::PercentRoundedUp, 51_199), 0);
    assert_eq!(blocks(HighAtomicLimit::PercentRoundedUp, 51_200), 1);
}

/// `spec: 1.3`
#[test]
fn boost_grows_by_a_block_up_to_its_share_of_high() {
    let mut sysctl = Sysctl::default();
    let marks = |high| Marks {
        high,
        ..Marks::default()
    };
    let mut m = marks(1548);
    for want in [512, 1024, 1536, 2048, 2322, 2322] {
        assert!(m.raise_boost(262_144, 512, &sysctl));
        assert_eq!(m.boost, want, "150 % of 1548 is 2322");
    }
    assert_eq!(m.of(AllocFlags::WMARK_HIGH), 1548 + 2322);
    let mut m = marks(100);
    assert!(m.raise_boost(262_144, 512, &sysctl));
    assert_eq!(m.boost, 512, "150 is raised to one block");
    assert!(
        !marks(100).raise_boost(2047, 512, &sysctl),
        "too small a zone"
    );
    assert!(marks(100).raise_boost(2048, 512, &sysctl));
    assert!(!marks(0).raise_boost(262_144, 512, &sysctl));
    sysctl.watermark_boost_factor = 0;
    assert!(!marks(1548).raise_boost(262_144, 512, &sysctl));
}

/// `spec: 1.3`
#[test]
fn integer_root_rounds_down() {
    assert_eq!(
        [0, 15, 16, 17, 24, 25].map(watermark::isqrt),
        [0, 3, 4, 4, 4, 5]
    );
}
