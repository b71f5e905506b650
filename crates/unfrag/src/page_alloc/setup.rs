//! How much memory a manager needs, and its boot.

use super::zonelist::ZoneLists;
use super::{MAX_ZONES, Manager, Wanted};
use crate::frame::{
    FrameMap, FrameMeta, FrameRange, Frames, Kind, MAX_BLOCK, MAX_ORDER, MAX_SEGMENTS, MigrateType,
    NIL, Pfn, State,
};
use crate::host::Host;
use crate::kernel::{LruShape, Placement, Reserve, Rules, Sysctl};
use crate::pcp::{CpuLists, Env, size};
use crate::place::lists::At;
use crate::reclaim::{FlagCounts, LruVec, ReclaimCounters};
use crate::stat::Counters;
use crate::zone::{Zone, ZoneConfig, watermark};
use core::mem::size_of;

/// What a manager is to manage.
#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    /// The zones, by ascending address, at most [`MAX_ZONES`]. A zone's first frame need not be
    /// aligned.
    pub zones: &'a [ZoneConfig],
    /// Number of CPUs.
    pub cpus: usize,
    /// The era's rules.
    pub rules: Rules,
    /// The administrator's settings.
    pub sysctl: Sysctl,
}

/// Memory that a manager needs for its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// All of it, in 64-bit words.
    pub words: usize,
    /// Frames in the table; the table takes 16 bytes for each.
    pub frames: u32,
    /// Bytes for everything else: a byte a pageblock, and the lists of each CPU and zone.
    pub fixed_bytes: usize,
}

impl Layout {
    /// All of it, in bytes.
    pub const fn bytes(&self) -> usize {
        self.words * 8
    }
}

/// Why a configuration cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No zone, or more than [`MAX_ZONES`].
    Zones(usize),
    /// No CPU.
    NoCpu,
    /// Zones overlap, do not ascend, span more than 2^32 frames or have more than [`MAX_SEGMENTS`]
    /// large holes between them.
    Ranges,
    /// A zone has more managed or present frames than it spans.
    Counts(usize),
    /// The memory handed in is too small; so many words are needed.
    Memory(usize),
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            ConfigError::Zones(n) => write!(f, "{n} zones: from 1 to {MAX_ZONES} are possible"),
            ConfigError::NoCpu => f.write_str("at least one CPU is needed"),
            ConfigError::Ranges => write!(
                f,
                "the zones must ascend without overlap, with at most {MAX_SEGMENTS} large holes \
                 and 2^32 frames in all"
            ),
            ConfigError::Counts(i) => {
                write!(
                    f,
                    "zone {i} has more managed or present frames than it spans"
                )
            }
            ConfigError::Memory(n) => write!(f, "{n} words of metadata memory are needed"),
        }
    }
}

impl core::error::Error for ConfigError {}

const PAD: usize = 8;

/// Migrate types of a kernel without contiguous memory areas.
const LINUX_TYPES: u64 = 5;

fn plan(config: &Config) -> Result<(FrameMap, Layout), ConfigError> {
    let n = config.zones.len();
    if n == 0 || n > MAX_ZONES {
        return Err(ConfigError::Zones(n));
    }
    if config.cpus == 0 {
        return Err(ConfigError::NoCpu);
    }
    let mut ranges = [FrameRange {
        start: Pfn(0),
        frames: 0,
    }; MAX_ZONES];
    for (i, (r, z)) in ranges.iter_mut().zip(config.zones).enumerate() {
        if z.managed > z.present || z.present > z.spanned {
            return Err(ConfigError::Counts(i));
        }
        *r = FrameRange {
            start: z.start,
            frames: z.spanned,
        };
    }
    let map = FrameMap::new(&ranges[..n]).ok_or(ConfigError::Ranges)?;
    let table = map.len() as usize * size_of::<FrameMeta>();
    let blocks = (map.len() as usize >> config.rules.block_order).next_multiple_of(8);
    let sets = n * config.cpus * size_of::<CpuLists>();
    let fixed = blocks + sets + PAD;
    let words = (table + fixed).div_ceil(8);
    Ok((
        map,
        Layout {
            words,
            frames: map.len(),
            fixed_bytes: fixed,
        },
    ))
}

