//! Throttling of direct reclaim and kswapd. `spec: 4.5, 4.8`

use super::*;

fn throttled(why: Throttle, ms: u32) -> impl Fn(&Need) -> bool {
    move |n| *n == Need::Throttle { why, ms }
}

/// Needs of kswapd until it sleeps, on a host with nothing but anonymous pages and a swap; writes end
/// whenever it lets others have a turn, or only when it waits.
fn swapping(name: &str, quick_disk: bool) -> Vec<Need> {
    let host = Owners {
        swap: 1 << 20,
        ..Owners::default()
    };
    let mut needs = Vec::new();
    with(era(name), host, |m| {
        fill_as(m, false, PageFlags::DIRTY);
        let mut k = daemon(m);
        ask(m, 0);
        let mut answer = Answer::Go;
        loop {
            let need = m.run(&mut k, answer);
            if matches!(need, Need::Sleep(_)) {
                break;
            }
            assert!(needs.len() < 100_000, "{name}: it does not sleep");
            answer = m.meet(need);
            if quick_disk {
                m.meet(Need::PageWriteback(Pfn(0)));
            }
            needs.push(need);
        }
    });
    needs
}

/// `spec: 4.8`
#[test]
fn kswapd_that_outruns_the_disk_waits_for_writeback() {
    let waits = throttled(Throttle::Writeback, 100);
    for name in ["6.1", "6.18"] {
        assert!(swapping(name, false).iter().any(&waits), "{name}");
        let needs = swapping(name, true);
        assert!(!needs.iter().any(&waits), "{name}: the disk keeps up");
    }
    for name in ["2.6.33", "5.9"] {
        assert!(!swapping(name, false).iter().any(&waits), "{name}");
    }
}

/// `spec: 4.8`
#[test]
fn direct_reclaim_waits_for_a_congested_disk() {
    // Every page is under writeback; `met` says whether an earlier scan saw that.
    let needs_of = |name: &str, met: bool| {
        let host = Owners {
            swap: 1 << 20,
            ..Owners::default()
        };
        let mut needs = Vec::new();
        with(era(name), host, |m| {
            let mut flags = PageFlags::WRITEBACK;
            flags.set(PageFlags::RECLAIM, met);
            m.owners.writing = fill_as(m, false, flags);
            drain_to(m, m.zone().marks.min);
            let a = begin(m, 0, Gfp::KERNEL, Context::default());
            let (got, n) = finish(m, a);
            got.unwrap();
            needs = n;
        });
        needs
    };
    let waits = throttled(Throttle::Congested, 0);
    for name in ["6.1", "6.18"] {
        assert!(needs_of(name, true).iter().any(&waits), "{name}");
        let needs = needs_of(name, false);
        let first = needs.iter().find(|n| matches!(n, Need::Throttle { .. }));
        assert_ne!(
            first.map(&waits),
            Some(true),
            "{name}: the disk may be idle"
        );
    }
    for name in ["2.6.33", "5.9"] {
        assert!(!needs_of(name, true).iter().any(&waits), "{name}");
    }
}

/// `spec: 4.8`
#[test]
fn direct_reclaim_waits_below_half_of_min() {
    let stalls = throttled(Throttle::Reserves, 1000);
    for name in ["5.6", "6.1", "6.18"] {
        with(era(name), Owners::default(), |m| {
            fill(m, PageFlags::empty());
            let half = m.zone().marks.min / 2;
            drain_to(m, 2 * half - 8);
            assert!(m.zone().free_pages > half, "{name}");
            let mut k = daemon(m);
            let a = begin(m, 0, Gfp::KERNEL, Context::default());
            let (got, needs) = finish(m, a);
            assert!(!needs.iter().any(&stalls), "{name}: half is left");
            m.free(got.unwrap(), 0).unwrap();

            drain_to(m, half - 8);
            let mut a = begin(m, 0, Gfp::KERNEL, Context::default());
            let direct = m.reclaim_counters().pgscan_direct;
            match m.step(&mut a, Answer::Go) {
                Step::Need(need) => assert!(stalls(&need), "{name}: {need:?}"),
                Step::Done(got) => panic!("{name}: {got:?}"),
            }
            assert_eq!(m.reclaim_counters().pgscan_direct, direct, "{name}");
            // kswapd gets on, but not far enough: the wait goes on.
            let mut answer = Answer::Go;
            let freed = m.reclaim_counters().pgsteal_kswapd;
            while m.reclaim_counters().pgsteal_kswapd == freed {
                let need = m.run(&mut k, answer);
                answer = m.meet(need);
            }
            drain_to(m, half - 8);
            match m.step(&mut a, Answer::Go) {
                Step::Need(need) => assert!(stalls(&need), "{name}: {need:?}"),
                Step::Done(got) => panic!("{name}: {got:?}"),
            }
            assert_eq!(m.reclaim_counters().pgscan_direct, direct, "{name}");
            while m.zone().free_pages < m.zone().marks.min {
                let need = m.run(&mut k, answer);
                answer = m.meet(need);
            }
            let (got, needs) = finish(m, a);
            assert!(
                got.is_ok() && !needs.iter().any(&stalls),
                "{name}: {needs:?}"
            );
            let c = m.reclaim_counters();
            assert_eq!(
                c.pgscan_direct_throttle, 1,
                "{name}: one reclaim, however many waits"
            );
        });
    }
}

