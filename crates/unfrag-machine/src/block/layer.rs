//! The block layer's state: the devices and the bios under way.
//!
//! Invariant: `submitted` bios are those under way and those that are `done`.

use super::bio::{ASYNC, SYNC};
use super::bio::{DeviceId, Flights, IoError};
use super::config::{CongestionWake, CryptConfig, DiskConfig, Fault};
use super::crypt::Crypt;
use super::disk::Disk;
use crate::engine::Nanos;
use std::collections::BTreeMap;

/// Counters of the waits for congestion, by class (0 async, 1 sync).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongestionStats {
    /// Waits.
    pub waits: [u64; 2],
    /// Waits that ended by their timeout.
    pub timeouts: [u64; 2],
    /// Time in them, over all tasks.
    pub waited: [Nanos; 2],
}

/// The devices of a machine.
pub struct BlockLayer {
    pub(crate) disks: Vec<Disk>,
    pub(crate) crypts: Vec<Crypt>,
    pub(crate) flights: Flights,
    pub(crate) only_leaving: bool,
    pub(crate) congestion: CongestionStats,
    /// Ends of transfers that their tasks have not taken yet, by token.
    pub(crate) ended: BTreeMap<u64, bool>,
    pub(crate) tokens: u64,
    /// Bios submitted.
    pub(crate) submitted: u64,
    /// Bios that have ended.
    pub(crate) done: u64,
}

impl BlockLayer {
    /// Idle devices.
    ///
    /// # Panics
    /// If there are more than 255, or an encrypting layer is over a disk that is not there.
    pub fn new(
        disks: &[DiskConfig],
        crypts: &[CryptConfig],
        wake: CongestionWake,
        seed: u64,
    ) -> BlockLayer {
        assert!(disks.len() + crypts.len() <= 255, "at most 255 devices");
        for c in crypts {
            let n = disks.len();
            assert!(
                c.disk < n,
                "layer {} is over disk {} of {n}",
                c.name,
                c.disk
            );
        }
        BlockLayer {
            disks: disks.iter().map(|d| Disk::new(d, seed)).collect(),
            crypts: crypts.iter().map(Crypt::new).collect(),
            flights: Flights::default(),
            only_leaving: wake == CongestionWake::Leaving,
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

    /// Number of the disk that a device is, or is over.
    pub(crate) fn disk_index(&self, device: DeviceId) -> usize {
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
    /// `spec: 4.4`
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

    /// Bios submitted so far, and bios that have ended.
    pub fn totals(&self) -> (u64, u64) {
        (self.submitted, self.done)
    }

    /// Adds a fault to the disk of a device.
    pub fn inject(&mut self, device: DeviceId, fault: Fault) {
        let i = self.disk_index(device);
        self.disks[i].config.faults.push(fault);
    }

    /// A unique number for [`Done::User`](super::bio::Done::User).
    pub fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    /// How the transfer of this token ended, if it has; once.
    pub fn take_ended(&mut self, token: u64) -> Option<Result<(), IoError>> {
        let failed = self.ended.remove(&token)?;
        Some(if failed { Err(IoError) } else { Ok(()) })
    }

    /// Counters of the waits for congestion.
    pub fn congestion(&self) -> &CongestionStats {
        &self.congestion
    }
}
