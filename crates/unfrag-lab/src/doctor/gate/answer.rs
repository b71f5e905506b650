//! The answer to needs, as data: the shape of `needs` in `--json`.
//!
//! Invariant: what is not known is `null`, never 0.

use super::means::{After, Means};
use super::need::Need;
use serde::Serialize;

/// The answer to several needs, judged together.
#[derive(Clone, Debug, Serialize)]
pub struct Needs {
    /// Whether all can be had by what the caller is willing to do.
    pub verdict: Verdict,
    /// The cheapest means of these that gives all; `null` unless the verdict is `yes`.
    pub means: Option<Means>,
    /// What the caller is willing to do.
    pub after: After,
    /// The verdict on each means, the cheapest first.
    pub by_means: Vec<ByMeans>,
    /// Each need, the largest first: so they are taken.
    pub each: Vec<Asked>,
    /// The answer in one line of at most 80 signs.
    pub line: String,
    /// The answer as a sentence.
    pub answer: String,
    /// What a reader must know of it.
    pub notes: Vec<String>,
    /// Commands that prepare memory by the cheapest means that gives all, and take what a pool takes; where none does for
    /// certain, by the dearest that may, as a try. None where none may.
    pub commands: Vec<String>,
}

/// Whether needs can be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All of them.
    Yes,
    /// Not all.
    No,
    /// The files do not decide.
    Unknown,
}

/// The verdict on a means.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ByMeans {
    /// The means.
    pub means: Means,
    /// Whether the caller is willing to.
    pub is_allowed: bool,
    /// Whether it gives all needs.
    pub verdict: Verdict,
}

/// What a need is a need of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Huge pages, for processes or the pool.
    HugePages,
    /// Blocks for the kernel, or a driver: not in contiguous areas, nor in zone Movable.
    Blocks,
    /// Aligned runs of the largest blocks: a request of the allocator never gets them in one piece.
    Runs,
}

/// A need, and how much of it there is.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// What is needed.
    #[serde(flatten)]
    pub need: Need,
    /// As it was asked for.
    pub name: String,
    /// Order of a piece.
    pub order: u8,
    /// What it is a need of.
    pub kind: Kind,
    /// How many pieces there are after each means, those before it taken; in the order of `by_means`.
    pub rooms: [Room; 4],
}

/// Pieces that can be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Room {
    /// For certain.
    pub at_least: u64,
    /// By the model; `null` where there is none.
    pub expected: Option<u64>,
    /// No more; `null` where no file sets a bound.
    pub at_most: Option<u64>,
}

/// The verdict on all needs together after a means.
pub(super) fn verdict(each: &[Asked], means: Means) -> Verdict {
    let room = |a: &Asked| (a.need.count, a.rooms[means as usize]);
    if each.iter().map(room).all(|(n, r)| r.at_least >= n) {
        return Verdict::Yes;
    }
    let is_too_little = |(n, r): (u64, Room)| r.at_most.is_some_and(|most| most < n);
    match each.iter().map(room).any(is_too_little) {
        true => Verdict::No,
        false => Verdict::Unknown,
    }
}
