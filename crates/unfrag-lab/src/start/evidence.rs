//! What a trace says of the time before it: who allocated a frame first, and from where.
//!
//! Invariant: only operations of the trace are read here, never a snapshot.

use crate::cause::{Causes, Do, Op};
use unfrag::{Gfp, MigrateType};

/// Per-CPU lists of orders 0 to 3.
pub(super) const LISTS: usize = 12;
/// So many adjacent pages allocated in a row are a refill of a per-CPU list.
const REFILL_ROW: usize = 24;

/// What the trace says of the start, gathered once.
pub struct Evidence {
    /// Allocations that touched a frame for the first time, in turn.
    pub(super) firsts: Vec<Op>,
    /// For each CPU, by list: what it allocated before the list was first refilled.
    pub(super) before_refill: Vec<Vec<Vec<u32>>>,
}

impl Evidence {
    /// Walks the operations of a host with so many CPUs.
    pub fn gather(causes: &Causes, cpus: usize) -> Evidence {
        let mut seen = vec![false; causes.first.len()];
        let mut firsts = vec![];
        let mut lists = vec![vec![vec![]; LISTS]; cpus];
        let mut open = cpus * LISTS;
        let mut rows = vec![[0usize; LISTS]; cpus];
        for op in causes.ops.iter().filter(|o| o.act == Do::Alloc) {
            let mut new = false;
            for p in op.pfn..op.pfn + (1 << op.order) {
                new |= !std::mem::replace(&mut seen[p as usize], true);
            }
            if new {
                firsts.push(*op);
            }
            let cpu = usize::from(op.cpu);
            if open == 0 || op.order > 3 || cpu >= cpus {
                continue;
            }
            let mt = Gfp::from_bits_retain(op.other)
                .mobility()
                .filter(|t| t.is_ordinary());
            let Some(mt) = mt else { continue };
            let list = usize::from(op.order) * 3 + mt as usize;
            let (taken, row) = (&mut lists[cpu][list], &mut rows[cpu][list]);
            if *row == usize::MAX {
                continue;
            }
            // A refill shows as a row of adjacent blocks.
            let adjacent = taken.last() == Some(&op.pfn.wrapping_sub(1 << op.order));
            *row = if adjacent { *row + 1 } else { 1 };
            taken.push(op.pfn);
            // Kernel requests mix with what leaves no event, which breaks rows up.
            let long = if mt == MigrateType::Movable {
                REFILL_ROW
            } else {
                REFILL_ROW / 3
            };
            let long = (long >> op.order).max(3);
            if *row >= long {
                taken.truncate(taken.len() - long);
                *row = usize::MAX;
                open -= 1;
            }
        }
        Evidence {
            firsts,
            before_refill: lists,
        }
    }
}
