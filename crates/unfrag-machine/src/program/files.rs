//! Steps on files.

use super::actor::{Actor, Halt};
use super::spec::{Churn, CopyTree, Create, FileRef, Pick, Read, ReadTree, Unpack, Write};
use super::workload::LiveTree;
use crate::Cx;
use crate::engine::Nanos;
use crate::error::Fail;
use crate::fs::{FsId, NodeId, Readahead};
use crate::kmem::caches::CacheKind;
use std::iter::once;

/// Pages between two pieces of a program's own work.
const PIECE: u32 = 32;

impl Actor {
    fn fs(&self, cx: &mut Cx, name: &str) -> FsId {
        cx.with(|sim| sim.checked_file_system(name))
    }

    /// The files that a step refers to; none if the tree or file does not exist.
    pub(super) fn pick(&mut self, which: &FileRef) -> Vec<NodeId> {
        let of = match which {
            FileRef::Name(name) => return self.file(name).into_iter().collect(),
            FileRef::Of(of) => of,
        };
        let n = of.files.draw(&mut self.rng);
        let name = self.name(&of.tree);
        let mut state = self.workload.state();
        let Some(live) = state.trees.get_mut(&name) else {
            drop(state);
            self.workload.note_missing("tree", &name);
            return vec![];
        };
        let len = live.tree.files.len();
        if len == 0 {
            return vec![];
        }
        let rng = &mut self.rng;
        let mut one = || match of.pick {
            Pick::Next => {
                live.next += 1;
                (live.next - 1) % len
            }
            Pick::Random => rng.below(len as u64) as usize,
            Pick::Popular => rng.below((len as u64).div_ceil(10)) as usize,
        };
        let picks: Vec<_> = (0..n).map(|_| one()).collect();
        picks.into_iter().map(|i| live.tree.files[i]).collect()
    }

    pub(super) fn read(&mut self, cx: &mut Cx, r: &Read) -> Result<(), Halt> {
        for file in self.pick(&r.file) {
            let size = r.size.as_ref().map(|s| s.pages(&mut self.rng));
            let at = r.at.0 as u32 / 4096;
            if r.mapped {
                self.read_mapped(cx, file, at, size, r.each.0)?;
            } else {
                self.read_called(cx, file, at, size, r.each.0)?;
            }
        }
        Ok(())
    }

    pub(super) fn read_called(
        &mut self,
        cx: &mut Cx,
        file: NodeId,
        at: u32,
        size: Option<u32>,
        each: Nanos,
    ) -> Result<(), Fail> {
        let who = self.who;
        cx.opened(who, file, |cx| {
            let len = cx.with(|sim| sim.kernel_ref().vfs.node(file).pages);
            let end = size.map_or(len, |s| (at + s).min(len));
            let mut ra = Readahead::default();
            let mut i = at;
            while i < end {
                let n = PIECE.min(end - i);
                cx.read_file(who, file, i, n, &mut ra)?;
                cx.spend(each * Nanos::from(n));
                i += n;
            }
            Ok(())
        })
    }

    fn read_mapped(
        &mut self,
        cx: &mut Cx,
        file: NodeId,
        at: u32,
        size: Option<u32>,
        each: Nanos,
    ) -> Result<(), Fail> {
        let (who, proc) = (self.who, self.proc);
        cx.opened(who, file, |cx| {
            let len = cx.with(|sim| sim.kernel_ref().vfs.node(file).pages);
            let end = size.map_or(len, |s| (at + s).min(len));
            let vma = cx.kmem_kind(who, CacheKind::VmAreaStruct)?;
            let area = cx.with(|sim| sim.map_file_area(proc, file, len, false, Some(vma)));
            let done = cx.touch(proc, area, &mut once(at..end), false, each);
            cx.unmap_area(proc, area);
            done
        })
    }

    pub(super) fn write(&mut self, cx: &mut Cx, w: &Write) -> Result<(), Halt> {
        let Some(file) = self.file(&w.file) else {
            return Ok(());
        };
        let pages = w.size.pages(&mut self.rng);
        self.write_file(cx, file, pages, w.append, w.each.0)?;
        if w.sync {
            let who = self.who;
            cx.opened(who, file, |cx| {
                cx.fsync(who, file);
                Ok(())
            })?;
        }
        Ok(())
    }

    pub(super) fn write_file(
        &mut self,
        cx: &mut Cx,
        file: NodeId,
        pages: u32,
        append: bool,
        each: Nanos,
    ) -> Result<(), Fail> {
        let who = self.who;
        cx.opened(who, file, |cx| {
            let len = cx.with(|sim| sim.kernel_ref().vfs.node(file).pages);
            let from = if append { len } else { 0 };
            let mut i = 0;
            while i < pages {
                let n = PIECE.min(pages - i);
                cx.spend(each * Nanos::from(n));
                cx.write_file(who, file, from + i, n)?;
                i += n;
            }
            Ok(())
        })
    }

    pub(super) fn create(&mut self, cx: &mut Cx, c: &Create) -> Result<(), Halt> {
        let tree = c.tree.as_ref().map(|t| self.name(t));
        let dir = match (&tree, &c.on) {
            (Some(name), _) => {
                let state = self.workload.state();
                let Some(live) = state.trees.get(name) else {
                    drop(state);
                    self.workload.note_missing("tree", name);
                    return Ok(());
                };
                let dirs = &live.tree.dirs;
                let Some(&dir) = dirs.get(self.rng.below(dirs.len().max(1) as u64) as usize) else {
                    return Ok(());
                };
                dir
            }
            (None, Some(on)) => {
                let fs = self.fs(cx, on);
                cx.with(|sim| sim.root(fs))
            }
            (None, None) => return Ok(()),
        };
        let file = self.new_file(cx, dir)?;
        let pages = c.size.pages(&mut self.rng);
        let written = self.write_file(cx, file, pages, false, c.each.0);
        {
            let mut state = self.workload.state();
            if let Some(name) = &c.name {
                let name = self.name(name);
                state.files.insert(name, file);
            }
            if let Some(live) = tree.and_then(|t| state.trees.get_mut(&t)) {
                live.made.push(file);
            }
        }
        Ok(written?)
    }

