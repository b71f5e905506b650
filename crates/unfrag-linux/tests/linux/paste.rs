//! Texts to paste of hosts that are larger than any text.

use unfrag_linux::paste::{self, Earlier, MOST};
use unfrag_linux::procfs::{BuddyInfo, PageTypeInfo, ZoneInfo};
use unfrag_linux::recording::{Snapshot, SnapshotFile};

fn file(name: &str, text: String) -> SnapshotFile {
    SnapshotFile {
        name: name.into(),
        time: None,
        content: text.into_bytes().into(),
    }
}

/// A host of so many nodes.
fn host(nodes: u32) -> Snapshot {
    let mut buddy = String::new();
    let mut zones = String::new();
    let mut types = "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n".to_owned();
    for n in 0..nodes {
        buddy += &format!(
            "Node {n}, zone   Normal 123456 123456 123456 123456 12345 1234 123 123 12 1 98765 \n"
        );
        zones += &format!(
            "Node {n}, zone   Normal\n  pages free     987654\n        min      1234\n        low      2345\n        high     3456\n        spanned  16777216\n        present  16777216\n        managed  16500000\n        protection: (0, 0, 0, 0)\n      nr_free_pages 987654\n      nr_zone_inactive_file 55555\n      nr_zone_active_file 44444\n      nr_free_cma  0\n  pagesets\n    cpu: 0\n              count: 42\n              high:  378\n              batch: 63\n  vm stats threshold: 72\n  node_unreclaimable:  0\n  start_pfn:           {}\n",
            n * 16_777_216
        );
        for name in [
            "Unmovable",
            "Movable",
            "Reclaimable",
            "HighAtomic",
            "CMA",
            "Isolate",
        ] {
            types += &format!(
                "Node {n:>4}, zone   Normal, type {name:>12}  12345  12345  12345  12345  12345   1234    123     12      1      1  >100000 \n"
            );
        }
    }
    Snapshot {
        name: ".".into(),
        files: vec![
            file("buddyinfo", buddy),
            file("zoneinfo", zones),
            file("pagetypeinfo", types),
            file(
                "meminfo",
                "MemTotal:       1056000000 kB\nMemFree:          63209856 kB\n".into(),
            ),
        ],
    }
}

#[test]
fn what_has_no_room_is_left_out_whole_and_named() {
    let mut left = 0;
    for nodes in [1, 2, 4, 8, 16, 32, 64, 256] {
        let host = host(nodes);
        let paste = paste::write("A host.", &host, &Earlier::default());
        assert!(
            paste.text.len() <= MOST,
            "{nodes} nodes: {}",
            paste.text.len()
        );
        for part in &paste.left_out {
            assert!(
                paste.text.contains("left:") && paste.text.contains(part),
                "{nodes}: {part}"
            );
        }
        left = left.max(paste.left_out.len());
        let read = paste::read(paste.text.as_bytes()).unwrap().unwrap();
        let skipped: Vec<&str> = read.skipped.iter().map(|s| s.file.as_str()).collect();
        assert_eq!(skipped, paste.left_out, "{nodes}");
        let [read] = &read.snapshots[..] else {
            panic!("{nodes} nodes: {} snapshots", read.snapshots.len())
        };
        let is_there = |name: &str| !paste.left_out.contains(&name);
        for file in &host.files {
            let name = file.name.as_str();
            assert_eq!(read.file(name).is_some(), is_there(name), "{nodes}: {name}");
        }
        if let (Some(a), Some(b)) = (read.file("buddyinfo"), host.file("buddyinfo")) {
            assert_eq!(
                BuddyInfo::parse(a).unwrap().zones,
                BuddyInfo::parse(b).unwrap().zones
            );
        }
        if let (Some(a), Some(b)) = (read.file("pagetypeinfo"), host.file("pagetypeinfo")) {
            assert_eq!(
                PageTypeInfo::parse(a).unwrap().free,
                PageTypeInfo::parse(b).unwrap().free
            );
        }
        if let (Some(a), Some(b)) = (read.file("zoneinfo"), host.file("zoneinfo")) {
            let (a, b) = (ZoneInfo::parse(a).unwrap(), ZoneInfo::parse(b).unwrap());
            for (a, b) in a.zones.iter().zip(&b.zones) {
                assert_eq!(
                    (a.node, a.free, &a.pages, &a.protection, &a.last),
                    (b.node, b.free, &b.pages, &b.protection, &b.last)
                );
                let sets = |z: &unfrag_linux::procfs::zoneinfo::Zone| -> u64 {
                    z.pagesets
                        .iter()
                        .flatten()
                        .filter_map(|s| s.fields.get("count"))
                        .sum()
                };
                assert_eq!(sets(a), sets(b));
            }
            assert_eq!(a.zones.len(), b.zones.len());
        }
    }
    assert!(left >= 2, "the largest do not fit");
}