/// `spec: 4.8`
#[test]
fn nobody_waits_for_a_kswapd_that_does_not_help() {
    let waits = |name: &str, has_kswapd: bool| {
        let mut seen = 0;
        with(era(name), Owners::default(), |m| {
            fill(m, PageFlags::empty());
            if has_kswapd {
                let _asleep = daemon(m);
            }
            drain_to(m, m.zone().marks.min / 2 - 8);
            let a = begin(m, 0, Gfp::KERNEL, Context::default());
            let (got, needs) = finish(m, a);
            got.unwrap();
            seen = needs
                .iter()
                .filter(|n| throttled(Throttle::Reserves, 1000)(n))
                .count();
        });
        seen
    };
    assert_eq!(
        waits("6.18", true),
        1,
        "it frees nothing: one wait, then on alone"
    );
    assert_eq!(waits("6.18", false), 0, "there is none");
    assert_eq!(waits("2.6.33", true), 0, "not yet");

    // Only anonymous pages and no swap: kswapd gives up.
    with(era("6.1"), Owners::default(), |m| {
        fill_as(m, false, PageFlags::empty());
        drain_to(m, m.zone().marks.min / 2 - 8);
        let mut k = daemon(m);
        ask(m, 0);
        let mut answer = Answer::Go;
        loop {
            match m.run(&mut k, answer) {
                Need::Sleep(None) => break,
                need => answer = m.meet(need),
            }
        }
        let a = begin(m, 0, Gfp::KERNEL, Context::default());
        let needs = finish(m, a).1;
        assert!(!needs.iter().any(throttled(Throttle::Reserves, 1000)));
    });
}

/// `spec: 4.5`
#[test]
fn with_more_isolated_than_inactive_direct_reclaimers_wait() {
    for throttles in [false, true] {
        let sw = changed("2.6.31", |r| r.reclaim.isolated_throttle = throttles);
        with(sw, Owners::default(), |m| {
            let pages = fill(m, PageFlags::DIRTY);
            leave_single_pages(m);
            drain_to(m, m.zone().marks.min);
            // A reclaim for a large block holds pages apart while it waits for their writing.
            let mut first = begin(m, 4, Gfp::KERNEL, Context::default());
            let mut answer = Answer::Go;
            while m.lru().isolated[1] == 0 {
                match m.step(&mut first, answer) {
                    Step::Need(Need::Shrink { .. }) => answer = Answer::Freed(0),
                    Step::Need(_) => answer = Answer::Go,
                    Step::Done(got) => panic!("{got:?}"),
                }
            }
            let isolated = m.lru().isolated[1];
            let inactive: Vec<Pfn> = pages
                .into_iter()
                .filter(|p| m.lru_of(*p) == Some(Lru::InactiveFile))
                .collect();
            for p in &inactive[isolated as usize - 8..] {
                m.pages().lru_del(*p);
            }
            let scanned = m.reclaim_counters().pgscan_direct;
            let mut second = begin(m, 0, Gfp::KERNEL, Context::default());
            let mut waits = 0;
            let mut answer = Answer::Go;
            for _ in 0..100 {
                match m.step(&mut second, answer) {
                    Step::Need(Need::CongestionWait { class, ms }) => {
                        // The others are between two priorities.
                        waits += u32::from((class, ms) == (Class::Async, 100));
                        answer = Answer::Left(0);
                    }
                    Step::Need(Need::Shrink { .. }) => answer = Answer::Freed(0),
                    Step::Need(_) => answer = Answer::Go,
                    Step::Done(_) => break,
                }
                if m.reclaim_counters().pgscan_direct > scanned {
                    break;
                }
            }
            let looked = m.reclaim_counters().pgscan_direct > scanned;
            assert_eq!(looked, !throttles, "{waits} waits");
            assert_eq!(waits > 0, throttles);
            // It waits once for each list of each priority, and not until the first one, which stands still, goes on.
            assert!(waits <= 2 * 13, "{waits} waits");
            finish(m, first).0.ok();
            finish(m, second).0.ok();
        });
    }
}
