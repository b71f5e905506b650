//! What a trace does not show, inferred from the frames that it does.
//!
//! With an exact start the recorded kernel's own rules say which frame each request must get. Where
//! the recorded frame is another one, two things may have happened that leave no event, or leave it
//! late; both are put into the operations, so that every other era can replay them too:
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
//! `spec: linux-6.1 10`

use super::sim::Sim;
use crate::replay::causes::{Causes, Do, Op, is_page_directory};
use crate::replay::start::is_cached;
use std::collections::HashMap;
use unfrag::frame::MAX_ORDER;
use unfrag::pcp::list_index;
use unfrag::{CpuId, Gfp, MigrateType, Order, Pfn, ZoneId};

/// What was inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
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

/// Runs the recorded era and rewrites the operations. `sim` is at the start.
pub fn resolve(causes: &mut Causes, sim: &mut Sim) -> Resolved {
    let ops = std::mem::take(&mut causes.ops);
    let next = NextEvents::new(&ops, causes.first.len());
    let mut turns = Turns::new(&ops);
    let mut w = Work {
        out: Vec::with_capacity(ops.len() + 4096),
        done: vec![false; ops.len()],
        found: Resolved::default(),
    };
    for (i, op) in ops.iter().enumerate() {
        if w.done[i] {
            continue;
        }
        let mut op = *op;
        if op.act == Do::Alloc && w.expect(i, &op, &ops, &next, &mut turns, sim, causes) {
            op.act = Do::AllocRaced;
        }
        w.carry_out(i, &op, sim, causes);
    }
    causes.ops = w.out;
    causes.classes.stack_pages += 4 * w.found.stacks;
    w.found
}

struct Work {
    out: Vec<Op>,
    done: Vec<bool>,
    found: Resolved,
}

impl Work {
    fn carry_out(&mut self, i: usize, op: &Op, sim: &mut Sim, causes: &Causes) {
        self.done[i] = true;
        sim.apply(op, causes);
        self.out.push(*op);
    }

    /// Puts in what must have happened for `op` to get its frame. Returns whether its check of the
    /// watermark raced.
    #[allow(clippy::too_many_arguments)]
    fn expect(
        &mut self,
        i: usize,
        op: &Op,
        ops: &[Op],
        next: &NextEvents,
        turns: &mut Turns,
        sim: &mut Sim,
        causes: &mut Causes,
    ) -> bool {
        let gfp = Gfp::from_bits_retain(op.other);
        let Some(mt) = gfp.mobility() else {
            return false;
        };
        let Some(zone) = sim.zone_of(op.pfn) else {
            return false;
        };
        let mut stacks = 0;
        for _ in 0..MOST_AHEAD {
            let ask = Ask {
                zone,
                cpu: CpuId(op.cpu.into()),
                order: Order(op.order),
                mt,
            };
            let (head, empty) = ask.peek(sim);
            if head == Some(op.pfn) {
                let best = sim.zone_for(op, causes);
                let raced = best.is_some_and(|z| z != zone);
                self.found.raced += u64::from(raced);
                return raced;
            }
            if stacks == 0 && self.stack(i, op, mt, zone, next, sim, causes) {
                stacks += 1;
                continue;
            }
            let other = empty
                .then(|| turns.holder(i, op, mt, head, ops, &self.done))
                .flatten();
            let Some(j) = other else { break };
            self.found.reordered += 1;
            let ahead = Op {
                time: op.time,
                ..ops[j]
            };
            self.carry_out(j, &ahead, sim, causes);
        }
        self.found.unresolved += 1;
        false
    }

