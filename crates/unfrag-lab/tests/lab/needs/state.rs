//! A random state of a modelled host's memory: which zones there are, what their pageblocks are for, and who has each block of
//! frames.
//!
//! Invariant: each frame is in one block of [`State::held`].

use unfrag_eras::{MigrateType, NodeId, Pfn, ZoneConfig, ZoneKind};

use crate::chance::Chance;

/// First frame, and frames of a pageblock.
pub const BASE: u64 = 0x2000;
pub const BLOCK: u64 = 512;

/// What a block of frames holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    Free,
    /// Nothing: single pages on a CPU's list.
    PerCpu,
    /// Memory of a process.
    Process,
    /// The same, pinned by a driver: it cannot move, and looks alike.
    PinnedProcess,
    /// Page cache that is clean.
    Cache,
    /// The same, pinned: it can be neither moved nor dropped, and looks alike.
    PinnedCache,
    /// Page cache that is dirty, with private data of its file system: as a large folio it cannot be split.
    Dirty,
    /// A slab.
    Slab,
    /// A driver's memory, which has no flags.
    Driver,
    /// A page of the hugetlb pool.
    Hugetlb,
}

impl Held {
    /// Whether a driver keeps it where it is, though it looks as if it could move.
    pub fn is_pinned(self) -> bool {
        matches!(self, Held::PinnedProcess | Held::PinnedCache)
    }

    /// Whether it was taken as memory that can be moved.
    pub fn is_movable(self) -> bool {
        self.is_pinned() || matches!(self, Held::Process | Held::Cache | Held::Dirty)
    }
}

/// A zone: its pageblocks follow those of the zone before it.
#[derive(Clone, Copy, Debug)]
pub struct Zone {
    pub node: u8,
    pub kind: ZoneKind,
    pub blocks: u64,
    /// Pages that it keeps from requests that could use zone Normal, and from those that could use zone Movable.
    pub keeps: [u64; 2],
}

/// What a host has beside memory of processes, caches and slabs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traits {
    pub areas: bool,
    pub pins: bool,
    pub drivers: bool,
    pub hugetlb: bool,
    pub per_cpu: bool,
    pub dirty: bool,
}

/// Memory: blocks of frames by what they hold, and pageblocks by type.
#[derive(Clone, Debug)]
pub struct State {
    pub era: &'static str,
    pub traits: Traits,
    pub zones: Vec<Zone>,
    pub types: Vec<MigrateType>,
    /// First frame, order.
    pub held: Vec<(u64, u8, Held)>,
    pub min: u64,
}

/// Zones of some nodes: DMA32 on the first one, Normal on each, and Movable as `movablecore` makes it.
fn zones(c: &mut Chance) -> Vec<Zone> {
    let mut all = vec![];
    for node in 0..1 + c.below(3) as u8 {
        let kinds = [
            (ZoneKind::Dma32, node == 0 && c.one_in(4)),
            (ZoneKind::Normal, true),
            (ZoneKind::Movable, c.one_in(4)),
        ];
        for (kind, _) in kinds.iter().filter(|(_, is_there)| *is_there) {
            all.push(Zone {
                node,
                kind: *kind,
                blocks: 6 + c.below(30),
                keeps: [0; 2],
            });
        }
    }
    // A zone keeps pages only from requests that could use a higher one of its node.
    for i in 0..all.len() {
        let is_above = |kind| {
            let of_node = all[i..].iter().filter(|z| z.node == all[i].node);
            all[i].kind < kind && of_node.clone().any(|z| z.kind == kind)
        };
        let mut kept = 0;
        let each = [ZoneKind::Normal, ZoneKind::Movable].map(|kind| {
            kept += match is_above(kind) {
                true => c.of(&[0, 100, 3000]),
                false => 0,
            };
            kept
        });
        all[i].keeps = each;
    }
    all
}

