//! Allocating and freeing blocks of frames.
//!
//! [`Manager`] ties the rooms together: it picks the zone, asks the CPU's lists, falls through to
//! the zone's buddy lists, and tells the host. One allocation from call to frame:
//! `alloc` → `fast` (zones in order, low mark, per-CPU list, buddy lists) → `slow` (wake kswapd,
//! min mark, reserves) → a frame, or an error that says why not.
//!
//! - [`setup`]: layout of the caller's memory, and boot.
//! - `zonelist`: zone order.
//! - `fast`: the first attempt.
//! - `slow`: what happens when that fails and nothing can be reclaimed.
//! - `attempt`: what happens when something can: reclaim, waits, retries, the OOM killer.
//! - [`free`](mod@free): giving back.
//! - `bulk`: many pages at once.
//! - [`restore`]: rebuilding a recorded state frame by frame.
//! - [`view`]: looking inside, for statistics and checks.
//!
//! Invariant: every frame of a zone is on exactly one list, or in use, or reserved; `validate`
//! checks it.

mod attempt;
mod bulk;
mod fast;
pub mod free;
pub mod migrate;
pub mod restore;
pub mod setup;
mod slow;
#[cfg(test)]
mod tests;
mod validate;
pub mod view;
mod zonelist;

use crate::frame::{FrameMap, Frames, Ix, Kind, MAX_ORDER, MigrateType, Pfn};
use crate::gfp::Gfp;
use crate::host::Host;
use crate::kernel::{Placement, Rules, Sysctl};
use crate::pcp::{CpuLists, Env};
use crate::reclaim::{FlagCounts, LruVec, ReclaimCounters};
use crate::stat::Counters;
use crate::trace::{Event, Tracer};
use crate::zone::{Zone, ZoneKind};
pub use attempt::{Attempt, Begun};
pub use free::FreeError;
pub use migrate::MoveError;
pub use setup::{Config, ConfigError, Layout, layout};

/// Most zones of a manager.
pub const MAX_ZONES: usize = 16;

/// Why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocError {
    /// Both mobility flags are set; no era serves that.
    BothMobilities,
    /// The order is above [`MAX_ORDER`].
    OrderTooLarge,
    /// No zone may serve the request.
    NoZone,
    /// Not enough memory, or no block that fits, and nothing to reclaim.
    NoMemory,
}

impl core::fmt::Display for AllocError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str(match self {
            AllocError::BothMobilities => {
                "the request is both movable and reclaimable; set at most one of the two flags"
            }
            AllocError::OrderTooLarge => "the order is above 10; ask for several blocks",
            AllocError::NoZone => "no zone may serve this request; see its zone and node flags",
            AllocError::NoMemory => "no free block of this order within the watermarks",
        })
    }
}

impl core::error::Error for AllocError {}

/// A page allocator over some zones and CPUs.
///
/// Two managers share nothing: each lives in the memory that its caller handed in.
pub struct Manager<'m, H: Host> {
    pub(crate) host: H,
    pub(crate) map: FrameMap,
    pub(crate) frames: Frames<'m>,
    pub(crate) zones: [Option<Zone>; MAX_ZONES],
    pub(crate) nr_zones: usize,
    zonelists: zonelist::ZoneLists,
    /// Set of zone `z` and CPU `c` at `c * nr_zones + z`.
    sets: &'m mut [CpuLists],
    cpus: usize,
    pub(crate) env: Env,
    counters: Counters,
    /// The LRU lists of each zone, or of each node at its first zone.
    pub(crate) lruvecs: [LruVec; MAX_ZONES],
    /// Where the LRU lists of a zone are.
    pub(crate) lruvec_of: [u8; MAX_ZONES],
    /// What kswapd of each node was asked for, at its first zone.
    pub(crate) kswapd: [Wanted; MAX_ZONES],
    pub(crate) reclaim: ReclaimCounters,
    pub(crate) flag_counts: FlagCounts,
}

