//! A naive page allocator: the rules by kernel implemented a second time, as simply as possible.
//!
//! Each frame has its own state. Lists are deques of frame numbers, searched from end to end. Nothing is cached. Marks and the sizes of per-CPU lists are taken from the manager under
//! test (they have tests of their own); all else is decided here, by the name of the era and not by
//! its rules.
//!
//! - [`lists`]: split, merge, placement, moving a pageblock.
//! - [`fallback`]: what the eras do when the own lists are empty.
//! - [`pcp`]: per-CPU lists.
//! - [`request`]: zones, watermarks, the slow path.
//! - [`compare`]: compares it with a manager.
//! - [`compaction`]: compaction of one zone, by itself.

pub mod compaction;
mod compare;
mod fallback;
mod lists;
mod pcp;
mod request;

use std::collections::VecDeque;
use unfrag_eras::{CpuId, Host, Manager, MigrateType, Sysctl, ZoneConfig, ZoneId};

/// What differs most between eras.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// 2.6.14.
    Plain,
    V19,
    /// 2.6.24 to 2.6.36.
    Old,
    /// 5.6 to 6.1.
    Modern,
    /// 6.18.
    Hygiene,
}

/// Shape of the per-CPU lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One list of order 0, whatever the type.
    Hot,
    /// V19's kernel and easy lists.
    Kinds,
    /// One list, searched for a page of the type.
    Searched,
    /// A list a type, in the order of the era's numbers.
    PerType([MigrateType; 3]),
    /// 6.1.
    Fixed,
    /// 6.18.
    Tuned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    Reserved,
    Used {
        order: u8,
        head: u64,
        movable: bool,
    },
    Free {
        order: u8,
        head: u64,
        mt: MigrateType,
    },
    Pcp {
        order: u8,
        head: u64,
        mt: MigrateType,
    },
}

#[derive(Debug)]
pub struct Zone {
    pub config: ZoneConfig,
    pub lists: Vec<[VecDeque<u64>; 8]>,
    pub min: u64,
    pub low: u64,
    pub high: u64,
    pub boost: u64,
    pub protection: [u64; 5],
    pub highatomic: u64,
    pub boosted: bool,
    pub reclaim: bool,
    pub below_high: bool,
    /// Free pages as the marks see them, and how far a CPU's own count may differ.
    pub counter: i64,
    pub threshold: i64,
    /// V19's blocks by type, and requests.
    pub v19_blocks: [u64; 4],
    pub v19_allocs: [u64; 4],
}

impl Zone {
    pub fn start(&self) -> u64 {
        self.config.start.0
    }
    pub fn end(&self) -> u64 {
        self.config.start.0 + self.config.spanned
    }
    pub fn free_pages(&self) -> u64 {
        (0..=10).map(|o| self.nr_free(o) << o).sum()
    }
    pub fn nr_free(&self, order: u8) -> u64 {
        self.lists[order as usize]
            .iter()
            .map(|l| l.len() as u64)
            .sum()
    }
    pub fn list(&self, order: u8, mt: MigrateType) -> &VecDeque<u64> {
        &self.lists[order as usize][mt as usize]
    }
}

#[derive(Clone, Debug, Default)]
pub struct Set {
    pub lists: [VecDeque<u64>; 14],
    pub batch: i64,
    pub high: i64,
    pub high_min: i64,
    pub high_max: i64,
    pub factor: i64,
    pub free_count: i64,
    pub row_of_small: bool,
    /// Free pages that are not in the zone's counter yet.
    pub untold: i64,
}

pub struct Model {
    pub era: &'static str,
    pub family: Family,
    /// 6.12: it steals from the largest block, and a burst of frees is over sooner.
    pub early: bool,
    pub shape: Shape,
    pub block_order: u8,
    pub sysctl: Sysctl,
    /// Grouping is off.
    pub ungrouped: bool,
    pub zones: Vec<Zone>,
    /// Set of zone `z` and CPU `c`: `sets[c][z]`.
    pub sets: Vec<Vec<Set>>,
    pub base: u64,
    pub frames: Vec<Frame>,
    pub block_types: Vec<MigrateType>,
    pub cpu: usize,
    pub wakes: Vec<(u8, u8)>,
}

