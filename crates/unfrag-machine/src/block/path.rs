//! The way of a bio: submitted, encrypted, in line, part of a request, transferred, decrypted, told.
//!
//! Invariant: a bio that was submitted is on exactly one list or in service until its end is told.

use super::bio::Flight;
use super::queue::{Added, Next, SYNC};
use super::{Bio, Dir, Done, IoError, PAGE_SECTORS, congestion, crypt, hooks};
use crate::engine::{Channel, Cx, EventKind, TaskId, Waited};
use crate::sim::{Sim, World};

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
        let submitter = self.submitter();
        let mut flight = Flight::new(bio, submitter);
        let crypt = usize::from(bio.device.0).checked_sub(self.block.disks.len());
        if let Some(c) = crypt {
            flight.crypt = Some(c as u8);
            flight.disk_sector += self.block.crypts[c].config.first_sector;
        }
        flight.held = hooks::bio_begins(self, &bio, crypt.is_some(), submitter);
        let slot = self.block.flights.insert(flight);
        match crypt {
            Some(c) if bio.dir == Dir::Write => crypt::enqueue(self, c as u8, slot),
            _ => to_disk(self, slot),
        }
    }

    /// Who waits if a transfer that begins now must: the task that runs, and nobody in an interrupt.
    pub(crate) fn submitter(&self) -> Option<TaskId> {
        self.current().filter(|_| !self.in_interrupt())
    }

    /// A bio of a task waits no more for what it needs to be submitted.
    pub(crate) fn settled(&mut self, task: TaskId) {
        if self.sched.settle_one(task) {
            self.sched.wake(request_channel(task));
        }
    }

    pub(super) fn user_done(&mut self, token: u64, failed: bool) {
        self.block.ended.insert(token, failed);
        self.wake(Channel::new(Channel::BIO, token));
    }
}

/// Gives a bio to the queue of its disk.
pub(super) fn to_disk(w: &mut World, slot: u32) {
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
        w.sched.post(at, EventKind::Unplug(d as u8));
    }
}

/// A plugged queue starts.
pub(crate) fn unplug(sim: &mut Sim, d: u8) {
    let w = sim.world();
    w.block.disks[usize::from(d)].plugged = false;
    serve_next(w, d);
}

/// A disk has waited long enough for a request, unless one came.
pub(crate) fn waited(sim: &mut Sim, d: u8) {
    let w = sim.world();
    let now = w.now();
    let disk = &mut w.block.disks[usize::from(d)];
    if disk.waits == Some(now) {
        disk.waits = None;
        if disk.serving.is_none() && !disk.plugged {
            serve_next(w, d);
        }
    }
}

/// An idle disk takes the next request.
fn serve_next(w: &mut World, d: u8) {
    let now = w.now();
    let disk = &mut w.block.disks[usize::from(d)];
    debug_assert!(disk.serving.is_none());
    let id = match disk.queue.next(now) {
        Next::Serve(id) => id,
        Next::Nothing => return,
        Next::Wait(until) => {
            if disk.waits != Some(until) {
                disk.waits = Some(until);
                w.sched.post(until, EventKind::Waited(d));
            }
            return;
        }
    };
    let r = *disk.queue.request(id);
    disk.serving = Some((id, now));
    let at = now + disk.serve(r.start, r.sectors);
    w.sched.post(at, EventKind::Device(d));
}

/// A disk's interrupt: the request in service is done.
pub(crate) fn interrupt(sim: &mut Sim, d: u8) {
    let w = sim.world();
    let now = w.now();
    let index = usize::from(d);
    let disk = &mut w.block.disks[index];
    if let Some(until) = disk.stalled(now) {
        w.sched.post(until, EventKind::Device(d));
        return;
    }
    let Some((id, since)) = disk.serving.take() else {
        return;
    };
    let mut r = *disk.queue.request(id);
    disk.count(r.dir, r.sectors, now - since);
    let only_leaving = w.block.only_leaving;
    let relieved = disk.queue.end(id, only_leaving, now);
    loop {
        let queue = &mut w.block.disks[index].queue;
        let Some(slot) = queue.admit(&mut w.block.flights, r.class, now) else {
            break;
        };
        if let Some(task) = w.block.flights[slot].submitter {
            w.settled(task);
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
pub(super) fn finish(sim: &mut Sim, slot: u32, failed: bool) {
    let block = &mut sim.world().block;
    let flight = block.flights.remove(slot);
    let (bio, held) = (flight.bio, flight.held);
    block.done += 1;
    hooks::bio_done(sim, &bio, held, failed);
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
            let at_most = self.with(|sim| hooks::longest_wait(sim, task));
            let waited = self.wait_io(request_channel(task), at_most);
            if waited == Waited::TimedOut {
                self.with(|sim| hooks::waited(sim, task));
            }
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
