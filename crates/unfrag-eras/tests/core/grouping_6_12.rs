//! Between claim and steal: 6.10 to 6.14. `spec: 2.6`

use super::support::*;
use unfrag_eras::MigrateType::{Movable, Unmovable};
use unfrag_eras::ZoneKind;

/// A piece of order 7 and one of order 5, in movable pageblocks that are full of movable pages.
fn two_pieces(era: &str) -> M {
    let sysctl = quiet().with(|s| {
        s.watermark_boost_factor = 15000;
    });
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = fresh(&zones, 1, rules(era), sysctl);
    m.marks(0, 1, 1, 4096);
    for (i, order) in [(0, 7), (1, 5)] {
        m.free_at(block(i), order, Movable);
        for o in order..9 {
            m.used_at(block(i) + (1 << o), o, MOV);
        }
    }
    m
}

/// `spec: 2.6`
#[test]
fn what_cannot_be_claimed_is_taken_from_the_largest_block_in_6_12() {
    for (era, took, left, boost) in [
        ("6.12", block(0), (6, block(0) + 64), 512),
        ("6.18", block(1), (4, block(1) + 16), 1024),
        ("7.2", block(1), (4, block(1) + 16), 1024),
    ] {
        let mut m = two_pieces(era);
        assert_eq!(m.take(4, UNM), took, "{era}");
        assert_eq!(m.list(left.0, Movable), [left.1], "{era}");
        assert_eq!(m.type_of(took), Movable, "{era}");
        assert_eq!(m.zone_view(0).marks.boost, boost, "{era}");
        m.check();
    }
}

/// `spec: 2.6`
#[test]
fn each_page_of_a_refill_tries_to_claim_in_6_12() {
    for (era, boost) in [("6.12", 8 * 512), ("6.18", 512)] {
        let mut m = two_pieces(era);
        m.marks(0, 1, 1, 1 << 20);
        m.sized(0, 0, 1000, 8);
        m.take(0, UNM);
        assert_eq!(m.host().fallbacks().len(), 8, "{era}");
        let tries = if era == "6.12" { 1 } else { 2 };
        assert_eq!(m.zone_view(0).marks.boost, boost * tries, "{era}");
    }
}

/// `spec: 2.6`
#[test]
fn a_small_movable_request_takes_the_smallest_block_in_6_12_too_and_raises_the_marks() {
    for (era, boost) in [("6.12", 512), ("6.18", 0)] {
        let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
        let sysctl = quiet().with(|s| {
            s.watermark_boost_factor = 15000;
        });
        let mut m = fresh(&zones, 1, rules(era), sysctl);
        m.marks(0, 1, 1, 4096);
        for (i, order) in [(2, 3), (3, 2)] {
            m.block_is(i, Unmovable)
                .free_at(block(i), order, Unmovable)
                .used_at(block(i) + (1 << order), order, UNM);
        }
        assert_eq!(m.take(1, MOV), block(3), "{era}");
        assert_eq!(m.zone_view(0).marks.boost, boost, "{era}");
    }
}
