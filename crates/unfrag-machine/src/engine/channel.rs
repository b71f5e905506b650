//! What tasks wait for.
//!
//! A channel is a name, not an object. Tasks wait on it and others wake it; it takes no memory while no
//! task waits. Wake-ups are not stored: waking a channel on which no task waits does nothing.

/// A thing to wait for: a kind and a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel(u64);

impl Channel {
    /// Channel `key` (below 2^48) of a kind. Kinds below [`FIRST_FREE`](Channel::FIRST_FREE) are the
    /// machine's own.
    pub const fn new(kind: u16, key: u64) -> Channel {
        debug_assert!(key < 1 << 48);
        Channel((kind as u64) << 48 | key)
    }
    pub(super) const fn bits(self) -> u64 {
        self.0
    }
    /// Its kind.
    pub const fn kind(self) -> u16 {
        (self.0 >> 48) as u16
    }
    /// Its key.
    pub const fn key(self) -> u64 {
        self.0 & ((1 << 48) - 1)
    }

    /// Kind: a task ends.
    pub const EXIT: u16 = 1;
    /// First kind that the machine does not use for itself.
    pub const FIRST_FREE: u16 = 256;
}
