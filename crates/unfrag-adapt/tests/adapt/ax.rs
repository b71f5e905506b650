//! The traits of ax-allocator, as its own tests use them, and the operations of ax-alloc.

use crate::chance::Chance;
use crate::room::Room;
use ax_allocator::{AllocError, BaseAllocator, ByteAllocator, PageAllocator};
use core::alloc::Layout;
use spin::mutex::SpinMutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use unfrag::MigrateType;
use unfrag::maps::EngineLayout;
use unfrag_adapt::ax::{Allocator, Bytes, Pages, UsageKind};

const PAGE: usize = 4096;
const GIB: usize = 1 << 30;

fn pages(mt: MigrateType) -> Pages<PAGE> {
    // SAFETY: The tests give it rooms of their own, which live longer, and give back pages of their own.
    unsafe { Pages::of(mt) }
}

/// Gives pages of an allocator back.
fn give(a: &Allocator<SpinMutex<()>>, at: usize, pages: usize, kind: UsageKind) {
    // SAFETY: Each test gives back what it got, or what the allocator refuses.
    unsafe { a.dealloc_pages(at, pages, kind) };
}

/// Anything with the trait: pages of all sizes and alignments, each once.
fn pages_are_handed_out_once(a: &mut impl PageAllocator, c: &mut Chance) {
    let all = a.available_pages();
    let mut live: Vec<(usize, usize)> = Vec::new();
    for _ in 0..2000 {
        if c.below(5) < 3 {
            let pages = 1 + c.below(300) as usize;
            let align = PAGE << c.below(10);
            let before = a.available_pages();
            match a.alloc_pages(pages, align) {
                Ok(at) => {
                    assert!(at.is_multiple_of(align));
                    let end = at + pages * PAGE;
                    assert!(live.iter().all(|&(s, n)| end <= s || s + n * PAGE <= at));
                    assert_eq!(a.available_pages(), before - pages);
                    live.push((at, pages));
                }
                Err(why) => assert!(matches!(why, AllocError::NoMemory)),
            }
        } else if !live.is_empty() {
            let (at, pages) = live.swap_remove(c.below(live.len() as u64) as usize);
            a.dealloc_pages(at, pages);
        }
    }
    live.into_iter()
        .for_each(|(at, pages)| a.dealloc_pages(at, pages));
    assert_eq!(a.available_pages(), all);
    assert_eq!((a.used_pages(), a.total_pages()), (0, all));
}

#[test]
fn pages_of_any_number_and_alignment() {
    let room = Room::new(64 << 20, PAGE);
    let mut a = pages(MigrateType::Movable);
    a.init(room.start() + 100, room.bytes() - 100);
    pages_are_handed_out_once(&mut a, &mut Chance::new(1));
    let wrong = [
        (0, PAGE),
        (1, 0),
        (1, 3 * PAGE),
        (1, PAGE / 2),
        (1, 2 * GIB),
    ];
    for (pages, align) in wrong {
        let got = a.alloc_pages(pages, align);
        assert!(
            matches!(got, Err(AllocError::InvalidParam)),
            "{pages} {align}"
        );
    }
    assert!(matches!(
        a.alloc_pages(20_000, PAGE),
        Err(AllocError::NoMemory)
    ));
    let again = a.add_memory(room.start() + (8 << 20), 1 << 20);
    assert!(matches!(again, Err(AllocError::MemoryOverlap)));
}

#[test]
fn pages_at_an_address() {
    // Within a gigabyte.
    let room = Room::new(16 << 20, 16 << 20);
    let mut a = pages(MigrateType::Unmovable);
    a.init(room.start(), room.bytes());
    let at = room.start() + (6 << 20);
    assert_eq!(a.alloc_pages_at(at, 700, PAGE).ok(), Some(at));
    assert!(matches!(
        a.alloc_pages_at(at + PAGE, 1, PAGE),
        Err(AllocError::NoMemory)
    ));
    assert!(matches!(
        a.alloc_pages_at(at + PAGE, 1, 2 * PAGE),
        Err(AllocError::InvalidParam)
    ));
    assert!(matches!(
        a.alloc_pages_at(0x1000, 1, PAGE),
        Err(AllocError::NoMemory)
    ));
    assert_eq!(a.used_pages(), 700);
    a.dealloc_pages(at, 300);
    a.dealloc_pages(at + 300 * PAGE, 400);
    assert_eq!(a.used_pages(), 0);
}

