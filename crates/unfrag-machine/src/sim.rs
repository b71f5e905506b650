//! Everything that the tasks of a machine share.
//!
//! [`Sim`] is the page allocator and, as its host, the [`World`]: clock, CPUs and tasks, devices, the
//! tables of whoever owns frames. The core's callbacks see the `World` alone, so they cannot enter
//! the allocator again.

use crate::block::Block;
use crate::config::{Costs, MachineConfig};
use crate::engine::{Channel, Cx, Nanos, Spec, TaskId};
use crate::metadata::Metadata;
use unfrag::page_alloc::ConfigError;
use unfrag::{Config, Host, Manager, layout};

/// The world of the page allocator.
pub struct World {
    /// What the CPU's work takes.
    pub costs: Costs,
    /// The devices.
    pub block: Block,
    cpu: usize,
}

impl Host for World {
    fn cpu(&self) -> usize {
        self.cpu
    }
}

impl World {
    /// The time.
    pub fn now(&self) -> Nanos {
        unimplemented!()
    }
    /// Wakes all tasks that wait on a channel, in the order in which they came; returns how many.
    pub fn wake(&mut self, channel: Channel) -> usize {
        let _ = channel;
        unimplemented!()
    }
    /// Wakes the task that waits longest on a channel, if any does.
    pub fn wake_one(&mut self, channel: Channel) -> bool {
        let _ = channel;
        unimplemented!()
    }
    /// Whether an interrupt runs.
    pub fn in_interrupt(&self) -> bool {
        unimplemented!()
    }
    /// The task that runs (or that an interrupt interrupted), if any.
    pub fn current(&self) -> Option<TaskId> {
        unimplemented!()
    }
}

/// Everything that the tasks of a machine share.
pub struct Sim {
    // Dropped in this order: the manager before the memory that it lives in.
    manager: Manager<'static, World>,
    metadata: Metadata,
}

impl Sim {
    /// A machine at time 0, its memory free.
    pub fn new(config: &MachineConfig) -> Result<Sim, ConfigError> {
        let pages = Config {
            zones: &config.zones,
            cpus: config.cpus,
            switches: config.switches,
            sysctl: config.sysctl,
        };
        let world = World {
            costs: config.costs.clone(),
            block: Block::new(&config.disks, config.seed),
            cpu: 0,
        };
        let (metadata, words) = Metadata::new(layout(&pages)?.words);
        Ok(Sim {
            manager: Manager::boot(&pages, world, words)?,
            metadata,
        })
    }

    /// The page allocator.
    pub fn manager(&mut self) -> &mut Manager<'static, World> {
        &mut self.manager
    }
    /// What the allocator sees of the machine, and all else.
    pub fn world(&mut self) -> &mut World {
        self.manager.host_mut()
    }
    /// The same, to look at.
    pub fn world_ref(&self) -> &World {
        self.manager.host()
    }
    /// The time.
    pub fn now(&self) -> Nanos {
        self.world_ref().now()
    }
    /// As [`World::wake`].
    pub fn wake(&mut self, channel: Channel) -> usize {
        self.world().wake(channel)
    }
    /// As [`World::wake_one`].
    pub fn wake_one(&mut self, channel: Channel) -> bool {
        self.world().wake_one(channel)
    }
    /// Starts a task.
    pub fn spawn(&mut self, spec: Spec, body: impl FnOnce(&mut Cx) + 'static) -> TaskId {
        let _ = (spec, body);
        unimplemented!()
    }
    /// Tells a task to end.
    pub fn kill(&mut self, task: TaskId) {
        let _ = task;
        unimplemented!()
    }
    /// Whether a task was told to end.
    pub fn is_killed(&self, task: TaskId) -> bool {
        let _ = task;
        unimplemented!()
    }
    /// Runs code in an interrupt at a time, on the CPU for device interrupts; it takes that CPU's time.
    pub fn interrupt(&mut self, at: Nanos, f: impl FnOnce(&mut Sim) + 'static) {
        let _ = (at, f);
        unimplemented!()
    }
    /// In an interrupt: uses so much of its CPU's time.
    pub fn spend_interrupt(&mut self, ns: Nanos) {
        let _ = ns;
        unimplemented!()
    }
    /// Runs code at a time, outside of the machine: for samples and scenario events.
    pub fn at(&mut self, at: Nanos, f: impl FnOnce(&mut Sim) + 'static) {
        let _ = (at, f);
        unimplemented!()
    }
    /// Ends the run as soon as no task runs.
    pub fn stop(&mut self) {
        unimplemented!()
    }
}

impl Drop for Sim {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if self.manager.metadata_address() == self.metadata.address() {
            // SAFETY: the manager that lives in this memory is a field before `metadata`, so it is
            // dropped first; one that was swapped for another has another address, and its memory
            // stays.
            unsafe { self.metadata.release() }
        }
    }
}
