//! The machine of a scenario, built from its description.

use super::file::Layout;
use super::file::{Disk, Elevator, Fault, FsKind, Machine};
use super::kernel::Kernel;
use super::zones;
use crate::block::{Cfq, CongestionWake, CryptConfig, DeviceId, DiskConfig, SECTOR};
use crate::config::{MachineConfig, SchedConfig};
use crate::engine::{Fair, Policy};
use crate::fs::{self, FsConfig, FsId, Store};
use crate::kmem::caches::Word;
use crate::mm::swap::SwapConfig;
use crate::mm::{DirtyConfig, MemConfig};
use crate::{Calibration, Sim};

impl Machine {
    /// This machine with a kernel, at time 0, its file systems not yet mounted.
    ///
    /// # Panics
    /// If the scenario was not checked.
    pub fn config(&self, kernel: &Kernel, calibration: &Calibration, seed: u64) -> MachineConfig {
        let frames = self.memory.get_ref().pages();
        let keeps = match &self.kernel_keeps {
            Some(k) => k.get_ref().pages(),
            None => zones::kernel_keeps(self.layout, frames),
        };
        let Some(zones) = zones::zones(self.layout, frames, keeps) else {
            panic!("the scenario was not checked: {frames} frames are too few");
        };
        let mut calibration = calibration.clone();
        if let Some(percent) = &self.cost_percent {
            calibration.scale_mem(*percent.get_ref());
        }
        for (name, time) in &self.costs {
            match calibration.cost(name.get_ref()) {
                Some(cost) => *cost = time.0,
                None => panic!("the scenario was not checked: cost {}", name.get_ref()),
            }
        }
        let era = MemConfig::of(&kernel.rules);
        let (ratio, background_ratio) = kernel.dirty_ratios;
        let mem = MemConfig {
            slab: kernel.slab,
            oom_killer: kernel.oom_killer,
            thp: kernel.thp,
            shmem_second_round: kernel.shmem_second_round,
            word: match self.layout {
                Layout::X86 => Word::W32,
                Layout::X86_64 => Word::W64,
            },
            swap: self.swap.as_ref().map(|s| SwapConfig {
                device: self.device(s.device.get_ref()),
                sector: s.at.0 / SECTOR,
                pages: s.size.get_ref().pages() as u32,
            }),
            highpte: self.highpte.as_ref().is_some_and(|h| *h.get_ref()),
            busy: self.owners_busy.as_ref().map_or((0, 1), |b| *b.get_ref()),
            costs: calibration.mem,
            dirty: DirtyConfig {
                ratio,
                background_ratio,
                ..era.dirty
            },
            ..era
        };
        let cpus = *self.cpus.get_ref();
        MachineConfig {
            seed,
            zones,
            cpus,
            cpu_nodes: vec![],
            hz: *self.hz.get_ref(),
            rules: kernel.rules,
            sysctl: kernel.sysctl,
            costs: calibration.costs,
            sched: SchedConfig {
                policy: match (&self.scheduler.quantum, kernel.policy) {
                    (Some(q), _) => Policy::Fair(Fair::rounds(q.get_ref().0)),
                    (None, Policy::Fair(f)) => Policy::Fair(f.on(cpus)),
                    (None, Policy::Arrays) => Policy::Arrays,
                },
                kthread_nice: kernel.kthread_nice,
                irq_cpu: self.scheduler.irq_cpu.as_ref().map_or(0, |c| *c.get_ref()),
                ..SchedConfig::default()
            },
            disks: self.disks.iter().map(|d| disk(d, kernel)).collect(),
            crypts: self.crypts.iter().map(|c| self.crypt(c, kernel)).collect(),
            congestion_wake: match self.congestion_wake_only_on_leaving {
                true => CongestionWake::Leaving,
                false => CongestionWake::BelowThreshold,
            },
            mem,
        }
    }

