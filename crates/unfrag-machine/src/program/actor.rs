//! A process that runs steps.

use super::idle_rounds::IdleRounds;
use super::report::Line;
use super::spec::{Barrier, Repeat, Step, Steps};
use super::workload::{BarrierState, Workload, program_channel};
use crate::engine::{Nanos, Rng};
use crate::error::Fail;
use crate::kernel::mm::Who;
use crate::kmem::Obj;
use crate::mm::process::ProcId;
use crate::{Cx, Priority};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The identity of a process in its scenario.
#[derive(Clone, Debug)]
pub struct Role {
    /// Name of its task.
    pub name: Rc<str>,
    /// Number of its task among those of the name.
    pub number: u32,
}

/// Why steps ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// The step `exit`.
    Exit,
    /// A failure, or a kill.
    Failed(Fail),
}

impl From<Fail> for Halt {
    fn from(f: Fail) -> Halt {
        Halt::Failed(f)
    }
}

/// A process that runs steps.
pub struct Actor {
    pub(super) workload: Rc<Workload>,
    pub(super) role: Role,
    pub(super) proc: ProcId,
    pub(super) who: Who,
    pub(super) rng: Rng,
    pub(super) areas: BTreeMap<String, u16>,
    /// Start of the next part, for areas that are touched part by part.
    pub(super) parts: BTreeMap<u16, u32>,
    pub(super) children: Vec<crate::TaskId>,
    /// Objects kept, by name.
    pub(super) kept: BTreeMap<String, Vec<Obj>>,
    last_line: Nanos,
}

impl Actor {
    /// Runs a task of a scenario, from the creation of its process to its end.
    ///
    /// # Errors
    /// Why it ended early; the workload has counted the failure.
    pub fn perform(
        cx: &mut Cx,
        workload: &Rc<Workload>,
        role: Role,
        steps: &[Step],
    ) -> Result<(), Fail> {
        let made = cx.create_process(Who::KERNEL, &role.name);
        let proc = made.inspect_err(|e| workload.note_failure(*e))?;
        let rng = Rng::named(workload.seed, &format!("{} {}", role.name, role.number));
        Actor::live(cx, workload, role, proc, rng, BTreeMap::new(), steps)
    }

    /// Runs steps in a process, and ends it.
    ///
    /// # Errors
    /// As [`perform`](Actor::perform).
    pub(super) fn live(
        cx: &mut Cx,
        workload: &Rc<Workload>,
        role: Role,
        proc: ProcId,
        rng: Rng,
        areas: BTreeMap<String, u16>,
        steps: &[Step],
    ) -> Result<(), Fail> {
        let task = cx.task_id();
        let realtime = cx.with(|sim| sim.priority(task)) == Some(Priority::Realtime);
        cx.with(|sim| sim.kernel().procs.get_mut(proc).task = Some(task));
        {
            let mut state = workload.state();
            state.report.processes += 1;
            state
                .groups
                .entry(role.name.clone())
                .or_default()
                .push(task);
        }
        let mut actor = Actor {
            workload: workload.clone(),
            role,
            proc,
            who: Who {
                realtime,
                ..Who::process(proc)
            },
            rng,
            areas,
            parts: BTreeMap::new(),
            children: vec![],
            kept: BTreeMap::new(),
            last_line: cx.now(),
        };
        let begun = actor.use_stack(cx).map_err(Halt::Failed);
        let done = match begun.and_then(|()| actor.run(cx, steps)) {
            Ok(()) | Err(Halt::Exit) => Ok(()),
            Err(Halt::Failed(e)) => {
                workload.note_failure(e);
                Err(e)
            }
        };
        for objs in std::mem::take(&mut actor.kept).into_values() {
            actor.free_objects(cx, objs);
        }
        cx.destroy_process(proc);
        let mut state = workload.state();
        if let Some(group) = state.groups.get_mut(&actor.role.name) {
            group.retain(|t| *t != task);
        }
        drop(state);
        done
    }

    /// A name with the task's number in place of `{number}`.
    pub(super) fn name(&self, pattern: &str) -> String {
        pattern.replace("{number}", &self.role.number.to_string())
    }

    /// Runs steps one after the other.
    pub(super) fn run(&mut self, cx: &mut Cx, steps: &[Step]) -> Result<(), Halt> {
        for step in steps {
            self.step(cx, step)?;
            if cx.killed() {
                return Err(Halt::Failed(Fail::Killed));
            }
        }
        Ok(())
    }

