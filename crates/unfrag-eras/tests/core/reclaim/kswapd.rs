//! kswapd: when it works, how far it goes, when it sleeps. `spec: 4.2, 4.6, 4.8`

use super::*;
use unfrag_eras::kernel::KswapdNap;

/// Steps kswapd until it sleeps, and returns for how many ms.
fn to_sleep(k: &mut Kswapd, m: &mut Machine, answer: Answer) -> Option<u32> {
    let mut answer = answer;
    for _ in 0..100_000 {
        match m.run(k, answer) {
            Need::Sleep(ms) => return ms,
            need => answer = m.meet(need),
        }
    }
    panic!("no sleep")
}

/// `spec: 4.2`
#[test]
fn kswapd_restores_the_high_mark_and_sleeps() {
    for name in ERAS {
        with(era(name), Owners::default(), |m| {
            let mut k = Kswapd::new(NodeId(0));
            assert_eq!(m.run(&mut k, Answer::Go), Need::Sleep(None), "{name}");
            assert_eq!(
                m.run(&mut k, Answer::Go),
                Need::Sleep(None),
                "{name}: not asked"
            );
            fill(m, PageFlags::empty());
            let a = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
            finish(m, a).0.unwrap();
            let slept = to_sleep(&mut k, m, Answer::Go);
            let staged = matches!(name, "2.6.33" | "5.9" | "6.1" | "6.18");
            assert_eq!(slept, staged.then_some(100), "{name}");
            let v = m.zone();
            assert!(v.free_pages > v.marks.high, "{name}: {} free", v.free_pages);
            // V19 never takes a block of the very order from another type, so it may find nothing
            // above the min mark, and reclaim directly. `spec: 2.2`
            let c = m.reclaim_counters();
            let direct = c.pgscan_direct > 0;
            assert!(
                name == "v19" || !direct && c.pgsteal_kswapd > 0,
                "{name}: {c:?}"
            );
        });
    }
}

/// `spec: 4.8`
#[test]
fn each_short_modern_pass_doubles_the_scan() {
    for name in ["5.9", "6.1", "6.18"] {
        with(era(name), Owners::default(), |m| {
            let pages = fill(m, PageFlags::empty()).len() as u64;
            let high = m.zone().marks.high;
            let passes = keep_busy(m, |m| m.reclaim_counters().pageoutrun > 1);
            // Those of one batch or less are rounded.
            let first = passes.iter().position(|&n| n > 64).unwrap();
            let whole: Vec<u64> = passes[first..]
                .iter()
                .copied()
                .take_while(|&n| n < high)
                .collect();
            assert!(whole.len() > 1, "{name}: {passes:?} of {pages}");
            for w in whole.windows(2) {
                assert!(w[1] > w[0] * 3 / 2, "{name}: {passes:?} of {pages}");
            }
            let most = passes.iter().max().unwrap();
            assert!(
                *most <= high + 2 * 32,
                "{name}: {most} looked at for {high}"
            );
        });
    }
}

/// `spec: 4.8`
#[test]
fn kswapd_without_hope_sleeps_until_others_reclaim() {
    with(era("6.1"), Owners::default(), |m| {
        // Nothing but anonymous pages, and no swap.
        let mut pages = fill_as(m, false, PageFlags::empty());
        let mut k = Kswapd::new(NodeId(0));
        m.run(&mut k, Answer::Go);
        let ask = |m: &mut Machine| {
            let a = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
            finish(m, a).0.unwrap();
        };
        ask(m);
        to_sleep(&mut k, m, Answer::Go);
        let runs = m.reclaim_counters().pageoutrun;
        assert_eq!(runs, 16);
        ask(m);
        to_sleep(&mut k, m, Answer::Go);
        assert_eq!(m.reclaim_counters().pageoutrun, runs, "still no hope");
        // Page cache is added, a page is freed, and direct reclaim makes progress.
        m.free(pages.pop().unwrap(), 0).unwrap();
        m.drain_all();
        for p in pages.drain(..256) {
            m.lru_add(p, Lru::InactiveFile);
        }
        while m.reclaim_counters().pgsteal_direct == 0 {
            let p = alloc(m, Gfp::KERNEL);
            assert!(m.inspect().frame(p).is_some());
        }
        ask(m);
        to_sleep(&mut k, m, Answer::Go);
        assert!(m.reclaim_counters().pageoutrun > runs);
    });
}

