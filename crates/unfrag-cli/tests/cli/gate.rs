//! `unfrag doctor --need` and `unfrag explain --check` as scripts and other programs see them.

use crate::support::{json, run, stdout, text};
use std::fs;
use std::path::Path;
use std::process::Stdio;

const LOG: &str = "samples/page-allocation-failure.log";

/// A host of one zone of 8 GiB: 2,000 free blocks of 4 MiB above its marks, the rest memory of processes.
fn host() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write(
        "buddyinfo",
        "Node 0, zone   Normal      0      0      0      0      0      0      0      0      0      0    200 \n",
    );
    write(
        "zoneinfo",
        "Node 0, zone   Normal\n  pages free     204800\n        min      1000\n        low      1250\n        high     1500\n        spanned  2097152\n        present  2097152\n        managed  2097152\n        protection: (0, 0, 0)\n      nr_free_pages 204800\n      nr_zone_inactive_file 1000\n      nr_zone_active_file 1000\n      nr_free_cma  0\n  pagesets\n    cpu: 0\n              count:    0\n              high:     10\n              batch:    1\n  vm stats threshold: 4\n  node_unreclaimable:  0\n  start_pfn:           0\n",
    );
    let types = [
        "Unmovable",
        "Movable",
        "Reclaimable",
        "HighAtomic",
        "Isolate",
    ];
    let mut typed = "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n".to_owned();
    for t in types {
        let n = if t == "Movable" { 200 } else { 0 };
        typed += &format!(
            "Node    0, zone   Normal, type {t:>12}      0      0      0      0      0      0      0      0      0      0 {n:>6} \n"
        );
    }
    typed += "\nNumber of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate \nNode 0, zone   Normal           96         4000            0            0            0 \n";
    write("pagetypeinfo", &typed);
    write("version", "Linux version 6.18.0 (x) #1\n");
    dir
}

fn doctor(dir: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["doctor", dir.to_str().unwrap()];
    all.extend(words);
    let out = run(&all);
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn each_program_gets_its_line_and_its_status() {
    let host = host();
    // 204,800 pages in blocks of 1,024, and 1,000 stay.
    let rows: [(&str, &str, &str, i32); 14] = [
        ("--need 199x4M", "--check", "yes: 199x4M now (199)\n", 0),
        (
            "--need 200x4M",
            "--check",
            "no: 200x4M now (199 at most)\n",
            1,
        ),
        ("--need 398x2M", "--check", "yes: 398x2M now (398)\n", 0),
        ("--huge 398", "--check", "yes: 398x2M now (398)\n", 0),
        (
            "--need 500x2M",
            "--check",
            "no: 500x2M now (398 at most)\n",
            1,
        ),
        (
            "--need 400x2M --after compact",
            "--check",
            "no: 400x2M after compact (398 at most)\n",
            1,
        ),
        (
            "--need 400x2M --after drop",
            "--check",
            "not known: 400x2M after drop (398 to 401)\n",
            3,
        ),
        (
            "--need 25x32M",
            "--check",
            "not known: 25x32M now (0 to 25)\n",
            3,
        ),
        (
            "--need 100x4M --need 10x2M@node0",
            "--check",
            "yes: 100x4M (199), 10x2M@node0 (198) now\n",
            0,
        ),
        (
            "--need 10x4M --need 20x4M",
            "--format npd",
            "yes: 30x4M now (199)\n",
            0,
        ),
        (
            "--need 500x2M",
            "--format npd",
            "no: 500x2M now (398 at most)\n",
            1,
        ),
        (
            "--need 25x32M",
            "--format npd",
            "not known: 25x32M now (0 to 25)\n",
            2,
        ),
        (
            "--need 199x4M",
            "--format nagios",
            "MEMORY OK - yes: 199x4M now (199) | '4M'=199;;199:;0;\n",
            0,
        ),
        (
            "--need 500x2M",
            "--format nagios",
            "MEMORY CRITICAL - no: 500x2M now (398 at most) | '2M'=398;;500:;0;\n",
            2,
        ),
    ];
    for (needs, how, line, status) in rows {
        let words: Vec<&str> = needs.split(' ').chain(how.split(' ')).collect();
        let (code, out, err) = doctor(host.path(), &words);
        assert_eq!(
            (code, &out[..]),
            (Some(status), line),
            "{needs} {how}: {err}"
        );
        assert!(out.trim_end().chars().count() <= 80 || how.contains("nagios"));
    }
}

#[test]
fn labels_are_names_and_values_that_nodes_may_have() {
    let host = host();
    let words = "--need 100x4M --need 10x2M@node0 --need 5x1G --format nfd";
    let words: Vec<&str> = words.split(' ').collect();
    let (code, out, _) = doctor(host.path(), &words);
    assert_eq!(code, Some(0), "a label is an answer, whatever it says");
    for line in [
        "unfrag.memory.100x4M=yes",
        "unfrag.memory.10x2M-node0=yes",
        "unfrag.memory.5x1G=no",
        "unfrag.memory.all=no",
        "unfrag.memory.after=nothing",
    ] {
        assert!(out.lines().any(|l| l == line), "{line}: {out}");
    }
    let is_label = |s: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        (1..=63).contains(&s.len()) && s.chars().all(fits)
    };
    let pairs = out.lines().map(|l| l.split_once('=').unwrap());
    for (name, value) in pairs {
        assert!(is_label(name) && is_label(value), "{name}={value}");
    }
    let checked: Vec<&str> = words.iter().copied().chain(["--check"]).collect();
    assert_eq!(doctor(host.path(), &checked).0, Some(1));
}

