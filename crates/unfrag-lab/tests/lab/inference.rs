//! Allocations without an event, inferred under the recorded kernel's rules. `spec: 10`

use crate::recording_support::machine::{FIRST, PAGES, memory, movable, op, settle, sim, start};
use crate::recording_support::synthetic::PAGE_DIRECTORY;
use unfrag_eras::{Gfp, MigrateType};
use unfrag_lab::replay::causes::{Action, Causes, Op};
use unfrag_lab::replay::model::{Inferred, Sim, infer};
use unfrag_lab::replay::start::{FreeBlock, Start};

const KERNEL: Gfp = Gfp::KERNEL;
const USER: Gfp = Gfp::HIGHUSER_MOVABLE;

/// Unmovable single pages that wait on the list of CPU 0, from its head.
fn waiting(pages: &[u32]) -> Start {
    let mut s = start(2);
    let mt = MigrateType::Unmovable;
    let block = |p: &u32| FreeBlock {
        pfn: FIRST + p,
        order: 0,
        mt,
    };
    s.block_types = vec![(FIRST, mt)];
    s.sets[0].lists = vec![(mt as usize, pages.iter().map(block).collect())];
    s.free = vec![movable(FIRST + 1024, 10), movable(FIRST + 2048, 10)];
    settle(&mut s);
    s
}

fn alloc(page: u32, gfp: Gfp) -> Op {
    op(Action::alloc(FIRST + page, 0, gfp))
}

fn free_unseen(page: u32) -> Op {
    op(Action::free_unseen(FIRST + page, 0))
}

fn run(start: &Start, ops: &[Op]) -> (Causes, Inferred, bool) {
    let mut causes = Causes {
        ops: ops.iter().copied().collect(),
        first: vec![0; (FIRST + PAGES) as usize],
        ..Causes::default()
    };
    let (mut first, mut second) = (memory(start), memory(start));
    let mut s = sim_of_recorded(start, &mut first);
    let found = infer(&mut causes, &mut s).unwrap();
    s.manager.inspect().validate().unwrap();
    // The rewritten operations put each block where the kernel put it.
    let mut s = sim_of_recorded(start, &mut second);
    rewritten(&causes).iter().for_each(|o| s.apply(o, &causes));
    let exact = s.tally.on_same_frame == s.tally.allocated;
    (causes, found, exact)
}

fn rewritten(causes: &Causes) -> Vec<Op> {
    causes.ops.to_vec().unwrap()
}

fn sim_of_recorded<'m>(start: &Start, memory: &'m mut [u64]) -> Sim<'m> {
    let mut s = sim(start, memory);
    s.recorded_era = true;
    s
}

#[test]
fn what_the_rules_predict_needs_no_inference() {
    let start = waiting(&[10, 11, 12, 13, 14]);
    let (causes, found, exact) = run(&start, &[alloc(10, KERNEL), alloc(11, KERNEL)]);
    assert_eq!((found, exact), (Inferred::default(), true));
    assert_eq!(causes.ops.len(), 2);
}

#[test]
fn rule_1_four_places_from_the_head_a_stack_was_taken_before() {
    let start = waiting(&[10, 11, 12, 13, 14, 15]);
    let mut ops = vec![alloc(14, KERNEL)];
    // Their next event is a free.
    ops.extend([10, 11, 12, 13].map(free_unseen));
    let (causes, found, exact) = run(&start, &ops);
    assert_eq!((found.stacks, found.unresolved, exact), (1, 0, true));
    assert_eq!(causes.stacks, [[10, 11, 12, 13].map(|p| FIRST + p)]);
    assert_eq!(rewritten(&causes)[0].action, Action::stack(0));
}

#[test]
fn rule_1_two_stacks_at_once() {
    let start = waiting(&[10, 11, 12, 13, 20, 21, 22, 23, 30]);
    let (causes, found, exact) = run(&start, &[alloc(30, KERNEL)]);
    assert_eq!((found.stacks, exact), (2, true));
    assert_eq!(causes.stacks[1], [20, 21, 22, 23].map(|p| FIRST + p));
}

#[test]
fn rule_1_no_stack_holds_a_frame_that_is_allocated_next() {
    let start = waiting(&[10, 11, 12, 13, 14, 15]);
    let (causes, found, _) = run(&start, &[alloc(14, KERNEL), alloc(12, KERNEL)]);
    assert_eq!((found.stacks, causes.stacks.len()), (0, 0));
    assert!(found.unresolved > 0);
}

#[test]
fn rule_1_three_places_are_no_stack() {
    let start = waiting(&[10, 11, 12, 13, 14]);
    let (_, found, _) = run(&start, &[alloc(13, KERNEL)]);
    assert_eq!((found.stacks, found.unresolved), (0, 1));
}

#[test]
fn rule_1_a_page_directory_follows_the_stack_of_its_process() {
    let mut start = waiting(&[10, 11, 12, 13, 14]);
    let mt = MigrateType::Unmovable;
    let pair = |p| FreeBlock {
        pfn: FIRST + p,
        order: 1,
        mt,
    };
    // The pair at the head went to the directory before; the stack left no event.
    start.sets[0]
        .lists
        .push((3 + mt as usize, vec![pair(40), pair(42)]));
    settle(&mut start);
    let directory = Gfp::from_bits_retain(PAGE_DIRECTORY as u32);
    let ops = [op(Action::alloc(FIRST + 42, 1, directory)), free_unseen(10)];
    let (causes, found, _) = run(&start, &ops);
    assert_eq!(found.stacks, 1);
    assert_eq!(rewritten(&causes)[0].action, Action::stack(0));
}

/// Room for refills of two CPUs, of a batch of 8 each.
fn refills() -> Start {
    let mut start = start(2);
    start.free = vec![movable(FIRST + 512, 9)];
    settle(&mut start);
    start
}

/// An allocation of a page of a program on a CPU.
fn on(cpu: u16, page: u32) -> Op {
    Op {
        cpu,
        ..alloc(page, USER)
    }
}

#[test]
fn rule_2_the_other_cpu_refilled_its_list_first() {
    let start = refills();
    let (causes, found, exact) = run(&start, &[on(0, 520), on(1, 512), on(0, 521), on(1, 513)]);
    assert_eq!((found.reordered, found.unresolved, exact), (1, 0, true));
    let page = |op: &Op| op.allocated().unwrap().0.pfn - FIRST;
    let order: Vec<_> = rewritten(&causes)
        .iter()
        .map(|o| (o.cpu, page(o)))
        .collect();
    assert_eq!(order, [(1, 512), (0, 520), (0, 521), (1, 513)]);
    assert_eq!(rewritten(&causes)[0].time, rewritten(&causes)[1].time);
}

/// The host had the frame in use, by whatever left no event that the model could follow.
#[test]
fn rule_2_no_allocation_goes_before_the_free_of_its_frame() {
    let start = refills();
    let free = op(Action::free(FIRST + 512, 0));
    let recorded = [on(0, 520), free, on(1, 512)];
    let (causes, found, _) = run(&start, &recorded);
    assert_eq!(found.reordered, 0);
    assert_eq!(rewritten(&causes), recorded);
}
