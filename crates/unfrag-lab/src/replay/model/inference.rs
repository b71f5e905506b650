//! What a trace does not show, inferred from the frames that it does.
//!
//! With an exact start the recorded kernel's own rules say which frame each request must get. Where
//! the recorded frame is another one, three things may have happened that leave no event, or leave it
//! late; they are put into the operations, so that every other era can replay them too:
//!
//! 1. Kernel stacks were taken in bulk: the request is for unmovable memory, its frame stands a
//!    multiple of four places from the head, and the next event of each frame before it is a free, or
//!    there is none. Or it is for the page directory of a new process, which follows the stack, and
//!    the next four single frames are such.
//! 2. Another CPU refilled its list first, though its event came later: the next allocation of the
//!    same order and type there has the frame that was expected here, and nobody frees that frame before.
//! 3. The check of a zone's watermark came before another CPU's request lowered the counter: the
//!    recorded frame is the next one of another zone than the watermarks would choose now.
//!
//! `spec: 10`

use super::coming::Coming;
use super::sim::Sim;
use crate::error::Result;
use crate::input::bits::Bits;
use crate::replay::causes::{Action, Causes, HostBlock, Op, Ops, is_page_directory};
use crate::replay::start::is_cached;
use unfrag_eras::pcp::list_index;
use unfrag_eras::{CpuId, Gfp, MigrateType, Order, Pfn, ZoneId};

/// What was inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// Kernel stacks put in.
    pub stacks: u64,
    /// Allocations moved ahead of another CPU's.
    pub reordered: u64,
    /// Allocations whose zone was chosen before another CPU's request changed the counter.
    pub raced: u64,
    /// Allocations whose frame is still not the expected one.
    pub unresolved: u64,
}

/// Most allocations of another CPU that are moved ahead at once.
const MOST_AHEAD: usize = 128;

/// Most stacks between two requests of a CPU.
const MOST_STACKS: usize = 16;

/// Runs the recorded kernel's model, which is at the start, over the operations, and rewrites them.
///
/// # Errors
/// If operations cannot be read or stored.
pub fn infer(causes: &mut Causes, sim: &mut Sim) -> Result<Inferred> {
    let ops = std::mem::take(&mut causes.ops);
    let mut next = NextEvents::new(causes.first.len());
    let mut coming = Coming::new(&ops);
    ops.each_back(|i, op| {
        next.note(op);
        coming.note(i, op);
    })?;
    let mut inference = Inference {
        next,
        coming,
        sim,
        causes,
        out: Ops::new(ops.room()),
        found: Inferred::default(),
    };
    for _ in 0..ops.len() {
        inference.step()?;
    }
    let Inference { mut out, found, .. } = inference;
    out.finish()?;
    causes.ops = out;
    causes.classes.stack_pages += 4 * found.stacks;
    Ok(found)
}

/// The operations as recorded, the model, and the operations as rewritten so far.
struct Inference<'a, 'm> {
    next: NextEvents,
    coming: Coming<'a>,
    sim: &'a mut Sim<'m>,
    causes: &'a mut Causes,
    out: Ops,
    found: Inferred,
}

/// An allocation whose recorded frame the model is to reach.
#[derive(Clone, Copy)]
struct Target {
    op: Op,
    block: HostBlock,
    gfp: Gfp,
    list: CpuList,
}

impl Inference<'_, '_> {
    /// Rewrites the next recorded operation.
    fn step(&mut self) -> Result<()> {
        let Some(recorded) = self.coming.next()? else {
            return Ok(());
        };
        let mut op = recorded.op;
        self.next.pass(&op);
        if recorded.done {
            return Ok(());
        }
        if let Action::Alloc { order, pfn, gfp } = op.action
            && let Some(target) = self.target(&op)
            && self.reach(&target)?
        {
            op.action = Action::AllocRaced { order, pfn, gfp };
        }
        self.carry_out(&op);
        Ok(())
    }

    fn carry_out(&mut self, op: &Op) {
        self.sim.apply(op, self.causes);
        self.out.push(op);
    }

    /// The frame and the list of an allocation; `None` if it has no mobility type or no zone.
    fn target(&self, op: &Op) -> Option<Target> {
        let (block, gfp) = op.allocated()?;
        let list = CpuList {
            mt: gfp.mobility()?,
            zone: self.sim.zone_of(block.pfn)?,
            cpu: CpuId(op.cpu.into()),
            order: Order(block.order),
        };
        Some(Target {
            op: *op,
            block,
            gfp,
            list,
        })
    }

