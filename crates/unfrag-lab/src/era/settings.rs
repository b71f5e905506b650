//! Settings over time: those that a recorded host had, and those that a replay is asked for.
//!
//! A host's settings stand in the files `sysctl-vm` and `settings` of its snapshots, so that one that changes while the
//! trace runs shows at the next snapshot. Where they do not, whoever made the recording may say them: as a fact of the
//! recording, noted at its import, or beside the question.
//!
//! Invariant: of each name the values are in the order of time, and the first holds from the beginning.

use super::{huge_pages, sysctl};
use std::collections::BTreeMap;
use std::fmt;
use unfrag_eras::Sysctl;
use unfrag_linux::recording::{Recording, Snapshot};

/// Files of a snapshot that hold settings, a line `PATH=VALUE` each.
const FILES: [&str; 2] = ["sysctl-vm", "settings"];
/// Settings that marks and lists of CPUs are computed from, and nothing else.
const OF_MARKS: [&str; 3] = [
    "vm.min_free_kbytes",
    "vm.lowmem_reserve_ratio",
    "vm.percpu_pagelist_high_fraction",
];

/// A setting, and from when on it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, such as `vm.compaction_proactiveness`.
    pub name: String,
    /// Its value.
    pub value: String,
    /// From how many nanoseconds after the first event on; `None` where no time was given.
    pub at: Option<u64>,
}

impl Setting {
    /// A setting with a value as it is written: `VALUE` or `VALUE@SECONDS`.
    ///
    /// # Errors
    /// If there is no such setting, or it cannot have the value: a sentence that says what is possible.
    pub fn new(name: &str, value: &str) -> Result<Setting, String> {
        let (value, at) = match value.split_once('@') {
            Some((value, seconds)) => (value, Some(nanoseconds(seconds)?)),
            None => (value, None),
        };
        let (name, value) = match huge_pages::parse(name.trim(), value)? {
            Some(of_huge_pages) => of_huge_pages,
            None => sysctl::parse(&format!("{name}={value}"))?,
        };
        Ok(Setting { name, value, at })
    }

    /// A setting as a user writes it, `NAME=VALUE` or `NAME=VALUE@SECONDS`; `vm.` may be left out.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn parse(text: &str) -> Result<Setting, String> {
        let Some((name, value)) = text.split_once('=') else {
            // Says what it should be.
            return sysctl::parse(text).map(|(name, value)| Setting {
                name,
                value,
                at: None,
            });
        };
        Setting::new(name, value)
    }

    /// Name and value of the fact of a recording that says that its host had this setting.
    pub fn fact(&self) -> (String, String) {
        let at = self.at.map(|ns| format!("@{}", seconds(ns)));
        let name = format!("{}{}", self.name, at.unwrap_or_default());
        (name, self.value.clone())
    }

    /// The setting that a fact says, if it says one.
    fn of_fact(name: &str, value: &str) -> Option<Setting> {
        let (name, at) = match name.split_once('@') {
            Some((name, seconds)) => (name, Some(nanoseconds(seconds).ok()?)),
            None => (name, None),
        };
        let is_setting = sysctl::NAMES.contains(&name)
            || huge_pages::parse(name, value).is_ok_and(|s| s.is_some());
        let (name, value) = (name.to_owned(), value.to_owned());
        is_setting.then_some(Setting { name, value, at })
    }
}

impl fmt::Display for Setting {
    /// As it is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)?;
        match self.at {
            Some(ns) => write!(f, "@{}", seconds(ns)),
            None => Ok(()),
        }
    }
}

/// Nanoseconds of a number of seconds, with at most nine digits after the point.
fn nanoseconds(seconds: &str) -> Result<u64, String> {
    let bad = || {
        format!("`@{seconds}`: a time is a number of seconds after the first event, such as @61.5")
    };
    let (whole, fraction) = seconds
        .trim()
        .split_once('.')
        .unwrap_or((seconds.trim(), ""));
    let is_number = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || whole.is_empty() || fraction.len() > 9 {
        return Err(bad());
    }
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    let fraction: u64 = format!("{fraction:0<9}").parse().map_err(|_| bad())?;
    let all = whole.checked_mul(1_000_000_000);
    all.and_then(|ns| ns.checked_add(fraction)).ok_or_else(bad)
}

fn seconds(ns: u64) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The settings of a recorded host over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedSettings {
    /// By name: from when on, in nanoseconds of the trace's clock, it had which value.
    values: BTreeMap<String, Vec<(u64, String)>>,
}

