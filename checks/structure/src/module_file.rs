//! Where the file of a `mod name;` lies.

use std::path::{Component, Path, PathBuf};

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Where a `mod` declaration stands. Paths are relative to the repository.
pub(crate) struct Place<'a> {
    /// The repository.
    pub repository: &'a Path,
    /// The file that declares.
    pub file: &'a Path,
    /// The folder for the files of the declaring module's children.
    pub children: &'a Path,
    /// True inside `mod a { … }`.
    pub inline: bool,
}

/// A file that is a module.
pub(crate) struct ModuleFile {
    /// The file.
    pub path: PathBuf,
    /// The folder for the files of its children.
    pub children: PathBuf,
}

/// The file of the module `name` with these attributes; none if there is none.
pub(crate) fn module_file(
    place: &Place,
    name: &str,
    attributes: &[Attribute],
) -> Option<ModuleFile> {
    let exists = |path: &Path| place.repository.join(path).is_file();
    if let Some(given) = path_attribute(attributes) {
        let base = if place.inline {
            place.children
        } else {
            parent(place.file)
        };
        let path = without_dots(&base.join(given));
        let children = parent(&path).to_owned();
        return exists(&path).then_some(ModuleFile { path, children });
    }
    let children = place.children.join(name);
    let flat = place.children.join(format!("{name}.rs"));
    let path = if exists(&flat) {
        flat
    } else {
        children.join("mod.rs")
    };
    exists(&path).then_some(ModuleFile { path, children })
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes
        .iter()
        .find_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
}

/// A path without `..`, so that a file has one name however it was reached.
fn without_dots(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            part => result.push(part),
        }
    }
    result
}
