//! A piece of advice: the exact command, why, the number that it changes, and what it costs.
//!
//! Invariant: a [`Change`] is by the command's own means alone: what another command would have done is not in it.

use crate::era::sysctl;
use crate::report::number::{bytes, thousands};
use serde::Serialize;

/// How long advice holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lasts {
    /// A command that does something once.
    Once,
    /// A setting, which stays.
    Setting,
    /// A command that only looks.
    Look,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The command.
    pub command: String,
    /// How long it holds.
    pub lasts: Lasts,
    /// The sysctl that it sets, such as `vm.min_free_kbytes`; `null` if it sets none.
    pub setting: Option<String>,
    /// Its value now; `null` if not known.
    pub current: Option<String>,
    /// The value advised.
    pub value: Option<String>,
    /// Why.
    pub reason: String,
    /// The number that it changes; `null` where no file tells it, and for a command that only looks.
    pub change: Option<Change>,
    /// What it costs.
    pub cost: String,
    /// What a replay of a recording predicts for it, as a sentence.
    pub prediction: Option<String>,
    /// The prediction as numbers.
    pub predicted: Option<Predicted>,
    /// Huge pages that the command makes, where it changes another number than theirs.
    pub huge_pages: Option<MadeHugePages>,
}

/// Huge pages that a command makes beside the number that it changes, and what makes more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MadeHugePages {
    /// For certain.
    pub at_least: u64,
    /// By itself; `null` where no file tells.
    pub at_most: Option<u64>,
    /// With compaction after it; `null` where no file tells.
    pub at_most_with_compaction: Option<u64>,
    /// What helps if that is not enough, as a clause.
    pub more: String,
}

impl MadeHugePages {
    /// As a sentence, for huge pages of so many bytes.
    pub fn in_words(&self, size: u64) -> String {
        let how_many = self.how_many(size);
        match self.at_most.and(self.at_most_with_compaction) {
            Some(_) => format!("{how_many}; for more: {}", self.more),
            None => how_many,
        }
    }

    /// How many it makes.
    pub fn how_many(&self, size: u64) -> String {
        let (least, size) = (thousands(self.at_least), bytes(size));
        let (Some(most), Some(with)) = (self.at_most, self.at_most_with_compaction) else {
            return format!("of {size}, not known how many: page flags would tell");
        };
        format!(
            "{least} to {} more of {size} by itself, up to {} with compaction after it",
            thousands(most),
            thousands(with)
        )
    }
}

/// Advice that is not given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotGiven {
    /// The advice.
    #[serde(flatten)]
    pub advice: Advice,
    /// Of a candidate: what is needed before it is advice. Of one that was withdrawn: what speaks against it.
    pub why_not: String,
}

/// What becomes of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingVerdict {
    /// Nothing speaks for another value, or something against it.
    Leave,
    /// Something speaks for another value, and more is needed before it is advised.
    NotYet,
    /// Another value is advised.
    Change,
    /// The files do not tell what it would be judged by.
    NotJudged,
}

/// A setting, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JudgedSetting {
    /// Its name, such as `vm.min_free_kbytes` or `transparent_hugepage/defrag`.
    pub setting: String,
    /// Its value; `null` if not known.
    pub current: Option<String>,
    /// What becomes of it.
    pub verdict: SettingVerdict,
    /// The other value that something speaks for; `null` if nothing does.
    pub advised: Option<String>,
    /// Why, as a clause; empty where nothing is to be said.
    pub why: String,
}

/// What the numbers of a change are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things, such as huge pages or requests.
    Number,
}

/// How sure the number is that a change leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sure {
    /// The kernel computes it so.
    Exact,
    /// Forecast.
    About,
    /// The best that can come of it.
    AtBest,
}

/// A number that a command changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What is counted.
    pub what: String,
    /// In what.
    pub unit: Unit,
    /// Now.
    pub from: u64,
    /// Afterwards.
    pub to: u64,
    /// How sure that is.
    pub sure: Sure,
}

impl Change {
    /// As a clause: `free huge pages of 2 MiB: from 10 to about 20`.
    pub fn in_words(&self) -> String {
        let number = |n: u64| match self.unit {
            Unit::Bytes => bytes(n),
            Unit::Number => thousands(n),
        };
        let sure = match self.sure {
            Sure::Exact => "",
            Sure::About => "about ",
            Sure::AtBest => "at best ",
        };
        let (from, to) = (number(self.from), number(self.to));
        format!("{}: from {from} to {sure}{to}", self.what)
    }
}

/// The state at the end of a replay, with the current value and with the value advised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Predicted {
    /// The current value.
    pub from: String,
    /// The value advised.
    pub to: String,
    /// Free 2 MiB blocks at the end: current, advised.
    pub free_huge_blocks: [u64; 2],
    /// Requests that found no page: current, advised.
    pub failures: [u64; 2],
    /// Requests that had to reclaim or compact first (`allocstall`, `compact_stall`): current, advised.
    pub stalls: [u64; 2],
    /// Free pages at the end: current, advised.
    pub free_pages: [u64; 2],
    /// Faults that got a huge page (`thp_fault_alloc`): current, advised.
    pub thp_fault_alloc: [u64; 2],
    /// Pages that compaction moved (`pgmigrate_success`): current, advised.
    pub pgmigrate_success: [u64; 2],
    /// Where it cannot be said whether a real host would have more or fewer free 2 MiB blocks: between how many it would
    /// have in four of five cases.
    pub cannot_say: Option<[f64; 2]>,
}

impl Predicted {
    /// Whether the value advised serves the load better in anything: more free blocks or huge pages at faults, fewer
    /// failures or stalls. More work of the kernel is no gain.
    pub fn gains(&self) -> bool {
        let more = |[from, to]: [u64; 2]| to > from;
        let fewer = |[from, to]: [u64; 2]| to < from;
        (more(self.free_huge_blocks) && self.cannot_say.is_none())
            || more(self.thp_fault_alloc)
            || fewer(self.failures)
            || fewer(self.stalls)
    }
}

impl Advice {
    /// Name and value for a replay.
    ///
    /// # Errors
    /// If the model does not have the setting; says why there is no prediction.
    pub fn for_replay(&self) -> Result<(&str, &str), String> {
        let (Some(name), Some(value)) = (&self.setting, &self.value) else {
            return Err("not a sysctl: a replay does not model it".into());
        };
        if sysctl::NAMES.contains(&name.as_str()) {
            Ok((name, value))
        } else {
            Err(format!("a replay does not model {name}"))
        }
    }
}
