//! Running a scenario, and the outcome.
//!
//! A run is a function of scenario, machine, kernel, calibration and seed; its outcome names them all.

use super::file::{File, Machine, Priority};
use super::kernel::Kernel;
use super::reader::Scenario;
use super::series::{CpuUse, MemoryByUse, Sample, ZoneSize, cpu_use, kswapd_cpu, zones};
use crate::alloc_failure::AllocFailures;
use crate::engine::{Ended, Nanos, TaskTimes, digest};
use crate::input::ScenarioError;
use crate::kmem::CacheView;
use crate::program::{Actor, ProgramReport, Role, Workload};
use crate::{Calibration, Engine, Sim, Spec};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskOutcome {
    /// Its name.
    pub name: String,
    /// Its number among those of its name.
    pub number: u32,
    /// Time of its start; none if it has not started.
    pub started_ns: Option<Nanos>,
    /// Time of its end; none if it has not ended.
    pub ended_ns: Option<Nanos>,
    /// Why it ended early, if it did.
    pub failed: Option<String>,
    /// CPU time of its own work.
    pub user_ns: Nanos,
    /// CPU time of the kernel's work for it.
    pub system_ns: Nanos,
    /// Time that it waited for I/O.
    pub iowait_ns: Nanos,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The scenario.
    pub scenario: String,
    /// The machine.
    pub machine: String,
    /// The kernel.
    pub kernel: String,
    /// Changes of the kernel by the scenario or its user, each as `KEY = VALUE`.
    pub kernel_changes: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// Hash of the calibration, in hexadecimal.
    pub calibration: String,
    /// Why the run ended: `finished`, `time-limit`, `stopped` or `stuck`.
    pub ended: &'static str,
    /// Virtual time at its end.
    pub elapsed_ns: Nanos,
    /// The zones of its memory.
    pub zones: Vec<ZoneSize>,
    /// The tasks, in the order of the scenario. What they forked is in theirs.
    pub tasks: Vec<TaskOutcome>,
    /// Memory at the end.
    pub memory: MemoryByUse,
    /// All CPUs' time.
    pub cpu: CpuUse,
    /// CPU time of kswapd.
    pub kswapd_cpu_ns: Nanos,
    /// Events since the start, with the names of `/proc/vmstat` where there is one.
    pub counters: BTreeMap<&'static str, u64>,
    /// Counters of the devices.
    pub devices: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Slab caches at the end.
    pub slabs: Vec<CacheView>,
    /// Allocations that failed, as the kernel reports them.
    pub alloc_failures: AllocFailures,
    /// The report of the programs.
    pub programs: ProgramReport,
    /// Samples.
    pub samples: Vec<Sample>,
    /// A digest of which task ran when and where, and of the counters: equal runs have equal digests.
    pub trace_hash: String,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time.
    pub now: Nanos,
    /// Virtual time at which it ends at the latest.
    pub limit: Nanos,
    /// Tasks that it waits for.
    pub awaited: usize,
}

/// A scenario that is being run.
pub struct Run {
    /// The machine.
    pub engine: Engine,
    workload: Rc<Workload>,
    outcome: Outcome,
    tasks: Rc<RefCell<Vec<TaskOutcome>>>,
    sample: Nanos,
    limit: Nanos,
}

impl Scenario {
    /// The machine with its file systems mounted and the tasks about to start.
    ///
    /// # Errors
    /// If the machine's memory cannot be managed, or files do not fit where they should be.
    pub fn start(
        &self,
        machine: &Machine,
        kernel: &Kernel,
        calibration: &Calibration,
        seed: u64,
    ) -> Result<Run, ScenarioError> {
        let config = machine.config(kernel, calibration, seed);
        let mut engine =
            Engine::new(&config).map_err(|e| self.error_at(&machine.memory, e.to_string()))?;
        let sim = engine.sim();
        machine.mount(sim);
        sim.start_daemons();
        let tasks = Rc::new(RefCell::new(Vec::new()));
        let workload = Workload::set_up(&self.file.initial_files(), self.file.steps(), sim, seed)
            .map_err(|e| self.wrong(e))?;
        start_tasks(sim, &self.file, &workload, &tasks);
        let outcome = Outcome {
            scenario: self.file.name.get_ref().clone(),
            machine: machine.name.get_ref().clone(),
            kernel: kernel.name.clone(),
            kernel_changes: kernel.changes.clone(),
            seed,
            calibration: format!("{:016x}", calibration.hash),
            ended: "",
            elapsed_ns: 0,
            zones: zones(sim),
            tasks: Vec::new(),
            memory: MemoryByUse::default(),
            cpu: CpuUse::default(),
            kswapd_cpu_ns: 0,
            counters: BTreeMap::new(),
            devices: BTreeMap::new(),
            slabs: Vec::new(),
            alloc_failures: AllocFailures::default(),
            programs: ProgramReport::default(),
            samples: Vec::new(),
            trace_hash: String::new(),
        };
        Ok(Run {
            engine,
            workload,
            outcome,
            tasks,
            sample: self.file.sample.get_ref().0,
            limit: self.file.limit.get_ref().0,
        })
    }
}

