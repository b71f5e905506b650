//! `unfrag doctor` on hosts of every age and with every lack of rights, as its user sees it.

use crate::support::{SAMPLE, json, root, run, stdout, text};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

/// A user without rights.
const NOBODY: u32 = 65534;

fn fixtures() -> PathBuf {
    root().join("crates/unfrag-linux/tests/fixtures")
}

/// A directory with these files of procfs.
fn host(files: &[(&Path, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (from, file) in files {
        fs::copy(from.join(file), dir.path().join(file)).unwrap();
    }
    dir
}

/// What a host that lets everybody read it says.
fn doctor(dir: &Path) -> serde_json::Value {
    json(&["doctor", dir.to_str().unwrap(), "--json"])["diagnosis"].take()
}

#[test]
fn procfs_of_every_age_gets_an_answer() {
    for name in ["linux-2.6.32", "procfs"] {
        let dir = fixtures().join(name);
        let d = doctor(&dir);
        assert!(!d["zones"].as_array().unwrap().is_empty(), "{name}");
        assert!(d["zones"][0]["huge_pages"]["now"].is_u64(), "{name}");
        // The zones of the old host keep more for a higher zone than there is: one is missing.
        let is_known = d["atomic"][0]["verdict"] != "unknown";
        assert_eq!(is_known, name == "procfs", "{name}: {}", d["atomic"]);
        assert!(!d["work"].as_array().unwrap().is_empty(), "{name}");
    }
    // 6.18: zoneinfo without a buddyinfo beside it.
    let d = doctor(&fixtures().join("linux-6.18"));
    assert!(
        d["unread"].to_string().contains("buddyinfo"),
        "{}",
        d["unread"]
    );
}

#[test]
fn a_kernel_without_compaction_is_not_told_to_compact() {
    let dir = fixtures().join("linux-2.6.32");
    let said = stdout(&["doctor", "--all", dir.to_str().unwrap()]);
    assert!(
        !said.contains("kcompactd") && !said.contains("requests that had to compact"),
        "{said}"
    );
}

#[test]
fn any_one_file_of_procfs_is_enough() {
    let from = fixtures().join("procfs");
    for file in ["buddyinfo", "zoneinfo", "meminfo", "vmstat"] {
        let dir = host(&[(&from, file)]);
        let said = stdout(&["doctor", "--all", dir.path().to_str().unwrap()]);
        assert!(said.contains("Not seen"), "{file}: {said}");
        assert!(said.contains("kpageflags"), "{file}: {said}");
    }
}

#[test]
fn a_file_that_only_root_may_read_is_named_with_the_reason() {
    let from = fixtures().join("procfs");
    let dir = host(&[(&from, "buddyinfo"), (&from, "pagetypeinfo")]);
    let closed = dir.path().join("pagetypeinfo");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = crate::support::unfrag();
    command.args(["doctor", "--all", dir.path().to_str().unwrap()]);
    if fs::read(&closed).is_ok() {
        // Root reads everything: as nobody, then, who must reach the command and the directory.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
    }
    let out = match command.output() {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            return crate::support::skipped("the command lies where only root may run it");
        }
        out => out.unwrap(),
    };
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(
        said.contains("pagetypeinfo: only root may read it"),
        "{said}"
    );
}

#[test]
fn a_plain_user_gets_an_answer_about_this_host() {
    let mut command = crate::support::unfrag();
    command
        .args(["doctor", "--all", "--for", "0"])
        .current_dir("/");
    if fs::read("/proc/kpageflags").is_ok() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let out = match command.output() {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            return crate::support::skipped("the command lies where only root may run it");
        }
        out => out.unwrap(),
    };
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("kpageflags: only root may read it"), "{said}");
    assert!(said.contains("at most, by any means"), "{said}");
}

