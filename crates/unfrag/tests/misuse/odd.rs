//! Memories that cannot be, and what is asked of them all the same.

use super::memory::Lock;
use unfrag::maps::Gigabyte;
use unfrag::moves::{Evacuator, Goal, Limits, Move};
use unfrag::{Area, Memory, MemoryConfig, MemoryLayout, MigrateType, NodeId, Order};
use unfrag::{Pfn, Request, StartError};

const MOV: MigrateType = MigrateType::Movable;

fn odd(start: u64, frames: u64, node: u8) -> MemoryConfig {
    MemoryConfig::of(Area {
        start: Pfn(start),
        frames,
        node: NodeId(node),
        shards: 1,
        is_low: true,
    })
}

/// Each safe call, before a start that fails and after it.
#[test]
fn a_memory_that_was_not_started_answers() {
    let configs = [
        odd(0, 1 << 18, 0),
        odd(u64::MAX - ((1 << 18) - 1), 1 << 19, 0),
        odd(u64::MAX - ((1 << 18) - 1), 1 << 18, 0),
        odd(1 << 18, u64::MAX, 0),
        odd(0, 1 << 49, 0),
        odd(77, 1 << 20, 255),
        odd(1 << 18, 0, 16),
        odd(1 << 18, 1 << 18, 0).and(
            odd(0, 1 << 20, 3)
                .areas
                .iter()
                .copied()
                .next()
                .expect("one"),
        ),
    ];
    for config in configs {
        println!("{:?}", config.areas);
        let m: Memory<Lock> = Memory::new(config);
        for started in [false, true] {
            if started {
                let mut none: &mut [u64] = &mut [];
                let _ = m.start(&mut [], &mut none);
                let _ = MemoryLayout::of(&config);
            }
            for at in [
                0,
                1,
                (1 << 32) - (1 << 18),
                1 << 18,
                u64::MAX,
                u64::MAX - ((1 << 18) - 1),
            ] {
                for frames in [0, 1, 512, 1 << 18, 1 << 40, u64::MAX] {
                    let at = Pfn(at);
                    assert!(m.add(at, frames, &mut &mut [][..]).is_err());
                    // SAFETY: nothing is memory.
                    assert!(unsafe { m.remove(at, frames) }.is_err());
                    assert!(m.alloc_at(at, frames, MOV).is_err());
                    let range = Goal::Range { start: at, frames };
                    let mut e = Evacuator::new(&m, range, Limits::NONE);
                    assert_eq!(e.step(), Move::Done);
                }
                assert!(m.take_tables(Pfn(at)).is_none());
                m.node_of(Pfn(at));
                for order in [0, 3, 9, 18, 19, 63, 64, 255] {
                    let order = Order(order);
                    assert!(m.alloc(&Request::new(order, MOV)).is_err());
                    let r = Request::new(order, MOV);
                    for node in [0, 3, 15, 16, 255] {
                        assert!(m.alloc(&r.near(NodeId(node))).is_err());
                        assert!(m.alloc(&r.only(NodeId(node)).atomic()).is_err());
                    }
                    assert!(m.alloc(&r.below(Pfn(at))).is_err());
                    assert!(m.report(order).is_none());
                    assert_eq!(m.whole_runs(order), 0);
                    for goal in [Goal::Run(order), Goal::Blocks(1), Goal::Ahead { blocks: 1 }] {
                        let mut e = Evacuator::new(&m, goal, Limits::NONE.huge(order));
                        assert_eq!(e.step(), Move::Done);
                    }
                }
            }
            assert!(m.local().is_none() && m.local_on(NodeId(200)).is_none());
            assert_eq!((m.free_frames(), m.present(), m.drain_locals()), (0, 0, 0));
            m.validate().expect("nothing");
        }
    }
}

/// More than an engine can have, in one shard.
#[test]
fn a_shard_that_is_too_large_is_refused() {
    let gigabytes = 1 << 14;
    let config = odd(0, gigabytes << 18, 0);
    let room = MemoryLayout::of(&config);
    let m: Memory<Lock> = Memory::new(config);
    let mut words = vec![0; room.locals].leak();
    let none = |n: usize| Vec::leak((0..n).map(|_| Gigabyte::NONE).collect());
    let got = m.start(none(room.gigabytes), &mut words);
    assert!(matches!(got, Err(StartError::TooLarge(_))), "{got:?}");
    assert_eq!(words.len(), room.locals, "nothing has changed");
}
