//! `unfrag frames`: the frames of a process, and what `MADV_COLLAPSE` makes of it.

use crate::support::{fails, json, skipped, stdout};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use unfrag_linux::kpageflags::{ANON, COMPOUND_HEAD, COMPOUND_TAIL, LRU, ZERO_PAGE};

/// A host with one process, whose pages lie where the test says.
struct Laid {
    _dir: tempfile::TempDir,
    proc: PathBuf,
}

const BEGIN: u64 = 0x4000_0000;
const HUGE: u64 = 2 << 20;

/// A process with three mappings: anonymous memory of four huge pages and a bit, a memfd, a file.
fn lay_out(is_visible: bool) -> Laid {
    let dir = tempfile::tempdir().unwrap();
    let proc = dir.path().to_owned();
    let process = proc.join("77");
    fs::create_dir(&process).unwrap();
    let write = |name: &str, text: &str| fs::write(process.join(name), text).unwrap();
    fs::write(proc.join("version"), "Linux version 6.18.0 (test)\n").unwrap();
    write(
        "status",
        "Name:\tworker\nState:\tS (sleeping)\nVmSize:\t  100 kB\nTHP_enabled:\t1\n",
    );
    let began = "77 (a worker) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 1 1\n";
    write("stat", began);
    let end = BEGIN + 4 * HUGE + 8192;
    let shared = BEGIN + (1 << 30);
    let file = BEGIN + (2 << 30);
    write(
        "smaps",
        &format!(
            "{BEGIN:x}-{end:x} rw-p 00000000 00:00 0 \nRss: 4000 kB\nKernelPageSize: 4 kB\nAnonHugePages: 2048 kB\nVmFlags: rd wr mr mw me ac\n\
             {shared:x}-{:x} rw-s 00000000 00:01 9 /memfd:shared (deleted)\nRss: 40 kB\nKernelPageSize: 4 kB\nVmFlags: rd wr sh mr mw me ms\n\
             {file:x}-{:x} r--p 00000000 08:01 12 /usr/lib/a\x1b[31mlib.so\nRss: 8 kB\nKernelPageSize: 4 kB\nVmFlags: rd mr mw me\n",
            shared + 2 * HUGE,
            file + 8192
        ),
    );
    let pagemap = fs::File::create(process.join("pagemap")).unwrap();
    pagemap.set_len((file + 8192) / 4096 * 8).unwrap();
    let flags = fs::File::create(proc.join("kpageflags")).unwrap();
    flags.set_len(8 * (1 << 20)).unwrap();
    let map = |address: u64, frame: u64, bits: u64, flag: u64| {
        let frame_or_none = if is_visible { frame } else { 0 };
        let word: u64 = 1 << 63 | bits | frame_or_none;
        pagemap
            .write_all_at(&word.to_le_bytes(), address / 4096 * 8)
            .unwrap();
        flags.write_all_at(&flag.to_le_bytes(), frame * 8).unwrap();
    };
    let own = 1 << 56;
    // A huge page: frames 512 to 1023.
    for i in 0..512 {
        let flag = if i == 0 { COMPOUND_HEAD } else { COMPOUND_TAIL };
        map(BEGIN + i * 4096, 512 + i, own, LRU | ANON | flag);
    }
    // Sixteen pages in one folio, at another gibibyte (frame 262,144); of the next range one page, at frame 5,000.
    for i in 0..16 {
        let flag = if i == 0 { COMPOUND_HEAD } else { COMPOUND_TAIL };
        map(BEGIN + HUGE + i * 4096, 262_144 + i, own, LRU | ANON | flag);
    }
    map(BEGIN + 2 * HUGE, 5_000, own, LRU | ANON);
    // In the rest that no huge page fits into, a page, and one of zeroes.
    map(BEGIN + 4 * HUGE, 5_001, own, LRU | ANON);
    map(BEGIN + 4 * HUGE + 4096, 7, 0, ZERO_PAGE);
    // The memfd has ten pages, two of which it shows twice.
    for i in 0..10 {
        map(shared + i * 4096, 10_240 + i % 8, 1 << 61, LRU);
    }
    for i in 0..2 {
        map(file + i * 4096, 20_000 + i, 1 << 61, LRU);
    }
    Laid { _dir: dir, proc }
}

