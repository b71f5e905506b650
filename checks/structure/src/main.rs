//! The command. It is run in the repository's folder:
//!
//! - without arguments, it checks imports, citations and writes;
//! - `circles [FOLDER…]` checks the imports of the crates in these folders, or of all;
//! - `citations` checks the citations;
//! - `writes` checks who writes files by itself;
//! - `imports FILE` prints what a file imports and who imports from it.
//!
//! It ends with status 1 if something is wrong, and 2 if it cannot look.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use structure::circles::circles;
use structure::citations::Citations;
use structure::graph::{Graph, Names};
use structure::rules::Rules;
use structure::writes::Writes;

/// What the command says, and whether all is well.
struct Answer {
    text: String,
    good: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = match arguments.as_slice() {
        [] => imports(&[]).and_then(|imports| {
            let (citations, writes) = (citations()?, writes()?);
            Ok(Answer {
                text: imports.text + &citations.text + &writes.text,
                good: imports.good && citations.good && writes.good,
            })
        }),
        ["circles", folders @ ..] => imports(folders),
        ["citations"] => citations(),
        ["writes"] => writes(),
        ["imports", file] => imports_of(Path::new(file)),
        _ => {
            Err("arguments: none, circles [FOLDER…], citations, writes, or imports FILE".to_owned())
        }
    };
    match answer {
        Ok(answer) => {
            // Whoever reads it may have closed the pipe.
            let _ = std::io::stdout().write_all(answer.text.as_bytes());
            if answer.good {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("structure: {error}");
            ExitCode::from(2)
        }
    }
}

/// Adds a line to a text.
macro_rules! line {
    ($text:expr, $($arguments:tt)*) => {
        writeln!($text, $($arguments)*).expect("a string takes every text")
    };
}

fn read_graph(folders: &[&str]) -> Result<Graph, String> {
    let folders = if folders.is_empty() { &["."] } else { folders };
    Graph::read(
        Path::new("."),
        &folders.iter().map(PathBuf::from).collect::<Vec<_>>(),
    )
}

fn imports(folders: &[&str]) -> Result<Answer, String> {
    let mut text = String::new();
    let graph = read_graph(folders)?;
    for (file, line, path) in &graph.lost {
        line!(
            text,
            "{}:{line}: {path} leads to no definition that this check finds",
            file.display()
        );
    }
    let circles = circles(&graph);
    for circle in &circles {
        line!(text, "A circle of {} files:", circle.len());
        for from in circle {
            for (to, names) in graph.imports[from]
                .iter()
                .filter(|(to, _)| circle.contains(to))
            {
                line!(
                    text,
                    "    {} -> {}: {}",
                    from.display(),
                    to.display(),
                    listed(names)
                );
            }
        }
        line!(text, "");
    }
    let (files, arrows) = (graph.imports.len(), graph.arrows());
    match circles.len() {
        0 => line!(
            text,
            "structure: {files} files, {arrows} arrows between them, no circle"
        ),
        1 => line!(
            text,
            "structure: {files} files, {arrows} arrows between them, 1 circle"
        ),
        n => line!(
            text,
            "structure: {files} files, {arrows} arrows between them, {n} circles"
        ),
    }
    Ok(Answer {
        text,
        good: circles.is_empty() && graph.lost.is_empty(),
    })
}

fn citations() -> Result<Answer, String> {
    let mut text = String::new();
    let repository = Path::new(".");
    let rules = Rules::read(repository)?;
    let citations = Citations::read(repository, &rules)?;
    for (file, line, wrong) in &citations.wrong {
        line!(text, "{}:{line}: {wrong}", file.display());
    }
    let (count, sections) = (citations.count, rules.len());
    match citations.wrong.len() {
        0 => line!(
            text,
            "structure: {count} citations of {sections} sections, each leads to its section"
        ),
        wrong => line!(
            text,
            "structure: {count} citations of {sections} sections, {wrong} errors"
        ),
    }
    Ok(Answer {
        text,
        good: citations.wrong.is_empty(),
    })
}

fn writes() -> Result<Answer, String> {
    let mut text = String::new();
    let found = Writes::read(Path::new("."))?;
    for (file, line, call) in &found.wrong {
        line!(
            text,
            "{}:{line}: {call} writes a file by itself: use unfrag_linux::output, or say in writes.rs why not",
            file.display()
        );
    }
    for file in &found.unused {
        line!(text, "{file} is listed in writes.rs, and has no such call");
    }
    let good = found.wrong.is_empty() && found.unused.is_empty();
    if good {
        let n = found.allowed;
        line!(
            text,
            "structure: {n} calls that write a file, each where it may"
        );
    }
    Ok(Answer { text, good })
}

fn imports_of(file: &Path) -> Result<Answer, String> {
    let mut text = String::new();
    let graph = read_graph(&[])?;
    let imports = graph
        .imports
        .get(file)
        .ok_or_else(|| format!("{} is no file of a crate", file.display()))?;
    line!(text, "{} imports from", file.display());
    for (to, names) in imports {
        line!(text, "    {}: {}", to.display(), listed(names));
    }
    line!(text, "and is imported by");
    for (from, imports) in &graph.imports {
        if let Some(names) = imports.get(file) {
            line!(text, "    {}: {}", from.display(), listed(names));
        }
    }
    Ok(Answer { text, good: true })
}

fn listed(names: &Names) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|(name, line)| format!("{name} ({line})"))
        .collect();
    names.join(", ")
}
