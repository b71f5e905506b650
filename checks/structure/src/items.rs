//! What single items declare: their name, namespace and visibility, the leaves of a `use` tree, the variables of a function.

use std::collections::HashSet;

use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, Fields, Ident, Item, ItemUse, UseTree, Visibility};

use crate::cfg::only_in_tests;
use crate::scope::{Binding, Declarations, Glob, Meaning, Scope, ScopeId, Segments, Spaces};

/// An identifier without `r#`.
pub(crate) fn name(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// The attributes of an item.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::ExternCrate(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::ForeignMod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::TraitAlias(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// True for what exists in tests only, and for modules called `tests`.
pub(crate) fn left_out(item: &Item) -> bool {
    let named_tests = matches!(item, Item::Mod(item) if item.ident == "tests");
    named_tests || only_in_tests(attributes(item))
}

/// The name, visibility and namespaces of an item that is no module, import or macro.
pub(crate) fn named_item(item: &Item) -> Option<(String, &Visibility, Spaces)> {
    let (ident, vis, spaces) = match item {
        Item::Const(i) => (&i.ident, &i.vis, Spaces::VALUE),
        Item::Enum(i) => (&i.ident, &i.vis, Spaces::TYPE),
        Item::Fn(i) => (&i.sig.ident, &i.vis, Spaces::VALUE),
        Item::Static(i) => (&i.ident, &i.vis, Spaces::VALUE),
        Item::Struct(i) => {
            let constructor = !matches!(i.fields, Fields::Named(_));
            (
                &i.ident,
                &i.vis,
                if constructor {
                    Spaces::TYPE.or(Spaces::VALUE)
                } else {
                    Spaces::TYPE
                },
            )
        }
        Item::Trait(i) => (&i.ident, &i.vis, Spaces::TYPE),
        Item::TraitAlias(i) => (&i.ident, &i.vis, Spaces::TYPE),
        Item::Type(i) => (&i.ident, &i.vis, Spaces::TYPE),
        Item::Union(i) => (&i.ident, &i.vis, Spaces::TYPE),
        _ => return None,
    };
    Some((name(ident), vis, spaces))
}

/// The module inside which something written in `module` with this visibility can be named.
pub(crate) fn visible_in(
    declarations: &Declarations,
    visibility: &Visibility,
    module: ScopeId,
) -> ScopeId {
    let root = ScopeId(0);
    match visibility {
        Visibility::Public(_) => root,
        Visibility::Inherited => module,
        Visibility::Restricted(restricted) => {
            let path = &restricted.path;
            if path.is_ident("crate") || path.segments[0].ident == "crate" {
                // `pub(in crate::a)`: taken as the whole crate, which can only find more.
                root
            } else {
                let mut at = module;
                for segment in &path.segments {
                    if segment.ident == "super" {
                        at = declarations.parent_module(at).unwrap_or(root);
                    }
                }
                at
            }
        }
    }
}

/// One imported path of a `use`.
pub(crate) struct Leaf {
    /// The path; what stands before the star, if it is a glob.
    pub path: Segments,
    /// The name that it gets here; none for a glob.
    pub name: Option<String>,
    /// `{self}`: only the module.
    pub module_only: bool,
    /// The line.
    pub line: usize,
}

/// Every path that a `use` imports.
pub(crate) fn use_leaves(item: &ItemUse) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    let line = item.use_token.span.start().line;
    collect_leaves(
        &item.tree,
        item.leading_colon.is_some(),
        &mut Vec::new(),
        line,
        &mut leaves,
    );
    leaves
}

fn collect_leaves(
    tree: &UseTree,
    global: bool,
    before: &mut Vec<String>,
    line: usize,
    leaves: &mut Vec<Leaf>,
) {
    let mut leaf = |ident: &Ident, as_name: &Ident| {
        let is_self = ident == "self" && !before.is_empty();
        let mut names = before.clone();
        if !is_self {
            names.push(name(ident));
        }
        let given = if is_self && as_name == "self" {
            names.last().cloned()
        } else {
            Some(name(as_name))
        };
        let line = ident.span().start().line;
        leaves.push(Leaf {
            path: Segments { global, names },
            name: given,
            module_only: is_self,
            line,
        });
    };
    match tree {
        UseTree::Path(path) => {
            before.push(name(&path.ident));
            collect_leaves(
                &path.tree,
                global,
                before,
                path.ident.span().start().line,
                leaves,
            );
            before.pop();
        }
        UseTree::Name(end) => leaf(&end.ident, &end.ident),
        UseTree::Rename(end) => leaf(&end.ident, &end.rename),
        UseTree::Glob(_) => {
            if !before.is_empty() {
                let path = Segments {
                    global,
                    names: before.clone(),
                };
                leaves.push(Leaf {
                    path,
                    name: None,
                    module_only: false,
                    line,
                });
            }
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                collect_leaves(tree, global, before, line, leaves);
            }
        }
    }
}

/// Enters an imported path into the scope that imports it.
pub(crate) fn bind_use(scope: &mut Scope, leaf: Leaf, visible_in: ScopeId) {
    match leaf.name {
        // `as _` imports a trait's methods and no name.
        Some(name) if name == "_" => {}
        Some(name) => {
            let meaning = Meaning::Import {
                path: leaf.path,
                module_only: leaf.module_only,
            };
            scope.bindings.push(Binding {
                name,
                meaning,
                visible_in,
            });
        }
        None => scope.globs.push(Glob {
            path: leaf.path,
            visible_in,
        }),
    }
}

/// True if a pattern of this name is a constant or a constructor, and binds no variable.
pub(crate) fn names_constant(ident: &Ident) -> bool {
    ident.to_string().starts_with(char::is_uppercase)
}

/// The names that patterns bind in what `walk` visits.
pub(crate) fn variables(walk: impl FnOnce(&mut Variables)) -> HashSet<String> {
    let mut found = Variables(HashSet::new());
    walk(&mut found);
    found.0
}

/// Collects the names that patterns bind.
pub(crate) struct Variables(HashSet<String>);

impl<'ast> Visit<'ast> for Variables {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if !names_constant(&pattern.ident) {
            self.0.insert(name(&pattern.ident));
        }
        visit::visit_pat_ident(self, pattern);
    }
}
