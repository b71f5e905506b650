//! The answer as data: the shape of `--json`.

use serde::Serialize;

/// What a log says.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// The failures, equal ones once, the most frequent first among those of a kind's first appearance.
    pub reports: Vec<Failure>,
    /// Lines that look like part of a report and were not understood.
    pub skipped: Vec<Skipped>,
    /// What the log cannot say.
    pub notes: Vec<String>,
    /// Whether the text holds a kernel's log at all; of a text that does not nothing is known.
    pub is_log: bool,
}

/// A line that was not understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its number, from 1.
    pub line: u64,
    /// Why.
    pub why: String,
}

/// A failure, with all that are equal to it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Failure {
    /// `allocation-failure`, `oom`, `slab`, `vmalloc`, `cma`, `stall` or `show-memory`.
    pub kind: &'static str,
    /// Line of the first.
    pub line: u64,
    /// The task that asked; of the first.
    pub task: Option<String>,
    /// Order of the request; -1 where the OOM killer was run by hand.
    pub order: Option<i32>,
    /// Bytes of the request; `null` where the page size is not in the text.
    pub bytes: Option<u64>,
    /// Names of its flags.
    pub gfp: Vec<String>,
    /// Whether it could wait for memory; `null` without flags.
    pub may_wait: Option<bool>,
    /// Whether no page was asked for: a page fault's handler called the OOM killer.
    pub is_fault: bool,
    /// How it was allowed to act, in words.
    pub how: String,
    /// The kernel's release, as far as the text says.
    pub kernel: Option<String>,
    /// Whose rules were used, and why these.
    pub rules: String,
    /// Bytes of a page; `null` where the text does not tell.
    pub page_bytes: Option<u64>,
    /// Failures that are equal to this one, itself included.
    pub count: u64,
    /// Reports that the kernel kept back beside them.
    pub suppressed: u64,
    /// Time of the first, as the log writes it.
    pub first: Option<String>,
    /// Time of the last.
    pub last: Option<String>,
    /// The verdict, a word; `null` where there was no failure to judge.
    pub verdict: Option<&'static str>,
    /// What happened, in one sentence for everybody.
    pub answer: String,
    /// The verdict and what to do, in one sentence.
    pub summary: String,
    /// The verdict as a sentence.
    pub meaning: String,
    /// How sure it is, and what could change it.
    pub sure: String,
    /// The zones of the first, in order.
    pub zones: Vec<ZoneAnswer>,
    /// What holds memory, the largest first; empty where the text does not tell.
    pub held: Vec<Held>,
    /// Functions of the call trace, the innermost first.
    pub calls: Vec<String>,
    /// The control group whose limit was reached.
    pub cgroup: Option<String>,
    /// The slab cache that got no pages.
    pub cache: Option<String>,
    /// The task that was killed.
    pub killed: Option<String>,
    /// Milliseconds that a stall lasted.
    pub stall_ms: Option<u64>,
    /// What would have helped, the most effective first.
    pub advice: Vec<Advice>,
    /// What else the text shows.
    pub notes: Vec<String>,
}

/// A zone at the moment of a failure; amounts in KiB. What the text does not say is `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ZoneAnswer {
    /// NUMA node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// Whether the request may use the zone; `null` without flags.
    pub allowed: Option<bool>,
    /// Free memory.
    pub free_kib: Option<u64>,
    /// Free memory that counts for the request.
    pub usable_kib: Option<u64>,
    /// The min mark, as that kernel lowers it for the request.
    pub mark_kib: Option<u64>,
    /// What of the printed marks is a boost.
    pub boost_kib: Option<u64>,
    /// What the zone keeps from requests that could use a higher one.
    pub protection_kib: Option<u64>,
    /// Order of the largest free block that the request may use; `null` if there is none.
    pub largest_usable_order: Option<u8>,
    /// Order of the largest free block.
    pub largest_order: Option<u8>,
    /// Whether the line of its free blocks is there to its end; without it the two orders are not known.
    pub blocks_whole: bool,
    /// Why it did not serve the request; `null` where its numbers do not tell, and without a request.
    pub why: Option<String>,
}

/// Something that holds memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// `counter`, `task`, `cache` (a slab cache) or `code` (a place in the kernel's code).
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// How much.
    pub bytes: u64,
    /// How many tasks have the name, or how many allocations it is; `null` for counters and caches.
    pub count: Option<u64>,
    /// Thousandths of the memory of all zones; `null` where that is not in the text.
    pub per_mille: Option<u64>,
}

/// When to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// At once: what is done once.
    Now,
    /// What stays, such as a setting, or needs a change of something else.
    Later,
    /// What may help.
    Perhaps,
}

impl When {
    /// When to do what stays and helps so surely.
    pub fn of_lasting(sure: &str) -> When {
        match sure {
            "possible" => When::Perhaps,
            _ => When::Later,
        }
    }
}

/// Something that would have helped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// What to do, as a sentence.
    pub action: String,
    /// The command, where there is one.
    pub command: Option<String>,
    /// The sysctl that it sets.
    pub setting: Option<&'static str>,
    /// The value, computed from the report.
    pub value: Option<u64>,
    /// When to do it.
    pub when: When,
    /// What to look at for longer before a setting is made, as a log shows one moment: a command.
    pub look_first: Option<&'static str>,
    /// What it costs.
    pub cost: String,
    /// `certain`, `likely` or `possible`.
    pub sure: &'static str,
}
