//! The heap under containers, at odd sizes and alignments, and in little memory.

use crate::chance::Chance;
use crate::room::Room;
use allocator_api2::alloc::Allocator;
use allocator_api2::vec::Vec as VecIn;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;
use spin::mutex::SpinMutex;
use unfrag_adapt::AddError;
use unfrag_adapt::heap::{Bytes, Heap};

type Memory = Heap<SpinMutex<()>>;

fn heap(room: &Room) -> Memory {
    let heap = Memory::new();
    // SAFETY: The room is the test's, and lives longer than the last use of the heap.
    unsafe { heap.add(room.start(), room.bytes()) }.expect("enough memory");
    heap
}

/// As the tests of ax-allocator use their allocators: many numbers in one vector that grows, then sorted.
#[test]
fn a_vector_grows_to_millions() {
    // 16 MiB of numbers, 8 MiB of them twice while the vector grows, wherever the room begins.
    let room = Room::new(48 << 20, 4096);
    let heap = heap(&room);
    let mut c = Chance::new(1);
    let mut v: VecIn<u32, &Memory> = VecIn::new_in(&heap);
    for _ in 0..3_000_000 {
        v.push(c.below(1 << 32) as u32);
    }
    v.sort_unstable();
    assert!(v.is_sorted());
    drop(v);
    assert_eq!(heap.used(), 0);
}

/// Blocks of many sizes and alignments hold what was written, and come free in any order.
#[test]
fn blocks_of_any_size_and_alignment_do_not_overlap() {
    let room = Room::new(48 << 20, 4096);
    let heap = heap(&room);
    let mut c = Chance::new(2);
    let mut live: Vec<(NonNull<[u8]>, Layout, u8)> = Vec::new();
    for n in 0..60_000u32 {
        if c.below(3) < 2 && heap.used() < 16 << 20 {
            let most = 1 << c.below(18);
            let size = c.below(most) as usize;
            let layout = Layout::from_size_align(size, 1 << c.below(16)).expect("a layout");
            let Ok(block) = (&heap).allocate(layout) else {
                continue;
            };
            assert_eq!(block.len(), size);
            assert!(
                block
                    .cast::<u8>()
                    .addr()
                    .get()
                    .is_multiple_of(layout.align())
            );
            // SAFETY: The block is this test's.
            unsafe { block.cast::<u8>().write_bytes(n as u8, size) };
            live.push((block, layout, n as u8));
        } else if !live.is_empty() {
            let (block, layout, byte) = live.swap_remove(c.below(live.len() as u64) as usize);
            // SAFETY: As above; it came from this heap.
            unsafe {
                assert!(block.as_ref().iter().all(|&b| b == byte));
                (&heap).deallocate(block.cast(), layout);
            }
        }
    }
    for (block, layout, _) in live {
        // SAFETY: As above.
        unsafe { (&heap).deallocate(block.cast(), layout) };
    }
    assert_eq!(heap.used(), 0);
}

/// It starts in a quarter of a MiB, and most of that can be used.
#[test]
fn it_starts_in_little_memory() {
    let room = Room::new(1 << 20, 4096);
    let start = |bytes| {
        let heap = Memory::new();
        // SAFETY: Only the last heap that was made is used.
        unsafe { heap.add(room.start(), bytes) }.map(|()| heap)
    };
    let fits = (1..256).find(|kib| start(kib << 10).is_ok());
    assert!(fits.is_some_and(|kib| kib <= 160), "{fits:?} KiB");
    assert_eq!(start(8 << 10).err(), Some(AddError::TooSmall));
    let heap = start(1 << 20).expect("enough");
    let layout = Layout::new::<[u64; 12]>();
    // SAFETY: The layout has a size.
    let blocks = std::iter::from_fn(|| NonNull::new(unsafe { heap.alloc(layout) }));
    let bytes = blocks.count() * layout.size();
    assert!(bytes > 600 << 10, "{bytes} of 1 MiB");
}

#[test]
fn memory_is_added_within_the_window() {
    let room = Room::new(32 << 20, 2 << 20);
    let mut heap = Bytes::<8>::new();
    // SAFETY: As above.
    let mut add = |start, bytes| unsafe { heap.add(start, bytes) };
    let start = room.start();
    add(start + (1 << 20), 2 << 20).expect("enough");
    assert_eq!(
        add(start, 1 << 20),
        Err(AddError::Address),
        "before the first"
    );
    assert_eq!(add(start + (1 << 20), 1 << 20), Err(AddError::Overlap));
    add(start + (3 << 20), 14 << 20).expect("within eight times the first");
    assert_eq!(add(start + (17 << 20), 1 << 20), Err(AddError::Address));
    let layout = Layout::from_size_align(8 << 20, 4096).expect("a layout");
    let run = heap.allocate(layout).expect("memory");
    let (used, free) = (heap.used(), heap.free());
    assert_eq!(used, 8 << 20);
    // SAFETY: It came from there.
    unsafe { heap.deallocate(run, layout) };
    assert_eq!((heap.used(), heap.free()), (0, free + (8 << 20)));
}
