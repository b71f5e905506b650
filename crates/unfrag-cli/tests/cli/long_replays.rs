//! A recording of any length is replayed in bounded memory, and whatever the memory, with the same result.
//!
//! The recording is the shipped sample, again and again: what is left at its end is put back to what was there at its
//! beginning. It has three million events; `UNFRAG_TEST_EVENTS=100000000` makes it longer.

use crate::support::{SAMPLE, change_counter, measured, root};
use std::collections::BTreeMap;
use std::io::{Seek, Write};
use std::path::Path;
use unfrag_linux::file;
use unfrag_linux::output::{Holds, Output};
use unfrag_linux::recording::{Events, Recording, Snapshot};
use unfrag_linux::target::Target;

/// Most MiB that a replay may take beside the frame table, whatever its length.
const MOST_MIB: u64 = 400;
/// Most MiB that a summary may take, whatever the recording's length: all events in memory would take 135 more.
const MOST_SUMMARY_MIB: u64 = 130;
/// Of the snapshots of each repetition but the first, every so many are kept.
const SPARSE: usize = 15;
/// `GFP_HIGHUSER_MOVABLE`.
const USER: u64 = 0x10_0cca;

fn repetitions(sample: &Recording) -> u64 {
    let events = std::env::var("UNFRAG_TEST_EVENTS").map_or(3_000_000, |n| n.parse().unwrap());
    (events / sample.events.len() as u64).max(2)
}

/// An event of a block: its first frame and its order.
type Block = (u64, u64);

/// What is left at the end: blocks that were free at the beginning, and the other way round.
#[derive(Default)]
struct Left {
    used: Vec<Block>,
    freed: Vec<Block>,
    /// Pages that all events free.
    pages_freed: u64,
}

impl Left {
    fn of(events: &Events) -> Left {
        let blocks = Blocks::of(events);
        let mut left = Left::default();
        let mut live = BTreeMap::new();
        let mut freed = BTreeMap::new();
        let mut seen = std::collections::HashSet::new();
        let mut rows = vec![0; events.tables.len()];
        for &kind in &events.kind {
            let kind = usize::from(kind);
            let row = rows[kind];
            rows[kind] += 1;
            let (pfns, orders) = match kind {
                k if k == blocks.alloc => blocks.allocs,
                k if k == blocks.free => blocks.frees,
                _ => continue,
            };
            let (pfn, order) = (pfns[row], orders[row]);
            if pfn == 0 {
                continue;
            }
            let new = (pfn..pfn + (1 << order)).fold(false, |new, p| seen.insert(p) | new);
            if kind == blocks.alloc {
                live.insert(pfn, order);
            } else {
                left.pages_freed += 1 << order;
                if live.remove(&pfn).is_none() && new {
                    freed.insert(pfn, order);
                }
            }
        }
        left.pages_freed += live.values().map(|o| 1 << o).sum::<u64>();
        // What was in use at the beginning may be in use again.
        let is_used = |pfn: u64| live.contains_key(&pfn);
        left.freed = freed.into_iter().filter(|f| !is_used(f.0)).collect();
        left.used = live.into_iter().collect();
        left
    }
}

/// The events that allocate and free.
struct Blocks<'e> {
    alloc: usize,
    free: usize,
    allocs: (&'e [u64], &'e [u64]),
    frees: (&'e [u64], &'e [u64]),
}

impl Blocks<'_> {
    fn of(events: &Events) -> Blocks<'_> {
        let kind = |name| events.tables.iter().position(|t| t.name == name).unwrap();
        let (alloc, free) = (kind("mm_page_alloc"), kind("mm_page_free"));
        let columns = |k: usize| {
            let column = |name| events.tables[k].column(name).unwrap();
            (column("pfn"), column("order"))
        };
        Blocks {
            alloc,
            free,
            allocs: columns(alloc),
            frees: columns(free),
        }
    }
}

/// Adds an event of a block.
fn add(events: &mut Events, kind: usize, time: u64, (pfn, order): Block) {
    let (cpu, task) = (events.cpu[0], events.task[0]);
    events.time.push(time);
    events.cpu.push(cpu);
    events.task.push(task);
    events.flags.push(0);
    events.preempt.push(0);
    events.kind.push(kind as u8);
    let table = &mut events.tables[kind];
    for (field, column) in table.fields.iter().zip(&mut table.columns) {
        column.push(match field.name.as_str() {
            "pfn" => pfn,
            "order" => order,
            "gfp_flags" => USER,
            "migratetype" => 1,
            _ => 0,
        });
    }
}

