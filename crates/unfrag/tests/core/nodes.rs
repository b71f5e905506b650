//! Nodes, low addresses, and memory that goes: what a request names is where it is served from, and nowhere else.

use crate::chance::{Chance, setting};
use crate::support::{add, full, started};
use std::collections::BTreeMap;
use unfrag::maps::GiveError;
use unfrag::moves::{Evacuator, Goal, Limits, Move};
use unfrag::{AllocError, MigrateType, NodeId, Order, Pfn};
use unfrag::{Area, Local, Marks, Memory, MemoryConfig, Request};

type Lock = spin::Mutex<()>;
const MOV: MigrateType = MigrateType::Movable;
const UNM: MigrateType = MigrateType::Unmovable;
const GIB: u64 = 1 << 18;
/// Where the second node begins: as far away as on a large machine.
const FAR: u64 = 1 << 40;

fn area(start: u64, frames: u64, node: u8, is_low: bool) -> Area {
    Area {
        start: Pfn(start),
        frames,
        node: NodeId(node),
        shards: 1,
        is_low,
    }
}

/// Node 0 has a low gigabyte, and two others behind it; node 1 has two, in two pieces around one of node 2.
fn machine() -> MemoryConfig {
    MemoryConfig::of(area(0, GIB, 0, true))
        .and(area(4 * GIB, 2 * GIB, 0, false))
        .and(area(FAR, GIB, 1, false))
        .and(area(FAR + GIB, GIB, 2, false))
        .and(area(FAR + 2 * GIB, GIB, 1, false))
        .with_locals(4)
}

fn take(m: &Memory<Lock>, r: &Request) -> Pfn {
    m.alloc(r).expect("memory")
}

fn give(m: &Memory<Lock>, p: Pfn, order: u8, mt: MigrateType) {
    // SAFETY: nothing is at a frame, so nobody can use one.
    unsafe { m.free(p, Order(order), mt) }.expect("in use");
}

/// A node's own memory first, and no other one's where none is wanted.
#[test]
fn a_request_is_served_near_the_node_that_it_names() {
    let m: Memory<Lock> = full(machine());
    for mt in [MOV, UNM] {
        for (node, order) in [(0, 0), (1, 0), (2, 0), (0, 9), (1, 13), (2, 18)] {
            let near = Request::new(Order(order), mt).near(NodeId(node));
            let p = take(&m, &near);
            assert_eq!(m.node_of(p), Some(NodeId(node)), "{order} near {node}");
            assert!(p.0 >= GIB, "the low gigabyte is for others");
            give(&m, p, order, mt);
        }
    }
    // Node 2 has one gigabyte: the second one is another node's, or nobody's.
    let near = Request::new(Order(18), MOV).near(NodeId(2));
    let only = Request::new(Order(18), MOV).only(NodeId(2));
    let all = [take(&m, &near), take(&m, &near)];
    assert_eq!(m.node_of(all[0]), Some(NodeId(2)));
    assert_ne!(m.node_of(all[1]), Some(NodeId(2)));
    assert_eq!(m.alloc(&only), Err(AllocError::Short));
    for node in [3, 15, 16, 255] {
        let none = Request::new(Order(0), MOV).only(NodeId(node));
        assert_eq!(m.alloc(&none), Err(AllocError::Nowhere), "{node}");
        let near = Request::new(Order(0), MOV).near(NodeId(node));
        give(&m, take(&m, &near), 0, MOV);
    }
    all.into_iter().for_each(|p| give(&m, p, 18, MOV));
    assert_eq!(m.free_frames(), 6 * GIB);
}

/// A node whose addresses are all low is near all the same.
#[test]
fn a_node_with_low_addresses_alone_serves_who_is_near() {
    let config = MemoryConfig::of(area(0, GIB, 2, false)).and(area(GIB, GIB, 1, true));
    let m: Memory<Lock> = full(config);
    for mt in [MOV, UNM] {
        let near = Request::new(Order(0), mt).near(NodeId(1));
        assert_eq!(m.node_of(take(&m, &near)), Some(NodeId(1)));
        let mut l = m.local_on(NodeId(1)).expect("a local");
        let p = l.alloc(Order(0), mt).expect("memory");
        assert_eq!(m.node_of(p), Some(NodeId(1)));
    }
}

