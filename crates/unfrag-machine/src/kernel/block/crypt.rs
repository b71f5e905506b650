//! The threads of an encrypting layer.
//!
//! Reads join its queue when the disk is done with them, writes when they are submitted. The thread serves
//! them in order, sync and async alike, and uses CPU time for each page. For a write it takes pages to
//! encrypt into and submits it to the disk itself, unless another thread does. While the disk's queue is
//! full it waits, and so does everything behind it. `spec: 4.4`

use crate::block::Dir;
use crate::channels::CRYPT;
use crate::engine::{Channel, Spec};
use crate::kernel::{Cx, Sim, World};

const fn work_channel(crypt: u8) -> Channel {
    Channel::new(CRYPT, crypt as u64 * 2)
}

const fn io_channel(crypt: u8) -> Channel {
    Channel::new(CRYPT, crypt as u64 * 2 + 1)
}

impl World {
    /// Puts a bio at the end of an encrypting layer's queue.
    pub(super) fn crypt_enqueue(&mut self, crypt: u8, slot: u32) {
        let c = &mut self.block.crypts[usize::from(crypt)];
        c.work.push(&mut self.block.flights, slot);
        c.stats.longest_line = c.stats.longest_line.max(c.work.len);
        self.wake(work_channel(crypt));
    }
}

impl Sim {
    /// Starts the threads of an encrypting layer.
    pub(super) fn start_crypt(&mut self, crypt: u8) {
        let config = &self.block.crypts[usize::from(crypt)].config;
        let (name, io_thread) = (config.name.clone(), config.io_thread);
        self.spawn(Spec::kthread(format!("kcryptd {name}")), move |cx| {
            cx.with(|sim| sim.fill_crypt_pool());
            loop {
                encrypt_next(cx, crypt, io_thread);
            }
        });
        if io_thread {
            self.spawn(Spec::kthread(format!("kcryptd_io {name}")), move |cx| {
                loop {
                    submit_next(cx, crypt);
                }
            });
        }
    }
}

fn encrypt_next(cx: &mut Cx, crypt: u8, io_thread: bool) {
    let next = cx.with(|sim| {
        let block = &mut sim.world().block;
        let c = &mut block.crypts[usize::from(crypt)];
        let slot = c.work.pop(&block.flights)?;
        let bio = &block.flights[slot].bio;
        let pages = bio.pages().len() as u64;
        match bio.dir {
            Dir::Read => c.stats.pages_read += pages,
            Dir::Write => c.stats.pages_written += pages,
        }
        Some((slot, bio.dir, pages))
    });
    let Some((slot, dir, pages)) = next else {
        cx.wait(work_channel(crypt), None);
        return;
    };
    let cost = cx.with(|sim| sim.costs.crypt_page) * pages;
    match dir {
        Dir::Read => {
            cx.spend_system(cost);
            cx.with(|sim| sim.finish_bio(slot, false));
        }
        Dir::Write => {
            let bounce = cx.take_crypt_pages(pages as u32);
            cx.with(|sim| sim.world().block.flights[slot].bounce = bounce);
            cx.spend_system(cost);
            if io_thread {
                cx.with(|sim| {
                    let w = sim.world();
                    let c = &mut w.block.crypts[usize::from(crypt)];
                    c.io.push(&mut w.block.flights, slot);
                    w.wake(io_channel(crypt));
                });
            } else {
                let from = cx.now();
                hand_over(cx, slot);
                let blocked = cx.now() - from;
                let index = usize::from(crypt);
                cx.with(|sim| sim.world().block.crypts[index].stats.blocked += blocked);
            }
        }
    }
}

fn submit_next(cx: &mut Cx, crypt: u8) {
    let next = cx.with(|sim| {
        let block = &mut sim.world().block;
        block.crypts[usize::from(crypt)].io.pop(&block.flights)
    });
    match next {
        Some(slot) => hand_over(cx, slot),
        None => {
            cx.wait(io_channel(crypt), None);
        }
    }
}

/// Hands a bio to the disk, and waits until it has a request.
fn hand_over(cx: &mut Cx, slot: u32) {
    let task = cx.task_id();
    cx.with(|sim| {
        let w = sim.world();
        w.block.flights[slot].submitter = Some(task);
        w.queue_on_disk(slot);
    });
    cx.settle();
}
