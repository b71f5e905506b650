//! Taking a block from the buddy lists. `spec: 2.2, 2.5, 2.6`

use super::{Family, Model, Zone};
use unfrag_eras::MigrateType::{self, *};

/// A request to the buddy lists.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub order: u8,
    pub mt: MigrateType,
    pub nofragment: bool,
    pub wake: bool,
}

fn row(mt: MigrateType) -> [MigrateType; 2] {
    match mt {
        Unmovable => [Reclaimable, Movable],
        Reclaimable => [Unmovable, Movable],
        Movable => [Reclaimable, Unmovable],
        other => panic!("nobody asks for {other:?}"),
    }
}

impl Zone {
    fn first_of_row(&self, order: u8, mt: MigrateType) -> Option<(MigrateType, u64)> {
        row(mt)
            .into_iter()
            .find_map(|t| Some((t, *self.list(order, t).front()?)))
    }
}

impl Model {
    /// Takes a block; returns it and the list it came from. `stole`: whether the last request of a refill had to steal.
    pub fn take(&mut self, z: usize, ask: Ask, stole: &mut bool) -> Option<(u64, MigrateType)> {
        if self.family == Family::V19 {
            self.zones[z].v19_allocs[number(ask.mt)] += 1;
        }
        if !*stole && let Some(pfn) = self.smallest(z, ask.order, ask.mt) {
            return Some((pfn, ask.mt));
        }
        match self.family {
            Family::Plain => None,
            Family::V19 => self.take_v19(z, ask),
            Family::Old => self.take_old(z, ask),
            Family::Modern => self.take_modern(z, ask),
            Family::Hygiene => self.take_hygiene(z, ask, stole),
        }
    }

    // ---- 2.6.24 to 2.6.36

    fn take_old(&mut self, z: usize, ask: Ask) -> Option<(u64, MigrateType)> {
        for order in (ask.order..=10).rev() {
            let Some((victim, pfn)) = self.zones[z].first_of_row(order, ask.mt) else {
                continue;
            };
            let mut owner = victim;
            if order >= 4 || ask.mt == Reclaimable || self.ungrouped {
                let (moved, _) = self.move_pageblock(z, pfn, ask.mt);
                if moved >= 256 || self.ungrouped {
                    self.set_block_type(pfn, ask.mt);
                }
                owner = ask.mt;
            }
            if order >= 9 {
                self.set_block_types(pfn, order, ask.mt);
            }
            self.unlink(z, pfn);
            self.split(z, pfn, order, ask.order, owner);
            return Some((pfn, owner));
        }
        self.smallest(z, ask.order, Reserve).map(|p| (p, Reserve))
    }

    // ---- 5.6 to 6.1

    fn take_modern(&mut self, z: usize, ask: Ask) -> Option<(u64, MigrateType)> {
        let floor = if ask.nofragment {
            ask.order.max(9)
        } else {
            ask.order
        };
        let zone = &self.zones[z];
        let find = |o: u8| Some((o, zone.first_of_row(o, ask.mt)?));
        let may_steal = |o: u8| o >= 4 || ask.mt != Movable || self.ungrouped;
        let (mut order, (_, mut pfn)) = (floor..=10).rev().find_map(find)?;
        if ask.mt == Movable && !may_steal(order) && order > ask.order {
            (order, (_, pfn)) = (ask.order..=10).find_map(find)?;
        }
        let steal = may_steal(order);
        if self.block_type(pfn) == HighAtomic {
            self.requeue(z, pfn, ask.mt);
        } else if order >= 9 {
            self.set_block_types(pfn, order, ask.mt);
            self.requeue(z, pfn, ask.mt);
        } else {
            self.boost(z, ask.wake);
            let (free, movable) = if steal {
                self.move_pageblock(z, pfn, ask.mt)
            } else {
                (0, 0)
            };
            if free == 0 {
                self.requeue(z, pfn, ask.mt);
            } else if self.half(pfn, ask.mt, free, movable) {
                self.set_block_type(pfn, ask.mt);
            }
        }
        let pfn = self.smallest(z, ask.order, ask.mt).expect("what was moved");
        Some((pfn, ask.mt))
    }

    fn requeue(&mut self, z: usize, pfn: u64, mt: MigrateType) {
        let (order, _) = self.unlink(z, pfn);
        self.push(z, pfn, order, mt, true);
    }

    /// Whether at least half of a pageblock is free or used alike.
    fn half(&self, pfn: u64, mt: MigrateType, free: u64, movable: u64) -> bool {
        let alike = if mt == Movable {
            movable
        } else if self.block_type(pfn) == Movable {
            512 - free - movable
        } else {
            0
        };
        free + alike >= 256 || self.ungrouped
    }