fn start_tasks(
    sim: &mut Sim,
    file: &File,
    workload: &Rc<Workload>,
    outcomes: &Rc<RefCell<Vec<TaskOutcome>>>,
) {
    for entry in &file.tasks {
        let program = entry.program.get_ref().as_str();
        let name: Rc<str> = entry.title().into();
        for number in 0..*entry.count.get_ref() {
            let mut spec = Spec::new(name.clone());
            if entry.priority == Priority::Realtime {
                spec = spec.priority(crate::Priority::Realtime);
            }
            spec.cpu = entry.cpu.as_ref().map(|c| *c.get_ref());
            if entry.background {
                spec = spec.background();
            }
            let role = Role {
                name: name.clone(),
                number,
            };
            let (steps, workload) = (file.programs[program].steps.clone(), workload.clone());
            let index = outcomes.borrow().len();
            outcomes.borrow_mut().push(TaskOutcome {
                name: name.to_string(),
                number,
                started_ns: None,
                ended_ns: None,
                failed: None,
                user_ns: 0,
                system_ns: 0,
                iowait_ns: 0,
            });
            let (at, results) = (entry.at.0, outcomes.clone());
            sim.spawn(spec, move |cx| {
                if at > 0 {
                    cx.sleep(at);
                }
                results.borrow_mut()[index].started_ns = Some(cx.now());
                let failed = Actor::perform(cx, &workload, role, &steps).err();
                let (now, times) = (cx.now(), cx.times());
                let done = &mut results.borrow_mut()[index];
                let TaskTimes {
                    user,
                    system,
                    iowait,
                } = times;
                done.ended_ns = Some(now);
                done.failed = failed.map(|f| f.to_string());
                (done.user_ns, done.system_ns, done.iowait_ns) = (user, system, iowait);
            });
        }
    }
}

impl Run {
    /// Runs to the end; calls `progress` at each sample.
    pub fn finish(mut self, mut progress: impl FnMut(Progress)) -> Outcome {
        let mut next = 0;
        loop {
            self.outcome.samples.push(Sample::of(self.engine.sim()));
            next = self.limit.min(next + self.sample);
            let ended = self.engine.run(next);
            let now = self.engine.sim().now();
            if ended != Ended::TimeLimit || now >= self.limit {
                return self.end(ended);
            }
            progress(Progress {
                now,
                limit: self.limit,
                awaited: self.engine.sim().awaited_tasks(),
            });
        }
    }

    fn end(mut self, ended: Ended) -> Outcome {
        let sim = self.engine.sim();
        let mut o = self.outcome;
        o.ended = match ended {
            Ended::Finished => "finished",
            Ended::TimeLimit => "time-limit",
            Ended::Stopped => "stopped",
            Ended::Stuck => "stuck",
        };
        o.elapsed_ns = sim.now();
        o.tasks = self.tasks.borrow().clone();
        o.memory = MemoryByUse::of(sim);
        o.cpu = cpu_use(sim);
        o.kswapd_cpu_ns = kswapd_cpu(sim);
        o.counters = sim.vm_counters();
        o.slabs = sim.kernel_ref().kmem.views().collect();
        o.alloc_failures = sim.world_ref().alloc_failures().clone();
        o.programs = self.workload.report();
        o.devices = sim.block.all_stats();
        o.samples.push(Sample::of(sim));
        let seen = o
            .counters
            .values()
            .chain([&o.elapsed_ns, &o.cpu.user_ns, &o.cpu.system_ns]);
        let hash = seen.fold(sim.trace_hash(), |hash, &n| digest(hash, n));
        o.trace_hash = format!("{hash:016x}");
        o
    }
}
