//! Pages of a memory: what each request may have of it, and misuse.

use super::support::{areas, for_ever};
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::{NonNull, without_provenance_mut};
use unfrag::{Area, Gfp, Marks, Memory, MigrateType, NodeId, Order, Pfn, Request};
use unfrag_slab::{
    CacheFlags, CacheOptions, Design, FrameEntry, Kmalloc, MemoryPages, PageBlock, PageRequest,
    Pages, SlabConfig, Slabs, SpinLock, Window,
};

/// First frames, and how many.
type Ranges = &'static [(u64, u64)];
type Shared = &'static Memory<'static, SpinLock>;

const GIGABYTE: u64 = 1 << 18;

/// Numbers alone: no test touches what is behind them.
fn window(first: u64, frames: usize) -> Window {
    Window {
        first: Pfn(first),
        frames,
        base: NonNull::new(without_provenance_mut(1 << 40)).expect("not null"),
    }
}

/// Pages seen through a window, behind which nothing is touched.
fn pages(memory: Shared, first: u64, frames: usize) -> MemoryPages<'static, 'static> {
    // SAFETY: nothing that is handed out is touched.
    unsafe { MemoryPages::new(memory, window(first, frames)) }.expect("a window")
}

/// A memory of so many gigabytes, one for each node, with these frames.
fn memory(nodes: u8, frames: &[(u64, u64)]) -> Shared {
    let (memory, mut words) = areas(nodes);
    for &(start, n) in frames {
        memory.add(Pfn(start), n, &mut words).unwrap();
    }
    memory
}

/// Frames in use as each type: unmovable, movable, reclaimable.
fn used(memory: Shared) -> [u64; 3] {
    let mut sum = [0; 3];
    memory.each_block(|_, block| {
        for (sum, of) in sum.iter_mut().zip(block.used) {
            *sum += u64::from(of);
        }
    });
    sum
}

/// All single frames that requests like this one can have.
fn all(pages: &MemoryPages<'static, 'static>, request: PageRequest) -> Vec<u64> {
    let mut frames: Vec<u64> = std::iter::from_fn(|| pages.alloc(&request))
        .map(|p| p.0)
        .collect();
    for &frame in &frames {
        // SAFETY: taken above, and used by nobody.
        unsafe { pages.free(Pfn(frame), request.order, request.mt()) };
    }
    frames.sort_unstable();
    frames
}

fn single(gfp: Gfp) -> PageRequest {
    PageRequest::new(0, gfp)
}

#[test]
fn windows_that_cannot_be_are_refused() {
    let memory = memory(1, &[(0, 1024)]);
    let at = |at: usize| NonNull::new(without_provenance_mut(at)).expect("not null");
    let end = usize::MAX & !4095;
    let rows = [
        ("no frames", 0, 0, 1 << 40, false),
        ("within a page", 0, 1024, (1 << 40) + 8, false),
        ("beyond the last frame", u64::MAX - 1, 1024, 1 << 40, false),
        ("beyond the last address", 0, 1024, end - 4096, false),
        (
            "more bytes than addresses",
            0,
            usize::MAX / 2,
            1 << 40,
            false,
        ),
        ("all frames", 0, usize::MAX, 4096, false),
        ("the last page of all", 0, 1, end - 4096, true),
        ("where no memory is", 1 << 50, 1024, 1 << 40, true),
        ("all of it", 0, 1024, 1 << 40, true),
    ];
    for (what, first, frames, base, is_good) in rows {
        let window = Window {
            first: Pfn(first),
            frames,
            base: at(base),
        };
        // SAFETY: nothing that is handed out is touched.
        let made = unsafe { MemoryPages::new(memory, window) };
        assert_eq!(made.is_some(), is_good, "{what}");
    }
}

#[test]
fn requests_that_nobody_can_serve_get_nothing_and_change_nothing() {
    let memory = memory(2, &[(0, 4096), (GIGABYTE, 4096)]);
    let pages = pages(memory, 0, 2 * GIGABYTE as usize);
    let kernel = Gfp::KERNEL;
    let only = kernel | Gfp::THISNODE;
    let both = kernel | Gfp::MOVABLE | Gfp::RECLAIMABLE;
    let rows = [
        ("order 13", PageRequest::new(13, kernel)),
        ("order 18", PageRequest::new(18, kernel)),
        ("order 19", PageRequest::new(19, kernel)),
        ("order 31", PageRequest::new(31, kernel)),
        ("order 32", PageRequest::new(32, kernel)),
        ("order 64", PageRequest::new(64, kernel)),
        ("order 255", PageRequest::new(255, kernel)),
        ("no such node", single(only).node(2)),
        ("no node at all", single(only).node(u8::MAX)),
        ("both types", single(both)),
        (
            "order 13 below 16 MiB",
            PageRequest::new(13, kernel | Gfp::DMA),
        ),
    ];
    for (what, request) in rows {
        assert_eq!(pages.alloc(&request), None, "{what}");
        assert!(PageBlock::alloc(&pages, &request).is_none(), "{what}");
        assert_eq!(memory.free_frames(), 8192, "{what}");
    }
    // Near a node that there is not is anywhere.
    for node in [2, 15, 16, u8::MAX] {
        assert_eq!(all(&pages, single(kernel).node(node)).len(), 8192, "{node}");
    }
    assert_eq!(pages.node_of(Pfn(5 * GIGABYTE)), 0, "of no node");
    memory.validate().unwrap();
}

