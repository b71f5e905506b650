//! A memory, and what is in use of it.

pub use crate::chance::Chance;
use crate::chance::setting;
use crate::support::{add, started};
use std::collections::BTreeMap;
use unfrag::moves::{Evacuator, Goal, Limits, Move};
use unfrag::{Barrier, Memory, MemoryConfig, MigrateType, Order, Pfn, Request};

pub type Lock = spin::Mutex<()>;
pub const MOV: MigrateType = MigrateType::Movable;
pub const UNM: MigrateType = MigrateType::Unmovable;
pub const BLOCK: u64 = 512;

/// The seeds of a test: one that the environment sets, or some.
pub fn seeds(n: u64) -> impl Iterator<Item = u64> {
    let first = setting("UNFRAG_SEED", 1);
    let n = if cfg!(miri) { 1 } else { n };
    (first..first + n).inspect(|seed| println!("UNFRAG_SEED={seed}"))
}

/// A piece in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub order: u8,
    pub mt: MigrateType,
    /// Its owner does not move it.
    pub is_pinned: bool,
}

/// A memory, and each piece in use of it by its first frame.
pub struct World {
    pub memory: &'static Memory<'static, Lock>,
    pub pieces: BTreeMap<u64, Piece>,
    pub frames: u64,
    /// What owners were asked for.
    pub asked: u64,
}

impl World {
    /// All of it free.
    pub fn new(frames: u64, shards: usize) -> World {
        World::at(Pfn(0), frames, shards)
    }

    pub fn at(base: Pfn, frames: u64, shards: usize) -> World {
        let config = MemoryConfig {
            // SAFETY: a test has its locals on one thread.
            barrier: Some(unsafe { Barrier::new(|| true) }),
            ..MemoryConfig::new(base, frames)
                .with_shards(shards)
                .with_locals(2)
        };
        let memory: Memory<Lock> = started(config);
        add(&memory, base, frames).expect("it is new");
        World {
            memory: Box::leak(Box::new(memory)),
            pieces: BTreeMap::new(),
            frames,
            asked: 0,
        }
    }

    pub fn take(&mut self, order: u8, mt: MigrateType) -> Option<u64> {
        let p = self.memory.alloc(&Request::new(Order(order), mt)).ok()?.0;
        let is_pinned = false;
        self.pieces.insert(
            p,
            Piece {
                order,
                mt,
                is_pinned,
            },
        );
        Some(p)
    }

    pub fn free(&mut self, at: u64) {
        let piece = self.pieces.remove(&at).expect("in use");
        // SAFETY: frames are only numbers here.
        unsafe { self.memory.free(Pfn(at), Order(piece.order), piece.mt) }.expect("in use");
    }

    /// Takes all of it in pieces of orders below `orders`, and frees all but so many of 1000 of each block, as `stays` says
    /// by the number of the block.
    pub fn fill(&mut self, c: &mut Chance, orders: u64, stays: impl Fn(u64) -> u64) {
        while self.take(c.below(orders) as u8, MOV).is_some() {}
        while self.take(0, MOV).is_some() {}
        let all: Vec<u64> = self.pieces.keys().copied().collect();
        for at in all {
            if c.below(1000) >= stays(at / BLOCK) {
                self.free(at);
            }
        }
    }

    /// Frames in use of each block.
    pub fn used(&self) -> Vec<u64> {
        let mut used = vec![0; self.frames.div_ceil(BLOCK) as usize];
        for (at, piece) in &self.pieces {
            for frame in *at..at + (1 << piece.order) {
                used[(frame / BLOCK) as usize] += 1;
            }
        }
        used
    }

    /// The piece that holds a frame.
    pub fn holder(&self, frame: u64) -> Option<(u64, Piece)> {
        let (&at, &piece) = self.pieces.range(..=frame).next_back()?;
        (frame < at + (1 << piece.order)).then_some((at, piece))
    }

    /// Does what a step asks for. False, if it stays.
    pub fn answer(&mut self, e: &mut Evacuator<'_, 'static, Lock>, from: Pfn) -> bool {
        self.asked += 1;
        let Some((at, piece)) = self.holder(from.0).filter(|(_, p)| !p.is_pinned) else {
            return false;
        };
        let Some(to) = e.place(Order(piece.order)) else {
            return false;
        };
        let to = to.into_pfn().0;
        self.pieces.remove(&at);
        assert!(self.holder(to).is_none(), "{to:#x} is somebody's");
        self.pieces.insert(to, piece);
        // SAFETY: frames are only numbers here.
        unsafe { e.moved(Pfn(at), Order(piece.order)) }.expect("in use");
        true
    }

    /// Runs an evacuator to its end; `check`: owners are asked in advance.
    pub fn run(&mut self, e: &mut Evacuator<'_, 'static, Lock>, check: bool) {
        while let Move::Frame(from) = self.step(e, check) {
            self.answer(e, from);
        }
    }

    pub fn step(&self, e: &mut Evacuator<'_, 'static, Lock>, check: bool) -> Move {
        if !check {
            return e.step();
        }
        e.step_if(|p| {
            let (_, piece) = self.holder(p.0).filter(|(_, p)| !p.is_pinned)?;
            Some(Order(piece.order))
        })
    }

    /// An evacuator of the memory.
    pub fn begin(&self, goal: Goal, limits: Limits) -> Evacuator<'static, 'static, Lock> {
        Evacuator::new(self.memory, goal, limits)
    }

    /// Pieces do not overlap, and they are all that is in use, but for `held` frames.
    pub fn check(&self, held: u64) {
        let mut end = 0;
        for (&at, piece) in &self.pieces {
            assert!(at >= end, "pieces overlap at {at:#x}");
            end = at + (1 << piece.order);
        }
        let used: u64 = self.pieces.values().map(|p| 1 << p.order).sum();
        assert_eq!(self.memory.counts().free + used + held, self.frames);
        assert_eq!(self.memory.free_frames() + used + held, self.frames);
        self.memory.validate().expect("every invariant");
        assert_eq!(self.memory.refused(), 0);
    }

    /// Each free frame can be had, and is nobody's.
    pub fn check_to_the_last(mut self) {
        self.check(0);
        let used: u64 = self.pieces.values().map(|p| 1 << p.order).sum();
        for _ in used..self.frames {
            let p = self
                .memory
                .alloc(&Request::new(Order(0), MOV))
                .expect("it is free")
                .0;
            assert!(self.holder(p).is_none(), "{p:#x} is somebody's");
            self.pieces.insert(
                p,
                Piece {
                    order: 0,
                    mt: MOV,
                    is_pinned: false,
                },
            );
        }
        assert!(self.memory.alloc(&Request::new(Order(0), MOV)).is_err());
    }
}
