//! [`Claimed`]: frames that were emptied and taken.

use crate::frame::{MigrateType, Pfn};
use crate::memory::Memory;
use lock_api::RawMutex;

/// The frames that a [`Goal::Run`](crate::moves::Goal::Run) or a [`Goal::Range`](crate::moves::Goal::Range) was for. They
/// are nobody's until they are [kept](Self::into_pfn), and free again when this is dropped.
#[must_use = "its frames are free again when it is dropped"]
pub struct Claimed<'s, 'm, R: RawMutex> {
    memory: &'s Memory<'m, R>,
    pfn: Pfn,
    frames: u64,
    mt: MigrateType,
}

impl<'s, 'm, R: RawMutex> Claimed<'s, 'm, R> {
    pub(super) fn new(
        memory: &'s Memory<'m, R>,
        (pfn, frames): (Pfn, u64),
        mt: MigrateType,
    ) -> Claimed<'s, 'm, R> {
        Claimed {
            memory,
            pfn,
            frames,
            mt,
        }
    }

    /// The first frame.
    pub fn pfn(&self) -> Pfn {
        self.pfn
    }

    /// How many frames there are.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Keeps the frames. They are in use from now on, and whoever has them gives them back with
    /// [`Memory::free_range`](crate::Memory::free_range), or in aligned parts as any other block.
    pub fn into_pfn(self) -> Pfn {
        let kept = core::mem::ManuallyDrop::new(self);
        kept.pfn
    }
}

impl<R: RawMutex> Drop for Claimed<'_, '_, R> {
    fn drop(&mut self) {
        let back = self.memory.give_range_back(self.pfn, self.frames, self.mt);
        if back.is_err() {
            self.memory.count_refused();
        }
    }
}

impl<R: RawMutex> core::fmt::Debug for Claimed<'_, '_, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let mut out = f.debug_struct("Claimed");
        out.field("pfn", &self.pfn).field("frames", &self.frames);
        out.finish_non_exhaustive()
    }
}
