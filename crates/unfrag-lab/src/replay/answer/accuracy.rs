//! How far a replay is from what the recorded kernel did.
//!
//! At each snapshot after the anchor, for each zone of at least 5 % of managed memory, the model is
//! compared with the kernel, and so is a forecaster who holds the anchor's distribution and only
//! counts allocations and frees. Skill says how much of the forecaster's error the model removes: a
//! model that knows nothing gets a small error on a quiet recording, but no skill.

use super::report::{Accuracy, HugeFaults, HugeWait, Measure, Sample, SnapshotError, ZoneSample};
use crate::replay::model::{FaultWork, HugeFaultCounts};
use crate::report::number::rank;
use std::collections::BTreeMap;
use unfrag_eras::Order;
use unfrag_machine::Calibration;
use unfrag_machine::mm::MemCosts;

/// Zones below this share of managed memory are reported but not pooled, in percent.
const POOLED_PERCENT: u64 = 5;

/// What the forecaster knows: the anchor, and pages taken from each zone since, by snapshot.
pub struct Forecast<'a> {
    /// The anchor.
    pub anchor: &'a Sample,
    /// The order of the blocks that stand for large ones.
    pub large_order: u8,
    /// For each compared snapshot, for each zone of the anchor: allocated less freed pages.
    pub taken: &'a [Vec<i64>],
}

/// Half the sum of absolute differences of shares.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let share = |v: &[f64], x: f64| {
        let sum: f64 = v.iter().sum();
        if sum > 0.0 { x / sum } else { 0.0 }
    };
    a.iter()
        .zip(b)
        .map(|(x, y)| (share(a, *x) - share(b, *y)).abs())
        .sum::<f64>()
        / 2.0
}

fn by_order(z: &ZoneSample) -> Vec<f64> {
    z.free_blocks
        .iter()
        .enumerate()
        .map(|(o, n)| (n << o) as f64)
        .collect()
}

fn by_type(z: &ZoneSample, names: &[&String]) -> Vec<f64> {
    names
        .iter()
        .map(|n| z.pageblocks.get(*n).copied().unwrap_or(0) as f64)
        .collect()
}

fn relative(predicted: f64, recorded: f64) -> f64 {
    match recorded {
        _ if recorded > 0.0 => (predicted - recorded).abs() / recorded,
        _ if predicted == recorded => 0.0,
        _ => 1.0,
    }
}

/// Compares samples of the same snapshots. `model` and `recorded` have equal length. `None` if there is nothing to
/// compare.
pub fn measure(
    model: &[Sample],
    recorded: &[Sample],
    forecast: &Forecast,
    lost: u64,
) -> Option<Accuracy> {
    let mut all = vec![];
    let large = forecast.large_order.to_string();
    let managed: u64 = forecast.anchor.zones.iter().map(|z| z.managed_pages).sum();
    for ((m, r), taken) in model.iter().zip(recorded).zip(forecast.taken) {
        for (i, a) in forecast.anchor.zones.iter().enumerate() {
            if a.managed_pages * 100 < managed * POOLED_PERCENT {
                continue;
            }
            let same = |z: &&ZoneSample| z.node == a.node && z.zone == a.zone;
            let (Some(m), Some(z)) = (m.zones.iter().find(same), r.zones.iter().find(same)) else {
                continue;
            };
            let names: Vec<&String> = z.pageblocks.keys().collect();
            let held = a.free_pages as f64 - taken.get(i).copied().unwrap_or(0) as f64;
            let free = z.free_pages as f64;
            let unusable = |o: &str| {
                // Both sides are of one host, so that they have the same orders.
                let of = |z: &ZoneSample| z.unusable_index.get(o).copied().unwrap_or(0.0);
                [(of(m) - of(z)).abs(), (of(a) - of(z)).abs()]
            };
            all.push(SnapshotError {
                name: r.name.clone(),
                zone: z.zone.clone(),
                seconds: r.seconds,
                order_distribution: [
                    distance(&by_order(m), &by_order(z)),
                    distance(&by_order(a), &by_order(z)),
                ],
                free_pages: [relative(m.free_pages as f64, free), relative(held, free)],
                unusable_3: unusable("3"),
                unusable_9: unusable(&large),
                pageblock_type: (!names.is_empty()).then(|| {
                    [
                        distance(&by_type(m, &names), &by_type(z, &names)),
                        distance(&by_type(a, &names), &by_type(z, &names)),
                    ]
                }),
            });
        }
    }
    if all.is_empty() {
        return None;
    }
    let of = |f: fn(&SnapshotError) -> [f64; 2]| Measure::of(all.iter().map(f).collect());
    let types: Vec<[f64; 2]> = all.iter().filter_map(|e| e.pageblock_type).collect();
    Some(Accuracy {
        order_distribution_error: of(|e| e.order_distribution),
        free_pages_error: of(|e| e.free_pages),
        unusable_index_error: BTreeMap::from([
            ("3".to_string(), of(|e| e.unusable_3)),
            (large.clone(), of(|e| e.unusable_9)),
        ]),
        pageblock_type_error: (!types.is_empty()).then(|| Measure::of(types)),
        frame_match: None,
        huge_faults: None,
        snapshots: model.len() as u64,
        lost_events: lost,
        by_snapshot: all,
    })
}

