//! What is answered to texts that people paste: what is in them is used, and nothing is made up for what is not.

use std::path::PathBuf;
use unfrag_lab::doctor::{Diagnosis, examine, text};
use unfrag_lab::find::evidence::{Examine, evidence};
use unfrag_lab::find::moments::moments;
use unfrag_lab::report::screen::Screen;
use unfrag_linux::segments::Window;

/// A file with a text, which is removed at the end.
struct Paste(PathBuf);

impl Paste {
    fn new(name: &str, text: &str) -> Paste {
        let path = std::env::temp_dir().join(format!("unfrag-paste-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Paste(path)
    }
}

impl Drop for Paste {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn diagnosed(name: &str, paste: &str) -> (Diagnosis, String) {
    let paste = Paste::new(name, paste);
    let (evidence, _) = evidence(&paste.0, &Examine::default()).unwrap_or_else(|e| panic!("{e}"));
    let diagnosis = examine(&evidence).unwrap().diagnosis;
    let shown = text::render(&diagnosis, &Screen::default()).to_string();
    (diagnosis, shown)
}

const COUNTERS: &str = "$ egrep 'thp|compact' /proc/vmstat
compact_stall 205761
compact_fail 182420
compact_success 23341
";

const ROW: &str = "$ cat /proc/buddyinfo
Node 0, zone   Normal  19340   9441   1865    250    163     47      3      3      1      3      0
";

#[test]
fn counters_alone_have_the_advice_that_hangs_on_them() {
    let (_, shown) = diagnosed("counters", COUNTERS);
    assert!(shown.contains("89 % of 205,761 compactions"), "{shown}");
}

#[test]
fn faults_that_wait_in_vain_have_the_setting_that_lets_them_not_wait() {
    for (enabled, advised) in [
        ("[always] madvise never", "echo madvise >"),
        ("always [madvise] never", "echo defer >"),
    ] {
        let thp = "/sys/kernel/mm/transparent_hugepage";
        let settings = format!(
            "{thp}/enabled:{enabled}\n{thp}/defrag:[always] defer defer+madvise madvise never\n"
        );
        let (_, shown) = diagnosed("thp", &format!("{settings}{COUNTERS}"));
        assert!(shown.contains(advised), "{shown}");
        assert!(
            !shown.contains("transparent_hugepage/enabled, defrag: not there"),
            "{shown}"
        );
    }
}

#[test]
fn settings_that_are_not_there_are_not_seen() {
    let (_, shown) = diagnosed("none", ROW);
    assert!(
        shown.contains("transparent_hugepage/enabled, defrag: not there"),
        "{shown}"
    );
    assert!(shown.contains("sysctls: not there"), "{shown}");
    let (d, shown) = diagnosed(
        "one",
        &format!("# cat /proc/sys/vm/min_free_kbytes\n164231\n{ROW}"),
    );
    assert_eq!(d.settings["min_free_kbytes"], "164231");
    assert!(shown.contains("vm.min_free_kbytes = 164231"), "{shown}");
    assert!(
        shown.contains("vm.defrag_mode") && shown.contains("not known, so not judged"),
        "{shown}"
    );
}

#[test]
fn slab_caches_alone_are_shown_in_the_bytes_that_their_table_tells() {
    let top = "  OBJS ACTIVE  USE OBJ SIZE  SLABS OBJ/SLAB CACHE SIZE NAME
734506368 734506368 100%    0.06K 11476662       64  45906648K ebitmap_node
";
    for (text, size) in [
        (top.to_owned(), "43.8 GiB"),
        (
            format!(
                "{top}$ cat /proc/meminfo\nMemTotal: 65536000 kB\nMemFree: 6553600 kB\nHugepagesize: 524288 kB\n"
            ),
            "43.8 GiB",
        ),
    ] {
        let (_, shown) = diagnosed("slabtop", &text);
        let row = shown
            .lines()
            .find(|l| l.contains("ebitmap_node"))
            .unwrap_or_default();
        assert!(row.contains(size), "{shown}");
    }
}

#[test]
fn orders_that_a_table_does_not_tell_are_not_known() {
    let metrics = "node_buddyinfo_blocks{node=\"0\",size=\"0\",zone=\"DMA32\"} 759
node_buddyinfo_blocks{node=\"0\",size=\"1\",zone=\"DMA32\"} 572
";
    let (d, shown) = diagnosed("metrics", metrics);
    assert_eq!(
        (
            d.huge_pages.now,
            d.zones[0].free_pages,
            d.zones[0].free_huge_blocks
        ),
        (None, None, None)
    );
    assert!(shown.contains("759, 572"), "{shown}");
    let paste = Paste::new("metrics-inspected", metrics);
    let found = moments(&paste.0, None, None, &Window::default()).unwrap();
    let zone = &found.snapshots[0].zones[0];
    assert_eq!(
        (&zone.free_blocks, &zone.first_free_blocks[..]),
        (&None, &[759, 572][..])
    );
    assert!(zone.unusable_index.is_empty() && zone.free_pages.is_none());
}

#[test]
fn free_memory_by_type_is_shown_for_each_of_two_moments() {
    let rows = |unmovable: u64, movable: u64| {
        format!(
            "Node    0, zone   Normal, type    Unmovable 0 0 0 0 0 0 0 0 0 0 {unmovable}
Node    0, zone   Normal, type      Movable 0 0 0 0 0 0 0 0 0 0 {movable}
"
        )
    };
    let paste = Paste::new(
        "types",
        &format!("before:\n{}\nafter:\n{}", rows(3852, 240), rows(1, 3841)),
    );
    let found = moments(&paste.0, None, None, &Window::default()).unwrap();
    let pages: Vec<(u64, u64)> = found
        .snapshots
        .iter()
        .map(|m| {
            let types = m.zones[0].free_by_type.as_ref().unwrap();
            (types["Unmovable"].pages, types["Movable"].pages)
        })
        .collect();
    assert_eq!(pages, [(3852 << 10, 240 << 10), (1 << 10, 3841 << 10)]);
    let shown = unfrag_lab::inspect::text::render(&found, &Screen::default()).to_string();
    assert!(
        shown.contains("-15404.0") && shown.contains("+14404.0"),
        "{shown}"
    );
    // Without its heading, nothing tells the size of a pageblock.
    assert!(!shown.contains("order 0)"), "{shown}");
}

#[test]
fn nodes_alone_are_one_host_with_what_each_of_them_has() {
    let (d, _) = diagnosed(
        "nodes",
        "Node 0 MemTotal: 1030924 kB\nNode 0 MemFree: 354088 kB\nNode 1 MemTotal: 1031416 kB\nNode 1 MemFree: 557252 kB\n",
    );
    let notes = d.notes.join("\n");
    assert!(
        notes.contains("node 0: 345.8 MiB free of 1006.8 MiB") && notes.contains("node 1: "),
        "{notes}"
    );
}

#[test]
fn a_file_that_was_not_read_is_named_where_nothing_else_is_there() {
    let mut tar = tar_header("proc/buddyinfo");
    tar.extend([0; 1024]);
    let path = std::env::temp_dir().join(format!("unfrag-paste-{}.tar", std::process::id()));
    std::fs::write(&path, tar).unwrap();
    let why = evidence(&path, &Examine::default())
        .err()
        .map(|e| format!("{e:?} {e}"))
        .unwrap_or_default();
    let inspected = moments(&path, None, None, &Window::default())
        .err()
        .map(|e| format!("{e:?}"))
        .unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    assert!(why.contains("buddyinfo") && why.contains("empty"), "{why}");
    assert!(inspected.contains("empty"), "{inspected}");
}

/// The head of an empty file in an archive.
fn tar_header(name: &str) -> Vec<u8> {
    let mut head = vec![0u8; 512];
    head[..name.len()].copy_from_slice(name.as_bytes());
    head[100..107].copy_from_slice(b"0000644");
    head[124..135].copy_from_slice(b"00000000000");
    head[136..147].copy_from_slice(b"00000000000");
    head[156] = b'0';
    head[257..263].copy_from_slice(b"ustar\0");
    head[263..265].copy_from_slice(b"00");
    head[148..156].copy_from_slice(b"        ");
    let sum: u32 = head.iter().map(|&b| u32::from(b)).sum();
    head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    head
}
