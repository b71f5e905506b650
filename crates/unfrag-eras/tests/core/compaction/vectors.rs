//! Numbers and tables of the specification. `spec: 5.2, 5.3, 5.4, 5.5`

use super::super::support::*;
use unfrag_eras::compact::{Kcompactd, Mode, Outcome};
use unfrag_eras::drive::Operation;
use unfrag_eras::kernel::CompactRoom;
use unfrag_eras::lab::RunRequest;
use unfrag_eras::migrate::MoveVerdict;
use unfrag_eras::reclaim::{Answer, Kswapd, Need, PageFlags, Step, Verdict};
use unfrag_eras::restore::CompactPositions;
use unfrag_eras::stat::extfrag_for_order;
use unfrag_eras::trace::Event;
use unfrag_eras::{Begun, Gfp, MigrateType, NodeId, Order, Pfn, Rules, ZoneId, ZoneKind};

/// A zone of 8 pageblocks of which every other frame is free, in movable pageblocks. What is in use was asked for by
/// `gfp`.
fn combed(rules: Rules, gfp: Gfp) -> M {
    let mut m = fresh(&[zone(0, ZoneKind::Normal, BASE, 4096)], 1, rules, quiet());
    comb(&mut m, gfp);
    m
}

fn comb(m: &mut M, gfp: Gfp) {
    m.marks(0, 30, 40, 50).sized(0, 0, 0, 1);
    (0..8).for_each(|i| _ = m.block_is(i, MigrateType::Movable));
    for pfn in BASE..BASE + 4096 {
        match pfn % 2 {
            0 => m.free_at(pfn, 0, MigrateType::Movable),
            _ => m.used_at(pfn, 0, gfp),
        };
    }
    m.counters(0, 0, 2048);
}

fn run_for(order: Option<u8>) -> RunRequest {
    RunRequest {
        zone: ZoneId(0),
        order: order.map(Order),
        migratetype: MigrateType::Movable,
        mode: Mode::SyncLight,
        direct: false,
        whole: false,
    }
}

/// Drives kcompactd until it sleeps; for how long. All pages are moved.
fn until_sleep(m: &mut M, k: &mut Kcompactd, mut answer: Answer) -> (Option<u32>, usize) {
    let mut moved = 0;
    loop {
        let cpu = m.cpu;
        answer = match k.run(m, cpu, answer) {
            Need::Sleep(ms) => return (ms, moved),
            Need::Migrate => {
                moved += k.migration().asks().len();
                Answer::Migrated(k.migration().ask(|_| MoveVerdict::Moved))
            }
            _ => Answer::Go,
        };
    }
}

/// `spec: 5.5`
#[test]
fn without_progress_the_daemon_looks_again_after_32_seconds() {
    for era in ["5.9", "6.1", "6.18"] {
        let mut m = combed(rules(era), UNM);
        let mut k = Kcompactd::new(NodeId(0));
        assert_eq!(until_sleep(&mut m, &mut k, Answer::Go), (Some(500), 0));
        for _ in 0..3 {
            let slept = until_sleep(&mut m, &mut k, Answer::Left(0));
            assert_eq!(slept, (Some(500 << 6), 0), "{era}");
        }
        // Off: it sleeps until it is woken.
        m.lab().set_compaction_proactiveness(0);
        assert_eq!(until_sleep(&mut m, &mut k, Answer::Left(0)), (None, 0));
        // Lower than any score: no run, so nothing is in vain.
        m.lab().set_compaction_proactiveness(1);
        let score = m.fragmentation_score(NodeId(0));
        let slept = until_sleep(&mut m, &mut k, Answer::Left(1)).0;
        let (low, high) = (99, 100);
        assert!(score <= high && score >= low, "{score}");
        assert_eq!(slept, Some(500), "{era}: {score} is not above {high}");
    }
}

