//! Variance and auto traits of every public type that has a parameter; `checks/types.rs` says why.

use crate::types::{BOTH, SEND, check, differences, traits};
use core::cell::Cell;
use spin::mutex::SpinMutex;
use unfrag_adapt::ax::{self, Allocator, Pages};
use unfrag_adapt::frame_alloc::Pool;
use unfrag_adapt::global_frames::GlobalFrames;
use unfrag_adapt::heap::{self, Heap};
use unfrag_adapt::report::ReportError;
use unfrag_adapt::x86_64::Frames;

/// The types that are covered here.
const TYPES: [&str; 8] = [
    "Allocator",
    "Bytes",
    "Frames",
    "GlobalFrames",
    "Heap",
    "Pages",
    "Pool",
    "ReportError",
];

type Lock = SpinMutex<()>;

/// A lock that is for one thread.
struct Alone(Cell<bool>);

// SAFETY: it is never taken.
unsafe impl lock_api::RawMutex for Alone {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Alone = Alone(Cell::new(false));
    type GuardMarker = lock_api::GuardNoSend;
    fn lock(&self) {
        self.0.set(true);
    }
    fn try_lock(&self) -> bool {
        false
    }
    unsafe fn unlock(&self) {}
}

/// Compiles as long as each type is covariant, as its line says. Most own what they have: memory that was given up.
#[allow(dead_code, clippy::type_complexity)]
fn covariant<'short, 'long: 'short>() {
    // Borrows a CPU's frames, mutably, and stores nothing.
    let _: fn(Frames<'long, 'long, 'static, Lock>) -> Frames<'short, 'long, 'static, Lock> = |x| x;
    let _: fn(ReportError<&'long u8>) -> ReportError<&'short u8> = |x| x;
}

#[test]
fn what_may_go_to_another_thread() {
    let rows = traits![
        Allocator<Lock>,
        GlobalFrames<Lock>,
        Heap<Lock>,
        Pages,
        Pool<Lock>,
        ReportError<u8>,
        Frames<'static, 'static, 'static, Lock>,
    ];
    check(&rows, BOTH);
    // Used by one caller at a time, and behind locks that one thread may share with itself.
    let rows = traits![
        heap::Bytes,
        ax::Bytes,
        Allocator<Alone>,
        GlobalFrames<Alone>,
        Heap<Alone>,
        Pool<Alone>,
    ];
    check(&rows, SEND);
}

#[test]
fn every_public_type_with_a_parameter_is_covered() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let none: Vec<String> = vec![];
    assert_eq!(differences(source, &TYPES), none);
}
