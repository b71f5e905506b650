//! The eras, field by field.

use super::support::flatten;
use std::fmt::Write;
use unfrag_eras::kernel::kernels;

/// Every field of every preset, eras in a row with the same value together.
fn table() -> String {
    let mut paths: Vec<String> = Vec::new();
    let eras: Vec<_> = kernels()
        .map(|p| (p.name, flatten::flat(&p.rules)))
        .collect();
    for (_, rules) in &eras {
        let mut at = 0;
        for (path, _) in rules {
            match paths.iter().position(|p| p == path) {
                Some(i) => at = i + 1,
                None => {
                    paths.insert(at, path.clone());
                    at += 1;
                }
            }
        }
    }
    let mut out = String::new();
    for path in &paths {
        let _ = writeln!(out, "{path}");
        let mut runs: Vec<(&str, &str, &str)> = Vec::new();
        for (era, rules) in &eras {
            let value = rules.iter().find(|r| r.0 == *path);
            let value = value.map_or("-", |r| r.1.as_str());
            match runs.last_mut() {
                Some(run) if run.2 == value => run.1 = era,
                _ => runs.push((era, era, value)),
            }
        }
        for (first, last, value) in runs {
            let eras = match first == last {
                true => first.to_owned(),
                false => format!("{first} to {last}"),
            };
            let _ = writeln!(out, "  {eras:<22}{value}");
        }
    }
    out
}

#[test]
fn every_field_of_every_preset_is_as_it_was_written_down() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/core/rules.txt");
    let now = table();
    if std::env::var_os("UNFRAG_ACCEPT_RULES").is_some() {
        std::fs::write(file, &now).expect("the file can be written");
    }
    let then = std::fs::read_to_string(file).expect("the file is there");
    if let Some((i, (a, b))) =
        (then.lines().zip(now.lines()).enumerate()).find(|(_, (a, b))| a != b)
    {
        panic!(
            "line {} was {a:?} and is {b:?}: UNFRAG_ACCEPT_RULES=1 writes the file anew",
            i + 1
        );
    }
    assert_eq!(
        then.len(),
        now.len(),
        "UNFRAG_ACCEPT_RULES=1 writes the file anew"
    );
}
