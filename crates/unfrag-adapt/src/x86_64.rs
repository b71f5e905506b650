//! `FrameAllocator` and `FrameDeallocator` of the crate `x86_64`, for frames of 4 KiB, 2 MiB and 1 GiB.
//!
//! These traits do not say what a frame is for. So an allocator is made for one kind of use: page tables are unmovable,
//! pages that their owner can move are movable. Grouping them apart is what keeps huge pages available.
//!
//! Invariant: a frame is given out by one [`Frames`] until it is given back to one of the same kind of use.

use ::x86_64::PhysAddr;
use ::x86_64::structures::paging::{FrameAllocator, FrameDeallocator, PageSize, PhysFrame};
use lock_api::RawMutex;
use unfrag::Local;
use unfrag::{MigrateType, Order, Pfn};

/// Bits of an address within a frame of 4 KiB.
const PAGE_SHIFT: u32 = 12;

/// Frames for one kind of use, from what a CPU takes and gives without a lock.
pub struct Frames<'l, 's, 'm, R: RawMutex> {
    local: &'l mut Local<'s, 'm, R>,
    mt: MigrateType,
    refused: u64,
}

impl<'l, 's, 'm, R: RawMutex> Frames<'l, 's, 'm, R> {
    /// Frames for this kind of use: [`MigrateType::Unmovable`] for page tables and all that stays where it is,
    /// [`MigrateType::Movable`] for pages that their owner moves.
    pub fn of(local: &'l mut Local<'s, 'm, R>, mt: MigrateType) -> Self {
        Frames {
            local,
            mt,
            refused: 0,
        }
    }

    /// Frames that were given back and refused: not of this memory, or free already. They stay out of the free frames.
    /// [`FrameDeallocator`] has no way to say it.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

/// The order of a size of frames: 0, 9 or 18.
fn order<S: PageSize>() -> Order {
    Order((S::SIZE.trailing_zeros() - PAGE_SHIFT) as u8)
}

// SAFETY: A `Local` gives out blocks of free frames, aligned to their size, and none of their frames again until it is
// given back, which is for its owner alone to do.
unsafe impl<S: PageSize, R: RawMutex> FrameAllocator<S> for Frames<'_, '_, '_, R> {
    fn allocate_frame(&mut self) -> Option<PhysFrame<S>> {
        let Pfn(pfn) = self.local.alloc(order::<S>(), self.mt).ok()?;
        PhysFrame::from_start_address(PhysAddr::new(pfn << PAGE_SHIFT)).ok()
    }
}

impl<S: PageSize, R: RawMutex> FrameDeallocator<S> for Frames<'_, '_, '_, R> {
    unsafe fn deallocate_frame(&mut self, frame: PhysFrame<S>) {
        let pfn = Pfn(frame.start_address().as_u64() >> PAGE_SHIFT);
        // SAFETY: The caller has the frame, which was allocated here, and uses it no more.
        let given = unsafe { self.local.free(pfn, order::<S>(), self.mt) };
        self.refused += u64::from(given.is_err());
    }
}
