//! What `unfrag replay` prints and writes.

use crate::support::{SAMPLE, head, json, lay_out, root, run, sample, stdout, text, unfrag};
use serde_json::Value;
use std::fs;
use unfrag_linux::file;

/// Half a minute of the sample, as a file.
fn short() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("short.unfrag");
    file::write(&head(&sample(), 30), &path).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (dir, path) = short();
    let mut runs = vec![];
    for name in ["a", "b"] {
        let to = |ext| dir.path().join(format!("{name}.{ext}"));
        let (html, svg) = (to("html"), to("svg"));
        let words = ["replay", &path, "--kernel", "6.1,6.18,v19", "--json"];
        let files = [
            "--html",
            html.to_str().unwrap(),
            "--svg",
            svg.to_str().unwrap(),
        ];
        let printed = stdout(&[&words[..], &files].concat());
        runs.push((printed, fs::read(&html).unwrap(), fs::read(&svg).unwrap()));
    }
    assert!(runs[0].0 == runs[1].0, "--json differs");
    assert!(runs[0].1 == runs[1].1, "--html differs");
    assert!(runs[0].2 == runs[1].2, "--svg differs");
}

#[test]
fn where_nothing_was_reclaimed_one_replay_says_all() {
    let (_dir, path) = short();
    let report = json(&["replay", &path, "--members", "3", "--json"]);
    let kernel = &report["kernels"][0];
    assert!(kernel["ensemble"].is_null());
    assert!(kernel["samples"][0]["zones"][0]["spread"].is_null());
    let notes = kernel["notes"].to_string();
    assert!(notes.contains("one replay says all"), "{notes}");
}

