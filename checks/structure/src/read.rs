//! Reads the files of one crate, from its root along the `mod` declarations, into [`Declarations`].
//!
//! An item is declared in its scope first and walked afterwards: [`crate::walk`] collects the paths that it writes.

use std::collections::HashSet;
use std::fs;
use std::mem::replace;
use std::path::{Path, PathBuf};

use syn::visit::Visit;
use syn::{ForeignItem, GenericParam, Generics, Item, ItemMod, ItemUse};

use crate::cfg::only_in_tests;
use crate::items;
use crate::module_file::{Place, module_file};
use crate::scope::{
    Binding, Declarations, FileId, Meaning, Mention, Scope, ScopeId, Segments, SourceFile, Spaces,
    Writing,
};
use crate::tokens;

/// The declarations of the crate that begins at `root`, a path relative to `repository`.
///
/// # Errors
/// A file that cannot be read or parsed, by name.
pub(crate) fn read_crate(repository: &Path, root: &Path) -> Result<Declarations, String> {
    let mut reader = Reader {
        repository,
        declarations: Declarations::default(),
        scope: ScopeId(0),
        file: FileId(0),
        children: PathBuf::new(),
        inline: false,
        variables: HashSet::new(),
        generics: Vec::new(),
        error: None,
    };
    reader.read_file(root, None, root.parent().unwrap_or(Path::new("")));
    match reader.error {
        Some(error) => Err(error),
        None => Ok(reader.declarations),
    }
}

/// Reads one crate. What is read now stands in `scope` and `file`.
pub(crate) struct Reader<'a> {
    repository: &'a Path,
    declarations: Declarations,
    scope: ScopeId,
    file: FileId,
    /// The folder for the files of this module's children.
    children: PathBuf,
    /// True in `mod a { … }`.
    inline: bool,
    /// Names that patterns of the function bind: alone they are no items.
    variables: HashSet<String>,
    /// Generic parameters: a path that begins with one leads to no item.
    generics: Vec<String>,
    error: Option<String>,
}

