//! Trees of files: laid out before the run, created, read, copied, walked and deleted.

use crate::error::Fail;
use crate::fs::tree::{Tree, TreePlan};
use crate::fs::{FsId, NodeId, Readahead, Store};
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Sim};
use crate::kmem::caches::CacheKind;

impl Sim {
    /// Lays out a tree on disk before the run begins; nothing of it is in memory. Not possible on tmpfs, or on
    /// a loop device over it.
    ///
    /// # Errors
    /// [`Fail::NoSpace`].
    pub fn lay_out(&mut self, fs: FsId, plan: &TreePlan) -> Result<Tree, Fail> {
        let root = self.root(fs);
        if !self.is_on_disk(fs) {
            return Err(Fail::NoSpace);
        }
        let vfs = &mut self.kernel().vfs;
        let mut tree = Tree::default();
        for i in 0..=plan.parents.len() {
            let parent = match i {
                0 => root,
                i => tree.dirs[plan.parents[i - 1] as usize],
            };
            let dir = vfs.lay_node(parent, true, 1)?;
            tree.dirs.push(dir);
        }
        for &(dir, pages) in &plan.files {
            let dir = tree.dirs[dir as usize];
            tree.files.push(vfs.lay_node(dir, false, pages)?);
        }
        Ok(tree)
    }

    fn is_on_disk(&self, fs: FsId) -> bool {
        matches!(self.kernel_ref().vfs.system(fs.0).store, Store::Disk { .. })
    }

    /// Lays out a file on disk before the run begins.
    ///
    /// # Errors
    /// As [`lay_out`](Sim::lay_out).
    pub fn lay_file(&mut self, fs: FsId, pages: u32) -> Result<NodeId, Fail> {
        let root = self.root(fs);
        if !self.is_on_disk(fs) {
            return Err(Fail::NoSpace);
        }
        self.kernel().vfs.lay_node(root, false, pages)
    }
}

impl Cx<'_> {
    /// Creates a tree with its files' data (`tar x`): each file is created, written and closed.
    /// `compute` is the program's own work for each page, in nanoseconds. `source` is called with the number of
    /// pages needed so far, and reads the archive that far.
    ///
    /// # Errors
    /// As [`write_file`](Cx::write_file), or those of `source`; what was created so far is in `tree`.
    pub fn unpack(
        &mut self,
        who: Who,
        parent: NodeId,
        plan: &TreePlan,
        compute: u64,
        tree: &mut Tree,
        mut source: impl FnMut(&mut Self, u64) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        let mut made = tree.dirs.len();
        let mut wanted = 0;
        for &(dir, pages) in &plan.files {
            // Directories are created when they are first needed.
            while made <= dir as usize {
                let above = match made {
                    0 => parent,
                    i => tree.dirs[plan.parents[i - 1] as usize],
                };
                let node = self.make_entry(who, above, true)?;
                tree.dirs.push(node);
                made += 1;
            }
            wanted += u64::from(pages);
            source(self, wanted)?;
            self.spend(compute * u64::from(pages));
            let file = self.make_entry(who, tree.dirs[dir as usize], false)?;
            tree.files.push(file);
            self.write_opened(who, file, pages)?;
        }
        Ok(())
    }

    fn make_entry(&mut self, who: Who, dir: NodeId, is_dir: bool) -> Result<NodeId, Fail> {
        self.lookup(who, dir)?;
        let made = self.create_node(who, dir, is_dir);
        self.with(|sim| {
            sim.unpin(dir);
            if let Ok(node) = made {
                sim.unpin(node);
            }
        });
        made
    }

    fn write_opened(&mut self, who: Who, file: NodeId, pages: u32) -> Result<(), Fail> {
        self.opened(who, file, |cx| cx.write_file(who, file, 0, pages))
    }

    /// Runs `body` with a file open; a `filp` lives meanwhile.
    ///
    /// # Errors
    /// As [`lookup`](Cx::lookup), and what `body` answers.
    pub fn opened<T>(
        &mut self,
        who: Who,
        file: NodeId,
        body: impl FnOnce(&mut Self) -> Result<T, Fail>,
    ) -> Result<T, Fail> {
        self.lookup(who, file)?;
        let filp = match self.kmem_kind(who, CacheKind::Filp) {
            Ok(f) => f,
            Err(e) => {
                self.with(|sim| sim.unpin(file));
                return Err(e);
            }
        };
        let done = body(self);
        self.with(|sim| {
            sim.kmem_free_late(filp);
            sim.unpin(file);
        });
        self.pay_if_much();
        done
    }

    /// Opens a file and reads all of it.
    ///
    /// # Errors
    /// As [`read_file`](Cx::read_file).
    pub fn read_whole(&mut self, who: Who, file: NodeId) -> Result<(), Fail> {
        self.opened(who, file, |cx| {
            let pages = cx.with(|sim| sim.kernel_ref().vfs.node(file).pages);
            cx.read_file(who, file, 0, pages, &mut Readahead::default())
        })
    }

    /// Copies a tree file by file (`cp -r`).
    ///
    /// # Errors
    /// As [`read_file`](Cx::read_file) and [`write_file`](Cx::write_file); what was created so far is in
    /// `to`.
    pub fn copy_tree(
        &mut self,
        who: Who,
        from: &Tree,
        parent: NodeId,
        to: &mut Tree,
    ) -> Result<(), Fail> {
        let index = |nodes: &[NodeId]| {
            let mut map = std::collections::BTreeMap::new();
            for (i, n) in nodes.iter().enumerate() {
                map.insert(*n, i);
            }
            map
        };
        let dirs = index(&from.dirs);
        let parent_of =
            |cx: &mut Self, n: NodeId| cx.with(|sim| sim.kernel_ref().vfs.node(n).parent);
        for &dir in &from.dirs {
            self.lookup(who, dir)?;
            self.with(|sim| sim.unpin(dir));
            let above = parent_of(self, dir);
            let above = dirs.get(&above).map_or(parent, |&i| to.dirs[i]);
            let made = self.make_entry(who, above, true)?;
            to.dirs.push(made);
        }
        for &file in &from.files {
            self.read_whole(who, file)?;
            let pages = self.with(|sim| sim.kernel_ref().vfs.node(file).pages);
            let above = parent_of(self, file);
            let above = dirs.get(&above).map_or(parent, |&i| to.dirs[i]);
            let made = self.make_entry(who, above, false)?;
            to.files.push(made);
            self.write_opened(who, made, pages)?;
        }
        Ok(())
    }

    /// Looks at every file and directory of a tree (`updatedb`, `find`, `git status`).
    ///
    /// # Errors
    /// As [`lookup`](Cx::lookup).
    pub fn walk_tree(&mut self, who: Who, tree: &Tree) -> Result<(), Fail> {
        for &node in tree.dirs.iter().chain(&tree.files) {
            self.lookup(who, node)?;
            self.with(|sim| sim.unpin(node));
        }
        self.pay();
        Ok(())
    }

    /// Deletes a tree (`rm -r`).
    pub fn remove_tree(&mut self, who: Who, tree: Tree) {
        for &node in tree.files.iter().chain(tree.dirs.iter().rev()) {
            self.remove_node(who, node);
        }
        self.pay();
    }
}
