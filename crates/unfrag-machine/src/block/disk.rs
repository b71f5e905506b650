//! A disk: the position of its head, how long a request takes, its faults.
//!
//! One request is served at a time. It takes the controller's overhead, the seek (least time plus the rest
//! by the root of the distance), a random part of a rotation, and the transfer. If the sector comes under
//! the head sooner without a seek, that time counts instead. At the head's own position there is the
//! transfer alone.

use super::bio::{Dir, SECTOR};
use super::config::{DiskConfig, Fault};
use super::queue::Queue;
use crate::engine::{Nanos, Rng, SEC};

/// Counters of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Requests read.
    pub reads: u64,
    /// Requests written.
    pub writes: u64,
    /// Sectors read.
    pub sectors_read: u64,
    /// Sectors written.
    pub sectors_written: u64,
    /// Bios that were merged into a request.
    pub merges: u64,
    /// Bios that failed.
    pub failed_bios: u64,
    /// Time with a request in service.
    pub busy: Nanos,
    /// Requests that needed a seek.
    pub seeks: u64,
}

/// A disk and its queue.
pub(crate) struct Disk {
    pub config: DiskConfig,
    pub queue: Queue,
    /// The request in service, and the time at which it began.
    pub serving: Option<(u32, Nanos)>,
    /// Whether the queue is plugged.
    pub plugged: bool,
    /// Until when the disk is kept idle for a request, if it is.
    pub idle_until: Option<Nanos>,
    /// Sector under the head.
    head: u64,
    rng: Rng,
    pub stats: DiskStats,
}

impl Disk {
    pub fn new(config: &DiskConfig, seed: u64) -> Disk {
        Disk {
            queue: Queue::new(config.queue.clone()),
            rng: Rng::named(seed, &format!("disk {}", config.name)),
            config: config.clone(),
            serving: None,
            plugged: false,
            idle_until: None,
            head: 0,
            stats: DiskStats::default(),
        }
    }

    /// Time of a seek over `distance` sectors.
    fn seek(&self, distance: u64) -> Nanos {
        let c = &self.config;
        // In 2^-20 of the root of the disk's size.
        let part = ((u128::from(distance) << 40) / u128::from(c.sectors.max(1))).isqrt();
        let rest = u128::from(c.seek_max.saturating_sub(c.seek_min));
        c.seek_min + ((rest * part) >> 20) as Nanos
    }

    fn transfer(&self, sectors: u64) -> Nanos {
        let bytes = u128::from(sectors * SECTOR);
        (bytes * u128::from(SEC) / u128::from(self.config.bandwidth.max(1))) as Nanos
    }

    /// Serves a request: moves the head; returns how long it takes.
    pub fn serve(&mut self, start: u64, sectors: u64) -> Nanos {
        let from = std::mem::replace(&mut self.head, start + sectors);
        let mut way = 0;
        if start != from {
            let turn = match self.config.rotation {
                0 => 0,
                rotation => self.rng.below(rotation),
            };
            way = self.seek(start.abs_diff(from)) + turn;
            let under = match start.checked_sub(from) {
                Some(ahead) => self.transfer(ahead),
                None => Nanos::MAX,
            };
            if way <= under {
                self.stats.seeks += 1;
            }
            way = way.min(under);
        }
        self.config.overhead + way + self.transfer(sectors)
    }

    /// Until when nothing completes, if that is so now.
    pub fn stalled(&self, now: Nanos) -> Option<Nanos> {
        let ends = self.config.faults.iter().filter_map(|f| match *f {
            Fault::Stall { from, to } if from <= now && now < to => Some(to),
            _ => None,
        });
        ends.max()
    }

    /// Whether a transfer that completes now fails.
    pub fn fails(&self, now: Nanos, start: u64, sectors: u64) -> bool {
        self.config.faults.iter().any(|f| match *f {
            Fault::Fail {
                from,
                to,
                first_sector,
                end_sector,
            } => from <= now && now < to && start < end_sector && first_sector < start + sectors,
            Fault::Stall { .. } => false,
        })
    }

    /// Counts a request that is done.
    pub fn count(&mut self, dir: Dir, sectors: u64, took: Nanos) {
        let s = &mut self.stats;
        match dir {
            Dir::Read => {
                s.reads += 1;
                s.sectors_read += sectors;
            }
            Dir::Write => {
                s.writes += 1;
                s.sectors_written += sectors;
            }
        }
        s.busy += took;
    }
}
