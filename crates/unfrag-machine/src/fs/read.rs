//! Reading files through the page cache, with readahead. `spec: linux-mm 8.6`
//!
//! Invariant: a page is read by whoever puts it into the cache, locked until its transfer ends;
//! others wait for that.

use super::{NodeId, Store};
use crate::block::{BIO_PAGES, Bio, Dir, Done};
use crate::mm::alloc::Who;
use crate::mm::config::{BUFFER_PAGE, CACHE_PAGE};
use crate::mm::frames::{Bits, ObjectId};
use crate::mm::object::{At, Entry, Kind};
use crate::mm::prefetch::TOGETHER;
use crate::mm::{BATCH, Fail};
use crate::{Cx, Sim};
use unfrag::Pfn;

/// Most pages read ahead at once: 128 KiB.
pub const MAX_WINDOW: u32 = 32;
/// Pages of the first window.
pub const FIRST_WINDOW: u32 = 4;

/// What is known of how a file is read, for each opening of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readahead {
    /// First page of the present window.
    start: u32,
    /// Its length; 0 before the first one.
    size: u32,
    /// Page that is expected next.
    next: u32,
}

impl Readahead {
    /// The window to read when page `index` is missing: the next, larger one if the file is read in
    /// order, else that page alone.
    pub fn miss(&mut self, index: u32) -> (u32, u32) {
        let in_order = index == self.next || index == self.start + self.size;
        if index > 0 && !in_order {
            (self.start, self.size) = (index, 0);
            return (index, 1);
        }
        self.start = index;
        self.size = match self.size {
            0 => FIRST_WINDOW,
            n => (n * 2).min(MAX_WINDOW),
        };
        (self.start, self.size)
    }

    /// The window to read when the marked page of the present one is reached.
    pub fn marker(&mut self) -> (u32, u32) {
        self.start += self.size;
        self.size = (self.size * 2).clamp(FIRST_WINDOW, MAX_WINDOW);
        (self.start, self.size)
    }
}

/// How a run of reads stopped.
enum Stop {
    Done,
    Pause,
    Miss(u32),
    Marker,
    Locked(Pfn),
    Error(u32),
    Swapped(u32),
}

/// Where on a file system a transfer begins, and what it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    pub fs: u8,
    pub block: u32,
    pub dir: Dir,
    pub sync: bool,
    pub done: Done,
    /// See [`Bio::room`].
    pub room: u8,
}

impl Sim {
    /// Reads pages that are there, from `*at` on.
    fn read_run(&mut self, object: ObjectId, at: &mut u32, end: u32) -> Stop {
        let (lookup, copy) = {
            let c = &self.mem_ref().config.costs;
            (c.page_lookup, c.read_page)
        };
        while *at < end {
            let mut entries = [Entry::ABSENT; TOGETHER];
            let entries = &mut entries[..TOGETHER.min((end - *at) as usize)];
            self.mem_ref().objects.get(object).copy(*at, entries);
            self.prefetch_first(entries);
            for (i, entry) in entries.iter().enumerate() {
                self.prefetch_next(entries, i);
                let pfn = match entry.at() {
                    At::Frame(pfn) => pfn,
                    At::Absent => return Stop::Miss(*at),
                    At::Slot(_) => return Stop::Swapped(*at),
                };
                if self.is_locked(pfn) {
                    return Stop::Locked(pfn);
                }
                let mem = self.mem();
                let info = mem.frames.get_mut(pfn);
                if info.bits.contains(Bits::ERROR) {
                    return Stop::Error(*at);
                }
                if info.bits.contains(Bits::READAHEAD) {
                    info.bits -= Bits::READAHEAD;
                    return Stop::Marker;
                }
                mem.owed += lookup + copy;
                let pause = mem.owed >= BATCH;
                self.manager().pages().mark_accessed(pfn);
                *at += 1;
                if pause {
                    return Stop::Pause;
                }
            }
        }
        Stop::Done
    }

    /// Where a page of an object lies: its file system, block, and how many pages from there on lie
    /// together. `None` where nothing was ever written.
    pub(crate) fn place(&self, object: ObjectId, index: u32) -> Option<(u8, u32, u32)> {
        self.world_ref().place(object, index)
    }

    /// Whether a page has to be read from its device.
    fn has_content(&self, object: ObjectId, index: u32) -> Option<(u8, u32, u32)> {
        let (fs, block, together) = self.place(object, index)?;
        let written = self.mem_ref().vfs.system(fs).blocks.is_written(block);
        written.then_some((fs, block, together))
    }

