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

pub(crate) use bytes::Bytes;
pub(crate) use columns::{Columns, Common};
