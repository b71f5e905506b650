//! Meeting the needs of the allocator's operations: time, waits, shrinking, killing.
//! `spec: 4.3-4.5, 4.8`

use crate::channels::{THROTTLE, kcompactd_channel, kswapd_channel, page_channel};
use crate::engine::{Channel, MS, Nanos, Waited};
use crate::kernel::mm::caller::{Caller, Daemon};
use crate::kernel::{Cx, KernelState, Sim};
use unfrag_eras::drive::{Operation, World, drive};
use unfrag_eras::migrate::{Migration, MoveVerdicts};
use unfrag_eras::reclaim::{
    Answer, Class, Eviction, Need, PageFlags, Throttle, Verdicts, WRITTEN_ENOUGH,
};
use unfrag_eras::{CpuId, Gfp, Manager};

/// A task that drives an operation of the allocator: the [`World`] of that operation.
///
/// A step and the evictions that it asks for are one piece of work without interruption. Blocks to be freed
/// and transfers that need objects are dealt with before the next need is met.
struct TaskWorld<'a, 'y> {
    cx: &'a mut Cx<'y>,
    caller: Caller,
    /// Compaction has gone on since the last need was met. Its scans are paid for as they happen.
    compacted: bool,
}

impl World for TaskWorld<'_, '_> {
    type Host = crate::kernel::World;

    fn locked<T>(
        &mut self,
        f: impl FnOnce(&mut Manager<'_, crate::kernel::World>, CpuId) -> T,
    ) -> T {
        let sim = self.cx.within();
        let (cpu, slots) = (sim.cpu_id(), sim.kernel_ref().free_slots());
        let now = sim.now();
        let m = sim.manager();
        m.set_nr_swap_pages(slots);
        m.set_time_ms(now / MS);
        let before = frames_compacted(m);
        let got = f(m, cpu);
        let frames = frames_compacted(m) - before;
        if frames > 0 {
            self.compacted = true;
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.compact_frame * frames;
        }
        got
    }

    fn meet(&mut self, need: Need) -> Answer {
        let daemon = matches!(self.caller.daemon, Some(Daemon::Kswapd(_)));
        let need = match need {
            Need::Turn { freed, .. } if std::mem::take(&mut self.compacted) => {
                Need::Turn { scanned: 0, freed }
            }
            need => need,
        };
        self.cx.with(|sim| {
            sim.free_pending();
            // For any node: the tasks throttled for the reserves name none.
            if daemon && matches!(need, Need::Turn { freed: 1.., .. } | Need::Sleep(_)) {
                sim.end_throttle(Throttle::Reserves);
            }
        });
        // No time may pass between the decision to wait for kswapd, or kswapd's own to sleep, and the wait;
        // otherwise a wake-up would be lost.
        if !waits_for_kswapd(need) && !matches!(need, Need::Sleep(_)) {
            self.cx.settle();
        }
        self.cx.meet(self.caller, need)
    }

    fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        self.cx.within().world().evict(eviction)
    }

    /// Time passes here: the owners of the pages may use them meanwhile.
    fn migrate(&mut self, migration: &Migration) -> MoveVerdicts {
        self.cx.with(Sim::free_pending);
        self.cx.settle();
        self.cx.migrate(self.caller, migration)
    }
}

/// Frames that compaction has looked at.
fn frames_compacted(m: &Manager<'_, crate::kernel::World>) -> u64 {
    let c = m.inspect().compact_counters();
    c.compact_migrate_scanned + c.compact_free_scanned
}

fn waits_for_kswapd(need: Need) -> bool {
    matches!(
        need,
        Need::Throttle {
            why: Throttle::Reserves,
            ..
        }
    )
}

