//! What the files of one crate declare: scopes, the names bound in each, and every path that is written.
//!
//! A scope is a module, or a block with items of its own. Nothing is resolved here.

use std::path::PathBuf;

/// A scope of a crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ScopeId(pub usize);

/// A file of a crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId(pub usize);

/// A set of Rust's namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Spaces(u8);

impl Spaces {
    /// Types, traits, modules.
    pub const TYPE: Self = Self(1);
    /// Functions, constants, statics, constructors.
    pub const VALUE: Self = Self(2);
    /// Macros.
    pub const MACRO: Self = Self(4);
    /// Every namespace.
    pub const ALL: Self = Self(7);

    /// The namespaces, one by one.
    pub fn each(self) -> impl Iterator<Item = Self> {
        [Self::TYPE, Self::VALUE, Self::MACRO]
            .into_iter()
            .filter(move |space| space.meets(self))
    }

    /// What is in either.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if something is in both.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The segments of a path, without generic arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Segments {
    /// `::std::fmt` rather than `std::fmt`: the first segment is a crate.
    pub global: bool,
    /// The names, `crate`, `self` and `super` among them.
    pub names: Vec<String>,
}

/// What a name in a scope stands for.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// An item that the scope's file defines.
    Item(Spaces),
    /// A module.
    Module(ScopeId),
    /// An import. `module_only` is `use a::{self}`, which imports no function of that name.
    Import {
        /// The imported path.
        path: Segments,
        /// Only the type namespace is imported.
        module_only: bool,
    },
}

/// A name in a scope.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub meaning: Meaning,
    /// The module inside which it can be named.
    pub visible_in: ScopeId,
}

/// `use path::*`.
#[derive(Debug, Clone)]
pub(crate) struct Glob {
    /// What stands before the star.
    pub path: Segments,
    /// The module inside which the imported names can be named.
    pub visible_in: ScopeId,
}

/// A module, or a block with items of its own.
#[derive(Debug)]
pub(crate) struct Scope {
    /// The file in which it is written.
    pub file: FileId,
    /// The scope around it.
    pub parent: Option<ScopeId>,
    /// False for a block.
    pub is_module: bool,
    /// The names bound in it, imports included. A name can have several meanings under different `cfg`.
    pub bindings: Vec<Binding>,
    /// Its imports of everything.
    pub globs: Vec<Glob>,
    /// Names that the expansion of a macro in this scope may define.
    pub expanded: Vec<String>,
}

/// How a path is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    /// In a `use`.
    Import,
    /// In code.
    Code,
    /// In the tokens of a macro or an attribute, where not everything that looks like a path is one.
    Tokens,
    /// Before the star of a `use` that other modules can see.
    PublicGlob,
}

/// A path that a file writes.
#[derive(Debug, Clone)]
pub(crate) struct Mention {
    /// Where it is written.
    pub scope: ScopeId,
    /// The path.
    pub path: Segments,
    /// Where its last name is looked up.
    pub spaces: Spaces,
    /// How it is written.
    pub writing: Writing,
    /// The line in the file.
    pub line: usize,
}

/// A file of a crate.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Its path, relative to the repository.
    pub path: PathBuf,
    /// True if it defines something itself, and not only modules and imports.
    pub defines: bool,
}

/// The declarations of one crate. The first scope is the root module.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    /// The files, the root first.
    pub files: Vec<SourceFile>,
    /// Modules and blocks.
    pub scopes: Vec<Scope>,
    /// Every path that is written outside tests.
    pub mentions: Vec<Mention>,
}

impl Declarations {
    /// The scope with this number.
    pub fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0]
    }

    /// The module around a scope: itself, if it is one.
    pub fn module(&self, mut id: ScopeId) -> ScopeId {
        while !self.scope(id).is_module {
            id = self.scope(id).parent.expect("a block lies in a module");
        }
        id
    }

    /// The module around a module; none around the root.
    pub fn parent_module(&self, module: ScopeId) -> Option<ScopeId> {
        self.scope(module).parent.map(|parent| self.module(parent))
    }

    /// True if `inner` is `outer` or lies in it.
    pub fn lies_in(&self, inner: ScopeId, outer: ScopeId) -> bool {
        let mut scope = Some(inner);
        while let Some(id) = scope {
            if id == outer {
                return true;
            }
            scope = self.scope(id).parent;
        }
        false
    }
}
