//! The configuration of a manager, and the memory that its metadata takes.

use crate::frame::{
    BlockMeta, FrameMap, FrameMeta, FrameRange, Geometry, LruId, MAX_SEGMENTS, MAX_ZONES, Order,
    Pfn, ZoneConfig,
};
use crate::kernel::{LruShape, Rules, Sysctl};
use crate::lru::LruLists;
use crate::node::Node;
use crate::pcp::CpuZone;
use crate::zone::{Zone, ZoneList, nodes, nr_lists};
use unfrag::arena::{LINE, room};

/// What a manager is made for: zones, CPUs, rules and settings.
#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    /// The zones, by ascending address, at most [`MAX_ZONES`]. A zone's first frame need not be
    /// aligned.
    pub zones: &'a [ZoneConfig],
    /// Number of CPUs.
    pub cpus: usize,
    /// Sizes of pages, blocks and pageblocks.
    pub geometry: Geometry,
    /// The era's rules.
    pub rules: Rules,
    /// The administrator's settings.
    pub sysctl: Sysctl,
}

impl<'a> Config<'a> {
    /// These zones under an era's rules: with one CPU, pages of 4 KiB, the era's pageblocks, and default
    /// settings.
    pub fn new(zones: &'a [ZoneConfig], rules: Rules) -> Config<'a> {
        let block_order = Order(rules.block_order);
        Config {
            zones,
            cpus: 1,
            geometry: Geometry::PAGES_4K.with_block_order(block_order),
            rules,
            sysctl: Sysctl::default(),
        }
    }
}

/// Memory that a manager needs for its metadata, in bytes by kind. Each kind begins at a multiple of
/// [`Layout::ALIGN`], whatever the alignment of the memory that is handed in; a word of it is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// Frames in the frame table.
    pub frames: u32,
    /// The frame table: 16 bytes for each frame.
    pub frame_bytes: usize,
    /// The table of pageblocks: 4 bytes for each.
    pub pageblock_bytes: usize,
    /// Zones, nodes, their lists, and the order of zones for each node.
    pub zone_bytes: usize,
    /// Per-CPU lists and counters: one record for each CPU and zone.
    pub cpu_bytes: usize,
    /// The whole metadata, in 64-bit words.
    pub words: usize,
}

impl Layout {
    /// Alignment of each kind, and of what one CPU has of one zone, in bytes: whole cache lines, so that
    /// two CPUs share none.
    pub const ALIGN: usize = LINE;

    /// The whole metadata, in bytes.
    pub const fn bytes(&self) -> usize {
        self.words * 8
    }
}

/// Why no manager can be made from a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No zone, or more than [`MAX_ZONES`].
    Zones(usize),
    /// No CPU.
    NoCpu,
    /// No allocator works with these sizes.
    Geometry(Geometry),
    /// No era has this name; see [`PRESETS`](crate::kernel::PRESETS).
    NoSuchEra,
    /// Zones overlap, do not ascend, span more than 2^32 frames or have more than [`MAX_SEGMENTS`]
    /// large holes between them.
    Ranges,
    /// A zone has more managed or present frames than it spans.
    Counts(usize),
    /// Frames that were to be given out are not the reserved frames of one zone, from this one on.
    NotReserved(Pfn),
    /// The memory handed in is too small; so many words are needed.
    Memory(usize),
    /// The rules leave the choice of frames to the host ([`Chooser::Source`](crate::kernel::Chooser::Source)), and it has
    /// nothing that chooses among such zones.
    NoSource,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            ConfigError::Zones(n) => write!(f, "{n} zones: from 1 to {MAX_ZONES} are possible"),
            ConfigError::NoCpu => f.write_str("at least one CPU is needed"),
            ConfigError::Geometry(g) => write!(
                f,
                "pages of 2^{} bytes, blocks to order {} and pageblocks of order {}: no allocator \
                 works with these sizes",
                g.page_shift, g.max_order, g.block_order
            ),
            ConfigError::NoSuchEra => {
                f.write_str("no era has this name; `kernel::PRESETS` has those that exist")
            }
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
            ConfigError::NotReserved(p) => write!(
                f,
                "frame {:#x} is no reserved frame of the zone whose frames are given out",
                p.0
            ),
            ConfigError::Memory(n) => write!(f, "{n} words of metadata memory are needed"),
            ConfigError::NoSource => f.write_str(
                "this kernel's frames are chosen by its host, which has nothing for it: boot it on one whose \
                 `Host::source` has, or take another kernel",
            ),
        }
    }
}

