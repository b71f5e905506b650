//! Samples as curves over virtual time: states at each moment, and rates between two moments.
//!
//! Invariant: a curve has a value for each moment that is drawn. A rate holds for the time that ends at its
//! moment (the first one repeats the second), so fewer moments change the detail and never the sum.

use super::phrases::seconds;
use crate::report::moments;
use crate::report::number::{PAGE_BYTES, mib};
use serde::Serialize;
use unfrag_machine::scenario::series::{CpuUse, MemoryByUse, Sample, ZoneSize};

/// Everything that is drawn.
#[derive(Serialize)]
pub(super) struct Charts {
    /// Moments, in seconds of virtual time.
    pub seconds: Vec<f64>,
    /// The charts, in their order on the page.
    pub charts: Vec<Chart>,
    /// A sentence if moments were left out.
    #[serde(skip)]
    pub left_out: Option<String>,
}

/// One chart.
#[derive(Serialize)]
pub(super) struct Chart {
    /// Name of the chart's place on the page.
    pub id: String,
    /// What it shows.
    #[serde(skip)]
    pub title: String,
    /// Of the values.
    pub unit: &'static str,
    /// What is shown under the title beside the unit.
    #[serde(skip)]
    pub hint: String,
    /// Areas over each other instead of lines.
    pub stacked: bool,
    /// Whether a value holds since the moment before, instead of at its moment.
    pub rate: bool,
    /// Top of the axis of values, where it does not follow from the values.
    pub most: Option<f64>,
    /// Colours by name (`uses`, `orders`, `cpu`, `lines`).
    pub colors: &'static str,
    /// The curves; areas from the bottom up.
    pub series: Vec<Series>,
}

/// One curve.
#[derive(Serialize)]
pub(super) struct Series {
    /// Its name.
    pub name: String,
    /// One value a moment.
    pub values: Vec<f64>,
}

