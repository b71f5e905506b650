//! Requests and configurations that are refused: the error, and that nothing changes.

use super::support::*;
use unfrag_eras::MigrateType::Movable;
use unfrag_eras::frame::FrameKind;
use unfrag_eras::{
    AllocError, ConfigError, Gfp, MigrateType, Order, Pfn, Request, ZoneConfig, ZoneKind,
};

const ERAS: [&str; 2] = ["2.6.32", "6.18"];

/// All lists of free blocks.
fn lists(m: &M) -> Vec<Vec<u64>> {
    m.check();
    let all = (0..=10).flat_map(|o| MigrateType::ALL.map(|mt| m.list(o, mt)));
    all.collect()
}

#[test]
fn a_request_for_a_zone_that_there_is_not_is_forbidden() {
    for era in ERAS {
        let mut m = booted(
            &[zone(0, ZoneKind::Normal, BASE, 4096)],
            1,
            rules(era),
            quiet(),
        );
        let before = lists(&m);
        for gfp in [
            UNM | Gfp::DMA,
            UNM | Gfp::DMA32,
            Gfp::ATOMIC_MASK | Gfp::DMA,
        ] {
            for order in [0, 3, 9] {
                let got = m.alloc(order, gfp);
                assert_eq!(got, Err(AllocError::Forbidden), "{era}: {order} {gfp:?}");
                let begun = m.begin(&Request::new(Order(order), gfp));
                assert_eq!(begun.err(), Some(AllocError::Forbidden), "{era}");
            }
        }
        let got = m.alloc_near(3, 0, UNM | Gfp::THISNODE);
        assert_eq!(
            got,
            Err(AllocError::Forbidden),
            "{era}: a node without memory"
        );
        assert_eq!(lists(&m), before, "{era}");
    }
}

#[test]
fn a_request_for_more_than_is_free_is_short() {
    for era in ERAS {
        let mut m = scene(era);
        assert_eq!(m.alloc(0, MOV), Err(AllocError::Short), "{era}: nothing");
        for i in 0..6 {
            m.free_at(BASE + 2 * i, 0, Movable);
            m.used_at(BASE + 2 * i + 1, 0, MOV);
        }
        assert_eq!(
            m.alloc(3, MOV),
            Err(AllocError::Short),
            "{era}: 6 of 8 pages"
        );
        assert_eq!(m.alloc(9, MOV), Err(AllocError::Short), "{era}");
    }
}

#[test]
fn a_block_request_among_free_pieces_is_fragmented() {
    for era in ERAS {
        let mut m = scene(era);
        for i in 0..600 {
            m.free_at(BASE + 2 * i, 0, Movable);
            m.used_at(BASE + 2 * i + 1, 0, MOV);
        }
        for order in [1, 3, 9] {
            let got = m.alloc(order, MOV);
            assert_eq!(got, Err(AllocError::Fragmented), "{era}: {order}");
        }
        assert_eq!(
            m.alloc(10, MOV),
            Err(AllocError::Short),
            "{era}: 600 of 1024"
        );
        m.take(0, MOV);
    }
}

#[test]
fn a_request_for_what_the_marks_keep_meets_a_reserve() {
    for era in ERAS {
        let mut m = scene(era);
        m.free_at(block(0), 4, Movable).marks(0, 16, 16, 16);
        for order in [0, 3, 4] {
            let got = m.alloc(order, MOV);
            assert_eq!(got, Err(AllocError::Reserved), "{era}: {order}");
        }
        assert_eq!(m.alloc(5, MOV), Err(AllocError::Short), "{era}");
        // A request that may go below the mark gets it.
        m.take(3, MOV | Gfp::MEMALLOC);
    }
}

#[test]
fn protection_of_a_lower_zone_is_a_reserve_as_well() {
    let zones = [
        zone(0, ZoneKind::Dma, BASE, 4096),
        zone(0, ZoneKind::Normal, BASE + 4096, 4096),
    ];
    for era in ERAS {
        let mut m = fresh(&zones, 1, rules(era), quiet());
        m.free_at(BASE, 4, Movable);
        let protection = m.zone_view(0).protection[ZoneKind::Normal as usize];
        assert_eq!(protection, 16, "a 256th of 4096 pages");
        assert_eq!(m.alloc(3, MOV), Err(AllocError::Reserved), "{era}");
        m.take(3, UNM | Gfp::DMA);
    }
}

#[test]
fn reasons_are_told_apart_in_words_too() {
    let all = [
        AllocError::BothMobilities,
        AllocError::OrderTooLarge,
        AllocError::Forbidden,
        AllocError::Short,
        AllocError::Fragmented,
        AllocError::Reserved,
    ];
    let mut words: Vec<String> = all.iter().map(ToString::to_string).collect();
    words.sort();
    words.dedup();
    assert_eq!(words.len(), all.len());
}