    pub fn boost(&mut self, z: usize, wake: bool) {
        let zone = &mut self.zones[z];
        let factor = self.sysctl.watermark_boost_factor;
        let most = zone.high * factor / 10000;
        if most == 0 || 4 * 512 > zone.config.managed {
            return;
        }
        zone.boost = (zone.boost + 512).min(most.max(512));
        zone.boosted |= wake;
    }

    // ---- 6.12 and later

    fn take_hygiene(&mut self, z: usize, ask: Ask, stole: &mut bool) -> Option<(u64, MigrateType)> {
        if !*stole && let Some(claimed) = self.claim(z, ask) {
            return Some(claimed);
        }
        if ask.nofragment {
            return None;
        }
        for order in ask.order..=10 {
            if let Some((victim, pfn)) = self.zones[z].first_of_row(order, ask.mt) {
                if self.early && order < 9 {
                    self.boost(z, ask.wake);
                }
                self.unlink(z, pfn);
                self.split(z, pfn, order, ask.order, victim);
                *stole = !self.early;
                return Some((pfn, victim));
            }
        }
        *stole = false;
        None
    }

    /// A block of a pageblock that becomes the request's; in 6.12 also one that does not. The list that it is from.
    fn claim(&mut self, z: usize, ask: Ask) -> Option<(u64, MigrateType)> {
        let floor = if ask.nofragment {
            ask.order.max(9)
        } else {
            ask.order
        };
        for order in (floor..=10).rev() {
            if order < 4 && ask.mt == Movable && !self.ungrouped {
                return None;
            }
            let Some((victim, pfn)) = self.zones[z].first_of_row(order, ask.mt) else {
                continue;
            };
            if order >= 9 {
                self.unlink(z, pfn);
                self.set_block_types(pfn, order, ask.mt);
                self.split(z, pfn, order, ask.order, ask.mt);
                return Some((pfn, ask.mt));
            }
            self.boost(z, ask.wake);
            let (block, end) = self.block_around(pfn);
            let whole = block >= self.zones[z].start() && end <= self.zones[z].end();
            let (free, movable) = if whole {
                self.tally(block, end)
            } else {
                (0, 0)
            };
            if whole && self.half(pfn, ask.mt, free, movable) {
                self.move_pageblock(z, pfn, ask.mt);
                self.set_block_type(pfn, ask.mt);
                return Some((self.smallest(z, ask.order, ask.mt)?, ask.mt));
            }
            if self.early {
                self.unlink(z, pfn);
                self.split(z, pfn, order, ask.order, victim);
                return Some((pfn, victim));
            }
        }
        None
    }

    // ---- V19

    fn take_v19(&mut self, z: usize, ask: Ask) -> Option<(u64, MigrateType)> {
        for victim in [Unmovable, Movable, Reclaimable, Fallback] {
            if victim == ask.mt {
                continue;
            }
            if let Some(&pfn) = self.zones[z].list(10, victim).front() {
                self.unlink(z, pfn);
                let label = self.relabel(z, pfn, ask.mt);
                self.split(z, pfn, 10, ask.order, label);
                return Some((pfn, label));
            }
        }
        let row = match ask.mt {
            Unmovable => [Fallback, Reclaimable, Movable],
            Movable => [Fallback, Unmovable, Reclaimable],
            _ => [Fallback, Unmovable, Movable],
        };
        for victim in row {
            for order in (ask.order + 1..=10).rev() {
                let Some(&pfn) = self.zones[z].list(order, victim).front() else {
                    continue;
                };
                self.unlink(z, pfn);
                let mut owner = victim;
                if ask.mt == Unmovable {
                    owner = Unmovable;
                    if order >= 5 {
                        self.relabel(z, pfn, Unmovable);
                    }
                }
                self.split(z, pfn, order, ask.order, owner);
                return Some((pfn, owner));
            }
        }
        None
    }

    /// Gives a block to a type, or to the reserve as long as that is short.
    fn relabel(&mut self, z: usize, pfn: u64, mt: MigrateType) -> MigrateType {
        let zone = &mut self.zones[z];
        let short = zone.v19_blocks[3] * 1024 < zone.config.present / 8;
        let label = if short { Fallback } else { mt };
        let old = self.block_type(pfn);
        let n = &mut self.zones[z].v19_blocks;
        n[number(old)] = n[number(old)].saturating_sub(1);
        n[number(label)] += 1;
        self.set_block_type(pfn, label);
        label
    }
}

/// Number of a type in V19.
pub fn number(mt: MigrateType) -> usize {
    [Unmovable, Movable, Reclaimable, Fallback]
        .iter()
        .position(|&t| t == mt)
        .expect("a type of V19")
}
