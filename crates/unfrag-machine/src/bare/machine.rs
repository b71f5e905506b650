//! The machine: its program's requests, and the daemons that act meanwhile.

use super::daemon::{Attempt, Daemon};
use super::memory::{Memory, Spent, Stepped, Wakes};
use crate::engine::Nanos;
use crate::mm::MemCosts;
use crate::own::Own;
use std::mem::take;
use unfrag_eras::compact::{CHECK_INTERVAL_MS, Compaction, Kcompactd};
use unfrag_eras::need::Answer;
use unfrag_eras::page_alloc::Begun;
use unfrag_eras::reclaim::Kswapd;
use unfrag_eras::{
    Config, ConfigError, CpuId, Gfp, Layout, Manager, NodeId, Order, Pfn, Request, Rules, Sysctl,
    ZoneConfig, ZoneKind, layout,
};

/// Frames below 16 MiB and below 4 GiB.
const DMA: u64 = 1 << 12;
const DMA32: u64 = 1 << 20;

/// CPUs of the program and of the daemons. Others would only be idle.
const PROGRAM: CpuId = CpuId(0);
const KSWAPD: CpuId = CpuId(1);
const KCOMPACTD: CpuId = CpuId(2);
const CPUS: usize = 3;

/// Time between two looks of kcompactd at the score, and the longest time: after an attempt that gained nothing.
/// `spec: 5.5`
const PERIOD: Nanos = CHECK_INTERVAL_MS as Nanos * 1_000_000;
const LONGEST_PAUSE: Nanos = PERIOD << 6;

/// What a machine is made of.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Frames of 4 KiB.
    pub frames: u64,
    /// The kernel's rules.
    pub rules: Rules,
    /// Its settings.
    pub sysctl: Sysctl,
    /// Costs.
    pub costs: MemCosts,
}

impl Description {
    /// The zones of an x86-64 machine with one node.
    fn zones(&self) -> Vec<ZoneConfig> {
        let bounds = [
            (ZoneKind::Dma, 0, DMA),
            (ZoneKind::Dma32, DMA, DMA32),
            (ZoneKind::Normal, DMA32, u64::MAX),
        ];
        let zone = |(kind, from, to): (ZoneKind, u64, u64)| {
            let frames = self.frames.min(to).saturating_sub(from);
            (frames > 0).then(|| ZoneConfig::whole(NodeId(0), kind, Pfn(from), frames))
        };
        bounds.into_iter().filter_map(zone).collect()
    }

    fn config<'a>(&self, zones: &'a [ZoneConfig]) -> Config<'a> {
        Config {
            cpus: CPUS,
            sysctl: self.sysctl,
            ..Config::new(zones, self.rules)
        }
    }

    /// The memory that the allocator needs for it.
    ///
    /// # Errors
    /// If no manager can be made for it.
    pub fn layout(&self) -> Result<Layout, ConfigError> {
        layout(&self.config(&self.zones()))
    }
}

/// How a request of the program was served.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The block, if there was one.
    pub block: Option<Pfn>,
    /// What it took.
    pub spent: Spent,
}

/// A machine.
pub struct Bare<'m> {
    pub(super) memory: Memory<'m>,
    now: Nanos,
    kswapd: Daemon<Kswapd>,
    kcompactd: Daemon<Kcompactd>,
}

impl<'m> Bare<'m> {
    /// A machine whose memory is all free, in zeroed metadata of [`Description::layout`].
    ///
    /// # Errors
    /// If no manager can be made for it.
    pub fn boot(of: &Description, metadata: &'m mut [u64]) -> Result<Bare<'m>, ConfigError> {
        let zones = of.zones();
        let manager = {
            let host = Wakes {
                own: Own::of(&of.rules),
                ..Wakes::default()
            };
            Manager::boot(&of.config(&zones), host, metadata)?
        };
        Ok(Bare {
            memory: Memory::new(manager, of.frames, of.costs),
            now: 0,
            kswapd: Daemon::new(Kswapd::new(NodeId(0)), KSWAPD),
            kcompactd: Daemon::new(Kcompactd::new(NodeId(0)), KCOMPACTD),
        })
    }

    /// The program's clock.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The wakes of kcompactd in which it compacted.
    pub fn attempts(&self) -> &[Attempt] {
        &self.kcompactd.attempts
    }

    /// What kcompactd has spent.
    pub fn kcompactd_spent(&self) -> Spent {
        self.kcompactd.spent
    }

    /// Frames that compaction has looked at.
    pub fn looks(&self) -> u64 {
        self.memory.looks
    }

    /// Pages that were moved.
    pub fn moved(&self) -> u64 {
        let c = self.memory.manager.inspect().compact_counters();
        c.pgmigrate_success
    }

    /// Free frames, those on per-CPU lists among them.
    pub fn free_frames(&self) -> u64 {
        let i = self.memory.manager.inspect();
        let of = |z| i.zone(z).free_pages + i.pcp_pages(z);
        i.zones().map(of).sum()
    }

    /// Free blocks of the order of a huge page and above, in huge pages.
    pub fn free_huge(&self) -> u64 {
        let i = self.memory.manager.inspect();
        let of = |z| -> u64 {
            let free = i.zone(z).nr_free;
            let from = Order::HUGE.index();
            let blocks = |(o, n): (usize, &u64)| *n << (o - from);
            free.iter().enumerate().skip(from).map(blocks).sum()
        };
        i.zones().map(of).sum()
    }

    /// How fragmented the node is, 0 to 100. `spec: 5.5`
    pub fn score(&self) -> u64 {
        self.memory.manager.fragmentation_score(NodeId(0))
    }

    /// Pages of the program that may be moved, and how many of them are lost: not in use as the allocator sees it.
    pub fn audit(&self) -> (u64, u64) {
        self.memory.audit()
    }

    /// Checks the whole state of the allocator.
    ///
    /// # Errors
    /// What is wrong.
    pub fn validate(&self) -> Result<(), unfrag_eras::validate::Broken> {
        self.memory.manager.inspect().validate()
    }

    /// Checks what chooses frames, if lists do not, and that it agrees with them.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_own(&self) -> Result<(), String> {
        let m = &self.memory.manager;
        let shown = |z| m.inspect().zone(z).free_pages;
        let own = m.host().own.as_deref();
        own.map_or(Ok(()), |own| own.check(shown))
    }

