//! Windows of time: each command, over each kind of input, by each kind of moment.

use crate::support::{head, lay_out, sample, text, unfrag, write_snapshot};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use unfrag_linux::content::Content;
use unfrag_linux::file;
use unfrag_linux::recording::{Recording, Snapshot, SnapshotFile};
use unfrag_linux::segments::{BOOT, EPOCH_OFFSET};

const SECOND: u64 = 1_000_000_000;
/// When the recordings begin: 2026-11-28, 06:00:00 in UTC, which is 07:00 where they are asked about.
const BEGIN: u64 = 1_795_845_600 * SECOND;
const ZONE: &str = "Europe/Berlin";

/// A kind of input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// One file, which says at what date it was made.
    Dated,
    /// One that does not.
    Undated,
    /// Segments of a second.
    Segments,
    /// Copies of procfs, named by their dates.
    Copies,
    /// A raw trace.
    Trace,
}

/// The recording, from its first event on at a date.
fn dated(mut rec: Recording) -> Recording {
    let first = rec.events.time[0];
    let offset = BEGIN as i64 - first as i64;
    let facts = &mut rec.meta.facts;
    facts.insert(EPOCH_OFFSET.into(), offset.to_string());
    facts.insert(BOOT.into(), "a".into());
    rec
}

/// The events from second to second.
fn piece(rec: &Recording, from: u64, to: u64) -> Recording {
    let first = rec.events.time[0];
    let mut piece = rec.clone();
    let end = first + to * SECOND;
    let at = piece.events.time.partition_point(|&t| t < end);
    drop(piece.events.split_off(at));
    let at = piece
        .events
        .time
        .partition_point(|&t| t < first + from * SECOND);
    piece.events = piece.events.split_off(at);
    let second = |s: &Snapshot| {
        s.files[0]
            .time
            .map_or(0, |t| t.0.saturating_sub(first) / SECOND)
    };
    piece.snapshots.retain(|s| (from..to).contains(&second(s)));
    piece
}

/// Lays a recording out as each kind of input.
fn lay(rec: &Recording, seconds: u64, dir: &Path) -> Laid {
    let mut rec = head(rec, seconds);
    rec.meta.snapshot_offset_ns = 0;
    if let Some(flags) = rec.snapshots.first_mut() {
        let time = flags.files[0].time;
        flags.files.push(SnapshotFile {
            name: "kpageflags".into(),
            time,
            content: Content::pack(&[0; 768 << 11][..]).unwrap(),
        });
    }
    let with_date = dated(rec.clone());
    let path = |name: &str| dir.join(name);
    file::write(&rec, &path("undated.unfrag")).unwrap();
    file::write(&with_date, &path("dated.unfrag")).unwrap();
    fs::create_dir_all(path("segments")).unwrap();
    for n in 0..seconds {
        let segment = piece(&with_date, n, n + 1);
        file::write(&segment, &path("segments").join(format!("{n}.unfrag"))).unwrap();
    }
    let first = with_date.events.time[0];
    for s in &with_date.snapshots {
        let after = s.files[0].time.unwrap().0.saturating_sub(first) / SECOND;
        write_snapshot(
            s,
            &path("copies").join(format!("2026-11-28T06:00:{after:02}Z")),
        );
    }
    let raw = path("raw");
    fs::create_dir_all(&raw).unwrap();
    lay_out(&rec, &raw);
    vec![
        (Kind::Dated, path("dated.unfrag")),
        (Kind::Undated, path("undated.unfrag")),
        (Kind::Segments, path("segments")),
        (Kind::Copies, path("copies")),
        (Kind::Trace, raw.join("trace.dat")),
    ]
}

/// The commands, the kinds of input that they take, and what they are given besides.
const COMMANDS: [(&str, &[Kind], &[&str]); 7] = {
    use Kind::*;
    [
        (
            "doctor",
            &[Dated, Undated, Segments, Copies],
            &["--page-size", "4K"],
        ),
        ("inspect", &[Dated, Undated, Segments, Copies], &[]),
        (
            "summary",
            &[Dated, Undated, Segments, Trace],
            &["--release", "6.1.0"],
        ),
        (
            "blame",
            &[Dated, Undated, Segments, Trace],
            &["--release", "6.1.0"],
        ),
        (
            "profile",
            &[Dated, Undated, Segments, Trace],
            &["--release", "6.1.0"],
        ),
        (
            "replay",
            &[Dated, Undated, Segments],
            &["--members", "1", "--any-share"],
        ),
        ("slab", &[Dated, Undated, Segments], &[]),
    ]
};

