//! Disks and their request queues, as state.
//!
//! A [`Bio`] goes to a device: a disk, or an encrypting layer over one. It becomes a request of the disk's
//! queue, or a part of one. The elevator picks requests, the disk serves one at a time, and an interrupt
//! ends it. The code that moves bios along this way is in [`kernel`](crate::kernel).
//!
//! - [`config`]: what devices are made of, and their faults.
//! - [`bio`]: transfers, and the table of those under way.
//! - [`cfq`]: slices of the disk's time for each class of requests.
//! - `queue`: requests, merging, the elevator.
//! - `disk`: how long a request takes.
//! - `crypt`: the queues of an encrypting layer.
//! - `layer`: all devices of a machine. `stats`: their counters.

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
