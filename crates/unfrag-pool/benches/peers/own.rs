//! What a work drives: one thread's way into an allocator.

use unfrag::MigrateType;

/// One thread's way into an allocator. Blocks are numbered by their first frame.
pub trait Own: Send {
    /// Takes a block of `2^order` frames.
    fn take(&mut self, order: u8, mt: MigrateType) -> Option<u32>;
    /// Gives it back.
    fn give(&mut self, frame: u32, order: u8, mt: MigrateType);
    /// Whether frames can be told apart and taken singly, so that questions about blocks make sense.
    const PLACES: bool = true;
}

/// What is done with an allocator that has just been made, and all of whose frames are free: one `Own` a thread.
pub trait Visit {
    fn visit<O: Own>(&mut self, owns: Vec<O>);
}