#[test]
fn nothing_outside_of_the_window_is_handed_out() {
    let everything = || memory(2, &[(0, 1024), (GIGABYTE - 512, 1024)]);
    let rows: [(&str, u64, usize, Ranges); 5] = [
        ("its end is in the midst of a block", 0, 700, &[(0, 700)]),
        (
            "its end is in the other node",
            0,
            (GIGABYTE + 100) as usize,
            &[(0, 1024), (GIGABYTE - 512, 612)],
        ),
        ("a frame", 0, 1, &[(0, 1)]),
        ("no memory", 2048, 100, &[]),
        (
            "all",
            0,
            2 * GIGABYTE as usize,
            &[(0, 1024), (GIGABYTE - 512, 1024)],
        ),
    ];
    for (what, first, frames, expected) in rows {
        let memory = everything();
        let pages = pages(memory, first, frames);
        let expected: Vec<u64> = expected.iter().flat_map(|&(at, n)| at..at + n).collect();
        assert_eq!(all(&pages, single(Gfp::KERNEL)), expected, "{what}");
        for order in 1..=9 {
            for first in all(&pages, PageRequest::new(order, Gfp::KERNEL)) {
                let last = first + (1 << order) - 1;
                assert!(expected.binary_search(&first).is_ok(), "{what}");
                assert!(expected.binary_search(&last).is_ok(), "{what}");
            }
        }
        assert_eq!(memory.free_frames(), 2048, "{what}");
        memory.validate().unwrap();
    }
}

/// An area is made up to whole gigabytes, so that memory can come behind what the window was made for.
#[test]
fn memory_that_comes_behind_the_window_is_not_handed_out() {
    let config = unfrag::MemoryConfig::new(Pfn(0), 1024);
    let room = unfrag::MemoryLayout::of(&config);
    let memory: Shared = for_ever(Box::new(Memory::new(config)));
    let directory = for_ever(Box::new([unfrag::maps::Gigabyte::NONE]));
    let mut words = for_ever(vec![0; room.words].into_boxed_slice());
    memory.start(directory, &mut words).unwrap();
    memory.add(Pfn(512), 512, &mut words).unwrap();
    let pages = pages(memory, 0, 1024);
    memory.add(Pfn(1024), 2048, &mut words).unwrap();
    let expected: Vec<u64> = (512..1024).collect();
    assert_eq!(all(&pages, single(Gfp::KERNEL)), expected);
    assert_eq!(memory.free_frames(), 2560);
    memory.validate().unwrap();
}

#[test]
fn what_lies_before_the_window_is_not_handed_out_either() {
    let memory = memory(1, &[(0, 512), (1024, 512)]);
    let pages = pages(memory, 1024, 512);
    assert!(all(&pages, single(Gfp::KERNEL)).iter().all(|&f| f >= 1024));
    assert_eq!(memory.free_frames(), 1024);
    memory.validate().unwrap();
}

#[test]
fn a_device_gets_what_it_reaches() {
    // From 12 MiB to 20 MiB, and around 4 GiB.
    let four = 4 * GIGABYTE;
    let memory = memory(5, &[(3072, 2048), (four - 512, 1024)]);
    let pages = pages(memory, 0, 5 * GIGABYTE as usize);
    let below_16: Vec<u64> = (3072..4096).collect();
    let below_4096: Vec<u64> = (3072..5120).chain(four - 512..four).collect();
    assert_eq!(all(&pages, single(Gfp::KERNEL | Gfp::DMA)), below_16);
    assert_eq!(all(&pages, single(Gfp::KERNEL | Gfp::DMA32)), below_4096);
    let both = Gfp::KERNEL | Gfp::DMA | Gfp::DMA32;
    assert_eq!(all(&pages, single(both)), below_16);
    assert_eq!(all(&pages, single(Gfp::KERNEL)).len(), 3072);
}

