//! A process that runs steps.

use super::draw::Draw;
use super::jobs::Strewn;
use super::limits::MOST_AREA;
use super::spec::{Grow, Pattern, Repeat, Reuse, Step, Steps, Touch};
use super::stage::{Line, Stage, program_channel};
use crate::engine::{Nanos, Rng};
use crate::error::Fail;
use crate::kernel::mm::Who;
use crate::kmem::Obj;
use crate::kmem::caches::CacheKind;
use crate::mm::process::ProcId;
use crate::scenario::Percent;
use crate::{Cx, Priority};
use std::collections::BTreeMap;
use std::iter::once;
use std::rc::Rc;

/// Parts of a touch after each of which what was touched before is used again.
const PARTS: u32 = 20;
/// Pages that are hot.
const HOT: Percent = Percent::new(25).unwrap();

impl Reuse {
    /// Which of the first `used` pages after `from` are used again in a round; `into` has room for two
    /// more than them.
    fn pick(self, from: u32, used: u32, round: u32, into: &mut [u32]) -> &[u32] {
        let (all_hot, [others, hot]) = (Strewn::new(HOT), [self.others, self.hot].map(Strewn::new));
        let mut n = 0;
        for pair in 0..used.div_ceil(2) {
            let share = if all_hot.has(pair) { hot } else { others };
            for page in [2 * pair, 2 * pair + 1] {
                // Written in any case: to guess which are picked costs more.
                into[n] = from + page;
                n += usize::from(page < used && share.has(page.wrapping_add(round)));
            }
        }
        &into[..n]
    }
}

/// Rounds without time after which a repetition takes some, and more and more: the time limit of a run
/// would not end it otherwise.
const TIMELESS: u32 = 1000;

/// How many rounds of a repetition took no time, one after the other.
#[derive(Default)]
struct Patience(u32);

impl Patience {
    /// After a round that began then.
    fn round(&mut self, cx: &mut Cx, began: Nanos) {
        if cx.now() > began {
            self.0 = 0;
        } else {
            self.spent(cx);
        }
    }

    /// After a round that took no time.
    fn spent(&mut self, cx: &mut Cx) {
        self.0 = self.0.saturating_add(1);
        if self.0 > TIMELESS {
            cx.spend_system(100 << (self.0 - TIMELESS).min(14));
        }
    }
}

/// Who a process is in its scenario.
#[derive(Clone, Debug)]
pub struct Role {
    /// Name of its task.
    pub name: Rc<str>,
    /// Number of its task among those of the name.
    pub number: u32,
}

/// Why steps did not go on to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// The program said so.
    Exit,
    /// Something failed, or it was told to end.
    Failed(Fail),
}

impl From<Fail> for Halt {
    fn from(f: Fail) -> Halt {
        Halt::Failed(f)
    }
}

/// A process that runs steps.
pub struct Actor {
    pub(super) stage: Rc<Stage>,
    pub(super) role: Role,
    pub(super) proc: ProcId,
    pub(super) who: Who,
    pub(super) rng: Rng,
    pub(super) areas: BTreeMap<String, u16>,
    /// Where the next part begins of areas that are touched part by part.
    pub(super) parts: BTreeMap<u16, u32>,
    pub(super) children: Vec<crate::TaskId>,
    /// Objects kept, by name.
    pub(super) kept: BTreeMap<String, Vec<Obj>>,
    last_line: Nanos,
}

impl Actor {
    /// Runs a task of a scenario, from the making of its process to its end.
    ///
    /// # Errors
    /// Why it ended before its program did; the stage has noted that.
    pub fn perform(cx: &mut Cx, stage: &Rc<Stage>, role: Role, steps: &[Step]) -> Result<(), Fail> {
        let made = cx.create_process(Who::KERNEL, &role.name);
        let proc = made.inspect_err(|e| stage.note_failure(*e))?;
        let rng = Rng::named(stage.seed, &format!("{} {}", role.name, role.number));
        Actor::live(cx, stage, role, proc, rng, BTreeMap::new(), steps)
    }