impl State {
    pub fn random(c: &mut Chance) -> State {
        let era = c.of(&["2.6.36", "5.6", "5.9", "6.1", "6.12", "6.18", "7.2"]);
        let zones = zones(c);
        let is_old = era == "2.6.36";
        // One host in three has nothing of these, so that what the others show is not lost among them.
        let has = |c: &mut Chance, is_plain: bool, n| !is_plain && c.one_in(n);
        let plain = c.one_in(3);
        let traits = Traits {
            areas: has(c, plain || is_old, 2),
            pins: has(c, plain || is_old, 2),
            drivers: has(c, plain, 2),
            hugetlb: has(c, plain, 3),
            per_cpu: has(c, plain, 2),
            dirty: has(c, plain, 4),
        };
        // Hosts differ in how full they are, and of what.
        let empty = 1 + c.below(6);
        let large = 1 + c.below(8);
        let mut state = State {
            era,
            traits,
            zones: zones.clone(),
            types: vec![],
            held: vec![],
            min: c.of(&[0, 40, 300, 2000]),
        };
        for zone in &zones {
            // A contiguous area is at the end of its zone.
            let area = match traits.areas && zone.kind != ZoneKind::Movable && c.one_in(2) {
                true => 1 + c.below(zone.blocks / 2),
                false => 0,
            };
            for b in 0..zone.blocks {
                match (zone.kind, zone.blocks - b <= area) {
                    (_, true) => state.area_block(c, traits),
                    (ZoneKind::Movable, _) => state.movable_block(c, traits, empty, large),
                    _ => state.block(c, traits, empty, large),
                }
            }
        }
        state
    }

    fn next_block(&self) -> u64 {
        BASE + self.types.len() as u64 * BLOCK
    }

    /// A pageblock of type Movable that holds nothing of the kernel, but for what is pinned.
    fn movable_block(&mut self, c: &mut Chance, traits: Traits, empty: u64, large: u64) {
        let first = self.next_block();
        match c.below(8) {
            n if n < empty => self.held.push((first, 9, Held::Free)),
            7 if traits.hugetlb => self.held.push((first, 9, Held::Hugetlb)),
            // A huge page of a process, and a folio of page cache as large.
            6 => self
                .held
                .push((first, 9, c.of(&[Held::Process, Held::Cache]))),
            _ => self.fill_with_users(c, traits, large),
        }
        self.types.push(MigrateType::Movable);
    }

    fn block(&mut self, c: &mut Chance, traits: Traits, empty: u64, large: u64) {
        let is_old = self.era == "2.6.36";
        let kernel: &[Held] = match traits.drivers {
            true => &[Held::Slab, Held::Driver, Held::Free, Held::Free],
            false => &[Held::Slab, Held::Free],
        };
        let reserve = [Held::Free, Held::Free, Held::Process];
        match c.below(8) {
            n if n < empty => {}
            6 => {
                self.fill(c, kernel, 3);
                let mt = c.of(&[MigrateType::Unmovable, MigrateType::Reclaimable]);
                return self.types.push(mt);
            }
            7 if !is_old && c.one_in(3) => {
                self.fill(c, &reserve, 6);
                return self.types.push(MigrateType::HighAtomic);
            }
            _ => {
                self.movable_block(c, traits, 0, large);
                // The kernel's memory in a movable block.
                let at = self.held.len() - 1;
                if c.one_in(6) && self.held[at].1 < 9 {
                    self.held[at].2 = c.of(&kernel[..kernel.len() / 2]);
                }
                return;
            }
        }
        self.held.push((self.next_block(), 9, Held::Free));
        self.types.push(MigrateType::Movable);
    }

    /// A pageblock of a contiguous area: free, lent to processes, or its driver's.
    fn area_block(&mut self, c: &mut Chance, traits: Traits) {
        let first = self.next_block();
        match c.below(4) {
            0 => self.held.push((first, 9, Held::Free)),
            1 => self.fill(c, &[Held::Driver, Held::Free], 8),
            _ => self.fill_with_users(
                c,
                Traits {
                    pins: false,
                    ..traits
                },
                6,
            ),
        }
        self.types.push(MigrateType::Cma);
    }