    /// Puts pages into the cache that nobody else put there meanwhile, and submits what is to be read
    /// of them, in as few pieces as their places allow.
    fn start_reads(&mut self, object: ObjectId, pages: &[(u32, Pfn)], marker: Option<u32>) {
        let mut bio: Option<(u8, u32, Batch)> = None;
        for &(index, pfn) in pages {
            if self.mem_ref().at(object, index) != At::Absent {
                self.give_frame(pfn, 0);
                continue;
            }
            let place = self.has_content(object, index);
            self.add_to_cache(object, index, pfn, place.is_some());
            if marker == Some(index) {
                self.mem().frames.get_mut(pfn).bits |= Bits::READAHEAD;
            }
            let Some((fs, block, _)) = place else {
                continue;
            };
            let goes_on = matches!(&bio, Some((f, b, batch))
                if *f == fs && b + u32::from(batch.len) == block && usize::from(batch.len) < BIO_PAGES);
            if !goes_on && let Some((fs, block, batch)) = bio.take() {
                self.submit_read(fs, block, &batch);
            }
            bio.get_or_insert((fs, block, Batch::default())).2.push(pfn);
        }
        if let Some((fs, block, batch)) = bio {
            self.submit_read(fs, block, &batch);
        }
    }

    fn submit_read(&mut self, fs: u8, block: u32, batch: &Batch) {
        let mem = self.mem();
        mem.counters.pgpgin += u64::from(batch.len);
        mem.owed += mem.config.costs.submit;
        let blocks = Blocks {
            fs,
            block,
            dir: Dir::Read,
            sync: true,
            done: Done::PageRead,
            room: 0,
        };
        self.world().submit_blocks(blocks, batch.pages());
    }
}

/// Pages of one transfer.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    pages: [u32; BIO_PAGES],
    len: u8,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            pages: [0; BIO_PAGES],
            len: 0,
        }
    }
}

impl Batch {
    pub fn push(&mut self, pfn: Pfn) {
        self.pages[usize::from(self.len)] = pfn.0 as u32;
        self.len += 1;
    }
    pub fn pages(&self) -> &[u32] {
        &self.pages[..usize::from(self.len)]
    }
    pub fn is_full(&self) -> bool {
        usize::from(self.len) == BIO_PAGES
    }
}

impl crate::World {
    /// See [`Sim::place`].
    pub(crate) fn place(&self, object: ObjectId, index: u32) -> Option<(u8, u32, u32)> {
        let mem = self.mem();
        match mem.objects.get(object).kind {
            Kind::File(n) => {
                let node = mem.vfs.node(NodeId(n));
                let (block, together) = node.block(index)?;
                Some((node.fs, block, together))
            }
            Kind::Device(fs) => Some((fs as u8, index, 1)),
            Kind::Shmem(_) | Kind::Anon(_) => None,
        }
    }

    /// Hands consecutive blocks of a file system to its device: a disk, or a loop device.
    pub(crate) fn submit_blocks(&mut self, blocks: Blocks, pages: &[u32]) {
        match self.mem().vfs.system(blocks.fs).store {
            Store::Disk { device, sector } => {
                let sector = sector + u64::from(blocks.block) * crate::block::PAGE_SECTORS;
                let mut bio = Bio::new(device, sector, blocks.dir, blocks.sync, blocks.done);
                bio.room = blocks.room;
                for &p in pages {
                    bio.push(p);
                }
                self.submit(bio);
            }
            Store::Loop(l) => self.submit_to_loop(l, blocks, pages),
            Store::Memory => unreachable!("tmpfs has no blocks"),
        }
    }
}

