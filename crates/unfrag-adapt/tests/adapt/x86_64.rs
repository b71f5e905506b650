//! The crate `x86_64` builds, walks and takes down page tables with frames of ours.

use spin::mutex::SpinMutex;
use std::collections::BTreeMap;
use std::sync::Mutex;
use unfrag::maps::Gigabyte;
use unfrag::{MemoryConfig, MemoryLayout};
use unfrag::{MigrateType, Pfn};
use unfrag_adapt::x86_64::Frames;
use x86_64::structures::paging::mapper::{CleanUp, MappedFrame, TranslateResult};
use x86_64::structures::paging::{
    FrameAllocator, FrameDeallocator, Mapper, OffsetPageTable, Page, PageSize, PageTable,
    PageTableFlags, PhysFrame, Size1GiB, Size2MiB, Size4KiB, Translate,
};
use x86_64::{PhysAddr, VirtAddr};

type Memory<'m> = unfrag::Memory<'m, SpinMutex<()>>;

/// Frames of a gigabyte.
const GIB: u64 = 1 << 18;
const WRITABLE: PageTableFlags = PageTableFlags::PRESENT.union(PageTableFlags::WRITABLE);

fn config(frames: u64) -> MemoryConfig {
    MemoryConfig {
        locals: 2,
        ..MemoryConfig::new(Pfn(0), frames)
    }
}

/// What lives as long as the program. It stays within reach, so that no tool takes it for lost.
fn for_ever<T>(all: Vec<T>) -> &'static mut [T] {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let all = all.leak();
    let mut kept = KEPT.lock().unwrap();
    kept.push(all.as_mut_ptr().expose_provenance());
    all
}

/// A memory of which all frames but the first are free: physical address 0 is nobody's.
fn memory(frames: u64) -> Memory<'static> {
    let room = MemoryLayout::of(&config(frames));
    let directory = for_ever((0..room.gigabytes).map(|_| Gigabyte::NONE).collect());
    let mut words = for_ever(vec![0; room.words]);
    let shared = Memory::new(config(frames));
    shared.start(directory, &mut words).unwrap();
    shared.add(Pfn(1), frames - 1, &mut words).unwrap();
    shared
}

/// The bytes of a machine's memory. Only what is written to takes any.
struct Bytes(Vec<u8>);

impl Bytes {
    fn of(frames: u64) -> Bytes {
        Bytes(vec![0; (frames as usize + 1) << 12])
    }

    /// Where physical address 0 is.
    fn begin(&mut self) -> *mut u8 {
        let begin = self.0.as_mut_ptr();
        begin.wrapping_add(begin.align_offset(4096))
    }
}

/// Maps one page of a size to a new frame.
fn map<S: PageSize + std::fmt::Debug>(
    table: &mut OffsetPageTable<'_>,
    at: u64,
    local: &mut unfrag::Local<'_, '_, SpinMutex<()>>,
) -> PhysFrame<S>
where
    for<'t> OffsetPageTable<'t>: Mapper<S>,
{
    let frame: PhysFrame<S> = Frames::of(local, MigrateType::Movable)
        .allocate_frame()
        .unwrap();
    let page = Page::<S>::from_start_address(VirtAddr::new(at)).unwrap();
    let mut tables = Frames::of(local, MigrateType::Unmovable);
    // SAFETY: The table is not active; the frame is new.
    let flush = unsafe { table.map_to(page, frame, WRITABLE, &mut tables) }.unwrap();
    flush.ignore();
    frame
}

/// Unmaps a page and gives its frame back.
fn unmap<S: PageSize>(
    table: &mut OffsetPageTable<'_>,
    at: u64,
    local: &mut unfrag::Local<'_, '_, SpinMutex<()>>,
) where
    for<'t> OffsetPageTable<'t>: Mapper<S>,
{
    let page = Page::<S>::from_start_address(VirtAddr::new(at)).unwrap();
    let (frame, flush) = table.unmap(page).unwrap();
    flush.ignore();
    let mut pages = Frames::of(local, MigrateType::Movable);
    // SAFETY: Nothing maps it any more.
    unsafe { pages.deallocate_frame(frame) };
    assert_eq!(pages.refused(), 0);
}

