//! The behaviour of each design, and what all three have in common.

use super::support::Memory;
use std::ptr::NonNull;
use unfrag::Gfp;
use unfrag_slab::{
    CacheFlags, CacheOptions, Cpu, Design, Due, FirstAttempt, KmemCache, Rules, SlabConfig, Slabs,
    SlubRules,
};

fn config(cpus: u16, nodes: u8, rules: Rules) -> SlabConfig {
    let node_of_cpu: fn(u16) -> u8 = match nodes {
        1 => |_| 0,
        _ => |c| u8::from(c == 3),
    };
    SlabConfig::new(cpus).nodes(nodes, node_of_cpu).rules(rules)
}

/// Two CPUs on node 0; with two nodes, CPU 3 is on node 1.
fn with(design: Design, nodes: u8, f: impl Fn(&Memory, &Slabs)) {
    let rules = Rules::S2.design(design);
    let memory = Memory::new(nodes, 4096);
    memory.with(&config(4, nodes, rules), |s| f(&memory, s));
}

fn take(cache: &KmemCache, cpu: &Cpu, n: usize) -> Vec<NonNull<u8>> {
    (0..n)
        .map(|_| cache.alloc(cpu, Gfp::KERNEL).unwrap())
        .collect()
}

fn give(cache: &KmemCache, cpu: &Cpu, objects: Vec<NonNull<u8>>) {
    for o in objects {
        unsafe { cache.free(cpu, o) }.unwrap();
    }
}

#[test]
fn objects_are_aligned_zeroed_on_demand_and_constructed_once() {
    fn ctor(object: NonNull<u8>) {
        unsafe { object.as_ptr().write_bytes(0x17, 100) };
    }
    for design in Design::ALL {
        with(design, 1, |_, s| {
            let cpu = s.cpu(0).unwrap();
            let lined = s
                .create(&CacheOptions::new("lined", 100).flags(CacheFlags::HWCACHE_ALIGN))
                .unwrap();
            for o in take(&lined, &cpu, 100) {
                assert_eq!(o.as_ptr() as usize % 64, 0);
                unsafe { o.as_ptr().write_bytes(0xff, 100) };
                unsafe { lined.free(&cpu, o) }.unwrap();
            }
            let zeroed = lined.alloc(&cpu, Gfp::KERNEL | Gfp::ZERO).unwrap();
            let bytes = unsafe { std::slice::from_raw_parts(zeroed.as_ptr(), 100) };
            assert!(bytes.iter().all(|b| *b == 0));
            unsafe { lined.free(&cpu, zeroed) }.unwrap();

            let options = unsafe { CacheOptions::new("made", 100).ctor(ctor) };
            let made = s.create(&options).unwrap();
            for _ in 0..2 {
                // Freed as it was made, an object is still so when it comes back.
                let all = take(&made, &cpu, 200);
                for o in &all {
                    let bytes = unsafe { std::slice::from_raw_parts(o.as_ptr(), 100) };
                    assert!(bytes.iter().all(|b| *b == 0x17), "{design}");
                }
                give(&made, &cpu, all);
            }
        });
    }
}

#[test]
fn a_cache_with_live_objects_is_not_destroyed_and_says_so() {
    for design in Design::ALL {
        with(design, 1, |_, s| {
            let cpu = s.cpu(0).unwrap();
            let cache = s.create(&CacheOptions::new("inode_cache", 560)).unwrap();
            let mut all = take(&cache, &cpu, 30);
            let kept = all.split_off(28);
            give(&cache, &cpu, all);
            let error = cache.destroy().unwrap_err();
            assert_eq!(error.live, 2);
            let text = error.to_string();
            assert!(
                text.contains("inode_cache") && text.contains("2 objects"),
                "{text}"
            );
            let cache = error.cache;
            give(&cache, &cpu, kept);
            cache.destroy().unwrap();
            assert_eq!(s.slab_pages(), 0);
        });
    }
}