impl Cx<'_> {
    /// Reads `count` pages of a file from page `first` on, as far as the file goes. The node must be
    /// pinned.
    ///
    /// # Errors
    /// [`Fail::NoMemory`], [`Fail::Io`], [`Fail::Killed`].
    pub fn read_file(
        &mut self,
        who: Who,
        node: NodeId,
        first: u32,
        count: u32,
        ra: &mut Readahead,
    ) -> Result<(), Fail> {
        let (object, pages) = self.with(|sim| {
            let mem = sim.mem();
            mem.owed += mem.config.costs.syscall;
            let pages = mem.vfs.node(node).pages;
            (sim.object_of(node), pages)
        });
        let end = (first + count).min(pages);
        let mut at = first;
        loop {
            let stop = self.with(|sim| sim.read_run(object, &mut at, end));
            if self.killed() {
                return Err(Fail::Killed);
            }
            match stop {
                Stop::Done => break,
                Stop::Pause => self.pay(),
                Stop::Miss(i) => {
                    let (start, size) = ra.miss(i);
                    // The last page of the first half asks for the next window.
                    let marker = (size > 1).then_some(start + size / 2);
                    self.read_window(who, object, start, size.min(pages - start), marker)?;
                }
                Stop::Marker => {
                    let (start, size) = ra.marker();
                    if start < pages {
                        let marker = Some(start);
                        // What cannot be read ahead is read when it is wanted.
                        let _ =
                            self.read_window(who, object, start, size.min(pages - start), marker);
                    }
                }
                Stop::Locked(pfn) => self.wait_for_read(pfn),
                Stop::Error(i) => {
                    self.with(|sim| sim.remove_from_cache(object, i));
                    return Err(Fail::Io);
                }
                Stop::Swapped(i) => {
                    self.shmem_page(who, object, i, CACHE_PAGE)?;
                }
            }
        }
        ra.next = end;
        self.pay_if_much();
        Ok(())
    }

    /// Reads pages into the cache, without waiting for the transfers.
    fn read_window(
        &mut self,
        who: Who,
        object: ObjectId,
        start: u32,
        size: u32,
        marker: Option<u32>,
    ) -> Result<(), Fail> {
        let mut pages = [(0, Pfn(0)); MAX_WINDOW as usize];
        let mut n = 0;
        let mut failed = None;
        for index in start..start + size {
            if self.with(|sim| sim.mem_ref().at(object, index)) != At::Absent {
                continue;
            }
            let page = self.preload(who, CACHE_PAGE);
            match page.and_then(|()| self.alloc_pages(who, 0, CACHE_PAGE)) {
                Ok(pfn) => {
                    pages[n] = (index, pfn);
                    n += 1;
                }
                Err(e) => {
                    failed = Some(e);
                    break;
                }
            }
        }
        self.with(|sim| sim.start_reads(object, &pages[..n], marker));
        self.settle();
        self.pay_if_much();
        match failed {
            Some(e) if n == 0 => Err(e),
            _ => Ok(()),
        }
    }

    /// For a fault on a mapped file: reads the page and those around it, and waits for the page.
    pub(crate) fn read_around(&mut self, who: Who, node: NodeId, index: u32) -> Result<(), Fail> {
        let (object, pages, tmpfs) = self.with(|sim| {
            let pages = sim.mem_ref().vfs.node(node).pages;
            (sim.object_of(node), pages, sim.is_tmpfs(node))
        });
        if tmpfs {
            return self.shmem_page(who, object, index, CACHE_PAGE).map(drop);
        }
        let start = index.saturating_sub(MAX_WINDOW / 2);
        let size = MAX_WINDOW.min(pages.max(index + 1) - start);
        self.read_window(who, object, start, size, None)?;
        if let At::Frame(pfn) = self.with(|sim| sim.mem_ref().at(object, index)) {
            self.wait_for_read(pfn);
            if self.with(|sim| sim.has_error(pfn)) {
                self.with(|sim| {
                    if sim.mem_ref().at(object, index) == At::Frame(pfn) {
                        sim.remove_from_cache(object, index);
                    }
                });
                return Err(Fail::Io);
            }
        }
        if self.killed() {
            Err(Fail::Killed)
        } else {
            Ok(())
        }
    }

    /// Brings a block of a file system's device into memory; with `changes`, it is dirty then.
    ///
    /// # Errors
    /// As [`read_file`](Cx::read_file).
    pub(crate) fn device_block(
        &mut self,
        who: Who,
        fs: u8,
        block: u32,
        changes: bool,
    ) -> Result<(), Fail> {
        let object = self.with(|sim| sim.mem_ref().vfs.system(fs).device);
        loop {
            match self.with(|sim| sim.mem_ref().at(object, block)) {
                At::Frame(pfn) => {
                    if self.with(|sim| sim.is_locked(pfn)) {
                        self.wait_for_read(pfn);
                        continue;
                    }
                    if self.with(|sim| sim.has_error(pfn)) {
                        self.with(|sim| sim.remove_from_cache(object, block));
                        return Err(Fail::Io);
                    }
                    if self.with(|sim| sim.use_block(fs, object, block, pfn, changes)) {
                        return Ok(());
                    }
                    self.warm_buffers(who)?;
                }
                _ => {
                    self.preload(who, BUFFER_PAGE)?;
                    let pfn = self.alloc_pages(who, 0, BUFFER_PAGE)?;
                    self.with(|sim| sim.start_reads(object, &[(block, pfn)], None));
                    self.settle();
                    if self.killed() {
                        return Err(Fail::Killed);
                    }
                }
            }
        }
    }
}

impl Sim {
    /// Uses a block that is there; false if a slab for its buffer head has to be waited for.
    fn use_block(&mut self, fs: u8, object: ObjectId, block: u32, pfn: Pfn, changes: bool) -> bool {
        if !self.attach_buffers(pfn) {
            return false;
        }
        self.manager().pages().mark_accessed(pfn);
        let cost = self.mem_ref().config.costs.page_lookup;
        self.mem().owe(cost);
        if changes {
            self.set_dirty(object, block, pfn);
            let system = self.mem().vfs.system_mut(fs);
            system.blocks.set_written(block);
            if let Some(j) = &mut system.journal {
                j.change(block);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_double_from_4_to_32_pages_while_a_file_is_read_in_order() {
        let mut ra = Readahead::default();
        assert_eq!(ra.miss(0), (0, 4));
        let windows: Vec<_> = (0..5).map(|_| ra.marker()).collect();
        assert_eq!(windows, [(4, 8), (12, 16), (28, 32), (60, 32), (92, 32)]);
    }

    #[test]
    fn a_read_out_of_order_takes_one_page_and_begins_anew() {
        let mut ra = Readahead::default();
        ra.miss(0);
        assert_eq!(ra.miss(100), (100, 1));
        ra.next = 101;
        assert_eq!(ra.miss(101), (101, 4));
    }
}
