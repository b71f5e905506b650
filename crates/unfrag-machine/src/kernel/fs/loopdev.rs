//! Loop devices: the blocks of a file system are the pages of a file of tmpfs, so its data are in memory
//! twice. One thread for each device copies between the two. `spec: 8.5, 8.6`
//!
//! Invariant: the transfer of every submitted page ends once, in order of submission.

use crate::block::Dir;
use crate::channels::LOOP;
use crate::engine::{Channel, Spec};
use crate::fs::NodeId;
use crate::fs::loopdev::{LoopDevice, LoopTransfer};
use crate::fs::transfer::BlockRun;
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Sim, World};
use crate::mm::bio_pool::BioDemand;
use crate::mm::config::CACHE_PAGE;
use std::collections::VecDeque;
use unfrag_eras::Gfp;

impl World {
    pub(crate) fn submit_to_loop(&mut self, l: u8, blocks: BlockRun, pages: &[u32]) {
        let demand = BioDemand::of(blocks.dir, pages.len(), blocks.room, false);
        let submitter = self.submitter();
        let held = self.kernel.bios.begin(demand, submitter);
        let queue = &mut self.kernel.vfs.loops[usize::from(l)].queue;
        for (i, &page) in pages.iter().enumerate() {
            queue.push_back(LoopTransfer {
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
    /// as [`Store::Loop`](crate::fs::Store::Loop).
    pub fn setup_loop(&mut self, image: NodeId) -> u8 {
        self.pin(image);
        let loops = &mut self.kernel().vfs.loops;
        let l = loops.len() as u8;
        loops.push(LoopDevice {
            image,
            queue: VecDeque::new(),
            copied: 0,
            failed: 0,
        });
        // Its nice level is -20 with every kernel, as lists of processes show.
        let spec = Spec::kthread(format!("loop{l}")).nice(-20);
        self.spawn(spec, move |cx| loop_thread(cx, l));
        l
    }
}

fn loop_thread(cx: &mut Cx, l: u8) {
    // Its allocations must not wait for I/O, which may need this thread.
    let gfp = CACHE_PAGE - Gfp::IO - Gfp::FS;
    let object = cx.with(|sim| {
        let image = sim.kernel_ref().vfs.loops[usize::from(l)].image;
        sim.object_of(image)
    });
    loop {
        let next = cx.with(|sim| sim.kernel().vfs.loops[usize::from(l)].queue.pop_front());
        let Some(t) = next else {
            cx.wait(Channel::new(LOOP, l.into()), None);
            continue;
        };
        let got = cx.shmem_page(Who::KERNEL, object, t.block, gfp);
        cx.with(|sim| {
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.copy_page;
            let dev = &mut kernel.vfs.loops[usize::from(l)];
            dev.copied += 1;
            dev.failed += u64::from(got.is_err());
            if t.dir == Dir::Write {
                let image = dev.image;
                let n = kernel.vfs.node_mut(image);
                n.pages = n.pages.max(t.block + 1);
            }
            sim.page_done(t.done, t.page, got.is_err());
            if let Some(held) = t.held {
                sim.bio_ends(held);
            }
        });
        cx.pay_if_much();
        if cx.with(|sim| sim.kernel_ref().vfs.loops[usize::from(l)].queue.is_empty()) {
            cx.pay();
        }
    }
}
