//! Reclaim by generations: how much goes, what goes, and when generations grow older. Numbers are those that kernels were
//! seen to do. `spec: 4.10`

use super::*;
use unfrag_eras::Sysctl;
use unfrag_eras::zone::Marks;

const WITH: [&str; 4] = ["6.1", "6.12", "6.18", "7.2"];

/// A machine of so many frames whose pages stand in generations.
fn generations(era_name: &str, frames: u64, swap: u64, f: impl FnOnce(&mut Machine)) {
    let whole = ZoneConfig::whole(NodeId(0), ZoneKind::Normal, Pfn(0x400), frames);
    let config = Config {
        sysctl: Sysctl::default().with(|s| {
            s.lru_gen = true;
            s.watermark_boost_factor = 0;
        }),
        ..Config::new(std::slice::from_ref(&whole), era(era_name))
    };
    let owners = Owners {
        swap,
        ..Owners::default()
    };
    with_config(&config, owners, f);
}

/// Pages of a file or anonymous ones, taken whatever the marks.
fn pages(m: &mut Machine, n: u64, file: bool, flags: PageFlags) -> Vec<Pfn> {
    let new = |_| {
        let gfp = Gfp::HIGHUSER_MOVABLE | Gfp::MEMALLOC;
        let p = m.alloc(0, gfp).expect("a free page");
        m.pages().lru_add_new(p, file, flags);
        p
    };
    (0..n).map(new).collect()
}

fn set_high(m: &mut Machine, high: u64) {
    let marks = Marks {
        min: high - 2,
        low: high - 1,
        high,
        promo: high,
        boost: 0,
    };
    let protection = m.zone().protection;
    m.core.lab().edit().marks(ZONE, marks, protection).unwrap();
}

/// So much less is free than the min mark asks for.
fn press(m: &mut Machine, by: u64) {
    m.drain_all();
    let min = m.zone().free_counter as u64 + by - 1;
    set_high(m, min + 2);
}

/// What one run of kswapd looks at in each pass, with a goal of so many pages. `busy`: all that it frees is allocated.
fn passes(m: &mut Machine, high: u64, busy: bool, most: usize) -> Vec<u64> {
    m.drain_all();
    let free = m.zone().free_counter as u64;
    assert!(free + 1000 > high, "the test leaves {free} free for {high}");
    set_high(m, high);
    while m.zone().free_counter >= high as i64 {
        m.alloc(0, Gfp::KERNEL | Gfp::MEMALLOC).unwrap();
    }
    let mut k = daemon(m);
    ask(m, 0);
    let (mut all, mut before, mut answer) = (vec![], 0, Answer::Go);
    for _ in 0..100_000 {
        let need = m.run(&mut k, answer);
        // What is on lists of CPUs counts, too.
        m.drain_all();
        while busy && m.zone().free_counter >= high as i64 {
            m.alloc(0, Gfp::KERNEL | Gfp::MEMALLOC).unwrap();
        }
        match need {
            Need::Shrink { .. } => {
                let now = m.reclaim_counters().pgscan_kswapd;
                all.push(now - std::mem::replace(&mut before, now));
            }
            Need::Sleep(_) => break,
            _ => {}
        }
        if all.len() == most {
            break;
        }
        answer = m.meet(need);
    }
    let rest = Answer::Go;
    k.abort(&mut m.core, CPU, rest);
    all
}

/// `spec: 4.10`: measured with one file that is read once.
#[test]
fn a_pass_looks_at_what_its_priority_leaves() {
    for (name, nr, high, want) in [
        ("6.12", 57_000, 777, &[896, 1728][..]),
        ("6.12", 45_700, 14_997, &[704, 1408, 2624]),
        ("6.18", 45_700, 14_997, &[704, 1408, 2624]),
        ("7.2", 44_000, 14_997, &[687, 1353, 2622]),
        ("6.1", 57_000, 777, &[64, 64, 64, 128, 256, 448]),
    ] {
        generations(name, nr + high + 512, 0, |m| {
            pages(m, nr, true, PageFlags::empty());
            let got = passes(m, high, true, want.len());
            assert_eq!(got, want, "{name}, {nr} pages, to free {high}");
        });
    }
}

