//! Wrong calls, and the answer that each must get, in debug and in release. What cannot be judged is `unsafe`, and has no
//! row: a free of an unchecked object twice, or at an address within it.

use super::support::{Memory, few, for_ever};
use std::alloc::{GlobalAlloc, Layout};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, without_provenance_mut};
use std::sync::atomic::Ordering;
use unfrag::Gfp;
use unfrag_slab::{
    Cache, CacheFlags, CacheOptions, Cpu, CpuError, CreateError, CurrentCpu, Design, FaultKind,
    FirstAttempt, Heap, Kmalloc, KmemCache, Name, PageBlock, PageRequest, Pages, Rules, SlabConfig,
    Slabs, SlabsError, SlubRules, formulas,
};

fn address(at: usize) -> NonNull<u8> {
    NonNull::new(without_provenance_mut(at)).expect("not null")
}

/// Calls `f` with a set of two CPUs for each design, with caches checked or not.
fn each(f: impl Fn(&Memory, &Slabs, Design, CacheFlags)) {
    for design in Design::ALL {
        for flags in [CacheFlags::empty(), CacheFlags::DEBUG] {
            let memory = Memory::new(1, if cfg!(miri) { 512 } else { 1024 });
            memory.with(&SlabConfig::new(2), |s| f(&memory, s, design, flags));
        }
    }
}

/// Every way to free.
type Free = fn(&KmemCache, &Cpu, NonNull<u8>) -> Option<FaultKind>;
const WAYS: [Free; 3] = [
    |cache, cpu, object| unsafe { cache.free(cpu, object) }.err().map(|f| f.kind),
    |cache, _, object| {
        unsafe { cache.free_without_cpu(object) }
            .err()
            .map(|f| f.kind)
    },
    |cache, cpu, object| {
        unsafe { cache.free_bulk(cpu, &[object]) }
            .err()
            .map(|f| f.kind)
    },
];

#[test]
fn an_object_that_is_none_of_the_cache_is_refused() {
    each(|memory, s, design, flags| {
        let cpu = s.cpu(0).unwrap();
        let options = |name| CacheOptions::new(name, 72).flags(flags | CacheFlags::NO_MERGE);
        let cache = s.create(&options("mine").design(design)).unwrap();
        let other = s.create(&options("other").design(design)).unwrap();
        let gone = s.create(&options("gone").design(design)).unwrap();
        let sizes = Kmalloc::new(s, design, flags).unwrap();
        let own = cache.alloc(&cpu, Gfp::KERNEL).unwrap();
        let foreign = other.alloc(&cpu, Gfp::KERNEL).unwrap();
        let pages = sizes.alloc(&cpu, 300_000, Gfp::KERNEL).unwrap();
        let dead = gone.alloc(&cpu, Gfp::KERNEL).unwrap();
        unsafe { gone.free(&cpu, dead) }.unwrap();
        gone.destroy().unwrap();
        let window = memory.pages.window();
        let (base, end) = (window.base, window.frames * 4096);
        let mut stack = 0u64;
        let not_in_a_slab = [
            address(1),
            address(8),
            address(usize::MAX),
            address(base.addr().get() - 8),
            address(base.addr().get() + end),
            unsafe { base.add(end - 8) },
            NonNull::from(&mut stack).cast(),
            dead,
        ];
        let other_name = FaultKind::OtherCache(other.name());
        let rows = not_in_a_slab.map(|at| (at, FaultKind::NotInASlab));
        let rows = rows.into_iter().chain([
            (foreign, other_name),
            (unsafe { foreign.add(3) }, other_name),
            (unsafe { pages.add(4096) }, FaultKind::NotAnObject),
            (pages, FaultKind::NotAnObject),
        ]);
        for (at, kind) in rows {
            for free in WAYS {
                assert_eq!(free(&cache, &cpu, at), Some(kind), "{design} {at:p}");
            }
            let by_size = unsafe { sizes.free(&cpu, at) };
            assert_eq!(by_size.is_ok(), at == pages, "{design} {at:p}");
            if at != pages {
                assert!(unsafe { sizes.free_without_cpu(at) }.is_err());
                assert!(unsafe { sizes.usable_size(at) }.is_err());
            }
        }
        assert_eq!(
            unsafe { sizes.free(&cpu, pages) }.err().map(|f| f.kind),
            Some(FaultKind::NotInASlab),
            "pages that are free already"
        );
        unsafe { cache.free(&cpu, own) }.unwrap();
        unsafe { other.free(&cpu, foreign) }.unwrap();
        s.validate().unwrap();
    });
}

