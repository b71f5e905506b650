//! How far a file was read.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a file was read, for whoever watches.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Bytes of the file that were read.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Tells a [`Meter`] what is read.
pub(crate) struct Metered<R>(pub R, pub Meter);

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.read(room)?;
        self.1.add(n as u64);
        Ok(n)
    }
}