/// `spec: 4.6`
#[test]
fn a_staged_sleep_that_is_broken_is_counted() {
    with(era("2.6.33"), Owners::default(), |m| {
        let mut k = Kswapd::new(NodeId(0));
        m.run(&mut k, Answer::Go);
        fill(m, PageFlags::empty());
        let a = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
        finish(m, a).0.unwrap();
        assert_eq!(to_sleep(&mut k, m, Answer::Go), Some(100));
        // Woken with time left: the low mark was hit quickly.
        assert_eq!(to_sleep(&mut k, m, Answer::Left(40)), Some(100));
        assert_eq!(m.reclaim_counters().kswapd_low_wmark_hit_quickly, 1);
        // It was not woken, but memory is below the high mark.
        while m.zone().free_pages > m.zone().marks.high - 50 {
            m.alloc(0, Gfp::KERNEL).unwrap();
        }
        assert_eq!(to_sleep(&mut k, m, Answer::Left(0)), Some(100));
        assert_eq!(m.reclaim_counters().kswapd_high_wmark_hit_quickly, 1);
        // The goal is met: it sleeps until it is woken.
        assert_eq!(to_sleep(&mut k, m, Answer::Left(0)), None);
    });
}

/// `spec: 4.6`
#[test]
fn a_broken_sleep_forgets_the_old_order() {
    with(era("2.6.33"), Owners::default(), |m| {
        let mut k = Kswapd::new(NodeId(0));
        m.run(&mut k, Answer::Go);
        let pages = fill(m, PageFlags::empty());
        // An order of 3 was asked for, and is there.
        let a = begin(m, 3, Gfp::KERNEL - Gfp::DIRECT_RECLAIM, Context::default());
        let _ = finish(m, a);
        assert_eq!(to_sleep(&mut k, m, Answer::Go), Some(100));
        let scanned = m.reclaim_counters().pgscan_kswapd;
        assert!(scanned > 0);
        // Then it is not, but there is enough for order 0, and kswapd was not asked since.
        leave_single_pages(m);
        let high = m.zone().marks.high as usize;
        for p in pages.iter().rev().step_by(2).take(2 * high) {
            m.pages().lru_del(*p);
            m.free(*p, 0).unwrap();
        }
        m.drain_all();
        assert_eq!(to_sleep(&mut k, m, Answer::Left(0)), Some(100));
        let c = m.reclaim_counters();
        assert_eq!(c.kswapd_high_wmark_hit_quickly, 1);
        assert_eq!(c.pgscan_kswapd, scanned);
    });
}

/// Priorities after which kswapd naps, asked for a block of `order` with `free` pages left, when the disk
/// takes nothing; until it has gone through all of them or sleeps.
fn naps(sw: Rules, order: u8, free: fn(&Machine) -> u64) -> (Vec<u8>, u64) {
    let host = Owners {
        congested: true,
        ..Owners::default()
    };
    let mut seen = Vec::new();
    let mut skipped = 0;
    with(sw, host, |m| {
        fill(m, PageFlags::DIRTY);
        let mut k = daemon(m);
        drain_to(m, free(m));
        ask(m, order);
        let mut priority = 13;
        let mut answer = Answer::Go;
        while priority > 0 || matches!(answer, Answer::Freed(_)) {
            let need = m.run(&mut k, answer);
            match need {
                Need::Shrink { .. } => priority -= 1,
                Need::CongestionWait { ms: 100, .. } => seen.push(priority),
                Need::Sleep(_) => break,
                _ => {}
            }
            answer = m.meet(need);
        }
        skipped = m.reclaim_counters().kswapd_skip_congestion_wait;
    });
    (seen, skipped)
}

