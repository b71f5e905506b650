//! Recordings of days: directories of segments, windows of time over them, and recorders that die.
#![cfg(target_os = "linux")]

use crate::support::{can_trace, fails, head, json, kill, sample, text, unfrag};
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use unfrag_lab::input::{EventSource, FileEvents, Input};
use unfrag_lab::replay::{self, NoWatch};
use unfrag_linux::file::{self, Reader, Wanted};
use unfrag_linux::recording::{Events, Recording};
use unfrag_linux::segments::{self, BOOT, Beginning, EPOCH_OFFSET, Extent, Moment, Window};

const SECOND: u64 = 1_000_000_000;
/// A segment of the made recordings lasts a quarter of an hour.
const QUARTER: u64 = 900 * SECOND;
/// Where the made recordings begin: 2026-11-28, 06:00 in UTC.
const BEGIN: u64 = 1_795_845_600 * SECOND;

/// A recording shifted by a time, of which the first event is at a date.
fn shifted(rec: &Recording, by: u64, boot: &str) -> Recording {
    let mut rec = rec.clone();
    let first = rec.events.time[0];
    rec.events.time.iter_mut().for_each(|t| *t += by);
    for file in rec.snapshots.iter_mut().flat_map(|s| &mut s.files) {
        file.time = file.time.map(|(a, b)| (a + by, b + by));
    }
    let offset = BEGIN as i64 - first as i64;
    rec.meta
        .facts
        .insert(EPOCH_OFFSET.into(), offset.to_string());
    rec.meta.facts.insert(BOOT.into(), boot.into());
    rec
}

/// Two days in segments, each with the first seconds of the sample.
fn two_days(dir: &Path) -> Recording {
    let mut rec = head(&sample(), 6);
    // One clock, as the recorder's own.
    rec.meta.snapshot_offset_ns = 0;
    for n in 0..192u64 {
        let name = format!("{:02}-{:02}.unfrag", n / 4, n % 4 * 15);
        file::write(&shifted(&rec, n * QUARTER, "a"), &dir.join(name)).unwrap();
    }
    rec
}

/// Destroys the first half of a file, where its events are; its manifest stays.
fn destroy_events(path: &Path) {
    let mut file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let len = file.metadata().unwrap().len() as usize;
    let mut bytes = vec![0; len / 2];
    file.seek(SeekFrom::Start(64)).unwrap();
    file.read_exact(&mut bytes).unwrap();
    bytes.iter_mut().for_each(|b| *b = !*b);
    file.seek(SeekFrom::Start(64)).unwrap();
    file.write_all(&bytes).unwrap();
}

#[test]
fn a_window_of_two_days_is_replayed_without_reading_the_rest() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("days");
    fs::create_dir(&dir).unwrap();
    let rec = two_days(&dir);
    // Nothing but the hour is whole.
    for path in segments::list(&dir).unwrap() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("24-") {
            destroy_events(&path);
            let mut reader = Reader::open(&path).unwrap();
            assert!(reader.part(0).is_err(), "{name} was not damaged");
        }
    }
    let dir = dir.to_str().unwrap();
    for (from, to) in [
        ("24h", "1470m"),
        ("2026-11-29T06:00Z", "2026-11-29T06:30:00Z"),
    ] {
        let report = json(&["replay", dir, "--from", from, "--to", to, "--json"]);
        let events = report["recording"]["events"].as_u64().unwrap();
        assert_eq!(events, 2 * rec.events.len() as u64, "{from}");
    }
    let shown = json(&["inspect", dir, "--from", "24h", "--to", "1470m", "--json"]);
    let names = shown["snapshots"].as_array().unwrap();
    assert!(
        names
            .iter()
            .all(|s| s["name"].as_str().unwrap().starts_with("24-")),
        "{shown}"
    );
    fails(
        &["replay", dir, "--from", "49h"],
        1,
        &["nothing was recorded"],
    );
    fails(&["replay", dir, "--from", "soon"], 2, &["90m"]);
    fails(
        &["replay", "samples/gcc-768M.unfrag", "--from", "2026-11-28"],
        1,
        &["--from 90m"],
    );
}

