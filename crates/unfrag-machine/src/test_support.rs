//! Builders that the tests of several rooms share.

use crate::block::{DeviceId, DiskConfig};
use crate::config::MachineConfig;
use crate::engine::{Ended, MS, SEC};
use crate::kernel::Engine;
use crate::mm::swap::SwapConfig;
use unfrag_eras::preset;

/// A machine of `frames` frames in one zone, with a kernel and no disk.
pub(crate) fn machine_config(kernel: &str, frames: u64, cpus: usize) -> MachineConfig {
    MachineConfig::flat(frames, cpus, preset(kernel).unwrap().rules)
}

/// Adds a desktop disk of `gib` GiB.
pub(crate) fn add_disk(config: &mut MachineConfig, gib: u64) {
    config.disks.push(DiskConfig::desktop("sda", gib << 30));
}

/// Adds swap of `pages` pages on the first disk, from a sector on.
pub(crate) fn add_swap(config: &mut MachineConfig, sector: u64, pages: u32) {
    config.mem.swap = Some(SwapConfig {
        device: DeviceId(0),
        sector,
        pages,
    });
}

/// Runs until all programs have ended, which has to be within `seconds`.
pub(crate) fn finish(engine: &mut Engine, seconds: u64) {
    let ended = engine.run(seconds * SEC);
    assert_eq!(ended, Ended::Finished, "at {} ms", engine.sim().now() / MS);
}
