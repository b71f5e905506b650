//! A pool's numbers in the forms of procfs, for the tools that read those of a host: `unfrag inspect`, `node_exporter`.

use crate::cells::Cell;
use crate::memory::{GIGABYTE, node_id};
use crate::pool::Pool;
use crate::stats::Stats;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use unfrag::maps::{BLOCK_ORDER, FreeBlocks};

/// Tells the files of two writers of one process apart; nothing else is ordered by it.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Orders that the forms have.
const ORDERS: usize = 11;
/// Types as `pagetypeinfo` names them, and their place among those of the maps.
const TYPES: [(&str, Option<usize>); 5] = [
    ("Unmovable", Some(0)),
    ("Movable", Some(1)),
    ("Reclaimable", Some(2)),
    ("HighAtomic", None),
    ("Isolate", None),
];

/// Counts by order, those of larger blocks as so many of the largest that the forms have.
fn by_order(of: &[u64]) -> [u64; ORDERS] {
    let mut counts = [0; ORDERS];
    for (order, n) in of.iter().enumerate() {
        let last = order.min(ORDERS - 1);
        counts[last] += n << (order - last);
    }
    counts
}

impl Pool {
    /// `buddyinfo`, `pagetypeinfo`, `vmstat` and `meminfo` of the pool: names and texts. Each NUMA node is a zone Normal.
    pub fn procfs(&self) -> [(&'static str, String); 4] {
        // What a thread keeps is in use for the maps.
        self.inner.base.memory.drain();
        let memory = &self.inner.base.memory;
        let nodes = memory.nodes.iter().enumerate();
        let free: Vec<(usize, FreeBlocks)> = nodes
            .map(|(i, n)| (n.id, memory.shared.free_blocks_of(node_id(i))))
            .collect();
        let stats = self.stats();
        [
            ("buddyinfo", buddyinfo(&free)),
            ("pagetypeinfo", pagetypeinfo(&free)),
            ("vmstat", vmstat(&stats)),
            ("meminfo", meminfo(&stats)),
        ]
    }

    /// What procfs has no form for, and `unfrag top` shows: each block of 2 MiB, and how long allocations waited.
    ///
    /// `unfrag_blocks`: a line for each gigabyte, `node 0 frame 0x0 m8u1..--`, two characters for each block: a letter for
    /// what is in use there, `u` if some of it is unmovable, else `r` if some of it is reclaimable, else `m`; and how many
    /// eighths of the block that is. `..` is free, `--` is no memory. `unfrag_latency`: lines `allocstall 4096 17`, so many
    /// allocations that waited for less than so many nanoseconds, and for at least half of that.
    fn views(&self) -> [(&'static str, String); 2] {
        let memory = &self.inner.base.memory;
        let mut blocks = String::new();
        // Where the next block of the line would be.
        let mut next = u64::MAX;
        memory.shared.each_block(|first, b| {
            let gigabyte = first.0 - first.0 % u64::from(GIGABYTE);
            if !(gigabyte..=first.0).contains(&next) {
                let end = if blocks.is_empty() { "" } else { "\n" };
                let node = memory.nodes[memory.node_of(first.0 as u32)].id;
                let _ = write!(blocks, "{end}node {node} frame {gigabyte:#x} ");
                next = gigabyte;
            }
            while next < first.0 {
                blocks.push_str(&Cell::ABSENT.letters());
                next += u64::from(BLOCK_ORDER.frames());
            }
            blocks.push_str(&Cell::of(b.free, b.used).letters());
            next += u64::from(BLOCK_ORDER.frames());
        });
        blocks.push('\n');
        let mut latency = String::new();
        let stalls = self.inner.events.stalls.get();
        for (bits, n) in stalls.iter().enumerate().filter(|(_, n)| **n > 0) {
            let _ = writeln!(latency, "allocstall {} {n}", 1_u64 << bits);
        }
        [("unfrag_blocks", blocks), ("unfrag_latency", latency)]
    }

    /// Writes these files into a directory, and those that `unfrag top` shows besides.
    ///
    /// # Errors
    /// That of the file system.
    pub fn write_procfs(&self, directory: &Path) -> io::Result<()> {
        for (name, text) in self.procfs().into_iter().chain(self.views()) {
            // A reader sees the old file or the new one. A link that lies at the first name is not followed.
            let number = WRITES.fetch_add(1, Ordering::Relaxed);
            let new = directory.join(format!(".{name}.{}-{number}", std::process::id()));
            // A process of this number may have left it when it was killed.
            let _ = fs::remove_file(&new);
            let written = File::create_new(&new)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .and_then(|()| fs::rename(&new, directory.join(name)));
            if written.is_err() {
                let _ = fs::remove_file(&new);
            }
            written?;
        }
        Ok(())
    }
}

fn vmstat(stats: &Stats) -> String {
    let mut out = format!("nr_free_pages {}\n", stats.free);
    let counts = [("pgalloc_normal", stats.pgalloc), ("pgfree", stats.pgfree)];
    for (name, n) in counts.iter().chain(&stats.events) {
        let _ = writeln!(out, "{name} {n}");
    }
    out
}

fn meminfo(stats: &Stats) -> String {
    let lines = [
        ("MemTotal", stats.present),
        ("MemFree", stats.free),
        ("MemAvailable", stats.free),
    ];
    let line = |(name, frames): (&str, u64)| {
        let name = format!("{name}:");
        format!("{name:<16}{:>8} kB\n", frames * 4)
    };
    lines.map(line).concat()
}

fn buddyinfo(free: &[(usize, FreeBlocks)]) -> String {
    let mut out = String::new();
    for (node, f) in free {
        let _ = write!(out, "Node {node}, zone {:>8} ", "Normal");
        let mut all = [0; ORDERS];
        for of in &f.of {
            all.iter_mut().zip(by_order(of)).for_each(|(a, n)| *a += n);
        }
        for n in all {
            let _ = write!(out, "{n:>6} ");
        }
        out.push('\n');
    }
    out
}

fn pagetypeinfo(free: &[(usize, FreeBlocks)]) -> String {
    let mut out = "Page block order: 9\nPages per block:  512\n\n".to_owned();
    let _ = write!(out, "{:<43} ", "Free pages count per migrate type at order");
    for order in 0..ORDERS {
        let _ = write!(out, "{order:>6} ");
    }
    out.push('\n');
    for (node, f) in free {
        for (name, place) in TYPES {
            let _ = write!(
                out,
                "Node {node:>4}, zone {:>8}, type {name:>12} ",
                "Normal"
            );
            let counts = place.map_or([0; ORDERS], |mt| by_order(&f.of[mt]));
            for n in counts {
                let _ = write!(out, "{n:>6} ");
            }
            out.push('\n');
        }
    }
    let _ = write!(out, "\n{:<23}", "Number of blocks type");
    for (name, _) in TYPES {
        let _ = write!(out, "{name:>12} ");
    }
    out.push('\n');
    for (node, f) in free {
        let _ = write!(out, "Node {node}, zone {:>8} ", "Normal");
        for (_, place) in TYPES {
            let n = place.map_or(0, |mt| f.blocks[mt]);
            let _ = write!(out, "{n:>12} ");
        }
        out.push('\n');
    }
    out
}
