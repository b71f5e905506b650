//! Events of any format: what their format files say, and the columns that they fill.
//!
//! - `format`: event format files.
//! - `intern`: tasks and strings by index.
//! - `columns`: the events of a recording while they are being read.
//! - `decode`: from a raw record to a row of its table; `stack`: of a kernel stack, with the names in `symbols`.

pub(crate) mod batches;
pub(crate) mod columns;
pub(crate) mod decode;
pub(crate) mod format;
pub(crate) mod intern;
pub(crate) mod stack;
pub(crate) mod symbols;
