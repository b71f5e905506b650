//! The steps of programs, as a scenario writes them.
//!
//! Names are in kebab-case. A step is a table with one key, `{ compute = "20 ms" }`, or a bare word,
//! `"exit"`. `{number}` in the name of a tree or a file stands for the number of the task.

use super::amount::{Amount, Count};
use super::discard::Discard;
use super::recorded::Behaviour;
use crate::input::{Bytes, Percent, Rate, Time};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::rc::Rc;

/// A list of steps.
pub type Steps = Rc<[Step]>;

/// A step of a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Uses the CPU for its own work.
    Compute(Amount<Time>),
    /// Waits.
    Sleep(Amount<Time>),
    /// Grows an anonymous area (`brk`, `mmap`), which begins empty.
    Grow(Grow),
    /// Touches memory.
    Touch(Touch),
    /// Unmaps an area, by name.
    Unmap(String),
    /// Gives back a part of an area's pages.
    Discard(Discard),
    /// Does what a recorded process did.
    Recorded(Recorded),
    /// Reads from a file.
    Read(Read),
    /// Writes to a file.
    Write(Write),
    /// Creates a file in a tree or on a file system, and writes it.
    Create(Create),
    /// Removes a file by name.
    Unlink(String),
    /// Creates files on a file system, and removes them at once.
    Churn(Churn),
    /// Creates a tree, as `tar x` does.
    Unpack(Unpack),
    /// Copies a tree, as `cp -r` does.
    CopyTree(CopyTree),
    /// Removes a tree, by name, with all that was created in it.
    RemoveTree(String),
    /// Looks up each file of a tree, by name.
    Walk(String),
    /// Reads each file of a tree.
    ReadTree(ReadTree),
    /// Starts a child that runs a program.
    Fork(Fork),
    /// Executes an image: maps it, writes its data, touches its text.
    Exec(String),
    /// Waits for all children.
    Wait,
    /// Ends.
    Exit,
    /// Allocates objects in the kernel and keeps them.
    Kmalloc(Kmalloc),
    /// Frees the objects kept under a name.
    Kfree(String),
    /// Waits until all parties have reached this barrier.
    Barrier(Barrier),
    /// Repeats steps.
    Repeat(Repeat),
    /// Runs a program for each of many jobs, some at a time, and waits for all (`make -j`).
    Parallel(Parallel),
    /// Prints a line: the time since this task's last one is recorded.
    Line(String),
    /// Tries to allocate large blocks, as a module does.
    HighOrder(HighOrder),
    /// Receives a stream from the network.
    Receive(Receive),
    /// Records the counters under a name.
    Record(String),
    /// Sets a flag; it ends the steps `repeat` that run until then.
    Set(String),
    /// Ends all tasks of a name, and what they forked.
    Kill(String),
    /// Writes all dirty pages and waits for them.
    Sync,
    /// Compacts all memory (`vm.compact_memory`).
    CompactMemory,
    /// The OOM killer passes over this process.
    Unkillable,
}

impl Step {
    /// Inner steps.
    pub(crate) fn inner(&self) -> &[Step] {
        match self {
            Step::Repeat(r) => &r.steps,
            _ => &[],
        }
    }

    /// Inner steps, mutable.
    pub(crate) fn inner_mut(&mut self) -> &mut [Step] {
        match self {
            Step::Repeat(r) => &mut r.steps,
            _ => &mut [],
        }
    }
}

pub(super) fn heap() -> String {
    "heap".to_owned()
}

fn yes() -> bool {
    true
}

fn one() -> Amount<Count> {
    Amount::fixed(1)
}

/// [`Step::Grow`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Grow {
    /// The area.
    #[serde(default = "heap")]
    pub area: String,
    /// By how much.
    pub size: Amount<Bytes>,
    /// The area asks for huge pages.
    #[serde(default)]
    pub advise_huge: bool,
}

