//! Replays of hosts with other sizes of pages, blocks and pageblocks, and with holes: they begin where the host was.
//!
//! A host here is one zone whose free blocks stand at its end; its command gives pages back and takes them again, so
//! that the snapshots are what its kernel would have shown.

use crate::recording_support::synthetic::{Maker, USER_PAGE};
use unfrag_eras::Manager;
use unfrag_lab::export::tree;
use unfrag_lab::replay::answer::report::{Sample, ZoneSample};
use unfrag_lab::replay::model::ReplayHost;
use unfrag_lab::replay::view::detail::Detail;
use unfrag_lab::replay::view::{html, svg, terminal};
use unfrag_lab::replay::{NoWatch, Options, Report, Watch, replay};
use unfrag_lab::report::screen::Screen;
use unfrag_lab::top::text::{Style, render};
use unfrag_lab::top::{View, replayed};
use unfrag_linux::procfs::pagetypeinfo::PageTypeInfo;
use unfrag_linux::recording::{Recording, Snapshot, SnapshotFile};
use unfrag_pool::cells::Cell;

/// First frame of the zone: a multiple of the largest block of any host.
const START: u64 = 1 << 16;
/// Pageblocks of the zone that are unmovable, movable and reclaimable, for each that a block of the largest order has.
const BLOCKS: [u64; 3] = [8, 22, 2];

#[derive(Clone, Debug)]
struct Machine {
    page_kib: u64,
    orders: usize,
    block_order: u32,
    /// Kilobytes of a huge page, if the host has them.
    huge_kib: Option<u64>,
    /// Free blocks: order and number.
    free: Vec<(usize, u64)>,
    /// Pageblocks at the zone's end of which nothing is there.
    hole: u64,
    /// Whether pagetypeinfo is recorded.
    types: bool,
}

impl Machine {
    fn of(page_kib: u64, orders: usize, block_order: u32, huge_kib: Option<u64>) -> Machine {
        // Some of the largest, one of the middle, and single pages.
        let most = orders - 1;
        Machine {
            page_kib,
            orders,
            block_order,
            huge_kib,
            free: vec![(0, 5), (2, 3), (most / 2, 1), (most, 12)],
            hole: 0,
            types: true,
        }
    }

    fn usual() -> Machine {
        Machine::of(4, 11, 9, Some(2048))
    }

    /// Pageblocks by type.
    fn blocks(&self) -> [u64; 3] {
        let each = (1u64 << (self.orders - 1)) >> self.block_order;
        BLOCKS.map(|n| n * each.max(1))
    }

    fn present(&self) -> u64 {
        self.blocks().iter().sum::<u64>() << self.block_order
    }

    fn spanned(&self) -> u64 {
        self.present() + (self.hole << self.block_order)
    }

    fn free_by_order(&self) -> Vec<u64> {
        let mut all = vec![0; self.orders];
        self.free.iter().for_each(|&(order, n)| all[order] += n);
        all
    }

