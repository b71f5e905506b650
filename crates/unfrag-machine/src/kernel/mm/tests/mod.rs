//! What the kernel does to memory: this file for single pages, the others for compaction and huge pages.

mod compaction;
mod huge;

use crate::engine::{Nanos, SEC, Spec, TaskId};
use crate::error::Fail;
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Engine};
use crate::mm::config::NEW_PAGE;
use crate::mm::counters::VmCounters;
use crate::mm::frames::Owner;
use crate::mm::frames::Use;
use crate::mm::process::ProcId;
use crate::test_support::{add_disk, add_swap, finish, machine_config};
use std::cell::RefCell;
use std::iter::once;
use std::rc::Rc;
use unfrag_eras::{Gfp, NodeId, Pfn, ZoneConfig, ZoneKind};

/// A machine of `frames` frames with a disk, swap of so many pages, and its daemons.
fn machine(kernel: &str, frames: u64, swap: u32) -> Engine {
    let mut config = machine_config(kernel, frames, 2);
    add_disk(&mut config, 4);
    if swap > 0 {
        add_swap(&mut config, 4 << 20, swap);
    }
    let mut engine = Engine::new(&config).unwrap();
    engine.sim().start_kswapd();
    engine
}

/// Runs `body` in a process, and ends the process.
fn program(
    engine: &mut Engine,
    name: &str,
    body: impl FnOnce(&mut Cx, ProcId) + 'static,
) -> TaskId {
    let name: Rc<str> = name.into();
    engine.spawn(Spec::new(name.clone()), move |cx| {
        let p = cx.create_process(Who::KERNEL, &name).unwrap();
        let task = cx.task_id();
        cx.with(|sim| sim.kernel().procs.get_mut(p).task = Some(task));
        body(cx, p);
        cx.destroy_process(p);
    })
}

fn heap(cx: &mut Cx, p: ProcId, pages: u32) -> u16 {
    cx.with(|sim| sim.map_anon(p, pages, true, None))
}

#[test]
fn touched_memory_lives_until_exit() {
    let mut e = machine("2.6.32", 16 << 8, 0);
    let free = e.sim().free_and_total().0;
    program(&mut e, "toucher", |cx, p| {
        let a = heap(cx, p, 1000);
        cx.touch(p, a, &mut once(0..1000), true, 100).unwrap();
        cx.touch(p, a, &mut once(0..1000), false, 100).unwrap();
        let (faults, account) =
            cx.with(|sim| (sim.kernel().counters.pgfault, sim.check(0).unwrap()));
        assert_eq!((faults, account.anon), (1000, 1000));
        // A directory and two tables of 512 pages.
        assert_eq!(account.kernel[Use::Table as usize], 3);
    });
    finish(&mut e, 10);
    let a = e.sim().check(0).unwrap();
    assert_eq!((a.anon, a.kernel[Use::Table as usize]), (0, 0));
    assert!(e.sim().free_and_total().0 + 64 > free);
}

/// The state of the machine after three processes touched more memory than there is, in runs of `len` pages.
fn touched_in_runs(kernel: &str, each: Nanos, len: usize) -> (u64, Nanos, String) {
    let mut e = machine(kernel, 24 << 8, 32 << 8);
    for i in 0..3 {
        program(&mut e, &format!("toucher{i}"), move |cx, p| {
            let a = heap(cx, p, 3000);
            for _ in 0..2 {
                let mut runs = (0..3000)
                    .step_by(len)
                    .map(|i| i..(i + len as u32).min(3000));
                cx.touch(p, a, &mut runs, true, each).unwrap();
            }
        });
    }
    finish(&mut e, 600);
    let sim = e.sim();
    let counters = format!(
        "{:?} {:?}",
        sim.kernel_ref().counters,
        sim.manager_ref().inspect().counters()
    );
    (sim.trace_hash(), sim.now(), counters)
}

#[test]
fn touching_a_run_equals_touching_single_pages() {
    for kernel in ["2.6.14", "2.6.28", "2.6.32", "6.1", "6.18"] {
        for each in [0, 130, 7_000] {
            let singly = touched_in_runs(kernel, each, 1);
            for len in [7, 3000] {
                let runs = touched_in_runs(kernel, each, len);
                assert_eq!(runs, singly, "{kernel}, {each} ns a page, {len} at a time");
            }
        }
    }
}

