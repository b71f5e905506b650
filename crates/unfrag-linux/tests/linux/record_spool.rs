//! A spool becomes a file, however the recorder ended.
//!
//! The spools here are written as a recorder leaves them; tracing itself is tested with the command.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;

use crate::trace_support::dat::{Dat, Entry, HEADER_PAGE, PAGE, formats};
use unfrag_linux::content::Content;
use unfrag_linux::record::finish::{Ending, finish};
use unfrag_linux::record::spool::{Job, NAMES, Spool, THREADS};
use unfrag_linux::recording::{Lost, Recording, Snapshot, SnapshotFile};
use unfrag_linux::target::Target;
use unfrag_linux::{file, record};

/// A directory of a test, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("unfrag-record-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const BIG: bool = cfg!(target_endian = "big");

/// A sub-buffer of allocations: (pid, pfn) each.
fn page(time: u64, lost: Option<Option<u64>>, allocs: &[(i32, u64)]) -> Vec<u8> {
    let entry = |&(pid, pfn): &(i32, u64)| Entry::Record(10, Dat::alloc(BIG, pid, pfn, 1));
    let entries: Vec<Entry> = allocs.iter().map(entry).collect();
    Dat::page(BIG, time, lost, &entries)
}

/// A spool of two CPUs: five allocations by a program, kswapd and the idle task.
fn spool(scratch: &Scratch, anonymous: bool, tail: &[u8]) -> (Spool, PathBuf) {
    let output = scratch.0.join("x.unfrag");
    let spool = Spool::create(&Target::of(&output).unwrap()).unwrap();
    let formats = formats().into_iter().map(|f| ("kmem".to_owned(), f));
    spool
        .set_job(&Job {
            anonymous,
            kernel_release: "6.18.0-test".into(),
            page_size: 4096,
            cpus: 2,
            facts: vec![("scope".into(), "system".into())],
            header_page: HEADER_PAGE.into(),
            formats: formats.collect(),
            ..Job::default()
        })
        .unwrap();
    let mut first = page(1000, None, &[(4711, 100), (55, 101)]);
    first.extend(page(5000, None, &[(4711, 102)]));
    fs::write(spool.dir().join("cpu0.raw"), first).unwrap();
    let mut second = page(1500, None, &[(0, 103), (4711, 104)]);
    second.extend(tail);
    fs::write(spool.dir().join("cpu1.raw"), second).unwrap();
    spool.add_lines(THREADS, b"55 kswapd0\n").unwrap();
    spool.add_lines(NAMES, b"4711 cc1\n").unwrap();
    let flags: Vec<u8> = (0..600u64).flat_map(|n| (n % 7).to_le_bytes()).collect();
    let file = |name: &str, time, content: Content| SnapshotFile {
        name: name.into(),
        time: Some((time, time + 10)),
        content,
    };
    spool
        .add(&Snapshot {
            name: "begin".into(),
            files: vec![
                file("kpageflags", 900, Content::pack(&flags[..]).unwrap()),
                file("buddyinfo", 950, "Node 0, zone DMA 1\n".into()),
            ],
        })
        .unwrap();
    (spool, output)
}

fn comms(recording: &Recording) -> Vec<(i32, &str)> {
    let name = |t: &u32| &recording.tasks[*t as usize];
    let task = recording.events.task.iter().map(name);
    task.map(|t| (t.pid, &t.comm[..])).collect()
}

#[test]
fn a_spool_becomes_a_file_with_events_and_flags_without_names_if_anonymous() {
    let scratch = Scratch::new("whole");
    let (spool, output) = spool(&scratch, true, b"");
    let dir = spool.dir().to_owned();
    let made = finish(spool, &Ending::default(), &output)
        .unwrap()
        .recording;
    let read = file::read(&output).unwrap();
    assert_eq!(read, made);
    assert!(!dir.exists());
    let pfns = read.events.tables[0].column("pfn").unwrap();
    assert_eq!(pfns, [100, 101, 103, 104, 102]);
    assert_eq!(read.meta.lost, []);
    let nobody = (1, "<...>");
    let wanted = [nobody, (2, "kswapd0"), (0, "<idle>"), nobody, nobody];
    assert_eq!(comms(&read), wanted);
    let begin = &read.snapshots[0];
    assert_eq!(begin.name, record::BEGIN);
    assert_eq!(begin.files[0].time, Some((900, 910)));
    let flags = begin.content("kpageflags").unwrap().bytes();
    assert_eq!((flags.len(), flags[8]), (4800, 1));
}

#[test]
fn names_are_kept_unless_it_is_anonymous() {
    let scratch = Scratch::new("names");
    let (spool, output) = spool(&scratch, false, b"");
    let made = finish(spool, &Ending::default(), &output)
        .unwrap()
        .recording;
    assert_eq!(comms(&made)[..2], [(4711, "cc1"), (55, "kswapd0")]);
}

#[test]
fn a_partial_sub_buffer_is_counted_as_lost() {
    let scratch = Scratch::new("cut");
    let more = page(9000, None, &[(1, 200), (1, 201)]);
    let (spool, output) = spool(&scratch, true, &more[..PAGE - 1]);
    let ending = Ending {
        counts: "CPU: 0\noverrun: 0\nread events: 3\nCPU: 1\noverrun: 4\nread events: 4\n".into(),
        early: Some("No space left on device".into()),
        ..Ending::default()
    };
    let made = finish(spool, &ending, &output).unwrap().recording;
    assert_eq!(made.events.len(), 5);
    let lost = Lost {
        cpu: 1,
        before_event: 5,
        count: Some(6),
    };
    assert_eq!(made.meta.lost, [lost]);
    assert_eq!(made.meta.facts["ended_early"], "No space left on device");
}

#[test]
fn the_spool_stays_if_the_output_cannot_be_written() {
    let scratch = Scratch::new("recover");
    let (spool, output) = spool(&scratch, true, b"");
    let dir = spool.dir().to_owned();
    fs::create_dir(&output).unwrap();
    let e = finish(spool, &Ending::default(), &output)
        .unwrap_err()
        .to_string();
    assert!(e.contains("--recover"), "{e}");
    fs::remove_dir(&output).unwrap();
    assert_eq!(record::recover(&dir, None).unwrap().events.len(), 5);
    assert!(output.is_file() && !dir.exists());
    let e = record::recover(&dir, None).unwrap_err().to_string();
    assert!(e.contains("spool"), "{e}");
}
