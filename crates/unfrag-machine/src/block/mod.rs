//! Disks and what stands before them.
//!
//! A [`Bio`] goes to a device, which is a disk or an encrypting layer over one. It becomes a request
//! of the disk's queue or a part of one; the elevator picks requests, the head moves, and an interrupt
//! ends it. Its end is told once, to whom [`Done`] names.
//!
//! - [`bio`]: transfers, and the table of those under way.
//! - [`config`]: what devices are made of, and what goes wrong with them.
//! - `queue`: requests, merging, the elevator.
//! - `disk`: how long a request takes.
//! - [`crypt`]: the encrypting layer.
//! - [`congestion`]: waiting for a queue to become emptier.
//! - [`hooks`]: what the owners of pages do.
//!
//! Invariant: `submitted` bios are those under way and those that are `done`.

pub mod bio;
pub mod config;
pub mod congestion;
pub mod crypt;
mod disk;
pub mod hooks;
mod queue;
#[cfg(test)]
mod tests;

pub use bio::{BIO_PAGES, Bio, Dir, Done, PAGE_SECTORS, SECTOR};
pub use config::{CongestionWake, CryptConfig, DiskConfig, Fault, QueueConfig};
pub use congestion::CongestionStats;
pub use crypt::CryptStats;
pub use disk::DiskStats;

