//! Writing files, and the throttling of writers. `spec: 4.5`

use crate::engine::Nanos;
use crate::error::Fail;
use crate::fs::blocks::Blocks;
use crate::fs::dirty::Limits;
use crate::fs::{FsKind, NodeId};
use crate::kernel::mm::Who;
use crate::kernel::{BATCH, Cx, Sim};
use crate::kmem::caches::CacheKind;
use crate::mm::config::{CACHE_PAGE, FlusherForm};
use crate::mm::frames::{FrameFlags, ObjectId};
use crate::mm::object::PageLocation;
use unfrag_eras::page_alloc::{Allocation, Begun};
use unfrag_eras::{Gfp, Pfn};

/// Pages that a writer dirties between two checks of the limits.
const RATELIMIT: u32 = 32;
/// Pages that a writer above the limit writes itself: one and a half times that.
const WRITE_CHUNK: u64 = 48;
/// Longest pause of a writer between two checks of the limits, in kernels with pauses.
const LONGEST_PAUSE: Nanos = 100_000_000;

/// Why a run of writes stopped.
#[expect(clippy::large_enum_variant, reason = "lives on the stack of its task")]
enum WriteStop {
    Done,
    Pause,
    Locked(Pfn),
    /// A slab of buffer heads is needed.
    Buffers,
    Wait(Allocation),
    NoMemory,
}

impl Sim {
    /// Writes pages from `*at` on, as long as that needs no wait. `spare` is a page for the next one that is not
    /// in the cache.
    fn write_run(
        &mut self,
        who: Who,
        object: ObjectId,
        at: &mut u32,
        end: u32,
        spare: &mut Option<Pfn>,
    ) -> WriteStop {
        let cost = self.kernel_ref().config.costs.write_page;
        while *at < end {
            let pfn = match self.kernel_ref().at(object, *at) {
                PageLocation::Frame(pfn) if self.is_locked(pfn) => return WriteStop::Locked(pfn),
                PageLocation::Frame(pfn) => pfn,
                _ => {
                    let pfn = match spare.take() {
                        Some(pfn) => pfn,
                        None => match self.begin(who, 0, CACHE_PAGE | Gfp::WRITE) {
                            Ok(Begun::Got(pfn)) => pfn,
                            Ok(Begun::Allocation(allocation)) => {
                                return WriteStop::Wait(allocation);
                            }
                            Err(_) => return WriteStop::NoMemory,
                        },
                    };
                    self.add_to_cache(object, *at, pfn, false);
                    pfn
                }
            };
            self.kernel().frames.get_mut(pfn).bits -= FrameFlags::ERROR;
            if !self.attach_buffers(pfn) {
                return WriteStop::Buffers;
            }
            self.manager().pages().mark_accessed(pfn);
            self.set_dirty(object, *at, pfn);
            self.kernel().owe(cost);
            *at += 1;
            if self.kernel_ref().owed >= BATCH {
                return WriteStop::Pause;
            }
        }
        WriteStop::Done
    }
}

