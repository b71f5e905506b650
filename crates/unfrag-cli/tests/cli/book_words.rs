//! A word that somebody on call does not know is explained where it stands first on a page, or is not there.
//!
//! It holds for the pages that SUMMARY lists for those who use the command and who want to understand it; the rules of kernels, the
//! experiments and the pages on embedding are for people who know these words.

use crate::support::book::{code_spans, links, name, prose, read, summary};
use crate::support::root;
use std::path::PathBuf;

/// A word in its forms, and what explains it: one of these must stand in the paragraph in which the word stands first.
const WORDS: [(&[&str], &[&str]); 10] = [
    (&["era", "eras"], &["rules of"]),
    (&["skill"], &["than counting"]),
    (
        &["unusable index", "unusable indexes"],
        &["share of free memory"],
    ),
    (&["spoilt"], &["fewer than half", "breaks up", "break up"]),
    (&["raced"], &["came back"]),
    (&["protected"], &["lowmem_reserve"]),
    (&["open to it"], &["may take"]),
    (&["per-cpu list", "per-cpu lists"], &["cpu keeps"]),
    (&["anchor"], &["first snapshot"]),
    (&["members"], &["replays", "files in the container"]),
];

/// The pages for users.
fn pages() -> Vec<PathBuf> {
    let text = read(&summary());
    let (_, used) = text.split_once("# Use it").expect("a part of that name");
    let (used, rest) = used.split_once("# Embed it").expect("a part after it");
    let (_, understood) = rest.split_once("# Understand it").expect("another");
    let (understood, _) = understood.split_once("# Work on it").expect("the last");
    [used, understood]
        .into_iter()
        .flat_map(links)
        .filter(|page| !page.contains('/'))
        .map(|page| root().join("docs").join(page))
        .collect()
}

/// Whether a word stands in a text by itself.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}

/// The paragraphs of a page in lower case, without headings and code.
fn paragraphs(page: &str) -> Vec<String> {
    page.split("\n\n")
        .filter(|p| !p.trim_start().starts_with('#'))
        .map(|p| {
            let (_, rest) = code_spans(p);
            rest.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .to_lowercase()
        })
        .collect()
}

/// The words of a page that stand unexplained where they stand first.
fn unexplained(page: &str) -> Vec<&'static str> {
    let paragraphs = paragraphs(page);
    let full: Vec<String> = page
        .split("\n\n")
        .filter(|p| !p.trim_start().starts_with('#'))
        .map(|p| {
            p.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .to_lowercase()
        })
        .collect();
    let mut all = vec![];
    for (forms, explained) in WORDS {
        let first = paragraphs
            .iter()
            .position(|p| forms.iter().any(|form| has_word(p, form)));
        let Some(first) = first else { continue };
        if !explained.iter().any(|e| full[first].contains(e)) {
            all.push(forms[0]);
        }
    }
    all
}

#[test]
fn a_word_that_nobody_on_call_knows_is_explained_where_it_stands_first() {
    let pages = pages();
    assert!(pages.len() > 30, "only {} pages are for users", pages.len());
    let mut wrong = vec![];
    for page in pages {
        for word in unexplained(&prose(&page)) {
            wrong.push(format!("{}: {word:?} is not explained", name(&page)));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn words_are_found_with_and_without_what_explains_them() {
    let text = "# Skill\n\nIts skill is 0.7.\n\nSkill: how much better it is than others.";
    assert_eq!(unexplained(text), ["skill"]);
    let text = "Skill says how much\nbetter it is than counting.\n\nThe skill is 0.7.";
    assert_eq!(unexplained(text), Vec::<&str>::new());
    assert_eq!(
        unexplained("the operator of an `era`, opera"),
        Vec::<&str>::new()
    );
    assert_eq!(unexplained("What the kernel's eras are."), ["era"]);
}