#[test]
fn a_dropped_cache_with_live_objects_keeps_their_memory() {
    let memory = Memory::new(1, 4096);
    let mut table = memory.table();
    let slabs = Slabs::new(&memory.pages, &mut table, &SlabConfig::default()).unwrap();
    let cpu = slabs.cpu(0).unwrap();
    let cache = slabs.create(&CacheOptions::new("kept", 64)).unwrap();
    let object = cache.alloc(&cpu, Gfp::KERNEL).unwrap();
    drop(cache);
    assert_eq!(slabs.slab_pages(), 1);
    unsafe { object.as_ptr().write(1) };
    drop(cpu);
    drop(slabs);
    assert!(memory.held() > 0, "memory in use does not go back");
}

#[test]
fn wrong_options_are_answered_with_what_is_right() {
    with(Design::Slub, 1, |_, s| {
        let error = |o: &CacheOptions| s.create(o).unwrap_err().to_string();
        assert!(error(&CacheOptions::new("", 8)).contains("31"));
        assert!(error(&CacheOptions::new(&"x".repeat(32), 8)).contains("31"));
        assert!(error(&CacheOptions::new("a", 0)).contains("0 bytes"));
        assert!(error(&CacheOptions::new("a", 5 << 20)).contains("4 MiB"));
        assert!(error(&CacheOptions::new("a", 8).align(24)).contains("24"));
        assert!(error(&CacheOptions::new("a", 8).align(8192)).contains("4096"));
        assert!(s.cpu(9).unwrap_err().to_string().contains('9'));
        let _cpu = s.cpu(0).unwrap();
        assert!(s.cpu(0).unwrap_err().to_string().contains("out"));
        assert_eq!(s.any_cpu().unwrap().id(), 1);
    });
}

#[test]
fn a_bulk_allocation_is_all_or_nothing() {
    for design in Design::ALL {
        with(design, 1, |memory, s| {
            let cpu = s.cpu(0).unwrap();
            let cache = s.create(&CacheOptions::new("bulk", 256)).unwrap();
            let mut many = [NonNull::dangling(); 100];
            cache.alloc_bulk(&cpu, Gfp::KERNEL, &mut many).unwrap();
            unsafe { cache.free_bulk(&cpu, &many) }.unwrap();
            cache.shrink(&cpu);
            assert_eq!(cache.info().pages(), 0);
            // Two slabs can be had, which is not enough.
            memory
                .pages
                .budget
                .store(4, std::sync::atomic::Ordering::Relaxed);
            assert!(cache.alloc_bulk(&cpu, Gfp::KERNEL, &mut many).is_err());
            memory
                .pages
                .budget
                .store(u64::MAX, std::sync::atomic::Ordering::Relaxed);
            cache.shrink(&cpu);
            assert_eq!(
                cache.info().active_objects,
                0,
                "{design}: nothing is left out"
            );
        });
    }
}

#[test]
fn an_object_of_a_node_comes_from_that_node() {
    for design in Design::ALL {
        with(design, 2, |memory, s| {
            let cpu = s.cpu(0).unwrap();
            let far = s.cpu(3).unwrap();
            let cache = s.create(&CacheOptions::new("numa", 192)).unwrap();
            let window = unfrag_slab::Pages::window(&memory.pages);
            let node = |o: &NonNull<u8>| {
                let frame = (o.as_ptr() as usize - window.base.as_ptr() as usize) / 4096;
                u8::from(frame >= 4096)
            };
            let mut all = vec![];
            for n in [0, 1, 1, 0, 1] {
                for _ in 0..30 {
                    let o = cache
                        .alloc_on(&cpu, Gfp::KERNEL | Gfp::THISNODE, n)
                        .unwrap();
                    assert_eq!(node(&o), n, "{design}");
                    all.push(o);
                }
            }
            let own = take(&cache, &far, 50);
            assert!(own.iter().all(|o| node(o) == 1), "{design}");
            all.extend(own);
            assert!(
                cache.alloc_on(&cpu, Gfp::KERNEL, 2).is_err(),
                "no such node"
            );
            // Each CPU frees objects of both nodes.
            let half = all.split_off(all.len() / 2);
            give(&cache, &far, all);
            give(&cache, &cpu, half);
            drop(far);
            cache.shrink(&cpu);
            assert_eq!(cache.info().pages(), 0, "{design}");
        });
    }
}