/// The daemons' work after a request that may not wait and found no huge block: kswapd cannot bring one, and leaves it to
/// kcompactd. How many huge blocks are free then.
fn huge_blocks_after_a_failed_request(defrag: bool) -> u64 {
    let sysctl = quiet().with(|s| s.defrag_mode = defrag);
    let mut m = fresh(
        &[zone(0, ZoneKind::Normal, BASE, 4096)],
        1,
        rules("6.18"),
        sysctl,
    );
    comb(&mut m, MOV);
    m.marks(0, 600, 700, 800);
    let mut kcompactd = Kcompactd::new(NodeId(0));
    let mut kswapd = Kswapd::new(NodeId(0));
    until_sleep(&mut m, &mut kcompactd, Answer::Go);
    let cpu = m.cpu;
    assert_eq!(kswapd.run(&mut m, cpu, Answer::Go), Need::Sleep(None));
    let huge = Gfp::HIGHUSER_MOVABLE.difference(Gfp::DIRECT_RECLAIM);
    assert!(m.alloc(9, huge).is_err());
    let mut answer = Answer::Left(1);
    for _ in 0..100_000 {
        answer = match kswapd.run(&mut m, cpu, answer) {
            // It slept for the short time, and then for good.
            Need::Sleep(Some(_)) => Answer::Left(0),
            Need::Sleep(None) => break,
            Need::Evict => Answer::Evicted(kswapd.eviction().ask(|_| Verdict::Busy)),
            Need::Shrink { .. } => Answer::Freed(0),
            _ => Answer::Go,
        };
    }
    until_sleep(&mut m, &mut kcompactd, Answer::Left(1));
    m.check();
    m.zone_view(0).nr_free[9..]
        .iter()
        .zip(0..)
        .map(|(n, o)| n << o)
        .sum()
}

/// `spec: 2.6, 5.3`
#[test]
fn in_defrag_mode_kcompactd_makes_whole_blocks_up_to_the_high_mark() {
    assert_eq!(
        huge_blocks_after_a_failed_request(false),
        1,
        "one block for the order"
    );
    assert_eq!(
        huge_blocks_after_a_failed_request(true),
        3,
        "more than 800 frames beside one block"
    );
}

/// `spec: 5.5`
#[test]
fn a_proactive_run_stops_at_the_low_score_of_the_zone() {
    for (era, proactiveness, low) in [
        ("6.1", 20, 80),
        ("6.18", 20, 80),
        ("6.1", 40, 60),
        ("6.18", 40, 60),
        ("6.18", 60, 40),
        // The first version held the weighted score against it, which is one lower in a zone alone.
        ("5.9", 20, 81),
        ("5.9", 40, 61),
    ] {
        let mut m = combed(rules(era), MOV);
        m.lab().set_compaction_proactiveness(proactiveness);
        let mut k = Kcompactd::new(NodeId(0));
        until_sleep(&mut m, &mut k, Answer::Go);
        let (slept, moved) = until_sleep(&mut m, &mut k, Answer::Left(0));
        assert_eq!(slept, Some(500), "{era}: it made progress");
        let v = m.zone_view(0);
        let score = extfrag_for_order(&v.nr_free, Order(9));
        // A pageblock that comes free lowers it by a quarter.
        let before = score + 25;
        assert!(
            score <= low && before > low,
            "{era}, {proactiveness}: {score} after {moved} moves"
        );
        m.check();
    }
}

/// `spec: 5.5`
#[test]
fn a_nodes_score_is_weighted_by_present_pages() {
    let zones = [
        zone(0, ZoneKind::Dma32, BASE, 1024),
        zone(0, ZoneKind::Normal, BASE + 1024, 3072),
    ];
    let mut m = fresh(&zones, 1, rules("6.1"), quiet());
    // 1024 free pages, half of them in a huge block: 50. All in small blocks: 100.
    m.free_at(BASE, 9, MigrateType::Movable);
    m.free_at(BASE + 512, 8, MigrateType::Movable);
    m.free_at(BASE + 512 + 256, 8, MigrateType::Movable);
    m.free_at(BASE + 1024, 3, MigrateType::Movable);
    let weighted = |present: u64, score: u64| present * score / (4096 + 1);
    let want = weighted(1024, 50) + weighted(3072, 100);
    assert_eq!(want, 12 + 74);
    assert_eq!(m.fragmentation_score(NodeId(0)), want);
}

