//! `one-time`: all of memory is compacted in one go, as a write to `vm.compact_memory` does. `spec: 8.4`

use super::super::metric::Metrics;
use super::numbers::{percent, seconds};
use unfrag_eras::Order;
use unfrag_machine::Rng;
use unfrag_machine::bare::{Bare, Holes, Kept};

pub(super) fn run(
    bare: &mut Bare,
    holes: Holes,
    seed: u64,
    progress: &mut dyn FnMut(u64),
) -> Metrics {
    let mut rng = Rng::named(seed, "holes");
    bare.fragment(holes, Kept::Movable, &mut rng, |part| progress(part / 2));
    let (begun, moved, had) = (bare.now(), bare.moved(), bare.free_huge());
    let spent = bare.compact_all();
    let (moved, gained) = (bare.moved() - moved, bare.free_huge() - had);
    let mut m = Metrics::new();
    m.insert("elapsed_s".into(), seconds(bare.now() - begun));
    m.insert("system_s".into(), seconds(spent.cpu()));
    let huge = bare.free_huge() * u64::from(Order::HUGE.frames());
    m.insert("huge_percent".into(), percent(huge, bare.free_frames()));
    m.insert(
        "copies_per_block".into(),
        moved as f64 / gained.max(1) as f64,
    );
    m.insert(
        "scanning_percent".into(),
        percent(spent.scanning, spent.total()),
    );
    m.insert(
        "copying_percent".into(),
        percent(spent.copying, spent.total()),
    );
    m.insert("score".into(), bare.score() as f64);
    m
}
