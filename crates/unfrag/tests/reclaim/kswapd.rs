//! kswapd: when it works, how far it goes, when it sleeps. `spec: linux-mm 4.2, 4.6, 4.8`

use super::*;

/// Steps kswapd until it sleeps, and returns for how many ms.
fn to_sleep(k: &mut Kswapd, m: &mut Manager<Owners>, answer: Answer) -> Option<u32> {
    let mut answer = answer;
    for _ in 0..100_000 {
        match k.step(m, answer) {
            Need::Sleep(ms) => return ms,
            need => answer = meet(m, need),
        }
    }
    panic!("no sleep")
}

#[test]
fn kswapd_restores_the_high_mark_and_sleeps_spec_4_2() {
    for name in ERAS {
        with(era(name), Owners::default(), |m| {
            let mut k = Kswapd::new(0);
            assert_eq!(k.step(m, Answer::Go), Need::Sleep(None), "{name}");
            assert_eq!(
                k.step(m, Answer::Go),
                Need::Sleep(None),
                "{name}: not asked"
            );
            fill(m, PageFlags::empty());
            let a = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
            finish(m, a).0.unwrap();
            let slept = to_sleep(&mut k, m, Answer::Go);
            let staged = matches!(name, "2.6.33" | "5.9" | "6.1" | "6.18");
            assert_eq!(slept, staged.then_some(100), "{name}");
            let v = m.zone_view(0);
            assert!(v.free_pages > v.marks.high, "{name}: {} free", v.free_pages);
            // V19 never takes a block of the very order from another type, so it may find nothing
            // above the min mark, and reclaim directly. `spec: linux-mm 2.2`
            let c = m.reclaim_counters();
            let direct = c.pgscan_direct > 0;
            assert!(
                name == "v19" || !direct && c.pgsteal_kswapd > 0,
                "{name}: {c:?}"
            );
        });
    }
}

#[test]
fn each_modern_pass_that_falls_short_of_the_high_marks_looks_at_twice_as_much_spec_4_8() {
    for name in ["5.9", "6.1", "6.18"] {
        with(era(name), Owners::default(), |m| {
            let pages = fill(m, PageFlags::empty()).len() as u64;
            let high = m.zone_view(0).marks.high;
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

#[test]
fn kswapd_without_hope_sleeps_until_others_reclaim_spec_4_8() {
    with(era("6.1"), Owners::default(), |m| {
        // Nothing but anonymous pages, and no swap.
        let mut pages = fill_as(m, false, PageFlags::empty());
        let mut k = Kswapd::new(0);
        k.step(m, Answer::Go);
        let ask = |m: &mut Manager<Owners>| {
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
        // Page cache comes, a page is freed, and a direct reclaimer gets on.
        m.free(pages.pop().unwrap(), 0).unwrap();
        m.drain_all();
        for p in pages.drain(..256) {
            m.lru_add(p, Lru::InactiveFile);
        }
        while m.reclaim_counters().pgsteal_direct == 0 {
            let p = alloc(m, Gfp::KERNEL);
            assert!(m.frame(p).is_some());
        }
        ask(m);
        to_sleep(&mut k, m, Answer::Go);
        assert!(m.reclaim_counters().pageoutrun > runs);
    });
}

#[test]
fn a_staged_sleep_that_is_broken_is_counted_spec_4_6() {
    with(era("2.6.33"), Owners::default(), |m| {
        let mut k = Kswapd::new(0);
        k.step(m, Answer::Go);
        fill(m, PageFlags::empty());
        let a = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
        finish(m, a).0.unwrap();
        assert_eq!(to_sleep(&mut k, m, Answer::Go), Some(100));
        // Woken with time left: the low mark was hit quickly.
        assert_eq!(to_sleep(&mut k, m, Answer::Left(40)), Some(100));
        assert_eq!(m.reclaim_counters().kswapd_low_wmark_hit_quickly, 1);
        // Nobody woke it, but the high mark is broken.
        while m.zone_view(0).free_pages > m.zone_view(0).marks.high - 50 {
            m.alloc(0, Gfp::KERNEL).unwrap();
        }
        assert_eq!(to_sleep(&mut k, m, Answer::Left(0)), Some(100));
        assert_eq!(m.reclaim_counters().kswapd_high_wmark_hit_quickly, 1);
        // All is well: for good.
        assert_eq!(to_sleep(&mut k, m, Answer::Left(0)), None);
    });
}

#[test]
fn after_a_broken_sleep_an_old_kswapd_works_for_new_requests_alone_spec_4_6() {
    with(era("2.6.33"), Owners::default(), |m| {
        let mut k = Kswapd::new(0);
        k.step(m, Answer::Go);
        let pages = fill(m, PageFlags::empty());
        // An order of 3 was asked for, and is there.
        let a = begin(m, 3, Gfp::KERNEL - Gfp::DIRECT_RECLAIM, Context::default());
        let _ = finish(m, a);
        assert_eq!(to_sleep(&mut k, m, Answer::Go), Some(100));
        let scanned = m.reclaim_counters().pgscan_kswapd;
        assert!(scanned > 0);
        // Then it is not, but there is enough for order 0, and nobody has asked since.
        leave_single_pages(m);
        let high = m.zone_view(0).marks.high as usize;
        for p in pages.iter().rev().step_by(2).take(2 * high) {
            m.lru_del(*p);
            m.free(*p, 0).unwrap();
        }
        m.drain_all();
        assert_eq!(to_sleep(&mut k, m, Answer::Left(0)), Some(100));
        let c = m.reclaim_counters();
        assert_eq!(c.kswapd_high_wmark_hit_quickly, 1);
        assert_eq!(c.pgscan_kswapd, scanned);
    });
}
