//! The simulation of a replay: allocations and frees where the model's frames are not the recorded ones.

use crate::recording_support::machine::{
    FIRST, HUGE, MOVABLE, PAGES, checkered, empty, memory, op, sim, unused,
};
use unfrag_eras::{Gfp, Pfn, ZoneId};
use unfrag_lab::replay::causes::{Action, Causes, Op};
use unfrag_lab::replay::model::Sim;
use unfrag_lab::replay::start::Start;

/// Pages of the machine.
const ALL: u64 = PAGES as u64;

/// Its only zone.
const ZONE: ZoneId = ZoneId(0);

/// A frame of the recorded host, well away from where the model puts things.
const THERE: u32 = FIRST + 5000;

fn apply(sim: &mut Sim, action: Action) {
    sim.apply(&op(action), &Causes::default());
}

fn alloc(sim: &mut Sim, pfn: u32, order: u8, gfp: Gfp) {
    apply(sim, Action::alloc(pfn, order, gfp));
}

/// An allocation that failed on the recorded host.
fn alloc_failed(sim: &mut Sim, order: u8, gfp: Gfp) {
    let gfp = gfp.into();
    apply(sim, Action::AllocFailed { order, gfp });
}

fn free(sim: &mut Sim, pfn: u32, order: u8) {
    apply(sim, Action::free(pfn, order));
}

/// A migration on the recorded host, for memory of `order`.
fn moved(sim: &mut Sim, order: u8, from: u32, to: u32) {
    let (pfn, to) = (from.into(), to.into());
    apply(sim, Action::Moved { order, pfn, to });
}

#[test]
fn a_recorded_frame_stands_for_one_of_the_model() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    alloc(&mut s, THERE, 0, MOVABLE);
    let at = s.model_frame(THERE).unwrap();
    assert_ne!(at, THERE);
    assert_eq!((s.tally.allocated, s.tally.on_same_frame), (1, 0));
    free(&mut s, THERE, 0);
    assert_eq!(s.model_frame(THERE), None);
    assert_eq!(unused(&s), ALL);
}

#[test]
fn a_part_of_a_larger_block_can_be_freed() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    alloc(&mut s, THERE, 3, MOVABLE);
    free(&mut s, THERE + 3, 0);
    assert_eq!(unused(&s), ALL - 7);
    free(&mut s, THERE + 4, 2);
    assert_eq!(unused(&s), ALL - 3);
    for p in 0..3 {
        free(&mut s, THERE + p, 0);
    }
    assert_eq!(unused(&s), ALL);
    assert_eq!(s.tally.dropped_frees, 0);
}

#[test]
fn several_blocks_can_be_freed_as_one() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    // Adjacent in the model as well.
    for p in 0..4 {
        alloc(&mut s, THERE + p, 0, MOVABLE);
    }
    free(&mut s, THERE, 2);
    assert_eq!(unused(&s), ALL);
    // And not, for others came between.
    for p in 0..4 {
        alloc(&mut s, THERE + p, 0, MOVABLE);
        alloc(&mut s, THERE + 100 + p, 0, MOVABLE);
    }
    free(&mut s, THERE, 2);
    assert_eq!(unused(&s), ALL - 4);
    free(&mut s, THERE + 100, 2);
    assert_eq!(unused(&s), ALL);
    assert_eq!(s.tally.dropped_frees, 0);
}

#[test]
fn a_free_without_an_allocation_is_dropped_and_counted() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    free(&mut s, THERE, 0);
    free(&mut s, THERE, 2);
    assert_eq!((s.tally.dropped_frees, s.tally.freed), (5, 0));
    assert_eq!(unused(&s), ALL);
}

#[test]
fn a_gained_huge_page_serves_the_small_pages() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    // On the local node, then again: one fault.
    alloc_failed(&mut s, 9, HUGE | Gfp::THISNODE);
    alloc_failed(&mut s, 9, HUGE);
    assert_eq!(s.tally.huge_instead, 1);
    assert_eq!(unused(&s), ALL - 512);
    for p in 0..512 {
        alloc(&mut s, THERE + p, 0, MOVABLE);
    }
    assert_eq!(unused(&s), ALL - 512);
    let first = s.model_frame(THERE).unwrap();
    assert_eq!(first % 512, 0);
    assert!((0..512).all(|p| s.model_frame(THERE + p) == Some(first + p)));
    for p in 0..512 {
        free(&mut s, THERE + p, 0);
    }
    assert_eq!(unused(&s), ALL);
}

#[test]
fn another_tasks_small_pages_are_no_pieces() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    alloc_failed(&mut s, 9, HUGE);
    let other = Op {
        task: 8,
        ..op(Action::alloc(THERE, 0, MOVABLE))
    };
    s.apply(&other, &Causes::default());
    assert_eq!(unused(&s), ALL - 513);
    // What nobody took goes back.
    s.free_huge_pieces();
    assert_eq!(unused(&s), ALL - 1);
}

#[test]
fn a_gained_block_is_freed_at_once() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    alloc_failed(&mut s, 4, Gfp::KERNEL);
    assert_eq!(unused(&s), ALL);
    assert!(s.tally.failures.is_empty());
}

