//! A recorded process, done again: memory, time on a CPU and files as the recording of its program says.
//!
//! A recording tells how the processes of a program differ, by quantiles of each number. Here one draw
//! decides all of them: a process that is large in one is large in all. Its share of CPU time goes with its
//! share of memory, and what the kernel's work takes here is part of it, as it is in the recording.
//!
//! Invariant: many processes together take what the recorded ones took, within the draw's chance.

use super::actor::{Actor, Halt};
use super::draw::Draw;
use super::spec::{Create, FileRef, OfTree, Pick, Recorded};
use crate::Cx;
use crate::engine::{Nanos, TaskTimes};
use std::iter::once;

/// Chances that a [`Quantiles`] tells apart.
pub const CHANCES: u64 = 10_000;

/// Pages that a process uses between two pieces of its own work.
const PIECE: u32 = 16;

/// The memory that recorded processes used.
pub(super) const AREA: &str = "recorded";

/// A number that differs from process to process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    p10: u64,
    median: u64,
    p90: u64,
    max: u64,
    /// Chances of `max`, of [`CHANCES`]; from p90 to there it is `p90`.
    largest: u64,
}

impl Quantiles {
    /// From a number's quantiles and its `mean`, which decides how many of the largest tenth have `max`; the
    /// others there have `p90`. Quantiles are put in order.
    pub fn new(p10: u64, median: u64, p90: u64, max: u64, mean: u64) -> Quantiles {
        let median = median.max(p10);
        let p90 = p90.max(median);
        let max = max.max(p90);
        // Nine tenths together: one of p10, and four times the middle of each straight line.
        let [low, mid, high] = [p10, median, p90].map(u128::from);
        let below = 3 * low + 4 * mid + 2 * high;
        let tenth = (10 * u128::from(mean)).saturating_sub(below);
        let over = tenth.saturating_sub(high);
        let room = u128::from(max - p90);
        let largest = (over * u128::from(CHANCES / 10)).div_ceil(room.max(1));
        let largest = largest.clamp(u128::from(max > p90), u128::from(CHANCES / 10));
        Quantiles {
            p10,
            median,
            p90,
            max,
            largest: largest as u64,
        }
    }

    /// The number of the process that stands at this place of [`CHANCES`], the smallest first.
    pub fn at(&self, place: u64) -> u64 {
        let between = |from: u64, to: u64, past: u64| {
            let (span, width) = (u128::from(to - from), u128::from(4 * CHANCES / 10));
            from + (span * u128::from(past) / width) as u64
        };
        let (tenth, half, most) = (CHANCES / 10, CHANCES / 2, 9 * CHANCES / 10);
        match place {
            p if p < tenth => self.p10,
            p if p < half => between(self.p10, self.median, p - tenth),
            p if p < most => between(self.median, self.p90, p - half),
            p if p < CHANCES - self.largest => self.p90,
            _ => self.max,
        }
    }
}

/// What the processes of a recorded program do to memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// Anonymous pages that a process comes to have.
    pub anonymous: Quantiles,
    /// How many of them it has at the end of each tenth of its work, in percent.
    pub tenths: [u8; 10],
    /// Nanoseconds on a CPU, the kernel's work for it included.
    pub cpu: Quantiles,
    /// Pages of files that it reads.
    pub read: Quantiles,
    /// Pages of files that it writes.
    pub written: Quantiles,
}

/// Where recorded programs are found.
pub trait Profiles {
    /// What a program of a profile does; the recorded command as a whole, if none is named.
    ///
    /// # Errors
    /// What is not there, and the way out.
    fn behaviour(
        &self,
        profile: &str,
        program: Option<&str>,
    ) -> Result<Behaviour, (String, String)>;
}

/// No recorded programs.
#[derive(Clone, Copy, Debug)]
pub struct NoProfiles;

impl Profiles for NoProfiles {
    fn behaviour(&self, profile: &str, _: Option<&str>) -> Result<Behaviour, (String, String)> {
        let message =
            format!("there is no profile `{profile}`: no place is known where profiles are");
        Err((message, "give steps instead".to_owned()))
    }
}

/// Part `n` of `whole` that is cut in tenths.
fn tenth(whole: u64, n: u64) -> u64 {
    whole * (n + 1) / 10 - whole * n / 10
}