#[test]
fn people_and_json_get_the_numbers_of_each_means() {
    let host = host();
    let words = ["--need", "25x32M", "--after", "drop,compact"];
    let (code, out, _) = doctor(host.path(), &words);
    assert_eq!(code, Some(0), "without --check");
    for part in [
        "not known: ",
        "after drop,compact *",
        "aligned runs",
        "/proc/kpageflags",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let dir = host.path().to_str().unwrap();
    let j = json(&["doctor", dir, "--need", "199x4M", "--format", "json"]);
    let n = &j["needs"];
    assert_eq!(n["verdict"], "yes");
    assert_eq!(n["means"], "now");
    assert_eq!(n["each"][0]["bytes"], 4 << 20);
    assert_eq!(n["each"][0]["kind"], "blocks");
    assert_eq!(n["each"][0]["rooms"][0]["at_least"], 199);
    assert!(j["diagnosis"]["zones"].is_array());
    let same = json(&["doctor", dir, "--need", "199x4M", "--json"]);
    assert_eq!(j, same, "--json is --format json");
}

#[test]
fn what_cannot_be_read_is_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("none");
    for (how, status, said) in [
        (&["--check"][..], 2, ""),
        (
            &["--format", "nagios"],
            3,
            "MEMORY UNKNOWN - cannot be read\n",
        ),
        (
            &["--format", "npd"],
            2,
            "not known: memory cannot be read\n",
        ),
    ] {
        for at in [dir.path(), &missing] {
            let words: Vec<&str> = ["--need", "1x2M"].iter().chain(how).copied().collect();
            let (code, out, err) = doctor(at, &words);
            assert_eq!((code, &out[..]), (Some(status), said), "{how:?}");
            assert!(err.contains("help:"), "{err}");
        }
    }
    // Without these it is as with every command.
    assert_eq!(doctor(&missing, &["--need", "1x2M"]).0, Some(1));
}

/// A reader that went away must not turn a no into a yes.
#[test]
fn the_status_is_the_answers_if_nobody_reads_it() {
    let host = host();
    let dir = host.path().to_str().unwrap();
    let rows: [(&[&str], i32); 5] = [
        (&["doctor", dir, "--need", "500x2M", "--check"], 1),
        (&["doctor", dir, "--need", "25x32M", "--format", "npd"], 2),
        (
            &["doctor", "no-such", "--need", "25x32M", "--format", "npd"],
            2,
        ),
        (
            &[
                "doctor", "no-such", "--need", "25x32M", "--format", "nagios",
            ],
            3,
        ),
        (&["explain", "--check", LOG], 1),
    ];
    for (words, status) in rows {
        let mut child = crate::support::unfrag()
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(status), "{words:?}");
    }
}

