//! What can be reclaimed beside what the recorded kernel reclaimed. `spec: 7.6`

use crate::recording_support::machine::{FIRST, PAGES, empty, memory, op, sim};
use crate::recording_support::synthetic::{Maker, USER_PAGE};
use unfrag_eras::Gfp;
use unfrag_lab::era::Era;
use unfrag_lab::replay::causes::{Action, Causes, RecordedReclaim, causes};
use unfrag_lab::replay::model::reclaim::Effort;
use unfrag_linux::recording::Recording;

/// Adds a frame to the page cache.
fn cached(m: &mut Maker, pfn: u64) {
    m.alloc(pfn, 0, USER_PAGE);
    let fields = [
        ("pfn", pfn),
        ("i_ino", 7),
        ("s_dev", 1),
        ("index", pfn),
        ("order", 0),
    ];
    m.event("mm_filemap_add_to_page_cache", &fields);
}

/// The number of the operation that allocates a frame.
fn allocation(causes: &Causes, pfn: u32) -> usize {
    let ops = causes.ops.to_vec().unwrap();
    let of = |o: &unfrag_lab::replay::causes::Op| o.allocated().is_some_and(|(b, _)| b.pfn == pfn);
    ops.iter().position(of).expect("an allocation")
}

/// An old page of the page cache, an anonymous one, a hundred younger ones of the page cache, of which kswapd takes so
/// many, and a young one.
fn recording(taken: u64) -> Recording {
    let mut m = Maker::default();
    m.task("task");
    cached(&mut m, 10);
    m.alloc(11, 0, USER_PAGE);
    for pfn in 100..200 {
        cached(&mut m, pfn);
    }
    m.wait(1_000_000).task("kswapd0");
    for pfn in 100..100 + taken {
        m.free(pfn, 0);
    }
    m.wait(1_000_000).task("task");
    cached(&mut m, 12);
    m.wait(1_000_000).alloc(13, 0, USER_PAGE);
    m.rec
}

#[test]
fn page_cache_that_reclaim_passed_over_is_in_use_and_other_page_cache_is_not() {
    for (taken, passed_over) in [(0, false), (63, false), (64, true), (100, true)] {
        let rec = recording(taken);
        let found = causes(&rec, Era::of("6.1.0").unwrap(), 4096, 0, u64::MAX, None).unwrap();
        let reclaim = RecordedReclaim::of(&rec, &found).unwrap();
        assert_eq!(reclaim.pages, taken);
        let known = |pfn| {
            let at = allocation(&found, pfn);
            (reclaim.cache.cached.get(at), reclaim.cache.touched.get(at))
        };
        assert_eq!(
            known(10),
            (true, passed_over),
            "{taken} taken: the old page"
        );
        assert!(!known(11).0, "{taken} taken: an anonymous page");
        assert_eq!(known(12), (true, false), "{taken} taken: the young page");
        assert_eq!(reclaim.cache.passed_start.is_some(), passed_over);
    }
}

#[test]
fn frames_in_use_since_the_start_are_known_as_page_cache_when_they_leave_it() {
    let mut m = Maker::default();
    m.task("task");
    let delete = [
        ("pfn", 20),
        ("i_ino", 7),
        ("s_dev", 1),
        ("index", 0),
        ("order", 0),
    ];
    m.event("mm_filemap_delete_from_page_cache", &delete);
    m.free(20, 0).free(21, 0);
    cached(&mut m, 30);
    let found = causes(&m.rec, Era::of("6.1.0").unwrap(), 4096, 0, u64::MAX, None).unwrap();
    let reclaim = RecordedReclaim::of(&m.rec, &found).unwrap();
    assert_eq!(reclaim.cache.at_start, [20]);
}

/// Allocations of single pages, half as many again as there are, with a mask.
fn fill(gfp: Gfp) -> (u64, u64) {
    let start = empty();
    let mut memory = memory(&start);
    let mut sim = sim(&start, &mut memory);
    let evidence = RecordedReclaim::default();
    let effort = Effort {
        pace: 1000,
        spares: 2,
        kswapd: true,
    };
    sim.enable_reclaim(&evidence, effort);
    let causes = Causes::default();
    for pfn in 0..FIRST + PAGES {
        sim.apply(&op(Action::alloc(pfn, 0, gfp)), &causes);
    }
    (sim.tally.failures.values().sum(), sim.waits().requests)
}

#[test]
fn page_cache_is_reclaimed_although_the_recorded_kernel_reclaimed_nothing() {
    assert_eq!(fill(Gfp::HIGHUSER_MOVABLE | Gfp::WRITE), (0, 0));
}

#[test]
fn where_nothing_can_be_reclaimed_requests_would_wait_and_fail() {
    let (failed, waited) = fill(Gfp::HIGHUSER_MOVABLE);
    assert!(failed >= u64::from(FIRST), "{failed} failed");
    assert_eq!(waited, failed);
}
