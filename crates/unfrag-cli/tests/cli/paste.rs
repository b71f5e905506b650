//! A host as text to paste, and what is read back of it after mails, chats and Markdown.

use crate::support::{SAMPLE, fails, given, json, sample, stdout, text, write_snapshot};
use serde_json::Value;
use std::fs;
use std::path::Path;
use unfrag_linux::file;
use unfrag_linux::kpageflags;

/// The diagnosis of a text, without what tells where it came from.
fn diagnosis(input: &str) -> Value {
    let out = given(&["doctor", "-", "--json"], input.as_bytes());
    assert!(out.status.success(), "{}\n{input}", text(&out.stderr));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    without_origin(answer["diagnosis"].clone())
}

fn without_origin(mut d: Value) -> Value {
    let all = d.as_object_mut().unwrap();
    // A paste holds a moment and the one before it, and says so.
    for name in ["source", "unread", "watched"] {
        all.remove(name);
    }
    // The names of caches may be somebody's.
    for cache in all["slabs"].as_array_mut().unwrap() {
        let cache = cache.as_object_mut().unwrap();
        cache.remove("name");
        if let Some(over) = cache["over_seconds"].as_f64() {
            cache.insert("over_seconds".into(), Value::from(over.round()));
        }
    }
    for advice in all["advice"].as_array_mut().unwrap() {
        let advice = advice.as_object_mut().unwrap();
        for name in ["prediction", "predicted"] {
            advice.remove(name);
        }
    }
    for work in all["work"].as_array_mut().unwrap() {
        // Two seconds that were written with three digits.
        if let Some(rate) = work["per_second"].as_f64() {
            work["per_second"] = Value::from((rate * 100.0).round());
        }
        if let Some(rate) = work["per_second_since_boot"].as_f64() {
            work["per_second_since_boot"] = Value::from((rate * 100.0).round());
        }
    }
    if let Some(up) = all["uptime_seconds"].as_f64() {
        all.insert("uptime_seconds".into(), Value::from(up.round()));
    }
    d
}

/// Lines of at most `width` characters, as a mailer breaks them; blank lines stay.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = 0;
        for word in line.split_whitespace() {
            // Whoever breaks lines may break them at hyphens as well.
            for piece in word.split_inclusive('-') {
                if column > 0 && column + 1 + piece.len() > width {
                    out.push('\n');
                    column = 0;
                } else if column > 0 && word.starts_with(piece) {
                    out.push(' ');
                    column += 1;
                }
                out += piece;
                column += piece.len();
            }
        }
        out.push('\n');
    }
    out
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|l| change(l) + "\n").collect()
}

/// What a text goes through on its way.
fn on_its_way(text: &str) -> Vec<(&'static str, String)> {
    let quote = |text: &str| each_line(text, |l| format!("> {l}"));
    let fence = |text: &str| format!("Hello,\n\n```text\n{text}```\n\nRegards\n");
    let filled: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    vec![
        ("as it is", text.to_owned()),
        ("fenced", fence(text)),
        ("quoted twice", quote(&quote(text))),
        ("wrapped at 72", wrapped(text, 72)),
        (
            "fenced, wrapped at 72, quoted twice",
            quote(&quote(&wrapped(&fence(text), 72))),
        ),
        (
            "quoted twice, wrapped at 72",
            wrapped(&quote(&quote(text)), 72),
        ),
        (
            "quoted, wrapped at 60, quoted",
            quote(&wrapped(&quote(text), 60)),
        ),
        (
            "quoted without blanks",
            each_line(text, |l| format!(">>{l}")),
        ),
        ("a list", each_line(text, |l| format!("- {l}"))),
        ("a numbered list", each_line(text, |l| format!("1. {l}"))),
        ("a table", each_line(text, |l| format!("| {l} |"))),
        ("a block of code", each_line(text, |l| format!("    {l}"))),
        ("one line", filled.clone()),
        ("filled at 40", wrapped(&filled, 40)),
        ("a word a line", filled.replace(' ', "\n")),
        ("ends of lines of Windows", text.replace('\n', "\r\n")),
        (
            "marks as HTML writes them",
            each_line(text, |l| format!("&gt; &gt; {l}")),
        ),
        (
            "under a head",
            format!(
                "On Sat, 28 Nov 2026 at 10:30, someone wrote:\n{}",
                quote(text)
            ),
        ),
        ("twice", format!("{text}\nand again\n\n{text}")),
        ("code in lines", each_line(text, |l| format!("`{l}`"))),
    ]
}

