//! One offset between the trace's clock and the snapshots', told by the pages freed.

use crate::recording_support::synthetic::Maker;
use std::ops::Range;
use unfrag_lab::replay::causes::clock::Clock;
use unfrag_linux::recording::{Recording, Snapshot, SnapshotFile};

const SECOND: u64 = 1_000_000_000;
/// Pages freed before the trace began.
const BEFORE: u64 = 5000;

/// Forty seconds: in each fourth one a page is freed each millisecond, else none. A snapshot in the
/// middle of each second, by a clock that is `offset` ahead. Where `fine`, each file of a snapshot has
/// a time of its own.
fn recording(offset: i64, fine: bool, seconds: Range<u64>) -> Recording {
    let mut m = Maker::default();
    for i in (0..40_000).filter(|i| i / 1000 % 4 == 0) {
        m.now = SECOND + i * 1_000_000;
        m.free(100 + i % 50, 0);
    }
    m.now = 41 * SECOND;
    m.free(100, 0);
    let times = m.rec.events.time.clone();
    m.rec.snapshots = seconds
        .map(|s| {
            // Half a millisecond after a free, if any.
            let read = SECOND + s * SECOND + 500_500_000;
            let time = read.saturating_add_signed(offset);
            let freed = BEFORE + times.iter().filter(|t| **t <= read).count() as u64;
            let file = |name: &str, time, text: String| SnapshotFile {
                name: name.into(),
                time: Some((time, time)),
                content: text.into(),
            };
            Snapshot {
                name: format!("s{s}"),
                files: vec![
                    file("buddyinfo", time - u64::from(fine) * 300_000, String::new()),
                    file("vmstat", time, format!("nr_free_pages 1\npgfree {freed}\n")),
                ],
            }
        })
        .collect();
    m.rec
}

const EACH: Range<u64> = 0..40;

#[test]
fn a_recording_has_one_offset_that_its_counters_tell() {
    for offset in [700_000_000, -400_000_000] {
        let clock = Clock::of(&recording(offset, false, EACH)).unwrap();
        let apart = clock.offset.abs_diff(offset);
        assert!(apart < 2_000_000, "{} is not {offset}", clock.offset);
    }
}

#[test]
fn clocks_that_are_nearly_the_same_are_the_same() {
    // Where one time stands for a whole snapshot, less than 3 ms are noise.
    assert_eq!(
        Clock::of(&recording(2_000_000, false, EACH))
            .unwrap()
            .offset,
        0
    );
    assert_ne!(
        Clock::of(&recording(20_000_000, false, EACH))
            .unwrap()
            .offset,
        0
    );
}

#[test]
fn finely_dated_snapshots_keep_their_clock() {
    assert_eq!(
        Clock::of(&recording(20_000_000, true, EACH))
            .unwrap()
            .offset,
        0
    );
    assert_ne!(
        Clock::of(&recording(700_000_000, true, EACH))
            .unwrap()
            .offset,
        0
    );
}

#[test]
fn an_offset_that_the_maker_noted_is_kept() {
    let mut rec = recording(700_000_000, false, EACH);
    rec.meta.snapshot_offset_ns = 650_000_000;
    assert_eq!(Clock::of(&rec).unwrap().offset, 650_000_000);
}

#[test]
fn one_snapshot_read_late_does_not_move_the_clock() {
    let mut rec = recording(700_000_000, false, EACH);
    for f in &mut rec.snapshots[8].files {
        f.time = f.time.map(|(a, b)| (a + SECOND / 2, b + SECOND / 2));
    }
    let clock = Clock::of(&rec).unwrap();
    assert!(
        clock.offset.abs_diff(700_000_000) < 2_000_000,
        "{}",
        clock.offset
    );
}

#[test]
fn one_dated_snapshot_gives_no_offset() {
    assert_eq!(
        Clock::of(&recording(700_000_000, false, 4..6))
            .unwrap()
            .offset,
        0
    );
}

#[test]
fn a_snapshot_is_dated_by_its_own_counter() {
    let rec = recording(0, false, EACH);
    let clock = Clock::of(&rec).unwrap();
    let dated = clock.date(&rec.snapshots[4]).unwrap().unwrap();
    assert!(dated.abs_diff(5_500_500_000) <= 1_000_000, "{dated}");
    // Where nothing was freed for seconds, it says nothing.
    assert_eq!(clock.date(&rec.snapshots[5]).unwrap(), None);
}

#[test]
fn a_mark_is_the_beginning_if_nothing_was_freed_between_it_and_the_trace() {
    let mut rec = recording(0, false, EACH);
    let clock = Clock::of(&rec).unwrap();
    let mut mark = |freed: u64| {
        let s = &mut rec.snapshots[0];
        s.files[1].content = format!("pgfree {freed}\n").into();
        clock.begins_at(s).unwrap()
    };
    assert!(mark(BEFORE));
    assert!(!mark(BEFORE - 1));
    assert!(!mark(BEFORE + 1));
}

#[test]
fn a_vmstat_that_cannot_be_read_is_an_error() {
    let mut rec = recording(0, false, EACH);
    rec.snapshots[2].files[1].content = "pgfree many\n".into();
    assert!(Clock::of(&rec).is_err());
}

#[test]
fn a_recorder_with_one_clock_is_believed_and_one_command_dates_nothing() {
    let mut rec = recording(700_000_000, true, EACH);
    rec.meta.clock = "mono".into();
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    rec.meta.facts.extend([fact("snapshot_clock", "mono")]);
    let clock = Clock::of(&rec).unwrap();
    assert_eq!(clock.offset, 0);
    assert!(clock.date(&rec.snapshots[4]).unwrap().is_some());
    rec.meta.facts.extend([fact("scope", "command")]);
    let clock = Clock::of(&rec).unwrap();
    assert_eq!(clock.offset, 0);
    assert_eq!(clock.date(&rec.snapshots[4]).unwrap(), None);
}