#[test]
fn wrong_needs_are_answered_with_what_is_right() {
    let host = host();
    for (words, part) in [
        ("--need 200", "200x32M"),
        ("--need 200x3M", "power of two"),
        ("--need 0x2M", "200x32M"),
        ("--need 1x2M@node7 --check", "node 7"),
        ("--need 1x4K --page-size 64K --check", "64 KiB"),
        ("--need 1x2M --after sync", "drop,compact"),
        ("--check", "--need"),
        ("--after drop", "--need"),
        ("--format nfd", "--need"),
        ("--need 1x2M --format xml", "nagios"),
        ("--need 1x2M --map", "--map"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let (code, out, err) = doctor(host.path(), &words);
        assert_eq!((code, &out[..]), (Some(2), ""), "{words:?}: {err}");
        assert!(err.contains(part), "{words:?}: {err}");
    }
}

/// Each pair of what asks for a status and what asks for an output: one of them is never given up silently.
#[test]
fn a_status_goes_with_each_output_or_is_refused_with_it() {
    let host = host();
    let scratch = tempfile::tempdir().unwrap();
    let map = scratch.path().join("map.html");
    let map = map.to_str().unwrap();
    for (needs, status, verdict) in [
        ("199x4M", 0, "yes"),
        ("200x4M", 1, "no"),
        ("25x32M", 3, "unknown"),
    ] {
        for how in [
            &["--json"][..],
            &["--format", "json"],
            &["--format=json"],
            &["--json", "--html", map],
        ] {
            let words = [&["--need", needs, "--check"], how].concat();
            let (code, out, err) = doctor(host.path(), &words);
            assert_eq!(code, Some(status), "{words:?}: {err}");
            assert_eq!(out.lines().count(), 1, "{words:?}: {out}");
            let json: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!(json["needs"]["verdict"], verdict, "{words:?}");
            assert_eq!(json["diagnosis"]["zones"][0]["node"], 0, "{words:?}");
        }
        let (code, out, err) = doctor(host.path(), &["--need", needs, "--check", "--html", map]);
        assert_eq!(code, Some(status), "{err}");
        assert_eq!(out.lines().count(), 1, "{out}");
        assert!(fs::read_to_string(map).unwrap().contains("<html"));
    }
    for words in [
        "--need 1x2M --check --map",
        "--huge 1 --check --map",
        "--huge 1 --map",
        "--map --format json",
        "--huge 1 --map --format nfd",
        "--need 1x2M --check --json --format json",
        "--need 1x2M --check --html -",
        "--need 1x2M --check --json --html -",
        "--need 1x2M --format nfd --html -",
        "--check --json",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let (code, out, err) = doctor(host.path(), &words);
        assert_eq!((code, &out[..]), (Some(2), ""), "{words:?}: {err}");
    }
    let out = run(&["explain", "--check", "--json", LOG]);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stdout);
    assert_eq!(said.lines().count(), 1, "{said}");
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(json["reports"].is_array(), "{said}");
}

/// By a page size that is not the host's, sixteen times as much would be free.
#[test]
fn nothing_is_promised_by_another_page_size_than_the_hosts() {
    let host = host();
    let meminfo = "MemTotal:        8388608 kB\nMemFree:          819200 kB\n";
    fs::write(host.path().join("meminfo"), meminfo).unwrap();
    for asks in [&["--need", "1x4M", "--check"][..], &["--huge", "1"]] {
        let own = [asks, &["--page-size", "4K"]].concat();
        assert_eq!(doctor(host.path(), &own).0, Some(0), "{own:?}");
        let other = [asks, &["--page-size", "64K"]].concat();
        let (status, _, why) = doctor(host.path(), &other);
        assert_eq!(status, Some(2), "{other:?}: {why}");
        assert!(why.contains("pages are of 4 KiB there"), "{why}");
    }
}

#[test]
fn wrong_options_are_no_answer_and_those_who_read_a_line_get_one() {
    let host = host();
    for (format, unknown, status) in [
        ("nagios", "MEMORY UNKNOWN - wrong options\n", 3),
        ("npd", "not known: wrong options\n", 2),
    ] {
        for words in [
            "--need 1x3M --format FORMAT",
            "--format=FORMAT --need 0x2M",
            "--need 1x2M --format FORMAT --nonsense",
            "--need 1x2M --format FORMAT --json",
            "--format FORMAT",
            "--need 1x2M --format FORMAT --html -",
        ] {
            let words = words.replace("FORMAT", format);
            let words: Vec<&str> = words.split(' ').collect();
            let (code, out, err) = doctor(host.path(), &words);
            assert_eq!(
                (code, &out[..]),
                (Some(status), unknown),
                "{words:?}: {err}"
            );
            assert!(!err.is_empty(), "{words:?}");
        }
    }
    assert_eq!(
        doctor(host.path(), &["--format", "nagios", "--help"]).0,
        Some(0)
    );
}

