//! A piece of advice: the exact setting, why, what it costs, and what a replay predicts for it.

use crate::era::sysctl;
use serde::Serialize;

/// A change to a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The command.
    pub command: String,
    /// The sysctl that it sets, such as `vm.min_free_kbytes`; `null` if it sets none.
    pub setting: Option<String>,
    /// Its value now; `null` if not known.
    pub current: Option<String>,
    /// The value advised.
    pub value: Option<String>,
    /// Why.
    pub reason: String,
    /// What it costs.
    pub cost: String,
    /// What a replay of a recording predicts for it, as a sentence.
    pub prediction: Option<String>,
    /// The prediction as numbers.
    pub predicted: Option<Predicted>,
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
