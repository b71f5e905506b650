//! The scenarios of the experiments: their files, one run of each, and what is measured of it.

use super::choice::{self, Choice};
use super::variant::Kernel;
use super::{Metrics, Name};
use std::collections::BTreeMap;
use unfrag::kernel::Reserve;
use unfrag_linux::{Error, Result};
use unfrag_machine::Calibration;
use unfrag_machine::scenario::{self, Outcome, Scenario};

const HIGHORDER: &str = include_str!("../../scenarios/highorder.toml");
const AIM9: &str = include_str!("../../scenarios/aim9.toml");
const SLAB_ORDER: &str = include_str!("../../scenarios/slab-order.toml");
const SLAB_ORDER_PARALLEL: &str = include_str!("../../scenarios/slab-order-parallel.toml");
const ATOMIC: &str = include_str!("../../scenarios/atomic.toml");

/// The machine on which two builds of the first kind run side by side.
const PARALLEL: &str = "stoakley-parallel";

/// Loops that one operation count of AIM9 is made of. `spec: linux-mm 8.1`
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
    }
}

fn parse(file: &str, text: &str) -> Result<Scenario> {
    Scenario::parse(file, text).map_err(|e| Error::malformed(e.to_string()))
}

/// A machine of an experiment, and the scenario that runs on it.
struct Machine {
    name: String,
    scenario: Scenario,
    added: bool,
}

impl Choice for Machine {
    const WHAT: &'static str = "machine";

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
    for (file, text) in texts(name) {
        let s = parse(file, text)?;
        for (i, m) in s.file.machines.iter().enumerate() {
            found.push(Machine {
                name: m.name.get_ref().clone(),
                scenario: s.clone(),
                // The other sizes of memory, and the other disks, are a sweep.
                added: matches!(name, Name::HighOrder | Name::SlabOrder) && i > 0,
            });
        }
    }
    Ok(found)
}

/// The machines that are asked for; those of the source, if none is.
///
/// # Errors
/// If one does not exist.
pub fn machines(name: Name, asked: &[String]) -> Result<Vec<String>> {
    let chosen = choice::chosen(name, all(name)?, asked)?;
    Ok(chosen.into_iter().map(|m| m.name).collect())
}

/// What a result's settings say.
pub fn settings(name: Name, kernel: &Kernel, machine: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([("slab".to_string(), kernel.slab.design.to_string())]);
    if name == Name::HighOrder
        && let Some(mib) = machine.strip_prefix("xeon-")
    {
        all.insert("memory_mib".into(), mib.into());
    }
    if name == Name::SlabOrder {
        if kernel.variant.starts_with("slub") {
            let slub = kernel.slab.slub;
            all.insert("slub_max_order".into(), slub.max_order.to_string());
            all.insert("first_attempt".into(), format!("{:?}", slub.first_attempt));
        }
        let reserve = kernel.switches.reserve != Reserve::None;
        all.insert("migrate_reserve".into(), reserve.to_string());
    }
    if name == Name::Atomic {
        let r = kernel.switches.reclaim;
        all.insert("congestion_wait".into(), format!("{:?}", r.congestion));
        all.insert("kswapd_sleep".into(), format!("{:?}", r.sleep));
        all.insert("kswapd_nap".into(), format!("{:?}", r.nap));
        all.insert("wake_on_restart".into(), r.wake_on_restart.to_string());
        if r.notices_order_at_once {
            all.insert("notices_order_at_once".into(), "true".into());
        }
    }
    all
}

/// Hash of the costs.
pub fn calibration() -> String {
    format!("{:016x}", Calibration::standard().hash)
}

/// One run.
///
/// # Errors
/// If the scenario cannot run.
pub fn once(name: Name, kernel: &Kernel, machine: &str, seed: u64) -> Result<Metrics> {
    let found = all(name)?
        .into_iter()
        .find(|m| m.name == machine)
        .ok_or_else(|| Error::malformed(format!("there is no machine `{machine}`")))?;
    let outcome = outcome(&found.scenario, kernel, machine, seed)?;
    if outcome.ended != "finished" {
        return Err(Error::malformed(format!(
            "{} of {} on {machine} with seed {seed} ended as `{}` after {} s of its time",
            name.as_str(),
            kernel.name,
            outcome.ended,
            outcome.elapsed_ns / 1_000_000_000
        )));
    }
    Ok(match name {
        Name::HighOrder => highorder(&outcome),
        Name::Aim9 => aim9(&outcome),
        Name::SlabOrder => slab_order(&outcome),
        Name::Atomic => atomic(&outcome),
    })
}

/// The whole outcome of one run.
///
/// # Errors
/// If the scenario cannot run.
pub fn outcome(s: &Scenario, kernel: &Kernel, machine: &str, seed: u64) -> Result<Outcome> {
    let bad = |e: scenario::ScenarioError| Error::malformed(e.to_string());
    let mut k = scenario::Kernel::preset(kernel.name).map_err(Error::malformed)?;
    (k.switches, k.slab, k.oom_killer) = (kernel.switches, kernel.slab, kernel.oom_killer);
    let machine = s.machine(Some(machine)).map_err(bad)?;
    let run = s
        .start(machine, &k, &Calibration::standard(), seed)
        .map_err(bad)?;
    Ok(run.finish(|_| ()))
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
        ("oom_kills".to_string(), counter("oom_victims") as f64),
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
        m.insert("build1_seconds_parallel".into(), mean);
        return m;
    }
    let (begin, one, two, end) = (
        marks(o, "begin"),
        marks(o, "build1"),
        marks(o, "build2"),
        marks(o, "end"),
    );
    let rows = begin.iter().zip(&one).zip(&two).zip(&end);
    for (i, (((b, one), two), e)) in rows.enumerate() {
        m.insert(format!("marginal_seconds_{}", i + 1), seconds(e - b));
        m.insert(format!("build1_seconds_{}", i + 1), seconds(one - b));
        m.insert(format!("build2_seconds_{}", i + 1), seconds(two - b));
    }
    m
}

/// A line this many times later than usual is a stall.
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
    m
}
