//! Allocations without an event are found by the counter of vmstat. `spec: 7.6`

mod recording_support;

use recording_support::synthetic::{Maker, USER_PAGE};
use unfrag::Geometry;
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
