//! Inputs from wherever they lie.
//!
//! - [`recordings`]: `.unfrag` files, segments, raw traces with snapshots beside them. [`snapshots`]: directories, archives,
//!   pasted text, standard input. [`host_files`]: procfs and sysfs of a host.
//! - [`moments`]: what is inspected. [`evidence`]: what is examined. [`account`](mod@account): what is accounted for.
//!   [`days`]: looks over time.

pub mod account;
pub mod days;
pub mod evidence;
pub mod host_files;
pub mod moments;
pub mod recordings;
pub mod snapshots;