/// A device that reaches no further has what ends at its limit at the latest; what is low is left to it as long as there is
/// something else.
#[test]
fn low_addresses_are_for_those_who_need_them() {
    let m: Memory<Lock> = full(machine());
    for (limit, order) in [(1, 0), (1000, 3), (GIB - 1, 9), (GIB, 18), (FAR, 0)] {
        let low = Request::new(Order(order), UNM).below(Pfn(limit));
        let p = take(&m, &low);
        assert!(
            p.0 + (1 << order) <= limit.min(GIB),
            "{p:?} below {limit:#x}"
        );
        give(&m, p, order, UNM);
    }
    for (limit, order) in [(0, 0), (7, 3), (GIB - 1, 18)] {
        let low = Request::new(Order(order), UNM).below(Pfn(limit));
        let why = if limit == 0 {
            AllocError::Nowhere
        } else {
            AllocError::Fragmented
        };
        assert_eq!(m.alloc(&low), Err(why), "{limit} {order}");
    }
    let mut all = Vec::new();
    while let Ok(p) = m.alloc(&Request::new(Order(18), MOV)) {
        all.push(p.0);
    }
    assert_eq!(all.len(), 6);
    let last_of_node = all.iter().rposition(|&p| p < FAR);
    assert_eq!(
        last_of_node.map(|i| all[i]),
        Some(0),
        "the low one comes last of its node"
    );
    for p in all {
        give(&m, Pfn(p), 18, MOV);
    }
}

/// What a CPU keeps is of its node; what it frees of others goes back to them. The seed is printed.
#[test]
fn a_cpu_keeps_nothing_of_other_nodes() {
    let first = setting("UNFRAG_SEED", 1);
    for seed in first..first + 4 {
        println!("seed {seed}");
        let mut c = Chance(seed);
        let m: Memory<Lock> = full(machine());
        let homes = [0, 1, 1, 2];
        let mut locals: Vec<Local<'_, '_, Lock>> = homes
            .iter()
            .map(|&n| m.local_on(NodeId(n)).expect("four"))
            .collect();
        let mut held: Vec<(Pfn, u8, MigrateType)> = Vec::new();
        for step in 0..40_000 {
            let cpu = c.below(4) as usize;
            let order = c.of(&[0, 0, 0, 0, 0, 1, 3, 9]);
            let mt = c.of(&[MOV, MOV, UNM]);
            if c.below(10) < if step % 20_000 < 10_000 { 6 } else { 4 } {
                let p = locals[cpu].alloc(Order(order), mt).expect("memory");
                // There is enough of each node, all the time.
                assert_eq!(m.node_of(p), Some(NodeId(homes[cpu])), "cpu {cpu}");
                held.push((p, order, mt));
            } else if !held.is_empty() {
                let (p, order, mt) = held.swap_remove(c.below(held.len() as u64) as usize);
                // SAFETY: as above.
                unsafe { locals[cpu].free(p, Order(order), mt) }.expect("in use");
            }
            if step % 4000 == 0 {
                let used: u64 = held.iter().map(|h| 1 << h.1).sum();
                assert_eq!(m.free_frames(), 6 * GIB - used, "what is kept is free");
            }
        }
        for (p, order, mt) in held.drain(..) {
            // SAFETY: as above.
            unsafe { locals[c.below(4) as usize].free(p, Order(order), mt) }.expect("in use");
        }
        // A frame of another node that is freed twice is found.
        let foreign = locals[0].alloc(Order(0), MOV).expect("memory");
        // SAFETY: as above.
        let mut twice = || unsafe { locals[1].free(foreign, Order(0), MOV) };
        assert_eq!(twice(), Ok(()));
        assert_eq!(twice(), Err(GiveError::NotTaken(foreign)));
        drop(locals);
        m.validate().expect("a sound state");
        assert_eq!((m.free_frames(), m.counts().free), (6 * GIB, 6 * GIB));
        assert_eq!(m.refused(), 0);
    }
}

/// Each node has watermarks of its own, which can be set at any time.
#[test]
fn each_node_has_its_marks() {
    let m: Memory<Lock> = full(machine());
    let marks = |min, low, high| Marks { min, low, high };
    m.set_marks(NodeId(2), marks(GIB - 100, GIB - 50, GIB - 10));
    assert_eq!(m.marks(NodeId(2)), marks(GIB - 100, GIB - 50, GIB - 10));
    assert_eq!(m.marks(NodeId(1)), Marks::NONE);
    let only = Request::new(Order(0), MOV).only(NodeId(2));
    assert!(m.is_balanced(NodeId(2)) && !m.is_short());
    let got: Vec<Pfn> = (0..).map_while(|_| m.alloc(&only).ok()).collect();
    assert_eq!(got.len(), 100);
    assert!(m.take_short() && !m.take_short() && !m.is_balanced(NodeId(2)));
    assert_eq!(m.free_frames_of(NodeId(2)), GIB - 100);
    assert_eq!(m.alloc(&only), Err(AllocError::Short));
    let p = take(&m, &only.atomic());
    give(&m, p, 0, MOV);
    for p in got {
        give(&m, p, 0, MOV);
    }
    assert!(m.is_balanced(NodeId(2)));
    m.set_marks(NodeId(200), marks(1, 2, 3));
    assert_eq!(m.marks(NodeId(200)), Marks::NONE);
}

