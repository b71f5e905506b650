//! Transparent huge pages: the administrator's settings, and what a fault asks for under them.
//! `spec: 5.6`

use unfrag_eras::{Gfp, Order};

/// Order of a huge page: that which one page of page tables maps on a 64-bit machine.
pub const HUGE: Order = Order::HUGE;
/// Pages of a huge page.
pub const HUGE_PAGES: u32 = 1 << HUGE.0;

/// `GFP_TRANSHUGE_LIGHT`.
const LIGHT: Gfp = Gfp::HIGHUSER_MOVABLE
    .union(Gfp::COMP)
    .union(Gfp::NOMEMALLOC)
    .union(Gfp::NOWARN)
    .difference(Gfp::DIRECT_RECLAIM)
    .difference(Gfp::KSWAPD_RECLAIM);

/// `/sys/kernel/mm/transparent_hugepage/enabled`: which areas get huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThpEnabled {
    /// All.
    Always,
    /// Those that asked for them.
    Madvise,
    /// None.
    Never,
}

/// `/sys/kernel/mm/transparent_hugepage/defrag`: what a fault does if there is no huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThpDefrag {
    /// It reclaims and compacts.
    Always,
    /// It wakes the daemons.
    Defer,
    /// It reclaims and compacts in areas that asked for huge pages, else wakes the daemons.
    DeferMadvise,
    /// It reclaims and compacts in areas that asked for huge pages.
    Madvise,
    /// Nothing.
    Never,
}

/// The settings of transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thp {
    /// Which areas get huge pages.
    pub enabled: ThpEnabled,
    /// What a fault does if there is no huge page.
    pub defrag: ThpDefrag,
}

impl Thp {
    /// None at all: a kernel without them.
    pub const OFF: Thp = Thp {
        enabled: ThpEnabled::Never,
        defrag: ThpDefrag::Never,
    };
    /// The defaults of a kernel that has them.
    pub const STANDARD: Thp = Thp {
        enabled: ThpEnabled::Always,
        defrag: ThpDefrag::Madvise,
    };

    /// Whether an area gets huge pages, that has asked for them or not.
    pub fn serves(self, advised: bool) -> bool {
        match self.enabled {
            ThpEnabled::Always => true,
            ThpEnabled::Madvise => advised,
            ThpEnabled::Never => false,
        }
    }

    /// Flags of a fault's request in such an area (`vma_thp_gfp_mask`).
    pub fn gfp(self, advised: bool) -> Gfp {
        let eager = LIGHT | Gfp::DIRECT_RECLAIM;
        match (self.defrag, advised) {
            (ThpDefrag::Always, false) => eager | Gfp::NORETRY,
            (ThpDefrag::Always | ThpDefrag::DeferMadvise | ThpDefrag::Madvise, true) => eager,
            (ThpDefrag::Defer, _) | (ThpDefrag::DeferMadvise, false) => LIGHT | Gfp::KSWAPD_RECLAIM,
            (ThpDefrag::Madvise, false) | (ThpDefrag::Never, _) => LIGHT,
        }
    }

    /// The requests that a fault makes in turn: one for its own node alone that gives up early, then, if it may
    /// reclaim, one for any.
    pub fn tries(self, advised: bool) -> impl Iterator<Item = Gfp> {
        let gfp = self.gfp(advised);
        let second = gfp.contains(Gfp::DIRECT_RECLAIM).then_some(gfp);
        [gfp | Gfp::THISNODE | Gfp::NORETRY]
            .into_iter()
            .chain(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // `spec: 5.6`, the table of the THP fault.
    fn each_setting_has_the_flags_of_the_table() {
        assert_eq!(LIGHT.bits(), 0x1c_20ca);
        let (direct, kswapd, noretry) = (0x400, 0x800, 0x10000);
        for (defrag, plain, advised) in [
            (ThpDefrag::Always, direct | noretry, direct),
            (ThpDefrag::Defer, kswapd, kswapd),
            (ThpDefrag::DeferMadvise, kswapd, direct),
            (ThpDefrag::Madvise, 0, direct),
            (ThpDefrag::Never, 0, 0),
        ] {
            let thp = Thp {
                defrag,
                ..Thp::STANDARD
            };
            for (is_advised, more) in [(false, plain), (true, advised)] {
                let mask = 0x1c_20ca | more;
                assert_eq!(thp.gfp(is_advised).bits(), mask, "{defrag:?}");
                let tries: Vec<_> = thp.tries(is_advised).map(|g| g.bits()).collect();
                let first = mask | 0x20_0000 | noretry;
                match more & direct {
                    0 => assert_eq!(tries, [first], "{defrag:?}"),
                    _ => assert_eq!(tries, [first, mask], "{defrag:?}"),
                }
            }
        }
    }

    #[test]
    fn enabled_says_which_areas_get_huge_pages() {
        let serves = |enabled| {
            let thp = Thp {
                enabled,
                ..Thp::STANDARD
            };
            [false, true].map(|advised| thp.serves(advised))
        };
        assert_eq!(serves(ThpEnabled::Always), [true, true]);
        assert_eq!(serves(ThpEnabled::Madvise), [false, true]);
        assert_eq!(serves(ThpEnabled::Never), [false, false]);
    }
}
