//! The layout of an object: its size with padding, its alignment, and the words around it.
//!
//! ```text
//! lead (red zone) | object | red zone | link | state |  … padding to the alignment
//! ```
//! Freelists hold addresses of objects. The link lies in the object itself unless a constructor or a
//! check forbids that; red zone and state exist in checked caches only.

use crate::formulas::LINE;
use crate::rules::Design;
use core::ptr::NonNull;

bitflags::bitflags! {
    /// Properties of a cache.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct CacheFlags: u32 {
        /// Objects do not share cache lines more than their size makes them.
        const HWCACHE_ALIGN = 1;
        /// A shrinker frees its objects: its pages are of the reclaimable type.
        const RECLAIM_ACCOUNT = 2;
        /// Words around each object detect writes beyond it.
        const RED_ZONE = 4;
        /// Free objects are filled with a pattern, which detects writes to them.
        const POISON = 8;
        /// Frees are checked: the object is one of this cache, and is not free.
        const CONSISTENCY = 16;
        /// Shares its slabs with no other cache.
        const NO_MERGE = 32;
        /// One of the kmalloc sizes.
        const KMALLOC = 64;
        /// Any of the checks.
        const DEBUG = Self::RED_ZONE.bits() | Self::POISON.bits() | Self::CONSISTENCY.bits();
    }
}

/// Makes a new object ready, once, when its slab is made. It gets the object's address, with room for the object's size,
/// which is nobody else's until it returns.
pub type Constructor = unsafe fn(NonNull<u8>);

/// Bytes of a word.
const WORD: u32 = 8;

/// Layout of a cache's objects, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectLayout {
    /// From one object to the next.
    pub size: u32,
    /// Alignment of an object.
    pub align: u32,
    /// Before the object.
    pub lead: u32,
    /// Link of free objects, from the object.
    pub next_at: u32,
    /// Red zone, from the object.
    pub red_at: u32,
    /// State word, from the object.
    pub state_at: u32,
}

impl ObjectLayout {
    /// Layout of objects of `object_size` bytes at multiples of `align`, a power of two; `None` if
    /// the size does not fit 32 bits.
    pub fn new(
        object_size: u32,
        align: u32,
        flags: CacheFlags,
        constructed: bool,
        design: Design,
    ) -> Option<ObjectLayout> {
        let mut align = align.max(WORD);
        if flags.contains(CacheFlags::HWCACHE_ALIGN) {
            let mut line = LINE;
            while object_size <= line / 2 {
                line /= 2;
            }
            align = align.max(line);
        }
        let body = object_size.max(WORD).checked_next_multiple_of(WORD)?;
        let mut layout = ObjectLayout {
            size: body,
            align,
            lead: 0,
            next_at: 0,
            red_at: body,
            state_at: body,
        };
        let debug = flags.intersects(CacheFlags::DEBUG);
        if flags.contains(CacheFlags::RED_ZONE) {
            layout.lead = align;
            layout.size = body.checked_add(WORD)?;
        }
        let linked = design != Design::Slab;
        if linked && (constructed || debug) {
            layout.next_at = layout.size;
            layout.size = layout.size.checked_add(WORD)?;
        }
        if debug {
            layout.state_at = layout.size;
            layout.size = layout.size.checked_add(WORD)?;
        }
        let size = layout.size.checked_add(layout.lead)?;
        layout.size = size.checked_next_multiple_of(align)?;
        Some(layout)
    }
}

/// Follows the link of a free object.
///
/// # Safety
/// `object` is free, on a chain that the caller alone has, and its link lies at `next_at`.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) unsafe fn next(object: *mut u8, next_at: usize) -> *mut u8 {
    // SAFETY: as the caller says.
    unsafe { object.add(next_at).cast::<*mut u8>().read() }
}

/// Writes the link of a free object.
///
/// # Safety
/// As for [`next`].
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) unsafe fn set_next(object: *mut u8, next_at: usize, to: *mut u8) {
    // SAFETY: as the caller says.
    unsafe { object.add(next_at).cast::<*mut u8>().write(to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: u32, align: u32, flags: CacheFlags, ctor: bool) -> ObjectLayout {
        ObjectLayout::new(size, align, flags, ctor, Design::Slub).unwrap()
    }

    #[test]
    fn plain_objects_are_rounded_up_to_words_and_hold_their_link() {
        let l = layout(13, 1, CacheFlags::empty(), false);
        assert_eq!((l.size, l.next_at, l.lead), (16, 0, 0));
        assert_eq!(layout(1, 1, CacheFlags::empty(), false).size, 8);
        assert_eq!(layout(100, 64, CacheFlags::empty(), false).size, 128);
    }

    #[test]
    fn a_constructor_keeps_the_link_out_of_the_object() {
        let l = layout(24, 8, CacheFlags::empty(), true);
        assert_eq!((l.size, l.next_at), (32, 24));
        let slab = ObjectLayout::new(24, 8, CacheFlags::empty(), true, Design::Slab);
        assert_eq!(slab.unwrap().size, 24, "SLAB's arrays need no link");
    }

    #[test]
    fn cache_line_alignment_halves_for_small_objects() {
        let size = |s| layout(s, 8, CacheFlags::HWCACHE_ALIGN, false).size;
        assert_eq!(
            [size(8), size(16), size(17), size(33), size(65)],
            [8, 16, 32, 64, 128]
        );
    }

    #[test]
    fn parts_of_a_checked_object_do_not_overlap() {
        for size in [1, 8, 13, 64, 100, 4096] {
            for align in [8, 64, 256] {
                for bits in 1..8 {
                    let flags = CacheFlags::from_bits_truncate(bits << 2);
                    let l = layout(size, align, flags, false);
                    let red = u32::from(flags.contains(CacheFlags::RED_ZONE)) * 8;
                    assert!(l.red_at >= size && l.next_at >= l.red_at + red);
                    assert!(l.state_at >= l.next_at + 8);
                    assert!(l.size >= l.lead + l.state_at + 8);
                    assert!(l.size.is_multiple_of(align) && l.lead.is_multiple_of(align));
                }
            }
        }
    }
}
