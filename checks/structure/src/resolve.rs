//! Follows a path of one crate to the files that define what it names.

use std::cell::RefCell;
use std::collections::HashSet;

use crate::scope::{Binding, Declarations, FileId, Meaning, ScopeId, Segments, Spaces};

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Definition {
    /// A module.
    Module(ScopeId),
    /// An item, or something inside it.
    Item {
        /// The file that defines it.
        file: FileId,
        /// Its name there.
        name: String,
    },
    /// Something of another crate, or of the language.
    Elsewhere,
    /// A name that is being followed already: `mod a; use a::a;` looks for `a` while it looks for `a`.
    UnderWay,
}

/// Follows the paths of one crate.
pub(crate) struct Resolver<'a> {
    declarations: &'a Declarations,
    /// The names that are being followed, so that imports of each other come to an end.
    under_way: RefCell<HashSet<(ScopeId, String, Spaces)>>,
}

impl<'a> Resolver<'a> {
    /// For the paths of this crate.
    pub fn new(declarations: &'a Declarations) -> Self {
        Self {
            declarations,
            under_way: RefCell::new(HashSet::new()),
        }
    }

    /// Everything that the path can mean: several things if they depend on `cfg` or lie in different namespaces, nothing
    /// if it cannot be followed.
    pub fn path(&self, scope: ScopeId, path: &Segments, spaces: Spaces) -> Vec<Definition> {
        let mut found = self.follow(scope, path, spaces);
        // `use a::a;` without a module `a`: a crate.
        found
            .iter_mut()
            .filter(|d| **d == Definition::UnderWay)
            .for_each(|d| *d = Definition::Elsewhere);
        found
    }

    fn follow(&self, scope: ScopeId, path: &Segments, spaces: Spaces) -> Vec<Definition> {
        if path.global {
            return vec![Definition::Elsewhere];
        }
        let module = self.declarations.module(scope);
        let mut names = path.names.as_slice();
        let mut reached = match names[0].as_str() {
            "crate" => vec![Definition::Module(ScopeId(0))],
            "self" => vec![Definition::Module(module)],
            "super" => match self.declarations.parent_module(module) {
                Some(parent) => vec![Definition::Module(parent)],
                None => return Vec::new(),
            },
            name => {
                let spaces = if names.len() == 1 {
                    spaces
                } else {
                    Spaces::TYPE
                };
                let found = self.name(scope, name, spaces);
                if found.is_empty() {
                    vec![Definition::Elsewhere]
                } else {
                    found
                }
            }
        };
        names = &names[1..];
        while let [name, rest @ ..] = names {
            let mut next = Vec::new();
            for definition in reached {
                match definition {
                    Definition::Module(within) if name == "super" => {
                        next.extend(
                            self.declarations
                                .parent_module(within)
                                .map(Definition::Module),
                        );
                    }
                    Definition::Module(within) => {
                        let spaces = if rest.is_empty() {
                            spaces
                        } else {
                            Spaces::TYPE
                        };
                        next.extend(self.inside(within, name, spaces, module));
                    }
                    reached => next.push(reached),
                }
            }
            reached = next;
            names = rest;
        }
        unique(reached)
    }

    /// What the names that a module shows to `viewer` are defined as: those of `use module::*`.
    pub fn everything(&self, within: ScopeId, viewer: ScopeId) -> Vec<Definition> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut modules = vec![within];
        while let Some(module) = modules.pop() {
            if !seen.insert(module) {
                continue;
            }
            let scope = self.declarations.scope(module);
            for binding in scope
                .bindings
                .iter()
                .filter(|b| self.declarations.lies_in(viewer, b.visible_in))
            {
                found.extend(self.meaning(module, binding, Spaces::ALL));
            }
            for glob in scope
                .globs
                .iter()
                .filter(|g| self.declarations.lies_in(viewer, g.visible_in))
            {
                for definition in self.follow(module, &glob.path, Spaces::TYPE) {
                    match definition {
                        Definition::Module(inner) => modules.push(inner),
                        definition => found.push(definition),
                    }
                }
            }
        }
        unique(found)
    }

    /// A name as code in this scope sees it: in blocks, from the inside out, then in the module.
    fn name(&self, scope: ScopeId, name: &str, spaces: Spaces) -> Vec<Definition> {
        let module = self.declarations.module(scope);
        let mut at = scope;
        let mut found = Vec::new();
        loop {
            found.extend(self.inside(at, name, spaces, module));
            if is_known(&found) || at == module {
                return unique(found);
            }
            at = self
                .declarations
                .scope(at)
                .parent
                .expect("a block lies in a module");
        }
    }

    /// A name in one scope, as the module `viewer` sees it. Each namespace is for itself: a glob can give the function
    /// where a binding gives the module.
    fn inside(
        &self,
        within: ScopeId,
        name: &str,
        spaces: Spaces,
        viewer: ScopeId,
    ) -> Vec<Definition> {
        let scope = self.declarations.scope(within);
        let mut found = Vec::new();
        for space in spaces.each() {
            let key = (within, name.to_owned(), space);
            if self.under_way.borrow_mut().insert(key.clone()) {
                found.extend(self.inside_space(within, name, space, viewer));
                self.under_way.borrow_mut().remove(&key);
            } else {
                found.push(Definition::UnderWay);
            }
        }
        if !is_known(&found) && scope.expanded.iter().any(|expanded| expanded == name) {
            found.push(Definition::Item {
                file: scope.file,
                name: name.to_owned(),
            });
        }
        unique(found)
    }

    fn inside_space(
        &self,
        within: ScopeId,
        name: &str,
        space: Spaces,
        viewer: ScopeId,
    ) -> Vec<Definition> {
        let scope = self.declarations.scope(within);
        let visible = |module: ScopeId| self.declarations.lies_in(viewer, module);
        let mut found = Vec::new();
        for binding in scope
            .bindings
            .iter()
            .filter(|b| b.name == name && visible(b.visible_in))
        {
            found.extend(self.meaning(within, binding, space));
        }
        if is_known(&found) {
            return found;
        }
        let importer = self.declarations.module(within);
        for glob in scope.globs.iter().filter(|g| visible(g.visible_in)) {
            for definition in self.follow(within, &glob.path, Spaces::TYPE) {
                if let Definition::Module(inner) = definition {
                    found.extend(self.inside(inner, name, space, importer));
                }
            }
        }
        found
    }

    fn meaning(&self, within: ScopeId, binding: &Binding, spaces: Spaces) -> Vec<Definition> {
        match &binding.meaning {
            Meaning::Item(own) if own.meets(spaces) => {
                vec![Definition::Item {
                    file: self.declarations.scope(within).file,
                    name: binding.name.clone(),
                }]
            }
            Meaning::Module(id) if spaces.meets(Spaces::TYPE) => vec![Definition::Module(*id)],
            Meaning::Import { path, module_only } => {
                let spaces = if *module_only { Spaces::TYPE } else { spaces };
                self.follow(within, path, spaces)
            }
            _ => Vec::new(),
        }
    }
}

/// True if something is found that is not only under way.
fn is_known(definitions: &[Definition]) -> bool {
    definitions
        .iter()
        .any(|definition| *definition != Definition::UnderWay)
}

/// Without what is said twice, and without what is under way if anything else is known.
fn unique(mut definitions: Vec<Definition>) -> Vec<Definition> {
    let mut seen = HashSet::new();
    definitions.retain(|definition| seen.insert(definition.clone()));
    if definitions.len() > 1 {
        definitions.retain(|definition| *definition != Definition::UnderWay);
    }
    definitions
}
