//! Phrases looked for in one pass over a text, however many they are.
//!
//! Invariant: time goes with the length of the text, not with the number of phrases.

use aho_corasick::{AhoCorasick, MatchKind};

/// Finds the first of some phrases. Only for a search of the leftmost one are many bytes looked at together.
pub fn searcher<'a>(phrases: impl Iterator<Item = &'a &'a str>) -> AhoCorasick {
    let built = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(phrases);
    built.expect("the phrases are few")
}
