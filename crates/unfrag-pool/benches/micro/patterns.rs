//! What programs ask a page allocator for, as lists of operations.
//!
//! The first four are AIM9's tests that concern it (source S0); the next four stand for the loads of source S3; the rest
//! are pairs with a share of unmovable frames.

use crate::random::Random;
use unfrag::MigrateType::{self, Movable, Reclaimable, Unmovable};

/// An operation on a place, which holds a block or none.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Take(u32, u8, MigrateType),
    Give(u32),
}

/// A load.
pub struct Pattern {
    pub name: &'static str,
    pub ops: Vec<Op>,
    /// Places that it uses.
    pub places: usize,
}

/// Operations of a pattern, about.
const LENGTH: usize = 200_000;

/// Takes and gives at places, so that each operation is one that can be done.
struct Writer {
    ops: Vec<Op>,
    held: Vec<u32>,
    free: Vec<u32>,
    places: u32,
}

impl Writer {
    fn take(&mut self, order: u8, mt: MigrateType) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places += 1;
            self.places - 1
        });
        self.ops.push(Op::Take(place, order, mt));
        self.held.push(place);
        place
    }

    fn take_many(&mut self, n: usize, mt: MigrateType) {
        (0..n).for_each(|_| {
            self.take(0, mt);
        });
    }

    /// Gives back the place at a position of those that are held.
    fn give(&mut self, at: usize) {
        let place = self.held.remove(at);
        self.ops.push(Op::Give(place));
        self.free.push(place);
    }

    /// Gives back all but the oldest `keep`, the youngest first.
    fn give_down_to(&mut self, keep: usize) {
        while self.held.len() > keep {
            self.give(self.held.len() - 1);
        }
    }
}

fn pattern(name: &'static str, mut step: impl FnMut(&mut Writer)) -> Pattern {
    let mut w = Writer {
        ops: Vec::with_capacity(LENGTH * 2),
        held: Vec::new(),
        free: Vec::new(),
        places: 0,
    };
    while w.ops.len() < LENGTH {
        step(&mut w);
    }
    w.give_down_to(0);
    Pattern {
        name,
        places: w.places as usize,
        ops: w.ops,
    }
}

/// A frame of one of three types, by shares in percent.
fn mixed(r: &mut Random, unmovable: u32, reclaimable: u32) -> MigrateType {
    match r.below(100) as u32 {
        n if n < unmovable => Unmovable,
        n if n < unmovable + reclaimable => Reclaimable,
        _ => Movable,
    }
}

/// Keeps up to `most` frames, of which a random one goes for each that comes.
fn turnover(w: &mut Writer, r: &mut Random, most: usize, mt: MigrateType) {
    if w.held.len() >= most {
        let at = r.below(w.held.len());
        w.give(at);
    }
    w.take(0, mt);
}

/// All patterns.
pub fn all() -> Vec<Pattern> {
    let mut r = Random::new(2009);
    let mut all = vec![
        // The heap grows by a mebibyte, which is touched, and shrinks: 256 frames and a page table.
        pattern("page_test", |w| {
            w.take(0, Unmovable);
            w.take_many(256, Movable);
            w.give_down_to(0);
        }),
        // The heap grows 17 times without a touch but for its last page.
        pattern("brk_test", |w| {
            w.take(0, Unmovable);
            w.take_many(17, Movable);
            w.give_down_to(0);
        }),
        // A program begins and ends: page tables, stack, anonymous memory, a few slabs.
        pattern("exec_test", |w| {
            w.take_many(12, Unmovable);
            w.take(1, Unmovable);
            w.take_many(40, Movable);
            w.take_many(2, Reclaimable);
            w.give_down_to(0);
        }),
        // A process of the kernel's stack, page tables and the pages that it writes to; four live at a time.
        pattern("fork_test", |w| {
            for _ in 0..4 {
                w.take(1, Unmovable);
                w.take_many(8, Unmovable);
                w.take_many(30, Movable);
            }
            w.give_down_to(0);
        }),
        pattern("kernbench", |w| {
            let mt = mixed(&mut r, 6, 4);
            turnover(w, &mut r, 3000, mt);
        }),
    ];
    let mut r = Random::new(31);
    // Messages between processes: buffers are freed in the order in which they came.
    all.push(pattern("hackbench", |w| {
        w.take_many(8, Unmovable);
        let mt = mixed(&mut r, 40, 0);
        w.take(0, mt);
        while w.held.len() > 40 {
            w.give(0);
        }
    }));
    // Bursts of 16 buffers, with a page of the program's now and then.
    all.push(pattern("netperf", |w| {
        w.take_many(16, Unmovable);
        w.give_down_to(w.held.len() - 16);
        w.take(0, Movable);
        if w.held.len() > 200 {
            w.give(0);
        }
    }));
    // A database that reads: page cache, inodes and buffers by turns.
    all.push(pattern("sysbench", |w| {
        let mt = mixed(&mut r, 33, 33);
        turnover(w, &mut r, 500, mt);
    }));
    for (name, share) in [
        ("unmovable 0 %", 0),
        ("unmovable 10 %", 10),
        ("unmovable 50 %", 50),
        ("unmovable 90 %", 90),
    ] {
        let mut r = Random::new(7);
        all.push(pattern(name, |w| {
            let n = 1 + r.below(32);
            for _ in 0..n {
                let mt = mixed(&mut r, share, 0);
                w.take(0, mt);
            }
            let keep = w.held.len().saturating_sub(1 + r.below(32)).min(200);
            w.give_down_to(keep);
        }));
    }
    all
}
