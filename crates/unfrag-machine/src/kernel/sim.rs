//! What all tasks of a machine share: the page allocator and, as its host, the world around it.
//!
//! The allocator's callbacks get the [`World`] alone, so they cannot enter the allocator again. Whatever
//! enters the allocator is a method of [`Sim`]; whatever waits is a method of [`Cx`].

use super::metadata::Metadata;
use super::state::KernelState;
use crate::block::BlockLayer;
use crate::channels::{kcompactd_channel, kswapd_channel};
use crate::config::{Costs, MachineConfig};
use crate::engine::{
    self, Call, Channel, CpuConfig, CpuTimes, DeviceTimer, Nanos, Priority, Sched, Shared, Spec,
    TaskId, TaskTimes, spawn,
};
use crate::mm::alloc_failure::AllocFailures;
use crate::own::Own;
use unfrag_eras::source::Source;
use unfrag_eras::{Config, ConfigError, CpuId, Host, Manager, NodeId, Order, Pfn, layout};

/// The host of the page allocator: clock, CPUs and tasks, devices, the kernel's state.
pub struct World {
    /// CPU time of the machine's own work.
    pub costs: Costs,
    /// The devices.
    pub block: BlockLayer,
    /// The state of the kernel.
    pub(crate) kernel: KernelState,
    pub(crate) alloc_failures: AllocFailures,
    pub(crate) sched: Sched<Sim>,
    /// What chooses frames, if lists do not.
    own: Option<Box<Own>>,
    /// Node of each CPU.
    pub(super) cpu_nodes: Vec<NodeId>,
}

impl Host for World {
    // Pages off the lists are the kernel's own, or in the hands of a task.
    const MOVES_UNLISTED: bool = false;
    const SOURCES: bool = true;
    fn source(&mut self) -> Option<&mut dyn Source> {
        Some(&mut **self.own.as_mut()?)
    }
    const PREFETCHES: bool = true;
    #[inline]
    fn prefetch(&self, page: Pfn) {
        unfrag::hint::prefetch(self.kernel.frames.get(page));
    }
    fn wake_kswapd(&mut self, node: NodeId, _order: Order) {
        self.wake(kswapd_channel(node));
    }
    fn wake_kcompactd(&mut self, node: NodeId) {
        self.wake(kcompactd_channel(node));
    }
}

impl World {
    /// The time.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.sched.now
    }
    /// Length of a tick.
    pub fn tick(&self) -> Nanos {
        self.sched.tick
    }
    /// The CPU that runs the present task or interrupt.
    #[inline]
    pub fn cpu(&self) -> usize {
        self.sched.cpu
    }
    /// Id of that CPU in the page allocator.
    #[inline]
    pub(crate) fn cpu_id(&self) -> CpuId {
        CpuId(self.sched.cpu as u32)
    }
    /// Node of that CPU.
    #[inline]
    pub(crate) fn node(&self) -> NodeId {
        self.cpu_nodes[self.sched.cpu]
    }
    /// Number of CPUs.
    pub fn cpus(&self) -> usize {
        self.sched.cpus.len()
    }
    /// Wakes all tasks that wait on a channel, in the order in which they came; returns how many.
    pub fn wake(&mut self, channel: Channel) -> usize {
        self.sched.wake(channel)
    }
    /// Wakes the task that waits longest on a channel, if any does.
    pub fn wake_one(&mut self, channel: Channel) -> bool {
        self.sched.wake_one(channel)
    }
    /// Whether an interrupt runs.
    pub fn in_interrupt(&self) -> bool {
        self.sched.in_interrupt
    }
    /// The task that runs, or that the present interrupt interrupted, if any.
    pub fn current(&self) -> Option<TaskId> {
        self.sched.id(self.sched.current)
    }
    /// Class of a live task.
    pub fn priority(&self, task: TaskId) -> Option<Priority> {
        let slot = self.sched.slot(task)?;
        Some(self.sched.tasks[slot as usize].priority)
    }
    /// Name of a live task.
    pub fn task_name(&self, task: TaskId) -> Option<&str> {
        let slot = self.sched.slot(task)?;
        Some(&self.sched.tasks[slot as usize].name)
    }
    /// Time of a live task by what it was spent on.
    pub fn task_times(&self, task: TaskId) -> Option<TaskTimes> {
        Some(self.sched.task_times(self.sched.slot(task)?))
    }
    /// Time of a CPU by what it was spent on.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn cpu_times(&self, cpu: usize) -> CpuTimes {
        self.sched.cpu_times(cpu)
    }
    /// Switches from one task to another so far, on all CPUs.
    pub fn switches(&self) -> u64 {
        self.sched.cpus.iter().map(|c| c.switches).sum()
    }
    /// Tasks that have not ended.
    pub fn live_tasks(&self) -> usize {
        self.sched.live
    }
    /// Tasks that have not ended and that a run waits for.
    pub fn awaited_tasks(&self) -> usize {
        self.sched.awaited
    }
    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.sched.handled
    }
    /// A digest of which task ran when and where so far: equal runs have equal digests.
    pub fn trace_hash(&self) -> u64 {
        self.sched.trace_hash
    }
    /// Whether a task has not ended.
    pub fn is_alive(&self, task: TaskId) -> bool {
        self.sched.slot(task).is_some()
    }
    /// Whether a live task was killed.
    pub fn is_killed(&self, task: TaskId) -> bool {
        let slot = self.sched.slot(task);
        slot.is_some_and(|s| self.sched.tasks[s as usize].killed)
    }
    /// Kills a task. See [`Cx::kill`](crate::Cx::kill).
    pub fn kill(&mut self, task: TaskId) {
        self.sched.kill(task);
    }
    /// Runs code in an interrupt at a time, on the CPU for device interrupts; it uses that CPU's time.
    pub fn interrupt(&mut self, at: Nanos, code: impl FnOnce(&mut Sim) + 'static) {
        self.interrupt_on(self.sched.irq_cpu, at, code);
    }
    /// Runs code in an interrupt at a time on a CPU.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn interrupt_on(&mut self, cpu: usize, at: Nanos, code: impl FnOnce(&mut Sim) + 'static) {
        assert!(
            cpu < self.cpus(),
            "an interrupt for CPU {cpu} of {}",
            self.cpus()
        );
        self.sched.push_call(
            at,
            Call {
                cpu: Some(cpu),
                code: Box::new(code),
            },
        );
    }
    /// In an interrupt: uses CPU time.
    pub fn spend_interrupt(&mut self, ns: Nanos) {
        debug_assert!(self.sched.in_interrupt, "no interrupt runs");
        self.sched.irq_spent += ns;
    }
    /// Runs code at a time, outside of the machine and without CPU time: samples, scenario events.
    pub fn at(&mut self, at: Nanos, code: impl FnOnce(&mut Sim) + 'static) {
        self.sched.push_call(
            at,
            Call {
                cpu: None,
                code: Box::new(code),
            },
        );
    }
    /// Ends the run as soon as the running task waits or uses time.
    pub fn stop(&mut self) {
        self.sched.stop = true;
        self.sched.horizon = self.sched.now;
    }
}

