//! The direct map: addresses of the frames of the window, and the slab of each.

use crate::formulas::PAGE;
use crate::pages::Window;
use crate::sync::{AtomicU32, Ordering};
use core::marker::PhantomData;
use lock_api::RawMutex;
use unfrag::Pfn;

/// The window, and the record of each frame's slab.
///
/// Entry `n` of the table is 0, or the record's place in the window in units of 64 bytes, from 1.
/// Each frame of a slab names its record; other frames name none.
pub(crate) struct DirectMap<R: RawMutex> {
    pub base: *mut u8,
    pub bytes: usize,
    pub table: *const AtomicU32,
    pub first: Pfn,
    /// The records that it leads to have locks of this type.
    pub records: PhantomData<fn() -> R>,
}

impl<R: RawMutex> Clone for DirectMap<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: RawMutex> Copy for DirectMap<R> {}

/// Bytes of a unit of a record's place.
pub(crate) const UNIT: usize = 64;

impl<R: RawMutex> DirectMap<R> {
    /// The map through which `window` and `table` are seen.
    pub fn new(window: &Window, table: &[AtomicU32]) -> DirectMap<R> {
        DirectMap {
            base: window.base.as_ptr(),
            bytes: window.frames.min(table.len()) * PAGE as usize,
            table: table.as_ptr(),
            first: window.first,
            records: PhantomData,
        }
    }
    /// Address of a frame of the window.
    #[inline(always)]
    pub fn frame(&self, frame: u32) -> *mut u8 {
        self.base.wrapping_add(frame as usize * PAGE as usize)
    }
    /// Address in units of 8 bytes, from 1.
    #[inline(always)]
    pub fn place(&self, p: *mut u8) -> u64 {
        (p.addr().wrapping_sub(self.base.addr()) >> 3) as u64 + 1
    }
    /// The address of a place; null for 0.
    #[inline(always)]
    pub fn at(&self, place: u64) -> *mut u8 {
        if place == 0 {
            return core::ptr::null_mut();
        }
        self.base.wrapping_add((place as usize - 1) << 3)
    }
    /// Table entry of the frame that holds `p`, if the window has it.
    #[inline(always)]
    pub fn entry(&self, p: *const u8) -> Option<u32> {
        let off = p.addr().wrapping_sub(self.base.addr());
        if off >= self.bytes {
            return None;
        }
        // SAFETY: the table has an entry for each page of `bytes`.
        #[allow(unsafe_code)]
        let entry = unsafe { &*self.table.add(off / PAGE as usize) };
        // Relaxed: who has an object got it, and with it its slab's record and entry, from the CPU that made the slab.
        match entry.load(Ordering::Relaxed) {
            0 => None,
            id => Some(id),
        }
    }
    /// Gives each frame of a block its record, or none.
    pub fn set_entries(&self, frame: u32, order: u8, id: u32) {
        for n in frame as usize..frame as usize + (1 << order) {
            debug_assert!(n < self.bytes / PAGE as usize);
            // SAFETY: the frame lies in the window, and so has an entry.
            #[allow(unsafe_code)]
            let entry = unsafe { &*self.table.add(n) };
            // Relaxed: as in `entry`, what hands an object on publishes its entry too.
            entry.store(id, Ordering::Relaxed);
        }
    }
    /// Number of what lies at `p`, as the table and the lists name it.
    #[inline(always)]
    pub fn id_of(&self, p: *const u8) -> u32 {
        ((p.addr() - self.base.addr()) / UNIT) as u32 + 1
    }
    /// Address of a record.
    #[inline(always)]
    pub fn by_id(&self, id: u32) -> *mut u8 {
        self.base
            .wrapping_add(id as usize * UNIT)
            .wrapping_sub(UNIT)
    }
}