impl Cx<'_> {
    /// Drives an operation of the allocator to its end. `ended` is called with its output before time passes.
    pub(crate) fn drive<O: Operation>(
        &mut self,
        caller: Caller,
        operation: &mut O,
        ended: impl FnOnce(&mut Sim, &O::Output),
    ) -> O::Output {
        let mut world = TaskWorld {
            cx: self,
            caller,
            compacted: false,
        };
        let output = drive(&mut world, operation);
        self.with(|sim| {
            ended(sim, &output);
            sim.free_pending();
        });
        self.settle();
        output
    }

    /// Meets a need of an operation of the allocator.
    fn meet(&mut self, caller: Caller, need: Need) -> Answer {
        match need {
            Need::Turn { scanned, freed } => {
                self.with(|sim| {
                    sim.kernel().owe_scan(scanned, freed);
                    sim.sweep_slots();
                });
                self.pay();
                Answer::Go
            }
            Need::CongestionWait { class, ms } => {
                self.pay();
                Answer::Left(self.wait_for_congestion(class == Class::Sync, ms))
            }
            Need::Throttle { why, ms } => {
                if !waits_for_kswapd(need) {
                    self.pay();
                }
                self.throttle(why, ms);
                Answer::Go
            }
            Need::PageWriteback(pfn) => {
                self.pay();
                self.wait_on_writeback(pfn);
                Answer::Go
            }
            Need::Shrink { scanned, lru_pages } => {
                let freed = if caller.gfp.contains(Gfp::FS) {
                    self.with(|sim| sim.shrink_caches(scanned, lru_pages))
                } else {
                    0
                };
                self.pay_if_much();
                Answer::Freed(freed)
            }
            Need::WakeFlushers(pages) => {
                self.with(|sim| sim.wake_flushers(pages));
                Answer::Go
            }
            Need::Oom => {
                self.pay();
                Answer::Killed(self.out_of_memory(caller))
            }
            Need::Sleep(ms) => {
                let timeout = ms.map(|ms| Nanos::from(ms) * MS);
                let channel = match caller.daemon {
                    Some(Daemon::Kcompactd(node)) => kcompactd_channel(node),
                    Some(Daemon::Kswapd(node)) => kswapd_channel(node),
                    None => panic!("only daemons sleep"),
                };
                match self.wait(channel, timeout) {
                    Waited::Woken { left } => Answer::Left(left.div_ceil(MS) as u32),
                    Waited::TimedOut => Answer::Left(0),
                }
            }
            need => panic!("nobody in this machine can meet {need:?}"),
        }
    }

    /// Waits for congestion of a class to end; returns the milliseconds that were left.
    pub(crate) fn wait_for_congestion(&mut self, sync: bool, ms: u32) -> u32 {
        let from = self.now();
        let left = self.congestion_wait(sync, Nanos::from(ms) * MS);
        let now = self.now();
        self.with(|sim| sim.kernel().counters.congestion_wait += now - from);
        (left / MS) as u32
    }

    fn throttle(&mut self, why: Throttle, ms: u32) {
        let from = self.now();
        let tick = self.with(|sim| {
            if why == Throttle::Writeback {
                sim.kernel().written = 0;
            }
            sim.world_ref().tick()
        });
        let timeout = if ms == 0 { tick } else { Nanos::from(ms) * MS };
        self.wait(Channel::new(THROTTLE, why as u64), Some(timeout));
        let now = self.now();
        self.with(|sim| sim.kernel().counters.throttled += now - from);
    }

    /// Waits until a page is not being written.
    pub(crate) fn wait_on_writeback(&mut self, pfn: unfrag_eras::Pfn) {
        let busy = |sim: &mut Sim| {
            sim.manager()
                .inspect()
                .page_flags(pfn)
                .contains(PageFlags::WRITEBACK)
        };
        while self.with(busy) {
            self.wait_io(page_channel(pfn), None);
        }
    }
}

impl Sim {
    /// A page was written.
    pub(crate) fn note_written(&mut self) {
        let kernel = self.kernel();
        kernel.written += 1;
        if kernel.written >= WRITTEN_ENOUGH {
            kernel.written = 0;
            self.end_throttle(Throttle::Writeback);
        }
    }

    /// Wakes the tasks throttled for a reason.
    pub(crate) fn end_throttle(&mut self, why: Throttle) {
        self.wake(Channel::new(THROTTLE, why as u64));
    }
}

impl KernelState {
    fn owe_scan(&mut self, scanned: u32, freed: u32) {
        let c = &self.config.costs;
        // A turn without work takes time too; otherwise a retry would see no time pass.
        self.owed += c.alloc_slow;
        self.owed += c.scan_page * Nanos::from(scanned) + c.reclaim_page * Nanos::from(freed);
    }
}
