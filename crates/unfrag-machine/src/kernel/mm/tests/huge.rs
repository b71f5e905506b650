//! Huge pages of anonymous memory: faults by each setting, and what splits them. `spec: 5.6`

use super::compaction::{
    check_stamps, compacted, fragment, free_blocks, machine, stamp, take_whole_blocks,
};
use super::{heap, program};
use crate::engine::SEC;
use crate::kernel::{Cx, Engine};
use crate::mm::process::ProcId;
use crate::mm::thp::{HUGE_PAGES, Thp, ThpDefrag, ThpEnabled};
use crate::test_support::{add_disk, add_swap, finish, machine_config};
use std::iter::once;
use unfrag_eras::reclaim::Lru;
use unfrag_eras::{Pfn, ZoneId};

/// A machine of 64 MiB all of whose areas get huge pages, with swap.
fn huge_machine(kernel: &str) -> Engine {
    let mut config = machine_config(kernel, 64 << 8, 2);
    add_disk(&mut config, 4);
    add_swap(&mut config, 0, 128 << 8);
    let mut engine = Engine::new(&config).unwrap();
    engine.sim().start_daemons();
    engine
}

fn thp(cx: &mut Cx) -> (u64, u64, u64) {
    cx.with(|sim| {
        let c = &sim.kernel_ref().counters;
        (c.thp_fault_alloc, c.thp_fault_fallback, c.thp_split_page)
    })
}

/// The first frame of the huge page that a page is part of.
fn huge(cx: &mut Cx, p: ProcId, area: u16, page: u32) -> Option<Pfn> {
    cx.with(|sim| {
        let kernel = sim.kernel_ref();
        let object = kernel.procs.get(p).area(area)?.object;
        kernel.objects.get(object).get(page).huge()
    })
}

#[test]
fn a_fault_maps_a_huge_page_where_the_area_has_room_for_it() {
    for kernel in ["5.6", "6.1", "6.18"] {
        let mut e = huge_machine(kernel);
        program(&mut e, "toucher", move |cx, p| {
            let area = heap(cx, p, 2 * HUGE_PAGES + 100);
            cx.touch(p, area, &mut once(700..701), true, 0).unwrap();
            assert_eq!(thp(cx), (1, 0, 0), "{kernel}");
            let head = huge(cx, p, area, 700).unwrap();
            assert!(head.0.is_multiple_of(HUGE_PAGES.into()));
            assert_eq!(huge(cx, p, area, 100), None);
            // The rest of the area is too short for one.
            cx.touch(p, area, &mut once(1024..1124), true, 0).unwrap();
            assert_eq!((thp(cx), huge(cx, p, area, 1024)), ((1, 0, 0), None));
            cx.with(|sim| {
                assert_eq!(sim.kernel_ref().procs.get(p).rss, HUGE_PAGES + 100);
                assert_eq!(sim.check(0).unwrap().anon, u64::from(HUGE_PAGES) + 100);
                let lru = sim.manager_ref().inspect().lru(ZoneId(0));
                let anon = [Lru::InactiveAnon, Lru::ActiveAnon].map(|l| lru.pages[l as usize - 1]);
                let pages = u64::from(HUGE_PAGES) + 100;
                assert_eq!(anon.iter().sum::<u64>(), pages, "{kernel}: in pages");
                sim.manager_ref().inspect().validate().unwrap();
            });
        });
        finish(&mut e, 60);
        assert_eq!(e.sim().check(0).unwrap().anon, 0);
    }
}

#[test]
fn kernels_and_machines_without_huge_pages_map_single_ones() {
    let mut none = machine_config("6.18", 64 << 8, 1);
    none.mem.thp.enabled = ThpEnabled::Never;
    let mut narrow = machine_config("6.18", 64 << 8, 1);
    narrow.mem.word = crate::kmem::caches::Word::W32;
    for config in [none, narrow, machine_config("2.6.36", 64 << 8, 1)] {
        let mut e = Engine::new(&config).unwrap();
        program(&mut e, "toucher", |cx, p| {
            let area = heap(cx, p, 2 * HUGE_PAGES);
            cx.touch(p, area, &mut once(0..2 * HUGE_PAGES), true, 0)
                .unwrap();
            assert_eq!(thp(cx), (0, 0, 0));
        });
        finish(&mut e, 60);
    }
}

#[test]
// `spec: 5.3`
fn a_fault_in_fragmented_memory_compacts_for_its_huge_page() {
    for kernel in ["5.6", "5.9", "6.1", "6.18"] {
        let mut e = machine(kernel, |s| s.compaction_proactiveness = 0);
        program(&mut e, "holder", move |cx, p| {
            let area = fragment(cx, p);
            let blocks = take_whole_blocks(cx);
            let pages = cx.with(|sim| check_stamps(sim, p, area));
            let wanted = heap(cx, p, 8 * HUGE_PAGES);
            cx.with(|sim| sim.advise_huge(p, wanted));
            let every = (0..8 * HUGE_PAGES).step_by(HUGE_PAGES as usize);
            cx.touch(p, wanted, &mut every.map(|i| i..i + 1), true, 0)
                .unwrap();
            let (got, fallback, _) = thp(cx);
            assert_eq!((got + fallback, fallback), (8, 0), "{kernel}");
            cx.with(|sim| {
                let c = compacted(sim);
                assert!(
                    c.compact_success > 0 && c.pgmigrate_success > 100,
                    "{kernel}: {c:?}"
                );
                assert_eq!(check_stamps(sim, p, area), pages, "{kernel}");
                sim.check(0).unwrap();
                blocks.into_iter().for_each(|b| sim.free_kernel(b));
            });
        });
        finish(&mut e, 60);
    }
}

