//! `cargo bench -p unfrag-pool --bench micro`: AIM9's tests that concern a page allocator, and the per-CPU list that is
//! searched against one list for each type (2.6.31 and 2.6.32), on the eras side by side.
//!
//! Each pattern is a list of operations on order 0, with a few of order 1, from memory of a gibibyte, a third of which is
//! in use at random places. Entries of the per-CPU list are counted in a run of their own: the position of the page that a
//! request gets on a list that is searched from its head, and 1 where each type has a list.

mod patterns;
#[path = "../peers/random.rs"]
#[allow(dead_code)]
mod random;

use clap::Parser;
use patterns::{Op, Pattern};
use random::Random;
use serde_json::json;
use std::time::Instant;
use unfrag::{CpuId, Gfp, MigrateType, Order, Pfn};
use unfrag_eras::kernel::Pcp;
use unfrag_eras::{Builder, Manager, NullHost, Request, ZoneId};

/// Measures the eras' page allocators by what programs ask for.
#[derive(Parser)]
struct Args {
    /// One pattern, by name.
    #[arg(long)]
    only: Option<String>,
    /// The presets, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = ERAS.map(String::from))]
    allocators: Vec<String>,
    /// Repetitions; the median counts.
    #[arg(long, default_value_t = 15)]
    repeat: usize,
    /// Writes all rows as JSON.
    #[arg(long)]
    json: Option<std::path::PathBuf>,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

const ERAS: [&str; 6] = ["2.6.14", "v19", "2.6.31", "2.6.32", "6.1", "6.18"];
const FRAMES: u64 = 1 << 18;
const CPU: CpuId = CpuId(0);

/// What a run took.
#[derive(Clone, Copy, Default)]
struct Time {
    ns: f64,
    /// Ticks of the time stamp counter; none on computers without one.
    cycles: Option<f64>,
}

/// Entries that requests of order 0 looked at.
#[derive(Default)]
struct Examined {
    requests: u64,
    entries: u64,
    most: u64,
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> Option<u64> {
    // SAFETY: every x86-64 computer has the counter.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> Option<u64> {
    None
}

fn request(order: u8, mt: MigrateType) -> Request {
    let gfp = match mt {
        MigrateType::Movable => Gfp::HIGHUSER_MOVABLE,
        MigrateType::Reclaimable => Gfp::KERNEL | Gfp::RECLAIMABLE,
        _ => Gfp::KERNEL,
    };
    Request::new(Order(order), gfp).on(CPU)
}

/// Calls `f` with a manager of an era, a third of whose memory is in use.
fn with_era<T>(era: &str, f: impl FnOnce(&mut Manager<'_, NullHost>) -> T) -> Result<T, String> {
    let config = Builder::new().region(Pfn(0), FRAMES).era(era);
    let why = |e: &dyn std::fmt::Display| format!("{era}: {e}");
    let mut words = vec![0; config.layout().map_err(|e| why(&e))?.words];
    let mut manager = config.boot(NullHost, &mut words).map_err(|e| why(&e))?;
    let mut random = Random::new(1);
    let mut held = Vec::new();
    for i in 0..FRAMES / 2 {
        let mt = if i % 20 == 0 {
            MigrateType::Unmovable
        } else {
            MigrateType::Movable
        };
        held.extend(manager.alloc(&request(0, mt)));
    }
    random.shuffle(&mut held);
    for pfn in held.drain(..held.len() / 3) {
        manager.free(CPU, pfn, Order(0)).map_err(|e| why(&e))?;
    }
    Ok(f(&mut manager))
}

/// Runs a pattern once; `before` is asked before each request.
#[inline(always)]
fn run(
    manager: &mut Manager<'_, NullHost>,
    pattern: &Pattern,
    held: &mut [(Pfn, u8)],
    mut before: impl FnMut(&Manager<'_, NullHost>, u8, MigrateType),
) {
    for &op in &pattern.ops {
        match op {
            Op::Take(place, order, mt) => {
                before(manager, order, mt);
                let got = manager.alloc(&request(order, mt)).expect("memory");
                held[place as usize] = (got, order);
            }
            Op::Give(place) => {
                let (pfn, order) = held[place as usize];
                manager.free(CPU, pfn, Order(order)).expect("in use");
            }
        }
    }
}

fn timed(era: &str, pattern: &Pattern) -> Result<Time, String> {
    with_era(era, |manager| {
        let mut held = vec![(Pfn(0), 0); pattern.places];
        // Once before, for warm caches and full lists.
        run(manager, pattern, &mut held, |_, _, _| {});
        let (begin, first) = (Instant::now(), ticks());
        run(manager, pattern, &mut held, |_, _, _| {});
        let (time, last) = (begin.elapsed(), ticks());
        // An operation is a take and a give.
        let pairs = pattern.ops.len() as f64 / 2.0;
        Time {
            ns: time.as_nanos() as f64 / pairs,
            cycles: first.zip(last).map(|(a, b)| (b - a) as f64 / pairs),
        }
    })
}

fn examined(era: &str, pattern: &Pattern) -> Result<Examined, String> {
    let rules = unfrag_eras::preset(era)
        .ok_or_else(|| format!("no preset is called {era:?}"))?
        .rules;
    let searched = matches!(rules.pcp, Pcp::Searched | Pcp::HotCold { searched: true });
    with_era(era, |manager| {
        let mut sum = Examined::default();
        let mut held = vec![(Pfn(0), 0); pattern.places];
        run(manager, pattern, &mut held, |manager, order, mt| {
            if order > 0 {
                return;
            }
            let entries = if searched { position(manager, mt) } else { 1 };
            sum.requests += 1;
            sum.entries += entries;
            sum.most = sum.most.max(entries);
        });
        sum
    })
}

/// Entries of the list that a search from its head looks at: up to the first page of the type, or all.
fn position(manager: &Manager<'_, NullHost>, mt: MigrateType) -> u64 {
    let inside = manager.inspect();
    let list = inside.pcp_list(ZoneId(0), CPU, 0);
    let mut entries = 0;
    for pfn in list {
        entries += 1;
        if inside.frame(pfn).is_some_and(|f| f.migratetype == mt) {
            break;
        }
    }
    entries.max(1)
}

fn median(mut of: Vec<Time>) -> Time {
    of.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    of.get(of.len() / 2).copied().unwrap_or_default()
}

fn main() -> Result<(), String> {
    let args = Args::parse();
    let patterns = patterns::all();
    if let Some(only) = &args.only
        && !patterns.iter().any(|p| p.name == only)
    {
        let all: Vec<&str> = patterns.iter().map(|p| p.name).collect();
        return Err(format!(
            "no pattern is called {only:?}; there are: {}",
            all.join(", ")
        ));
    }
    let mut rows = Vec::new();
    let heads: String = args.allocators.iter().map(|a| format!("{a:>16}")).collect();
    println!(
        "ns a pair of take and give, and entries of a per-CPU list that a request looks at (mean)"
    );
    println!("{:16}{heads}", "");
    for pattern in &patterns {
        if args.only.as_ref().is_some_and(|only| only != pattern.name) {
            continue;
        }
        let mut times: Vec<Vec<Time>> = vec![Vec::new(); args.allocators.len()];
        // By turns, so that a slow moment of the computer is everybody's.
        for _ in 0..args.repeat {
            for (era, times) in args.allocators.iter().zip(&mut times) {
                times.push(timed(era, pattern)?);
            }
        }
        let mut line = format!("{:16}", pattern.name);
        for (era, times) in args.allocators.iter().zip(times) {
            let (time, examined) = (median(times), examined(era, pattern)?);
            let mean = examined.entries as f64 / examined.requests.max(1) as f64;
            line += &format!("{:>9.1}{mean:>7.1}", time.ns);
            rows.push(json!({
                "work": pattern.name, "allocator": era, "ns": time.ns, "cycles": time.cycles,
                "entries_mean": mean, "entries_most": examined.most,
            }));
        }
        println!("{line}");
    }
    if let Some(path) = &args.json {
        let text =
            serde_json::to_string_pretty(&json!({ "rows": rows })).map_err(|e| e.to_string())?;
        std::fs::write(path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}
