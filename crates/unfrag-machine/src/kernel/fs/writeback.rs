//! Writeback: which dirty pages are written when, and by whom. `spec: 4.5`
//!
//! Invariant: a page under writeback is in flight, and [`page_done`](Sim::page_done) is called for it once.

use crate::block::{BIO_PAGES, Dir, Done};
use crate::channels::FLUSH;
use crate::engine::{Channel, Nanos, Spec, Waited};
use crate::fs::dirty::Limits;
use crate::fs::transfer::{Batch, BlockRun};
use crate::fs::{FsKind, NodeId, Store};
use crate::kernel::mm::Who;
use crate::kernel::{Cx, KernelState, Sim, World};
use crate::mm::config::FlusherForm;
use crate::mm::frames::{FrameFlags, ObjectId};
use unfrag_eras::ZoneKind;
use unfrag_eras::reclaim::{Lru, PageFlags};

/// Pages that a flusher writes before it looks at the limits again.
const CHUNK: u64 = 1024;

impl World {
    /// Whether the device of a file is congested for writes.
    pub(crate) fn file_congested(&self, object: ObjectId) -> bool {
        let Some((fs, ..)) = self.place(object, 0) else {
            return false;
        };
        self.fs_congested(fs)
    }

    fn fs_congested(&self, fs: u8) -> bool {
        match self.kernel.vfs.system(fs).store {
            Store::Disk { device, .. } => self.block.congested(device, false),
            Store::Loop(_) | Store::Memory => false,
        }
    }

    /// Begins to write one page; false if it has no block. The caller sets its flags.
    pub(crate) fn start_write(&mut self, object: ObjectId, index: u32, sync: bool) -> bool {
        let Some((fs, block, _)) = self.place(object, index) else {
            return false;
        };
        let Some(pfn) = self.kernel.objects.get(object).get(index).pfn() else {
            return false;
        };
        self.kernel.note_write(fs, block, object, index, pfn);
        self.submit_write(fs, block, sync, 0, &[pfn.0 as u32]);
        true
    }

    fn submit_write(&mut self, fs: u8, block: u32, sync: bool, room: u8, pages: &[u32]) {
        let blocks = BlockRun {
            fs,
            block,
            dir: Dir::Write,
            sync,
            done: Done::PageWritten,
            room,
        };
        self.submit_blocks(blocks, pages);
    }

    /// Room in the bios with which a file system writes a file: many pages each, or 0 for page by page.
    fn write_room(&self, fs: u8) -> u8 {
        match self.kernel.vfs.system(fs).kind {
            FsKind::Ext2 => BIO_PAGES as u8,
            FsKind::Ext3 | FsKind::Tmpfs => 0,
        }
    }
}

impl KernelState {
    fn note_write(
        &mut self,
        fs: u8,
        block: u32,
        object: ObjectId,
        index: u32,
        pfn: unfrag_eras::Pfn,
    ) {
        self.clear_dirty_mark(object, index);
        self.frames.get_mut(pfn).bits |= FrameFlags::IN_FLIGHT;
        self.vfs.dirty.nr_writeback += 1;
        self.vfs.system_mut(fs).blocks.set_written(block);
        self.counters.pgpgout += 1;
        self.owed += self.config.costs.submit;
    }
}

impl Sim {
    /// The present limits: shares of the free and evictable pages, without high memory.
    pub fn dirty_limits(&mut self) -> Limits {
        let m = self.manager();
        let mut pages = 0;
        for z in m.inspect().zones() {
            let view = m.inspect().zone(z);
            if view.config.kind == ZoneKind::HighMem {
                continue;
            }
            let lru = m.inspect().lru(z);
            let evictable = Lru::EVICTABLE.iter().map(|l| lru.pages[*l as usize - 1]);
            pages += view.free_pages + evictable.sum::<u64>();
        }
        let d = self.kernel_ref().config.dirty;
        let dirty = pages * d.ratio.max(5) / 100;
        Limits {
            dirty,
            background: (pages * d.background_ratio / 100).min(dirty / 2),
        }
    }

    /// Asks the flushers for `pages` pages, beside what the limits ask for.
    pub(crate) fn wake_flushers(&mut self, pages: u64) {
        let d = &mut self.kernel().vfs.dirty;
        d.wanted = d.wanted.max(pages).min(d.nr_dirty);
        self.wake(Channel::new(FLUSH, 0));
    }

