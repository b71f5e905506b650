//! How long until a need fails: held against runs of the simulated machine, whose end is known.

use unfrag_lab::doctor::gate::Need;
use unfrag_lab::forecast::report::{When, Why};
use unfrag_lab::forecast::{Forecast, forecast, text};
use unfrag_lab::report::screen::Screen;
use unfrag_linux::recording::{Snapshot, SnapshotFile};
use unfrag_machine::Calibration;
use unfrag_machine::scenario::Scenario;

/// Kernel memory that nobody gives back, beside a program that comes and goes, for sixteen days.
const DAYS: &str = r#"
name = "leaking-days"
about = "Kernel memory that nobody gives back, beside a program that comes and goes"
limit = "384 h"
sample = "1 h"
parameters = ["made up for a test"]

[[machine]]
name = "pc"
layout = "x86-64"
memory = "64 MiB"
cpus = 1
hz = 100

[programs.leak]
steps = [{ repeat = { for = "384 h", steps = [
  { kmalloc = { size = "4 KiB", count = { from = 1, to = 40 }, keep = "hoard" } },
  { sleep = { from = "30 min", to = "150 min" } },
] } }]

[programs.visitor]
steps = [{ repeat = { for = "384 h", steps = [
  { grow = { size = { from = "512 KiB", to = "6 MiB" } } },
  { touch = {} },
  { sleep = { from = "30 min", to = "4 h" } },
  { unmap = "heap" },
  { sleep = { from = "30 min", to = "2 h" } },
] } }]

[[task]]
program = "leak"

[[task]]
program = "visitor"
"#;

/// Order of 256 KiB.
const ORDER: usize = 6;
/// Hours that are looked at, and the need that is asked about.
const QUESTIONS: [(std::ops::Range<usize>, u64); 4] =
    [(0..120, 130), (24..96, 140), (24..192, 130), (48..168, 125)];

/// Free blocks of 256 KiB, hour by hour.
fn hours(seed: u64) -> Vec<[u64; 11]> {
    let scenario = Scenario::parse("leaking-days", DAYS).unwrap();
    let machine = scenario.machine(None).unwrap();
    let kernel = scenario.kernel(None).unwrap();
    let run = scenario
        .start(machine, &kernel, &Calibration::standard(), seed)
        .unwrap();
    let outcome = run.finish(|_| {});
    let sum = |zones: &[[u64; 11]]| {
        let mut all = [0; 11];
        for zone in zones {
            all.iter_mut().zip(zone).for_each(|(a, z)| *a += z);
        }
        all
    };
    outcome
        .samples
        .iter()
        .map(|s| sum(&s.free_blocks))
        .collect()
}

fn blocks(of: &[u64; 11]) -> u64 {
    let large = of.iter().enumerate().skip(ORDER);
    large.map(|(o, n)| n << (o - ORDER)).sum()
}

/// A copy of procfs of an hour.
fn snapshot(hour: usize, free: &[u64; 11]) -> Snapshot {
    let counts: Vec<String> = free.iter().map(|n| format!("{n:6}")).collect();
    let line = format!("Node 0, zone   Normal {}\n", counts.join(" "));
    let time = 1_700_000_000_000_000_000 + hour as u64 * 3_600_000_000_000;
    Snapshot {
        name: format!("s{hour:04}"),
        files: vec![SnapshotFile {
            name: "buddyinfo".into(),
            time: Some((time, time)),
            content: line.into_bytes().into(),
        }],
    }
}

fn asked(hours: &[[u64; 11]], need: u64, seed: u64) -> Forecast {
    let all: Vec<Snapshot> = hours
        .iter()
        .enumerate()
        .map(|(h, free)| snapshot(h, free))
        .collect();
    forecast(&all, "made", Need::new(need, 256 << 10), seed).unwrap()
}

