//! The identity of a recording's file: its name, size and SHA-256.

use crate::error::Result;
use sha2::{Digest, Sha256};

/// The identity of a recording's file.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    pub(super) file: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Identity {
    /// Of a file of this name (without directories) that `content` gives.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(file: &str, content: &mut impl std::io::Read) -> Result<Identity> {
        let mut hash = Sha256::new();
        let mut room = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            match content.read(&mut room)? {
                0 => break,
                n => {
                    hash.update(&room[..n]);
                    bytes += n as u64;
                }
            }
        }
        let digits = hash.finalize();
        Ok(Identity {
            file: file.to_owned(),
            bytes,
            sha256: digits.iter().map(|b| format!("{b:02x}")).collect(),
        })
    }
}