#[test]
fn a_fork_shares_pages_until_one_side_writes() {
    let mut e = machine("2.6.32", 16 << 8, 0);
    program(&mut e, "parent", |cx, p| {
        let a = heap(cx, p, 300);
        cx.touch(p, a, &mut once(0..300), true, 0).unwrap();
        let child = cx.fork_process(p, &"child".into()).unwrap();
        assert_eq!(cx.with(|sim| sim.check(0).unwrap().anon), 300);
        cx.touch(child, a, &mut once(0..100), true, 0).unwrap();
        let copies = cx.with(|sim| sim.kernel().counters.cow_copies);
        assert_eq!(
            (copies, cx.with(|sim| sim.check(0).unwrap().anon)),
            (100, 400)
        );
        cx.touch(p, a, &mut once(50..150), true, 0).unwrap();
        // Pages that the child has replaced belong to the parent alone: no copy.
        assert_eq!(cx.with(|sim| sim.kernel().counters.cow_copies), 150);
        cx.destroy_process(child);
        cx.with(|sim| sim.check(0).unwrap());
        cx.touch(p, a, &mut once(0..300), true, 0).unwrap();
        assert_eq!(cx.with(|sim| sim.kernel().counters.cow_copies), 150);
    });
    finish(&mut e, 10);
    e.sim().check(0).unwrap();
}

/// More memory than there is, touched three times, comes back from swap with the same ownership.
/// `mib` is the machine's memory.
fn swapping(kernel: &str, mib: u32) -> VmCounters {
    let name = kernel.to_owned();
    let mut e = machine(kernel, u64::from(mib) << 8, mib << 9);
    let pages = mib * 188;
    let swappers = [0, 1].map(|i| {
        let name = name.clone();
        program(&mut e, &format!("swapper{i}"), move |cx, p| {
            let a = heap(cx, p, pages);
            for write in [true, true, false] {
                cx.touch(p, a, &mut once(0..pages), write, 200)
                    .unwrap_or_else(|e| panic!("{name}: {e:?}"));
            }
        })
    });
    // The rest is written back.
    e.spawn(Spec::new("last"), move |cx| {
        swappers.into_iter().for_each(|t| cx.join(t));
        cx.sleep(10 * SEC);
    });
    finish(&mut e, 600);
    let a = e.sim().check(0).unwrap();
    assert_eq!((a.anon, a.swap_cache, a.orphans), (0, 0, 0), "{kernel}");
    let swap = e.sim().kernel().swap.as_ref().map(|s| s.used());
    assert_eq!(swap, Some(0), "{kernel}");
    e.sim().kernel().counters
}

#[test]
fn anonymous_memory_swaps_out_and_in() {
    // V19's blocks are 4 MiB: of 16 MiB it could not keep types apart. Modern kernels give up after 16
    // rounds without progress, while so little memory can all be on its way to the disk.
    for (kernel, mib) in [
        ("2.6.14", 32),
        ("v19", 64),
        ("2.6.24", 32),
        ("2.6.30", 32),
        ("2.6.31", 32),
        ("2.6.32", 32),
        ("2.6.36", 64),
        ("5.9", 128),
        ("6.1", 128),
        ("6.18", 128),
    ] {
        let c = swapping(kernel, mib);
        let pages = u64::from(mib) * 60;
        assert!(c.pswpout > pages && c.pswpin > pages, "{kernel}: {c:?}");
        assert!(
            c.pswpin > 2 * c.pgmajfault,
            "{kernel}: neighbours are read too: {c:?}"
        );
    }
}

#[test]
fn equal_runs_are_equal() {
    assert_eq!(swapping("2.6.32", 32), swapping("2.6.32", 32));
}

#[test]
fn oom_killer_kills_the_largest_process() {
    for kernel in ["2.6.32", "6.1"] {
        let mut e = machine(kernel, 16 << 8, 0);
        let done = Rc::new(RefCell::new(vec![]));
        for (name, pages) in [("small", 1000), ("large", 3900)] {
            let done = done.clone();
            program(&mut e, name, move |cx, p| {
                let a = heap(cx, p, pages);
                let ended = cx.touch(p, a, &mut once(0..pages), true, 1000);
                done.borrow_mut().push((name, ended));
                cx.sleep(SEC);
            });
        }
        finish(&mut e, 600);
        let mut done = done.take();
        done.sort_by_key(|d| d.0);
        assert_eq!(
            done,
            [("large", Err(Fail::Killed)), ("small", Ok(()))],
            "{kernel}"
        );
        assert_eq!(e.sim().kernel().counters.oom_victims, 1);
        e.sim().check(0).unwrap();
    }
}