#[test]
fn a_window_of_one_file_is_its_events_and_snapshots_of_that_time() {
    let rec = sample();
    let path = crate::support::root().join(crate::support::SAMPLE);
    let first = rec.events.time[0];
    let window = Window {
        from: Some(Moment::After(10 * SECOND)),
        to: Some(Moment::After(20 * SECOND)),
        ..Window::default()
    };
    let part = segments::read(&path, &window, Extent::All, Beginning::PageFlags)
        .unwrap()
        .0;
    let inside = |t: &&u64| (first + 10 * SECOND..first + 20 * SECOND).contains(*t);
    assert_eq!(
        part.events.len(),
        rec.events.time.iter().filter(inside).count()
    );
    assert!(part.events.len() > 1000);
    for (a, b) in part.events.tables.iter().zip(&rec.events.tables) {
        assert_eq!((&a.name, &a.fields), (&b.name, &b.fields));
    }
    assert!((1..rec.snapshots.len()).contains(&part.snapshots.len()));
    let all = segments::read(&path, &Window::default(), Extent::All, Beginning::PageFlags)
        .unwrap()
        .0;
    assert!(all == rec, "the whole file is the whole recording");
}

/// The events that `keep` wants, of the tasks in the opposite order.
fn part(rec: &Recording, keep: impl Fn(u64, u16) -> bool) -> Recording {
    let mut part = rec.clone();
    part.tasks.reverse();
    let all = &rec.events;
    part.events = Events {
        tables: all.tables.clone(),
        ..Events::default()
    };
    let columns = part.events.tables.iter_mut().flat_map(|t| &mut t.columns);
    columns.for_each(Vec::clear);
    let mut rows = vec![0; all.tables.len()];
    for (i, &kind) in all.kind.iter().enumerate() {
        let row: usize = rows[usize::from(kind)];
        rows[usize::from(kind)] += 1;
        if !keep(all.time[i], all.cpu[i]) {
            continue;
        }
        let to = &mut part.events;
        to.time.push(all.time[i]);
        to.cpu.push(all.cpu[i]);
        to.task.push(rec.tasks.len() as u32 - 1 - all.task[i]);
        to.flags.push(all.flags[i]);
        to.preempt.push(all.preempt[i]);
        to.kind.push(kind);
        let from = &all.tables[usize::from(kind)].columns;
        let to = &mut to.tables[usize::from(kind)].columns;
        from.iter()
            .zip(to)
            .for_each(|(from, to)| to.push(from[row]));
    }
    // What has no events has no number either.
    let mut number = vec![];
    let mut next = 0;
    part.events.tables.retain(|t| {
        let is_kept = !t.columns[0].is_empty();
        number.push(next);
        next += u8::from(is_kept);
        is_kept
    });
    part.events
        .kind
        .iter_mut()
        .for_each(|k| *k = number[usize::from(*k)]);
    part
}

#[test]
fn segments_whose_ends_overlap_are_read_in_the_order_of_time() {
    let dir = tempfile::tempdir().unwrap();
    let rec = head(&sample(), 12);
    let first = rec.events.time[0];
    // A buffer of a CPU is emptied after those of the others.
    let end = |n: u64, cpu: u16| first + n * 3 * SECOND + u64::from(cpu) * SECOND / 2;
    for n in 0..4 {
        let own = |time: u64, cpu: u16| {
            (n == 0 || time >= end(n, cpu)) && (n == 3 || time < end(n + 1, cpu))
        };
        let mut segment = part(&rec, own);
        if n > 0 {
            segment.snapshots.clear();
        }
        let segment = shifted(&segment, 0, "a");
        file::write(&segment, &dir.path().join(format!("{n}.unfrag"))).unwrap();
    }
    let window = Window::default();
    let joined = segments::read(dir.path(), &window, Extent::All, Beginning::PageFlags)
        .unwrap()
        .0;
    assert!(joined.events.time.is_sorted());
    assert_eq!(joined.events.len(), rec.events.len());

    let (rest, events, _) = FileEvents::open(dir.path(), &window, Beginning::PageFlags).unwrap();
    assert_eq!(
        (events.len(), events.span()),
        (joined.events.len() as u64, joined.events.span())
    );
    assert_eq!(events.rows(), joined.events.rows());
    let mut seen: Vec<(u64, u16, u32, String, Vec<u64>)> = vec![];
    let list = |seen: &mut Vec<_>, events: &Events| {
        let mut rows = vec![0; events.tables.len()];
        for (i, &kind) in events.kind.iter().enumerate() {
            let table = &events.tables[usize::from(kind)];
            let row: usize = rows[usize::from(kind)];
            rows[usize::from(kind)] += 1;
            let values = table.columns.iter().map(|c| c[row]).collect();
            seen.push((
                events.time[i],
                events.cpu[i],
                events.task[i],
                table.name.clone(),
                values,
            ));
        }
        Ok(())
    };
    let each = &mut |batch: &Events| list(&mut seen, batch);
    events.each(0..=u64::MAX, Wanted::ALL, each).unwrap();
    let mut wanted = vec![];
    list(&mut wanted, &joined.events).unwrap();
    assert!(seen == wanted, "streamed and joined differ");

    let options = replay::Options::default();
    let of = |input: Input<'_>| {
        let report = replay::replay(input, "days", &options, &mut NoWatch).unwrap();
        serde_json::to_string(&report).unwrap()
    };
    let streamed = of(Input::new(&rest, &events, 1 << 20));
    assert!(streamed == of(Input::from(&joined)), "the replays differ");
}