/// Order in which pages are touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// One after the other.
    #[default]
    Sequential,
    /// Random.
    Random,
    /// Every n-th page, in several passes, until all were touched.
    Stride(u32),
    /// One after the other; after each twentieth, some of the pages touched so far again.
    Reuse(Reuse),
}

/// Shares of the pages touched so far that are touched again, without work of the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Reuse {
    /// Share of the hot pages, a quarter of all, in pairs.
    pub hot: Percent,
    /// Share of the others.
    pub others: Percent,
}

/// [`Step::Touch`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Touch {
    /// The area: one that was grown, or `stack` or `data` of a program.
    #[serde(default = "heap")]
    pub area: String,
    /// How much of it, from its beginning; all, if not given.
    pub size: Option<Amount<Bytes>>,
    /// With `size`: touches the part after the last one, cyclically, instead of the first.
    #[serde(default)]
    pub next: bool,
    /// Order.
    #[serde(default)]
    pub pattern: Pattern,
    /// Whether pages are written.
    #[serde(default = "yes")]
    pub write: bool,
    /// How often.
    #[serde(default = "one")]
    pub times: Amount<Count>,
    /// The program's own work for each page.
    #[serde(default)]
    pub each: Time,
}

fn whole() -> u64 {
    100
}

/// [`Step::Recorded`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Recorded {
    /// The profile that was made from the recording.
    pub profile: String,
    /// The program, if not the command as a whole.
    pub program: Option<String>,
    /// The tree whose files it reads; without one it reads nothing.
    pub reads: Option<String>,
    /// The tree in which it makes a file with what it writes; without one it writes nothing.
    pub writes: Option<String>,
    /// Its anonymous memory, in percent of the recorded.
    #[serde(default = "whole")]
    pub memory_percent: u64,
    /// Its time on a CPU, in percent of the recorded.
    #[serde(default = "whole")]
    pub cpu_percent: u64,
    /// The behaviour of the profile.
    #[serde(skip)]
    pub(crate) behaviour: Option<Rc<Behaviour>>,
}

/// A file, by name or as part of a tree.
#[derive(Clone, Debug)]
pub enum FileRef {
    /// By name.
    Name(String),
    /// Of a tree.
    Of(OfTree),
}

impl<'de> Deserialize<'de> for FileRef {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<FileRef, D::Error> {
        struct NameOrTree;
        impl<'de> Visitor<'de> for NameOrTree {
            type Value = FileRef;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("the name of a file, or a table with its `tree`")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<FileRef, E> {
                Ok(FileRef::Name(name.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FileRef, A::Error> {
                OfTree::deserialize(MapAccessDeserializer::new(map)).map(FileRef::Of)
            }
        }
        d.deserialize_any(NameOrTree)
    }
}

/// Files of a tree.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OfTree {
    /// The tree.
    pub tree: String,
    /// Which.
    #[serde(default)]
    pub pick: Pick,
    /// How many.
    #[serde(default = "one")]
    pub files: Amount<Count>,
}

/// Which files of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// The next one that was not taken, cyclically.
    #[default]
    Next,
    /// Random.
    Random,
    /// A random one of the first tenth: files that all programs use (headers).
    Popular,
}

/// [`Step::Read`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Read {
    /// From where.
    pub file: FileRef,
    /// Offset.
    #[serde(default)]
    pub at: Bytes,
    /// How much; to its end, if not given.
    pub size: Option<Amount<Bytes>>,
    /// By mapping it instead of reading.
    #[serde(default)]
    pub mapped: bool,
    /// The program's own work for each page.
    #[serde(default)]
    pub each: Time,
}

/// [`Step::Write`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Write {
    /// The file.
    pub file: String,
    /// How much.
    pub size: Amount<Bytes>,
    /// At its end; otherwise from its beginning.
    #[serde(default)]
    pub append: bool,
    /// Waits until it is on disk.
    #[serde(default)]
    pub sync: bool,
    /// The program's own work for each page.
    #[serde(default)]
    pub each: Time,
}