#[test]
fn a_checked_cache_refuses_what_is_free_or_no_object() {
    each(|_, s, design, flags| {
        if flags.is_empty() {
            return;
        }
        let cpu = s.cpu(0).unwrap();
        let options = CacheOptions::new("checked", 72).flags(flags).design(design);
        let cache = s.create(&options).unwrap();
        for free in WAYS {
            let object = cache.alloc(&cpu, Gfp::KERNEL).unwrap();
            for off in [1, 7, 8, 71, 72] {
                let inside = unsafe { object.add(off) };
                assert_eq!(free(&cache, &cpu, inside), Some(FaultKind::NotAnObject));
            }
            assert_eq!(free(&cache, &cpu, object), None);
            for again in WAYS {
                let found = again(&cache, &cpu, object);
                assert_eq!(found, Some(FaultKind::DoubleFree), "{design}");
            }
        }
        let zero = cache.alloc_without_cpu(Gfp::KERNEL | Gfp::ZERO).unwrap();
        let bytes = unsafe { std::slice::from_raw_parts(zero.as_ptr(), 72) };
        assert!(bytes.iter().all(|b| *b == 0));
        unsafe { cache.free_without_cpu(zero) }.unwrap();
        s.validate().unwrap();
    });
}

/// What has no error has the documented panic, before anything has changed.
#[test]
fn a_token_of_another_set_is_a_panic() {
    let (a, b) = (Memory::new(1, few(1024)), Memory::new(1, few(1024)));
    a.with(&SlabConfig::default(), |s| {
        b.with(&SlabConfig::default(), |t| {
            let (own, foreign) = (s.cpu(0).unwrap(), t.cpu(0).unwrap());
            let cache = s.create(&CacheOptions::new("mine", 72)).unwrap();
            let sizes = Kmalloc::new(s, Design::Slub, CacheFlags::empty()).unwrap();
            let object = cache.alloc(&own, Gfp::KERNEL).unwrap();
            let values: Cache<u64> = Cache::new(s, "value").unwrap();
            let parcel = values.alloc(&own, Gfp::KERNEL, 7).unwrap().pack();
            let panics = |what: &str, f: &mut dyn FnMut()| {
                let panic = catch_unwind(AssertUnwindSafe(f)).expect_err(what);
                let text = panic.downcast_ref::<&str>().expect("a text");
                assert!(text.contains("another set"), "{what}: {text}");
            };
            let mut many = [NonNull::dangling(); 3];
            let kernel = Gfp::KERNEL;
            panics("alloc", &mut || {
                let _ = cache.alloc(&foreign, kernel);
            });
            panics("alloc_on", &mut || {
                let _ = cache.alloc_on(&foreign, kernel, 0);
            });
            panics("bulk", &mut || {
                let _ = cache.alloc_bulk(&foreign, kernel, &mut many);
            });
            panics("free", &mut || {
                let _ = unsafe { cache.free(&foreign, object) };
            });
            panics("shrink", &mut || {
                let _ = cache.shrink(&foreign);
            });
            panics("by size", &mut || {
                let _ = sizes.alloc(&foreign, 100, kernel);
            });
            panics("value", &mut || {
                let _ = values.alloc(&foreign, kernel, 8);
            });
            let mut parcel = Some(parcel);
            panics("unpack", &mut || {
                drop(parcel.take().map(|p| p.unpack(&foreign)))
            });
            unsafe { cache.free(&own, object) }.unwrap();
            drop(parcel);
            let live = values.destroy().err().map(|e| e.live);
            assert_eq!(live, None, "the value that was not unpacked is free");
            s.validate().unwrap();
        });
    });
}

