//! unfrag's own engine in a model: what `unfrag` chooses frames with on a simulated machine, and in a replay.
//!
//! Each zone is an [`unfrag::Memory`], as it ships: that says which free block serves a request, and its
//! [`Evacuator`] what moves, and where to, for one that finds none. The kernel around it is a model of Linux's: marks,
//! reclaim, per-CPU lists, and when something is emptied, are those of the eras' manager.
//!
//! Invariants: what a zone's lists show as free is free in its memory, but for what a run empties. A run is a function of its
//! inputs: there is one caller, no clock and no address.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use unfrag::maps::{Gigabyte, LARGEST_ORDER};
use unfrag::moves::{Evacuator, Goal, Limits, Move};
use unfrag::{Area, Memory, MemoryConfig, MemoryLayout, MigrateType, Request};
use unfrag_eras::source::{Next, Room, Source};
use unfrag_eras::{NodeId, Order, Pfn, ZoneConfig, ZoneId};

type Lock = spin::Mutex<()>;

/// The types that the engine knows.
const TYPES: [MigrateType; 3] = [
    MigrateType::Movable,
    MigrateType::Unmovable,
    MigrateType::Reclaimable,
];

/// What a request that waits may cost, and what is made ahead of demand.
const DIRECT: Limits = Limits::NONE.copies(4096).most(480);
const AHEAD: Limits = Limits::NONE.most(256);

/// Memory that is lent out for as long as it stands beside its borrowers.
struct Lent<T: ?Sized>(NonNull<T>);

// SAFETY: it owns what it points to, as a box does; the borrowers go where it goes.
unsafe impl<T: ?Sized + Send> Send for Lent<T> {}

impl<T: ?Sized> Lent<T> {
    /// The owner, and the one reference. The reference and all that has it must be gone before the owner is dropped: both
    /// are fields of one struct here, the owner below.
    fn new(of: Box<T>) -> (Lent<T>, &'static mut T) {
        let mut at = NonNull::from(Box::leak(of));
        // SAFETY: the box was leaked just above, and the owner touches it only when it is dropped.
        (Lent(at), unsafe { at.as_mut() })
    }
}

