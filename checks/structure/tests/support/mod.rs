//! Made-up crates in a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};

use structure::circles::circles;
use structure::graph::Graph;
use tempfile::TempDir;

/// A repository with one package `c` of these files.
pub struct Crate {
    pub folder: TempDir,
}

impl Crate {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join("c").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("Cargo.toml", "[package]\nname = \"c\"\n");
        for (path, text) in files {
            write(path, text);
        }
        Self { folder }
    }

    pub fn graph(&self) -> Graph {
        let graph = Graph::read(self.folder.path(), &[PathBuf::from("c")]).unwrap();
        assert_eq!(graph.lost, [], "everything can be followed");
        graph
    }

    /// Every arrow, as `from -> to: names`, with paths below `src`.
    pub fn arrows(&self) -> Vec<String> {
        let mut arrows = Vec::new();
        for (from, imports) in self.graph().imports {
            for (to, names) in imports {
                let names: Vec<String> = names.into_keys().collect();
                arrows.push(format!(
                    "{} -> {}: {}",
                    short(&from),
                    short(&to),
                    names.join(", ")
                ));
            }
        }
        arrows
    }

    pub fn circles(&self) -> Vec<Vec<String>> {
        let circles = circles(&self.graph());
        circles
            .iter()
            .map(|circle| circle.iter().map(|file| short(file)).collect())
            .collect()
    }
}

fn short(path: &Path) -> String {
    let path = path.strip_prefix("c").unwrap();
    path.strip_prefix("src")
        .unwrap_or(path)
        .display()
        .to_string()
}
