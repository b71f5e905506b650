//! Requests against zones made by hand.

use super::*;
use unfrag_eras::kernel::MarkCheck;
use unfrag_eras::{Gfp, ZoneKind, preset};

fn rules(era: &str) -> unfrag_eras::Rules {
    preset(era).unwrap().rules
}

fn atomic(order: u8) -> Request {
    Request::atomic(order, &rules("6.1"))
}

fn zone(free: &[u64]) -> ZoneView {
    ZoneView::new(ZoneKind::Normal, free.to_vec())
}

/// `spec: 1.6`
#[test]
fn zones_by_flags() {
    assert!(may_use(ZoneKind::Dma, Gfp::ATOMIC_MASK));
    assert!(may_use(ZoneKind::Normal, Gfp::KERNEL));
    assert!(!may_use(ZoneKind::HighMem, Gfp::KERNEL));
    assert!(may_use(ZoneKind::HighMem, Gfp::HIGHUSER));
    assert!(!may_use(ZoneKind::Movable, Gfp::HIGHUSER));
    assert!(may_use(ZoneKind::Movable, Gfp::HIGHUSER_MOVABLE));
    assert!(!may_use(ZoneKind::Normal, Gfp::KERNEL | Gfp::DMA32));
}

#[test]
fn protection_is_that_of_the_highest_zone_of_the_request() {
    let numbers = [0, 2962, 15993, 15993, 15993];
    let zones = ["DMA", "DMA32", "Normal", "Movable", "Device"];
    assert_eq!(kept(&numbers, &zones, Gfp::KERNEL), 15993);
    assert_eq!(kept(&numbers, &zones, Gfp::KERNEL | Gfp::DMA32), 2962);
    assert_eq!(
        kept(&[0, 873, 12176], &["DMA", "Normal", "HighMem"], Gfp::KERNEL),
        873
    );
    assert_eq!(
        kept(
            &[0, 873, 12176],
            &["DMA", "Normal", "HighMem"],
            Gfp::HIGHUSER
        ),
        12176
    );
    assert_eq!(kept(&[], &["Normal"], Gfp::KERNEL), 0);
}

#[test]
fn contiguous_areas_are_for_movable_requests() {
    let mut z = zone(&[100, 0, 0, 12]);
    (z.cma_by_order, z.cma_pages) = (Some(vec![0, 0, 0, 12]), 96);
    assert_eq!(largest_order(&z, &atomic(3)), Some(0));
    assert_eq!(pages(&z, &atomic(3)), 100);
    assert_eq!(in_a_row(&z, &atomic(3), MarkCheck::BlockExists, 100), 0);
    let movable = Request::new(3, Gfp::HIGHUSER_MOVABLE, &rules("6.1"));
    assert_eq!(in_a_row(&z, &movable, MarkCheck::BlockExists, 100), 12);
    assert_eq!(pages(&z, &movable), 196);
}

#[test]
fn the_sum_of_contiguous_areas_alone_gives_a_range() {
    let mut z = zone(&[96, 0, 0, 12]);
    (z.cma_by_order, z.cma_pages) = (None, 96);
    let room = room(&z, &atomic(3), MarkCheck::BlockExists, 100);
    assert_eq!((room.at_least, room.at_most), (0, 12));
}

/// `spec: 4.7`
#[test]
fn the_atomic_reserve_is_for_atomic_requests_of_several_pages() {
    let mut z = zone(&[0, 0, 0, 4]);
    (z.highatomic_by_order, z.highatomic_pages) = (vec![0, 0, 0, 4], 32);
    assert_eq!(in_a_row(&z, &atomic(3), MarkCheck::BlockExists, 100), 4);
    let kernel = Request::new(3, Gfp::KERNEL, &rules("6.1"));
    assert!(!serves(&z, &kernel, MarkCheck::BlockExists));
    assert_eq!(blocks(&z, &atomic(0)), [0, 0, 0, 0]);
}

/// Free lists and their types are read one after the other, and may not agree.
#[test]
fn more_blocks_set_aside_than_are_free_are_no_blocks() {
    let mut z = zone(&[0, 0, 0, 4]);
    (z.highatomic_by_order, z.highatomic_pages) = (vec![0, 0, 0, 9, 7], 32);
    assert_eq!(in_a_row(&z, &atomic(3), MarkCheck::BlockExists, 100), 4);
    z.isolated_by_order = vec![0, 0, 0, 3];
    assert_eq!(in_a_row(&z, &atomic(3), MarkCheck::BlockExists, 100), 1);
    let mut z = zone(&[0, 0, 0, 4]);
    (z.cma_by_order, z.cma_pages) = (Some(vec![0, 0, 0, 0, 6]), 96);
    let movable = Request::new(3, Gfp::HIGHUSER_MOVABLE, &rules("6.1"));
    assert_eq!(in_a_row(&z, &movable, MarkCheck::BlockExists, 100), 4);
    z.cma_by_order = Some(vec![u64::MAX; 5]);
    z.isolated_by_order = vec![u64::MAX; 5];
    assert_eq!(in_a_row(&z, &movable, MarkCheck::BlockExists, 100), 0);
    assert_eq!(in_a_row(&z, &atomic(3), MarkCheck::BlockExists, 100), 0);
}

#[test]
fn isolated_blocks_are_nobody_s() {
    let mut z = zone(&[50, 0, 0, 4]);
    (z.isolated_by_order, z.free_pages) = (vec![0, 0, 0, 4], 50);
    assert!(!serves(&z, &atomic(3), MarkCheck::BlockExists));
}

#[test]
fn high_memory_is_not_the_kernel_s() {
    let mut z = zone(&[0, 0, 0, 900]);
    z.kind = ZoneKind::HighMem;
    assert_eq!(in_a_row(&z, &atomic(3), MarkCheck::PerOrder, 1000), 0);
    assert_eq!(
        (pages(&z, &atomic(3)), largest_order(&z, &atomic(3))),
        (0, None)
    );
}

/// `spec: 1.5`
#[test]
fn the_old_check_halves_the_mark_with_each_order() {
    let mut z = zone(&[40, 20, 0, 15]);
    z.min = 100;
    let kernel = Request::new(3, Gfp::KERNEL, &rules("2.6.36"));
    assert!(serves(&z, &kernel, MarkCheck::PerOrder));
    z.min = 193;
    assert!(!passes(&z, &kernel, MarkCheck::PerOrder));
    // Contiguous areas are taken off in the first comparison alone: 193 - 20 > 100, 193 - 95 is not.
    z.min = 100;
    z.cma_pages = 20;
    assert!(passes(&z, &kernel, MarkCheck::PerOrder));
    z.cma_pages = 95;
    assert!(!passes(&z, &kernel, MarkCheck::PerOrder));
}

#[test]
fn any_number_of_orders() {
    let mut free = vec![0; 21];
    free[20] = 1;
    assert_eq!(largest_order(&zone(&free), &atomic(4)), Some(20));
    assert_eq!(
        in_a_row(&zone(&free), &atomic(4), MarkCheck::BlockExists, 1000),
        1000
    );
    assert_eq!(
        in_a_row(&zone(&[1; 9]), &atomic(4), MarkCheck::PerOrder, 1000),
        31
    );
}
