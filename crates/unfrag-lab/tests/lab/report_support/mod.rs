//! A constructed [`Report`] for the tests of every picture: two kernels, two zones, forty samples,
//! 320 pageblocks, the same on every call.

use std::collections::BTreeMap;
use unfrag_lab::replay::answer::report::{
    Accuracy, BlockMap, Ensemble, Failure, FrameMatch, HugeFaults, HugeWait, KernelReport, Measure,
    RecordingSummary, Report, Sample, SnapshotError, Spread, ZoneSample,
};
use unfrag_lab::replay::answer::what_if::class::{Asked, Begins, Class, Pressure};
use unfrag_lab::replay::answer::what_if::found::{Change, Verdict, WhatIf};

/// Samples in the report.
pub const SAMPLES: usize = 40;
/// Pageblocks in each map.
pub const BLOCKS: usize = 320;
const SECONDS: f64 = 3.25;
const TYPES: [&str; 5] = [
    "Unmovable",
    "Movable",
    "Reclaimable",
    "HighAtomic",
    "Isolate",
];

/// A small generator, so that the values look alive.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// How the values of a run differ from the recorded ones.
#[derive(Clone, Copy)]
struct Run {
    seed: u64,
    /// Thousandths by which memory fragments more than recorded.
    worse: u64,
}

/// The report.
pub fn example_report() -> Report {
    let recorded_run = Run { seed: 1, worse: 0 };
    let runs = [
        ("6.1", true, Run { seed: 2, worse: 15 }),
        (
            "2.6.32",
            false,
            Run {
                seed: 3,
                worse: 160,
            },
        ),
    ];
    let recorded: Vec<Sample> = samples(recorded_run, false);
    let kernels = runs
        .into_iter()
        .map(|(name, recorded_era, run)| kernel(name, recorded_era, run))
        .collect();
    Report {
        recording: RecordingSummary {
            file: "pressure.unfrag".into(),
            kernel_release: "6.1.0-35-amd64".into(),
            cpus: 2,
            events: 4_817_392,
            lost_events: 1_204,
            share_of_allocations: None,
            seconds: SECONDS * SAMPLES as f64,
            managed_bytes: 638 << 20,
            snapshots: SAMPLES as u64,
            sizes: unfrag_lab::geometry::Sizes::default(),
        },
        mode: "predict".into(),
        start: "counts".into(),
        asked_settings: vec![],
        start_lists: None,
        recorded,
        kernels,
        own: None,
        observe: None,
    }
}

/// The example with its first kernel's numbers from several replays.
#[allow(dead_code, reason = "not every test that draws reports needs one")]
pub fn example_ensemble() -> Report {
    let mut report = example_report();
    let kernel = &mut report.kernels[0];
    kernel.ensemble = Some(Ensemble {
        members: 11,
        pace: [0.5, 1.5],
        free_pages_skill: Some([0.4, 0.5, 0.6]),
    });
    for zone in kernel.samples.iter_mut().flat_map(|s| &mut s.zones) {
        let unusable = |(o, v): (&String, &f64)| (o.clone(), [v * 0.9, *v]);
        zone.spread = Some(Spread {
            free_pages: [zone.free_pages * 9 / 10, zone.free_pages + 1_000],
            free_huge_blocks: [0, zone.free_huge_blocks],
            unusable_index: zone.unusable_index.iter().map(unusable).collect(),
        });
    }
    report
}

/// The example with its second kernel out of memory, as a replay leaves it.
#[allow(dead_code, reason = "not every test that draws reports needs one")]
pub fn example_breakdown() -> Report {
    let mut report = example_report();
    let kernel = &mut report.kernels[1];
    kernel.broke_down = Some(
        "the model ran out of memory: 44,122 requests failed. Ask for a milder setting".into(),
    );
    kernel.what_if = None;
    kernel.samples.clear();
    kernel.totals.clear();
    kernel.block_map = None;
    report
}

fn kernel(name: &str, recorded_era: bool, run: Run) -> KernelReport {
    let mut settings: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    settings.insert("vm.min_free_kbytes".into(), 3_271.into());
    settings.insert("vm.watermark_boost_factor".into(), 15_000.into());
    settings.insert("pageblock_order".into(), 9.into());
    let totals = [
        ("allocations", 2_309_114),
        ("frees", 2_271_870),
        ("fallbacks", 184 + run.worse * 31),
        ("claimed_blocks", 61 + run.worse * 2),
        ("frees_without_allocation", 912),
    ];
    let failures = if recorded_era {
        Vec::new()
    } else {
        vec![
            Failure {
                order: 9,
                gfp: "GFP_TRANSHUGE_LIGHT".into(),
                count: 1_311,
            },
            Failure {
                order: 3,
                gfp: "GFP_KERNEL|__GFP_NORETRY|__GFP_NOWARN|__GFP_COMP".into(),
                count: 27,
            },
        ]
    };
    let mut notes = vec!["What kswapd and direct reclaim freed is applied as recorded.".into()];
    if !recorded_era {
        notes.push("Memory in use before the trace was placed anew from boot.".into());
    }
    KernelReport {
        kernel: name.into(),
        recorded_era,
        broke_down: None,
        what_if: Some(what_if(recorded_era)),
        guessed_settings: vec![],
        settings,
        accuracy: recorded_era.then(accuracy),
        accuracy_from_counts: None,
        ensemble: None,
        samples: samples(run, true),
        totals: totals.map(|(k, v)| (k.to_string(), Some(v))).into(),
        failures,
        block_map: Some(block_map(run)),
        notes,
    }
}

