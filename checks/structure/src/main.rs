//! `unfrag-structure-check [--imports FILE] REPOSITORY [FOLDER…]`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use structure::circles::circles;
use structure::graph::{Graph, Names};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("structure: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut of = None;
    if let Some(at) = arguments.iter().position(|a| a == "--imports") {
        if at + 1 >= arguments.len() {
            return Err("--imports takes a file".to_owned());
        }
        of = Some(arguments.remove(at + 1));
        arguments.remove(at);
    }
    let Some(repository) = arguments.first() else {
        return Err(
            "usage: unfrag-structure-check [--imports FILE] REPOSITORY [FOLDER…]".to_owned(),
        );
    };
    let mut folders: Vec<PathBuf> = arguments[1..].iter().map(PathBuf::from).collect();
    if folders.is_empty() {
        folders = vec![PathBuf::from("")];
    }
    let graph = Graph::read(Path::new(repository), &folders)?;
    if let Some(file) = of {
        print_imports(&graph, Path::new(&file))?;
        return Ok(true);
    }
    for (file, line, path) in &graph.lost {
        println!("{}:{line}: {path} cannot be followed", file.display());
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
    let files = graph.imports.len();
    let arrows = graph.arrows();
    match circles.len() {
        0 => println!("structure: {files} files, {arrows} arrows, no circle"),
        n => println!("structure: {files} files, {arrows} arrows, {n} circles"),
    }
    Ok(circles.is_empty() && graph.lost.is_empty())
}

fn print_imports(graph: &Graph, file: &Path) -> Result<(), String> {
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
