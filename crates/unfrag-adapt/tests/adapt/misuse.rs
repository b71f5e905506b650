//! Wrong calls, and the answer that each must get, in debug and in release: nothing changes, and it is counted.

use crate::room::Room;
use ::frame_alloc::{
    AllocError as FrameError, AllocatorStats, InitError, PageSize, PhysRange, PhysicalAllocator,
    RegionInit,
};
use ax_allocator::{AllocError, BaseAllocator, ByteAllocator, PageAllocator};
use core::alloc::{GlobalAlloc, Layout};
use core::num::NonZeroUsize;
use core::ptr::{NonNull, without_provenance_mut};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use spin::mutex::SpinMutex;
use unfrag::MigrateType;
use unfrag_adapt::AddError;
use unfrag_adapt::ax::{Allocator, Bytes, Pages, UsageKind};
use unfrag_adapt::frame_alloc::Pool;
use unfrag_adapt::global_frames::GlobalFrames;
use unfrag_adapt::heap::Heap;

type Lock = SpinMutex<()>;
const PAGE: usize = 4096;

fn address(at: usize) -> NonNull<u8> {
    NonNull::new(without_provenance_mut(at)).expect("not null")
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).expect("a layout")
}

#[test]
fn pages_that_are_not_in_use_are_refused() {
    let room = Room::new(8 << 20, 2 << 20);
    // SAFETY: The room is the test's, and lives longer.
    let mut a = unsafe { Pages::<PAGE>::of(MigrateType::Movable) };
    a.dealloc_pages(room.start(), 1);
    assert_eq!(a.refused(), 1, "there is no memory");
    a.init(room.start(), room.bytes());
    let total = a.available_pages();
    let at = a.alloc_pages(8, PAGE).expect("memory");
    let gap = a.alloc_pages(1, PAGE).expect("memory");
    a.dealloc_pages(gap, 1);
    let rows = [
        (at, 0),
        (at, usize::MAX),
        (at, 1 << 40),
        (at, 9),
        (at + 1, 1),
        (at + PAGE / 2, 1),
        (gap, 1),
        (gap, 2),
        (0, 1),
        (usize::MAX, 1),
        (usize::MAX & !(PAGE - 1), 2),
        (room.start() - PAGE, 1),
        (room.start() + room.bytes(), 1),
        (room.start() + room.bytes() - PAGE, 1),
    ];
    for (n, (pos, pages)) in (2..).zip(rows) {
        a.dealloc_pages(pos, pages);
        assert_eq!(a.refused(), n, "{pages} pages at {pos:#x}");
        assert_eq!(a.used_pages(), 8);
    }
    a.dealloc_pages(at + PAGE, 3);
    a.dealloc_pages(at, 8);
    assert_eq!(
        a.used_pages(),
        5,
        "of a range that is free in part, nothing"
    );
    a.dealloc_pages(at, 1);
    a.dealloc_pages(at + 4 * PAGE, 4);
    assert_eq!((a.available_pages(), a.used_pages()), (total, 0));
    for (base, pages, align) in [(at, 0, PAGE), (at + 1, 1, PAGE), (at, 1, 3), (at, 1, 0)] {
        let got = a.alloc_pages_at(base, pages, align);
        assert!(matches!(got, Err(AllocError::InvalidParam)));
    }
    for (base, pages) in [(at, usize::MAX), (0, 1), (room.start() - PAGE, 2)] {
        assert!(matches!(
            a.alloc_pages_at(base, pages, PAGE),
            Err(AllocError::NoMemory)
        ));
    }
    assert!(a.alloc_pages(usize::MAX, PAGE).is_err());
    assert!(a.add_memory(usize::MAX - 100, 4096).is_err());
    assert_eq!(a.available_pages(), total);
}

