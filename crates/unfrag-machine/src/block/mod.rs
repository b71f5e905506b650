//! Disks and what stands before them.
//!
//! A [`Bio`] goes to a device, which is a disk or an encrypting layer over one. It becomes a request
//! of the disk's queue or a part of one; the elevator picks requests, the head moves, and an interrupt
//! ends it. Its end is told once, to whom [`Done`] names.
//!
//! - [`bio`]: transfers, and the table of those under way.
//! - [`cfq`]: whose turn it is, by slices.
//! - [`config`]: what devices are made of, and what goes wrong with them.
//! - `queue`: requests, merging, the elevator.
//! - `disk`: how long a request takes.
//! - [`crypt`]: the encrypting layer.
//! - [`congestion`]: waiting for a queue to become emptier.
//! - `path`: the way of a bio from its submission to its end. `stats`: what the devices did.
//! - [`hooks`]: what the owners of pages do.
//!
//! Invariant: `submitted` bios are those under way and those that are `done`.

pub mod bio;
pub mod cfq;
pub mod config;
pub(crate) mod crypt;
mod disk;
pub(crate) mod layer;
pub(crate) mod queue;
mod stats;

pub use bio::{BIO_PAGES, Bio, DeviceId, Dir, Done, IoError, PAGE_SECTORS, SECTOR};
pub use cfq::Cfq;
pub use config::{CongestionWake, CryptConfig, DiskConfig, Fault, QueueConfig};
pub use crypt::CryptStats;
pub use disk::DiskStats;
pub use layer::{BlockLayer, CongestionStats};
