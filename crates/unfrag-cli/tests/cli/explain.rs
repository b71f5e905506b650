//! `unfrag explain`: files, standard input, this host's log, text and JSON.

use crate::support::{fails, given, json, root, run, skipped, stdout, text, unfrag};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

const LOG: &str = "samples/page-allocation-failure.log";
const NOTHING: &str = "No report of a failed allocation, of the OOM killer or of memory is in it.";
const NO_LOG: &str = "no line of it is a kernel's";

fn log() -> Vec<u8> {
    fs::read(root().join(LOG)).expect("the sample ships")
}

#[test]
fn text_and_json_tell_the_same() {
    let answer = json(&["explain", LOG, "--json"]);
    assert_eq!(answer["skipped"], Value::Array(vec![]));
    let report = &answer["reports"][0];
    assert_eq!(report["kind"], "allocation-failure");
    assert_eq!(report["order"], 4);
    assert_eq!(report["bytes"], 65536);
    assert_eq!(report["verdict"], "fragmented");
    assert_eq!(report["count"], 1);
    let zone = &report["zones"][1];
    for (key, value) in [
        ("node", Value::from(0)),
        ("zone", "DMA32".into()),
        ("allowed", true.into()),
        ("free_kib", 24_892.into()),
        ("usable_kib", 24_892.into()),
        ("mark_kib", 5_632.into()),
        ("protection_kib", 0.into()),
        ("largest_usable_order", 3.into()),
        ("largest_order", 3.into()),
    ] {
        assert_eq!(zone[key], value, "{key}");
    }
    // As wide as the text is, not as the screen.
    let shown = stdout(&["explain", LOG]);
    let shown: Vec<&str> = shown.split_whitespace().collect();
    let shown = shown.join(" ");
    let said = |key: &str| report[key].as_str().expect("text").to_owned();
    for needed in [
        said("task"),
        said("kernel"),
        said("verdict"),
        said("answer"),
        said("sure"),
        "24,892".into(),
        "5,632".into(),
    ] {
        assert!(shown.contains(&needed), "{needed}: {shown}");
    }
    for advice in report["advice"].as_array().expect("advice") {
        for key in ["action", "cost"] {
            let needed = advice[key].as_str().expect("text");
            assert!(shown.contains(needed), "{needed}: {shown}");
        }
    }
}

#[test]
fn standard_input_and_packed_files_are_read_as_files_are() {
    let shown = stdout(&["explain", LOG]);
    let out = given(&["explain", "-"], &log());
    assert_eq!(text(&out.stdout), shown);
    let dir = tempfile::tempdir().expect("a directory");
    for packer in ["gzip", "xz", "bzip2", "zstd"] {
        let packed = Command::new(packer)
            .args(["-c"])
            .arg(root().join(LOG))
            .output();
        match packed {
            Ok(packed) if packed.status.success() => {
                let at = dir.path().join(packer);
                fs::write(&at, &packed.stdout).expect("a file");
                assert_eq!(stdout(&["explain", at.to_str().expect("a path")]), shown);
                let cut = given(&["explain", "-"], &packed.stdout[..packed.stdout.len() / 2]);
                assert_eq!(cut.status.code(), Some(1), "{packer}, cut off");
            }
            _ => skipped(&format!("logs packed with {packer}: it is not here")),
        }
    }
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(text(&log()).encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    assert_eq!(text(&given(&["explain", "-"], &utf16).stdout), shown);
}

#[test]
fn a_log_without_reports_says_so() {
    for (log, said) in [
        ("[ 1.5] usb 1-1: new high-speed USB device\n", NOTHING),
        ("", NO_LOG),
        ("usb 1-1: new high-speed USB device\n", NO_LOG),
    ] {
        let out = given(&["explain", "-"], log.as_bytes());
        assert!(out.status.success());
        let shown = text(&out.stdout);
        assert!(shown.contains(said), "{log:?}: {shown}");
        let out = given(&["explain", "-", "--json"], log.as_bytes());
        let answer: Value = serde_json::from_slice(&out.stdout).expect("JSON");
        assert_eq!(answer["reports"], Value::Array(vec![]));
    }
}

#[test]
fn what_was_not_understood_is_named_with_its_line() {
    let log = b"usb 1-1: here\n lowmem_reserve[]: 0 0\n";
    let shown = text(&given(&["explain", "-"], log).stdout);
    assert!(
        shown.contains("line 2: a lowmem_reserve of no zone"),
        "{shown}"
    );
    let out = given(&["explain", "-", "--json"], log);
    let answer: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(answer["skipped"][0]["line"], 2);
    assert_eq!(answer["skipped"][0]["why"], "a lowmem_reserve of no zone");
}

#[test]
fn equal_failures_are_counted() {
    let twice = [log(), log()].concat();
    let out = given(&["explain", "-", "--json"], &twice);
    let answer: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(answer["reports"].as_array().map(Vec::len), Some(1));
    assert_eq!(answer["reports"][0]["count"], 2);
}

#[test]
fn a_missing_file_and_a_missing_argument_are_errors() {
    fails(&["explain", "no-such.log"], 1, &["no-such.log", "help: "]);
    fails(&["explain"], 2, &["FILE", "unfrag explain --journal"]);
    fails(&["explain", "--journal", LOG], 2, &["--journal"]);
}

/// A machine may have no journal, and may forbid its ring buffer.
#[test]
fn the_log_of_this_host_is_read_or_what_is_missing_is_said() {
    let out = run(&["explain", "--journal"]);
    let said = text(&out.stdout) + &text(&out.stderr);
    match out.status.code() {
        Some(0) => assert!(!said.is_empty()),
        code => {
            assert_eq!(code, Some(1), "{said}");
            assert!(said.contains("help: "), "{said}");
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let many = log().repeat(2000);
    let mut child = unfrag()
        .args(["explain", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may have gone already.
    let _ = stdin.write_all(&many);
    drop(stdin);
    let out = child.wait_with_output().expect("it ends");
    let said = text(&out.stderr);
    assert!(!said.contains("panicked"), "{said}");
}