/// What another interface of the same allocator handed out is in use too, and must not go: slabs, records, runs, pages of
/// another kind.
#[test]
fn pages_of_another_holder_are_refused() {
    let room = Room::new(8 << 20, 2 << 20);
    let a = Allocator::<Lock>::new();
    // SAFETY: The room is the test's, and lives longer than the last use of the allocator.
    unsafe { a.init(room.start(), room.bytes()) }.expect("enough");
    let free = a.available_pages();
    let small = a.alloc(layout(64, 8)).expect("memory");
    let large = a.alloc(layout(40 * PAGE, 8)).expect("memory");
    let table = a
        .alloc_pages(4, PAGE, UsageKind::PageTable)
        .expect("memory");
    let cached = a
        .alloc_pages(4, PAGE, UsageKind::PageCache)
        .expect("memory");
    let used = (a.used_pages(), a.used_bytes());
    let of_slab = small.addr().get() & !(PAGE - 1);
    let of_run = large.addr().get();
    let kinds = [
        UsageKind::RustHeap,
        UsageKind::VirtMem,
        UsageKind::PageCache,
        UsageKind::PageTable,
        UsageKind::TaskStack,
        UsageKind::Dma,
        UsageKind::Global,
    ];
    let mut refused = 0;
    for kind in kinds {
        // Every frame that is no page of the kind: the allocator's tables, slabs and records, runs, free frames.
        for pos in (room.start() - PAGE..=room.start() + room.bytes()).step_by(PAGE) {
            let own = match kind {
                UsageKind::PageTable => table,
                UsageKind::PageCache => cached,
                _ => 0,
            };
            if (own..own + 4 * PAGE).contains(&pos) {
                continue;
            }
            // SAFETY (here and below): it is refused.
            unsafe { a.dealloc_pages(pos, 1, kind) };
            refused += 1;
        }
        let wrong = [
            (of_slab, 1),
            (of_run, 40),
            (table + 1, 1),
            (table, 5),
            (table - PAGE, 5),
        ];
        for (pos, pages) in wrong {
            unsafe { a.dealloc_pages(pos, pages, kind) };
        }
        for (pos, pages) in [
            (table, 0),
            (table, usize::MAX),
            (usize::MAX, 2),
            (cached, 1 << 40),
        ] {
            unsafe { a.dealloc_pages(pos, pages, kind) };
        }
        refused += 9;
        assert_eq!(
            (a.refused(), a.used_pages(), a.used_bytes()),
            (refused, used.0, used.1)
        );
    }
    // Bytes that are none, or not as they were handed out.
    let wrong = [
        (small, layout(2000, 8)),
        (address(of_run + PAGE), layout(39 * PAGE, 8)),
        (large, layout(39 * PAGE, 8)),
        (large, layout(41 * PAGE, 8)),
        (address(of_run + 8), layout(40 * PAGE, 8)),
        (address(table), layout(4 * PAGE, 8)),
        (address(table), layout(64, 8)),
        (address(64), layout(64, 8)),
        (address(usize::MAX), layout(1 << 20, 1)),
    ];
    for (pos, layout) in wrong {
        unsafe { a.dealloc(pos, layout) };
        refused += 1;
        assert_eq!(a.refused(), refused, "{layout:?} at {pos:p}");
    }
    assert_eq!((a.used_pages(), a.used_bytes()), used);
    // SAFETY: all of it is this test's.
    unsafe {
        a.dealloc(large, layout(40 * PAGE, 8));
        a.dealloc(large, layout(40 * PAGE, 8));
        a.dealloc_pages(table + PAGE, 3, UsageKind::PageTable);
        a.dealloc_pages(table, 1, UsageKind::PageTable);
        a.dealloc_pages(table, 1, UsageKind::PageTable);
        a.dealloc_pages(cached, 4, UsageKind::PageCache);
        a.dealloc(small, layout(64, 8));
    }
    assert_eq!((a.refused(), a.used_bytes()), (refused + 2, 0));
    assert!(free - a.available_pages() < 16, "only what the caches keep");
}