#[test]
fn the_diagnosis_survives_mails_chats_and_markdown() {
    let paste = stdout(&["paste", SAMPLE]);
    assert!(paste.len() <= 8 << 10, "{} bytes", paste.len());
    assert!(paste.lines().all(|l| l.len() <= 66), "{paste}");
    let wanted = without_origin(json(&["doctor", SAMPLE, "--json"])["diagnosis"].clone());
    for (way, arrived) in on_its_way(&paste) {
        assert_eq!(diagnosis(&arrived), wanted, "{way}");
    }
}

#[test]
fn any_moment_of_a_recording_and_a_copy_of_procfs_are_told_alike() {
    let scratch = tempfile::tempdir().unwrap();
    let rec = sample();
    for at in [0, 1, rec.snapshots.len() / 2, rec.snapshots.len() - 1] {
        let snapshot = &rec.snapshots[at];
        let dir = scratch.path().join(format!("s{at}"));
        write_snapshot(snapshot, &dir);
        let version = format!("Linux version {} (x@y) #1\n", rec.meta.kernel_release);
        fs::write(dir.join("version"), version).unwrap();
        let dir = dir.to_str().unwrap();
        let wanted = without_origin(json(&["doctor", dir, "--json"])["diagnosis"].clone());
        assert_eq!(
            diagnosis(&stdout(&["paste", dir])),
            wanted,
            "{}",
            snapshot.name
        );
        let name = snapshot.name.as_str();
        let wanted = json(&["doctor", SAMPLE, "--snapshot", name, "--json"])["diagnosis"].clone();
        let paste = stdout(&["paste", SAMPLE, "--snapshot", name]);
        assert_eq!(diagnosis(&paste), without_origin(wanted), "{name}");
    }
}

/// Page flags do not fit into the text; the rest is the same.
#[test]
#[cfg(target_os = "linux")]
fn this_host_is_told_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("now.unfrag");
    let path = path.to_str().unwrap();
    stdout(&["snapshot", "-o", path]);
    let mut rec = file::read(Path::new(path)).unwrap();
    for s in &mut rec.snapshots {
        s.files.retain(|f| f.name != kpageflags::NAME);
    }
    file::write(&rec, Path::new(path)).unwrap();
    let wanted = without_origin(json(&["doctor", path, "--json"])["diagnosis"].clone());
    let paste = stdout(&["paste", path]);
    for (way, arrived) in on_its_way(&paste) {
        assert_eq!(diagnosis(&arrived), wanted, "{way}");
    }
    let live = stdout(&["paste", "--for", "0"]);
    assert!(
        live.len() <= 8 << 10 && live.contains("unfragpaste:1"),
        "{live}"
    );
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let hostname = hostname.trim();
    assert!(hostname.len() < 4 || !live.contains(hostname), "{live}");
}

