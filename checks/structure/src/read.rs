//! Reads the files of one crate, from its root along the `mod` declarations, into [`Declarations`].

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, Lit, Meta, Stmt};

use crate::cfg::only_in_tests;
use crate::items;
use crate::scope::{
    Declarations, FileId, Meaning, Mention, Scope, ScopeId, Segments, SourceFile, Spaces, Writing,
};
use crate::tokens;

/// The declarations of the crate that begins at `root`, a path relative to `repository`.
///
/// # Errors
/// A file that cannot be read or parsed, by name.
pub fn read_crate(repository: &Path, root: &Path) -> Result<Declarations, String> {
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

struct Reader<'a> {
    repository: &'a Path,
    declarations: Declarations,
    /// Where what is visited now is written.
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
        self.error.get_or_insert(error);
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
        let outer = (self.file, self.scope, self.children.clone(), self.inline);
        self.file = FileId(self.declarations.files.len());
        self.declarations.files.push(SourceFile {
            path: path.to_owned(),
            defines: false,
        });
        self.scope = self.new_scope(parent, true);
        self.children = children.to_owned();
        self.inline = false;
        let scope = self.scope;
        let parsed = fs::read_to_string(self.repository.join(path))
            .map_err(|error| error.to_string())
            .and_then(|text| {
                syn::parse_file(&text).map_err(|e| format!("{}: {e}", e.span().start().line))
            });
        match parsed {
            Ok(file) if only_in_tests(&file.attrs) => {}
            Ok(file) => self.read_items(&file.items),
            Err(error) => self.fail(format!("{}: {error}", path.display())),
        }
        (self.file, self.scope, self.children, self.inline) = outer;
        scope
    }

    /// Declares items in the current scope, then reads what they write.
    fn read_items(&mut self, list: &[Item]) {
        let list: Vec<&Item> = list.iter().filter(|item| !left_out(item)).collect();
        for item in &list {
            self.declare(item);
        }
        for item in &list {
            self.visit_item(item);
        }
    }

    fn declare(&mut self, item: &Item) {
        let module = self.declarations.module(self.scope);
        if !matches!(item, Item::Mod(_) | Item::Use(_) | Item::ExternCrate(_))
            && self.scope == module
        {
            self.declarations.files[self.file.0].defines = true;
        }
        match item {
            Item::Use(item) => {
                let visible_in = items::visible_in(&self.declarations, &item.vis, module);
                let public = visible_in != module;
                let leaves = items::use_leaves(item);
                for leaf in leaves {
                    let writing = match (leaf.name.is_none(), public) {
                        (false, _) => Writing::Import,
                        (true, true) => Writing::PublicGlob,
                        (true, false) => Writing::Code,
                    };
                    if writing != Writing::Code {
                        let spaces = if leaf.module_only {
                            Spaces::TYPE
                        } else {
                            Spaces::ALL
                        };
                        self.mention(leaf.path.clone(), spaces, writing, leaf.line);
                    }
                    let scope = &mut self.declarations.scopes[self.scope.0];
                    items::bind_use(scope, leaf, visible_in);
                }
            }
            Item::Mod(item) => {
                let name = item.ident.to_string();
                let visible_in = items::visible_in(&self.declarations, &item.vis, module);
                let id = match &item.content {
                    Some((_, content)) => {
                        let id = self.new_scope(Some(self.scope), true);
                        // Its items are read now: they see only what is declared, and nothing is resolved yet.
                        let outer = (self.scope, self.inline);
                        let children = self.children.join(&name);
                        let children = std::mem::replace(&mut self.children, children);
                        (self.scope, self.inline) = (id, true);
                        self.read_items(content);
                        (self.scope, self.inline) = outer;
                        self.children = children;
                        id
                    }
                    None => {
                        let Some((path, children)) = self.file_of(&name, &item.attrs) else {
                            let file = self.declarations.files[self.file.0]
                                .path
                                .display()
                                .to_string();
                            self.fail(format!("{file}: no file for mod {name}"));
                            return;
                        };
                        self.read_file(&path, Some(self.scope), &children)
                    }
                };
                self.bind(name, Meaning::Module(id), visible_in);
            }
            Item::Macro(item) => match &item.ident {
                Some(name) => self.bind(name.to_string(), Meaning::Item(Spaces::MACRO), ScopeId(0)),
                None => {
                    let made = tokens::definitions(item.mac.tokens.clone());
                    for name in made.certain {
                        self.bind(
                            name,
                            Meaning::Item(Spaces::TYPE.or(Spaces::VALUE)),
                            ScopeId(0),
                        );
                    }
                    self.declarations.scopes[self.scope.0]
                        .expanded
                        .extend(made.possible);
                }
            },
            Item::ForeignMod(item) => {
                for item in &item.items {
                    let (name, vis) = match item {
                        syn::ForeignItem::Fn(item) => (&item.sig.ident, &item.vis),
                        syn::ForeignItem::Static(item) => (&item.ident, &item.vis),
                        _ => continue,
                    };
                    let visible_in = items::visible_in(&self.declarations, vis, module);
                    self.bind(name.to_string(), Meaning::Item(Spaces::VALUE), visible_in);
                }
            }
            item => {
                if let Some((name, vis, spaces)) = items::named_item(item) {
                    let visible_in = items::visible_in(&self.declarations, vis, module);
                    self.bind(name.to_string(), Meaning::Item(spaces), visible_in);
                }
            }
        }
    }

    fn bind(&mut self, name: String, meaning: Meaning, visible_in: ScopeId) {
        let scope = &mut self.declarations.scopes[self.scope.0];
        scope.bindings.push(crate::scope::Binding {
            name,
            meaning,
            visible_in,
        });
    }

    /// The file of `mod name;` and the folder of its children's files.
    fn file_of(&self, name: &str, attributes: &[Attribute]) -> Option<(PathBuf, PathBuf)> {
        let exists = |path: &Path| self.repository.join(path).is_file();
        let here = self.declarations.files[self.file.0]
            .path
            .parent()
            .unwrap_or(Path::new(""));
        if let Some(named) = path_attribute(attributes) {
            let base = if self.inline { &self.children } else { here };
            let path = plain(&base.join(named));
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            return exists(&path).then_some((path, folder));
        }
        let flat = self.children.join(format!("{name}.rs"));
        let nested = self.children.join(name).join("mod.rs");
        let path = if exists(&flat) { flat } else { nested };
        exists(&path).then(|| (path, self.children.join(name)))
    }

    fn mention(&mut self, path: Segments, spaces: Spaces, writing: Writing, line: usize) {
        let first = &path.names[0];
        if !path.global && (first == "Self" || self.generics.contains(first)) {
            return;
        }
        if path.names.len() == 1 && (self.variables.contains(first) || first == "self") {
            return;
        }
        self.declarations.mentions.push(Mention {
            scope: self.scope,
            path,
            spaces,
            writing,
            line,
        });
    }

    fn mention_path(&mut self, path: &syn::Path, count: usize, spaces: Spaces) {
        let names: Vec<String> = path
            .segments
            .iter()
            .take(count)
            .map(|s| items::name(&s.ident))
            .collect();
        if let Some(first) = path.segments.first().filter(|_| !names.is_empty()) {
            let line = first.ident.span().start().line;
            let path = Segments {
                global: path.leading_colon.is_some(),
                names,
            };
            self.mention(path, spaces, Writing::Code, line);
        }
    }

    /// A path with its generic arguments. With a qualified self, `<T as a::Trait>::N`, the path is that of the trait.
    fn read_path(&mut self, qself: Option<&syn::QSelf>, path: &syn::Path, spaces: Spaces) {
        match qself {
            Some(qself) => {
                self.visit_type(&qself.ty);
                self.mention_path(path, qself.position, Spaces::TYPE);
            }
            None => self.mention_path(path, path.segments.len(), spaces),
        }
        for segment in &path.segments {
            self.visit_path_arguments(&segment.arguments);
        }
    }

    fn read_tokens(&mut self, stream: proc_macro2::TokenStream) {
        for found in tokens::paths(stream) {
            let single = found.path.names.len() == 1;
            let spaces = if single {
                Spaces::ALL
            } else {
                Spaces::TYPE.or(Spaces::VALUE)
            };
            self.mention(found.path, spaces, Writing::Tokens, found.line);
        }
    }

    /// Reads what stands inside an item or a closure, in which these generic parameters exist.
    fn with_generics(&mut self, generics: &syn::Generics, read: impl FnOnce(&mut Self)) {
        let before = self.generics.len();
        for parameter in &generics.params {
            match parameter {
                syn::GenericParam::Type(p) => self.generics.push(p.ident.to_string()),
                syn::GenericParam::Const(p) => self.generics.push(p.ident.to_string()),
                syn::GenericParam::Lifetime(_) => {}
            }
        }
        read(self);
        self.generics.truncate(before);
    }

    /// Reads a function, whose patterns bind variables.
    fn with_variables(&mut self, found: HashSet<String>, read: impl FnOnce(&mut Self)) {
        let outer = self.variables.clone();
        self.variables.extend(found);
        read(self);
        self.variables = outer;
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            // Read when they were declared.
            Item::Use(_) | Item::Mod(_) | Item::ExternCrate(_) => {}
            Item::Fn(f) => {
                self.with_generics(&f.sig.generics, |reader| visit::visit_item_fn(reader, f))
            }
            Item::Impl(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_impl(reader, i))
            }
            Item::Struct(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_struct(reader, i))
            }
            Item::Enum(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_enum(reader, i))
            }
            Item::Union(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_union(reader, i))
            }
            Item::Type(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_type(reader, i))
            }
            Item::Trait(i) => {
                self.with_generics(&i.generics, |reader| visit::visit_item_trait(reader, i))
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let list: Vec<&Item> = block
            .stmts
            .iter()
            .filter_map(|s| {
                if let Stmt::Item(item) = s {
                    Some(item)
                } else {
                    None
                }
            })
            .filter(|item| !left_out(item))
            .collect();
        let outer = self.scope;
        if !list.is_empty() {
            self.scope = self.new_scope(Some(outer), false);
            for item in &list {
                self.declare(item);
            }
        }
        for statement in &block.stmts {
            match statement {
                Stmt::Item(item) if left_out(item) => {}
                statement => self.visit_stmt(statement),
            }
        }
        self.scope = outer;
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(i) => &i.attrs,
            syn::ImplItem::Fn(i) => &i.attrs,
            syn::ImplItem::Type(i) => &i.attrs,
            syn::ImplItem::Macro(i) => &i.attrs,
            _ => return,
        };
        if only_in_tests(attributes) {
            return;
        }
        match item {
            syn::ImplItem::Fn(f) => self.with_generics(&f.sig.generics, |reader| {
                reader.with_variables(items::variables(|v| v.visit_impl_item_fn(f)), |reader| {
                    visit::visit_impl_item_fn(reader, f)
                });
            }),
            item => visit::visit_impl_item(self, item),
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        let attributes = match item {
            syn::TraitItem::Const(i) => &i.attrs,
            syn::TraitItem::Fn(i) => &i.attrs,
            syn::TraitItem::Type(i) => &i.attrs,
            syn::TraitItem::Macro(i) => &i.attrs,
            _ => return,
        };
        if only_in_tests(attributes) {
            return;
        }
        match item {
            syn::TraitItem::Fn(f) => self.with_generics(&f.sig.generics, |reader| {
                let variables = items::variables(|v| v.visit_trait_item_fn(f));
                reader.with_variables(variables, |reader| visit::visit_trait_item_fn(reader, f));
            }),
            item => visit::visit_trait_item(self, item),
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !only_in_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !only_in_tests(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !only_in_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_stmt_macro(&mut self, statement: &'ast syn::StmtMacro) {
        if !only_in_tests(&statement.attrs) {
            visit::visit_stmt_macro(self, statement);
        }
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        if !only_in_tests(&value.attrs) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !only_in_tests(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Block(e) if only_in_tests(&e.attrs) => {}
            _ => visit::visit_expr(self, expression),
        }
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.read_path(path.qself.as_ref(), &path.path, Spaces::VALUE);
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        self.read_path(path.qself.as_ref(), &path.path, Spaces::TYPE);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        // A capital is a constant or a constructor; `items::variables` has the others.
        if pattern.subpat.is_none() && items::names_constant(&pattern.ident) {
            let path = Segments {
                global: false,
                names: vec![items::name(&pattern.ident)],
            };
            self.mention(
                path,
                Spaces::VALUE,
                Writing::Code,
                pattern.ident.span().start().line,
            );
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        match pattern {
            syn::Pat::TupleStruct(p) => {
                self.read_path(p.qself.as_ref(), &p.path, Spaces::VALUE);
                p.elems.iter().for_each(|element| self.visit_pat(element));
            }
            syn::Pat::Struct(p) => {
                self.read_path(p.qself.as_ref(), &p.path, Spaces::TYPE);
                p.fields.iter().for_each(|field| self.visit_pat(&field.pat));
            }
            _ => visit::visit_pat(self, pattern),
        }
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        self.read_path(expression.qself.as_ref(), &expression.path, Spaces::TYPE);
        expression
            .fields
            .iter()
            .for_each(|field| self.visit_field_value(field));
        if let Some(rest) = &expression.rest {
            self.visit_expr(rest);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.read_path(None, path, Spaces::TYPE);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.mention_path(&call.path, call.path.segments.len(), Spaces::MACRO);
        self.read_tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Meta::List(list) = &attribute.meta else {
            return;
        };
        if ["doc", "cfg", "cfg_attr", "allow", "expect", "warn", "deny"]
            .iter()
            .any(|n| list.path.is_ident(n))
        {
            return;
        }
        for found in tokens::attribute_paths(list.tokens.clone()) {
            self.mention(
                found.path,
                Spaces::TYPE.or(Spaces::VALUE),
                Writing::Tokens,
                found.line,
            );
        }
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// True for what exists in tests only, and for modules called `tests`.
fn left_out(item: &Item) -> bool {
    let named_tests = matches!(item, Item::Mod(item) if item.ident == "tests");
    named_tests || only_in_tests(items::attributes(item))
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes
        .iter()
        .find_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                Expr::Lit(syn::ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
}

/// A path without `..`, so that a file has one name however it was reached.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
