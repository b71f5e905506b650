//! Hosts of several nodes: each has its own kswapd, and requests go where they went.

use crate::recording_support::synthetic::{Maker, USER_PAGE};
use std::collections::BTreeSet;
use unfrag_eras::{Gfp, Manager, NodeId};
use unfrag_lab::era::Era;
use unfrag_lab::replay::Report;
use unfrag_lab::replay::causes::{Action, RecordedReclaim, causes};
use unfrag_lab::replay::model::Prepared;
use unfrag_lab::replay::model::ReplayHost;
use unfrag_lab::replay::{NoWatch, Options, StartChoice, Watch, replay};
use unfrag_linux::freelists::{FreeArea, FreeList, FreeLists, Zone};
use unfrag_linux::recording::{Recording, Snapshot, SnapshotFile};

/// Pages of the zone of each node.
const PAGES: u64 = 16384;
/// Where they begin.
const STARTS: [u64; 2] = [4096, 4096 + PAGES];
/// Free pages of each node at the start, in blocks of order 10.
const FREE: [u64; 2] = [10 * 1024, 3 * 1024];
/// Of these, what is taken on node 1 at once.
const TAKEN: u64 = 2700;
/// What its kswapd gives back in a run there, and is taken again.
const BATCH: u64 = 1000;
const ROUNDS: u64 = 4;
/// Page cache for a file that is written, from this node alone.
const HERE: u64 = Gfp::HIGHUSER_MOVABLE
    .union(Gfp::WRITE)
    .union(Gfp::THISNODE)
    .bits() as u64;

/// Both nodes' zones have the same name.
fn snapshot(name: &str, time: u64, free: [u64; 2]) -> Snapshot {
    let mut buddyinfo = String::new();
    let mut zoneinfo = String::new();
    for (node, (start, free)) in STARTS.iter().zip(free).enumerate() {
        let (large, small) = (free / 1024, free % 1024);
        buddyinfo += &format!("Node {node}, zone   Normal {small} 0 0 0 0 0 0 0 0 0 {large}\n");
        zoneinfo += &format!(
            "Node {node}, zone   Normal
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
  start_pfn:           {start}
"
        );
    }
    let file = |(name, content): (&str, String)| SnapshotFile {
        name: name.into(),
        time: Some((time, time)),
        content: content.into(),
    };
    Snapshot {
        name: name.into(),
        files: [("buddyinfo", buddyinfo), ("zoneinfo", zoneinfo)]
            .map(file)
            .into(),
    }
}

/// A recording of pressure on node 1, while node 0 has plenty. Every page that its kswapd takes there
/// was taken by its task for this node alone.
fn pressure_on_node_1() -> Recording {
    let mut m = Maker::default();
    let begin = m.now;
    let took = |m: &mut Maker, pages: u64| {
        for i in 0..pages {
            m.task("hog").alloc(STARTS[1] + i, 0, HERE).wait(1_000_000);
        }
    };
    took(&mut m, TAKEN);
    for _ in 0..ROUNDS {
        m.task("kswapd1");
        m.event("mm_vmscan_kswapd_wake", &[("nid", 1), ("order", 0)]);
        (0..BATCH).for_each(|i| {
            m.free(STARTS[1] + i, 0);
        });
        m.event("mm_vmscan_kswapd_sleep", &[("nid", 1)]);
        took(&mut m, BATCH);
    }
    let end = m.now - 1;
    m.alloc(STARTS[0], 0, USER_PAGE);
    m.rec.meta.kernel_release = "6.1.0".into();
    m.rec.snapshots = vec![
        snapshot("begin", begin, FREE),
        snapshot("end", end, [FREE[0], FREE[1] - TAKEN]),
    ];
    m.rec
}

/// Checks the model at each snapshot, and notes on which nodes pages in use are.
#[derive(Default)]
struct Sound {
    on_lru: BTreeSet<u8>,
}

impl Watch for Sound {
    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, m: &Manager<'_, ReplayHost>) {
        let sound = m.inspect().validate();
        assert!(sound.is_ok(), "{kernel} at {}: {sound:?}", snap.name);
        for zone in m.inspect().zones() {
            if m.inspect().lru(zone).pages.iter().any(|n| *n > 0) {
                self.on_lru.insert(m.inspect().zone_config(zone).node.0);
            }
        }
    }
}

fn run(rec: &Recording, kernel: &str, watch: &mut dyn Watch) -> Report {
    let options = Options {
        kernels: vec![kernel.into()],
        members: Some(1),
        ..Options::default()
    };
    replay(rec, "two nodes", &options, watch).expect("a replay")
}

