//! Traces of any length are imported, and summed up, in bounded memory.
//!
//! The traces are made here, of two million events; `UNFRAG_TEST_EVENTS=300000000` makes them longer.

#[path = "../../../unfrag-linux/tests/linux/trace_support/dat.rs"]
#[allow(dead_code)]
mod dat;

use crate::support::measured;
use dat::{Dat, Entry, PAGE};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Most MiB that an import may take, whatever its length.
const MOST_MIB: u64 = 300;
/// The same of a summary, which keeps no event.
const MOST_SUMMARY_MIB: u64 = 160;
/// CPUs, and nanoseconds from one event of a CPU to the next.
const CPUS: u64 = 2;
const STEP: u64 = 500;

fn events() -> u64 {
    std::env::var("UNFRAG_TEST_EVENTS").map_or(2_000_000, |n| n.parse().unwrap())
}

/// Frame number and migratetype of an event: runs of frames, as a kernel hands them out.
fn alloc(n: u64) -> (u64, i32) {
    let run = (n / 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 46;
    (run * 64 + n % 48, i32::from(!n.is_multiple_of(7)))
}

/// A `trace.dat` of format 6 with so many events or a few more.
fn write_dat(path: &Path, events: u64) {
    let small = Dat::new(false, vec![vec![0; PAGE]; CPUS as usize]).v6();
    let mark = b"flyrecord\0";
    let at = small.windows(mark.len()).position(|w| w == mark).unwrap() + mark.len();
    let first = u64::from_le_bytes(small[at..at + 8].try_into().unwrap());
    let page = |n: u64, cpu: u64, count: u64| {
        let entries: Vec<Entry> = (0..count)
            .map(|i| {
                let (pfn, mt) = alloc(2 * (n * count + i) + cpu);
                let step = if i == 0 { 0 } else { STEP as u32 };
                Entry::Record(step, Dat::alloc(false, 7 + (n % 3) as i32, pfn, mt))
            })
            .collect();
        Dat::page(
            false,
            1_000_000 + n * count * STEP + cpu * 250,
            None,
            &entries,
        )
    };
    let each = (PAGE as u64 - 16) / (4 + Dat::alloc(false, 7, 0, 0).len() as u64);
    let pages = events.div_ceil(CPUS * each);
    let mut head = small[..first as usize].to_vec();
    for cpu in 0..CPUS {
        let entry = at + 16 * cpu as usize;
        let size = pages * PAGE as u64;
        head[entry..entry + 8].copy_from_slice(&(first + cpu * size).to_le_bytes());
        head[entry + 8..entry + 16].copy_from_slice(&size.to_le_bytes());
    }
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    out.write_all(&head).unwrap();
    for cpu in 0..CPUS {
        for n in 0..pages {
            out.write_all(&page(n, cpu, each)).unwrap();
        }
    }
    out.into_inner().unwrap();
}

/// The text of `trace-cmd report` with so many events.
fn write_text(path: &Path, events: u64) {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    writeln!(out, "cpus={CPUS}").unwrap();
    for n in 0..events {
        let (pfn, mt) = alloc(n);
        let time = 1_000 + n * STEP / 2 / 1000;
        writeln!(
            out,
            "           cc1-{:<6} [{:03}] ....  {:>5}.{:06}: mm_page_alloc:        page=0x{pfn:x} pfn=0x{pfn:x} \
             order=0 migratetype={mt} gfp_flags=GFP_KERNEL|__GFP_ZERO",
            7 + n / 500 % 3,
            n % CPUS,
            time / 1_000_000,
            time % 1_000_000,
        )
        .unwrap();
    }
    out.into_inner().unwrap();
}

#[test]
fn a_trace_of_any_length_is_imported_and_summed_up_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let n = events();
    let (dat, text) = (dir.path().join("trace.dat"), dir.path().join("trace.txt"));
    for (trace, write) in [(&dat, write_dat as fn(&Path, u64)), (&text, write_text)] {
        write(trace, n);
        let output = dir.path().join("out.unfrag");
        let m = measured(&[
            "import",
            trace.to_str().unwrap(),
            "-o",
            output.to_str().unwrap(),
            "--timing",
        ]);
        let rate = m.stdout.lines().last().unwrap_or_default();
        eprintln!("{}: {} MiB; {rate}", trace.display(), m.mib);
        assert!(m.mib <= MOST_MIB, "{} MiB of {MOST_MIB}", m.mib);
        let m = measured(&["summary", trace.to_str().unwrap(), "--release", "6.1.0"]);
        eprintln!("{}: {} MiB for a summary", trace.display(), m.mib);
        assert!(m.stdout.contains("events in"), "{}", m.stdout);
        assert!(
            m.mib <= MOST_SUMMARY_MIB,
            "{} MiB of {MOST_SUMMARY_MIB}",
            m.mib
        );
        std::fs::remove_file(trace).unwrap();
        let mut file = unfrag_linux::file::Reader::open(&output).unwrap();
        let read: u64 = file.parts().map(|p| p.events).sum();
        assert!((n..n + 1000).contains(&read), "{read} events of {n}");
        // The last part has the last event.
        let last = file.parts().len() - 1;
        let events = file.part(last).unwrap();
        let pfn = events.tables[0].column("pfn").unwrap();
        let wanted = alloc(read - 1).0;
        assert!(pfn[pfn.len() - 2..].contains(&wanted), "{wanted}");
        assert!(events.time.is_sorted());
    }
}
