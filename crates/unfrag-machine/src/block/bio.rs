//! Transfers: what their owners submit, and the table of those under way.
//!
//! Invariant: a bio is in the table from its submission to its end, which happens once.

use crate::engine::TaskId;

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// Sectors of a page.
pub const PAGE_SECTORS: u64 = 8;
/// Most pages of a bio.
pub const BIO_PAGES: usize = 32;

/// A device. Ids count through the disks of the machine, then through its encrypting layers.
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

/// Direction of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dir {
    /// From disk to memory. Always sync.
    Read,
    /// From memory to disk.
    Write,
}

/// What follows the end of a bio. All but `User` name an action for each of its pages.
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
    /// The task that waits for this token is woken: [`Cx::transfer`](crate::Cx::transfer).
    User(u64),
}

/// Class of a request: sync (reads, and writes that a task waits for).
pub(crate) const SYNC: usize = 1;
/// Class of a request: async (writes that no task waits for).
pub(crate) const ASYNC: usize = 0;

/// A transfer between consecutive sectors and some pages.
#[derive(Clone, Copy, Debug)]
pub struct Bio {
    /// The device.
    pub device: DeviceId,
    /// First sector, on the device.
    pub sector: u64,
    /// Direction.
    pub dir: Dir,
    /// Whether a task waits for it: every read, and writes such as those of `fsync`.
    pub sync: bool,
    /// What follows its end.
    pub done: Done,
    /// Pages that a bio of a multi-page write has room for; 0 for a write of single pages.
    pub room: u8,
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
            room: 0,
            len: 0,
            tokens: [0; BIO_PAGES],
        }
    }

    /// Adds the next page, by its owner's token for it; false if the bio is full.
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

    /// Class of its request.
    pub(crate) fn class(&self) -> usize {
        if self.sync { SYNC } else { ASYNC }
    }

    /// Sectors that it moves.
    pub fn sectors(&self) -> u64 {
        u64::from(self.len) * PAGE_SECTORS
    }
}

/// No bio.
pub(crate) const NIL: u32 = u32::MAX;

/// A bio under way.
pub(crate) struct Flight {
    pub bio: Bio,
    /// First sector on the disk.
    pub disk_sector: u64,
    /// Encrypting layer that it passes through.
    pub crypt: Option<u8>,
    /// The next one of its request or of its queue.
    pub next: u32,
    /// Task that submitted it and waits while there is no request for it.
    pub submitter: Option<TaskId>,
    /// Token of the encrypting layer's pages for it.
    pub bounce: u32,
    /// Token of the objects that it holds.
    pub held: u32,
    live: bool,
}

/// The bios under way.
#[derive(Default)]
pub(crate) struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    pub fn insert(&mut self, flight: Flight) -> u32 {
        let flight = Flight {
            live: true,
            next: NIL,
            ..flight
        };
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = flight;
                slot
            }
            None => {
                self.slots.push(flight);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Ends a bio.
    ///
    /// # Panics
    /// If it has ended.
    pub fn remove(&mut self, slot: u32) -> &Flight {
        let f = &mut self.slots[slot as usize];
        assert!(std::mem::take(&mut f.live), "bio {slot} ends twice");
        self.free.push(slot);
        f
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl std::ops::Index<u32> for Flights {
    type Output = Flight;
    fn index(&self, slot: u32) -> &Flight {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Flights {
    fn index_mut(&mut self, slot: u32) -> &mut Flight {
        &mut self.slots[slot as usize]
    }
}

impl Flight {
    pub fn new(bio: Bio, submitter: Option<TaskId>) -> Flight {
        Flight {
            bio,
            disk_sector: bio.sector,
            crypt: None,
            next: NIL,
            submitter,
            bounce: 0,
            held: 0,
            live: false,
        }
    }
}

/// A queue of bios, first in first out, linked through the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BioQueue {
    pub head: u32,
    pub tail: u32,
    pub len: u32,
}

impl BioQueue {
    pub const EMPTY: BioQueue = BioQueue {
        head: NIL,
        tail: NIL,
        len: 0,
    };

    pub fn push(&mut self, flights: &mut Flights, slot: u32) {
        flights[slot].next = NIL;
        match self.tail {
            NIL => self.head = slot,
            tail => flights[tail].next = slot,
        }
        self.tail = slot;
        self.len += 1;
    }

    pub fn push_front(&mut self, flights: &mut Flights, slot: u32) {
        flights[slot].next = self.head;
        if self.head == NIL {
            self.tail = slot;
        }
        self.head = slot;
        self.len += 1;
    }

    pub fn pop(&mut self, flights: &Flights) -> Option<u32> {
        let slot = self.head;
        if slot == NIL {
            return None;
        }
        self.head = flights[slot].next;
        if self.head == NIL {
            self.tail = NIL;
        }
        self.len -= 1;
        Some(slot)
    }
}
