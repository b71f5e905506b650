//! Readers and writers of procfs text.
pub(crate) mod scan;