    fn new_file(&mut self, cx: &mut Cx, dir: NodeId) -> Result<NodeId, Fail> {
        let who = self.who;
        cx.lookup(who, dir)?;
        let made = cx.create_node(who, dir, false);
        cx.with(|sim| {
            sim.unpin(dir);
            if let Ok(node) = made {
                sim.unpin(node);
            }
        });
        made
    }

    pub(super) fn unlink(&mut self, cx: &mut Cx, name: &str) {
        let name = self.name(name);
        let gone = self.workload.state().files.remove(&name);
        match gone {
            Some(file) => {
                cx.remove_node(self.who, file);
                cx.pay();
            }
            None => self.workload.note_missing("file", &name),
        }
    }

    pub(super) fn churn(&mut self, cx: &mut Cx, c: &Churn) -> Result<(), Halt> {
        let fs = self.fs(cx, &c.on);
        let root = cx.with(|sim| sim.root(fs));
        for _ in 0..c.files.draw(&mut self.rng) {
            let file = self.new_file(cx, root)?;
            let pages = c.size.pages(&mut self.rng);
            let done = self.write_file(cx, file, pages, false, 0);
            cx.remove_node(self.who, file);
            done?;
        }
        cx.pay();
        Ok(())
    }

    pub(super) fn unpack(&mut self, cx: &mut Cx, u: &Unpack) -> Result<(), Halt> {
        let fs = self.fs(cx, &u.on);
        let root = cx.with(|sim| sim.root(fs));
        let workload = self.workload.clone();
        let Some(plan) = workload.plans.get(&u.like) else {
            panic!("the scenario was not checked: no tree `{}`", u.like)
        };
        let mut tree = Default::default();
        let archive = u.archive.as_ref().and_then(|name| self.file(name));
        let (who, each) = (self.who, u.each.0);
        let done = match archive {
            None => cx.unpack(who, root, plan, each, &mut tree, |_, _| Ok(())),
            // The archive is read in proportion to what is unpacked.
            Some(file) => cx.opened(who, file, |cx| {
                let len = cx.with(|sim| sim.kernel_ref().vfs.node(file).pages);
                let (total, mut ra, mut at) = (plan.pages().max(1), Readahead::default(), 0);
                cx.unpack(who, root, plan, each, &mut tree, |cx, wanted| {
                    let to = (u64::from(len) * wanted).div_ceil(total) as u32;
                    let from = std::mem::replace(&mut at, to);
                    if from == to {
                        return Ok(());
                    }
                    cx.read_file(who, file, from, to - from, &mut ra)
                })
            }),
        };
        self.add_tree(&u.name, tree);
        Ok(done?)
    }

    fn add_tree(&mut self, name: &str, tree: crate::fs::tree::Tree) {
        let name = self.name(name);
        let live = LiveTree {
            tree,
            ..LiveTree::default()
        };
        self.workload.state().trees.insert(name, live);
    }

    fn tree(&self, name: &str) -> Option<crate::fs::tree::Tree> {
        let name = self.name(name);
        let tree = self
            .workload
            .state()
            .trees
            .get(&name)
            .map(|t| t.tree.clone());
        if tree.is_none() {
            self.workload.note_missing("tree", &name);
        }
        tree
    }

    /// A file by name.
    pub(super) fn file(&self, name: &str) -> Option<NodeId> {
        let name = self.name(name);
        let file = self.workload.file(&name);
        if file.is_none() {
            self.workload.note_missing("file", &name);
        }
        file
    }

    pub(super) fn copy_tree(&mut self, cx: &mut Cx, c: &CopyTree) -> Result<(), Halt> {
        let Some(from) = self.tree(&c.from) else {
            return Ok(());
        };
        let fs = self.fs(cx, &c.on);
        let root = cx.with(|sim| sim.root(fs));
        let mut to = Default::default();
        let done = cx.copy_tree(self.who, &from, root, &mut to);
        self.add_tree(&c.name, to);
        Ok(done?)
    }

    pub(super) fn remove_tree(&mut self, cx: &mut Cx, name: &str) {
        let name = self.name(name);
        let gone = self.workload.state().trees.remove(&name);
        match gone {
            Some(live) => {
                for file in live.made {
                    cx.remove_node(self.who, file);
                }
                cx.remove_tree(self.who, live.tree);
            }
            None => self.workload.note_missing("tree", &name),
        }
    }

    pub(super) fn walk(&mut self, cx: &mut Cx, name: &str) -> Result<(), Halt> {
        match self.tree(name) {
            Some(tree) => Ok(cx.walk_tree(self.who, &tree)?),
            None => Ok(()),
        }
    }

    pub(super) fn read_tree(&mut self, cx: &mut Cx, r: &ReadTree) -> Result<(), Halt> {
        let files = self.tree(&r.tree).map_or(vec![], |t| t.files);
        for file in files {
            self.read_called(cx, file, 0, None, r.each.0)?;
        }
        Ok(())
    }
}
