//! Which machine a kernel and a machine's name mean.

use super::super::name::Which;
use super::super::variant::Kernel;
use crate::error::{Asked, Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use unfrag_eras::{ConfigError, Sysctl};
use unfrag_machine::Calibration;
use unfrag_machine::bare::{Description, Holes};

/// Machines by name, with their memory in GiB.
const MACHINES: [(&str, u64); 7] = [
    ("1TiB", 1024),
    ("256GiB", 256),
    ("64GiB", 64),
    ("32GiB", 32),
    ("16GiB", 16),
    ("4GiB", 4),
    ("1GiB", 1),
];

/// Frames of a GiB.
const GIB: u64 = 1 << 18;

/// The machines of an experiment, that of the source first.
pub(in super::super) fn machines(which: Which) -> Vec<&'static str> {
    let of_source = match which {
        Which::OneTime => "32GiB",
        Which::HugepageLatency | Which::JavaHeap | Which::Backoff => "1TiB",
    };
    let others = MACHINES.iter().map(|m| m.0).filter(|m| *m != of_source);
    [of_source].into_iter().chain(others).collect()
}

fn frames(machine: &str) -> Result<u64> {
    let found = MACHINES.iter().find(|m| m.0 == machine);
    let gib = found
        .map(|m| m.1)
        .ok_or_else(|| Error::option(Asked::Machine, format!("there is no machine `{machine}`")))?;
    Ok(gib * GIB)
}

/// The machine.
pub(super) fn description(
    kernel: &Kernel,
    machine: &str,
    calibration: &Calibration,
) -> Result<Description> {
    let sysctl = Sysctl::default().with(|s| s.compaction_proactiveness = kernel.proactiveness);
    Ok(Description {
        frames: frames(machine)?,
        rules: kernel.rules,
        sysctl,
        costs: calibration.mem,
    })
}

/// The settings that a result lists.
pub(in super::super) fn settings(kernel: &Kernel, machine: &str) -> BTreeMap<String, Value> {
    let holes = match kernel.holes {
        Holes::First => "first",
        Holes::Random => "random",
    };
    let gib = frames(machine).unwrap_or(0) / GIB;
    BTreeMap::from([
        ("memory_gib".to_owned(), gib.into()),
        (
            "compaction_proactiveness".to_owned(),
            kernel.proactiveness.into(),
        ),
        ("holes".to_owned(), holes.into()),
    ])
}

pub(super) fn no_machine(e: ConfigError) -> Error {
    Error::option(Asked::Machine, e.to_string())
}