/// `spec: 4.10`
#[test]
fn a_pass_ends_with_the_batch_that_reaches_its_goal_from_6_12_on() {
    for (nr, high, want) in [
        (56_900, 777, &[832][..]),
        (57_697, 387, &[448]),
        (58_084, 172, &[192]),
    ] {
        generations("6.12", nr + high + 512, 0, |m| {
            pages(m, nr, true, PageFlags::empty());
            assert_eq!(passes(m, high, false, 9), want, "{nr}, {high}");
        });
    }
    generations("6.1", 58_000, 0, |m| {
        pages(m, 56_900, true, PageFlags::empty());
        // It stops at the marks after a pass, whatever its goal.
        assert_eq!(passes(m, 777, false, 9), [64], "6.1");
    });
}

/// `spec: 4.10`: pages that a request freed, and priorities that it needed.
#[test]
fn a_request_takes_one_batch() {
    for (name, freed, passes) in [
        ("6.1", 64, 1),
        ("6.12", 64, 1),
        ("6.18", 64, 1),
        ("7.2", 13 + 27, 2),
    ] {
        generations(name, 58_000, 0, |m| {
            pages(m, 57_000, true, PageFlags::empty());
            press(m, 9);
            let request = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
            let (got, needs) = finish(m, request);
            got.expect("a page");
            let shrinks = needs.iter().filter(|n| matches!(n, Need::Shrink { .. }));
            assert_eq!(shrinks.count(), passes, "{name}: {needs:?}");
            assert_eq!(m.reclaim_counters().pgsteal_direct, freed, "{name}");
        });
    }
}

/// Reads a stream of so many pages, each once; all of memory is reclaimed as it needs to be.
fn stream(m: &mut Machine, n: u64) {
    for _ in 0..n {
        let p = alloc(m, Gfp::HIGHUSER_MOVABLE);
        m.lru_add_new(p, true);
    }
}

/// How many of some pages were not evicted.
fn left(m: &Machine, pages: &[Pfn]) -> usize {
    let gone = &m.owners.gone;
    pages.iter().filter(|p| !gone.contains(*p)).count()
}

/// `spec: 4.10`: of files of 512 pages, after a stream of more than memory.
#[test]
fn who_survives_a_stream() {
    for name in ["6.12", "6.18", "7.2"] {
        generations(name, 8192, 0, |m| {
            let read: Vec<Vec<Pfn>> = [1, 2, 3, 6]
                .into_iter()
                .map(|times| {
                    let all = pages(m, 512, true, PageFlags::empty());
                    for _ in 0..times {
                        all.iter().for_each(|p| m.pages().mark_accessed(*p));
                    }
                    all
                })
                .collect();
            let mapped = pages(m, 512, true, PageFlags::MAPPED | PageFlags::YOUNG);
            stream(m, 9000);
            let left = |all: &[Pfn]| left(m, all);
            let survivors = [&read[0], &read[1], &read[2], &read[3]].map(|all| left(all));
            assert_eq!(survivors, [0, 0, 0, 512], "{name}");
            assert_eq!(
                left(&mapped),
                512,
                "{name}: nobody looked at the page tables"
            );
            assert_eq!(
                m.reclaim_counters().pgrefill,
                512,
                "{name}: each moved once"
            );
            assert_eq!(m.reclaim_counters().pgactivate, 0, "{name}");
        });
    }
}

/// `spec: 4.10`
#[test]
fn pages_that_are_read_more_often_stay_once_such_pages_came_back() {
    for name in WITH {
        for (once, again, stays) in [(0, 0, 0), (0, 64, 64), (4000, 64, 0)] {
            generations(name, 4096, 0, |m| {
                let twice = pages(m, 64, true, PageFlags::empty());
                for _ in 0..2 {
                    twice.iter().for_each(|p| m.pages().mark_accessed(*p));
                }
                for (n, reread) in [(once, false), (again, true)] {
                    for _ in 0..n {
                        m.pages().refaulted(twice[0], reread);
                    }
                }
                stream(m, 6000);
                let left = left(m, &twice);
                assert_eq!(left, stays, "{name}: {once} and {again} came back");
            });
        }
    }
}

/// What owners are asked says whether a page was read more than once. `spec: 4.10`
#[test]
fn owners_learn_whether_a_page_was_read_again() {
    for name in WITH {
        generations(name, 4096, 0, |m| {
            let all = pages(m, 3000, true, PageFlags::empty());
            for (i, p) in all.iter().enumerate() {
                for _ in 0..i % 4 {
                    m.pages().mark_accessed(*p);
                }
            }
            press(m, 9);
            let request = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
            let asked = RefCell::new(vec![]);
            let evict = |m: &mut Machine<'_>, e: &Eviction| {
                let all = e.asks().iter().map(|a| (a.page, a.reread));
                asked.borrow_mut().extend(all);
                m.evict(e)
            };
            drive_asking(m, request, evict, |_, _| None).expect("a page");
            let asked = asked.into_inner();
            assert!(asked.len() >= 40, "{name}");
            for (page, reread) in asked {
                let at = all.iter().position(|p| *p == page).expect("one of them");
                assert_eq!(reread, at % 4 > 1, "{name}, page {at}");
            }
        });
    }
}