/// [`Step::Create`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Create {
    /// The tree in which it lies.
    pub tree: Option<String>,
    /// The file system on which it lies, if in no tree.
    pub on: Option<String>,
    /// Its name, if other steps use it.
    pub name: Option<String>,
    /// Its size.
    pub size: Amount<Bytes>,
    /// The program's own work for each page.
    #[serde(default)]
    pub each: Time,
}

/// [`Step::Churn`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Churn {
    /// The file system.
    pub on: String,
    /// Files.
    pub files: Amount<Count>,
    /// Size of each.
    #[serde(default = "nothing")]
    pub size: Amount<Bytes>,
}

fn nothing() -> Amount<Bytes> {
    Amount::fixed(0)
}

/// [`Step::Unpack`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Unpack {
    /// The archive that is read meanwhile.
    pub archive: Option<String>,
    /// The tree whose shape it has.
    pub like: String,
    /// Name of the new tree.
    pub name: String,
    /// Where it is made.
    pub on: String,
    /// The program's own work for each page.
    #[serde(default)]
    pub each: Time,
}

/// [`Step::CopyTree`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CopyTree {
    /// The tree.
    pub from: String,
    /// Name of the copy.
    pub name: String,
    /// Where it is made.
    pub on: String,
}

/// [`Step::ReadTree`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReadTree {
    /// The tree.
    pub tree: String,
    /// The program's own work for each page.
    #[serde(default)]
    pub each: Time,
}

/// [`Step::Fork`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fork {
    /// What the child does.
    pub program: String,
    /// How many, one after the other.
    #[serde(default = "one")]
    pub count: Amount<Count>,
    /// Waits for each.
    #[serde(default = "yes")]
    pub wait: bool,
}

/// Flags of an allocation in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rights {
    /// It may wait.
    #[default]
    Kernel,
    /// It may not.
    Atomic,
}

/// [`Step::Kmalloc`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Kmalloc {
    /// A cache of the kernel, by its name in slabinfo.
    pub cache: Option<String>,
    /// Or a size.
    pub size: Option<Bytes>,
    /// How many objects.
    #[serde(default = "one")]
    pub count: Amount<Count>,
    /// Flags.
    #[serde(default)]
    pub rights: Rights,
    /// Name under which they are kept; without one they are freed at once, one by one.
    pub keep: Option<String>,
}

/// [`Step::Barrier`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Barrier {
    /// Its name.
    pub name: String,
    /// Number of tasks.
    pub parties: u32,
}

/// [`Step::Repeat`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Repeat {
    /// How often.
    pub times: Option<Amount<Count>>,
    /// Or for how long; a round that began is finished.
    #[serde(rename = "for")]
    pub lasting: Option<Time>,
    /// Or until this flag is set.
    pub until: Option<String>,
    /// What is done.
    pub steps: Vec<Step>,
}

/// [`Step::Parallel`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Parallel {
    /// Jobs.
    pub jobs: Amount<Count>,
    /// Most of them at a time.
    pub at_most: u32,
    /// What each does.
    pub program: String,
}

/// [`Step::HighOrder`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HighOrder {
    /// Name of the result.
    pub name: String,
    /// Order of the blocks.
    pub order: u8,
    /// Attempts.
    pub attempts: u32,
    /// Time from one attempt to the next.
    pub every: Time,
    /// From high memory, as easily reclaimed pages (`GFP_HIGHUSER` with the mobility mark); otherwise
    /// `GFP_USER`.
    #[serde(default)]
    pub high: bool,
}

/// [`Step::Receive`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Receive {
    /// How much.
    pub size: Bytes,
    /// Bytes a second.
    pub rate: Rate,
    /// Order of the block for each frame.
    #[serde(default)]
    pub order: u8,
    /// The file to which it is appended.
    pub file: Option<String>,
    /// Bytes between two such writes.
    #[serde(default = "chunk")]
    pub chunk: Bytes,
    /// Prints a line after each such write.
    pub line: Option<String>,
}

fn chunk() -> Bytes {
    Bytes(32 << 10)
}
