//! The packages of a repository and the files at which their crates begin.
//!
//! Integration tests have no roots here: nothing can import them.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A folder with a `Cargo.toml` that describes a package.
#[derive(Debug)]
pub(crate) struct Package {
    /// The folder, relative to the repository.
    pub folder: PathBuf,
    /// The first file of each crate, relative to the repository: library, programs, benches, examples, build script.
    pub roots: Vec<PathBuf>,
}

/// Every package below `folders`, which are relative to `repository`, in the order of their paths.
pub(crate) fn packages(repository: &Path, folders: &[PathBuf]) -> io::Result<Vec<Package>> {
    let mut found = Vec::new();
    for folder in folders {
        for manifest in files_below(&repository.join(folder), &|path| {
            path.ends_with("Cargo.toml")
        })? {
            let text = fs::read_to_string(&manifest)?;
            if text.lines().any(|line| line.trim() == "[package]") {
                let folder = manifest.parent().expect("a file lies in a folder");
                found.push(package(repository, folder, &text)?);
            }
        }
    }
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    found.dedup_by(|a, b| a.folder == b.folder);
    Ok(found)
}

/// The files below `folder` that `wanted` accepts, sorted. Hidden folders and build output are left out.
pub(crate) fn files_below(
    folder: &Path,
    wanted: &dyn Fn(&Path) -> bool,
) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    folders.push(path);
                }
            } else if wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn package(repository: &Path, folder: &Path, manifest: &str) -> io::Result<Package> {
    let mut roots: Vec<PathBuf> = named_roots(manifest)
        .into_iter()
        .map(|root| folder.join(root))
        .collect();
    for root in ["build.rs", "src/lib.rs", "src/main.rs"] {
        roots.push(folder.join(root));
    }
    for group in ["src/bin", "benches", "examples"] {
        let group = folder.join(group);
        if !group.is_dir() {
            continue;
        }
        for entry in fs::read_dir(group)? {
            let path = entry?.path();
            if path.is_dir() {
                roots.push(path.join("main.rs"));
            } else if path.extension().is_some_and(|e| e == "rs") {
                roots.push(path);
            }
        }
    }
    roots.retain(|root| root.is_file());
    let inside = |path: &Path| path.strip_prefix(repository).unwrap_or(path).to_owned();
    let mut roots: Vec<PathBuf> = roots.iter().map(|root| inside(root)).collect();
    roots.sort();
    roots.dedup();
    Ok(Package {
        folder: inside(folder),
        roots,
    })
}

/// The paths that the manifest gives for crates other than tests.
fn named_roots(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut roots = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if matches!(section, "[lib]" | "[[bin]]" | "[[bench]]" | "[[example]]")
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "path"
        {
            roots.push(value.trim().trim_matches('"').to_owned());
        }
    }
    roots
}