/// What one fault does in fragmented memory: huge pages, fallbacks, direct compactions; and whether it woke a daemon.
fn fault_in_fragmented_memory(
    kernel: &str,
    defrag: ThpDefrag,
    advised: bool,
) -> (u64, u64, u64, bool) {
    let mut e = machine(kernel, |s| s.compaction_proactiveness = 0);
    let got = std::rc::Rc::new(std::cell::Cell::default());
    let result = got.clone();
    program(&mut e, "holder", move |cx, p| {
        fragment(cx, p);
        let blocks = take_whole_blocks(cx);
        let woken = |cx: &mut Cx| {
            cx.with(|sim| {
                let wakeups = sim.manager_ref().inspect().counters().kswapd_wakeups;
                wakeups + compacted(sim).compact_daemon_wake
            })
        };
        cx.with(|sim| {
            sim.kernel().config.thp = Thp {
                enabled: ThpEnabled::Always,
                defrag,
            };
        });
        let wanted = heap(cx, p, HUGE_PAGES);
        if advised {
            cx.with(|sim| sim.advise_huge(p, wanted));
        }
        let before = woken(cx);
        cx.touch(p, wanted, &mut once(0..1), true, 0).unwrap();
        let (alloc, fallback, _) = thp(cx);
        let stalls = cx.with(|sim| compacted(sim).compact_stall);
        cx.sleep(SEC);
        result.set((alloc, fallback, stalls, woken(cx) > before));
        cx.with(|sim| blocks.into_iter().for_each(|b| sim.free_kernel(b)));
    });
    finish(&mut e, 60);
    got.get()
}

#[test]
fn each_setting_of_defrag_does_what_it_says() {
    for kernel in ["6.1", "6.18"] {
        for (defrag, plain, advised) in [
            (ThpDefrag::Always, Does::Compacts, Does::Compacts),
            (ThpDefrag::Defer, Does::Wakes, Does::Wakes),
            (ThpDefrag::DeferMadvise, Does::Wakes, Does::Compacts),
            (ThpDefrag::Madvise, Does::Nothing, Does::Compacts),
            (ThpDefrag::Never, Does::Nothing, Does::Nothing),
        ] {
            for (is_advised, does) in [(false, plain), (true, advised)] {
                let got = fault_in_fragmented_memory(kernel, defrag, is_advised);
                let case = format!("{kernel}, {defrag:?}, advised {is_advised}: {got:?}");
                let (alloc, fallback, stalls, woken) = got;
                assert_eq!(alloc + fallback, 1, "{case}");
                match does {
                    Does::Compacts => assert!(alloc == 1 && stalls > 0, "{case}"),
                    Does::Wakes => assert!(alloc == 0 && stalls == 0 && woken, "{case}"),
                    Does::Nothing => assert!(alloc == 0 && stalls == 0 && !woken, "{case}"),
                }
            }
        }
    }
}

/// What a fault does without a free huge page.
#[derive(Clone, Copy)]
enum Does {
    Compacts,
    Wakes,
    Nothing,
}

#[test]
fn forks_and_partial_unmaps_split() {
    let mut e = huge_machine("6.18");
    program(&mut e, "parent", |cx, p| {
        let area = heap(cx, p, 3 * HUGE_PAGES);
        cx.touch(p, area, &mut once(0..3 * HUGE_PAGES), true, 0)
            .unwrap();
        assert_eq!(thp(cx), (3, 0, 0));
        cx.with(|sim| stamp(sim, p, area));
        // The whole second one, and a part of the third.
        cx.discard(p, area, HUGE_PAGES..2 * HUGE_PAGES + 10);
        assert_eq!(thp(cx), (3, 0, 1));
        cx.with(|sim| {
            assert_eq!(check_stamps(sim, p, area), 2 * HUGE_PAGES - 10);
            sim.check(0).unwrap();
        });
        let child = cx.fork_process(p, &"child".into()).unwrap();
        assert_eq!(thp(cx), (3, 0, 2));
        cx.with(|sim| {
            check_stamps(sim, child, area);
            assert_eq!(sim.check(0).unwrap().anon, u64::from(2 * HUGE_PAGES - 10));
        });
        cx.destroy_process(child);
        let free = cx.with(|sim| free_blocks(sim));
        cx.unmap_area(p, area);
        cx.with(|sim| {
            sim.manager().drain_all();
            assert!(free_blocks(sim) >= free, "its frames join again");
            sim.check(0).unwrap();
        });
    });
    finish(&mut e, 60);
}

#[test]
fn reclaim_splits_and_swaps() {
    for kernel in ["5.6", "6.1", "6.18"] {
        let mut e = huge_machine(kernel);
        program(&mut e, "large", move |cx, p| {
            let pages = 24_000;
            let area = heap(cx, p, pages);
            for _ in 0..2 {
                cx.touch(p, area, &mut once(0..pages), true, 200).unwrap();
            }
            let (alloc, _, split) = thp(cx);
            assert!(alloc > 10 && split > 5, "{kernel}: {alloc}, {split}");
            cx.with(|sim| assert!(sim.kernel_ref().counters.pswpout > 5_000, "{kernel}"));
        });
        finish(&mut e, 600);
        let a = e.sim().check(0).unwrap();
        assert_eq!(a.anon, 0, "{kernel}");
        e.sim().manager_ref().inspect().validate().unwrap();
    }
}