impl core::error::Error for ConfigError {}

/// The number of entries of each table, and the frames that the frame table covers.
pub(crate) struct Plan {
    pub map: FrameMap,
    pub blocks: usize,
    pub zones: usize,
    pub nodes: usize,
    pub lists: usize,
    pub sets: usize,
}

impl Plan {
    pub fn new(config: &Config) -> Result<Plan, ConfigError> {
        let n = config.zones.len();
        if n == 0 || n > MAX_ZONES {
            return Err(ConfigError::Zones(n));
        }
        if config.cpus == 0 {
            return Err(ConfigError::NoCpu);
        }
        if !config.geometry.is_possible() {
            return Err(ConfigError::Geometry(config.geometry));
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
        let map = FrameMap::new(&ranges[..n], config.geometry).ok_or(ConfigError::Ranges)?;
        let (_, nodes) = nodes(config.zones);
        Ok(Plan {
            blocks: map.len() as usize >> config.geometry.block_order.0,
            map,
            zones: n,
            nodes,
            lists: nr_lists(nodes),
            sets: n * config.cpus,
        })
    }

    pub fn layout(&self) -> Layout {
        let frame_bytes = room::<FrameMeta>(self.map.len() as usize);
        let pageblock_bytes = room::<BlockMeta>(self.blocks);
        let zone_bytes = room::<Zone>(self.zones)
            + room::<LruLists>(self.zones)
            + room::<Node>(self.nodes)
            + room::<ZoneList>(self.lists);
        let cpu_bytes = room::<CpuZone>(self.sets);
        // Aligning the first table may take up to one line.
        let all = LINE + frame_bytes + pageblock_bytes + zone_bytes + cpu_bytes;
        Layout {
            frames: self.map.len(),
            frame_bytes,
            pageblock_bytes,
            zone_bytes,
            cpu_bytes,
            words: all.div_ceil(8),
        }
    }
}

/// Memory that a manager with this configuration needs.
///
/// # Errors
/// [`ConfigError`], if there is no such manager.
pub fn layout(config: &Config) -> Result<Layout, ConfigError> {
    Plan::new(config).map(|p| p.layout())
}

/// Migrate types of a kernel without contiguous memory areas.
const LINUX_TYPES: u64 = 5;

/// The settings as they take effect: without those that the era lacks, and with grouping off where
/// memory has fewer pageblocks than there are types. `spec: 1.6`
pub(crate) fn effective(config: &Config) -> Sysctl {
    let pageblocks = config.rules.pageblocks();
    let managed: u64 = config.zones.iter().map(|z| z.managed).sum();
    let small = pageblocks.is_some() && managed < LINUX_TYPES << config.geometry.block_order.0;
    Sysctl {
        defrag_mode: config.sysctl.defrag_mode && pageblocks.is_some_and(|p| p.defrag_mode),
        group_by_mobility_disabled: config.sysctl.group_by_mobility_disabled || small,
        lru_gen: config.sysctl.lru_gen && config.rules.generations().is_some(),
        ..config.sysctl
    }
}

/// Where the LRU lists of a zone are: its own, or those of the first zone of its node.
pub(crate) fn lru_of(zones: &[ZoneConfig], zone: usize, shape: LruShape) -> LruId {
    let node = zones[zone].node;
    let first = zones.iter().position(|z| z.node == node).unwrap_or(zone);
    LruId(if shape == LruShape::PerNode {
        first
    } else {
        zone
    } as u8)
}
