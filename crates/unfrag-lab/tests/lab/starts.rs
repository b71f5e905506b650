//! Starts that nobody recorded exactly: from counts, and from page flags. `spec: 9`

use crate::recording_support::sample;
use crate::recording_support::synthetic::{Maker, USER_PAGE};
use unfrag_eras::kernel::preset;
use unfrag_eras::{Geometry, MigrateType, Order, Sysctl, ZoneId};
use unfrag_lab::era::Era;
use unfrag_lab::input::{Cpus, Input};
use unfrag_lab::replay::StartChoice;
use unfrag_lab::replay::causes::{Causes, causes};
use unfrag_lab::replay::model::Prepared;
use unfrag_lab::replay::start::BeforeAnchor;
use unfrag_lab::replay::start::PcpTrace;
use unfrag_lab::replay::start::{Frame, Start};
use unfrag_lab::replay::{model::fitted, start::Anchor};
use unfrag_linux::kpageflags::{BUDDY, LRU, PageFlags, SLAB};
use unfrag_linux::recording::{Recording, Snapshot, SnapshotFile};

/// Pages of the zone.
const PAGES: usize = 16384;
/// Where it begins.
const START: usize = 4096;

/// Orders whose blocks are shown: a host that is badly fragmented, with 9,010 pages free.
const SHOWN: [u64; 11] = [900, 700, 420, 200, 80, 40, 10, 0, 1, 1, 0];

fn snapshot(shown: [u64; 11], flags: Option<Vec<u64>>) -> Snapshot {
    snapshot_holding(0, shown, flags)
}

/// With so many pages on the lists of the only CPU.
fn snapshot_holding(held: u64, shown: [u64; 11], flags: Option<Vec<u64>>) -> Snapshot {
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
              count: {held}
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
                content: content.into(),
            })
            .collect(),
    }
}

/// The CPUs that a snapshot names.
fn cpus_of(snap: &Snapshot) -> Cpus {
    let rec = Recording {
        snapshots: vec![snap.clone()],
        ..Recording::default()
    };
    let recorded = unfrag_lab::geometry::recorded::RecordedGeometry::of(&rec);
    Cpus::of(&recorded.cpus, &rec.events).unwrap()
}

/// The start of a recording in which nothing happens.
fn start_of(snap: &Snapshot) -> Start {
    let anchor = Anchor::read(snap, 1, &cpus_of(snap), Geometry::PAGES_4K).unwrap();
    let causes = Causes {
        first: vec![0; START + PAGES],
        ..Causes::default()
    };
    let p = preset("6.1").unwrap();
    fitted(&anchor, &causes, p.rules, Sysctl::default()).unwrap()
}

