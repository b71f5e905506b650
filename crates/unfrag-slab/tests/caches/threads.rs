//! Many threads on one cache: each frees objects that others allocated, and checks their content. Also run under the
//! address sanitizer.

use super::support::Memory;
use std::ptr::NonNull;
use std::sync::Mutex;
use unfrag::Gfp;
use unfrag_slab::{CacheFlags, CacheOptions, Design, Due, Rules, SlabConfig};

const THREADS: u16 = 4;

struct Sent(NonNull<u8>, u64);
unsafe impl Send for Sent {}

fn rounds() -> u64 {
    let set = std::env::var("UNFRAG_ROUNDS").ok();
    let standard = if cfg!(miri) { 100 } else { 40_000 };
    set.map_or(standard, |n| n.parse().expect("a number"))
}

fn run(design: Design, rules: Rules, size: usize, flags: CacheFlags, rounds: u64) {
    let memory = Memory::new(2, 4096);
    let config = SlabConfig::new(THREADS)
        .nodes(2, |c| (c & 1) as u8)
        .rules(rules);
    memory.with(&config, |slabs| {
        let options = CacheOptions::new("shared", size)
            .design(design)
            .flags(flags);
        let cache = slabs.create(&options).unwrap();
        let mail: Vec<Mutex<Vec<Sent>>> = (0..THREADS).map(|_| Mutex::default()).collect();
        std::thread::scope(|threads| {
            for t in 0..THREADS {
                let (cache, mail) = (&cache, &mail);
                threads.spawn(move || {
                    let cpu = slabs.cpu(t).unwrap();
                    let mut random = 0x9e37_79b9_7f4a_7c15u64 ^ u64::from(t);
                    let free = |Sent(object, value): Sent, without_cpu: bool| {
                        let object = object.cast::<u64>();
                        assert_eq!(unsafe { object.read() }, value, "{design}");
                        unsafe { object.write(!0) };
                        match without_cpu {
                            true => unsafe { cache.free_without_cpu(object.cast()) },
                            false => unsafe { cache.free(&cpu, object.cast()) },
                        }
                        .unwrap();
                    };
                    let mut mine = vec![];
                    for i in 0..rounds {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let value = u64::from(t) << 32 | i;
                        if random >> 32 & 63 == 5 {
                            let mut some = [NonNull::dangling(); 12];
                            let count = cache.alloc_some_without_cpu(Gfp::KERNEL, &mut some);
                            for object in &some[..count] {
                                unsafe { object.cast::<u64>().write(value) };
                                mine.push(Sent(*object, value));
                            }
                        }
                        let got = match random >> 32 & 15 {
                            0 => cache.alloc_without_cpu(Gfp::KERNEL),
                            _ => cache.alloc(&cpu, Gfp::KERNEL),
                        };
                        if let Ok(object) = got {
                            unsafe { object.cast::<u64>().write(value) };
                            mine.push(Sent(object, value));
                        }
                        match random % 8 {
                            0..4 => mine.pop().into_iter().for_each(|s| free(s, false)),
                            4 if random & 512 != 0 => {
                                let some: Vec<NonNull<u8>> = mine.drain(..).map(|s| s.0).collect();
                                unsafe { cache.free_bulk_without_cpu(&some) }.unwrap();
                            }
                            4 => mine.drain(..).for_each(|s| free(s, false)),
                            5 if mine.len() > 20 => {
                                let to = (random >> 8) % u64::from(THREADS);
                                mail[to as usize].lock().unwrap().append(&mut mine);
                            }
                            _ => {}
                        }
                        let got = std::mem::take(&mut *mail[usize::from(t)].lock().unwrap());
                        got.into_iter()
                            .for_each(|s| free(s, random & 256 == 0 && i % 32 == 0));
                        if random.is_multiple_of(4096) {
                            cache.shrink(&cpu);
                        }
                        if random % 2048 == 1 {
                            cpu.reap(Due::ALL);
                        }
                    }
                    mail[usize::from(t)].lock().unwrap().append(&mut mine);
                });
            }
        });
        let cpu = slabs.cpu(0).unwrap();
        for Sent(object, value) in mail
            .iter()
            .flat_map(|m| std::mem::take(&mut *m.lock().unwrap()))
        {
            assert_eq!(unsafe { object.cast::<u64>().read() }, value);
            unsafe { cache.free(&cpu, object) }.unwrap();
        }
        let shrunk = cache.shrink(&cpu);
        assert_eq!((shrunk.asked, cache.info().pages()), (0, 0), "{design}");
    });
}

#[test]
fn threads_free_each_others_objects_slub() {
    for rules in [Rules::MODERN, Rules::S2] {
        for size in [24, 192, 2048] {
            run(Design::Slub, rules, size, CacheFlags::empty(), rounds());
        }
    }
}

#[test]
fn threads_free_each_others_objects_slqb() {
    for size in [24, 2048, 4096] {
        run(
            Design::Slqb,
            Rules::MODERN,
            size,
            CacheFlags::empty(),
            rounds(),
        );
    }
}

#[test]
fn threads_free_each_others_objects_slab() {
    for size in [24, 192, 2048] {
        run(
            Design::Slab,
            Rules::MODERN,
            size,
            CacheFlags::empty(),
            rounds(),
        );
    }
}

#[test]
fn threads_free_each_others_objects_in_checked_caches() {
    for design in Design::ALL {
        run(design, Rules::MODERN, 64, CacheFlags::DEBUG, rounds() / 4);
    }
}

#[test]
fn caches_come_and_go_while_others_work() {
    for design in Design::ALL {
        let memory = Memory::new(1, 4096);
        let config = SlabConfig::new(THREADS);
        memory.with(&config, |slabs| {
            std::thread::scope(|threads| {
                for t in 0..THREADS {
                    threads.spawn(move || {
                        let cpu = slabs.cpu(t).unwrap();
                        for i in 0..rounds() / 100 {
                            let options = CacheOptions::new("passing", 40 + 8 * (i % 3) as usize);
                            let cache = slabs.create(&options.design(design)).unwrap();
                            let all: Vec<_> = (0..50)
                                .map(|_| cache.alloc(&cpu, Gfp::KERNEL).unwrap())
                                .collect();
                            for o in all {
                                unsafe { cache.free(&cpu, o) }.unwrap();
                            }
                            // Merged caches (SLUB) may have another thread's objects.
                            drop(cache);
                            cpu.reap(Due::ALL);
                        }
                    });
                }
            });
        });
    }
}
