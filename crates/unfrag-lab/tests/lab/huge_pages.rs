//! Huge pages that one of the two hosts of a replay has and the other has not: none is lost, and none is given back before
//! its task gives it back.

use crate::recording_support::machine::{
    FIRST, HUGE, MOVABLE, PAGES, checkered, empty, memory, op, sim, unused,
};
use unfrag_eras::{Gfp, Order, Pfn};
use unfrag_lab::replay::causes::{Action, Causes, Op};
use unfrag_lab::replay::model::{Sim, Touches};

const ALL: u64 = PAGES as u64;
const HUGE_PAGES: u64 = 512;

/// Frames of the recorded host.
const THERE: u32 = FIRST + 5120;

/// Tasks.
const TASK: u32 = 7;
const OTHER: u32 = 8;
const KHUGEPAGED: u32 = 3;

fn causes() -> Causes {
    let mut collapsing = vec![false; 10];
    collapsing[KHUGEPAGED as usize] = true;
    Causes {
        collapsing,
        ..Causes::default()
    }
}

fn of(task: u32, action: Action) -> Op {
    Op { task, ..op(action) }
}

fn failed(gfp: Gfp) -> Action {
    let gfp = gfp.into();
    Action::AllocFailed { order: 9, gfp }
}

fn apply(s: &mut Sim, task: u32, action: Action) {
    s.apply(&of(task, action), &causes());
}

fn small(s: &mut Sim, task: u32, pfn: u32) {
    apply(s, task, Action::alloc(pfn, 0, MOVABLE));
}

fn free(s: &mut Sim, task: u32, pfn: u32, order: u8) {
    apply(s, task, Action::free(pfn, order));
}

/// The order of the block in use that begins at a frame of the model.
fn order_at(s: &Sim, at: u32) -> Option<Order> {
    s.manager.inspect().frame(Pfn(at.into())).map(|f| f.order)
}

#[test]
fn a_gained_huge_page_is_given_back_with_the_last_small_page_that_it_stands_for() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    // A task that touches one page of each huge page.
    for i in 0..5 {
        apply(&mut s, TASK, failed(HUGE));
        small(&mut s, TASK, THERE + i);
        assert_eq!(unused(&s), ALL - u64::from(i + 1) * HUGE_PAGES);
    }
    for i in 0..5 {
        free(&mut s, TASK, THERE + i, 0);
        assert_eq!(unused(&s), ALL - u64::from(4 - i) * HUGE_PAGES);
    }
    assert_eq!((s.tally.huge_instead, s.tally.dropped_frees), (5, 0));
    s.free_huge_pieces();
    assert_eq!(unused(&s), ALL);
}

#[test]
fn a_gained_huge_page_is_one_block_that_compaction_leaves_where_it_is() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    apply(&mut s, TASK, failed(HUGE));
    for i in 0..300 {
        small(&mut s, TASK, THERE + i);
    }
    let at = s.model_frame(THERE).unwrap();
    assert_eq!(order_at(&s, at), Some(Order(9)));
    assert!((0..300).all(|i| s.model_frame(THERE + i) == Some(at + i)));
    // It stays whole while a part of it is in use, as the kernel's would.
    for i in 1..300 {
        free(&mut s, TASK, THERE + i, 0);
    }
    assert_eq!(order_at(&s, at), Some(Order(9)));
    // A migration of the small page on the recorded host renames its piece.
    let (pfn, to) = (THERE.into(), (THERE + 1000).into());
    let order = 0;
    apply(&mut s, TASK, Action::Moved { order, pfn, to });
    assert_eq!(s.model_frame(THERE + 1000), Some(at));
    free(&mut s, TASK, THERE + 1000, 0);
    assert_eq!(unused(&s), ALL);
}

#[test]
fn a_gained_huge_page_serves_blocks_of_several_orders_of_its_own_task_alone() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    apply(&mut s, TASK, failed(HUGE));
    small(&mut s, TASK, THERE);
    let at = s.model_frame(THERE).unwrap();
    apply(
        &mut s,
        TASK,
        Action::alloc(THERE + 16, 4, MOVABLE | Gfp::COMP),
    );
    assert_eq!(s.model_frame(THERE + 16), Some(at + 16));
    small(&mut s, OTHER, THERE + 1);
    assert!(s.model_frame(THERE + 1).is_some_and(|p| p & !511 != at));
    // What does not fit comes from free memory, and what is no small page of a process.
    apply(
        &mut s,
        TASK,
        Action::alloc(THERE + 256, 8, MOVABLE | Gfp::COMP),
    );
    apply(
        &mut s,
        TASK,
        Action::alloc(THERE + 512, 8, MOVABLE | Gfp::COMP),
    );
    apply(&mut s, TASK, Action::alloc(THERE + 2, 0, Gfp::KERNEL));
    assert_eq!(s.model_frame(THERE + 256), Some(at + 256));
    assert_eq!(unused(&s), ALL - HUGE_PAGES - 256 - 2);
    for (pfn, order) in [(0, 0), (16, 4), (1, 0), (256, 8), (512, 8), (2, 0)] {
        free(&mut s, TASK, THERE + pfn, order);
    }
    assert_eq!((unused(&s), s.tally.dropped_frees), (ALL, 0));
}

