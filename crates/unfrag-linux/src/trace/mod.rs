//! Recordings of a tracer: the formats of trace-cmd, of perf and of the kernel's own text.
//!
//! - `bytes`, `source`, `unpack`: untrusted bytes, read with bounds and decompressed with caps. `meter`: how many were read.
//! - `event`: from event format files and raw records to columns.
//! - [`tracedat`], [`perfdata`], [`text`]: one reader for each format.
//! - [`open`](mod@open): the reader for a file, chosen by its first bytes.
//!
//! Invariant: no reader trusts a length that it read; every slice is checked against what is left,
//! and every decompression against a cap.

pub(crate) mod bytes;
pub(crate) mod event;
pub(crate) mod meter;
pub mod open;
pub mod perfdata;
pub(crate) mod source;
pub mod text;
pub mod tracedat;
pub(crate) mod unpack;
