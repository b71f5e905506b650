//! What `unfrag doctor`, `inspect` and `exporter` answer for inputs that people have: two nodes, old kernels, other
//! page sizes, damaged files, pasted text.

use crate::support::{json, root, run, stdout, text, unfrag};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ASSUMED: &str = "the rules of 6.18 are assumed; give --release RELEASE";

fn input(name: &str) -> PathBuf {
    root().join("crates/unfrag-linux/tests/inputs").join(name)
}

fn path(p: &Path) -> &str {
    p.to_str().expect("a path of these tests")
}

/// What a command prints about an input.
fn said(words: &[&str], name: &str) -> String {
    let at = input(name);
    stdout(&[words, &[path(&at)]].concat())
}

fn diagnosis(name: &str, more: &[&str]) -> Value {
    let at = input(name);
    json(&[&["doctor", path(&at), "--json"], more].concat())["diagnosis"].take()
}

/// Runs a command with this on its standard input.
fn with_stdin(words: &[&str], content: &[u8]) -> String {
    let mut child = unfrag()
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command was built");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(content).expect("the command reads");
    drop(stdin);
    let out = child.wait_with_output().expect("it ends");
    assert!(out.status.success());
    text(&out.stdout)
}

/// A host of one zone with these files.
fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, content) in files {
        fs::write(dir.path().join(name), content).expect("a file");
    }
    dir
}

const BUDDY: &str = "Node 0, zone   Normal      7      6      5      4      3      2      1      1      1      1      0 \n";

/// 1 GiB of which `free` pages are free, with marks of 1000, 1250 and 1500 pages.
fn zoneinfo(free: u64) -> String {
    format!(
        "Node 0, zone   Normal\n  pages free     {free}\n        min      1000\n        low      1250\n        high     1500\n        spanned  262144\n        present  262144\n        managed  262144\n        protection: (0, 0, 0)\n      nr_free_pages {free}\n  start_pfn:           4096\n"
    )
}

/// Free pages of [`BUDDY`].
const BUDDY_PAGES: u64 = 7 + 12 + 20 + 32 + 48 + 64 + 64 + 128 + 256 + 512;

