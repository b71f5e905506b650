//! Who is blamed for spoilt pageblocks, on small recordings made by hand.

use crate::recording_support::synthetic::{Maker, PAGE_DIRECTORY, USER_PAGE};
use unfrag_lab::blame::report::{Blocks, Next, Start};
use unfrag_lab::blame::{Blame, blame, svg, text};
use unfrag_lab::report::screen::Screen;
use unfrag_linux::recording::{FieldKind, Recording, Snapshot, SnapshotFile};
use unfrag_linux::segments::EPOCH_OFFSET;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
/// `__GFP_NORETRY | __GFP_NOWARN`, as slab caches ask.
const SLAB: u64 = 0x0d_2800;

/// A recording from second 1 on, in which `act` does something and then nothing happens until `end`.
fn recording(end: u64, act: impl FnOnce(&mut Maker)) -> Recording {
    let mut m = Maker::default();
    m.rec.meta.kernel_release = "6.1.0".into();
    act(&mut m);
    m.now = SECOND + end;
    m.task("idle").alloc(5000, 0, USER_PAGE);
    m.rec
}

/// So many holders, and every interval.
fn all(holders: usize) -> text::Rows {
    text::Rows {
        holders,
        intervals: usize::MAX,
    }
}

/// Program, purpose and the share in thousandths, of each holder.
fn shares(b: &Blame) -> Vec<(&str, &str, u64)> {
    let of = |h: &unfrag_lab::blame::report::Holder| (h.share * 1000.0).round() as u64;
    let holders = b.holders.iter();
    holders.map(|h| (h.who(), &*h.purpose, of(h))).collect()
}

#[test]
fn a_block_with_few_frames_of_the_kernel_is_shared_out_among_their_holders() {
    let rec = recording(60 * SECOND, |m| {
        m.task("cc1").alloc(512, 1, PAGE_DIRECTORY);
        m.task("kworker/0:1")
            .alloc(600, 0, SLAB)
            .alloc(601, 0, SLAB);
        m.task("user").alloc(700, 0, USER_PAGE);
    });
    let b = blame(&rec, "made").unwrap();
    assert_eq!(b.spoilt_blocks, 1.0);
    assert_eq!(
        shares(&b),
        [("cc1", "page tables", 500), ("kworker", "slab", 500)]
    );
    assert_eq!((b.holders[0].taken, b.holders[0].held_at_end), (2, 2));
    assert_eq!(b.start, Start::Unknown);
}

#[test]
fn a_block_that_is_mostly_the_kernels_is_its_own() {
    let rec = recording(60 * SECOND, |m| {
        m.task("cc1").alloc(512, 8, SLAB).alloc(1024, 7, SLAB);
    });
    let b = blame(&rec, "made").unwrap();
    assert_eq!(
        b.spoilt_blocks, 1.0,
        "256 of 512 frames do not spoil a block, 128 do"
    );
}