/// `spec: 4.10`: with swap, 6.1 and 6.12 age soon after pressure begins; those that follow do not, as four generations
/// exist.
#[test]
fn pages_in_use_are_looked_at_when_generations_grow_older() {
    for (name, looked) in [
        ("6.1", true),
        ("6.12", true),
        ("6.18", false),
        ("7.2", false),
    ] {
        generations(name, 8192, 1 << 20, |m| {
            let anon = pages(m, 5000, false, PageFlags::MAPPED | PageFlags::YOUNG);
            pages(m, 2000, true, PageFlags::empty());
            passes(m, 100, true, 4);
            let young = anon
                .iter()
                .filter(|p| m.page_flags(**p).contains(PageFlags::YOUNG));
            let still = young.count();
            assert_eq!(still == 0, looked, "{name}: {still} of 5000 are marked yet");
            assert_eq!(left(m, &anon), 5000, "{name}: all of them were in use");
        });
    }
}

/// Without swap nothing ages, however much is read: page tables are not looked at. `spec: 4.10`
#[test]
fn a_stream_alone_ages_nothing() {
    for name in WITH {
        generations(name, 8192, 0, |m| {
            let mapped = pages(m, 64, true, PageFlags::MAPPED | PageFlags::YOUNG);
            stream(m, 20_000);
            for p in &mapped {
                assert!(m.page_flags(*p).contains(PageFlags::YOUNG), "{name}");
            }
        });
    }
}

/// What is left when all that can be evicted is gone has to grow older. `spec: 4.10`
#[test]
fn pages_in_use_go_when_nothing_else_is_left() {
    for name in WITH {
        generations(name, 4096, 0, |m| {
            pages(m, 3000, true, PageFlags::MAPPED);
            // They can be unmapped without a place in swap.
            m.owners.swap = 1 << 20;
            m.owners.in_swap = (0..8192).map(Pfn).collect();
            for _ in 0..3000 {
                alloc(m, Gfp::KERNEL);
            }
            assert!(m.owners.released > 1900, "{name}: {}", m.owners.released);
        });
    }
}

/// `spec: 4.10`
#[test]
fn dirty_pages_of_files_are_left_to_the_flushers() {
    for name in WITH {
        generations(name, 4096, 0, |m| {
            pages(m, 32, true, PageFlags::DIRTY);
            pages(m, 3000, true, PageFlags::empty());
            press(m, 9);
            let request = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
            let (got, needs) = finish(m, request);
            got.expect("a page");
            let woken = |n: &Need| *n == Need::WakeFlushers(32);
            assert_eq!(needs.iter().filter(|n| woken(n)).count(), 1, "{name}");
            assert_eq!(m.owners.writing.len(), 0, "{name}");
            assert_eq!(m.lru().pages.iter().sum::<u64>() + m.owners.released, 3032);
        });
    }
}

/// `spec: 4.10`: a generation that is younger than the limit stays, if need be until the OOM killer comes.
#[test]
fn young_generations_are_not_evicted() {
    for (age, goes) in [(999, false), (1000, true)] {
        let zones = [ZoneConfig::whole(
            NodeId(0),
            ZoneKind::Normal,
            Pfn(0x400),
            4096,
        )];
        let config = Config {
            sysctl: Sysctl::default().with(|s| {
                s.lru_gen = true;
                s.lru_gen_min_ttl_ms = 1000;
            }),
            ..Config::new(&zones, era("6.12"))
        };
        with_config(&config, Owners::default(), |m| {
            m.set_time_ms(age);
            pages(m, 3000, true, PageFlags::empty());
            press(m, 9);
            let request = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
            let (got, needs) = finish(m, request);
            assert_eq!(got.is_ok(), goes, "after {age} ms");
            assert_eq!(needs.contains(&Need::Oom), !goes, "after {age} ms");
        });
    }
}

/// Everything in its place: which list, in which order.
fn order(m: &Machine) -> [Vec<Pfn>; 4] {
    Lru::EVICTABLE.map(|lru| m.inspect().lru_list(ZONE, lru).collect())
}