#[test]
fn the_truth_is_in_the_interval_as_often_as_it_says() {
    const RUNS: u64 = 24;
    let (mut inside, mut told, mut missed) = (0, 0, vec![]);
    for seed in 1..=RUNS {
        let hours = hours(seed);
        for (seen, need) in QUESTIONS {
            let end = seen.end;
            let fails = (end..hours.len()).find(|&h| blocks(&hours[h]) < need);
            let truth = fails.map_or(f64::INFINITY, |h| (h + 1 - end) as f64 / 24.0);
            let f = asked(&hours[seen], need, seed);
            if let When::In {
                from_days, to_days, ..
            } = f.free.when
            {
                told += 1;
                match (from_days..=to_days.unwrap_or(f64::INFINITY)).contains(&truth) {
                    true => inside += 1,
                    false => missed.push((seed, need, truth, from_days, to_days)),
                }
            }
        }
    }
    println!("told {told}, inside {inside}: missed {missed:?}");
    let asked = RUNS * QUESTIONS.len() as u64;
    assert!(
        told * 4 >= asked * 3,
        "it is told of {told} of {asked} alone"
    );
    let share = inside as f64 / told as f64;
    assert!(
        (0.7..=0.9).contains(&share),
        "{inside} of {told}: {missed:?}"
    );
}

#[test]
fn the_same_looks_and_seed_give_the_same_answer_and_a_trend_that_is_none_gives_none() {
    let still: Vec<[u64; 11]> = (0..120)
        .map(|h| [0, 0, 0, 0, 0, 0, 200 + h * 37 % 11, 0, 0, 0, 0])
        .collect();
    let f = asked(&[[0, 0, 0, 0, 0, 0, 200, 0, 0, 0, 0]; 60], 130, 7);
    assert_eq!(f.free.when, When::NotKnown { why: Why::NoTrend });
    let f = asked(&still, 130, 7);
    assert_eq!(f, asked(&still, 130, 7));
    assert_eq!(f.free.when, When::NotKnown { why: Why::NoTrend });
    let shown = text::render(&f, &Screen::default());
    assert!(shown.contains("may as well be no trend"), "{}", &*shown);
    // No pagetypeinfo, no blocks without kernel memory: not known, and not 0.
    assert_eq!(
        (f.at_best.last, f.at_best.when),
        (
            None,
            When::NotKnown {
                why: Why::NotInLooks
            }
        )
    );
}

#[test]
fn what_fails_now_and_what_becomes_more_is_told_and_a_few_looks_tell_nothing() {
    let rising: Vec<[u64; 11]> = (0..120)
        .map(|h| [0, 0, 0, 0, 0, 0, 200 + h + h * 37 % 5, 0, 0, 0, 0])
        .collect();
    assert_eq!(asked(&rising, 130, 1).free.when, When::Never);
    assert_eq!(asked(&rising, 1000, 1).free.when, When::Now);
    let few = asked(&rising[..19], 130, 1);
    assert_eq!(
        few.free.when,
        When::NotKnown {
            why: Why::TooFewLooks
        }
    );
    let shown = text::render(&few, &Screen::default());
    assert!(
        shown.contains("20 looks are needed, and there are 19"),
        "{}",
        &*shown
    );
}

#[test]
fn a_straight_fall_is_told_to_the_hour() {
    let falling: Vec<[u64; 11]> = (0..120)
        .map(|h| [0, 0, 0, 0, 0, 0, 500 - 2 * h, 0, 0, 0, 0])
        .collect();
    // 262 at the last look, 2 fewer an hour.
    let When::In {
        median_days: Some(days),
        ..
    } = asked(&falling, 130, 1).free.when
    else {
        panic!("it falls");
    };
    assert!((days * 24.0 - 67.0).abs() <= 2.0, "{} h", days * 24.0);
}

#[test]
fn a_need_that_this_host_cannot_have_is_refused() {
    let all = [snapshot(0, &[1; 11])];
    for (need, word) in [("4x8M", "largest block"), ("4x2M@node3", "no node 3")] {
        let error = forecast(&all, "made", need.parse().unwrap(), 1).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(forecast(&[], "made", Need::new(1, 4096), 1).is_err());
}
