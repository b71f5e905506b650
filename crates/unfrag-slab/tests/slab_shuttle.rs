//! Whole scenarios of several CPUs on one cache, with threads interleaved at every atomic operation
//! and every lock, at random. A program of its own, since it is built with `--cfg shuttle`. Run by
//! `checks/concurrency/run`.
#![cfg(shuttle)]

#[path = "caches/support.rs"]
mod support;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use std::ptr::NonNull;
use support::{Eras, Memory};
use unfrag::Gfp;
use unfrag_slab::{CacheOptions, Design, Due, FrameEntry, Rules, SlabConfig, Slabs};

const THREADS: u16 = 3;

struct Sent(NonNull<u8>, u64);
unsafe impl Send for Sent {}

/// What the threads share; leaked for as long as they run, then taken back.
struct World {
    memory: Memory<Eras>,
    table: Vec<FrameEntry>,
}

fn iterations() -> usize {
    let set = std::env::var("UNFRAG_ITERATIONS").ok();
    set.map_or(400, |n| n.parse().expect("a number"))
}

/// Runs a scenario under a scheduler, on stacks that a manager's boot fits on.
fn check(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    shuttle::Runner::new(scheduler, config).run(scenario);
}

fn random(scenario: impl Fn() + Send + Sync + 'static) {
    check(RandomScheduler::new(iterations()), scenario);
}

fn pct(scenario: impl Fn() + Send + Sync + 'static) {
    check(PctScheduler::new(3, iterations()), scenario);
}

/// Objects of 1 KiB, four or so a slab, so that slabs fill and empty all the time.
fn scenario(design: Design, rules: Rules, nodes: u8) {
    let memory: Memory<Eras> = Memory::new(nodes, 1024);
    let table = memory.table();
    let world = Box::into_raw(Box::new(World { memory, table }));
    // The threads end before it goes.
    let w: &'static mut World = unsafe { &mut *world };
    let config = SlabConfig::new(THREADS)
        .nodes(
            nodes,
            match nodes {
                1 => |_| 0,
                _ => |c| (c & 1) as u8,
            },
        )
        .rules(rules);
    let slabs = Slabs::new(&w.memory.pages, &mut w.table, &config).unwrap();
    let slabs: &'static Slabs<'static> = Box::leak(Box::new(slabs));
    let cache = slabs
        .create(&CacheOptions::new("shuttled", 1000).design(design))
        .unwrap();
    let cache = Arc::new(cache);
    let mail: Arc<Vec<Mutex<Vec<Sent>>>> =
        Arc::new((0..THREADS).map(|_| Mutex::new(vec![])).collect());
    let threads: Vec<_> = (0..THREADS)
        .map(|t| {
            let (cache, mail) = (cache.clone(), mail.clone());
            thread::spawn(move || {
                let cpu = slabs.cpu(t).unwrap();
                for round in 0..3u64 {
                    for i in 0..5u64 {
                        let object = match (t, i) {
                            (2, 3) => cache.alloc_without_cpu(Gfp::KERNEL).ok(),
                            (1, 2) => {
                                let mut two = [std::ptr::NonNull::dangling(); 2];
                                match cache.alloc_some_without_cpu(Gfp::KERNEL, &mut two) {
                                    0 => None,
                                    1 => Some(two[0]),
                                    _ => {
                                        unsafe { cache.free_bulk_without_cpu(&two[1..]) }.unwrap();
                                        Some(two[0])
                                    }
                                }
                            }
                            _ => cache.alloc(&cpu, Gfp::KERNEL).ok(),
                        };
                        let object = object.unwrap();
                        let value = u64::from(t) << 32 | round << 16 | i;
                        unsafe { object.cast::<u64>().write(value) };
                        let to = (u64::from(t) + i) % u64::from(THREADS);
                        mail[to as usize].lock().unwrap().push(Sent(object, value));
                    }
                    let got = std::mem::take(&mut *mail[usize::from(t)].lock().unwrap());
                    let mut some = vec![];
                    for (i, Sent(object, value)) in got.into_iter().enumerate() {
                        assert_eq!(unsafe { object.cast::<u64>().read() }, value);
                        unsafe { object.cast::<u64>().write(!0) };
                        match i {
                            0 | 2 => {
                                some.push(object);
                                continue;
                            }
                            3 => unsafe { cache.free_without_cpu(object) },
                            _ => unsafe { cache.free(&cpu, object) },
                        }
                        .unwrap();
                    }
                    unsafe { cache.free_bulk_without_cpu(&some) }.unwrap();
                    match (t, round) {
                        (0, 1) => drop(cache.shrink(&cpu)),
                        (1, 1) => cpu.reap(Due::ALL),
                        _ => {}
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let cpu = slabs.cpu(0).unwrap();
    for Sent(object, value) in mail
        .iter()
        .flat_map(|m| std::mem::take(&mut *m.lock().unwrap()))
    {
        assert_eq!(unsafe { object.cast::<u64>().read() }, value);
        unsafe { cache.free(&cpu, object) }.unwrap();
    }
    let cache = Arc::into_inner(cache).unwrap();
    assert_eq!(cache.shrink(&cpu).asked, 0);
    assert_eq!(cache.info().pages(), 0, "{design}");
    cache.destroy().unwrap();
    drop(cpu);
    unsafe {
        drop(Box::from_raw(std::ptr::from_ref(slabs).cast_mut()));
        assert_eq!((*world).memory.held(), 0);
        drop(Box::from_raw(world));
    }
}

#[test]
fn shuttle_slub_loses_no_object_and_no_page() {
    random(|| scenario(Design::Slub, Rules::MODERN, 1));
    random(|| scenario(Design::Slub, Rules::S2, 2));
    pct(|| scenario(Design::Slub, Rules::MODERN, 1));
}

#[test]
fn shuttle_slqb_loses_no_object_and_no_page() {
    random(|| scenario(Design::Slqb, Rules::MODERN, 1));
    pct(|| scenario(Design::Slqb, Rules::MODERN, 2));
}

#[test]
fn shuttle_slab_loses_no_object_and_no_page() {
    random(|| scenario(Design::Slab, Rules::MODERN, 2));
    pct(|| scenario(Design::Slab, Rules::MODERN, 1));
}
