//! What a first screen is asked for.

use super::gate::answer::Room;

/// What the diagnosis was asked of.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Whether it is of this host, as it is now; a recording or a copy is of another moment.
    pub is_now: bool,
    /// The command that asked, as a shell takes it.
    pub command: &'a str,
    /// Whether all tables stand below.
    pub has_tables: bool,
    /// How many huge pages there are after each means, for certain and at most; `None` where the files do not tell.
    pub rooms: Option<[Room; 4]>,
}
