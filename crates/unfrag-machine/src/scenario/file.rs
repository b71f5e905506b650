//! The contents of a scenario file. `toml` reads it; `check` checks its consistency.
//!
//! Names are in kebab-case, quantities have units, unknown keys are mistakes.

use super::kernel_table::KernelTable;
use crate::input::{Bytes, Rate, Time};
use crate::program::initial_files::{FileSpec, ImageSpec, TreeSpec};
use crate::program::{InitialFiles, Step, Steps};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// A name that something else in the file has to have.
pub type Name = Spanned<String>;

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    /// Its name.
    pub name: Name,
    /// Description for readers.
    #[serde(default)]
    pub about: String,
    /// Where its parameters come from: a source, a recording, an assumption.
    #[serde(default)]
    pub parameters: Vec<String>,
    /// Its kernel.
    pub kernel: Option<Spanned<KernelTable>>,
    /// Virtual time at which a run ends at the latest.
    pub limit: Spanned<Time>,
    /// Time from one sample to the next.
    #[serde(default = "sample")]
    pub sample: Spanned<Time>,
    /// The machines on which it can run; the first, if none is asked for.
    #[serde(rename = "machine")]
    pub machines: Vec<Machine>,
    /// Trees of files, by name.
    #[serde(default)]
    pub trees: BTreeMap<Name, TreeSpec>,
    /// Files, by name.
    #[serde(default)]
    pub files: BTreeMap<Name, FileSpec>,
    /// Images of programs, by name.
    #[serde(default)]
    pub images: BTreeMap<Name, ImageSpec>,
    /// What tasks do, by name.
    pub programs: BTreeMap<String, Program>,
    /// The tasks that run from the start.
    #[serde(rename = "task")]
    pub tasks: Vec<Task>,
}

fn sample() -> Spanned<Time> {
    Spanned::new(0..0, Time(250_000_000))
}

/// What a task does.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "ProgramText")]
pub struct Program {
    /// One after the other.
    pub steps: Steps,
    /// Where in the file each of them is.
    pub spans: Vec<Range<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramText {
    steps: Vec<Spanned<Step>>,
}

impl From<ProgramText> for Program {
    fn from(text: ProgramText) -> Program {
        let spans = text.steps.iter().map(Spanned::span).collect();
        let steps = text.steps.into_iter().map(Spanned::into_inner).collect();
        Program { steps, spans }
    }
}

impl File {
    /// The programs' steps, by name.
    pub fn steps(&self) -> BTreeMap<String, Steps> {
        let all = self.programs.iter();
        all.map(|(name, p)| (name.clone(), p.steps.clone()))
            .collect()
    }

    /// The files that exist before the run.
    pub fn initial_files(&self) -> InitialFiles {
        fn plain<T: Clone>(map: &BTreeMap<Name, T>) -> BTreeMap<String, T> {
            let all = map.iter();
            all.map(|(name, t)| (name.get_ref().clone(), t.clone()))
                .collect()
        }
        InitialFiles {
            trees: plain(&self.trees),
            files: plain(&self.files),
            images: plain(&self.images),
        }
    }
}

/// Tasks that run a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Task {
    /// Name; that of the program, if there is none.
    pub name: Option<Name>,
    /// What it does.
    pub program: Name,
    /// When it starts.
    #[serde(default)]
    pub at: Time,
    /// Class: `normal` or `realtime`.
    #[serde(default)]
    pub priority: Priority,
    /// The CPU that it is bound to.
    pub cpu: Option<Spanned<usize>>,
    /// How many of them.
    #[serde(default = "one")]
    pub count: Spanned<u32>,
    /// Whether the run ends without waiting for it.
    #[serde(default)]
    pub background: bool,
}

impl Task {
    /// Its name.
    pub fn title(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.program).get_ref()
    }
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

/// Scheduling class of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Shares the CPU.
    #[default]
    Normal,
    /// Preempts others.
    Realtime,
}

/// Addresses of a machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Layout {
    /// DMA to 16 MiB, Normal to 896 MiB, HighMem above.
    #[serde(rename = "x86-32")]
    X86,
    /// DMA to 16 MiB, DMA32 to 4 GiB (a gigabyte of it for devices), Normal above.
    #[serde(rename = "x86-64")]
    X86_64,
}

