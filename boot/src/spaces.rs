//! The address spaces by number, so that an owner's name leads to them.

use crate::mutex::Mutex;
use crate::space::Space;
use alloc::boxed::Box;
use alloc::vec::Vec;

static ALL: Mutex<Vec<Option<&'static Space>>> = Mutex::new(Vec::new());

/// Makes an empty space. `None`, if there is no frame for its first table.
pub fn create() -> Option<&'static Space> {
    let mut all = ALL.lock();
    let space: &Space = Box::leak(Box::new(Space::new(all.len() as u16)?));
    all.push(Some(space));
    Some(space)
}

/// Calls `f` with a space, which is not destroyed meanwhile.
pub fn with<T>(id: u16, f: impl FnOnce(&Space) -> T) -> Option<T> {
    let all = ALL.lock();
    let space = (*all.get(usize::from(id))?)?;
    Some(f(space))
}

/// Destroys a space, in which no page is mapped, and which no task is in.
pub fn destroy(space: &'static Space) {
    let mut all = ALL.lock();
    all[usize::from(space.id())] = None;
    drop(all);
    // SAFETY: It was leaked in `create`, and nobody reaches it any more.
    let space = unsafe { Box::from_raw(core::ptr::from_ref(space).cast_mut()) };
    space.destroy();
}
