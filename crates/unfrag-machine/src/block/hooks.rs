//! What the owners of pages do for the block layer. Each is called by it and by nobody else.

use super::{Bio, Done};
use crate::engine::{Cx, Nanos, TaskId};
use crate::mm::bios::Want;
use crate::sim::{Sim, World};

/// A transfer begins, through an encrypting layer or not; called once for each bio. Who submits it may
/// have to wait. Returns what that which is kept for it is known by.
pub fn bio_begins(world: &mut World, bio: &Bio, encrypted: bool, submitter: Option<TaskId>) -> u32 {
    let want = Want::of(bio.dir, bio.pages().len(), bio.room, encrypted);
    world.mem.bio_begins(want, submitter)
}

/// So long a task waits at most for what a transfer of its needs, if the device is not what it waits for.
pub fn longest_wait(sim: &Sim, task: TaskId) -> Option<Nanos> {
    sim.bio_wait(task)
}

/// A task has waited that long.
pub fn waited(sim: &mut Sim, task: TaskId) {
    sim.bios_again(task);
}

/// It has ended; called once for each bio, in an interrupt or by the encrypting layer's thread.
pub fn bio_done(sim: &mut Sim, bio: &Bio, held: u32, failed: bool) {
    sim.bio_ends(held);
    match bio.done {
        Done::User(token) => sim.world().user_done(token, failed),
        Done::PageRead | Done::PageWritten | Done::SwapRead | Done::SwapWritten => {
            for &page in bio.pages() {
                sim.page_done(bio.done, page, failed);
            }
        }
    }
}

/// An encrypting layer is set up.
pub fn crypt_starts(sim: &mut Sim) {
    sim.fill_crypt_pool();
}

/// The encrypting layer needs so many pages to encrypt into; it may wait for them. Returns what they
/// are known by.
pub fn crypt_take(cx: &mut Cx, pages: u32) -> u32 {
    cx.take_crypt_pages(pages)
}

/// It needs them no more.
pub fn crypt_give(sim: &mut Sim, token: u32) {
    sim.give_crypt_pages(token);
}
