//! `java-heap`: a heap of 700 of 1,024 parts of memory is touched, page by page, in one thread. `spec: 8.4`

use super::super::metric::Metrics;
use super::numbers::{percent, seconds};
use unfrag_eras::{Gfp, Order};
use unfrag_machine::bare::{Bare, Holes, Kept};
use unfrag_machine::{Nanos, Rng};

const SETTLE: Nanos = 600_000_000_000;

/// Time of the program for each page of 4 KiB that it touches: one access that misses the caches. Assumed.
const TOUCH: Nanos = 50;

/// A fault for a huge page in an area that asked for them. `spec: 5.6`
const FAULT: Gfp = Gfp::HIGHUSER_MOVABLE
    .union(Gfp::COMP)
    .union(Gfp::NOMEMALLOC)
    .union(Gfp::NOWARN);

pub(super) fn run(
    bare: &mut Bare,
    frames: u64,
    holes: Holes,
    seed: u64,
    progress: &mut dyn FnMut(u64),
) -> Metrics {
    let mut rng = Rng::named(seed, "holes");
    bare.fragment(holes, Kept::Movable, &mut rng, |part| progress(part / 4));
    bare.settle(SETTLE);
    let begun = bare.now();
    let (attempts, daemon) = (bare.attempts().len(), bare.kcompactd_spent().cpu());
    let moved = bare.moved();
    let huge = u64::from(Order::HUGE.frames());
    let wanted = frames * 700 / 1024 / huge;
    let (mut system, mut touched, mut got) = (0, 0, 0);
    let mut scores = vec![bare.score()];
    for nth in 0..wanted {
        let before = bare.now();
        let block = [FAULT | Gfp::THISNODE | Gfp::NORETRY, FAULT]
            .into_iter()
            .find_map(|gfp| bare.request(Order::HUGE, gfp).block);
        if let Some(head) = block {
            bare.own(head);
            bare.zero_fault(Order::HUGE);
            got += 1;
            touched += huge;
        } else {
            touched += fall_back(bare, huge);
        }
        system += bare.now() - before;
        bare.pass(TOUCH * huge);
        if nth % 256 == 0 {
            scores.push(bare.score());
            progress(300 + nth * 700 / wanted);
        }
    }
    let elapsed = bare.now() - begun;
    let during = &bare.attempts()[attempts..];
    let mut m = Metrics::new();
    m.insert("user_s".into(), seconds(touched * TOUCH));
    m.insert("system_s".into(), seconds(system));
    m.insert("elapsed_s".into(), seconds(elapsed));
    m.insert("huge_percent".into(), percent(got * huge, touched));
    m.insert("compactions".into(), during.len() as f64);
    if let (Some(low), Some(high)) = (
        during.iter().map(|a| a.score_after).min(),
        during.iter().map(|a| a.score_before).max(),
    ) {
        m.insert("score_low".into(), low as f64);
        m.insert("score_high".into(), high as f64);
    }
    let moved = bare.moved() - moved;
    m.insert("copies_per_block".into(), moved as f64 / got.max(1) as f64);
    let busy = bare.kcompactd_spent().cpu() - daemon;
    m.insert("cpu_percent".into(), percent(busy, elapsed));
    m
}

/// Faults for the single pages in place of a huge one. Returns how many there were.
fn fall_back(bare: &mut Bare, pages: u64) -> u64 {
    let mut touched = 0;
    for _ in 0..pages {
        let Some(pfn) = bare.request(Order::ZERO, Gfp::HIGHUSER_MOVABLE).block else {
            break;
        };
        bare.own(pfn);
        bare.zero_fault(Order::ZERO);
        touched += 1;
    }
    touched
}
