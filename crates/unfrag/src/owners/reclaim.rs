//! [`Reclaim`]: what a kswapd does, or a request that finds nothing, as one operation.
//!
//! Invariant: it asks one owner at a time, and nothing is locked when it does.

use super::owned::OwnerId;
use super::roster::Roster;
use crate::frame::NodeId;
use crate::memory::{MAX_NODES, Memory};
use core::sync::atomic::AtomicU64;
use lock_api::RawMutex;

/// Frames that a round asks for at most, unless it is told otherwise.
const BATCH: u64 = 1024;
/// Rounds in a row after which no more frames are free than before, until it ends.
const ROUNDS: u32 = 16;

/// What a [`Reclaim`] is to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Want {
    /// As many free frames as the high watermarks of all nodes say together. What CPUs keep counts, as everybody can have it.
    High,
    /// As many free frames of a node as its high watermark says. What CPUs keep is of no node, and does not count: owners
    /// [flush](crate::Local::flush) what they give.
    HighOf(NodeId),
    /// So many frames given, for an allocation that found too few. Every owner is asked once at most, those too that gave
    /// nothing lately.
    Frames(u64),
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Have this owner give back about so many frames, and [say](Reclaim::answer) how many it gave.
    Ask {
        /// Its number.
        owner: OwnerId,
        /// Its fair share of what is missing.
        frames: u64,
    },
    /// It has ended.
    Done(Reclaimed),
}

/// Why a [`Reclaim`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reclaimed {
    /// There is as much as was wanted.
    Reached,
    /// Those who could be asked give nothing more. Work it again when memory falls short again: owners that give nothing are
    /// asked more and more seldom.
    Nothing,
    /// Frames are taken as fast as they are given, or owners do not give what they say.
    Outrun,
    /// The memory has no such node.
    NoSuchNode(NodeId),
}

impl core::fmt::Display for Reclaimed {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            Reclaimed::Reached => f.write_str("as much is free as was wanted"),
            Reclaimed::Nothing => f.write_str("no owner gives anything: add memory, or free some"),
            Reclaimed::Outrun => f.write_str(
                "frames are taken as fast as owners give them, or owners give less than they say",
            ),
            Reclaimed::NoSuchNode(node) => {
                write!(
                    f,
                    "node {} has no memory: name one that has an area",
                    node.0
                )
            }
        }
    }
}

impl core::error::Error for Reclaimed {}

/// Has owners give frames back, in turn, each a fair share, until there are enough or nobody gives any.
///
/// ```
/// use std::sync::atomic::AtomicU64;
/// use unfrag::maps::Gigabyte;
/// use unfrag::owners::{Reclaim, Reclaimed, Roster, Turn, Want};
/// use unfrag::{Marks, Memory, MemoryConfig, MemoryLayout, MigrateType, Order, Pfn, Request};
///
/// let marks = Marks { min: 16, low: 64, high: 128 };
/// let config = MemoryConfig { marks, ..MemoryConfig::new(Pfn(0), 1 << 18) };
/// let mut directory = [const { Gigabyte::NONE }];
/// let mut words = vec![0; MemoryLayout::of(&config).words];
/// let mut words = &mut words[..];
/// let memory = Memory::<spin::Mutex<()>>::new(config);
/// memory.start(&mut directory, &mut words)?;
/// memory.add(Pfn(0), 512, &mut words)?;
///
/// // A cache has nearly all of it.
/// let roster = Roster::new([const { AtomicU64::new(0) }; 4]);
/// let _cache = roster.add()?;
/// let mut pages = vec![];
/// while let Ok(page) = memory.alloc(&Request::new(Order(0), MigrateType::Movable)) {
///     pages.push(page);
/// }
/// // kswapd.
/// assert!(memory.take_short());
/// let mut reclaim = Reclaim::new(&memory, &roster, Want::High);
/// let ended = loop {
///     match reclaim.step() {
///         Turn::Ask { frames, .. } => {
///             for page in pages.drain(..frames as usize) {
///                 // SAFETY: the page is nobody else's.
///                 unsafe { memory.free(page, Order(0), MigrateType::Movable)? };
///             }
///             reclaim.answer(frames);
///         }
///         Turn::Done(ended) => break ended,
///     }
/// };
/// assert_eq!((ended, memory.free_frames()), (Reclaimed::Reached, 128));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "it does nothing unless it is stepped"]
pub struct Reclaim<'s, 'm, R: RawMutex, W> {
    memory: &'s Memory<'m, R>,
    roster: &'s Roster<W>,
    want: Want,
    batch: u64,
    /// Who was named, and has not answered as yet.
    asked: Option<OwnerId>,
    /// Frames that owners said they gave, in all.
    got: u64,
    round: Round,
    /// Rounds that ended.
    rounds: u32,
    /// Most frames that were free at the begin of a round, and rounds since then.
    most: Option<u64>,
    since: u32,
    ended: Option<Reclaimed>,
}

/// Everybody is asked once at most.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Frames that are wanted still.
    left: u64,
    got: u64,
    /// The number to look at next, and how many are left to look at.
    at: u32,
    numbers: u32,
    end: u32,
    /// About so many owners will be asked still.
    owners: u64,
    /// No more than that is anybody's to give.
    present: u64,
}

impl<'s, 'm, R: RawMutex, W: AsRef<[AtomicU64]>> Reclaim<'s, 'm, R, W> {
    /// One that wants something of the owners of a roster.
    pub fn new(memory: &'s Memory<'m, R>, roster: &'s Roster<W>, want: Want) -> Self {
        Reclaim {
            memory,
            roster,
            want,
            batch: BATCH,
            asked: None,
            got: 0,
            round: Round::default(),
            rounds: 0,
            most: None,
            since: 0,
            ended: None,
        }
    }

