//! Memory by size, typed caches, and the waste of S2's mix of objects.

use super::support::{Memory, few};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use unfrag::Gfp;
use unfrag_slab::formulas::{bytes, order_and_objects};
use unfrag_slab::{Cache, CacheFlags, CacheOptions, Design, FaultKind, Kmalloc, Rules, SlabConfig};

fn two_cpus() -> SlabConfig {
    SlabConfig::new(2)
}

#[test]
#[cfg_attr(miri, ignore = "it fills megabytes")]
fn kmalloc_serves_every_size_and_takes_it_back_by_address_alone() {
    for design in Design::ALL {
        let memory = Memory::new(1, 8192);
        memory.with(&two_cpus(), |s| {
            let (cpu, other) = (s.cpu(0).unwrap(), s.cpu(1).unwrap());
            let k = Kmalloc::new(s, design, CacheFlags::empty()).unwrap();
            let mut all = vec![];
            for size in (1..10_000)
                .step_by(37)
                .chain([100_000, 131_072, 131_073, 1 << 20])
            {
                let p = k.alloc(&cpu, size, Gfp::KERNEL | Gfp::ZERO).unwrap();
                let usable = unsafe { k.usable_size(p) }.unwrap();
                assert!(usable >= size && usable <= (2 * size).max(32).next_multiple_of(4096));
                let zeroed = unsafe { std::slice::from_raw_parts(p.as_ptr(), size) };
                assert!(zeroed.iter().all(|b| *b == 0));
                unsafe { p.as_ptr().write_bytes(size as u8, usable) };
                all.push((p, size));
            }
            for (p, size) in all {
                let bytes = unsafe { std::slice::from_raw_parts(p.as_ptr(), size) };
                assert!(bytes.iter().all(|b| *b == size as u8), "{design} {size}");
                unsafe { k.free(&other, p) }.unwrap();
            }
            drop(other);
            k.shrink(&cpu);
            assert_eq!(s.slab_pages(), 0, "{design}");
            assert!(k.alloc(&cpu, 5 << 20, Gfp::KERNEL).is_err(), "above 4 MiB");
        });
    }
}

#[test]
fn kmalloc_refuses_addresses_that_are_none_of_its() {
    let memory = Memory::new(1, few(1024));
    memory.with(&two_cpus(), |s| {
        let cpu = s.cpu(0).unwrap();
        let k = Kmalloc::new(s, Design::Slub, CacheFlags::empty()).unwrap();
        let large = k.alloc(&cpu, 20_000, Gfp::KERNEL).unwrap();
        let inside = unsafe { large.add(4096) };
        let kind = |p| unsafe { k.free(&cpu, p) }.unwrap_err().kind;
        assert_eq!(kind(inside), FaultKind::NotAnObject);
        let cache = s.create(&CacheOptions::new("mine", 72)).unwrap();
        let object = cache.alloc(&cpu, Gfp::KERNEL).unwrap();
        assert_eq!(kind(object), FaultKind::OtherCache(cache.name()));
        let fault = unsafe { cache.free(&cpu, large) }.unwrap_err();
        assert_eq!(fault.kind, FaultKind::NotAnObject);
        unsafe { cache.free(&cpu, object) }.unwrap();
        unsafe { k.free(&cpu, large) }.unwrap();
        assert_eq!(kind(large), FaultKind::NotInASlab, "freed twice");
    });
}

