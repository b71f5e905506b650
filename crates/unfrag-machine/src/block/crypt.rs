//! The state of an encrypting layer: its queues and counters.

use super::bio::BioQueue;
use super::config::CryptConfig;
use crate::engine::Nanos;

/// Counters of an encrypting layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CryptStats {
    /// Pages decrypted.
    pub pages_read: u64,
    /// Pages encrypted.
    pub pages_written: u64,
    /// Largest length of its queue.
    pub longest_line: u32,
    /// Time in which the thread that encrypts waited for the disk's queue.
    pub blocked: Nanos,
}

/// An encrypting layer.
pub(crate) struct Crypt {
    pub config: CryptConfig,
    /// Bios to encrypt or decrypt.
    pub work: BioQueue,
    /// Bios for the disk.
    pub io: BioQueue,
    pub stats: CryptStats,
}

impl Crypt {
    pub fn new(config: &CryptConfig) -> Crypt {
        Crypt {
            config: config.clone(),
            work: BioQueue::EMPTY,
            io: BioQueue::EMPTY,
            stats: CryptStats::default(),
        }
    }
}
