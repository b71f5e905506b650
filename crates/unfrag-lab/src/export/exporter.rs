//! The writer of trees: one directory a snapshot, as a replay reaches it.
//!
//! Invariant: nothing is written outside the directory that was given, nothing after the first error, and no link below
//! that directory is followed. What is made is for its owner alone, as what was recorded is.

use super::tree::tree;
use crate::error::{Error, Result};
use crate::replay::Watch;
use crate::replay::model::ReplayHost;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use unfrag_eras::Manager;
use unfrag_linux::output::{self, Holds};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::target::{self, Target};

/// Writes the model's state at each snapshot of a replay.
#[derive(Debug)]
pub struct Exporter {
    directory: PathBuf,
    by_kernel: bool,
    trees: u64,
    failure: Option<Error>,
}

impl Exporter {
    /// Into `directory/SNAPSHOT`, or, for several kernels, `directory/KERNEL/SNAPSHOT`.
    pub fn new(directory: &Path, several_kernels: bool) -> Exporter {
        Exporter {
            directory: directory.to_owned(),
            by_kernel: several_kernels,
            trees: 0,
            failure: None,
        }
    }

    /// Number of trees written.
    ///
    /// # Errors
    /// The first error; nothing was written after it.
    pub fn finish(self) -> Result<u64> {
        self.failure.map_or(Ok(self.trees), Err)
    }

    fn export(&self, kernel: &str, snap: &Snapshot, m: &Manager<'_, ReplayHost>) -> Result<()> {
        let mut below = PathBuf::new();
        if self.by_kernel {
            below.push(kernel);
        }
        below.push(directory_name(&snap.name)?);
        let files = tree(kernel, snap, m, &m.host().cpus)?;
        let named = |e: io::Error, path: &Path| unfrag_linux::Error::from(e).in_file(path);
        let mut directory =
            target::directory(&self.directory).map_err(|e| named(e, &self.directory))?;
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(&directory)
            .map_err(|e| named(e, &directory))?;
        for part in &below {
            directory.push(part);
            make(&directory).map_err(|e| named(e, &directory))?;
        }
        for (name, content) in &files.0 {
            let path = directory.join(name);
            let to = Target::File(path.clone());
            output::write(&to, content, Holds::Copies).map_err(|e| named(e, &path))?;
        }
        Ok(())
    }
}

/// Makes a directory, unless it is there. A link to one is none: it may lead anywhere.
fn make(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            match fs::symlink_metadata(directory)?.is_dir() {
                true => Ok(()),
                false => Err(io::Error::other("is there already, and is no directory")),
            }
        }
        made => made,
    }
}

impl Watch for Exporter {
    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, manager: &Manager<'_, ReplayHost>) {
        if self.failure.is_some() {
            return;
        }
        match self.export(kernel, snap, manager) {
            Ok(()) => self.trees += 1,
            Err(e) => self.failure = Some(e),
        }
    }
}

/// The directory of a snapshot, relative to the one that holds all trees; it must not lead out of it.
fn directory_name(snapshot: &str) -> Result<PathBuf> {
    // The name of a snapshot whose directory has no name of its own.
    if snapshot == "." {
        return Ok("snapshot".into());
    }
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\0', '\\']);
    if snapshot.split('/').all(is_plain) {
        Ok(snapshot.into())
    } else {
        Err(Error::contradiction(format!(
            "the snapshot's name {snapshot:?} cannot be the name of a directory"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_stays_in_its_directory() {
        for bad in ["..", "../x", "/etc", "a/../b", "", "a//b"] {
            assert!(directory_name(bad).is_err(), "{bad}");
        }
        assert_eq!(directory_name("s0001").unwrap(), Path::new("s0001"));
        assert_eq!(directory_name("a/b").unwrap(), Path::new("a/b"));
        assert_eq!(directory_name(".").unwrap(), Path::new("snapshot"));
    }
}