#[test]
fn a_lost_huge_page_is_taken_in_small_pages() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = checkered(&start, &mut memory);
    alloc(&mut s, THERE & !511, 9, HUGE);
    assert_eq!(s.tally.small_instead, 1);
    assert_eq!(s.tally.failures[&(9, HUGE)], 1);
    assert_eq!(unused(&s), ALL / 2 - 512);
    // Freed as the huge page that it was there.
    free(&mut s, THERE & !511, 9);
    assert_eq!(unused(&s), ALL / 2);
    assert_eq!(s.tally.dropped_frees, 0);
}

#[test]
fn a_request_that_fails_in_both_is_counted_so() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = checkered(&start, &mut memory);
    alloc_failed(&mut s, 9, HUGE);
    assert_eq!((s.tally.failed_in_both, s.tally.huge_instead), (1, 0));
    assert_eq!(s.tally.failures[&(9, HUGE)], 1);
}

#[test]
fn a_moved_page_is_freed_at_its_new_frame() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    alloc(&mut s, THERE, 0, MOVABLE);
    let at = s.model_frame(THERE);
    moved(&mut s, 0, THERE, THERE + 50);
    assert_eq!(
        (s.model_frame(THERE), s.model_frame(THERE + 50)),
        (None, at)
    );
    free(&mut s, THERE + 50, 0);
    assert_eq!(unused(&s), ALL);
    assert_eq!(s.tally.moved, 1);
}

/// Takes all memory in single pages of these flags, whose names are those of their frames, and frees
/// each second of them.
fn checkered_by_name(s: &mut Sim, gfp: Gfp) {
    for p in FIRST..FIRST + PAGES {
        alloc(s, p, 0, gfp | Gfp::MEMALLOC);
    }
    for p in FIRST..FIRST + PAGES {
        if s.model_frame(p).unwrap() % 2 == 1 {
            free(s, p, 0);
        }
    }
    s.manager.drain_all();
}

/// Moves of the pages in the lowest pageblock of the model, by a task that compacts for `order`, to
/// names that nobody has.
fn move_lowest_block(s: &mut Sim, order: u8) {
    let low = |s: &Sim, p: u32| s.model_frame(p).is_some_and(|at| at < FIRST + 512);
    let names: Vec<u32> = (FIRST..FIRST + PAGES).filter(|&p| low(s, p)).collect();
    assert_eq!(names.len(), 256);
    let vacant = (FIRST..FIRST + PAGES).filter(|&p| s.model_frame(p).is_none());
    let to: Vec<u32> = vacant.take(names.len()).collect();
    for (from, to) in names.into_iter().zip(to) {
        moved(s, order, from, to);
    }
}

/// A machine with compaction as given after those moves.
fn compacted<'m>(start: &Start, memory: &'m mut [u64], gfp: Gfp, order: u8) -> Sim<'m> {
    let mut s = sim(start, memory);
    s.enable_compaction();
    checkered_by_name(&mut s, gfp);
    move_lowest_block(&mut s, order);
    s
}

/// `spec: 5.1`
#[test]
fn compaction_moves_pages_to_the_top_of_the_zone() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = compacted(&start, &mut memory, MOVABLE, 9);
    assert_eq!((s.tally.moved, s.tally.moved_here), (256, 256));
    // 256 free frames at the top, each second one from the end of the zone, are in use now.
    let frame = |p: u32| s.manager.inspect().frame(Pfn(p.into())).unwrap().kind;
    let top = FIRST + PAGES - 512..FIRST + PAGES;
    assert!(
        top.clone()
            .all(|p| frame(p) == unfrag_eras::frame::FrameKind::Used)
    );
    assert_eq!(unused(&s), ALL / 2);
    // The lowest block is empty, and what was freed there is no more on the CPU's list when the task
    // that compacted asks for a huge page.
    alloc(&mut s, THERE & !511, 9, HUGE);
    assert_eq!(s.model_frame(THERE & !511), Some(FIRST));
    assert_eq!(s.tally.small_instead, 0);
}

/// `spec: 3`
#[test]
fn pages_moved_ahead_of_demand_stay_on_the_pcp_list() {
    for (order, waits) in [(0, true), (9, false)] {
        let start = empty();
        let mut memory = memory(&start);
        let mut s = compacted(&start, &mut memory, MOVABLE, order);
        alloc_failed(&mut s, 9, HUGE);
        assert_eq!(
            s.manager.inspect().pcp_pages(ZONE) > 0,
            waits,
            "for order {order}"
        );
    }
}

#[test]
fn unmovable_pages_stay_and_are_counted() {
    let start = empty();
    let mut memory = memory(&start);
    let s = compacted(&start, &mut memory, Gfp::KERNEL, 9);
    assert_eq!((s.tally.moved, s.tally.moved_here), (256, 0));
    assert_eq!(unused(&s), ALL / 2);
}

/// `spec: 10`: four pages in bulk, freed one by one.
#[test]
fn a_kernel_stack_is_four_pages() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    let causes = Causes {
        stacks: vec![[THERE, THERE + 9, THERE + 1, THERE + 30]],
        ..Causes::default()
    };
    s.apply(&op(Action::stack(0)), &causes);
    assert_eq!(unused(&s), ALL - 4);
    for p in causes.stacks[0] {
        apply(&mut s, Action::free_unseen(p, 0));
    }
    assert_eq!(unused(&s), ALL);
}

#[test]
fn pages_that_reclaim_freed_there_are_counted_as_given() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    alloc(&mut s, THERE, 2, MOVABLE);
    apply(&mut s, Action::free_reclaimed(THERE, 2));
    assert_eq!((s.tally.given_pages, s.tally.freed), (4, 1));
    assert_eq!(unused(&s), ALL);
}
