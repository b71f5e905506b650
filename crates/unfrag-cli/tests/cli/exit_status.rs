//! A wrong input ends with status 1, a wrong command line with status 2; both say what is wrong and
//! what to do.

use crate::support::{SAMPLE, change_counter, head, root, sample, text, unfrag};
use std::fs;
use unfrag_linux::file;

/// As [`crate::support::fails`], and with nothing printed.
fn fails(args: &[&str], status: i32, words: &[&str]) {
    let out = crate::support::fails(args, status, words);
    assert!(
        out.stdout.is_empty(),
        "{args:?} printed something all the same"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let words = ["no-such-file", "No such file", "check the path"];
    fails(&["replay", "no-such-file"], 1, &words);
    fails(&["inspect", "no-such-file"], 1, &words);
    fails(&["import", "no-such-file", "-o", "x.unfrag"], 1, &words);
}

#[test]
fn a_file_of_no_known_format_is_refused_with_what_it_should_be() {
    let dir = tempfile::tempdir().unwrap();
    let garbage = dir.path().join("garbage");
    fs::write(&garbage, b"\x00\x01garbage\xff".repeat(100)).unwrap();
    let path = garbage.to_str().unwrap();
    let words = [path, "byte 0", "trace.dat"];
    fails(&["replay", path], 1, &words);
    let out = dir.path().join("x.unfrag");
    fails(&["import", path, "-o", out.to_str().unwrap()], 1, &words);
    assert!(!out.exists(), "a file was left behind");
}

#[test]
fn an_unfrag_file_that_is_cut_off_is_refused_wherever_it_is_cut() {
    let whole = fs::read(root().join(SAMPLE)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cut = dir.path().join("cut.unfrag");
    for n in [5, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&cut, &whole[..n]).unwrap();
        let path = cut.to_str().unwrap();
        fails(&["replay", path], 1, &["cut.unfrag: "]);
        fails(&["inspect", path], 1, &["cut.unfrag: "]);
    }
}

#[test]
fn a_kernel_that_is_not_known_is_answered_with_those_that_are() {
    fails(
        &["replay", SAMPLE, "--kernel", "6.1,9.9"],
        2,
        &["9.9", "2.6.14", "v19", "6.18"],
    );
}

/// Each wrong input, its status, and what leads to the right command.
#[test]
fn what_another_command_takes_is_answered_with_that_command() {
    const LOG: &str = "samples/page-allocation-failure.log";
    let explain = format!("unfrag explain {LOG}");
    for command in ["doctor", "inspect", "replay", "blame", "summary"] {
        fails(&[command, LOG], 1, &["kernel log", &explain]);
    }
    let said = crate::support::fails(&[LOG], 2, &["no command. This one takes it", &explain]);
    let said = text(&said.stderr);
    assert!(!said.contains("unfrag doctor"), "{said}");
    fails(&["--huge", "500"], 2, &["unfrag doctor --huge"]);
    fails(
        &["doctor", "500"],
        1,
        &["check the path", "unfrag doctor --huge 500"],
    );
    fails(
        &["replay", SAMPLE, "--kernel", "6.5"],
        2,
        &["nearest to 6.5", "--kernel 6.1\n"],
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    for command in ["replay", "blame", "summary", "profile"] {
        fails(
            &[command, path],
            1,
            &["no recording is in it", "directory of segments"],
        );
    }
    let program = dir.path().join("program");
    fs::write(&program, b"\x7fELF\0slabinfo - version: 2.1\r\n").unwrap();
    let program = program.to_str().unwrap();
    let out = crate::support::fails(&["doctor", program], 1, &["program: neither a directory"]);
    let said = text(&out.stderr);
    assert!(
        !said.contains("program/") && !said.contains("explain"),
        "{said}"
    );
}

#[test]
fn the_only_snapshot_of_a_text_has_no_name() {
    let out = crate::support::given(
        &["inspect", "-"],
        b"Node 0, zone   Normal  1 2 3 4 5 6 7 8 9 10 11\n",
    );
    let shown = text(&out.stdout);
    assert!(shown.contains("\nstandard input\n"), "{shown}");
    assert!(!shown.contains("snapshot ."), "{shown}");
}

#[test]
fn a_setting_that_is_not_known_is_answered_with_those_that_are() {
    let names = ["vm.min_free_kbytes", "vm.watermark_boost_factor"];
    fails(&["replay", SAMPLE, "--set", "vm.nonsense=1"], 2, &names);
    fails(
        &["replay", SAMPLE, "--set", "vm.min_free_kbytes"],
        2,
        &["NAME=VALUE", names[0]],
    );
    fails(
        &["replay", SAMPLE, "--set", "vm.min_free_kbytes=many"],
        2,
        &["many"],
    );
}

#[test]
fn a_size_that_is_none_is_answered_with_what_one_looks_like() {
    for bad in ["much", "1X", "0", "-5"] {
        fails(
            &["replay", SAMPLE, &format!("--memory={bad}")],
            2,
            &["--memory"],
        );
    }
    fails(&["replay", SAMPLE, "--memory", "much"], 2, &["768M"]);
}

#[test]
fn an_ensemble_without_a_middle_is_answered_with_what_is_possible() {
    for bad in ["0", "4", "103", "-1", "many"] {
        fails(
            &["replay", SAMPLE, &format!("--members={bad}")],
            2,
            &["--members", bad],
        );
    }
    let even = ["replay", SAMPLE, "--members", "4"];
    fails(&even, 2, &["odd number from 1 to 101"]);
    let observe = ["replay", SAMPLE, "--mode", "observe", "--members", "3"];
    fails(&observe, 2, &["--members", "predict"]);
}

#[test]
fn options_that_contradict_each_other_are_a_wrong_command_line() {
    let observe = ["replay", SAMPLE, "--mode", "observe", "--kernel", "6.18"];
    fails(&observe, 2, &["--kernel", "predict"]);
    fails(
        &["replay", SAMPLE, "--snapshots", "samples"],
        2,
        &["--snapshots"],
    );
    fails(&["import", SAMPLE, "-o", "x.unfrag"], 2, &["already"]);
    fails(
        &["inspect", SAMPLE, "--snapshot", "nope"],
        2,
        &["nope", "0000-idle"],
    );
    fails(&["replay"], 2, &["FILE"]);
    fails(&["frobnicate"], 2, &["frobnicate"]);
}

#[test]
fn an_exact_start_needs_free_lists_in_the_recording() {
    fails(
        &["replay", SAMPLE, "--start", "exact"],
        1,
        &["free lists", "--start counts"],
    );
}

#[test]
fn a_trace_without_snapshots_is_told_how_to_give_them() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.txt");
    let line = "  cat-1  [000] .....  1.000000: mm_page_free: page=0x1 pfn=0x1 order=0\n";
    fs::write(&trace, line).unwrap();
    let path = trace.to_str().unwrap();
    fails(&["replay", path], 1, &["which kernel", "--release"]);
    fails(
        &["replay", path, "--release", "6.1.0"],
        1,
        &["snapshots", "--snapshots"],
    );
}

#[test]
fn a_report_that_cannot_be_written_is_named() {
    let missing = "no/such/dir/report.html";
    fails(&["replay", SAMPLE, "--html", missing], 1, &[missing]);
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    for args in [
        "inspect samples/gcc-768M.unfrag",
        "inspect samples/gcc-768M.unfrag --json",
    ] {
        let mut child = unfrag()
            .args(args.split(' '))
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{args}: {}", text(&out.stderr));
        assert!(out.stderr.is_empty(), "{args}: {}", text(&out.stderr));
    }
}

#[test]
fn a_recording_of_little_of_its_host_is_refused_with_what_to_record() {
    let mut rec = head(&sample(), 5);
    for file in rec.snapshots.iter_mut().flat_map(|s| &mut s.files) {
        if file.name == "vmstat" {
            change_counter(file, "pgalloc_dma32", |n| n * 20);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("busy.unfrag");
    file::write(&rec, &path).unwrap();
    let path = path.to_str().unwrap();
    let words = [
        path,
        " % of the pages",
        "--system -o",
        "-- COMMAND",
        "--any-share",
    ];
    fails(&["replay", path], 1, &words);
    let all_the_same = ["replay", path, "--any-share", "--members", "1", "--json"];
    let share = &crate::support::json(&all_the_same)["recording"]["share_of_allocations"];
    assert!(share.as_f64().is_some_and(|s| s < 0.1), "{share}");
    let said = crate::support::stdout(&["summary", path]);
    assert!(
        said.contains("of the pages that the host allocated meanwhile"),
        "{said}"
    );
}
