//! Moving a page to a free frame: begin, commit and abort.
//! `spec: 5, 5.1, 7.6`

use super::support::*;
use unfrag_eras::frame::{FrameKind, OwnerId};
use unfrag_eras::inspect::{FrameView, LruView};
use unfrag_eras::reclaim::{Lru, PageFlags};
use unfrag_eras::trace::Event;
use unfrag_eras::{CpuId, MigrateType, Move, MoveError, Order, Pfn, ZoneId, ZoneKind};

const ERAS: [&str; 5] = ["2.6.14", "2.6.32", "5.9", "6.1", "6.18"];

/// Some pages in use, and the frame that the first of them may go to.
fn stage(era: &str) -> (M, Vec<Pfn>, Pfn) {
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = booted(&zones, 2, rules(era), quiet());
    let pages: Vec<Pfn> = (0..40).map(|_| Pfn(m.take(0, MOV))).collect();
    m.drain_all();
    // In the middle of a large block.
    let to = Pfn(BASE + 3 * 1024 + 137);
    assert!(m.inspect().free_block(to).is_some());
    (m, pages, to)
}

/// Makes a page one of the page cache's, with flags, owner and key, that is not the newest.
fn cached(m: &mut M, page: Pfn, other: Pfn) -> PageFlags {
    let flags = PageFlags::DIRTY | PageFlags::MAPPED | PageFlags::YOUNG | PageFlags::REFERENCED;
    m.pages().lru_add(page, Lru::ActiveFile, flags);
    let owner = OwnerId::new(9).expect("an owner");
    assert!(m.pages().adopt(page, owner, 4711));
    m.pages().lru_add(other, Lru::ActiveFile, PageFlags::MAPPED);
    flags
}

/// All that can be seen of free memory, of lists of pages in use, and of counts.
#[derive(Debug, PartialEq)]
struct Snapshot {
    free: Vec<(u8, MigrateType, Vec<u64>)>,
    unused: u64,
    lru: LruView,
    mapped: u64,
    aged: u64,
    pgfree: u64,
}

fn see(m: &M) -> Snapshot {
    m.check();
    let list = |order, mt| {
        let mut list: Vec<u64> = m.list(order, mt);
        list.sort_unstable();
        (order, mt, list)
    };
    let orders = 0..=10;
    Snapshot {
        free: orders
            .flat_map(|o| MigrateType::ALL.map(|mt| list(o, mt)))
            .collect(),
        unused: m.zone_view(0).free_pages + m.pcp_pages(0),
        lru: m.inspect().lru(ZoneId(0)),
        mapped: m.inspect().nr_mapped(),
        aged: m.inspect().nr_aged(),
        pgfree: m.inspect().counters().pgfree,
    }
}

fn frame(m: &M, p: Pfn) -> FrameView {
    m.inspect().frame(p).expect("a frame")
}

fn begin(m: &mut M, from: Pfn, to: Pfn) -> Move {
    let cpu = m.cpu;
    let begun = Move::begin(m, cpu, from, to).expect("both are as a move wants them");
    assert_eq!((begun.from(), begun.to()), (from, to));
    // Both are taken, and the page is on no list.
    assert_eq!(frame(m, to).kind, FrameKind::Used);
    assert_eq!(m.inspect().lru_of(from), None);
    assert_eq!(
        Move::begin(m, cpu, from, to).err(),
        Some(MoveError::Busy(from))
    );
    m.check();
    begun
}

