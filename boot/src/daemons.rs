//! kswapd and kcompactd: tasks that sleep until they are needed.

use crate::{cache, compact, frames, task};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Frames that kswapd asks for at a time.
const BATCH: usize = 32;
/// Ticks between two looks.
const LOOK: u64 = 2;

static STOPS: AtomicBool = AtomicBool::new(false);
/// Whole free blocks that kcompactd keeps ready, while so much memory is free; 0: none.
static KEEPS: AtomicU32 = AtomicU32::new(0);

/// Starts both, on the last CPU.
pub fn start(cpu: usize) -> [task::Handle; 2] {
    [task::spawn(cpu, kswapd), task::spawn(cpu, kcompactd)]
}

/// Ends both.
pub fn stop() {
    STOPS.store(true, Relaxed);
}

/// Has kcompactd keep so many whole free blocks ready.
pub fn keep_ready(blocks: u32) {
    KEEPS.store(blocks, Relaxed);
}

/// Drops page cache when memory was short, until there is twice the low watermark.
fn kswapd() {
    let memory = frames::memory();
    while !STOPS.load(Relaxed) {
        task::sleep(LOOK);
        if !memory.take_short() && frames::room() > frames::LOW {
            continue;
        }
        while frames::room() < 2 * frames::LOW && cache::reclaim(BATCH) > 0 {
            // What this CPU keeps of it is for all.
            frames::flush();
        }
    }
}

/// Makes whole free blocks ahead of demand.
fn kcompactd() {
    while !STOPS.load(Relaxed) {
        let keeps = KEEPS.load(Relaxed);
        let whole = frames::memory().whole_blocks();
        if whole >= keeps || !compact::make_block(keeps) {
            task::sleep(LOOK);
        }
    }
}
