//! The pages that ship: the book, and the files beside it that people read.

use super::root;
use std::fs;
use std::path::{Path, PathBuf};

/// Every page of the book but its summary, and the files for readers at the root, with the samples and in
/// crates.
pub fn pages() -> Vec<PathBuf> {
    let mut pages = chapters();
    pages.extend(beside());
    pages.sort();
    pages
}

/// The pages of the book: all Markdown under `docs` but its summary.
pub fn chapters() -> Vec<PathBuf> {
    let mut chapters = markdown(&root().join("docs"));
    chapters.retain(|p| *p != summary());
    chapters.sort();
    chapters
}

/// The book's table of contents.
pub fn summary() -> PathBuf {
    root().join("docs/SUMMARY.md")
}

/// What readers find outside the book.
fn beside() -> Vec<PathBuf> {
    let root = root();
    let fixed = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "samples/README.md",
    ];
    let crates = fs::read_dir(root.join("crates")).expect("the crates");
    let of_crates = crates.map(|c| c.expect("a crate").path().join("README.md"));
    let all = fixed.iter().map(|f| root.join(f)).chain(of_crates);
    all.filter(|p| p.is_file()).collect()
}

/// Markdown files in a directory and below it.
fn markdown(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(markdown(&path));
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
    found
}

/// A page's path within the project.
pub fn name(page: &Path) -> String {
    page.strip_prefix(root())
        .unwrap_or(page)
        .display()
        .to_string()
}

/// A page without its fenced blocks.
pub fn prose(page: &Path) -> String {
    let mut fenced = false;
    let mut text = String::new();
    for line in read(page).lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// The text of a page.
pub fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|e| panic!("{}: {e}", name(page)))
}

/// The code spans of some prose, and the prose with nothing in their places.
pub fn code_spans(prose: &str) -> (Vec<&str>, String) {
    let (mut spans, mut rest) = (vec![], String::new());
    for (i, part) in prose.split('`').enumerate() {
        if i % 2 == 0 {
            rest += part;
        } else {
            spans.push(part);
        }
    }
    (spans, rest)
}

/// Whether a word is a path of the project.
pub fn in_project(word: &str) -> bool {
    const FOLDERS: [&str; 8] = [
        "crates/",
        "docs/",
        "samples/",
        "checks/",
        "dashboards/",
        "dist/",
        "fuzz/",
        ".ci/",
    ];
    FOLDERS.iter().any(|f| word.starts_with(f))
}

/// The targets of the links in some prose.
pub fn links(prose: &str) -> Vec<String> {
    let (_, rest) = code_spans(prose);
    let targets = rest.split("](").skip(1);
    targets
        .filter_map(|t| t.split(')').next())
        .map(str::to_owned)
        .collect()
}

/// The anchors of a page: its headings, as GitHub and mdBook make them.
pub fn anchors(page: &Path) -> Vec<String> {
    let mut anchors: Vec<String> = vec![];
    for line in prose(page).lines().filter(|l| l.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim();
        // Of a link in a heading its text counts.
        let shown: String = heading
            .split("](")
            .enumerate()
            .map(|(i, part)| match (i, part.split_once(')')) {
                (0, _) | (_, None) => part,
                (_, Some((_, after))) => after,
            })
            .collect();
        let slug: String = shown
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let same = anchors.iter().filter(|a| **a == slug).count();
        anchors.push(if same == 0 {
            slug
        } else {
            format!("{slug}-{same}")
        });
    }
    anchors
}