impl Model {
    /// A model in the state of a manager that has just been booted.
    pub fn after_boot<H: Host>(
        era: &'static str,
        m: &Manager<H>,
        zones: &[ZoneConfig],
        cpus: usize,
    ) -> Model {
        use MigrateType::{Movable, Reclaimable, Unmovable};
        let old_numbers = [Unmovable, Reclaimable, Movable];
        let (family, shape) = match era {
            "2.6.14" => (Family::Plain, Shape::Hot),
            "v19" => (Family::V19, Shape::Kinds),
            "2.6.24" | "2.6.28" | "2.6.30" | "2.6.31" => (Family::Old, Shape::Searched),
            "2.6.32-rc6" | "2.6.32" | "2.6.33" | "2.6.36" => {
                (Family::Old, Shape::PerType(old_numbers))
            }
            "5.6" | "5.9" => (
                Family::Modern,
                Shape::PerType([Unmovable, Movable, Reclaimable]),
            ),
            "6.1" => (Family::Modern, Shape::Fixed),
            "6.12" | "6.18" | "7.2" => (Family::Hygiene, Shape::Tuned),
            other => panic!("the model does not know {other}"),
        };
        let base = zones[0].start.0 & !1023;
        let last = zones.last().map_or(0, |z| z.start.0 + z.spanned);
        let len = (last - base).next_multiple_of(1024);
        let block_order = if matches!(family, Family::Plain | Family::V19) {
            10
        } else {
            9
        };
        let mut model = Model {
            era,
            family,
            early: era == "6.12",
            shape,
            block_order,
            sysctl: *m.inspect().sysctl(),
            ungrouped: m.inspect().sysctl().group_by_mobility_disabled,
            zones: Vec::new(),
            sets: Vec::new(),
            base,
            frames: vec![Frame::Reserved; len as usize],
            block_types: vec![Unmovable; (len >> block_order) as usize],
            cpu: 0,
            wakes: Vec::new(),
        };
        for (i, c) in zones.iter().enumerate() {
            model.zones.push(Zone::like(m, i, *c));
            if !matches!(family, Family::Plain | Family::V19) {
                // Twice the bits of the CPUs, for each bit of the size in 128 MiB and once more.
                let bits = |n: u64| 64 - i64::from(n.leading_zeros());
                let by_size = 1 + bits(c.managed >> 15);
                model.zones[i].threshold = (2 * bits(cpus as u64) * by_size).min(125);
            }
        }
        for cpu in 0..cpus {
            let set = |zone| {
                let v = m.inspect().set(ZoneId(zone as u8), CpuId(cpu as u32));
                Set {
                    batch: v.batch.into(),
                    high: v.high.into(),
                    high_min: v.high_min.into(),
                    high_max: v.high_max.into(),
                    ..Set::default()
                }
            };
            model.sets.push((0..zones.len()).map(set).collect());
        }
        model.copy_lists(m);
        model
    }

    /// Folds a CPU's count of freed or taken pages into the zone's once it exceeds the threshold.
    pub fn count(&mut self, cpu: usize, z: usize, pages: i64) {
        let (zone, untold) = (&mut self.zones[z], &mut self.sets[cpu][z].untold);
        *untold += pages;
        if untold.abs() > zone.threshold {
            zone.counter += std::mem::take(untold);
        }
    }

    pub fn zone_of(&self, pfn: u64) -> usize {
        self.zones
            .iter()
            .position(|z| (z.start()..z.end()).contains(&pfn))
            .expect("a zone")
    }

    pub fn frame(&self, pfn: u64) -> Frame {
        self.frames[(pfn - self.base) as usize]
    }

    /// Sets the state of every frame of a block.
    pub fn mark(&mut self, head: u64, order: u8, what: Frame) {
        let at = (head - self.base) as usize;
        self.frames[at..at + (1 << order)].fill(what);
    }

    pub fn block_type(&self, pfn: u64) -> MigrateType {
        self.block_types[((pfn - self.base) >> self.block_order) as usize]
    }

    pub fn set_block_type(&mut self, pfn: u64, mt: MigrateType) {
        self.block_types[((pfn - self.base) >> self.block_order) as usize] = mt;
    }

    /// Re-types all pageblocks that a block covers.
    pub fn set_block_types(&mut self, pfn: u64, order: u8, mt: MigrateType) {
        for at in (pfn..pfn + (1 << order)).step_by(1 << self.block_order) {
            self.set_block_type(at, mt);
        }
    }

    pub fn set(&mut self, zone: usize) -> &mut Set {
        &mut self.sets[self.cpu][zone]
    }

    pub fn is_modern(&self) -> bool {
        matches!(self.family, Family::Modern | Family::Hygiene)
    }
}

/// The three types that requests ask for.
pub fn ordinary(mt: MigrateType) -> bool {
    matches!(
        mt,
        MigrateType::Unmovable | MigrateType::Movable | MigrateType::Reclaimable
    )
}
