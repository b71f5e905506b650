//! The request queue of a disk: requests of two classes, merging, and the elevator.
//!
//! A request is a run of contiguous bios of one direction and one class. The elevator goes one way over
//! the disk and jumps back (C-LOOK), a batch of one class at a time: sync before async, unless async
//! requests were passed over often enough or are overdue. With CFQ, [`super::cfq`] chooses the class.
//!
//! Invariants: a request waits in `sorted` and `age` of its class, or is in service; `count` of a class is
//! all of both, at most `nr_requests`; bios without a request are in `overflow`.

use super::bio::{ASYNC, BioQueue, Dir, Flights, SECTOR, SYNC};
use super::cfq::{NextSlice, Slices};
use super::config::QueueConfig;
use crate::engine::Nanos;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub class: usize,
    pub dir: Dir,
    pub start: u64,
    pub sectors: u64,
    pub bios: BioQueue,
    pub since: Nanos,
}

impl Request {
    pub fn end(&self) -> u64 {
        self.start + self.sectors
    }
}

/// Where a bio was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// It is a request or a part of one.
    Taken,
    /// There is no request for it; it is in the overflow queue.
    Waits,
}

/// What a disk does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextRequest {
    /// It serves this request.
    Serve(u32),
    /// It waits for a request until then.
    Wait(Nanos),
    /// It has nothing to do.
    Nothing,
}

/// Requests of one class that wait.
#[derive(Default)]
struct Waiting {
    /// By first sector; equal ones in order of arrival.
    sorted: Vec<(u64, u32)>,
    /// By age.
    age: std::collections::VecDeque<u32>,
}

/// A request queue.
pub(crate) struct Queue {
    pub config: QueueConfig,
    slots: Vec<Request>,
    free: Vec<u32>,
    waiting: [Waiting; 2],
    pub overflow: [BioQueue; 2],
    /// Requests that exist, by class.
    pub count: [u32; 2],
    /// Whether a class has reached the on threshold and not fallen below the off threshold since.
    pub congested: [bool; 2],
    /// Position of the elevator.
    head: u64,
    batch_class: usize,
    batch_left: u32,
    starved: u32,
    /// The slices of CFQ, if classes have slices.
    slices: Option<Slices>,
    pub merges: u64,
}

impl Queue {
    pub fn new(config: QueueConfig) -> Queue {
        let slices = config.cfq.clone().map(|c| Slices::new(c, config.ncq));
        Queue {
            slices,
            config,
            slots: Vec::new(),
            free: Vec::new(),
            waiting: Default::default(),
            overflow: [BioQueue::EMPTY; 2],
            count: [0; 2],
            congested: [false; 2],
            head: 0,
            batch_class: SYNC,
            batch_left: 0,
            starved: 0,
            merges: 0,
        }
    }

    /// Adds a bio: merges it, or makes a request for it, or puts it into the overflow queue.
    pub fn add(&mut self, flights: &mut Flights, slot: u32, now: Nanos) -> Added {
        let f = &flights[slot];
        let class = f.bio.class();
        if class == SYNC
            && let Some(slices) = &mut self.slices
        {
            slices.came(f.disk_sector, f.bio.sectors(), now);
        }
        if self.merge(flights, slot) || self.open(flights, slot, now) {
            return Added::Taken;
        }
        self.overflow[class].push(flights, slot);
        Added::Waits
    }

    /// Merges the first bio of the overflow queue, or makes a request for it, if there may be one.
    pub fn admit(&mut self, flights: &mut Flights, class: usize, now: Nanos) -> Option<u32> {
        let slot = self.overflow[class].pop(flights)?;
        if self.merge(flights, slot) || self.open(flights, slot, now) {
            return Some(slot);
        }
        self.overflow[class].push_front(flights, slot);
        None
    }

