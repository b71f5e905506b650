//! `hugepage-latency`: a driver takes as many huge pages as it can get, at a steady pace. `spec: 8.4`
//!
//! The source does not say how fast its driver asks. As fast as it could, kcompactd could not have kept ahead of it:
//! the source's own numbers are those of a driver that lets it.

use super::super::metric::Metrics;
use super::numbers::{add_percentiles, percent, seconds};
use unfrag_eras::{Gfp, Order};
use unfrag_machine::bare::{Bare, Holes, Kept, Spent};
use unfrag_machine::{Nanos, Rng};

/// Time between two requests.
pub(in super::super) const PACE: Nanos = 1_000_000;

/// Most time for kcompactd before the first request.
const SETTLE: Nanos = 600_000_000_000;

/// `GFP_TRANSHUGE`, as a driver asks.
pub(super) const DRIVER: Gfp = Gfp::HIGHUSER_MOVABLE
    .union(Gfp::COMP)
    .union(Gfp::NOMEMALLOC)
    .union(Gfp::NOWARN)
    .union(Gfp::NORETRY);

/// Requests in a row that must fail before the driver gives up: more than compaction is put off for. `spec: 5.3`
const FAILURES: u32 = 130;

pub(super) fn run(
    bare: &mut Bare,
    holes: Holes,
    seed: u64,
    progress: &mut dyn FnMut(u64),
) -> Metrics {
    let mut rng = Rng::named(seed, "holes");
    bare.fragment(holes, Kept::Movable, &mut rng, |part| progress(part / 4));
    bare.settle(SETTLE);
    progress(300);
    let free = bare.free_frames();
    let (moved, ready) = (bare.moved(), bare.free_huge());
    let fragmented = bare.now();
    let huge = u64::from(Order::HUGE.frames());
    let mut latencies = vec![];
    let (mut all, mut at_once, mut failures) = (Spent::default(), 0, 0);
    while failures < FAILURES {
        let served = bare.request(Order::HUGE, DRIVER);
        if served.block.is_some() {
            failures = 0;
            latencies.push(served.spent.total());
            at_once += u64::from(!served.spent.has_compacted());
            add(&mut all, served.spent);
            let done = latencies.len() as u64 * huge * 700 / free.max(1);
            progress(300 + done);
        } else {
            failures += 1;
        }
        bare.pass(PACE);
    }
    let got = latencies.len() as u64;
    let mut m = Metrics::new();
    add_percentiles(&mut m, &mut latencies);
    m.insert("free_gib".into(), free as f64 / f64::from(1 << 18));
    m.insert("huge_pages".into(), got as f64);
    m.insert("huge_percent".into(), percent(got * huge, free));
    m.insert("huge_pages_ready".into(), ready as f64);
    m.insert("served_without_work_percent".into(), percent(at_once, got));
    let copies = bare.moved() as f64 / got.max(1) as f64;
    m.insert("copies_per_block".into(), copies);
    m.insert("copies_before".into(), moved as f64);
    m.insert("compactions".into(), bare.attempts().len() as f64);
    m.insert("system_s".into(), seconds(all.cpu()));
    m.insert("alloc_percent".into(), percent(all.alloc, all.total()));
    m.insert(
        "scanning_percent".into(),
        percent(all.scanning, all.total()),
    );
    m.insert("copying_percent".into(), percent(all.copying, all.total()));
    m.insert("waiting_percent".into(), percent(all.waiting, all.total()));
    m.insert(
        "kcompactd_cpu_s".into(),
        seconds(bare.kcompactd_spent().cpu()),
    );
    m.insert("elapsed_s".into(), seconds(bare.now() - fragmented));
    m
}

fn add(all: &mut Spent, one: Spent) {
    all.alloc += one.alloc;
    all.scanning += one.scanning;
    all.copying += one.copying;
    all.waiting += one.waiting;
}
