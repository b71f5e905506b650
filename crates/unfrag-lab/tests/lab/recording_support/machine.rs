//! A small machine: one zone of 32 MiB.

use unfrag_eras::zone::{Marks, NR_ZONE_KINDS};
use unfrag_eras::{
    CpuId, Gfp, MigrateType, NodeId, Order, Pfn, Request, Sysctl, ZoneConfig, ZoneId, ZoneKind,
};
use unfrag_lab::replay::causes::{Action, Op};
use unfrag_lab::replay::model::Sim;
use unfrag_lab::replay::start::{Frame, FreeBlock, PcpFacts, SetStart, Start, ZoneStart};

/// First frame of its zone.
pub const FIRST: u32 = 4096;
/// Frames of its zone.
pub const PAGES: u32 = 8192;

/// The machine with no block free; fill `free` and `sets`, then [`settle`].
pub fn start(cpus: usize) -> Start {
    let first = Pfn(FIRST.into());
    let config = ZoneConfig::whole(NodeId(0), ZoneKind::Dma32, first, PAGES.into());
    let mut frames = vec![Frame::None; FIRST as usize];
    frames.resize((FIRST + PAGES) as usize, Frame::Pinned);
    let marks = Marks {
        min: 64,
        low: 80,
        high: 96,
        promo: 112,
        boost: 0,
    };
    Start {
        zones: vec![ZoneStart {
            config,
            marks,
            protection: [0; NR_ZONE_KINDS],
            free: 0,
            highatomic: 0,
            stat_threshold: 1,
            sets: (0..cpus as u32)
                .map(|cpu| PcpFacts {
                    cpu,
                    count: 0,
                    high: 100,
                    batch: 8,
                })
                .collect(),
        }],
        cpus: (0..cpus as u32).collect(),
        time: 0,
        compact: vec![],
        skipped: vec![],
        geometry: unfrag_eras::Geometry::PAGES_4K,
        holes: vec![],
        free: vec![],
        order_shown: None,
        sets: (0..cpus)
            .map(|cpu| SetStart {
                zone: 0,
                cpu,
                tuning: Some((100, 8, 0)),
                lists: vec![],
            })
            .collect(),
        block_types: vec![],
        freed_later: vec![false; (FIRST + PAGES) as usize],
        frames,
    }
}

/// An operation of task 7 on CPU 0.
pub fn op(action: Action) -> Op {
    Op {
        time: 1,
        task: 7,
        cpu: 0,
        action,
    }
}

/// A free block of movable memory.
pub fn movable(pfn: u32, order: u8) -> FreeBlock {
    FreeBlock {
        pfn,
        order,
        mt: MigrateType::Movable,
    }
}

/// Frees the frames of the blocks that are on lists.
pub fn settle(start: &mut Start) {
    let held = start.sets.iter().flat_map(|s| &s.lists).flat_map(|l| &l.1);
    for b in start.free.iter().chain(held) {
        let at = b.pfn as usize;
        start.frames[at..at + (1 << b.order)].fill(Frame::Free);
    }
}

/// A machine all of whose memory is free, in blocks of order 10.
pub fn empty() -> Start {
    let mut s = start(2);
    s.free = (0..PAGES / 1024)
        .map(|i| movable(FIRST + i * 1024, 10))
        .collect();
    settle(&mut s);
    s
}

/// Memory for its model.
pub fn memory(start: &Start) -> Vec<u64> {
    let rules = unfrag_eras::preset("6.1").unwrap().rules;
    vec![0; start.words(rules, Sysctl::default()).unwrap()]
}

/// Its model under 6.1.
pub fn sim<'m>(start: &Start, memory: &'m mut [u64]) -> Sim<'m> {
    let rules = unfrag_eras::preset("6.1").unwrap().rules;
    let m = start
        .manager(rules, Sysctl::default(), true, memory)
        .unwrap();
    m.inspect().validate().unwrap();
    Sim::new(m, FIRST + PAGES)
}

/// A request of a program for a page.
pub const MOVABLE: Gfp = Gfp::HIGHUSER_MOVABLE.union(Gfp::ZERO);
/// Its request for a huge page, at a fault.
pub const HUGE: Gfp = Gfp::HIGHUSER_MOVABLE
    .union(Gfp::COMP)
    .union(Gfp::NOMEMALLOC)
    .union(Gfp::NOWARN);

/// Pages that nobody has: on the buddy lists and held back by CPUs.
pub fn unused(sim: &Sim) -> u64 {
    sim.manager.inspect().validate().expect("sound structures");
    let m = sim.manager.inspect();
    m.zone(ZoneId(0)).free_pages + m.pcp_pages(ZoneId(0))
}

/// All memory in single pages, each second of them free: no huge page can be had.
pub fn checkered<'m>(start: &Start, memory: &'m mut [u64]) -> Sim<'m> {
    let mut s = sim(start, memory);
    let all = Request::new(Order::ZERO, MOVABLE | Gfp::MEMALLOC);
    let pages: Vec<Pfn> = (0..PAGES).map(|_| s.manager.alloc(&all).unwrap()).collect();
    for p in pages.iter().filter(|p| p.0 % 2 == 0) {
        s.manager.free(CpuId(0), *p, Order::ZERO).unwrap();
    }
    s.manager.drain_all();
    s
}
