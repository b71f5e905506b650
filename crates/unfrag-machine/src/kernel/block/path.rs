//! The way of a bio: submission, encryption, request, transfer, decryption, end.
//!
//! Invariant: a bio that was submitted is on exactly one list or in service until its end.

use crate::block::bio::{Flight, SYNC};
use crate::block::queue::{Added, NextRequest};
use crate::block::{Bio, Dir, Done, IoError, PAGE_SECTORS};
use crate::channels::{BIO, congestion_channel, request_channel};
use crate::engine::{Channel, DeviceTimer, EventKind, TaskId, Waited};
use crate::kernel::{Cx, Sim, World};
use crate::mm::bio_pool::BioDemand;

impl World {
    /// Submits a bio to its device. If there is no request for it, it is queued, and [`Cx::settle`] of the
    /// task that runs waits until it has one.
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
        flight.held = self.bio_begins(&bio, crypt.is_some(), submitter);
        let slot = self.block.flights.insert(flight);
        match crypt {
            Some(c) if bio.dir == Dir::Write => self.crypt_enqueue(c as u8, slot),
            _ => self.queue_on_disk(slot),
        }
    }

    /// The task that waits if a transfer that begins now has to; none in an interrupt.
    pub(crate) fn submitter(&self) -> Option<TaskId> {
        self.current().filter(|_| !self.in_interrupt())
    }

    /// A bio of a task has its request or its objects: it does not hold up its task.
    pub(crate) fn settled(&mut self, task: TaskId) {
        if self.sched.settle_one(task) {
            self.sched.wake(request_channel(task));
        }
    }

    pub(super) fn user_done(&mut self, token: u64, failed: bool) {
        self.block.ended.insert(token, failed);
        self.wake(Channel::new(BIO, token));
    }
}

impl World {
    fn bio_begins(&mut self, bio: &Bio, encrypted: bool, submitter: Option<TaskId>) -> u32 {
        let demand = BioDemand::of(bio.dir, bio.pages().len(), bio.room, encrypted);
        self.kernel.bios.begin(demand, submitter)
    }

    /// Gives a bio to the queue of its disk.
    pub(super) fn queue_on_disk(&mut self, slot: u32) {
        let now = self.now();
        let flight = &self.block.flights[slot];
        let (device, submitter) = (flight.bio.device, flight.submitter);
        let d = self.block.disk_index(device);
        let disk = &mut self.block.disks[d];
        if disk.queue.add(&mut self.block.flights, slot, now) == Added::Waits
            && let Some(task) = submitter
        {
            self.sched.add_unsettled(task);
        }
        if disk.serving.is_none() && !disk.plugged {
            disk.plugged = true;
            let at = now + disk.config.queue.plug;
            let unplug = DeviceTimer::Unplug(d as u8);
            self.sched.post(at, EventKind::DeviceTimer(unplug));
        }
    }

    /// An idle disk takes the next request.
    fn serve_next(&mut self, d: u8) {
        let now = self.now();
        let disk = &mut self.block.disks[usize::from(d)];
        debug_assert!(disk.serving.is_none());
        let id = match disk.queue.next(now) {
            NextRequest::Serve(id) => id,
            NextRequest::Nothing => return,
            NextRequest::Wait(until) => {
                if disk.idle_until != Some(until) {
                    disk.idle_until = Some(until);
                    let idle_end = DeviceTimer::IdleEnd(d);
                    self.sched.post(until, EventKind::DeviceTimer(idle_end));
                }
                return;
            }
        };
        let r = *disk.queue.request(id);
        disk.serving = Some((id, now));
        let at = now + disk.serve(r.start, r.sectors);
        self.sched.post(at, EventKind::Interrupt(d));
    }
}