fn between_min_and_low(m: &Machine) -> u64 {
    let marks = m.zone().marks;
    marks.min.midpoint(marks.low)
}

fn below_min(m: &Machine) -> u64 {
    m.zone().marks.min - 8
}

/// `spec: 4.6`
#[test]
fn with_patch_5_a_higher_order_is_in_trouble_later() {
    let later = changed("2.6.31", |r| r.kswapd.nap = KswapdNap::TroubleLater);
    let ten: Vec<u8> = (1..10).rev().collect();
    for order in [0, 3] {
        let (seen, _) = naps(era("2.6.31"), order, between_min_and_low);
        assert_eq!(seen, ten, "order {order}");
    }
    assert_eq!(naps(later, 0, between_min_and_low).0, ten);
    assert_eq!(naps(later, 3, between_min_and_low).0, [6, 5, 4, 3, 2, 1]);
    // A tenth order, and any above, leaves no priority to be in trouble at.
    assert_eq!(naps(later, 10, between_min_and_low).0, [0u8; 0]);
}

/// `spec: 4.6`
#[test]
fn below_the_min_mark_2_6_33_does_not_nap() {
    let (seen, skipped) = naps(era("2.6.33"), 0, between_min_and_low);
    assert_eq!((seen.len(), skipped), (9, 0));
    let (seen, skipped) = naps(era("2.6.33"), 0, below_min);
    assert_eq!(
        (seen, skipped),
        (vec![], 9),
        "each nap that was skipped counts"
    );
    let (seen, skipped) = naps(era("2.6.32"), 0, below_min);
    assert_eq!((seen.len(), skipped), (9, 0));
}

/// `spec: 4.6`
#[test]
fn kswapd_waits_for_both_classes_in_one_variant_alone() {
    let waits = |congestion| {
        let host = Owners {
            congested: true,
            ..Owners::default()
        };
        let mut seen = Vec::new();
        with(
            changed("2.6.31", |r| r.reclaim.congestion = congestion),
            host,
            |m| {
                fill(m, PageFlags::DIRTY);
                let mut k = daemon(m);
                ask(m, 0);
                let mut answer = Answer::Go;
                while seen.len() < 4 {
                    let need = m.run(&mut k, answer);
                    answer = m.meet(need);
                    if let Need::CongestionWait { class, ms } = need {
                        seen.push((class, ms));
                        answer = Answer::Left(ms - 40);
                    }
                }
            },
        );
        seen
    };
    use Class::{Async, Sync};
    use unfrag_eras::kernel::CongestionWait as C;
    assert_eq!(waits(C::Async), [(Async, 100); 4]);
    assert_eq!(
        waits(C::Both),
        [(Async, 100); 4],
        "patch 3 left kswapd alone"
    );
    let both = [(Async, 100), (Sync, 60)];
    assert_eq!(waits(C::BothEverywhere), [both, both].concat());
}

/// `spec: 4.6`
#[test]
fn the_dropped_patch_notices_a_higher_order_at_once() {
    let runs = |at_once| {
        let sw = changed("2.6.31", |r| r.kswapd.notices_order_at_once = at_once);
        let mut runs = 0;
        with(sw, Owners::default(), |m| {
            let pages = fill(m, PageFlags::empty());
            assert!(!pages.is_empty());
            let mut k = daemon(m);
            ask(m, 0);
            let mut need = m.run(&mut k, Answer::Go);
            while m.reclaim_counters().pgsteal_kswapd == 0 {
                let answer = m.meet(need);
                need = m.run(&mut k, answer);
            }
            assert!(!matches!(need, Need::Sleep(_)));
            leave_single_pages(m);
            ask(m, 3);
            let answer = m.meet(need);
            to_sleep(&mut k, m, answer);
            m.drain_all();
            assert!(m.alloc(3, Gfp::KERNEL).is_ok());
            runs = m.reclaim_counters().pageoutrun;
        });
        runs
    };
    assert_eq!(runs(false), 2, "a run for order 0, then one for order 3");
    assert_eq!(runs(true), 1);
}