#[test]
fn sizes_and_alignments_that_no_cache_can_have_are_refused() {
    each(|_, s, design, flags| {
        let most = 4 << 20;
        let rows = [
            ("a", 0, 8, CreateError::Size(0)),
            ("a", most + 1, 8, CreateError::Size(most + 1)),
            ("a", usize::MAX, 8, CreateError::Size(usize::MAX)),
            ("a", 1 << 32, 8, CreateError::Size(1 << 32)),
            ("a", 8, 0, CreateError::Align(0)),
            ("a", 8, 24, CreateError::Align(24)),
            ("a", 8, 8192, CreateError::Align(8192)),
            ("a", 8, usize::MAX, CreateError::Align(usize::MAX)),
            ("", 8, 8, CreateError::Name),
            ("a\nb", 8, 8, CreateError::Name),
        ];
        for (name, size, align, error) in rows {
            let options = CacheOptions::new(name, size).align(align);
            let made = s.create(&options.design(design).flags(flags));
            assert_eq!(made.err(), Some(error));
        }
        // The largest with words around it does not fit.
        let made = s.create(&CacheOptions::new("a", most).design(design).flags(flags));
        let fits = flags.is_empty() && design != Design::Slab || made.is_ok();
        assert_eq!(made.is_ok(), fits, "{design} {flags:?}");
        drop(made);
        let sizes = Kmalloc::new(s, design, flags).unwrap();
        let cpu = s.cpu(0).unwrap();
        for size in [most + 1, usize::MAX / 2, usize::MAX] {
            assert!(sizes.alloc(&cpu, size, Gfp::KERNEL).is_err());
            assert!(sizes.alloc_without_cpu(size, Gfp::KERNEL).is_err());
        }
        let none = sizes.alloc(&cpu, 0, Gfp::KERNEL).unwrap();
        unsafe { sizes.free(&cpu, none) }.unwrap();
        let cache = s
            .create(&CacheOptions::new("a", 64).design(design))
            .unwrap();
        for node in [1, 64, u8::MAX] {
            assert!(cache.alloc_on(&cpu, Gfp::KERNEL, node).is_err());
        }
    });
}

#[test]
fn sets_that_contradict_themselves_are_refused() {
    let memory = Memory::new(1, 64);
    let one = SlabConfig::default();
    let far: fn(u16) -> u8 = |_| 7;
    let near: fn(u16) -> u8 = |_| 0;
    let rows = [
        (SlabConfig::new(0), 64, SlabsError::Topology),
        (one.nodes(0, near), 64, SlabsError::Topology),
        (one.nodes(65, near), 64, SlabsError::Topology),
        (one.nodes(2, far), 64, SlabsError::Topology),
        (one, 63, SlabsError::Window),
        (one, 0, SlabsError::Window),
        (
            SlabConfig::new(if cfg!(miri) { 99 } else { u16::MAX }),
            64,
            SlabsError::NoMemory,
        ),
    ];
    for (config, entries, error) in rows {
        if error == SlabsError::NoMemory {
            memory.pages.budget.store(0, Ordering::Relaxed);
        }
        let mut table = memory.table();
        let made = Slabs::new(&memory.pages, &mut table[..entries], &config);
        assert_eq!(made.err(), Some(error));
        assert_eq!(memory.held(), 0);
    }
    memory.pages.budget.store(u64::MAX, Ordering::Relaxed);
    memory.with(&one, |s| {
        let cpu = s.cpu(0).unwrap();
        assert_eq!(s.cpu(0).err(), Some(CpuError::Taken(0)));
        assert_eq!(s.cpu(1).err(), Some(CpuError::NoSuchCpu(1)));
        assert_eq!(s.cpu(u16::MAX).err(), Some(CpuError::NoSuchCpu(u16::MAX)));
        assert_eq!(s.any_cpu().err(), Some(CpuError::AllTaken));
        drop(cpu);
        assert!(s.any_cpu().is_ok());
    });
}

