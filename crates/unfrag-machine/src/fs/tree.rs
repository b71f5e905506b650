//! Trees of files: what a source tarball, a home directory or `/usr` is to memory, namely so many
//! directories and files of certain sizes.

use super::{FsId, NodeId, Readahead, Store};
use crate::Cx;
use crate::Sim;
use crate::engine::Rng;
use crate::mm::Fail;
use crate::mm::alloc::Who;

/// What a tree is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeShape {
    /// Directories, the topmost one included.
    pub dirs: u32,
    /// Files.
    pub files: u32,
    /// Sizes of files in pages, each with its share of the files.
    pub sizes: Vec<(u32, u32)>,
}

impl TreeShape {
    /// About what the sources of a kernel of 2008 are: 24,000 files in 1,500 directories, 330 MiB in
    /// pages, half of the files no larger than a page. Round numbers, ours; shares in thousandths.
    pub fn kernel_sources() -> TreeShape {
        TreeShape {
            dirs: 1_500,
            files: 24_000,
            sizes: vec![
                (1, 520),
                (2, 170),
                (3, 90),
                (4, 60),
                (6, 65),
                (9, 45),
                (14, 25),
                (22, 14),
                (40, 7),
                (80, 3),
                (200, 1),
            ],
        }
    }

    /// Pages that its files take on average, times 1000.
    pub fn mean_milli_pages(&self) -> u64 {
        let (sum, n) = self.sizes.iter().fold((0, 0), |(s, n), &(size, share)| {
            (s + u64::from(size) * u64::from(share), n + u64::from(share))
        });
        sum * 1000 / n.max(1)
    }

    /// The size of a file, by chance.
    fn size(&self, rng: &mut Rng) -> u32 {
        let all: u64 = self.sizes.iter().map(|s| u64::from(s.1)).sum();
        let mut at = rng.below(all.max(1));
        for &(size, share) in &self.sizes {
            if at < share.into() {
                return size;
            }
            at -= u64::from(share);
        }
        1
    }
}

/// A tree that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Its directories, parents before children.
    pub dirs: Vec<NodeId>,
    /// Its files, in the order of their directories.
    pub files: Vec<NodeId>,
}

/// A plan of a tree: for each directory its parent, for each file its directory and pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Parent of each directory but the first, by number.
    pub parents: Vec<u32>,
    /// Directory and size of each file.
    pub files: Vec<(u32, u32)>,
}

impl Plan {
    /// A tree of this shape: directories come as a walk in depth finds them, some six deep; files are
    /// spread evenly.
    pub fn draw(shape: &TreeShape, rng: &mut Rng) -> Plan {
        let dirs = shape.dirs.max(1);
        // From the last directory the walk goes up by the least of five draws.
        let mut path = vec![0];
        let parent = |i: u32| {
            let up = (0..5).map(|_| rng.below(path.len() as u64)).min();
            path.truncate(path.len() - up.unwrap_or(0) as usize);
            let parent = path[path.len() - 1];
            path.push(i);
            parent
        };
        let parents = (1..dirs).map(parent).collect();
        let files = (0..shape.files).map(|i| {
            let dir = (u64::from(i) * u64::from(dirs) / u64::from(shape.files)) as u32;
            (dir, shape.size(rng))
        });
        Plan {
            parents,
            files: files.collect(),
        }
    }

    /// Pages of all files.
    pub fn pages(&self) -> u64 {
        self.files.iter().map(|f| u64::from(f.1)).sum()
    }
}

impl Sim {
    /// A tree that is on disk before the run begins; nothing of it is in memory. On tmpfs, or on a loop
    /// device over it, where all is in memory, that cannot be.
    ///
    /// # Errors
    /// [`Fail::NoSpace`].
    pub fn lay_out(&mut self, fs: FsId, plan: &Plan) -> Result<Tree, Fail> {
        let root = self.root(fs);
        if !self.is_on_disk(fs) {
            return Err(Fail::NoSpace);
        }
        let vfs = &mut self.mem().vfs;
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
        matches!(self.mem_ref().vfs.system(fs.0).store, Store::Disk { .. })
    }

