//! The recordings that tests replay: the sample that ships, and the full ones where they are at hand.

#![allow(dead_code)]

pub mod host;
pub mod machine;
pub mod synthetic;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use unfrag_lab::era::settings;
use unfrag_lab::replay::StartChoice;
use unfrag_lab::replay::model::Prepared;
use unfrag_lab::replay::model::Sim;
use unfrag_linux::recording::{Recording, Snapshot};

/// The sample that ships.
pub fn sample() -> &'static Recording {
    static SAMPLE: OnceLock<Recording> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/gcc-768M.unfrag");
        unfrag_linux::file::read(&path).expect("the sample is whole")
    })
}

/// A full recording: trace and snapshots in a directory of `UNFRAG_DATA`; without it, says aloud that
/// the test is skipped.
pub fn full(directory: &str, trace: &str, snapshots: &[&str]) -> Option<Recording> {
    let Some(data) = std::env::var_os("UNFRAG_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: set UNFRAG_DATA to the directory of recordings to replay {directory}");
        return None;
    };
    let at = data.join(directory);
    let beside: Vec<PathBuf> = snapshots.iter().map(|s| at.join(s)).collect();
    let beside: Vec<&Path> = beside.iter().map(PathBuf::as_path).collect();
    let mut rec = unfrag_linux::open(&at.join(trace), &Default::default()).expect("a trace");
    rec.snapshots = unfrag_linux::snapshots::read_all(&beside).expect("snapshots");
    if rec.meta.kernel_release.is_empty() {
        // All of them are of one kernel, and not every format says so.
        rec.meta.kernel_release = "6.1.0-56-cloud-amd64".into();
    }
    Some(rec)
}

/// 1,536 MiB, base pages freed by halves, then huge-page faults.
pub fn huge_p20() -> Option<&'static Recording> {
    static REC: OnceLock<Option<Recording>> = OnceLock::new();
    let beside = ["snapshots.tar.zst", "kpageflags.tar.zst"];
    REC.get_or_init(|| full("qemu-6.1-1536M-huge-p20", "trace.dat.zst", &beside))
        .as_ref()
}

/// 640 MiB under pressure, with swap.
pub fn pressure() -> Option<&'static Recording> {
    static REC: OnceLock<Option<Recording>> = OnceLock::new();
    let beside = ["snapshots.tar.zst", "kpageflags.tar.zst"];
    REC.get_or_init(|| full("qemu-6.1-640M-pressure", "trace.dat.zst", &beside))
        .as_ref()
}

/// 640 MiB with direct compaction.
pub fn compact() -> Option<&'static Recording> {
    static REC: OnceLock<Option<Recording>> = OnceLock::new();
    let beside = ["procfs-snapshots.tar.zst"];
    REC.get_or_init(|| full("qemu-6.1-640M-compact", "pages.dat.zst", &beside))
        .as_ref()
}

/// 768 MiB, the sample before it was packed.
pub fn gcc() -> Option<&'static Recording> {
    static REC: OnceLock<Option<Recording>> = OnceLock::new();
    let beside = ["procfs-snapshots.tar.zst"];
    REC.get_or_init(|| full("qemu-6.1-768M-gcc", "pages.dat.zst", &beside))
        .as_ref()
}

/// A snapshot by name.
pub fn mark<'r>(rec: &'r Recording, name: &str) -> &'r Snapshot {
    let found = rec.snapshots.iter().find(|s| s.name == name);
    found.unwrap_or_else(|| panic!("no snapshot `{name}`"))
}

/// A recording made ready from an exact start, and memory for its model.
pub fn exact_plan(rec: &Recording) -> (Prepared<'_>, Vec<u64>) {
    let plan = Prepared::new(rec, StartChoice::Exact).expect("an exact start");
    let preset = unfrag_eras::preset(plan.era.preset()).expect("a preset");
    let sysctl = settings::recorded(rec);
    let words = plan.start.words(preset.rules, sysctl).expect("zones");
    (plan, vec![0; words])
}

/// The recorded era at the start of a plan.
pub fn recorded_era<'m>(rec: &Recording, plan: &Prepared, memory: &'m mut [u64]) -> Sim<'m> {
    let preset = unfrag_eras::preset(plan.era.preset()).expect("a preset");
    let sysctl = settings::recorded(rec);
    let manager = plan.start.manager(preset.rules, sysctl, true, memory);
    let frames = plan.start.frames.len() as u32;
    let mut sim = Sim::new(manager.expect("a state without contradictions"), frames);
    sim.recorded_era = true;
    sim.manager.host_mut().extfrag = Some(vec![]);
    sim
}