fn asked(laid: &Laid) -> Value {
    json(&[
        "frames",
        "77",
        "--proc",
        laid.proc.to_str().unwrap(),
        "--json",
    ])
}

#[test]
fn frames_are_those_that_the_pages_were_put_in() {
    let laid = lay_out(true);
    let a = asked(&laid);
    assert_eq!(a["present"], 512 + 16 + 1 + 2 + 10 + 2);
    // 512..1024; 262,144 and on; 5,000 and 5,001; 7; 10,240 and on; 20,000 and on.
    let frames = &a["frames"];
    assert_eq!(frames["pages"], 512 + 16 + 2 + 1 + 8 + 2);
    assert_eq!(
        (&frames["huge"], &frames["huge_fewest"]),
        (&6.into(), &2.into())
    );
    assert_eq!(
        (&frames["gib"], &frames["gib_fewest"]),
        (&2.into(), &1.into())
    );
    // The two fullest blocks have 512 and 16.
    assert_eq!(frames["moves"], 2 + 1 + 8 + 2);
    assert_eq!(a["runs"]["9"], 512);
    assert_eq!(a["runs"]["4"], 16);
    assert_eq!(a["runs"]["3"], 8, "the eight frames of the memfd");
    assert_eq!(a["folios"]["9"], 512);
    assert_eq!(a["folios"]["4"], 16);
    assert_eq!(a["huge_bytes"], 2 << 20);
    // Mapped anew: the ranges of addresses that have a page.
    assert_eq!(a["resume"]["pages"], a["present"]);
    assert_eq!(a["resume"]["huge"], 4 + 1 + 1);
    assert_eq!(a["resume"]["gib"], 3);
    // Two of anonymous memory beside the one that is there, and one of the memfd; nothing is known of the file.
    let c = &a["collapse"];
    assert_eq!(
        (&c["huge_now"], &c["huge_after"], &c["made"]),
        (&1.into(), &4.into(), &3.into())
    );
    assert_eq!(c["copied_pages"], 16 + 1 + 10);
    assert_eq!(c["filled_pages"], 512 - 16 + 511 + 502);
    assert_eq!(c["unknown_pages"], 2);
    let said = stdout(&["frames", "77", "--proc", laid.proc.to_str().unwrap()]);
    assert!(said.contains("6 frames of 2 MiB, and could in 2"), "{said}");
    assert!(said.contains("3 huge pages of 2 MiB"), "{said}");
    let first = said.lines().next().unwrap();
    assert!(
        first.contains("(541 frames of 4 KiB, each counted once; mapped as 543 pages"),
        "{first}"
    );
    assert!(!said.contains('\x1b'), "a name cannot control the terminal");
}

#[test]
fn without_the_right_to_see_frames_the_rest_is_told() {
    let laid = lay_out(false);
    let a = asked(&laid);
    assert!(a["frames"]["huge"].is_null() && a["runs"].as_object().unwrap().is_empty());
    assert_eq!(a["collapse"]["made"], 3);
    let said = stdout(&["frames", "77", "--proc", laid.proc.to_str().unwrap()]);
    assert!(said.contains("CAP_SYS_ADMIN"), "{said}");
}