/// The largest alignment that the trait knows, in memory of two gigabytes.
#[test]
fn a_page_at_a_gigabyte() {
    let room = Room::new(2 * GIB, PAGE);
    let mut a = pages(MigrateType::Unmovable);
    a.init(room.start(), room.bytes());
    let at = a
        .alloc_pages(1, GIB)
        .expect("one of the boundaries is in the memory");
    assert!(at.is_multiple_of(GIB));
    let more: Vec<usize> = std::iter::from_fn(|| a.alloc_pages(256, 1 << 20).ok()).collect();
    // The tables of three gigabytes, two ends and one page are in a MiB each.
    assert!(more.len() >= 2048 - 6, "{} of 2048 MiB", more.len());
    more.into_iter().for_each(|at| a.dealloc_pages(at, 256));
    a.dealloc_pages(at, 1);
    assert_eq!(a.used_pages(), 0);
}

/// Memory that ends a few pages beyond the boundary of a gigabyte, on either side, or within the next one.
#[test]
fn memory_from_just_below_a_gigabyte() {
    let room = Room::new(3 * GIB, GIB);
    // Pages of the tables of a gigabyte.
    let tables = (EngineLayout::GIGABYTE * 8).div_ceil(PAGE);
    assert_eq!(tables, 12);
    let small = [1, 2, tables, tables + 1, tables + 2, 600];
    for (below, above) in small.into_iter().flat_map(|b| small.map(|a| (b, a))) {
        for above in [above, GIB / PAGE + above] {
            let mut a = pages(MigrateType::Unmovable);
            let start = room.start() + GIB - below * PAGE;
            let all = below + above;
            if below <= tables && above <= tables {
                let added = a.add_memory(start, all * PAGE);
                assert!(matches!(added, Err(AllocError::InvalidParam)));
                continue;
            }
            a.init(start, all * PAGE);
            // Tables in each of three gigabytes, or as many pages without tables.
            let total = a.total_pages();
            assert!(
                total + 3 * tables >= all,
                "{total} of {below} + {above} pages"
            );
            let pages: Vec<usize> = std::iter::from_fn(|| a.alloc_pages(1, PAGE).ok()).collect();
            assert_eq!(pages.len(), total);
            assert!(
                pages
                    .iter()
                    .all(|at| (start..start + all * PAGE).contains(at))
            );
            pages.into_iter().for_each(|at| a.dealloc_pages(at, 1));
            assert_eq!(a.available_pages(), total);
        }
    }
}

#[test]
fn memory_of_which_a_part_is_refused_is_refused_as_a_whole() {
    let room = Room::new(2 * GIB, GIB);
    let boundary = room.start() + GIB;
    let mut a = pages(MigrateType::Unmovable);
    a.init(boundary, 4 << 20);
    let total = a.total_pages();
    let overlap = a.add_memory(boundary - (4 << 20), 6 << 20);
    assert!(matches!(overlap, Err(AllocError::MemoryOverlap)));
    assert_eq!(a.total_pages(), total);
    // SAFETY: As in `pages`.
    let mut one = unsafe { Pages::<PAGE, 1>::new() };
    let too_many = one.add_memory(boundary - (4 << 20), 8 << 20);
    assert!(matches!(too_many, Err(AllocError::NoMemory)));
    assert_eq!(one.total_pages(), 0);
    one.add_memory(boundary, 4 << 20).expect("its one gigabyte");
    assert_eq!(one.total_pages(), total);
}

#[test]
fn bytes_from_slab_caches() {
    let room = Room::new(32 << 20, PAGE);
    // SAFETY: The room is the test's, and lives longer; it gives back what it got.
    let mut a = unsafe { Bytes::<4>::new() };
    a.init(room.start(), room.bytes());
    let mut c = Chance::new(3);
    let mut live = Vec::new();
    let mut used = 0;
    for _ in 0..50_000 {
        if c.below(5) < 3 {
            let most = 1 << c.below(14);
            let size = 1 + c.below(most) as usize;
            let layout = Layout::from_size_align(size, 1 << c.below(8)).expect("a layout");
            if let Ok(at) = a.alloc(layout) {
                used += size;
                live.push((at, layout));
            }
        } else if !live.is_empty() {
            let (at, layout) = live.swap_remove(c.below(live.len() as u64) as usize);
            a.dealloc(at, layout);
            used -= layout.size();
        }
        assert_eq!(a.used_bytes(), used);
    }
    assert!(a.total_bytes() > 31 << 20);
    assert_eq!(a.available_bytes(), a.total_bytes() - used);
    live.into_iter()
        .for_each(|(at, layout)| a.dealloc(at, layout));
    assert_eq!(a.used_bytes(), 0);
}