    /// Mounts empty file systems, with loop devices for those that are in a file.
    ///
    /// # Panics
    /// If the scenario was not checked.
    pub fn mount(&self, sim: &mut Sim) {
        let mut mounted: Vec<(&str, FsId)> = vec![];
        for f in &self.file_systems {
            let pages = f.size.get_ref().pages() as u32;
            let store = match (&f.device, &f.image_in) {
                (Some(device), _) => Store::Disk {
                    device: self.device(device.get_ref()),
                    sector: f.begin().0 / SECTOR,
                },
                (None, Some(holder)) => {
                    let Some(&(_, fs)) = mounted.iter().find(|m| m.0 == holder.get_ref()) else {
                        panic!(
                            "the scenario was not checked: nothing holds {}",
                            f.name.get_ref()
                        );
                    };
                    let root = sim.root(fs);
                    let image = sim.world().kernel.vfs.add_node(root, false);
                    Store::Loop(sim.setup_loop(image))
                }
                (None, None) => Store::Memory,
            };
            let fs = sim.mount(&FsConfig {
                name: f.name.get_ref().as_str().into(),
                kind: match f.kind {
                    FsKind::Ext2 => fs::FsKind::Ext2,
                    FsKind::Ext3 => fs::FsKind::Ext3,
                    FsKind::Tmpfs => fs::FsKind::Tmpfs,
                },
                store,
                pages,
            });
            mounted.push((f.name.get_ref(), fs));
        }
    }

    fn crypt(&self, c: &super::file::Crypt, kernel: &Kernel) -> CryptConfig {
        CryptConfig {
            name: c.name.get_ref().clone(),
            disk: usize::from(self.device(c.disk.get_ref()).0),
            first_sector: c.at.0 / SECTOR,
            io_thread: c.io_thread.unwrap_or(kernel.crypt_io_thread),
        }
    }

    fn device(&self, name: &str) -> DeviceId {
        let disks = self.disks.iter().map(|d| &d.name);
        let mut names = disks.chain(self.crypts.iter().map(|c| &c.name));
        match names.position(|n| n.get_ref() == name) {
            Some(i) => DeviceId(i as u8),
            None => panic!("the scenario was not checked: no device {name}"),
        }
    }
}

fn disk(d: &Disk, kernel: &Kernel) -> DiskConfig {
    let mut c = DiskConfig::desktop(d.name.get_ref().as_str(), d.size.get_ref().0);
    fn set<T>(to: &mut T, from: Option<T>) {
        if let Some(value) = from {
            *to = value;
        }
    }
    set(
        &mut c.bandwidth,
        d.bandwidth.as_ref().map(|b| b.get_ref().0),
    );
    set(&mut c.seek_min, d.seek_min.map(|t| t.0));
    set(&mut c.seek_max, d.seek_max.as_ref().map(|t| t.get_ref().0));
    set(&mut c.rotation, d.rotation.map(|t| t.0));
    set(&mut c.overhead, d.overhead.map(|t| t.0));
    let q = &mut c.queue;
    set(
        &mut q.nr_requests,
        d.nr_requests.as_ref().map(|n| *n.get_ref()),
    );
    set(
        &mut q.max_request,
        d.max_request.as_ref().map(|b| b.get_ref().0),
    );
    set(&mut q.plug, d.plug.map(|t| t.0));
    set(&mut q.batch, d.batch.as_ref().map(|n| *n.get_ref()));
    set(&mut q.async_starved, d.async_starved);
    set(&mut q.sync_expire, d.sync_expire.map(|t| t.0));
    set(&mut q.async_expire, d.async_expire.map(|t| t.0));
    q.ncq = d.ncq;
    q.cfq = (d.elevator == Elevator::Cfq).then(|| Cfq {
        low_latency: kernel.cfq_low_latency,
        ..Cfq::default()
    });
    c.faults = d.faults.iter().map(|f| fault(f.get_ref())).collect();
    c
}

fn fault(f: &Fault) -> crate::block::Fault {
    match *f {
        Fault::Stall { from, to } => crate::block::Fault::Stall {
            from: from.0,
            to: to.0,
        },
        Fault::Fail { from, to, at, size } => crate::block::Fault::Fail {
            from: from.0,
            to: to.0,
            first_sector: at.0 / SECTOR,
            end_sector: at.0.saturating_add(size.0).div_ceil(SECTOR),
        },
    }
}
