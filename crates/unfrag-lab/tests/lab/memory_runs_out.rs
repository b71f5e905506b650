//! What a replay's requests get when memory runs out and the model knows of nothing that could be reclaimed.

use crate::recording_support::machine::{FIRST, PAGES, empty, memory, op, sim};
use unfrag_eras::{Gfp, ZoneId};
use unfrag_lab::replay::causes::{Action, Causes, Op, RecordedReclaim};
use unfrag_lab::replay::model::Sim;
use unfrag_lab::replay::model::reclaim::Effort;

const EFFORT: Effort = Effort {
    pace: 1000,
    spares: 0,
    kswapd: false,
};

const PAGE: Gfp = Gfp::HIGHUSER_MOVABLE.union(Gfp::ZERO);

fn on(s: &mut Sim, cpu: u16, action: Action) {
    let op = Op { cpu, ..op(action) };
    s.apply(&op, &Causes::default());
}

fn failures(s: &Sim) -> u64 {
    s.tally.failures.values().sum()
}

/// Fills memory on CPU 0 with pages asked for by these flags, until a request fails; the pages that were taken.
fn fill(s: &mut Sim, gfp: Gfp) -> u32 {
    let mut taken = 0;
    while failures(s) == 0 && taken < PAGES {
        on(s, 0, Action::alloc(FIRST + taken, 0, gfp));
        taken += 1;
    }
    taken - 1
}

/// A kernel empties the lists of all CPUs before a request fails that has reclaimed; a request that may not reclaim gets
/// nothing of them.
#[test]
fn pages_that_another_cpu_holds_serve_a_request_before_it_fails() {
    for (gfp, served) in [
        (PAGE, true),
        (Gfp::KERNEL, true),
        (PAGE.difference(Gfp::DIRECT_RECLAIM), false),
    ] {
        let start = empty();
        let mut memory = memory(&start);
        let mut s = sim(&start, &mut memory);
        let reclaim = RecordedReclaim::default();
        s.enable_reclaim(&reclaim, EFFORT);
        let taken = fill(&mut s, gfp);
        let before = failures(&s);
        let held = 60;
        for pfn in FIRST..FIRST + held {
            on(&mut s, 1, Action::free(pfn, 0));
        }
        assert!(s.manager.inspect().pcp_pages(ZoneId(0)) >= u64::from(held));
        on(&mut s, 0, Action::alloc(FIRST + taken, 0, gfp));
        assert_eq!(failures(&s) == before, served, "{gfp:?}");
        s.manager.inspect().validate().expect("sound structures");
    }
}
