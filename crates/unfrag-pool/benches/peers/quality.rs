//! What remains of large blocks: `regain` and `pollution`.

use crate::own::{Own, Visit};
use crate::random::Random;
use unfrag::MigrateType::{self, Movable, Unmovable};

/// Frames of 2 MiB, and of 1 GiB.
const BLOCK: u32 = 512;
const GIGABYTE: u32 = 1 << 18;

/// Frames that are held, and how many of each block are.
struct Held {
    frames: Vec<(u32, MigrateType)>,
    of_block: Vec<u16>,
    unmovable: Vec<u16>,
    unmovable_frames: u64,
}

impl Held {
    fn new(frames: u32) -> Held {
        let blocks = (frames / BLOCK) as usize;
        Held {
            frames: Vec::with_capacity(frames as usize),
            of_block: vec![0; blocks],
            unmovable: vec![0; blocks],
            unmovable_frames: 0,
        }
    }

    fn take<O: Own>(&mut self, own: &mut O, mt: MigrateType) -> bool {
        let Some(frame) = own.take(0, mt) else {
            return false;
        };
        let b = (frame / BLOCK) as usize;
        self.of_block[b] += 1;
        if mt == Unmovable {
            self.unmovable[b] += 1;
            self.unmovable_frames += 1;
        }
        self.frames.push((frame, mt));
        true
    }

    fn give<O: Own>(&mut self, own: &mut O, i: usize) {
        let (frame, mt) = self.frames.swap_remove(i);
        let b = (frame / BLOCK) as usize;
        self.of_block[b] -= 1;
        if mt == Unmovable {
            self.unmovable[b] -= 1;
            self.unmovable_frames -= 1;
        }
        own.give(frame, 0, mt);
    }

    /// Frees a part of what is held at random, and takes as much.
    fn replace<O: Own>(&mut self, own: &mut O, parts: usize, random: &mut Random, unmovable: u32) {
        let n = self.frames.len() / parts;
        for _ in 0..n {
            let victim = random.below(self.frames.len());
            self.give(own, victim);
        }
        for _ in 0..n {
            self.take_any(own, random, unmovable);
        }
    }

    fn take_any<O: Own>(&mut self, own: &mut O, random: &mut Random, unmovable: u32) -> bool {
        let mt = if random.is(unmovable) {
            Unmovable
        } else {
            Movable
        };
        self.take(own, mt)
    }

    /// Blocks of 2 MiB of which nothing is held.
    fn empty(&self) -> usize {
        self.of_block.iter().filter(|&&n| n == 0).count()
    }

    /// Units of so many frames that hold something unmovable, and the fewest that could.
    fn tainted(&self, unit: u32) -> (usize, u64) {
        let units = self.unmovable.chunks((unit / BLOCK) as usize);
        let tainted = units.filter(|u| u.iter().any(|&n| n > 0)).count();
        (tainted, self.unmovable_frames.div_ceil(unit.into()))
    }

    fn give_all<O: Own>(&mut self, own: &mut O) {
        while !self.frames.is_empty() {
            self.give(own, self.frames.len() - 1);
        }
    }
}

/// The allocator, if it is one for which questions about blocks make sense.
fn one<O: Own>(owns: Vec<O>) -> Option<O> {
    owns.into_iter().next().filter(|_| O::PLACES)
}

/// 4,096 blocks are filled, and a random half of the frames is freed. Then each of 100 rounds frees a random tenth of
/// what is held, and takes as much.
pub struct Regain {
    pub frames: u32,
    pub seed: u64,
    /// Whole free blocks after each round, from before the first one on.
    pub blocks: Vec<usize>,
}

impl Visit for Regain {
    fn visit<O: Own>(&mut self, owns: Vec<O>) {
        let Some(mut own) = one(owns) else {
            return;
        };
        let mut random = Random::new(1_234_567 + self.seed);
        let mut held = Held::new(self.frames);
        while held.take(&mut own, Movable) {}
        for _ in 0..held.frames.len() / 2 {
            let victim = random.below(held.frames.len());
            held.give(&mut own, victim);
        }
        for round in 0..=100 {
            if round > 0 {
                held.replace(&mut own, 10, &mut random, 0);
            }
            self.blocks.push(held.empty());
        }
        held.give_all(&mut own);
    }
}

/// What unmovable frames do to blocks.
#[derive(Clone, Copy, Debug)]
pub struct Tainted {
    pub fill: u32,
    pub in_phases: bool,
    pub unit: &'static str,
    pub blocks: usize,
    pub fewest: u64,
}

/// Memory is filled, 5 % of it unmovable; then each of 40 rounds replaces a quarter. Or in phases: ten rounds of 20 %
/// unmovable, ten of none, and again.
pub struct Pollution {
    pub frames: u32,
    pub fill: u32,
    pub in_phases: bool,
    pub seen: Vec<Tainted>,
}

impl Visit for Pollution {
    fn visit<O: Own>(&mut self, owns: Vec<O>) {
        let Some(mut own) = one(owns) else {
            return;
        };
        let mut random = Random::new(99);
        let mut held = Held::new(self.frames);
        let wanted = u64::from(self.frames) * u64::from(self.fill) / 100;
        while (held.frames.len() as u64) < wanted && held.take_any(&mut own, &mut random, 5) {}
        let (mut most, mut peak) = ([0; 2], [0; 2]);
        for round in 0..40 {
            let unmovable = match (self.in_phases, round / 10 % 2) {
                (false, _) => 5,
                (true, 0) => 20,
                (true, _) => 0,
            };
            held.replace(&mut own, 4, &mut random, unmovable);
            for (i, unit) in [BLOCK, GIGABYTE].into_iter().enumerate() {
                let (tainted, fewest) = held.tainted(unit);
                most[i] = most[i].max(tainted);
                peak[i] = peak[i].max(fewest);
            }
        }
        for (i, (unit, frames)) in [("2 MiB", BLOCK), ("1 GiB", GIGABYTE)]
            .into_iter()
            .enumerate()
        {
            let (blocks, fewest) = if self.in_phases {
                (most[i], peak[i])
            } else {
                held.tainted(frames)
            };
            self.seen.push(Tainted {
                fill: self.fill,
                in_phases: self.in_phases,
                unit,
                blocks,
                fewest,
            });
        }
        held.give_all(&mut own);
    }
}
