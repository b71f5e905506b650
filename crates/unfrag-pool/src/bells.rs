//! What wakes the daemons.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Wakes a thread.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    cond: Condvar,
}

impl Bell {
    pub fn ring(&self) {
        let mut rung = self.rung.lock();
        if !*rung {
            *rung = true;
            self.cond.notify_one();
        }
    }

    /// Sleeps until it is rung, or for so long.
    pub fn wait(&self, time: Option<Duration>) {
        let mut rung = self.rung.lock();
        while !*rung {
            match time {
                Some(time) => {
                    if self.cond.wait_for(&mut rung, time).timed_out() {
                        break;
                    }
                }
                None => self.cond.wait(&mut rung),
            }
        }
        *rung = false;
    }
}

/// The bells of both daemons.
#[derive(Default)]
pub(crate) struct Bells {
    pub kswapd: Bell,
    pub kcompactd: Bell,
    /// Blocks of 2 MiB that somebody did not get. The lock of the bell orders it: it is written before the bell is rung, and
    /// read after it was heard.
    wanted: AtomicU32,
}

impl Bells {
    /// Somebody did not get so many blocks of 2 MiB.
    pub fn want_blocks(&self, blocks: u32) {
        self.wanted.fetch_max(blocks, Relaxed);
        self.kcompactd.ring();
    }

    /// The most that somebody wanted since the last call.
    pub fn take_wanted(&self) -> u32 {
        self.wanted.swap(0, Relaxed)
    }
}
