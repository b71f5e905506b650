//! How long until a need fails: held against runs of the simulated machine, whose end is known.

use unfrag_lab::doctor::gate::Need;
use unfrag_lab::find::snapshots::Held;
use unfrag_lab::forecast::report::{When, Why};
use unfrag_lab::forecast::{Forecast, Looks, forecast, text};
use unfrag_lab::report::screen::Screen;
use unfrag_linux::recording::{Snapshot, SnapshotFile};
use unfrag_linux::segments::Window;
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

/// buddyinfo of one zone.
fn line(free: &[u64; 11]) -> String {
    let counts: Vec<String> = free.iter().map(|n| format!("{n:6}")).collect();
    format!("Node 0, zone   Normal {}\n", counts.join(" "))
}

/// A copy of procfs of an hour.
fn snapshot(hour: usize, free: &[u64; 11]) -> Snapshot {
    let line = line(free);
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
    of(&all, need, seed)
}

fn of(all: &[Snapshot], need: u64, seed: u64) -> Forecast {
    forecast(looks(all), "made", Need::new(need, 256 << 10), seed).unwrap()
}

fn looks(all: &[Snapshot]) -> Looks<'_> {
    Looks {
        snapshots: all,
        ..Looks::default()
    }
}

fn shown(f: &Forecast) -> String {
    let text = text::render(f, &Screen::default()).to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A row of looks, one an hour.
fn row(free: impl Fn(u64) -> u64, hours: u64) -> Vec<[u64; 11]> {
    let of = |n| [0, 0, 0, 0, 0, 0, n, 0, 0, 0, 0];
    (0..hours).map(|h| of(free(h))).collect()
}

/// Looks in directories of these names; what forecast says of them.
fn in_directories(names: &[String], need: &str) -> Result<Forecast, String> {
    let directory = tempfile::tempdir().unwrap();
    for (i, name) in names.iter().enumerate() {
        let look = directory.path().join(name);
        std::fs::create_dir(&look).unwrap();
        let free = 1000 - 2 * i;
        let text = format!("Node 0, zone   Normal 0 0 0 0 0 0 {free} 0 0 0 0\n");
        std::fs::write(look.join("buddyinfo"), text).unwrap();
    }
    let Held {
        snapshots,
        not_read,
        clock,
        ..
    } = unfrag_lab::find::snapshots::snapshots(directory.path(), &Window::default()).unwrap();
    let looks = Looks {
        snapshots: &snapshots,
        not_read: &not_read,
        clock,
        ..Looks::default()
    };
    forecast(looks, "made", need.parse().unwrap(), 1).map_err(|e| e.to_string())
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
        let error = forecast(looks(&all), "made", need.parse().unwrap(), 1).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(forecast(Looks::default(), "made", Need::new(1, 4096), 1).is_err());
}

#[test]
fn times_of_files_are_no_dates_of_looks() {
    let hours = |form: &dyn Fn(usize, usize) -> String| -> Vec<String> {
        (0..48).map(|h| form(1 + h / 24, h % 24)).collect()
    };
    for form in [
        |d: usize, h: usize| format!("2026-11-{d:02}T{h:02}:00:00Z"),
        |d, h| format!("2026-11-{d:02}_{h:02}-00"),
        |d, h| format!("2026-11-{d:02}T{h:02}:00"),
        |d, h| format!("202611{d:02}T{h:02}00Z"),
    ] {
        let f = in_directories(&hours(&form), "500x256K").unwrap();
        let name = form(1, 0);
        assert_eq!(
            (f.looks, f.undated, f.seconds),
            (48, 0, 47.0 * 3600.0),
            "{name}"
        );
        assert!(matches!(f.free.when, When::In { .. }), "{name}: {f:?}");
    }
    for form in [
        |d: usize, h: usize| format!("host1-2026-11-{d:02}T{h:02}:00:00Z"),
        |d, h| format!("day-{d:02}-{h:02}"),
    ] {
        let error = in_directories(&hours(&form), "500x256K").unwrap_err();
        assert!(error.contains("names are no dates"), "{error}");
    }
    // One that has no date among many is told, and counts nowhere.
    let mut names = hours(&|d, h| format!("2026-11-{d:02}T{h:02}:00:00Z"));
    names[47] = "the-last-one".into();
    let f = in_directories(&names, "500x256K").unwrap();
    assert_eq!((f.looks, f.undated), (47, 1));
}

#[test]
fn looks_that_cannot_be_read_are_told_and_those_that_are_cut_are_none() {
    let hours = row(|h| 1000 - h, 60);
    let whole: Vec<Snapshot> = hours
        .iter()
        .enumerate()
        .map(|(h, free)| snapshot(h, free))
        .collect();
    let text = line(&hours[0]);
    for bad in [
        text[..30].to_owned(),
        text[..text.len() - 10].to_owned() + "\n",
        text.replacen("  1000", " -1000", 1),
        "Node 0, zone   Normal\n".into(),
        "\u{0}\u{1}\u{2}".into(),
        text.replace("Normal", "DMA32"),
        "no look at all\n".into(),
    ] {
        let mut all = whole.clone();
        for s in &mut all[30..] {
            s.files[0].content = bad.clone().into_bytes().into();
        }
        // Half of them, so that neither half is the usual one, but for one.
        all[30] = whole[30].clone();
        let f = of(&all, 500, 1);
        let n = f
            .not_read
            .as_ref()
            .unwrap_or_else(|| panic!("{bad:?}: {f:?}"));
        assert_eq!(
            (n.looks, n.of, &*n.newest),
            (29, 60, "s0059"),
            "{bad:?}: {n:?}"
        );
        assert_eq!((f.looks, f.free.last), (31, Some(970)), "{bad:?}");
        let days = n.newest_days_after_last.unwrap();
        assert!((days - 29.0 / 24.0).abs() < 1e-6, "{bad:?}: {days}");
        let shown = shown(&f);
        assert!(
            shown.contains("NOT READ: 29 of 60 looks"),
            "{bad:?}: {shown}"
        );
        assert!(
            shown.contains("29.0 h after what NOW is of"),
            "{bad:?}: {shown}"
        );
        for s in &mut all {
            s.files[0].content = "Node 0, zone   Normal\n".as_bytes().to_vec().into();
        }
        let error = forecast(looks(&all), "made", Need::new(500, 256 << 10), 1).unwrap_err();
        assert!(
            error.to_string().contains("none of its 60 looks"),
            "{error}"
        );
    }
}

#[test]
fn the_last_look_says_whether_it_fails_now() {
    // 901 are needed, and the last look has 900; a clean line, a last look that is wild, and few looks.
    for (hours, need) in [
        (row(|h| 1000 - h, 101), 901),
        (row(|h| if h == 100 { 0 } else { 1000 - h / 10 }, 101), 500),
        (row(|_| 5, 1), 6),
        (row(|h| 1000 - h, 5), 997),
    ] {
        let f = asked(&hours, need, 1);
        assert_eq!(f.free.when, When::Now, "{f:?}");
        let shown = shown(&f);
        let last = hours[hours.len() - 1][ORDER];
        assert!(
            shown.contains("fails now: the last look has"),
            "{last}: {shown}"
        );
    }
    // Three at the end below it on the whole, and the last not.
    let dip = row(|h| if (97..99).contains(&h) { 100 } else { 1000 - h }, 100);
    assert_ne!(asked(&dip, 500, 1).free.when, When::Now);
}

#[test]
fn a_fall_that_needs_longer_than_futures_go_is_a_trend() {
    let f = asked(&row(|h| 100_000 - h, 120), 500, 1);
    let When::Later {
        beyond_days,
        per_day,
    } = f.free.when
    else {
        panic!("{f:?}");
    };
    assert!((beyond_days - 50.0).abs() < 1.0, "{beyond_days}");
    assert!((per_day + 24.0).abs() < 0.5, "{per_day}");
    let shown = shown(&f);
    assert!(shown.contains("fails later than can be told"), "{shown}");
    assert!(shown.contains("24.0 fewer a day"), "{shown}");
}

#[test]
fn a_need_that_looks_have_missed_already_is_told_and_may_be_missed_so_again() {
    // Ten minutes apart, and each night one look of nearly nothing.
    let looks = |h: u64| if h % 144 == 30 { 10 } else { 5000 - h / 8 };
    let f = asked(&row(looks, 144 * 10), 1000, 1);
    assert_eq!(f.free.below, 10);
    let shown = shown(&f);
    assert!(
        shown.contains("10 of 1,440 looks had too few already"),
        "{shown}"
    );
    let When::In {
        median_days: Some(median),
        ..
    } = f.free.when
    else {
        panic!("{f:?}");
    };
    // Looks are an hour apart here: such a dip comes each 6 days.
    assert!(median < 12.0, "{median}");
}

#[test]
fn a_page_size_that_is_assumed_is_said_to_be() {
    let all: Vec<Snapshot> = row(|h| 1000 - h, 40)
        .iter()
        .enumerate()
        .map(|(h, free)| snapshot(h, free))
        .collect();
    let f = of(&all, 500, 1);
    assert!(
        shown(&f).contains("A page of 4 KiB is assumed"),
        "{}",
        shown(&f)
    );
    let given = Looks {
        page_size: Some(64 << 10),
        ..looks(&all)
    };
    // Blocks of the same order are 16 times as large.
    let f = forecast(given, "made", Need::new(500, 4 << 20), 1).unwrap();
    assert_eq!((f.page_size, f.free.last), (64 << 10, Some(961)));
    assert!(!shown(&f).contains("assumed"), "{}", shown(&f));
}

/// A look with pageblocks of an order, so many of them movable, and free blocks of 2 MiB in those that are not.
fn with_types(hour: usize, pageblock_order: u32, movable: u64, free: [u64; 2]) -> Snapshot {
    let sum = free[0] + free[1];
    let row = |kind: &str, n: u64| {
        format!(
            "Node    0, zone   Normal, type {kind:>12}      0      0      0      0      0      0      0      0      0 {n:>6}      0 \n"
        )
    };
    let text = format!(
        "Page block order: {pageblock_order}\nPages per block:  {}\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n{}{}{}\n\
         Number of blocks type     Unmovable      Movable  Reclaimable \nNode 0, zone   Normal          500 {movable:>12}            0 \n",
        1 << pageblock_order,
        row("Unmovable", free[0]),
        row("Movable", free[1]),
        row("Reclaimable", 0),
    );
    let mut all = snapshot(hour, &[0, 0, 0, 0, 0, 0, 0, 0, 0, sum, 0]);
    let mut types = all.files[0].clone();
    types.name = "pagetypeinfo".into();
    types.content = text.into_bytes().into();
    all.files.push(types);
    all
}

#[test]
fn what_can_be_had_at_best_is_never_less_than_what_is_free_and_counts_pageblocks_by_their_size() {
    let asked = |order: u32, movable: u64, free: [u64; 2], need: &str| {
        let all: Vec<Snapshot> = (0..40)
            .map(|h| with_types(h, order, movable, free))
            .collect();
        let f = forecast(looks(&all), "made", need.parse().unwrap(), 1).unwrap();
        assert_eq!((f.not_read, f.free.looks), (None, 40));
        (f.free.last, f.at_best.last)
    };
    // Pageblocks of 2 MiB: the movable ones, and what is free in the others.
    assert_eq!(
        asked(9, 2000, [100, 300], "150x2M"),
        (Some(400), Some(2100))
    );
    // Of 128 KiB, of 4 MiB.
    assert_eq!(asked(5, 5761, [0, 4], "150x2M"), (Some(4), Some(360)));
    assert_eq!(asked(10, 1971, [0, 4], "150x2M"), (Some(4), Some(3942)));
    assert_eq!(asked(10, 1971, [0, 4], "150x4M"), (Some(0), Some(1971)));
    // All that is free lies in pageblocks of others.
    assert_eq!(asked(9, 0, [804, 0], "500x2M"), (Some(804), Some(804)));
}

#[test]
fn looks_of_two_hosts_and_those_that_were_lost_are_no_row() {
    let names = |row: &'static str| {
        (0..30).map(move |h| format!("{row}2026-11-{:02}T{:02}:00:00Z", 1 + h / 24, h % 24))
    };
    let all: Vec<String> = names("hosta-").chain(names("hostb-")).collect();
    // Beside each other they are one row, as their names say nothing else; below each other they are two.
    let two: Vec<String> = all.iter().map(|n| n.replacen('-', "/", 1)).collect();
    let directory = tempfile::tempdir().unwrap();
    for name in &two {
        let look = directory.path().join(name);
        std::fs::create_dir_all(&look).unwrap();
        std::fs::write(
            look.join("buddyinfo"),
            "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 900 0\n",
        )
        .unwrap();
    }
    let ask = |path: &std::path::Path, page_size| {
        let need = "500x2M".parse().unwrap();
        let found = unfrag_lab::find::days::foretold(path, &Window::default(), need, page_size, 1);
        found.map(|(f, _)| f).map_err(|e| e.to_string())
    };
    let said = ask(directory.path(), None).unwrap_err();
    assert!(said.contains("two hosts"), "{said}");
    let one = directory.path().join("hosta");
    assert_eq!(ask(&one, None).unwrap().looks, 30);
    // A full disk leaves a directory with nothing in it.
    for day in [5, 6] {
        std::fs::create_dir(one.join(format!("2026-11-{day:02}T00:00:00Z"))).unwrap();
    }
    let lost = ask(&one, None).unwrap().not_read.unwrap();
    assert_eq!((lost.looks, lost.of), (2, 32));
    assert!(
        lost.newest.contains("2026-11-06") && lost.why.contains("empty"),
        "{lost:?}"
    );
    // A page size that the files contradict.
    let meminfo = "MemTotal: 4000000 kB\nHugepagesize: 2048 kB\nDirectMap4k: 100 kB\n";
    for name in names("") {
        std::fs::write(one.join(name).join("meminfo"), meminfo).unwrap();
    }
    let said = ask(&one, Some(65_536)).unwrap_err();
    assert!(said.contains("tell pages of 4 KiB"), "{said}");
    assert_eq!(ask(&one, Some(4096)).unwrap().looks, 30);
}
