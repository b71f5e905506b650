//! Which file imports what from which other one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::package::packages;
use crate::read::read_crate;
use crate::resolve::{Definition, Resolver};
use crate::scope::{Declarations, ScopeId, Writing};

/// The names that one file imports from another, each with the first line that has it.
pub type Names = BTreeMap<String, usize>;

/// Files and what they import from each other.
#[derive(Debug, Default)]
pub struct Graph {
    /// For each file what it imports, by the file that defines it.
    pub imports: BTreeMap<PathBuf, BTreeMap<PathBuf, Names>>,
    /// Paths that could not be followed: file, line, path.
    pub lost: Vec<(PathBuf, usize, String)>,
}

impl Graph {
    /// The graph of every crate below `folders`, which are relative to `repository`.
    ///
    /// # Errors
    /// A file that cannot be read or parsed.
    pub fn read(repository: &Path, folders: &[PathBuf]) -> Result<Self, String> {
        let mut graph = Self::default();
        for package in packages(repository, folders).map_err(|error| error.to_string())? {
            for root in package.roots {
                graph.add(&read_crate(repository, &root)?);
            }
        }
        graph.lost.sort();
        graph.lost.dedup();
        Ok(graph)
    }

    fn add(&mut self, declarations: &Declarations) {
        let resolver = Resolver::new(declarations);
        for file in &declarations.files {
            self.imports.entry(file.path.clone()).or_default();
        }
        for mention in &declarations.mentions {
            let from = &declarations.files[declarations.scope(mention.scope).file.0];
            let mut definitions = resolver.path(mention.scope, &mention.path, mention.spaces);
            if definitions.is_empty() && mention.writing != Writing::Tokens {
                self.lost.push((
                    from.path.clone(),
                    mention.line,
                    mention.path.names.join("::"),
                ));
            }
            if !from.defines {
                continue;
            }
            if mention.writing == Writing::PublicGlob {
                definitions = definitions
                    .into_iter()
                    .flat_map(|d| spread(&resolver, declarations, mention.scope, d))
                    .collect();
            }
            for definition in definitions {
                let Definition::Item { file, name } = definition else {
                    continue;
                };
                let to = &declarations.files[file.0];
                if to.path != from.path {
                    let names = self
                        .imports
                        .entry(from.path.clone())
                        .or_default()
                        .entry(to.path.clone())
                        .or_default();
                    let line = names.entry(name).or_insert(mention.line);
                    *line = (*line).min(mention.line);
                }
            }
        }
    }

    /// The number of arrows.
    pub fn arrows(&self) -> usize {
        self.imports.values().map(BTreeMap::len).sum()
    }
}

/// A module before a star is everything that it shows.
fn spread(
    resolver: &Resolver,
    declarations: &Declarations,
    scope: ScopeId,
    definition: Definition,
) -> Vec<Definition> {
    match definition {
        Definition::Module(module) => resolver.everything(module, declarations.module(scope)),
        definition => vec![definition],
    }
}
