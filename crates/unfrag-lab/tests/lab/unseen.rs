//! Allocations without an event are found by the counter of vmstat. `spec: 7.6`

use crate::recording_support::synthetic::{Maker, USER_PAGE};
use unfrag_eras::Geometry;
use unfrag_lab::era::Era;
use unfrag_lab::replay::causes::clock::Clock;
use unfrag_lab::replay::causes::unseen;
use unfrag_lab::replay::causes::{Action, Op, causes};
use unfrag_linux::recording::{Recording, Snapshot, SnapshotFile};

/// `GFP_KERNEL`.
const KERNEL: u64 = 0xcc0;
/// Pages allocated and freed before the trace.
const BEFORE: u64 = 1000;

/// Ten seconds, each with five pages taken and given back, a page of the kernel's among them. From the
/// fourth snapshot on the counter has `unseen` pages more than the trace.
fn recording(unseen: u64) -> Recording {
    let mut m = Maker::default();
    for second in 0..10u64 {
        m.now = (1 + second) * 1_000_000_000;
        for i in 0..5 {
            m.alloc(100 + i, 0, if i == 2 { KERNEL } else { USER_PAGE });
            m.wait(1_000_000).free(100 + i, 0).wait(1_000_000);
        }
        let (pages, time) = (5 * (second + 1), m.now - 500_000);
        let more = if second >= 3 { unseen } else { 0 };
        let text = format!(
            "nr_free_pages 1\npgalloc_dma32 {}\npgfree {}\n",
            BEFORE + pages + more,
            BEFORE + pages + second
        );
        m.rec.snapshots.push(Snapshot {
            name: format!("s{second}"),
            files: vec![SnapshotFile {
                name: "vmstat".into(),
                time: Some((time, time)),
                content: text.into(),
            }],
        });
        // What dates the counter sharply: the next free, of a page in use since before.
        m.free(200 + second, 0);
    }
    m.rec
}

fn unseen(rec: &Recording) -> Vec<Op> {
    let era = Era::of("6.1.0").unwrap();
    let mut found = causes(rec, era, 4096, 0, u64::MAX, None).unwrap();
    let clock = Clock::of(rec).unwrap();
    unseen::insert(&mut found, Geometry::PAGES_4K, rec.snapshots.iter(), &clock).unwrap();
    found.ops.to_vec().unwrap()
}

fn pages_unseen(op: &Op) -> Option<u32> {
    match op.action {
        Action::AllocUnseen { pages } => Some(pages.get()),
        _ => None,
    }
}

#[test]
fn untraced_pages_go_before_the_next_kernel_request() {
    let rec = recording(12);
    let ops = unseen(&rec);
    let at: Vec<usize> = (0..ops.len())
        .filter(|&i| pages_unseen(&ops[i]).is_some())
        .collect();
    assert_eq!(at.len(), 1, "{:?}", ops);
    assert_eq!(pages_unseen(&ops[at[0]]), Some(12));
    let (_, gfp) = ops[at[0] + 1].allocated().expect("an allocation");
    assert_eq!(u64::from(gfp.bits()), KERNEL);
    // Between the third snapshot and the fourth.
    let seconds = ops[at[0]].time / 1_000_000_000;
    assert_eq!(seconds, 4);
}

#[test]
fn a_counter_that_agrees_with_the_trace_adds_nothing() {
    let ops = unseen(&recording(0));
    assert_eq!(ops.iter().find_map(pages_unseen), None);
}

/// Ten seconds: in each, `PAGES` pages are freed, and as many are allocated later. Each file of a snapshot has a time of
/// its own. From the eighth snapshot on the counter of frees lacks `uncounted` of those that were traced.
fn counted_short(uncounted: u64, one_clock: bool) -> Recording {
    const PAGES: u64 = 100;
    let mut m = Maker::default();
    for second in 0..10u64 {
        let begin = (1 + second) * 1_000_000_000;
        m.now = begin + 100_000_000;
        for i in 0..PAGES {
            m.free(100 + i, 0).wait(999_000);
        }
        m.now = begin + 500_000_000;
        for i in 0..PAGES {
            let gfp = if i == 2 { KERNEL } else { USER_PAGE };
            m.alloc(100 + i, 0, gfp).wait(999_000);
        }
        let read = begin + 900_000_000;
        let pages = PAGES * (second + 1);
        let freed = BEFORE + pages - if second >= 7 { uncounted } else { 0 };
        let vmstat = format!(
            "nr_free_pages 1\npgalloc_dma32 {}\npgfree {freed}\n",
            BEFORE + pages
        );
        let file = |name: &str, time, content: String| SnapshotFile {
            name: name.into(),
            time: Some((time, time + 1_000_000)),
            content: content.into(),
        };
        m.rec.snapshots.push(Snapshot {
            name: format!("s{second}"),
            files: vec![
                file("buddyinfo", read - 2_000_000, String::new()),
                file("vmstat", read, vmstat),
            ],
        });
    }
    m.wait(1_000_000_000).free(100, 0);
    m.rec.meta.facts.insert("scope".into(), "system".into());
    if one_clock {
        m.rec.meta.clock = "mono".into();
        let fact = ("snapshot_clock".to_owned(), "mono".to_owned());
        m.rec.meta.facts.extend([fact]);
    }
    m.rec
}

#[test]
fn frees_that_are_traced_and_not_counted_invent_no_allocations() {
    for one_clock in [true, false] {
        for uncounted in [0, 1, 30, 60, 99] {
            let rec = counted_short(uncounted, one_clock);
            assert_eq!(Clock::of(&rec).unwrap().offset, 0, "{uncounted}");
            let ops = unseen(&rec);
            let invented = ops.iter().find_map(pages_unseen);
            assert_eq!(invented, None, "{uncounted} uncounted, {one_clock}");
        }
    }
}

/// As [`recording`], with a huge page allocated in the sixth second, which direct compaction made room for. Whether it
/// captured the page or not, its success is counted; a captured one is not counted as allocated.
fn compacted(captured: bool) -> Recording {
    const HUGE: u64 = 512;
    let mut rec = recording(0);
    let mut m = Maker::default();
    std::mem::swap(&mut m.rec, &mut rec);
    m.now = 11_500_000_000;
    m.alloc(1024, 9, USER_PAGE).wait(50_000_000).free(300, 0);
    let time = m.now + 400_000_000;
    let pages = BEFORE + 50 + if captured { 0 } else { HUGE };
    let freed = BEFORE + 50 + 10 + 1;
    let text =
        format!("nr_free_pages 1\npgalloc_dma32 {pages}\npgfree {freed}\ncompact_success 1\n");
    let last = m.rec.snapshots.len();
    m.rec.snapshots.push(Snapshot {
        name: format!("s{last}"),
        files: vec![SnapshotFile {
            name: "vmstat".into(),
            time: Some((time - 380_000_000, time - 380_000_000)),
            content: text.into(),
        }],
    });
    m.free(301, 0);
    m.now = time;
    m.alloc(400, 0, KERNEL).free(302, 0);
    m.rec
}

#[test]
fn a_success_of_compaction_without_a_capture_invents_no_huge_page() {
    for captured in [true, false] {
        let invented = unseen(&compacted(captured)).iter().find_map(pages_unseen);
        assert_eq!(invented, None, "captured: {captured}");
    }
}