/// What can be said of some numbers, and what cannot.
fn what_if(is_own: bool) -> WhatIf {
    let change =
        |name: &'static str, recorded: f64, [low, predicted, high]: [f64; 3], verdict| Change {
            name,
            recorded: Some(recorded),
            own: Some(recorded),
            asked: predicted,
            predicted,
            bar: Some([low, high]),
            instead_of: Some(recorded),
            verdict,
            reason: None,
        };
    let unknown = Change {
        reason: Some("the bar of the difference is wider than the difference".into()),
        ..change("free_huge_blocks_end", 41.0, [2.0, 8.0, 60.0], None)
    };
    let asked = vec![
        change(
            "thp_fault_alloc",
            480.0,
            [470.0, 482.0, 490.0],
            Some(Verdict::Same),
        ),
        change("allocstall", 178.0, [20.0, 35.0, 60.0], Some(Verdict::Less)),
        change("compact_stall", 0.0, [0.0, 0.0, 4.0], Some(Verdict::Same)),
        change(
            "pgmigrate_success",
            1_204.0,
            [9_000.0, 11_402.0, 15_000.0],
            Some(Verdict::More),
        ),
        unknown,
        change(
            "unusable_huge_end",
            0.609,
            [0.8, 0.925, 1.0],
            Some(Verdict::More),
        ),
        Change {
            bar: None,
            reason: Some("no prediction of this number was ever held against a real kernel".into()),
            ..change("unmovable_blocks_end", 61.0, [0.0, 74.0, 0.0], None)
        },
    ];
    let own = asked.iter().map(|c| Change {
        verdict: Some(Verdict::Same),
        reason: None,
        asked: c.recorded.unwrap_or(0.0),
        ..c.clone()
    });
    WhatIf {
        class: Class {
            pressure: Pressure::Reclaim,
            asked: if is_own { Asked::Own } else { Asked::Kernel },
            start: Begins::Counts,
        },
        comparisons: 12,
        loads: vec!["build".into(), "service".into()],
        changes: if is_own { own.collect() } else { asked },
    }
}

fn samples(run: Run, replayed: bool) -> Vec<Sample> {
    let mut numbers = Numbers(run.seed);
    (0..SAMPLES)
        .map(|i| Sample {
            name: format!("s{i:04}"),
            seconds: SECONDS * (i + 1) as f64,
            zones: vec![
                zone(&mut numbers, i, "DMA", 3_840, run.worse, replayed),
                zone(&mut numbers, i, "DMA32", 159_488, run.worse, replayed),
            ],
        })
        .collect()
}

/// A zone that fills, is reclaimed at two thirds, and fragments all the while.
fn zone(
    numbers: &mut Numbers,
    i: usize,
    name: &str,
    managed: u64,
    worse: u64,
    replayed: bool,
) -> ZoneSample {
    let step = i as u64;
    let filled = if step < 26 {
        step * 33
    } else {
        26 * 12 + step * 8
    };
    let free = managed * (960 - filled.min(930)) / 1_000 + numbers.below(managed / 150);
    let spread = (60 + step * 14 + worse * step / 20 + numbers.below(12)).min(980);
    let mut left = free;
    let mut free_blocks = vec![0; 11];
    for (order, blocks) in free_blocks.iter_mut().enumerate().take(9) {
        let pages = free * spread / 1_000 * (9 - order as u64) / 45;
        *blocks = pages >> order;
        left -= *blocks << order;
    }
    free_blocks[10] = (left / 2) >> 10;
    left -= free_blocks[10] << 10;
    free_blocks[9] = left >> 9;
    left -= free_blocks[9] << 9;
    free_blocks[0] += left;
    let blocks = managed.div_ceil(512);
    let unmovable = blocks * (120 + step * 2 + worse / 4) / 1_000;
    let reclaimable = blocks * (60 + step) / 1_000;
    let unusable = [3usize, 9].map(|order| {
        let useful: u64 = (order..11).map(|o| free_blocks[o] << o).sum();
        (
            order.to_string(),
            (free - useful) as f64 / free.max(1) as f64,
        )
    });
    ZoneSample {
        node: 0,
        zone: name.into(),
        managed_pages: managed,
        free_pages: free,
        pcp_pages: replayed.then(|| 300 + numbers.below(90)),
        free_huge_blocks: free_blocks[9] + 2 * free_blocks[10],
        free_blocks,
        unusable_index: unusable.into(),
        pageblocks: [
            ("Unmovable".to_string(), unmovable),
            ("Movable".to_string(), blocks - unmovable - reclaimable),
            ("Reclaimable".to_string(), reclaimable),
            ("HighAtomic".to_string(), 0),
        ]
        .into(),
        mixed_pageblocks: replayed.then(|| blocks * (step * 4 + worse) / 1_000),
        spread: None,
    }
}

