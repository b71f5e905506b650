//! Blocks that go back to the allocator.

use crate::kernel::Sim;
use crate::mm::frames::Use;
use unfrag_eras::page_alloc::FreeError;
use unfrag_eras::{Order, Pfn};

impl Sim {
    /// Frees a block that the kernel used itself.
    pub(crate) fn free_kernel(&mut self, pfn: Pfn) {
        let kernel = self.kernel();
        let order = kernel.frames.release(pfn);
        kernel.owed += kernel.config.costs.free;
        self.give_frame(pfn, order);
    }

    /// Frees a block without owner.
    pub(crate) fn give_frame(&mut self, pfn: Pfn, order: u8) {
        let cpu = self.cpu_id();
        own(self.manager().free(cpu, pfn, Order(order)));
    }

    /// Frees pages without owner, in their order.
    pub(crate) fn give_pages(&mut self, pages: &[Pfn]) {
        let cpu = self.cpu_id();
        own(self.manager().free_bulk(cpu, pages));
    }

    /// Frees what lost its owner while the allocator was locked: pages of empty slabs, and others. Splits huge pages
    /// that reclaim met.
    pub(crate) fn free_pending(&mut self) {
        while let Some((pfn, order)) = self.kernel().kmem.freed() {
            let pfn = Pfn(pfn.into());
            self.kernel().frames.release(pfn);
            self.give_frame(pfn, order);
        }
        while let Some(pfn) = self.kernel().to_free.pop() {
            self.give_frame(pfn, 0);
        }
        if !self.kernel_ref().to_split.is_empty() {
            self.split_pending();
        }
    }

    /// Records that the kernel uses a block that was just allocated.
    pub(crate) fn take_kernel(&mut self, pfn: Pfn, order: u8, what: Use) {
        self.kernel().frames.take(pfn, order, what);
    }
}

/// A failed free is a bug of the simulated kernel.
fn own(freed: Result<(), FreeError>) {
    if let Err(e) = freed {
        panic!("the simulated kernel frees what is not its own: {e}");
    }
}
