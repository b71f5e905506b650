//! What requests are translated to.

use crate::frame::Order;
use crate::gfp::{AllocFlags as F, Gfp};
use crate::kernel::preset;
use crate::request::highest_zone;
use crate::rights::alloc_flags;
use crate::zone::ZoneKind;

fn flags(era: &str, gfp: Gfp, order: u8) -> F {
    let rules = preset(era).map(|p| p.rules);
    alloc_flags(
        gfp,
        Order(order),
        &rules.unwrap_or_else(|| panic!("no preset {era}")),
    )
}

/// `GFP_ATOMIC` since 6.3.
const ATOMIC: Gfp = Gfp::HIGH.union(Gfp::KSWAPD_RECLAIM);

/// `spec: 1.4`
#[test]
fn old_rights_follow_from_waiting_and_high() {
    let f = |gfp| flags("2.6.32", gfp, 2);
    assert_eq!(f(Gfp::KERNEL) - F::KSWAPD, F::CPUSET);
    assert_eq!(
        f(Gfp::HIGH) & (F::MIN_RESERVE | F::NON_BLOCK),
        F::MIN_RESERVE | F::NON_BLOCK
    );
    assert!(
        !f(Gfp::HIGH).contains(F::CPUSET),
        "who cannot wait ignores the cpuset"
    );
    assert!(f(Gfp::empty()).contains(F::NON_BLOCK));
    assert!(
        f(Gfp::NOMEMALLOC).contains(F::NON_BLOCK),
        "no exception yet"
    );
    assert!(!f(Gfp::HIGH).contains(F::HIGHATOMIC));
}

/// `spec: 1.4`
#[test]
fn modern_rights() {
    for era in ["6.1", "6.18"] {
        let f = |gfp, order| flags(era, gfp, order);
        assert_eq!(f(Gfp::KERNEL, 3), F::CPUSET | F::KSWAPD);
        let atomic = f(ATOMIC, 0);
        assert!(atomic.contains(F::MIN_RESERVE | F::NON_BLOCK | F::KSWAPD));
        assert!(!atomic.intersects(F::HIGHATOMIC | F::CPUSET));
        assert!(f(ATOMIC, 1).contains(F::HIGHATOMIC));
        assert!(!f(ATOMIC | Gfp::NOMEMALLOC, 1).intersects(F::HIGHATOMIC | F::NON_BLOCK));
        // Without the right to the reserve, not blocking gives no cpuset exemption.
        let nowait = f(Gfp::KSWAPD_RECLAIM, 1);
        assert!(nowait.contains(F::NON_BLOCK | F::CPUSET));
        assert!(!nowait.contains(F::HIGHATOMIC));
    }
}

/// `spec: 1.4`
#[test]
fn rights_to_the_unboosted_recheck_by_era() {
    assert!(!flags("6.1", ATOMIC, 0).contains(F::UNBOOSTED_RECHECK));
    assert!(flags("6.1", Gfp::ATOMIC_MASK, 0).contains(F::UNBOOSTED_RECHECK));
    assert!(flags("6.18", ATOMIC, 0).contains(F::UNBOOSTED_RECHECK));
}

/// `spec: 1.6`
#[test]
fn the_highest_zone_follows_from_the_zone_bits() {
    assert_eq!(highest_zone(Gfp::KERNEL), ZoneKind::Normal);
    assert_eq!(highest_zone(Gfp::KERNEL | Gfp::DMA), ZoneKind::Dma);
    assert_eq!(highest_zone(Gfp::KERNEL | Gfp::DMA32), ZoneKind::Dma32);
    assert_eq!(highest_zone(Gfp::HIGHUSER), ZoneKind::HighMem);
    assert_eq!(highest_zone(Gfp::HIGHUSER_MOVABLE), ZoneKind::Movable);
    assert_eq!(highest_zone(Gfp::USER | Gfp::MOVABLE), ZoneKind::Normal);
}
