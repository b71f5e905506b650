//! Steps on memory.

use super::actor::{Actor, Halt};
use super::amount::Amount;
use super::idle_rounds::IdleRounds;
use super::limits::MOST_AREA;
use super::scattered::Scattered;
use super::spec::{Grow, Pattern, Reuse, Touch};
use crate::Cx;
use crate::error::Fail;
use crate::input::Percent;
use crate::kmem::caches::CacheKind;
use std::iter::once;

/// Parts of a touch; after each, pages touched before are used again.
const PARTS: u32 = 20;
/// Share of hot pages.
const HOT: Percent = Percent::new(25).unwrap();

impl Reuse {
    /// Picks the pages that are used again in a round, among the first `used` pages from `from` on. `into` needs
    /// room for `used + 2` pages.
    fn pick(self, from: u32, used: u32, round: u32, into: &mut [u32]) -> &[u32] {
        let (all_hot, [others, hot]) = (
            Scattered::new(HOT),
            [self.others, self.hot].map(Scattered::new),
        );
        let mut n = 0;
        for pair in 0..used.div_ceil(2) {
            let share = if all_hot.has(pair) { hot } else { others };
            for page in [2 * pair, 2 * pair + 1] {
                // Written unconditionally: a branch would be mispredicted.
                into[n] = from + page;
                n += usize::from(page < used && share.has(page.wrapping_add(round)));
            }
        }
        &into[..n]
    }
}

impl Actor {
    /// The area of a name, created if need be.
    fn area(&mut self, cx: &mut Cx, name: &str) -> Result<u16, Fail> {
        if let Some(&area) = self.areas.get(name) {
            return Ok(area);
        }
        let vma = cx.kmem_kind(self.who, CacheKind::VmAreaStruct)?;
        let proc = self.proc;
        let area = cx.with(|sim| sim.map_anon(proc, 0, true, Some(vma)));
        self.areas.insert(name.to_owned(), area);
        Ok(area)
    }

    pub(super) fn grow(&mut self, cx: &mut Cx, g: &Grow) -> Result<(), Halt> {
        let pages = g.size.pages(&mut self.rng);
        self.grow_by(cx, &g.area, pages)?;
        if let (true, Some(&area)) = (g.advise_huge, self.areas.get(&g.area)) {
            let proc = self.proc;
            cx.with(|sim| sim.advise_huge(proc, area));
        }
        Ok(())
    }

    /// Grows an area, creating it if need be.
    pub(super) fn grow_by(&mut self, cx: &mut Cx, name: &str, pages: u32) -> Result<(), Halt> {
        let area = self.area(cx, name)?;
        let proc = self.proc;
        if u64::from(cx.with(|sim| sim.area_pages(proc, area))) + u64::from(pages) > MOST_AREA {
            return Err(Halt::Failed(Fail::NoMemory));
        }
        cx.with(|sim| {
            sim.grow_area(proc, area, pages);
            let kernel = sim.kernel();
            kernel.owe(kernel.config.costs.syscall);
        });
        cx.pay_if_much();
        Ok(())
    }

    /// Unmaps an area, if it exists.
    pub(super) fn unmap(&mut self, cx: &mut Cx, name: &str) {
        if let Some(area) = self.areas.remove(name) {
            self.parts.remove(&area);
            cx.unmap_area(self.proc, area);
            cx.pay();
        }
    }

    /// Start of the next part of an area that is touched part by part.
    fn next_part(&mut self, area: u16, pages: u32, len: u32) -> u32 {
        let begin = self.parts.entry(area).or_default();
        let from = if *begin + pages <= len { *begin } else { 0 };
        *begin = from + pages;
        from
    }

    pub(super) fn touch(&mut self, cx: &mut Cx, t: &Touch) -> Result<(), Halt> {
        let Some(&area) = self.areas.get(&t.area) else {
            return Ok(());
        };
        let proc = self.proc;
        let len = cx.with(|sim| sim.area_pages(proc, area));
        let most = t.size.as_ref().map_or(len.into(), Amount::most);
        if most.min(len.into()) == 0 {
            return Ok(());
        }
        let mut idle_rounds = IdleRounds::default();
        for _ in 0..t.times.draw(&mut self.rng) {
            let before = cx.now();
            let n = match &t.size {
                Some(size) => size.pages(&mut self.rng).min(len),
                None => len,
            };
            if n == 0 {
                continue;
            }
            let from = if t.next {
                self.next_part(area, n, len)
            } else {
                0
            };
            let rng = &mut self.rng;
            let each = t.each.0;
            match t.pattern {
                Pattern::Sequential => {
                    cx.touch(proc, area, &mut once(from..from + n), t.write, each)
                }
                Pattern::Random => {
                    let mut any = (0..n)
                        .map(|_| from + rng.below(n.into()) as u32)
                        .map(|i| i..i + 1);
                    cx.touch(proc, area, &mut any, t.write, each)
                }
                Pattern::Stride(by) => {
                    let mut all = (0..by)
                        .flat_map(|s| (s..n).step_by(by as usize))
                        .map(|i| from + i..from + i + 1);
                    cx.touch(proc, area, &mut all, t.write, each)
                }
                Pattern::Reuse(reuse) => {
                    let part = n.div_ceil(PARTS);
                    let mut again = vec![];
                    let nr_aged =
                        |cx: &mut Cx| cx.with(|sim| sim.manager_ref().inspect().nr_aged());
                    // The first `aging` pages may have lost their accessed flags; touching others again changes nothing.
                    let (mut aging, mut before) = (0, nr_aged(cx));
                    (0..n).step_by(part as usize).try_for_each(|at| {
                        let used = (at + part).min(n);
                        cx.touch(proc, area, &mut once(from + at..from + used), t.write, each)?;
                        let now = nr_aged(cx);
                        if now != before {
                            (aging, before) = (used, now);
                            again.resize(used as usize + 2, 0);
                        }
                        let again = reuse.pick(from, aging, rng.bits() as u32, &mut again);
                        cx.touch_again(proc, area, again, t.write)
                    })
                }
            }?;
            if cx.killed() {
                return Err(Halt::Failed(Fail::Killed));
            }
            idle_rounds.round(cx, before);
        }
        Ok(())
    }
}

#[cfg(test)]
mod unit {
    use super::Reuse;
    use crate::engine::Rng;
    use crate::input::Percent;

    #[test]
    fn hot_pages_are_picked_more_often() {
        let reuse = Reuse {
            hot: Percent::new(75).unwrap(),
            others: Percent::new(10).unwrap(),
        };
        let mut rng = Rng::named(7, "again");
        let (mut rounds, mut room) = (vec![0; 4000], vec![0; 4002]);
        for _ in 0..100 {
            for &page in reuse.pick(10, 4000, rng.bits() as u32, &mut room) {
                rounds[page as usize - 10] += 1;
            }
        }
        let (hot, others): (Vec<u32>, Vec<u32>) = rounds.iter().partition(|n| **n > 40);
        assert!((900..1100).contains(&hot.len()), "{}", hot.len());
        let mean = |n: &[u32]| n.iter().sum::<u32>() as usize / n.len();
        assert!((72..=78).contains(&mean(&hot)) && (8..=12).contains(&mean(&others)));
    }
}
