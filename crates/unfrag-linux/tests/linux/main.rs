//! The tests of the readers and the recorder, as one program, so that it is linked once.

mod common;
mod file_robustness;
mod file_roundtrip;
mod outputs;
mod paste;
mod procfs_formats;
mod procfs_kernels;
mod procfs_robustness;
mod record_spool;
mod redact;
mod slabinfo_of_caches;
mod snapshots_kinds;
mod snapshots_pasted;
mod snapshots_sources;
mod trace_batches;
mod trace_files;
mod trace_recordings;
mod trace_robustness;
mod trace_support;
