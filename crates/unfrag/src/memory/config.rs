//! What a [`Memory`](super::Memory) is made for, and how much room it needs for that.

use crate::frame::{NodeId, Pfn};
use crate::local::Barrier;
use crate::local::arrays::SINGLES;
use crate::local::slot::Slots;
use crate::maps::{Engine, EngineLayout, LARGEST_ORDER};

/// Most shards, of all areas.
pub const MAX_SHARDS: usize = 16;

/// Most nodes.
pub const MAX_NODES: usize = 16;

/// Frames of a gigabyte, at which areas and shards begin.
pub(crate) const GIGABYTE: u64 = LARGEST_ORDER.frames() as u64;

/// Gigabytes of a shard, at most.
const MOST: u64 = <Engine<'static>>::MOST as u64;

/// Where there may be memory of a node, now or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// The first frame, a multiple of 2^18.
    pub start: Pfn,
    /// Frames, whether there is memory or not. What is cut short of a multiple of 2^18 is made up.
    pub frames: u64,
    /// The node, below [`MAX_NODES`].
    pub node: NodeId,
    /// Shards of at least a gigabyte, each with a lock of its own. One for each two CPUs is enough.
    pub shards: usize,
    /// Whether it is kept for requests that only low addresses serve: others are served from it when nothing else is left.
    pub is_low: bool,
}

/// Watermarks of a node, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// A request fails that would leave fewer free frames than these, what CPUs keep not counted; but for one that cannot
    /// wait.
    pub min: u64,
    /// Below so many free frames, or the min watermark, somebody should reclaim.
    pub low: u64,
    /// Whoever reclaims may stop at so many.
    pub high: u64,
}

impl Marks {
    /// Every frame may be taken, and nobody need reclaim.
    pub const NONE: Marks = Marks {
        min: 0,
        low: 0,
        high: 0,
    };
}

/// Areas, in the order of their addresses.
#[derive(Clone, Copy)]
pub struct Areas {
    of: [Area; MAX_SHARDS],
    count: usize,
}

impl Areas {
    /// One area.
    pub const fn one(area: Area) -> Areas {
        Areas {
            of: [area; MAX_SHARDS],
            count: 1,
        }
    }

    /// With another area, behind the ones before it.
    #[must_use]
    pub const fn and(mut self, area: Area) -> Areas {
        if self.count < MAX_SHARDS {
            self.of[self.count] = area;
        }
        // More than there is room for are refused when the memory starts.
        self.count = self.count.saturating_add(1);
        self
    }

    /// How many there are, of those that there is room for.
    pub(crate) const fn len(&self) -> usize {
        if self.count < MAX_SHARDS {
            self.count
        } else {
            MAX_SHARDS
        }
    }

    pub(crate) const fn get(&self, i: usize) -> Area {
        self.of[i]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Area> {
        self.of[..self.len()].iter()
    }
}

impl core::fmt::Debug for Areas {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// What a [`Memory`](super::Memory) is made for.
#[derive(Clone, Copy, Debug)]
pub struct MemoryConfig {
    /// Where there may be memory.
    pub areas: Areas,
    /// CPUs or threads that have a [`Local`](crate::local::Local) at the same time.
    pub locals: usize,
    /// Watermarks of each node; [`Memory::set_marks`](super::Memory::set_marks) sets those of one.
    pub marks: Marks,
    /// Single frames of each type that a `Local` keeps at most, and fewer blocks of the other orders that it keeps: 1 to
    /// [`SINGLES`]; what is beyond counts as the nearest of them.
    pub keeps: u32,
    /// With it, whoever finds no memory has what idle CPUs keep: see [`Memory::drain_locals`](super::Memory::drain_locals).
    /// Without it, each CPU gives back what it keeps at its next free.
    pub barrier: Option<Barrier>,
}

/// Why no memory can be as a [`MemoryConfig`] says, or in the room that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// An area has no frames, no shards, or more shards than gigabytes; or it does not begin at a multiple of 2^18 frames.
    Area(Area),
    /// An area begins before the end of the one before it, or ends beyond 2^64.
    Overlap(Area),
    /// A shard of an area has more gigabytes than [`Engine::MOST`].
    TooLarge(Area),
    /// An area is of a node that is too large a number.
    Node(NodeId),
    /// There are more shards than [`MAX_SHARDS`], in all areas.
    TooManyShards(usize),
    /// The directory has fewer entries than there are gigabytes.
    Directory(usize),
    /// An entry of the directory is in use.
    InUse,
    /// There are fewer words than the CPUs need.
    Words(usize),
    /// It has been started before.
    Started,
}

impl core::fmt::Display for StartError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            StartError::Area(a) => write!(
                f,
                "the area at frame {:#x} must begin at a multiple of 2^18 frames, and have a gigabyte for each of its shards, of which there is one at least",
                a.start.0
            ),
            StartError::Overlap(a) => write!(
                f,
                "the area at frame {:#x} begins before the one before it ends, or ends beyond the last address: name areas by their addresses, lowest first",
                a.start.0
            ),
            StartError::TooLarge(a) => write!(
                f,
                "the area at frame {:#x} has more than {} gigabytes for each of its shards: give it more of them",
                a.start.0, MOST
            ),
            StartError::Node(n) => write!(
                f,
                "node {}: nodes are numbered from 0 up to {}",
                n.0,
                MAX_NODES - 1
            ),
            StartError::TooManyShards(n) => {
                write!(f, "{n} shards or areas: at most {MAX_SHARDS} in all")
            }
            StartError::Directory(n) => write!(f, "the directory must have {n} entries"),
            StartError::InUse => {
                f.write_str("an entry of the directory is in use: hand in new ones")
            }
            StartError::Words(n) => write!(f, "what the CPUs keep needs {n} words"),
            StartError::Started => f.write_str("this memory has been started before"),
        }
    }
}