#[test]
fn what_is_no_process_with_memory_is_refused() {
    let laid = lay_out(true);
    let proc = laid.proc.to_str().unwrap();
    let process = laid.proc.join("77");
    let asked = ["frames", "77", "--proc", proc];
    fails(
        &["frames", "4000000000", "--proc", proc],
        1,
        &["no process", "help:"],
    );
    fails(&["frames", "no-such-group"], 1, &["nor a cgroup", "help:"]);
    let whole = fs::read_to_string(process.join("status")).unwrap();
    let write = |text: &str| fs::write(process.join("status"), text).unwrap();
    write("Name:\tkcompactd0\nState:\tS (sleeping)\nPPid:\t2\n");
    fails(&asked, 1, &["a thread of the kernel", "unfrag account"]);
    // It has given its memory back, and is about to be gone.
    write("Name:\tending\nState:\tR (running)\nPPid:\t1\n");
    fails(&asked, 1, &["ended while it was read"]);
    write("Name:\tgone\nState:\tZ (zombie)\n");
    fails(&asked, 1, &["has ended"]);
    write(&whole);
    // The kernel gives an empty file, and no words, of a process that ended.
    fs::write(process.join("pagemap"), "").unwrap();
    fails(&asked, 1, &["process 77 ended while it was read"]);
    fs::write(process.join("smaps"), "nonsense\n").unwrap();
    fails(&asked, 1, &["smaps", "byte 0"]);
}

#[test]
fn a_cgroup_has_the_processes_below_it() {
    let laid = lay_out(true);
    let group = laid.proc.join("group");
    fs::create_dir_all(group.join("below")).unwrap();
    fs::write(group.join("cgroup.procs"), "").unwrap();
    let words = [
        "frames",
        group.to_str().unwrap(),
        "--proc",
        laid.proc.to_str().unwrap(),
    ];
    fails(&words, 1, &["no process is in this cgroup"]);
    fs::write(group.join("below/cgroup.procs"), "77\n88\n").unwrap();
    let a = json(&[&words[..], &["--json"]].concat());
    assert_eq!(a["processes"].as_array().unwrap().len(), 1);
    assert_eq!(a["frames"]["huge"], 6);
    // A second process maps the same frames, as after fork.
    let (one, two) = (laid.proc.join("77"), laid.proc.join("99"));
    fs::create_dir(&two).unwrap();
    for file in ["status", "stat", "smaps", "pagemap"] {
        fs::copy(one.join(file), two.join(file)).unwrap();
    }
    fs::write(group.join("below/cgroup.procs"), "77\n88\n99\n").unwrap();
    let said = stdout(&words);
    assert!(
        said.lines().next().unwrap().contains("541 frames of 4 KiB"),
        "{said}"
    );
    assert!(
        a["notes"][0].as_str().unwrap().contains("88"),
        "{}",
        a["notes"]
    );
}