/// A machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Machine {
    /// Its name.
    pub name: Name,
    /// Addresses of its memory.
    pub layout: Layout,
    /// Its memory.
    pub memory: Spanned<Bytes>,
    /// Memory that the kernel takes at boot; default: 8 MiB and the frame table.
    pub kernel_keeps: Option<Spanned<Bytes>>,
    /// CPUs.
    pub cpus: Spanned<usize>,
    /// Timer interrupts a second.
    pub hz: Spanned<u32>,
    /// Disks.
    #[serde(default, rename = "disk")]
    pub disks: Vec<Disk>,
    /// Encrypting layers.
    #[serde(default, rename = "crypt")]
    pub crypts: Vec<Crypt>,
    /// Swap.
    pub swap: Option<Swap>,
    /// File systems.
    #[serde(default, rename = "file-system")]
    pub file_systems: Vec<FileSystem>,
    /// The CPU scheduler.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// What the kernel's work on memory and files takes on this machine, in percent of the calibration.
    pub cost_percent: Option<Spanned<u64>>,
    /// What work takes on this machine, where it differs from the calibration.
    #[serde(default)]
    pub costs: BTreeMap<Name, Time>,
    /// A wait for congestion ends only when a congested class ceases to be congested.
    #[serde(default)]
    pub congestion_wake_only_on_leaving: bool,
    /// Page tables come from high memory.
    pub highpte: Option<Spanned<bool>>,
    /// Fault injection: owners of pages answer `Busy` with this probability, as numerator and denominator.
    pub owners_busy: Option<Spanned<(u64, u64)>>,
}

/// The CPU scheduler, where it differs from the default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scheduler {
    /// Time slice of a task while others wait.
    pub quantum: Option<Spanned<Time>>,
    /// CPU that takes interrupts.
    pub irq_cpu: Option<Spanned<usize>>,
}

/// A disk; what is not given is as a desktop disk of 2008 has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Disk {
    /// Its name.
    pub name: Name,
    /// Its size.
    pub size: Spanned<Bytes>,
    /// Bytes a second under the head.
    pub bandwidth: Option<Spanned<Rate>>,
    /// Seek to the next track.
    pub seek_min: Option<Time>,
    /// Seek over the whole disk.
    pub seek_max: Option<Spanned<Time>>,
    /// One rotation.
    pub rotation: Option<Time>,
    /// Time of the controller for each request.
    pub overhead: Option<Time>,
    /// Requests of each class.
    pub nr_requests: Option<Spanned<u32>>,
    /// Size up to which transfers become one request.
    pub max_request: Option<Spanned<Bytes>>,
    /// How long an empty queue gathers requests.
    pub plug: Option<Time>,
    /// Requests of a batch of the elevator.
    pub batch: Option<Spanned<u32>>,
    /// Batches of sync requests that may go before async ones.
    pub async_starved: Option<u32>,
    /// Age at which a sync request is overdue.
    pub sync_expire: Option<Time>,
    /// Age at which an async request is overdue.
    pub async_expire: Option<Time>,
    /// Its elevator.
    #[serde(default)]
    pub elevator: Elevator,
    /// Whether it takes several requests at once, as CFQ asks.
    #[serde(default)]
    pub ncq: bool,
    /// Its faults.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Spanned<Fault>>,
}

/// Elevators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Elevator {
    /// Batches of one class.
    #[default]
    Batches,
    /// Slices of time for each class.
    Cfq,
}

/// A fault of a disk.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Fault {
    /// Nothing completes for a time.
    Stall {
        /// Begin.
        from: Time,
        /// End.
        to: Time,
    },
    /// Transfers fail for a time.
    Fail {
        /// Begin.
        from: Time,
        /// End.
        to: Time,
        /// Where on the disk.
        at: Bytes,
        /// How much of it.
        size: Bytes,
    },
}

/// An encrypting layer.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Crypt {
    /// Its name.
    pub name: Name,
    /// The disk that it is over.
    pub disk: Name,
    /// Where on the disk it begins.
    #[serde(default)]
    pub at: Bytes,
    /// Whether a thread of its own submits to the disk; if not given, from 2.6.31 on.
    pub io_thread: Option<bool>,
}

/// A swap area.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Swap {
    /// The device that it is on.
    pub device: Name,
    /// Where on the device it begins.
    #[serde(default)]
    pub at: Bytes,
    /// Its size.
    pub size: Spanned<Bytes>,
}

/// Kinds of file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FsKind {
    /// Without a journal.
    Ext2,
    /// With a journal.
    Ext3,
    /// In memory and swap.
    Tmpfs,
}

/// A file system.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileSystem {
    /// Its name.
    pub name: Name,
    /// Its kind.
    pub kind: FsKind,
    /// The device that it is on; none for tmpfs.
    pub device: Option<Name>,
    /// The file system with the file that it is in, through a loop device. For programs that file has this file
    /// system's name.
    pub image_in: Option<Name>,
    /// Where on the device it begins; at its beginning, if not given.
    pub at: Option<Spanned<Bytes>>,
    /// Its size.
    pub size: Spanned<Bytes>,
}

impl FileSystem {
    /// Where on its device it begins.
    pub fn begin(&self) -> Bytes {
        self.at
            .as_ref()
            .map_or(Bytes::default(), |at| *at.get_ref())
    }
}
