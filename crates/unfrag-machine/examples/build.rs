//! How long the host takes to simulate a build: `cargo run --release --example build [KERNEL] [FILE]`.

use std::time::Instant;
use unfrag_machine::Calibration;
use unfrag_machine::scenario::{Kernel, Scenario};

const BUILD: &str = include_str!("../benches/build.toml");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let kernel = Kernel::preset(args.next().as_deref().unwrap_or("2.6.30"))?;
    let text = match args.next() {
        Some(file) => std::fs::read_to_string(file)?,
        None => BUILD.to_owned(),
    };
    let scenario = Scenario::parse("build.toml", &text)?;
    let machine = scenario.machine(None)?;
    let from = Instant::now();
    let run = scenario.start(machine, &kernel, &Calibration::standard(), 1)?;
    let o = run.finish(|_| ());
    let took = from.elapsed();
    let pages = o.counters["pgalloc"] + o.counters["pgfree"];
    println!(
        "{} s of virtual time in {:.2} s: {}",
        o.elapsed_ns / 1_000_000_000,
        took.as_secs_f64(),
        o.ended
    );
    println!(
        "{pages} pages allocated or freed, {} faults, {} ns a page operation",
        o.counters["pgfault"],
        took.as_nanos() as u64 / pages.max(1)
    );
    for name in [
        "pgmajfault",
        "pswpin",
        "pswpout",
        "pgpgin",
        "pgpgout",
        "pgsteal_kswapd",
        "pgsteal_direct",
        "allocstall",
        "oom_kill",
        "cow_copies",
        "context_switches",
        "slabs_scanned",
    ] {
        println!("{name:18} {}", o.counters[name]);
    }
    println!(
        "{:?} {} processes, failures {:?}",
        o.cpu, o.programs.processes, o.programs.failures
    );
    Ok(())
}