    fn fill_with_users(&mut self, c: &mut Chance, traits: Traits, orders: u64) {
        let what = c.of::<&[Held]>(&[
            &[Held::Free, Held::Process],
            &[Held::Free, Held::Free, Held::Free, Held::Process],
            &[Held::Free, Held::Cache],
            &[Held::Cache],
            &[Held::Free, Held::Process, Held::Cache, Held::Process],
        ]);
        let from = self.held.len();
        self.fill(c, what, orders);
        // Few of them are of a kind that is not common.
        for at in from..self.held.len() {
            let (_, order, held) = &mut self.held[at];
            *held = match *held {
                Held::Process if traits.pins && c.one_in(40) => Held::PinnedProcess,
                Held::Cache if traits.pins && c.one_in(60) => Held::PinnedCache,
                Held::Cache if traits.dirty && c.one_in(40) => Held::Dirty,
                Held::Free if traits.per_cpu && *order == 0 && c.one_in(20) => Held::PerCpu,
                other => other,
            };
        }
    }

    /// Fills a pageblock with blocks of these uses, up to some order.
    fn fill(&mut self, c: &mut Chance, of: &[Held], orders: u64) {
        let first = self.next_block();
        let mut at = 0;
        while at < BLOCK {
            let order = c
                .below(orders.min(9))
                .min(u64::from((at | BLOCK).trailing_zeros())) as u8;
            self.held.push((first + at, order, c.of(of)));
            at += 1 << order;
        }
    }

    /// First frames of the zones.
    pub fn starts(&self) -> Vec<u64> {
        let mut at = BASE;
        let each = self.zones.iter().map(|z| {
            at += z.blocks * BLOCK;
            at - z.blocks * BLOCK
        });
        each.collect()
    }

    pub fn configs(&self) -> Vec<ZoneConfig> {
        let each = self.starts().into_iter().zip(&self.zones);
        each.map(|(start, z)| {
            ZoneConfig::whole(NodeId(z.node), z.kind, Pfn(start), z.blocks * BLOCK)
        })
        .collect()
    }

    /// Nodes.
    pub fn nodes(&self) -> u64 {
        u64::from(self.zones.last().expect("a zone").node) + 1
    }

    /// Frames of all zones.
    pub fn frames(&self) -> u64 {
        self.zones.iter().map(|z| z.blocks * BLOCK).sum()
    }

    fn zone_of(&self, pfn: u64) -> usize {
        self.starts()
            .iter()
            .rposition(|&s| s <= pfn)
            .expect("a zone")
    }

    /// Frames of a zone that hold something.
    pub fn frames_of(&self, zone: usize, is: impl Fn(Held) -> bool) -> u64 {
        let (start, blocks) = (self.starts()[zone], self.zones[zone].blocks);
        let frames = start..start + blocks * BLOCK;
        let of = self
            .held
            .iter()
            .filter(|h| frames.contains(&h.0) && is(h.2));
        of.map(|h| 1 << h.1).sum()
    }

    pub fn free(&self, zone: usize) -> u64 {
        self.frames_of(zone, |h| h == Held::Free)
    }

    /// Blocks that are pinned.
    pub fn pins(&self) -> u64 {
        self.held.iter().filter(|h| h.2.is_pinned()).count() as u64
    }

    /// Pages of the high-atomic reserve: its pageblocks, as kernels count them.
    pub fn reserve(&self, zone: usize) -> u64 {
        let is = |(b, mt): &(usize, &MigrateType)| {
            **mt == MigrateType::HighAtomic && self.zone_of(BASE + *b as u64 * BLOCK) == zone
        };
        self.types.iter().enumerate().filter(is).count() as u64 * BLOCK
    }

    /// What a zone keeps, by the kind of the highest zone that a request could use.
    pub fn keeps(&self, zone: usize, highest: ZoneKind) -> u64 {
        match highest {
            ZoneKind::Movable => self.zones[zone].keeps[1],
            ZoneKind::Normal | ZoneKind::HighMem => self.zones[zone].keeps[0],
            _ => 0,
        }
    }
}