#[test]
fn segments_of_two_boots_are_not_put_together() {
    let dir = tempfile::tempdir().unwrap();
    let rec = head(&sample(), 3);
    for (n, boot) in [(0, "a"), (1, "a"), (2, "b")] {
        let path = dir.path().join(format!("{n}.unfrag"));
        file::write(&shifted(&rec, n * QUARTER, boot), &path).unwrap();
    }
    let read = |from: u64, to: u64| {
        let window = Window {
            from: Some(Moment::After(from)),
            to: Some(Moment::After(to)),
            ..Window::default()
        };
        let rec = segments::read(dir.path(), &window, Extent::All, Beginning::PageFlags)
            .unwrap()
            .0;
        (rec.meta.facts[BOOT].clone(), rec.events.len())
    };
    assert_eq!(
        read(0, QUARTER + 10 * SECOND),
        ("a".into(), 2 * rec.events.len())
    );
    assert_eq!(read(0, 3 * QUARTER), ("b".into(), rec.events.len()));
}

fn recorder(dir: &Path, keep: &str) -> Command {
    let mut command = unfrag();
    command
        .args([
            "record",
            "--system",
            "--keep",
            keep,
            "--segment",
            "1s",
            "-o",
        ])
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Instances of the tracer whose recorders are dead.
fn instances_of_the_dead() -> Vec<String> {
    let roots = [
        "/sys/kernel/tracing/instances",
        "/sys/kernel/debug/tracing/instances",
    ];
    let items = roots
        .iter()
        .filter_map(|r| fs::read_dir(r).ok())
        .flatten()
        .flatten();
    let names = items.map(|i| i.file_name().to_string_lossy().into_owned());
    let is_left = |n: &String| {
        let pid = n.strip_prefix("unfrag-");
        pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    names.filter(is_left).collect()
}

/// Process ids of guardians of spools in a directory.
fn guardians(dir: &Path) -> Vec<u32> {
    let wanted = dir.to_string_lossy().into_owned();
    let of = |item: fs::DirEntry| {
        let pid = item.file_name().to_str()?.parse().ok()?;
        let line = fs::read(item.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        (line.contains("record-guardian") && line.contains(&wanted)).then_some(pid)
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(of)
        .collect()
}

/// A crash costs the last segment at most. `UNFRAG_TEST_KILLS=50` kills more often.
#[test]
fn a_killed_recorder_leaves_whole_segments_and_the_next_start_cleans_up() {
    if !can_trace() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("days");
    let kills: u64 = std::env::var("UNFRAG_TEST_KILLS").map_or(4, |n| n.parse().unwrap());
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut state = seed;
    for n in 0..kills {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mut child = recorder(&dir, "40M").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300 + (state >> 33) % 3000));
        // With its guardian, as a crash of the host does, or alone.
        let both = n % 2 == 0;
        let watching = guardians(&dir);
        kill(child.id(), "KILL");
        if both {
            watching.iter().for_each(|&pid| kill(pid, "KILL"));
        }
        child.wait().unwrap();
        for path in segments::list(&dir).unwrap() {
            let read = file::read(&path);
            assert!(read.is_ok(), "{}: {:?}", path.display(), read.err());
        }
    }
    let mut last = recorder(&dir, "40M");
    let done = last.args(["--for", "3s"]).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(instances_of_the_dead(), Vec::<String>::new());
    let left: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|i| i.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.ends_with(".unfrag"))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "spools are segments now");
    let all = segments::list(&dir).unwrap();
    assert!(all.len() >= 3, "{all:?}");
    for path in &all {
        file::read(path).unwrap_or_else(|e| panic!("{e}"));
    }
    // What is left is one recording.
    let joined = segments::read(&dir, &Window::default(), Extent::All, Beginning::PageFlags)
        .unwrap()
        .0;
    assert!(joined.events.time.is_sorted() && !joined.events.is_empty());
}

