//! What devices are made of.

use super::bio::SECTOR;
use super::cfq::Cfq;
use crate::engine::{MS, Nanos, SEC, US};

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// Its name.
    pub name: String,
    /// Sectors.
    pub sectors: u64,
    /// Bytes a second under the head.
    pub bandwidth: u64,
    /// Seek to the next track.
    pub seek_min: Nanos,
    /// Seek over the whole disk.
    pub seek_max: Nanos,
    /// One rotation; 0 for a disk that does not rotate.
    pub rotation: Nanos,
    /// Time of the controller for each request.
    pub overhead: Nanos,
    /// Its request queue.
    pub queue: QueueConfig,
    /// Its faults.
    pub faults: Vec<Fault>,
}

impl DiskConfig {
    /// A desktop disk of 2008: 7,200 turns a minute, 80 MB/s, 0.8 ms from track to track and 18 ms
    /// over all of it (a third of the way takes 10.7 ms).
    pub fn desktop(name: impl Into<String>, bytes: u64) -> DiskConfig {
        DiskConfig {
            name: name.into(),
            sectors: bytes / SECTOR,
            bandwidth: 80_000_000,
            seek_min: 800 * US,
            seek_max: 18 * MS,
            rotation: 60 * SEC / 7_200,
            overhead: 100 * US,
            queue: QueueConfig::default(),
            faults: Vec::new(),
        }
    }
}

/// A request queue and its elevator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Limit of the requests of each class: sync (reads, and writes that a task waits for) and async.
    /// `spec: 4.4`
    pub nr_requests: u32,
    /// Bytes up to which contiguous bios become one request.
    pub max_request: u64,
    /// How long a queue that was empty gathers requests before it starts.
    pub plug: Nanos,
    /// Requests in one direction before another class or an overdue request is considered.
    pub batch: u32,
    /// Batches of sync requests that may go before async ones that wait.
    pub async_starved: u32,
    /// Age at which a sync request goes first in its class.
    pub sync_expire: Nanos,
    /// Age at which an async request goes before all others.
    pub async_expire: Nanos,
    /// CFQ's slices for each class, in place of batches.
    pub cfq: Option<Cfq>,
    /// Whether the disk takes several requests at once. They are served one after the other; only CFQ's
    /// rules depend on it.
    pub ncq: bool,
}

impl Default for QueueConfig {
    fn default() -> Self {
        QueueConfig {
            nr_requests: 128,
            max_request: 128 << 10,
            plug: 0,
            batch: 16,
            async_starved: 2,
            sync_expire: 500 * MS,
            async_expire: 5 * SEC,
            cfq: None,
            ncq: false,
        }
    }
}

impl QueueConfig {
    /// Requests of a class from which it is congested. `spec: 4.4`
    pub const fn congestion_on(&self) -> u32 {
        self.nr_requests - self.nr_requests / 8 + 1
    }
    /// Requests of a class below which its congestion ends. `spec: 4.4`
    pub const fn congestion_off(&self) -> u32 {
        (self.nr_requests - self.nr_requests / 8 - self.nr_requests / 16).saturating_sub(1)
    }
}

/// An encrypting layer over a disk: one thread with one queue, through which reads pass after the disk
/// and writes before it. `spec: 4.4`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CryptConfig {
    /// Its name.
    pub name: String,
    /// The disk, counted through the disks of the machine.
    pub disk: usize,
    /// First sector of the disk that belongs to it.
    pub first_sector: u64,
    /// Whether a thread of its own hands writes to the disk (4.0 and later); else the one that
    /// encrypts does, and everything waits behind it when the disk's queue is full.
    pub io_thread: bool,
}

/// Which wake-ups end a wait for congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CongestionWake {
    /// Each request that completes while its class has fewer than the off threshold.
    #[default]
    BelowThreshold,
    /// Only the request whose completion ends the congestion of its class.
    Leaving,
}

/// A fault of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No request completes in this time.
    Stall {
        /// Begin.
        from: Nanos,
        /// End; what was due meanwhile completes now.
        to: Nanos,
    },
    /// Bios that touch these sectors and complete in this time fail.
    Fail {
        /// Begin.
        from: Nanos,
        /// End.
        to: Nanos,
        /// First sector.
        first_sector: u64,
        /// The one after the last.
        end_sector: u64,
    },
}
