//! The description of a machine.

use crate::block::{CongestionWake, CryptConfig, DiskConfig};
use crate::engine::Nanos;
pub use crate::engine::SchedConfig;
use crate::mm::MemConfig;
use unfrag_eras::{NodeId, Pfn, Rules, Sysctl, ZoneConfig, ZoneKind};

/// A machine: memory, CPUs, disks, the kernel's rules, the seed.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Seed of every named generator.
    pub seed: u64,
    /// The zones, by ascending address. Each of their nodes has a kswapd, and tasks allocate near the node
    /// of their CPU. Nothing else depends on nodes: slabs serve all CPUs, a kswapd runs on any CPU, and
    /// tasks move between CPUs as with one node.
    pub zones: Vec<ZoneConfig>,
    /// Number of CPUs.
    pub cpus: usize,
    /// Node of each CPU; CPUs beyond the end belong to node 0.
    pub cpu_nodes: Vec<NodeId>,
    /// Timer interrupts a second.
    pub hz: u32,
    /// The kernel's rules for pages.
    pub rules: Rules,
    /// The administrator's settings for pages.
    pub sysctl: Sysctl,
    /// CPU time of the machine's own work.
    pub costs: Costs,
    /// Rules of the CPU scheduler.
    pub sched: SchedConfig,
    /// The disks; a [`DeviceId`](crate::block::DeviceId) counts through them, then through `crypts`.
    pub disks: Vec<DiskConfig>,
    /// The encrypting layers.
    pub crypts: Vec<CryptConfig>,
    /// Which wake-ups end a wait for congestion.
    pub congestion_wake: CongestionWake,
    /// The kernel's memory: sizes, rules, costs.
    pub mem: MemConfig,
}

impl MachineConfig {
    /// A machine with one zone of `frames` frames at 16 MiB, no disk, and defaults for the rest.
    pub fn flat(frames: u64, cpus: usize, rules: Rules) -> MachineConfig {
        MachineConfig {
            seed: 0,
            zones: vec![ZoneConfig::whole(
                NodeId(0),
                ZoneKind::Normal,
                Pfn(0x1000),
                frames,
            )],
            cpus,
            cpu_nodes: Vec::new(),
            hz: 250,
            rules,
            sysctl: Sysctl::default(),
            costs: Costs::default(),
            sched: SchedConfig::default(),
            disks: Vec::new(),
            crypts: Vec::new(),
            congestion_wake: CongestionWake::default(),
            mem: MemConfig::of(&rules),
        }
    }

    /// Node of a CPU.
    pub fn node_of(&self, cpu: usize) -> NodeId {
        self.cpu_nodes.get(cpu).copied().unwrap_or_default()
    }
}

/// CPU time of the machine's own work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A context switch.
    pub context_switch: Nanos,
    /// Entry and exit of an interrupt.
    pub interrupt: Nanos,
    /// Encrypting or decrypting one page.
    pub crypt_page: Nanos,
    /// The end of a page's transfer, in the interrupt.
    pub end_io_page: Nanos,
}

impl Costs {
    /// No cost at all.
    pub const ZERO: Costs = Costs {
        context_switch: 0,
        interrupt: 0,
        crypt_page: 0,
        end_io_page: 0,
    };
}

impl Default for Costs {
    fn default() -> Self {
        Costs {
            context_switch: 1_500,
            interrupt: 1_000,
            crypt_page: 40_000,
            end_io_page: 300,
        }
    }
}
