//! Files that a crate writes, renames or makes by itself.
//!
//! What is written for whoever asked for it goes through `unfrag_linux::output`, which decides about links, modes, and
//! what a crash leaves. A call that opens, writes or renames a file may stand in the few files that are listed here,
//! each with its reason, and in tests. `OpenOptions` is such a call even where it reads: its uses are few enough.

use std::path::{Path, PathBuf};
use std::{fs, io};

use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, UseTree};

use crate::cfg::only_in_tests;
use crate::package::{files_below, packages};

/// Files that may, and why.
const ALLOWED: &[(&str, &str)] = &[
    (
        "unfrag-linux/src/unfinished.rs",
        "the file of an output until it is complete",
    ),
    (
        "unfrag-linux/src/output.rs",
        "devices and pipes, which are written to as they stand",
    ),
    (
        "unfrag-linux/src/kernel_log/host.rs",
        "reads the kernel's log",
    ),
    (
        "unfrag-linux/src/record/session.rs",
        "the directory of segments",
    ),
    (
        "unfrag-linux/src/record/spool.rs",
        "a directory of the recorder's own",
    ),
    (
        "unfrag-linux/src/record/spool_name.rs",
        "makes that directory",
    ),
    (
        "unfrag-linux/src/record/spooler.rs",
        "reads the ring buffers",
    ),
    (
        "unfrag-linux/src/record/tracefs.rs",
        "settings of the tracer",
    ),
    (
        "unfrag-cli/src/pages.rs",
        "the directories of man pages and completions",
    ),
    (
        "unfrag-lab/src/export/exporter.rs",
        "the directories of a tree",
    ),
    (
        "unfrag-pool/src/procfs.rs",
        "a library that knows no other one, into its embedder's directory",
    ),
];

/// Type or module, and function.
const CALLS: &[(&str, &[&str])] = &[
    (
        "fs",
        &[
            "write",
            "rename",
            "copy",
            "hard_link",
            "symlink",
            "create_dir",
            "create_dir_all",
        ],
    ),
    ("File", &["create", "create_new", "options"]),
    ("OpenOptions", &["new", "default"]),
    ("DirBuilder", &["new", "default"]),
    (
        "tempfile",
        &[
            "NamedTempFile",
            "Builder",
            "tempfile",
            "tempfile_in",
            "tempdir",
            "tempdir_in",
        ],
    ),
    ("NamedTempFile", &["new", "new_in"]),
];

/// The calls of a repository's crates.
#[derive(Debug, Default)]
pub struct Writes {
    /// How many stand where they may.
    pub allowed: usize,
    /// Those that stand elsewhere: file, line, call.
    pub wrong: Vec<(PathBuf, usize, String)>,
    /// Files that may have some, and have none.
    pub unused: Vec<&'static str>,
}

impl Writes {
    /// Reads the sources of every crate in `crates`.
    ///
    /// # Errors
    /// A file that cannot be read, or is no Rust.
    pub fn read(repository: &Path) -> Result<Writes, String> {
        let mut all = Writes::default();
        let mut used = vec![false; ALLOWED.len()];
        let named = |e: io::Error| e.to_string();
        for package in packages(repository, &["crates".into()]).map_err(named)? {
            let sources = repository.join(&package.folder).join("src");
            if !sources.is_dir() {
                continue;
            }
            let wanted =
                |path: &Path| path.extension().is_some_and(|e| e == "rs") && !is_test(path);
            for path in files_below(&sources, &wanted).map_err(named)? {
                let file = path.strip_prefix(repository).unwrap_or(&path).to_owned();
                let text = fs::read_to_string(&path).map_err(named)?;
                let calls = calls(&text).map_err(|e| format!("{}: {e}", file.display()))?;
                match ALLOWED.iter().position(|(f, _)| file.ends_with(f)) {
                    Some(n) => {
                        used[n] |= !calls.is_empty();
                        all.allowed += calls.len();
                    }
                    None => {
                        let found = calls
                            .into_iter()
                            .map(|(line, call)| (file.clone(), line, call));
                        all.wrong.extend(found);
                    }
                }
            }
        }
        let unused = ALLOWED.iter().zip(used).filter(|(_, used)| !used);
        all.unused = unused.map(|((file, _), _)| *file).collect();
        Ok(all)
    }
}

/// A module of tests in a file of its own.
fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|name| name == "tests")
        || path.components().any(|c| c.as_os_str() == "tests")
}

/// The calls in a source outside of tests, each with its line.
pub fn calls(source: &str) -> syn::Result<Vec<(usize, String)>> {
    let mut finder = Finder::default();
    finder.visit_file(&syn::parse_file(source)?);
    Ok(finder.found)
}

#[derive(Default)]
struct Finder {
    found: Vec<(usize, String)>,
}

impl Finder {
    fn look(&mut self, of: &str, call: &str, line: usize) {
        let is_one = |(name, calls): &(&str, &[&str])| *name == of && calls.contains(&call);
        if CALLS.iter().any(is_one) {
            self.found.push((line, format!("{of}::{call}")));
        }
    }

    /// A function that is imported by its own name is called by that alone.
    fn look_at_import(&mut self, tree: &UseTree, of: &str) {
        match tree {
            UseTree::Path(path) => self.look_at_import(&path.tree, &path.ident.to_string()),
            UseTree::Group(group) => {
                group
                    .items
                    .iter()
                    .for_each(|tree| self.look_at_import(tree, of));
            }
            UseTree::Name(name) => {
                // A type is used by a path, which is looked at by itself.
                let call = name.ident.to_string();
                if call.starts_with(char::is_lowercase) {
                    self.look(of, &call, name.ident.span().start().line);
                }
            }
            UseTree::Rename(name) => {
                let call = name.ident.to_string();
                self.look(of, &call, name.ident.span().start().line);
            }
            UseTree::Glob(_) => {}
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        Item::Const(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        if only_in_tests(attributes(item)) {
            return;
        }
        if let Item::Use(i) = item {
            self.look_at_import(&i.tree, "");
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(f) = item
            && only_in_tests(&f.attrs)
        {
            return;
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|s| &s.ident).collect();
        for pair in names.windows(2) {
            self.look(
                &pair[0].to_string(),
                &pair[1].to_string(),
                pair[1].span().start().line,
            );
        }
        visit::visit_path(self, path);
    }
}
