//! Loop devices: a file system's blocks are the pages of a file of tmpfs, so that its data are in
//! memory twice. One thread for each device copies between the two. `spec: linux-mm 8.5, 8.6`
//!
//! Invariant: every page handed in is told of once, in the order in which they came.

use super::NodeId;
use super::read::Blocks;
use crate::block::{Dir, Done};
use crate::engine::Channel;
use crate::mm::LOOP;
use crate::mm::alloc::Who;
use crate::mm::bios::Want;
use crate::mm::config::CACHE_PAGE;
use crate::{Cx, Sim, Spec, World};
use std::collections::VecDeque;
use unfrag::Gfp;

/// A transfer of one page.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    block: u32,
    dir: Dir,
    done: Done,
    page: u32,
    /// With the last page of a bio: what that holds.
    held: Option<u32>,
}

/// A loop device.
#[derive(Clone, Debug)]
pub struct LoopDevice {
    /// The file behind it.
    image: NodeId,
    queue: VecDeque<Transfer>,
    /// Pages copied so far.
    pub copied: u64,
    /// Transfers that failed.
    pub failed: u64,
}

impl LoopDevice {
    /// The file behind it.
    pub fn image(&self) -> NodeId {
        self.image
    }
}

impl World {
    pub(crate) fn submit_to_loop(&mut self, l: u8, blocks: Blocks, pages: &[u32]) {
        let want = Want::of(blocks.dir, pages.len(), blocks.room, false);
        let submitter = self.submitter();
        let held = self.mem.bio_begins(want, submitter);
        let queue = &mut self.mem.vfs.loops[usize::from(l)].queue;
        for (i, &page) in pages.iter().enumerate() {
            queue.push_back(Transfer {
                block: blocks.block + i as u32,
                dir: blocks.dir,
                done: blocks.done,
                page,
                held: (i + 1 == pages.len()).then_some(held),
            });
        }
        self.wake(Channel::new(LOOP, l.into()));
    }
}

impl Sim {
    /// Sets a loop device up over a file of tmpfs, which stays in use from now on; its number serves
    /// as [`Store::Loop`](super::Store::Loop).
    pub fn setup_loop(&mut self, image: NodeId) -> u8 {
        self.pin(image);
        let loops = &mut self.mem().vfs.loops;
        let l = loops.len() as u8;
        loops.push(LoopDevice {
            image,
            queue: VecDeque::new(),
            copied: 0,
            failed: 0,
        });
        // In lists of processes it comes before others with each kernel.
        let spec = Spec::kthread(format!("loop{l}")).nice(-20);
        self.spawn(spec, move |cx| loop_thread(cx, l));
        l
    }
}

fn loop_thread(cx: &mut Cx, l: u8) {
    // What it allocates must not wait for itself.
    let gfp = CACHE_PAGE - Gfp::IO - Gfp::FS;
    let object = cx.with(|sim| {
        let image = sim.mem_ref().vfs.loops[usize::from(l)].image;
        sim.object_of(image)
    });
    loop {
        let next = cx.with(|sim| sim.mem().vfs.loops[usize::from(l)].queue.pop_front());
        let Some(t) = next else {
            cx.wait(Channel::new(LOOP, l.into()), None);
            continue;
        };
        let got = cx.shmem_page(Who::KERNEL, object, t.block, gfp);
        cx.with(|sim| {
            let mem = sim.mem();
            mem.owed += mem.config.costs.copy_page;
            let dev = &mut mem.vfs.loops[usize::from(l)];
            dev.copied += 1;
            dev.failed += u64::from(got.is_err());
            if t.dir == Dir::Write {
                let image = dev.image;
                let n = mem.vfs.node_mut(image);
                n.pages = n.pages.max(t.block + 1);
            }
            sim.page_done(t.done, t.page, got.is_err());
            if let Some(held) = t.held {
                sim.bio_ends(held);
            }
        });
        cx.pay_if_much();
        if cx.with(|sim| sim.mem_ref().vfs.loops[usize::from(l)].queue.is_empty()) {
            cx.pay();
        }
    }
}