/// Two zones side by side, and one beyond a hole.
fn zones() -> [ZoneConfig; 3] {
    [
        zone(0, ZoneKind::Dma32, BASE, 3000),
        zone(0, ZoneKind::Normal, BASE + 3000, 3000),
        zone(1, ZoneKind::Normal, BASE + (1 << 20), 3000),
    ]
}

#[test]
fn free_range_refuses_frames_not_reserved() {
    for era in ERAS {
        let zones = zones();
        let config = config(&zones, 1, rules(era), quiet());
        let mut boot = reserved_frames(&config);
        boot.free_range(Pfn(BASE + 100), 200).expect("reserved");
        let refused = |pfn| Err(ConfigError::NotReserved(Pfn(pfn)));
        let far = BASE + (1 << 20);
        for (start, frames, bad) in [
            // Free already: all, one at the end, one in the middle.
            (BASE + 100, 200, BASE + 100),
            (BASE + 299, 1, BASE + 299),
            (BASE, 101, BASE + 100),
            (BASE + 299, 100, BASE + 299),
            // Beyond the zone, be it into the next one or into nothing.
            (BASE + 2000, 1001, BASE + 3000),
            (BASE + 3000, 3001, BASE + 6000),
            (far, 3001, far + 3000),
            // Beyond what positions can say.
            (BASE + 300, 1 << 32, BASE + 3000),
            (BASE + 300, (1 << 32) + 5, BASE + 3000),
            (BASE + 300, u64::MAX, BASE + 3000),
            // In no zone.
            (BASE + 6000, 1, BASE + 6000),
            (far - 1, 2, far - 1),
            (0, 1, 0),
            (u64::MAX, 1, u64::MAX),
        ] {
            let got = boot.free_range(Pfn(start), frames);
            assert_eq!(got, refused(bad), "{era}: {frames} from {start:#x}");
        }
        boot.free_range(Pfn(u64::MAX), 0).expect("nothing is asked");
        let m = Scene::new(boot.finish());
        m.check();
        assert_eq!(m.zone_view(0).free_pages, 200, "{era}");
        assert_eq!(m.zone_view(0).free_counter, 200, "{era}");
        assert_eq!(
            (m.zone_view(1).free_pages, m.zone_view(2).free_pages),
            (0, 0)
        );
        for p in (0..100).chain(300..6000) {
            let kind = m.inspect().frame(Pfn(BASE + p)).map(|f| f.kind);
            assert_eq!(kind, Some(FrameKind::Reserved), "{era}: {p}");
        }
    }
}

#[test]
fn a_frame_in_use_is_not_freed_at_boot() {
    let zones = zones();
    let mut boot = reserved_frames(&config(&zones, 1, rules("6.18"), quiet()));
    let used = boot.edit().used(Pfn(BASE + 64), Order(2), UNM);
    used.expect("reserved frames");
    let got = boot.free_range(Pfn(BASE), 1000);
    assert_eq!(got, Err(ConfigError::NotReserved(Pfn(BASE + 64))));
    let m = Scene::new(boot.finish());
    m.check();
    assert_eq!(m.zone_view(0).free_pages, 0);
}

/// A scene that goes on on the third of two CPUs.
fn third_of_two_cpus() -> M {
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = booted(&zones, 2, rules("6.18"), quiet());
    m.on(2);
    m
}

#[test]
#[should_panic(expected = "there is no such CPU")]
fn a_request_on_a_cpu_that_does_not_exist_says_so() {
    let _ = third_of_two_cpus().alloc(0, MOV);
}

#[test]
#[should_panic(expected = "there is no such CPU")]
fn a_request_for_a_large_block_on_a_cpu_that_does_not_exist_says_so() {
    let _ = third_of_two_cpus().on(u32::MAX).alloc(5, MOV);
}

#[test]
#[should_panic(expected = "there is no such CPU")]
fn a_begun_request_on_a_cpu_that_does_not_exist_says_so() {
    let mut m = third_of_two_cpus();
    let request = m.request(0, MOV);
    let _ = m.begin(&request);
}

#[test]
#[should_panic(expected = "there is no such CPU")]
fn a_bulk_request_on_a_cpu_that_does_not_exist_says_so() {
    let _ = third_of_two_cpus().alloc_bulk(MOV, &mut [Pfn(0); 4]);
}

#[test]
#[should_panic(expected = "there is no such CPU")]
fn a_page_freed_on_a_cpu_that_does_not_exist_says_so() {
    let mut m = third_of_two_cpus();
    let page = Pfn(m.on(0).take(0, MOV));
    let _ = m.on(2).free(page, 0);
}

#[test]
#[should_panic(expected = "there is no such CPU")]
fn a_block_freed_on_a_cpu_that_does_not_exist_says_so() {
    let mut m = third_of_two_cpus();
    let block = Pfn(m.on(0).take(5, MOV));
    let _ = m.on(2).free(block, 5);
}