#[test]
fn a_gained_huge_page_that_nobody_touched_ends_with_the_next_fault() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    for _ in 0..9 {
        apply(&mut s, TASK, failed(HUGE | Gfp::THISNODE));
        apply(&mut s, TASK, failed(HUGE));
        assert_eq!(unused(&s), ALL - HUGE_PAGES);
    }
    s.free_huge_pieces();
    assert_eq!(unused(&s), ALL);
}

#[test]
fn a_gained_huge_page_ends_when_the_recorded_reclaim_takes_all_that_it_stands_for() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    apply(&mut s, TASK, failed(HUGE));
    small(&mut s, TASK, THERE);
    small(&mut s, TASK, THERE + 1);
    free(&mut s, TASK, THERE, 0);
    apply(&mut s, OTHER, Action::free_reclaimed(THERE + 1, 0));
    assert_eq!(unused(&s), ALL);
}

/// What a recording shows that a task takes after a fault that got no huge page, and how many pages another host's refusal
/// costs it then.
#[test]
fn a_lost_huge_page_takes_as_many_small_pages_as_the_trace_shows_after_one() {
    let fault = |task| of(task, failed(HUGE));
    let first_try = |task| of(task, failed(HUGE | Gfp::THISNODE));
    let page = |task| of(task, Action::alloc(THERE, 0, MOVABLE));
    let several = |task, order| of(task, Action::alloc(THERE, order, MOVABLE));
    let other = |task| of(task, Action::alloc(THERE, 0, Gfp::KERNEL));
    let huge = |task| of(task, Action::alloc(THERE, 9, HUGE));
    for (what, shown, want) in [
        ("no fault that got none", vec![page(TASK)], HUGE_PAGES),
        ("one page", vec![fault(TASK), page(TASK)], 1),
        (
            "two tries of one fault",
            vec![first_try(TASK), fault(TASK), page(TASK)],
            1,
        ),
        (
            "a second try that got one",
            vec![first_try(TASK), huge(TASK), page(TASK)],
            HUGE_PAGES,
        ),
        (
            "pages of the kernel",
            vec![fault(TASK), other(TASK), page(TASK)],
            1,
        ),
        (
            "a larger block",
            vec![fault(TASK), page(TASK), several(TASK, 4)],
            17,
        ),
        (
            "another task's",
            vec![fault(OTHER), page(OTHER), page(OTHER)],
            2,
        ),
        (
            "its own and another task's",
            vec![
                fault(OTHER),
                page(OTHER),
                fault(TASK),
                page(TASK),
                page(TASK),
                page(TASK),
            ],
            3,
        ),
        (
            "pages after the next fault",
            vec![fault(TASK), page(TASK), huge(TASK), page(TASK), page(TASK)],
            1,
        ),
        (
            "khugepaged's",
            vec![fault(KHUGEPAGED), page(KHUGEPAGED)],
            HUGE_PAGES,
        ),
        (
            "more than a huge page",
            vec![
                fault(TASK),
                several(TASK, 8),
                several(TASK, 8),
                several(TASK, 8),
            ],
            HUGE_PAGES,
        ),
    ] {
        let recording = Causes {
            ops: shown.into_iter().collect(),
            ..causes()
        };
        let touches = Touches::of(&recording, Order(9)).expect("readable operations");
        let start = empty();
        let mut memory = memory(&start);
        let mut s = checkered(&start, &mut memory);
        s.know_touches(touches);
        apply(&mut s, TASK, Action::alloc(THERE, 9, HUGE));
        assert_eq!(s.tally.small_instead, 1, "{what}");
        assert_eq!(unused(&s), ALL / 2 - want, "{what}");
        // A part of it is unmapped, and then the rest.
        for i in 256..512 {
            free(&mut s, TASK, THERE + i, 0);
        }
        free(&mut s, TASK, THERE, 8);
        assert_eq!((unused(&s), s.tally.dropped_frees), (ALL / 2, 0), "{what}");
        // What is freed twice is still dropped, and counted.
        free(&mut s, TASK, THERE, 9);
        assert_eq!(s.tally.dropped_frees, HUGE_PAGES, "{what}");
    }
}

#[test]
fn small_pages_stay_that_a_refused_collapse_does_not_copy() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = checkered(&start, &mut memory);
    let taken = 40;
    for i in 0..taken {
        small(&mut s, TASK, FIRST + i);
    }
    let places: Vec<_> = (0..taken).map(|i| s.model_frame(FIRST + i)).collect();
    assert_eq!(unused(&s), ALL / 2 - u64::from(taken));
    apply(&mut s, KHUGEPAGED, Action::alloc(THERE, 9, HUGE));
    // What others free meanwhile is theirs.
    small(&mut s, OTHER, FIRST + 1000);
    free(&mut s, OTHER, FIRST + 1000, 0);
    for i in 0..taken {
        free(&mut s, KHUGEPAGED, FIRST + i, 0);
    }
    assert_eq!(unused(&s), ALL / 2 - u64::from(taken));
    let now: Vec<_> = (0..taken).map(|i| s.model_frame(THERE + i)).collect();
    assert_eq!(places, now);
    free(&mut s, TASK, THERE, 9);
    assert_eq!((unused(&s), s.tally.dropped_frees), (ALL / 2, 0));
}

#[test]
fn a_gained_collapse_is_given_back_at_once() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    apply(&mut s, KHUGEPAGED, failed(HUGE));
    assert_eq!(unused(&s), ALL);
}
