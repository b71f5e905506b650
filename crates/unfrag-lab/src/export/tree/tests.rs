//! Trees of a small model beside a snapshot made by hand.

use super::*;
use unfrag_eras::{Builder, Gfp, NodeId, NullHost, Order, Pfn, Request, ZoneConfig};
use unfrag_linux::procfs::{BuddyInfo, ExtfragIndex, UnusableIndex};
use unfrag_linux::recording::SnapshotFile;

const ZONEINFO: &str = "\
Node 0, zone    DMA32
  per-node stats
      nr_inactive_anon 7
  pages free     1
        boost    2
        min      3
        low      4
        high     5
        spanned  65536
        present  65536
        managed  60000
        cma      0
        protection: (0, 0, 9)
      nr_free_pages 1
      nr_zone_inactive_anon 8
  pagesets
    cpu: 0
              count: 11
              high:  12
              batch: 13
  vm stats threshold: 14
  node_unreclaimable:  0
  start_pfn:           4096
Node 0, zone   Normal
  pages free     100
        boost    0
        min      1
        low      1
        high     1
        spanned  100
        present  100
        managed  100
        cma      0
        protection: (0, 0, 0)
      nr_free_pages 100
  pagesets
    cpu: 0
              count: 0
              high:  1
              batch: 1
  node_unreclaimable:  0
  start_pfn:           1048576
Node 0, zone   Device
  pages free     0
        min      0
        low      0
        high     0
        spanned  0
        present  0
        managed  0
        protection: (0, 0, 0)
";
const VMSTAT: &str = "nr_free_pages 1\npgfault 55\n";
const MEMINFO: &str = "\
MemTotal:         240400 kB
MemFree:               4 kB
MemAvailable:        100 kB
HugePages_Total:       0
";

fn snapshot(files: &[(&str, &str)]) -> Snapshot {
    let file = |(name, content): &(&str, &str)| SnapshotFile {
        name: (*name).into(),
        time: None,
        content: (*content).into(),
    };
    Snapshot {
        name: "s0001".into(),
        files: files.iter().map(file).collect(),
    }
}

/// A machine of one zone on which some memory is in use.
fn with_manager<T>(era: &str, look: impl FnOnce(&Manager<'_, NullHost>) -> T) -> T {
    let zone = ZoneConfig::whole(NodeId(0), ZoneKind::Dma32, Pfn(4096), 65536);
    let config = Builder::new().zone(zone).cpus(2).era(era);
    let mut memory = vec![0; config.layout().unwrap().words];
    let mut m = config.boot(NullHost, &mut memory).unwrap();
    for order in [0, 0, 3, 9] {
        m.alloc(&Request::new(Order(order), Gfp::KERNEL)).unwrap();
    }
    look(&m)
}

fn get<'t>(tree: &'t Tree, name: &str) -> Option<&'t [u8]> {
    tree.0
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, content)| &content[..])
}

fn complete() -> Snapshot {
    snapshot(&[
        ("zoneinfo", ZONEINFO),
        ("vmstat", VMSTAT),
        ("meminfo", MEMINFO),
        ("slabinfo", "slabinfo - version: 2.1\n# name\n"),
    ])
}

#[test]
fn model_values_replace_recorded_ones() {
    with_manager("6.1", |m| {
        let tree = tree("6.1", &complete(), m, &[0, 1]).unwrap();
        let view = m.inspect().zone(ZoneId(0));
        let buddy = BuddyInfo::parse(get(&tree, "buddyinfo").unwrap()).unwrap();
        assert_eq!(buddy.zones[0].free_pages(), view.free_pages);
        let info = ZoneInfo::parse(get(&tree, "zoneinfo").unwrap()).unwrap();
        let zone = &info.zones[0];
        assert_eq!(zone.free, view.free_pages);
        assert_eq!(zone.pages("min"), Some(view.marks.min));
        assert_eq!(zone.pages("managed"), Some(65536));
        assert_eq!(zone.counters.get("nr_free_pages"), Some(view.free_pages));
        let sets = zone.pagesets.as_ref().unwrap();
        let held: u64 = sets.iter().filter_map(|s| s.fields.get("count")).sum();
        assert_eq!((sets.len(), held), (2, m.inspect().pcp_pages(ZoneId(0))));
        let vmstat = VmStat::parse(get(&tree, "vmstat").unwrap()).unwrap();
        assert_eq!(vmstat.get("nr_free_pages"), Some(view.free_pages));
        let meminfo = MemInfo::parse(get(&tree, "meminfo").unwrap()).unwrap();
        assert_eq!(meminfo.get("MemFree"), Some(4 * view.free_pages));
        assert_eq!(meminfo.get("MemTotal"), Some(4 * 65536));
        for order in 0..=10 {
            let unusable = UnusableIndex::parse(get(&tree, "unusable_index").unwrap()).unwrap();
            let expected = unfrag_eras::stat::unusable_index(&view.nr_free, Order(order));
            assert_eq!(
                unusable.zones[0].thousandths[usize::from(order)],
                expected as i32
            );
        }
        assert!(ExtfragIndex::parse(get(&tree, "extfrag_index").unwrap()).is_ok());
    });
}