#[test]
fn the_kswapd_of_the_pressed_node_runs() {
    let rec = pressure_on_node_1();
    for kernel in ["6.1", "6.18", "2.6.32", "5.6"] {
        let mut sound = Sound::default();
        let report = run(&rec, kernel, &mut sound);
        let k = &report.kernels[0];
        // Each round takes what the one before left, and only kswapd's work makes room for it.
        assert_eq!(
            k.totals["allocations"].unwrap(),
            TAKEN + ROUNDS * BATCH + 1,
            "{kernel}"
        );
        let taken = k.totals["pgsteal_kswapd"].unwrap() + k.totals["pgsteal_direct"].unwrap();
        let lacking = TAKEN + ROUNDS * BATCH - FREE[1];
        assert!(taken >= lacking, "{kernel}: {:?}", k.totals);
        let by_kswapd = k.totals["pgsteal_kswapd"].unwrap();
        assert!(by_kswapd > BATCH, "{kernel}: {:?}", k.totals);
        assert_eq!(k.totals["failures"].unwrap(), 0, "{kernel}");
        // Node 0 was asked for nothing and gave nothing.
        let [zero, one] = &k.samples[1].zones[..] else {
            panic!("two zones")
        };
        assert_eq!((zero.node, one.node), (0, 1));
        assert_eq!(
            zero.free_pages + zero.pcp_pages.unwrap_or(0),
            FREE[0],
            "{kernel}"
        );
        assert_eq!(sound.on_lru, BTreeSet::from([1]), "{kernel}");
    }
}

/// Each kswapd's runs are its own, though they overlap.
#[test]
fn runs_of_two_kswapds_are_separate() {
    let mut m = Maker::default();
    let wake = |m: &mut Maker, node: u64| {
        let fields = [("nid", node), ("order", 0)];
        m.event("mm_vmscan_kswapd_wake", &fields);
    };
    for i in 0..200 {
        m.task("hog");
        m.alloc(STARTS[i as usize % 2] + i / 2, 0, USER_PAGE);
    }
    m.task("kswapd0");
    wake(&mut m, 0);
    m.task("kswapd1");
    wake(&mut m, 1);
    for i in 0..100 {
        m.task("kswapd0").free(STARTS[0] + i, 0).wait(3000);
        m.task("kswapd1").free(STARTS[1] + i, 0).wait(5000);
    }
    m.task("kswapd1");
    m.event("mm_vmscan_kswapd_sleep", &[("nid", 1)]);
    let era = Era::of("6.1.0").unwrap();
    let frames = (STARTS[1] + PAGES) as u32;
    let found = causes(&m.rec, era, frames, 0, u64::MAX, None).unwrap();
    let is_run = |a: &Action| matches!(a, Action::KswapdBegins { .. } | Action::KswapdEnds { .. });
    let ops = found.ops.to_vec().unwrap();
    let runs = ops.iter().map(|op| op.action).filter(is_run);
    let runs: Vec<Action> = runs.collect();
    assert_eq!(runs.len(), 4, "{runs:?}");
    let begins = [0, 1].map(|n| Action::KswapdBegins { node: NodeId(n) });
    assert_eq!(runs[..2], begins, "{runs:?}");
    let evidence = RecordedReclaim::of(&m.rec, &found).unwrap();
    assert_eq!(evidence.wakes, 2);
    let nodes: Vec<NodeId> = evidence.pace.runs.keys().copied().collect();
    assert_eq!(nodes, [NodeId(0), NodeId(1)]);
}

#[test]
fn resizing_several_nodes_is_an_error() {
    let options = Options {
        memory: Some(1 << 30),
        ..Options::default()
    };
    let refused = replay(&pressure_on_node_1(), "two nodes", &options, &mut NoWatch);
    let why = refused.expect_err("two nodes").to_string();
    assert!(why.contains("several nodes (0 and 1)"), "{why}");
}

/// Zones of the same name are told apart by where they begin.
#[test]
fn an_exact_start_gives_each_node_its_own_lists() {
    let mut rec = pressure_on_node_1();
    let lists = |node: usize| Zone {
        name: "Normal".into(),
        start_pfn: STARTS[node],
        spanned: PAGES,
        present: PAGES,
        managed: PAGES,
        orders: vec![FreeArea {
            order: 10,
            nr_free: FREE[node] / 1024,
            lists: vec![FreeList {
                migratetype: 1,
                pfns: (0..FREE[node] / 1024)
                    .map(|i| STARTS[node] + i * 1024)
                    .collect(),
                torn: None,
            }],
        }],
        ..Zone::default()
    };
    let time = rec.snapshots[0].files[0].time;
    let both = FreeLists {
        zones: vec![lists(0), lists(1)],
        pageblocks: vec![],
    };
    rec.snapshots[0].files.push(SnapshotFile {
        name: "freelists".into(),
        time,
        content: both.write().into(),
    });
    let plan = Prepared::new(&rec, StartChoice::Exact).expect("an exact start");
    let on = |node: usize| {
        let inside = STARTS[node]..STARTS[node] + PAGES;
        let blocks = plan.start.free.iter();
        let blocks = blocks.filter(move |b| inside.contains(&b.pfn.into()));
        blocks.map(|b| 1u64 << b.order).sum::<u64>()
    };
    assert_eq!([on(0), on(1)], FREE);
    assert!(plan.start.is_free(STARTS[1] as u32));
}
