//! What a thread keeps of free memory: a magazine of each class, filled and emptied by batches.
//!
//! An allocation pops, a free looks up the class by the address and pushes, both without a lock or an atomic operation that writes. A
//! free is refused, and looked at again by the slow path, unless the address is that of a piece of a class that is not marked
//! as free ([`Secret`]).
//!
//! The word of a small object that says so is looked at when [`PENDING`] more were freed: it is on its way to the cache meanwhile, as a
//! program frees much that it has not touched for long. Until then the object is pending, and found by its address.
//!
//! Invariants: what is pending was freed, and is marked only if it was free before. What is in a magazine is free, marked as such, and of the magazine's class. A front is used by one thread: the one whose
//! word holds its address.

use super::classes::{CLASSES, MOST_BATCH, batch_of, divisor_of, is_multiple, is_run, limit_of};
use super::ground::{Errno, misuse, now, system_memory};
use super::mark::{self, Secret};
use super::store::{Store, fetched_of};
use super::tls;
use crate::space::FRAME_BYTES;
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// The word of a thread without a front; 0 is one that has not asked.
pub(super) const WITHOUT: usize = 1;

/// Classes that are looked at in a step, and batches of each that are given up at the most.
const STEP: (usize, usize) = (4, 8);

/// Allocations from one look at the clock to the next, and for how many of them one counts that leaves the magazine.
const CALLS: u32 = 128;
const SLOW: u32 = 16;

/// Milliseconds for which a step is meant; after a longer time it is as many steps, up to some.
const PACE: (u64, u64) = (4, 8);

/// Frees of small objects that are pending.
const PENDING: usize = 4;

/// The largest class whose frees are pending for a while: 1 KiB.
const LAST_PENDING: usize = 20;

/// Free memory of a class.
struct Magazine {
    count: Cell<u32>,
    limit: u32,
    divisor: u32,
    /// The count when it was last looked at.
    seen: Cell<u32>,
    /// Room for `limit` addresses, of which `count` are there.
    room: NonNull<NonNull<u8>>,
}

/// What a thread has.
pub(super) struct Front {
    // What the fast path of a free needs, in a line.
    start: usize,
    frames: usize,
    entries: NonNull<AtomicU32>,
    secret: Secret,
    /// Addresses with their class, the newest first.
    pending: [Cell<*mut u8>; PENDING],
    store: &'static Store,
    /// Allocations before the next look at the clock.
    calls: Cell<u32>,
    /// When the last step was made, and with which class the next begins.
    stepped: Cell<u64>,
    next_class: Cell<usize>,
    /// The next front that no thread has.
    pub next: Cell<Option<&'static Front>>,
    magazines: [Magazine; CLASSES],
}

// SAFETY: one thread at a time uses it, as the module says.
unsafe impl Sync for Front {}

/// Addresses of programs have fewer bits.
const TAG_SHIFT: u32 = 56;

/// An address with the class of what is there.
#[inline(always)]
fn tagged(class: usize, memory: NonNull<u8>) -> *mut u8 {
    memory.as_ptr().map_addr(|at| at | class << TAG_SHIFT)
}

#[inline(always)]
fn untagged(place: *mut u8) -> Option<(usize, NonNull<u8>)> {
    let memory = place.map_addr(|at| at & ((1 << TAG_SHIFT) - 1));
    Some((place.addr() >> TAG_SHIFT, NonNull::new(memory)?))
}

/// Has the line of an object brought to the cache, to be written.
#[inline(always)]
fn fetch(memory: NonNull<u8>) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which accesses nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) memory.as_ptr(), options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = memory;
}

impl Front {
    /// An empty one, in memory of the system.
    pub fn new(store: &'static Store) -> Option<&'static Front> {
        let places: usize = (0..CLASSES).map(limit_of).sum();
        let room = size_of::<Front>().next_multiple_of(64);
        let at = system_memory(room + places * size_of::<NonNull<u8>>())?;
        // SAFETY: the memory is that long.
        let mut room = unsafe { at.add(room) }.cast();
        let front = Front {
            start: store.pages.start(),
            frames: store.pages.frames(),
            entries: store.pages.entries(),
            secret: store.secret,
            pending: [const { Cell::new(null_mut()) }; PENDING],
            store,
            calls: Cell::new(CALLS),
            stepped: Cell::new(0),
            next_class: Cell::new(1),
            next: Cell::new(None),
            magazines: std::array::from_fn(|class| {
                let magazine = Magazine {
                    count: Cell::new(0),
                    limit: limit_of(class) as u32,
                    divisor: divisor_of(class),
                    seen: Cell::new(0),
                    room,
                };
                // SAFETY: the memory has room for the limits of all.
                room = unsafe { room.add(limit_of(class)) };
                magazine
            }),
        };
        let at = at.cast::<Front>();
        // SAFETY: the memory is ours, long enough, and aligned to a page.
        unsafe {
            at.write(front);
            Some(at.as_ref())
        }
    }

    /// That of this thread, if it has one.
    #[inline(always)]
    pub fn own() -> Option<&'static Front> {
        let word = tls::get();
        if word <= WITHOUT {
            return None;
        }
        // SAFETY: the word is the address of the thread's front, which is never unmapped.
        Some(unsafe { &*std::ptr::with_exposed_provenance(word) })
    }

