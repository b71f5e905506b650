//! The command. It is run in the repository's folder:
//!
//! - without arguments, it checks imports and citations;
//! - `circles [FOLDER…]` checks the imports of the crates in these folders, or of all;
//! - `citations` checks the citations;
//! - `imports FILE` prints what a file imports and who imports from it.
//!
//! It ends with status 1 if something is wrong, and 2 if it cannot look.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use structure::circles::circles;
use structure::citations::Citations;
use structure::graph::{Graph, Names};
use structure::rules::Rules;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let good = match arguments.as_slice() {
        [] => check_imports(&[]).and_then(|imports| Ok(check_citations()? && imports)),
        ["circles", folders @ ..] => check_imports(folders),
        ["citations"] => check_citations(),
        ["imports", file] => print_imports(Path::new(file)).map(|()| true),
        _ => Err("arguments: none, circles [FOLDER…], citations, or imports FILE".to_owned()),
    };
    match good {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("structure: {error}");
            ExitCode::from(2)
        }
    }
}

fn read_graph(folders: &[&str]) -> Result<Graph, String> {
    let folders = if folders.is_empty() { &["."] } else { folders };
    Graph::read(
        Path::new("."),
        &folders.iter().map(PathBuf::from).collect::<Vec<_>>(),
    )
}

fn check_imports(folders: &[&str]) -> Result<bool, String> {
    let graph = read_graph(folders)?;
    for (file, line, path) in &graph.lost {
        println!(
            "{}:{line}: {path} leads to no definition that this check finds",
            file.display()
        );
    }
    let circles = circles(&graph);
    for circle in &circles {
        println!("A circle of {} files:", circle.len());
        for from in circle {
            for (to, names) in graph.imports[from]
                .iter()
                .filter(|(to, _)| circle.contains(to))
            {
                println!(
                    "    {} -> {}: {}",
                    from.display(),
                    to.display(),
                    listed(names)
                );
            }
        }
        println!();
    }
    let (files, arrows) = (graph.imports.len(), graph.arrows());
    match circles.len() {
        0 => println!("structure: {files} files, {arrows} arrows between them, no circle"),
        1 => println!("structure: {files} files, {arrows} arrows between them, 1 circle"),
        n => println!("structure: {files} files, {arrows} arrows between them, {n} circles"),
    }
    Ok(circles.is_empty() && graph.lost.is_empty())
}

fn check_citations() -> Result<bool, String> {
    let repository = Path::new(".");
    let rules = Rules::read(repository)?;
    let citations = Citations::read(repository, &rules)?;
    for (file, line, wrong) in &citations.wrong {
        println!("{}:{line}: {wrong}", file.display());
    }
    let (count, sections) = (citations.count, rules.len());
    match citations.wrong.len() {
        0 => println!(
            "structure: {count} citations of {sections} sections, each leads to its section"
        ),
        wrong => println!("structure: {count} citations of {sections} sections, {wrong} errors"),
    }
    Ok(citations.wrong.is_empty())
}

fn print_imports(file: &Path) -> Result<(), String> {
    let graph = read_graph(&[])?;
    let imports = graph
        .imports
        .get(file)
        .ok_or_else(|| format!("{} is no file of a crate", file.display()))?;
    println!("{} imports from", file.display());
    for (to, names) in imports {
        println!("    {}: {}", to.display(), listed(names));
    }
    println!("and is imported by");
    for (from, imports) in &graph.imports {
        if let Some(names) = imports.get(file) {
            println!("    {}: {}", from.display(), listed(names));
        }
    }
    Ok(())
}

fn listed(names: &Names) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|(name, line)| format!("{name} ({line})"))
        .collect();
    names.join(", ")
}
