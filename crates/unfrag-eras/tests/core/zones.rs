//! Which zone serves a request, and many pages at once.
//! `spec: 1.6, 2.6, 7.6, 10`

use super::support::*;
use unfrag_eras::MigrateType::{Movable, Unmovable};
use unfrag_eras::frame::FrameKind;
use unfrag_eras::kernel::PRESETS;
use unfrag_eras::trace::Event;
use unfrag_eras::{AllocError, FreeError, Gfp, Order, Pfn, ZoneConfig, ZoneKind};

const STEP: u64 = 8192;

/// Two nodes: DMA, DMA32 and Normal on the first, Normal and Movable on the second.
fn nodes() -> [ZoneConfig; 5] {
    [
        zone(0, ZoneKind::Dma, 0, STEP),
        zone(0, ZoneKind::Dma32, STEP, STEP),
        zone(0, ZoneKind::Normal, 2 * STEP, STEP),
        zone(1, ZoneKind::Normal, 3 * STEP, STEP),
        zone(1, ZoneKind::Movable, 4 * STEP, STEP),
    ]
}

/// Zones in the order in which they run empty.
fn order_of_zones(era: &str, node: u8, gfp: Gfp) -> Vec<u64> {
    let mut m = booted(&nodes(), 1, rules(era), quiet());
    let mut order = Vec::new();
    while let Ok(p) = m.alloc_near(node, 5, gfp) {
        let z = p.0 / STEP;
        if order.last() != Some(&z) {
            order.push(z);
        }
    }
    order
}

/// `spec: 1.6`
#[test]
fn zones_are_tried_high_to_low_local_first() {
    for p in PRESETS {
        let order = |node, gfp| order_of_zones(p.name, node, gfp);
        assert_eq!(order(0, UNM), [2, 1, 0, 3], "{}", p.name);
        assert_eq!(order(1, UNM), [3, 2, 1, 0], "{}", p.name);
        assert_eq!(order(1, MOV), [4, 3, 2, 1, 0], "{}", p.name);
        assert_eq!(order(0, MOV), [2, 1, 0, 4, 3], "{}", p.name);
        assert_eq!(order(0, UNM | Gfp::DMA32), [1, 0], "{}", p.name);
        assert_eq!(order(0, UNM | Gfp::DMA), [0], "{}", p.name);
        assert_eq!(order(1, UNM | Gfp::THISNODE), [3], "{}", p.name);
        assert_eq!(
            order(7, UNM),
            [3, 2, 1, 0],
            "{}: a node without memory",
            p.name
        );
    }
}

#[test]
fn no_zone_is_an_error_of_its_own() {
    let mut m = booted(&nodes(), 1, rules("6.1"), quiet());
    let got = m.alloc_near(1, 0, UNM | Gfp::DMA | Gfp::THISNODE);
    assert_eq!(got, Err(AllocError::Forbidden));
    assert_eq!(
        m.alloc_near(7, 0, UNM | Gfp::THISNODE),
        Err(AllocError::Forbidden)
    );
}

/// `spec: 1.6`
#[test]
fn lower_zones_keep_their_protection() {
    // DMA32 keeps (Normal's pages) / 256 from requests that could use Normal.
    for era in ["2.6.32", "6.1", "6.18"] {
        let mut m = booted(&nodes(), 1, rules(era), quiet());
        // The count of free pages is never late.
        while m.alloc(0, UNM | Gfp::THISNODE).is_ok() {
            m.vmstat_update(0);
        }
        m.drain_all();
        let left: Vec<u64> = (0..3).map(|z| m.zone_view(z).free_pages).collect();
        assert!(left[2] < 64, "{era}: {left:?}");
        assert!((32..64 + 32).contains(&left[1]), "{era}: {left:?}");
        assert!((64..64 + 64).contains(&left[0]), "{era}: {left:?}");
        assert!(
            m.alloc(0, UNM | Gfp::DMA32).is_ok(),
            "{era}: but not from those for DMA32"
        );
    }
}

