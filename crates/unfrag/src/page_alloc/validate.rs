//! Checks every invariant of a manager; for tests, after every step.

use super::Manager;
use crate::frame::{Ix, Kind, MAX_ORDER, MigrateType, NIL, NR_ORDERS, Pfn};
use crate::host::Host;
use crate::pcp::NR_LISTS;
use crate::place::List;

/// A broken invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A list's links, ends or length disagree.
    List(Pfn),
    /// A frame on a list does not have the state that the list asks for.
    State(Pfn),
    /// A counter of a zone disagrees with its lists.
    Count(usize),
    /// Two free buddies that should have merged.
    Unmerged(Pfn),
    /// A frame says that it is on a list, but is not; or is within two blocks.
    Stray(Pfn),
    /// A free block lies on the list of another type than its pageblock's.
    ListType(Pfn),
}

impl<H: Host> Manager<'_, H> {
    /// The first broken invariant, if any. Takes time in proportion to memory.
    pub fn validate(&self) -> Result<(), Broken> {
        for z in 0..self.nr_zones {
            self.validate_lists(z)?;
            self.validate_frames(z)?;
            self.validate_lru(z)?;
        }
        Ok(())
    }

    /// Pages on LRU lists are in use, and know their list.
    fn validate_lru(&self, zone: usize) -> Result<(), Broken> {
        for (i, list) in self.lruvecs[zone].lists.iter().enumerate() {
            self.walk(list, |ix| {
                let s = self.frames.state(ix);
                let of = usize::from(self.lruvec_of[usize::from(s.zone())]);
                let ok = s.kind() == Kind::Used && usize::from(s.lru()) == i + 1 && of == zone;
                if ok {
                    Ok(())
                } else {
                    Err(Broken::State(self.map.pfn(ix)))
                }
            })?;
        }
        Ok(())
    }

    fn walk(
        &self,
        list: &List,
        mut visit: impl FnMut(Ix) -> Result<(), Broken>,
    ) -> Result<u32, Broken> {
        let (mut n, mut prev, mut at) = (0, NIL, list.head);
        while at != NIL {
            let e = &self.frames.meta[at as usize];
            if e.prev != prev || n > list.len {
                return Err(Broken::List(self.map.pfn(at)));
            }
            visit(at)?;
            n += 1;
            (prev, at) = (at, e.next);
        }
        if n != list.len || prev != list.tail {
            return Err(Broken::List(self.map.pfn(list.head)));
        }
        Ok(n)
    }

    fn validate_lists(&self, zone: usize) -> Result<(), Broken> {
        let z = self.zone(zone);
        let mut nr_free = [0u32; NR_ORDERS];
        let mut pages = 0;
        let hygiene = self.env.sw.lists_follow_blocks();
        for order in 0..=MAX_ORDER {
            for mt in MigrateType::ALL {
                let list = z.place.lists.list(order, mt);
                let n = self.walk(list, |ix| {
                    let s = self.frames.state(ix);
                    let pfn = self.map.pfn(ix);
                    let ok = s.is_buddy()
                        && s.order() == order
                        && s.mt() == mt
                        && usize::from(s.zone()) == zone
                        && ix & ((1 << order) - 1) == 0;
                    if !ok {
                        return Err(Broken::State(pfn));
                    }
                    let last = ix + (1 << order) - 1;
                    let types = [ix, last].map(|i| self.frames.block_type(i));
                    if hygiene && types != [mt; 2] {
                        return Err(Broken::ListType(pfn));
                    }
                    self.validate_unmerged(zone, ix, order)
                })?;
                if z.place.lists.is_empty(order, mt) != (n == 0) {
                    return Err(Broken::Count(zone));
                }
                nr_free[order as usize] += n;
                pages += u64::from(n) << order;
            }
        }
        let mut deltas = 0;
        for cpu in 0..self.cpus {
            let set = &self.sets[cpu * self.nr_zones + zone];
            let mut count = 0;
            for i in 0..NR_LISTS {
                self.walk(&set.lists[i], |ix| {
                    let s = self.frames.state(ix);
                    count += 1 << s.order();
                    let ok = s.kind() == Kind::Pcp && usize::from(s.zone()) == zone;
                    if ok {
                        Ok(())
                    } else {
                        Err(Broken::State(self.map.pfn(ix)))
                    }
                })?;
            }
            let searched = crate::pcp::searched::is_searched(self.env.sw.pcp);
            if count != set.count || searched && !set.firsts_hold(self.frames.meta) {
                return Err(Broken::Count(zone));
            }
            deltas += i64::from(set.delta);
        }
        let consistent = nr_free == *z.place.lists.nr_free()
            && pages == z.place.lists.free_pages()
            && pages as i64 == z.counter + deltas;
        if consistent {
            Ok(())
        } else {
            Err(Broken::Count(zone))
        }
    }

    fn validate_unmerged(&self, zone: usize, ix: Ix, order: u8) -> Result<(), Broken> {
        let z = self.zone(zone);
        let buddy = ix ^ 1 << order;
        if order >= self.frames.block_order.min(MAX_ORDER) || buddy < z.start || buddy >= z.end {
            return Ok(());
        }
        let s = self.frames.state(buddy);
        // Below pageblock order types do not keep buddies apart.
        if s.is_buddy() && s.order() == order {
            return Err(Broken::Unmerged(self.map.pfn(ix)));
        }
        Ok(())
    }

    /// Every frame is covered by exactly one block, or reserved.
    fn validate_frames(&self, zone: usize) -> Result<(), Broken> {
        let z = self.zone(zone);
        let (mut free, mut pcp) = (0u64, 0u64);
        let mut at = z.start;
        while at < z.end {
            let s = self.frames.state(at);
            let n = 1u32 << s.order();
            match s.kind() {
                Kind::Reserved | Kind::Absent => {
                    at += 1;
                    continue;
                }
                Kind::Tail | Kind::Isolated => return Err(Broken::Stray(self.map.pfn(at))),
                Kind::Buddy => free += u64::from(n),
                Kind::Pcp => pcp += u64::from(n),
                Kind::Used => {}
            }
            for i in at + 1..at + n {
                if self.frames.state(i).kind() != Kind::Tail {
                    return Err(Broken::Stray(self.map.pfn(i)));
                }
            }
            at += n;
        }
        let held: i32 = (0..self.cpus)
            .map(|c| self.sets[c * self.nr_zones + zone].count)
            .sum();
        if free == z.place.lists.free_pages() && pcp == held as u64 {
            Ok(())
        } else {
            Err(Broken::Count(zone))
        }
    }
}
