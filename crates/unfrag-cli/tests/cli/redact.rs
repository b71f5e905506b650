//! `unfrag redact`: the answers of the file that it makes are those of the file that it reads, but for names.

use crate::support::{SAMPLE, fails, json, root, stdout};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use unfrag_linux::file;
use unfrag_linux::recording::Recording;

/// The new names of programs, by their old ones.
fn renamed(old: &Recording, new: &Recording) -> HashMap<String, String> {
    let tasks = old.tasks.iter().zip(&new.tasks);
    tasks
        .map(|(a, b)| (a.comm.clone(), b.comm.clone()))
        .collect()
}

/// An answer with new names, without the names of files, and with lists in an order that no name decides.
fn plain(value: Value, names: &HashMap<String, String>) -> Value {
    const OF_FILE: [&str; 6] = [
        "file",
        "file_bytes",
        "sha256",
        "source",
        "command",
        "recorder",
    ];
    match value {
        Value::String(text) => {
            let fork = text.strip_suffix(" (fork)");
            let new = names.get(fork.unwrap_or(&text));
            let new = new.map(|n| n.clone() + if fork.is_some() { " (fork)" } else { "" });
            Value::String(new.unwrap_or(text))
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(|i| plain(i, names)).collect();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Value::Object(fields) => {
            let kept = fields
                .into_iter()
                .filter(|(k, _)| !OF_FILE.contains(&k.as_str()));
            let named = kept.map(|(k, v)| (names.get(&k).cloned().unwrap_or(k), plain(v, names)));
            Value::Object(named.collect())
        }
        other => other,
    }
}

/// The shares of a blame by who holds them, in the place of numbers in a list whose order names decide.
fn by_name(mut blame: Value) -> Value {
    let holders = blame["holders"].as_array().cloned().unwrap_or_default();
    for list in ["intervals", "days"] {
        for interval in blame[list].as_array_mut().into_iter().flatten() {
            let shares = interval["by_holder"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            let named = shares.into_iter().map(|(n, share)| {
                let holder = &holders[n.parse::<usize>().unwrap()];
                serde_json::json!([holder["program"], holder["purpose"], share])
            });
            interval["by_holder"] = named.collect();
        }
    }
    // It says in words what the numbers say, with names among them.
    blame["answer"]["sentence"].take();
    blame["answer"]["advice"].take();
    blame
}

#[test]
fn answers_are_the_same_but_for_names() {
    let dir = tempfile::tempdir().unwrap();
    for (sample, questions) in [
        (SAMPLE, &["summary", "blame", "profile", "replay"][..]),
        ("samples/slab-find.unfrag", &["summary", "slab"]),
    ] {
        let to = dir.path().join(Path::new(sample).file_name().unwrap());
        let shared = to.to_str().unwrap();
        let said = stdout(&["redact", sample, shared]);
        assert!(said.contains("names of programs"), "{said}");
        let old = file::read(&root().join(sample)).unwrap();
        let new = file::read(&to).unwrap();
        let names = renamed(&old, &new);
        assert!(
            names["busybox"].starts_with("program-") || sample != SAMPLE,
            "{names:?}"
        );
        for question in questions {
            let ask = |path: &str| match *question {
                "replay" => json(&["replay", path, "--json", "--members", "1"]),
                "blame" => by_name(json(&["blame", path, "--json"])),
                question => json(&[question, path, "--json"]),
            };
            let none = HashMap::new();
            let [a, b] = [plain(ask(sample), &names), plain(ask(shared), &none)];
            assert!(
                a == b,
                "{question} of {sample} differs: {}",
                difference(&a, &b)
            );
        }
        let bytes = fs::read(&to).unwrap();
        assert!(file::from_bytes(&bytes).is_ok());
    }
}

#[test]
fn what_is_said_is_short_and_ends_with_what_may_be_done() {
    let dir = tempfile::tempdir().unwrap();
    let to = |name: &str| dir.path().join(name).display().to_string();
    let sample = "samples/fragmented-384M.unfrag";
    let said = stdout(&["redact", sample, &to("a.unfrag")]);
    assert!(said.lines().count() < 8, "{said}");
    assert!(said.lines().all(|l| l.chars().count() < 150), "{said}");
    assert!(
        said.contains("fields of events: 78 (--all names them)"),
        "{said}"
    );
    assert!(
        said.contains("So it names nobody, and may be shared."),
        "{said}"
    );
    let all = stdout(&["redact", sample, &to("b.unfrag"), "--all"]);
    assert!(all.contains("kfree.call_site") && !said.contains("kfree.call_site"));
    let made = json(&["redact", sample, &to("c.unfrag"), "--json"]);
    let fields = made["removed"]["fields"].as_array().unwrap();
    assert!(fields.iter().any(|f| f == "kfree.call_site"), "{made}");
    // What stays are the recorder's own tasks, and no program of the host.
    let new = file::read(&dir.path().join("a.unfrag")).unwrap();
    let old = file::read(&root().join(sample)).unwrap();
    let roles = unfrag_linux::event::Roles::of(&old);
    let kept = new.tasks.iter().zip(&old.tasks).zip(roles.all());
    for ((new, old), role) in kept.filter(|((n, o), _)| n.comm == o.comm) {
        let own = ["unfrag", "spooler", "starter", "signals"].contains(&&*old.comm);
        assert_eq!(
            own,
            *role == unfrag_linux::event::Role::Recorder,
            "{}",
            new.comm
        );
    }
}

/// Where two answers differ first.
fn difference(a: &Value, b: &Value) -> String {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let mut keys = x.keys().chain(y.keys());
            let key = keys.find(|k| x.get(*k) != y.get(*k));
            let key = key.map_or("", String::as_str);
            format!("{key}: {}", difference(&a[key], &b[key]))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            let pair = x.iter().zip(y).find(|(x, y)| x != y);
            pair.map_or(String::new(), |(x, y)| difference(x, y))
        }
        (a, b) => format!("{a} and {b}"),
    }
}