/// `spec: 4.10`
#[test]
fn pages_change_over_in_their_order_when_the_setting_changes() {
    for name in WITH {
        with(era(name), Owners::default(), |m| {
            let flags = PageFlags::REFERENCED | PageFlags::DIRTY;
            let all = pages(m, 100, true, flags);
            pages(m, 50, false, PageFlags::MAPPED);
            for p in all.iter().step_by(3) {
                m.lru_add(*p, Lru::ActiveFile);
            }
            m.lru_add(all[1], Lru::Unevictable);
            let before = order(m);
            let on = Sysctl::default().with(|s| s.lru_gen = true);
            for to in [on, on, Sysctl::default()] {
                m.core.lab().change_settings(&to);
                m.inspect().validate().unwrap();
                assert_eq!(order(m), before, "{name}");
                assert_eq!(m.lru_of(all[0]), Some(Lru::ActiveFile), "{name}");
                assert_eq!(m.lru_of(all[1]), Some(Lru::Unevictable), "{name}");
                assert_eq!(m.page_flags(all[2]), flags, "{name}");
            }
        });
    }
}

/// A change while pages are isolated: they go back to where pages stand then.
#[test]
fn an_isolated_page_goes_back_to_what_is_in_force_then() {
    for name in WITH {
        for first in [false, true] {
            let settings = |on| Sysctl::default().with(|s| s.lru_gen = on);
            with(era(name), Owners::default(), |m| {
                m.core.lab().change_settings(&settings(first));
                let n = pages(m, 3000, true, PageFlags::empty()).len() as u64;
                press(m, 9);
                let mut request = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
                let asked = loop {
                    match m.locked(|m, cpu| request.step(m, cpu, Answer::Go)) {
                        Step::Need(Need::Evict) => break request.eviction().asks().len(),
                        Step::Need(need) => _ = m.meet(need),
                        Step::Done(got) => panic!("{got:?}"),
                    }
                };
                assert!(asked > 0);
                m.core.lab().change_settings(&settings(!first));
                m.inspect().validate().unwrap();
                request.abort(&mut m.core, CPU, Answer::Go);
                m.inspect().validate().unwrap();
                assert_eq!(m.lru().pages.iter().sum::<u64>(), n, "{name}, {first}");
                assert_eq!(m.lru().isolated, [0, 0], "{name}, {first}");
            });
        }
    }
}

/// Wrong calls, with what each must get. A page's generation and its reads share bits with flags of isolated pages.
#[test]
fn wrong_calls_change_nothing() {
    for name in WITH {
        generations(name, 4096, 0, |m| {
            let all = pages(m, 8, true, PageFlags::empty());
            let p = all[0];
            // Flags that are not an owner's.
            let odd = PageFlags::FREED | PageFlags::ACTIVE | PageFlags::SWAPBACKED;
            for _ in 0..9 {
                m.pages().set(p, odd);
                m.pages().clear(p, odd);
                m.pages().mark_accessed(p);
                m.inspect().validate().unwrap();
            }
            assert_eq!(m.page_flags(p), PageFlags::REFERENCED, "{name}");
            m.pages().clear(p, PageFlags::REFERENCED);
            assert_eq!(m.page_flags(p), PageFlags::empty(), "{name}");
            // What is no page, and what is on no list.
            m.pages().refaulted(Pfn(0), true);
            m.pages().mark_accessed(Pfn(0));
            m.pages().lru_del(p);
            m.pages().refaulted(p, true);
            m.pages().lru_del(p);
            assert_eq!(m.lru_of(p), None, "{name}");
            // Each generation a page can be in: freed once, and not again.
            for (i, &p) in all[1..].iter().enumerate() {
                let lru = [
                    Lru::ActiveFile,
                    Lru::InactiveFile,
                    Lru::ActiveAnon,
                    Lru::InactiveAnon,
                ];
                m.pages().lru_add(p, lru[i % 4], odd | PageFlags::MAPPED);
                for _ in 0..i {
                    m.pages().mark_accessed(p);
                }
                m.inspect().validate().unwrap();
                m.free(p, 0).unwrap();
                assert!(m.free(p, 0).is_err(), "{name}");
            }
            assert_eq!(m.lru().pages, [0; 5], "{name}");
        });
    }
    // Kernels without generations have none, whatever is set.
    for name in ["2.6.14", "2.6.32", "5.9"] {
        generations(name, 4096, 0, |m| {
            assert!(!m.inspect().sysctl().lru_gen, "{name}");
            let on = Sysctl::default().with(|s| s.lru_gen = true);
            m.core.lab().change_settings(&on);
            assert!(!m.inspect().sysctl().lru_gen, "{name}");
        });
    }
}