#[test]
fn shrink_asks_cpus_whose_token_is_out() {
    for design in Design::ALL {
        with(design, 1, |_, s| {
            let (a, b) = (s.cpu(0).unwrap(), s.cpu(1).unwrap());
            let cache = s.create(&CacheOptions::new("busy", 64)).unwrap();
            let mine = take(&cache, &b, 10);
            give(&cache, &b, mine);
            let shrunk = cache.shrink(&a);
            assert_eq!((shrunk.asked, cache.info().pages()), (1, 1), "{design}");
            b.reap(Due::default());
            cache.shrink(&a);
            assert_eq!(cache.info().pages(), 0, "{design}");
        });
    }
}

/// `spec: 6.2`
#[test]
fn slub_merges_caches_that_differ_in_name_only() {
    with(Design::Slub, 1, |_, s| {
        let names = |s: &Slabs| {
            let mut all = vec![];
            s.each_cache(|c| all.push(c.name.to_string()));
            all
        };
        let first = s.create(&CacheOptions::new("first", 100)).unwrap();
        let second = s.create(&CacheOptions::new("second", 104)).unwrap();
        assert!(first.is_merged() && second.name() == first.name());
        // Larger by a word, other properties, a constructor, checks: none of these shares.
        let other = s.create(&CacheOptions::new("smaller", 96)).unwrap();
        assert!(!other.is_merged());
        let flags = [
            CacheFlags::RECLAIM_ACCOUNT,
            CacheFlags::POISON,
            CacheFlags::NO_MERGE,
        ];
        let apart: Vec<KmemCache> = flags
            .iter()
            .map(|f| {
                s.create(&CacheOptions::new("apart", 104).flags(*f))
                    .unwrap()
            })
            .collect();
        assert!(apart.iter().all(|c| !c.is_merged()));
        assert_eq!(names(s).len(), 5);
        let cpu = s.cpu(0).unwrap();
        let object = second.alloc(&cpu, Gfp::KERNEL).unwrap();
        first.destroy().unwrap();
        assert_eq!(names(s).len(), 5, "the second still needs it");
        unsafe { second.free(&cpu, object) }.unwrap();
        second.destroy().unwrap();
        assert_eq!(names(s).len(), 4);
    });
}

fn slub(first_attempt: FirstAttempt) -> Rules {
    Rules::S2.slub(SlubRules::V2_6_28.first_attempt(first_attempt))
}

/// The requests of the first slab of names_cache, whose order is 3.
fn requests(rules: Rules, gfp: Gfp, taken: usize) -> Vec<(u8, Gfp, bool, bool)> {
    let memory = Memory::new(1, 4096);
    memory.with(&config(1, 1, rules), |s| {
        let cpu = s.cpu(0).unwrap();
        let cache = s.create(&CacheOptions::new("names_cache", 4096)).unwrap();
        let other = s
            .create(&CacheOptions::new("filler", 4096).design(Design::Slqb))
            .unwrap();
        let filler = take(&other, &cpu, taken);
        *memory.pages.requests.lock().unwrap() = Some(vec![]);
        let object = cache.alloc(&cpu, gfp).unwrap();
        let seen = memory.pages.requests.lock().unwrap().take().unwrap();
        unsafe { cache.free(&cpu, object) }.unwrap();
        give(&other, &cpu, filler);
        let slabs = seen
            .iter()
            .filter(|(r, _)| r.gfp.contains(Gfp::COMP) || r.order > 0);
        slabs
            .map(|(r, got)| (r.order, r.gfp, r.first_pass_only, *got))
            .collect()
    })
}