    /// Rule 1: as many stacks as bring the recorded frame to the head.
    #[allow(clippy::too_many_arguments)]
    fn stack(
        &mut self,
        i: usize,
        op: &Op,
        mt: MigrateType,
        zone: ZoneId,
        next: &NextEvents,
        sim: &mut Sim,
        causes: &mut Causes,
    ) -> bool {
        if mt != MigrateType::Unmovable {
            return false;
        }
        let page_directory = is_page_directory(op.order, Gfp::from_bits_retain(op.other));
        if op.order != 0 && !page_directory {
            return false;
        }
        let most = if page_directory {
            4
        } else {
            4 * MOST_STACKS + 1
        };
        let mut pages = vec![];
        let mut reached = page_directory;
        let ask = Ask {
            zone,
            cpu: CpuId(op.cpu.into()),
            order: Order::ZERO,
            mt,
        };
        for p in ask.coming(sim).take(most) {
            if p == op.pfn {
                reached = true;
                break;
            }
            if !next.is_free_or_nothing(p, i) {
                reached = false;
                break;
            }
            pages.push(p);
        }
        if !reached || pages.is_empty() || pages.len() % 4 != 0 {
            return false;
        }
        for four in pages.chunks_exact(4) {
            let pfn = causes.stacks.len() as u32;
            let stack = Op {
                act: Do::Stack,
                pfn,
                order: 0,
                other: 0,
                ..*op
            };
            causes.stacks.push([four[0], four[1], four[2], four[3]]);
            self.found.stacks += 1;
            sim.apply(&stack, causes);
            self.out.push(stack);
        }
        true
    }
}

/// What a CPU asks a zone for.
#[derive(Clone, Copy)]
struct Ask {
    zone: ZoneId,
    cpu: CpuId,
    order: Order,
    mt: MigrateType,
}

impl Ask {
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
        let Ask {
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

/// For each frame, the operations that touch it.
struct NextEvents {
    first: Vec<u32>,
    events: Vec<(u32, bool)>,
}

impl NextEvents {
    fn new(ops: &[Op], frames: usize) -> NextEvents {
        let touched = |op: &Op| {
            matches!(
                op.act,
                Do::Alloc | Do::AllocRaced | Do::Free | Do::FreeUnseen | Do::FreeGiven
            )
        };
        let mut first = vec![0u32; frames + 1];
        for op in ops.iter().filter(|o| touched(o)) {
            for p in op.pfn..op.pfn + (1 << op.order) {
                first[p as usize + 1] += 1;
            }
        }
        for i in 0..frames {
            first[i + 1] += first[i];
        }
        let mut at = first.clone();
        let mut events = vec![(0, false); first[frames] as usize];
        for (i, op) in ops.iter().enumerate().filter(|(_, o)| touched(o)) {
            for p in op.pfn..op.pfn + (1 << op.order) {
                let slot = &mut at[p as usize];
                events[*slot as usize] = (i as u32, op.act == Do::Alloc);
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

/// For each CPU, order and type: its allocations in turn.
struct Turns {
    of: HashMap<(u16, u8, u8), (Vec<u32>, usize)>,
    cpus: Vec<u16>,
}

impl Turns {
    fn new(ops: &[Op]) -> Turns {
        let mut of: HashMap<_, (Vec<u32>, usize)> = HashMap::new();
        let mut cpus = vec![];
        for (i, op) in ops.iter().enumerate().filter(|(_, o)| o.act == Do::Alloc) {
            let Some(mt) = Gfp::from_bits_retain(op.other).mobility() else {
                continue;
            };
            of.entry((op.cpu, op.order, mt as u8))
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
    fn holder(
        &mut self,
        i: usize,
        op: &Op,
        mt: MigrateType,
        frame: Option<u32>,
        ops: &[Op],
        done: &[bool],
    ) -> Option<usize> {
        let frame = frame?;
        for &cpu in self.cpus.iter().filter(|&&c| c != op.cpu) {
            let Some((list, at)) = self.of.get_mut(&(cpu, op.order, mt as u8)) else {
                continue;
            };
            while list
                .get(*at)
                .is_some_and(|&j| (j as usize) < i || done[j as usize])
            {
                *at += 1;
            }
            if let Some(&j) = list.get(*at)
                && ops[j as usize].pfn == frame
            {
                return Some(j as usize);
            }
        }
        None
    }
}
