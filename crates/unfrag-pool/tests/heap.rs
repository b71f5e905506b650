//! The heap beside the program's own allocator: what is left when all has been freed, and what it answers to wrong calls. It
//! is a program of its own, so that nothing else is on the heap.

use std::ptr::NonNull;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use unfrag_pool::Heap;

static HEAP: Heap = Heap::new();

/// One test at a time: they look at the heap as a whole.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of the heap, which may go to another thread.
struct Block(NonNull<u8>);

// SAFETY: it has one user at a time.
unsafe impl Send for Block {}

/// Objects of all sizes of slabs.
fn objects(each: usize) -> Vec<Block> {
    let sizes = (16..32_768).step_by(97).flat_map(|s| vec![s; each]);
    let all = sizes.map(|size| Block(HEAP.allocate(size, 8, false).expect("memory")));
    all.collect()
}

fn free(all: Vec<Block>) {
    for block in all {
        // SAFETY: from `objects`, and not used any more.
        unsafe { HEAP.free(block.0) };
    }
}

/// Bytes that the heap has of the system, in use or not.
fn held() -> u64 {
    let stats = HEAP.stats();
    stats.slab_bytes + stats.free_bytes
}

/// `count` threads take objects, and free them when all have some.
fn threads_come_and_go(count: usize) -> u64 {
    let barrier = Barrier::new(count + 1);
    std::thread::scope(|s| {
        let thread = |_| {
            s.spawn(|| {
                let all = objects(8);
                barrier.wait();
                barrier.wait();
                free(all);
            })
        };
        let threads: Vec<_> = (0..count).map(thread).collect();
        barrier.wait();
        let most = HEAP.stats().slab_bytes;
        barrier.wait();
        // Joined, a thread has ended; a scope alone does not wait for that.
        for t in threads {
            t.join().expect("no panic");
        }
        most
    })
}

/// What ended threads kept is within reach of `trim`.
#[test]
fn threads_that_freed_all_and_ended_leave_nothing_behind_a_trim() {
    let _alone = alone();
    for count in [12, 20] {
        let most = threads_come_and_go(count);
        assert!(most > 30 << 20, "{most} bytes");
        assert!(HEAP.trim() > 0);
        let stats = HEAP.stats();
        let left = held();
        assert!(
            left < most / 100,
            "{count} threads: {left} of {most} bytes are left: {stats:?}"
        );
    }
}

/// The magazines of a thread that ended are another thread's, who frees what others took.
#[test]
fn threads_after_others_have_lists_of_their_own() {
    let _alone = alone();
    let mut kept = Vec::new();
    for _ in 0..60 {
        let before = std::mem::take(&mut kept);
        let thread = std::thread::spawn(move || {
            free(before);
            objects(1)
        });
        kept = thread.join().expect("no panic");
    }
    free(kept);
    HEAP.trim();
    assert!(held() < 4 << 20, "{:?}", HEAP.stats());
}

/// Threads begin and end while others trim: what they leave is in the slabs, or in the depot, which the trims empty.
#[test]
fn trims_and_threads_that_begin_and_end_do_not_disturb_each_other() {
    let _alone = alone();
    let barrier = Barrier::new(4);
    std::thread::scope(|s| {
        for t in 0..4 {
            let barrier = &barrier;
            s.spawn(move || {
                barrier.wait();
                for _ in 0..30 {
                    if t % 2 == 0 {
                        HEAP.trim();
                    } else {
                        let one = std::thread::spawn(|| free(objects(1)));
                        one.join().expect("no panic");
                    }
                }
            });
        }
    });
    HEAP.trim();
    assert!(held() < 4 << 20, "{:?}", HEAP.stats());
}