/// `spec: 7.6, 10`
#[test]
fn a_bulk_allocation_emits_no_events() {
    for era in ["6.1", "6.18"] {
        let zones = [zone(0, ZoneKind::Normal, BASE, 65536)];
        let mut m = booted(&zones, 1, rules(era), quiet());
        m.forget();
        let mut pages = [Pfn(0); 4];
        assert_eq!(m.alloc_bulk(UNM, &mut pages), Ok(4), "{era}");
        assert_eq!(pages.map(|p| p.0 - BASE), [0, 1, 2, 3], "{era}");
        let told = m
            .host()
            .events
            .iter()
            .any(|e| matches!(e, Event::PageAlloc { .. }));
        assert!(!told, "{era}: silent");
        m.check();
        let mt = m.inspect().frame(pages[3]).map(|f| f.migratetype);
        assert_eq!(mt, Some(Unmovable));
    }
}

/// `spec: 10`
#[test]
fn a_bulk_allocation_sees_low_plus_what_it_asks_for() {
    for era in ["6.1", "6.18"] {
        let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
        for (low, got) in [(4096 - 9, 8), (4096 - 8, 1)] {
            let mut m = booted(&zones, 1, rules(era), quiet());
            m.marks(0, 1, low, low);
            let mut pages = [Pfn(0); 8];
            // Below the mark one page is taken the ordinary way.
            assert_eq!(m.alloc_bulk(MOV, &mut pages), Ok(got), "{era}: low {low}");
        }
    }
}

/// `spec: 3.2`
#[test]
fn a_bulk_allocation_leaves_the_below_high_flag_alone() {
    let zones = [zone(0, ZoneKind::Normal, BASE, 65536)];
    let mut m = booted(&zones, 1, rules("6.18"), quiet());
    let mut pages = [Pfn(0); 4];
    m.alloc_bulk(MOV, &mut pages).expect("pages");
    let high = m.set_view(0, 0).high;
    m.alloc_bulk(MOV, &mut [Pfn(0); 60]).expect("pages");
    m.alloc_bulk(MOV, &mut [Pfn(0); 60]).expect("pages");
    assert!(
        m.set_view(0, 0).high > high,
        "high grows as long as the zone is above its mark"
    );
}

/// `spec: 7.6`
#[test]
fn a_batch_emits_all_free_events_first() {
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = booted(&zones, 1, rules("6.1"), quiet());
    let pages = [m.take(0, MOV), m.take(0, MOV)].map(Pfn);
    m.forget();
    m.free_bulk(&pages).expect("pages in use");
    let (a, b, order) = (pages[0], pages[1], Order(0));
    assert_eq!(
        m.host().events[..4],
        [
            Event::PageFree { pfn: a, order },
            Event::PageFree { pfn: b, order },
            Event::PageFreeBatched { pfn: a },
            Event::PageFreeBatched { pfn: b },
        ]
    );
}