    /// Runs steps in a process, and ends it.
    ///
    /// # Errors
    /// As [`perform`](Actor::perform).
    pub(super) fn live(
        cx: &mut Cx,
        stage: &Rc<Stage>,
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
            let mut state = stage.state();
            state.report.processes += 1;
            state
                .groups
                .entry(role.name.clone())
                .or_default()
                .push(task);
        }
        let mut actor = Actor {
            stage: stage.clone(),
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
                stage.note_failure(e);
                Err(e)
            }
        };
        for objs in std::mem::take(&mut actor.kept).into_values() {
            actor.free_objects(cx, objs);
        }
        cx.destroy_process(proc);
        let mut state = stage.state();
        if let Some(group) = state.groups.get_mut(&actor.role.name) {
            group.retain(|t| *t != task);
        }
        drop(state);
        done
    }

    /// A name with its task's number.
    pub(super) fn name(&self, pattern: &str) -> String {
        pattern.replace("{number}", &self.role.number.to_string())
    }

    /// Does steps one after the other.
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
                self.stage.state().flags.insert(flag);
            }
            Step::Kill(name) => self.kill(cx, name),
            Step::Sync => cx.sync_all(),
            Step::Unkillable => {
                let proc = self.proc;
                cx.with(|sim| sim.kernel().procs.get_mut(proc).unkillable = true);
            }
        }
        Ok(())
    }

    /// The area of a name, made if need be.
    fn area(&mut self, cx: &mut Cx, name: &str) -> Result<u16, Fail> {
        if let Some(&area) = self.areas.get(name) {
            return Ok(area);
        }
        let vma = cx.kmem_kind(self.who, CacheKind::VmAreaStruct)?;
        let proc = self.proc;
        let area = cx.with(|sim| sim.map_anon(proc, 0, true, Some(vma)));
        self.areas.insert(name.to_owned(), area);
        Ok(area)
    }

    fn grow(&mut self, cx: &mut Cx, g: &Grow) -> Result<(), Halt> {
        let pages = g.size.pages(&mut self.rng);
        self.grow_by(cx, &g.area, pages)
    }

    /// Makes an area longer, and the area if need be.
    pub(super) fn grow_by(&mut self, cx: &mut Cx, name: &str, pages: u32) -> Result<(), Halt> {
        let area = self.area(cx, name)?;
        let proc = self.proc;
        if u64::from(cx.with(|sim| sim.area_pages(proc, area))) + u64::from(pages) > MOST_AREA {
            return Err(Halt::Failed(Fail::NoMemory));
        }
        cx.with(|sim| {
            sim.grow_area(proc, area, pages);
            let kernel = sim.kernel();
            kernel.owe(kernel.config.costs.syscall);
        });
        cx.pay_if_much();
        Ok(())
    }

    /// Gives an area back, if it is there.
    pub(super) fn unmap(&mut self, cx: &mut Cx, name: &str) {
        if let Some(area) = self.areas.remove(name) {
            self.parts.remove(&area);
            cx.unmap_area(self.proc, area);
            cx.pay();
        }
    }

    /// Where the next part of an area begins that is touched part by part.
    fn next_part(&mut self, area: u16, pages: u32, len: u32) -> u32 {
        let begin = self.parts.entry(area).or_default();
        let from = if *begin + pages <= len { *begin } else { 0 };
        *begin = from + pages;
        from
    }

    fn touch(&mut self, cx: &mut Cx, t: &Touch) -> Result<(), Halt> {
        let Some(&area) = self.areas.get(&t.area) else {
            return Ok(());
        };
        let proc = self.proc;
        let len = cx.with(|sim| sim.area_pages(proc, area));
        let most = t.size.as_ref().map_or(len.into(), Draw::most);
        if most.min(len.into()) == 0 {
            return Ok(());
        }
        let mut patience = Patience::default();
        for _ in 0..t.times.draw(&mut self.rng) {
            let before = cx.now();
            let n = match &t.size {
                Some(size) => size.pages(&mut self.rng).min(len),
                None => len,
            };
            if n == 0 {
                continue;
            }
            let from = if t.next {
                self.next_part(area, n, len)
            } else {
                0
            };
            let rng = &mut self.rng;
            let each = t.each.0;
            match t.pattern {
                Pattern::Sequential => {
                    cx.touch(proc, area, &mut once(from..from + n), t.write, each)
                }
                Pattern::Random => {
                    let mut any = (0..n)
                        .map(|_| from + rng.below(n.into()) as u32)
                        .map(|i| i..i + 1);
                    cx.touch(proc, area, &mut any, t.write, each)
                }
                Pattern::Stride(by) => {
                    let mut all = (0..by)
                        .flat_map(|s| (s..n).step_by(by as usize))
                        .map(|i| from + i..from + i + 1);
                    cx.touch(proc, area, &mut all, t.write, each)
                }
                Pattern::Reuse(reuse) => {
                    let part = n.div_ceil(PARTS);
                    let mut again = vec![];
                    let nr_aged =
                        |cx: &mut Cx| cx.with(|sim| sim.manager_ref().inspect().nr_aged());
                    // The first `aging` pages may have lost their marks; to touch others changes nothing.
                    let (mut aging, mut before) = (0, nr_aged(cx));
                    (0..n).step_by(part as usize).try_for_each(|at| {
                        let used = (at + part).min(n);
                        cx.touch(proc, area, &mut once(from + at..from + used), t.write, each)?;
                        let now = nr_aged(cx);
                        if now != before {
                            (aging, before) = (used, now);
                            again.resize(used as usize + 2, 0);
                        }
                        let again = reuse.pick(from, aging, rng.bits() as u32, &mut again);
                        cx.touch_again(proc, area, again, t.write)
                    })
                }
            }?;
            if cx.killed() {
                return Err(Halt::Failed(Fail::Killed));
            }
            patience.round(cx, before);
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
        let mut patience = Patience::default();
        for _ in 0..times {
            let over = end.is_some_and(|e| cx.now() >= e)
                || until
                    .as_ref()
                    .is_some_and(|f| self.stage.state().flags.contains(f));
            if over {
                break;
            }
            let before = cx.now();
            self.run(cx, &r.steps)?;
            if times == u64::MAX && cx.now() == before {
                // Steps that take no time would never let the others end them.
                cx.spend_system(100);
                patience.spent(cx);
            } else {
                patience.round(cx, before);
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
        self.stage.state().report.lines.push(line);
    }

    /// Waits until all parties have come; the last one lets all go on.
    fn meet(&mut self, cx: &mut Cx, b: &super::spec::Barrier) -> Result<(), Halt> {
        let name = self.name(&b.name);
        let (round, channel, complete) = {
            let mut state = self.stage.state();
            if !state.meetings.contains_key(&name) {
                let channel = state.channel();
                let m = super::stage::Meeting {
                    channel,
                    ..Default::default()
                };
                state.meetings.insert(name.clone(), m);
            }
            let Some(m) = state.meetings.get_mut(&name) else {
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
        while self.stage.state().meetings[&name].round == round {
            if cx.killed() {
                if let Some(m) = self.stage.state().meetings.get_mut(&name) {
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
        match self.stage.programs.get(name) {
            Some(steps) => steps.clone(),
            None => panic!("the scenario was not checked: no program `{name}`"),
        }
    }
}

impl Stage {
    /// A tree or file that a step wants is not there (any more, or for this number).
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

#[cfg(test)]
mod unit {
    use super::Reuse;
    use crate::engine::Rng;
    use crate::scenario::Percent;

    #[test]
    fn hot_pages_are_used_again_in_most_rounds_and_others_now_and_then() {
        let reuse = Reuse {
            hot: Percent::new(75).unwrap(),
            others: Percent::new(10).unwrap(),
        };
        let mut rng = Rng::named(7, "again");
        let (mut rounds, mut room) = (vec![0; 4000], vec![0; 4002]);
        for _ in 0..100 {
            for &page in reuse.pick(10, 4000, rng.bits() as u32, &mut room) {
                rounds[page as usize - 10] += 1;
            }
        }
        let (hot, others): (Vec<u32>, Vec<u32>) = rounds.iter().partition(|n| **n > 40);
        assert!((900..1100).contains(&hot.len()), "{}", hot.len());
        let mean = |n: &[u32]| n.iter().sum::<u32>() as usize / n.len();
        assert!((72..=78).contains(&mean(&hot)) && (8..=12).contains(&mean(&others)));
    }
}