/// Rules that no kernel has still give caches that work.
#[test]
fn rules_out_of_range_do_no_harm() {
    let slub = SlubRules::V6.first_attempt(FirstAttempt::NoWake);
    let rules = [
        Rules::MODERN.slub(slub.max_order(u8::MAX).min_objects(u32::MAX)),
        Rules::MODERN.slub(slub.max_order(0).min_objects(u32::MAX)),
        Rules::MODERN.slub(slub.min_order(u8::MAX)),
        Rules::MODERN
            .design(Design::Slqb)
            .slqb(Rules::MODERN.slqb.max_order(u8::MAX).min_objects(u32::MAX)),
    ];
    for rules in rules {
        let memory = Memory::new(1, 4096);
        memory.with(&SlabConfig::default().rules(rules), |s| {
            let cpu = s.cpu(0).unwrap();
            for size in [1, 64, 5000] {
                let cache = s.create(&CacheOptions::new("odd", size)).unwrap();
                let object = cache.alloc(&cpu, Gfp::KERNEL).unwrap();
                unsafe { object.write_bytes(1, size) };
                unsafe { cache.free(&cpu, object) }.unwrap();
            }
            s.validate().unwrap();
        });
    }
}

#[test]
fn formulas_have_an_answer_for_every_number() {
    // Miri looks at memory, which this has none of.
    if cfg!(miri) {
        return;
    }
    let numbers = [
        0,
        1,
        7,
        8,
        4096,
        4097,
        4 << 20,
        (4 << 20) + 1,
        u32::MAX - 7,
        u32::MAX,
    ];
    for size in numbers {
        for other in numbers {
            for design in Design::ALL {
                for rules in [Rules::S2, Rules::MODERN] {
                    let fit = formulas::order_and_objects(design, size, 8, other, &rules);
                    let fits = (1..=4 << 20).contains(&size);
                    assert!(fits || fit.is_none(), "{design} {size}");
                    assert!(fit.is_none_or(|(order, n)| order <= 10 && n > 0));
                }
            }
            formulas::slab_fit(size, other, 3, false);
            formulas::slab_fit(size, other, u8::MAX, true);
            formulas::slub_cpu_partial_slabs(size, other);
            formulas::array_limits(size, other);
        }
        formulas::slub_min_partial(size, true);
        formulas::slub_min_objects(size);
        formulas::slqb_limits(size);
    }
    assert_eq!(formulas::order_for(u64::MAX), 52);
    let text = |n: usize| "x".repeat(n);
    assert!(Name::new(&text(31)).is_some() && Name::new(&text(32)).is_none());
    assert!(Name::new("").is_none() && Name::new("a\u{7f}").is_none());
}

#[test]
fn blocks_that_no_source_has_are_not_handed_out() {
    let memory = Memory::new(1, 64);
    let pages = &memory.pages.source;
    for order in [11, 31, 32, 63, 64, u8::MAX] {
        let request = PageRequest::new(order, Gfp::KERNEL);
        assert!(pages.alloc(&request).is_none(), "order {order}");
        assert!(PageBlock::alloc(pages, &request).is_none());
    }
    let far = PageRequest::new(0, Gfp::KERNEL | Gfp::THISNODE).node(u8::MAX);
    drop(PageBlock::alloc(pages, &far));
}

/// A host of a heap without a CPU.
struct NoCpu;