/// A program that places its pages as it is told, collapses when it gets a line, and says how many huge pages that made.
const PLACER: &str = "
import ctypes, mmap, os, sys
HUGE = 2 << 20
libc = ctypes.CDLL(None, use_errno=True)
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def place(size, fd, flags, pages):
    m = mmap.mmap(fd, size + HUGE, flags=flags)
    address = ctypes.addressof(ctypes.c_char.from_buffer(m))
    off = -address % HUGE
    for i in range(size // HUGE):
        for k in range(pages[i % len(pages)]):
            m[off + i * HUGE + k * 4096] = 1
    return m, address + off, size
held = [place(96 << 20, -1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, [0, 1, 7, 100, 511, 512])]
fd = os.memfd_create('placed')
os.ftruncate(fd, 34 << 20)
held.append(place(32 << 20, fd, mmap.MAP_SHARED, [0, 3, 512, 0]))
kept = place(16 << 20, -1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, [5])
libc.madvise(kept[1], kept[2], 15)
print('ready', flush=True)
sys.stdin.readline()
failed = {}
for _, address, size in held + [kept]:
    for at in range(address, address + size, HUGE):
        if libc.madvise(at, HUGE, 25):
            e = ctypes.get_errno()
            failed[e] = failed.get(e, 0) + 1
print(failed, flush=True)
sys.stdin.read()
";

struct Placer(Child);

impl Drop for Placer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Placer {
    fn start() -> Option<Placer> {
        let child = Command::new("python3")
            .args(["-c", PLACER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut placer = Placer(child.ok()?);
        (placer.line()? == "ready").then_some(placer)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let out = self.0.stdout.as_mut()?;
        // A byte at a time, so that nothing of the next line is lost.
        BufReader::with_capacity(1, out).read_line(&mut line).ok()?;
        Some(line.trim().to_owned())
    }

    fn asked(&self) -> Value {
        json(&["frames", &self.0.id().to_string(), "--json"])
    }
}

/// Huge pages that map what a process has, as the kernel counts them.
fn mapped_huge(pid: u32) -> u64 {
    let smaps = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("smaps")).unwrap();
    let of = |line: &str| -> u64 {
        let kinds = ["AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"];
        let value = kinds.iter().find_map(|k| line.strip_prefix(k));
        value.map_or(0, |v| v.trim().trim_end_matches(" kB").parse().unwrap())
    };
    smaps.lines().map(of).sum::<u64>() / 2048
}

/// Distinct frames of 2 MiB, counted from pagemap in the plainest way.
fn distinct(pid: u32) -> Option<usize> {
    let proc = Path::new("/proc").join(pid.to_string());
    let pagemap = fs::File::open(proc.join("pagemap")).ok()?;
    let maps = fs::read_to_string(proc.join("maps")).ok()?;
    let mut blocks = std::collections::HashSet::new();
    for line in maps.lines().filter(|l| !l.contains("[vsyscall]")) {
        let (begin, end) = line.split(' ').next()?.split_once('-')?;
        let number = |t| u64::from_str_radix(t, 16).unwrap() / 4096;
        let mut bytes = vec![0; 8 * (number(end) - number(begin)) as usize];
        pagemap.read_exact_at(&mut bytes, 8 * number(begin)).ok()?;
        for word in bytes.as_chunks::<8>().0 {
            let word = u64::from_le_bytes(*word);
            let frame = word & ((1 << 55) - 1);
            if word >> 63 == 1 && frame != 0 {
                blocks.insert(frame >> 9);
            }
        }
    }
    (!blocks.is_empty()).then_some(blocks.len())
}

#[test]
fn what_collapse_makes_of_a_program_is_what_was_forecast() {
    let size = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    if size.is_ok_and(|s| s.trim() != "2097152") {
        skipped("a huge page of this host has another size than the program takes");
        return;
    }
    let Some(mut placer) = Placer::start() else {
        skipped("python3 does not work here");
        return;
    };
    let pid = placer.0.id();
    let before = placer.asked();
    match distinct(pid) {
        Some(blocks) => assert_eq!(before["frames"]["huge"], blocks),
        None => skipped("frames may only be seen with CAP_SYS_ADMIN"),
    }
    let now = mapped_huge(pid);
    assert_eq!(before["collapse"]["huge_now"], now);
    // Of the ranges that were placed, 5 of 6 of anonymous memory and 2 of 4 of the memfd have a page; the other has refused.
    let placed: u64 = 40 + 8;
    let forecast = |name: &str| -> u64 {
        let mappings = before["processes"][0]["mappings"].as_array().unwrap();
        let of = |m: &&Value| m["begin"].as_str().is_some() && m["collapse"][name].is_u64();
        mappings
            .iter()
            .filter(of)
            .map(|m| m["collapse"][name].as_u64().unwrap())
            .sum()
    };
    assert!(forecast("huge_after") >= placed, "{before:#}");
    placer.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let failed = placer.line().unwrap();
    let after = mapped_huge(pid);
    // EAGAIN, ENOMEM or EBUSY: a huge page could not be had, which no forecast is about.
    let could_not = ["11:", "12:", "16:"].iter().any(|e| failed.contains(*e));
    if could_not {
        skipped(&format!(
            "this host did not give a huge page for each: {failed}"
        ));
        return;
    }
    let mappings = before["processes"][0]["mappings"].as_array().unwrap();
    // What the program itself collapsed: large mappings, or the memfd.
    let expected: u64 = mappings
        .iter()
        .filter(|m| m["bytes"].as_u64().unwrap() >= 16 << 20)
        .filter_map(|m| m["collapse"]["huge_after"].as_u64())
        .sum();
    println!("forecast {expected}, smaps after it {after}, placed {placed}");
    assert!(
        after.abs_diff(expected) * 50 <= expected,
        "forecast {expected}, smaps {after}: {failed}"
    );
    let again = placer.asked();
    assert_eq!(again["collapse"]["huge_now"], after);
}
