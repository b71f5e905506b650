//! Per-CPU page lists: what a CPU keeps for itself of each zone, so that most requests touch no zone.
//!
//! Four shapes, by era: hot and cold lists, V19's two kinds, one list that is searched or one per
//! type (order 0 alone), and lists for orders 0 to 3 and 9. All of them live in the same fourteen
//! list heads; [`shape`](Pcp) says how they are used. Which block leaves first, and how many at a
//! time, decides where memory fragments, so these rules are exact.
//!
//! - [`size`]: batch and high.
//! - `orders`: 5.13 and later.
//! - `single`: earlier ones; `searched`: those that hold all types together.
//!
//! Invariant: `count` is the number of base pages on all lists; every block on a list has
//! `Kind::Pcp` and, as its type, the type of the buddy list it will return to.
//! `spec: linux-mm 3; linux-6.1 3`

mod orders;
pub(crate) mod searched;
mod single;
pub mod size;

pub use orders::list_index;
#[cfg(test)]
mod tests;

use crate::frame::{Frames, Ix, Kind, MigrateType, State};
use crate::host::Host;
use crate::kernel::{Pcp, Rules, Sysctl};
use crate::place::lists::At;
use crate::place::{End, List, Want};
use crate::trace::{Event, Tracer};
use crate::zone::Zone;
use bytemuck::{Pod, Zeroable};
use searched::First;

/// Number of list heads of a set.
pub const NR_LISTS: usize = 14;

/// The rules in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Env {
    pub sw: Rules,
    pub sysctl: Sysctl,
}

/// The lists of one CPU for one zone.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct CpuLists {
    pub lists: [List; NR_LISTS],
    /// Where searches begin.
    pub first: First,
    /// Base pages on all lists.
    pub count: i32,
    /// From here on a free gives pages back.
    pub high: i32,
    pub high_min: i32,
    pub high_max: i32,
    /// Pages moved at a time.
    pub batch: i32,
    /// 6.1's `free_factor`, 6.18's `alloc_factor`.
    pub factor: i32,
    /// Pages freed of late (6.18).
    pub free_count: i32,
    /// The previous free was of order 1 to 3 (6.18).
    pub prev_free_high: i32,
    /// This CPU's part of the zone's free counter.
    pub delta: i32,
    pad: i32,
}

impl CpuLists {
    pub fn new() -> CpuLists {
        CpuLists {
            lists: [List::EMPTY; NR_LISTS],
            first: First::EMPTY,
            batch: 1,
            ..CpuLists::zeroed()
        }
    }

    /// Whether blocks of this order live on per-CPU lists.
    #[inline]
    pub fn serves(shape: Pcp, order: u8) -> bool {
        match shape {
            Pcp::Orders { .. } => order <= 3 || order == 9,
            _ => order == 0,
        }
    }

    /// Takes a block of `want.order` for `want.mt`.
    #[inline]
    pub fn alloc<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        want: Want,
        cold: bool,
        t: &mut Tracer<H>,
    ) -> Option<Ix> {
        match env.sw.pcp {
            Pcp::Orders { tuned, .. } => {
                if tuned {
                    self.free_count >>= 1;
                } else {
                    self.factor >>= 1;
                }
                self.orders_alloc(zone, frames, env, want, t)
            }
            _ => self.single_alloc(zone, frames, env, want, cold, t),
        }
    }

    /// A page from its list if that needs no refill.
    #[inline(always)]
    pub(crate) fn hit_page(
        &mut self,
        frames: &mut Frames,
        sw: &Rules,
        mt: MigrateType,
    ) -> Option<Ix> {
        match sw.pcp {
            Pcp::Orders { tuned, .. } => self.hit(frames, 0, mt, tuned),
            _ => self.hit_single(frames, sw, mt),
        }
    }

    /// A page of a bulk allocation: like [`alloc`](Self::alloc), but the lists do not take it for a
    /// sign of demand. `spec: linux-6.1 10`
    pub fn alloc_bulk<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        want: Want,
        t: &mut Tracer<H>,
    ) -> Option<Ix> {
        match env.sw.pcp {
            Pcp::Orders { .. } => self.orders_alloc(zone, frames, env, want, t),
            _ => self.single_alloc(zone, frames, env, want, false, t),
        }
    }

    /// Gives a block back to this CPU. `mt` is the type of its pageblock.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub fn free<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        ix: Ix,
        order: u8,
        mt: MigrateType,
        cold: bool,
        t: &mut Tracer<H>,
    ) {
        match env.sw.pcp {
            Pcp::Orders { .. } => self.orders_free(zone, frames, env, ix, order, mt, t),
            _ => self.single_free(zone, frames, env, ix, mt, cold, t),
        }
    }

    /// Gives everything back to the zone.
    pub fn drain<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        t: &mut Tracer<H>,
    ) {
        let n = self.count;
        self.release(zone, frames, env, n, 0, t);
    }

    /// Gives `n` base pages back to the zone, beginning with list `first`.
    pub fn release<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        n: i32,
        first: usize,
        t: &mut Tracer<H>,
    ) {
        match env.sw.pcp {
            Pcp::Orders { .. } => self.orders_release(zone, frames, env, n, first, t),
            _ => self.single_release(zone, frames, env, n, first, t),
        }
    }

    /// Returns a block that is off its list to the zone's lists.
    #[inline(always)]
    fn give_back<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        ix: Ix,
        mt: MigrateType,
        t: &mut Tracer<H>,
    ) {
        let order = frames.state(ix).order();
        t.emit(|m| Event::PagePcpuDrain {
            pfn: m.pfn(ix),
            order,
            migratetype: mt,
        });
        zone.place
            .lists
            .free(frames, &env.sw, ix, order, mt, At::Rule);
        zone.count(&mut self.delta, 1 << order);
    }

    /// Puts a block on list `i`.
    #[inline(always)]
    fn put(&mut self, frames: &mut Frames, zone: u8, i: usize, ix: Ix, s: PcpBlock, end: End) {
        frames.set_state(ix, State::new(Kind::Pcp, s.order, s.mt, zone));
        self.lists[i].push(frames.meta, ix, end);
        self.count += 1 << s.order;
    }
}

/// A block on its way to a list.
#[derive(Clone, Copy)]
struct PcpBlock {
    order: u8,
    mt: MigrateType,
}