/// `spec: 5.2`: compact_gap is 2 << order.
#[test]
fn room_is_the_mark_and_twice_the_block() {
    for (room, order, mark) in [
        (CompactRoom::Low, 3, 140),
        (CompactRoom::LowIfCostly, 3, 100),
        (CompactRoom::Callers, 3, 100),
        (CompactRoom::Low, 4, 140),
        (CompactRoom::LowIfCostly, 4, 140),
        (CompactRoom::Callers, 4, 140),
    ] {
        let mut rules = rules("5.6");
        rules.compact.as_mut().expect("it compacts").room = room;
        let mut m = combed(rules, UNM);
        m.marks(0, 100, 140, 180);
        let enough = mark + (2 << order) + 1;
        for (free, want) in [(enough, Outcome::Continue), (enough - 1, Outcome::Skipped)] {
            m.counters(0, 0, free);
            let suitable = m.lab().compaction_suitable(&run_for(Some(order)));
            assert_eq!(suitable, want, "{room:?}, order {order}, {free} free");
        }
    }
}

/// Makes a request that may reclaim, in a world in which owners do nothing; the priorities of its compactions.
fn priorities(m: &mut M, order: u8, gfp: Gfp) -> Vec<u8> {
    m.forget();
    let request = m.request(order, gfp);
    let Ok(Begun::Allocation(mut a)) = m.begin(&request) else {
        panic!("it needs the slow path")
    };
    let (mut answer, cpu) = (Answer::Go, m.cpu);
    loop {
        answer = match a.step(&mut **m, cpu, answer) {
            Step::Done(got) => break assert!(got.is_err(), "nothing can be had"),
            Step::Need(Need::Migrate) => Answer::Migrated(a.migration().ask(|_| MoveVerdict::Busy)),
            Step::Need(Need::Evict) => Answer::Evicted(a.eviction().ask(|_| Verdict::Busy)),
            Step::Need(Need::Shrink { .. }) => Answer::Freed(0),
            Step::Need(Need::Oom) => Answer::Killed(false),
            Step::Need(Need::CongestionWait { .. } | Need::Throttle { .. }) => Answer::Left(0),
            Step::Need(_) => Answer::Go,
        };
    }
    let events = m.host().events.iter();
    let tries = events.filter_map(|e| match e {
        Event::CompactionTryToCompactPages { priority, .. } => Some(*priority),
        _ => None,
    });
    tries.collect()
}

/// `spec: 4.8, 5.3`: asynchronous first, then light; a request that gives up early stays asynchronous.
#[test]
fn priorities_of_a_costly_request() {
    let one_node = Gfp::NORETRY | Gfp::THISNODE;
    for (era, gfp, want) in [
        ("5.6", UNM, &[2, 1][..]),
        ("6.1", UNM, &[2, 1]),
        ("6.18", UNM, &[2, 1]),
        ("6.1", UNM | Gfp::NORETRY, &[2, 2]),
        ("6.18", UNM | Gfp::NORETRY, &[2, 2]),
        // Back-ported to 6.1: one node alone is not worth more than one try.
        ("6.1", UNM | one_node, &[2]),
        ("5.9", UNM | one_node, &[2, 2]),
        ("6.12", UNM | one_node, &[2, 2]),
        ("6.18", UNM | one_node, &[2, 2]),
        // From 7.0 on that alone decides.
        ("7.2", UNM | one_node, &[2]),
        ("7.2", UNM | Gfp::NORETRY, &[2, 2]),
        // 2.6.36 compacts once, before it reclaims.
        ("2.6.36", UNM | Gfp::NORETRY, &[2]),
        ("2.6.36", (UNM - Gfp::FS) | Gfp::NORETRY, &[]),
        ("2.6.36", (UNM - Gfp::IO) | Gfp::NORETRY, &[]),
        // 2.6.32 does not compact.
        ("2.6.32", UNM | Gfp::NORETRY, &[]),
    ] {
        let mut m = combed(rules(era), UNM);
        assert_eq!(priorities(&mut m, 9, gfp), want, "{era}, {gfp:?}");
        m.check();
    }
}

