//! Red zones, poison, and the state word of checked caches. `spec: 6.1, 6.2`
//!
//! A checked cache hides the CPU's chain, so that every allocation and free takes the slow path and is checked
//! here. The designs contain no checks.

use crate::cache_record::CacheRecord;
use crate::fault::FaultKind;
use crate::map::DirectMap;
use crate::object::CacheFlags;
use crate::rules::Design;
use lock_api::RawMutex;

/// SLAB's red zones.
const SLAB_INACTIVE: u64 = 0x09F9_1102_9D74_E35B;
const SLAB_ACTIVE: u64 = 0xD841_56C5_6356_88C0;
/// SLUB's and SLQB's.
const SLUB_INACTIVE: u64 = 0xbbbb_bbbb_bbbb_bbbb;
const SLUB_ACTIVE: u64 = 0xcccc_cccc_cccc_cccc;

/// Bytes of an object never used, freed, and the last one of either.
const POISON_INUSE: u8 = 0x5a;
const POISON_FREE: u8 = 0x6b;
const POISON_END: u8 = 0xa5;

/// State words: ASCII, to be recognised in a dump.
const FREE: u64 = u64::from_le_bytes(*b"is free.");
const IN_USE: u64 = u64::from_le_bytes(*b"in use..");

fn red(design: Design, active: bool) -> u64 {
    match (design, active) {
        (Design::Slab, false) => SLAB_INACTIVE,
        (Design::Slab, true) => SLAB_ACTIVE,
        (_, false) => SLUB_INACTIVE,
        (_, true) => SLUB_ACTIVE,
    }
}

/// A word near an object. The layout has room for each that is asked for.
#[allow(unsafe_code)]
fn word(object: *mut u8, at: i64) -> u64 {
    // SAFETY: within the object's room; checked objects are aligned to words.
    unsafe { object.offset(at as isize).cast::<u64>().read() }
}

#[allow(unsafe_code)]
fn set_word(object: *mut u8, at: i64, to: u64) {
    // SAFETY: within the object's room, at a word; the object is not in use, or is its caller's.
    unsafe { object.offset(at as isize).cast::<u64>().write(to) }
}

fn red_words<R: RawMutex>(cache: &CacheRecord<R>) -> [i64; 2] {
    [-8, i64::from(cache.layout.red_at)]
}

fn set_state<R: RawMutex>(cache: &CacheRecord<R>, object: *mut u8, in_use: bool) {
    if cache.flags.contains(CacheFlags::RED_ZONE) {
        for at in red_words(cache) {
            set_word(object, at, red(cache.design, in_use));
        }
    }
    let state = if in_use { IN_USE } else { FREE };
    set_word(object, cache.layout.state_at.into(), state);
}

/// Whether objects are filled: a constructor's work would be lost.
fn is_poisoned<R: RawMutex>(cache: &CacheRecord<R>) -> bool {
    cache.flags.contains(CacheFlags::POISON) && cache.ctor.is_none()
}

#[allow(unsafe_code)]
fn fill<R: RawMutex>(cache: &CacheRecord<R>, object: *mut u8, with: u8) {
    let n = cache.object_size as usize;
    // SAFETY: the object is not in use, and that long.
    unsafe {
        object.write_bytes(with, n - 1);
        object.add(n - 1).write(POISON_END);
    }
}

/// An object of a new slab.
pub(crate) fn on_new<R: RawMutex>(cache: &CacheRecord<R>, object: *mut u8) {
    set_state(cache, object, false);
    if is_poisoned(cache) {
        fill(cache, object, POISON_INUSE);
    }
}

/// Position of the first byte of a free object that has changed since the free.
#[allow(unsafe_code)]
fn first_change<R: RawMutex>(cache: &CacheRecord<R>, object: *mut u8) -> Option<u32> {
    let n = cache.object_size as usize;
    // SAFETY: the object is free, and that long.
    let bytes = unsafe { core::slice::from_raw_parts(object, n) };
    let (last, body) = bytes.split_last()?;
    let fill = match body.first() {
        Some(&POISON_INUSE) => POISON_INUSE,
        _ => POISON_FREE,
    };
    let changed = body.iter().position(|b| *b != fill);
    let changed = changed.or_else(|| (*last != POISON_END).then_some(n - 1));
    changed.map(|at| at as u32)
}

fn check_red<R: RawMutex>(
    cache: &CacheRecord<R>,
    object: *mut u8,
    active: bool,
) -> Result<(), FaultKind> {
    if cache.flags.contains(CacheFlags::RED_ZONE) {
        let [before, behind] = red_words(cache);
        if word(object, before) != red(cache.design, active) {
            return Err(FaultKind::RedZoneBefore);
        }
        if word(object, behind) != red(cache.design, active) {
            return Err(FaultKind::RedZoneBehind);
        }
    }
    Ok(())
}

/// An object about to be handed out.
pub(crate) fn on_alloc<R: RawMutex>(
    cache: &CacheRecord<R>,
    object: *mut u8,
) -> Result<(), FaultKind> {
    if word(object, cache.layout.state_at.into()) != FREE {
        return Err(FaultKind::State);
    }
    check_red(cache, object, false)?;
    if is_poisoned(cache)
        && let Some(at) = first_change(cache, object)
    {
        return Err(FaultKind::WrittenAfterFree(at));
    }
    set_state(cache, object, true);
    Ok(())
}

/// An object that is freed, at a place where one begins.
pub(crate) fn on_free<R: RawMutex>(
    cache: &CacheRecord<R>,
    object: *mut u8,
) -> Result<(), FaultKind> {
    if word(object, cache.layout.state_at.into()) == FREE {
        return Err(FaultKind::DoubleFree);
    }
    check_red(cache, object, true)?;
    if word(object, cache.layout.state_at.into()) != IN_USE {
        return Err(FaultKind::State);
    }
    set_state(cache, object, false);
    if is_poisoned(cache) {
        fill(cache, object, POISON_FREE);
    }
    Ok(())
}

/// Chains an object before the others in quarantine. Returns it.
pub(crate) fn quarantine<R: RawMutex>(
    cache: &CacheRecord<R>,
    object: *mut u8,
    before: *mut u8,
) -> *mut u8 {
    set_word(object, cache.layout.state_at.into(), before.addr() as u64);
    object
}

/// Takes an object out of quarantine, to be freed. Returns the next one.
pub(crate) fn unquarantine<R: RawMutex>(
    map: &DirectMap<R>,
    cache: &CacheRecord<R>,
    object: *mut u8,
) -> *mut u8 {
    let next = word(object, cache.layout.state_at.into()) as usize;
    set_state(cache, object, false);
    match next {
        0 => core::ptr::null_mut(),
        at => map.base.with_addr(at),
    }
}
