//! [`Manager`]: its fields, and access to its parts.
//!
//! Its other methods stand in the modules of their subjects: `page_alloc` (allocating and freeing), `lru` (pages
//! in use), `inspect` (read access), `lab` (replays and experiments).

use crate::frame::{CpuId, FrameMap, Frames, NodeId, Order, Pfn, Span, ZoneId};
use crate::host::Host;
use crate::lru::{FlagCounts, LruLists, PagesMut};
use crate::node::Node;
use crate::pcp::{CpuLists, CpuZone};
use crate::policy::Policy;
use crate::stat::{CompactCounters, Counters, ReclaimCounters};
use crate::trace::Event;
use crate::tracer::Tracer;
use crate::zone::{Zone, ZoneLists, ZoneOps};

/// A page allocator over some zones and CPUs.
///
/// It lives in the memory that its caller handed in; the value itself is small enough for a boot stack.
/// Two managers share nothing. One caller at a time works with it, by `&mut`.
pub struct Manager<'m, H: Host> {
    pub(crate) host: H,
    pub(crate) map: FrameMap,
    pub(crate) frames: Frames<'m>,
    pub(crate) zones: &'m mut [Zone],
    pub(crate) nodes: &'m mut [Node],
    pub(crate) zonelists: ZoneLists<'m>,
    /// Per-CPU lists: those of CPU `c` for zone `z` at `c * zones + z`.
    pub(crate) sets: &'m mut [CpuZone],
    pub(crate) cpus: u32,
    pub(crate) policy: Policy,
    pub(crate) counters: Counters,
    pub(crate) lrus: &'m mut [LruLists],
    pub(crate) reclaim: ReclaimCounters,
    pub(crate) compact_counters: CompactCounters,
    pub(crate) flag_counts: FlagCounts,
    /// Free slots in swap, as last set by the host.
    pub(crate) nr_swap_pages: u64,
    /// Milliseconds, as last set by the host.
    pub(crate) now_ms: u64,
}

const _: () = assert!(
    size_of::<Manager<crate::host::NullHost>>() <= 2048,
    "small enough for a boot stack"
);

impl<'m, H: Host> Manager<'m, H> {
    /// The host.
    #[inline]
    pub fn host(&self) -> &H {
        &self.host
    }

    /// The host, to be changed.
    #[inline]
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Pages in use, to be changed: flags, and places on LRU lists.
    #[inline]
    pub fn pages(&mut self) -> PagesMut<'_, 'm> {
        self.host_and_pages().1
    }

    /// The host and the pages in use, both mutable at once: for a host that goes through many pages at a time.
    #[inline]
    pub fn host_and_pages(&mut self) -> (&mut H, PagesMut<'_, 'm>) {
        let pages = PagesMut {
            frames: &self.frames,
            map: &self.map,
            lrus: self.lrus,
            counts: &mut self.flag_counts,
            events: &mut self.reclaim,
            new_anon_active: self.policy.rules.reclaim.new_anon_active,
        };
        (&mut self.host, pages)
    }

    /// Sets the number of free slots in swap. With none, reclaim leaves anonymous pages alone.
    #[inline]
    pub fn set_nr_swap_pages(&mut self, pages: u64) {
        self.nr_swap_pages = pages;
    }

    /// Sets the time, in milliseconds since any moment: what [`Sysctl::lru_gen_min_ttl_ms`](crate::Sysctl::lru_gen_min_ttl_ms)
    /// is counted in. A host that sets no such limit needs no clock.
    #[inline]
    pub fn set_time_ms(&mut self, now: u64) {
        self.now_ms = now;
    }

    /// Pages stand in generations, or on active and inactive lists, as the settings say.
    pub(crate) fn switch_lists(&mut self) {
        let generations = match self.policy.sysctl.lru_gen {
            true => self.policy.rules.generations(),
            false => None,
        };
        for lists in self.lrus.iter_mut() {
            lists.switch(&self.frames, generations);
        }
    }

    /// Index in `sets` of the lists of a CPU for a zone, if there is such a CPU.
    #[inline(always)]
    pub(crate) fn set_of(&self, zone: ZoneId, cpu: CpuId) -> usize {
        cpu.index() * self.zones.len() + zone.index()
    }

    /// A CPU's lists of a zone, and the zone with what an operation on it needs.
    ///
    /// # Panics
    /// If there is no such CPU or zone.
    #[inline]
    pub(crate) fn parts(
        &mut self,
        zone: ZoneId,
        cpu: CpuId,
    ) -> (&mut CpuLists, ZoneOps<'_, 'm, H>) {
        let set = self.set_of(zone, cpu);
        let CpuZone { lists, delta, .. } = own_set(self.sets, set, cpu);
        let ops = ZoneOps {
            zone: &mut self.zones[zone.index()],
            delta,
            frames: &self.frames,
            policy: &self.policy,
            tracer: Tracer {
                host: &mut self.host,
                map: &self.map,
            },
        };
        (lists, ops)
    }

    #[inline]
    pub(crate) fn zone(&self, zone: ZoneId) -> &Zone {
        &self.zones[zone.index()]
    }

    /// The zones of a manager.
    pub(crate) fn zone_ids(&self) -> impl Iterator<Item = ZoneId> + use<H> {
        (0..self.zones.len() as u8).map(ZoneId)
    }

    /// The CPUs of a manager.
    pub(crate) fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<H> {
        (0..self.cpus).map(CpuId)
    }

    /// A node that has memory.
    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|n| n.id == id)
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|n| n.id == id)
    }

    /// The zone of the `frames` frames from `start` on, and their positions. If there are none, or if they are not all in
    /// the zone of the first one: the first frame that is not.
    pub(crate) fn span_in_zone(&self, start: Pfn, frames: u64) -> Result<(ZoneId, Span), Pfn> {
        let first = self.map.ix(start).filter(|_| frames > 0).ok_or(start)?;
        let zone = self.frames.zone_of(first);
        let of = self.zones.get(zone.index()).map(|z| z.span).ok_or(start)?;
        let room = u64::from(of.end.0 - first.0);
        if frames > room {
            return Err(Pfn(start.0 + room));
        }
        let end = first.plus(frames as u32);
        Ok((zone, Span { start: first, end }))
    }

    /// Counts a freed block and emits its tracepoint.
    #[inline]
    pub(crate) fn account_free(&mut self, pfn: Pfn, order: Order) {
        self.counters.pgfree += u64::from(order.frames());
        if H::TRACING {
            self.host.trace(&Event::PageFree { pfn, order });
        }
    }
}

/// The lists of a CPU for a zone, at the index that [`Manager::set_of`] gave.
///
/// # Panics
/// If there is no such CPU.
#[inline(always)]
pub(crate) fn own_set(sets: &mut [CpuZone], at: usize, cpu: CpuId) -> &mut CpuZone {
    match sets.get_mut(at) {
        Some(set) => set,
        None => no_such_cpu(cpu),
    }
}

#[cold]
#[inline(never)]
fn no_such_cpu(cpu: CpuId) -> ! {
    panic!(
        "there is no such CPU as {}: a request names the CPU that it is made on, below `Config::cpus`",
        cpu.0
    )
}