    /// Memory of a class, if some is kept and it is not time for a step.
    #[inline(always)]
    pub fn take(&self, class: usize) -> Option<NonNull<u8>> {
        debug_assert!(class < CLASSES);
        // SAFETY: all classes are below.
        let magazine = unsafe { self.magazines.get_unchecked(class) };
        let (count, calls) = (magazine.count.get(), self.calls.get());
        if count == 0 || calls == 0 {
            return None;
        }
        let left = count - 1;
        self.calls.set(calls - 1);
        magazine.count.set(left);
        // SAFETY: so many are there, each two words long and nobody else's.
        unsafe {
            let memory = magazine.room.add(left as usize).read();
            mark::clear(memory);
            Some(memory)
        }
    }

    /// Keeps memory that is freed; false if it is none of a class in use, as far as can be seen, or if there is no room for it.
    ///
    /// # Safety
    /// If it is of a class and in use, the caller gives it up.
    #[inline(always)]
    pub unsafe fn put(&self, memory: NonNull<u8>) -> bool {
        let address = memory.addr().get();
        let frame = address.wrapping_sub(self.start) / FRAME_BYTES;
        if frame >= self.frames {
            return false;
        }
        // SAFETY: the table has an entry for each frame.
        let entry = unsafe { self.entries.add(frame).as_ref() }.load(Relaxed);
        // SAFETY: entries name classes that there are.
        let class = (entry & 0xff) as usize;
        // SAFETY: entries name classes that there are.
        let magazine = unsafe { self.magazines.get_unchecked(class) };
        let within = (entry >> 8) << 12 | (address % FRAME_BYTES) as u32;
        // It is a piece of a class, which is mapped; an entry of no class has the class 0.
        if !is_multiple(within, magazine.divisor) {
            return false;
        }
        if class <= LAST_PENDING {
            // SAFETY: as the caller says.
            return unsafe { self.put_pending(class, memory) };
        }
        // SAFETY: as the caller says.
        unsafe { self.put_now(magazine, memory) }
    }

    /// Keeps memory of a class; false if it is marked as free, or if there is no room for it.
    ///
    /// # Safety
    /// As [`put`](Front::put).
    #[inline(always)]
    unsafe fn put_now(&self, magazine: &Magazine, memory: NonNull<u8>) -> bool {
        let count = magazine.count.get();
        // SAFETY: a piece of a class is mapped.
        if unsafe { self.secret.is_set(memory) } || count >= magazine.limit {
            return false;
        }
        // SAFETY: it is the caller's, and there is room for its address.
        unsafe {
            self.secret.set(memory);
            magazine.room.add(count as usize).write(memory);
        }
        magazine.count.set(count + 1);
        true
    }

    /// Has an object of a class pending, and keeps the one that was longest; false if it is pending already.
    ///
    /// # Safety
    /// As [`put`](Front::put).
    #[inline(always)]
    unsafe fn put_pending(&self, class: usize, memory: NonNull<u8>) -> bool {
        let new = tagged(class, memory);
        if self.pending.iter().any(|place| place.get() == new) {
            return false;
        }
        fetch(memory);
        let mut last = new;
        for place in &self.pending {
            last = place.replace(last);
        }
        if let Some((class, memory)) = untagged(last) {
            // SAFETY: classes are those that there are.
            let magazine = unsafe { self.magazines.get_unchecked(class) };
            // SAFETY: it was given up when it was put.
            if !unsafe { self.put_now(magazine, memory) } {
                self.settle(class, memory);
            }
        }
        true
    }

    fn all_pending(&self) -> impl Iterator<Item = (usize, NonNull<u8>)> {
        self.pending
            .iter()
            .filter_map(|place| untagged(place.get()))
    }

    /// Whether an object was freed a moment ago.
    pub fn is_pending(&self, memory: NonNull<u8>) -> bool {
        self.all_pending().any(|(_, of)| of == memory)
    }

