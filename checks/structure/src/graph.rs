//! Which file imports what from which other one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::package::packages;
use crate::read::read_crate;
use crate::resolve::{Definition, Resolver};
use crate::scope::{Declarations, Mention, ScopeId, Writing};

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

    /// Adds the imports between the files of one crate.
    fn add(&mut self, declarations: &Declarations) {
        for file in &declarations.files {
            self.imports.entry(file.path.clone()).or_default();
        }
        let resolver = Resolver::new(declarations);
        for mention in &declarations.mentions {
            self.add_mention(declarations, &resolver, mention);
        }
    }

    fn add_mention(&mut self, declarations: &Declarations, resolver: &Resolver, mention: &Mention) {
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
            return;
        }
        if mention.writing == Writing::PublicGlob {
            let viewer = declarations.module(mention.scope);
            definitions = definitions
                .into_iter()
                .flat_map(|d| spread(resolver, viewer, d))
                .collect();
        }
        let imports = self.imports.entry(from.path.clone()).or_default();
        for definition in definitions {
            let Definition::Item { file, name } = definition else {
                continue;
            };
            let to = &declarations.files[file.0].path;
            if *to != from.path {
                let line = imports
                    .entry(to.clone())
                    .or_default()
                    .entry(name)
                    .or_insert(mention.line);
                *line = mention.line.min(*line);
            }
        }
    }

    /// The number of arrows.
    pub fn arrows(&self) -> usize {
        self.imports.values().map(BTreeMap::len).sum()
    }
}

/// A module before a star is everything that it shows to `viewer`.
fn spread(resolver: &Resolver, viewer: ScopeId, definition: Definition) -> Vec<Definition> {
    match definition {
        Definition::Module(module) => resolver.everything(module, viewer),
        definition => vec![definition],
    }
}
