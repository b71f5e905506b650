//! Checks every invariant of a manager; for tests, after every step.

use crate::frame::{FrameIx, FrameKind, MigrateType, Order, Pfn, ZoneId};
use crate::host::Host;
use crate::inspect::Inspect;
use crate::lru::{Generations, LEAST, Lru, LruLists, MOST, Place};
use crate::placement::{BadLink, FreeBlock};

/// A broken invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// A list's links, ends or length disagree.
    List(Pfn),
    /// A frame on a list does not have the state that the list asks for.
    State(Pfn),
    /// A counter of a zone disagrees with its lists.
    Count(ZoneId),
    /// Two free buddies that should have merged.
    Unmerged(Pfn),
    /// The state of a frame names a list that it is not on, or a frame lies within two blocks.
    Stray(Pfn),
    /// A free block lies on the list of another type than its pageblock's.
    ListType(Pfn),
}

/// A broken invariant, by positions.
enum Fault {
    List(FrameIx),
    State(FrameIx),
    Count(ZoneId),
    Unmerged(FrameIx),
    Stray(FrameIx),
    ListType(FrameIx),
}

impl From<BadLink> for Fault {
    fn from(bad: BadLink) -> Fault {
        Fault::List(bad.0)
    }
}

fn require(holds: bool, fault: Fault) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(fault) }
}

impl<H: Host> Inspect<'_, '_, H> {
    /// Checks every invariant; for tests, after every step. Takes time in proportion to memory.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn validate(self) -> Result<(), Broken> {
        let pfn = |ix| self.manager.map.pfn(ix);
        self.find_fault().map_err(|fault| match fault {
            Fault::List(ix) => Broken::List(pfn(ix)),
            Fault::State(ix) => Broken::State(pfn(ix)),
            Fault::Count(zone) => Broken::Count(zone),
            Fault::Unmerged(ix) => Broken::Unmerged(pfn(ix)),
            Fault::Stray(ix) => Broken::Stray(pfn(ix)),
            Fault::ListType(ix) => Broken::ListType(pfn(ix)),
        })
    }

    fn find_fault(self) -> Result<(), Fault> {
        for zone in self.zones() {
            self.check_lists(zone)?;
            self.check_frames(zone)?;
            self.check_lru(zone)?;
        }
        Ok(())
    }

    /// Pages on LRU lists are in use, and know their list.
    fn check_lru(self, zone: ZoneId) -> Result<(), Fault> {
        let own = &self.manager.lrus[zone.index()];
        self.check_generations(zone, own)?;
        for (i, (list, more)) in own.lists.iter().zip(&own.more).enumerate() {
            let mut beyond = 0;
            list.validate(self.manager.frames.table, |ix| {
                let s = self.manager.frames.state(ix);
                beyond += u64::from(s.order().frames() - 1);
                let of = self
                    .manager
                    .zone(self.manager.frames.zone_of(ix))
                    .lru
                    .index();
                let right = s.kind() == FrameKind::Used && usize::from(s.lru()) == i + 1;
                require(right && of == zone.index(), Fault::State(ix))
            })?;
            require(beyond == *more, Fault::Count(zone))?;
        }
        Ok(())
    }

    /// Pages in generations know theirs; where pages stand in generations, active and inactive lists are empty, and the
    /// other way round.
    fn check_generations(self, zone: ZoneId, own: &LruLists) -> Result<(), Fault> {
        let frames = &self.manager.frames;
        let mut generations = 0;
        for at in Generations::places() {
            let mut beyond = 0;
            let list = own.generations.list(at);
            generations += list.len;
            list.validate(frames.table, |ix| {
                let s = frames.state(ix);
                beyond += u64::from(s.order().frames() - 1);
                let of = self.manager.zone(frames.zone_of(ix)).lru.index();
                let right = s.kind() == FrameKind::Used && Place::of(s) == at && s.lru() < 5;
                require(right && of == zone.index(), Fault::State(ix))
            })?;
            require(beyond == own.generations.more(at), Fault::Count(zone))?;
        }
        let lists: u32 = Lru::EVICTABLE
            .map(|lru| own.lists[lru.index()].len)
            .iter()
            .sum();
        let none = if own.by_generation {
            lists
        } else {
            generations
        };
        let counts = [false, true].map(|file| own.generations.count(file));
        let few = counts.iter().all(|n| (LEAST..=MOST).contains(n));
        require(none == 0 && few, Fault::Count(zone))
    }

    fn check_lists(self, zone: ZoneId) -> Result<(), Fault> {
        let z = self.manager.zone(zone);
        let frames = &self.manager.frames;
        let follow = self.manager.policy.rules.lists_follow_blocks();
        let counted = z.free_area.validate(frames, |block| {
            let FreeBlock { ix, order, mt } = block;
            let s = frames.state(ix);
            let right = s.is_buddy_of(order)
                && s.mt() == mt
                && frames.zone_of(ix) == zone
                && ix.is_aligned(order);
            require(right, Fault::State(ix))?;
            let last = FrameIx(ix.0 + order.frames() - 1);
            let types = [ix, last].map(|i| frames.block_type(i));
            require(!follow || types == [mt; 2], Fault::ListType(ix))?;
            self.check_unmerged(zone, ix, order)
        })?;
        require(counted.is_some(), Fault::Count(zone))?;
        let mut deltas = 0;
        for cpu in self.cpus() {
            let own = self.cpu_zone(zone, cpu);
            let counted = own.lists.validate(frames, &self.manager.policy, |ix| {
                let right = frames.state(ix).kind() == FrameKind::Pcp && frames.zone_of(ix) == zone;
                require(right, Fault::State(ix))
            })?;
            require(counted.is_some(), Fault::Count(zone))?;
            deltas += i64::from(own.delta);
        }
        let apart = z.free_area.pages_of(MigrateType::Isolate);
        let free = z.free_area.free_pages() - apart;
        require(free as i64 == z.counter + deltas, Fault::Count(zone))
    }

    fn check_unmerged(self, zone: ZoneId, ix: FrameIx, order: Order) -> Result<(), Fault> {
        let z = self.manager.zone(zone);
        let buddy = ix.buddy(order);
        // Below pageblock order types do not keep buddies apart.
        let merges = order < self.manager.frames.geometry.block_order && z.span.holds(buddy);
        let apart = merges && self.manager.frames.state(buddy).is_buddy_of(order);
        require(!apart, Fault::Unmerged(ix))
    }

    /// Every frame is covered by exactly one block, or reserved.
    fn check_frames(self, zone: ZoneId) -> Result<(), Fault> {
        let z = self.manager.zone(zone);
        let frames = &self.manager.frames;
        let (mut free, mut pcp) = (0u64, 0u64);
        let mut at = z.span.start;
        while at < z.span.end {
            let s = frames.state(at);
            let n = s.order().frames();
            match s.kind() {
                FrameKind::Reserved | FrameKind::Absent => {
                    at = at.plus(1);
                    continue;
                }
                FrameKind::Tail => return Err(Fault::Stray(at)),
                FrameKind::Buddy => free += u64::from(n),
                FrameKind::Pcp => pcp += u64::from(n),
                FrameKind::Used => {}
            }
            for i in at.plus(1).until(at.plus(n)) {
                require(frames.state(i).kind() == FrameKind::Tail, Fault::Stray(i))?;
            }
            at = at.plus(n);
        }
        let held = self.pcp_pages(zone);
        let right = free == z.free_area.free_pages() && pcp == held;
        require(right, Fault::Count(zone))
    }
}