impl RecordedSettings {
    /// Of a recording whose first event was at `first`, by a clock that the snapshots' is `offset` ahead of; `given`
    /// holds where the recording says something else, or nothing.
    pub fn of(rec: &Recording, first: u64, offset: i64, given: &[Setting]) -> RecordedSettings {
        let mut all = RecordedSettings::default();
        for snapshot in &rec.snapshots {
            all.note(snapshot, offset);
        }
        let facts = rec.meta.facts.iter();
        let facts: Vec<Setting> = facts.filter_map(|(n, v)| Setting::of_fact(n, v)).collect();
        all.give(&facts, first);
        all.give(given, first);
        all
    }

    /// What a snapshot shows.
    fn note(&mut self, snapshot: &Snapshot, offset: i64) {
        for file in snapshot
            .files
            .iter()
            .filter(|f| FILES.contains(&&f.name[..]))
        {
            let read = file
                .time
                .map_or(0, |(a, _)| a.saturating_add_signed(-offset));
            let text = String::from_utf8_lossy(file.content.plain().unwrap_or_default());
            for (name, value) in text.lines().filter_map(line) {
                let values = self.values.entry(name).or_default();
                match values.last() {
                    // What it was before nobody saw.
                    None => values.push((0, value)),
                    Some((_, before)) if *before != value => values.push((read, value)),
                    Some(_) => {}
                }
            }
        }
    }

    /// What somebody says: all that is known of the names that it has, but for values before the first given one.
    fn give(&mut self, given: &[Setting], first: u64) {
        let mut by_name: BTreeMap<&str, Vec<(u64, String)>> = BTreeMap::new();
        for s in given {
            let from = s.at.map_or(0, |at| first.saturating_add(at));
            by_name
                .entry(&s.name)
                .or_default()
                .push((from, s.value.clone()));
        }
        for (name, mut values) in by_name {
            values.sort_by_key(|v| v.0);
            let begin = values[0].0;
            let known = self.values.entry(name.to_owned()).or_default();
            known.retain(|v| v.0 < begin);
            known.append(&mut values);
        }
    }

    /// The values of a setting: from when on, in nanoseconds of the trace's clock, which one. The time of the first is 0
    /// where it holds from the beginning.
    pub fn values(&self, name: &str) -> &[(u64, String)] {
        self.values.get(name).map_or(&[], |v| v)
    }

    /// The value of a setting at a time, if it is known.
    pub fn value(&self, name: &str, time: u64) -> Option<&str> {
        let values = self.values(name);
        let next = values.partition_point(|v| v.0 <= time);
        Some(&values[next.checked_sub(1)?].1)
    }

    /// Settings of the model at a time: those that marks and lists of CPUs are computed from only if `with_marks`, where
    /// the recorded ones are not kept.
    pub fn at(&self, time: u64, with_marks: bool) -> Sysctl {
        let mut sysctl = Sysctl::default();
        for name in sysctl::NAMES {
            if let Some(value) = self.value(name, time)
                && (with_marks || !OF_MARKS.contains(&name))
            {
                // What a kernel accepted is in range.
                let _ = sysctl::set(&mut sysctl, name, value);
            }
        }
        sysctl
    }

    /// When any setting changed, ascending.
    pub fn changes(&self) -> impl Iterator<Item = u64> {
        let all = self.values.values().flatten().map(|v| v.0);
        let mut all: Vec<u64> = all.filter(|t| *t > 0).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }
}

/// A recorded host's own settings at the beginning, as far as it shows them, for a model that keeps its marks and lists.
pub fn recorded(rec: &Recording) -> Sysctl {
    RecordedSettings::of(rec, 0, 0, &[]).at(0, false)
}

/// Name and value of a line `PATH=VALUE` or `NAME = VALUE`. Of a choice, `always [madvise] never`, the chosen word.
fn line(line: &str) -> Option<(String, String)> {
    let (path, value) = line.split_once('=')?;
    let path = path.trim();
    let name = match path.strip_prefix("/sys/kernel/mm/") {
        Some(name) => name.to_owned(),
        None => {
            let name = path.rsplit('/').next()?;
            format!("vm.{}", name.strip_prefix("vm.").unwrap_or(name))
        }
    };
    let chosen = value
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let value = chosen.map_or(value, |(chosen, _)| chosen).trim();
    (!value.is_empty()).then(|| (name, value.to_owned()))
}
