//! Starts that nobody recorded exactly: from counts, and from page flags. `spec: linux-6.1 9`

mod recording_support;

use recording_support::sample;
use unfrag::kernel::preset;
use unfrag::{MigrateType, Sysctl};
use unfrag_lab::cause::Causes;
use unfrag_lab::plan::Plan;
use unfrag_lab::run::StartChoice;
use unfrag_lab::start::counts::{Anchor, fitted};
use unfrag_lab::start::{Frame, Start};
use unfrag_linux::kpageflags::{BUDDY, LRU, PageFlags, SLAB};
use unfrag_linux::recording::{Snapshot, SnapshotFile};

/// Pages of the zone.
const PAGES: usize = 16384;
/// Where it begins.
const START: usize = 4096;

/// Orders whose blocks are shown: a host that is badly fragmented, with 9,010 pages free.
const SHOWN: [u64; 11] = [900, 700, 420, 200, 80, 40, 10, 0, 1, 1, 0];

fn snapshot(shown: [u64; 11], flags: Option<Vec<u64>>) -> Snapshot {
    let cells = |n: &[u64]| n.iter().map(|n| format!("{n:7}")).collect::<String>();
    let free: u64 = shown.iter().enumerate().map(|(o, n)| n << o).sum();
    let zone = format!(
        "Node 0, zone    DMA32
  pages free     {free}
        boost    0
        min      128
        low      160
        high     192
        spanned  {PAGES}
        present  {PAGES}
        managed  {PAGES}
        cma      0
        protection: (0, 0, 0, 0)
  pagesets
    cpu: 0
              count: 0
              high:  160
              batch: 63
  vm stats threshold: 8
  node_unreclaimable:  0
  start_pfn:           {START}
"
    );
    let mut files = vec![
        (
            "buddyinfo",
            format!("Node 0, zone    DMA32 {}\n", cells(&shown)).into_bytes(),
        ),
        ("zoneinfo", zone.into_bytes()),
    ];
    if let Some(words) = flags {
        files.push(("kpageflags", PageFlags { words }.write()));
    }
    Snapshot {
        name: "begin".into(),
        files: files
            .into_iter()
            .map(|(name, content)| SnapshotFile {
                name: name.into(),
                time: Some((1, 1)),
                content,
            })
            .collect(),
    }
}

/// The start of a recording in which nothing happens.
fn start_of(snap: &Snapshot) -> Start {
    let anchor = Anchor::read(snap, 1).unwrap();
    let causes = Causes {
        first: vec![0; START + PAGES],
        ..Causes::default()
    };
    let p = preset("6.1").unwrap();
    fitted(&anchor, &causes, p.switches, Sysctl::default()).unwrap()
}

/// Blocks on the model's buddy lists.
fn by_order(start: &Start) -> [u64; 11] {
    let p = preset("6.1").unwrap();
    let mut memory = vec![0; start.words(p.switches, Sysctl::default()).unwrap()];
    let m = start
        .manager(p.switches, Sysctl::default(), true, &mut memory)
        .unwrap();
    m.validate().unwrap();
    std::array::from_fn(|o| {
        let on = |t: &MigrateType| m.free_list(0, o as u8, *t).count() as u64;
        MigrateType::ALL.iter().map(on).sum()
    })
}

#[test]
fn small_blocks_of_a_fragmented_host_stay_small() {
    let start = start_of(&snapshot(SHOWN, None));
    assert_eq!(by_order(&start), SHOWN);
}

#[test]
fn with_page_flags_each_frame_is_as_they_say() {
    // Every third pair of pages is free, the frames between belong to slabs and to users in turn.
    let flag = |p: usize| match (p / 2) % 3 {
        0 => BUDDY,
        1 => SLAB,
        _ => LRU,
    };
    let words: Vec<u64> = (0..START + PAGES).map(flag).collect();
    let free = (START..START + PAGES).filter(|&p| flag(p) == BUDDY).count();
    let mut shown = [0; 11];
    shown[1] = free as u64 / 2;
    let start = start_of(&snapshot(shown, Some(words)));
    assert_eq!(by_order(&start), shown);
    for p in START..START + PAGES {
        let wanted = match flag(p) {
            BUDDY => Frame::Free,
            SLAB => Frame::Pinned,
            _ => Frame::Movable,
        };
        assert_eq!(start.frames[p], wanted, "frame {p}");
    }
}

#[test]
fn frames_without_a_flag_complete_the_blocks_that_are_shown() {
    // Sixteen blocks of order 3, each with two pages that were on a per-CPU list when the flags were
    // read, and on the buddy lists when the counts were.
    let flag = |p: usize| match (p < START + 16 * 16 && p % 16 < 8, p % 8) {
        (true, 3 | 4) => 0,
        (true, _) => BUDDY,
        _ => LRU,
    };
    let words: Vec<u64> = (0..START + PAGES).map(flag).collect();
    let mut shown = [0; 11];
    shown[3] = 16;
    assert_eq!(by_order(&start_of(&snapshot(shown, Some(words)))), shown);
}

#[test]
fn a_replay_of_the_sample_arrives_at_its_anchor() {
    let rec = sample();
    let plan = Plan::new(rec, StartChoice::Counts).unwrap();
    let (time, snap) = plan.snapshots[0];
    let anchor = Anchor::read(snap, time).unwrap();
    let p = preset("6.1").unwrap();
    let mut memory = vec![0; plan.start.words(p.switches, Sysctl::default()).unwrap()];
    let m = plan
        .start
        .manager(p.switches, Sysctl::default(), true, &mut memory)
        .unwrap();
    let mut sim = unfrag_lab::replay::Sim::new(m, plan.start.frames.len() as u32);
    for op in &plan.causes.ops[..anchor.upto(&plan.causes)] {
        sim.apply(op, &plan.causes);
    }
    // Of 145,872 free pages.
    let far = anchor.distance(&sim.manager);
    assert!(
        far < 500,
        "{far} pages are on other lists than the anchor's"
    );
}

#[test]
fn an_occupancy_that_is_not_there_cannot_be_asked_for() {
    let error = match Plan::new(sample(), StartChoice::Occupancy) {
        Ok(_) => panic!("the sample has no page flags"),
        Err(e) => e.to_string(),
    };
    assert!(error.contains("no page flags"), "{error}");
}
