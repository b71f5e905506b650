//! Files of procfs are written as they were read, for the text of several kernels.

use unfrag_linux::procfs::*;

use crate::common::echo;

fn assert_echoed(name: &str, text: &str) {
    match echo(name, text.as_bytes()) {
        Some(Ok(written)) => assert_eq!(written, text, "{name}"),
        Some(Err(e)) => panic!("{name}: {e}"),
        None => panic!("{name} has no reader"),
    }
}

macro_rules! fixture {
    ($path:literal) => {
        include_str!(concat!("../fixtures/", $path))
    };
}

/// `spec: 7.1, 7.2, 7.3, 7.4, 7.5`
#[test]
fn files_of_6_1_are_written_as_they_were_read() {
    assert_echoed("buddyinfo", fixture!("procfs/buddyinfo"));
    assert_echoed("pagetypeinfo", fixture!("procfs/pagetypeinfo"));
    assert_echoed("zoneinfo", fixture!("procfs/zoneinfo"));
    assert_echoed("vmstat", fixture!("procfs/vmstat"));
    assert_echoed("meminfo", fixture!("procfs/meminfo"));
    assert_echoed("slabinfo", fixture!("procfs/slabinfo"));
    assert_echoed("extfrag_index", fixture!("procfs/extfrag_index"));
    assert_echoed("unusable_index", fixture!("procfs/unusable_index"));
    assert_echoed("freelists", fixture!("procfs/freelists"));
}

/// `spec: 7.1, 7.2, 7.3, 7.4, 7.5`
#[test]
fn files_of_2_6_32_are_written_as_they_were_read() {
    assert_echoed("buddyinfo", fixture!("linux-2.6.32/buddyinfo"));
    assert_echoed("pagetypeinfo", fixture!("linux-2.6.32/pagetypeinfo"));
    assert_echoed("zoneinfo", fixture!("linux-2.6.32/zoneinfo"));
    assert_echoed("vmstat", fixture!("linux-2.6.32/vmstat"));
    assert_echoed("slabinfo", fixture!("linux-2.6.32/slabinfo"));
    assert_echoed("extfrag_index", fixture!("linux-2.6.32/extfrag_index"));
}

/// `spec: 7.1, 7.2, 7.5, 7.9`
#[test]
fn files_of_6_18_are_written_as_they_were_read() {
    assert_echoed("pagetypeinfo", fixture!("linux-6.18/pagetypeinfo"));
    assert_echoed("zoneinfo", fixture!("linux-6.18/zoneinfo"));
    assert_echoed("extfrag_index", fixture!("linux-6.18/extfrag_index"));
    assert_echoed("allocinfo", fixture!("linux-6.18/allocinfo"));
}

/// `spec: 7.1`
#[test]
fn migratetypes_are_found_by_name() {
    let old = PageTypeInfo::parse(fixture!("linux-2.6.32/pagetypeinfo").as_bytes()).unwrap();
    let new = PageTypeInfo::parse(fixture!("linux-6.18/pagetypeinfo").as_bytes()).unwrap();
    assert_eq!(old.blocks.get(0, "Normal", "Movable"), Some(12));
    assert_eq!(old.blocks.get(0, "Normal", "HighAtomic"), None);
    assert_eq!(new.blocks.get(1, "Normal", "Movable"), Some(1000));
    assert_eq!(new.mixed.as_ref().unwrap().get(1, "Normal", "CMA"), Some(4));
    assert_eq!(old.row(0, "DMA", "Movable").unwrap().counts[4].blocks, 3);
}

/// `spec: 7.1`
#[test]
fn a_capped_count_stays_capped() {
    let info = PageTypeInfo::parse(fixture!("linux-6.18/pagetypeinfo").as_bytes()).unwrap();
    let row = info.row(1, "Normal", "Movable").unwrap();
    assert_eq!(row.counts[2], pagetypeinfo::Count::with_cap(123_456));
    assert_eq!(
        row.counts[3],
        pagetypeinfo::Count {
            blocks: 297,
            capped: false
        }
    );
}