#[test]
fn a_node_is_asked_first_or_alone() {
    let memory = memory(2, &[(0, 512), (GIGABYTE, 512)]);
    let pages = pages(memory, 0, 2 * GIGABYTE as usize);
    for node in 0..2 {
        let near = single(Gfp::KERNEL).node(node);
        let only = single(Gfp::KERNEL | Gfp::THISNODE).node(node);
        let own: Vec<u64> = (0..512).map(|n| u64::from(node) * GIGABYTE + n).collect();
        let first = pages.alloc(&near).unwrap();
        assert_eq!(pages.node_of(first), node);
        // SAFETY: taken above, and used by nobody.
        unsafe { pages.free(first, 0, near.mt()) };
        assert_eq!(all(&pages, only), own);
        assert_eq!(all(&pages, near).len(), 1024, "then the other one");
    }
    assert_eq!(pages.free_and_total(), (1024, 1024));
}

/// Who cannot wait may have the reserve; a try for a large block, which who cannot wait makes as well, may not.
#[test]
fn the_reserve_is_for_who_cannot_wait_and_needs_it() {
    let memory = memory(1, &[(0, 512)]);
    let marks = Marks {
        min: 100,
        ..Marks::NONE
    };
    memory.set_marks(NodeId(0), marks);
    let pages = pages(memory, 0, GIGABYTE as usize);
    let atomic = Gfp::ATOMIC_MASK;
    let rows = [
        ("KERNEL", single(Gfp::KERNEL), 412),
        ("may wait", single(Gfp::KERNEL | Gfp::HIGH), 412),
        ("NOWAIT", single(Gfp::KSWAPD_RECLAIM), 412),
        ("nothing", single(Gfp::empty()), 412),
        ("ATOMIC", single(atomic), 512),
        (
            "ATOMIC, reclaimable",
            single(atomic | Gfp::RECLAIMABLE),
            512,
        ),
        ("ATOMIC, a try", single(atomic | Gfp::NORETRY), 412),
        ("ATOMIC, never", single(atomic | Gfp::NOMEMALLOC), 412),
        ("ATOMIC, one pass", single(atomic).first_pass_only(), 412),
        ("who frees memory", single(Gfp::KERNEL | Gfp::MEMALLOC), 512),
    ];
    for (what, request, frames) in rows {
        assert_eq!(all(&pages, request).len(), frames, "{what}");
    }
}

/// Pages of different types are of different blocks, and are so still when all have been freed and taken again.
#[test]
fn blocks_are_not_mixed_while_there_is_room() {
    let memory = memory(1, &[(0, 64 * 512)]);
    let pages = pages(memory, 0, GIGABYTE as usize);
    let types = [Gfp::empty(), Gfp::RECLAIMABLE, Gfp::MOVABLE];
    for round in 0..3 {
        let mut taken = vec![];
        for n in 0..3 * 4096 {
            let request = PageRequest::new((n / 3 % 3) as u8, Gfp::KERNEL | types[n % 3]);
            taken.push((pages.alloc(&request).unwrap(), request));
        }
        let mut of = [None; 64];
        for (first, request) in &taken {
            let own = of[(first.0 / 512) as usize].get_or_insert(request.mt());
            assert_eq!(*own, request.mt(), "round {round}, frame {}", first.0);
        }
        for (first, request) in taken {
            // SAFETY: taken above, and used by nobody.
            unsafe { pages.free(first, request.order, request.mt()) };
        }
        assert_eq!(memory.whole_blocks(), 64);
    }
    memory.validate().unwrap();
}

/// Where one block holds all types, the counts of each show what goes back as another.
#[test]
fn a_block_goes_back_as_the_type_that_it_was_taken_for() {
    let memory = memory(1, &[(0, 512)]);
    let pages = pages(memory, 0, GIGABYTE as usize);
    let types = [Gfp::empty(), Gfp::RECLAIMABLE, Gfp::MOVABLE];
    let request = |n: usize| PageRequest::new((n / 3 % 3) as u8, Gfp::KERNEL | types[n % 3]);
    let taken: Vec<Pfn> = (0..180)
        .map(|n| pages.alloc(&request(n)).unwrap())
        .collect();
    let mut left = [140; 3];
    assert_eq!(used(memory), left);
    for (n, first) in taken.into_iter().enumerate() {
        let request = request(n);
        // SAFETY: taken above, and used by nobody.
        unsafe { pages.free(first, request.order, request.mt()) };
        left[request.mt() as usize] -= 1 << request.order;
        assert_eq!(used(memory), left, "{request:?}");
    }
    memory.validate().unwrap();
}

