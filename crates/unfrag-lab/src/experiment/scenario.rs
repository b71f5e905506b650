//! The scenarios of the experiments: their files, and one run of each.

use super::bare;
use super::choice::{self, Choice};
use super::measure;
use super::metric::Metrics;
use super::name::Name;
use super::report::Unfinished;
use super::variant::Kernel;
use crate::error::{Asked, Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use unfrag_eras::kernel::Reserve;
use unfrag_machine::Calibration;
use unfrag_machine::scenario::kernel_table::Names;
use unfrag_machine::scenario::{self, Outcome, Progress, Run, Scenario};

const HIGHORDER: &str = include_str!("../../scenarios/highorder.toml");
const AIM9: &str = include_str!("../../scenarios/aim9.toml");
const SLAB_ORDER: &str = include_str!("../../scenarios/slab-order.toml");
const SLAB_ORDER_PARALLEL: &str = include_str!("../../scenarios/slab-order-parallel.toml");
const THP_BURST: &str = include_str!("../../scenarios/thp-burst.toml");
const ATOMIC: &str = include_str!("../../scenarios/atomic.toml");

/// The scenario files of an experiment, by name.
pub fn texts(name: Name) -> Vec<(&'static str, &'static str)> {
    match name {
        Name::HighOrder => vec![("highorder.toml", HIGHORDER)],
        Name::Aim9 => vec![("aim9.toml", AIM9)],
        Name::SlabOrder => vec![
            ("slab-order.toml", SLAB_ORDER),
            ("slab-order-parallel.toml", SLAB_ORDER_PARALLEL),
        ],
        Name::Atomic => vec![("atomic.toml", ATOMIC)],
        Name::ThpBurst => vec![("thp-burst.toml", THP_BURST)],
        Name::HugepageLatency | Name::JavaHeap | Name::Backoff | Name::OneTime => vec![],
    }
}

fn parse(file: &str, text: &str) -> Result<Scenario> {
    Ok(Scenario::parse(file, text)?)
}

/// A machine of an experiment, and the scenario that runs on it.
struct Machine {
    name: String,
    /// None on a machine of page frames alone.
    scenario: Option<Scenario>,
    added: bool,
}

impl Choice for Machine {
    const OPTION: Asked = Asked::Machine;

    fn own_name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> &str {
        &self.name
    }

    fn added(&self) -> bool {
        self.added
    }
}

/// All machines of an experiment.
fn all(name: Name) -> Result<Vec<Machine>> {
    let mut found = vec![];
    for (i, machine) in name.bare().into_iter().flat_map(bare::machines).enumerate() {
        found.push(Machine {
            name: machine.into(),
            scenario: None,
            added: i > 0,
        });
    }
    for (file, text) in texts(name) {
        let s = parse(file, text)?;
        for (i, m) in s.file.machines.iter().enumerate() {
            found.push(Machine {
                name: m.name.get_ref().clone(),
                scenario: Some(s.clone()),
                // The first machine is the source's; the others are a sweep over memory sizes or disks.
                added: matches!(name, Name::HighOrder | Name::SlabOrder | Name::ThpBurst) && i > 0,
            });
        }
    }
    Ok(found)
}

/// The machines that are named in `asked`; those of the source, if none is.
///
/// # Errors
/// If one does not exist.
pub fn machines(name: Name, asked: &[String]) -> Result<Vec<String>> {
    let chosen = choice::chosen(name, all(name)?, asked)?;
    Ok(chosen.into_iter().map(|m| m.name).collect())
}

/// The settings that a result lists.
pub fn settings(name: Name, kernel: &Kernel, machine: &str) -> BTreeMap<String, Value> {
    if name.bare().is_some() {
        return bare::settings(kernel, machine);
    }
    let mut all = BTreeMap::from([
        ("slab".to_string(), kernel.slab.design.name().into()),
        ("oom_killer".to_string(), kernel.oom_killer.into()),
    ]);
    if name == Name::HighOrder
        && let Some(mib) = machine
            .strip_prefix("xeon-")
            .and_then(|m| m.parse::<u64>().ok())
    {
        all.insert("memory_mib".into(), mib.into());
    }
    if name == Name::SlabOrder {
        if kernel.variant.starts_with("slub") {
            let slub = kernel.slab.slub;
            all.insert("slub_max_order".into(), slub.max_order.into());
            all.insert(
                "slub_first_attempt".into(),
                slub.first_attempt.name().into(),
            );
        }
        let reserve = kernel.rules.reserve() != Reserve::None;
        all.insert("migrate_reserve".into(), reserve.into());
    }
    if name == Name::ThpBurst {
        all.insert("defrag_mode".into(), u8::from(kernel.defrag_mode).into());
    }
    if name == Name::Atomic {
        let r = kernel.rules;
        all.insert("congestion_wait".into(), r.reclaim.congestion.name().into());
        all.insert("kswapd_sleep".into(), r.kswapd.sleep.name().into());
        all.insert("kswapd_nap".into(), r.kswapd.nap.name().into());
        all.insert("wake_on_restart".into(), r.retry.wake_on_restart.into());
        let realtime = r.rights.realtime_in_interrupt;
        all.insert("realtime_in_interrupt".into(), realtime.into());
        if r.kswapd.notices_order_at_once {
            all.insert("notices_order_at_once".into(), true.into());
        }
    }
    all
}

/// The costs that an experiment is run with: those of a computer of its source's time.
pub fn calibration(name: Name) -> Calibration {
    match name.bare() {
        Some(_) => Calibration::modern(),
        None => Calibration::standard(),
    }
}

/// How one run ended.
#[derive(Clone, Debug)]
pub enum RunResult {
    /// The awaited program ended.
    Finished(Metrics),
    /// It was cut off before that.
    Unfinished(Unfinished),
}

/// Parts of a run that progress is counted in.
pub const PARTS: u64 = 1000;

/// One run; `progress` is called with the parts of it that are done: of its longest virtual time, or of its work.
///
/// # Errors
/// If the scenario cannot run.
pub fn run_once(
    name: Name,
    kernel: &Kernel,
    machine: &str,
    seed: u64,
    costs: &Calibration,
    progress: &mut dyn FnMut(u64),
) -> Result<RunResult> {
    if let Some(which) = name.bare() {
        let metrics = bare::run(which, kernel, machine, seed, costs, progress)?;
        return Ok(RunResult::Finished(metrics));
    }
    // The end of a run is not known before it; its time limit is.
    let part = |p: Progress| {
        let part = u128::from(p.now) * u128::from(PARTS) / u128::from(p.limit.max(1));
        (part as u64).min(PARTS)
    };
    let found = all(name)?
        .into_iter()
        .find(|m| m.name == machine)
        .ok_or_else(|| Error::option(Asked::Machine, format!("there is no machine `{machine}`")))?;
    let scenario = found.scenario.iter().next();
    let Some(scenario) = scenario else {
        return Err(Error::option(
            Asked::Machine,
            format!("there is no machine `{machine}`"),
        ));
    };
    let outcome = start(scenario, kernel, machine, seed, costs)?.finish(|p| progress(part(p)));
    if outcome.ended != "finished" {
        return Ok(RunResult::Unfinished(Unfinished {
            seed,
            ended: outcome.ended,
            after_s: outcome.elapsed_ns as f64 / 1e9,
        }));
    }
    Ok(RunResult::Finished(measure::metrics(name, &outcome)))
}

/// The whole outcome of one run.
///
/// # Errors
/// If the scenario cannot run.
pub fn outcome(s: &Scenario, kernel: &Kernel, machine: &str, seed: u64) -> Result<Outcome> {
    Ok(start(s, kernel, machine, seed, &Calibration::standard())?.finish(|_| ()))
}

fn start(
    s: &Scenario,
    kernel: &Kernel,
    machine: &str,
    seed: u64,
    costs: &Calibration,
) -> Result<Run> {
    let mut k =
        scenario::Kernel::preset(kernel.name).map_err(|e| Error::option(Asked::Kernel, e))?;
    (k.rules, k.slab, k.oom_killer) = (kernel.rules, kernel.slab, kernel.oom_killer);
    k.sysctl.compaction_proactiveness = kernel.proactiveness;
    k.sysctl.defrag_mode = kernel.defrag_mode;
    let machine = s.machine(Some(machine))?;
    Ok(s.start(machine, &k, costs, seed)?)
}
