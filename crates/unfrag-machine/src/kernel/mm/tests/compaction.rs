//! Compaction on the machine: moves by owners, the daemon, and those who use pages meanwhile.

use super::{heap, program};
use crate::block::DeviceId;
use crate::config::MachineConfig;
use crate::engine::{Nanos, Rng, SEC, Spec};
use crate::fs::{FsConfig, FsKind, Store};
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Engine, Sim};
use crate::mm::process::ProcId;
use crate::mm::thp::{HUGE_PAGES, Thp, ThpEnabled};
use crate::test_support::{add_disk, finish, machine_config};
use std::cell::Cell;
use std::iter::once;
use std::rc::Rc;
use unfrag_eras::stat::{CompactCounters, extfrag_for_order};
use unfrag_eras::{Order, Pfn, Sysctl, ZoneId};

/// Kernels with kcompactd.
const MODERN: [&str; 4] = ["5.6", "5.9", "6.1", "6.18"];
/// Frames of the machines here: 64 MiB.
const FRAMES: u64 = 64 << 8;
/// Pages of the process that fragments them.
const PAGES: u32 = 13_000;

/// A machine with its daemons, whose huge pages have to be asked for.
pub(super) fn machine(kernel: &str, sysctl: impl FnOnce(&mut Sysctl)) -> Engine {
    start(machine_config(kernel, FRAMES, 2), sysctl)
}

fn start(config: MachineConfig, sysctl: impl FnOnce(&mut Sysctl)) -> Engine {
    let mut config = config;
    config.mem.thp = Thp {
        enabled: ThpEnabled::Madvise,
        ..config.mem.thp
    };
    config.sysctl = config.sysctl.with(sysctl);
    let mut engine = Engine::new(&config).unwrap();
    engine.sim().start_daemons();
    engine
}

fn pfn_of(sim: &Sim, p: ProcId, area: u16, page: u32) -> Option<Pfn> {
    let kernel = sim.kernel_ref();
    let object = kernel.procs.get(p).area(area)?.object;
    kernel.objects.get(object).get(page).pfn()
}

/// Gives each page of an area that is there content of its own.
pub(super) fn stamp(sim: &mut Sim, p: ProcId, area: u16) {
    for page in 0..sim.area_pages(p, area) {
        if let Some(pfn) = pfn_of(sim, p, area, page) {
            sim.kernel().frames.writes[pfn.0 as usize] = page + 7;
        }
    }
}

/// Checks the content of each page, and returns how many there are.
pub(super) fn check_stamps(sim: &Sim, p: ProcId, area: u16) -> u32 {
    let pages = (0..sim.area_pages(p, area)).filter_map(|page| {
        let pfn = pfn_of(sim, p, area, page)?;
        let content = sim.kernel_ref().frames.writes[pfn.0 as usize];
        assert_eq!(content, page + 7, "page {page} at {pfn:?}");
        Some(page)
    });
    pages.count() as u32
}

/// A process's memory with a quarter of each 2 MiB, and no free block of 2 MiB beside it.
pub(super) fn fragment(cx: &mut Cx, p: ProcId) -> u16 {
    let area = heap(cx, p, PAGES);
    cx.touch(p, area, &mut once(0..PAGES), true, 0).unwrap();
    for from in (0..PAGES).step_by(HUGE_PAGES as usize) {
        let to = (from + HUGE_PAGES * 3 / 4).min(PAGES);
        cx.discard(p, area, from..to);
    }
    cx.with(|sim| stamp(sim, p, area));
    area
}

/// Takes all free blocks of 2 MiB and more, as a module would.
pub(super) fn take_whole_blocks(cx: &mut Cx) -> Vec<Pfn> {
    cx.with(|sim| {
        sim.manager().drain_all();
        let mut held = vec![];
        while free_blocks(sim) > 0 {
            let gfp = unfrag_eras::Gfp::USER | unfrag_eras::Gfp::MEMALLOC;
            let pfn = sim.alloc_now(Who::KERNEL, 9, gfp).unwrap();
            sim.take_kernel(pfn, 9, crate::mm::frames::Use::Pinned);
            held.push(pfn);
        }
        held
    })
}