#[test]
fn kinds_of_use_are_kept_apart_and_counted() {
    let room = Room::new(64 << 20, 2 << 20);
    let a = Allocator::<SpinMutex<()>>::new();
    let early = a.alloc_pages(1, PAGE, UsageKind::VirtMem);
    assert!(
        matches!(early, Err(AllocError::NoMemory)),
        "not initialised"
    );
    // SAFETY: The room is the test's, and lives longer than the last use of the allocator.
    unsafe { a.init(room.start(), 64 << 20) }.expect("enough");
    // SAFETY: Nothing happens.
    assert!(unsafe { a.init(room.start(), 64 << 20) }.is_err(), "once");
    // Every 16th page is a page table: their blocks hold nothing else.
    let mut virt = Vec::new();
    let mut tables = Vec::new();
    for n in 0..12_000 {
        let (kind, list) = match n % 16 {
            0 => (UsageKind::PageTable, &mut tables),
            _ => (UsageKind::VirtMem, &mut virt),
        };
        list.push(a.alloc_pages(1, PAGE, kind).expect("memory"));
    }
    assert_eq!(a.usages().get(UsageKind::PageTable), tables.len() * PAGE);
    assert_eq!(a.usages().get(UsageKind::VirtMem), virt.len() * PAGE);
    virt.into_iter()
        .for_each(|at| give(&a, at, 1, UsageKind::VirtMem));
    let huge = std::iter::from_fn(|| a.alloc_pages(512, 2 << 20, UsageKind::VirtMem).ok());
    // 750 page tables fit two blocks; the tables of the allocator itself are in a third and a fourth.
    assert!(huge.count() >= 28, "of 32");
    assert_eq!(
        a.used_bytes() / PAGE,
        tables.len() + a.usages().get(UsageKind::VirtMem) / PAGE
    );
}

static CACHED: SpinMutex<Vec<usize>> = SpinMutex::new(Vec::new());
static CALLS: AtomicUsize = AtomicUsize::new(0);
static ALLOCATOR: Allocator<SpinMutex<()>> = Allocator::new();

#[test]
fn a_request_without_memory_has_page_cache_reclaimed() {
    fn reclaim(pages: usize) -> usize {
        CALLS.fetch_add(1, Relaxed);
        // A request of its own does not come back here.
        let own = ALLOCATOR.alloc_pages(1 << 15, PAGE, UsageKind::Global);
        assert!(own.is_err());
        let mut cached = CACHED.lock();
        let n = pages.min(cached.len());
        let kept = cached.len() - n;
        cached
            .drain(kept..)
            .for_each(|at| give(&ALLOCATOR, at, 1, UsageKind::PageCache));
        n
    }
    let room = Room::new(16 << 20, 2 << 20);
    // SAFETY: As above.
    unsafe { ALLOCATOR.init(room.start(), room.bytes()) }.expect("enough");
    while let Ok(at) = ALLOCATOR.alloc_pages(1, PAGE, UsageKind::PageCache) {
        CACHED.lock().push(at);
    }
    let cached = CACHED.lock().len();
    ALLOCATOR.register_page_reclaim_fn(reclaim);
    let layout = Layout::from_size_align(20 * PAGE, PAGE).expect("a layout");
    let got = ALLOCATOR.alloc(layout).expect("page cache goes for it");
    assert!((1..=4).contains(&CALLS.load(Relaxed)));
    assert!(CACHED.lock().len() < cached);
    // SAFETY: It came from there.
    unsafe { ALLOCATOR.dealloc(got, layout) };
    CACHED.lock().clear();
    let none = ALLOCATOR.alloc_pages(3000, PAGE, UsageKind::Dma);
    assert!(
        matches!(none, Err(AllocError::NoMemory)),
        "nothing is left to reclaim"
    );
}