    /// Puts in what must have happened for an allocation to get its frame. Returns whether its check of
    /// the watermark raced.
    fn reach(&mut self, target: &Target) -> Result<bool> {
        let mut stacks = 0;
        for _ in 0..MOST_AHEAD {
            let (head, empty) = target.list.peek(self.sim);
            if head == Some(target.block.pfn) {
                let best = self.sim.zone_for(&target.op, self.causes);
                let raced = best.is_some_and(|z| z != target.list.zone);
                self.found.raced += u64::from(raced);
                return Ok(raced);
            }
            if stacks == 0 && self.stack(target) {
                stacks += 1;
                continue;
            }
            // A frame that is freed before it is allocated again was in use here already.
            let taken_next = |&head: &u32| empty && !self.next.is_free_or_nothing(head);
            let Some(head) = head.filter(taken_next) else {
                break;
            };
            let Some(other) = self.coming.take(&target.op, target.list.mt, head)? else {
                break;
            };
            self.found.reordered += 1;
            let ahead = Op {
                time: target.op.time,
                ..other
            };
            self.carry_out(&ahead);
        }
        self.found.unresolved += 1;
        Ok(false)
    }

    /// Rule 1: as many stacks as bring the recorded frame to the head.
    fn stack(&mut self, target: &Target) -> bool {
        if target.list.mt != MigrateType::Unmovable {
            return false;
        }
        let HostBlock { pfn, order } = target.block;
        let page_directory = is_page_directory(order, target.gfp);
        if order != 0 && !page_directory {
            return false;
        }
        let most = if page_directory {
            4
        } else {
            4 * MOST_STACKS + 1
        };
        let mut pages = vec![];
        let mut reached = page_directory;
        let single = CpuList {
            order: Order::ZERO,
            ..target.list
        };
        for p in single.coming(self.sim).take(most) {
            if p == pfn {
                reached = true;
                break;
            }
            if !self.next.is_free_or_nothing(p) {
                reached = false;
                break;
            }
            pages.push(p);
        }
        if !reached || pages.is_empty() || pages.len() % 4 != 0 {
            return false;
        }
        for four in pages.chunks_exact(4) {
            let stack = Op {
                action: Action::stack(self.causes.stacks.len() as u32),
                ..target.op
            };
            let pages = [four[0], four[1], four[2], four[3]];
            self.causes.stacks.push(pages);
            self.found.stacks += 1;
            self.sim.apply(&stack, self.causes);
            self.out.push(&stack);
        }
        true
    }
}

/// The list of a CPU from which a request is served, with the buddy lists that refill it.
#[derive(Clone, Copy)]
struct CpuList {
    zone: ZoneId,
    cpu: CpuId,
    order: Order,
    mt: MigrateType,
}

impl CpuList {
    /// Blocks on the CPU's own list, from its head; none if the buddy lists serve it.
    fn listed(self, sim: &Sim) -> impl Iterator<Item = Pfn> {
        let m = sim.manager.inspect();
        let list = is_cached(self.order.0, m.geometry()).then(|| list_index(self.order, self.mt));
        let blocks = list.map(|list| m.pcp_list(self.zone, self.cpu, list));
        blocks.into_iter().flatten()
    }

    /// Frames that its next requests get, as long as no fallback is needed.
    fn coming(self, sim: &Sim) -> impl Iterator<Item = u32> {
        let m = sim.manager.inspect();
        let CpuList {
            zone, order, mt, ..
        } = self;
        let in_zone = order.up_to(m.geometry().max_order).flat_map(move |o| {
            let pieces = 0..1u64 << (o.0 - order.0);
            let first = m.free_list(zone, o, mt);
            first.flat_map(move |Pfn(p)| pieces.clone().map(move |k| Pfn(p + (k << order.0))))
        });
        self.listed(sim).chain(in_zone).map(|p| p.0 as u32)
    }

    /// The next of these frames, and whether the CPU's own list is empty.
    fn peek(self, sim: &Sim) -> (Option<u32>, bool) {
        let empty = self.listed(sim).next().is_none();
        (self.coming(sim).next(), empty)
    }
}

/// For each frame whether the next operation that touches it frees it.
struct NextEvents {
    is_free: Vec<bool>,
    /// The same after each operation, for each of its frames: the last operation first, and of each the last frame.
    later: Bits,
}

impl NextEvents {
    fn new(frames: usize) -> NextEvents {
        NextEvents {
            // A frame that nothing touches any more counts as one that is freed.
            is_free: vec![true; frames],
            later: Bits::default(),
        }
    }

    /// Notes an operation: all of them, from the last to the first.
    fn note(&mut self, op: &Op) {
        let Some((block, allocated)) = touched(op) else {
            return;
        };
        for is_free in self.is_free[block.indices()].iter_mut().rev() {
            self.later.push(*is_free);
            *is_free = !allocated;
        }
    }

    /// Goes past an operation.
    fn pass(&mut self, op: &Op) {
        if let Some((block, _)) = touched(op) {
            for is_free in &mut self.is_free[block.indices()] {
                *is_free = self.later.pop();
            }
        }
    }

    /// Whether the next event of a frame is a free, or there is none.
    fn is_free_or_nothing(&self, pfn: u32) -> bool {
        self.is_free[pfn as usize]
    }
}

/// The block that an operation touches, and whether it allocates it.
fn touched(op: &Op) -> Option<(HostBlock, bool)> {
    match op.allocated() {
        Some((block, _)) => Some((block, true)),
        None => op.freed().map(|block| (block, false)),
    }
}
