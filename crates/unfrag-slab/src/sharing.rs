//! Compile-time checks of `Send` and `Sync`.
//!
//! A set, its caches and its source of pages may be shared between threads. A CPU's token may be sent but not
//! shared. A value's handle borrows one, so it may not be sent until it is packed.

use crate::cache::KmemCache;
use crate::cpu::Cpu;
use crate::kmalloc::Kmalloc;
use crate::lock::SpinLock;
#[cfg(feature = "eras")]
use crate::locked::LockedPages;
use crate::memory_pages::MemoryPages;
use crate::page_block::PageBlock;
use crate::pages::{Pages, Window};
use crate::system::Slabs;
use crate::typed::{Cache, Handle, Parcel};
#[cfg(feature = "eras")]
use unfrag_eras::NullHost;

const fn shared<T: Send + Sync + ?Sized>() {}
const fn handed_on<T: Send>() {}

const _: () = {
    shared::<Slabs<'static>>();
    shared::<KmemCache<'static>>();
    shared::<Kmalloc<'static>>();
    shared::<&'static dyn Pages>();
    shared::<Window>();
    shared::<MemoryPages<'static, 'static, SpinLock>>();
    shared::<PageBlock<'static>>();
    // The cache itself holds no value; its handles do.
    shared::<Cache<'static, *const u8>>();
    shared::<Parcel<'static, 'static, u8>>();
    handed_on::<Cpu<'static>>();
    handed_on::<Parcel<'static, 'static, core::cell::Cell<u8>>>();
};

#[cfg(feature = "eras")]
const _: () = {
    shared::<LockedPages<'static, NullHost>>();
    shared::<LockedPages<'static, NullHost, SpinLock>>();
};

/// Has one implementation for types that are not `Sync` and two for those that are, between which the
/// compiler cannot choose.
trait NotSync<Which> {
    const IS: () = ();
}
impl<T: ?Sized> NotSync<()> for T {}
impl<T: ?Sized + Sync> NotSync<u8> for T {}

/// As [`NotSync`], for `Send`.
trait NotSend<Which> {
    const IS: () = ();
}
impl<T: ?Sized> NotSend<()> for T {}
impl<T: ?Sized + Send> NotSend<u8> for T {}

const _: () = {
    let () = <Cpu<'static> as NotSync<_>>::IS;
    let () = <Handle<'static, 'static, u8> as NotSend<_>>::IS;
    let () = <Parcel<'static, 'static, *const u8> as NotSend<_>>::IS;
    let () = <Parcel<'static, 'static, core::cell::Cell<u8>> as NotSync<_>>::IS;
};