/// `spec: 6.5`
#[test]
fn remedies_of_source_s2_change_the_first_attempt_alone() {
    let historic = (Gfp::KERNEL | Gfp::NOWARN | Gfp::NORETRY | Gfp::COMP) - Gfp::NOFAIL;
    let first = |rule| {
        let all = requests(slub(rule), Gfp::KERNEL | Gfp::NOFAIL, 0);
        assert_eq!((all.len(), all[0].0, all[0].3), (1, 3, true), "{rule:?}");
        (all[0].1, all[0].2)
    };
    assert_eq!(first(FirstAttempt::Historic), (historic, false));
    assert_eq!(
        first(FirstAttempt::IfPlentyFree),
        (historic, false),
        "plenty is free"
    );
    let no_wait = historic - Gfp::DIRECT_RECLAIM;
    assert_eq!(
        first(FirstAttempt::NoWait),
        (no_wait, false),
        "still wakes kswapd"
    );
    let no_wake = (no_wait - Gfp::KSWAPD_RECLAIM) | Gfp::NOMEMALLOC;
    assert_eq!(first(FirstAttempt::NoWake), (no_wake, false));
    assert_eq!(first(FirstAttempt::FirstPassOnly), (no_wake, true));
}

/// `spec: 6.5 (a)`
#[test]
#[cfg_attr(miri, ignore = "it fills megabytes")]
fn no_high_order_attempt_below_an_eighth_free() {
    // 4096 pages; 3600 are taken, and less than 512 are free.
    let all = requests(slub(FirstAttempt::IfPlentyFree), Gfp::KERNEL, 3600);
    assert!(all.is_empty(), "no request above order 0: {all:?}");
    let all = requests(slub(FirstAttempt::IfPlentyFree), Gfp::KERNEL, 3000);
    assert_eq!(all.len(), 1);
}

/// `spec: 6.2`
#[test]
#[cfg_attr(miri, ignore = "it fills megabytes")]
fn a_failed_order_falls_back_to_the_least() {
    let memory = Memory::new(1, 4096);
    memory.with(&config(1, 1, slub(FirstAttempt::NoWake)), |s| {
        let cpu = s.cpu(0).unwrap();
        let names = s.create(&CacheOptions::new("names_cache", 4096)).unwrap();
        let all = take(&names, &cpu, 8);
        assert_eq!((names.info().order, names.info().slabs_of_order[3]), (3, 1));
        // Every other page of the rest is taken: no block of order 1 is left.
        let single = s
            .create(&CacheOptions::new("page", 4096).design(Design::Slqb))
            .unwrap();
        let mut pages = vec![];
        while let Ok(o) = single.alloc(&cpu, Gfp::KERNEL | Gfp::MEMALLOC) {
            pages.push(o);
        }
        pages.sort();
        let mut n = 0;
        pages.retain(|o| {
            n += 1;
            n % 2 == 0 || unsafe { single.free(&cpu, *o) }.is_err()
        });
        single.shrink(&cpu);
        let more = take(&names, &cpu, 2);
        let info = names.info();
        assert_eq!(
            (info.order_fallbacks, info.slabs_of_order[0]),
            (2, 2),
            "{info:?}"
        );
        give(&names, &cpu, all);
        give(&names, &cpu, more);
        give(&single, &cpu, pages);
    });
}

/// `spec: 6.2`
#[test]
fn slub_keeps_empty_slabs_since_6_x() {
    let pages_left = |rules: Rules| {
        let memory = Memory::new(1, 4096);
        memory.with(&config(2, 1, rules), |s| {
            let (a, b) = (s.cpu(0).unwrap(), s.cpu(1).unwrap());
            let cache = s.create(&CacheOptions::new("filp", 192)).unwrap();
            // Ten slabs and the CPU's own; everything is freed elsewhere, the first slabs first.
            let all = take(&cache, &a, 21 * 11);
            give(&cache, &b, all);
            cache.info().pages()
        })
    };
    assert_eq!(pages_left(Rules::S2), 1, "the slab that the CPU holds");
    let modern = pages_left(Rules::MODERN);
    assert!((2..=11).contains(&modern), "{modern} pages: some are kept");
}