pub(super) fn free_blocks(sim: &Sim) -> u64 {
    sim.manager_ref().inspect().zone(ZoneId(0)).nr_free[9..]
        .iter()
        .sum()
}

fn score(sim: &Sim) -> u64 {
    let free = sim.manager_ref().inspect().zone(ZoneId(0)).nr_free;
    extfrag_for_order(&free, Order::HUGE)
}

pub(super) fn compacted(sim: &Sim) -> CompactCounters {
    *sim.manager_ref().inspect().compact_counters()
}

fn kcompactd_time(sim: &Sim) -> Nanos {
    let tasks = sim.kernel_ref().kcompactd.iter();
    tasks
        .filter_map(|&t| sim.task_times(t))
        .map(|t| t.system)
        .sum()
}

#[test]
// `spec: 5.1, 5.3`
fn compact_memory_makes_blocks_and_keeps_every_page() {
    for kernel in ["2.6.36", "5.6", "5.9", "6.1", "6.18"] {
        let mut e = machine(kernel, |s| s.compaction_proactiveness = 0);
        program(&mut e, "holder", move |cx, p| {
            let area = fragment(cx, p);
            let before = cx.with(|sim| (free_blocks(sim), check_stamps(sim, p, area)));
            let from = cx.now();
            cx.compact_memory(Who::process(p));
            assert!(cx.now() - from > 1_000_000, "{kernel}: moves take time");
            cx.with(|sim| {
                sim.manager().drain_all();
                let moved = compacted(sim).pgmigrate_success;
                assert!(moved > 1000, "{kernel}: {moved}");
                let (had, has) = (before.0, free_blocks(sim));
                assert!(has > had + 3, "{kernel}: {had}, {has}");
                assert_eq!(check_stamps(sim, p, area), before.1, "{kernel}");
                sim.check(0).unwrap();
                sim.manager_ref().inspect().validate().unwrap();
            });
        });
        finish(&mut e, 60);
    }
}

#[test]
// `spec: 5.5`: it begins above the high score, ends at the low one, and sleeps.
fn kcompactd_works_ahead_of_demand_and_sleeps() {
    for kernel in ["5.9", "6.1", "6.18"] {
        let mut e = machine(kernel, |s| s.compaction_proactiveness = 40);
        program(&mut e, "holder", move |cx, p| {
            let area = fragment(cx, p);
            let (blocks, before) = (take_whole_blocks(cx), cx.with(|sim| score(sim)));
            assert!(before > 70, "{kernel}: {before}");
            cx.sleep(2 * SEC);
            let (spent, after) = cx.with(|sim| (kcompactd_time(sim), score(sim)));
            assert!(spent > 0 && after <= 70, "{kernel}: {spent} ns, {after}");
            cx.sleep(5 * SEC);
            cx.with(|sim| {
                // Looks at the score take next to no time.
                assert!(kcompactd_time(sim) - spent < 1_000_000, "{kernel}");
                check_stamps(sim, p, area);
                sim.check(0).unwrap();
                blocks.into_iter().for_each(|b| sim.free_kernel(b));
            });
        });
        finish(&mut e, 60);
    }
}

