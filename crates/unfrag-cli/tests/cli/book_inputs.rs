//! The table of the page *Which command takes which input?* is what the commands do.

use crate::support::book::read;
use crate::support::{head, lay_out, lay_out_host, root, sample, stdout, text, unfrag};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use unfrag_linux::file;
use unfrag_linux::recording::Recording;
use unfrag_linux::segments::{BOOT, EPOCH_OFFSET};

/// What a column's input is called in [`lay_out_inputs`].
const INPUTS: [(&str, &str); 7] = [
    ("this host", "/proc"),
    ("copies of procfs", "snapshots"),
    ("kernel log", "kernel.log"),
    ("recording", "host.unfrag"),
    ("snapshot file", "now.unfrag"),
    ("days", "days"),
    ("trace", "trace.dat"),
];

/// A recording as a segment of days, which says when it was made and in which boot.
fn dated(mut recording: Recording) -> Recording {
    let facts = [(EPOCH_OFFSET, "1795845600000000000"), (BOOT, "one")];
    // Its events and snapshots have one clock, as the recorder's own.
    recording.meta.snapshot_offset_ns = 0;
    for (name, value) in facts {
        recording.meta.facts.insert(name.into(), value.into());
    }
    recording
}

/// Makes one input of each kind.
fn lay_out_inputs(dir: &Path) {
    let recording = head(&sample(), 5);
    lay_out(&recording, dir);
    let host = dir.join("host.unfrag");
    file::write(&recording, &host).unwrap();
    let samples = root().join("samples");
    fs::copy(
        samples.join("page-allocation-failure.log"),
        dir.join("kernel.log"),
    )
    .unwrap();
    let slab = file::read(&samples.join("slab-find.unfrag")).unwrap();
    for (days, of) in [("days", recording), ("slab-days", slab)] {
        fs::create_dir(dir.join(days)).unwrap();
        let segment = dir.join(days).join("20261128T060000Z-000001.unfrag");
        file::write(&dated(of), &segment).unwrap();
    }
    fs::copy(samples.join("slab-find.unfrag"), dir.join("slab.unfrag")).unwrap();
    fs::write(dir.join("binary.dat"), b"\x17\x08\x44tracing6\0\0\0\x08").unwrap();
    fs::create_dir(dir.join("proc")).unwrap();
    lay_out_host(&dir.join("proc"));
    let made = unfrag()
        .current_dir(dir)
        .args(["snapshot", "--proc", "proc", "-o", "now.unfrag"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
}

/// The words with which a command is asked of an input; none where a cell asks for what a test does not have.
fn asked<'a>(command: &'a str, input: &'a str, cell: &str) -> Option<Vec<&'a str>> {
    let input = match (command, input, cell) {
        ("slab", "host.unfrag", "`--slab`") => "slab.unfrag",
        ("slab", "days", "`--slab`") => "slab-days",
        // A trace as a tracer leaves it is refused; its text could be part of a log.
        ("explain", "trace.dat", "-") => "binary.dat",
        ("top", "snapshots", "one copy") => "snapshots/0000-idle",
        // Not everybody may read the log of a host, and no trace of slab events ships.
        ("slab", "trace.dat", "`--slab`") | ("explain", "/proc", "`--journal`") => return None,
        (_, _, "yes" | "-") | ("replay", "trace.dat", "with `--snapshots`") => input,
        _ => panic!("{command}, {input}: what is {cell:?}?"),
    };
    let mut words = vec![command, input];
    match command {
        "top" => words.extend(["--count", "1"]),
        "redact" => words.push("redacted.unfrag"),
        "import" => words.extend(["-o", "imported.unfrag"]),
        "forecast" => words.extend(["--need", "4x64K"]),
        _ => {}
    }
    if ["blame", "profile"].contains(&command) && input == "trace.dat" {
        // Text does not name its kernel.
        words.extend(["--release", "6.1.0"]);
    }
    if cell == "with `--snapshots`" {
        words.extend(["--snapshots", "snapshots"]);
    }
    Some(words)
}

/// Asks every command of every input. A command that does not take one ends with an error that has a way out.
#[test]
fn every_command_takes_the_inputs_that_the_book_says() {
    let dir = tempfile::tempdir().unwrap();
    lay_out_inputs(dir.path());
    let page = read(&root().join("docs/which-command-takes-which-input.md"));
    let mut rows = page.lines().filter_map(|l| l.strip_prefix("| "));
    let cells = |row: &str| -> Vec<String> {
        let row = row.trim_end_matches('|');
        row.split(" | ").map(|c| c.trim().to_owned()).collect()
    };
    let columns = cells(rows.next().expect("a table"));
    let mut wrong = vec![];
    let mut commands = 0;
    for row in rows.map(cells).take_while(|row| row[0].starts_with('`')) {
        commands += 1;
        assert_eq!(row.len(), columns.len(), "{row:?}");
        let command = row[0].trim_matches('`');
        for (column, cell) in columns.iter().zip(&row).skip(1) {
            let (_, input) = INPUTS
                .iter()
                .find(|(name, _)| name == column)
                .expect("known");
            let Some(words) = asked(command, input, cell) else {
                continue;
            };
            let out = unfrag()
                .current_dir(dir.path())
                .args(&words)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let said = text(&out.stderr);
            let is_refused = !out.status.success() && said.contains("help:");
            if out.status.success() == (cell == "-") || (cell == "-" && !is_refused) {
                wrong.push(format!("{words:?}: {cell:?} stands there: {said}"));
            }
        }
    }
    assert!(commands > 10, "only {commands} rows were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_page_on_inputs_names_every_command() {
    let page = read(&root().join("docs/which-command-takes-which-input.md"));
    let help = stdout(&["--help"]);
    let names = help.lines().filter_map(|line| {
        let (name, about) = line.strip_prefix("  ")?.split_once("  ")?;
        let is_name = name.chars().all(|c| c.is_ascii_lowercase());
        (is_name && !name.is_empty() && !about.is_empty() && name != "help").then_some(name)
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name} is not there");
    }
}
