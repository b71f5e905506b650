//! The bootstrap cache: memory for the records of the caches, taken from pages directly.
//!
//! Each size class has pages of order 0 (the largest records a block of their own). A page's first
//! 64 bytes are its head; the records behind it are multiples of 64 bytes at multiples of 64. A page
//! whose records are all free goes back at once, except for one in each class, so that a single record
//! does not allocate and free a page each time. [`trim`](BootstrapCache::trim) returns those as well.
//!
//! Invariant: a page with a free record is on its class's list, others are on none. A page's head is reached through
//! raw pointers, as its neighbours on the list lead to it too; the lock is not held while a page comes or goes.

use crate::formulas::{PAGE, order_for};
use crate::lock::Locked;
use crate::sync::{AtomicU64, Ordering};
use crate::{
    map::{DirectMap, UNIT},
    pages::{PageRequest, Pages},
};
use core::ptr::{NonNull, null_mut};
use lock_api::RawMutex;
use unfrag::frame::Pfn;
use unfrag::{Gfp, MigrateType};

/// Sizes of records, each chosen to fill a page but for its head.
const CLASSES: [u16; 10] = [64, 128, 192, 256, 384, 512, 640, 960, 1344, 1984];

/// Records stay where they are.
const RECORDS: MigrateType = MigrateType::Unmovable;

/// Head of a page of records.
struct Head {
    next: *mut Head,
    prev: *mut Head,
    free: *mut u8,
    inuse: u16,
    class: u8,
}

struct Class {
    /// Pages with a free record.
    pages: *mut Head,
    /// How many of them have no record in use.
    empty: u32,
}

/// The bootstrap cache.
pub(crate) struct BootstrapCache<R: RawMutex> {
    classes: Locked<[Class; CLASSES.len()], R>,
    /// Pages held.
    pages: AtomicU64,
}

// SAFETY: the lists are reached through their lock alone.
#[allow(unsafe_code)]
unsafe impl Send for Class {}

fn class_of(bytes: usize) -> Option<usize> {
    CLASSES.iter().position(|c| usize::from(*c) >= bytes)
}

fn request(order: u8, gfp: Gfp, node: u8) -> PageRequest {
    let gfp = gfp - (Gfp::ZERO | Gfp::MOVABLE | Gfp::RECLAIMABLE | Gfp::HIGHMEM | Gfp::THISNODE);
    PageRequest {
        order,
        gfp,
        node,
        first_pass_only: false,
        object_bytes: 0,
    }
}

#[allow(unsafe_code)]
impl<R: RawMutex> BootstrapCache<R> {
    pub fn new() -> BootstrapCache<R> {
        BootstrapCache {
            classes: Locked::new(
                [const {
                    Class {
                        pages: null_mut(),
                        empty: 0,
                    }
                }; CLASSES.len()],
            ),
            pages: AtomicU64::new(0),
        }
    }

    /// Its lock.
    pub fn raw_lock(&self) -> &Locked<impl Sized, R> {
        &self.classes
    }

    /// Pages held.
    pub fn pages(&self) -> u64 {
        // Relaxed, here and below: nothing is read because of this count.
        self.pages.load(Ordering::Relaxed)
    }

    /// `bytes` of zeroed memory at a multiple of 64.
    pub fn alloc(
        &self,
        pages: &dyn Pages,
        map: &DirectMap<R>,
        bytes: usize,
        gfp: Gfp,
        node: u8,
    ) -> Option<NonNull<u8>> {
        let Some(class) = class_of(bytes) else {
            return self.alloc_block(pages, map, bytes, gfp, node);
        };
        let mut classes = self.classes.lock();
        let c = &mut classes[class];
        if c.pages.is_null() {
            drop(classes);
            let page = self.new_page(pages, map, class, gfp, node)?;
            classes = self.classes.lock();
            // SAFETY: the page is new, and its head complete.
            unsafe { link(&mut classes[class], page) };
            classes[class].empty += 1;
        }
        let c = &mut classes[class];
        // SAFETY: pages on the list have a head and a free record, whose first word is the next one.
        let record = unsafe {
            let head = c.pages;
            let record = (*head).free;
            (*head).free = record.cast::<*mut u8>().read();
            if (*head).inuse == 0 {
                c.empty -= 1;
            }
            (*head).inuse += 1;
            if (*head).free.is_null() {
                unlink(c, head);
            }
            record.write_bytes(0, usize::from(CLASSES[class]));
            record
        };
        NonNull::new(record)
    }