    /// Begins to write up to `nr` dirty pages of an object, from `*at` on, in as few transfers as possible;
    /// returns how many, and whether it reached the end.
    pub(super) fn write_object(
        &mut self,
        object: ObjectId,
        at: &mut u32,
        nr: u64,
        sync: bool,
    ) -> (u64, bool) {
        let mut written = 0;
        let mut run: Option<(u8, u32, Batch)> = None;
        let mut end = false;
        while written < nr {
            let Some(i) = self.kernel_ref().objects.get(object).dirty.next(*at) else {
                end = true;
                break;
            };
            *at = i + 1;
            let Some(pfn) = self.kernel_ref().objects.get(object).get(i).pfn() else {
                unreachable!("a dirty page is in memory")
            };
            let busy = PageFlags::WRITEBACK | PageFlags::LOCKED;
            let Some((fs, block, _)) = self.place(object, i) else {
                continue;
            };
            if self.manager().inspect().page_flags(pfn).intersects(busy) {
                continue;
            }
            self.kernel().note_write(fs, block, object, i, pfn);
            let m = self.manager();
            m.pages().clear(pfn, PageFlags::DIRTY);
            m.pages().set(pfn, PageFlags::WRITEBACK);
            written += 1;
            let goes_on = matches!(&run, Some((f, b, batch))
                if *f == fs && b + batch.pages().len() as u32 == block && !batch.is_full());
            if !goes_on && let Some((fs, block, batch)) = run.take() {
                self.write_batch(fs, block, sync, &batch);
            }
            run.get_or_insert((fs, block, Batch::default())).2.push(pfn);
        }
        if let Some((fs, block, batch)) = run {
            self.write_batch(fs, block, sync, &batch);
        }
        (written, end)
    }

    fn write_batch(&mut self, fs: u8, block: u32, sync: bool, batch: &Batch) {
        let world = self.world();
        let room = world.write_room(fs);
        world.submit_write(fs, block, sync, room, batch.pages());
    }

    /// The next node of a file system to be written; with `before`, if its oldest dirty page is older.
    fn next_dirty(&mut self, fs: u8, before: Option<Nanos>) -> Option<NodeId> {
        loop {
            let vfs = &mut self.kernel().vfs;
            let &node = vfs.system(fs).dirty.front()?;
            let n = vfs.node(node);
            let (listed, since) = (n.on_dirty_list, n.dirty_since);
            let object = n.object;
            let dirty = object.map_or(0, |o| self.kernel_ref().objects.get(o).nr_dirty);
            if listed && dirty > 0 {
                return before.is_none_or(|b| since < b).then_some(node);
            }
            let vfs = &mut self.kernel().vfs;
            vfs.system_mut(fs).dirty.pop_front();
            vfs.node_mut(node).on_dirty_list = false;
        }
    }

    /// Moves a node that was written to the end of the dirty list, or off it.
    fn requeue(&mut self, fs: u8, node: NodeId) {
        let now = self.now();
        let kernel = self.kernel();
        let vfs = &mut kernel.vfs;
        let system = vfs.system_mut(fs);
        if system.dirty.front() == Some(&node) {
            system.dirty.pop_front();
        }
        let n = vfs.node_mut(node);
        let dirty = n.object.is_some_and(|o| kernel.objects.get(o).nr_dirty > 0);
        n.on_dirty_list = dirty;
        if dirty {
            n.dirty_since = now;
            vfs.system_mut(fs).dirty.push_back(node);
        }
    }
}