/// Memory comes and goes, gigabyte by gigabyte, while frames are in use: what is in the way moves, tables are given back and
/// used again, and nothing is lost. The seed is printed.
#[test]
fn memory_goes_and_comes_while_it_is_in_use() {
    let first = setting("UNFRAG_SEED", 1);
    for seed in first..first + 3 {
        println!("seed {seed}");
        let mut c = Chance(seed);
        let config = MemoryConfig::new(Pfn(FAR), 4 * GIB).with_shards(2);
        let m: Memory<Lock> = started(config);
        let mut spare: Vec<&'static mut [u64]> = Vec::new();
        let mut present = [false; 4];
        let mut held: BTreeMap<u64, u8> = BTreeMap::new();
        for round in 0..24 {
            let g = c.below(4);
            let start = Pfn(FAR + g * GIB);
            if !present[g as usize] {
                match spare.pop() {
                    Some(mut words) => m.add(start, GIB, &mut words).expect("new"),
                    None => add(&m, start, GIB).expect("new"),
                }
                present[g as usize] = true;
            } else if present.iter().filter(|&&p| p).count() > 1 {
                let goal = Goal::Range { start, frames: GIB };
                let mut e = Evacuator::new(&m, goal, Limits::NONE);
                while let Move::Frame(from) = e.step() {
                    let order = held.remove(&from.0).expect("it begins there");
                    let to = e.place(Order(order)).expect("half of it is free");
                    held.insert(to.into_pfn().0, order);
                    // SAFETY: nothing is at a frame, so nobody can use one.
                    unsafe { e.moved(from, Order(order)) }.expect("in use");
                }
                let p = e.into_claimed().expect("all of it moved").into_pfn();
                // SAFETY: it was claimed.
                unsafe { m.remove(p, GIB) }.expect("in use");
                // SAFETY: as above.
                let twice = unsafe { m.remove(p, GIB) };
                assert_eq!(twice, Err(GiveError::NoMemory(p)));
                spare.push(m.take_tables(p).expect("nothing is left"));
                assert!(m.take_tables(p).is_none());
                present[g as usize] = false;
            }
            let all = present.iter().filter(|&&p| p).count() as u64 * GIB;
            assert_eq!(m.present(), all, "round {round}");
            // A quarter of it in use, so that one gigabyte has room for another's.
            let used = |held: &BTreeMap<u64, u8>| held.values().map(|o| 1u64 << o).sum::<u64>();
            while used(&held) < all / 4 {
                let order = c.of(&[3, 5, 7, 9]);
                let p = m.alloc(&Request::new(Order(order), MOV)).expect("memory");
                held.insert(p.0, order);
            }
            while used(&held) > all / 4 {
                let (p, order) = held.pop_first().expect("some");
                give(&m, Pfn(p), order, MOV);
            }
            m.validate().expect("a sound state");
            assert_eq!(m.free_frames(), all - used(&held));
        }
    }
}

/// A memory itself is small enough for a static, and for the first stack of a kernel.
#[test]
fn a_memory_has_its_size() {
    let bytes = size_of::<Memory<Lock>>();
    println!("{bytes} bytes");
    assert!(bytes <= 32 << 10, "{bytes} bytes");
}

/// Who frees nothing but frames of another node gives back what he keeps all the same, when it is called home.
#[test]
fn frames_of_another_node_are_called_home_too() {
    let m: Memory<Lock> = full(machine());
    let mut l = m.local_on(NodeId(0)).expect("a local");
    let only = Request::new(Order(0), MOV).only(NodeId(1));
    let all: Vec<Pfn> = (0..5).map(|_| take(&m, &only)).collect();
    let mut free = |p| {
        // SAFETY: nothing is at a frame, so nobody can use one.
        unsafe { l.free(p, Order(0), MOV) }.expect("in use");
    };
    all[1..].iter().for_each(|&p| free(p));
    assert_eq!(
        (m.free_frames(), m.counts().free),
        (6 * GIB - 1, 6 * GIB - 5)
    );
    assert_eq!(m.drain_locals(), 0, "there is no barrier");
    free(all[0]);
    assert_eq!((m.free_frames(), m.counts().free), (6 * GIB, 6 * GIB - 1));
}
