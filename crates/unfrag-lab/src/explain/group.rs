//! Equal failures, counted.
//!
//! Invariant: at most [`MOST`] different ones are kept; what is beyond them is counted in a note.

use super::answer::{Explanation, Failure, Skipped};
use std::collections::HashMap;

/// Different failures that are kept.
const MOST: usize = 2000;
/// Lines not understood that are kept.
const MOST_SKIPPED: usize = 1000;

/// Failures by what makes them equal.
#[derive(Default)]
pub struct Groups {
    places: HashMap<Key, usize>,
    found: Vec<Failure>,
    beyond: u64,
    skipped: Vec<Skipped>,
    more_skipped: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    kind: &'static str,
    task: Option<String>,
    order: Option<i32>,
    gfp: Vec<String>,
    kernel: Option<String>,
    verdict: Option<&'static str>,
    what: Option<String>,
    /// What a message or a failure without a verdict says, but for its numbers.
    said: String,
}

impl Groups {
    /// Adds a failure.
    pub fn add(&mut self, failure: Failure) {
        let key = Key {
            kind: failure.kind,
            task: failure.task.as_deref().map(without_number),
            order: failure.order,
            gfp: failure.gfp.clone(),
            kernel: failure.kernel.clone(),
            verdict: failure.verdict,
            what: what(&failure),
            said: match failure.verdict {
                Some(_) => String::new(),
                None => failure.meaning.replace(|c: char| c.is_ascii_digit(), ""),
            },
        };
        if let Some(&at) = self.places.get(&key) {
            let same = &mut self.found[at];
            same.count += 1;
            same.suppressed = same.suppressed.saturating_add(failure.suppressed);
            same.last = failure.last.or(same.last.take());
            return;
        }
        if self.found.len() >= MOST {
            self.beyond += 1;
            return;
        }
        self.places.insert(key, self.found.len());
        self.found.push(failure);
    }

    /// Adds a line that was not understood.
    pub fn skip(&mut self, line: u64, why: String) {
        if self.skipped.len() < MOST_SKIPPED {
            self.skipped.push(Skipped { line, why });
        } else {
            self.more_skipped += 1;
        }
    }

    /// What was added.
    pub fn finish(self) -> Explanation {
        let mut notes = vec![];
        if self.beyond > 0 {
            notes.push(format!(
                "{} more failures are unlike the {MOST} that are shown",
                self.beyond
            ));
        }
        if self.more_skipped > 0 {
            notes.push(format!(
                "{} more lines were not understood",
                self.more_skipped
            ));
        }
        Explanation {
            reports: self.found,
            skipped: self.skipped,
            notes,
            is_log: false,
        }
    }
}

/// The cache, the control group, or the task that a message alone says was killed.
fn what(f: &Failure) -> Option<String> {
    let killed = f.killed.as_ref().filter(|_| f.verdict.is_none());
    let named = f.cache.as_ref().or(f.cgroup.as_ref()).or(killed);
    named.cloned()
}

/// A kernel thread's name without the number of its CPU.
fn without_number(task: &str) -> String {
    match task.split_once('/') {
        Some((name, _))
            if [
                "kworker",
                "swapper",
                "ksoftirqd",
                "rcuc",
                "cpuhp",
                "migration",
                "irq",
            ]
            .contains(&name) =>
        {
            name.to_owned()
        }
        _ => task.to_owned(),
    }
}