#[test]
fn page_tables_of_all_three_sizes_are_built_walked_and_taken_down() {
    const FRAMES: u64 = 4 * GIB;
    const PAGES: u64 = 3000;
    let mut bytes = Bytes::of(FRAMES);
    let begin = bytes.begin();
    let shared = memory(FRAMES);
    let mut local = shared.local().unwrap();
    let root: PhysFrame<Size4KiB> = Frames::of(&mut local, MigrateType::Unmovable)
        .allocate_frame()
        .unwrap();
    let offset = VirtAddr::new(begin as u64);
    let at = (offset + root.start_address().as_u64()).as_mut_ptr::<PageTable>();
    // SAFETY: The frame lies within `bytes`, which outlives the table, and nothing else uses it; it is all zeros.
    let mut table = unsafe { OffsetPageTable::new(&mut *at, offset) };

    let small = |i: u64| 0x1_0000_0000 + i * Size4KiB::SIZE * 7;
    let huge = |i: u64| 0x80_0000_0000 + i * Size2MiB::SIZE * 3;
    let giant = 0x100_0000_0000u64;
    let mut mapped = BTreeMap::new();
    for i in 0..PAGES {
        let frame = map::<Size4KiB>(&mut table, small(i), &mut local);
        mapped.insert(small(i), frame.start_address());
    }
    for i in 0..PAGES / 10 {
        let frame = map::<Size2MiB>(&mut table, huge(i), &mut local);
        mapped.insert(huge(i), frame.start_address());
    }
    let frame = map::<Size1GiB>(&mut table, giant, &mut local);
    mapped.insert(giant, frame.start_address());

    for (&at, &frame) in &mapped {
        assert_eq!(
            table.translate_addr(VirtAddr::new(at + 0x123)),
            Some(frame + 0x123)
        );
    }
    let TranslateResult::Mapped { frame, .. } = table.translate(VirtAddr::new(huge(1))) else {
        panic!("a huge page is not mapped");
    };
    assert!(matches!(frame, MappedFrame::Size2MiB(_)));
    let different: std::collections::BTreeSet<PhysAddr> = mapped.values().copied().collect();
    assert_eq!(different.len(), mapped.len());

    for i in 0..PAGES {
        unmap::<Size4KiB>(&mut table, small(i), &mut local);
    }
    for i in 0..PAGES / 10 {
        unmap::<Size2MiB>(&mut table, huge(i), &mut local);
    }
    unmap::<Size1GiB>(&mut table, giant, &mut local);
    let mut tables = Frames::of(&mut local, MigrateType::Unmovable);
    // SAFETY: Nothing is mapped any more.
    unsafe { table.clean_up(&mut tables) };
    // SAFETY: The table is not used any more.
    unsafe { tables.deallocate_frame(root) };
    assert_eq!(tables.refused(), 0);
    drop(local);
    assert_eq!(shared.free_frames(), FRAMES - 1);
    shared.validate().unwrap();
}

#[test]
fn page_tables_stay_out_of_the_blocks_of_movable_pages() {
    const FRAMES: u64 = 64 * 512;
    let shared = memory(FRAMES);
    let mut local = shared.local().unwrap();
    let mut blocks: BTreeMap<u64, [bool; 2]> = BTreeMap::new();
    for i in 0..20_000 {
        let is_table = i % 10 == 0;
        let mt = [MigrateType::Movable, MigrateType::Unmovable][usize::from(is_table)];
        let frame: PhysFrame<Size4KiB> = Frames::of(&mut local, mt).allocate_frame().unwrap();
        let block = frame.start_address().as_u64() / Size2MiB::SIZE;
        blocks.entry(block).or_default()[usize::from(is_table)] = true;
    }
    let mixed = blocks.values().filter(|b| **b == [true, true]).count();
    assert_eq!(mixed, 0, "of {} blocks", blocks.len());
}

#[test]
fn all_of_memory_is_given_out_once_and_then_none() {
    const FRAMES: u64 = 32 * 512;
    let shared = memory(FRAMES);
    let mut local = shared.local().unwrap();
    let mut pages = Frames::of(&mut local, MigrateType::Movable);
    let next = || -> Option<PhysFrame<Size2MiB>> { pages.allocate_frame() };
    let huge: Vec<_> = std::iter::from_fn(next).collect();
    assert_eq!(huge.len(), 31, "the first block lacks a frame");
    let next = || -> Option<PhysFrame<Size4KiB>> { pages.allocate_frame() };
    let small: Vec<_> = std::iter::from_fn(next).collect();
    assert_eq!(small.len(), 511);
    let giant: Option<PhysFrame<Size1GiB>> = pages.allocate_frame();
    assert_eq!(giant, None);
    for frame in huge {
        // SAFETY: Nobody uses it.
        unsafe { pages.deallocate_frame(frame) };
    }
    for frame in small {
        // SAFETY: Nobody uses it.
        unsafe { pages.deallocate_frame(frame) };
    }
    // What is of no memory at all is refused, and counted.
    let beyond = PhysAddr::new(GIB << 12);
    let foreign = PhysFrame::<Size4KiB>::containing_address(beyond);
    // SAFETY: It is nobody's.
    unsafe { pages.deallocate_frame(foreign) };
    assert_eq!(pages.refused(), 1);
    drop(local);
    assert_eq!(shared.free_frames(), FRAMES - 1);
    shared.validate().unwrap();
}
