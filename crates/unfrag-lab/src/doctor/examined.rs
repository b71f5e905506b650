//! An examined host: its diagnosis, and the pageblocks that a map is drawn from.

use super::diagnosis::Diagnosis;
use super::zone_blocks::ZoneBlocks;
use std::sync::Arc;

/// A diagnosis, and the blocks that a map is drawn from.
#[derive(Clone, Debug)]
pub struct Examined {
    /// What was found.
    pub diagnosis: Diagnosis,
    /// Each zone's blocks, in the order of [`Diagnosis::zones`]; empty without page flags.
    pub blocks: Vec<Arc<ZoneBlocks>>,
}
