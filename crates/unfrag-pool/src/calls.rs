//! Calls of owners: the one way by which code of others runs within a pool.
//!
//! The caller holds no lock and no borrow. While an owner is called, its thread is marked: what it asks of any pool meanwhile
//! is served from what is free, or refused; it neither reclaims, compacts nor waits, so that no call of an owner leads to
//! another one, and none waits for itself.
//!
//! Invariant: a panic of an owner ends here, and is counted.

use crate::events::Counter;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// This thread runs code of an owner.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread runs code of an owner.
pub(crate) fn is_inside() -> bool {
    // Without a destructor it is there as long as the thread.
    INSIDE.get()
}

/// Ends the mark, by whichever way the call ends.
struct Mark;

impl Mark {
    fn begin() -> Mark {
        debug_assert!(!is_inside(), "a call of an owner leads to no other one");
        INSIDE.set(true);
        Mark
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Calls an owner; `None`, if it panics.
pub(crate) fn call<T>(panics: &Counter, owner: impl FnOnce() -> T) -> Option<T> {
    // What it left half done is the owner's own, which decides by itself whether to go on.
    let done = catch_unwind(AssertUnwindSafe(|| {
        let _mark = Mark::begin();
        owner()
    }));
    match done {
        Ok(done) => Some(done),
        Err(payload) => {
            panics.add(1);
            // Its destructor may be the owner's, too, and panic.
            let dropped = catch_unwind(AssertUnwindSafe(|| {
                let _mark = Mark::begin();
                drop(payload);
            }));
            if let Err(another) = dropped {
                std::mem::forget(another);
            }
            None
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_mark_and_is_counted() {
        let panics = Counter::default();
        assert_eq!(call(&panics, is_inside), Some(true));
        assert!(!is_inside() && panics.get() == 0);
        assert_eq!(call(&panics, || panic!("an owner")), None::<()>);
        assert!(!is_inside() && panics.get() == 1);
    }
}