impl HugeFaults {
    /// Of a replay in which faults asked for huge pages.
    pub(super) fn of(
        counts: &HugeFaultCounts,
        work: &[FaultWork],
        huge: Order,
    ) -> Option<HugeFaults> {
        let share = |of: u64| (of > 0).then(|| counts.alloc_both as f64 / of as f64);
        (counts.faults() > 0).then(|| HugeFaults {
            faults: counts.faults(),
            predicted: counts.alloc,
            recorded: counts.alloc_recorded,
            both: counts.alloc_both,
            precision: share(counts.alloc),
            recall: share(counts.alloc_recorded),
            wait: HugeWait::of(work, huge, &Calibration::modern().mem),
        })
    }
}

/// Pages that are moved at a time.
const BATCH: u64 = 32;

impl HugeWait {
    /// Of faults with this compaction each.
    fn of(work: &[FaultWork], huge: Order, c: &MemCosts) -> Option<HugeWait> {
        let ns = |w: &FaultWork| {
            let page = c.move_page + c.copy_page + c.unmap_page + c.remap_page;
            let flushes = w.moved.div_ceil(BATCH) * c.flush_tlb;
            let own = w.looks * c.compact_frame + w.moved * page + flushes;
            own + c.alloc + c.prep_page * u64::from(huge.frames())
        };
        let mut all: Vec<u64> = work.iter().map(ns).collect();
        all.sort_unstable();
        let us = |percent: usize| {
            let at = all.get(rank(all.len(), percent));
            at.map(|&ns| ns as f64 / 1e3)
        };
        let at_once = work.iter().filter(|w| w.looks + w.moved == 0).count();
        let (p50, p90, p99) = (us(50)?, us(90)?, us(99)?);
        Some(HugeWait {
            at_once_percent: at_once as f64 * 100.0 / work.len() as f64,
            p50_us: p50,
            p90_us: p90,
            p99_us: p99,
            p90_over_p50: p90 / p50,
        })
    }
}

impl Measure {
    /// Of pairs of the model's error and the forecaster's.
    fn of(pairs: Vec<[f64; 2]>) -> Measure {
        let mut own: Vec<f64> = pairs.iter().map(|p| p[0]).collect();
        own.sort_by(f64::total_cmp);
        let at = |percent: usize| match own.len() {
            0 => 0.0,
            n => own[rank(n, percent)],
        };
        let (ours, theirs) = pairs
            .iter()
            .fold((0.0, 0.0), |(a, b), p| (a + p[0], b + p[1]));
        Measure {
            median: at(50),
            p90: at(90),
            max: at(100),
            skill: (theirs > 0.0).then(|| 1.0 - ours / theirs),
        }
    }
}
