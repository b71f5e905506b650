//! Steps that fork, execute and end processes.

use super::actor::{Actor, Halt};
use super::scattered::Scattered;
use super::spec::{Fork, Parallel, Steps};
use super::workload::{Image, program_channel};
use crate::engine::Rng;
use crate::error::Fail;
use crate::kmem::caches::CacheKind;
use crate::mm::process::ProcId;
use crate::{Cx, Priority, Spec, TaskId};
use std::cell::Cell;
use std::iter::once;
use std::rc::Rc;

/// Pages of a stack that a new program writes: arguments, environment, first frames.
const STACK_USED: u32 = 3;
/// Pages that a stack may have.
const STACK: u32 = 64;

impl Actor {
    /// Forks a child that runs steps; `on_end` is called after its end, if the fork succeeded. The caller has to
    /// touch its stack next.
    fn child(
        &mut self,
        cx: &mut Cx,
        steps: Steps,
        on_end: impl FnOnce(&mut Cx) + 'static,
    ) -> Result<TaskId, Fail> {
        let name = self.role.name.clone();
        let proc = cx.fork_process(self.proc, &name)?;
        let (workload, role, areas) =
            (self.workload.clone(), self.role.clone(), self.areas.clone());
        let rng = Rng::named(self.rng.bits(), "child");
        let mut spec = Spec::new(name);
        if self.who.realtime {
            spec = spec.priority(Priority::Realtime);
        }
        Ok(cx.spawn(spec, move |cx| {
            // The workload has counted the failure.
            let _ = Actor::live(cx, &workload, role, proc, rng, areas, &steps);
            on_end(cx);
        }))
    }

    pub(super) fn fork(&mut self, cx: &mut Cx, f: &Fork) -> Result<(), Halt> {
        let steps = self.program(&f.program);
        for _ in 0..f.count.draw(&mut self.rng) {
            let task = self.child(cx, steps.clone(), |_| ())?;
            let stack = self.use_stack(cx);
            if f.wait {
                cx.join(task);
            } else {
                self.children.push(task);
            }
            stack?;
            if cx.killed() {
                return Err(Halt::Failed(Fail::Killed));
            }
        }
        Ok(())
    }

    pub(super) fn wait(&mut self, cx: &mut Cx) -> Result<(), Halt> {
        for task in std::mem::take(&mut self.children) {
            cx.join(task);
            if cx.killed() {
                return Err(Halt::Failed(Fail::Killed));
            }
        }
        Ok(())
    }

    pub(super) fn parallel(&mut self, cx: &mut Cx, p: &Parallel) -> Result<(), Halt> {
        let steps = self.program(&p.program);
        let channel = program_channel(self.workload.state().channel());
        let running = Rc::new(Cell::new(0));
        let mut left = p.jobs.draw(&mut self.rng);
        loop {
            while left > 0 && running.get() < p.at_most.max(1) {
                left -= 1;
                running.set(running.get() + 1);
                let ends = running.clone();
                let started = self.child(cx, steps.clone(), move |cx| {
                    ends.set(ends.get() - 1);
                    cx.with(|sim| sim.wake(channel));
                });
                if let Err(e) = started {
                    running.set(running.get() - 1);
                    return Err(e.into());
                }
                self.use_stack(cx)?;
            }
            if cx.killed() {
                return Err(Halt::Failed(Fail::Killed));
            }
            if left == 0 && running.get() == 0 {
                return Ok(());
            }
            if running.get() >= p.at_most.max(1) || left == 0 {
                cx.wait_killable(channel, None);
            }
        }
    }

    pub(super) fn kill(&mut self, cx: &mut Cx, name: &str) {
        let name = self.name(name);
        let group = self.workload.state().groups.get(name.as_str()).cloned();
        for task in group.unwrap_or_default() {
            cx.kill(task);
        }
    }

    /// Executes an image.
    pub(super) fn exec(&mut self, cx: &mut Cx, name: &str) -> Result<(), Halt> {
        let workload = self.workload.clone();
        let Some(image) = workload.images.get(name) else {
            panic!("the scenario was not checked: no image `{name}`")
        };
        let libraries = image.libraries.iter().map(|l| &workload.images[l]);
        let texts = std::iter::once(image).chain(libraries);
        // The image's name is in a buffer of the kernel until it is loaded.
        let buffer = cx.kmem_kind(self.who, CacheKind::NamesCache)?;
        let loaded = self.load(cx, name, image, texts.clone());
        cx.with(|sim| sim.kmem_free(buffer));
        let areas = loaded?;
        let data = self.small_area(cx, "data", image.data.max(1))?;
        cx.touch(self.proc, data, &mut once(0..image.data), true, 0)?;
        for (of, area) in texts.zip(areas) {
            let used = Scattered::new(of.used);
            let mut touched = (0..of.text).filter(|&i| used.has(i)).map(|i| i..i + 1);
            cx.touch(self.proc, area, &mut touched, false, 0)?;
        }
        Ok(())
    }

    /// Loads an image: maps its text and its libraries' texts, and writes its stack. Returns the areas of the
    /// texts.
    fn load<'a>(
        &mut self,
        cx: &mut Cx,
        name: &str,
        image: &Image,
        texts: impl Iterator<Item = &'a Image>,
    ) -> Result<Vec<u16>, Halt> {
        let (who, proc) = (self.who, self.proc);
        // The file is opened and its head read before the old memory goes.
        cx.opened(who, image.node, |cx| {
            cx.read_file(who, image.node, 0, 1, &mut Default::default())
        })?;
        cx.exec_process(proc, &name.into())?;
        self.areas.clear();
        self.parts.clear();
        let mut areas = vec![];
        for i in texts {
            cx.lookup(who, i.node)?;
            let mapped = cx
                .kmem_kind(who, CacheKind::VmAreaStruct)
                .map(|vma| cx.with(|sim| sim.map_file_area(proc, i.node, i.text, true, Some(vma))));
            cx.with(|sim| sim.unpin(i.node));
            areas.push(mapped?);
        }
        self.more_areas(cx, proc, image.areas)?;
        let stack = self.small_area(cx, "stack", STACK)?;
        cx.touch(proc, stack, &mut once(STACK - STACK_USED..STACK), true, 0)?;
        Ok(areas)
    }

    fn small_area(&mut self, cx: &mut Cx, name: &str, pages: u32) -> Result<u16, Fail> {
        let vma = cx.kmem_kind(self.who, CacheKind::VmAreaStruct)?;
        let proc = self.proc;
        let area = cx.with(|sim| sim.map_anon(proc, pages, false, Some(vma)));
        self.areas.insert(name.to_owned(), area);
        Ok(area)
    }

    /// After a fork both sides write to their stacks, so the page in use is copied.
    pub(super) fn use_stack(&mut self, cx: &mut Cx) -> Result<(), Fail> {
        match self.areas.get("stack") {
            Some(&stack) => cx.touch(self.proc, stack, &mut once(STACK - 1..STACK), true, 0),
            None => Ok(()),
        }
    }

    /// Adds areas that consist of their `vm_area_struct` alone.
    fn more_areas(&mut self, cx: &mut Cx, proc: ProcId, n: u32) -> Result<(), Fail> {
        for _ in 0..n {
            let vma = cx.kmem_kind(self.who, CacheKind::VmAreaStruct)?;
            cx.with(|sim| sim.kernel().procs.get_mut(proc).vmas.push(vma));
        }
        Ok(())
    }
}