/// What kswapd of a node was asked for, and whether it can help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub order: u8,
    /// Somebody asked since kswapd last looked.
    pub asked: bool,
    /// The node has a kswapd, and it has not given up hope.
    pub helps: bool,
    /// It does not sleep.
    pub works: bool,
    /// Pages that it has freed.
    pub freed: u64,
}

/// The parts of a manager that an operation on one zone needs, borrowed apart.
struct Parts<'a, 'm, H> {
    zone: &'a mut Zone,
    set: &'a mut CpuLists,
    frames: &'a mut Frames<'m>,
    env: &'a Env,
    tracer: Tracer<'a, H>,
}

impl<'m, H: Host> Manager<'m, H> {
    /// Allocates a block of `2^order` frames and returns its first. `spec: linux-mm 1.6, 4.8`
    #[inline]
    pub fn alloc(&mut self, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        self.alloc_on(0, order, gfp)
    }

    /// The same, near `node`.
    #[inline]
    pub fn alloc_on(&mut self, node: u8, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        let mt = self.request_type(gfp).ok_or(AllocError::BothMobilities)?;
        if order > MAX_ORDER {
            return Err(AllocError::OrderTooLarge);
        }
        let request = fast::Request::new(node, order, gfp, mt);
        if let Some(ix) = self.hit(&request) {
            return Ok(self.hand_out(&request, ix));
        }
        self.alloc_from_zones(&request)
    }

    /// The same, but nothing beyond one pass over the free lists is tried: nobody is woken, and no
    /// reserve is touched. `spec: linux-mm 6.5 (d)`
    pub fn alloc_first_pass(&mut self, node: u8, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        let mt = self.request_type(gfp).ok_or(AllocError::BothMobilities)?;
        if order > MAX_ORDER {
            return Err(AllocError::OrderTooLarge);
        }
        let request = fast::Request::new(node, order, gfp, mt);
        let got = self.hit(&request).or_else(|| self.fast_path(&request));
        self.finish(&request, got.ok_or(AllocError::NoMemory))
    }

    /// The same from one zone, whatever its watermark: for a replay that knows which zone was taken.
    pub fn alloc_in_zone(&mut self, zone: usize, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        let mt = self.request_type(gfp).ok_or(AllocError::BothMobilities)?;
        if order > MAX_ORDER {
            return Err(AllocError::OrderTooLarge);
        }
        if zone >= self.nr_zones {
            return Err(AllocError::NoZone);
        }
        let request = fast::Request::new(self.zone(zone).config.node, order, gfp, mt);
        let got = self.rmqueue(zone, &request, fast::first_flags(gfp));
        self.finish(&request, got.ok_or(AllocError::NoMemory))
    }

    /// Zone that the first attempt of a request would take, by the watermarks.
    pub fn zone_for(&self, order: u8, gfp: Gfp) -> Option<usize> {
        let mt = self.request_type(gfp)?;
        let request = fast::Request::new(0, order, gfp, mt);
        let flags = fast::first_flags(gfp);
        let list = self.zonelists.of(&request);
        list.zones().iter().map(|&z| usize::from(z)).find(|&z| {
            let zone = self.zone(z);
            zone.passes(
                &self.env.sw,
                order,
                zone.marks.of(flags),
                request.highest,
                flags,
            )
        })
    }

    #[inline(never)]
    fn alloc_from_zones(&mut self, request: &fast::Request) -> Result<Pfn, AllocError> {
        let got = match self.fast_path(request) {
            Some(ix) => Ok(ix),
            None => self.slow_path(request),
        };
        self.finish(request, got)
    }

    /// The end of an allocation, whether it got something or not.
    #[inline]
    fn finish(
        &mut self,
        request: &fast::Request,
        got: Result<Ix, AllocError>,
    ) -> Result<Pfn, AllocError> {
        if let Ok(ix) = got {
            return Ok(self.hand_out(request, ix));
        }
        self.counters.alloc_failed += 1;
        self.tell_allocated(request, None);
        got.map(|ix| self.map.pfn(ix))
    }

