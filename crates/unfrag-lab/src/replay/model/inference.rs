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
//!    same order and type there has the frame that was expected here.
//! 3. The check of a zone's watermark came before another CPU's request lowered the counter: the
//!    recorded frame is the next one of another zone than the watermarks would choose now.
//!
//! `spec: 10`

use super::sim::Sim;
use crate::replay::causes::{Action, Causes, HostBlock, Op, is_page_directory};
use crate::replay::start::is_cached;
use std::collections::HashMap;
use unfrag::frame::MAX_ORDER;
use unfrag::pcp::list_index;
use unfrag::{CpuId, Gfp, MigrateType, Order, Pfn, ZoneId};

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
pub fn infer(causes: &mut Causes, sim: &mut Sim) -> Inferred {
    let ops = std::mem::take(&mut causes.ops);
    let mut inference = Inference {
        ops: &ops,
        next: NextEvents::new(&ops, causes.first.len()),
        turns: Turns::new(&ops),
        sim,
        causes,
        out: Vec::with_capacity(ops.len() + 4096),
        done: vec![false; ops.len()],
        found: Inferred::default(),
    };
    for i in 0..ops.len() {
        inference.step(i);
    }
    let Inference { out, found, .. } = inference;
    causes.ops = out;
    causes.classes.stack_pages += 4 * found.stacks;
    found
}

/// The operations as recorded, the model, and the operations as rewritten so far.
struct Inference<'a, 'm> {
    ops: &'a [Op],
    next: NextEvents,
    turns: Turns,
    sim: &'a mut Sim<'m>,
    causes: &'a mut Causes,
    out: Vec<Op>,
    /// By recorded operation: whether it is among those in `out`.
    done: Vec<bool>,
    found: Inferred,
}

/// An allocation whose recorded frame the model is to reach.
#[derive(Clone, Copy)]
struct Target {
    /// Number of the recorded operation.
    index: usize,
    op: Op,
    block: HostBlock,
    gfp: Gfp,
    list: CpuList,
}

impl Inference<'_, '_> {
    /// Rewrites one recorded operation.
    fn step(&mut self, i: usize) {
        if self.done[i] {
            return;
        }
        let mut op = self.ops[i];
        if let Action::Alloc { order, pfn, gfp } = op.action
            && let Some(target) = self.target(i, &op)
            && self.reach(&target)
        {
            op.action = Action::AllocRaced { order, pfn, gfp };
        }
        self.carry_out(i, &op);
    }

    fn carry_out(&mut self, i: usize, op: &Op) {
        self.done[i] = true;
        self.sim.apply(op, self.causes);
        self.out.push(*op);
    }

    /// The frame and the list of an allocation; `None` if it has no mobility type or no zone.
    fn target(&self, index: usize, op: &Op) -> Option<Target> {
        let (block, gfp) = op.allocated()?;
        let list = CpuList {
            mt: gfp.mobility()?,
            zone: self.sim.zone_of(block.pfn)?,
            cpu: CpuId(op.cpu.into()),
            order: Order(block.order),
        };
        Some(Target {
            index,
            op: *op,
            block,
            gfp,
            list,
        })
    }