impl Reader<'_> {
    fn fail(&mut self, error: String) {
        let file = self.declarations.files[self.file.0].path.display();
        self.error.get_or_insert(format!("{file}: {error}"));
    }

    fn new_scope(&mut self, parent: Option<ScopeId>, is_module: bool) -> ScopeId {
        let id = ScopeId(self.declarations.scopes.len());
        self.declarations.scopes.push(Scope {
            file: self.file,
            parent,
            is_module,
            bindings: Vec::new(),
            globs: Vec::new(),
            expanded: Vec::new(),
        });
        id
    }

    /// Reads a file that is a module of its own. `children` is the folder of its children's files.
    fn read_file(&mut self, path: &Path, parent: Option<ScopeId>, children: &Path) -> ScopeId {
        let file = FileId(self.declarations.files.len());
        self.declarations.files.push(SourceFile {
            path: path.to_owned(),
            defines: false,
        });
        let outer_file = replace(&mut self.file, file);
        let outer_children = replace(&mut self.children, children.to_owned());
        let outer_inline = replace(&mut self.inline, false);
        let module = self.new_scope(parent, true);
        let outer_scope = replace(&mut self.scope, module);
        let parsed = fs::read_to_string(self.repository.join(path))
            .map_err(|error| error.to_string())
            .and_then(|text| {
                syn::parse_file(&text).map_err(|e| format!("line {}: {e}", e.span().start().line))
            });
        match parsed {
            Ok(file) if only_in_tests(&file.attrs) => {}
            Ok(file) => self.read_items(&file.items),
            Err(error) => self.fail(error),
        }
        self.file = outer_file;
        self.children = outer_children;
        self.inline = outer_inline;
        self.scope = outer_scope;
        module
    }

    /// Declares items in the current scope, then walks what they write.
    fn read_items(&mut self, list: &[Item]) {
        let list: Vec<&Item> = list.iter().filter(|item| !items::left_out(item)).collect();
        for item in &list {
            self.declare(item);
        }
        for item in &list {
            self.visit_item(item);
        }
    }

    /// Walks what stands in a block, in a scope of its own if the block declares items.
    pub(crate) fn in_block(&mut self, list: &[&Item], walk: impl FnOnce(&mut Self)) {
        if list.is_empty() {
            return walk(self);
        }
        let block = self.new_scope(Some(self.scope), false);
        let outer = replace(&mut self.scope, block);
        for item in list {
            self.declare(item);
        }
        walk(self);
        self.scope = outer;
    }

    fn declare(&mut self, item: &Item) {
        match item {
            Item::Use(item) => return self.declare_use(item),
            Item::Mod(item) => return self.declare_module(item),
            Item::ExternCrate(_) => return,
            _ => {}
        }
        self.declarations.files[self.file.0].defines = true;
        let module = self.declarations.module(self.scope);
        let root = ScopeId(0);
        match item {
            Item::Macro(item) => match &item.ident {
                Some(name) => self.bind(items::name(name), Meaning::Item(Spaces::MACRO), root),
                None => {
                    let made = tokens::definitions(item.mac.tokens.clone());
                    for name in made.certain {
                        self.bind(name, Meaning::Item(Spaces::TYPE.or(Spaces::VALUE)), root);
                    }
                    self.declarations.scopes[self.scope.0]
                        .expanded
                        .extend(made.possible);
                }
            },
            Item::ForeignMod(item) => {
                for item in &item.items {
                    let (name, visibility) = match item {
                        ForeignItem::Fn(item) => (&item.sig.ident, &item.vis),
                        ForeignItem::Static(item) => (&item.ident, &item.vis),
                        _ => continue,
                    };
                    let visible_in = items::visible_in(&self.declarations, visibility, module);
                    self.bind(items::name(name), Meaning::Item(Spaces::VALUE), visible_in);
                }
            }
            item => {
                if let Some((name, visibility, spaces)) = items::named_item(item) {
                    let visible_in = items::visible_in(&self.declarations, visibility, module);
                    self.bind(name, Meaning::Item(spaces), visible_in);
                }
            }
        }
    }

    fn declare_use(&mut self, item: &ItemUse) {
        let module = self.declarations.module(self.scope);
        let visible_in = items::visible_in(&self.declarations, &item.vis, module);
        for leaf in items::use_leaves(item) {
            // A private glob imports what is used through it: those uses are mentions of their own.
            if leaf.name.is_some() {
                let spaces = if leaf.module_only {
                    Spaces::TYPE
                } else {
                    Spaces::ALL
                };
                self.mention(leaf.path.clone(), spaces, Writing::Import, leaf.line);
            } else if visible_in != module {
                self.mention(
                    leaf.path.clone(),
                    Spaces::TYPE,
                    Writing::PublicGlob,
                    leaf.line,
                );
            }
            items::bind_use(
                &mut self.declarations.scopes[self.scope.0],
                leaf,
                visible_in,
            );
        }
    }

    fn declare_module(&mut self, item: &ItemMod) {
        let name = items::name(&item.ident);
        let around = self.declarations.module(self.scope);
        let visible_in = items::visible_in(&self.declarations, &item.vis, around);
        let module = if let Some((_, content)) = &item.content {
            let module = self.new_scope(Some(self.scope), true);
            let outer_scope = replace(&mut self.scope, module);
            let children = self.children.join(&name);
            let outer_children = replace(&mut self.children, children);
            let outer_inline = replace(&mut self.inline, true);
            self.read_items(content);
            self.scope = outer_scope;
            self.children = outer_children;
            self.inline = outer_inline;
            module
        } else {
            let place = Place {
                repository: self.repository,
                file: &self.declarations.files[self.file.0].path,
                children: &self.children,
                inline: self.inline,
            };
            let Some(file) = module_file(&place, &name, &item.attrs) else {
                return self.fail(format!("no file for mod {name}"));
            };
            self.read_file(&file.path, Some(self.scope), &file.children)
        };
        self.bind(name, Meaning::Module(module), visible_in);
    }

    fn bind(&mut self, name: String, meaning: Meaning, visible_in: ScopeId) {
        self.declarations.scopes[self.scope.0]
            .bindings
            .push(Binding {
                name,
                meaning,
                visible_in,
            });
    }

    /// Notes a path, unless it can lead to no item of a module.
    pub(crate) fn mention(
        &mut self,
        path: Segments,
        spaces: Spaces,
        writing: Writing,
        line: usize,
    ) {
        let first = &path.names[0];
        if !path.global && (first == "Self" || self.generics.contains(first)) {
            return;
        }
        let is_variable =
            path.names.len() == 1 && (first == "self" || self.variables.contains(first));
        if !is_variable || writing == Writing::Import {
            self.declarations.mentions.push(Mention {
                scope: self.scope,
                path,
                spaces,
                writing,
                line,
            });
        }
    }

    /// Walks an item in which these generic parameters exist.
    pub(crate) fn with_generics(&mut self, generics: &Generics, walk: impl FnOnce(&mut Self)) {
        let before = self.generics.len();
        for parameter in &generics.params {
            match parameter {
                GenericParam::Type(parameter) => self.generics.push(items::name(&parameter.ident)),
                GenericParam::Const(parameter) => self.generics.push(items::name(&parameter.ident)),
                GenericParam::Lifetime(_) => {}
            }
        }
        walk(self);
        self.generics.truncate(before);
    }

    /// Walks a function whose patterns bind these names.
    pub(crate) fn with_variables(&mut self, names: HashSet<String>, walk: impl FnOnce(&mut Self)) {
        let outer = self.variables.clone();
        self.variables.extend(names);
        walk(self);
        self.variables = outer;
    }
}
