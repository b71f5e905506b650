//! What a transfer holds while it is under way: its bio; a vector of its pages, if there are more than
//! fit into that; and a bio and a record of the encrypting layer that it passes through.
//!
//! All come from mempools (`GFP_NOIO`): they are taken from free memory if that can be without waiting
//! and without the reserves, else from the pool's own. The specification is silent on this; that a
//! bio has a cache of its own is in source S2 (`bio-0`), sizes and names are those of `/proc/slabinfo`.
//! What a pool has of its own is not limited here, so that nobody waits for it.
//!
//! Invariant: a token is given when a transfer begins and given back once, when it ends.

use super::Memory;
use crate::Sim;
use crate::block::Dir;
use crate::kmem::Obj;
use crate::kmem::caches::Kind;
use unfrag::Gfp;

/// Pages that a bio has room for in itself.
const INLINE: usize = 4;

/// What a transfer asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// Pages that its bio has room for.
    room: usize,
    /// Whether the request may go deeper than others (`__GFP_HIGH`).
    high: bool,
    /// Whether it passes through an encrypting layer.
    encrypted: bool,
}

impl Want {
    /// What a transfer of so many pages asks for. A file system that writes a file in one go asks for
    /// `room` for as many as the queue takes at a time, before it knows how many there are, and may go
    /// deeper; others write page by page.
    pub fn of(dir: Dir, pages: usize, room: u8, encrypted: bool) -> Want {
        Want {
            room: match dir {
                Dir::Read => pages,
                Dir::Write => room.into(),
            },
            high: room > 0,
            encrypted,
        }
    }

    fn kinds(self) -> [Option<Kind>; 4] {
        let vector = match self.room {
            0..=INLINE => None,
            5..=16 => Some(Kind::BioVec16),
            _ => Some(Kind::BioVec64),
        };
        let layer = |kind| self.encrypted.then_some(kind);
        [
            Some(Kind::Bio),
            vector,
            layer(Kind::Bio),
            layer(Kind::CryptIo),
        ]
    }

    fn gfp(self) -> Gfp {
        let polite =
            (Gfp::KERNEL - Gfp::IO - Gfp::FS) | Gfp::NOMEMALLOC | Gfp::NORETRY | Gfp::NOWARN;
        if self.high {
            polite | Gfp::HIGH
        } else {
            polite
        }
    }
}

/// What the transfers under way hold.
#[derive(Default)]
pub(crate) struct Bios {
    held: Vec<[Option<Obj>; 4]>,
    vacant: Vec<u32>,
    /// Transfers that have begun and hold nothing yet.
    begun: Vec<(u32, Want)>,
}

impl Memory {
    /// A transfer begins; what it holds is taken as soon as the allocator can be asked. Returns the
    /// token by which it is known.
    pub(crate) fn bio_begins(&mut self, want: Want) -> u32 {
        let b = &mut self.bios;
        let token = b.vacant.pop().unwrap_or_else(|| {
            b.held.push([None; 4]);
            b.held.len() as u32 - 1
        });
        b.begun.push((token, want));
        token
    }
}

impl Sim {
    /// Takes what the transfers hold that have just begun. Called before time passes.
    #[inline]
    pub(crate) fn fund_bios(&mut self) {
        if !self.mem_ref().bios.begun.is_empty() {
            self.fund_begun();
        }
    }

    #[cold]
    fn fund_begun(&mut self) {
        let mut begun = std::mem::take(&mut self.mem().bios.begun);
        for (token, want) in begun.drain(..) {
            let gfp = want.gfp();
            let held = want.kinds().map(|kind| {
                let cache = self.cache(kind?);
                let obj = self.kmem_nowait(cache, gfp);
                self.mem().counters.mempool_used += u64::from(obj.is_none());
                obj
            });
            self.mem().bios.held[token as usize] = held;
        }
        // Its memory serves the next ones.
        self.mem().bios.begun = begun;
    }

    /// A transfer has ended.
    pub(crate) fn bio_ends(&mut self, token: u32) {
        let b = &mut self.mem().bios;
        debug_assert!(
            !b.begun.iter().any(|x| x.0 == token),
            "ends before it began"
        );
        let held = std::mem::take(&mut b.held[token as usize]);
        b.vacant.push(token);
        for obj in held.into_iter().flatten() {
            self.kmem_free(obj);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::alloc::Who;
    use crate::{Engine, MachineConfig};
    use unfrag::preset;

    fn machine(frames: u64) -> Engine {
        let mut config = MachineConfig::flat(frames, 2, preset("2.6.32").unwrap().switches);
        config.mem.slab = unfrag::slab::Rules::S2;
        Engine::new(&config).unwrap()
    }

    fn in_use(sim: &Sim, kind: Kind) -> u64 {
        let view = sim.mem_ref().kmem.view(sim.cache(kind));
        view.map_or(0, |v| v.in_use)
    }

    fn begin(sim: &mut Sim, want: Want) -> u32 {
        let token = sim.mem().bio_begins(want);
        sim.fund_bios();
        token
    }

    #[test]
    fn a_transfer_holds_its_bio_and_vector_until_it_ends() {
        let mut e = machine(16 << 8);
        let sim = e.sim();
        let read = begin(sim, Want::of(Dir::Read, 12, 0, false));
        let page = begin(sim, Want::of(Dir::Write, 32, 0, true));
        let file = begin(sim, Want::of(Dir::Write, 1, 32, false));
        use Kind::{Bio, BioVec16, BioVec64, CryptIo};
        let count = |sim: &Sim| [Bio, BioVec16, BioVec64, CryptIo].map(|k| in_use(sim, k));
        assert_eq!(count(sim), [4, 1, 1, 1]);
        for token in [file, read, page] {
            sim.bio_ends(token);
        }
        assert_eq!(count(sim), [0; 4]);
        assert_eq!(sim.mem().counters.mempool_used, 0);
        sim.check(0).unwrap();
    }

    #[test]
    fn with_nothing_free_the_pool_gives_and_the_reserves_are_left_alone() {
        let mut e = machine(16 << 8);
        let sim = e.sim();
        let mut blocks = vec![];
        while let Some(pfn) = sim.alloc_now(Who::KERNEL, 0, Gfp::ATOMIC) {
            blocks.push(pfn);
        }
        let free = sim.free_and_total().0;
        let want = Want::of(Dir::Write, 1, 0, false);
        let tokens: Vec<u32> = (0..10_000).map(|_| begin(sim, want)).collect();
        assert!(sim.mem().counters.mempool_used > 0);
        assert!(sim.free_and_total().0 > free / 4);
        for token in tokens {
            sim.bio_ends(token);
        }
        assert_eq!(in_use(sim, Kind::Bio), 0);
        for pfn in blocks {
            sim.give_frame(pfn, 0);
        }
    }
}