    /// Keeps what was pending, of which there is no room, or which was free before.
    #[cold]
    #[inline(never)]
    fn settle(&self, class: usize, memory: NonNull<u8>) {
        let _errno = Errno::keep();
        // SAFETY: a piece of a class is mapped.
        if unsafe { self.secret.is_set(memory) } {
            misuse("free of memory that is not in use", memory);
        }
        self.make_room(class);
        // SAFETY: it was given up when it was put, and there is room.
        let kept = unsafe { self.put_now(&self.magazines[class], memory) };
        debug_assert!(kept, "there is room");
    }

    /// Looks at what is pending, which ends the program if it was free before.
    pub fn check_pending(&self) {
        for (_, memory) in self.all_pending() {
            // SAFETY: a piece of a class is mapped.
            if unsafe { self.secret.is_set(memory) } {
                misuse("free of memory that is not in use", memory);
            }
        }
    }

    /// Memory of a class that no magazine has, and whether it reads as zeros.
    pub fn take_elsewhere(&self, class: usize) -> Option<(NonNull<u8>, bool)> {
        self.step();
        if let Some(memory) = self.take(class) {
            return Some((memory, false));
        }
        let magazine = &self.magazines[class];
        // SAFETY: the magazine is empty, and has room for a batch.
        if unsafe { self.store.depot.take(class, magazine.room) } {
            magazine.count.set(batch_of(class) as u32);
        } else if is_run(class) {
            return self.store.fetch_one(class);
        } else {
            let mut some = [NonNull::dangling(); MOST_BATCH];
            let some = &mut some[..fetched_of(class)];
            let count = self.store.fetch(class, some);
            // The first is taken first.
            for (place, object) in some[..count].iter().rev().enumerate() {
                // A program that wrote to it when it was free took its mark away.
                // SAFETY: it is nobody's, two words long, and there is room for a batch.
                unsafe {
                    self.secret.set(*object);
                    magazine.room.add(place).write(*object);
                }
            }
            magazine.count.set(count as u32);
        }
        match self.take(class) {
            Some(memory) => Some((memory, false)),
            None => self.store.fetch_one(class),
        }
    }

    /// Makes room for more of a class: the oldest batch goes.
    pub fn make_room(&self, class: usize) {
        let magazine = &self.magazines[class];
        let (count, batch) = (magazine.count.get() as usize, batch_of(class));
        if count < batch {
            return;
        }
        // SAFETY: so many are there.
        let all = unsafe { std::slice::from_raw_parts_mut(magazine.room.as_ptr(), count) };
        let oldest = &all[..batch];
        if !self.store.depot.put(class, oldest) {
            self.store.give_up(class, oldest);
        }
        all.copy_within(batch.., 0);
        magazine.count.set((count - batch) as u32);
        self.step();
    }

    /// Gives up what is in a magazine.
    fn empty_one(&self, class: usize) {
        let magazine = &self.magazines[class];
        let count = magazine.count.replace(0) as usize;
        magazine.seen.set(0);
        // SAFETY: so many are there; nothing below uses the magazine.
        let all = unsafe { std::slice::from_raw_parts(magazine.room.as_ptr(), count) };
        for some in all.chunks(MOST_BATCH) {
            self.store.give_up(class, some);
        }
    }

    /// Gives up all that it has.
    pub fn empty(&self) {
        for place in &self.pending {
            if let Some((class, memory)) = untagged(place.replace(null_mut())) {
                self.settle(class, memory);
            }
        }
        (1..CLASSES).for_each(|class| self.empty_one(class));
    }

    /// A step of what is to be done from time to time, of a bounded length: it gives up what nobody needed for a while, in a
    /// magazine and in the depot.
    fn step(&self) {
        if let Some(calls) = self.calls.get().checked_sub(SLOW) {
            self.calls.set(calls);
            return;
        }
        self.calls.set(CALLS);
        let now = now();
        let since = now.wrapping_sub(self.stepped.replace(now));
        if since == 0 {
            return;
        }
        for _ in 0..STEP.0 * (since / PACE.0).clamp(1, PACE.1) as usize {
            let class = self.next_class.get();
            self.next_class.set(class % (CLASSES - 1) + 1);
            let magazine = &self.magazines[class];
            if magazine.count.get() == magazine.seen.get() {
                self.empty_one(class);
            }
            magazine.seen.set(magazine.count.get());
            for _ in 0..STEP.1 {
                let Some(batch) = self.store.depot.take_idle(class, now) else {
                    break;
                };
                self.store.give_up(class, batch.memory());
            }
        }
        self.store.pages.step(now);
    }
}