impl CurrentCpu for NoCpu {
    fn with<T>(&self, f: impl FnOnce(Option<&Cpu<'static>>) -> T) -> T {
        f(None)
    }
}

#[test]
fn a_heap_answers_null_for_what_it_cannot_serve() {
    let memory: &'static Memory = for_ever(Box::new(Memory::new(1, 4096)));
    let layout = |size, align| Layout::from_size_align(size, align).expect("a layout");
    let heap = Heap::new(NoCpu);
    // SAFETY (here and below): each layout has a size.
    assert!(
        unsafe { heap.alloc(layout(8, 8)) }.is_null(),
        "nothing is installed"
    );
    let set = || -> Kmalloc<'static> {
        let table = for_ever(memory.table().into_boxed_slice());
        let slabs = Slabs::new(&memory.pages, table, &SlabConfig::default()).unwrap();
        let slabs: &'static Slabs<'static> = for_ever(Box::new(slabs));
        Kmalloc::new(slabs, Design::Slub, CacheFlags::empty()).unwrap()
    };
    heap.install(set())
        .expect("it failed to start, and is installed now");
    assert!(heap.install(set()).is_err(), "once");
    let none = [
        layout((4 << 20) + 1, 8),
        layout(isize::MAX as usize - 8, 8),
        layout(8, 1 << 40),
        layout(5 << 20, 4096),
    ];
    for layout in none {
        assert!(unsafe { heap.alloc(layout) }.is_null(), "{layout:?}");
        assert!(unsafe { heap.alloc_zeroed(layout) }.is_null(), "{layout:?}");
    }
    unsafe { heap.dealloc(std::ptr::null_mut(), layout(8, 8)) };
    // Of no cache: told to the source of pages, and nothing else.
    unsafe { heap.dealloc(address(64).as_ptr(), layout(8, 8)) };
    unsafe { heap.dealloc(address(4096).as_ptr(), layout(300_000, 8)) };
    let faults = memory.pages.faults.lock().unwrap();
    let kinds: Vec<FaultKind> = faults.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [FaultKind::NotInASlab; 2]);
}

/// Whoever writes to a free object may write over its link: SLUB follows none that leads out of the slab.
#[test]
fn a_link_that_was_written_over_is_found_and_not_followed() {
    const OBJECTS: usize = 4;
    for spoilt in 0..OBJECTS {
        let memory = Memory::new(1, if cfg!(miri) { 512 } else { 1024 });
        let mut table = memory.table();
        let slabs = Slabs::new(&memory.pages, &mut table, &SlabConfig::new(1)).unwrap();
        // What lies behind the link is in use for ever, and so is the slab.
        let slabs = ManuallyDrop::new(slabs);
        let options = CacheOptions::new("links", 512).flags(CacheFlags::NO_MERGE);
        let cache = ManuallyDrop::new(slabs.create(&options.design(Design::Slub)).unwrap());
        // One stays, so that the slab does.
        let keep = cache.alloc_without_cpu(Gfp::KERNEL).unwrap();
        let mut all = [NonNull::dangling(); OBJECTS];
        let count = cache.alloc_some_without_cpu(Gfp::KERNEL, &mut all);
        assert_eq!(count, OBJECTS);
        unsafe { cache.free_bulk_without_cpu(&all) }.unwrap();
        // One byte, as of a string that is too long.
        unsafe { all[spoilt].write(0x41) };
        let mut again = [NonNull::dangling(); OBJECTS];
        let count = cache.alloc_some_without_cpu(Gfp::KERNEL, &mut again);
        let faults = memory.pages.faults.lock().unwrap().clone();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].kind, FaultKind::Link);
        assert_eq!(faults[0].object, all[spoilt].addr().get());
        let got = &again[..count];
        assert!(count > 0 && !got.contains(&all[spoilt]) && !got.contains(&keep));
        if spoilt > 0 {
            assert_eq!(got, &all[..spoilt]);
        }
        unsafe { cache.free_bulk_without_cpu(got) }.unwrap();
        unsafe { cache.free_without_cpu(keep) }.unwrap();
    }
}