    /// What the host shows while so many pages wait on the lists of its CPU.
    fn snapshot(&self, number: u64, time: u64, waiting: u64) -> Snapshot {
        let row = |n: &[u64]| n.iter().map(|n| format!(" {n:>6}")).collect::<String>();
        let free = self.free_by_order();
        let pages: u64 = free.iter().enumerate().map(|(o, n)| n << o).sum();
        let orders: Vec<u64> = (0..self.orders as u64).collect();
        let mut types = format!(
            "Page block order: {}\nPages per block:  {}\n\nFree pages count per migrate type at order{}\n",
            self.block_order,
            1u64 << self.block_order,
            row(&orders)
        );
        let none = vec![0; self.orders];
        for (name, n) in [
            ("Unmovable", &none),
            ("Movable", &free),
            ("Reclaimable", &none),
        ] {
            types += &format!("Node    0, zone   Normal, type {name:>12}{}\n", row(n));
        }
        types += &format!(
            "\nNumber of blocks type     Unmovable      Movable  Reclaimable \nNode 0, zone   Normal{}\n",
            row(&self.blocks())
        );
        let (spanned, present) = (self.spanned(), self.present());
        let zoneinfo = format!(
            "Node 0, zone   Normal
  pages free     {pages}
        boost    0
        min      128
        low      160
        high     192
        spanned  {spanned}
        present  {present}
        managed  {present}
        protection: (0, 0, 0, 0)
  pagesets
    cpu: 0
              count: {waiting}
              high:  1600
              batch: 63
  vm stats threshold: 8
  node_unreclaimable:  0
  start_pfn:           {START}
"
        );
        let mut meminfo = format!("MemTotal: {} kB\n", present * self.page_kib);
        if let Some(kib) = self.huge_kib {
            meminfo += &format!("Hugepagesize: {kib} kB\n");
        }
        let mut files = vec![
            (
                "buddyinfo",
                format!("Node 0, zone   Normal{}\n", row(&free)),
            ),
            ("zoneinfo", zoneinfo),
            ("meminfo", meminfo),
        ];
        if self.types {
            files.push(("pagetypeinfo", types));
        }
        let file = |(name, text): (&str, String)| SnapshotFile {
            name: name.into(),
            time: Some((time, time)),
            content: text.into(),
        };
        Snapshot {
            name: format!("s{number:04}"),
            files: files.into_iter().map(file).collect(),
        }
    }

    /// A page of the command: above the pageblocks of the kernel, and below all that is free.
    fn page(&self, i: u64) -> u64 {
        let [unmovable, _, reclaimable] = self.blocks();
        START + ((unmovable + reclaimable) << self.block_order) + 2 * i
    }

    /// Pages that are given back, a snapshot, pages that are taken again, a snapshot.
    fn record(&self) -> Recording {
        let mut m = Maker::default();
        m.task("worker");
        let mut snapshots = vec![];
        for i in 0..20 {
            m.free(self.page(i), 0).wait(1_000_000);
        }
        snapshots.push(self.snapshot(0, m.now, 20));
        m.wait(1_000_000);
        for i in (8..20).rev() {
            m.alloc(self.page(i), 0, USER_PAGE).wait(1_000_000);
        }
        snapshots.push(self.snapshot(1, m.now, 8));
        m.wait(1_000_000).free(self.page(30), 0);
        m.rec.meta.kernel_release = "6.1.0".into();
        // Where a recorder does not tell, this is what the manifest has.
        m.rec.meta.page_size = 4096;
        m.rec.snapshots = snapshots;
        m.rec
    }
}

fn asked(rec: &Recording, kernel: &str) -> Report {
    let options = Options {
        kernels: vec![kernel.into()],
        members: Some(1),
        ..Options::default()
    };
    replay(rec, "made", &options, &mut NoWatch).unwrap_or_else(|e| panic!("{e}"))
}

fn zones(samples: &[Sample]) -> Vec<&ZoneSample> {
    samples.iter().map(|s| &s.zones[0]).collect()
}

/// Hosts that exist, and some that could.
fn hosts() -> Vec<Machine> {
    vec![
        Machine::usual(),
        // arm64.
        Machine::of(16, 12, 11, Some(32 << 10)),
        Machine::of(64, 14, 13, Some(512 << 10)),
        // Power, with two kinds of page tables.
        Machine::of(64, 9, 8, Some(16 << 10)),
        Machine::of(64, 9, 5, Some(2 << 10)),
        // x86 without huge pages, and with a small largest block.
        Machine::of(4, 11, 10, None),
        Machine::of(4, 8, 7, Some(2048)),
        Machine::of(4, 11, 5, Some(2048)),
        Machine::of(16, 11, 10, None),
    ]
}