impl<T: ?Sized> Drop for Lent<T> {
    fn drop(&mut self) {
        // SAFETY: it came out of a box, and whoever had it is gone, as `new` says.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A zone.
struct Zone {
    memory: &'static Memory<'static, Lock>,
    first: u64,
    /// The type of the request that took each frame last.
    types: Vec<MigrateType>,
    /// The frames that are free at the beginning, as long as that is being said.
    begins_free: Option<Vec<bool>>,
    // Dropped in this order: the memory before what it lies in.
    _memory: Lent<Memory<'static, Lock>>,
    _directory: Lent<[Gigabyte<'static>]>,
    _words: Lent<[u64]>,
}

impl Zone {
    /// A zone, all of which is to be in use unless it is given before it is ready.
    fn new(of: &ZoneConfig) -> Option<Zone> {
        let whole = u64::from(LARGEST_ORDER.frames());
        let base = of.start.0 / whole * whole;
        let end = of.start.0.checked_add(of.spanned)?;
        let config = MemoryConfig::of(Area {
            start: Pfn(base),
            frames: end - base,
            node: NodeId(0),
            shards: 1,
            is_low: false,
        });
        let room = MemoryLayout::of(&config.with_locals(0));
        let (_words, mut words) = Lent::new(vec![0; room.words].into_boxed_slice());
        let directory = (0..room.gigabytes).map(|_| Gigabyte::NONE).collect();
        let (_directory, directory) = Lent::<[Gigabyte<'static>]>::new(directory);
        let (_memory, memory) = Lent::new(Box::new(Memory::new(config.with_locals(0))));
        let memory: &'static Memory<'static, Lock> = memory;
        memory.start(directory, &mut words).ok()?;
        memory.add(of.start, of.spanned, &mut words).ok()?;
        let spanned = usize::try_from(of.spanned).ok()?;
        Some(Zone {
            memory,
            first: of.start.0,
            types: vec![MigrateType::Unmovable; spanned],
            begins_free: Some(vec![false; spanned]),
            _memory,
            _directory,
            _words,
        })
    }

    fn index(&self, pfn: Pfn) -> usize {
        pfn.0.wrapping_sub(self.first) as usize
    }

    /// Notes whether a block is free at the beginning. False, if that is over.
    fn begins(&mut self, pfn: Pfn, order: Order, is_free: bool) -> bool {
        let at = self.index(pfn);
        let Some(begins) = &mut self.begins_free else {
            return false;
        };
        if let Some(own) = begins.get_mut(at..at + order.frames() as usize) {
            own.fill(is_free);
        }
        true
    }

    /// Takes what is in use at the beginning. A block of 512 frames is of the type that most of it has, as the first that is
    /// taken there says.
    fn ready(&mut self) -> Result<(), unfrag::maps::GiveError> {
        let Some(free) = self.begins_free.take() else {
            return Ok(());
        };
        let mut at = 0;
        while at < free.len() {
            let frame = self.first + at as u64;
            let block = u64::from(Order::HUGE.frames());
            let end = (at + (block - frame % block) as usize).min(free.len());
            let (free, of) = (&free, &self.types);
            let used = |mt| (at..end).filter(move |&i| !free[i] && of[i] == mt);
            let mut types = TYPES;
            types.sort_by_key(|&mt| std::cmp::Reverse(used(mt).count()));
            for mt in types {
                for i in used(mt) {
                    let pfn = Pfn(self.first + i as u64);
                    self.memory.alloc_at(pfn, 1, mt)?;
                }
            }
            at = end;
        }
        Ok(())
    }

    /// Notes for whom a block is.
    fn note(&mut self, pfn: Pfn, order: Order, mt: MigrateType) {
        let at = self.index(pfn);
        if let Some(types) = self.types.get_mut(at..at + order.frames() as usize) {
            types.fill(mt);
        }
    }
}

/// A run of an evacuator.
struct Run {
    zone: usize,
    evacuator: Evacuator<'static, 'static, Lock>,
}

/// unfrag's own engine, a [`Memory`] for each zone.
#[derive(Default)]
pub struct Own {
    // Dropped in this order: the evacuators before their memory.
    runs: Vec<Option<Run>>,
    zones: Vec<Option<Zone>>,
    /// Blocks that were given back and refused.
    refused: u64,
}

impl Own {
    /// One for rules that leave the choice of frames to the host, if these do.
    pub fn of(rules: &unfrag_eras::Rules) -> Option<Box<Own>> {
        rules.is_sourced().then(Box::default)
    }

    /// Checks each memory, and that it has as many free frames as the lists of its zone show, which `shown` says: none is
    /// known as long as a run is under way.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, shown: impl Fn(ZoneId) -> u64) -> Result<(), String> {
        if self.refused > 0 {
            return Err(format!("{} blocks were given back twice", self.refused));
        }
        let is_idle = self.runs.iter().all(Option::is_none);
        for (id, zone) in (0..).map(ZoneId).zip(&self.zones) {
            let Some(zone) = zone else { continue };
            let sound = zone.memory.validate();
            sound.map_err(|e| format!("zone {}: {e:?}", id.0))?;
            let (has, shows) = (zone.memory.free_frames(), shown(id));
            if is_idle && has != shows {
                return Err(format!("zone {}: {has} frames are free, not {shows}", id.0));
            }
        }
        Ok(())
    }

    fn zone(&self, zone: ZoneId) -> Option<&Zone> {
        self.zones.get(zone.index())?.as_ref()
    }

    fn zone_mut(&mut self, zone: ZoneId) -> Option<&mut Zone> {
        self.zones.get_mut(zone.index())?.as_mut()
    }

    fn run(&self, run: u32) -> Option<&Run> {
        self.runs.get(run as usize)?.as_ref()
    }

    fn run_mut(&mut self, run: u32) -> Option<&mut Run> {
        self.runs.get_mut(run as usize)?.as_mut()
    }
}

/// The type by which the engine groups a request.
fn grouped(mt: MigrateType) -> MigrateType {
    match mt {
        MigrateType::Movable | MigrateType::Reclaimable => mt,
        _ => MigrateType::Unmovable,
    }
}

impl Source for Own {
    fn start(&mut self, zones: &[ZoneConfig]) -> bool {
        let known: Vec<_> = zones
            .iter()
            .map(|z| (z.spanned > 0, Zone::new(z)))
            .collect();
        let all = known.iter().all(|(is, zone)| !is || zone.is_some());
        self.zones = known.into_iter().map(|(_, zone)| zone).collect();
        all
    }

    fn ready(&mut self) {
        for zone in self.zones.iter_mut().flatten() {
            self.refused += u64::from(zone.ready().is_err());
        }
    }

    fn choose(&mut self, zone: ZoneId, order: Order, mt: MigrateType) -> Option<Pfn> {
        let (zone, mt) = (self.zone_mut(zone)?, grouped(mt));
        if zone.begins_free.is_some() {
            return None;
        }
        let pfn = zone.memory.alloc(&Request::new(order, mt)).ok()?;
        zone.note(pfn, order, mt);
        Some(pfn)
    }

    fn claim(&mut self, zone: ZoneId, pfn: Pfn, order: Order, mt: MigrateType) -> bool {
        let (Some(zone), mt) = (self.zone_mut(zone), grouped(mt)) else {
            return false;
        };
        if zone.begins(pfn, order, false) {
            zone.note(pfn, order, mt);
            return true;
        }
        let frames = order.frames().into();
        let is_taken = zone.memory.alloc_at(pfn, frames, mt).is_ok();
        if is_taken {
            zone.note(pfn, order, mt);
        }
        is_taken
    }

    fn give(&mut self, zone: ZoneId, pfn: Pfn, order: Order) {
        let is_begin = |zone: &mut Zone| zone.begins(pfn, order, true);
        if self.zone_mut(zone).is_some_and(is_begin) {
            return;
        }
        let given = self.zone(zone).map(|zone| {
            let mt = zone.types.get(zone.index(pfn)).copied();
            let mt = mt.unwrap_or(MigrateType::Unmovable);
            // SAFETY: the manager says that its holder has freed it, and no memory lies behind its number.
            unsafe { zone.memory.free(pfn, order, mt) }
        });
        if !matches!(given, Some(Ok(()))) {
            self.refused += 1;
        }
    }

    fn type_of(&self, zone: ZoneId, pfn: Pfn) -> MigrateType {
        let mt = self.zone(zone).map(|z| z.types.get(z.index(pfn)));
        mt.flatten().copied().unwrap_or(MigrateType::Unmovable)
    }

    fn begin(&mut self, zone: ZoneId, room: Room) -> u32 {
        let free = self.runs.iter().position(Option::is_none);
        let run = free.unwrap_or(self.runs.len());
        let begun = self.zone(zone).map(|z| {
            let memory = z.memory;
            let (goal, limits) = match room {
                Room::Block(huge) => (Goal::Blocks(1), DIRECT.huge(huge)),
                Room::Ahead { order, blocks } => (Goal::Ahead { blocks }, AHEAD.huge(order)),
                Room::All(huge) => (Goal::Blocks(u32::MAX), Limits::NONE.huge(huge)),
                _ => (Goal::Blocks(0), Limits::NONE),
            };
            Run {
                zone: zone.index(),
                evacuator: Evacuator::new(memory, goal, limits),
            }
        });
        match self.runs.get_mut(run) {
            Some(slot) => *slot = begun,
            None => self.runs.push(begun),
        }
        run as u32
    }

    fn next(&mut self, run: u32, moves: &mut dyn FnMut(Pfn) -> Option<Order>) -> Next {
        let step = self.run_mut(run).map(|r| r.evacuator.step_if(moves));
        match step {
            Some(Move::Frame(pfn)) => Next::Frame(pfn),
            _ => Next::Done,
        }
    }

    fn after(&self, run: u32, frame: Pfn) -> Option<Pfn> {
        self.run(run)?.evacuator.after(frame)
    }

    fn place(&mut self, run: u32, order: Order) -> Option<Pfn> {
        let r = self.run_mut(run)?;
        let (zone, pfn) = (r.zone, r.evacuator.place(order)?.into_pfn());
        let zone = self.zones.get_mut(zone)?.as_mut()?;
        zone.note(pfn, order, MigrateType::Movable);
        Some(pfn)
    }

    fn end(&mut self, run: u32) -> u32 {
        let ended = self.runs.get_mut(run as usize).and_then(Option::take);
        ended.map_or(0, |r| r.evacuator.gained())
    }
}