/// `spec: 7.2`
#[test]
fn zoneinfo_has_watermarks_counters_and_per_cpu_lists() {
    let info = ZoneInfo::parse(fixture!("procfs/zoneinfo").as_bytes()).unwrap();
    let zone = info.zone(0, "DMA32").unwrap();
    assert_eq!(zone.pages("managed"), Some(148_228));
    assert_eq!(zone.start_pfn(), Some(4096));
    assert_eq!(
        zone.pagesets.as_ref().unwrap()[1].fields.get("high"),
        Some(4520)
    );
    assert_eq!(zone.counters.get("nr_free_pages"), Some(zone.free));
    assert!(info.zone(0, "DMA").unwrap().per_node.is_some());
    assert_eq!(info.zone(0, "Movable").unwrap().pagesets, None);
    let old = ZoneInfo::parse(fixture!("linux-2.6.32/zoneinfo").as_bytes()).unwrap();
    assert_eq!(old.zones[0].layout, zoneinfo::Layout::LINUX_2_6_32);
    assert_eq!(old.zones[1].last.get("prev_priority"), Some(12));
    let new = ZoneInfo::parse(fixture!("linux-6.18/zoneinfo").as_bytes()).unwrap();
    assert_eq!(new.zones[0].layout, zoneinfo::Layout::LINUX_6_18);
    let counters = new.zones[0].per_node.as_ref().unwrap();
    assert_eq!(counters.get("a_counter_of_tomorrow"), Some(u64::MAX));
}

/// `spec: 7.5`
#[test]
fn negative_indexes_are_written_as_they_were_read() {
    let index = ExtfragIndex::parse(fixture!("linux-6.18/extfrag_index").as_bytes()).unwrap();
    assert_eq!(index.zones[0].thousandths, [-1000, 0, 5, -5, 999, 1000]);
    let old = ExtfragIndex::parse(fixture!("linux-2.6.32/extfrag_index").as_bytes()).unwrap();
    assert!(!old.padded);
}

/// `spec: 7.4`
#[test]
fn a_name_of_a_slab_cache_may_hold_spaces() {
    let info = SlabInfo::parse(fixture!("linux-2.6.32/slabinfo").as_bytes()).unwrap();
    let cache = info.cache("a name with 9 words in it").unwrap();
    assert_eq!(
        (cache.active_objs, cache.pagesperslab, cache.sharedavail),
        (1, 5, 11)
    );
}

/// `spec: 7.1`
#[test]
fn a_models_state_is_written_as_a_kernel_writes_it() {
    let zone = |zone: &str, free: &[u64]| buddyinfo::Row {
        node: 0,
        zone: zone.to_owned(),
        free: free.to_vec(),
        goes_on: false,
    };
    let info = BuddyInfo {
        zones: vec![zone("DMA32", &[1, 23456789, 0]), zone("A", &[4])],
        ..BuddyInfo::default()
    };
    assert_eq!(
        info.write(),
        "Node 0, zone    DMA32      1 23456789      0 \nNode 0, zone        A      4 \n"
    );
    assert_eq!(info.zones[0].free_pages(), 46_913_579);
    let index = UnusableIndex {
        zones: vec![IndexRow {
            node: 0,
            zone: "DMA".into(),
            thousandths: vec![0, 58, 1000],
        }],
        ..UnusableIndex::default()
    };
    assert_eq!(index.write(), "Node 0, zone      DMA 0.000 0.058 1.000 \n");
    let index = ExtfragIndex {
        zones: index.zones,
        ..ExtfragIndex::default()
    };
    assert_eq!(
        index.write(),
        "Node 0, zone      DMA  0.000  0.058  1.000 \n"
    );
}

#[test]
fn a_text_without_an_understood_line_is_refused_with_its_offset() {
    let e = BuddyInfo::parse(b"Node 0, zome DMA 1\n").unwrap_err();
    assert_eq!(
        e.to_string(),
        "byte 8: buddyinfo: expected \"zone\", found \"zome DMA 1\""
    );
    let refused = b"cat: /proc/pagetypeinfo: Permission denied\n";
    assert!(PageTypeInfo::parse(refused).is_err());
    assert!(ZoneInfo::parse(refused).is_err());
    assert!(VmStat::parse(refused).is_err());
    assert!(MemInfo::parse(refused).is_err());
    assert!(SlabInfo::parse(refused).is_err());
    assert!(ExtfragIndex::parse(refused).is_err());
}

#[test]
fn uptime_is_nanoseconds_since_boot() {
    assert_eq!(uptime::parse(b"17.85 11.85\n").unwrap(), 17_850_000_000);
    assert!(uptime::parse(b"17.8 1\n").is_err());
    assert!(uptime::parse(b"99999999999999.00 1\n").is_err());
}
