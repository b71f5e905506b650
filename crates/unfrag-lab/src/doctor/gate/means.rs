//! What a caller does before it takes memory, and what it is willing to do.
//!
//! Invariant: the order of [`Means::ALL`] is that of their cost, and none costs more than it has to: what a cheaper one gives
//! is never named with a dearer one.

use serde::Serialize;
use std::str::FromStr;

/// What comes before memory is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Nothing.
    Now,
    /// `sync`, and a run of `vm.compact_memory`.
    Compact,
    /// Clean page cache is dropped, and slab that can be shrunk.
    Drop,
    /// Both, in this order.
    DropCompact,
}

impl Means {
    /// All, the cheapest first.
    pub const ALL: [Means; 4] = [Means::Now, Means::Compact, Means::Drop, Means::DropCompact];

    /// Whether caches are dropped.
    pub fn drops(self) -> bool {
        matches!(self, Means::Drop | Means::DropCompact)
    }

    /// Whether memory is compacted.
    pub fn compacts(self) -> bool {
        matches!(self, Means::Compact | Means::DropCompact)
    }

    /// As `--after` names it, with the word before it.
    pub fn when(self) -> &'static str {
        match self {
            Means::Now => "now",
            Means::Compact => "after compact",
            Means::Drop => "after drop",
            Means::DropCompact => "after drop,compact",
        }
    }

    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            Means::Now => "now",
            Means::Compact => "after compaction",
            Means::Drop => "after dropping caches",
            Means::DropCompact => "after dropping caches and compaction",
        }
    }
}

/// What a caller is willing to do before it takes memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct After {
    /// Drop caches.
    pub drop: bool,
    /// Compact memory.
    pub compact: bool,
}

impl After {
    /// Whether these means are among what it is willing to do.
    pub fn allows(self, means: Means) -> bool {
        (self.drop || !means.drops()) && (self.compact || !means.compacts())
    }

    /// The dearest that it is willing to do.
    pub fn most(self) -> Means {
        match (self.drop, self.compact) {
            (false, false) => Means::Now,
            (false, true) => Means::Compact,
            (true, false) => Means::Drop,
            (true, true) => Means::DropCompact,
        }
    }
}

impl FromStr for After {
    type Err = String;

    fn from_str(text: &str) -> Result<After, String> {
        let mut after = After::default();
        for word in text.split(',') {
            match word.trim() {
                "now" if text.trim() == "now" => {}
                "drop" => after.drop = true,
                "compact" => after.compact = true,
                other => {
                    return Err(format!(
                        "`{other}` is nothing that can come before; give drop, compact, or drop,compact"
                    ));
                }
            }
        }
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_holds_what_is_cheaper() {
        let of = |text: &str| text.parse::<After>();
        let allowed = |after: After| Means::ALL.map(|m| after.allows(m));
        for (text, all) in [
            ("now", [true, false, false, false]),
            ("compact", [true, true, false, false]),
            ("drop", [true, false, true, false]),
            ("drop,compact", [true; 4]),
            ("compact, drop", [true; 4]),
        ] {
            let after = of(text).unwrap();
            assert_eq!(allowed(after), all, "{text}");
            assert_eq!(
                Means::ALL.into_iter().rfind(|&m| after.allows(m)),
                Some(after.most())
            );
        }
        for text in ["", "reclaim", "drop,", "now,drop", "drop;compact"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
