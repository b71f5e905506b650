//! Diagnoses of whole hosts made by hand.

use super::*;
use crate::report::screen::Screen;
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

/// Nothing is kept back for atomic requests.
const TYPES: &str = "Page block order: 9
Pages per block:  512

Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 
Node    0, zone   Normal, type      Movable   2559   1280      0      0      0      0      0      0      0     10      0 

Number of blocks type      Movable 
Node 0, zone   Normal           20 
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
        ("pagetypeinfo", TYPES.into()),
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
    assert_eq!(d.huge_pages.now, Some(10));
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
    assert_eq!(d.huge_pages.now, Some(10));
    assert_eq!(d.huge_pages.after_compaction, None);
    assert_eq!(
        d.huge_pages.at_most, None,
        "zoneinfo counts no page cache here"
    );
    assert!(d.obstacles.is_none());
    assert!(d.unread.iter().any(|u| u.file == "kpageflags"));
    let (answer, _) = text::answer(&d, 15, None);
    assert!(answer.starts_with("not known"), "{answer}");
    let cached = ZONEINFO.replace(
        "nr_free_pages 6400",
        "nr_free_pages 6400\n      nr_zone_inactive_file 1000\n      nr_zone_active_file 1000",
    );
    host.insert("zoneinfo", cached.into());
    let d = examined(&host).diagnosis;
    assert!(
        d.huge_pages.at_most >= Some(10) && d.huge_pages.at_most <= Some(20),
        "{:?}",
        d.huge_pages
    );
    let (answer, _) = text::answer(&d, 15, None);
    assert!(answer.starts_with("perhaps"), "{answer}");
}

#[test]
fn deferred_memory_counts_as_free() {
    let mut host = host();
    let zoneinfo = ZONEINFO
        .replace("present  10240", "present  30720")
        .replace("free     6400", "free     10239")
        .replace("nr_free_pages 6400", "nr_free_pages 10239");
    host.insert("zoneinfo", zoneinfo.into());
    // 81920 KiB are 20480 pages: 10240 of them, 20 blocks, in no zone; 10239 pages are free in one.
    let moments = |n: &String| n.contains("not of one moment");
    for (free, now) in [
        ("MemFree: 81916 kB\n", Some(30)),
        ("MemFree: 61436 kB\n", Some(20)),
        ("MemFree: 40956 kB\n", Some(10)),
        ("MemFree: 20000 kB\n", Some(10)),
        ("", None),
    ] {
        let amounts = format!("MemTotal: 81920 kB\n{free}DirectMap4k: 81920 kB\n");
        host.insert("meminfo", amounts.into_bytes());
        let d = examined(&host).diagnosis;
        assert_eq!(d.huge_pages.now, now, "{free}");
        let of_deferred = |n: &&String| n.contains("no zone manages");
        let notes: Vec<_> = d.notes.iter().filter(of_deferred).collect();
        assert_eq!(notes.len(), 1, "{:?}", d.notes);
        let counted = notes[0].contains("are counted as");
        assert_eq!(counted, now > Some(10), "{notes:?}");
        let contradicts = d.notes.iter().any(moments);
        assert_eq!(contradicts, free.contains("20000"), "{:?}", d.notes);
    }
}

#[test]
fn memory_of_zones_that_are_missing_is_not_taken_for_memory_that_comes_later() {
    let mut host = host();
    // Four times what the zone could ever manage: another zone or node has it.
    let amounts = b"MemTotal: 163840 kB\nMemFree: 140000 kB\nDirectMap4k: 4 kB\n".to_vec();
    host.insert("meminfo", amounts);
    let d = examined(&host).diagnosis;
    assert_eq!((d.huge_pages.now, d.huge_pages.at_most), (None, None));
    assert_eq!(d.zones[0].huge_pages.now, Some(10));
    assert!(
        d.notes.iter().any(|n| n.contains("may be missing")),
        "{:?}",
        d.notes
    );
    assert!(text::answer(&d, 15, None).0.starts_with("not known"));
}

#[test]
fn a_zone_that_the_text_lacks_leaves_sums_and_settings_unknown() {
    let mut host = host();
    let kept = ZONEINFO
        .replace("protection: (0, 0, 0)", "protection: (0, 900, 900)")
        .replace("free     6400", "free     400");
    host.insert("zoneinfo", kept.into());
    host.insert(
        "buddyinfo",
        b"Node 0, zone   Normal 400 0 0 0 0 0 0 0 0 0 0 \n".to_vec(),
    );
    host.remove("kpageflags");
    let d = examined(&host).diagnosis;
    assert_eq!((d.huge_pages.now, d.nodes[0].huge_pages.now), (None, None));
    assert_eq!(d.nodes[0].score, None);
    assert!(d.atomic.iter().all(|r| r.verdict == "unknown"));
    let set = |a: &super::advice::Advice| a.setting.as_deref() == Some("vm.min_free_kbytes");
    assert!(!d.advice.iter().any(set), "{:?}", d.advice);
    assert!(d.notes.iter().any(|n| n.contains("lacks a zone of node 0")));
}

