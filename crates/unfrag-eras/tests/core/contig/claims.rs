//! A given range.

use super::*;

fn zones() -> [ZoneConfig; 1] {
    [zone(0, ZoneKind::Normal, BASE, 8192)]
}

/// Its pages go elsewhere, its frames are in use, and each frame is what it was once they are given back.
#[test]
fn a_range_is_claimed_and_given_back_in_every_era() {
    for era in ERAS {
        for (at, frames) in [(0, 512), (700, 1), (1024, 2048), (511, 2), (4999, 3193)] {
            let mut o = half_full(era, &zones(), at);
            o.m.drain_all();
            let (free, types) = (o.m.zone_view(0).free_pages, o.m.blocks_by_type(0));
            let inside = o.used(BASE + at, frames);
            let got = o.claim(Claim::range(Pfn(BASE + at), frames));
            assert_eq!(got, Ok(Pfn(BASE + at)), "{era}");
            assert_eq!(o.moved, inside, "{era}: no page was moved in vain");
            let range = BASE + at..BASE + at + frames;
            assert!(
                o.pages.values().all(|(p, _)| !range.contains(&p.0)),
                "{era}"
            );
            assert_eq!(o.used(range.start, frames), frames);
            o.m.drain_all();
            assert_eq!(o.m.zone_view(0).free_pages, free - frames, "{era}");
            o.m.free_contig_range(CpuId(0), Pfn(range.start), frames)
                .expect("it is in use");
            o.check();
            o.m.drain_all();
            assert_eq!(o.m.zone_view(0).free_pages, free, "{era}");
            if o.m.inspect().rules().lists_follow_blocks() {
                assert_eq!(
                    o.m.blocks_by_type(0),
                    types,
                    "{era}: types are as they were"
                );
            }
        }
    }
}

/// A gigantic page on a machine of 8 GiB that is half full, and is its owner's until it is given back.
#[test]
fn a_gibibyte_is_claimed_where_the_largest_block_has_four_mebibytes() {
    let frames = 1 << 18;
    let zones = [zone(0, ZoneKind::Normal, frames, 8 * frames)];
    for era in ["6.12", "6.18"] {
        let mut o = Owned::new(booted(&zones, 1, rules(era), quiet()));
        // Every second huge page is cut up, and half of it is in use.
        for i in 0..1000 {
            let key = o.grow(9).expect("a page");
            if i % 2 == 0 {
                let (page, _) = o.pages.remove(&key).expect("a page");
                o.m.split(page, 9, 0).expect("a block in use");
                for p in page.0..page.0 + 512 {
                    if p % 2 == 0 {
                        o.m.free(Pfn(p), 0).expect("in use");
                    } else {
                        let next = o.pages.last_key_value().map_or(1, |(k, _)| k + 1);
                        o.own(Pfn(p), 0, next);
                    }
                }
            }
        }
        let got = o.claim(Claim::run(NodeId(0), frames as u32, Order(18)));
        let got = got.expect("a gibibyte").0;
        assert_eq!(got % frames, 0, "{era}");
        assert_eq!(o.moved, 0, "{era}: a whole gibibyte was free");
        // The next ones cost something.
        let mut claimed = vec![got];
        while let Ok(p) = o.claim(Claim::run(NodeId(0), frames as u32, Order(18))) {
            claimed.push(p.0);
        }
        assert!(claimed.len() >= 5, "{era}: {}", claimed.len());
        assert!(o.moved > 0);
        for p in claimed {
            o.m.free_contig_range(CpuId(0), Pfn(p), frames)
                .expect("it is in use");
        }
        o.check();
    }
}

