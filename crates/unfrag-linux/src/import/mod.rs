//! What the trace readers share: bytes read with bounds, event format files, columns being filled.
//!
//! Invariant: nothing here trusts a length that it read; every slice is checked against what is
//! left, and every decompression against a cap.

pub(crate) mod bytes;
pub(crate) mod columns;
pub(crate) mod decode;
pub(crate) mod format;
pub(crate) mod intern;
pub(crate) mod unpack;

/// Most CPUs of a host; Linux allows 8,192. A larger number is damage.
pub(crate) const MAX_CPUS: u32 = u16::MAX as u32;

pub(crate) use bytes::Bytes;
pub(crate) use columns::{Columns, Common};