#[test]
fn no_more_is_kept_than_was_asked_for() {
    if !can_trace() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("days");
    let mut command = recorder(&dir, "1K");
    let done = command.args(["--for", "5s", "--json"]).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let said: serde_json::Value = serde_json::from_slice(&done.stderr).unwrap();
    let count = |name: &str| said[name].as_u64().unwrap();
    assert!(count("segments") >= 2, "{said}");
    assert_eq!(segments::list(&dir).unwrap().len(), 1, "the newest stays");
    assert_eq!(count("segments_removed"), count("segments") - 1);
    assert!(said["cost"]["cpu_seconds"].as_f64().unwrap() > 0.0);
    // Whoever gives it away must know.
    assert_eq!(said["names"], serde_json::json!(["the names of programs"]));
}

/// Whatever lies in the directory, a recorder starts there, and loses none of it.
#[test]
fn damaged_and_planted_spools_end_no_recording() {
    if !can_trace() {
        return;
    }
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("days");
    let victim = scratch.path().join("victim");
    fs::create_dir(&dir).unwrap();
    fs::write(&victim, "victim").unwrap();
    let spool = |n: u32, job: &str| {
        let spool = dir.join(format!("20261128T06000{n}Z-00000{n}.unfrag.spool-1-{n}"));
        fs::create_dir(&spool).unwrap();
        fs::set_permissions(&spool, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(spool.join("job.json"), job).unwrap();
        fs::write(spool.join("cpu0.raw"), [7; 10_000]).unwrap();
        spool
    };
    spool(1, "{\"cpus\":");
    let planted = format!(
        "{{\"output\":{victim:?},\"instance\":{victim:?},\"names\":true,\"kernel_release\":\"6\",\"page_size\":4096,\
         \"cpus\":1,\"facts\":[],\"header_page\":\"field: char data; offset:16; size:0;\",\"formats\":[]}}"
    );
    spool(2, &planted);
    fs::remove_file(spool(3, "").join("job.json")).unwrap();
    symlink(
        scratch.path(),
        dir.join("20261128T060004Z-000004.unfrag.spool-1-4"),
    )
    .unwrap();
    fs::write(
        dir.join("20261128T060005Z-000005.unfrag.spool-\x1b[2J"),
        "mine",
    )
    .unwrap();
    // The user's own recording, which is no segment of a recorder.
    file::write(&head(&sample(), 1), &dir.join("1-mine.unfrag")).unwrap();
    let record = |words: &[&str]| {
        let mut command = recorder(&dir, "1K");
        command.args(["--for", "3s"]).args(words).output().unwrap()
    };
    let out = record(&[]);
    let said = text(&out.stderr);
    assert!(out.status.success(), "{said}");
    for n in 1..=4 {
        let name = format!("20261128T06000{n}Z-00000{n}.unfrag.set-aside-1-{n}");
        assert!(said.contains(&name), "{name}: {said}");
        assert!(fs::symlink_metadata(dir.join(&name)).is_ok(), "{name}");
        if n < 4 {
            assert_eq!(
                fs::read(dir.join(&name).join("cpu0.raw")).unwrap(),
                [7; 10_000]
            );
        }
    }
    assert!(!said.contains('\x1b'), "{said:?}");
    assert!(
        dir.join("20261128T060005Z-000005.unfrag.set-aside-\x1b[2J")
            .exists()
    );
    assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
    assert!(
        dir.join("1-mine.unfrag").exists(),
        "what is not a segment was removed"
    );
    // At the next start nothing of it is said again.
    let out = record(&["--json"]);
    let said: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
    assert_eq!(said["kept_spools"], serde_json::json!([]));
    // Segments are for their owner.
    for path in segments::list(&dir).unwrap() {
        assert_eq!(
            fs::metadata(&path).unwrap().mode() & 0o077,
            0,
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_directory_behind_another_users_link_is_refused() {
    if !can_trace() {
        return;
    }
    use std::os::unix::fs::{PermissionsExt, symlink};
    let scratch = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = scratch.path().join("days");
    symlink(elsewhere.path(), &link).unwrap();
    if std::os::unix::fs::lchown(&link, Some(61_001), None).is_err() {
        return;
    }
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let out = recorder(&link, "1M")
        .args(["--for", "1s"])
        .output()
        .unwrap();
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("link of another user"), "{said}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