    /// Rounds of [`Want::High`] and [`Want::HighOf`] ask for so many frames at most, and for one at least: with more, owners
    /// are asked more seldom; with fewer, it ends sooner when others free some.
    pub fn batch(mut self, frames: u64) -> Self {
        self.batch = frames.max(1);
        self
    }

    /// Continues until an owner should be asked, or until it has ended. An owner that was named, and that
    /// [`answer`](Self::answer) was not called for, gave nothing.
    pub fn step(&mut self) -> Turn {
        if self.asked.is_some() {
            self.answer(0);
        }
        loop {
            if let Some(ended) = self.ended {
                return Turn::Done(ended);
            }
            if let Some((owner, frames)) = self.next_of_round() {
                self.asked = Some(owner);
                self.roster.asks(owner);
                return Turn::Ask { owner, frames };
            }
            self.ended = self.end_round().or_else(|| self.begin_round());
        }
    }

    /// The owner that was named gave so many frames back: they are free. If none was named, it counts for nothing.
    pub fn answer(&mut self, frames: u64) {
        let Some(owner) = self.asked.take() else {
            return;
        };
        let frames = frames.min(self.round.present);
        self.roster.answered(owner, frames > 0);
        self.got = self.got.saturating_add(frames);
        self.round.got = self.round.got.saturating_add(frames);
        self.round.left = self.round.left.saturating_sub(frames);
    }

    /// Frames that owners said they gave.
    pub fn got(&self) -> u64 {
        self.got
    }

    /// What it is to reach.
    pub fn want(&self) -> Want {
        self.want
    }

    /// Whether it asks those too that gave nothing lately.
    fn asks_all(&self) -> bool {
        matches!(self.want, Want::Frames(_))
    }

    /// The next owner to ask, and for how much.
    fn next_of_round(&mut self) -> Option<(OwnerId, u64)> {
        let all = self.asks_all();
        let round = &mut self.round;
        while round.left > 0 && round.numbers > 0 {
            let id = OwnerId(round.at as u16);
            round.numbers -= 1;
            round.at = if round.at + 1 < round.end {
                round.at + 1
            } else {
                0
            };
            let is_asked = if all {
                self.roster.is_there(id)
            } else {
                self.roster.is_due(id)
            };
            if is_asked {
                let share = round.left.div_ceil(round.owners.max(1));
                round.owners = round.owners.saturating_sub(1);
                return Some((id, share));
            }
        }
        None
    }

    /// Why it ends with the round that has ended, if it does.
    fn end_round(&mut self) -> Option<Reclaimed> {
        if self.rounds == 0 {
            return None;
        }
        match self.want {
            Want::Frames(wanted) if self.got >= wanted => Some(Reclaimed::Reached),
            Want::Frames(_) => Some(Reclaimed::Nothing),
            // What others freed meanwhile may be enough.
            _ if self.missing() == Ok(0) => Some(Reclaimed::Reached),
            _ if self.round.got == 0 => Some(Reclaimed::Nothing),
            _ => None,
        }
    }

    /// Begins a round, unless it ends here.
    fn begin_round(&mut self) -> Option<Reclaimed> {
        let missing = match self.missing() {
            Ok(0) => return Some(Reclaimed::Reached),
            Ok(missing) => missing,
            Err(ended) => return Some(ended),
        };
        let free = self.free();
        let is_more = self.most.is_none_or(|most| free > most);
        self.since = if is_more { 0 } else { self.since + 1 };
        self.most = self.most.max(Some(free));
        if self.since >= ROUNDS {
            return Some(Reclaimed::Outrun);
        }
        self.rounds = self.rounds.saturating_add(1);
        let (left, owners) = match self.want {
            Want::Frames(_) => (missing, self.roster.len()),
            _ => (missing.min(self.batch), self.roster.begin_round()),
        };
        let end = self.roster.numbers().count() as u32;
        let hand = self.roster.hand();
        self.round = Round {
            left,
            got: 0,
            at: if hand < end { hand } else { 0 },
            numbers: end,
            end,
            owners: owners as u64,
            present: self.memory.present(),
        };
        None
    }

    /// The nodes that have an area.
    fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let all = (0..MAX_NODES as u8).map(NodeId);
        all.filter(|&node| self.has(node))
    }

    fn has(&self, node: NodeId) -> bool {
        self.memory.shards_of(node).next().is_some()
    }

    /// Free frames, of what is wanted.
    fn free(&self) -> u64 {
        match self.want {
            Want::HighOf(node) => self.memory.free_frames_of(node),
            _ => self.memory.free_frames(),
        }
    }

    /// Frames that are missing.
    fn missing(&self) -> Result<u64, Reclaimed> {
        let high = |node| self.memory.marks(node).high;
        match self.want {
            Want::Frames(wanted) => Ok(wanted.saturating_sub(self.got)),
            Want::HighOf(node) if self.has(node) => Ok(high(node).saturating_sub(self.free())),
            Want::HighOf(node) => Err(Reclaimed::NoSuchNode(node)),
            Want::High => {
                let all = self.nodes().map(high).fold(0, u64::saturating_add);
                Ok(all.saturating_sub(self.free()))
            }
        }
    }
}

impl<R: RawMutex, W> core::fmt::Debug for Reclaim<'_, '_, R, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let mut out = f.debug_struct("Reclaim");
        out.field("want", &self.want)
            .field("got", &self.got)
            .field("ended", &self.ended);
        out.finish_non_exhaustive()
    }
}