/// A snapshot of a later repetition: its times, and the counter that dates it.
fn later(snapshot: &Snapshot, number: u64, time: u64, pages_freed: u64) -> Snapshot {
    let mut later = snapshot.clone();
    later.name = format!("{number:05}-{}", later.name);
    for file in &mut later.files {
        file.time = file.time.map(|(a, b)| (a + time, b + time));
        if file.name == "vmstat" {
            change_counter(file, "pgfree", |n| n + pages_freed);
        }
    }
    later
}

/// Writes so many repetitions of the sample.
fn write<W: Write + Seek + Send>(sample: &mut Recording, n: u64, to: W) -> W {
    let first = sample.events.time[0];
    let left = Left::of(&sample.events);
    let (alloc, free) = {
        let blocks = Blocks::of(&sample.events);
        (blocks.alloc, blocks.free)
    };
    let end = sample.events.time[sample.events.len() - 1];
    let mut time = end;
    for (kind, blocks) in [(free, &left.used), (alloc, &left.freed)] {
        for &block in blocks {
            time += 1000;
            add(&mut sample.events, kind, time, block);
        }
    }
    let period = time + 1000 - first;
    let snapshots = sample.snapshots.clone();
    let offset = sample.meta.snapshot_offset_ns;
    let inside = |s: &Snapshot| {
        s.time_of("vmstat")
            .map(|t| t.saturating_add_signed(-offset))
            .is_some_and(|t| (first..end).contains(&t))
    };
    let mut writer = file::Writer::new(to);
    for i in 0..n {
        writer.events(&sample.events).unwrap();
        sample.events.time.iter_mut().for_each(|t| *t += period);
        if i > 0 {
            let kept = snapshots.iter().filter(|s| inside(s)).step_by(SPARSE);
            let more = kept.map(|s| later(s, i, i * period, i * left.pages_freed));
            sample.snapshots.extend(more);
        }
    }
    writer.finish(sample).unwrap()
}

fn replay(file: &Path, more: &[&str]) -> crate::support::Measured {
    let mut words = vec!["replay", file.to_str().unwrap(), "--json", "--timing"];
    words.extend(more);
    measured(&words)
}

#[test]
fn a_replay_of_any_length_takes_bounded_memory() {
    let mut sample = file::read(&root().join(SAMPLE)).unwrap();
    let n = repetitions(&sample);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.unfrag");
    let events = n * sample.events.len() as u64;
    let output = Output::create(&Target::of(&path).unwrap(), Holds::Recording).unwrap();
    write(&mut sample, n, output).commit().unwrap();
    drop(sample);

    let small = replay(&path, &["--memory-budget", "1M"]);
    let rate = events as f64 / small.time.as_secs_f64() / 1e6;
    eprintln!(
        "{events} events: {} MiB; {rate:.2} million a second",
        small.mib
    );
    assert!(small.mib <= MOST_MIB, "{} MiB of {MOST_MIB}", small.mib);
    let large = replay(&path, &["--memory-budget", "1G"]);
    assert!(
        small.stdout == large.stdout,
        "the budget changes the report"
    );

    let report: serde_json::Value = serde_json::from_str(&large.stdout).unwrap();
    assert!(report["recording"]["events"].as_u64().unwrap() >= events);
    let failures = &report["kernels"][0]["totals"]["failures"];
    assert_eq!(failures.as_u64(), Some(0), "the machine fills up");

    // A summary holds a batch of events at a time, whatever else it is asked.
    let file = path.to_str().unwrap();
    let summary = measured(&["summary", file, "--blame", "--json"]);
    let rate = events as f64 / summary.time.as_secs_f64() / 1e6;
    eprintln!("summary: {} MiB; {rate:.2} million a second", summary.mib);
    assert!(
        summary.mib <= MOST_SUMMARY_MIB,
        "{} MiB of {MOST_SUMMARY_MIB}",
        summary.mib
    );
    let summary: serde_json::Value = serde_json::from_str(&summary.stdout).unwrap();
    assert_eq!(summary["summary"]["events"], report["recording"]["events"]);
}