/// What caches of reclaimable objects, others, and large requests take, by the counts of the memory.
#[test]
fn caches_take_pages_of_a_type_and_give_them_back_as_that() {
    let frames = 8192;
    let room = Layout::from_size_align(frames * 4096, 4096).unwrap();
    // SAFETY: it has a size.
    let base = NonNull::new(unsafe { alloc(room) }).unwrap();
    let memory = memory(1, &[(0, frames as u64)]);
    let window = Window {
        first: Pfn(0),
        frames,
        base,
    };
    // SAFETY: the memory is that long, and only this test uses it.
    let pages = unsafe { MemoryPages::new(memory, window) }.unwrap();
    let used = || used(memory);
    for design in Design::ALL {
        let mut table: Vec<FrameEntry> = (0..frames).map(|_| FrameEntry::new()).collect();
        let slabs = Slabs::new(&pages, &mut table, &SlabConfig::default()).unwrap();
        let cpu = slabs.cpu(0).unwrap();
        let options = CacheOptions::new("dentry", 192).design(design);
        let cache = slabs
            .create(&options.flags(CacheFlags::RECLAIM_ACCOUNT))
            .unwrap();
        let sizes = Kmalloc::new(&slabs, design, CacheFlags::empty()).unwrap();
        assert_eq!(used(), [slabs.record_pages(), 0, 0], "{design}");
        let objects: Vec<_> = (0..500)
            .map(|_| cache.alloc(&cpu, Gfp::KERNEL).unwrap())
            .collect();
        let own = slabs.slab_pages();
        assert_eq!(used(), [slabs.record_pages(), 0, own], "{design}");
        // Whole pages at an address that does not move, whatever the flags say.
        let rows = [
            (Gfp::KERNEL, [512, 0, 0]),
            (Gfp::HIGHUSER_MOVABLE, [512, 0, 0]),
            (Gfp::KERNEL | Gfp::RECLAIMABLE, [0, 0, 512]),
        ];
        for (gfp, [unmovable, movable, reclaimable]) in rows {
            let large = sizes.alloc(&cpu, 2 << 20, gfp).unwrap();
            let records = slabs.record_pages();
            let expected = [records + unmovable, movable, own + reclaimable];
            assert_eq!(used(), expected, "{design} {gfp:?}");
            // SAFETY: taken above, and used by nobody.
            unsafe { sizes.free(&cpu, large) }.unwrap();
            assert_eq!(used(), [slabs.record_pages(), 0, own], "{design} {gfp:?}");
        }
        for object in objects {
            // SAFETY: taken above, and used by nobody.
            unsafe { cache.free(&cpu, object) }.unwrap();
        }
        drop((sizes, cache, cpu));
        drop(slabs);
        assert_eq!(used(), [0; 3], "{design}");
        assert_eq!(memory.whole_blocks(), 16, "{design}");
    }
    memory.validate().unwrap();
    // SAFETY: nothing is in it any more.
    unsafe { dealloc(base.as_ptr(), room) };
}

/// Others take frames of the same memory, and each is somebody's alone.
#[test]
fn the_memory_may_be_used_beside_the_caches() {
    let memory = memory(1, &[(0, 512)]);
    let pages = pages(memory, 0, GIGABYTE as usize);
    let own = memory
        .alloc(&Request::new(Order(3), MigrateType::Unmovable))
        .unwrap();
    let frames = all(&pages, single(Gfp::KERNEL));
    assert_eq!(frames.len(), 504);
    assert!(!frames.iter().any(|f| (own.0..own.0 + 8).contains(f)));
    let block = pages
        .alloc_block(&PageRequest::new(2, Gfp::KERNEL))
        .unwrap();
    assert_eq!((block.order(), memory.free_frames()), (2, 500));
    block.free();
    // SAFETY: taken above, and used by nobody.
    unsafe { memory.free(own, Order(3), MigrateType::Unmovable) }.unwrap();
    assert_eq!(memory.free_frames(), 512);
}

#[test]
fn low_addresses_are_left_to_who_needs_them() {
    let area = |gigabyte: u64, is_low| Area {
        start: Pfn(gigabyte * GIGABYTE),
        frames: GIGABYTE,
        node: NodeId(0),
        shards: 1,
        is_low,
    };
    let config = unfrag::MemoryConfig::of(area(0, true)).and(area(1, false));
    let room = unfrag::MemoryLayout::of(&config);
    let memory: Shared = for_ever(Box::new(Memory::new(config)));
    let directory = for_ever(Box::new([const { unfrag::maps::Gigabyte::NONE }; 2]));
    let mut words = for_ever(vec![0; room.words].into_boxed_slice());
    memory.start(directory, &mut words).unwrap();
    memory.add(Pfn(GIGABYTE - 512), 1024, &mut words).unwrap();
    let pages = pages(memory, 0, 2 * GIGABYTE as usize);
    let first: Vec<u64> = (0..512)
        .map(|_| pages.alloc(&single(Gfp::KERNEL)).unwrap().0)
        .collect();
    assert!(first.iter().all(|&f| f >= GIGABYTE));
    let low = pages.alloc(&single(Gfp::KERNEL | Gfp::DMA32)).unwrap();
    assert!(low.0 < GIGABYTE);
}
