//! What reclaims or merges memory beside the page allocator, and explains counters that look odd without it.
//!
//! Invariant: what could not be read is `null`; that a kernel lacks it is not told by a file that is missing from a copy.

use crate::host::files::{self, Files};
use serde::Serialize;

/// Settings outside `vm`, as their files state them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Features {
    /// `/sys/kernel/mm/lru_gen/enabled`: the multi-generational LRU, as a mask.
    pub lru_gen: Option<String>,
    /// `/sys/module/damon_reclaim/parameters/enabled`: reclaim ahead of demand by DAMON.
    pub damon_reclaim: Option<String>,
    /// `/sys/kernel/mm/ksm/run`: merging of equal pages.
    pub ksm: Option<String>,
}

/// Their files below `/sys`.
const PATHS: [&str; 3] = [
    "kernel/mm/lru_gen/enabled",
    "module/damon_reclaim/parameters/enabled",
    "kernel/mm/ksm/run",
];

impl Features {
    /// Each by the path of its file below `/sys`.
    pub fn all(&self) -> [(&'static str, &Option<String>); 3] {
        let [lru_gen, damon_reclaim, ksm] = PATHS;
        [
            (lru_gen, &self.lru_gen),
            (damon_reclaim, &self.damon_reclaim),
            (ksm, &self.ksm),
        ]
    }
}

/// Reads them.
pub(super) fn read(from: &dyn Files) -> Features {
    let [lru_gen, damon_reclaim, ksm] = PATHS.map(|path| {
        let text = files::text(from, &format!("sysfs/{path}"))?;
        (!text.is_empty() && text.len() < 64).then_some(text)
    });
    Features {
        lru_gen,
        damon_reclaim,
        ksm,
    }
}