/// `spec: 5.3`: after each failure a zone is put off for twice as many requests, 64 at most.
#[test]
fn deferral_doubles_up_to_64() {
    let mut m = combed(rules("2.6.36"), UNM);
    let mut runs = Vec::new();
    for n in 0..400 {
        priorities(&mut m, 9, UNM | Gfp::NORETRY);
        let began = |e: &Event| matches!(e, Event::CompactionBegin { .. });
        if m.host().events.iter().any(began) {
            runs.push(n);
        }
    }
    let gaps: Vec<i32> = runs.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(gaps, [2, 4, 8, 16, 32, 64, 64, 64, 64, 64]);
    assert_eq!(m.inspect().compaction(ZoneId(0)).defer_shift, 6);
}

/// `spec: 5.1`: a pageblock whose first page heads a free block of the wanted order takes no pages in 6.18; before, one
/// that is free as a whole.
#[test]
fn a_block_of_the_wanted_order_is_no_target_in_6_18() {
    for (spares, top_block) in [(true, 6), (false, 7)] {
        let mut r = rules("6.18");
        let compact = r.compact.as_mut().expect("it compacts");
        (compact.fast_search, compact.spares_wanted_order) = (false, spares);
        let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
        let mut m = fresh(&zones, 1, r, quiet());
        (0..8).for_each(|i| _ = m.block_is(i, MigrateType::Movable));
        m.used_at(block(7), 5, UNM);
        for pfn in (BASE..block(7)).chain(block(7) + 32..block(8)).step_by(2) {
            m.free_at(pfn, 0, MigrateType::Movable);
            m.used_at(pfn + 1, 0, MOV);
        }
        // In the middle of a pageblock a run does not ask whether it is done.
        let positions = CompactPositions {
            migrate: [Pfn(block(0) + 100); 2],
            free: Pfn(block(7)),
            considered: 0,
            defer_shift: 0,
            order_failed: 0,
        };
        m.lab().edit().compaction(ZoneId(0), positions).unwrap();
        let mut run = m.lab().compaction(&run_for(Some(5)));
        let (cpu, mut answer, mut tops) = (m.cpu, Answer::Go, Vec::new());
        while tops.len() < 2 {
            assert_eq!(run.step(&mut *m, cpu, answer), Step::Need(Need::Migrate));
            tops.push((run.migration().asks()[0].to.0 - BASE) / 512);
            answer = Answer::Migrated(run.migration().ask(|_| MoveVerdict::Moved));
            if tops.len() == 1 {
                // What the head of the top pageblock held comes free meanwhile.
                m.free(Pfn(block(7)), 5).expect("it is in use");
            }
        }
        assert_eq!(tops, [7, top_block], "spares: {spares}");
        run.abort(&mut m, cpu, answer);
        m.check();
    }
}

/// `spec: 5.3`: what a run may not wait for, it leaves where it is.
#[test]
fn pages_under_writeback_are_moved_by_synchronous_runs_alone() {
    for (mode, moves) in [
        (Mode::Async, false),
        (Mode::SyncLight, false),
        (Mode::Sync, true),
    ] {
        let mut m = combed(rules("6.1"), UNM);
        let mut pages = Vec::new();
        for pfn in (BASE + 1..BASE + 200).step_by(2) {
            m.free(Pfn(pfn), 0).expect("it is in use");
            pages.push(pfn);
        }
        m.drain(0, 0);
        let page = Pfn(m.take(0, MOV));
        m.pages().set(page, PageFlags::WRITEBACK);
        let mut run = m.lab().compaction(&RunRequest {
            mode,
            whole: true,
            ..run_for(None)
        });
        let (mut asked, mut answer, cpu) = (Vec::new(), Answer::Go, m.cpu);
        loop {
            answer = match run.step(&mut *m, cpu, answer) {
                Step::Done(_) => break,
                Step::Need(Need::Migrate) => Answer::Migrated(run.migration().ask(|ask| {
                    asked.push(ask.from);
                    MoveVerdict::Moved
                })),
                Step::Need(_) => Answer::Go,
            };
        }
        assert_eq!(asked.contains(&page), moves, "{mode:?}");
    }
}
