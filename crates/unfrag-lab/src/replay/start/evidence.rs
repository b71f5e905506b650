//! What a trace says of the time before it: which CPU allocated a frame first, and from which list.
//!
//! Invariant: only operations of the trace are read here, never a snapshot.

use crate::error::Result;
use crate::replay::causes::{Action, Causes, HostBlock};
use unfrag_eras::{Gfp, MigrateType};

/// Per-CPU lists of orders 0 to 3.
const LISTS: usize = 12;
/// So many adjacent pages allocated in a row are a refill of a per-CPU list.
const REFILL_ROW: usize = 24;

/// An allocation as the trace shows it.
pub(super) struct Allocation {
    pub(super) time: u64,
    pub(super) cpu: usize,
    pub(super) block: HostBlock,
    pub(super) gfp: Gfp,
}

/// The first allocation of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taker {
    /// Its turn among first allocations.
    pub(super) turn: usize,
    pub(super) cpu: usize,
    pub(super) order: u8,
    pub(super) mt: MigrateType,
}

/// What the trace says of the start, gathered once.
pub struct Evidence {
    /// Allocations that touched a frame for the first time, in turn.
    pub(super) firsts: Vec<Allocation>,
    /// For each CPU, by list: what it allocated before the list was first refilled.
    pub(super) before_refill: Vec<Vec<Vec<u32>>>,
}

impl Evidence {
    /// Walks the operations of a host with so many CPUs.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn gather(causes: &Causes, cpus: usize) -> Result<Evidence> {
        let mut seen = vec![false; causes.first.len()];
        let mut firsts = vec![];
        let mut lists = vec![vec![vec![]; LISTS]; cpus];
        let mut open = cpus * LISTS;
        let mut rows = vec![[0usize; LISTS]; cpus];
        causes.ops.each(0..causes.ops.len(), |_, op| {
            let Some((block, gfp)) = op.allocated() else {
                return;
            };
            let mut new = false;
            for p in block.frames() {
                new |= !std::mem::replace(&mut seen[p as usize], true);
            }
            let cpu = usize::from(op.cpu);
            if new {
                firsts.push(Allocation {
                    time: op.time,
                    cpu,
                    block,
                    gfp,
                });
            }
            let HostBlock { pfn, order } = block;
            if open == 0 || order > 3 || cpu >= cpus {
                return;
            }
            let mt = gfp.mobility().filter(|t| t.is_ordinary());
            let Some(mt) = mt else { return };
            let list = usize::from(order) * 3 + mt as usize;
            let (taken, row) = (&mut lists[cpu][list], &mut rows[cpu][list]);
            if *row == usize::MAX {
                return;
            }
            // A refill shows as a row of adjacent blocks.
            let adjacent = taken.last() == Some(&pfn.wrapping_sub(1 << order));
            *row = if adjacent { *row + 1 } else { 1 };
            taken.push(pfn);
            // Kernel requests mix with what leaves no event, which breaks rows up.
            let long = if mt == MigrateType::Movable {
                REFILL_ROW
            } else {
                REFILL_ROW / 3
            };
            let long = (long >> order).max(3);
            if *row >= long {
                taken.truncate(taken.len() - long);
                *row = usize::MAX;
                open -= 1;
            }
        })?;
        Ok(Evidence {
            firsts,
            before_refill: lists,
        })
    }

    /// The first allocation of each frame of a zone. `None` for frames without an allocation of an ordinary type.
    pub(super) fn takers(&self, lo: u32, len: usize) -> Vec<Option<Taker>> {
        let mut takers = vec![None; len];
        for (turn, first) in self.firsts.iter().enumerate() {
            if let Some(mt) = first.gfp.mobility().filter(|t| t.is_ordinary()) {
                for p in first.block.frames() {
                    if let Some(at) = p.checked_sub(lo)
                        && let Some(taker) = takers.get_mut(at as usize)
                    {
                        taker.get_or_insert(Taker {
                            turn,
                            cpu: first.cpu,
                            order: first.block.order,
                            mt,
                        });
                    }
                }
            }
        }
        takers
    }
}

/// What the trace up to the anchor says of the frames at it, for a start at the anchor.
#[derive(Clone, Debug, Default)]
pub struct BeforeAnchor {
    /// How each frame was left; frames beyond were not touched.
    left: Vec<LeftAs>,
    /// CPU and block of each free, in turn.
    frees: Vec<(usize, HostBlock)>,
}

/// How the operations up to the anchor left a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LeftAs {
    /// As it was.
    #[default]
    Untouched,
    /// In use.
    Used,
    /// Free since the free of this turn.
    Freed(u32),
}

impl BeforeAnchor {
    /// What the operations of a trace that ends at the anchor left behind.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn of(causes: &Causes) -> Result<BeforeAnchor> {
        let mut b = BeforeAnchor {
            left: vec![LeftAs::Untouched; causes.first.len()],
            frees: vec![],
        };
        causes.ops.each(0..causes.ops.len(), |_, op| {
            if let Action::Stack { index } = op.action {
                for p in causes.stacks[index.get() as usize] {
                    b.left[p as usize] = LeftAs::Used;
                }
            } else if let Some((block, _)) = op.allocated() {
                b.left[block.indices()].fill(LeftAs::Used);
            } else if let Some(block) = op.freed() {
                b.left[block.indices()].fill(LeftAs::Freed(b.frees.len() as u32));
                b.frees.push((op.cpu.into(), block));
            }
        })?;
        Ok(b)
    }

    /// How a frame was left.
    pub(super) fn left(&self, pfn: u32) -> LeftAs {
        self.left.get(pfn as usize).copied().unwrap_or_default()
    }

    /// The block with which a frame was freed last, if it is free since.
    pub(super) fn freed(&self, pfn: u32) -> Option<HostBlock> {
        match self.left(pfn) {
            LeftAs::Freed(turn) => Some(self.frees[turn as usize].1),
            _ => None,
        }
    }

    /// Blocks that are free as they were freed, and the CPU of that, the latest first.
    pub(super) fn freed_blocks(&self) -> impl Iterator<Item = (usize, HostBlock)> {
        let whole = |(turn, (_, block)): &(usize, (usize, HostBlock))| {
            let as_freed = |p| self.left(p) == LeftAs::Freed(*turn as u32);
            block.frames().all(as_freed)
        };
        let turns = self.frees.iter().copied().enumerate().rev();
        turns.filter(whole).map(|(_, free)| free)
    }
}