/// A copy of procfs in which every file names somebody.
fn planted(dir: &Path) {
    let rec = sample();
    write_snapshot(rec.snapshots.last().unwrap(), dir);
    let add = |name: &str, more: &str| {
        let old = fs::read_to_string(dir.join(name)).unwrap_or_default();
        fs::write(dir.join(name), format!("{old}{more}")).unwrap();
    };
    add(
        "version",
        "Linux version 6.1.0-alice-web3 (alice@web3.example.org) (gcc /home/alice/bin) #1\n",
    );
    add("vmstat", "alice_stalls 5\ncompact_alice@web3 7\n");
    add("meminfo", "AliceMem:  5 kB\n/home/alice: 7 kB\n");
    add("buddyinfo", "Node 0, zone    alice      1      2      3\n");
    add(
        "slabinfo",
        "alice_cache 9000000 9000000 4096 8 8 : tunables 0 0 0 : slabdata 1125000 1125000 0\n\
         dentry(12:alice.service) 9000000 9000000 4096 8 8 : tunables 0 0 0 : slabdata 1125000 1125000 0\n\
         kmalloc-alice 9000000 9000000 4096 8 8 : tunables 0 0 0 : slabdata 1125000 1125000 0\n",
    );
    add(
        "sysctl-vm",
        "vm.min_free_kbytes = 67584\nvm.alice = 5\nvm.swappiness = /home/alice\n/alice/vm/extfrag_threshold=500\n",
    );
    add(
        "zoneinfo",
        "Node 0, zone    alice\n  pages free     5\n        min      1\n",
    );
    fs::create_dir_all(dir.join("thp")).unwrap();
    fs::write(dir.join("thp/enabled"), "always [alice] never\n").unwrap();
}

#[test]
fn it_names_nobody() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("alice-web3");
    planted(&dir);
    let paste = stdout(&["paste", dir.to_str().unwrap()]);
    let small = paste.to_lowercase();
    for planted in ["alice", "web3", "example", "home", "/", "@", "0x", "gcc"] {
        assert!(!small.contains(planted), "{planted}: {paste}");
    }
    assert!(
        paste.contains("release:6.1.0 ") && paste.contains("vm.min_free_kbytes:67584"),
        "{paste}"
    );
    diagnosis(&paste);
    let paste = stdout(&["paste", SAMPLE]);
    for task in sample().tasks.iter().filter(|t| t.comm.len() > 4) {
        assert!(!paste.contains(&task.comm), "{}: {paste}", task.comm);
    }
}

#[test]
fn a_damaged_one_is_refused_and_what_is_missing_named() {
    let paste = stdout(&["paste", SAMPLE]);
    let lines: Vec<&str> = paste.lines().collect();
    let begin = lines
        .iter()
        .position(|l| l.contains("unfragpaste:1"))
        .unwrap();
    let refused = |text: &str, what: &str| {
        let out = given(&["doctor", "-"], text.as_bytes());
        let said = crate::support::text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains("damaged on its way"), "{what}: {said}");
        said
    };
    for at in begin + 1..lines.len() {
        let mut rest = lines.clone();
        let lost = rest.remove(at);
        let said = refused(&rest.join("\n"), lost);
        let names = [
            "host",
            "buddyinfo",
            "zoneinfo",
            "meminfo",
            "vmstat",
            "settings",
            "pagetypeinfo",
            "before",
            "slabinfo",
            "last word",
            "first line",
        ];
        assert!(names.iter().any(|n| said.contains(n)), "{lost}: {said}");
        refused(&lines[..at].join("\n"), "cut off");
    }
    // Each digit in turn is another one.
    let whole = lines[begin + 1..].join("\n");
    let digits: Vec<usize> = whole
        .char_indices()
        .filter(|(_, c)| c.is_ascii_digit())
        .map(|(at, _)| at)
        .collect();
    for &at in digits.iter().step_by(97) {
        let digit = whole.as_bytes()[at];
        let other = if digit == b'9' {
            '8'
        } else {
            char::from(digit + 1)
        };
        let changed = format!("{}{other}{}", &whole[..at], &whole[at + 1..]);
        refused(&format!("unfragpaste:1 {changed}"), "a changed digit");
    }
}

#[test]
fn what_cannot_be_pasted_is_said() {
    fails(&["paste", "-"], 2, &["write the input to a file"]);
    fails(&["paste", "/nonexistent"], 1, &["/nonexistent"]);
    fails(
        &["paste", "samples/page-allocation-failure.log"],
        1,
        &["page-allocation-failure.log"],
    );
    fails(
        &["paste", SAMPLE, "--from", "1h"],
        1,
        &["the recording is from 0s to"],
    );
    let out = given(&["explain", "-"], stdout(&["paste", SAMPLE]).as_bytes());
    let said = text(&out.stdout) + &text(&out.stderr);
    assert!(said.contains("unfrag doctor -"), "{said}");
}