#[test]
fn what_stands_in_the_way_is_named() {
    let zones = [
        zone(0, ZoneKind::Dma32, BASE, 4096 + 100),
        zone(0, ZoneKind::Normal, BASE + 4096 + 100, 4096 - 100),
    ];
    let mut o = Owned::new(fresh(&zones, 1, rules("6.18"), quiet()));
    // Block 1 is free, and each of the others has one thing in the way.
    let at = |i: u64| Pfn(block(i));
    for i in 1..7 {
        o.m.block_is(i, MigrateType::Movable);
    }
    o.m.free_at(block(1), 9, MigrateType::Movable);
    o.m.used_at(block(2), 0, UNM);
    o.m.used_at(block(3), 0, MOV);
    o.m.used_at(block(4), 10, MOV);
    o.own(at(4), 10, 7);
    o.m.used_at(block(6), 9, MOV);
    o.own(at(6), 9, 8);
    o.m.counters(0, 0, 512);
    let whole = |i: u64| Claim::range(Pfn(block(i)), 512);
    let in_the_way = |i: u64, what| Err(ClaimError::InTheWay(Pfn(block(i)), what));
    o.m.check();
    for (claim, refused) in [
        (whole(0), in_the_way(0, Obstacle::Reserved)),
        (whole(2), in_the_way(2, Obstacle::Unmovable)),
        (whole(3), in_the_way(3, Obstacle::NoOwner)),
        (whole(4), in_the_way(4, Obstacle::Beyond)),
        (whole(5), in_the_way(4, Obstacle::Beyond)),
        (whole(8), Err(ClaimError::NotInOneZone(Pfn(block(8) + 100)))),
        (
            Claim::range(at(8), 50),
            in_the_way(8, Obstacle::SharedBlock),
        ),
        (
            Claim::range(Pfn(BASE - 4096), 1),
            Err(ClaimError::NotInOneZone(Pfn(BASE - 4096))),
        ),
        (Claim::range(at(1), 0), Err(ClaimError::NotInOneZone(at(1)))),
    ] {
        let got = o.claim(claim);
        assert_eq!(got, refused);
        let why = got.expect_err("refused").to_string();
        assert!(why.contains("frame 0x"), "{why}");
    }
    // One page has no room, and nobody gives any; nor is there any run.
    assert_eq!(o.claim(whole(6)), Err(ClaimError::NoRoom(512)));
    let run = |n| Claim::run(NodeId(0), n, Order(0));
    assert_eq!(o.claim(run(1024)), Err(ClaimError::NoRoom(1024)));
    assert_eq!(o.claim(run(2048)), Err(ClaimError::NoRun));
    assert_eq!(o.claim(run(512)), Ok(at(1)));
    assert_eq!(
        o.claim(Claim::run(NodeId(9), 1, Order(0))),
        Err(ClaimError::NoRun)
    );
    assert_eq!(o.claim(run(0)), Err(ClaimError::NoRun));
    for (n, align) in [(u32::MAX, 0), (1, 40), (1, 255), (1, 31)] {
        let claim = Claim::run(NodeId(0), n, Order(align));
        assert_eq!(o.claim(claim), Err(ClaimError::NoRun), "{n} {align}");
    }
}

#[test]
fn a_page_that_is_held_is_waited_for_and_one_that_stays_is_named() {
    let mut o = half_full("6.18", &zones(), 5);
    let key = *o.pages.keys().next().expect("a page");
    let (page, _) = o.pages[&key];
    o.m.pages().set(page, PageFlags::WRITEBACK);
    let range = Claim::range(page, 1);
    assert_eq!(o.claim(range), Ok(page), "its write has ended");
    o.m.free_contig_range(CpuId(0), page, 1).expect("in use");
    let (page, _) = o.pages[&key];
    o.busy.insert(key);
    let before = o.m.zone_view(0).free_counter;
    assert_eq!(o.claim(Claim::range(page, 1)), Err(ClaimError::Busy(page)));
    (0..2).for_each(|cpu| o.m.vmstat_update(cpu));
    assert_eq!(o.m.zone_view(0).free_counter, before);
}

