//! What an embedder builds with each crate of the project.

use std::process::Command;

/// A crate's own crates, as cargo builds them for somebody who depends on it with these options.
fn builds(package: &str, options: &[&str]) -> Vec<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none"])
        .args(["--package", package, "--format", "{p}"])
        .args(options)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        tree.status.success(),
        "{}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let mut names: Vec<String> = String::from_utf8_lossy(&tree.stdout)
        .lines()
        .filter_map(|l| l.split(' ').next())
        .filter(|name| name.starts_with("unfrag"))
        .map(str::to_string)
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn what_is_embedded_needs_no_era_of_linux() {
    let rows: [(&str, &[&str], &[&str]); 5] = [
        ("unfrag", &[], &["unfrag"]),
        (
            "unfrag-slab",
            &["--no-default-features"],
            &["unfrag", "unfrag-slab"],
        ),
        (
            "unfrag-pool",
            &[],
            &["unfrag", "unfrag-pool", "unfrag-slab"],
        ),
        (
            "unfrag-malloc",
            &[],
            &["unfrag", "unfrag-malloc", "unfrag-pool", "unfrag-slab"],
        ),
        (
            "unfrag-adapt",
            &["--all-features"],
            &["unfrag", "unfrag-adapt", "unfrag-slab"],
        ),
    ];
    for (package, options, expected) in rows {
        assert_eq!(builds(package, options), expected, "{package}");
    }
    assert_eq!(builds("unfrag-eras", &[]), ["unfrag", "unfrag-eras"]);
}
