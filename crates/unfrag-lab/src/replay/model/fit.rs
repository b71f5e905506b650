//! A start by counts, fitted so that the model comes closest to the anchor.

use super::host::ReplayHost;
use super::sim::Sim;
use crate::error::Result;
use crate::replay::causes::Causes;
use crate::replay::start::counts::counts;
use crate::replay::start::evidence::Evidence;
use crate::replay::start::{Anchor, Start, ZoneFacts, highest_frame};
use unfrag::{CpuId, Manager, MigrateType, Order, Rules, Sysctl, ZoneId};

/// Rounds that fit the per-CPU lists of the start to those of the anchor.
const FIT_ROUNDS: usize = 4;

/// The start from which a replay under the recorded kernel's `rules` comes closest to the anchor.
/// The anchor shows how many pages each CPU held back then; at the start it held what leads there.
///
/// # Errors
/// If the zones are beyond what can be replayed.
pub fn fitted(anchor: &Anchor, causes: &Causes, rules: Rules, sysctl: Sysctl) -> Result<Start> {
    let frames = highest_frame(&anchor.zones)?;
    let on = |z: &ZoneFacts, c: usize| z.sets.get(c).map_or(0, |s| s.0);
    let row = |z: &ZoneFacts| (0..anchor.cpus).map(|c| on(z, c)).collect();
    let recorded: Vec<Vec<u64>> = anchor.zones.iter().map(row).collect();
    let before = anchor.upto(causes)?;
    let evidence = Evidence::gather(causes, anchor.cpus)?;
    let mut best: Option<(u64, Start)> = None;
    for kernel_first in [false, true] {
        let mut held = recorded.clone();
        let mut fit = u64::MAX;
        for _ in 0..FIT_ROUNDS {
            let start = counts(anchor, causes, &evidence, &held, kernel_first)?;
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
            if best.as_ref().is_none_or(|b| all < b.0) {
                best = Some((all, start));
            }
            // Where nothing leads to the anchor, nothing can be fitted to it.
            if far == 0 || far >= fit || before == 0 {
                break;
            }
            fit = far;
        }
    }
    match best {
        Some((_, start)) => Ok(start),
        None => unreachable!("there is a round"),
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
