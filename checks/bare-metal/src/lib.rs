//! Each hot function, by a name that the linker keeps: `hot_…` has no way to a panic, `slab_…` none but that for the token
//! of another set of caches, and `other_…` has panics of its own, which shows that the look finds them.
#![no_std]

use core::ptr::NonNull;
use unfrag::maps::GiveError;
use unfrag::Local;
use unfrag::{AllocError, Gfp, MigrateType, Order, Pfn};
use unfrag_slab::{Cpu, Fault, KmemCache, NoMemory, SpinLock};

type Own<'s, 'm> = Local<'s, 'm, SpinLock>;

#[unsafe(no_mangle)]
fn hot_local_alloc(local: &mut Own, mt: MigrateType) -> Result<Pfn, AllocError> {
    local.alloc(Order(0), mt)
}

#[unsafe(no_mangle)]
fn hot_local_alloc_atomic(local: &mut Own) -> Result<Pfn, AllocError> {
    local.alloc_atomic(Order(0), MigrateType::Unmovable)
}

#[unsafe(no_mangle)]
unsafe fn hot_local_free(
    local: &mut Own,
    pfn: Pfn,
    mt: MigrateType,
) -> Result<(), GiveError> {
    // SAFETY: As the caller says.
    unsafe { local.free(pfn, Order(0), mt) }
}

#[unsafe(no_mangle)]
fn hot_local_alloc_huge(local: &mut Own) -> Result<Pfn, AllocError> {
    local.alloc(Order::HUGE, MigrateType::Movable)
}

#[unsafe(no_mangle)]
unsafe fn hot_local_free_huge(local: &mut Own, pfn: Pfn) -> Result<(), GiveError> {
    // SAFETY: As the caller says.
    unsafe { local.free(pfn, Order::HUGE, MigrateType::Movable) }
}

#[unsafe(no_mangle)]
fn slab_alloc(cache: &KmemCache, cpu: &Cpu) -> Result<NonNull<u8>, NoMemory> {
    cache.alloc(cpu, Gfp::KERNEL)
}

#[unsafe(no_mangle)]
unsafe fn slab_free(cache: &KmemCache, cpu: &Cpu, object: NonNull<u8>) -> Result<(), Fault> {
    // SAFETY: As the caller says.
    unsafe { cache.free(cpu, object) }
}

#[unsafe(no_mangle)]
fn other_index(of: &[u32], i: usize) -> u32 {
    of[i]
}

#[unsafe(no_mangle)]
fn other_expect(of: Option<Pfn>) -> Pfn {
    of.expect("there is one")
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