/// Memory that a manager with this configuration needs.
pub fn layout(config: &Config) -> Result<Layout, ConfigError> {
    plan(config).map(|(_, l)| l)
}

/// The settings as they take effect: without those that the era lacks, and with grouping off where
/// memory has fewer pageblocks than there are types. `spec: linux-mm 1.6`
fn effective(config: &Config) -> Sysctl {
    let sw = &config.rules;
    let managed: u64 = config.zones.iter().map(|z| z.managed).sum();
    let small = sw.pageblocks().is_some() && managed < LINUX_TYPES << u64::from(sw.block_order);
    Sysctl {
        defrag_mode: config.sysctl.defrag_mode && sw.pageblocks().is_some_and(|p| p.defrag_mode),
        group_by_mobility_disabled: config.sysctl.group_by_mobility_disabled || small,
        ..config.sysctl
    }
}

/// Where the LRU lists of each zone are: at the zone, or at the first zone of its node.
fn lruvec_of(zones: &[ZoneConfig], shape: LruShape) -> [u8; MAX_ZONES] {
    let mut of = [0; MAX_ZONES];
    for (i, z) in zones.iter().enumerate() {
        let first = zones.iter().position(|o| o.node == z.node).unwrap_or(i);
        of[i] = if shape == LruShape::PerNode { first } else { i } as u8;
    }
    of
}

impl<'m, H: Host> Manager<'m, H> {
    /// A manager whose frames are all reserved: memory comes in by [`free_range`](Self::free_range)
    /// (a boot) or by [`restore`](super::restore). `memory` holds at least
    /// [`layout`]`(config).words` words, of any content.
    pub fn new(config: &Config, host: H, memory: &'m mut [u64]) -> Result<Self, ConfigError> {
        let (map, layout) = plan(config)?;
        let memory = memory
            .get_mut(..layout.words)
            .ok_or(ConfigError::Memory(layout.words))?;
        memory.fill(0);
        let (table, rest) = memory.split_at_mut(map.len() as usize * size_of::<FrameMeta>() / 8);
        let (blocks, rest) =
            rest.split_at_mut((map.len() as usize >> config.rules.block_order).div_ceil(8));
        let meta: &mut [FrameMeta] = bytemuck::cast_slice_mut(table);
        let blocks: &mut [u8] = bytemuck::cast_slice_mut(blocks);
        let nr_sets = config.zones.len() * config.cpus;
        let words = (nr_sets * size_of::<CpuLists>()).div_ceil(8);
        let sets: &mut [CpuLists] = bytemuck::cast_slice_mut(&mut rest[..words]);
        sets.fill(CpuLists::new());

        let frames = Frames {
            meta,
            blocks,
            block_order: config.rules.block_order,
        };
        let initial = match config.rules.placement {
            Placement::Pageblocks(_) => MigrateType::Movable,
            Placement::Ungrouped | Placement::V19 => MigrateType::Unmovable,
        };
        frames.blocks.fill(initial as u8);
        let mut zones = [const { None }; MAX_ZONES];
        for (i, c) in config.zones.iter().enumerate() {
            let last = Pfn(c.start.0 + c.spanned.max(1) - 1);
            let (Some(start), Some(last)) = (map.ix(c.start), map.ix(last)) else {
                return Err(ConfigError::Ranges);
            };
            let (start, end) = (start, if c.spanned == 0 { start } else { last + 1 });
            let reserved = State::new(Kind::Reserved, 0, MigrateType::Unmovable, i as u8);
            for e in &mut frames.meta[start as usize..end as usize] {
                (e.next, e.prev) = (NIL, NIL);
                e.set_state(reserved);
            }
            let ungrouped = effective(config).group_by_mobility_disabled;
            let mut zone = Zone::new(i as u8, *c, start, end, ungrouped);
            if config.rules.marks.late_free_count {
                let pages = watermark::pages(c, &config.rules);
                zone.stat_threshold = size::stat_threshold(pages, config.cpus as u64);
            }
            zones[i] = Some(zone);
        }
        let env = Env {
            sw: config.rules,
            sysctl: effective(config),
        };
        watermark::setup(&mut zones, &env.sw, &env.sysctl);
        let mut m = Manager {
            host,
            map,
            frames,
            zones,
            nr_zones: config.zones.len(),
            zonelists: ZoneLists::new(config.zones, &config.rules),
            sets,
            cpus: config.cpus,
            env,
            counters: Counters::default(),
            lruvecs: [LruVec::EMPTY; MAX_ZONES],
            lruvec_of: lruvec_of(config.zones, config.rules.reclaim.lru.shape()),
            kswapd: [Wanted::default(); MAX_ZONES],
            reclaim: ReclaimCounters::default(),
            flag_counts: FlagCounts::default(),
        };
        for z in 0..m.nr_zones {
            m.size_sets(z);
        }
        Ok(m)
    }