    fn step(&mut self, cx: &mut Cx, step: &Step) -> Result<(), Halt> {
        match step {
            Step::Compute(t) => cx.spend(t.draw(&mut self.rng)),
            Step::Sleep(t) => {
                cx.sleep(t.draw(&mut self.rng));
            }
            Step::Grow(g) => self.grow(cx, g)?,
            Step::Touch(t) => self.touch(cx, t)?,
            Step::Unmap(area) => self.unmap(cx, area),
            Step::Discard(d) => self.discard(cx, d)?,
            Step::Recorded(r) => self.recorded(cx, r)?,
            Step::Read(r) => self.read(cx, r)?,
            Step::Write(w) => self.write(cx, w)?,
            Step::Create(c) => self.create(cx, c)?,
            Step::Unlink(name) => self.unlink(cx, name),
            Step::Churn(c) => self.churn(cx, c)?,
            Step::Unpack(u) => self.unpack(cx, u)?,
            Step::CopyTree(c) => self.copy_tree(cx, c)?,
            Step::RemoveTree(name) => self.remove_tree(cx, name),
            Step::Walk(name) => self.walk(cx, name)?,
            Step::ReadTree(r) => self.read_tree(cx, r)?,
            Step::Fork(f) => self.fork(cx, f)?,
            Step::Exec(image) => self.exec(cx, image)?,
            Step::Wait => self.wait(cx)?,
            Step::Exit => return Err(Halt::Exit),
            Step::Kmalloc(k) => self.kmalloc(cx, k)?,
            Step::Kfree(name) => {
                let objs = self.kept.remove(name).unwrap_or_default();
                self.free_objects(cx, objs);
            }
            Step::Barrier(b) => self.meet(cx, b)?,
            Step::Repeat(r) => self.repeat(cx, r)?,
            Step::Parallel(p) => self.parallel(cx, p)?,
            Step::Line(text) => self.line(cx, text),
            Step::HighOrder(h) => self.high_order(cx, h)?,
            Step::Receive(r) => self.receive(cx, r)?,
            Step::Record(name) => self.record(cx, name),
            Step::Set(flag) => {
                let flag = self.name(flag);
                self.workload.state().flags.insert(flag);
            }
            Step::Kill(name) => self.kill(cx, name),
            Step::Sync => cx.sync_all(),
            Step::CompactMemory => cx.compact_memory(self.who),
            Step::Unkillable => {
                let proc = self.proc;
                cx.with(|sim| sim.kernel().procs.get_mut(proc).unkillable = true);
            }
        }
        Ok(())
    }

    fn repeat(&mut self, cx: &mut Cx, r: &Repeat) -> Result<(), Halt> {
        let times = match &r.times {
            Some(t) => t.draw(&mut self.rng),
            None => u64::MAX,
        };
        let end = r.lasting.map(|t| cx.now() + t.0);
        let until = r.until.as_ref().map(|f| self.name(f));
        let mut idle_rounds = IdleRounds::default();
        for _ in 0..times {
            let over = end.is_some_and(|e| cx.now() >= e)
                || until
                    .as_ref()
                    .is_some_and(|f| self.workload.state().flags.contains(f));
            if over {
                break;
            }
            let before = cx.now();
            self.run(cx, &r.steps)?;
            if times == u64::MAX && cx.now() == before {
                // Steps without time would keep all other tasks from running.
                cx.spend_system(100);
                idle_rounds.spent(cx);
            } else {
                idle_rounds.round(cx, before);
            }
        }
        Ok(())
    }

    pub(super) fn line(&mut self, cx: &mut Cx, text: &str) {
        let now = cx.now();
        let line = Line {
            task: self.role.name.to_string(),
            number: self.role.number,
            text: text.to_owned(),
            at_ns: now,
            latency_ns: now - self.last_line,
        };
        self.last_line = now;
        self.workload.state().report.lines.push(line);
    }

    /// Waits at a barrier until all parties have arrived; the last one wakes the others.
    fn meet(&mut self, cx: &mut Cx, b: &Barrier) -> Result<(), Halt> {
        let name = self.name(&b.name);
        let (round, channel, complete) = {
            let mut state = self.workload.state();
            if !state.barriers.contains_key(&name) {
                let channel = state.channel();
                let m = BarrierState {
                    channel,
                    ..Default::default()
                };
                state.barriers.insert(name.clone(), m);
            }
            let Some(m) = state.barriers.get_mut(&name) else {
                unreachable!("it was put there a moment ago")
            };
            m.came += 1;
            let complete = m.came >= b.parties;
            let round = m.round;
            if complete {
                (m.came, m.round) = (0, m.round + 1);
            }
            (round, program_channel(m.channel), complete)
        };
        if complete {
            cx.with(|sim| sim.wake(channel));
            return Ok(());
        }
        while self.workload.state().barriers[&name].round == round {
            if cx.killed() {
                if let Some(m) = self.workload.state().barriers.get_mut(&name) {
                    m.came = m.came.saturating_sub(1);
                }
                return Err(Halt::Failed(Fail::Killed));
            }
            cx.wait_killable(channel, None);
        }
        Ok(())
    }

    /// The steps of a program.
    pub(super) fn program(&self, name: &str) -> Steps {
        match self.workload.programs.get(name) {
            Some(steps) => steps.clone(),
            None => panic!("the scenario was not checked: no program `{name}`"),
        }
    }
}

impl Workload {
    /// Counts a tree or file that a step needs and that does not exist.
    pub(super) fn note_missing(&self, what: &str, name: &str) {
        let failures = &mut self.state().report.failures;
        *failures.entry(format!("no {what} `{name}`")).or_default() += 1;
    }

    pub(super) fn note_failure(&self, fail: Fail) {
        *self
            .state()
            .report
            .failures
            .entry(fail.to_string())
            .or_default() += 1;
    }
}
