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
pub mod congestion;
pub mod crypt;
mod disk;
pub mod hooks;
mod path;
mod queue;
mod stats;
#[cfg(test)]
mod tests;

pub use bio::{BIO_PAGES, Bio, Dir, Done, PAGE_SECTORS, SECTOR};
pub use cfq::Cfq;
pub use config::{CongestionWake, CryptConfig, DiskConfig, Fault, QueueConfig};
pub use congestion::CongestionStats;
pub use crypt::CryptStats;
pub use disk::DiskStats;

use crate::config::MachineConfig;
pub(crate) use path::{interrupt, start, unplug, waited};

use bio::Flights;
use crypt::Crypt;
use disk::Disk;
use path::{finish, to_disk};
use queue::{ASYNC, SYNC};
use std::collections::BTreeMap;

/// A device: the disks of the machine in their order, then its encrypting layers in theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u8);

/// A transfer that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoError;

impl std::fmt::Display for IoError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("the device could not transfer these sectors")
    }
}

impl std::error::Error for IoError {}

/// The devices of a machine.
pub struct Block {
    disks: Vec<Disk>,
    crypts: Vec<Crypt>,
    flights: Flights,
    only_leaving: bool,
    congestion: CongestionStats,
    /// Ends of transfers that nobody has asked for yet, by token.
    ended: BTreeMap<u64, bool>,
    tokens: u64,
    /// Bios submitted.
    submitted: u64,
    /// Bios whose end was told.
    done: u64,
}

impl Block {
    /// Idle devices.
    ///
    /// # Panics
    /// If there are more than 255, or an encrypting layer is over a disk that is not there.
    pub fn new(config: &MachineConfig) -> Block {
        assert!(
            config.disks.len() + config.crypts.len() <= 255,
            "at most 255 devices"
        );
        for c in &config.crypts {
            let n = config.disks.len();
            assert!(
                c.disk < n,
                "layer {} is over disk {} of {n}",
                c.name,
                c.disk
            );
        }
        Block {
            disks: config
                .disks
                .iter()
                .map(|d| Disk::new(d, config.seed))
                .collect(),
            crypts: config.crypts.iter().map(Crypt::new).collect(),
            flights: Flights::default(),
            only_leaving: config.congestion_wake == CongestionWake::Leaving,
            congestion: CongestionStats::default(),
            ended: BTreeMap::new(),
            tokens: 0,
            submitted: 0,
            done: 0,
        }
    }

    /// The device of this name.
    pub fn device(&self, name: &str) -> Option<DeviceId> {
        let disks = self.disks.iter().map(|d| &d.config.name);
        let mut names = disks.chain(self.crypts.iter().map(|c| &c.config.name));
        names.position(|n| n == name).map(|i| DeviceId(i as u8))
    }

    /// Disk that a device is, or is over.
    fn disk_index(&self, device: DeviceId) -> usize {
        let i = usize::from(device.0);
        match i.checked_sub(self.disks.len()) {
            None => i,
            Some(crypt) => self.crypts[crypt].config.disk,
        }
    }

    /// Sectors of a device.
    pub fn sectors(&self, device: DeviceId) -> u64 {
        let all = self.disks[self.disk_index(device)].config.sectors;
        match usize::from(device.0).checked_sub(self.disks.len()) {
            None => all,
            Some(crypt) => all.saturating_sub(self.crypts[crypt].config.first_sector),
        }
    }

    /// Whether a device is congested in a class; for an encrypting layer, whether its disk is.
    /// `spec: linux-mm 4.4`
    pub fn congested(&self, device: DeviceId, sync: bool) -> bool {
        let class = if sync { SYNC } else { ASYNC };
        self.disks[self.disk_index(device)].queue.congested[class]
    }

    /// Requests of a class that a device's disk has, waiting or in service.
    pub fn requests(&self, device: DeviceId, sync: bool) -> u32 {
        let class = if sync { SYNC } else { ASYNC };
        self.disks[self.disk_index(device)].queue.count[class]
    }

    /// Bios under way.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Bios submitted so far, and bios whose end was told so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.submitted, self.done)
    }

    /// Something goes wrong with the disk of a device.
    pub fn inject(&mut self, device: DeviceId, fault: Fault) {
        let i = self.disk_index(device);
        self.disks[i].config.faults.push(fault);
    }

    /// A number for [`Done::User`] that nobody else has.
    pub fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    /// How the transfer of this token ended, if it has; once.
    pub fn take_ended(&mut self, token: u64) -> Option<Result<(), IoError>> {
        let failed = self.ended.remove(&token)?;
        Some(if failed { Err(IoError) } else { Ok(()) })
    }
}
