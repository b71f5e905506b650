//! Files of procfs of many kernels, page sizes and hosts of several nodes: read, and written the same.

use std::fs;
use std::path::{Path, PathBuf};

use unfrag_linux::procfs::*;

use crate::common::echo;

fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs")
}

fn read(path: &str) -> String {
    fs::read_to_string(inputs().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn zoneinfo(path: &str) -> ZoneInfo {
    ZoneInfo::parse(read(path).as_bytes()).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn all_kernels() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(inputs().join("kernels"))
        .unwrap()
        .map(|d| d.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn files_of_every_kernel_are_written_as_they_were_read() {
    let kernels = all_kernels();
    assert!(kernels.len() >= 28);
    for kernel in kernels {
        for file in fs::read_dir(inputs().join("kernels").join(&kernel)).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let text = read(&format!("kernels/{kernel}/{name}"));
            let written = echo(&name, text.as_bytes()).unwrap().unwrap();
            assert_eq!(written, text, "{kernel}/{name}");
            // As a terminal, a mailer or an editor of another system leaves it.
            let crlf = text.replace('\n', "\r\n");
            assert_eq!(echo(&name, crlf.as_bytes()).unwrap().unwrap(), crlf);
            let blank = format!("{text}\n\n");
            assert_eq!(echo(&name, blank.as_bytes()).unwrap().unwrap(), blank);
        }
    }
}

#[test]
fn zones_of_every_kernel_have_their_numbers() {
    for kernel in all_kernels() {
        let path = format!("kernels/{kernel}/zoneinfo");
        let text = read(&path);
        let info = zoneinfo(&path);
        let blocks = text.matches("pages free").count();
        assert_eq!(info.zones.len(), blocks, "{path}");
        let crlf = ZoneInfo::parse(text.replace('\n', "\r\n").as_bytes()).unwrap();
        for (zone, same) in info.zones.iter().zip(&crlf.zones) {
            assert_eq!(
                (zone.node, &zone.name, zone.free),
                (same.node, &same.name, same.free)
            );
            assert_eq!(zone.pages("min"), same.pages("min"), "{path}");
            assert_eq!(zone.protection, same.protection, "{path}");
            assert_eq!(zone.counters, same.counters, "{path}");
            assert_eq!(zone.pagesets, same.pagesets, "{path}");
            assert_eq!(zone.protection.len(), 3, "{path}");
            for name in ["min", "low", "high", "spanned", "present"] {
                assert!(zone.pages(name).is_some(), "{path}: {name}");
            }
            if zone.name != "Movable" {
                let sets = zone.pagesets.as_ref().unwrap();
                assert_eq!(sets.len(), 2, "{path}: a list a CPU");
                assert_eq!(sets[1].fields.get("batch"), Some(31), "{path}");
                assert!(zone.start_pfn().is_some(), "{path}");
                if !kernel.starts_with("2.6.14") {
                    assert_eq!(
                        zone.counters.get("nr_free_pages"),
                        Some(zone.free),
                        "{path}"
                    );
                    assert_eq!(sets[0].stat_threshold, Some(6), "{path}");
                }
            }
        }
    }
}

#[test]
fn two_lists_of_a_cpu_count_as_one() {
    let info = zoneinfo("kernels/2.6.14-1node/zoneinfo");
    let sets = info.zones[0].pagesets.as_ref().unwrap();
    assert_eq!(sets[0].fields.get("count"), Some(3 + 4));
    assert_eq!(sets[0].fields.get("batch"), Some(31));
    assert_eq!(info.zones[0].last.get("temp_priority"), Some(12));
}

#[test]
fn sections_of_nodes_are_one_table() {
    let text = read("numa-pagetypeinfo/pagetypeinfo");
    let mut info = PageTypeInfo::parse(text.as_bytes()).unwrap();
    assert_eq!(info.blocks.get(0, "Normal", "Unmovable"), Some(12));
    assert_eq!(info.blocks.get(0, "Normal", "Movable"), Some(8702));
    assert_eq!(info.blocks.get(1, "Normal", "Unmovable"), Some(3));
    assert_eq!(info.blocks.get(1, "Normal", "Movable"), Some(8190));
    assert_eq!(
        info.row(1, "Normal", "Movable").unwrap().counts[10].blocks,
        2003
    );
    assert!(info.by_node && info.notes.not_understood.is_empty());
    assert_eq!(info.write(), text);
    // A number that has changed is written in its node's section.
    info.blocks.rows[1].blocks[1] = 8191;
    assert_eq!(info.write(), text.replace("8190", "8191"));
    for kernel in all_kernels()
        .iter()
        .filter(|k| k.ends_with("2node") && !k.starts_with("2.6.14") && !k.starts_with("2.6.22"))
    {
        let text = read(&format!("kernels/{kernel}/pagetypeinfo"));
        let info = PageTypeInfo::parse(text.as_bytes()).unwrap();
        assert!(
            info.by_node && info.row(1, "Normal", "Movable").is_some(),
            "{kernel}"
        );
        let orders = info.orders.len();
        assert!(
            info.free.iter().all(|row| row.counts.len() == orders),
            "{kernel}"
        );
    }
}

#[test]
fn a_capped_count_is_read_with_and_without_a_blank() {
    let text = read("kernels/6.6-2node/pagetypeinfo");
    assert!(text.contains(">100000"));
    let blank = text.replace(">100000", "> 100000");
    for text in [text, blank] {
        let info = PageTypeInfo::parse(text.as_bytes()).unwrap();
        let count = info.row(1, "Normal", "Movable").unwrap().counts[0];
        assert_eq!(count, pagetypeinfo::Count::with_cap(200_000));
        assert_eq!(info.write(), text);
    }
}

#[test]
fn old_zoneinfo_has_the_numbers_that_stand_there() {
    let info = zoneinfo("zoneinfo-4.9/zoneinfo");
    let zone = info.zone(0, "Normal").unwrap();
    assert_eq!(zone.free, 648);
    assert_eq!(zone.pages("min"), Some(67));
    assert_eq!(zone.pages("managed"), Some(3977));
    assert_eq!(
        zone.per_node.as_ref().unwrap().get("nr_written"),
        Some(6100)
    );
    let info = zoneinfo("zoneinfo-2.6.22/zoneinfo");
    let zone = info.zone(0, "DMA").unwrap();
    assert_eq!((zone.free, zone.pages("present")), (2828, Some(4064)));
    assert_eq!(zone.protection, [0, 873, 12176]);
    let info = zoneinfo("cma-counted/zoneinfo");
    let zone = info.zone(0, "Normal").unwrap();
    assert_eq!(zone.counters.get("nr_free_cma"), Some(64432));
    for path in [
        "zoneinfo-4.9",
        "zoneinfo-2.6.22",
        "cma-counted",
        "default-hugepage-1G",
        "sosreport/proc",
    ] {
        let path = format!("{path}/zoneinfo");
        assert_eq!(zoneinfo(&path).write(), read(&path), "{path}");
    }
}

#[test]
fn a_cut_zoneinfo_says_so_and_has_what_is_whole() {
    let text = read("sosreport/proc/zoneinfo");
    let at = text.rfind("nr_zspages").unwrap();
    let info = ZoneInfo::parse(&text.as_bytes()[..at]).unwrap();
    assert!(info.notes.cut);
    let zone = info.zone(0, "Normal").unwrap();
    assert_eq!((zone.free, zone.pages("min")), (18491, Some(13828)));
    assert_eq!(zone.pagesets, None, "they are not known");
    let text = read("zoneinfo-4.9/zoneinfo");
    let at = text.find("managed  3977").unwrap() + "managed  39".len();
    let info = ZoneInfo::parse(&text.as_bytes()[..at]).unwrap();
    assert!(info.notes.cut);
    assert_eq!(info.zones[0].pages("managed"), None, "39 is not the number");
    assert_eq!(info.notes.not_understood.len(), 1);
    assert_eq!(info.notes.not_understood[0].text, "        managed  39");
}

#[test]
fn lines_that_are_not_understood_are_counted_with_their_numbers() {
    let info = zoneinfo("kernels/5.4-1node/zoneinfo");
    let lines: Vec<(usize, &str)> = info
        .notes
        .not_understood
        .iter()
        .map(|u| (u.line, u.text.trim()))
        .collect();
    assert_eq!(lines[0], (19, "vendor_pool: 3 of 9"));
    assert_eq!(
        info.zones[0].counters.get(""),
        Some(7),
        "a counter without a name"
    );
    assert!(!info.notes.cut);
}

#[test]
fn buddyinfo_is_read_whatever_a_terminal_did_to_it() {
    for case in ["watch", "crlf", "blank-line", "no-newline"] {
        let path = format!("watch-crlf-no-newline/{case}/buddyinfo");
        let text = read(&path);
        let info = BuddyInfo::parse(text.as_bytes()).unwrap();
        let zone = info.zone(0, "Normal").unwrap();
        assert_eq!(
            (zone.free.len(), zone.free[0], zone.free[10]),
            (11, 16792, 5536)
        );
        assert_eq!(info.write(), text, "{case}");
        assert!(!info.notes.cut);
        assert_eq!(
            info.notes.not_understood.len(),
            usize::from(case == "watch")
        );
    }
    for (case, orders) in [("order-17", 17), ("orders-9-s390-ppc64", 9)] {
        let info = BuddyInfo::parse(read(&format!("{case}/buddyinfo")).as_bytes()).unwrap();
        assert_eq!(info.zones[0].free.len(), orders);
    }
}

#[test]
fn numbers_that_no_kernel_writes_are_not_understood() {
    let info =
        VmStat::parse(b"nr_free_pages 5\nnr_mlock -3\nnr_dirty 99999999999999999999\n").unwrap();
    assert_eq!(info.get("nr_free_pages"), Some(5));
    assert_eq!((info.get("nr_mlock"), info.get("nr_dirty")), (None, None));
    assert_eq!(info.notes.not_understood.len(), 2);
    let info = MemInfo::parse(b"MemFree:  -4 kB\nCached:  7 kB\nSlab:   1 MB\n").unwrap();
    assert_eq!(
        (info.get("MemFree"), info.get("Cached"), info.get("Slab")),
        (None, Some(7), None)
    );
    assert_eq!(info.notes.not_understood[1].line, 3);
}

#[test]
fn a_counter_without_a_name_is_kept_in_its_place() {
    let text = "nr_free_pages 5\n 7\nnr_mlock 3\n";
    let info = VmStat::parse(text.as_bytes()).unwrap();
    assert_eq!((info.get(""), info.get("nr_mlock")), (Some(7), Some(3)));
    assert_eq!(info.write(), text);
    assert!(info.notes.not_understood.is_empty());
}

#[test]
fn slabinfo_with_carriage_returns_has_the_same_caches() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/procfs/slabinfo");
    let text = fs::read_to_string(path).unwrap();
    let crlf = text.replace('\n', "\r\n");
    let (info, same) = (
        SlabInfo::parse(text.as_bytes()),
        SlabInfo::parse(crlf.as_bytes()),
    );
    let (info, same) = (info.unwrap(), same.unwrap());
    assert_eq!(
        (&info.version, &info.columns, &info.caches),
        (&same.version, &same.columns, &same.caches)
    );
    assert_eq!(same.write(), crlf);
}
