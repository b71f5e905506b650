//! `backoff`: what remains in each block cannot be moved, so compaction ahead of demand gains nothing. `spec: 8.4`

use super::super::metric::Metrics;
use super::numbers::{percent, seconds};
use unfrag_machine::bare::{Bare, Holes, Kept};
use unfrag_machine::{Nanos, Rng};

/// Time that the machine is watched for.
const WATCHED: Nanos = 600_000_000_000;
/// It is watched from this time on: the first attempts lie before it.
const SETTLED: Nanos = 120_000_000_000;
const STEP: Nanos = 100_000_000;

pub(super) fn run(bare: &mut Bare, seed: u64, progress: &mut dyn FnMut(u64)) -> Metrics {
    let mut rng = Rng::named(seed, "holes");
    bare.fragment(Holes::First, Kept::Unmovable, &mut rng, |part| {
        progress(part / 2);
    });
    let begun = bare.now();
    while bare.now() < begun + SETTLED {
        bare.pass(STEP);
    }
    let from = bare.now();
    let (before, looks) = (bare.kcompactd_spent().cpu(), bare.looks());
    while bare.now() < from + WATCHED {
        bare.pass(STEP);
        progress(500 + (bare.now() - from) * 500 / WATCHED);
    }
    let watched = bare.now() - from;
    let busy = bare.kcompactd_spent().cpu() - before;
    let attempts: Vec<_> = bare.attempts().iter().filter(|a| a.began >= from).collect();
    let mut m = Metrics::new();
    m.insert("attempts".into(), attempts.len() as f64);
    if let [first, .., last] = attempts[..] {
        let interval = (last.began - first.began) / (attempts.len() as u64 - 1);
        m.insert("attempt_interval_s".into(), seconds(interval));
    }
    m.insert("cpu_percent".into(), percent(busy, watched));
    m.insert("frames_looked_at".into(), (bare.looks() - looks) as f64);
    m.insert("score".into(), bare.score() as f64);
    m
}