    /// Sets batch and high of a zone's per-CPU lists from its size and marks.
    pub(super) fn size_sets(&mut self, zone: usize) {
        let z = self.zone(zone);
        let size = size::SetSize::new(
            &self.env.sw,
            &self.env.sysctl,
            watermark::pages(&z.config, &self.env.sw),
            z.marks.low,
            self.cpus as u64,
        );
        for cpu in 0..self.cpus {
            let set = &mut self.sets[cpu * self.nr_zones + zone];
            let clip = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
            set.batch = clip(size.batch);
            (set.high, set.high_min) = (clip(size.high_min), clip(size.high_min));
            set.high_max = clip(size.high_max);
        }
    }

    /// Boot: frees `frames` reserved frames from `start`, as the kernel hands over its early memory:
    /// ascending, the largest aligned blocks first, each to the tail of its list.
    /// `spec: linux-6.1 9`
    ///
    /// # Panics
    /// If the frames are not all reserved frames of one zone.
    pub fn free_range(&mut self, start: Pfn, frames: u64) {
        let Some(first) = self.map.ix(start) else {
            panic!("{start:?} is in no zone")
        };
        let (mut at, end) = (first, first + frames as u32);
        let zone = self.frames.state(at).zone();
        while at < end {
            let order = (at.trailing_zeros() as u8)
                .min((end - at).ilog2() as u8)
                .min(MAX_ORDER);
            for ix in at..at + (1 << order) {
                let s = self.frames.state(ix);
                assert!(
                    s.kind() == Kind::Reserved && s.zone() == zone,
                    "frame {:?} is not a reserved frame of the zone",
                    self.map.pfn(ix)
                );
                self.frames
                    .set_state(ix, State::new(Kind::Tail, 0, MigrateType::Unmovable, zone));
            }
            let parts = self.parts(zone.into(), 0);
            parts
                .zone
                .give(parts.frames, parts.env, parts.set, at, order, At::Tail);
            at += 1 << order;
        }
    }

    /// The end of boot: counts what is free, and makes the era's reserve of it.
    pub fn boot_done(&mut self) {
        (0..self.cpus).for_each(|cpu| self.vmstat_update(cpu));
        if let Reserve::Blocks { capped } = self.env.sw.reserve() {
            for z in self.zones.iter_mut().flatten() {
                z.setup_reserve_blocks(&mut self.frames, capped);
            }
        }
    }

    /// A whole boot: all managed frames of each zone are free, the reserved ones being the first.
    pub fn boot(config: &Config, host: H, memory: &'m mut [u64]) -> Result<Self, ConfigError> {
        let mut m = Self::new(config, host, memory)?;
        for c in config.zones {
            m.free_range(Pfn(c.start.0 + c.spanned - c.managed), c.managed);
        }
        m.boot_done();
        Ok(m)
    }
}

const _: () = assert!((MAX_BLOCK as usize * size_of::<FrameMeta>()).is_multiple_of(8));
const _: () = assert!(size_of::<CpuLists>().is_multiple_of(8));