#[test]
fn bytes_that_are_none_of_a_heap_are_refused() {
    let room = Room::new(4 << 20, PAGE);
    // SAFETY: The room is the test's, and lives longer; what it frees wrongly is refused.
    let mut a = unsafe { Bytes::<4>::new() };
    a.dealloc(address(8), layout(8, 8));
    assert_eq!(a.refused(), 1, "there is no memory");
    a.init(room.start(), room.bytes());
    let small = a.alloc(layout(100, 8)).expect("memory");
    let large = a.alloc(layout(100_000, 4096)).expect("memory");
    let used = a.used_bytes();
    let rows = [
        (small, layout(300, 8)),
        (small, layout(100_000, 8)),
        (address(8), layout(100, 8)),
        (large, layout(100, 8)),
        (large, layout(50_000, 4096)),
        (large, layout(200_000, 4096)),
        (unsafe { large.add(PAGE) }, layout(100_000 - PAGE, 4096)),
        (unsafe { large.add(1) }, layout(100_000, 1)),
    ];
    for (n, (pos, layout)) in (2..).zip(rows) {
        a.dealloc(pos, layout);
        assert_eq!((a.refused(), a.used_bytes()), (n, used), "{layout:?}");
    }
    a.dealloc(large, layout(100_000, 4096));
    a.dealloc(small, layout(100, 8));
    a.dealloc(large, layout(100_000, 4096));
    assert_eq!((a.refused(), a.used_bytes()), (10, 0));
    for layout in [
        layout(2 << 30, 8),
        layout(isize::MAX as usize, 1),
        layout(8, 2 << 30),
    ] {
        assert!(a.alloc(layout).is_err(), "{layout:?}");
    }
    for (start, bytes) in [(usize::MAX - 100, 8192), (room.start(), 1 << 20), (0, 0)] {
        assert!(a.add_memory(start, bytes).is_err());
    }
}

#[test]
fn a_heap_refuses_what_it_did_not_hand_out() {
    let room = Room::new(4 << 20, PAGE);
    let heap = Heap::<Lock>::new();
    // SAFETY (here and below): the room is the test's; what is freed wrongly is refused.
    assert!(
        unsafe { heap.alloc(layout(8, 8)) }.is_null(),
        "without memory"
    );
    unsafe { heap.dealloc(core::ptr::null_mut(), layout(8, 8)) };
    unsafe { heap.dealloc(address(8).as_ptr(), layout(8, 8)) };
    assert_eq!(heap.refused(), 1);
    assert_eq!(
        unsafe { heap.add(0, usize::MAX) }.err(),
        Some(AddError::Address)
    );
    assert_eq!(
        unsafe { heap.add(usize::MAX, 2) }.err(),
        Some(AddError::Address)
    );
    let huge = Heap::<Lock>::with_window(usize::MAX);
    assert!(unsafe { huge.add(room.start(), 1 << 20) }.is_err());
    unsafe { heap.add(room.start(), room.bytes()) }.expect("enough");
    let run = unsafe { heap.alloc(layout(5 * PAGE, 8)) };
    let (used, free) = (heap.used(), heap.free());
    let wrong = [1, PAGE - 1, 4 * PAGE, 6 * PAGE, 1 << 21, 1 << 40].map(|n| layout(n.max(9000), 8));
    for (n, layout) in (2..).zip(wrong) {
        unsafe { heap.dealloc(run, layout) };
        assert_eq!((heap.refused(), heap.used(), heap.free()), (n, used, free));
    }
    unsafe { heap.dealloc(run, layout(5 * PAGE, 8)) };
    assert_eq!((heap.used(), heap.free()), (0, free + 5 * PAGE));
}

#[test]
fn frames_of_any_kernel_are_refused_as_a_whole() {
    static FRAMES: GlobalFrames<Lock> = GlobalFrames::new(core::ptr::with_exposed_provenance_mut);
    let room = Room::new(8 << 20, 2 << 20);
    // SAFETY: The room is this test's, and lives longer than the last use.
    unsafe { FRAMES.add_free_memory(room.start(), room.bytes()) }.expect("new memory");
    for layout in [layout(0, 1), layout(2 << 30, 1), layout(1, 2 << 30)] {
        assert_eq!(FRAMES.alloc(layout), None, "{layout:?}");
    }
    let at = FRAMES.alloc(layout(6 * PAGE, PAGE)).expect("memory");
    let free = FRAMES.free_bytes();
    let rows = [
        (at, usize::MAX),
        (at, 1 << 40),
        (at, 7 * PAGE),
        (at + 1, PAGE),
        (at - PAGE, 2 * PAGE),
        (0, PAGE),
        (usize::MAX, 1),
        (usize::MAX & !(PAGE - 1), usize::MAX),
    ];
    for (n, (start, bytes)) in (1..).zip(rows) {
        // SAFETY: it is refused.
        unsafe { FRAMES.dealloc(start, bytes) };
        assert_eq!(
            (FRAMES.refused(), FRAMES.free_bytes()),
            (n, free),
            "{bytes} at {start:#x}"
        );
    }
    // SAFETY: they are this test's.
    unsafe { FRAMES.dealloc(at, 6 * PAGE) };
    assert_eq!(FRAMES.free_bytes(), free + 6 * PAGE);
}