#[test]
fn handles_of_a_typed_cache_free_themselves_and_drop_their_values() {
    struct Counted<'a>(&'a AtomicU64, [u64; 30]);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for design in Design::ALL {
        let dropped = AtomicU64::new(0);
        let memory = Memory::new(1, few(1024));
        memory.with(&two_cpus(), |s| {
            let cpu = s.cpu(0).unwrap();
            let cache: Cache<Counted> =
                Cache::with_options(s, &CacheOptions::new("counted", 0).design(design)).unwrap();
            let mut handles: Vec<_> = (0..100)
                .map(|i| {
                    let value = Counted(&dropped, [i; 30]);
                    cache.alloc(&cpu, Gfp::KERNEL, value).unwrap()
                })
                .collect();
            handles[7].1[0] = 1000;
            assert_eq!((handles[7].1[0], handles[7].1[29]), (1000, 7));
            handles.truncate(50);
            assert_eq!(dropped.load(Ordering::Relaxed), 50);
            // The others go to another thread; half are unpacked there, half dropped as they are.
            let parcels: Vec<_> = handles.into_iter().map(|h| h.pack()).collect();
            std::thread::scope(|threads| {
                let (s, cache) = (&s, &cache);
                threads.spawn(move || {
                    let cpu = s.cpu(1).unwrap();
                    for (i, p) in parcels.into_iter().enumerate() {
                        assert_eq!(p.1[29], i as u64);
                        if i % 2 == 0 {
                            drop(p.unpack(&cpu));
                        }
                    }
                    let _ = cache;
                });
            });
            assert_eq!(dropped.load(Ordering::Relaxed), 100);
            cache.destroy().unwrap();
        });
    }
}

#[test]
fn a_value_without_memory_comes_back() {
    let memory = Memory::new(1, few(1024));
    memory.with(&two_cpus(), |s| {
        let cpu = s.cpu(0).unwrap();
        let cache: Cache<String> = Cache::new(s, "string").unwrap();
        memory.pages.budget.store(0, Ordering::Relaxed);
        let refused = cache
            .alloc(&cpu, Gfp::KERNEL, "kept".to_owned())
            .unwrap_err();
        assert!(refused.to_string().contains("no memory"));
        assert_eq!(refused.0, "kept");
        memory.pages.budget.store(u64::MAX, Ordering::Relaxed);
        let zero_sized: Cache<()> = Cache::new(s, "unit").unwrap();
        drop(zero_sized.alloc(&cpu, Gfp::KERNEL, ()).unwrap());
    });
}

/// Objects of source S2's table. `spec: 6.4`
const S2: [(&str, usize, usize); 6] = [
    ("names_cache", 4096, 64),
    ("filp", 192, 1195),
    ("vm_area_struct", 168, 3830),
    ("buffer_head", 104, 33970),
    ("bio-0", 192, 5906),
    ("journal_handle", 24, 1360),
];

/// `spec: 6.4`
#[test]
#[cfg_attr(miri, ignore = "it fills megabytes")]
fn waste_over_the_mix_of_s2_is_what_the_formulas_say() {
    let rules = Rules::S2.merge(false);
    for design in Design::ALL {
        let memory = Memory::new(1, 8192);
        let config = SlabConfig::new(8).rules(rules);
        memory.with(&config, |s| {
            let cpu = s.cpu(0).unwrap();
            let (mut waste, mut expected) = (0, 0);
            for (name, size, objects) in S2 {
                let cache = s
                    .create(&CacheOptions::new(name, size).design(design))
                    .unwrap();
                let all: Vec<NonNull<u8>> = (0..objects)
                    .map(|_| cache.alloc(&cpu, Gfp::KERNEL).unwrap())
                    .collect();
                let used = objects * size;
                waste += cache.info().pages() * 4096 - used as u64;
                let (order, per_slab) =
                    order_and_objects(design, size as u32, 8, 8, &rules).unwrap();
                let slabs = objects.div_ceil(per_slab as usize);
                expected += slabs * bytes(order) as usize - used;
                all.into_iter()
                    .for_each(|o| unsafe { cache.free(&cpu, o) }.unwrap());
            }
            let off = (waste as f64 / expected as f64 - 1.0).abs();
            println!("{design}: {waste} bytes of waste, {expected} by the formulas");
            assert!(off <= 0.02, "{design}: {waste} instead of {expected}");
        });
    }
}