    /// Puts in what must have happened for an allocation to get its frame. Returns whether its check of
    /// the watermark raced.
    fn reach(&mut self, target: &Target) -> bool {
        let mut stacks = 0;
        for _ in 0..MOST_AHEAD {
            let (head, empty) = target.list.peek(self.sim);
            if head == Some(target.block.pfn) {
                let best = self.sim.zone_for(&target.op, self.causes);
                let raced = best.is_some_and(|z| z != target.list.zone);
                self.found.raced += u64::from(raced);
                return raced;
            }
            if stacks == 0 && self.stack(target) {
                stacks += 1;
                continue;
            }
            let other = head.filter(|_| empty);
            let other =
                other.and_then(|head| self.turns.holder(target, head, self.ops, &self.done));
            let Some(j) = other else { break };
            self.found.reordered += 1;
            let ahead = Op {
                time: target.op.time,
                ..self.ops[j]
            };
            self.carry_out(j, &ahead);
        }
        self.found.unresolved += 1;
        false
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
            if !self.next.is_free_or_nothing(p, target.index) {
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
            self.out.push(stack);
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
        let list = is_cached(self.order.0).then(|| list_index(self.order, self.mt));
        let m = sim.manager.inspect();
        let blocks = list.map(|list| m.pcp_list(self.zone, self.cpu, list));
        blocks.into_iter().flatten()
    }

    /// Frames that its next requests get, as long as no fallback is needed.
    fn coming(self, sim: &Sim) -> impl Iterator<Item = u32> {
        let m = sim.manager.inspect();
        let CpuList {
            zone, order, mt, ..
        } = self;
        let in_zone = order.up_to(Order(MAX_ORDER)).flat_map(move |o| {
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

/// For each frame the operations that touch it: `events[first[pfn]..first[pfn + 1]]`, by number, and
/// whether they allocate it.
struct NextEvents {
    first: Vec<u32>,
    events: Vec<(u32, bool)>,
}

impl NextEvents {
    fn new(ops: &[Op], frames: usize) -> NextEvents {
        // The block, and whether it is allocated.
        let touched = |op: &Op| match op.allocated() {
            Some((block, _)) => Some((block, true)),
            None => op.freed().map(|block| (block, false)),
        };
        let mut first = vec![0u32; frames + 1];
        for (block, _) in ops.iter().filter_map(touched) {
            for p in block.indices() {
                first[p + 1] += 1;
            }
        }
        for i in 0..frames {
            first[i + 1] += first[i];
        }
        let mut at = first.clone();
        let mut events = vec![(0, false); first[frames] as usize];
        for (i, op) in ops.iter().enumerate() {
            let Some((block, allocated)) = touched(op) else {
                continue;
            };
            for slot in &mut at[block.indices()] {
                events[*slot as usize] = (i as u32, allocated);
                *slot += 1;
            }
        }
        NextEvents { first, events }
    }

    /// Whether the next event of a frame after operation `i` is a free, or there is none.
    fn is_free_or_nothing(&self, pfn: u32, i: usize) -> bool {
        let (a, b) = (
            self.first[pfn as usize] as usize,
            self.first[pfn as usize + 1] as usize,
        );
        let later = &self.events[a..b];
        let k = later.partition_point(|e| e.0 as usize <= i);
        later.get(k).is_none_or(|e| !e.1)
    }
}

/// For each CPU, order and migratetype: its allocations in turn, and the next of them.
struct Turns {
    of: HashMap<(u16, u8, u8), (Vec<u32>, usize)>,
    cpus: Vec<u16>,
}

impl Turns {
    fn new(ops: &[Op]) -> Turns {
        let mut of: HashMap<_, (Vec<u32>, usize)> = HashMap::new();
        let mut cpus = vec![];
        for (i, op) in ops.iter().enumerate() {
            let allocated = op.allocated();
            let Some((block, mt)) = allocated.and_then(|(b, gfp)| Some((b, gfp.mobility()?)))
            else {
                continue;
            };
            of.entry((op.cpu, block.order, mt as u8))
                .or_default()
                .0
                .push(i as u32);
            if !cpus.contains(&op.cpu) {
                cpus.push(op.cpu);
            }
        }
        cpus.sort_unstable();
        Turns { of, cpus }
    }

    /// Rule 2: the next allocation of another CPU, if it holds `frame`.
    fn holder(&mut self, target: &Target, frame: u32, ops: &[Op], done: &[bool]) -> Option<usize> {
        let (order, mt) = (target.block.order, target.list.mt as u8);
        for &cpu in self.cpus.iter().filter(|&&c| c != target.op.cpu) {
            let Some((list, at)) = self.of.get_mut(&(cpu, order, mt)) else {
                continue;
            };
            while list
                .get(*at)
                .is_some_and(|&j| (j as usize) < target.index || done[j as usize])
            {
                *at += 1;
            }
            if let Some(&j) = list.get(*at)
                && ops[j as usize]
                    .allocated()
                    .is_some_and(|(b, _)| b.pfn == frame)
            {
                return Some(j as usize);
            }
        }
        None
    }
}
