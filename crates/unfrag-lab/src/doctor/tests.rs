//! Diagnoses of whole hosts made by hand.

use super::*;
use std::collections::HashMap;
use std::io;
use unfrag_linux::kpageflags::{ANON, BUDDY, LRU, NOPAGE, PageFlags, SLAB};

const ZONEINFO: &str = "Node 0, zone   Normal
  pages free     6400
        boost    0
        min      64
        low      80
        high     96
        spanned  10240
        present  10240
        managed  10240
        protection: (0, 0, 0)
      nr_free_pages 6400
  pagesets
    cpu: 0
              count:    0
              high:     10
              batch:    1
  vm stats threshold: 4
  node_unreclaimable:  0
  start_pfn:           0
";

/// A host of 20 blocks: 10 free, 9 with a quarter of memory that moves, one with a slab page too.
fn host() -> HashMap<&'static str, Vec<u8>> {
    let mut words = vec![BUDDY; 10 * 512];
    words.extend((0..10 * 512).map(|i| if i % 4 == 0 { LRU | ANON } else { BUDDY }));
    words[10 * 512 + 1] = SLAB;
    words.resize(20 * 512, NOPAGE);
    let buddy = "Node 0, zone   Normal   2559   1280      0      0      0      0      0      0      0     10      0 \n";
    HashMap::from([
        ("buddyinfo", buddy.into()),
        ("zoneinfo", ZONEINFO.into()),
        ("kpageflags", PageFlags { words }.write()),
        ("version", b"Linux version 6.18.2 (test)".to_vec()),
        ("vmstat", b"compact_stall 3\n".to_vec()),
        ("sys/vm/compaction_proactiveness", b"20\n".to_vec()),
    ])
}

fn evidence(host: &HashMap<&str, Vec<u8>>) -> Evidence {
    let read = |name: &str| {
        host.get(name)
            .cloned()
            .ok_or(io::ErrorKind::NotFound.into())
    };
    Evidence::read("here", read).unwrap()
}

fn examined(host: &HashMap<&str, Vec<u8>>) -> Examined {
    examine(&evidence(host)).unwrap()
}

#[test]
fn a_fragmented_host() {
    let d = examined(&host()).diagnosis;
    assert_eq!(d.huge_pages.now, 10);
    assert!(
        d.huge_pages.after_compaction > Some(14),
        "{:?}",
        d.huge_pages
    );
    assert!(d.huge_pages.by_asking_again >= d.huge_pages.after_compaction);
    let slab = d.obstacles.as_ref().unwrap()[0];
    assert_eq!(
        (slab.kind, slab.pages, slab.blocks_alone),
        (FrameUse::Slab, 1, 1)
    );
    assert_eq!(d.atomic[0].verdict, "safe");
    assert!(
        d.zones[0].verdict.starts_with("fragmented"),
        "{}",
        d.zones[0].verdict
    );
}

#[test]
fn a_host_without_page_flags() {
    let mut host = host();
    host.remove("kpageflags");
    let d = examined(&host).diagnosis;
    assert_eq!(d.huge_pages.now, 10);
    assert_eq!(d.huge_pages.after_compaction, None);
    assert!(d.huge_pages.at_most >= 10 && d.huge_pages.at_most <= 20);
    assert!(d.obstacles.is_none());
    assert!(d.unread.iter().any(|u| u.file == "kpageflags"));
    let (answer, _) = text::answer(&d, 15);
    assert!(answer.starts_with("perhaps"), "{answer}");
}

#[test]
fn deferred_memory_counts_as_free() {
    let mut host = host();
    let zoneinfo = ZONEINFO.replace("present  10240", "present  30720");
    host.insert("zoneinfo", zoneinfo.into());
    host.insert("meminfo", b"MemTotal:          81920 kB\n".to_vec());
    let d = examined(&host).diagnosis;
    // 81920 KiB are 20480 pages: 10240 of them, 20 blocks, in no zone.
    assert_eq!(d.huge_pages.now, 30);
    assert_eq!(d.notes.len(), 1, "{:?}", d.notes);
}

/// `spec: 5.5`
#[test]
fn the_score_of_a_node_is_weighted() {
    // present x score / (present + 1); 2559 + 2560 of 10239 free pages are outside blocks: 49, and
    // 10240 x 49 / 10241 is 48.
    let d = examined(&host()).diagnosis;
    assert_eq!(d.nodes[0].score, 48);
    assert_eq!(d.nodes[0].proactive_low_high, Some([80, 90]));
}

#[test]
fn advice_names_its_number() {
    let d = examined(&host()).diagnosis;
    let proactive = d
        .advice
        .iter()
        .find(|a| a.setting.as_deref() == Some("vm.compaction_proactiveness"));
    let a = proactive.expect("score 48 begins nothing at 20");
    assert_eq!(a.value.as_deref(), Some("70"));
    assert!(a.reason.contains("48"), "{}", a.reason);
    assert!(a.for_replay().is_err(), "compaction is not modelled");
}

#[test]
fn a_sound_host_gets_no_advice() {
    let mut host = host();
    let words = vec![BUDDY; 20 * 512];
    host.insert("kpageflags", PageFlags { words }.write());
    host.insert(
        "buddyinfo",
        b"Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 0 10 \n".to_vec(),
    );
    let d = examined(&host).diagnosis;
    assert_eq!(d.advice, []);
    assert!(text::render(&d, false).contains("nothing to change"));
}

#[test]
fn an_unknown_release_is_an_error() {
    let mut host = host();
    host.insert("version", b"Linux version unknown".to_vec());
    assert!(examine(&evidence(&host)).is_err());
}