/// `spec: 5.5`
#[test]
fn the_score_of_a_node_is_weighted() {
    // present x score / (present + 1); 2559 + 2560 of 10239 free pages are outside blocks: 49, and
    // 10240 x 49 / 10241 is 48.
    let d = examined(&host()).diagnosis;
    assert_eq!(d.nodes[0].score, Some(48));
    assert_eq!(d.nodes[0].proactive_low_high, Some([80, 90]));
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
    assert!(text::render(&d, &Screen::default()).contains("nothing to change"));
}

#[test]
fn without_sysctls_or_counters_nothing_is_all_clear() {
    for lacking in ["vmstat", "sys/vm/compaction_proactiveness", "zoneinfo"] {
        let mut host = host();
        host.remove(lacking);
        host.remove("kpageflags");
        host.insert(
            "buddyinfo",
            b"Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 0 10 \n".to_vec(),
        );
        let said = text::render(&examined(&host).diagnosis, &Screen::default()).into_string();
        assert!(!said.contains("nothing to change"), "{lacking}: {said}");
        assert!(
            said.contains("not judged, as not seen"),
            "{lacking}: {said}"
        );
    }
}

#[test]
fn a_release_that_is_none_is_named_and_the_rule_that_was_assumed() {
    let mut host = host();
    host.insert("version", b"Linux version unknown".to_vec());
    let d = examined(&host).diagnosis;
    assert!(
        d.unread.iter().any(|u| u.file == "version"),
        "{:?}",
        d.unread
    );
    assert!(d.kernel_rules_assumed);
    let said = text::render(&d, &Screen::default()).into_string();
    assert!(said.contains("by the rule of 6.18, assumed"), "{said}");
    assert!(said.contains("--release RELEASE"), "{said}");
    let mut given = evidence(&host);
    given.host.release = Some("unknown".into());
    assert!(examine(&given).is_err(), "what is given is not guessed at");
}

#[test]
fn a_release_that_is_not_known_is_decisive_where_the_rules_differ() {
    let mut host = host();
    host.remove("version");
    // 300 blocks of order 3 and a mark of which the old check wants a part in them.
    host.insert(
        "buddyinfo",
        b"Node 0, zone   Normal 90000 0 0 300 0 0 0 0 0 0 0 \n".to_vec(),
    );
    let marks = ZONEINFO
        .replace("min      64", "min      60000")
        .replace("low      80", "low      75000")
        .replace("high     96", "high     90000")
        .replace("free     6400", "free     92400");
    host.insert("zoneinfo", marks.into());
    let d = examined(&host).diagnosis;
    assert_eq!(d.atomic[0].verdict, "safe");
    assert_eq!(d.atomic[0].verdict_to_4_3, Some("fails"));
}

#[test]
fn a_zone_without_whole_blocks_is_told_what_that_means() {
    let mut host = host();
    host.remove("kpageflags");
    host.insert(
        "buddyinfo",
        b"Node 0, zone   Normal 900 300 200 100 9 0 0 0 0 0 0 \n".to_vec(),
    );
    let d = examined(&host).diagnosis;
    assert_eq!(d.advice, [], "one reading shows nobody who needs them");
    let room = d
        .candidates
        .iter()
        .find(|c| c.advice.command.contains("compact_memory"));
    let room = room.expect("nothing is in whole blocks");
    let reason = &room.advice.reason;
    assert!(reason.contains("requests above order 4"), "{reason}");
    assert!(room.why_not.contains("a need for it now"), "{room:?}");
}

#[test]
fn compactions_in_vain_and_fallen_back_faults_since_boot_are_history() {
    let mut host = host();
    host.insert(
        "vmstat",
        b"compact_stall 1038\ncompact_fail 825\ncompact_success 213\nthp_fault_alloc 38\nthp_fault_fallback 62\n"
            .to_vec(),
    );
    let d = examined(&host).diagnosis;
    assert_eq!(d.advice, []);
    let history: String = d.history.iter().map(|p| p.text.as_str()).collect();
    assert!(history.contains("79 % of 1,038 compactions"), "{history}");
    assert!(history.contains("62 % of 100 faults"), "{history}");
    assert!(history.contains("not known by one reading"), "{history}");
}

