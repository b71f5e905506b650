//! The conformance and property suites that the crate `frame-alloc` publishes, on our pool.

use frame_alloc::PageSize;
use spin::mutex::SpinMutex;
use unfrag_adapt::frame_alloc::{Pool, words};

/// A pool for any span of these suites, wherever the system puts it. Its words are leaked.
fn pool(base: PageSize) -> Pool<SpinMutex<()>> {
    Pool::new(base, Vec::leak(vec![!0; words(1 << 19)]))
}

#[allow(dead_code, unused_imports, clippy::all)]
mod conformance {
    include!(concat!(env!("OUT_DIR"), "/conformance.rs"));
}

#[allow(dead_code, unused_imports, clippy::all)]
mod property {
    include!(concat!(env!("OUT_DIR"), "/property.rs"));
}