/// A name and what it stands for in a `T`.
type Named<T, V> = (&'static str, fn(&T) -> V);

/// Uses of memory from the bottom of the picture up: what cannot be taken away first, what is free last.
const USES: [Named<MemoryByUse, u64>; 9] = [
    ("other", |m| m.other),
    ("pinned", |m| m.pinned),
    ("network", |m| m.network),
    ("stacks", |m| m.stacks),
    ("page tables", |m| m.page_tables),
    ("slab", |m| m.slab),
    ("anon", |m| m.anon),
    ("file", |m| m.file),
    ("free", |m| m.free),
];

/// Uses of CPU time from the bottom of the picture up.
const CPU: [Named<CpuUse, u64>; 6] = [
    ("user", |c| c.user_ns),
    ("system", |c| c.system_ns),
    ("interrupts", |c| c.irq_ns),
    ("switching", |c| c.switching_ns),
    ("iowait", |c| c.iowait_ns),
    ("idle", |c| c.idle_ns),
];

/// The charts of a run.
pub(super) fn charts(samples: &[Sample], zones: &[ZoneSize]) -> Charts {
    let (samples, left_out) = moments::moments(samples);
    let mut charts = vec![memory(&samples)];
    charts.extend(
        zones
            .iter()
            .enumerate()
            .map(|(z, zone)| by_order(&samples, z, zone)),
    );
    charts.extend([
        waits(&samples),
        stalls(&samples),
        dirty(&samples),
        io(&samples),
        swap(&samples),
        cpu(&samples),
        kswapd(&samples),
    ]);
    Charts {
        seconds: samples.iter().map(|s| seconds(s.at_ns)).collect(),
        charts,
        left_out,
    }
}

fn memory(samples: &[Sample]) -> Chart {
    let curve = |(name, pages): Named<MemoryByUse, u64>| Series {
        name: name.into(),
        values: samples.iter().map(|s| in_mib(pages(&s.memory))).collect(),
    };
    Chart {
        id: "memory".into(),
        title: "All zones".into(),
        unit: "MiB",
        hint: "managed by the page allocator".into(),
        stacked: true,
        rate: false,
        most: None,
        colors: "uses",
        series: USES.map(curve).into(),
    }
}

fn by_order(samples: &[Sample], z: usize, zone: &ZoneSize) -> Chart {
    let orders = samples.first().map_or(0, |s| s.free_blocks[z].len());
    let curve = |order: usize| Series {
        name: format!("order {order}"),
        values: samples
            .iter()
            .map(|s| in_mib(s.free_blocks[z][order] << order))
            .collect(),
    };
    Chart {
        id: format!("free-{z}"),
        title: format!("Zone {}", zone.name),
        unit: "MiB",
        hint: format!("free of {} MiB", mib(zone.managed)),
        stacked: true,
        rate: false,
        most: None,
        colors: "orders",
        series: (0..orders).map(curve).collect(),
    }
}

fn waits(samples: &[Sample]) -> Chart {
    Chart {
        unit: "ms a second",
        hint: "of all tasks together; a wait counts when it ends".into(),
        ..rates(
            samples,
            "waits",
            "Time in direct reclaim and in congestion_wait",
            1e3,
            &[
                ("direct reclaim", |s| s.direct_reclaim_ns as f64 / 1e9),
                ("congestion_wait", |s| s.congestion_wait_ns as f64 / 1e9),
            ],
        )
    }
}

fn stalls(samples: &[Sample]) -> Chart {
    Chart {
        unit: "a second",
        hint: String::new(),
        ..rates(
            samples,
            "stalls",
            "Direct reclaims (allocstall)",
            1.0,
            &[("allocstall", |s| s.allocstall as f64)],
        )
    }
}

fn dirty(samples: &[Sample]) -> Chart {
    const OF: [Named<Sample, u64>; 3] = [
        ("dirty", |s| s.memory.dirty),
        ("writeback", |s| s.memory.writeback),
        ("writeback to swap", |s| s.memory.swap_writeback),
    ];
    let curve = |(name, pages): Named<Sample, u64>| Series {
        name: name.into(),
        values: samples.iter().map(|s| in_mib(pages(s))).collect(),
    };
    Chart {
        id: "dirty".into(),
        title: "Not yet on disk".into(),
        unit: "MiB",
        hint: "nr_dirty, and nr_writeback in two".into(),
        stacked: false,
        rate: false,
        most: None,
        colors: "lines",
        series: OF.map(curve).into(),
    }
}

fn io(samples: &[Sample]) -> Chart {
    Chart {
        unit: "MiB a second",
        hint: "pgpgin and pgpgout, without swap".into(),
        ..rates(
            samples,
            "io",
            "Files read and written",
            1.0,
            &[
                ("read", |s| s.pgpgin as f64 / 1024.0),
                ("written", |s| s.pgpgout as f64 / 1024.0),
            ],
        )
    }
}

fn swap(samples: &[Sample]) -> Chart {
    Chart {
        unit: "MiB a second",
        hint: "pswpin and pswpout".into(),
        ..rates(
            samples,
            "swap",
            "Swap",
            1.0,
            &[("in", |s| in_mib(s.pswpin)), ("out", |s| in_mib(s.pswpout))],
        )
    }
}

fn kswapd(samples: &[Sample]) -> Chart {
    Chart {
        unit: "ms a second",
        hint: "1,000 is one CPU".into(),
        ..rates(
            samples,
            "kswapd",
            "CPU time of kswapd",
            1e3,
            &[("kswapd", |s| s.kswapd_cpu_ns as f64 / 1e9)],
        )
    }
}

fn cpu(samples: &[Sample]) -> Chart {
    let all = |s: &Sample| CPU.iter().map(|(_, ns)| ns(&s.cpu)).sum::<u64>();
    let curve = |(name, ns): Named<CpuUse, u64>| Series {
        name: name.into(),
        values: between(samples, |a, b| {
            let share = (ns(&b.cpu) - ns(&a.cpu)) as f64 / (all(b) - all(a)).max(1) as f64;
            rounded(share * 100.0)
        }),
    };
    Chart {
        id: "cpu".into(),
        title: "CPUs".into(),
        unit: "%",
        hint: "of the time of all CPUs".into(),
        stacked: true,
        rate: true,
        most: Some(100.0),
        colors: "cpu",
        series: CPU.map(curve).into(),
    }
}

/// Lines of what sums rose by in a second, times `factor`.
fn rates(
    samples: &[Sample],
    id: &str,
    title: &str,
    factor: f64,
    sums: &[Named<Sample, f64>],
) -> Chart {
    let curve = |(name, sum): &Named<Sample, f64>| Series {
        name: (*name).into(),
        values: between(samples, |a, b| {
            rounded((sum(b) - sum(a)) * factor / seconds(b.at_ns - a.at_ns))
        }),
    };
    Chart {
        id: id.into(),
        title: title.into(),
        unit: "",
        hint: String::new(),
        stacked: false,
        rate: true,
        most: None,
        colors: "lines",
        series: sums.iter().map(curve).collect(),
    }
}

/// A value for each moment from it and the one before; 0 where no time passed.
fn between(samples: &[Sample], value: impl Fn(&Sample, &Sample) -> f64) -> Vec<f64> {
    let of = |pair: &[Sample]| match pair {
        [a, b] if a.at_ns < b.at_ns => value(a, b),
        _ => 0.0,
    };
    let found = samples.windows(2).map(of);
    // Of the time before the first moment nothing is known; its value only begins the line.
    let first = samples.get(..2).map_or(0.0, of);
    samples
        .first()
        .map(|_| first)
        .into_iter()
        .chain(found)
        .collect()
}

/// To three decimals, which is more than a picture shows.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Pages in MiB; exact.
fn in_mib(pages: u64) -> f64 {
    pages as f64 / ((1 << 20) / PAGE_BYTES) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of so many seconds in which a task waits `ms(i)` in the second that begins at i.
    fn run(length: u64, ms: impl Fn(u64) -> u64) -> Vec<Sample> {
        let mut waited = 0;
        (0..=length)
            .map(|i| {
                let at = Sample {
                    at_ns: i * 1_000_000_000,
                    direct_reclaim_ns: waited,
                    ..Sample::default()
                };
                waited += ms(i) * 1_000_000;
                at
            })
            .collect()
    }

    fn waited(charts: &Charts) -> &[f64] {
        let found = charts.charts.iter().find(|c| c.id == "waits").unwrap();
        &found.series[0].values
    }

    #[test]
    fn a_rate_belongs_to_the_time_before_its_moment() {
        let c = charts(&run(3, |i| 10 * i), &[]);
        assert_eq!(waited(&c), [0.0, 0.0, 10.0, 20.0]);
    }

    #[test]
    fn fewer_moments_leave_the_sum_as_it_was() {
        let ms = |i| (i * 7919) % 100;
        let c = charts(&run(10_000, ms), &[]);
        assert!(
            c.left_out
                .as_ref()
                .is_some_and(|t| t.contains("of 10001 moments"))
        );
        assert!(c.seconds.len() < 2_000);
        let sum: f64 = c
            .seconds
            .windows(2)
            .zip(&waited(&c)[1..])
            .map(|(t, v)| (t[1] - t[0]) * v)
            .sum();
        let truth: u64 = (0..10_000).map(ms).sum();
        assert!((sum - truth as f64).abs() < 10.0, "{sum} of {truth} ms");
    }

    #[test]
    fn a_run_without_length_has_charts_without_rates() {
        let c = charts(&[Sample::default(), Sample::default()], &[]);
        assert!(
            c.charts
                .iter()
                .flat_map(|c| &c.series)
                .flat_map(|s| &s.values)
                .all(|v| *v == 0.0)
        );
        assert!(charts(&[], &[]).seconds.is_empty());
    }
}
