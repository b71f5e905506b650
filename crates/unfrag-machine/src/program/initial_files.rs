//! The files of a scenario that exist before the run: trees, files, and images of programs.

use crate::fs::tree::TreeShape;
use crate::input::{Bytes, Percent};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The files that exist before the run.
#[derive(Clone, Debug, Default)]
pub struct InitialFiles {
    /// Trees of files, by name.
    pub trees: BTreeMap<String, TreeSpec>,
    /// Files, by name.
    pub files: BTreeMap<String, FileSpec>,
    /// Images of programs, by name.
    pub images: BTreeMap<String, ImageSpec>,
}

/// A tree of files.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TreeSpec {
    /// The file system that it is on; without one, it is a shape for `unpack` only.
    pub on: Option<String>,
    /// A named shape: `kernel-sources`. The keys below replace its parts.
    pub like: Option<Like>,
    /// Directories.
    pub dirs: Option<u32>,
    /// Files.
    pub files: Option<u32>,
    /// Sizes of files, each with its weight.
    pub sizes: Option<Vec<(Bytes, u32)>>,
}

/// Named shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Like {
    /// Approximately the sources of a kernel of 2008.
    KernelSources,
}

impl TreeSpec {
    /// The shape of the tree.
    pub fn shape(&self) -> TreeShape {
        let mut shape = match self.like {
            Some(Like::KernelSources) => TreeShape::kernel_sources(),
            None => TreeShape {
                dirs: 1,
                files: 0,
                sizes: vec![(1, 1)],
            },
        };
        shape.dirs = self.dirs.unwrap_or(shape.dirs);
        shape.files = self.files.unwrap_or(shape.files);
        if let Some(sizes) = &self.sizes {
            shape.sizes = sizes.iter().map(|(b, w)| (b.pages32(), *w)).collect();
        }
        shape
    }
}

/// A file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileSpec {
    /// The file system that it lies on.
    pub on: String,
    /// Its size.
    pub size: Bytes,
}

/// The image of a program (or of a library).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ImageSpec {
    /// The file system that it lies on.
    pub on: String,
    /// Size of the text, which is mapped.
    pub text: Bytes,
    /// Size of the data, which is copied and written at the start.
    #[serde(default)]
    pub data: Bytes,
    /// Share of the text that a run touches; the same pages each time.
    #[serde(default = "all")]
    pub used: Percent,
    /// Images whose text is mapped too.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// Areas beside those that hold text, data, heap and stack.
    #[serde(default)]
    pub areas: u32,
}

fn all() -> Percent {
    Percent::ALL
}
