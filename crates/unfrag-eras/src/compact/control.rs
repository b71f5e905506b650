//! What one run over one zone is for, and what it may do.

use super::outcome::Mode;
use crate::frame::{MigrateType, Order, ZoneId, ZoneKind};
use crate::gfp::AllocFlags;

/// What one run over one zone is for (`struct compact_control`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    pub zone: ZoneId,
    /// The order of the block that is wanted; `None`: the whole zone is compacted for none.
    pub order: Option<Order>,
    /// Type of the request.
    pub mt: MigrateType,
    pub mode: Mode,
    /// Both scanners begin at the ends of the zone.
    pub whole_zone: bool,
    /// Marked pageblocks are scanned too.
    pub ignores_skips: bool,
    /// Pages are taken from pageblocks of any type, also by an asynchronous run.
    pub any_source: bool,
    /// It runs for a request, which waits for it.
    pub direct: bool,
    /// It is to bring the free frames in whole pageblocks above the high mark, not one block (defrag mode).
    pub in_blocks: bool,
    /// It runs ahead of demand, until the zone's score is low.
    pub proactive: bool,
    /// Ahead of demand, where the source chooses: what is to be free in the zone.
    pub goal: Option<Goal>,
    /// The highest zone that the request may use.
    pub highest: ZoneKind,
    /// The mark that the request is held against.
    pub flags: AllocFlags,
}

/// What is to be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Goal {
    /// The order of the blocks: that of a pageblock, or larger.
    pub order: Order,
    /// Pageblocks in free blocks of this order or a larger one.
    pub blocks: u32,
}

impl Control {
    /// A synchronous run for `order`, as a node's daemon makes it for a request of the kernel. In defrag mode it wants
    /// whole pageblocks to pass the high mark, not one block the min mark.
    pub const fn of_daemon(zone: ZoneId, order: Order, highest: ZoneKind, defrag: bool) -> Control {
        Control {
            zone,
            order: Some(order),
            mt: MigrateType::Unmovable,
            mode: Mode::SyncLight,
            whole_zone: false,
            ignores_skips: false,
            any_source: false,
            direct: false,
            in_blocks: defrag,
            proactive: false,
            goal: None,
            highest,
            flags: if defrag {
                AllocFlags::WMARK_HIGH
            } else {
                AllocFlags::empty()
            },
        }
    }

    /// A run over the whole zone, for no order: ahead of demand, or as the administrator asked.
    pub const fn of_zone(zone: ZoneId, mode: Mode, proactive: bool) -> Control {
        Control {
            zone,
            order: None,
            mt: MigrateType::Movable,
            mode,
            whole_zone: true,
            ignores_skips: true,
            any_source: false,
            direct: false,
            in_blocks: false,
            proactive,
            goal: None,
            highest: ZoneKind::Movable,
            flags: AllocFlags::empty(),
        }
    }
}