#[test]
fn what_is_freed_no_longer_spoils_and_times_show_it() {
    let rec = recording(60 * SECOND, |m| {
        m.task("cc1").alloc(512, 0, SLAB);
        m.now += 30 * SECOND;
        m.free(512, 0);
    });
    let b = blame(&rec, "made").unwrap();
    assert_eq!(b.interval_seconds, 10);
    let spoilt: Vec<f64> = b.intervals.iter().map(|i| i.spoilt_blocks).collect();
    assert_eq!(spoilt, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    // The same frame as a user's page, without a free in between, ends it too.
    let rec = recording(60 * SECOND, |m| {
        m.task("cc1").alloc(512, 0, SLAB).alloc(512, 0, USER_PAGE);
    });
    assert_eq!(blame(&rec, "made").unwrap().spoilt_blocks, 0.0);
}

#[test]
fn what_an_interrupt_takes_is_not_its_programs() {
    let rec = recording(60 * SECOND, |m| {
        m.flags = 0x10;
        m.task("cc1").alloc(512, 0, 0);
        m.flags = 0;
    });
    let b = blame(&rec, "made").unwrap();
    assert_eq!(shares(&b), [("(interrupt)", "other kernel memory", 1000)]);
}

#[test]
fn the_first_object_names_the_cache_of_a_new_slab() {
    let mut rec = recording(60 * SECOND, |m| {
        m.task("find").alloc(512, 0, SLAB);
        m.event("kmem_cache_alloc", &[("bytes_alloc", 192), ("name", 0)]);
        m.alloc(1024, 0, SLAB);
        m.event("kmalloc", &[("bytes_alloc", 64)]);
        // Another task on this CPU says nothing of it.
        m.alloc(1536, 0, SLAB);
        m.task("other").event("kmalloc", &[("bytes_alloc", 64)]);
    });
    rec.strings = vec!["dentry".into()];
    let table = rec
        .events
        .tables
        .iter_mut()
        .find(|t| t.name == "kmem_cache_alloc");
    table.unwrap().fields[1].kind = FieldKind::String;
    let b = blame(&rec, "made").unwrap();
    let thirds = [
        ("find", "slab", 333),
        ("find", "slab dentry", 333),
        ("find", "slab kmalloc-64", 333),
    ];
    assert_eq!(shares(&b), thirds);
}

/// A snapshot with page flags.
fn flags(time: u64, flags: &[u64]) -> Snapshot {
    let bytes: Vec<u8> = flags.iter().flat_map(|f| f.to_le_bytes()).collect();
    Snapshot {
        name: "started".into(),
        files: vec![SnapshotFile {
            name: "kpageflags".into(),
            time: Some((time, time)),
            content: bytes.into(),
        }],
    }
}

#[test]
fn page_cache_that_is_not_movable_is_a_file_systems() {
    let rec = recording(60 * SECOND, |m| {
        m.task("find").alloc(512, 0, 0x10_0c40);
        m.event("mm_filemap_add_to_page_cache", &[("pfn", 512)]);
        m.event("mm_filemap_add_to_page_cache", &[("pfn", 513)]);
    });
    let b = blame(&rec, "made").unwrap();
    assert_eq!(shares(&b), [("find", "file-system metadata", 1000)]);
    assert_eq!((b.holders[0].taken, b.holders[0].held_at_end), (1, 1));
}

#[test]
fn page_flags_tell_slab_and_page_tables_from_before() {
    const SLAB_FLAG: u64 = 1 << 7;
    const TAIL: u64 = 1 << 16;
    const PGTABLE: u64 = 1 << 26;
    let mut of = vec![0u64; 2048];
    (of[10], of[11]) = (SLAB_FLAG, TAIL);
    of[600] = PGTABLE;
    // This one is known better from the trace.
    of[1030] = SLAB_FLAG;
    let mut rec = recording(2 * HOUR, |m| {
        m.task("find").alloc(1030, 0, SLAB);
        m.now += SECOND;
        m.alloc(2000, 0, USER_PAGE);
    });
    // They count from the beginning, though they were read a little later.
    rec.snapshots = vec![flags(SECOND + SECOND / 2, &of)];
    let b = blame(&rec, "made").unwrap();
    assert_eq!(b.start, Start::PageFlags);
    let before = "(before the recording)";
    let thirds = [
        (before, "page tables", 333),
        (before, "slab", 333),
        ("find", "slab", 333),
    ];
    assert_eq!(shares(&b), thirds);
    assert_eq!(b.holders[1].held_at_end, 2, "the tail belongs to it");
}

/// A snapshot with one slab cache of so many slabs, of 8 pages each.
fn slabinfo(time: u64, slabs: u64) -> Snapshot {
    let objects = slabs * 32;
    let text = format!(
        "slabinfo - version: 2.1\n# name\next4_inode_cache {objects} {objects} 1024 32 8 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"
    );
    Snapshot {
        name: format!("at {time}"),
        files: vec![SnapshotFile {
            name: "slabinfo".into(),
            time: Some((time, time)),
            content: text.into_bytes().into(),
        }],
    }
}

/// Who it was and what to ask next, for each kind of recording.
#[test]
fn it_comes_to_a_sentence_and_a_command() {
    const SLAB_FLAG: u64 = 1 << 7;
    let mut of = vec![0u64; 4096];
    (0..8).for_each(|block| of[block * 512] = SLAB_FLAG);
    let begin = flags(SECOND, &of);
    // Slabs of 32 KiB: 87 and 201 MiB.
    let (small, large) = (2784, 6432);
    let nobody = |m: &mut Maker| {
        m.task("user").alloc(700, 0, USER_PAGE);
    };
    let cc1 = |m: &mut Maker| {
        m.task("cc1").alloc(512, 1, PAGE_DIRECTORY);
    };
    let three = |m: &mut Maker| {
        for (n, task) in ["a", "b", "c"].into_iter().enumerate() {
            m.task(task).alloc(512 + n as u64, 0, PAGE_DIRECTORY);
        }
    };
    type Act<'a> = &'a dyn Fn(&mut Maker);
    type Case<'a> = (&'a str, Vec<Snapshot>, Act<'a>, &'a [&'a str], Next);
    let cases: [Case<'_>; 7] = [
        (
            "before, and grown",
            vec![
                begin.clone(),
                slabinfo(2 * SECOND, small),
                slabinfo(60 * SECOND, large),
            ],
            &nobody,
            &[
                "nobody in these",
                "100 % was there before",
                "ext4_inode_cache 201 MiB (+114 MiB)",
            ],
            Next::RecordSlab,
        ),
        (
            "before, and not grown",
            vec![
                begin.clone(),
                slabinfo(2 * SECOND, large),
                slabinfo(60 * SECOND, large),
            ],
            &nobody,
            &["100 % was there before", "ext4_inode_cache 201 MiB (+0 B)"],
            Next::RecordLonger,
        ),
        (
            "before, with one copy of slabinfo",
            vec![begin.clone(), slabinfo(2 * SECOND, large)],
            &nobody,
            &["100 % was there before", "ext4_inode_cache 201 MiB"],
            Next::RecordLonger,
        ),
        (
            "one program",
            vec![slabinfo(2 * SECOND, large)],
            &cc1,
            &["cc1 (page tables) 100 %"],
            Next::Doctor,
        ),
        (
            "one program of a trace",
            vec![],
            &cc1,
            &["cc1 (page tables) 100 %"],
            Next::Summary,
        ),
        (
            "three programs",
            vec![],
            &three,
            &["nobody alone", "a (page tables) 33 %"],
            Next::Summary,
        ),
        (
            "nothing",
            vec![],
            &nobody,
            &["broke up no block", "no page flags"],
            Next::Summary,
        ),
    ];
    for (name, snapshots, act, words, next) in cases {
        let mut rec = recording(60 * SECOND, |m| act(m));
        rec.snapshots = snapshots;
        let b = blame(&rec, "made").unwrap();
        let said = &b.answer.sentence;
        for word in words {
            assert!(said.contains(word), "{name}: {said}");
        }
        assert_eq!(b.answer.next, next, "{name}");
        let shown = text::render(&b, all(5), "'my days'", &Screen::default()).into_string();
        let last = shown.lines().last().unwrap();
        assert_eq!(last.trim(), next.command("'my days'"), "{name}");
    }
}

/// Of a part of a recording nobody is named for what it took before that part.
#[test]
fn what_came_before_the_window_is_not_blamed_on_who_took_it() {
    let rec = recording(120 * SECOND, |m| {
        m.task("early");
        (1..=9).for_each(|i| _ = m.alloc(i * 512, 0, SLAB));
        m.now += 60 * SECOND;
        m.task("late")
            .alloc(20 * 512, 0, SLAB)
            .alloc(21 * 512, 0, SLAB);
    });
    let whole = blame(&rec, "made").unwrap().answer.sentence;
    assert!(
        whole.starts_with("early (") && whole.contains("82 %"),
        "{whole}"
    );
    let part = unfrag_lab::input::Input::from(&rec).asked_from(30 * SECOND);
    let b = blame(part, "made").unwrap();
    let said = &b.answer.sentence;
    assert!(
        said.starts_with("nobody in these ") && said.contains("of what came, late ("),
        "{said}"
    );
    assert!(!said.contains("early"), "{said}");
    let added: f64 = b.holders.iter().map(|h| h.added).sum();
    assert!((added - 2.0).abs() < 0.01, "{added}");
}

/// A spoilt block that fills up is no longer spoilt, and is counted as that.
#[test]
fn blocks_that_fill_up_are_told_beside_those_that_are_spoilt() {
    let rec = recording(60 * SECOND, |m| {
        m.task("find").alloc(512, 0, SLAB).alloc(1024, 0, SLAB);
        m.now += 30 * SECOND;
        m.alloc(512, 8, SLAB);
    });
    let b = blame(&rec, "made").unwrap();
    let of = |b: Blocks| (b.spoilt, b.filled);
    assert_eq!((of(b.at_start), of(b.at_end)), ((2, 0), (1, 1)));
}

#[test]
fn days_and_hours_have_dates_and_add_up() {
    let mut rec = recording(40 * HOUR, |m| {
        m.task("cron").alloc(512, 0, SLAB);
        m.now += 20 * HOUR;
        m.task("backup").alloc(1024, 0, SLAB);
    });
    // Second 1 is 06:00 on the 28th.
    let epoch = 1_795_845_600 * SECOND as i64 - SECOND as i64;
    rec.meta
        .facts
        .insert(EPOCH_OFFSET.into(), epoch.to_string());
    let b = blame(&rec, "made").unwrap();
    assert_eq!(
        (b.interval_seconds, b.began.as_deref()),
        (3600, Some("2026-11-28 06:00:00"))
    );
    assert_eq!(b.intervals.len(), 41);
    assert_eq!(b.intervals[20].date.as_deref(), Some("2026-11-29 02:00:00"));
    assert_eq!(
        (b.intervals[19].spoilt_blocks, b.intervals[21].spoilt_blocks),
        (1.0, 2.0)
    );
    let days: Vec<_> = b.days.iter().map(|d| d.date.clone().unwrap()).collect();
    assert_eq!(days, ["2026-11-28 06:00:00", "2026-11-29 00:00:00"]);
    assert_eq!(b.days[0].spoilt_blocks, 1.0);
    for i in b.intervals.iter().chain(&b.days) {
        let sum: f64 = i.by_holder.values().sum();
        assert!((sum - i.spoilt_blocks).abs() < 1e-6, "{i:?}");
    }
    let screen = Screen {
        width: 100,
        color: false,
        unicode: false,
    };
    let shown = text::render(&b, all(1), "made", &screen).into_string();
    for wanted in [
        "By day",
        "By hour",
        "2026-11-29 02:00:00",
        "cron, slab",
        "and 1 more; --top 2",
    ] {
        assert!(shown.contains(wanted), "{wanted}:\n{shown}");
    }
    let picture = svg::render(&b);
    assert!(picture.starts_with("<svg") && picture.contains("backup, slab"));
}

#[test]
fn a_recording_without_pages_is_an_error() {
    let mut m = Maker::default();
    m.rec.meta.kernel_release = "6.1.0".into();
    m.event("sched_switch", &[("prev_pid", 1)]);
    let e = blame(&m.rec, "made").unwrap_err().to_string();
    assert!(e.contains("no allocations of pages"), "{e}");
}
