//! A start by counts, fitted so that the model comes closest to the anchor.

use super::host::ReplayHost;
use super::sim::Sim;
use crate::error::Result;
use crate::parallel::both;
use crate::replay::causes::Causes;
use crate::replay::start::counts::counts;
use crate::replay::start::evidence::Evidence;
use crate::replay::start::{Anchor, PcpFacts, Start, highest_frame};
use unfrag_eras::{CpuId, Manager, MigrateType, Order, Rules, Sysctl, ZoneId};

/// Rounds that fit the per-CPU lists of the start to those of the anchor.
const FIT_ROUNDS: usize = 4;

/// The start from which a replay under the recorded kernel's `rules` comes closest to the anchor.
/// The anchor shows how many pages each CPU held back then; at the start it held what leads there.
///
/// # Errors
/// If the zones are beyond what can be replayed, or operations cannot be read.
pub fn fitted(anchor: &Anchor, causes: &Causes, rules: Rules, sysctl: Sysctl) -> Result<Start> {
    let fit = Fit {
        anchor,
        causes,
        evidence: &Evidence::gather(causes, anchor.cpus.len())?,
        rules,
        sysctl,
    };
    // What waited first on the per-CPU lists is not known: movable pages, or those of kernel requests.
    let (movable, kernel) = both(|| fit.best(false), || fit.best(true));
    let (movable, kernel) = (movable?, kernel?);
    Ok(match kernel.far < movable.far {
        true => kernel.start,
        false => movable.start,
    })
}

/// What a start is fitted to.
#[derive(Clone, Copy)]
struct Fit<'a> {
    anchor: &'a Anchor,
    causes: &'a Causes,
    evidence: &'a Evidence,
    rules: Rules,
    sysctl: Sysctl,
}

/// A start, and how far from the anchor it leads.
struct Fitted {
    far: u64,
    start: Start,
}

impl Fit<'_> {
    /// The best start of all rounds.
    fn best(self, kernel_first: bool) -> Result<Fitted> {
        let Fit {
            anchor,
            causes,
            rules,
            sysctl,
            ..
        } = self;
        let frames = highest_frame(&anchor.zones, anchor.geometry)?;
        let on = |sets: &[PcpFacts], c: usize| sets.get(c).map_or(0, |s| s.count);
        let row = |sets: &Vec<PcpFacts>| (0..anchor.cpus.len()).map(|c| on(sets, c)).collect();
        let recorded: Vec<Vec<u64>> = anchor.sets.iter().map(row).collect();
        let before = anchor.upto(causes)?;
        let mut held = recorded.clone();
        let mut best: Option<Fitted> = None;
        let mut fit = u64::MAX;
        let mut rounds = 0;
        loop {
            rounds += 1;
            let start = counts(anchor, causes, self.evidence, &held, kernel_first)?;
            let mut memory = vec![0; start.words(rules, sysctl)?];
            let mut sim = Sim::new(start.manager(rules, sysctl, true, &mut memory)?, frames);
            causes.ops.each(0..before, |_, op| sim.apply(op, causes))?;
            let mut far = 0;
            for (z, row) in held.iter_mut().enumerate() {
                for (c, n) in row.iter_mut().enumerate() {
                    let (zone, cpu) = (ZoneId(z as u8), CpuId(c as u32));
                    let now = sim.manager.inspect().set(zone, cpu).count as u64;
                    far += now.abs_diff(recorded[z][c]);
                    *n = (*n + recorded[z][c]).saturating_sub(now);
                }
            }
            let all = far + anchor.distance(&sim.manager);
            let found = match best {
                Some(best) if best.far <= all => best,
                _ => Fitted { far: all, start },
            };
            // Where nothing leads to the anchor, nothing can be fitted to it.
            if far == 0 || far >= fit || before == 0 || rounds == FIT_ROUNDS {
                return Ok(found);
            }
            best = Some(found);
            fit = far;
        }
    }
}

impl Anchor {
    /// How far the buddy lists of a model are from those that the anchor shows, in pages, by order, and by
    /// type where the anchor has types.
    pub fn distance(&self, model: &Manager<'_, ReplayHost>) -> u64 {
        const TYPES: [MigrateType; 3] = [
            MigrateType::Unmovable,
            MigrateType::Movable,
            MigrateType::Reclaimable,
        ];
        let mut far = 0;
        for (zone, shown) in self.free.iter().enumerate() {
            for (order, &all) in shown.iter().enumerate() {
                let lists = model.inspect();
                let on = |mt| lists.free_list_len(ZoneId(zone as u8), Order(order as u8), mt);
                let apart: u64 = match &self.listed[zone] {
                    Some(rows) => {
                        let rows = TYPES.iter().zip(rows);
                        rows.map(|(&t, row)| on(t).abs_diff(row[order])).sum()
                    }
                    None => TYPES.map(on).iter().sum::<u64>().abs_diff(all),
                };
                far += apart << order;
            }
        }
        far
    }
}
