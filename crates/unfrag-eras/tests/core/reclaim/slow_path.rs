//! The slow path: rights, waits, retries. `spec: 4.3, 4.4, 4.8`

use super::*;

/// `spec: 4.3`
#[test]
fn an_atomic_request_fails_without_reclaim() {
    with(era("2.6.31"), Owners::default(), |m| {
        fill(m, PageFlags::empty());
        let atomic = Gfp::HIGH;
        let cx = Context {
            in_interrupt: true,
            ..Context::default()
        };
        let mut served = 0;
        let failed = loop {
            match m.begin_alloc(0, atomic, cx).unwrap() {
                Begun::Got(_) => served += 1,
                Begun::Allocation(a) => match finish(m, a) {
                    (Ok(_), _) => served += 1,
                    (Err(e), needs) => break (e, needs),
                },
            }
        };
        assert_eq!(failed, (AllocError::Reserved, vec![]));
        // Its mark is 3/8 of min, each step truncated.
        let v = m.zone();
        let half = v.marks.min - v.marks.min / 2;
        let lowest = half - half / 4;
        // The last refill of the CPU's list took a batch.
        let batch = m.set().batch as u64;
        assert!(
            (lowest - batch..=lowest).contains(&v.free_pages),
            "{served} were served; {} of {lowest} are free",
            v.free_pages
        );
    });
}

/// `spec: 4.6`
#[test]
fn realtime_rights_in_interrupts_end_with_patch_2() {
    for (name, lends) in [("2.6.30", false), ("2.6.31", true), ("2.6.32", false)] {
        with(era(name), Owners::default(), |m| {
            fill(m, PageFlags::empty());
            let cx = Context {
                realtime: true,
                in_interrupt: true,
                ..Context::default()
            };
            // A request that may wait, made in an interrupt: only the lent right lowers its mark.
            let mut lowest = u64::MAX;
            for _ in 0..FRAMES {
                match m.begin_alloc(0, Gfp::KERNEL, cx).unwrap() {
                    Begun::Got(_) => {}
                    Begun::Allocation(a) => match finish(m, a) {
                        (Ok(_), _) => {}
                        (Err(_), _) => break,
                    },
                }
                lowest = m.zone().free_pages;
            }
            let min = m.zone().marks.min;
            let mark = if lends { min - min / 4 } else { min };
            let batch = m.set().batch as u64;
            assert!(
                (mark - batch..=mark).contains(&lowest),
                "{name}: {lowest} of {mark}"
            );
        });
    }
}

/// `spec: 4.4`
#[test]
fn the_class_that_is_waited_for_follows_the_kernel() {
    use Class::{Async, Sync};
    let waits = |sw: Rules| {
        let mut seen = Vec::new();
        let host = Owners {
            congested: true,
            ..Owners::default()
        };
        with(sw, host, |m| {
            fill(m, PageFlags::DIRTY);
            for _ in 0..200 {
                let mut a = match m.begin_alloc(0, Gfp::KERNEL, Context::default()).unwrap() {
                    Begun::Got(_) => continue,
                    Begun::Allocation(a) => a,
                };
                let mut answer = Answer::Go;
                for _ in 0..2000 {
                    match m.step(&mut a, answer) {
                        Step::Done(_) => break,
                        Step::Need(Need::CongestionWait { class, ms }) => {
                            if !seen.contains(&(class, ms)) {
                                seen.push((class, ms));
                            }
                            answer = Answer::Left(ms / 2);
                        }
                        Step::Need(need) => answer = m.meet(need),
                    }
                }
            }
        });
        seen.sort_by_key(|&(c, ms)| (c == Async, ms));
        seen
    };
    let rules = |name: &str, congestion| {
        let mut sw = era(name);
        sw.reclaim.congestion = congestion;
        sw
    };
    use unfrag_eras::kernel::CongestionWait as C;
    // Before 2.6.30 the classes were reads and writes, and what was meant was waited for.
    assert_eq!(waits(era("2.6.28")), [(Async, 20), (Async, 100)]);
    assert_eq!(waits(era("2.6.30")), [(Sync, 20), (Sync, 100)]);
    assert_eq!(waits(era("2.6.31")), [(Async, 20), (Async, 100)]);
    assert_eq!(
        waits(rules("2.6.31", C::Sync)),
        [(Sync, 20), (Sync, 100)],
        "8aa7e847 reverted"
    );
    assert_eq!(
        waits(rules("2.6.31", C::Both)),
        [(Sync, 10), (Sync, 50), (Async, 20), (Async, 100)],
        "patch 3: with the time left, the other class"
    );
}