#[test]
fn a_replay_begins_with_the_recorded_free_blocks_whatever_the_sizes() {
    for host in hosts() {
        let report = asked(&host.record(), "6.1");
        let (model, recorded) = (zones(&report.kernels[0].samples), zones(&report.recorded));
        assert_eq!(recorded.len(), 2, "{host:?}");
        for (m, r) in model.iter().zip(&recorded) {
            assert_eq!(m.free_blocks, r.free_blocks, "{host:?}");
            assert_eq!(m.free_blocks.len(), host.orders, "{host:?}");
            assert_eq!(
                (m.free_pages, m.pcp_pages),
                (r.free_pages, r.pcp_pages),
                "{host:?}"
            );
            for (name, blocks) in &r.pageblocks {
                assert_eq!(m.pageblocks[name], *blocks, "{name} of {host:?}");
            }
            assert_eq!(m.unusable_index, r.unusable_index, "{host:?}");
            assert_eq!(m.free_huge_blocks, r.free_huge_blocks, "{host:?}");
        }
        let bytes = report.recording.managed_bytes;
        assert_eq!(bytes, (host.present() * host.page_kib) << 10, "{host:?}");
        let sizes = &report.recording.sizes;
        let told = (
            sizes.page_bytes >> 10,
            usize::from(sizes.orders),
            u32::from(sizes.pageblock_order),
        );
        assert_eq!(told, (host.page_kib, host.orders, host.block_order));
    }
}

#[test]
fn the_order_of_a_huge_page_is_that_of_the_host() {
    let of = |m: Machine| asked(&m.record(), "6.1").recording.sizes.huge_order;
    let told: Vec<_> = hosts().into_iter().map(of).collect();
    let all = [9, 11, 13, 8, 5].map(Some);
    assert_eq!(told[..5], all);
    assert_eq!(told[5..], [None, None, Some(9), None]);
}

/// Pages are pages: what a page has changes bytes alone.
#[test]
fn the_same_load_in_pages_gives_the_same_pages_on_every_page_size() {
    let of = |page_kib: u64| {
        let mut report = asked(
            &Machine::of(page_kib, 11, 9, Some(page_kib << 9)).record(),
            "6.1",
        );
        assert_eq!(report.recording.sizes.page_bytes, page_kib << 10);
        assert_eq!(
            report.recording.managed_bytes,
            (Machine::usual().present() * page_kib) << 10
        );
        report.recording.sizes = Default::default();
        report.recording.managed_bytes = 0;
        serde_json::to_string(&report).unwrap()
    };
    let usual = of(4);
    assert!(!usual.contains("page_bytes"), "usual sizes are left out");
    for page_kib in [16, 64] {
        assert_eq!(of(page_kib), usual, "{page_kib} KiB");
    }
}

#[test]
fn a_hole_has_no_pageblocks() {
    for types in [true, false] {
        for sizes in [Machine::usual(), Machine::of(64, 14, 13, Some(512 << 10))] {
            let host = Machine {
                hole: 16,
                types,
                ..sizes
            };
            // The recorded kernel, and ones that placed all of it anew.
            for kernel in ["6.1", "6.18", "2.6.32"] {
                let report = asked(&host.record(), kernel);
                let m = zones(&report.kernels[0].samples)[0];
                let all: u64 = m.pageblocks.values().sum();
                assert_eq!(
                    all,
                    host.blocks().iter().sum::<u64>(),
                    "{kernel} on {host:?}"
                );
                if types && kernel == "6.1" {
                    let recorded = &zones(&report.recorded)[0].pageblocks;
                    for (name, blocks) in recorded {
                        assert_eq!(m.pageblocks[name], *blocks, "{name}");
                    }
                }
            }
        }
    }
}

/// Nothing of a hole is in use, so that it takes nothing from what is.
#[test]
fn a_hole_changes_no_free_page_under_another_kernel() {
    for kernel in ["6.1", "6.18"] {
        let of = |hole: u64| {
            let host = Machine {
                hole,
                ..Machine::usual()
            };
            let report = asked(&host.record(), kernel);
            let pages = zones(&report.kernels[0].samples);
            pages.iter().map(|z| z.free_pages).collect::<Vec<_>>()
        };
        assert_eq!(of(0), of(8), "{kernel}");
    }
}

