//! [`Place`]: a block for what is being moved.

use crate::frame::{MigrateType, Order, Pfn};
use crate::memory::Memory;
use lock_api::RawMutex;

/// A block that an [`Evacuator`](crate::moves::Evacuator) took for what should move. It is nobody's until it is
/// [used](Self::into_pfn), and free again when it is dropped.
#[must_use = "it is free again when it is dropped"]
pub struct Place<'s, 'm, R: RawMutex> {
    shared: &'s Memory<'m, R>,
    pfn: Pfn,
    order: Order,
}

impl<'s, 'm, R: RawMutex> Place<'s, 'm, R> {
    pub(crate) fn new(shared: &'s Memory<'m, R>, pfn: Pfn, order: Order) -> Place<'s, 'm, R> {
        Place { shared, pfn, order }
    }

    /// Its first frame, to copy to.
    pub fn pfn(&self) -> Pfn {
        self.pfn
    }

    /// Its order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// What should move is there: the block is in use from now on, and whoever has it frees it as any other.
    pub fn into_pfn(self) -> Pfn {
        let used = core::mem::ManuallyDrop::new(self);
        used.pfn
    }
}

impl<R: RawMutex> Drop for Place<'_, '_, R> {
    fn drop(&mut self) {
        let back = self
            .shared
            .give_back(self.pfn, self.order, MigrateType::Movable);
        if back.is_err() {
            self.shared.count_refused();
        }
    }
}

impl<R: RawMutex> core::fmt::Debug for Place<'_, '_, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let mut out = f.debug_struct("Place");
        out.field("pfn", &self.pfn).field("order", &self.order);
        out.finish_non_exhaustive()
    }
}
