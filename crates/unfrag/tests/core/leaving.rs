//! What a `Local` keeps whose owner leaves while somebody drains it.

use crate::support::{add, started};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use unfrag::{Barrier, Memory, MemoryConfig, MigrateType, Order, Pfn};

/// 1: the barrier is being executed. 2: the owner has left.
static STAGE: AtomicU32 = AtomicU32::new(0);

fn wait_for(stage: u32) {
    while STAGE.load(SeqCst) < stage {
        std::thread::yield_now();
    }
}

/// The barrier cannot be had, and the owner leaves what is being drained, so that nobody is left to be called.
#[test]
fn what_is_left_while_it_is_drained_comes_back_without_a_barrier() {
    fn cannot_be_had() -> bool {
        STAGE.store(1, SeqCst);
        wait_for(2);
        false
    }
    let m: Memory<spin::Mutex<()>> = started(MemoryConfig {
        // SAFETY: it never says that it has been executed.
        barrier: Some(unsafe { Barrier::new(cannot_be_had) }),
        ..MemoryConfig::new(Pfn(0), 1 << 18)
    });
    add(&m, Pfn(0), 1 << 18).expect("new");
    let mut l = m.local().expect("a local");
    let p = l.alloc(Order(0), MigrateType::Movable).expect("memory");
    std::thread::scope(|threads| {
        let drained = threads.spawn(|| m.drain_locals());
        wait_for(1);
        drop(l);
        STAGE.store(2, SeqCst);
        assert!(drained.join().expect("no panic") > 0);
    });
    assert_eq!(m.counts().free, (1 << 18) - 1);
    assert_eq!((m.free_frames(), m.refused()), ((1 << 18) - 1, 0));
    assert!(m.local().is_some(), "it is nobody's");
    // SAFETY: nothing is at a frame.
    unsafe { m.free(p, Order(0), MigrateType::Movable) }.expect("in use");
    m.validate().expect("a sound state");
}
