//! Disks and what stands before them.
//!
//! A [`Bio`] goes to a device, which is a disk or an encrypting layer over one; its end is told once,
//! by an interrupt (or the layer's thread), to what [`Done`] names.

use crate::engine::{Cx, Nanos};

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// Sectors of a page.
pub const PAGE_SECTORS: u64 = 8;
/// Most pages of a bio.
pub const BIO_PAGES: usize = 32;

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u8);

/// What a bio does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dir {
    /// From disk to memory. Always sync.
    Read,
    /// From memory to disk.
    Write,
}

/// Whom the end of a bio is told. Each page of it, for the first four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Pages of the page cache were read.
    PageRead,
    /// Pages of the page cache were written.
    PageWritten,
    /// Pages were read from swap.
    SwapRead,
    /// Pages were written to swap.
    SwapWritten,
    /// Wakes [`Channel::BIO`](crate::Channel::BIO) of the token.
    User(u64),
}

/// A transfer between consecutive sectors and some pages.
#[derive(Clone, Copy, Debug)]
pub struct Bio {
    /// Where to.
    pub device: DeviceId,
    /// First sector, on the device.
    pub sector: u64,
    /// What is done.
    pub dir: Dir,
    /// Whether somebody waits for it: every read, and writes such as fsync's.
    pub sync: bool,
    /// Whom its end is told.
    pub done: Done,
    len: u8,
    tokens: [u32; BIO_PAGES],
}

impl Bio {
    /// A bio without pages.
    pub fn new(device: DeviceId, sector: u64, dir: Dir, sync: bool, done: Done) -> Bio {
        Bio {
            device,
            sector,
            dir,
            sync: sync || dir == Dir::Read,
            done,
            len: 0,
            tokens: [0; BIO_PAGES],
        }
    }
    /// Adds the next page, by the token that its owner knows it by; false if the bio is full.
    pub fn push(&mut self, token: u32) -> bool {
        let free = usize::from(self.len) < BIO_PAGES;
        if free {
            self.tokens[usize::from(self.len)] = token;
            self.len += 1;
        }
        free
    }
    /// The pages, in order of their sectors.
    pub fn pages(&self) -> &[u32] {
        &self.tokens[..usize::from(self.len)]
    }
}

/// A disk.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// Its name.
    pub name: String,
    /// Sectors.
    pub sectors: u64,
    /// Requests of each class (reads and sync writes; async writes).
    pub nr_requests: u32,
    /// Bytes a second under the head.
    pub bandwidth: u64,
    /// Seek to the next track.
    pub seek_min: Nanos,
    /// Seek over the whole disk.
    pub seek_max: Nanos,
    /// One turn.
    pub rotation: Nanos,
    /// An encrypting layer over it, if any; bios then go through its thread.
    pub crypt: Option<CryptConfig>,
}

/// An encrypting layer.
#[derive(Clone, Debug)]
pub struct CryptConfig {
    /// Whether a thread of its own submits to the disk (2.6.31 and later).
    pub io_thread: bool,
}

/// The devices of a machine.
pub struct Block {}

impl Block {
    /// Idle devices.
    pub fn new(disks: &[DiskConfig], seed: u64) -> Block {
        let _ = (disks, seed);
        Block {}
    }
    /// Whether a device is congested in a class.
    pub fn congested(&self, device: DeviceId, sync: bool) -> bool {
        let _ = (device, sync);
        unimplemented!()
    }
}

impl Cx<'_> {
    /// Hands a bio to its device; waits while the device has no request for it.
    pub fn submit(&mut self, bio: Bio) {
        let _ = bio;
        unimplemented!()
    }
}

impl crate::World {
    /// Hands a bio to its device at once. If there is no request for it, it waits in line; then
    /// [`Cx::settle`] of the task that runs waits for it.
    pub fn submit(&mut self, bio: Bio) {
        let _ = bio;
        unimplemented!()
    }
}

impl Cx<'_> {
    /// Waits until every bio that this task has submitted through [`World::submit`](crate::World) has
    /// its request.
    pub fn settle(&mut self) {
        unimplemented!()
    }
    /// Waits for a device to leave congestion in a class, at most `timeout`; returns what was left.
    /// `spec: linux-mm 4.4`
    pub fn congestion_wait(&mut self, sync: bool, timeout: Nanos) -> Nanos {
        let _ = (sync, timeout);
        unimplemented!()
    }
}

/// What the owners of pages do when a transfer of theirs ends. Filled in by their modules.
pub fn page_done(sim: &mut crate::Sim, done: Done, page: u32, failed: bool) {
    let _ = (sim, done, page, failed);
}

/// A device's own event.
pub(crate) fn interrupt(sim: &mut crate::Sim, device: u8) {
    let _ = (sim, device);
    unimplemented!()
}