/// While a range is set apart, what is free in it serves nobody and counts for no watermark; another claim of it fails.
#[test]
fn what_is_set_apart_serves_nobody() {
    for era in ERAS {
        let mut o = half_full(era, &zones(), 9);
        o.m.drain_all();
        (0..2).for_each(|cpu| o.m.vmstat_update(cpu));
        let before = o.m.zone_view(0);
        let mut claim = Claim::range(Pfn(BASE), 2048);
        let need = claim.step(&mut *o.m, CpuId(0), Answer::Go);
        assert_eq!(need, Step::Need(Need::Migrate), "{era}");
        (0..2).for_each(|cpu| o.m.vmstat_update(cpu));
        let apart = o.m.blocks_by_type(0)[MigrateType::Isolate as usize];
        assert_eq!(apart << o.m.inspect().geometry().block_order.0, 2048);
        assert!(o.m.zone_view(0).free_counter < before.free_counter, "{era}");
        let mut other = Claim::range(Pfn(BASE + 2047), 1);
        let refused = loop {
            match other.step(&mut *o.m, CpuId(1), Answer::Go) {
                Step::Done(done) => break done,
                Step::Need(need) => assert!(matches!(need, Need::Turn { .. })),
            }
        };
        assert!(matches!(refused, Err(ClaimError::Claimed(_))), "{era}");
        while let Ok(p) = o.m.alloc(0, MOV) {
            assert!(p.0 >= BASE + 2048, "{era}");
        }
        claim.abort(&mut o.m, CpuId(0), Answer::Go);
        o.check();
        assert!(o.m.alloc(0, MOV).is_ok(), "{era}: its free frames are back");
    }
}

/// Memory is full of a cache's pages: they are given up for those of the range, which have no other room.
#[test]
fn room_is_reclaimed() {
    for era in ERAS {
        let full = || {
            let mut o = Owned::new(booted(&zones(), 1, rules(era), quiet()));
            while o.grow(0).is_some() {}
            o.m.drain_all();
            o
        };
        let refused = full().claim(Claim::range(Pfn(BASE + 4096), 1024));
        assert!(matches!(refused, Err(ClaimError::NoRoom(_))), "{era}");
        let mut o = full();
        o.is_cache = true;
        let pages = o.pages.len();
        let got = o.claim(Claim::range(Pfn(BASE + 4096), 1024));
        assert_eq!(got, Ok(Pfn(BASE + 4096)), "{era}");
        let gone = pages - o.pages.len();
        assert!((900..1400).contains(&gone), "{era}: {gone} pages gone");
    }
}

/// A zone without room has its pages moved to a lower one, never to a higher one.
#[test]
fn pages_move_to_a_zone_that_may_hold_them() {
    let zones = [
        zone(0, ZoneKind::Dma32, BASE, 4096),
        zone(0, ZoneKind::Normal, BASE + 4096, 4096),
    ];
    let mut o = Owned::new(booted(&zones, 1, rules("6.18"), quiet()));
    // Normal memory fills up first.
    while o.used(BASE + 4096, 4096) < 4000 {
        o.grow(0).expect("a page");
    }
    assert_eq!(
        o.claim(Claim::range(Pfn(BASE + 4096), 2048)),
        Ok(Pfn(BASE + 4096))
    );
    assert!(o.used(BASE, 4096) > 1800, "they went to the lower zone");
    while o.grow(0).is_some() {}
    o.m.drain_all();
    let key = *o
        .pages
        .iter()
        .find(|(_, (p, _))| p.0 < BASE + 4096)
        .expect("one")
        .0;
    o.m.free_contig_range(CpuId(0), Pfn(BASE + 4096), 2048)
        .expect("in use");
    let low = o.pages[&key].0;
    let why = o.claim(Claim::range(low, 64));
    assert!(matches!(why, Err(ClaimError::NoRoom(_))), "{why:?}");
}

/// A task that is killed while it reclaims gives back what it isolated.
#[test]
fn an_allocation_that_is_killed_holds_nothing() {
    for era in ERAS {
        let mut o = Owned::new(booted(&zones(), 1, rules(era), quiet()));
        while o.grow(0).is_some() {}
        let request = o.m.request(0, MOV);
        let Ok(unfrag_eras::Begun::Allocation(mut a)) = o.m.begin(&request) else {
            panic!("{era}: memory is full");
        };
        let mut answer = Answer::Go;
        loop {
            match a.step(&mut *o.m, CpuId(0), answer) {
                Step::Need(Need::Evict) => break,
                Step::Need(need) => answer = o.meet(need),
                Step::Done(done) => panic!("{era}: {done:?}"),
            }
        }
        assert!(o.m.inspect().lru(ZoneId(0)).isolated[1] > 0);
        a.abort(&mut o.m, CpuId(0), Answer::Go);
        assert_eq!(o.m.inspect().lru(ZoneId(0)).isolated, [0; 2], "{era}");
        let lru: u64 = o.m.inspect().lru(ZoneId(0)).pages.iter().sum();
        assert_eq!(lru, o.pages.len() as u64);
        o.check();
    }
}
