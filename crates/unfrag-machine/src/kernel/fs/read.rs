//! Reading files through the page cache, with readahead. `spec: 8.6`
//!
//! Invariant: the task that adds a page to the cache reads it; the page is locked until its transfer ends,
//! and others wait for that.

use crate::block::{BIO_PAGES, Dir, Done};
use crate::error::Fail;
use crate::fs::readahead::MAX_WINDOW;
use crate::fs::transfer::{Batch, BlockRun};
use crate::fs::{NodeId, Readahead};
use crate::kernel::mm::Who;
use crate::kernel::mm::prefetch::TOGETHER;
use crate::kernel::{BATCH, Cx, Sim};
use crate::mm::config::{BUFFER_PAGE, CACHE_PAGE};
use crate::mm::frames::{FrameFlags, ObjectId};
use crate::mm::object::{Entry, PageLocation};
use unfrag_eras::Pfn;

/// Why a run of reads stopped.
enum ReadStop {
    Done,
    Pause,
    Miss(u32),
    Marker,
    Locked(Pfn),
    Error(u32),
    Swapped(u32),
}

impl Sim {
    /// Reads pages that are in the cache, from `*at` on.
    fn read_run(&mut self, object: ObjectId, at: &mut u32, end: u32) -> ReadStop {
        let (lookup, copy) = {
            let c = &self.kernel_ref().config.costs;
            (c.page_lookup, c.read_page)
        };
        while *at < end {
            let mut entries = [Entry::ABSENT; TOGETHER];
            let entries = &mut entries[..TOGETHER.min((end - *at) as usize)];
            self.kernel_ref().objects.get(object).copy(*at, entries);
            self.prefetch_first(entries);
            for (i, entry) in entries.iter().enumerate() {
                self.prefetch_next(entries, i);
                let pfn = match entry.at() {
                    PageLocation::Frame(pfn) => pfn,
                    PageLocation::Absent => return ReadStop::Miss(*at),
                    PageLocation::Slot(_) => return ReadStop::Swapped(*at),
                };
                if self.is_locked(pfn) {
                    return ReadStop::Locked(pfn);
                }
                let kernel = self.kernel();
                let info = kernel.frames.get_mut(pfn);
                if info.bits.contains(FrameFlags::ERROR) {
                    return ReadStop::Error(*at);
                }
                if info.bits.contains(FrameFlags::READAHEAD) {
                    info.bits -= FrameFlags::READAHEAD;
                    return ReadStop::Marker;
                }
                kernel.owed += lookup + copy;
                let pause = kernel.owed >= BATCH;
                self.manager().pages().mark_accessed(pfn);
                *at += 1;
                if pause {
                    return ReadStop::Pause;
                }
            }
        }
        ReadStop::Done
    }

    /// Place of a page of an object: file system, block, and number of contiguous pages from there on. `None`
    /// if it has no block.
    pub(crate) fn place(&self, object: ObjectId, index: u32) -> Option<(u8, u32, u32)> {
        self.world_ref().place(object, index)
    }

    /// Place of a page, if it has to be read from its device.
    fn has_content(&self, object: ObjectId, index: u32) -> Option<(u8, u32, u32)> {
        let (fs, block, together) = self.place(object, index)?;
        let written = self.kernel_ref().vfs.system(fs).blocks.is_written(block);
        written.then_some((fs, block, together))
    }

    /// Adds pages to the cache, except those that another task has added meanwhile, and submits the reads in as
    /// few transfers as possible.
    fn start_reads(&mut self, object: ObjectId, pages: &[(u32, Pfn)], marker: Option<u32>) {
        let mut bio: Option<(u8, u32, Batch)> = None;
        for &(index, pfn) in pages {
            if self.kernel_ref().at(object, index) != PageLocation::Absent {
                self.give_frame(pfn, 0);
                continue;
            }
            let place = self.has_content(object, index);
            self.add_to_cache(object, index, pfn, place.is_some());
            if marker == Some(index) {
                self.kernel().frames.get_mut(pfn).bits |= FrameFlags::READAHEAD;
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
        let kernel = self.kernel();
        kernel.counters.pgpgin += u64::from(batch.len);
        kernel.owed += kernel.config.costs.submit;
        let blocks = BlockRun {
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
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.syscall;
            let pages = kernel.vfs.node(node).pages;
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
                ReadStop::Done => break,
                ReadStop::Pause => self.pay(),
                ReadStop::Miss(i) => {
                    let (start, size) = ra.miss(i);
                    // The last page of the first half asks for the next window.
                    let marker = (size > 1).then_some(start + size / 2);
                    self.read_window(who, object, start, size.min(pages - start), marker)?;
                }
                ReadStop::Marker => {
                    let (start, size) = ra.marker();
                    if start < pages {
                        let marker = Some(start);
                        // A failure of readahead is not an error of this read.
                        let _ =
                            self.read_window(who, object, start, size.min(pages - start), marker);
                    }
                }
                ReadStop::Locked(pfn) => self.wait_for_read(pfn),
                ReadStop::Error(i) => {
                    self.with(|sim| sim.remove_from_cache(object, i));
                    return Err(Fail::Io);
                }
                ReadStop::Swapped(i) => {
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
            if self.with(|sim| sim.kernel_ref().at(object, index)) != PageLocation::Absent {
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

    /// For a fault on a mapped file: reads the page and its neighbours, and waits for the page.
    pub(crate) fn read_around(&mut self, who: Who, node: NodeId, index: u32) -> Result<(), Fail> {
        let (object, pages, tmpfs) = self.with(|sim| {
            let pages = sim.kernel_ref().vfs.node(node).pages;
            (sim.object_of(node), pages, sim.is_tmpfs(node))
        });
        if tmpfs {
            return self.shmem_page(who, object, index, CACHE_PAGE).map(drop);
        }
        let start = index.saturating_sub(MAX_WINDOW / 2);
        let size = MAX_WINDOW.min(pages.max(index + 1) - start);
        self.read_window(who, object, start, size, None)?;
        if let PageLocation::Frame(pfn) = self.with(|sim| sim.kernel_ref().at(object, index)) {
            self.wait_for_read(pfn);
            if self.with(|sim| sim.has_error(pfn)) {
                self.with(|sim| {
                    if sim.kernel_ref().at(object, index) == PageLocation::Frame(pfn) {
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

    /// Reads a block of a file system's device into memory; with `changes`, marks it dirty.
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
        let object = self.with(|sim| sim.kernel_ref().vfs.system(fs).device);
        loop {
            match self.with(|sim| sim.kernel_ref().at(object, block)) {
                PageLocation::Frame(pfn) => {
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
    /// Uses a cached block; false if the slab for its buffer head has to be waited for.
    fn use_block(&mut self, fs: u8, object: ObjectId, block: u32, pfn: Pfn, changes: bool) -> bool {
        if !self.attach_buffers(pfn) {
            return false;
        }
        self.manager().pages().mark_accessed(pfn);
        let cost = self.kernel_ref().config.costs.page_lookup;
        self.kernel().owe(cost);
        if changes {
            self.set_dirty(object, block, pfn);
            let system = self.kernel().vfs.system_mut(fs);
            system.blocks.set_written(block);
            if let Some(j) = &mut system.journal {
                j.change(block);
            }
        }
        true
    }
}
