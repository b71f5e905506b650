//! A host is made in one place: no question reads the files of procfs that tell of zones by itself.

use std::fs;
use std::path::{Path, PathBuf};

/// Types of the files that a host is made from.
const FILES: [&str; 6] = [
    "BuddyInfo",
    "ZoneInfo",
    "PageTypeInfo",
    "MemInfo",
    "UnusableIndex",
    "ExtfragIndex",
];

/// Files of this crate that may read them: the host itself, and a prediction, which is written into a recorded tree and
/// keeps each line of it that it does not change.
const MAY: [&str; 2] = ["host/files.rs", "export/tree.rs"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn only_the_host_reads_the_files_of_zones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = vec![];
    sources(&root, &mut all);
    for path in all {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let (code, _tests) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        let reads = |file: &&&str| code.contains(&format!("{file}::parse"));
        let read: Vec<_> = FILES.iter().filter(reads).collect();
        let may = MAY.contains(&name) || name.ends_with("tests.rs");
        assert!(may || read.is_empty(), "{name} reads {read:?}: ask a Host");
    }
}
