//! Trees of files: their shapes, and the plans of concrete trees.

use super::node::NodeId;
use crate::engine::Rng;

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
    /// The approximate shape of the sources of a kernel of 2008: 24,000 files in 1,500 directories, 330 MiB in
    /// pages, half of the files no larger than a page. Assumed round numbers; shares in thousandths.
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

    /// Mean size of its files, in thousandths of a page.
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
pub struct TreePlan {
    /// Parent of each directory but the first, by number.
    pub parents: Vec<u32>,
    /// Directory and size of each file.
    pub files: Vec<(u32, u32)>,
}

impl TreePlan {
    /// A random tree of this shape. Directories are in depth-first order, about six levels deep; files are
    /// spread evenly.
    pub fn draw(shape: &TreeShape, rng: &mut Rng) -> TreePlan {
        let dirs = shape.dirs.max(1);
        // From the last directory the walk goes up by the minimum of five draws.
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
        TreePlan {
            parents,
            files: files.collect(),
        }
    }

    /// Pages of all files.
    pub fn pages(&self) -> u64 {
        self.files.iter().map(|f| u64::from(f.1)).sum()
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
        let plan = TreePlan::draw(&shape, &mut Rng::named(seed, "tree"));
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