/// Blocks on the model's buddy lists.
fn by_order(start: &Start) -> [u64; 11] {
    let p = preset("6.1").unwrap();
    let mut memory = vec![0; start.words(p.rules, Sysctl::default()).unwrap()];
    let m = start
        .manager(p.rules, Sysctl::default(), true, &mut memory)
        .unwrap();
    m.inspect().validate().unwrap();
    std::array::from_fn(|o| {
        let list = |t| m.inspect().free_list(ZoneId(0), Order(o as u8), t);
        let on = |t: &MigrateType| list(*t).count() as u64;
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

/// A start at the anchor, between two traces: the one before it, and the one from it on.
fn start_between(before: &Maker, anchor: &Snapshot, after: &Maker, unmovable: u64) -> Start {
    let era = Era::of("6.18.0").unwrap();
    let frames = (START + PAGES) as u32;
    let walked = |m: &Maker| causes(&m.rec, era, frames, 0, u64::MAX, None).unwrap();
    let mut anchor = Anchor::read(anchor, 1, &cpus_of(anchor), Geometry::PAGES_4K).unwrap();
    anchor.blocks = vec![Some([unmovable, 0])];
    anchor.before = Some(BeforeAnchor::of(&walked(before)).unwrap());
    anchor.pcp_trace = PcpTrace::of(&Input::from(&after.rec), era, frames, 0).unwrap();
    let rules = preset("6.18").unwrap().rules;
    fitted(&anchor, &walked(after), rules, Sysctl::default()).unwrap()
}

/// Number of a list of movable blocks.
const fn movable(order: usize) -> usize {
    3 * order + MigrateType::Movable as usize
}

/// `spec: 3.2, 7.6`
#[test]
fn list_events_put_each_page_on_its_pcp_list() {
    let [taken, last, first, drained] = [16, 20, 24, 28].map(|p| START + p);
    let (pair, kernels) = (START + 40, START + 48);
    let flag = |p: usize| match p {
        p if p < START + 8 => BUDDY,
        p if [taken, last, first, drained, kernels].contains(&p) => 0,
        p if (pair..pair + 2).contains(&p) => 0,
        _ => LRU,
    };
    let words = (0..START + PAGES).map(flag).collect();
    let mut shown = [0; 11];
    shown[3] = 1;
    let anchor = snapshot_holding(6, shown, Some(words));
    let mut before = Maker::default();
    before.free(first as u64, 0).free(pair as u64, 1);
    before.free(last as u64, 0);
    let mut after = Maker::default();
    let block = |p: usize, order| [("pfn", p as u64), ("order", order), ("migratetype", 1)];
    after.alloc(taken as u64, 0, USER_PAGE);
    after.event("mm_page_pcpu_drain", &block(drained, 0));
    after.event("mm_page_alloc_zone_locked", &block(START, 3));
    after.alloc(START as u64, 3, USER_PAGE);
    let start = start_between(&before, &anchor, &after, 0);
    let lists: Vec<(usize, Vec<usize>)> = start.sets[0]
        .lists
        .iter()
        .map(|(list, blocks)| (*list, blocks.iter().map(|b| b.pfn as usize).collect()))
        .collect();
    assert_eq!(
        lists,
        [
            (movable(0), vec![taken, last, first, drained]),
            (movable(1), vec![pair])
        ]
    );
    let free: Vec<_> = start.free.iter().map(|b| (b.pfn, b.order)).collect();
    assert_eq!(free, [(START as u32, 3)]);
    assert_eq!(start.frames[kernels], Frame::Pinned);
}

/// `spec: 1.2, 7.6`: a list gives from its head, so blocks stand in the order in which they are first touched.
#[test]
fn blocks_stand_in_the_order_of_their_first_touches() {
    let flag = |p: usize| match p < START + 16 * 32 && p % 32 < 16 {
        true => BUDDY,
        false => LRU,
    };
    let words = (0..START + PAGES).map(flag).collect();
    let mut shown = [0; 11];
    shown[4] = 16;
    let anchor = snapshot(shown, Some(words));
    let block = |i: usize| (START + 32 * i) as u32;
    let touched: Vec<u32> = (0..9).map(|i| block((i * 7 + 3) % 16)).collect();
    let mut after = Maker::default();
    for &pfn in &touched {
        after.alloc(pfn.into(), 4, USER_PAGE);
    }
    // What happens to a block later is not read.
    after.free(touched[0].into(), 4);
    after.alloc(touched[0].into(), 4, USER_PAGE);
    let start = start_between(&Maker::default(), &anchor, &after, 0);
    let free: Vec<u32> = start.free.iter().map(|b| b.pfn).collect();
    assert_eq!(free.len(), 16);
    assert_eq!(free[..9], touched);
    let order = start.order_shown.unwrap();
    let counted = [
        order.blocks,
        order.pages,
        order.blocks_shown,
        order.pages_shown,
    ];
    assert_eq!(counted, [16, 256, 9, 144]);
}

/// `spec: 3.2`: a list is refilled when it is empty.
#[test]
fn a_refilled_list_had_no_other_pages() {
    let flag = |p: usize| if p == START + 16 { 0 } else { LRU };
    let words = (0..START + PAGES).map(flag).collect();
    let anchor = snapshot_holding(1, [0; 11], Some(words));
    let mut before = Maker::default();
    before.free(START as u64 + 16, 0);
    let mut after = Maker::default();
    let refill = [("pfn", START as u64), ("order", 0), ("migratetype", 1)];
    after.event("mm_page_alloc_zone_locked", &refill);
    let other = [("pfn", START as u64 + 1), ("order", 0), ("migratetype", 1)];
    after.free(START as u64 + 1, 0);
    after.event("mm_page_pcpu_drain", &other);
    let start = start_between(&before, &anchor, &after, 0);
    let lists: Vec<_> = start.sets[0].lists.iter().map(|l| l.0).collect();
    assert_eq!(lists, [MigrateType::Reclaimable as usize]);
}

/// `spec: 2.6`: the type of a list is that of its blocks.
#[test]
fn a_drained_page_shows_the_type_of_its_pageblock() {
    let words = vec![LRU; START + PAGES];
    let anchor = snapshot_holding(0, [0; 11], Some(words));
    let at = START + 7 * 512;
    let mut after = Maker::default();
    let block = [("pfn", at as u64 + 3), ("order", 0), ("migratetype", 0)];
    after.free(at as u64 + 3, 0);
    after.event("mm_page_pcpu_drain", &block);
    let other = [("pfn", START as u64), ("order", 0), ("migratetype", 1)];
    after.event("mm_page_alloc_zone_locked", &other);
    let start = start_between(&Maker::default(), &anchor, &after, 1);
    let unmovable = start.block_types.iter();
    let unmovable: Vec<_> = unmovable
        .filter(|(_, t)| *t == MigrateType::Unmovable)
        .map(|(p, _)| *p as usize)
        .collect();
    assert_eq!(unmovable, [at]);
}

#[test]
fn an_untraced_allocation_is_not_replaced_by_another_free_page() {
    // A block of order 3 that the anchor shows, of which a page is first seen freed, and eight pages
    // without a flag.
    let flag = |p: usize| match p - START.min(p) {
        0..8 => BUDDY,
        16..24 => 0,
        _ => LRU,
    };
    let words = (0..START + PAGES).map(flag).collect();
    let mut shown = [0; 11];
    shown[3] = 1;
    let anchor = snapshot(shown, Some(words));
    let mut after = Maker::default();
    after.free(START as u64 + 3, 0);
    let start = start_between(&Maker::default(), &anchor, &after, 0);
    let free = |p: usize| start.frames[START + p] == Frame::Free;
    let free: Vec<_> = (0..24).filter(|&p| free(p)).collect();
    assert_eq!(free, [0, 1, 2, 4, 5, 6, 7]);
}

#[test]
fn a_replay_of_the_sample_arrives_at_its_anchor() {
    let rec = sample();
    let plan = Prepared::new(rec, StartChoice::Counts).unwrap();
    let (time, snap) = plan.snapshots[0];
    let anchor = Anchor::read(snap, time, &cpus_of(snap), Geometry::PAGES_4K).unwrap();
    let p = preset("6.1").unwrap();
    let mut memory = vec![0; plan.start.words(p.rules, Sysctl::default()).unwrap()];
    let m = plan
        .start
        .manager(p.rules, Sysctl::default(), true, &mut memory)
        .unwrap();
    let mut sim = unfrag_lab::replay::model::Sim::new(m, plan.start.frames.len() as u32);
    let ops = plan.causes.ops.to_vec().unwrap();
    for op in &ops[..anchor.upto(&plan.causes).unwrap()] {
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
fn occupancy_without_page_flags_is_an_error() {
    let error = match Prepared::new(sample(), StartChoice::Occupancy) {
        Ok(_) => panic!("the sample has no page flags"),
        Err(e) => e.to_string(),
    };
    assert!(error.contains("no page flags"), "{error}");
}
