//! What `unfrag summary` says of a trace alone, and what `import` says of lines that it did not understand.

use crate::support::{SAMPLE, fails, json, root, sample, stdout, text, unfrag};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A mailer wrapped its lines.
const WRAPPED: &str = "crates/unfrag-cli/tests/inputs/trace-wrapped.txt";
/// A trace with an event of each kind that is counted.
const PRESSURE: &str = "crates/unfrag-cli/tests/inputs/trace-pressure.txt";

/// A text in a file of its own.
fn written(content: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.txt");
    fs::write(&path, content).unwrap();
    (dir, path)
}

fn input(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// What `import` says of a text.
fn imported(path: &Path) -> String {
    let out = path.with_extension("unfrag");
    let words = [path.to_str().unwrap(), "-o", out.to_str().unwrap()];
    stdout(&[&["import"], &words[..]].concat())
}

/// The summary of what is fed to the standard input.
fn piped(bytes: &[u8], more: &[&str]) -> Value {
    let mut child = unfrag()
        .args([&["summary", "-", "--json"], more].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    serde_json::from_str(&text(&out.stdout)).unwrap()
}

fn pressure() -> Value {
    json(&["summary", PRESSURE, "--release", "6.18.0", "--json"])
}

#[test]
fn a_mailers_wrapping_is_put_together_again() {
    let s = json(&["summary", WRAPPED, "--json"]);
    assert_eq!(s["events"], 7);
    let c = &s["compaction"];
    assert_eq!(
        c["direct"][0],
        json!({"process": "sh", "interrupt": false, "order": 2, "count": 1})
    );
    let scanned = |what: &str| (c[what]["scanned"].clone(), c[what]["taken"].clone());
    assert_eq!(scanned("migrate_scanner"), (json!(45), json!(32)));
    assert_eq!(scanned("free_scanner"), (json!(1024), json!(0)));
    let answer = json!([{"order": 2, "result": "continue", "count": 1}]);
    assert_eq!((&c["suitable"], &c["finished"]), (&answer, &answer));
    assert_eq!(s["lost"]["lines_not_understood"], Value::Null);
    let (_dir, path) = written(&input(WRAPPED));
    let said = imported(&path);
    assert!(said.contains("events     7 in"), "{said}");
    assert!(said.contains("11 lines put together"), "{said}");
}

#[test]
fn a_quoted_mail_with_other_line_ends_reads_as_the_trace_in_it() {
    let plain = json(&["summary", WRAPPED, "--json"]);
    let quoted: String = input(WRAPPED)
        .lines()
        .map(|l| format!("> {l}\r\n"))
        .collect();
    let fenced = format!("```\n{}\n```\n", input(WRAPPED).trim_end());
    for text in [quoted, fenced] {
        let s = piped(text.as_bytes(), &[]);
        for part in ["events", "kinds", "compaction", "lost"] {
            assert_eq!(s[part], plain[part], "{part}");
        }
    }
}

#[test]
fn lines_that_were_not_understood_are_counted_and_shown_by_import() {
    let (_dir, path) = written(&format!("Dear all,\n\n{}the end\n", input(PRESSURE)));
    let said = imported(&path);
    assert!(
        said.contains("2 of 26 lines were not understood, the first:"),
        "{said}"
    );
    assert!(
        said.contains("line 1 is no trace event: `Dear all,`"),
        "{said}"
    );
    assert!(
        said.contains("line 27 is no trace event: `the end`"),
        "{said}"
    );
    let unfrag = path.with_extension("unfrag");
    let kept = json(&["summary", unfrag.to_str().unwrap(), "--json"]);
    let sentence = "2 of 26 lines were not understood";
    assert_eq!(kept["lost"]["lines_not_understood"], sentence);

    let (_dir, path) = written("sh-1 [000] .... 1.5: kfree: ptr=1\nhello\n");
    let said = imported(&path);
    assert!(!said.contains("no event"), "{said}");
    assert!(said.contains("lost       whatever stood in"), "{said}");
}

#[test]
fn a_clean_trace_has_no_word_about_its_lines() {
    let (_dir, path) = written(&input(PRESSURE).replace("CPU:0 [5 EVENTS DROPPED]\n", ""));
    let said = imported(&path);
    assert!(!said.contains("lines"), "{said}");
    assert!(said.contains("lost       no event\n"), "{said}");
}

#[test]
fn a_text_of_which_most_is_no_trace_is_refused_with_the_line() {
    let (_dir, path) = written("# note\nhello\nsh-1 [000] .... 1.5: kfree: ptr=1\nworld\n");
    let path = path.to_str().unwrap();
    let words = ["2 of 3 lines were not understood", "line 2", "help:"];
    fails(&["summary", path], 1, &words);
    let out = format!("{path}.unfrag");
    fails(&["import", path, "-o", &out], 1, &words);
    assert!(!Path::new(&out).exists());
}

#[test]
fn requests_are_counted_by_process_and_order_and_failures_named() {
    let r = &pressure()["requests"];
    assert_eq!((&r["count"], &r["failed"]), (&json!(4), &json!(2)));
    let processes = r["processes"].as_array().unwrap();
    assert_eq!(processes[0]["process"], "eth0");
    assert_eq!(processes[0]["interrupt"], true, "a soft interrupt asked");
    assert_eq!(processes[0]["pages"], 32);
    assert_eq!(processes[1]["process"], "tar");
    assert_eq!(
        processes[1]["orders"],
        json!({"0": 1, "3": 1}),
        "two pids are one name"
    );
    let failure = &r["failures"][0];
    let shown = (&failure["process"], &failure["order"], &failure["count"]);
    assert_eq!(shown, (&json!("eth0"), &json!(4), &json!(2)));
    assert_eq!(failure["flags"], "GFP_ATOMIC|__GFP_COMP");
}

#[test]
fn fallbacks_are_counted_by_orders_types_and_owner() {
    let f = &pressure()["fallbacks"];
    assert_eq!((&f["count"], &f["fragmenting"]), (&json!(2), &json!(1)));
    let kinds = f["kinds"].as_array().unwrap();
    let found = kinds.iter().find(|k| k["order"] == 3).unwrap();
    let expected = json!({
        "process": "tar", "interrupt": false, "order": 3, "fallback_order": 8,
        "wanted": "Reclaimable", "taken_from": "Movable", "change_ownership": false, "count": 1,
    });
    assert_eq!(found, &expected);
}

#[test]
fn types_are_named_by_the_kernel_and_what_was_assumed_is_said() {
    let old = json(&["summary", PRESSURE, "--release", "4.3.0", "--json"]);
    let kinds = old["fallbacks"]["kinds"].as_array().unwrap();
    let found = kinds.iter().find(|k| k["order"] == 3).unwrap();
    assert_eq!(
        (&found["wanted"], &found["taken_from"]),
        (&json!("Movable"), &json!("Reclaimable"))
    );
    assert!(
        old["assumed"][0]
            .as_str()
            .unwrap()
            .contains("change_ownership")
    );
    let unknown = json(&["summary", PRESSURE, "--json"]);
    assert_eq!(unknown["kernel"], Value::Null);
    let said = unknown["assumed"][0].as_str().unwrap();
    assert!(said.contains("does not say its kernel"), "{said}");
    assert_eq!(pressure()["assumed"], json!([]));
}

#[test]
fn compaction_kswapd_and_stalls_have_their_results_and_times() {
    let s = pressure();
    let c = &s["compaction"];
    assert_eq!(
        (&c["runs"]["begun"], &c["runs"]["open"]),
        (&json!(1), &json!(0))
    );
    let run = &c["runs"]["results"][0];
    assert_eq!(
        (&run["result"], &run["seconds"]),
        (&json!("success"), &json!(0.002))
    );
    assert_eq!(
        c["moved"],
        json!({"batches": 1, "migrated": 30, "failed": 2})
    );
    assert_eq!(
        (&c["deferred"], &c["kcompactd"]),
        (&json!({"9": 1}), &json!({"9": 1}))
    );
    let k = &s["kswapd"];
    assert_eq!(k["wakes"], json!([{"node": 0, "order": 3, "count": 1}]));
    assert_eq!(
        (&k["asked"][0]["process"], &k["sleeps"]),
        (&json!("tar"), &json!(1))
    );
    assert_eq!((&k["timed"], &k["seconds"]), (&json!(1), &json!(0.01)));
    let d = &s["direct_reclaim"];
    assert_eq!(
        (&d["stalls"], &d["open"], &d["reclaimed"]),
        (&json!(2), &json!(1), &json!(96))
    );
    let longest = &d["kinds"][0];
    assert_eq!(
        (&longest["order"], &longest["seconds"]),
        (&json!(3), &json!(0.00425))
    );
    let waiting = &d["kinds"][1];
    assert_eq!(
        (&waiting["timed"], &waiting["reclaimed"]),
        (&json!(0), &Value::Null)
    );
    assert_eq!(
        (&s["lost"]["events"], &s["lost"]["gaps"]),
        (&json!(5), &json!(1))
    );
    assert_eq!(s["not_recorded"], json!([]));
}

#[test]
fn what_the_trace_does_not_hold_is_named_and_never_zero() {
    let s = json(&["summary", WRAPPED, "--json"]);
    for part in ["requests", "fallbacks", "kswapd", "direct_reclaim"] {
        assert_eq!(s[part], Value::Null, "{part}");
    }
    let said = stdout(&["summary", WRAPPED]);
    for word in [
        "Not in this trace",
        "kmem:mm_page_alloc",
        "direct_reclaim_begin",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("Failed requests"), "{said}");
}

#[test]
fn the_sample_is_counted_whole_and_alike_from_a_file_and_a_pipe() {
    let s = json(&["summary", SAMPLE, "--json"]);
    let recording = sample();
    assert_eq!(s["events"], recording.events.len());
    let r = &s["requests"];
    let column = |table: &str, name: &str| {
        let mut tables = recording.events.tables.iter();
        let table = tables.find(|t| t.name == table).unwrap();
        table.column(name).unwrap().to_vec()
    };
    let orders = column("mm_page_alloc", "order");
    assert_eq!(r["count"], orders.len());
    let of_9 = orders.iter().filter(|o| **o == 9).count();
    assert_eq!(r["orders"]["9"], of_9);
    let pages: u64 = orders.iter().map(|o| 1u64 << o).sum();
    let sum = |list: &Value| -> u64 {
        let rows = list.as_array().unwrap().iter();
        rows.map(|p| p["pages"].as_u64().unwrap()).sum()
    };
    assert_eq!((sum(&r["processes"]), sum(&r["kinds"])), (pages, pages));
    let fallbacks = column("mm_page_alloc_extfrag", "pfn").len();
    assert_eq!(s["fallbacks"]["count"], fallbacks);
    let mut fed = piped(&fs::read(root().join(SAMPLE)).unwrap(), &[]);
    assert_eq!(fed["source"], "standard input");
    fed["source"] = SAMPLE.into();
    assert_eq!(fed, s);
}

#[test]
fn lists_end_after_top_rows_and_say_how_many_more_there_are() {
    let said = stdout(&["summary", SAMPLE, "--top", "2"]);
    let (_, list) = said.split_once("Who asks for which orders\n").unwrap();
    let list: Vec<&str> = list.lines().take_while(|l| !l.is_empty()).collect();
    assert_eq!(list.len(), 4, "{list:?}");
    assert!(
        list[3].starts_with("  and ") && list[3].contains(" more; --top "),
        "{list:?}"
    );
}

#[test]
fn a_tasks_name_cannot_control_the_terminal() {
    let line = "s\x1b[2Jh-1 [000] .... 1.5: mm_page_alloc: page=1 pfn=0x1 order=0 migratetype=0 gfp_flags=GFP_KERNEL\n";
    let (_dir, path) = written(&format!("{}{line}", "# \n".repeat(600)));
    let said = stdout(&["summary", path.to_str().unwrap()]);
    assert!(
        !said.contains('\x1b') && said.contains(r"s\u{1b}[2Jh"),
        "{said}"
    );
}

#[test]
fn several_questions_have_the_answers_that_each_has_alone() {
    let alone = |question: &str| json(&[question, SAMPLE, "--json"]);
    let all = json(&["summary", SAMPLE, "--blame", "--profile", "--json"]);
    for question in ["summary", "blame", "profile"] {
        assert!(all[question] == alone(question), "{question} differs");
    }
    let two = json(&["summary", SAMPLE, "--blame", "--json"]);
    assert!(two["blame"] == all["blame"] && two.get("profile").is_none());
    let text = stdout(&["summary", SAMPLE, "--blame", "--profile", "--top", "12"]);
    let begin = stdout(&["summary", SAMPLE, "--top", "12"]);
    let profile = stdout(&["profile", SAMPLE]);
    let blame = stdout(&["blame", SAMPLE]);
    assert!(
        text.starts_with(&begin) && text.ends_with(&profile) && text.contains(&blame),
        "{text}"
    );
}

#[test]
fn a_question_that_cannot_be_answered_is_said_before_anything_is_counted() {
    let no_frees = "crates/unfrag-cli/tests/inputs/trace-pressure.txt";
    for (words, status, said) in [
        (&["summary", "-", "--profile"][..], 2, "name the file"),
        (
            &["summary", no_frees, "--release", "6.18.0", "--blame"],
            1,
            "trace-pressure.txt",
        ),
        (
            &[
                "summary",
                no_frees,
                "--release",
                "6.18.0",
                "--profile",
                "--json",
            ],
            1,
            "trace-pressure.txt",
        ),
    ] {
        fails(words, status, &[said]);
    }
}