impl Cx<'_> {
    /// Writes `count` whole pages of a file from page `first` on; the file grows if need be. The node
    /// must be pinned.
    ///
    /// # Errors
    /// [`Fail::NoMemory`], [`Fail::NoSpace`], [`Fail::Io`], [`Fail::Killed`].
    pub fn write_file(
        &mut self,
        who: Who,
        node: NodeId,
        first: u32,
        count: u32,
    ) -> Result<(), Fail> {
        let kind = self.with(|sim| {
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.syscall;
            let fs = kernel.vfs.node(node).fs;
            kernel.vfs.system(fs).kind
        });
        if kind == FsKind::Tmpfs {
            return self.write_shmem(who, node, first, count);
        }
        self.extend_file(who, node, kind, first + count)?;
        let object = self.with(|sim| sim.object_of(node));
        let mut at = first;
        while at < first + count {
            let end = (at + RATELIMIT).min(first + count);
            self.write_chunk(who, object, at, end)?;
            if kind == FsKind::Ext3 {
                // A handle for each page.
                for _ in at..end {
                    self.kmem_pass(who, CacheKind::JournalHandle)?;
                }
            }
            at = end;
            self.balance_dirty(who)?;
        }
        self.pay_if_much();
        Ok(())
    }

    fn write_chunk(
        &mut self,
        who: Who,
        object: ObjectId,
        first: u32,
        end: u32,
    ) -> Result<(), Fail> {
        self.preload(who, CACHE_PAGE)?;
        let mut at = first;
        let mut spare = None;
        let done = loop {
            let stop = self.with(|sim| sim.write_run(who, object, &mut at, end, &mut spare));
            self.pay_if_much();
            if self.killed() {
                break Err(Fail::Killed);
            }
            match stop {
                WriteStop::Done => break Ok(()),
                WriteStop::Pause => {}
                WriteStop::Locked(pfn) => self.wait_for_read(pfn),
                WriteStop::Buffers => {
                    if let Err(e) = self.warm_buffers(who) {
                        break Err(e);
                    }
                }
                WriteStop::Wait(allocation) => match self.finish(who, allocation) {
                    Ok(pfn) => spare = Some(pfn),
                    Err(e) => break Err(e),
                },
                WriteStop::NoMemory => break Err(Fail::NoMemory),
            }
        };
        if let Some(pfn) = spare {
            self.with(|sim| sim.give_frame(pfn, 0));
        }
        done
    }

    /// Gives a file blocks and its new length.
    fn extend_file(
        &mut self,
        who: Who,
        node: NodeId,
        kind: FsKind,
        pages: u32,
    ) -> Result<(), Fail> {
        if self.fill_blocks(node, pages)? == 0 {
            return Ok(());
        }
        let (fs, inode) =
            self.with(|sim| (sim.kernel_ref().vfs.node(node).fs, sim.inode_block(node)));
        self.with(|sim| {
            let vfs = &mut sim.kernel().vfs;
            let n = vfs.node_mut(node);
            n.pages = n.pages.max(pages);
            if kind == FsKind::Ext3
                && !std::mem::replace(&mut n.in_transaction, true)
                && let Some(j) = &mut vfs.system_mut(fs).journal
            {
                j.order(node);
            }
        });
        let bitmap = self.with(|sim| {
            let (block, _) = sim.kernel_ref().vfs.node(node).block(pages - 1)?;
            Some(Blocks::bitmap_block(block, false))
        });
        for block in bitmap.into_iter().chain([inode]) {
            self.device_block(who, fs, block, true)?;
        }
        Ok(())
    }

    /// Throttles a writer while there is too much to write. `spec: 4.5`
    pub(crate) fn balance_dirty(&mut self, who: Who) -> Result<(), Fail> {
        let from = self.now();
        let mut pause = 0;
        loop {
            let (over, tick, form) = self.with(|sim| {
                let limits = sim.dirty_limits();
                if sim.kernel_ref().vfs.dirty.nr_dirty > limits.background {
                    sim.wake_flushers(0);
                }
                let over = sim.is_over(&limits);
                (
                    over,
                    sim.world_ref().tick(),
                    sim.kernel_ref().config.dirty.flusher,
                )
            });
            if !over {
                break;
            }
            let written = self.write_some(who, WRITE_CHUNK, None, false);
            if self.killed() {
                return Err(Fail::Killed);
            }
            if written >= WRITE_CHUNK {
                break;
            }
            self.pay();
            match form {
                FlusherForm::Pdflush => {
                    let sync = self.with(|sim| sim.waits_for_sync());
                    self.wait_for_congestion(sync, 100);
                }
                FlusherForm::PerDevice => {
                    pause = (2 * pause).clamp(tick, LONGEST_PAUSE);
                    self.sleep(pause);
                }
            }
        }
        let now = self.now();
        self.with(|sim| sim.kernel().counters.dirty_pause += now - from);
        Ok(())
    }
}

impl Sim {
    fn is_over(&self, limits: &Limits) -> bool {
        let d = &self.kernel_ref().vfs.dirty;
        d.nr_dirty + d.nr_writeback > limits.dirty
    }

    /// Class of the requests whose congestion is waited for, by the era's rule.
    pub(crate) fn waits_for_sync(&mut self) -> bool {
        use unfrag_eras::kernel::CongestionWait;
        self.manager().inspect().rules().reclaim.congestion == CongestionWait::Sync
    }
}