impl Sim {
    /// A timer of a disk has expired: a plugged queue starts, or a disk that was kept idle for a
    /// request goes on, unless one came.
    pub(crate) fn disk_timer(&mut self, timer: DeviceTimer) {
        let w = self.world();
        let now = w.now();
        match timer {
            DeviceTimer::Unplug(d) => {
                w.block.disks[usize::from(d)].plugged = false;
                w.serve_next(d);
            }
            DeviceTimer::IdleEnd(d) => {
                let disk = &mut w.block.disks[usize::from(d)];
                if disk.idle_until == Some(now) {
                    disk.idle_until = None;
                    if disk.serving.is_none() && !disk.plugged {
                        w.serve_next(d);
                    }
                }
            }
        }
    }

    /// A disk's interrupt: the request in service is done.
    pub(crate) fn disk_interrupt(&mut self, d: u8) {
        let w = self.world();
        let now = w.now();
        let index = usize::from(d);
        let disk = &mut w.block.disks[index];
        if let Some(until) = disk.stalled(now) {
            w.sched.post(until, EventKind::Interrupt(d));
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
            w.wake(congestion_channel(r.class == SYNC));
        }
        w.serve_next(d);
        let pages = r.sectors / PAGE_SECTORS;
        w.spend_interrupt(pages * w.costs.end_io_page);
        while let Some(slot) = r.bios.pop(&self.block.flights) {
            let w = self.world();
            let f = &w.block.flights[slot];
            let disk = &mut w.block.disks[index];
            let failed = disk.fails(now, f.disk_sector, f.bio.sectors());
            disk.stats.failed_bios += u64::from(failed);
            self.off_disk(slot, failed);
        }
    }

    /// The disk is done with a bio.
    fn off_disk(&mut self, slot: u32, failed: bool) {
        let f = &self.block.flights[slot];
        let (crypt, dir, bounce) = (f.crypt, f.bio.dir, f.bounce);
        match (crypt, dir) {
            (Some(c), Dir::Read) if !failed => self.crypt_enqueue(c, slot),
            (Some(_), Dir::Write) => {
                self.give_crypt_pages(bounce);
                self.finish_bio(slot, failed);
            }
            _ => self.finish_bio(slot, failed),
        }
    }

    /// Ends a bio, with what follows its end.
    pub(super) fn finish_bio(&mut self, slot: u32, failed: bool) {
        let block = &mut self.world().block;
        let flight = block.flights.remove(slot);
        let (bio, held) = (flight.bio, flight.held);
        block.done += 1;
        self.bio_ends(held);
        match bio.done {
            Done::User(token) => self.world().user_done(token, failed),
            Done::PageRead | Done::PageWritten | Done::SwapRead | Done::SwapWritten => {
                for &page in bio.pages() {
                    self.page_done(bio.done, page, failed);
                }
            }
        }
    }

    /// Starts the threads of the devices.
    pub(crate) fn start_devices(&mut self) {
        for c in 0..self.block.crypts.len() {
            self.start_crypt(c as u8);
        }
    }
}

impl Cx<'_> {
    /// Submits a bio to its device; waits while the device has no request for it.
    pub fn submit(&mut self, bio: Bio) {
        self.with(|sim| sim.world().submit(bio));
        self.settle();
    }

    /// Waits until every bio that this task has submitted has its request.
    pub fn settle(&mut self) {
        let task = self.task_id();
        while self.with(|sim| sim.sched().has_unsettled(task)) {
            let at_most = self.with(|sim| sim.bio_wait(task));
            let waited = self.wait_io(request_channel(task), at_most);
            if waited == Waited::TimedOut {
                self.with(|sim| sim.bios_again(task));
            }
        }
    }

    /// Submits a bio and waits for its end. The bio's own `done` is not used.
    pub fn transfer(&mut self, mut bio: Bio) -> Result<(), IoError> {
        let token = self.with(|sim| sim.world().block.token());
        bio.done = Done::User(token);
        self.submit(bio);
        loop {
            if let Some(end) = self.with(|sim| sim.world().block.take_ended(token)) {
                return end;
            }
            self.wait_io(Channel::new(BIO, token), None);
        }
    }
}
