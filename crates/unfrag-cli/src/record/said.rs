//! What recorders say at their end.

use serde::Serialize;
use unfrag_linux::record::Untaken;

/// A file that no snapshot has.
#[derive(Debug, Serialize)]
pub(super) struct NotTaken {
    /// Its name.
    pub file: String,
    /// The reason.
    pub why: String,
}

/// The files that no snapshot has.
pub(super) fn not_taken(untaken: &[Untaken]) -> Vec<NotTaken> {
    let one = |u: &Untaken| NotTaken {
        file: u.file.clone(),
        why: u.why.clone(),
    };
    untaken.iter().map(one).collect()
}