#[test]
fn busy_owners_lose_nothing() {
    let mut config = machine_config("2.6.32", 16 << 8, 2);
    add_disk(&mut config, 4);
    config.mem.busy = (1, 3);
    add_swap(&mut config, 0, 16 << 8);
    let mut e = Engine::new(&config).unwrap();
    e.sim().start_kswapd();
    program(&mut e, "swapper", |cx, p| {
        let a = heap(cx, p, 5000);
        for _ in 0..3 {
            cx.touch(p, a, &mut once(0..5000), true, 200).unwrap();
        }
    });
    finish(&mut e, 600);
    assert!(e.sim().kernel().counters.busy_injected > 100);
    e.sim().check(0).unwrap();
}

/// A machine of two nodes with a CPU each, and swap.
fn two_nodes(kernel: &str) -> Engine {
    let mut config = machine_config(kernel, NODE, 2);
    let second = Pfn(config.zones[0].start.0 + NODE);
    let zone = ZoneConfig::whole(NodeId(1), ZoneKind::Normal, second, NODE);
    config.zones.push(zone);
    config.cpu_nodes = vec![NodeId(0), NodeId(1)];
    add_disk(&mut config, 4);
    add_swap(&mut config, 0, 64 << 8);
    let mut engine = Engine::new(&config).unwrap();
    engine.sim().start_kswapd();
    engine
}

/// Frames of each of two nodes.
const NODE: u64 = 32 << 8;

#[test]
fn pressure_on_a_node_wakes_its_kswapd_and_takes_its_pages() {
    for kernel in ["2.6.14", "2.6.32", "5.9", "6.18"] {
        let mut e = two_nodes(kernel);
        e.spawn(Spec::new("presses").on(1), move |cx| {
            let p = cx.create_process(Who::KERNEL, &"presses".into()).unwrap();
            let pages = NODE as u32 / 2;
            let a = heap(cx, p, pages);
            cx.touch(p, a, &mut once(0..pages), true, 100).unwrap();
            // Requests for this node alone do not fit beside that.
            let gfp = Gfp::KERNEL | Gfp::THISNODE;
            let held: Vec<Pfn> = (0..NODE / 2)
                .map(|_| {
                    let pfn = cx.alloc_pages(Who::KERNEL, 0, gfp).unwrap();
                    cx.with(|sim| sim.take_kernel(pfn, 0, Use::Other));
                    cx.spend_and_pay(1000);
                    pfn
                })
                .collect();
            cx.with(|sim| {
                assert!(held.iter().all(|&pfn| node_of(pfn) == 1), "{kernel}");
                let state = sim.kernel_ref();
                let anon = state.frames.owned().filter(|f| match f.1.owner() {
                    Owner::Anon(_) => node_of(f.0) == 0,
                    _ => false,
                });
                assert_eq!(anon.count(), 0, "{kernel}: node 0 was not needed");
                let m = sim.manager_ref().inspect();
                assert!(m.reclaim_counters().pgsteal_kswapd > 0, "{kernel}");
                let names = state.kswapd.iter().flat_map(|&t| sim.task_name(t));
                assert_eq!(names.collect::<Vec<_>>(), ["kswapd0", "kswapd1"]);
                let times = state.kswapd.iter().flat_map(|&t| sim.task_times(t));
                let system: Vec<_> = times.map(|t| t.system).collect();
                assert!(system[0] * 20 < system[1], "{kernel}: {system:?}");
            });
            held.into_iter()
                .for_each(|pfn| cx.with(|sim| sim.free_kernel(pfn)));
            cx.destroy_process(p);
            cx.sleep(10 * SEC);
        });
        finish(&mut e, 600);
        assert!(e.sim().kernel().counters.pswpout > 100, "{kernel}");
        e.sim().check(0).unwrap();
    }
}

fn node_of(pfn: Pfn) -> u8 {
    u8::from(pfn.0 >= 0x1000 + NODE)
}

#[test]
fn a_cpu_takes_memory_of_its_node_first() {
    let mut e = two_nodes("6.18");
    for cpu in [0, 1] {
        e.spawn(Spec::new("takes").on(cpu), move |cx| {
            for gfp in [Gfp::KERNEL, NEW_PAGE] {
                let pfn = cx.alloc_pages(Who::KERNEL, 0, gfp).unwrap();
                assert_eq!(usize::from(node_of(pfn)), cpu);
                cx.with(|sim| sim.give_frame(pfn, 0));
            }
        });
    }
    finish(&mut e, 10);
    e.sim().check(0).unwrap();
}