fn accuracy() -> Accuracy {
    let mut numbers = Numbers(7);
    let mut pair = |model: u64, forecaster: u64, i: u64| {
        let wave = 40 + i * 3;
        [
            (model + numbers.below(model)) as f64 * 1e-6 * wave as f64,
            (forecaster + numbers.below(forecaster)) as f64 * 1e-6 * wave as f64,
        ]
    };
    let by_snapshot = (0..SAMPLES as u64)
        .map(|i| SnapshotError {
            name: format!("s{i:04}"),
            zone: "DMA32".into(),
            seconds: SECONDS * (i + 1) as f64,
            order_distribution: pair(90, 1_900, i),
            free_pages: pair(12, 12, i),
            unusable_3: pair(20, 700, i),
            unusable_9: pair(40, 1_200, i),
            pageblock_type: Some(pair(30, 60, i)),
        })
        .collect();
    let measure = |median, p90, max, skill| Measure {
        median,
        p90,
        max,
        skill,
    };
    Accuracy {
        order_distribution_error: measure(0.0131, 0.0204, 0.0263, Some(0.931)),
        free_pages_error: measure(0.00171, 0.0031, 0.0042, None),
        unusable_index_error: [
            (
                "3".to_string(),
                measure(0.0031, 0.0047, 0.0061, Some(0.964)),
            ),
            (
                "9".to_string(),
                measure(0.0058, 0.0091, 0.0129, Some(0.957)),
            ),
        ]
        .into(),
        pageblock_type_error: Some(measure(0.0044, 0.0071, 0.0094, Some(0.482))),
        frame_match: Some(FrameMatch {
            allocations: 333_903,
            matched: 333_610,
        }),
        huge_faults: Some(HugeFaults {
            faults: 560,
            predicted: 503,
            recorded: 480,
            both: 470,
            precision: Some(470.0 / 503.0),
            recall: Some(470.0 / 480.0),
            wait: Some(HugeWait {
                at_once_percent: 86.5,
                p50_us: 1.7,
                p90_us: 144.5,
                p99_us: 204.0,
                p90_over_p50: 85.0,
            }),
        }),
        snapshots: SAMPLES as u64,
        lost_events: 1_204,
        by_snapshot,
    }
}

/// Blocks that fill from the bottom, kernel memory spread among them, a hole at 16 blocks.
fn block_map(run: Run) -> BlockMap {
    let mut types: Vec<Vec<u8>> = Vec::new();
    let mut fullness: Vec<Vec<u8>> = Vec::new();
    let mut numbers = Numbers(run.seed + 100);
    let mut kind: Vec<u8> = (0..BLOCKS)
        .map(|b| match numbers.below(100) {
            0..4 => b'0',
            4..7 => b'2',
            _ if b < 24 => b'0',
            _ if b == 300 => b'3',
            _ => b'1',
        })
        .collect();
    let mut full: Vec<u64> = (0..BLOCKS as u64)
        .map(|b| if b < 30 { 9 } else { 0 })
        .collect();
    for i in 0..SAMPLES as u64 {
        for b in 0..BLOCKS {
            let front = i * 11 + 20;
            if (b as u64) < front && numbers.below(3) > 0 {
                full[b] = (full[b] + numbers.below(4)).min(9);
            } else if i > 26 && numbers.below(4) == 0 {
                full[b] = full[b].saturating_sub(numbers.below(3));
            }
            if numbers.below(9_000) < 4 + run.worse / 4 {
                kind[b] = if numbers.below(3) == 0 { b'2' } else { b'0' };
            }
        }
        let hole = |b: usize| (160..176).contains(&b);
        let row = |of: &dyn Fn(usize) -> u8| {
            (0..BLOCKS)
                .map(|b| if hole(b) { b'.' } else { of(b) })
                .collect()
        };
        types.push(row(&|b| kind[b]));
        fullness.push(row(&|b| b'0' + full[b] as u8));
    }
    let text = |rows: Vec<Vec<u8>>| -> Vec<String> {
        rows.into_iter()
            .map(|r| r.into_iter().map(char::from).collect())
            .collect()
    };
    BlockMap {
        first_pfn: 0,
        block_pages: 512,
        type_names: TYPES.map(String::from).to_vec(),
        seconds: (0..SAMPLES).map(|i| SECONDS * (i + 1) as f64).collect(),
        types: text(types),
        fullness: text(fullness),
    }
}
