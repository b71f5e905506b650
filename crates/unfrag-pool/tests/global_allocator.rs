//! The heap as the allocator of a whole program, its test runner and threads included. It is a program of its own for that
//! reason.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use unfrag_pool::Heap;

#[global_allocator]
static HEAP: Heap = Heap::new();

#[test]
fn ordinary_collections_live_on_the_heap() {
    let mut tree = BTreeMap::new();
    let mut map = HashMap::new();
    for i in 0..50_000_u32 {
        tree.insert(i.wrapping_mul(2_654_435_761), format!("value {i}"));
        map.insert(i, vec![i; (i % 50) as usize]);
    }
    assert_eq!(tree.len(), 50_000);
    assert!((0..50_000).all(|i| map[&i].iter().all(|x| *x == i)));
    let stats = HEAP.stats();
    assert!(stats.slab_bytes > 5 << 20, "they do live there: {stats:?}");
}

#[test]
fn each_way_of_a_request_is_aligned_and_resizes() {
    for align in [1, 8, 16, 64, 4096, 1 << 16, 1 << 21, 1 << 26] {
        for size in [1, 100, 5000, 40_000, 3 << 20, 40 << 20] {
            let layout = Layout::from_size_align(size, align).expect("a layout");
            // SAFETY: the memory is used as the layout says, and given back once.
            unsafe {
                let p = HEAP.alloc(layout);
                assert!(!p.is_null() && p.addr().is_multiple_of(align), "{layout:?}");
                p.write_bytes(7, size);
                let more = size * 2 + 100;
                let p = HEAP.realloc(p, layout, more);
                assert!(!p.is_null() && p.addr().is_multiple_of(align), "{layout:?}");
                assert!((0..size).step_by(61).all(|i| p.add(i).read() == 7));
                HEAP.dealloc(p, Layout::from_size_align(more, align).expect("a layout"));
                let z = HEAP.alloc_zeroed(layout);
                assert!((0..size).step_by(61).all(|i| z.add(i).read() == 0));
                HEAP.dealloc(z, layout);
            }
        }
    }
}

#[test]
fn memory_that_a_thread_took_another_gives_back() {
    std::thread::scope(|threads| {
        let (send, receive) = mpsc::channel::<Vec<String>>();
        for t in 0..40 {
            let send = send.clone();
            threads.spawn(move || {
                for i in 0..100 {
                    let made = (0..20).map(|j| format!("{t} {i} {j}")).collect();
                    send.send(made).expect("a receiver");
                }
            });
        }
        drop(send);
        assert_eq!(receive.into_iter().map(|v| v.len()).sum::<usize>(), 80_000);
    });
}

#[test]
fn a_mapping_of_its_own_goes_when_it_is_freed() {
    // The other tests have less than that.
    let large = vec![1_u8; 700 << 20];
    assert!(HEAP.stats().mapped_bytes >= 700 << 20);
    drop(large);
    assert!(HEAP.stats().mapped_bytes < 700 << 20);
}

#[test]
fn trim_gives_free_memory_back() {
    let many: Vec<Box<[u8]>> = (0..2000).map(|_| vec![1; 40_000].into()).collect();
    drop(many);
    HEAP.trim();
    let stats = HEAP.stats();
    assert!(stats.released_bytes > 20 << 20, "{stats:?}");
    // It is there again when it is needed.
    let again: Vec<Box<[u8]>> = (0..2000).map(|i| vec![i as u8; 40_000].into()).collect();
    assert!(again.iter().enumerate().all(|(i, b)| b[39_999] == i as u8));
}
