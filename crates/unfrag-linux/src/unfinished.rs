//! Files that this process is still writing, under names of their own.
//!
//! Such a file is made exclusively under a random name that begins with a dot, and gets the name that was asked for
//! when it is complete. Whoever ends the process at a signal removes those that are left with [`remove_all`].
//!
//! Invariant: the list is locked while a file is made, renamed or removed, so at any moment that the lock is free it
//! holds exactly the files of this process that lie under such names. Only SIGKILL leaves one behind.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

static ALL: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn all() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // The set is whole between any two calls on it.
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is being written.
pub(crate) struct Unfinished {
    /// `None` once it has its name.
    file: Option<NamedTempFile>,
}

impl Unfinished {
    /// Makes one in a directory, with this mode less the umask.
    pub fn create(dir: &Path, mode: u32) -> io::Result<Unfinished> {
        let mut all = all();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(mode);
        // The error of the system alone; the crate's own would name the random name.
        let mut why = None;
        let made = tempfile::Builder::new()
            .prefix(".unfrag-")
            .suffix(".tmp")
            .make_in(dir, |path| {
                options.open(path).map_err(|e| {
                    let kind = e.kind();
                    why = Some(e);
                    kind.into()
                })
            });
        let file = made.map_err(|e| why.take().unwrap_or(e))?;
        all.insert(file.path().to_owned());
        Ok(Unfinished { file: Some(file) })
    }

    /// The file; `None` if it has its name.
    pub fn file(&mut self) -> Option<&mut File> {
        self.file.as_mut().map(NamedTempFile::as_file_mut)
    }

    /// Gives the file its name, in place of whatever bears it.
    pub fn put_at(mut self, to: &Path) -> io::Result<()> {
        let mut all = all();
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        all.remove(file.path());
        // The error holds the file, and removes it.
        file.persist(to).map(drop).map_err(|e| e.error)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let mut all = all();
            all.remove(file.path());
            drop(file);
        }
    }
}

/// Removes the files that are being written, then calls `end`, which ends the process: until then no other file can be
/// made, and none gets its name.
pub(crate) fn remove_all(end: impl FnOnce()) {
    let mut all = all();
    while let Some(path) = all.pop_first() {
        let _ = fs::remove_file(path);
    }
    end();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let items = fs::read_dir(dir).unwrap().map(|i| i.unwrap().file_name());
        items.map(|n| n.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_file_is_listed_as_long_as_it_has_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let listed = || all().iter().filter(|p| p.starts_with(dir.path())).count();
        let one = Unfinished::create(dir.path(), 0o600).unwrap();
        let two = Unfinished::create(dir.path(), 0o600).unwrap();
        assert_eq!((listed(), names(dir.path()).len()), (2, 2));
        one.put_at(&dir.path().join("one")).unwrap();
        assert_eq!(listed(), 1);
        drop(two);
        assert_eq!(listed(), 0);
        assert_eq!(names(dir.path()), ["one"]);
        let failed = Unfinished::create(dir.path(), 0o600).unwrap();
        assert!(failed.put_at(&dir.path().join("no/such")).is_err());
        assert_eq!(listed(), 0);
        assert_eq!(names(dir.path()), ["one"]);
        let e = Unfinished::create(&dir.path().join("no"), 0o600).err();
        assert!(e.unwrap().raw_os_error().is_some());
    }
}