#[test]
fn slab_that_fills_a_zone_is_the_cause_and_no_larger_reserve_is_advised() {
    let mut host = host();
    let short = ZONEINFO.replace("free     6400", "free     40").replace(
        "nr_free_pages 6400",
        "nr_free_pages 40\n      nr_slab_unreclaimable 9000",
    );
    host.insert("zoneinfo", short.into());
    host.insert(
        "buddyinfo",
        b"Node 0, zone   Normal 40 0 0 0 0 0 0 0 0 0 0 \n".to_vec(),
    );
    let d = examined(&host).diagnosis;
    let verdict = &d.zones[0].verdict;
    assert!(verdict.contains("below its min watermark"), "{verdict}");
    assert!(
        verdict.contains("slab that cannot be reclaimed"),
        "{verdict}"
    );
    let settings: Vec<_> = d
        .advice
        .iter()
        .filter_map(|a| a.setting.as_deref())
        .collect();
    assert!(!settings.contains(&"vm.min_free_kbytes"), "{settings:?}");
    assert!(d.advice[0].command.contains("slabtop"), "{:?}", d.advice[0]);
}

#[test]
fn the_reserve_advised_is_never_larger_than_what_can_be_free() {
    let mut host = host();
    host.remove("kpageflags");
    // 120 KiB free, a reserve of 256 KiB: twice as much cannot be free.
    let short = ZONEINFO.replace("free     6400", "free     30");
    host.insert("zoneinfo", short.into());
    host.insert("sys/vm/min_free_kbytes", b"256\n".to_vec());
    host.insert(
        "buddyinfo",
        b"Node 0, zone   Normal 30 0 0 0 0 0 0 0 0 0 0 \n".to_vec(),
    );
    let d = examined(&host).diagnosis;
    assert_eq!(d.atomic[0].verdict, "fails");
    let settings: Vec<_> = d
        .advice
        .iter()
        .filter_map(|a| a.setting.as_deref())
        .collect();
    assert!(!settings.contains(&"vm.min_free_kbytes"), "{settings:?}");
}

#[test]
fn no_larger_reserve_is_advised_where_more_is_free_already() {
    let advises_reserve = |free: &str, high: &str| {
        let mut host = host();
        host.remove("kpageflags");
        let marks = ZONEINFO
            .replace("free     6400", &format!("free     {free}"))
            .replace("high     96", &format!("high     {high}"));
        assert!(marks.contains(&format!("high     {high}")), "{marks}");
        host.insert("zoneinfo", marks.into());
        host.insert("sys/vm/min_free_kbytes", b"256\n".to_vec());
        host.insert(
            "buddyinfo",
            format!("Node 0, zone   Normal {free} 0 0 0 0 0 0 0 0 0 0 \n").into_bytes(),
        );
        let d = examined(&host).diagnosis;
        assert_eq!(d.atomic[0].verdict, "fails");
        let candidates = d.candidates.iter().map(|c| &c.advice);
        let mut all = d.advice.iter().chain(candidates);
        all.any(|a| a.setting.as_deref() == Some("vm.min_free_kbytes"))
    };
    // kswapd frees up to twice the high mark then.
    assert!(advises_reserve("300", "160"));
    assert!(!advises_reserve("300", "140"));
}

#[test]
fn the_pool_is_that_of_the_pages_that_are_counted() {
    let mut host = host();
    let commands =
        |host: &HashMap<&str, Vec<u8>>| text::answer(&examined(host).diagnosis, 5, None).1;
    host.insert(
        "meminfo",
        b"HugePages_Total:       3\nHugepagesize:       2048 kB\n".to_vec(),
    );
    assert_eq!(commands(&host), ["echo 8 > /proc/sys/vm/nr_hugepages"]);
    host.insert(
        "meminfo",
        b"HugePages_Total:       3\nHugepagesize:    1048576 kB\n".to_vec(),
    );
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    assert_eq!(
        commands(&host),
        [format!("echo $(($(cat {pool}) + 5)) > {pool}")]
    );
}

#[test]
fn zoneinfo_alone_tells_a_shortage() {
    let zoneinfo = ZONEINFO.replace("free     6400", "free     70");
    let host = HashMap::from([("zoneinfo", zoneinfo.into_bytes())]);
    let d = examined(&host).diagnosis;
    assert_eq!(d.zones[0].below, Some("low"));
    assert_eq!(d.zones[0].free_huge_blocks, None);
    assert!(text::render(&d, &Screen::default()).contains("not known"));
}
