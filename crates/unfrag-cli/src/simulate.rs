//! `unfrag simulate`: a scenario file, run on the simulated machine.

use crate::failure::Result;
use crate::output::{Progress, print, print_json};
use std::fmt::Write;
use std::path::PathBuf;
use unfrag_linux::Error;
use unfrag_machine::Calibration;
use unfrag_machine::scenario::{Kernel, Outcome, Scenario};

/// Run a scenario file on the simulated machine: memory, disks, CPUs and programs on a virtual clock
///
/// The file says what the machine is made of and what its tasks do; the kernel is one of the eras. Same
/// scenario, kernel and seed: same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag simulate samples/small-build.toml
  unfrag simulate samples/small-build.toml --kernel 2.6.14 --seed 7 --json")]
pub struct Args {
    /// The scenario
    file: PathBuf,
    /// Kernel
    #[arg(long, value_name = "NAME", default_value = "6.18")]
    kernel: String,
    /// Machine of the scenario; its first if not given
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Never end a process when memory runs out: large requests fail then, and others try on
    #[arg(long)]
    no_oom_killer: bool,
    /// Print the whole outcome as JSON, samples included
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let text = std::fs::read_to_string(&args.file)
        .map_err(|e| Error::malformed(e.to_string()).in_file(&args.file))?;
    let bad = |e: String| Error::malformed(e);
    let scenario =
        Scenario::parse(&args.file.display().to_string(), &text).map_err(|e| bad(e.to_string()))?;
    let mut kernel = Kernel::preset(&args.kernel).map_err(bad)?;
    kernel.oom_killer = !args.no_oom_killer;
    let machine = scenario
        .machine(args.machine.as_deref())
        .map_err(|e| bad(e.to_string()))?;
    let run = scenario
        .start(machine, &kernel, &Calibration::standard(), args.seed)
        .map_err(|e| bad(e.to_string()))?;
    let bar = Progress::new("simulating");
    let outcome = run.finish(|p| bar.at(p.now / 1_000_000, p.limit / 1_000_000));
    drop(bar);
    if args.json {
        print_json(&outcome)
    } else {
        print(&text_of(&outcome))
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn text_of(o: &Outcome) -> String {
    let mut out = format!(
        "{} on {}, kernel {}, seed {}: {} after {:.3} s of its time (calibration {})\n\n",
        o.scenario,
        o.machine,
        o.kernel,
        o.seed,
        o.ended,
        seconds(o.elapsed_ns),
        o.calibration
    );
    let width = o
        .tasks
        .iter()
        .map(|t| t.name.len())
        .max()
        .unwrap_or(0)
        .max(4);
    let _ = writeln!(
        out,
        "{:<width$}  {:>6}  {:>10}  {:>10}  {:>10}  {:>10}",
        "task", "number", "ended s", "user s", "system s", "iowait s"
    );
    for t in &o.tasks {
        let ended = t
            .ended_ns
            .map_or("-".into(), |t| format!("{:.3}", seconds(t)));
        let _ = writeln!(
            out,
            "{:<width$}  {:>6}  {ended:>10}  {:>10.3}  {:>10.3}  {:>10.3}",
            t.name,
            t.number,
            seconds(t.user_ns),
            seconds(t.system_ns),
            seconds(t.iowait_ns)
        );
    }
    for r in &o.programs.high_order {
        let _ = writeln!(
            out,
            "\n{}: {} of {} attempts of order {}",
            r.name,
            r.successes(),
            r.attempts.len(),
            r.order
        );
    }
    let _ = writeln!(
        out,
        "\nkswapd: {:.3} s of CPU time\n",
        seconds(o.kswapd_cpu_ns)
    );
    let width = o.counters.keys().map(|k| k.len()).max().unwrap_or(0);
    for (name, value) in o.counters.iter().filter(|(_, v)| **v > 0) {
        let _ = writeln!(out, "{name:<width$}  {value:>14}");
    }
    out
}
