//! Facts about the host and the recorder: those that an answer is made of stay.

use std::collections::BTreeMap;

use super::events::is_kernels;
use super::names::Names;
use super::removed::Removed;
use super::snapshots::is_release;
use crate::event::coverage::EVENTS_RECORDED;
use crate::event::role::RECORDER_TASKS;
use crate::recording::Meta;
use crate::segments::EPOCH_OFFSET;
use crate::share::{HOST_PAGES, RECORDED_PAGES};

/// Facts that are numbers.
const NUMBERS: [&str; 9] = [
    EPOCH_OFFSET,
    RECORDED_PAGES,
    HOST_PAGES,
    "events overwritten before the first",
    "events without a time",
    "events without a format",
    "lines not understood",
    "lines read",
    "lines joined to the one before",
];

/// Facts that are a word or some.
const WORDS: [&str; 7] = [
    "machine",
    "scope",
    "snapshot_clock",
    "date",
    "recorder",
    "stacks",
    "gfp flags not understood",
];

/// Facts whose names may be told when they are left out; others may bear anybody's name.
const LEFT_OUT: [&str; 7] = [
    "command",
    "boot_id",
    "trace id",
    "buffer",
    "buffers not read",
    "first lines not understood",
    "trace-cmd version",
];

/// Host and recorder, without what names them.
pub(super) fn redact(mut meta: Meta, names: &mut Names, removed: &mut Removed) -> Meta {
    let facts = std::mem::take(&mut meta.facts);
    let mut kept = BTreeMap::new();
    for (name, value) in facts {
        match fact(&name, &value, names) {
            Some(value) => {
                kept.insert(name, value);
            }
            None => {
                let known = LEFT_OUT.contains(&name.as_str())
                    || is_numbers(&name)
                    || WORDS.contains(&name.as_str());
                let name = if known { name } else { "another fact".into() };
                removed.facts.insert(name);
            }
        }
    }
    meta.facts = kept;
    if !is_release(&meta.kernel_release) {
        meta.kernel_release.clear();
    }
    let begins = [
        "unfrag record",
        "unfrag snapshot",
        "trace.dat v",
        "perf.data",
        "text of ",
        "trace text",
    ];
    if !(begins.iter().any(|b| meta.source.starts_with(b)) && is_words(&meta.source)) {
        meta.source = "a recording".into();
    }
    if !is_words(&meta.clock) {
        meta.clock.clear();
    }
    meta
}

/// What is kept of a fact.
fn fact(name: &str, value: &str, names: &mut Names) -> Option<String> {
    match name {
        RECORDER_TASKS => {
            let pids = value.split_whitespace().filter_map(|pid| pid.parse().ok());
            let pids = pids.filter_map(|pid| names.known_pid(pid));
            Some(
                pids.map(|pid| pid.to_string())
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        }
        EVENTS_RECORDED => {
            let kept = value.split_whitespace().filter(|event| {
                let (system, name) = event.split_once(':').unwrap_or(("", event));
                is_kernels(system, name)
            });
            Some(kept.collect::<Vec<_>>().join(" "))
        }
        // The reason is a sentence that may name a file.
        "ended_early" => Some("before its time".into()),
        name if is_numbers(name) => value.parse::<i64>().ok().map(|n| n.to_string()),
        name if WORDS.contains(&name) && is_words(value) => Some(value.to_owned()),
        _ => None,
    }
}

/// Whether a fact of this name is a number. trace-cmd has some for each CPU.
fn is_numbers(name: &str) -> bool {
    let of_cpu = name
        .strip_prefix("cpu ")
        .and_then(|rest| rest.split_once(' '));
    let of_cpu = of_cpu.is_some_and(|(cpu, counter)| {
        cpu.bytes().all(|b| b.is_ascii_digit())
            && matches!(
                counter,
                "entries"
                    | "overrun"
                    | "commit overrun"
                    | "dropped events"
                    | "read events"
                    | "bytes"
            )
    });
    of_cpu || NUMBERS.contains(&name)
}

/// Whether a text is a short one without anything but letters, digits and a few marks.
fn is_words(text: &str) -> bool {
    text.len() <= 64
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b" ._-,+|:".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_facts_that_are_on_a_list_stay_and_only_if_they_are_what_they_should_be() {
        let mut names = Names::default();
        names.pid(70);
        names.pid(90);
        for (name, value, expected) in [
            ("machine", "x86_64", Some("x86_64")),
            ("machine", "alice's/box", None),
            ("date", "2026-11-28", Some("2026-11-28")),
            ("boot_id", "ab-cd", None),
            ("command", "du -s /home/alice", None),
            ("host_pages", "12", Some("12")),
            ("host_pages", "alice", None),
            ("cpu 3 overrun", "12", Some("12")),
            ("cpu 3 alice", "12", None),
            ("recorder_tasks", "90 x 70 alice 5", Some("2 1")),
            (
                "events recorded",
                "kmem:mm_page_free alice:probe",
                Some("kmem:mm_page_free"),
            ),
            ("ended_early", "/home/alice: full", Some("before its time")),
            ("alice", "1", None),
        ] {
            assert_eq!(
                fact(name, value, &mut names).as_deref(),
                expected,
                "{name}={value}"
            );
        }
        let mut meta = Meta {
            kernel_release: "6.1.0-9".into(),
            source: "/home/alice/trace".into(),
            ..Meta::default()
        };
        meta.facts.insert("alice".into(), "1".into());
        meta.facts.insert("command".into(), "x".into());
        let mut removed = Removed::default();
        let meta = redact(meta, &mut names, &mut removed);
        assert_eq!(
            (meta.kernel_release.as_str(), meta.source.as_str()),
            ("6.1.0-9", "a recording")
        );
        let told: Vec<&str> = removed.facts.iter().map(String::as_str).collect();
        assert_eq!(told, ["another fact", "command"]);
    }
}
