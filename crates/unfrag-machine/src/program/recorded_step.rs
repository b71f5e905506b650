//! The step that does what a recorded process did.

use super::actor::{Actor, Halt};
use super::amount::Amount;
use super::recorded::{AREA, CHANCES, Quantiles};
use super::spec::{Create, FileRef, OfTree, Pick, Recorded};
use crate::Cx;
use crate::engine::{Nanos, TaskTimes};
use std::iter::once;

/// Pages that a process touches between two pieces of its own work.
const PIECE: u32 = 16;

/// Tenth `n` of `whole`.
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
                size: Amount::fixed(written.saturating_mul(4096)),
                each: Default::default(),
            };
            self.create(cx, &file)?;
        }
        Ok(())
    }

    /// Reads the next files of a tree until it has read `pages` pages.
    fn read_pages(&mut self, cx: &mut Cx, tree: &str, pages: u64) -> Result<(), Halt> {
        let next = FileRef::Of(OfTree {
            tree: tree.to_owned(),
            pick: Pick::Next,
            files: Amount::fixed(1),
        });
        let mut left = pages;
        // Bounded, since files may be empty.
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

/// Spends CPU time for the program's own work until it has used `due` in all.
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

    #[test]
    fn tenths_are_the_whole() {
        for whole in [0, 7, 10, 12_345] {
            assert_eq!((0..10).map(|n| tenth(whole, n)).sum::<u64>(), whole);
        }
    }
}
