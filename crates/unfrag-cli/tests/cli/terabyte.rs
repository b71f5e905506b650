//! Hosts of a terabyte: what takes the flags of every page frame takes little memory for them.
//!
//! The host is made here, its page flags are a file of two bytes for each KiB of its memory. It has 64 GiB; with
//! `UNFRAG_TEST_GIB=1024` it has a terabyte.

use crate::support::measured;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use unfrag_linux::kpageflags::{
    ANON, BUDDY, COMPOUND_HEAD as HEAD, COMPOUND_TAIL as TAIL, LRU, SLAB, THP,
};

/// Page frames in a GiB, and in a pageblock.
const GIB: u64 = 1 << 18;
const BLOCK: u64 = 512;

/// Flags of the frames of a pageblock; one in four is mixed from frame to frame.
fn block(number: u64) -> [u64; BLOCK as usize] {
    let kind = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
    std::array::from_fn(|i| {
        let noise = (number * BLOCK + i as u64).wrapping_mul(0xd134_2543_de82_ef95) >> 58;
        match kind {
            0..3 => BUDDY,
            3..6 if i == 0 => LRU | ANON | HEAD | THP,
            3..6 => LRU | ANON | TAIL | THP,
            6..9 if noise < 20 => BUDDY,
            6..9 => LRU | ANON,
            // Folios of page cache.
            9..12 if i % 16 == 0 => LRU | HEAD,
            9..12 => LRU | TAIL,
            12 if noise < 2 => SLAB,
            12 if noise < 5 => 0,
            12 => LRU,
            _ if noise < 40 => LRU | ANON,
            _ => BUDDY,
        }
    })
}

/// A procfs of a host with so many GiB on two nodes.
fn host(proc: &Path, gib: u64) {
    let frames = gib * GIB;
    let mut flags =
        BufWriter::with_capacity(1 << 20, File::create(proc.join("kpageflags")).unwrap());
    let (mut free, mut whole) = ([0u64; 2], [0u64; 2]);
    for number in 0..frames / BLOCK {
        let words = block(number);
        let node = usize::from(number >= frames / BLOCK / 2);
        let n = words.iter().filter(|&&w| w == BUDDY).count() as u64;
        match n {
            BLOCK => whole[node] += 1,
            n => free[node] += n,
        }
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        flags.write_all(&bytes).unwrap();
    }
    flags.into_inner().unwrap();
    let (mut buddy, mut zones) = (String::new(), String::new());
    for node in 0..2 {
        let (singles, huge) = (free[node], whole[node]);
        let all = singles + huge * BLOCK;
        let half = frames / 2;
        let _ = writeln!(
            buddy,
            "Node {node}, zone   Normal {singles} 0 0 0 0 0 0 0 0 {huge} 0"
        );
        let _ = write!(
            zones,
            "Node {node}, zone   Normal\n  pages free     {all}\n        min      16384\n        low      \
             20480\n        high     24576\n        spanned  {half}\n        present  {half}\n        managed  \
             {half}\n        protection: (0, 0, 0)\n  pagesets\n    cpu: 0\n              count: 100\n              \
             high:  500\n              batch: 63\n  start_pfn:           {}\n",
            node as u64 * half
        );
    }
    fs::write(proc.join("buddyinfo"), buddy).unwrap();
    fs::write(proc.join("zoneinfo"), zones).unwrap();
    fs::write(
        proc.join("version"),
        "Linux version 6.12.0 (made) #1 SMP x86_64\n",
    )
    .unwrap();
    let kib = frames * 4;
    fs::write(
        proc.join("meminfo"),
        format!("MemTotal:       {kib} kB\nMemFree:        {} kB\n", kib / 4),
    )
    .unwrap();
    fs::write(proc.join("vmstat"), "compact_stall 3\n").unwrap();
}

#[test]
fn page_flags_take_half_a_byte_a_frame_at_most() {
    let gib = std::env::var("UNFRAG_TEST_GIB").map_or(64, |n| n.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let proc = dir.path().join("proc");
    fs::create_dir(&proc).unwrap();
    host(&proc, gib);
    let proc = proc.to_str().unwrap();
    let file = dir.path().join("host.unfrag");
    let file = file.to_str().unwrap();
    // What the program takes without any page flags, and half a byte a frame; of a file also its packed flags.
    let most = |words: &[&str]| match words[1] == file {
        true => 60 + 3 * gib * GIB / 4 / (1 << 20),
        false => 60 + gib * GIB / 2 / (1 << 20),
    };
    let mut answers = vec![];
    for words in [
        &["doctor", proc, "--json"][..],
        &["snapshot", "--proc", proc, "-o", file],
        &["doctor", file, "--json"],
        &["doctor", file, "--map"],
        &["exporter", "--proc", proc, "--print"],
    ] {
        let m = measured(words);
        eprintln!("{gib} GiB: {words:?}: {} MiB, {:.1?}", m.mib, m.time);
        let most = most(words);
        assert!(m.mib <= most, "{words:?}: {} MiB of {most}", m.mib);
        answers.push(m.stdout);
    }
    let huge = |json: &str| {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        json["diagnosis"]["huge_pages"].clone()
    };
    let live = huge(&answers[0]);
    assert!(
        live["after_compaction"].as_u64() > live["now"].as_u64(),
        "{live}"
    );
    assert_eq!(live, huge(&answers[2]), "the file tells what the host told");
}