#[test]
fn an_aborted_move_leaves_everything_as_it_was() {
    for era in ERAS {
        for on_list in [true, false] {
            let (mut m, pages, to) = stage(era);
            let page = pages[3];
            if on_list {
                cached(&mut m, page, pages[4]);
            } else {
                m.pages()
                    .adopt(page, OwnerId::new(1).expect("an owner"), 17);
            }
            let (before, was) = (see(&m), frame(&m, page));
            let (flags, lru) = (m.inspect().page_flags(page), m.inspect().lru_of(page));
            let cpu = CpuId(1);
            begin(&mut m, page, to).abort(&mut m, cpu);
            m.drain_all();
            (0..2).for_each(|cpu| m.vmstat_update(cpu));
            assert_eq!(see(&m), before, "{era}");
            assert_eq!(frame(&m, page), was, "{era}");
            assert_eq!(m.inspect().page_flags(page), flags, "{era}");
            assert_eq!(m.inspect().lru_of(page), lru, "{era}");
            assert_eq!(frame(&m, to).owner, OwnerId::NONE, "{era}");
            assert_ne!(frame(&m, to).kind, FrameKind::Used, "{era}");
            m.free(page, 0).expect("it is still in use");
        }
    }
}

#[test]
fn a_committed_move_keeps_flags_owner_key_and_list() {
    for era in ERAS {
        let (mut m, pages, to) = stage(era);
        let (page, other) = (pages[3], pages[4]);
        let flags = cached(&mut m, page, other);
        let newest = |m: &M| m.inspect().lru_list(ZoneId(0), Lru::ActiveFile).next();
        assert_eq!(newest(&m), Some(other), "{era}");
        let (before, was) = (see(&m), frame(&m, page));
        m.forget();
        let cpu = m.cpu;
        begin(&mut m, page, to).commit(&mut m, cpu);
        assert_eq!(newest(&m), Some(to), "{era}");
        assert_eq!(m.inspect().page_flags(to), flags, "{era}");
        assert_eq!(frame(&m, to), was, "{era}: type, owner and key");
        assert_eq!(m.inspect().lru_of(page), None, "{era}");
        assert_ne!(frame(&m, page).kind, FrameKind::Used, "{era}");
        assert_eq!(frame(&m, page).owner, OwnerId::NONE, "{era}");
        assert_eq!(m.inspect().page_flags(page), PageFlags::empty(), "{era}");
        let after = see(&m);
        assert_eq!(after.lru, before.lru, "{era}");
        assert_eq!(
            (after.mapped, after.aged),
            (before.mapped, before.aged),
            "{era}"
        );
        assert_eq!(after.unused, before.unused, "{era}");
        // The free of the old frame is traced once.
        let order = Order(0);
        assert_eq!(after.pgfree, before.pgfree + 1, "{era}");
        let told = m.host().events.iter();
        let freed = told.filter(|e| matches!(e, Event::PageFree { .. }));
        let want = Event::PageFree { pfn: page, order };
        assert_eq!(freed.collect::<Vec<_>>(), [&want], "{era}");
        m.free(to, 0).expect("it is in use");
        m.check();
    }
}

#[test]
fn a_page_that_is_freed_while_it_moves_ends_free_in_both_frames() {
    for era in ERAS {
        for on_list in [true, false] {
            for commits in [true, false] {
                let what = format!("{era}, on a list {on_list}, commits {commits}");
                let (mut m, pages, to) = stage(era);
                let page = pages[3];
                if on_list {
                    cached(&mut m, page, pages[4]);
                }
                let before = see(&m);
                m.forget();
                let begun = begin(&mut m, page, to);
                m.free(page, 0).expect("it is in use, to those who own it");
                assert!(m.free(page, 0).is_err(), "{what}: once");
                assert_eq!(frame(&m, page).kind, FrameKind::Used, "{what}: it is held");
                m.check();
                let cpu = m.cpu;
                match commits {
                    true => begun.commit(&mut m, cpu),
                    false => begun.abort(&mut m, cpu),
                }
                for p in [page, to] {
                    assert_ne!(frame(&m, p).kind, FrameKind::Used, "{what}");
                    assert_eq!(frame(&m, p).owner, OwnerId::NONE, "{what}");
                    assert_eq!(m.inspect().page_flags(p), PageFlags::empty(), "{what}");
                    assert_eq!(m.inspect().lru_of(p), None, "{what}");
                    assert!(m.free(p, 0).is_err(), "{what}");
                }
                let after = see(&m);
                assert_eq!(after.unused, before.unused + 1, "{what}");
                assert_eq!(after.pgfree, before.pgfree + 1, "{what}: told once");
                let told = m.host().events.iter();
                let freed = told.filter(|e| matches!(e, Event::PageFree { .. }));
                assert_eq!(freed.count(), 1, "{what}");
                let on = u64::from(on_list);
                assert_eq!(after.mapped, before.mapped - on, "{what}");
                let len = |s: &Snapshot| s.lru.pages.iter().sum::<u64>();
                assert_eq!(len(&after), len(&before) - on, "{what}");
                assert_eq!(after.lru.isolated, [0; 2], "{what}");
                m.drain_all();
                m.check();
            }
        }
    }
}