#[test]
fn a_damaged_file_is_an_error_that_names_file_and_byte() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("buddyinfo"),
        "Node 0, zone Normal 1 2 three\n",
    )
    .unwrap();
    let out = run(&["doctor", dir.path().to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(
        said.contains("buddyinfo") && said.contains("byte"),
        "{said}"
    );
}

#[test]
fn an_empty_directory_is_an_error_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let out = run(&["doctor", dir.path().to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("help:"));
}

#[test]
fn wrong_numbers_on_the_command_line_are_refused() {
    for words in [
        ["doctor", "--huge", "0"],
        ["doctor", "--for", "-1"],
        ["doctor", "--for", "25h"],
        ["doctor", "--for", "10x"],
        ["doctor", "--huge", "many"],
    ] {
        assert_eq!(run(&words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn huge_says_yes_perhaps_or_no_with_the_number() {
    let dir = fixtures().join("procfs");
    let dir = dir.to_str().unwrap();
    let d = json(&["doctor", dir, "--json"]);
    let (now, most) = (
        d["diagnosis"]["huge_pages"]["now"].as_u64().unwrap(),
        d["diagnosis"]["huge_pages"]["at_most"].as_u64().unwrap(),
    );
    assert!(0 < now && now < most, "{now} {most}");
    let ask = |n: u64| stdout(&["doctor", dir, "--huge", &n.to_string()]);
    assert!(ask(now).starts_with("yes"), "{}", ask(now));
    assert!(ask(now).contains("/proc/sys/vm/nr_hugepages"));
    assert!(ask(now + 1).starts_with("perhaps"), "{}", ask(now + 1));
    assert!(ask(most + 1).starts_with("no"), "{}", ask(most + 1));
    let a = json(&["doctor", dir, "--huge", "1", "--json"]);
    assert_eq!(a["huge"]["means"], "now");
    assert_eq!(a["huge"]["predicted"].as_u64(), Some(now));
}

/// Whether so many huge pages can be had is one question: the answer for people and the status for scripts agree, and what
/// only the model expects is neither promised nor ruled out.
#[test]
fn huge_has_the_verdict_of_the_gate_that_allows_all_means() {
    const FRAGMENTED: &str = "samples/fragmented-384M.unfrag";
    let mut seen = [false; 3];
    for n in ["1", "3", "4", "6", "7", "16", "22", "23", "100"] {
        let said = stdout(&["doctor", FRAGMENTED, "--huge", n]);
        let words = ["doctor", FRAGMENTED, "--huge", n, "--check"];
        let gate = run(&[words.as_slice(), &["--after", "drop,compact"]].concat());
        let (begin, at) = match gate.status.code() {
            Some(0) => ("yes", 0),
            Some(1) => ("no: ", 1),
            _ => ("not known: the model expects ", 2),
        };
        seen[at] = true;
        assert!(said.starts_with(begin), "{n}: {said}{}", text(&gate.stdout));
        // Of what is not known there is a way to find out.
        assert_eq!(
            said.contains("nr_hugepages"),
            begin != "no: ",
            "{n}: {said}"
        );
        let means = json(&["doctor", FRAGMENTED, "--huge", n, "--json"])["huge"]["means"].take();
        assert_eq!(means == "unknown", at == 2, "{n}: {means}");
        assert_eq!(means == "not", at == 1, "{n}: {means}");
    }
    assert_eq!(seen, [true; 3]);
}

/// Only the zones that a verdict is about have it, and shares are of what is free.
#[test]
fn a_zone_that_is_little_fragmented_is_not_called_badly_so() {
    let dir = tempfile::tempdir().unwrap();
    let buddyinfo = "Node 0, zone    DMA32      0      0      0      0      0      0      0      0      0      0    100 \nNode 0, zone   Normal   1536      0      0      0      0      0      0      0      0      1      0 \n";
    fs::write(dir.path().join("buddyinfo"), buddyinfo).unwrap();
    let said = stdout(&["doctor", dir.path().to_str().unwrap()]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = "badly fragmented in zone Normal: 75 % of what is free there is in pieces smaller than 2 MiB (only 0 % in zone DMA32)";
    assert!(said.contains(wanted), "{said}");
}

/// What is not known has commands that try it, and the number that they promise.
#[test]
fn a_need_that_is_not_known_ends_with_a_try() {
    let words = [
        "doctor",
        "samples/fragmented-384M.unfrag",
        "--need",
        "16x2M",
    ];
    let said = stdout(&[words.as_slice(), &["--after", "drop,compact"]].concat());
    assert!(said.starts_with("not known: "), "{said}");
    let (_, after) = said
        .split_once("not promised; to try it, as root, then ask again:")
        .expect("a try");
    assert!(
        after.contains("drop_caches") && after.contains("compact_memory"),
        "{said}"
    );
    let sure = stdout(&["doctor", "samples/gcc-768M.unfrag", "--need", "16x2M"]);
    assert!(!sure.contains("not promised"), "{sure}");
}

/// A rate is over the time that is named: that of all readings, as the first screen's numbers are.
#[test]
fn the_rates_of_a_recording_are_over_the_time_that_heads_them() {
    let path = "samples/fragmented-384M.unfrag";
    let said = stdout(&["doctor", path, "--all"]);
    assert!(
        said.contains("a second in 40.1 s") && !said.contains("a second now"),
        "{said}"
    );
    let d = doctor(Path::new(path));
    let rate = |counter: &str| {
        let work = d["work"].as_array().unwrap().iter();
        let mut one = work.filter(|w| w["counter"] == counter);
        one.next().unwrap()["per_second"].as_f64().unwrap()
    };
    let seconds = d["watched"]["seconds"].as_f64().unwrap();
    for (counter, rose) in [("compact_stall", 864.0), ("thp_fault_fallback", 352.0)] {
        assert!((rate(counter) * seconds - rose).abs() < 0.5, "{counter}");
    }
}

#[test]
fn a_recording_is_examined_at_its_last_snapshot_with_rates() {
    let d = json(&["doctor", SAMPLE, "--json"])["diagnosis"].take();
    assert_eq!(d["kernel_release"], "6.1.0-56-cloud-amd64");
    assert!(d["source"].as_str().unwrap().contains("9001-compacted"));
    let moved = d["work"]
        .as_array()
        .unwrap()
        .iter()
        .find(|w| w["counter"] == "pgmigrate_success")
        .unwrap();
    assert!(moved["per_second"].as_f64().unwrap() > 50.0, "{moved}");
    let earlier = json(&["doctor", SAMPLE, "--snapshot", "0000-idle", "--json"]);
    assert!(
        earlier["diagnosis"]["source"]
            .as_str()
            .unwrap()
            .contains("0000-idle")
    );
    assert_eq!(
        run(&["doctor", SAMPLE, "--snapshot", "none"]).status.code(),
        Some(2)
    );
}

#[test]
fn advice_about_what_the_model_has_comes_with_what_a_replay_predicts() {
    // A host whose boost is off, and the sample as its recording.
    let from = fixtures().join("procfs");
    let dir = host(&[(&from, "buddyinfo"), (&from, "zoneinfo"), (&from, "vmstat")]);
    fs::create_dir_all(dir.path().join("sys/vm")).unwrap();
    fs::write(dir.path().join("sys/vm/watermark_boost_factor"), "0\n").unwrap();
    let d = json(&[
        "doctor",
        dir.path().to_str().unwrap(),
        "--recording",
        SAMPLE,
        "--json",
    ]);
    let lists = ["advice", "candidates", "withdrawn"].map(|l| &d["diagnosis"][l]);
    let boost = lists
        .iter()
        .flat_map(|list| list.as_array().unwrap())
        .find(|a| a["setting"] == "vm.watermark_boost_factor")
        .expect("the boost is off");
    // As the replay itself: it cannot say, so that there is no number.
    let sentence = boost["prediction"].as_str().unwrap();
    let replay = stdout(&["replay", SAMPLE, "--set", "vm.watermark_boost_factor=0"]);
    let words: Vec<&str> = replay.split_whitespace().collect();
    let cannot = "Cannot say whether 6.1 with vm.watermark_boost_factor=0 would be better or worse";
    assert!(sentence.starts_with(cannot), "{boost}");
    assert!(words.join(" ").contains(sentence), "{sentence}: {replay}");
    assert!(boost["predicted"].is_null(), "{boost}");
}

/// Under its own kernel the model of this sample has free huge pages at the end where the host had none.
#[test]
fn where_a_replay_cannot_say_the_doctor_has_no_number_of_it() {
    let sample = "samples/fragmented-384M.unfrag";
    let d = json(&["doctor", sample, "--recording", sample, "--json"]);
    let lists =
        ["advice", "candidates", "withdrawn"].map(|l| d["diagnosis"][l].as_array().unwrap());
    let mut settings = 0;
    for a in lists.into_iter().flatten() {
        assert!(a["predicted"].is_null(), "{a}");
        let sentence = a["prediction"].as_str().unwrap();
        settings += usize::from(sentence.starts_with("This recording cannot say what 6.12 with "));
    }
    assert!(settings > 0, "{d}");
}

#[test]
fn what_happened_since_boot_is_history_and_no_advice() {
    let from = fixtures().join("procfs");
    let dir = host(&[(&from, "buddyinfo"), (&from, "zoneinfo"), (&from, "vmstat")]);
    let path = dir.path().to_str().unwrap();
    let d = doctor(dir.path());
    assert_eq!(d["advice"].as_array().unwrap().len(), 0, "{}", d["advice"]);
    assert_eq!(d["watched"]["readings"], 1);
    assert!(
        d["history"][0]["while_watched"].is_null(),
        "{}",
        d["history"]
    );
    let said = stdout(&["doctor", "--all", path]);
    assert!(
        said.contains("History since boot, no reason to act now"),
        "{said}"
    );
    assert!(said.contains("not yet: "), "{said}");
}

/// Four copies of procfs, a minute apart, between which requests reclaim first ten times a second. Of the copies that
/// `is_other` takes, spans of zones and times of boot are those of another host.
fn dated_copies(is_other: impl Fn(u64) -> bool) -> tempfile::TempDir {
    let from = fixtures().join("procfs");
    let dir = tempfile::tempdir().unwrap();
    let text = |file: &str| fs::read_to_string(from.join(file)).unwrap();
    for minute in 0..4u64 {
        let copy = dir.path().join(format!("2026-01-02T03:0{minute}:00"));
        fs::create_dir(&copy).unwrap();
        let more = |line: &str| match line.strip_prefix("allocstall_normal ") {
            Some(n) => format!(
                "allocstall_normal {}\n",
                n.parse::<u64>().unwrap() + minute * 600
            ),
            None => format!("{line}\n"),
        };
        let vmstat: String = text("vmstat").lines().map(more).collect();
        let zoneinfo = match is_other(minute) {
            true => text("zoneinfo").replace("spanned  ", "spanned  1"),
            false => text("zoneinfo"),
        };
        let files = [
            ("buddyinfo", text("buddyinfo")),
            ("zoneinfo", zoneinfo),
            ("vmstat", vmstat),
        ];
        for (name, text) in files {
            fs::write(copy.join(name), text).unwrap();
        }
    }
    dir
}

#[test]
fn dated_copies_are_a_watch() {
    let dir = dated_copies(|_| false);
    let d = doctor(dir.path());
    assert_eq!(d["watched"]["readings"], 4, "{}", d["watched"]);
    assert_eq!(d["watched"]["seconds"], 180.0);
    let advice = &d["advice"][0];
    assert_eq!(
        advice["setting"], "vm.watermark_scale_factor",
        "{}",
        d["advice"]
    );
    assert_eq!(advice["change"]["unit"], "bytes");
}

#[test]
fn copies_of_another_host_are_no_watch() {
    let dir = dated_copies(|minute| minute < 3);
    let d = doctor(dir.path());
    assert_eq!(d["advice"], serde_json::json!([]));
    assert_eq!(d["watched"]["readings"], 1);
    assert!(d["work"][0]["per_second"].is_null(), "{}", d["work"][0]);
}

#[test]
fn a_recording_without_events_is_no_recording() {
    let out = run(&[
        "doctor",
        fixtures().join("procfs").to_str().unwrap(),
        "--recording",
        "README.md",
    ]);
    assert_eq!(out.status.code(), Some(2));
}

/// A host of one zone with its page flags: free blocks, and one with a page of slab.
fn with_page_flags() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let buddy = "Node 0, zone   Normal      1      1      1      1      1      1      1      1      1      3      0 \n";
    fs::write(dir.path().join("buddyinfo"), buddy).unwrap();
    let zoneinfo = "Node 0, zone   Normal\n  pages free     2047\n        min      1\n        low      2\n        high     3\n        spanned  2048\n        present  2048\n        managed  2048\n        protection: (0, 0, 0)\n      nr_free_pages 2047\n  pagesets\n    cpu: 0\n              count:    0\n              high:     10\n              batch:    1\n  vm stats threshold: 4\n  node_unreclaimable:  0\n  start_pfn:           0\n";
    fs::write(dir.path().join("zoneinfo"), zoneinfo).unwrap();
    let words = (0..2048u64).map(|pfn| if pfn == 700 { 1u64 << 7 } else { 1 << 10 });
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    fs::write(dir.path().join("kpageflags"), bytes).unwrap();
    dir
}

#[test]
fn one_page_of_slab_shows_in_the_map_and_in_the_table() {
    let dir = with_page_flags();
    let path = dir.path().to_str().unwrap();
    let map = stdout(&["doctor", path, "--map"]);
    assert!(map.lines().any(|l| l == ".S.."), "{map}");
    assert!(!map.contains('\x1b'), "no colours without a terminal");
    let d = doctor(dir.path());
    assert_eq!(d["obstacles"][0]["kind"], "slab");
    assert_eq!(d["obstacles"][0]["blocks_alone"], 1);
    assert_eq!(d["huge_pages"]["by_asking_again"], 3);
}

#[test]
fn the_html_map_is_one_file_that_loads_nothing() {
    let dir = with_page_flags();
    let page = dir.path().join("map.html");
    stdout(&[
        "doctor",
        dir.path().to_str().unwrap(),
        "--html",
        page.to_str().unwrap(),
    ]);
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("default-src 'none'") && !html.contains("{{"));
    assert!(
        !html.contains("src=") && !html.contains("href="),
        "it loads something"
    );
    assert!(
        html.contains(r#""blocks":"1911""#),
        "the blocks are in the page"
    );
}

#[test]
fn without_page_flags_the_map_says_what_is_missing() {
    let dir = fixtures().join("procfs");
    assert!(stdout(&["doctor", dir.to_str().unwrap(), "--map"]).contains("kpageflags"));
}

#[test]
fn page_flags_that_were_cut_off_are_not_seen() {
    let dir = with_page_flags();
    fs::write(dir.path().join("kpageflags"), [0u8; 13]).unwrap();
    let shown = stdout(&["doctor", "--all", dir.path().to_str().unwrap()]);
    let (_, unread) = shown.split_once("Not seen").expect(&shown);
    assert!(unread.contains("kpageflags: byte 8: "), "{unread}");
    assert!(unread.contains("the file is cut off"), "{unread}");
}