/// Everything that the tasks of a machine share.
///
/// What the [`World`] can do, a `Sim` can: it dereferences to it.
pub struct Sim {
    // Dropped in this order: the manager before the memory that it lives in.
    manager: Manager<'static, World>,
    metadata: Metadata,
}

impl Sim {
    /// A machine at time 0, its memory free.
    pub fn new(config: &MachineConfig) -> Result<Sim, ConfigError> {
        let pages = Config {
            cpus: config.cpus,
            sysctl: config.sysctl,
            ..Config::new(&config.zones, config.rules)
        };
        let words = layout(&pages)?.words;
        let world = World {
            costs: config.costs.clone(),
            block: BlockLayer::new(
                &config.disks,
                &config.crypts,
                config.congestion_wake,
                config.seed,
            ),
            kernel: KernelState::new(config),
            alloc_failures: AllocFailures::default(),
            sched: Sched::new(&CpuConfig {
                cpus: config.cpus,
                hz: config.hz,
                context_switch: config.costs.context_switch,
                interrupt: config.costs.interrupt,
                sched: &config.sched,
            }),
            own: Own::of(&config.rules),
            cpu_nodes: (0..config.cpus).map(|cpu| config.node_of(cpu)).collect(),
        };
        let (metadata, words) = Metadata::new(words);
        let mut sim = Sim {
            manager: Manager::boot(&pages, world, words)?,
            metadata,
        };
        sim.start_devices();
        Ok(sim)
    }

    /// The page allocator.
    #[inline]
    pub fn manager(&mut self) -> &mut Manager<'static, World> {
        &mut self.manager
    }
    /// The page allocator, shared.
    pub fn manager_ref(&self) -> &Manager<'static, World> {
        &self.manager
    }
    /// The host of the page allocator.
    #[inline]
    pub fn world(&mut self) -> &mut World {
        self.manager.host_mut()
    }

    /// The state of the kernel.
    #[inline]
    pub fn kernel(&mut self) -> &mut KernelState {
        &mut self.world().kernel
    }

    /// The state of the kernel, shared.
    #[inline]
    pub fn kernel_ref(&self) -> &KernelState {
        &self.manager.host().kernel
    }

    #[inline]
    pub(crate) fn world_ref(&self) -> &World {
        self
    }

    #[inline]
    pub(crate) fn sched(&mut self) -> &mut Sched<Sim> {
        &mut self.manager.host_mut().sched
    }

    /// Starts a task; it runs from now on, on its own.
    ///
    /// # Panics
    /// If it is bound to a CPU that the machine has not.
    pub fn spawn(&mut self, spec: Spec, body: impl FnOnce(&mut Cx) + 'static) -> TaskId {
        spawn(self, spec, body)
    }
}

impl Shared for Sim {
    #[inline]
    fn sched(&mut self) -> &mut Sched<Sim> {
        Sim::sched(self)
    }
    #[inline]
    fn end_access(&mut self) {
        self.fund_bios();
    }
    fn device_interrupt(&mut self, device: u8) {
        self.disk_interrupt(device);
    }
    fn device_timer(&mut self, timer: DeviceTimer) {
        self.disk_timer(timer);
    }
}

/// A running task's hold on the machine.
pub type Cx<'y> = engine::Cx<'y, Sim>;

/// A machine and its tasks.
pub type Engine = engine::Engine<Sim>;

impl Engine {
    /// A machine at time 0.
    ///
    /// # Errors
    /// If the page allocator does not start on such memory.
    pub fn new(config: &MachineConfig) -> Result<Engine, ConfigError> {
        Ok(Engine::over(Sim::new(config)?))
    }
}

impl std::ops::Deref for Sim {
    type Target = World;
    fn deref(&self) -> &World {
        self.manager.host()
    }
}

impl std::ops::DerefMut for Sim {
    fn deref_mut(&mut self) -> &mut World {
        self.manager.host_mut()
    }
}

impl Drop for Sim {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if self.manager.inspect().metadata_address() == self.metadata.address() {
            // SAFETY: the manager that lives in this memory is a field before `metadata`, so it is
            // dropped first; one that was swapped for another has another address, and its memory
            // stays.
            unsafe { self.metadata.release() }
        }
    }
}
