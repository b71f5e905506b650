//! Kinds of zones, and the extent of a zone.

use unfrag::frame::{NodeId, Pfn};
use zerocopy::{IntoBytes, KnownLayout, TryFromBytes};

/// Number of zone kinds.
pub const NR_ZONE_KINDS: usize = 5;

/// Which addresses a zone holds. The order is that of `GFP_ZONEMASK`: a request may use its highest
/// zone and all below it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TryFromBytes, IntoBytes, KnownLayout,
)]
#[repr(u8)]
pub enum ZoneKind {
    /// Below 16 MiB.
    Dma = 0,
    /// Below 4 GiB.
    Dma32 = 1,
    /// Mapped by the kernel at all times.
    Normal = 2,
    /// Not mapped by the kernel at all times (32 bits).
    HighMem = 3,
    /// For movable requests only.
    Movable = 4,
}

impl ZoneKind {
    /// All kinds, lowest first.
    pub const ALL: [ZoneKind; NR_ZONE_KINDS] = [
        ZoneKind::Dma,
        ZoneKind::Dma32,
        ZoneKind::Normal,
        ZoneKind::HighMem,
        ZoneKind::Movable,
    ];

    /// Name as procfs prints it.
    pub const fn name(self) -> &'static str {
        match self {
            ZoneKind::Dma => "DMA",
            ZoneKind::Dma32 => "DMA32",
            ZoneKind::Normal => "Normal",
            ZoneKind::HighMem => "HighMem",
            ZoneKind::Movable => "Movable",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<ZoneKind> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// The extent of a zone, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneConfig {
    /// Node that it belongs to.
    pub node: NodeId,
    /// Kind.
    pub kind: ZoneKind,
    /// First frame.
    pub start: Pfn,
    /// Frames from the first to the last, holes included.
    pub spanned: u64,
    /// Frames without holes.
    pub present: u64,
    /// Frames that the allocator manages: present frames without those reserved at boot.
    pub managed: u64,
}

impl ZoneConfig {
    /// A zone of `frames` frames without holes, all of them managed.
    pub const fn whole(node: NodeId, kind: ZoneKind, start: Pfn, frames: u64) -> ZoneConfig {
        ZoneConfig {
            node,
            kind,
            start,
            spanned: frames,
            present: frames,
            managed: frames,
        }
    }
}
