//! What a scenario says of the steps that a program consists of.
//!
//! Names are in kebab-case. A step is a table with one key, `{ compute = "20 ms" }`, or a bare word,
//! `"exit"`. `{number}` in the name of a tree or a file stands for the number of the task.

use super::amount::{Amount, Count};
use super::recorded::Behaviour;
use crate::input::{Bytes, Percent, Rate, Time};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::rc::Rc;

/// A list of steps.
pub type Steps = Rc<[Step]>;

/// One thing that a program does.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Uses the CPU for its own work.
    Compute(Amount<Time>),
    /// Waits.
    Sleep(Amount<Time>),
    /// Makes an anonymous area longer (`brk`, `mmap`); it begins with nothing.
    Grow(Grow),
    /// Uses memory.
    Touch(Touch),
    /// Gives an area back, by name.
    Unmap(String),
    /// Does what a recorded process did.
    Recorded(Recorded),
    /// Reads from a file.
    Read(Read),
    /// Writes to a file.
    Write(Write),
    /// Makes a new file in a tree, or on a file system, and writes it.
    Create(Create),
    /// Removes a file by name.
    Unlink(String),
    /// Makes files in a tree, and removes them at once.
    Churn(Churn),
    /// Makes a tree, as `tar x` does.
    Unpack(Unpack),
    /// Copies a tree, as `cp -r` does.
    CopyTree(CopyTree),
    /// Removes a tree, by name, with all that was made in it.
    RemoveTree(String),
    /// Looks at each file of a tree, by name.
    Walk(String),
    /// Reads each file of a tree.
    ReadTree(ReadTree),
    /// Starts a child that runs a program.
    Fork(Fork),
    /// Becomes another program: its image is mapped, its data written, its text touched.
    Exec(String),
    /// Waits for all children.
    Wait,
    /// Ends.
    Exit,
    /// Allocates objects in the kernel and keeps them.
    Kmalloc(Kmalloc),
    /// Frees the objects kept under a name.
    Kfree(String),
    /// Waits until so many tasks have come to this point.
    Barrier(Barrier),
    /// Does steps again and again.
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
    /// Says that something is so; steps that repeat until then stop.
    Set(String),
    /// Ends all tasks of a name, and what they forked.
    Kill(String),
    /// Writes all dirty pages and waits for them.
    Sync,
    /// The OOM killer passes over this process.
    Unkillable,
}

impl Step {
    /// Steps inside of this one.
    pub(crate) fn inner(&self) -> &[Step] {
        match self {
            Step::Repeat(r) => &r.steps,
            _ => &[],
        }
    }

    /// The same, to be changed.
    pub(crate) fn inner_mut(&mut self) -> &mut [Step] {
        match self {
            Step::Repeat(r) => &mut r.steps,
            _ => &mut [],
        }
    }
}

fn heap() -> String {
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
}

/// Order in which pages are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// One after the other.
    #[default]
    Sequential,
    /// Any.
    Random,
    /// Every so manieth, in turns, until all were used.
    Stride(u32),
    /// One after the other; and after each twentieth of them, some of those used so far again.
    Reuse(Reuse),
}

/// Shares of the pages used so far that are used again. They cost the program no work of
/// their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Reuse {
    /// Of a quarter of the pages, which lie in twos.
    pub hot: Percent,
    /// Of the others.
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
    /// With `size`: the part after the one that was touched so before, around and around, instead of
    /// its first.
    #[serde(default)]
    pub next: bool,
    /// Order.
    #[serde(default)]
    pub pattern: Pattern,
    /// Whether it is written.
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
    /// What the profile says.
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
    /// The next that nobody took, around and around.
    #[default]
    Next,
    /// Any.
    Random,
    /// Any of the first tenth: those that all use (headers).
    Popular,
}

/// [`Step::Read`]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Read {
    /// From where.
    pub file: FileRef,
    /// From which part on.
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

/// Rights of an allocation in the kernel.
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
    /// Rights.
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
    /// Tasks that meet.
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
    /// Or until that was said.
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