    /// The program computes or waits; the daemons go on.
    pub fn pass(&mut self, time: Nanos) {
        self.now += time;
        self.catch_up();
    }

    /// Lets time pass until kcompactd has slept for longer than its longest pause, at most for `limit`.
    pub fn settle(&mut self, limit: Nanos) {
        let end = self.now + limit;
        let (mut looks, mut idle) = (self.memory.looks, 0);
        while idle <= LONGEST_PAUSE && self.now < end {
            self.pass(PERIOD);
            let is_idle = self.kcompactd.is_asleep() && self.memory.looks == looks;
            idle = if is_idle { idle + PERIOD } else { 0 };
            looks = self.memory.looks;
        }
    }

    /// A request of the program for a block, which it gets unzeroed.
    pub fn request(&mut self, order: Order, gfp: Gfp) -> Served {
        self.catch_up();
        let c = self.memory.costs;
        let mut all = Spent {
            alloc: c.alloc + c.prep_page * Nanos::from(order.frames()),
            ..Spent::default()
        };
        let request = Request::new(order, gfp).on(PROGRAM);
        let begun = self.memory.manager.begin(&request);
        self.deliver();
        let block = match begun {
            Ok(Begun::Got(pfn)) => Some(pfn),
            Ok(Begun::Allocation(mut allocation)) => {
                let mut answer = Answer::Go;
                let got = loop {
                    let (stepped, spent) = self.memory.step(&mut allocation, PROGRAM, answer);
                    all.add(spent);
                    self.now += spent.total();
                    self.deliver();
                    match stepped {
                        Stepped::Done(got) => break got,
                        Stepped::Goes(next) => answer = next,
                        Stepped::Sleeps(_) => unreachable!("only daemons sleep"),
                    }
                    self.catch_up();
                };
                self.now += c.alloc_slow;
                all.alloc += c.alloc_slow;
                got.ok()
            }
            Err(_) => None,
        };
        self.now += c.alloc + c.prep_page * Nanos::from(order.frames());
        Served { block, spent: all }
    }

    /// Gives a block of the program back.
    pub(super) fn free(&mut self, pfn: Pfn, order: Order) {
        let freed = self.memory.manager.free(PROGRAM, pfn, order);
        debug_assert!(freed.is_ok(), "{pfn:?}: {freed:?}");
        self.now += self.memory.costs.free;
    }

    /// Makes a block in use a page of the program that may be moved.
    pub fn own(&mut self, pfn: Pfn) {
        self.memory.own(pfn);
    }

    /// The rest of a fault on a block that the program has got: entry and exit, and zeroing.
    pub fn zero_fault(&mut self, order: Order) {
        let c = self.memory.costs;
        self.now += c.fault + c.zero_page * Nanos::from(order.frames());
    }

    /// Compacts all zones in one go, as a write to `vm.compact_memory` does. Returns what it took.
    pub fn compact_all(&mut self) -> Spent {
        let mut all = Spent::default();
        for zone in self.memory.manager.inspect().zones() {
            let mut run = Compaction::whole_zone(zone);
            let mut answer = Answer::Go;
            loop {
                let (stepped, spent) = self.memory.step(&mut run, PROGRAM, answer);
                all.add(spent);
                self.now += spent.total();
                match stepped {
                    Stepped::Done(_) => break,
                    Stepped::Goes(next) => answer = next,
                    Stepped::Sleeps(_) => unreachable!("only daemons sleep"),
                }
                self.deliver();
                self.catch_up();
            }
        }
        all
    }

    /// The daemons do what is due by the program's clock, the earliest first.
    pub(super) fn catch_up(&mut self) {
        loop {
            let due = |at: Option<Nanos>| at.filter(|&at| at <= self.now);
            let at = match (due(self.kswapd.next()), due(self.kcompactd.next())) {
                (None, None) => return,
                (Some(a), Some(b)) if a <= b => self.kswapd.step(&mut self.memory),
                (Some(_), None) => self.kswapd.step(&mut self.memory),
                (_, Some(_)) => self.kcompactd.step(&mut self.memory),
            };
            self.deliver_at(at);
        }
    }

    fn deliver(&mut self) {
        self.deliver_at(self.now);
    }

    /// Wakes whom the allocator has asked for.
    fn deliver_at(&mut self, now: Nanos) {
        let host = self.memory.manager.host_mut();
        let (kswapd, kcompactd) = (take(&mut host.kswapd), take(&mut host.kcompactd));
        if kswapd {
            self.kswapd.wake(now);
        }
        if kcompactd {
            self.kcompactd.wake(now);
        }
    }
}