/// Windows from second 2 to 4, and whether they need a date.
const MOMENTS: [(&str, &str, bool); 7] = [
    ("2", "4", false),
    ("2s", "4s", false),
    ("07:00:02", "07:00:04", true),
    ("2026-11-28T07:00:02", "2026-11-28 07:00:04", true),
    ("2026-11-28T06:00:02Z", "2026-11-28T06:00:04Z", true),
    (
        "2026-11-28T08:00:02+02:00",
        "2026-11-28T01:00:04-05:00",
        true,
    ),
    ("2s", "07:00:04", true),
];

fn ask(command: &str, path: &Path, from: &str, to: &str, more: &[&str]) -> (i32, String, String) {
    let out = unfrag()
        .env("TZ", ZONE)
        .arg(command)
        .arg(path)
        .args(["--from", from, "--to", to])
        .args(more)
        .output()
        .unwrap();
    (
        out.status.code().unwrap(),
        text(&out.stdout),
        text(&out.stderr),
    )
}

/// Inputs of each kind.
type Laid = Vec<(Kind, PathBuf)>;

/// A recording of pages and one of slabs, each as every kind of input.
fn inputs(dir: &Path) -> (Laid, Laid) {
    for name in ["pages", "slab"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let pages = lay(&sample(), 6, &dir.join("pages"));
    let mut slab = file::read(&crate::support::root().join("samples/slab-find.unfrag")).unwrap();
    // Its events are stretched, to last as long.
    let (first, last) = (slab.events.time[0], *slab.events.time.last().unwrap());
    let stretch = 6.0 * SECOND as f64 / (last - first + 1) as f64;
    for t in &mut slab.events.time {
        *t = first + ((*t - first) as f64 * stretch) as u64;
    }
    let slab = lay(&slab, 6, &dir.join("slab"));
    (pages, slab)
}

/// A snapshot is taken before the first event: it is of the beginning.
#[test]
fn from_the_beginning_on_is_all_of_it() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let mut rec = dated(sample());
    let first = rec.events.time[0].saturating_add_signed(rec.meta.snapshot_offset_ns);
    for file in &mut rec.snapshots[0].files {
        file.time = Some((first - SECOND, first - SECOND));
    }
    let path = dir.join("r.unfrag");
    file::write(&rec, &path).unwrap();
    for command in ["inspect", "summary"] {
        let all = unfrag()
            .arg(command)
            .arg(&path)
            .arg("--json")
            .output()
            .unwrap();
        let some = unfrag()
            .arg(command)
            .arg(&path)
            .args(["--from", "0", "--json"])
            .output()
            .unwrap();
        let json = |out: &[u8]| -> Value { serde_json::from_slice(out).unwrap() };
        assert_eq!(json(&some.stdout), json(&all.stdout), "{command}");
    }
}

#[test]
fn dates_that_are_none_are_told_apart() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("r.unfrag");
    file::write(&dated(sample()), &path).unwrap();
    let said = |zone: &str, from: &str| {
        let out = unfrag()
            .env("TZ", zone)
            .args(["inspect", "--from", from])
            .arg(&path)
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2), "{from}");
        text(&out.stderr)
    };
    for (zone, from, part) in [
        (ZONE, "2026-02-30", "there is no day 2026-02-30"),
        (ZONE, "2300-01-01", "goes from 1970 to 2262"),
        (ZONE, "2026-03-29 02:30", "was put forward over it"),
        (
            "Mars/Olympus",
            "2026-11-28T06:00",
            "TZ=Mars/Olympus is no time zone",
        ),
        ("Mars/Olympus", "06:00", "TZ=Mars/Olympus is no time zone"),
        (
            "Mars/Olympus",
            "yesterday",
            "TZ=Mars/Olympus is no time zone",
        ),
    ] {
        let err = said(zone, from);
        assert!(err.contains(part), "{zone} {from}: {err}");
    }
    // What needs no clock of this host is answered.
    for from in ["2026-11-28T06:00Z", "1s"] {
        let out = unfrag()
            .env("TZ", "Mars/Olympus")
            .args(["inspect", "--from", from])
            .arg(&path)
            .output()
            .unwrap();
        assert!(out.status.success(), "{from}: {}", text(&out.stderr));
    }
}