#[test]
fn a_pool_refuses_what_is_not_in_use() {
    // It stays within reach, so that no tool takes it for lost.
    static WORDS: AtomicPtr<u64> = AtomicPtr::new(core::ptr::null_mut());
    let words = vec![0; unfrag_adapt::frame_alloc::words(1 << 19)].leak();
    core::hint::black_box(&WORDS).store(words.as_mut_ptr(), Relaxed);
    let base = PageSize::from_log2(12);
    let pool = Pool::<Lock>::new(base, words);
    let n = |n| NonZeroUsize::new(n).expect("not zero");
    let (start, len) = (64 << 20, 4 << 20);
    let usable = |base, len| PhysRange { base, len };
    let early = pool.allocate_physical(base, n(1));
    assert!(
        matches!(early, Err(FrameError::OutOfMemory)),
        "not initialised"
    );
    // SAFETY (here and below): nothing is behind these addresses, and nobody writes there.
    let init = |at, span, ranges: &[PhysRange]| unsafe { pool.try_init(at, span, ranges) };
    let bad = [
        init(start + 1, len, &[]),
        init(start, 0, &[]),
        init(start, 100, &[]),
        init(usize::MAX & !(PAGE - 1), len, &[]),
        init(start, len, &[usable(start, 0)]),
        init(start, len, &[usable(start - PAGE, PAGE)]),
        init(start, len, &[usable(start, len + PAGE)]),
        init(start, len, &[usable(start + 1, PAGE)]),
        init(
            start,
            len,
            &[usable(start, 2 * PAGE), usable(start + PAGE, PAGE)],
        ),
        init(start, len, &[usable(start, usize::MAX)]),
        init(start, 1 << 50, &[]),
    ];
    assert!(bad.iter().all(Result::is_err), "{bad:?}");
    // More blocks are partly memory than there is room for; and what was begun with takes no words.
    let holes: Vec<_> = (0..65)
        .map(|i| usable(start + i * 512 * PAGE, PAGE))
        .collect();
    let got = init(start, 65 * 512 * PAGE, &holes);
    assert!(matches!(got, Err(InitError::InvalidUsable { index: 64 })));
    init(start, len, &[usable(start, len / 2)]).expect("it is right, and the first");
    let again = init(start, len, &[]);
    assert!(matches!(again, Err(InitError::AlreadyInitialized)));
    let at = pool.allocate_physical(base, n(6)).expect("memory");
    let free = pool.free_bytes();
    let give = |count, at| unsafe { pool.deallocate_physical(base, n(count), at) };
    let mut refused = 0;
    let rows = [
        (7, at),
        (1, at + 1),
        (usize::MAX, at),
        (1, 0),
        (1, usize::MAX),
        (1, start + len - PAGE),
        (1, start + len),
    ];
    for (count, at) in rows {
        give(count, at);
        refused += 1;
        assert_eq!(
            (pool.refused(), pool.free_bytes()),
            (refused, free),
            "{count} at {at:#x}"
        );
    }
    let rows = [
        (start, PAGE),
        (start + len, PAGE),
        (start + len - PAGE, 2 * PAGE),
        (start + len / 2, PAGE + 1),
        (start + len / 2, (1 << 32) * PAGE + PAGE),
        (start + len / 2 + 1, PAGE),
        (usize::MAX, PAGE),
    ];
    for (at, len) in rows {
        unsafe { pool.add_usable(at, len) };
        refused += 1;
        assert_eq!(
            (pool.refused(), pool.free_bytes()),
            (refused, free),
            "{len} at {at:#x}"
        );
    }
    for count in [usize::MAX, 1 << 20] {
        assert!(pool.allocate_physical(base, n(count)).is_err());
    }
    give(6, at);
    assert_eq!(pool.free_bytes(), free + 6 * PAGE);
}