use crate::config::MachineConfig;
use crate::engine::{Channel, Cx, EventKind, TaskId};
use crate::sim::{Sim, World};
use bio::{Flight, Flights};
use crypt::Crypt;
use disk::Disk;
use queue::{ASYNC, Added, SYNC};
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

    /// What the disk of a device has done.
    pub fn disk_stats(&self, device: DeviceId) -> DiskStats {
        let d = &self.disks[self.disk_index(device)];
        DiskStats {
            merges: d.queue.merges,
            ..d.stats
        }
    }

    /// What an encrypting layer has done; none, if the device is a disk.
    pub fn crypt_stats(&self, device: DeviceId) -> Option<CryptStats> {
        let crypt = usize::from(device.0).checked_sub(self.disks.len())?;
        Some(self.crypts[crypt].stats)
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

const fn request_channel(task: TaskId) -> Channel {
    Channel::new(Channel::REQUEST, task.number())
}

impl World {
    /// Hands a bio to its device at once. If there is no request for it, it stands in line, and
    /// [`Cx::settle`] of the task that runs waits until it has one.
    ///
    /// # Panics
    /// If it has no pages or is not all on its device.
    pub fn submit(&mut self, bio: Bio) {
        let sectors = self.block.sectors(bio.device);
        assert!(
            bio.sectors() > 0 && bio.sector.saturating_add(bio.sectors()) <= sectors,
            "a bio of {} sectors at {} on a device of {sectors}",
            bio.sectors(),
            bio.sector,
        );
        self.block.submitted += 1;
        let submitter = self.current().filter(|_| !self.in_interrupt());
        let mut flight = Flight::new(bio, submitter);
        let crypt = usize::from(bio.device.0).checked_sub(self.block.disks.len());
        if let Some(c) = crypt {
            flight.crypt = Some(c as u8);
            flight.disk_sector += self.block.crypts[c].config.first_sector;
        }
        let slot = self.block.flights.insert(flight);
        match crypt {
            Some(c) if bio.dir == Dir::Write => crypt::enqueue(self, c as u8, slot),
            _ => to_disk(self, slot),
        }
    }

    fn user_done(&mut self, token: u64, failed: bool) {
        self.block.ended.insert(token, failed);
        self.wake(Channel::new(Channel::BIO, token));
    }
}

/// Gives a bio to the queue of its disk.
fn to_disk(w: &mut World, slot: u32) {
    let now = w.now();
    let flight = &w.block.flights[slot];
    let (device, submitter) = (flight.bio.device, flight.submitter);
    let d = w.block.disk_index(device);
    let disk = &mut w.block.disks[d];
    if disk.queue.add(&mut w.block.flights, slot, now) == Added::Waits
        && let Some(task) = submitter
    {
        w.sched.add_unsettled(task);
    }
    if disk.serving.is_none() && !disk.plugged {
        disk.plugged = true;
        let at = now + disk.config.queue.plug;
        let seq = w.sched.next_seq();
        w.sched.push_event(at, seq, EventKind::Unplug(d as u8));
    }
}

/// A plugged queue starts.
pub(crate) fn unplug(sim: &mut Sim, d: u8) {
    let w = sim.world();
    w.block.disks[usize::from(d)].plugged = false;
    serve_next(w, d);
}

/// An idle disk takes the next request.
fn serve_next(w: &mut World, d: u8) {
    let now = w.now();
    let disk = &mut w.block.disks[usize::from(d)];
    debug_assert!(disk.serving.is_none());
    let Some(id) = disk.queue.next(now) else {
        return;
    };
    let r = *disk.queue.request(id);
    disk.serving = Some((id, now));
    let at = now + disk.serve(r.start, r.sectors);
    let seq = w.sched.next_seq();
    w.sched.push_event(at, seq, EventKind::Device(d));
}

/// A disk's interrupt: the request in service is done.
pub(crate) fn interrupt(sim: &mut Sim, d: u8) {
    let w = sim.world();
    let now = w.now();
    let index = usize::from(d);
    let disk = &mut w.block.disks[index];
    if let Some(until) = disk.stalled(now) {
        let seq = w.sched.next_seq();
        w.sched.push_event(until, seq, EventKind::Device(d));
        return;
    }
    let Some((id, since)) = disk.serving.take() else {
        return;
    };
    let mut r = *disk.queue.request(id);
    disk.count(r.dir, r.sectors, now - since);
    let only_leaving = w.block.only_leaving;
    let relieved = disk.queue.end(id, only_leaving);
    while let Some(slot) = disk.queue.admit(&mut w.block.flights, r.class, now) {
        if let Some(task) = w.block.flights[slot].submitter
            && w.sched.settle_one(task)
        {
            w.sched.wake(request_channel(task));
        }
    }
    if relieved {
        w.wake(congestion::channel(r.class == SYNC));
    }
    serve_next(w, d);
    let pages = r.sectors / PAGE_SECTORS;
    w.spend_interrupt(pages * w.costs.end_io_page);
    while let Some(slot) = r.bios.pop(&sim.block.flights) {
        let w = sim.world();
        let f = &w.block.flights[slot];
        let disk = &mut w.block.disks[index];
        let failed = disk.fails(now, f.disk_sector, f.bio.sectors());
        disk.stats.failed_bios += u64::from(failed);
        off_disk(sim, slot, failed);
    }
}

/// The disk is done with a bio.
fn off_disk(sim: &mut Sim, slot: u32, failed: bool) {
    let f = &sim.block.flights[slot];
    let (crypt, dir, bounce) = (f.crypt, f.bio.dir, f.bounce);
    match (crypt, dir) {
        (Some(c), Dir::Read) if !failed => crypt::enqueue(sim, c, slot),
        (Some(_), Dir::Write) => {
            hooks::crypt_give(sim, bounce);
            finish(sim, slot, failed);
        }
        _ => finish(sim, slot, failed),
    }
}

/// Tells the end of a bio.
fn finish(sim: &mut Sim, slot: u32, failed: bool) {
    let block = &mut sim.world().block;
    let bio = block.flights.remove(slot).bio;
    block.done += 1;
    hooks::bio_done(sim, &bio, failed);
}

/// Starts the threads of the devices.
pub(crate) fn start(sim: &mut Sim) {
    for c in 0..sim.block.crypts.len() {
        crypt::start(sim, c as u8);
    }
}

impl Cx<'_> {
    /// Hands a bio to its device; waits while the device has no request for it.
    pub fn submit(&mut self, bio: Bio) {
        self.with(|sim| sim.world().submit(bio));
        self.settle();
    }

    /// Waits until every bio that this task has submitted has its request.
    pub fn settle(&mut self) {
        let task = self.task_id();
        while self.with(|sim| sim.sched().has_unsettled(task)) {
            self.wait_io(request_channel(task), None);
        }
    }

    /// Hands a bio to its device and waits for its end; whom the bio names as told is not told.
    pub fn transfer(&mut self, mut bio: Bio) -> Result<(), IoError> {
        let token = self.with(|sim| sim.world().block.token());
        bio.done = Done::User(token);
        self.submit(bio);
        loop {
            if let Some(end) = self.with(|sim| sim.world().block.take_ended(token)) {
                return end;
            }
            self.wait_io(Channel::new(Channel::BIO, token), None);
        }
    }
}