#[test]
// `spec: 5.5`: 0 waits for ever.
fn without_proactiveness_kcompactd_waits_to_be_asked() {
    for kernel in MODERN {
        let mut config = machine_config(kernel, FRAMES, 2);
        add_disk(&mut config, 4);
        let mut e = start(config, |s| {
            s.compaction_proactiveness = 0;
            // Large pieces are free: by the default that is lack of memory. `spec: 5.2`
            s.extfrag_threshold = 0;
        });
        let fs = e.sim().mount(&FsConfig {
            name: "disk".into(),
            kind: FsKind::Ext2,
            store: Store::Disk {
                device: DeviceId(0),
                sector: 0,
            },
            pages: 1 << 16,
        });
        program(&mut e, "holder", move |cx, p| {
            fragment(cx, p);
            // Clean pages, which kswapd can free.
            let root = cx.with(|sim| sim.root(fs));
            let file = cx.create_node(Who::KERNEL, root, false).unwrap();
            cx.write_file(Who::KERNEL, file, 0, 4_000).unwrap();
            cx.sync_all();
            let blocks = take_whole_blocks(cx);
            cx.sleep(2 * SEC);
            let idle = cx.with(|sim| compacted(sim));
            cx.sleep(5 * SEC);
            cx.with(|sim| assert_eq!(compacted(sim), idle, "{kernel}"));
            // A request that may not wait fails, and leaves the work to the daemons: kswapd frees twice the block,
            // and wakes kcompactd. `spec: 4.8, 5.4`
            let got = cx.with(|sim| sim.alloc_in_interrupt(10, unfrag_eras::Gfp::ATOMIC_MASK));
            assert!(got.is_err(), "{kernel}");
            cx.sleep(2 * SEC);
            cx.with(|sim| {
                let c = compacted(sim);
                assert!(
                    c.compact_daemon_wake > idle.compact_daemon_wake,
                    "{kernel}: {c:?}"
                );
                assert!(
                    c.pgmigrate_success > idle.pgmigrate_success,
                    "{kernel}: {c:?}"
                );
                assert_eq!(c.compact_stall, idle.compact_stall, "{kernel}");
                blocks.into_iter().for_each(|b| sim.free_kernel(b));
                sim.check(0).unwrap();
            });
        });
        finish(&mut e, 60);
    }
}

/// Two tasks use their pages at random while a third compacts. Returns a digest of the run.
fn used_while_moved(kernel: &'static str, seed: u64) -> (u64, String) {
    let mut e = machine(kernel, |s| s.compaction_proactiveness = 0);
    let waited = Rc::new(Cell::new(0));
    let compacting = Rc::new(Cell::new(true));
    let users = [0, 1].map(|i| {
        let (waited, compacting) = (waited.clone(), compacting.clone());
        program(&mut e, &format!("user{i}"), move |cx, p| {
            let pages = 4_000;
            let area = heap(cx, p, pages);
            // Writes of each page since it was new, or none if it is not there.
            let mut written = vec![None; pages as usize];
            let mut rng = Rng::named(seed + i, "uses");
            while compacting.get() {
                let page = rng.below(pages.into()) as u32;
                if rng.chance(1, 100) {
                    // Holes, so that there is something to move.
                    let part = page..(page + 64).min(pages);
                    written[part.start as usize..part.end as usize].fill(None);
                    cx.discard(p, area, part);
                    continue;
                }
                let from = cx.times().iowait;
                cx.touch(p, area, &mut once(page..page + 1), true, 300)
                    .unwrap();
                let times = &mut written[page as usize];
                *times = Some(times.map_or(0, |n| n + 1));
                waited.set(waited.get() + cx.times().iowait - from);
            }
            cx.with(|sim| {
                for (page, n) in (0..).zip(&written) {
                    let pfn = pfn_of(sim, p, area, page);
                    let content = pfn.map(|pfn| sim.kernel_ref().frames.writes[pfn.0 as usize]);
                    assert_eq!(content, *n, "{kernel}, seed {seed}: page {page}");
                }
            });
        })
    });
    e.spawn(Spec::new("compacts"), move |cx| {
        for _ in 0..20 {
            cx.sleep(SEC / 100);
            cx.compact_memory(Who::KERNEL);
        }
        compacting.set(false);
        users.into_iter().for_each(|t| cx.join(t));
    });
    finish(&mut e, 60);
    let sim = e.sim();
    sim.check(0).unwrap();
    let c = compacted(sim);
    assert!(c.pgmigrate_success > 500, "{kernel}, seed {seed}: {c:?}");
    assert!(waited.get() > 0, "{kernel}, seed {seed}: nobody waited");
    (
        sim.trace_hash(),
        format!("{c:?} {:?}", sim.kernel_ref().counters),
    )
}

#[test]
// `spec: 5.1`
fn whoever_uses_a_page_that_is_moved_waits_and_nothing_written_is_lost() {
    for kernel in ["2.6.36", "6.1", "6.18"] {
        used_while_moved(kernel, 1);
    }
}

#[test]
fn equal_runs_with_compaction_are_equal() {
    assert_eq!(used_while_moved("6.18", 5), used_while_moved("6.18", 5));
}