#[test]
fn an_input_is_not_overwritten_and_what_is_no_recording_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let own = at("own.unfrag");
    fs::copy(root().join("samples/slab-find.unfrag"), &own).unwrap();
    fs::hard_link(&own, at("linked.unfrag")).unwrap();
    std::os::unix::fs::symlink(&own, at("link.unfrag")).unwrap();
    fs::write(at("text"), "no recording").unwrap();
    fs::create_dir(at("empty")).unwrap();
    let before = fs::read(&own).unwrap();
    for (from, to, status, words) in [
        (
            &own,
            own.clone(),
            2,
            &["is the file that is read", "another one"][..],
        ),
        (&own, at("linked.unfrag"), 2, &["is the file that is read"]),
        (&own, at("link.unfrag"), 2, &["is the file that is read"]),
        (
            &at("link.unfrag"),
            own.clone(),
            2,
            &["is the file that is read"],
        ),
        (
            &at("text"),
            at("new.unfrag"),
            1,
            &["no .unfrag file", "unfrag import"],
        ),
        (&at("empty"), at("new.unfrag"), 1, &["no segments"]),
        (&at("not there"), at("new.unfrag"), 1, &["not there"]),
        (&own, at("no/such/place"), 1, &["no/such"]),
    ] {
        fails(&["redact", from, &to], status, words);
    }
    assert_eq!(fs::read(&own).unwrap(), before);
    assert!(!Path::new(&at("new.unfrag")).exists());
    fails(&["redact", &own], 2, &["OUT"]);
}

#[test]
fn a_window_alone_is_written_and_said() {
    let scratch = tempfile::tempdir().unwrap();
    let to = scratch.path().join("some.unfrag");
    let to = to.to_str().unwrap();
    let window = ["--from", "2s", "--to", "4s"];
    let said = stdout(&[&["redact", SAMPLE, to], &window[..]].concat());
    assert!(said.contains("Window: from 2s to 4s"), "{said}");
    let (old, new) = (
        file::read(&root().join(SAMPLE)).unwrap(),
        file::read(Path::new(to)).unwrap(),
    );
    let first = old.events.time[0];
    let inside = |t: &&u64| (2_000_000_000..4_000_000_000).contains(&(*t - first));
    let wanted: Vec<u64> = old.events.time.iter().filter(inside).copied().collect();
    assert!(!wanted.is_empty());
    assert_eq!(new.events.time, wanted);
    assert!(new.snapshots.len() < old.snapshots.len());
    let counted = |path: &str, more: &[&str]| {
        json(&[&["summary", path, "--json"], more].concat())["events"].clone()
    };
    assert_eq!(counted(to, &[]), counted(SAMPLE, &window));
    fails(
        &["redact", SAMPLE, to, "--from", "9h"],
        1,
        &["the recording is from 0s to"],
    );
}