#[test]
fn pagetypeinfo_of_two_nodes_is_one_table() {
    let shown = said(&["inspect"], "numa-pagetypeinfo");
    assert!(
        shown.contains("pageblocks by type: Movable 8,702, Unmovable 12"),
        "{shown}"
    );
    assert!(
        shown.contains("pageblocks by type: Movable 8,190, Unmovable 3"),
        "{shown}"
    );
    let d = diagnosis("numa-pagetypeinfo", &[]);
    let normal: Vec<&Value> = d["zones"]
        .as_array()
        .expect("zones")
        .iter()
        .filter(|z| z["zone"] == "Normal")
        .collect();
    assert_eq!(normal.len(), 2);
    let at = input("numa-pagetypeinfo");
    let metrics = stdout(&["exporter", "--print", "--proc", path(&at)]);
    assert!(metrics.contains(r#"node="1""#), "{metrics}");
}

#[test]
fn zoneinfo_of_old_kernels_is_read() {
    let d = diagnosis("zoneinfo-4.9", &[]);
    let zone = &d["zones"][0];
    assert_eq!(zone["free_pages"], 648);
    assert_eq!(zone["watermarks"][0], 67);
    assert_eq!(zone["managed_pages"], 3977);
    let shown = said(&["doctor", "--all"], "zoneinfo-4.9");
    assert!(shown.contains("how many at most is not known: this zoneinfo counts no page cache; page flags would tell"), "{shown}");
    let d = diagnosis("zoneinfo-2.6.22", &[]);
    let marks = &d["zones"][0]["watermarks"];
    assert_eq!((&marks[0], &marks[1]), (&17.into(), &21.into()));
}

#[test]
fn contiguous_memory_areas_do_not_serve_requests_that_may_not_wait() {
    let d = diagnosis("cma-counted", &[]);
    for risk in d["atomic"].as_array().expect("atomic") {
        assert_eq!(risk["verdict"], "fails", "{risk}");
        assert_eq!(risk["in_a_row"], 0, "{risk}");
    }
    let shown = said(&["doctor", "--all"], "cma-counted");
    assert!(
        shown.contains("251.7 MiB of what is free is not for them (contiguous memory areas"),
        "{shown}"
    );
    let at = input("cma-counted");
    let metrics = stdout(&["exporter", "--print", "--proc", path(&at)]);
    let of_atomic: Vec<&str> = metrics
        .lines()
        .filter(|l| l.contains("atomic") && !l.starts_with('#') && l.contains(r#"order="3""#))
        .collect();
    assert!(!of_atomic.is_empty(), "{metrics}");
    assert!(
        of_atomic.iter().all(|l| l.ends_with(" 0.0")),
        "{of_atomic:?}"
    );
}

#[test]
fn without_zoneinfo_it_is_not_known_how_many_huge_pages_there_are_at_most() {
    let shown = said(&["doctor", "--huge", "1000"], "no-zoneinfo-at-most");
    assert!(shown.starts_with("not known: "), "{shown}");
    assert!(
        shown.contains("some thousands after dropping caches and compaction"),
        "{shown}"
    );
    let shown = said(&["doctor", "--huge", "5"], "dma-huge-without-zoneinfo");
    assert!(
        shown.starts_with(
            "not known: 7 at most can be had now, 7 of them if zone DMA of node 0 does not keep them"
        ),
        "{shown}"
    );
}

#[test]
fn meminfo_alone_says_nothing_of_huge_pages() {
    let at = input("orders-9-s390-ppc64/meminfo");
    let shown = stdout(&["doctor", "--huge", "5", path(&at)]);
    assert!(
        shown.starts_with("not known: no file tells free blocks"),
        "{shown}"
    );
}

#[test]
fn the_pool_that_is_asked_is_that_of_the_page_size_that_was_counted() {
    let shown = said(&["doctor", "--huge", "100"], "default-hugepage-1G");
    // Without pagetypeinfo it is not known how many can be had at once.
    assert!(shown.starts_with("perhaps: "), "{shown}");
    assert!(
        shown.contains("hugepages-2048kB/nr_hugepages") && !shown.contains("/proc/sys/vm"),
        "{shown}"
    );
    assert!(
        shown.contains("a huge page of 1 GiB is larger than the largest block"),
        "{shown}"
    );
}

#[test]
fn a_sosreport_is_read_as_a_directory_and_as_an_archive() {
    let at = input("sosreport");
    let shown = stdout(&["doctor", "--all", path(&at)]);
    for needed in [
        "kernel 5.4.0-97-generic",
        "79 % of 1,038 compactions that a request waited for were in vain",
        "62 % of 628 faults that wanted a huge page",
    ] {
        assert!(shown.contains(needed), "{needed}: {shown}");
    }
    let (_, unread) = shown.split_once("Not seen").expect(&shown);
    assert!(
        unread.contains("pagetypeinfo: not in the snapshot"),
        "{unread}"
    );
    let dir = tempfile::tempdir().expect("a directory");
    let archive = dir.path().join("sosreport-host.tar.xz");
    let made = Command::new("tar")
        .args([
            "-C",
            path(at.parent().expect("a parent")),
            "-cJf",
            path(&archive),
            "sosreport",
        ])
        .status();
    match made {
        Ok(status) if status.success() => {
            let packed = stdout(&["doctor", "--all", path(&archive)]);
            let body = |s: &str| s.split_once('\n').map(|(_, b)| b.to_owned());
            assert_eq!(body(&packed), body(&shown));
        }
        other => crate::support::skipped(&format!(
            "an archive of a sosreport: tar with xz: {other:?}"
        )),
    }
}

#[test]
fn text_as_terminals_and_windows_save_it_is_read() {
    for name in ["blank-line", "crlf", "no-newline", "watch"] {
        let at = input("watch-crlf-no-newline").join(name).join("buddyinfo");
        let shown = stdout(&["inspect", path(&at)]);
        assert!(shown.contains("Node 0, zone"), "{name}: {shown}");
        let pasted = with_stdin(&["inspect", "-"], &fs::read(&at).expect("an input"));
        let zones = |s: &str| s.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(zones(&pasted), zones(&shown), "{name}");
    }
}

#[test]
fn sizes_follow_from_the_page_size_that_the_input_tells() {
    let shown = said(&["inspect"], "orders-9-s390-ppc64");
    assert!(shown.contains("0   64 KiB"), "{shown}");
    let at = input("order-17/buddyinfo");
    let shown = stdout(&["doctor", "--all", path(&at)]);
    assert!(
        shown.contains("17 orders, and nothing tells the page size: 4 KiB are assumed"),
        "{shown}"
    );
    let shown = stdout(&["inspect", "--page-size", "16384", path(&at)]);
    assert!(shown.contains("0   16 KiB"), "{shown}");
    assert!(shown.contains("16    1 GiB"), "{shown}");
}

#[test]
fn one_bad_file_is_named_and_the_rest_is_answered() {
    let shown = said(&["doctor", "--all"], "one-bad-file");
    let (answered, unread) = shown.split_once("Not seen").expect(&shown);
    assert!(answered.contains("Node 0, zone"), "{shown}");
    assert!(
        unread.contains("pagetypeinfo") && unread.contains("it begins with"),
        "{unread}"
    );
    let at = input("one-bad-file");
    let metrics = stdout(&["exporter", "--print", "--proc", path(&at)]);
    assert!(
        metrics.contains(r#"unfrag_source_readable{file="pagetypeinfo"} 0"#),
        "{metrics}"
    );
    assert!(
        metrics.contains(r#"unfrag_source_readable{file="buddyinfo"} 1"#),
        "{metrics}"
    );
}

#[test]
fn the_release_that_is_assumed_is_named_and_can_be_given() {
    // Most of what is free is in single pages.
    let buddy = "Node 0, zone   Normal 1200 0 0 30 0 0 0 0 0 0 0\n";
    let dir = host(&[("buddyinfo", buddy), ("zoneinfo", &zoneinfo(1440))]);
    let shown = stdout(&["doctor", "--all", path(dir.path())]);
    assert!(shown.contains(ASSUMED), "{shown}");
    let of = |kernel: &str| {
        json(&["doctor", path(dir.path()), "--json", "--release", kernel])["diagnosis"].take()
    };
    assert!(!of("3.10").to_string().contains("are assumed"));
    // The check to 4.3 halves the mark with each order; that of 6.18 asks for one block above it.
    assert_ne!(
        of("3.10")["atomic"][0]["in_a_row"],
        of("6.18")["atomic"][0]["in_a_row"]
    );
}

#[test]
fn free_memory_below_the_min_mark_is_said_to_be_below_it() {
    for (free, below) in [
        (900, "below its min watermark"),
        (1143, "below its low watermark"),
    ] {
        let buddy = format!("Node 0, zone   Normal {free} 0 0 0 0 0 0 0 0 0 0\n");
        let dir = host(&[("buddyinfo", &buddy), ("zoneinfo", &zoneinfo(free))]);
        let shown = stdout(&["doctor", "--all", path(dir.path())]);
        assert!(shown.contains(below), "{free}: {shown}");
    }
}

#[test]
fn files_that_contradict_each_other_are_said_to() {
    let dir = host(&[
        ("buddyinfo", BUDDY),
        ("zoneinfo", &zoneinfo(14 * BUDDY_PAGES)),
    ]);
    let shown = stdout(&["doctor", "--all", path(dir.path())]);
    assert!(shown.contains("the files are not of one moment"), "{shown}");
}

#[test]
fn high_memory_does_not_serve_requests_that_may_not_wait() {
    let buddy = "Node 0, zone   Normal 5 0 0 0 0 0 0 0 0 0 0\nNode 0, zone  HighMem 0 0 0 500 0 0 0 0 0 0 0\n";
    let dir = host(&[("buddyinfo", buddy)]);
    let d = json(&["doctor", path(dir.path()), "--json"])["diagnosis"].take();
    let order_3 = &d["atomic"][0];
    assert_eq!(order_3["order"], 3);
    assert_ne!(order_3["verdict"], "safe", "{order_3}");
}

#[test]
fn two_moments_are_compared() {
    let before = host(&[("buddyinfo", BUDDY)]);
    let after = host(&[("buddyinfo", &BUDDY.replace("7      6", "9      6"))]);
    let shown = stdout(&["inspect", path(before.path()), path(after.path())]);
    assert!(shown.contains("+2"), "{shown}");
    let compared = json(&["inspect", path(before.path()), path(after.path()), "--json"]);
    assert!(compared.to_string().contains("\"change\":2"), "{compared}");
    let shown = stdout(&["inspect", path(before.path()), path(before.path())]);
    assert!(shown.contains("\nno differences\n"), "{shown}");
    assert!(!shown.contains("difference\n"), "{shown}");
}

#[test]
fn a_single_file_by_itself_is_answered() {
    let at = input("numa-pagetypeinfo/pagetypeinfo");
    let shown = stdout(&["inspect", path(&at)]);
    assert!(
        shown.contains("pageblocks by type: Movable 8,702, Unmovable 12"),
        "{shown}"
    );
    let index = "Node 0, zone   Normal -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 0.987 0.994 0.997 0.999 \n";
    let shown = with_stdin(&["inspect", "-"], index.as_bytes());
    assert!(shown.contains("0.987"), "{shown}");
}

#[test]
fn text_that_says_nothing_of_memory_is_an_error_with_the_way_out() {
    let dir = host(&[("uname", "Linux host 5.4.0 x86_64\n")]);
    let at = dir.path().join("uname");
    for command in ["doctor", "inspect"] {
        let out = run(&[command, path(&at)]);
        assert_eq!(out.status.code(), Some(1), "{command}");
        let said = text(&out.stderr);
        assert!(said.contains("uname") && said.contains("help: "), "{said}");
    }
}

/// In some of them the types of the free blocks are of another moment than the free lists.
#[test]
fn hosts_of_every_kernel_and_page_size_are_answered() {
    let mut hosts = 0;
    for host in fs::read_dir(input("kernels")).expect("inputs") {
        let at = host.expect("an input").path();
        let shown = stdout(&["doctor", "--all", path(&at)]);
        assert!(shown.contains("Node 0, zone"), "{shown}");
        let d = json(&["doctor", path(&at), "--json"])["diagnosis"].take();
        for zone in d["zones"].as_array().expect("zones") {
            let name = zone["zone"].as_str().expect("a name");
            assert!(shown.contains(&format!("Node {}, zone {name}:", zone["node"])));
        }
        let metrics = stdout(&["exporter", "--print", "--proc", path(&at)]);
        assert!(
            metrics.contains("unfrag_free_bytes{node=\"0\""),
            "{metrics}"
        );
        assert!(stdout(&["inspect", path(&at)]).contains("Node 0, zone"));
        hosts += 1;
    }
    assert!(hosts > 20, "{hosts}");
}

#[test]
fn what_is_pasted_from_a_terminal_is_read_without_prompts() {
    let at = input("numa-pagetypeinfo");
    let file = |name: &str| fs::read_to_string(at.join(name)).expect("an input");
    let pasted = format!(
        "root@host:~# cat /proc/buddyinfo\r\n{}root@host:~# cat /proc/pagetypeinfo\n{}root@host:~# ",
        file("buddyinfo"),
        file("pagetypeinfo")
    );
    let shown = with_stdin(&["inspect", "-"], pasted.as_bytes());
    for blocks in ["Movable 8,702, Unmovable 12", "Movable 8,190, Unmovable 3"] {
        assert!(shown.contains(blocks), "{blocks}: {shown}");
    }
    let shown = with_stdin(&["doctor", "--all", "-"], pasted.as_bytes());
    assert!(shown.starts_with("standard input"), "{shown}");
    assert!(shown.contains("Node 1, zone Normal"), "{shown}");
}

#[test]
fn unreclaimable_slab_that_fills_low_memory_is_named() {
    let buddy = "Node 0, zone   Normal 900 0 0 0 0 0 0 0 0 0 0\n";
    let meminfo = "MemTotal:        1048576 kB\nMemFree:            3600 kB\nSReclaimable:       1000 kB\nSUnreclaim:       900000 kB\n";
    let files = [
        ("buddyinfo", buddy),
        ("zoneinfo", &zoneinfo(900)),
        ("meminfo", meminfo),
    ];
    let dir = host(&files);
    let shown = stdout(&["doctor", "--all", path(dir.path())]);
    assert!(shown.contains("slab that cannot be reclaimed"), "{shown}");
    assert!(!shown.contains("sysctl -w vm.min_free_kbytes"), "{shown}");
}
