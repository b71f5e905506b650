//! No reader panics, hangs or takes memory without bounds, whatever its input: every fixture and every
//! fuzzing seed, cut off at many lengths and damaged in many places.
//!
//! `UNFRAG_SEED` sets the seed of the damage, `UNFRAG_ROUNDS` the rounds for each input.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::trace_support::dat::{Dat, Entry, Packing};
use crate::trace_support::mutate::{Random, damage, truncations};
use unfrag_linux::recording::Recording;
use unfrag_linux::{Options, read};

/// A limit far above what any of these inputs takes.
const PATIENCE: Duration = Duration::from_secs(10);

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(default)
}

/// Every fixture and fuzzing seed, also unpacked, and files written here, each with its name.
fn inputs() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    let mut folders = vec![
        root.join("tests/trace_fixtures"),
        root.join("../../fuzz/corpus"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let data = std::fs::read(&path).expect("a file of the project can be read");
            let name = path.display().to_string();
            if path.extension().is_some_and(|e| e == "zst") {
                let plain = zstd::decode_all(&data[..]).expect("a fixture can be unpacked");
                all.push((format!("{name}, unpacked"), plain));
            }
            all.push((name, data));
        }
    }
    for big in [false, true] {
        let entries = [
            Entry::Record(3, Dat::alloc(big, 7, 1, 0)),
            Entry::Extend(1 << 30),
            Entry::Long(3, Dat::cache_free(big, 7, 1, "dentry")),
            Entry::Stamp(1 << 50),
            Entry::Discarded(9, 12),
            Entry::Padding,
        ];
        let page = Dat::page(big, 1 << 40, Some(Some(3)), &entries);
        let dat = Dat::new(big, vec![page.clone(), page]);
        all.push((format!("format 6, big-endian {big}"), dat.v6()));
        for packing in [Packing::None, Packing::Zstd, Packing::Zlib] {
            all.push((
                format!("format 7, {packing:?}, big-endian {big}"),
                dat.v7(packing),
            ));
        }
    }
    all.sort();
    all
}

/// Reads `data`, which may be damaged, and checks the result.
fn try_read(data: &[u8], what: &str) {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| read(data, &Options::default())));
    let Ok(result) = result else {
        panic!("a panic on {what}");
    };
    assert!(
        start.elapsed() < PATIENCE,
        "{:?} for {what}",
        start.elapsed()
    );
    match result {
        Ok(recording) => check(&recording, what),
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}

/// The invariants of a recording.
fn check(r: &Recording, what: &str) {
    let e = &r.events;
    let n = e.len();
    assert!(e.time.is_sorted(), "time goes back in {what}");
    let lengths = [
        e.cpu.len(),
        e.task.len(),
        e.flags.len(),
        e.preempt.len(),
        e.kind.len(),
    ];
    assert_eq!(lengths, [n; 5], "{what}");
    let mut rows = vec![0; e.tables.len()];
    for (&k, &task) in e.kind.iter().zip(&e.task) {
        rows[k as usize] += 1;
        assert!((task as usize) < r.tasks.len(), "{what}");
    }
    for (table, rows) in e.tables.iter().zip(rows) {
        assert_eq!(table.fields.len(), table.columns.len(), "{what}");
        assert!(table.columns.iter().all(|c| c.len() == rows), "{what}");
    }
    assert!(
        r.meta.lost.iter().all(|l| l.before_event <= n as u64),
        "{what}"
    );
}

#[test]
fn inputs_cut_off_anywhere_are_errors_or_recordings() {
    for (name, data) in inputs() {
        try_read(&data, &name);
        for cut in truncations(data.len()) {
            try_read(&data[..cut], &format!("{name}, the first {cut} bytes"));
        }
    }
}

#[test]
fn damaged_inputs_are_errors_or_recordings() {
    let seed = number("UNFRAG_SEED", 1);
    let rounds = number("UNFRAG_ROUNDS", 1000);
    println!("seed {seed} (UNFRAG_SEED), {rounds} rounds (UNFRAG_ROUNDS)");
    for (name, data) in inputs() {
        let mut random = Random(seed);
        for round in 0..rounds {
            let damaged = damage(&data, &mut random);
            try_read(&damaged, &format!("{name}, seed {seed}, round {round}"));
        }
    }
}
