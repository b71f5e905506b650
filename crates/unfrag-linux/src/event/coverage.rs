//! Which kinds of events a recording holds, so that what was not recorded is never counted as zero.
//!
//! A kind was recorded if the recording has events of it, or if its recorder had enabled it: the formats that a tracer
//! puts into its file are those of the events that it enabled.

use super::kind::Kind;
use crate::recording::Recording;
use std::collections::BTreeSet;

/// The fact of a recording that names the events that were enabled, such as `kmem:mm_page_alloc kmem:mm_page_free`.
pub const EVENTS_RECORDED: &str = "events recorded";

/// The kinds of events that were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeSet<Kind>);

impl Coverage {
    /// Those of a recording, whose events may be elsewhere.
    pub fn of(rec: &Recording) -> Coverage {
        let noted = rec.meta.facts.get(EVENTS_RECORDED).map_or("", |f| f);
        let noted = noted.split_whitespace();
        let names = noted.map(|event| event.rsplit(':').next().unwrap_or(event));
        let seen = rec.events.tables.iter().map(|t| t.name.as_str());
        Coverage(seen.chain(names).filter_map(Kind::of).collect())
    }

    /// Whether events of a kind were recorded.
    pub fn has(&self, kind: Kind) -> bool {
        self.0.contains(&kind)
    }

    /// A count of events of a kind; `None` if they were not recorded.
    pub fn count(&self, kind: Kind, n: u64) -> Option<u64> {
        self.has(kind).then_some(n)
    }
}

impl Kind {
    /// How to have its events recorded.
    pub fn how(self) -> String {
        format!(
            "`unfrag record` has its events; with another tracer, record {0}, as in `trace-cmd record -e {0}`",
            self.event()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::EventTable;

    #[test]
    fn what_was_enabled_or_seen_was_recorded() {
        let mut rec = Recording::default();
        rec.events.tables.push(EventTable {
            name: "mm_page_alloc".into(),
            ..EventTable::default()
        });
        let all = Coverage::of(&rec);
        assert_eq!(
            (all.count(Kind::Alloc, 3), all.count(Kind::Free, 0)),
            (Some(3), None)
        );
        let noted = "kmem:mm_page_free kmem:mm_page_alloc_extfrag kmem:something";
        rec.meta.facts.insert(EVENTS_RECORDED.into(), noted.into());
        let all = Coverage::of(&rec);
        assert_eq!(
            (all.count(Kind::Free, 0), all.has(Kind::Fallback)),
            (Some(0), true)
        );
        assert!(!all.has(Kind::Drain));
        assert!(Kind::Fallback.how().contains("kmem:mm_page_alloc_extfrag"));
    }
}