impl core::error::Error for StartError {}

impl MemoryConfig {
    /// One area of node 0 with one shard, and one local, without watermarks or a barrier. A local keeps the less, the less memory there is.
    pub const fn new(start: Pfn, frames: u64) -> MemoryConfig {
        let area = Area {
            start,
            frames,
            node: NodeId(0),
            shards: 1,
            is_low: false,
        };
        MemoryConfig::of(area)
    }

    /// One area, and one local, without watermarks or a barrier. A local keeps the less, the less memory there is.
    pub const fn of(area: Area) -> MemoryConfig {
        let part = area.frames / 512;
        let keeps = if part < 8 {
            8
        } else if part > SINGLES as u64 {
            SINGLES as u32
        } else {
            part as u32
        };
        MemoryConfig {
            areas: Areas::one(area),
            locals: 1,
            marks: Marks::NONE,
            keeps,
            barrier: None,
        }
    }

    /// With another area, behind the ones before it.
    #[must_use]
    pub const fn and(mut self, area: Area) -> MemoryConfig {
        self.areas = self.areas.and(area);
        self
    }

    /// With so many shards of each area.
    #[must_use]
    pub const fn with_shards(mut self, shards: usize) -> MemoryConfig {
        let mut i = 0;
        while i < self.areas.len() {
            self.areas.of[i].shards = shards;
            i += 1;
        }
        self
    }

    /// With so many locals.
    #[must_use]
    pub const fn with_locals(mut self, locals: usize) -> MemoryConfig {
        self.locals = locals;
        self
    }

    /// With these watermarks of each node.
    #[must_use]
    pub const fn with_marks(mut self, marks: Marks) -> MemoryConfig {
        self.marks = marks;
        self
    }

    /// Entries that the directory must have: the gigabytes of all areas.
    pub const fn gigabytes(&self) -> usize {
        let (mut i, mut sum) = (0, 0usize);
        while i < self.areas.len() {
            let own = self.areas.of[i].frames.div_ceil(GIGABYTE);
            sum = sum.saturating_add(own as usize);
            i += 1;
        }
        sum
    }

    /// What is wrong with it.
    pub(crate) const fn check(&self) -> Result<(), StartError> {
        let (mut i, mut shards) = (0, 0usize);
        let mut end = 0;
        while i < self.areas.len() {
            let area = self.areas.of[i];
            let gigabytes = area.frames.div_ceil(GIGABYTE);
            let is_aligned = area.start.0.is_multiple_of(GIGABYTE);
            let fits = area.shards > 0 && area.shards as u64 <= gigabytes;
            if !is_aligned || !fits {
                return Err(StartError::Area(area));
            }
            let ends = match gigabytes.checked_mul(GIGABYTE) {
                Some(frames) => area.start.0.checked_add(frames),
                None => None,
            };
            let ends = match ends {
                Some(ends) if area.start.0 >= end => ends,
                _ => return Err(StartError::Overlap(area)),
            };
            if gigabytes.div_ceil(area.shards as u64) > MOST {
                return Err(StartError::TooLarge(area));
            }
            if area.node.0 as usize >= MAX_NODES {
                return Err(StartError::Node(area.node));
            }
            end = ends;
            shards = shards.saturating_add(area.shards);
            i += 1;
        }
        if shards < self.areas.count {
            shards = self.areas.count;
        }
        if shards > MAX_SHARDS {
            return Err(StartError::TooManyShards(shards));
        }
        Ok(())
    }
}

/// Room for a [`Memory`](super::Memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryLayout {
    /// 64-bit words, of any alignment and content: for what CPUs keep, and for the tables of each gigabyte of all areas. Those of
    /// a gigabyte are needed when memory in it is added, and not before.
    pub words: usize,
    /// Of those, the words for what CPUs keep.
    pub locals: usize,
    /// Entries of the directory.
    pub gigabytes: usize,
}

impl MemoryLayout {
    /// Words for the tables of one gigabyte: 0.175 bytes a frame.
    pub const GIGABYTE: usize = EngineLayout::GIGABYTE;

    /// The room for a configuration. As much as there can be, for one that needs more.
    pub const fn of(config: &MemoryConfig) -> MemoryLayout {
        let gigabytes = config.gigabytes();
        let locals = Slots::words(config.locals);
        let tables = gigabytes.saturating_mul(EngineLayout::GIGABYTE);
        MemoryLayout {
            words: locals.saturating_add(tables),
            locals,
            gigabytes,
        }
    }
}