#[test]
fn a_move_that_cannot_begin_changes_nothing() {
    let zones = [
        zone(0, ZoneKind::Dma32, BASE, 4096),
        zone(0, ZoneKind::Normal, BASE + 4096, 4096),
    ];
    for era in ERAS {
        let mut m = booted(&zones, 1, rules(era), quiet());
        let page = Pfn(m.take(0, MOV));
        let (kernel, block) = (Pfn(m.take(0, UNM)), Pfn(m.take(4, MOV)));
        let (near, far) = (Pfn(BASE + 8000), Pfn(BASE + 100));
        assert_eq!(m.inspect().zone_of(page), m.inspect().zone_of(near));
        let before = see(&m);
        let nowhere = Pfn(1 << 40);
        for (from, to, why) in [
            (kernel, near, MoveError::NotMovable(kernel)),
            (block, near, MoveError::NotMovable(block)),
            (near, page, MoveError::NotMovable(near)),
            (nowhere, near, MoveError::NotMovable(nowhere)),
            (page, nowhere, MoveError::NotFree(nowhere)),
            (page, block, MoveError::NotFree(block)),
            (page, far, MoveError::NotFree(far)),
        ] {
            assert_eq!(m.migrate(from, to), Err(why), "{era}");
            assert_eq!(see(&m), before, "{era}: {why}");
        }
        for flag in [PageFlags::LOCKED, PageFlags::WRITEBACK] {
            m.pages().set(page, flag);
            assert_eq!(m.migrate(page, near), Err(MoveError::Busy(page)), "{era}");
            m.pages().clear(page, flag);
            assert_eq!(see(&m), before, "{era}");
        }
    }
}

#[test]
fn what_an_owner_said_of_a_page_is_forgotten_when_it_is_freed() {
    for era in ERAS {
        let (mut m, pages, _) = stage(era);
        let owner = OwnerId::new(127).expect("the last owner");
        assert_eq!(OwnerId::new(128), None);
        for (i, p) in pages.iter().enumerate() {
            assert!(m.pages().adopt(*p, owner, 100 + i as u32), "{era}");
            assert!(!m.pages().adopt(Pfn(BASE + 4095), owner, 1), "{era}: free");
        }
        let of = |m: &M, p: Pfn| (frame(m, p).owner, frame(m, p).key);
        assert_eq!(of(&m, pages[7]), (owner, 107), "{era}");
        // It may get another owner.
        let heir = OwnerId::new(1).expect("an owner");
        assert!(m.pages().adopt(pages[7], heir, 0), "{era}");
        assert_eq!(of(&m, pages[7]), (heir, 0), "{era}");
        for p in &pages {
            m.free(*p, 0).expect("a page in use");
        }
        let nobody = (OwnerId::NONE, 0);
        assert!(pages.iter().all(|p| of(&m, *p) == nobody), "{era}");
        let again: Vec<Pfn> = (0..40).map(|_| Pfn(m.take(0, MOV))).collect();
        assert!(again.iter().any(|p| pages.contains(p)), "{era}");
        assert!(again.iter().all(|p| of(&m, *p) == nobody), "{era}");
    }
}

#[test]
#[should_panic(expected = "there is no such CPU")]
fn a_move_on_a_cpu_that_does_not_exist_says_so() {
    let (mut m, pages, to) = stage("6.18");
    let _ = Move::begin(&mut m, CpuId(2), pages[0], to);
}
