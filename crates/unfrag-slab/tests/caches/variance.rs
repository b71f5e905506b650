//! Variance and auto traits of every public type that has a parameter.
//!
//! A covariant type of `'long` serves as one of `'short`. That is sound only if no method with `&self` stores what lives
//! for its parameter: stored as `'short`, it would be used as long as `'long`. No type of this crate stores anything that is
//! lent to it: sources of pages and tables are lent for all of a set's life when it is made. What a type below could store
//! stands beside it.

use crate::types::{BOTH, NEITHER, SEND, check, differences, traits};
use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;
use unfrag_eras::NullHost;
use unfrag_slab::{
    Cache, CacheOptions, Cpu, CurrentCpu, DestroyError, Handle, Heap, HeldLocks, Kmalloc,
    KmemCache, LockedPages, MemoryPages, PageBlock, Parcel, Refused, Slabs, SpinLock,
};

/// The types that are covered here.
const TYPES: [&str; 15] = [
    "Cache",
    "CacheOptions",
    "Cpu",
    "DestroyError",
    "Handle",
    "Heap",
    "HeldLocks",
    "Kmalloc",
    "KmemCache",
    "LockedPages",
    "MemoryPages",
    "PageBlock",
    "Parcel",
    "Refused",
    "Slabs",
];

/// Compiles as long as each type is covariant, as its line says. `LockedPages` is not in its manager's lifetime; an example
/// in its module that must not compile holds that. Nor is `MemoryPages` in
/// that of its memory, which holds it for its own type.
#[allow(dead_code, clippy::type_complexity)]
fn covariant<'short, 'long: 'short>() {
    // Lent when the set is made, for all its life: the source of pages, the table.
    let _: fn(Slabs<'long>) -> Slabs<'short> = |x| x;
    // Store objects by their bytes.
    let _: fn(KmemCache<'long>) -> KmemCache<'short> = |x| x;
    let _: fn(Kmalloc<'long>) -> Kmalloc<'short> = |x| x;
    let _: fn(DestroyError<'long>) -> DestroyError<'short> = |x| x;
    let _: fn(HeldLocks<'long>) -> HeldLocks<'short> = |x| x;
    let _: fn(Cpu<'long>) -> Cpu<'short> = |x| x;
    // It stores nothing. In its memory's own lifetime it is invariant.
    let _: fn(MemoryPages<'long, 'static>) -> MemoryPages<'short, 'static> = |x| x;
    let _: fn(PageBlock<'long>) -> PageBlock<'short> = |x| x;
    let _: fn(CacheOptions<'long>) -> CacheOptions<'short> = |x| x;
    // A value in a cache is reached through its handle alone, which owns it.
    let _: fn(Cache<'long, &'long u8>) -> Cache<'short, &'short u8> = |x| x;
    let _: fn(Handle<'long, 'long, &'long u8>) -> Handle<'short, 'short, &'short u8> = |x| x;
    let _: fn(Parcel<'long, 'long, &'long u8>) -> Parcel<'short, 'short, &'short u8> = |x| x;
    let _: fn(Refused<&'long u8>) -> Refused<&'short u8> = |x| x;
    // It stores caches, of `'static` alone.
    let _: fn(Heap<Borrowing<'long>>) -> Heap<Borrowing<'short>> = |x| x;
}

/// A host of a heap that borrows.
struct Borrowing<'a>(#[allow(dead_code)] &'a u8);

impl CurrentCpu for Borrowing<'_> {
    fn with<T>(&self, f: impl FnOnce(Option<&Cpu<'static>>) -> T) -> T {
        f(None)
    }
}

/// A lock that stays on its thread.
struct Alone(PhantomData<Rc<()>>);

// SAFETY: it is never taken.
unsafe impl lock_api::RawMutex for Alone {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Alone = Alone(PhantomData);
    type GuardMarker = lock_api::GuardNoSend;
    fn lock(&self) {
        unreachable!()
    }
    fn try_lock(&self) -> bool {
        false
    }
    unsafe fn unlock(&self) {}
}

#[test]
fn what_may_go_to_another_thread() {
    let rows = traits![
        Slabs<'static>,
        KmemCache<'static>,
        Kmalloc<'static>,
        PageBlock<'static>,
        CacheOptions<'static>,
        LockedPages<'static, NullHost>,
        MemoryPages<'static, 'static, SpinLock>,
        Cache<'static, *const u8>,
        Heap<Borrowing<'static>>,
        Parcel<'static, 'static, u8>,
        DestroyError<'static>,
        Refused<u8>,
    ];
    check(&rows, BOTH);
    let rows = traits![Cpu<'static>, Parcel<'static, 'static, Cell<u8>>];
    check(&rows, SEND);
    // A lock is released where it was taken.
    let [(name, is)] = traits![HeldLocks<'static>];
    assert_eq!(is, (false, true), "{name}");
    // A handle frees on the CPU that it borrows. A lock that stays on its thread
    // keeps there what is behind it.
    let rows = traits![
        Handle<'static, 'static, u8>,
        Parcel<'static, 'static, *const u8>,
        Slabs<'static, Alone>,
        KmemCache<'static, Alone>,
        Kmalloc<'static, Alone>,
        Cpu<'static, Alone>,
        Cache<'static, u8, Alone>,
        Parcel<'static, 'static, u8, Alone>,
        HeldLocks<'static, Alone>,
        MemoryPages<'static, 'static, Alone>,
        DestroyError<'static, Alone>,
    ];
    check(&rows, NEITHER);
    let [(_, spin)] = traits![SpinLock];
    assert_eq!(spin, BOTH);
}

/// A new type with a parameter needs its line above.
#[test]
#[cfg_attr(miri, ignore = "it reads files")]
fn every_public_type_with_a_parameter_is_covered() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let none: Vec<String> = vec![];
    assert_eq!(differences(source, &TYPES), none);
}