#[test]
fn every_command_takes_every_window_of_every_input_and_says_what_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let (pages, slab) = inputs(scratch.path());
    for (command, kinds, more) in COMMANDS {
        let all = if command == "slab" { &slab } else { &pages };
        for (kind, path) in all.iter().filter(|(k, _)| kinds.contains(k)) {
            let has_dates = !matches!(kind, Kind::Undated | Kind::Trace);
            let mut answers: Vec<(&str, Value)> = vec![];
            for (from, to, needs_date) in MOMENTS {
                let what = format!("{command} {kind:?} {from} {to}");
                let mut words = more.to_vec();
                words.push("--json");
                let (status, out, err) = ask(command, path, from, to, &words);
                if needs_date && !has_dates {
                    assert_eq!(status, 1, "{what}: {out}{err}");
                    assert!(
                        err.contains("--from 90m") && err.contains("the recording is from 0s to "),
                        "{what}: {err}"
                    );
                    continue;
                }
                assert_eq!(status, 0, "{what}: {err}");
                let answer: Value = serde_json::from_str(&out).unwrap();
                let window = &answer["window"];
                let seconds = |name: &str| window[name].as_f64().unwrap();
                // Copies are dated to the second, and the first one may be later than the first event.
                let near = |a: f64, b: f64| (a - b).abs() < 1.1;
                assert!(
                    near(seconds("from_seconds"), 2.0) && near(seconds("to_seconds"), 4.0),
                    "{what}: {window}"
                );
                if has_dates {
                    assert_eq!(window["from"], "2026-11-28T07:00:02+01:00", "{what}");
                    assert_eq!(window["to"], "2026-11-28T07:00:04+01:00", "{what}");
                } else {
                    assert_eq!(window["from"], Value::Null, "{what}");
                }
                answers.push((from, answer));
            }
            // Asked by another clock, it is the same answer.
            let (_, first) = &answers[0];
            for (from, answer) in &answers[1..] {
                let same = answer == first;
                // Copies begin with the first of them, so that seconds and dates differ by less than one.
                assert!(same || *kind == Kind::Copies, "{command} {kind:?} {from}");
            }
            let (_, said, _) = ask(command, path, "2", "4", more);
            let line = said.lines().next().unwrap();
            assert!(
                line.starts_with("Window: from 2"),
                "{command} {kind:?}: {line}"
            );
        }
    }
}

#[test]
fn a_window_is_what_was_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir(scratch.path().join("pages")).unwrap();
    let rec = head(&sample(), 6);
    let inputs = lay(&rec, 6, &scratch.path().join("pages"));
    let first = rec.events.time[0];
    let inside = |t: &&u64| (first + 2 * SECOND..first + 4 * SECOND).contains(*t);
    let events = rec.events.time.iter().filter(inside).count() as u64;
    for (kind, path) in inputs {
        let json = |command: &str, more: &[&str]| -> Value {
            let words: Vec<&str> = more.iter().chain(&["--json"]).copied().collect();
            let (status, out, err) = ask(command, &path, "2", "4", &words);
            assert_eq!(status, 0, "{command} {kind:?}: {err}");
            serde_json::from_str(&out).unwrap()
        };
        if kind != Kind::Copies {
            let release = ["--release", "6.1.0"];
            let summary = json("summary", &release);
            let counts = summary["kinds"].as_array().unwrap().iter();
            let of_kinds: u64 = counts.map(|k| k["count"].as_u64().unwrap()).sum();
            let blame = json("blame", &release);
            let seconds = blame["seconds"].as_f64().unwrap();
            let answers = [&summary["events"], &blame["events"]].map(|n| n.as_u64().unwrap());
            // The text that the trace was made of has allocations and frees alone.
            if kind != Kind::Trace {
                assert_eq!(answers, [events; 2], "{kind:?}");
            }
            assert_eq!((answers[0], of_kinds), (answers[1], answers[0]), "{kind:?}");
            assert!((1.9..=2.1).contains(&seconds), "{kind:?}: {seconds}");
            let both = json("summary", &["--release", "6.1.0", "--blame", "--profile"]);
            for (alone, together) in [(&summary, &both["summary"]), (&blame, &both["blame"])] {
                let (mut alone, mut together) = (alone.clone(), together.clone());
                for v in [&mut alone, &mut together] {
                    v.as_object_mut().unwrap().remove("window");
                }
                assert_eq!(alone["events"], together["events"], "{kind:?}");
                assert_eq!(alone["kinds"], together["kinds"], "{kind:?}");
            }
        }
        if kind != Kind::Trace {
            let shown = json("inspect", &[]);
            assert_eq!(
                shown["snapshots"].as_array().unwrap().len(),
                2,
                "{kind:?}: {shown}"
            );
            let source = json("doctor", &[])["diagnosis"]["source"]
                .as_str()
                .unwrap()
                .to_owned();
            let last = shown["snapshots"][1]["name"].as_str().unwrap();
            assert!(source.ends_with(last), "{kind:?}: {source}, {last}");
        }
    }
}

