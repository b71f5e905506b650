//! `cargo bench -p unfrag-pool --bench peers`: our allocators and those of the registry, side by side in one run.
//!
//! Each work is repeated with a fresh allocator of 8 GiB, and the median counts. Threads are pinned,
//! and their CPU time counts.

mod allocators;
mod own;
mod plot;
mod quality;
mod random;
mod report;
mod works;

use allocators::{NAMES, make};
use clap::Parser;
use quality::{Pollution, Regain};
use report::{Row, Rows};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use works::{Timed, WORKS};

/// Measures page allocators side by side: time of an operation, and what remains of huge pages.
#[derive(Parser)]
struct Args {
    /// One work: bulk, "random free", pair, churn, cross, regain, pollution; `times` for all that take time.
    #[arg(long)]
    only: Option<String>,
    /// Some allocators, by name, separated by commas.
    #[arg(long, value_delimiter = ',')]
    allocators: Vec<String>,
    /// Repetitions of a timed work, and seeds of `regain`.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// GiB of frames for the timed works and for the blocks of 2 MiB.
    #[arg(long, default_value_t = 8)]
    gib: u32,
    /// GiB of frames for the gigabytes.
    #[arg(long, default_value_t = 256)]
    large_gib: u32,
    /// Writes all rows as JSON.
    #[arg(long)]
    json: Option<std::path::PathBuf>,
    /// Writes times and regained blocks as a picture.
    #[arg(long)]
    svg: Option<std::path::PathBuf>,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

const GIB: u32 = 1 << 18;

/// All works that take time.
const TIMES: &str = "times";

/// Allocators that have types, and so are asked how many gigabytes they taint.
const WITH_TYPES: [&str; 2] = ["unfrag", "6.18"];

fn main() -> std::io::Result<()> {
    // A thread that panics would leave the other one waiting.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::exit(101);
    }));
    let args = Args::parse();
    let known = WORKS.iter().chain(&["regain", "pollution", TIMES]);
    if let Some(only) = &args.only
        && !known.clone().any(|w| w == only)
    {
        let all: Vec<&str> = known.copied().collect();
        eprintln!("no work is called {only:?}; there are: {}", all.join(", "));
        std::process::exit(2);
    }
    let mut rows = Rows::default();
    let mut names = Vec::new();
    for name in NAMES {
        if !args.allocators.is_empty() && !args.allocators.iter().any(|a| a == name) {
            continue;
        }
        eprintln!("{name}");
        timed(name, &args, &mut rows);
        names.push(name);
    }
    eprintln!("regain and pollution");
    rows.0.extend(quality_of_all(&names, &args));
    rows.print();
    if let Some(path) = &args.svg {
        plot::write(&rows, path).map_err(|e| std::io::Error::other(e.to_string()))?;
    }
    if let Some(path) = &args.json {
        std::fs::write(path, rows.json())?;
    }
    Ok(())
}

fn timed(name: &str, args: &Args, rows: &mut Rows) {
    let only = args.only.as_deref().filter(|only| *only != TIMES);
    if only.is_some_and(|only| !WORKS.contains(&only)) {
        return;
    }
    for order in [0, 9] {
        for threads in [1, 2] {
            let mut runs: Vec<Vec<(&str, f64)>> = Vec::new();
            for _ in 0..args.repeat.max(1) {
                let frames = args.gib * GIB;
                let mut work = Timed {
                    frames,
                    order,
                    only,
                    ns: Vec::new(),
                };
                make(name, frames, threads, &mut work);
                runs.push(work.ns);
            }
            for i in 0..runs[0].len() {
                let mut all: Vec<f64> = runs.iter().map(|r| r[i].1).collect();
                all.sort_by(f64::total_cmp);
                rows.0.push(Row::Time {
                    work: runs[0][i].0,
                    allocator: name.to_owned(),
                    order,
                    threads,
                    ns: all[all.len() / 2],
                });
            }
        }
    }
}

/// One run that measures what remains of large blocks.
type Job = Box<dyn Fn() -> Vec<Row> + Send + Sync>;

/// Time does not count here, so two jobs run at a time.
fn quality_of_all(names: &[&'static str], args: &Args) -> Vec<Row> {
    let jobs: Vec<Job> = names.iter().flat_map(|name| quality(name, args)).collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Relaxed);
                    let Some(job) = jobs.get(i) else {
                        break;
                    };
                    let rows = job();
                    done.lock().expect("no panic").push((i, rows));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic");
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().flat_map(|(_, rows)| rows).collect()
}

fn quality(name: &'static str, args: &Args) -> Vec<Job> {
    let wants = |work: &str| args.only.as_ref().is_none_or(|o| o == work);
    let mut jobs: Vec<Job> = Vec::new();
    let (frames, seeds) = (args.gib * GIB, args.repeat.max(1) as u64);
    if wants("regain") {
        jobs.push(Box::new(move || regain(name, frames, seeds)));
    }
    if wants("pollution") {
        for fill in [50, 80, 95] {
            for in_phases in [false, true] {
                jobs.push(Box::new(move || {
                    pollution(name, frames, fill, in_phases, "2 MiB")
                }));
            }
        }
        let frames = args.large_gib * GIB;
        if WITH_TYPES.contains(&name) && frames > 0 {
            for in_phases in [false, true] {
                jobs.push(Box::new(move || {
                    pollution(name, frames, 80, in_phases, "1 GiB")
                }));
            }
        }
    }
    jobs
}

fn regain(name: &str, frames: u32, seeds: u64) -> Vec<Row> {
    let run = |seed| {
        let mut regain = Regain {
            frames,
            seed,
            blocks: Vec::new(),
        };
        make(name, frames, 1, &mut regain);
        regain.blocks
    };
    let runs: Vec<Vec<usize>> = (0..seeds).map(run).collect();
    let median = |round: usize| {
        let mut all: Vec<usize> = runs.iter().map(|r| r[round]).collect();
        all.sort_unstable();
        Row::Regain {
            allocator: name.to_owned(),
            round: round as u32,
            blocks: all[all.len() / 2],
        }
    };
    (0..runs[0].len()).map(median).collect()
}

fn pollution(name: &str, frames: u32, fill: u32, in_phases: bool, unit: &str) -> Vec<Row> {
    let mut pollution = Pollution {
        frames,
        fill,
        in_phases,
        seen: Vec::new(),
    };
    make(name, frames, 1, &mut pollution);
    let seen = pollution.seen.into_iter().filter(|s| s.unit == unit);
    let row = |tainted| Row::Pollution {
        allocator: name.to_owned(),
        gib: frames / GIB,
        tainted,
    };
    seen.map(row).collect()
}