/// Position of the inactive anonymous list.
const ANON: usize = Lru::InactiveAnon as usize - 1;

/// Page cache and anonymous pages, with a boost of the marks and enough free even so.
fn boosted(name: &str, file: PageFlags, short_before: bool, f: impl FnOnce(&mut Machine)) {
    let host = Owners {
        swap: 1 << 20,
        ..Owners::default()
    };
    with(era(name), host, |m| {
        let pages = fill(m, file);
        for p in &pages[..pages.len() / 3] {
            m.pages().lru_del(*p);
            m.lru_add(*p, Lru::InactiveAnon);
        }
        if short_before {
            let mut k = daemon(m);
            drain_to(m, m.zone().marks.low - 1);
            ask(m, 0);
            // So little is missing that the anonymous pages' share of it never makes a batch.
            for p in &pages[pages.len() / 3..] {
                if m.zone().free_pages + 40 > m.zone().marks.high {
                    break;
                }
                m.pages().lru_del(*p);
                m.free(*p, 0).unwrap();
                m.drain_all();
            }
            to_sleep(&mut k, m, Answer::Go);
        }
        // Every other of the last pages is free: many, but no block from which a type could be
        // fed without a boost.
        for p in pages.iter().rev().take(5000).step_by(2) {
            if m.lru_of(*p) == Some(Lru::InactiveFile) {
                m.pages().lru_del(*p);
                m.free(*p, 0).unwrap();
            }
        }
        m.drain_all();
        while m.zone().marks.boost == 0 {
            m.alloc(0, Gfp::KERNEL).unwrap();
        }
        // The next block from the zone's lists wakes kswapd.
        while m.host().woken.is_empty() {
            m.alloc(0, Gfp::KERNEL).unwrap();
        }
        f(m);
    });
}

/// `spec: 4.8`
#[test]
fn boost_reclaim_takes_clean_page_cache_only() {
    for (name, short_before) in [
        ("5.6", false),
        ("6.1", false),
        ("6.18", false),
        ("6.1", true),
    ] {
        boosted(name, PageFlags::empty(), short_before, |m| {
            let before = *m.reclaim_counters();
            let boost = m.zone().marks.boost;
            let anon = m.lru().pages[ANON];
            let swap = m.owners.swap;
            let mut k = daemon(m);
            to_sleep(&mut k, m, Answer::Go);
            let c = *m.reclaim_counters();
            let freed = c.pgsteal_kswapd - before.pgsteal_kswapd;
            assert!(freed >= boost, "{name}: {c:?} for {boost}");
            assert!(freed < 2 * boost, "{name}: {c:?} for {boost}");
            assert_eq!(c.pgactivate, before.pgactivate, "{name}");
            assert_eq!(m.lru().pages[ANON], anon, "{name}");
            assert_eq!(m.owners.swap, swap, "{name}");
            assert_eq!(m.zone().marks.boost, 0, "{name}: it is over");
        });
    }
}

/// `spec: 4.8`
#[test]
fn boost_reclaim_ends_where_pages_need_writing() {
    for name in ["5.6", "6.1", "6.18"] {
        boosted(name, PageFlags::DIRTY, false, |m| {
            let mut k = daemon(m);
            to_sleep(&mut k, m, Answer::Go);
            let c = *m.reclaim_counters();
            assert_eq!((c.pgsteal_kswapd, c.nr_vmscan_write), (0, 0), "{name}");
            assert_eq!(c.pageoutrun, 1, "{name}");
            assert_eq!(m.zone().marks.boost, 0, "{name}");
            // When memory is short as well, pages are written too.
            drain_to(m, m.zone().marks.low);
            ask(m, 0);
            to_sleep(&mut k, m, Answer::Left(0));
            assert!(m.reclaim_counters().nr_vmscan_write > 0, "{name}");
        });
    }
}
