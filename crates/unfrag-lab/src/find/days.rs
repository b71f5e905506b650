//! Looks of days, and what they foretell.
//!
//! Invariant: this host as it is now is one look, of which nothing is foretold.

use super::evidence::is_own;
use super::snapshots::{name, snapshots};
use crate::doctor::gate::Need;
use crate::error::{Error, Result};
use crate::forecast::{Forecast, Looks, forecast};
use std::path::Path;
use unfrag_linux::segments::{Covered, Window};

/// When a need of blocks fails, by the looks that an input holds.
///
/// # Errors
/// If it is this host, cannot be read, has no dates, or the need is of blocks that its host does not make.
pub fn foretold(
    path: &Path,
    window: &Window,
    need: Need,
    page_size: Option<u64>,
    seed: u64,
) -> Result<(Forecast, Option<Covered>)> {
    if is_own(path) {
        return Err(
            Error::question("this host as it is now is one look, which tells no trend").help(
                "give looks of some days: copies of /proc in directories that are named by their dates, or what unfrag record --keep made",
            ),
        );
    }
    let held = snapshots(path, window)?;
    let looks = Looks {
        snapshots: &held.snapshots,
        not_read: &held.not_read,
        clock: held.clock,
        page_size,
    };
    let found = forecast(looks, &name(path), need, seed).map_err(|e| e.about(path))?;
    Ok((found, held.covered))
}
