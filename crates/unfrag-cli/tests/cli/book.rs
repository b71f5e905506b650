//! The book holds together: every page is listed, and every link, anchor, path and included file exists.

use crate::support::book::{
    anchors, chapters, code_spans, in_project, links, name, pages, prose, read, summary,
};
use crate::support::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Fails with all that is wrong.
fn none(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// A path without `..`, `.` and symbolic links, if it exists.
fn resolved(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

#[test]
fn every_page_is_listed_once_and_every_listed_page_exists() {
    let docs = root().join("docs");
    let mut listed = BTreeSet::new();
    let mut wrong = vec![];
    for target in links(&read(&summary())) {
        match resolved(&docs.join(&target)) {
            None => wrong.push(format!(
                "docs/SUMMARY.md lists {target}, which is not there"
            )),
            Some(page) if listed.contains(&page) => {
                wrong.push(format!("docs/SUMMARY.md lists {target} twice"));
            }
            Some(page) => {
                listed.insert(page);
            }
        }
    }
    for page in chapters() {
        if !resolved(&page).is_some_and(|p| listed.contains(&p)) {
            wrong.push(format!("docs/SUMMARY.md does not list {}", name(&page)));
        }
    }
    none(wrong);
}

#[test]
fn every_relative_link_leads_to_a_file_and_its_anchor_to_a_heading() {
    let mut wrong = vec![];
    for page in pages().into_iter().chain([summary()]) {
        for target in links(&prose(&page)) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let to = if file.is_empty() {
                page.clone()
            } else {
                page.parent().expect("a directory").join(file)
            };
            if !to.exists() {
                wrong.push(format!("{}: {target} is not there", name(&page)));
            } else if !anchor.is_empty()
                && to.extension().is_some_and(|e| e == "md")
                && !anchors(&to).iter().any(|a| a == anchor)
            {
                wrong.push(format!("{}: {target} has no such heading", name(&page)));
            }
        }
    }
    none(wrong);
}

#[test]
fn every_path_of_the_project_that_a_page_names_exists() {
    let mut wrong = vec![];
    for page in pages() {
        let text = prose(&page);
        let (spans, _) = code_spans(&text);
        let words = spans.iter().flat_map(|s| s.split_whitespace());
        for word in words.filter(|w| in_project(w)) {
            let path = word.trim_end_matches([',', ';', ':', '.', ')']);
            // A pattern, or a place to fill in, is no path.
            let path = path.split([':', '#']).next().unwrap_or(path);
            let open = path.contains(['*', '…', '<', '{', '$'])
                || path
                    .split('/')
                    .any(|p| p.len() > 1 && p.chars().all(|c| c.is_uppercase()));
            if !open && !root().join(path).exists() {
                wrong.push(format!("{}: there is no {path}", name(&page)));
            }
        }
    }
    none(wrong);
}

#[test]
fn every_included_file_exists() {
    let mut wrong = vec![];
    for page in chapters() {
        for rest in prose(&page).split("{{#include ").skip(1) {
            let path = rest.split([':', '}']).next().unwrap_or_default();
            if !page.parent().expect("a directory").join(path).exists() {
                wrong.push(format!("{}: {path} is not there", name(&page)));
            }
        }
    }
    none(wrong);
}

#[test]
fn every_page_with_a_rust_program_is_compiled_and_run() {
    let programs = read(&root().join("checks/book/src/lib.rs"));
    let mut wrong = vec![];
    for page in chapters() {
        let included = format!("include_str!(\"../../../{}\")", name(&page));
        if read(&page).contains("```rust") && !programs.contains(&included) {
            wrong.push(format!("checks/book/src/lib.rs lacks {}", name(&page)));
        }
    }
    none(wrong);
}

#[test]
fn every_page_begins_with_one_title_and_an_answer() {
    let mut wrong = vec![];
    for page in chapters() {
        let text = read(&page);
        let mut lines = text.lines().filter(|l| !l.is_empty());
        let title = lines.next().is_some_and(|l| l.starts_with("# "));
        let answer = lines
            .next()
            .is_some_and(|l| !l.starts_with(['#', '|', '`', '<', '-']) || l.starts_with("`unfrag"));
        if !title || !answer {
            wrong.push(format!("{}: no title, or no answer under it", name(&page)));
        }
        if prose(&page).lines().filter(|l| l.starts_with("# ")).count() != 1 {
            wrong.push(format!("{}: more than one title", name(&page)));
        }
    }
    none(wrong);
}