/// `spec: 6.4`
#[test]
fn frees_to_the_own_slab_are_fast() {
    for design in [Design::Slub, Design::Slqb] {
        with(design, 1, |_, s| {
            let (a, b) = (s.cpu(0).unwrap(), s.cpu(1).unwrap());
            let cache = s.create(&CacheOptions::new("filp", 192)).unwrap();
            let all = take(&cache, &a, 10);
            give(&cache, &b, all);
            let info = cache.info();
            assert_eq!((info.free_fast, info.free_slow), (0, 10));
            assert_eq!((info.allocs(), info.alloc_slow), (10, 1));
            assert_eq!(info.percent_fast(), (90, 0));
            for _ in 0..90 {
                give(&cache, &a, take(&cache, &a, 1));
            }
            assert_eq!(cache.info().free_fast, 90);
            assert_eq!(cache.info().percent_fast().1, 90);
        });
    }
}

/// `spec: 6.3`
#[test]
fn slqb_queues_remote_frees_in_batches() {
    with(Design::Slqb, 1, |_, s| {
        let (a, b) = (s.cpu(0).unwrap(), s.cpu(1).unwrap());
        // freebatch is 64, hiwater 256 for a page.
        let cache = s.create(&CacheOptions::new("page", 4096)).unwrap();
        let mut all = take(&cache, &a, 64);
        let last = all.pop().unwrap();
        give(&cache, &b, all);
        let before = cache.info().pages();
        let one = take(&cache, &a, 1);
        assert_eq!(
            cache.info().pages(),
            before + 1,
            "a list below the batch stays with CPU 1"
        );
        unsafe { cache.free(&b, last) }.unwrap();
        let back = take(&cache, &a, 64);
        assert_eq!(
            cache.info().pages(),
            before + 1,
            "64 objects came back at once"
        );
        let info = cache.info();
        assert_eq!(info.active_objects, 65);
        give(&cache, &a, one);
        give(&cache, &a, back);
    });
}

/// `spec: 6.3`
#[test]
#[cfg_attr(miri, ignore = "it fills megabytes")]
fn slqb_frees_into_slabs_when_the_queue_is_long() {
    with(Design::Slqb, 1, |_, s| {
        let (a, b) = (s.cpu(0).unwrap(), s.cpu(1).unwrap());
        let cache = s.create(&CacheOptions::new("page", 4096)).unwrap();
        // Above hiwater / 2 = 128 objects on the queue, the next list goes straight to the slabs,
        // which are empty then, and go.
        let all = take(&cache, &a, 400);
        give(&cache, &b, all);
        let pages = cache.info().pages();
        assert_eq!(
            pages,
            400 - 3 * 64,
            "of six lists three went to the slabs, 16 objects wait"
        );
    });
}

/// `spec: 6.3`
#[test]
fn slqb_gives_a_batch_back_above_the_high_mark() {
    with(Design::Slqb, 1, |_, s| {
        let a = s.cpu(0).unwrap();
        let cache = s.create(&CacheOptions::new("page", 4096)).unwrap();
        let all = take(&cache, &a, 300);
        give(&cache, &a, all);
        // 257 free ones are too many: 64 go, and with them their slabs; 193 + 43 stay.
        assert_eq!(cache.info().pages(), 236);
        a.reap(Due::ALL);
        assert_eq!(cache.info().pages(), 236 - 64, "the trim returns a batch");
    });
}

