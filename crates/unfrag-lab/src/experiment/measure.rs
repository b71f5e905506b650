//! The metrics of one run of an experiment.
//!
//! Invariant: they follow from the run's outcome alone, and only from one that finished.

use super::metric::{BUILD1, BUILD2, MARGINAL, Metrics, PARALLEL_BUILD1, over_first};
use super::name::Name;
use unfrag_machine::program::report::Mark;
use unfrag_machine::scenario::{Outcome, Sample};

/// The machine on which two builds of the first kind run side by side.
const PARALLEL: &str = "stoakley-parallel";

/// Operations that AIM9 counts for one loop of each test. `spec: 8.1`
const AIM9_OPERATIONS: [(&str, f64); 8] = [
    ("creat-clo", 1000.0),
    ("page_test", 1700.0),
    ("brk_test", 17000.0),
    ("jmp_test", 1000.0),
    ("signal_test", 1000.0),
    ("exec_test", 5.0),
    ("fork_test", 100.0),
    ("link_test", 63.0),
];

/// The metrics of a run that finished.
pub fn metrics(name: Name, o: &Outcome) -> Metrics {
    match name {
        Name::HighOrder => highorder(o),
        Name::Aim9 => aim9(o),
        Name::SlabOrder => slab_order(o),
        Name::Atomic => atomic(o),
        Name::ThpBurst => thp_burst(o),
        // Their metrics come from their machine, which has no such outcome.
        Name::HugepageLatency | Name::JavaHeap | Name::Backoff | Name::OneTime => Metrics::new(),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// When the marks of a name were set.
fn marks(o: &Outcome, name: &str) -> Vec<u64> {
    let of = o.programs.marks.iter().filter(|m| m.name == name);
    of.map(|m| m.at_ns).collect()
}

fn common(o: &Outcome) -> Metrics {
    let counter = |name: &str| o.counters.get(name).copied().unwrap_or(0);
    Metrics::from([
        ("kswapd_cpu_s".to_string(), seconds(o.kswapd_cpu_ns)),
        (
            "congestion_wait_s".to_string(),
            seconds(counter("congestion_wait_async_ns") + counter("congestion_wait_sync_ns")),
        ),
        ("oom_kills".to_string(), counter("oom_kill") as f64),
    ])
}

fn highorder(o: &Outcome) -> Metrics {
    let mut m = common(o);
    for r in &o.programs.high_order {
        if r.name == "load" {
            m.insert("load_success_percent".into(), r.percent() as f64);
            for zone in ["DMA", "Normal", "HighMem"] {
                let n = r.attempts.iter().filter(|a| a.zone == Some(zone)).count();
                m.insert(format!("load_success_{zone}"), n as f64);
            }
        } else {
            m.insert("rest_success".into(), r.successes() as f64);
        }
    }
    if let (Some(&from), Some(&to)) = (marks(o, "load").first(), marks(o, "built").first()) {
        m.insert("build_seconds".into(), seconds(to - from));
    }
    m
}

fn aim9(o: &Outcome) -> Metrics {
    let mut m = Metrics::new();
    for (test, operations) in AIM9_OPERATIONS {
        let (mut loops, mut ns) = (0.0, 0);
        for l in o.programs.lines.iter().filter(|l| l.text == test) {
            loops += 1.0;
            ns += l.latency_ns;
        }
        if ns > 0 {
            m.insert(test.into(), loops * operations / seconds(ns));
        }
    }
    m
}

fn slab_order(o: &Outcome) -> Metrics {
    let mut m = common(o);
    if o.machine == PARALLEL {
        let from = marks(o, "begin").into_iter().min().unwrap_or(0);
        let ends = marks(o, "built");
        let mean = ends.iter().map(|t| seconds(t - from)).sum::<f64>() / ends.len().max(1) as f64;
        m.insert(PARALLEL_BUILD1.into(), mean);
        return m;
    }
    let (begin, one, two, end) = (
        marks(o, "begin"),
        marks(o, "build1"),
        marks(o, "build2"),
        marks(o, "end"),
    );
    let rows = begin.iter().zip(&one).zip(&two).zip(&end);
    let mut marginal = vec![];
    for (i, (((b, one), two), e)) in rows.enumerate().take(MARGINAL.len()) {
        marginal.push(seconds(e - b));
        m.insert(MARGINAL[i].into(), seconds(e - b));
        m.insert(BUILD1[i].into(), seconds(one - b));
        m.insert(BUILD2[i].into(), seconds(two - b));
    }
    for (name, ratio) in over_first(&marginal) {
        m.insert(name.into(), ratio);
    }
    m
}

/// A line that takes this many times the median is a stall.
const STALL: u64 = 10;

fn atomic(o: &Outcome) -> Metrics {
    let mut m = common(o);
    let mut latencies: Vec<u64> = o.programs.lines.iter().map(|l| l.latency_ns).collect();
    latencies.sort_unstable();
    let usual = latencies.get(latencies.len() / 2).copied().unwrap_or(0);
    let stalls: Vec<u64> = latencies
        .iter()
        .copied()
        .filter(|&l| l > usual * STALL)
        .collect();
    let gitk = o.tasks.iter().find(|t| t.name == "gitk");
    let elapsed = gitk.and_then(|t| t.ended_ns).unwrap_or(o.elapsed_ns);
    m.insert("elapsed_s".into(), seconds(elapsed));
    let counter = |name: &str| o.counters.get(name).copied().unwrap_or(0);
    m.insert("failures".into(), counter("network_frames_lost") as f64);
    m.insert("stalls".into(), stalls.len() as f64);
    m.insert("stall_total_s".into(), seconds(stalls.iter().sum()));
    m.insert(
        "stall_max_s".into(),
        seconds(latencies.last().copied().unwrap_or(0)),
    );
    m.extend(over_time(&o.samples, elapsed));
    m
}

/// Counters of the builds of `thp-burst`, from the beginning of each to its end.
const BURST_COUNTERS: [&str; 4] = [
    "thp_fault_alloc",
    "thp_fault_fallback",
    "allocstall",
    "compact_stall",
];

fn thp_burst(o: &Outcome) -> Metrics {
    let of = |name| o.programs.marks.iter().filter(move |m| m.name == name);
    let builds: Vec<_> = of("begin").zip(of("end")).collect();
    let during = |counter: &str| -> Vec<f64> {
        let at = |m: &Mark| m.counters.get(counter).copied().unwrap_or(0);
        let during = builds.iter().map(|(b, e)| (at(e) - at(b)) as f64);
        during.collect()
    };
    let mut m = common(o);
    for counter in BURST_COUNTERS {
        m.insert(counter.into(), during(counter).iter().sum());
    }
    let huge = during("thp_fault_alloc");
    if let (Some(first), Some(last)) = (huge.first(), huge.last()) {
        m.insert("thp_fault_alloc_first".into(), *first);
        m.insert("thp_fault_alloc_last".into(), *last);
    }
    let build = builds.iter().map(|(b, e)| seconds(e.at_ns - b.at_ns));
    let mean = build.sum::<f64>() / builds.len().max(1) as f64;
    m.insert("build_seconds".into(), mean);
    m.insert("system_s".into(), seconds(o.cpu.system_ns));
    m
}

const TENTHS: u64 = 10;

/// A total since the start of the run, in MiB.
type Total = fn(&Sample) -> f64;

/// Writeback and I/O in each tenth of the time until `end`: the mean of what is under writeback in its samples, and
/// the rates at which files and swap together are read and written.
fn over_time(samples: &[Sample], end: u64) -> Metrics {
    let mib = |pages: u64| pages as f64 / 256.0;
    let totals: [(&str, Total); 2] = [
        ("read_mib_s", |s| (s.pgpgin / 4 + s.pswpin) as f64 / 256.0),
        ("written_mib_s", |s| {
            (s.pgpgout / 4 + s.pswpout) as f64 / 256.0
        }),
    ];
    let mut m = Metrics::new();
    for n in 0..TENTHS {
        let (from, to) = (end * n / TENTHS, end * (n + 1) / TENTHS);
        // The samples of the tenth, and the one before them, at which its first interval begins.
        let begin = samples.partition_point(|s| s.at_ns <= from);
        let part = &samples[begin.saturating_sub(1)..samples.partition_point(|s| s.at_ns <= to)];
        let (Some(first), Some(last)) = (part.first(), part.last()) else {
            continue;
        };
        if first.at_ns == last.at_ns {
            continue;
        }
        for (name, total) in totals {
            let rate = (total(last) - total(first)) / seconds(last.at_ns - first.at_ns);
            m.insert(format!("{name}_{}", n + 1), rate);
        }
        let writing = |s: &Sample| s.memory.writeback + s.memory.swap_writeback;
        let all = part[1..].iter().map(writing).sum();
        let mean = mib(all) / (part.len() - 1) as f64;
        m.insert(format!("writeback_mib_{}", n + 1), mean);
    }
    m
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_hold_the_io_of_their_time() {
        let sample = |i: u64| {
            let mut s = Sample {
                at_ns: i * 1_000_000_000,
                pswpin: 256 * i,
                pgpgout: 2 * 1024 * i.saturating_sub(50),
                ..Sample::default()
            };
            s.memory.swap_writeback = if i > 90 { 512 } else { 0 };
            s
        };
        let samples: Vec<_> = (0..=120).map(sample).collect();
        let m = over_time(&samples, 100_000_000_000);
        assert_eq!(m.len(), 30);
        assert!((1..=10).all(|n| m[&format!("read_mib_s_{n}")] == 1.0));
        assert_eq!(m["written_mib_s_5"], 0.0);
        assert_eq!(m["written_mib_s_6"], 2.0);
        assert_eq!((m["writeback_mib_9"], m["writeback_mib_10"]), (0.0, 2.0));
        assert!(over_time(&samples[..1], 100).is_empty());
    }
}
