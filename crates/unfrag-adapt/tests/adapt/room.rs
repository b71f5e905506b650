//! Memory for an allocator, given back at the end of a test.

use std::alloc::{Layout, alloc_zeroed, dealloc};

pub struct Room {
    at: *mut u8,
    layout: Layout,
}

impl Room {
    /// So many bytes, the first one at a multiple of `align`. The system gives them when they are touched.
    pub fn new(bytes: usize, align: usize) -> Room {
        let layout = Layout::from_size_align(bytes, align).expect("a layout");
        // SAFETY: It has a size.
        let at = unsafe { alloc_zeroed(layout) };
        assert!(!at.is_null());
        Room { at, layout }
    }

    pub fn start(&self) -> usize {
        self.at.expose_provenance()
    }

    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: It came from there.
        unsafe { dealloc(self.at, self.layout) };
    }
}