#[test]
fn explain_says_whether_anything_failed() {
    let out = run(&["explain", "--check", LOG]);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stdout);
    let begin = "1 failed: allocation-failure order 4 (fragmented)";
    assert!(
        said.starts_with(begin) && said.lines().count() == 1,
        "{said}"
    );
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    for (content, status, line) in [
        (
            "[ 1.500000] usb 1-1: new high-speed USB device\n",
            0,
            "no failure\n",
        ),
        // Another text is no healthy log.
        (
            "bash-12 [000] d..1. 12.5: mm_page_alloc: page=0x1 pfn=0x1 order=0\n",
            3,
            "not known: no line of it is a kernel's, so it is no kernel log\n",
        ),
        (
            "",
            3,
            "not known: no line of it is a kernel's, so it is no kernel log\n",
        ),
        (
            " lowmem_reserve[]: 0 0\n",
            3,
            "not known: line 1 was not understood (a lowmem_reserve of no zone)\n",
        ),
    ] {
        fs::write(&log, content).unwrap();
        let out = run(&["explain", "--check", log.to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(status), "{content}");
        assert_eq!(text(&out.stdout), line);
    }
    let out = run(&["explain", "--check", "no-such.log"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("no-such.log"));
    // Without --check the status is that of the command.
    assert!(!stdout(&["explain", LOG]).is_empty());
}

/// Half of the host's memory is in its zone, and the kernel adds the other half when it is asked for it.
fn late() -> tempfile::TempDir {
    let dir = host();
    let zoneinfo = fs::read_to_string(dir.path().join("zoneinfo")).unwrap();
    let zoneinfo = zoneinfo.replace("managed  2097152", "managed  1048576");
    fs::write(dir.path().join("zoneinfo"), zoneinfo).unwrap();
    let meminfo = "MemTotal:        8388608 kB\nMemFree:         5013504 kB\nHugePages_Total:       7\nHugepagesize:       2048 kB\nDirectMap4k:        8388608 kB\n";
    fs::write(dir.path().join("meminfo"), meminfo).unwrap();
    dir
}

#[test]
fn what_the_kernel_adds_when_asked_is_told_apart_with_the_way_to_know() {
    let host = late();
    let (_, out, _) = doctor(host.path(), &["--need", "100x32M"]);
    let line = out.lines().next().unwrap();
    assert_eq!(
        line,
        "not known: 100x32M (0 to 153) now; the most only if the 4 GiB that the kernel adds when asked come in whole pieces"
    );
    for part in [
        // The number of the sentence is in the table.
        "  now                  0 to 153",
        "as root, then ask again:",
        // 398 in free blocks above the marks, 2,048 added, 7 in the pool by now.
        "was=$(cat $pool); echo 2453 > $pool; echo $was > $pool",
        "for a moment nothing is left for others",
        "for certain only at boot, on the kernel's command line: hugepagesz=1G hugepages=4",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains("--after)"), "nothing is marked: {out}");
}

/// How large the host is, all commands say alike.
#[test]
fn one_host_has_one_size() {
    let host = late();
    let dir = host.path().to_str().unwrap();
    let size = "4 GiB in zones + 4 GiB that the kernel adds when asked";
    let head = |words: &[&str]| stdout(words).lines().take(3).collect::<Vec<_>>().join(" ");
    for words in [&["doctor", dir][..], &["inspect", dir], &["paste", dir]] {
        let said = head(words);
        assert!(said.contains(size), "{words:?}: {said}");
    }
    let top = "800 MiB free of 4 GiB (19 %) in zones + 4 GiB that the kernel adds when asked";
    let said = head(&["top", dir, "--count", "1"]);
    assert!(said.contains(top), "{said}");
    let metrics = stdout(&["exporter", "--print", "--proc", dir]);
    for name in ["unfrag_unmanaged_bytes", "unfrag_unmanaged_free_bytes"] {
        let line = format!("{name}{{}} {}.0", 4u64 << 30);
        assert!(metrics.contains(&line), "{line}");
    }
    let memory = json(&["doctor", dir, "--json"])["diagnosis"]["memory"].take();
    assert_eq!(
        memory,
        json(&["inspect", dir, "--json"])["snapshots"][0]["memory"]
    );
    assert_eq!(memory["unmanaged_free_bytes"], 4u64 << 30);
}