#[test]
fn json_has_the_shape_that_is_promised() {
    let report = json(&["replay", SAMPLE, "--kernel", "6.1,6.18", "--json"]);
    let kernels = report["kernels"].as_array().unwrap();
    let names: Vec<_> = kernels
        .iter()
        .map(|k| k["kernel"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["6.1", "6.18"]);
    assert!(kernels[1]["accuracy"].is_null(), "6.18 was not recorded");
    let accuracy = &kernels[0]["accuracy"];
    let measures = [
        &accuracy["order_distribution_error"],
        &accuracy["free_pages_error"],
        &accuracy["pageblock_type_error"],
        &accuracy["unusable_index_error"]["3"],
        &accuracy["unusable_index_error"]["9"],
    ];
    for measure in measures {
        let at = |name: &str| {
            measure[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {measure}"))
        };
        assert!(at("median") <= at("p90") && at("p90") <= at("max"));
        assert!(measure["skill"].is_number());
    }
    for kernel in kernels {
        assert!(kernel["settings"]["vm.watermark_scale_factor"].is_u64());
        // The recording does not say it, so the kernel computes it from its memory.
        assert!(kernel["settings"]["vm.min_free_kbytes"].is_null());
        let samples = kernel["samples"].as_array().unwrap();
        assert!(samples.len() > 100);
        for zone in samples.iter().flat_map(|s| s["zones"].as_array().unwrap()) {
            assert_eq!(zone["free_blocks"].as_array().unwrap().len(), 11);
            assert!(zone["unusable_index"]["9"].is_f64());
        }
        assert_eq!(kernel["totals"]["allocations"].as_u64().unwrap(), 409_387);
    }
}

#[test]
fn without_a_kernel_the_recorded_one_is_replayed() {
    let (_dir, path) = short();
    let report = json(&["replay", &path, "--json"]);
    assert_eq!(report["kernels"][0]["kernel"], "6.1");
    assert_eq!(report["kernels"][0]["recorded_era"], true);
    assert!(report["kernels"][0]["accuracy"].is_object());
}

#[test]
fn a_setting_is_in_force_and_takes_the_accuracy_away() {
    let (_dir, path) = short();
    let report = json(&[
        "replay",
        &path,
        "--set",
        "vm.min_free_kbytes=16384",
        "--json",
    ]);
    let kernel = &report["kernels"][0];
    assert_eq!(kernel["settings"]["vm.min_free_kbytes"], 16384);
    assert!(kernel["accuracy"].is_null(), "nobody recorded that setting");
}

#[test]
fn another_size_of_memory_is_in_force() {
    let (_dir, path) = short();
    let report = json(&["replay", &path, "--memory", "1G", "--json"]);
    let zones = report["kernels"][0]["samples"][0]["zones"]
        .as_array()
        .unwrap();
    let managed: u64 = zones
        .iter()
        .map(|z| z["managed_pages"].as_u64().unwrap())
        .sum();
    let mib = managed / 256;
    assert!((900..=1024).contains(&mib), "{mib} MiB");
}

#[test]
fn a_trace_and_its_snapshots_replay_like_the_file_made_of_them() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(&head(&sample(), 20), dir.path());
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (trace, snapshots, packed) = (at("trace.dat"), at("snapshots"), at("trace.unfrag"));
    let import = ["import", &trace, "--snapshots", &snapshots, "-o", &packed];
    let said = stdout(&import);
    assert!(said.contains("kernel     6.1.0-56-cloud-amd64"), "{said}");
    assert!(
        said.contains("kmem:mm_page_alloc") || said.contains("mm_page_alloc"),
        "{said}"
    );
    let mut raw = json(&["replay", &trace, "--snapshots", &snapshots, "--json"]);
    let mut file = json(&["replay", &packed, "--json"]);
    for report in [&mut raw, &mut file] {
        report["recording"]["file"] = Value::Null;
    }
    assert!(raw == file, "they differ");
}

#[test]
fn observing_reports_what_the_trace_itself_says() {
    let (_dir, path) = short();
    let report = json(&["replay", &path, "--mode", "observe", "--json"]);
    assert_eq!(report["mode"], "observe");
    assert!(report["observe"].is_object());
    let shown = stdout(&["replay", &path, "--mode", "observe"]);
    assert!(shown.contains("pages freed: "), "{shown}");
}

#[test]
fn what_is_not_a_terminal_gets_no_colour_and_the_width_that_it_asks_for() {
    let (_dir, path) = short();
    let out = unfrag()
        .args(["replay", &path])
        .env("COLUMNS", "60")
        .output()
        .unwrap();
    let report = text(&out.stdout);
    assert!(!report.contains('\x1b'));
    let widest = report.lines().map(|l| l.chars().count()).max().unwrap();
    assert!(widest <= 60, "{widest}");
    let plain = unfrag()
        .args(["replay", &path])
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    assert!(plain.stdout.is_ascii());
}

#[test]
fn time_is_told_only_where_it_was_asked_for() {
    let (_dir, path) = short();
    let quiet = run(&["replay", &path]);
    assert!(quiet.stderr.is_empty(), "{}", text(&quiet.stderr));
    let timed = run(&["replay", &path, "--timing"]);
    assert!(text(&timed.stderr).contains("million events a second"));
    assert!(quiet.stdout == timed.stdout);
}

#[test]
fn the_sample_fits_its_promise() {
    let size = fs::metadata(root().join(SAMPLE)).unwrap().len();
    assert!(size <= 4_000_000, "{size} bytes");
    let recording = sample();
    assert_eq!(recording.events.len(), 1_509_360);
    assert_eq!(recording.snapshots.len(), 153);
}

/// Numbers of a sentence with their digits behind the point; names of kernels, sizes of blocks and settings are none.
fn numbers(sentence: &str) -> Vec<(f64, i32)> {
    let mut text = sentence.to_string();
    for name in ["2.6.32", "6.18", "6.1", "2 MiB", "32 KiB", "4 KiB"] {
        text = text.replace(name, "");
    }
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
    let words = words.map(|w| w.trim_matches(['.', ',']).replace(',', ""));
    let words = words.filter(|w| !w.is_empty());
    words
        .map(|w| {
            let digits = w.split_once('.').map_or(0, |(_, d)| d.len() as i32);
            (w.parse().unwrap(), digits)
        })
        .collect()
}

/// All numbers of a part of a report.
fn values(of: &Value, all: &mut Vec<f64>) {
    match of {
        Value::Number(n) => all.extend(n.as_f64().map(f64::abs)),
        Value::Array(items) => items.iter().for_each(|v| values(v, all)),
        Value::Object(items) => items.values().for_each(|v| values(v, all)),
        _ => {}
    }
}

#[test]
fn every_number_of_the_answer_is_one_of_the_json() {
    for kernels in ["6.1", "6.1,6.18", "2.6.32"] {
        let words = ["replay", SAMPLE, "--kernel", kernels];
        let report = json(&[&words[..], &["--json"]].concat());
        let answers = report["answer"]["kernels"].as_array().unwrap();
        let mut known = vec![];
        values(&report["answer"], &mut known);
        // Pages of the answer are MiB in its sentences.
        known.extend(known.clone().iter().map(|pages| pages / 256.0));
        for kernel in report["kernels"].as_array().unwrap() {
            values(&kernel["what_if"]["changes"], &mut known);
        }
        for part in [
            "snapshots",
            "seconds",
            "share_of_allocations",
            "lost_events",
        ] {
            values(&report["recording"][part], &mut known);
        }
        let shown = stdout(&words);
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = flat(&shown);
        for answer in answers {
            let sentences = answer["sentences"].as_array().unwrap();
            let said: Vec<&str> = sentences.iter().map(|s| s.as_str().unwrap()).collect();
            assert!(shown.contains(&said.join(" ")), "{shown}");
            for (n, digits) in said.iter().flat_map(|s| numbers(s)) {
                let near = 0.5001 * 10f64.powi(-digits);
                let is_known = known.iter().any(|k| (k - n).abs() <= near);
                assert!(is_known, "{kernels}: {n} of {said:?}");
            }
        }
        for question in report["trust"]["questions"].as_array().unwrap() {
            let because = question["because"].as_str().unwrap();
            assert!(shown.contains(&flat(because)), "{because}");
            if let Some(error) = question["error"].as_f64() {
                let percent = numbers(because).into_iter();
                let mut percent = percent.filter(|(_, digits)| *digits > 0);
                assert!(
                    percent.any(|(n, _)| (n - error * 100.0).abs() < 0.01),
                    "{because}"
                );
            }
        }
    }
}

#[test]
fn the_answer_is_the_second_line_and_what_to_ask_next_the_last() {
    let (_dir, path) = short();
    let out = unfrag()
        .args(["replay", &path])
        .env("COLUMNS", "200")
        .output()
        .unwrap();
    let shown = text(&out.stdout);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("short.unfrag: kernel 6.1"), "{shown}");
    assert!(lines[1].starts_with("Answer: "), "{shown}");
    assert!(shown.contains("\nTrust: "), "{shown}");
    assert!(
        lines.last().is_some_and(|l| l.starts_with("Next: ")),
        "{shown}"
    );
    let all = stdout(&["replay", &path, "--all"]);
    assert!(all.lines().count() > lines.len() + 30);
    assert!(all.contains("compact_stall") && !shown.contains("compact_stall"));
}