impl Actor {
    pub(super) fn recorded(&mut self, cx: &mut Cx, r: &Recorded) -> Result<(), Halt> {
        let Some(b) = &r.behaviour else {
            panic!(
                "the scenario was not checked: no behaviour for {}",
                r.profile
            )
        };
        let place = self.rng.below(CHANCES);
        let scaled = |q: &Quantiles, percent: u64| q.at(place).saturating_mul(percent) / 100;
        let pages = scaled(&b.anonymous, r.memory_percent).min(1 << 31) as u32;
        let cpu = scaled(&b.cpu, r.cpu_percent);
        let read = b.read.at(place);
        self.unmap(cx, AREA);
        self.grow_by(cx, AREA, pages)?;
        let (proc, area) = (self.proc, self.areas[AREA]);
        let (begun, mut from) = (used(cx.times()), 0);
        for n in 0..10 {
            if let Some(tree) = &r.reads {
                self.read_pages(cx, tree, tenth(read, n))?;
            }
            let percent = if n == 9 {
                100
            } else {
                b.tenths[n as usize].min(100)
            };
            let to = (u64::from(pages) * u64::from(percent) / 100) as u32;
            let to = to.max(from);
            let work = tenth(cpu, n);
            let due = begun + cpu * n / 10;
            for at in (from..to).step_by(PIECE as usize) {
                let end = to.min(at + PIECE);
                cx.touch(proc, area, &mut once(at..end), true, 0)?;
                let share = u128::from(work) * u128::from(end - from) / u128::from(to - from);
                catch_up(cx, due + share as u64);
            }
            catch_up(cx, due + work);
            from = to;
        }
        let written = b.written.at(place);
        if let Some(tree) = r.writes.as_ref().filter(|_| written > 0) {
            let file = Create {
                tree: Some(tree.clone()),
                on: None,
                name: None,
                size: Draw::fixed(written.saturating_mul(4096)),
                each: Default::default(),
            };
            self.create(cx, &file)?;
        }
        Ok(())
    }

    /// Reads the next files of a tree until it has so many pages.
    fn read_pages(&mut self, cx: &mut Cx, tree: &str, pages: u64) -> Result<(), Halt> {
        let next = FileRef::Of(OfTree {
            tree: tree.to_owned(),
            pick: Pick::Next,
            files: Draw::fixed(1),
        });
        let mut left = pages;
        // Empty files must not keep it here.
        for _ in 0..pages {
            let Some(&file) = self.pick(&next).first() else {
                break;
            };
            let len = cx.with(|sim| sim.kernel_ref().vfs.node(file).pages);
            let n = u64::from(len).min(left);
            self.read_called(cx, file, 0, Some(n as u32), 0)?;
            left -= n;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}

fn used(t: TaskTimes) -> Nanos {
    t.user + t.system
}

/// The program's own work until it has used so much CPU time in all.
fn catch_up(cx: &mut Cx, due: Nanos) {
    cx.pay();
    let own = due.saturating_sub(used(cx.times()));
    if own > 0 {
        cx.spend(own);
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn mean(q: Quantiles) -> u64 {
        (0..CHANCES).map(|p| q.at(p)).sum::<u64>() / CHANCES
    }

    #[test]
    fn processes_differ_as_the_recorded_ones_and_take_as_much_together() {
        // cc1 in profile make-j2.
        let q = Quantiles::new(1500, 2622, 4232, 22_214, 2816);
        assert_eq!((q.at(0), q.at(999)), (1500, 1500));
        assert_eq!((q.at(4999), q.at(5000)), (2621, 2622));
        assert_eq!((q.at(9000), q.at(9999)), (4232, 22_214));
        assert!(mean(q).abs_diff(2816) <= 3, "{}", mean(q));
        // A mean that the quantiles do not allow comes as near as they do.
        let heavy = Quantiles::new(0, 0, 0, 10, 50);
        assert_eq!((heavy.at(8999), heavy.at(9000), mean(heavy)), (0, 10, 1));
        let light = Quantiles::new(5, 5, 5, 5, 0);
        assert_eq!((light.at(0), light.at(9999)), (5, 5));
        // Each maximum was seen once at least.
        assert_eq!(Quantiles::new(1, 2, 3, 100, 0).at(9999), 100);
    }

    #[test]
    fn tenths_are_the_whole() {
        for whole in [0, 7, 10, 12_345] {
            assert_eq!((0..10).map(|n| tenth(whole, n)).sum::<u64>(), whole);
        }
    }
}
