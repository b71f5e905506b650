//! A frame allocator on a `static`: memory comes late, parts go back in any order.

use crate::chance::Chance;
use crate::room::Room;
use core::alloc::Layout;
use spin::mutex::SpinMutex;
use unfrag::MigrateType;
use unfrag_adapt::AddError;
use unfrag_adapt::global_frames::GlobalFrames;

type Frames = GlobalFrames<SpinMutex<()>>;
const FRAME: usize = 4096;

fn same(at: usize) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(at)
}

/// Writes a number to each frame of a range.
fn mark(start: usize, bytes: usize, number: u64) {
    for at in (start..start + bytes).step_by(FRAME) {
        // SAFETY: The frame was handed out to this test.
        unsafe { same(at).cast::<u64>().write(number ^ at as u64) };
    }
}

fn has_mark(start: usize, bytes: usize, number: u64) -> bool {
    let mut all = (start..start + bytes).step_by(FRAME);
    // SAFETY: As above.
    all.all(|at| unsafe { same(at).cast::<u64>().read() } == number ^ at as u64)
}

fn give(frames: &Frames, start: usize, bytes: usize) {
    // SAFETY: The frames came from there, and are not used any more.
    unsafe { frames.dealloc(start, bytes) };
}

#[test]
fn nothing_is_lost_when_parts_go_back_in_any_order() {
    static FRAMES: Frames = Frames::new(same);
    let room = Room::new(96 << 20, 4096);
    let mut c = Chance::new(1);
    let mut added = 0;
    let mut live: Vec<(usize, usize, u64)> = Vec::new();
    for n in 0..20_000 {
        if n % 2000 == 0 && added < room.bytes() {
            let bytes = ((c.below(16) as usize + 4) << 20 | 777).min(room.bytes() - added);
            // SAFETY: The room is this test's, and lives longer than the last use of the allocator.
            unsafe { FRAMES.add_free_memory(room.start() + added, bytes) }.expect("new memory");
            added += bytes;
        }
        if c.below(5) < 3 {
            let size = 1 + c.below(FRAME as u64 * 40) as usize;
            let align = 1 << c.below(19);
            let layout = Layout::from_size_align(size, align).expect("a layout");
            let mt = [MigrateType::Unmovable, MigrateType::Movable][c.below(2) as usize];
            let Some(start) = FRAMES.alloc_for(layout, mt) else {
                continue;
            };
            let bytes = size.next_multiple_of(FRAME);
            assert!(start.is_multiple_of(align.max(FRAME)));
            assert!(start >= room.start() && start + bytes <= room.start() + added);
            mark(start, bytes, n);
            live.push((start, bytes, n));
        } else if !live.is_empty() {
            let i = c.below(live.len() as u64) as usize;
            let (start, bytes, number) = live.swap_remove(i);
            assert!(has_mark(start, bytes, number), "somebody else wrote there");
            // A part of it, and the rest later.
            let part = (c.below((bytes / FRAME) as u64 + 1) as usize) * FRAME;
            give(&FRAMES, start, part);
            if part < bytes {
                live.push((start + part, bytes - part, number));
            }
        }
    }
    for (start, bytes, number) in live {
        assert!(has_mark(start, bytes, number));
        give(&FRAMES, start, bytes);
    }
    assert_eq!(FRAMES.free_bytes(), FRAMES.total_bytes());
    assert_eq!(FRAMES.refused(), 0);
    let tables = added - FRAMES.total_bytes();
    assert!(
        tables < 300 << 10,
        "{tables} bytes of tables and of partial frames"
    );
}

#[test]
fn bad_memory_and_bad_frames_are_refused() {
    let frames = Frames::new(same);
    let room = Room::new(8 << 20, 2 << 20);
    // SAFETY: As above.
    let add = |start, bytes| unsafe { frames.add_free_memory(start, bytes) };
    assert_eq!(add(room.start(), 4095), Err(AddError::TooSmall));
    assert_eq!(add(usize::MAX - 4095, 8192), Err(AddError::Address));
    assert_eq!(
        add(room.start(), FRAME),
        Err(AddError::TooSmall),
        "no room for tables"
    );
    add(room.start(), 4 << 20).expect("new memory");
    assert_eq!(
        add(room.start() + (2 << 20), 4 << 20),
        Err(AddError::Overlap)
    );
    add(room.start() + (4 << 20), 4 << 20).expect("new memory");
    let layout = Layout::from_size_align(3 * FRAME, FRAME).expect("a layout");
    let start = frames.alloc(layout).expect("memory");
    give(&frames, start, 3 * FRAME);
    give(&frames, start, 3 * FRAME);
    give(&frames, start + 1, FRAME);
    give(&frames, 4096, FRAME);
    assert_eq!(frames.refused(), 3);
    assert_eq!(frames.free_bytes(), frames.total_bytes());
    let too_large = Layout::from_size_align(2 << 30, FRAME).expect("a layout");
    assert_eq!(frames.alloc(too_large), None);
    let nothing = Layout::from_size_align(0, 1).expect("a layout");
    assert_eq!(frames.alloc(nothing), None);
}

#[test]
fn threads_share_it() {
    static FRAMES: Frames = Frames::new(same);
    let room = Room::new(32 << 20, 4096);
    // SAFETY: As above.
    unsafe { FRAMES.add_free_memory(room.start(), room.bytes()) }.expect("new memory");
    std::thread::scope(|threads| {
        for thread in 0..4 {
            threads.spawn(move || {
                let mut c = Chance::new(thread);
                let mut live = Vec::new();
                for n in 0..5000 {
                    let layout = Layout::from_size_align(FRAME << c.below(5), FRAME).expect("one");
                    if let Some(start) = FRAMES.alloc(layout) {
                        mark(start, layout.size(), thread << 32 | n);
                        live.push((start, layout.size(), thread << 32 | n));
                    }
                    if live.len() > 100 {
                        let (start, bytes, number) = live.swap_remove(c.below(100) as usize);
                        assert!(has_mark(start, bytes, number));
                        give(&FRAMES, start, bytes);
                    }
                }
                live.into_iter()
                    .for_each(|(start, bytes, _)| give(&FRAMES, start, bytes));
            });
        }
    });
    assert_eq!(FRAMES.free_bytes(), FRAMES.total_bytes());
}