#[test]
fn every_view_shows_the_sizes_of_the_host() {
    let report = asked(&Machine::of(64, 14, 13, Some(512 << 10)).record(), "6.1");
    let screen = Screen {
        width: 100,
        color: false,
        unicode: true,
    };
    let text = terminal::render(&report, &screen, Detail::All).to_string();
    for words in [
        "16 GiB",
        "Free 512 MiB blocks",
        "order 13, 512 MiB",
        "order 0, 64 KiB",
        "Unusable index, order 13 (512 MiB)",
    ] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    assert!(!text.contains("Free 2 MiB") && !text.contains("order 9 (2 MiB)"));
    assert!(svg::render(&report).contains("order 13"));
    let page = html::render(&report, Detail::All);
    assert!(page.contains("cannot serve 512 MiB") && page.contains("\"page_bytes\":65536"));
}

/// The pageblocks of a hole are a gap in a view, and no count has them; a block is one of the host.
#[test]
fn a_view_has_the_blocks_of_the_host_and_a_gap_for_its_hole() {
    struct Views(Vec<View>);
    impl Watch for Views {
        fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, m: &Manager<'_, ReplayHost>) {
            self.0.push(replayed::view(kernel, snap, m).unwrap());
            let tree = tree(kernel, snap, m, &m.host().cpus).unwrap();
            let text = tree.0.iter().find(|(name, _)| *name == "pagetypeinfo");
            let types = PageTypeInfo::parse(&text.unwrap().1).unwrap();
            assert_eq!(types.orders.len(), 14);
            assert_eq!(types.pageblock_order, 13);
            let all: u64 = types.blocks.rows[0].blocks.iter().sum();
            assert_eq!(all, BLOCKS.iter().sum::<u64>());
        }
    }
    let host = Machine {
        hole: 16,
        ..Machine::of(64, 14, 13, Some(512 << 10))
    };
    let mut views = Views(vec![]);
    let options = Options {
        kernels: vec!["6.1".into()],
        members: Some(1),
        ..Options::default()
    };
    replay(&host.record(), "made", &options, &mut views).unwrap();
    let view = &views.0[0];
    let there = |c: &&Cell| **c != Cell::ABSENT;
    let blocks = view.areas[0].cells.iter().filter(there).count();
    assert_eq!(blocks as u64, BLOCKS.iter().sum::<u64>());
    assert_eq!(view.free_huge(), 12);
    let style = Style {
        screen: Screen {
            width: 80,
            color: false,
            unicode: false,
        },
        rows: 4,
    };
    let text = render(view, None, &style).to_string();
    assert!(text.contains("12 free blocks of 512 MiB"), "{text}");
    assert!(text.contains("a cell is 512 MiB"), "{text}");
}

/// Sizes that no model has, each with words of the refusal: what is told, and where.
#[test]
fn impossible_sizes_are_refused_by_name() {
    let usual = Machine::usual;
    let cases: Vec<(Machine, &[&str])> = vec![
        (
            Machine::of(4, 15, 9, Some(2048)),
            &["15 orders", "buddyinfo of snapshot `s0000`", "14"],
        ),
        (
            Machine {
                orders: 1,
                free: vec![(0, 9)],
                ..usual()
            },
            &["1 orders", "buddyinfo"],
        ),
        (
            Machine {
                block_order: 0,
                free: vec![(0, 9)],
                ..usual()
            },
            &["pageblocks of 1 pages", "pagetypeinfo"],
        ),
        (
            Machine {
                orders: 8,
                free: vec![(0, 9)],
                ..usual()
            },
            &["pageblocks of 512 pages", "pagetypeinfo", "8 orders"],
        ),
    ];
    for (host, words) in cases {
        let options = Options::default();
        let e = replay(&host.record(), "made", &options, &mut NoWatch);
        let e = e.expect_err("no model has these sizes").to_string();
        for word in words {
            assert!(e.contains(word), "`{word}` is not in: {e}");
        }
    }
}