    /// Takes back what [`alloc`](BootstrapCache::alloc) gave.
    ///
    /// # Safety
    /// `record` came from it for the same number of bytes, and is not used any more.
    pub unsafe fn free(
        &self,
        pages: &dyn Pages,
        map: &DirectMap<R>,
        record: NonNull<u8>,
        bytes: usize,
    ) {
        let record = record.as_ptr();
        let frame = (record.addr() - map.base.addr()) / PAGE as usize;
        let Some(class) = class_of(bytes) else {
            let order = order_for(bytes as u64);
            self.pages.fetch_sub(1 << order, Ordering::Relaxed);
            // SAFETY: the block was allocated for the record alone, which the caller gives up.
            unsafe { pages.free(Pfn(map.first.0 + frame as u64), order, RECORDS) };
            return;
        };
        let mut classes = self.classes.lock();
        let c = &mut classes[class];
        let head: *mut Head = map.frame(frame as u32).cast();
        // SAFETY: the caller's record lies behind the head of its page.
        let gone = unsafe {
            debug_assert_eq!(usize::from((*head).class), class, "freed with another size");
            record.cast::<*mut u8>().write((*head).free);
            let was_full = (*head).free.is_null();
            (*head).free = record;
            (*head).inuse -= 1;
            if was_full {
                link(c, head);
            }
            let empty = (*head).inuse == 0;
            c.empty += u32::from(empty);
            let gone = empty && c.empty > 1;
            if gone {
                c.empty -= 1;
                unlink(c, head);
            }
            gone
        };
        drop(classes);
        if gone {
            self.pages.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: the page was allocated by `new_page`, has no record in use, and left the list.
            unsafe { pages.free(Pfn(map.first.0 + frame as u64), 0, RECORDS) };
        }
    }

    /// Returns the pages without a record in use.
    pub fn trim(&self, pages: &dyn Pages, map: &DirectMap<R>) {
        for class in 0..CLASSES.len() {
            loop {
                let mut classes = self.classes.lock();
                let c = &mut classes[class];
                let mut at = c.pages;
                // SAFETY: pages on the list have a head.
                let found = unsafe {
                    while !at.is_null() && (*at).inuse > 0 {
                        at = (*at).next;
                    }
                    if !at.is_null() {
                        c.empty -= 1;
                        unlink(c, at);
                    }
                    !at.is_null()
                };
                drop(classes);
                if !found {
                    break;
                }
                let frame = (at.addr() - map.base.addr()) / PAGE as usize;
                self.pages.fetch_sub(1, Ordering::Relaxed);
                // SAFETY: as in `free`.
                unsafe { pages.free(Pfn(map.first.0 + frame as u64), 0, RECORDS) };
            }
        }
    }

    fn new_page(
        &self,
        pages: &dyn Pages,
        map: &DirectMap<R>,
        class: usize,
        gfp: Gfp,
        node: u8,
    ) -> Option<*mut Head> {
        let page = self.block(pages, map, 0, gfp, node)?.as_ptr();
        let size = usize::from(CLASSES[class]);
        let records = (PAGE as usize - UNIT) / size;
        let mut free = null_mut();
        for i in (0..records).rev() {
            // SAFETY: the record lies within the page, which is ours.
            unsafe {
                let record = page.add(UNIT + i * size);
                record.cast::<*mut u8>().write(free);
                free = record;
            }
        }
        let head = Head {
            next: null_mut(),
            prev: null_mut(),
            free,
            inuse: 0,
            class: class as u8,
        };
        // SAFETY: the page is ours and begins with room for a head.
        unsafe { page.cast::<Head>().write(head) };
        Some(page.cast())
    }

    fn alloc_block(
        &self,
        pages: &dyn Pages,
        map: &DirectMap<R>,
        bytes: usize,
        gfp: Gfp,
        node: u8,
    ) -> Option<NonNull<u8>> {
        let order = order_for(bytes as u64);
        let block = self.block(pages, map, order, gfp, node)?;
        // SAFETY: the block is ours and that large.
        unsafe { block.as_ptr().write_bytes(0, (PAGE as usize) << order) };
        Some(block)
    }

    fn block(
        &self,
        pages: &dyn Pages,
        map: &DirectMap<R>,
        order: u8,
        gfp: Gfp,
        node: u8,
    ) -> Option<NonNull<u8>> {
        let pfn = pages.alloc(&request(order, gfp, node))?;
        self.pages.fetch_add(1 << order, Ordering::Relaxed);
        NonNull::new(map.frame((pfn.0 - map.first.0) as u32))
    }
}

/// # Safety
/// `head` heads a page of the class that is on no list.
#[allow(unsafe_code)]
unsafe fn link(c: &mut Class, head: *mut Head) {
    // SAFETY: both are heads of pages of this class, which the lock guards.
    unsafe {
        (*head).prev = null_mut();
        (*head).next = c.pages;
        if !c.pages.is_null() {
            (*c.pages).prev = head;
        }
    }
    c.pages = head;
}

/// # Safety
/// `head` is on the class's list.
#[allow(unsafe_code)]
unsafe fn unlink(c: &mut Class, head: *mut Head) {
    // SAFETY: it and its neighbours are on the list, which the lock guards.
    unsafe {
        let (prev, next) = ((*head).prev, (*head).next);
        if prev.is_null() {
            c.pages = next;
        } else {
            (*prev).next = next;
        }
        if !next.is_null() {
            (*next).prev = prev;
        }
    }
}