/// `spec: 6.1`
#[test]
fn slab_arrays_fill_and_drain_by_batches() {
    with(Design::Slab, 1, |_, s| {
        let a = s.cpu(0).unwrap();
        let cache = s.create(&CacheOptions::new("size-192", 192)).unwrap();
        let info = || cache.info();
        assert_eq!(
            (info().limit, info().batch, info().shared_factor),
            (120, 60, 8)
        );
        // An array that was not in use gets 16 at first, then batches of 60, or what there is.
        let one = take(&cache, &a, 1);
        assert_eq!(info().active_objects, 16, "active: in the array or in use");
        let all = take(&cache, &a, 15 + 60);
        // The first slab's last four, then three slabs of 20.
        assert_eq!((info().alloc_slow, info().alloc_fast), (5, 71));
        // It holds 120; the next free moves 60 to the shared array.
        let more = take(&cache, &a, 60);
        give(&cache, &a, one);
        give(&cache, &a, all);
        let before = info().shared_available;
        give(&cache, &a, more);
        assert_eq!((before, info().shared_available), (0, 60));
        assert_eq!(info().free_slow, 1);
        // The reaper leaves an array in use alone once, then returns a fifth: 24.
        let on_arrays = |i: unfrag_slab::CacheInfo| i.active_objects;
        let mut due = Due::default();
        due.reap_cpu = true;
        let before = on_arrays(info());
        a.reap(due);
        assert_eq!(on_arrays(info()), before);
        a.reap(due);
        assert_eq!(on_arrays(info()), before - 24);
    });
}

/// `spec: 6.1`
#[test]
fn slab_keeps_free_slabs_up_to_its_limit() {
    with(Design::Slab, 1, |_, s| {
        let a = s.cpu(0).unwrap();
        let cache = s.create(&CacheOptions::new("size-4096", 4096)).unwrap();
        let all = take(&cache, &a, 400);
        give(&cache, &a, all);
        // limit 24, batch 12, shared 96, and (1 + 4) × 12 + 1 = 61 free objects in slabs.
        let info = cache.info();
        assert!(info.pages() <= 24 + 96 + 61, "{} pages", info.pages());
        assert!(info.total_slabs - info.active_slabs <= 61);
    });
}

/// `spec: 6.1`
#[test]
fn slab_colours_move_the_first_object_by_cache_lines() {
    with(Design::Slab, 1, |_, s| {
        let a = s.cpu(0).unwrap();
        let cache = s.create(&CacheOptions::new("size-700", 700)).unwrap();
        // Five of 704 bytes leave 576 bytes: nine steps, ten colours.
        let all = take(&cache, &a, 60);
        let lowest = |page: usize| {
            let of = all.iter().map(|o| o.as_ptr() as usize);
            of.filter(|o| o / 4096 == page).min().unwrap() % 4096
        };
        let mut pages: Vec<usize> = all.iter().map(|o| o.as_ptr() as usize / 4096).collect();
        pages.sort();
        pages.dedup();
        let mut colours: Vec<usize> = pages.into_iter().map(lowest).collect();
        colours.sort();
        colours.dedup();
        assert_eq!(colours, [0, 64, 128, 192, 256, 320, 384, 448, 512, 576]);
        give(&cache, &a, all);
    });
}

#[test]
fn validate_names_the_cache_whose_free_chain_was_overwritten() {
    with(Design::Slub, 1, |_, s| {
        let cpu = s.cpu(0).unwrap();
        let cache = s.create(&CacheOptions::new("filp", 192)).unwrap();
        // The first slab of 21 is full, so that its frees go to its own chain.
        let mut all = take(&cache, &cpu, 22);
        let freed = all[..2].to_vec();
        give(&cache, &cpu, all.drain(..2).collect());
        s.validate().unwrap();
        let link = freed[1].cast::<usize>();
        let before = unsafe { link.read() };
        assert_eq!(
            before,
            freed[0].as_ptr() as usize,
            "chained, the last first"
        );
        unsafe { link.write(before + 8) };
        let broken = s.validate().unwrap_err();
        assert!(
            broken.to_string().contains("filp: a free chain"),
            "{broken}"
        );
        unsafe { link.write(before) };
        s.validate().unwrap();
        give(&cache, &cpu, all);
    });
}