#[test]
fn a_batch_stops_at_a_page_that_is_not_in_use_and_loses_none() {
    for era in ["2.6.32", "6.1", "6.18"] {
        let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
        let mut m = booted(&zones, 1, rules(era), quiet());
        let held: Vec<Pfn> = (0..20).map(|_| Pfn(m.take(0, MOV))).collect();
        let free = |m: &M| m.zone_view(0).free_pages + m.pcp_pages(0);
        let before = free(&m);
        let pgfree = m.inspect().counters().pgfree;
        let bad: [(Pfn, FreeError); 4] = [
            (held[3], FreeError::NotAllocated(held[3], FrameKind::Pcp)),
            (Pfn(1), FreeError::NoSuchFrame(Pfn(1))),
            (
                Pfn(BASE + 4095),
                FreeError::NotAllocated(Pfn(BASE + 4095), FrameKind::Tail),
            ),
            (Pfn(0), FreeError::NoSuchFrame(Pfn(0))),
        ];
        m.free(held[3], 0).expect("a page in use");
        let mut gone = 1;
        for (i, (page, why)) in bad.into_iter().enumerate() {
            // Four good ones, the bad one, and one more.
            let first = 4 + 4 * i;
            let batch = [
                held[first],
                held[first + 1],
                held[first + 2],
                page,
                held[first + 3],
            ];
            assert_eq!(m.free_bulk(&batch), Err(why), "{era}");
            gone += 3;
            let kind = |p: Pfn| m.inspect().frame(p).map(|f| f.kind);
            for p in &batch[..3] {
                assert_ne!(
                    kind(*p),
                    Some(FrameKind::Used),
                    "{era}: those before it are free"
                );
            }
            assert_eq!(
                kind(batch[4]),
                Some(FrameKind::Used),
                "{era}: those after are not"
            );
            m.check();
            assert_eq!(free(&m), before + gone, "{era}: none is lost");
            assert_eq!(m.inspect().counters().pgfree, pgfree + gone, "{era}");
        }
    }
}

#[test]
fn a_batch_that_names_a_page_twice_stops_there() {
    for era in ["2.6.32", "6.1", "6.18"] {
        let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
        let mut m = booted(&zones, 1, rules(era), quiet());
        let held: Vec<Pfn> = (0..3).map(|_| Pfn(m.take(0, MOV))).collect();
        let free = |m: &M| m.zone_view(0).free_pages + m.pcp_pages(0);
        let before = free(&m);
        let got = m.free_bulk(&[held[0], held[1], held[0], held[2]]);
        assert!(
            matches!(got, Err(FreeError::NotAllocated(p, _)) if p == held[0]),
            "{era}: {got:?}"
        );
        m.check();
        assert_eq!(free(&m), before + 2, "{era}");
        assert_eq!(m.inspect().counters().pgfree, 2, "{era}");
        m.free(held[2], 0).expect("it is still in use");
    }
}

/// `spec: 7.6`
#[test]
fn an_allocation_emits_its_tracepoints() {
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = booted(&zones, 1, rules("6.1"), quiet());
    m.take(4, MOV);
    let (pfn, order, migratetype, gfp) = (Pfn(BASE), Order(4), Movable, MOV);
    let told = [
        Event::PageAllocZoneLocked {
            pfn,
            order,
            migratetype,
            percpu_refill: false,
        },
        Event::PageAlloc {
            pfn: Some(pfn),
            order,
            migratetype,
            gfp,
        },
    ];
    assert_eq!(m.host().events, told);
    m.forget();
    // A failure emits the event, too.
    m.marks(0, 1 << 30, 1 << 30, 1 << 30);
    assert!(m.alloc(4, MOV).is_err());
    let failed = Event::PageAlloc {
        pfn: None,
        order,
        migratetype,
        gfp,
    };
    assert_eq!(m.host().events, [failed]);
}

#[test]
fn zeroing_is_left_to_whoever_asks_for_it() {
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = booted(&zones, 1, rules("6.1"), quiet());
    m.take(3, MOV | Gfp::ZERO);
    // The flag is reported with the event, and has no other effect.
    let zeroes = |e: &Event| matches!(e, Event::PageAlloc { gfp, .. } if gfp.contains(Gfp::ZERO));
    assert_eq!(m.host().events.iter().filter(|e| zeroes(e)).count(), 1);
}

#[test]
fn two_managers_share_nothing() {
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut a = booted(&zones, 1, rules("6.1"), quiet());
    let mut b = booted(&zones, 1, rules("6.18"), quiet());
    let (p, q) = (a.take(4, MOV), b.take(4, MOV));
    assert_eq!(p, q);
    a.free(Pfn(p), 4).expect("in use here");
    assert_eq!(b.free(Pfn(q), 4), Ok(()));
    a.check();
    b.check();
}
