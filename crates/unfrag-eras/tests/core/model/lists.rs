//! Buddy lists. `spec: 1.2`

use super::{Family, Frame, Model, ordinary};
use unfrag_eras::MigrateType;

impl Model {
    pub fn push(&mut self, zone: usize, pfn: u64, order: u8, mt: MigrateType, tail: bool) {
        let free = Frame::Free {
            order,
            head: pfn,
            mt,
        };
        self.mark(pfn, order, free);
        let list = &mut self.zones[zone].lists[order as usize][mt as usize];
        if tail {
            list.push_back(pfn);
        } else {
            list.push_front(pfn);
        }
    }

    /// Takes a free block off its list; the caller sets the state of its frames.
    pub fn unlink(&mut self, zone: usize, pfn: u64) -> (u8, MigrateType) {
        let Frame::Free { order, head, mt } = self.frame(pfn) else {
            panic!("{pfn:#x} is not free")
        };
        assert_eq!(head, pfn);
        let list = &mut self.zones[zone].lists[order as usize][mt as usize];
        let at = list.iter().position(|&p| p == pfn).expect("on its list");
        list.remove(at);
        (order, mt)
    }

    /// Whether a whole free block of exactly this order begins here, in this zone.
    fn free_here(&self, zone: usize, pfn: u64, order: u8) -> bool {
        let z = &self.zones[zone];
        (z.start()..z.end()).contains(&pfn)
            && matches!(self.frame(pfn), Frame::Free { order: o, head, .. } if o == order && head == pfn)
    }

    /// Frees a block to the lists of `mt`, merging it as far as it goes.
    pub fn merge_in(&mut self, zone: usize, pfn: u64, order: u8, mt: MigrateType) {
        let (mut pfn, mut order) = (pfn, order);
        while order < 10 {
            let buddy = pfn ^ (1 << order);
            if !self.free_here(zone, buddy, order) {
                break;
            }
            if order >= self.block_order && self.is_modern() {
                let theirs = self.block_type(buddy);
                if theirs != mt && !(ordinary(theirs) && ordinary(mt)) {
                    break;
                }
                if self.family == Family::Hygiene {
                    self.set_block_types(buddy, order, mt);
                }
            }
            self.unlink(zone, buddy);
            pfn = pfn.min(buddy);
            order += 1;
        }
        let tail = self.is_modern() && order <= 8 && {
            let parent = pfn & !((1 << (order + 1)) - 1);
            self.free_here(zone, parent ^ (1 << (order + 1)), order + 1)
        };
        self.push(zone, pfn, order, mt, tail);
    }

    /// Frees a block of any order past the per-CPU lists.
    pub fn give(&mut self, zone: usize, pfn: u64, order: u8) {
        if self.family == Family::Hygiene && order > self.block_order {
            let half = order - 1;
            self.give(zone, pfn, half);
            self.give(zone, pfn + (1 << half), half);
        } else {
            self.merge_in(zone, pfn, order, self.block_type(pfn));
        }
    }

    /// Moves a single page in use to a frame of a free block, which is cut in halves around it.
    pub fn migrate(&mut self, from: u64, to: u64) {
        let z = self.zone_of(to);
        let Frame::Free { head, .. } = self.frame(to) else {
            panic!("{to:#x} is not free")
        };
        let (mut order, mt) = self.unlink(z, head);
        let mut head = head;
        while order > 0 {
            order -= 1;
            let upper = head + (1 << order);
            if to < upper {
                self.push(z, upper, order, mt, false);
            } else {
                self.push(z, head, order, mt, false);
                head = upper;
            }
        }
        let used = Frame::Used {
            order: 0,
            head: to,
            movable: true,
        };
        self.mark(to, 0, used);
        self.count(self.cpu, z, -1);
        self.free(from, 0);
    }

    /// Cuts a block that is off its list down, the upper halves to the lists of `mt`.
    pub fn split(&mut self, zone: usize, pfn: u64, from: u8, to: u8, mt: MigrateType) {
        for order in (to..from).rev() {
            self.push(zone, pfn + (1 << order), order, mt, false);
        }
    }

    /// The smallest block of a type that fits.
    pub fn smallest(&mut self, zone: usize, order: u8, mt: MigrateType) -> Option<u64> {
        for o in order..=10 {
            if let Some(&pfn) = self.zones[zone].list(o, mt).front() {
                self.unlink(zone, pfn);
                self.split(zone, pfn, o, order, mt);
                return Some(pfn);
            }
        }
        None
    }

    /// The pageblock around a frame.
    pub fn block_around(&self, pfn: u64) -> (u64, u64) {
        let block = pfn >> self.block_order << self.block_order;
        (block, block + (1 << self.block_order))
    }

    /// Free frames, and frames of movable users, of a stretch.
    pub fn tally(&self, from: u64, to: u64) -> (u64, u64) {
        let (mut free, mut movable) = (0, 0);
        for pfn in from..to {
            match self.frame(pfn) {
                Frame::Free { .. } => free += 1,
                Frame::Used { movable: true, .. } => movable += 1,
                _ => {}
            }
        }
        (free, movable)
    }

    /// Moves the free blocks of the pageblock around `pfn` to a type's lists. Returns
    /// its free and movable frames. Nothing if the pageblock ends outside the zone; from
    /// `pfn` on if it begins outside.
    pub fn move_pageblock(&mut self, zone: usize, pfn: u64, mt: MigrateType) -> (u64, u64) {
        let (block, end) = self.block_around(pfn);
        if end > self.zones[zone].end() {
            return (0, 0);
        }
        let from = if block < self.zones[zone].start() {
            pfn
        } else {
            block
        };
        let count = self.tally(from, end);
        for at in from..end {
            if matches!(self.frame(at), Frame::Free { head, .. } if head == at) {
                let (order, _) = self.unlink(zone, at);
                self.push(zone, at, order, mt, self.is_modern());
            }
        }
        count
    }
}
