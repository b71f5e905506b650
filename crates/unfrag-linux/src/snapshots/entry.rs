//! A file that a source holds.
//!
//! Invariant: the directory's components are relative to the source's root.

use crate::content::Content;
use std::path::PathBuf;

/// A file.
pub(super) struct Entry {
    /// Components of its directory's path, from the source's root on.
    pub directory: Vec<String>,
    /// Its name, without what packing adds, such as `.gz`.
    pub name: String,
    /// When it was changed, in nanoseconds since 1970.
    pub modified: Option<u64>,
    /// Its content, unpacked.
    pub content: Content,
}

impl Entry {
    /// Its content as text; nothing of a file that is packed.
    pub fn text(&self) -> &[u8] {
        self.content.plain().unwrap_or_default()
    }

    /// Its path inside the source.
    pub fn path(&self) -> PathBuf {
        self.directory.iter().collect::<PathBuf>().join(&self.name)
    }
}