/// `spec: 2.2`
#[test]
fn v19_repeats_reclaim_for_large_blocks_and_never_kills() {
    let needs_of = |name: &str| {
        let mut needs = Vec::new();
        with(era(name), Owners::default(), |m| {
            // Nothing can be reclaimed.
            while m.alloc(0, Gfp::KERNEL).is_ok() {}
            let a = begin(m, 10, Gfp::HIGHUSER_MOVABLE, Context::default());
            let (got, n) = finish(m, a);
            assert_eq!(got, Err(AllocError::Short));
            needs = n;
        });
        let pauses = |n: &Need| matches!(n, Need::CongestionWait { ms: 20, .. });
        let kills = |n: &Need| matches!(n, Need::Oom);
        (
            needs.iter().filter(|n| pauses(n)).count(),
            needs.iter().filter(|n| kills(n)).count(),
        )
    };
    assert_eq!(needs_of("v19"), (3, 0));
    assert_eq!(needs_of("2.6.14"), (0, 1), "any order may kill");
    assert_eq!(needs_of("2.6.32"), (0, 0));
}

/// `spec: 4.8`
#[test]
fn modern_kernels_throttle() {
    let host = Owners {
        congested: true,
        ..Owners::default()
    };
    with(era("6.18"), host, |m| {
        fill(m, PageFlags::DIRTY);
        while let Begun::Got(_) = m.begin_alloc(0, Gfp::KERNEL, Context::default()).unwrap() {}
        let mut needs = Vec::new();
        for _ in 0..300 {
            if let Begun::Allocation(a) = m.begin_alloc(0, Gfp::KERNEL, Context::default()).unwrap()
            {
                needs.extend(finish(m, a).1);
            }
        }
        assert!(
            !needs
                .iter()
                .any(|n| matches!(n, Need::CongestionWait { .. }))
        );
        assert!(needs.iter().any(|n| matches!(
            n,
            Need::Throttle {
                why: Throttle::NoProgress,
                ..
            }
        )));
        assert!(needs.iter().any(|n| matches!(n, Need::Oom)));
    });
}

/// `spec: 4.6`
#[test]
fn a_restart_after_reclaim_failed_wakes_kswapd_with_patch_1() {
    let wakes_again = |sw: Rules| {
        let mut more = None;
        with(sw, Owners::default(), |m| {
            // Nothing but anonymous pages, and no swap.
            fill_as(m, false, PageFlags::empty());
            drain_to(m, m.zone().marks.min / 2);
            let a = begin(m, 0, Gfp::KERNEL, Context::default());
            let mut before = None;
            let got = drive_otherwise(m, a, |m, need| {
                let woken = m.host().woken.len();
                match (before, need) {
                    (None, Need::Oom) => {
                        assert!(woken > 0);
                        // A process will end: the request starts over.
                        before = Some(woken);
                        return Some(Answer::Killed(true));
                    }
                    (Some(before), _) => _ = more.get_or_insert(woken - before),
                    _ => {}
                }
                None
            });
            assert!(got.is_err());
        });
        more.expect("it ends in the OOM killer")
    };
    assert_eq!(wakes_again(era("2.6.30")), 1);
    assert_eq!(wakes_again(era("2.6.31")), 0);
    assert_eq!(
        wakes_again(changed("2.6.31", |r| r.retry.wake_on_restart = true)),
        1
    );
    assert_eq!(wakes_again(era("2.6.32")), 1);
}

/// `spec: 4.9, 4.10`: pages that a reclaim for a costly order frees.
#[test]
fn a_costly_request_of_6_1_makes_room_for_compaction_where_pages_are_on_lists() {
    for (name, lru_gen, order, freed) in [
        ("5.9", false, 9, 32..100),
        // The low mark and twice the block.
        ("6.1", false, 9, 1000..2500),
        ("6.12", false, 9, 1000..2500),
        ("6.18", false, 9, 1000..2500),
        ("7.2", false, 9, 1000..2500),
        ("6.12", true, 9, 64..65),
    ] {
        let zones = [ZoneConfig::whole(
            NodeId(0),
            ZoneKind::Normal,
            Pfn(0x400),
            FRAMES,
        )];
        let config = Config {
            sysctl: unfrag_eras::Sysctl::default().with(|s| s.lru_gen = lru_gen),
            ..Config::new(&zones, era(name))
        };
        with_config(&config, Owners::default(), |m| {
            // Every second page is the kernel's, so that no block comes together.
            let mut cache = false;
            while let Ok(Begun::Got(p)) =
                m.begin_alloc(0, Gfp::HIGHUSER_MOVABLE, Context::default())
            {
                cache = !cache;
                if cache {
                    m.lru_add_new(p, true);
                }
            }
            let a = begin(m, order, Gfp::KERNEL, Context::default());
            finish(m, a).0.ok();
            let c = *m.reclaim_counters();
            let each = c.pgsteal_direct / c.allocstall.max(1);
            assert!(freed.contains(&each), "{name}, order {order}: {c:?}");
        });
    }
}