    /// Marks a block as in use and tells everybody.
    #[inline]
    fn hand_out(&mut self, request: &fast::Request, ix: Ix) -> Pfn {
        let fast::Request { order, gfp, mt, .. } = *request;
        self.mark_used(ix, order, mt, gfp.contains(Gfp::MOVABLE));
        let first = self.map.pfn(ix);
        self.counters.pgalloc += 1 << order;
        if gfp.contains(Gfp::ZERO) {
            self.host.zero(first, order);
        }
        self.tell_allocated(request, Some(first));
        first
    }

    #[inline]
    fn tell_allocated(&mut self, request: &fast::Request, pfn: Option<Pfn>) {
        if H::TRACING {
            let e = Event::PageAlloc {
                pfn,
                order: request.order,
                migratetype: request.mt,
                gfp: request.gfp,
            };
            self.host.trace(&e);
        }
    }

    #[inline]
    fn mark_used(&mut self, ix: Ix, order: u8, mt: MigrateType, movable: bool) {
        let e = &mut self.frames.meta[ix as usize];
        let s = e.state().turned(Kind::Used, order, mt);
        e.set_state(s.with_movable(movable));
    }

    /// Type whose lists serve a request.
    #[inline]
    fn request_type(&self, gfp: Gfp) -> Option<MigrateType> {
        let mt = gfp.mobility()?;
        let grouped = self.env.sw.placement != Placement::Ungrouped
            && !self.env.sysctl.group_by_mobility_disabled;
        Some(if grouped { mt } else { MigrateType::Unmovable })
    }

    #[inline]
    fn parts(&mut self, zone: usize, cpu: usize) -> Parts<'_, 'm, H> {
        let Some(z) = self.zones[zone].as_mut() else {
            unreachable!("zone {zone} does not exist")
        };
        Parts {
            zone: z,
            set: &mut self.sets[cpu * self.nr_zones + zone],
            frames: &mut self.frames,
            env: &self.env,
            tracer: Tracer {
                host: &mut self.host,
                map: &self.map,
            },
        }
    }

    #[inline]
    pub(crate) fn zone(&self, zone: usize) -> &Zone {
        match &self.zones[zone] {
            Some(z) => z,
            None => unreachable!("zone {zone} does not exist"),
        }
    }

    /// The CPU that the host says it is on.
    #[inline]
    fn cpu(&self) -> usize {
        let cpu = self.host.cpu();
        debug_assert!(cpu < self.cpus, "the host is on CPU {cpu} of {}", self.cpus);
        cpu.min(self.cpus - 1)
    }

    /// Which of the sets is this CPU's for a zone.
    #[inline]
    fn own_set(&self, zone: usize) -> usize {
        self.cpu() * self.nr_zones + zone
    }

    /// The host.
    pub fn host(&self) -> &H {
        &self.host
    }
    /// The host.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }
    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.env.sw
    }
    /// The settings in force.
    pub fn sysctl(&self) -> &Sysctl {
        &self.env.sysctl
    }
    /// Events since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// kswapd begins or ends to work on a zone: meanwhile per-CPU lists stay small.
    pub fn set_reclaim_active(&mut self, node: u8, kind: ZoneKind, active: bool) {
        for z in self.zones.iter_mut().flatten() {
            if z.config.node == node && z.config.kind == kind {
                z.reclaim_active = active;
            }
        }
    }

    /// Lowers the boost of a zone's marks by what kswapd saw when it began, as it does when it is
    /// done. `spec: linux-mm 1.3`
    pub fn lower_boost(&mut self, node: u8, kind: ZoneKind, by: u64) {
        for z in self.zones.iter_mut().flatten() {
            if z.config.node == node && z.config.kind == kind {
                z.marks.boost = z.marks.boost.saturating_sub(by);
            }
        }
    }
}