#[test]
fn a_window_outside_is_answered_with_the_range_that_there_is() {
    let scratch = tempfile::tempdir().unwrap();
    let (pages, slab) = inputs(scratch.path());
    for (command, kinds, more) in COMMANDS {
        let all = if command == "slab" { &slab } else { &pages };
        for (kind, path) in all.iter().filter(|(k, _)| kinds.contains(k)) {
            let is_dated = !matches!(kind, Kind::Undated | Kind::Trace);
            let range = match is_dated {
                true => "the recording is from 2026-11-28 07:00:0",
                false => "the recording is from 0s to ",
            };
            let mut windows = vec![("1h", "2h"), ("4", "2")];
            if is_dated {
                windows.extend([
                    ("yesterday 02:00", "yesterday 03:00"),
                    ("2020-01-01", "2020-01-02"),
                    ("02:00", "03:00"),
                    ("09:00", "08:00"),
                ]);
            }
            for (from, to) in windows {
                let (status, out, err) = ask(command, path, from, to, more);
                assert_eq!(status, 1, "{command} {kind:?} {from}: {out}{err}");
                assert!(err.contains(range), "{command} {kind:?} {from}: {err}");
            }
        }
        let (status, _, err) = ask(command, &all[0].1, "soon", "4", more);
        assert!(status == 2 && err.contains("02:00"), "{command}: {err}");
    }
    for command in ["doctor", "inspect"] {
        let (status, _, err) = ask(command, Path::new("/proc"), "02:00", "03:00", &[]);
        assert!(
            status == 2 && err.contains("as it is now"),
            "{command}: {err}"
        );
    }
}

#[test]
fn what_a_window_has_not_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir(scratch.path().join("pages")).unwrap();
    let inputs = lay(&sample(), 6, &scratch.path().join("pages"));
    for (kind, path) in inputs {
        // Of the segments only the first one has page flags here, and the window does not touch it.
        if !matches!(kind, Kind::Dated | Kind::Undated) {
            continue;
        }
        let (status, out, err) = ask("blame", &path, "4", "1h", &[]);
        assert_eq!(status, 0, "{err}");
        let line = out.lines().next().unwrap();
        assert!(line.contains("The recording ends there."), "{line}");
        assert!(
            line.contains("where page flags were read"),
            "{kind:?}: {line}"
        );
        if kind == Kind::Dated {
            let (_, out, _) = ask("summary", &path, "2026-11-28", "07:00:03", &[]);
            let line = out.lines().next().unwrap();
            assert!(line.contains("begins only then"), "{line}");
        }
    }
}

#[test]
fn kernel_is_what_is_asked_for_and_release_what_was_recorded() {
    for command in ["doctor", "summary"] {
        crate::support::fails(
            &[command, crate::support::SAMPLE, "--kernel", "4.9"],
            2,
            &["unfrag replay", "--release 4.9"],
        );
    }
}