    /// Makes a request for a bio, if there may be one more.
    fn open(&mut self, flights: &mut Flights, slot: u32, now: Nanos) -> bool {
        let f = &flights[slot];
        let (start, sectors, dir, class) =
            (f.disk_sector, f.bio.sectors(), f.bio.dir, f.bio.class());
        if self.count[class] >= self.config.nr_requests {
            return false;
        }
        let mut bios = BioQueue::EMPTY;
        bios.push(flights, slot);
        let request = Request {
            class,
            dir,
            start,
            sectors,
            bios,
            since: now,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = request;
                id
            }
            None => {
                self.slots.push(request);
                self.slots.len() as u32 - 1
            }
        };
        self.count[class] += 1;
        if self.count[class] >= self.config.congestion_on() {
            self.congested[class] = true;
        }
        let w = &mut self.waiting[class];
        let at = w.sorted.partition_point(|e| e.0 <= start);
        w.sorted.insert(at, (start, id));
        w.age.push_back(id);
        true
    }

    /// Merges a bio with the end or the front of a request, if one fits.
    fn merge(&mut self, flights: &mut Flights, slot: u32) -> bool {
        let f = &flights[slot];
        let (start, sectors, dir) = (f.disk_sector, f.bio.sectors(), f.bio.dir);
        let class = f.bio.class();
        let most = self.config.max_request / SECTOR;
        let sorted = &mut self.waiting[class].sorted;
        let fits = |r: &Request| r.dir == dir && r.sectors + sectors <= most;
        let after = sorted.partition_point(|e| e.0 < start);
        if let Some(&(_, id)) = after.checked_sub(1).and_then(|i| sorted.get(i)) {
            let r = &mut self.slots[id as usize];
            if r.end() == start && fits(r) {
                r.bios.push(flights, slot);
                r.sectors += sectors;
                self.merges += 1;
                return true;
            }
        }
        let next = sorted.partition_point(|e| e.0 < start + sectors);
        // No other request lies between, so the order stays.
        if next == after
            && let Some((first, id)) = sorted.get_mut(next)
        {
            let r = &mut self.slots[*id as usize];
            if *first == start + sectors && fits(r) {
                r.bios.push_front(flights, slot);
                r.start = start;
                r.sectors += sectors;
                *first = start;
                self.merges += 1;
                return true;
            }
        }
        false
    }

    /// Takes the next request for service.
    pub fn next(&mut self, now: Nanos) -> NextRequest {
        let taken = match &mut self.slices {
            None => self.next_of_batch(now),
            Some(slices) => {
                let has = [ASYNC, SYNC].map(|c| !self.waiting[c].sorted.is_empty());
                match slices.next(has, now) {
                    NextSlice::Wait(until) => return NextRequest::Wait(until),
                    NextSlice::Idle => None,
                    NextSlice::Serve(class) => Some(self.take(class, self.around(class))),
                }
            }
        };
        taken.map_or(NextRequest::Nothing, NextRequest::Serve)
    }

    fn next_of_batch(&mut self, now: Nanos) -> Option<u32> {
        let class = self.batch_class;
        let at = self.ahead(class);
        if self.batch_left > 0 && at < self.waiting[class].sorted.len() {
            self.batch_left -= 1;
            return Some(self.take(class, at));
        }
        let class = self.choose_class(now)?;
        self.batch_class = class;
        self.batch_left = self.config.batch.saturating_sub(1);
        let at = match self.overdue(class, now) {
            Some(at) => at,
            None => self.around(class),
        };
        Some(self.take(class, at))
    }

    /// Position of the next request of a class ahead of the head; past the end if there is none.
    fn ahead(&self, class: usize) -> usize {
        let sorted = &self.waiting[class].sorted;
        sorted.partition_point(|e| e.0 < self.head)
    }

    /// Position of the next request ahead of the head, or of the first one if there is none.
    fn around(&self, class: usize) -> usize {
        let at = self.ahead(class);
        if at < self.waiting[class].sorted.len() {
            at
        } else {
            0
        }
    }

    fn choose_class(&mut self, now: Nanos) -> Option<usize> {
        let some = |class: usize| !self.waiting[class].sorted.is_empty();
        match (some(SYNC), some(ASYNC)) {
            (false, false) => None,
            (false, true) => {
                self.starved = 0;
                Some(ASYNC)
            }
            (true, false) => Some(SYNC),
            (true, true) => {
                if self.starved >= self.config.async_starved || self.overdue(ASYNC, now).is_some() {
                    self.starved = 0;
                    Some(ASYNC)
                } else {
                    self.starved += 1;
                    Some(SYNC)
                }
            }
        }
    }

    /// Position in `sorted` of the oldest request of a class, if it is overdue.
    fn overdue(&self, class: usize, now: Nanos) -> Option<usize> {
        let w = &self.waiting[class];
        let &id = w.age.front()?;
        let r = &self.slots[id as usize];
        let expire = [self.config.async_expire, self.config.sync_expire][class];
        if now.saturating_sub(r.since) < expire {
            return None;
        }
        let from = w.sorted.partition_point(|e| e.0 < r.start);
        (from..w.sorted.len()).find(|&i| w.sorted[i].1 == id)
    }

    fn take(&mut self, class: usize, at: usize) -> u32 {
        let w = &mut self.waiting[class];
        let (_, id) = w.sorted.remove(at);
        if let Some(i) = w.age.iter().position(|&a| a == id) {
            w.age.remove(i);
        }
        self.head = self.slots[id as usize].end();
        id
    }

    pub fn request(&self, id: u32) -> &Request {
        &self.slots[id as usize]
    }

    /// Ends a request; true if this wakes the waits for congestion of its class.
    pub fn end(&mut self, id: u32, only_leaving: bool, now: Nanos) -> bool {
        let class = self.slots[id as usize].class;
        self.free.push(id);
        self.count[class] -= 1;
        if class == SYNC
            && let Some(slices) = &mut self.slices
        {
            slices.ended(self.count[class] == 0, now);
        }
        let below = self.count[class] < self.config.congestion_off();
        let was = self.congested[class];
        if below {
            self.congested[class] = false;
        }
        below && (was || !only_leaving)
    }
}