impl Cx<'_> {
    /// Begins to write up to `nr` dirty pages, of any file system, those first that have waited
    /// longest; with `before`, only files whose oldest dirty page is older. With `skips`, congested devices are
    /// skipped. Returns how many.
    pub(crate) fn write_some(
        &mut self,
        who: Who,
        nr: u64,
        before: Option<Nanos>,
        skips: bool,
    ) -> u64 {
        let systems = self.with(|sim| sim.kernel_ref().vfs.systems.len() as u8);
        let mut written = 0;
        for fs in 0..systems {
            while written < nr {
                if skips && self.with(|sim| sim.world_ref().fs_congested(fs)) {
                    break;
                }
                let Some(node) = self.with(|sim| sim.next_dirty(fs, before)) else {
                    break;
                };
                let n = self.write_node(who, node, nr - written, skips);
                written += n;
                if n == 0 {
                    break;
                }
            }
            if written < nr {
                written += self.write_device(fs, nr - written, before);
            }
        }
        self.pay_if_much();
        written
    }

    /// Writes pages of one node, from where the last round stopped.
    fn write_node(&mut self, _who: Who, node: NodeId, nr: u64, skips: bool) -> u64 {
        let fs = self.with(|sim| {
            sim.pin(node);
            sim.kernel_ref().vfs.node(node).fs
        });
        let mut total = 0;
        let mut wrapped = false;
        while total < nr {
            // In pieces, so that congestion is noticed.
            let piece = (nr - total).min(BIO_PAGES as u64 * 4);
            let (n, end) = self.with(|sim| {
                let Some(object) = sim.kernel_ref().vfs.node(node).object else {
                    return (0, true);
                };
                let mut at = sim.kernel_ref().vfs.node(node).writeback_index;
                let got = sim.write_object(object, &mut at, piece, false);
                let n = sim.kernel().vfs.node_mut(node);
                n.writeback_index = if got.1 { 0 } else { at };
                got
            });
            total += n;
            self.settle();
            self.pay_if_much();
            if end && std::mem::replace(&mut wrapped, true)
                || skips && self.with(|sim| sim.world_ref().fs_congested(fs))
            {
                break;
            }
        }
        self.with(|sim| {
            sim.requeue(fs, node);
            sim.unpin(node);
        });
        total
    }

    /// Writes blocks of a file system's device.
    fn write_device(&mut self, fs: u8, nr: u64, before: Option<Nanos>) -> u64 {
        let n = self.with(|sim| {
            let system = sim.kernel_ref().vfs.system(fs);
            let (object, since) = (system.device, system.device_dirty_since);
            if before.is_some_and(|b| since >= b) {
                return 0;
            }
            sim.write_object(object, &mut 0, nr, false).0
        });
        if n > 0 {
            self.settle();
        }
        n
    }

    /// Writes all dirty pages of all file systems, and waits until they are written (`sync`).
    pub fn sync_all(&mut self) {
        loop {
            let n = self.write_some(Who::KERNEL, CHUNK, None, false);
            let d = self.with(|sim| sim.kernel_ref().vfs.dirty);
            if d.nr_dirty == 0 && d.nr_writeback == 0 || self.killed() {
                return;
            }
            if n == 0 {
                let tick = self.with(|sim| sim.world_ref().tick());
                self.sleep(tick);
            }
        }
    }
}

impl Sim {
    /// Starts the flushers of the era.
    pub fn start_flushers(&mut self) {
        let names: &[&str] = match self.kernel_ref().config.dirty.flusher {
            FlusherForm::Pdflush => &["pdflush/0", "pdflush/1"],
            FlusherForm::PerDevice => &["flush"],
        };
        for name in names {
            let spec = Spec::kthread(*name).nice(0);
            self.spawn(spec, flusher);
        }
    }
}

fn flusher(cx: &mut Cx) {
    loop {
        let (interval, expire, form) = cx.with(|sim| {
            let d = sim.kernel_ref().config.dirty;
            (d.interval, d.expire, d.flusher)
        });
        let skips = form == FlusherForm::Pdflush;
        if cx.wait(Channel::new(FLUSH, 0), Some(interval)) == Waited::TimedOut {
            let now = cx.now();
            if now > expire {
                while cx.write_some(Who::KERNEL, CHUNK, Some(now - expire), skips) >= CHUNK {}
            }
        }
        background(cx, skips);
        cx.pay();
    }
}

/// Writes until there is less than the background limit, and what reclaim asked for.
fn background(cx: &mut Cx, skips: bool) {
    loop {
        let goes_on = cx.with(|sim| {
            let limits = sim.dirty_limits();
            let d = sim.kernel_ref().vfs.dirty;
            d.nr_dirty > limits.background || d.wanted > 0 && d.nr_dirty > 0
        });
        if !goes_on {
            cx.with(|sim| sim.kernel().vfs.dirty.wanted = 0);
            return;
        }
        let n = cx.write_some(Who::KERNEL, CHUNK, None, skips);
        cx.with(|sim| {
            let d = &mut sim.kernel().vfs.dirty;
            d.wanted = d.wanted.saturating_sub(n);
        });
        cx.pay();
        if n < CHUNK && (!skips || n == 0) {
            // The rest is under way or cannot be written now.
            let sync = cx.with(|sim| sim.waits_for_sync());
            let left = cx.wait_for_congestion(sync, 100);
            if left == 0 && n == 0 {
                return;
            }
        }
    }
}