#[test]
fn other_fields_are_copied_and_listed() {
    with_manager("6.1", |m| {
        let tree = tree("6.1", &complete(), m, &[0, 1]).unwrap();
        let info = ZoneInfo::parse(get(&tree, "zoneinfo").unwrap()).unwrap();
        assert_eq!(info.zones[0].counters.get("nr_zone_inactive_anon"), Some(8));
        let provenance = String::from_utf8(get(&tree, PROVENANCE).unwrap().to_vec()).unwrap();
        for row in [
            "buddyinfo\t*\tmodel",
            "pagetypeinfo\t*\tmodel",
            "zoneinfo\tnr_free_pages\tmodel",
            "zoneinfo\tnr_zone_inactive_anon\trecorded",
            "zoneinfo\tnr_inactive_anon\trecorded",
            "zoneinfo\tcma\trecorded",
            "zoneinfo\tnode_unreclaimable\trecorded",
            "zoneinfo\tvm stats threshold\trecorded",
            "vmstat\tnr_free_pages\tmodel",
            "vmstat\tpgfault\trecorded",
            "meminfo\tMemFree\tmodel",
            "meminfo\tMemAvailable\trecorded",
            "slabinfo\t*\trecorded",
        ] {
            assert!(
                provenance.lines().any(|l| l == row),
                "{row} in\n{provenance}"
            );
        }
    });
}

#[test]
fn missing_zone_has_no_memory() {
    with_manager("6.1", |m| {
        let tree = tree("6.1", &complete(), m, &[0, 1]).unwrap();
        let info = ZoneInfo::parse(get(&tree, "zoneinfo").unwrap()).unwrap();
        let normal = info.zone(0, "Normal").unwrap();
        assert_eq!((normal.free, normal.pages("managed")), (0, Some(0)));
        assert!(normal.pagesets.is_none());
        assert!(info.zone(0, "Device").is_some());
    });
}

#[test]
fn absent_files_are_not_written() {
    with_manager("6.18", |m| {
        let tree = tree("6.18", &snapshot(&[]), m, &[0, 1]).unwrap();
        let info = ZoneInfo::parse(get(&tree, "zoneinfo").unwrap()).unwrap();
        assert_eq!(info.zones[0].pages("managed"), Some(65536));
        assert!(
            info.zones[0].pagesets.as_ref().unwrap()[0]
                .fields
                .get("high_min")
                .is_some()
        );
        for absent in ["vmstat", "meminfo", "slabinfo"] {
            assert!(get(&tree, absent).is_none());
            let provenance = get(&tree, PROVENANCE).unwrap();
            let row = format!("{absent}\t*\tabsent");
            assert!(String::from_utf8_lossy(provenance).contains(&row));
        }
    });
}

#[test]
fn migratetype_names_by_era() {
    let first = |era| {
        with_manager(era, |m| {
            let tree = tree(era, &complete(), m, &[0, 1]).unwrap();
            let info = PageTypeInfo::parse(get(&tree, "pagetypeinfo").unwrap()).unwrap();
            info.blocks.migratetypes.join(" ")
        })
    };
    assert_eq!(
        first("6.1"),
        "Unmovable Movable Reclaimable HighAtomic Isolate"
    );
    assert_eq!(
        first("2.6.32"),
        "Unmovable Reclaimable Movable Reserve Isolate"
    );
    assert_eq!(first("v19"), "KernNoRclm EasyRclm KernRclm Fallback");
}

#[test]
fn malformed_file_is_named() {
    with_manager("6.1", |m| {
        let e = tree("6.1", &snapshot(&[("vmstat", "no number\n")]), m, &[0, 1]).unwrap_err();
        assert_eq!(e.file.as_deref(), Some("s0001/vmstat".as_ref()));
    });
}