    /// A file that is on disk before the run begins.
    ///
    /// # Errors
    /// As [`lay_out`](Sim::lay_out).
    pub fn lay_file(&mut self, fs: FsId, pages: u32) -> Result<NodeId, Fail> {
        let root = self.root(fs);
        if !self.is_on_disk(fs) {
            return Err(Fail::NoSpace);
        }
        self.mem().vfs.lay_node(root, false, pages)
    }
}

impl super::Vfs {
    fn lay_node(&mut self, parent: NodeId, is_dir: bool, pages: u32) -> Result<NodeId, Fail> {
        let node = self.add_node(parent, is_dir);
        let need = self.node(node).position / super::lookup::ENTRIES_A_BLOCK + 1;
        if self.fill_blocks(parent, need).ok_or(Fail::NoSpace)? > 0 {
            self.note_written(parent);
        }
        self.give_blocks(node, pages).ok_or(Fail::NoSpace)?;
        if !is_dir {
            self.node_mut(node).pages = pages;
        }
        self.note_written(node);
        Ok(node)
    }

    /// What a node holds, and what is known of it, is on the device.
    fn note_written(&mut self, node: NodeId) {
        let n = self.node(node);
        let (fs, number, extents) = (n.fs, n.number, n.extents.clone());
        let blocks = &mut self.system_mut(fs).blocks;
        blocks.set_written(blocks.inode_block(number));
        for e in extents {
            for b in e.start..e.start + e.len {
                blocks.set_written(b);
            }
        }
    }
}

impl Cx<'_> {
    /// Creates a tree with its files' data (`tar x`): each file is created, written and closed.
    /// `compute` is the program's own work for each page, in nanoseconds; `source` brings what is
    /// needed for so many pages in all.
    ///
    /// # Errors
    /// As [`write_file`](Cx::write_file), or those of `source`; what was made so far is in `tree`.
    pub fn unpack(
        &mut self,
        who: Who,
        parent: NodeId,
        plan: &Plan,
        compute: u64,
        tree: &mut Tree,
        mut source: impl FnMut(&mut Self, u64) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        let mut made = tree.dirs.len();
        let mut wanted = 0;
        for &(dir, pages) in &plan.files {
            // Directories up to the one of this file, each when it is first needed.
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

    /// Opens a file, does something with it, and closes it: a `filp` lives meanwhile.
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
        let filp = match self.kmem_kind(who, crate::kmem::caches::Kind::Filp) {
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
            let pages = cx.with(|sim| sim.mem_ref().vfs.node(file).pages);
            cx.read_file(who, file, 0, pages, &mut Readahead::default())
        })
    }

    /// Copies a tree file by file (`cp -r`).
    ///
    /// # Errors
    /// As [`read_file`](Cx::read_file) and [`write_file`](Cx::write_file); what was made so far is in
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
        let parent_of = |cx: &mut Self, n: NodeId| cx.with(|sim| sim.mem_ref().vfs.node(n).parent);
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
            let pages = self.with(|sim| sim.mem_ref().vfs.node(file).pages);
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

#[cfg(test)]
mod shapes {
    use super::*;

    #[test]
    fn a_drawn_tree_has_the_shape_asked_for() {
        let shape = TreeShape::kernel_sources();
        let seed = 7;
        println!("seed {seed}");
        let plan = Plan::draw(&shape, &mut Rng::named(seed, "tree"));
        assert_eq!(plan.files.len(), 24_000);
        assert_eq!(plan.parents.len(), 1_499);
        assert!(
            plan.parents
                .iter()
                .enumerate()
                .all(|(i, p)| *p as usize <= i)
        );
        let mean = plan.pages() * 1000 / 24_000;
        let expected = shape.mean_milli_pages();
        assert!(
            mean.abs_diff(expected) < expected / 20,
            "{mean} against {expected}"
        );
        // 330 MiB, more or less.
        assert!((80_000..90_000).contains(&plan.pages()), "{}", plan.pages());
    }
}
