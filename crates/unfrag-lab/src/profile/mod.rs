//! What a command does to memory, out of a recording of it: pages by what they are for, how long they live,
//! files, slab objects, and which program of the command did it.
//!
//! - [`process`](mod@process): which processes there were, what they ran, and how long they computed.
//! - [`class`](mod@class): what a page is for.
//! - [`page_events`]: the events; [`walk`]: the walk over them; [`pages`]: the sums that it makes; [`summary`]: what
//!   is said of them.
//! - [`files`]: what the command read into page cache, wrote to it and removed from it.
//! - [`objects`]: the same of slab objects.
//! - [`spread`]: quantiles of numbers that many have.
//! - [`file`](mod@file): the TOML file. [`shelf`]: such files as programs of scenarios.
//!
//! A profile is a small TOML file, and a scenario of the machine can take its programs from such files. It holds
//! what the recorded kernel was asked for, never what a scenario makes of it.
//!
//! Invariant: integers only, and the same recording gives the same bytes. Of each class of pages,
//! pages taken are those freed, in whatever way, and those held.

pub mod class;
pub mod file;
pub mod files;
pub mod objects;
pub mod page_events;
pub mod pages;
pub mod process;
pub mod shelf;
pub mod spread;
pub mod summary;
pub mod walk;

use crate::era::Era;
use crate::error::{Error, Remedy, Result};
use class::Class;
use files::Files;
use objects::Objects;
use pages::Pages;
use process::Processes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use spread::Spread;
use std::collections::BTreeMap;
use unfrag_linux::procfs::MemInfo;
use unfrag_linux::recording::Recording;

/// Version of the file's format.
pub const VERSION: u32 = 1;

/// A profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`VERSION`].
    pub profile: u32,
    /// The recording that it came from.
    pub recording: Source,
    /// Programs that took less than a thousandth of all pages each, and are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub programs_left_out: u64,
    /// The command as a whole.
    pub all: Use,
    /// Its programs, those that took most pages first; empty if the recording does not say which there were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<Use>,
}

/// A recording's identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// File name, without directories.
    pub file: String,
    /// Its size.
    pub file_bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// The recorded command line; empty if it was not kept.
    pub command: String,
    /// `uname -r` of the recorded kernel.
    pub kernel: String,
    /// Day of the recording, such as `2026-11-22`; empty if it does not say.
    pub date: String,
    /// CPUs of the host.
    pub cpus: u32,
    /// Memory of the host that its allocator managed.
    pub memory_bytes: u64,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Which program recorded.
    pub recorder: String,
    /// Which program made the profile.
    pub profiler: String,
    /// Events.
    pub events: u64,
    /// Events that the recorder lost: what they would say is not in the profile.
    pub lost_events: u64,
}

/// What a program, or the whole command, did to memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// Its name, such as `cc1`; ` (fork)` follows where a process ran no program of its own.
    pub name: String,
    /// From the start of the first process to the end of the last.
    pub wall_us: u64,
    /// Time on CPUs, if the recording says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// Processes; 0 if the recording does not say.
    pub processes: u64,
    /// Most of them at one time.
    pub processes_at_most: u64,
    /// Processes that shared their parent's memory until they ran a program (vfork).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub vforked: u64,
    /// Threads beside the first of each process.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads: u64,
    /// Most pages at one time, without those of page cache.
    pub high_water_pages: u64,
    /// Which program started them, and how many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub started_by: BTreeMap<String, u64>,
    /// How its processes differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Each>,
    /// Pages by what they are for; a class without any is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pages: BTreeMap<Class, Pages>,
    /// Files in page cache.
    #[serde(default)]
    pub files: Files,
    /// Slab objects by cache, those taken most first; of a program those of which it took a hundredth of its objects at
    /// least. Empty if they were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slab: Vec<Objects>,
}

/// Quantiles over the processes of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Each {
    /// From start to end.
    pub life_us: Spread,
    /// On a CPU, if the recording says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<Spread>,
    /// In uninterruptible sleep: waiting for a disk, mostly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_us: Option<Spread>,
    /// Anonymous pages taken.
    pub anonymous_taken_pages: Spread,
    /// Anonymous pages at one time, at most.
    pub anonymous_high_water_pages: Spread,
    /// Page tables at one time, at most.
    pub page_tables_high_water_pages: Spread,
    /// Pages read into page cache.
    pub file_read_pages: Spread,
    /// Pages of page cache taken to write to.
    pub file_written_pages: Spread,
    /// Anonymous pages held at the end of each tenth of a process's life, up to its end or exit, in percent of
    /// its most: the mean, weighted by that.
    pub anonymous_percent_by_tenth: Vec<u8>,
}

/// What is known of a recording's file.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    file: String,
    bytes: u64,
    sha256: String,
}

impl Identity {
    /// Of a file of this name (without directories) that `content` gives.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(file: &str, content: &mut impl std::io::Read) -> Result<Identity> {
        let mut hash = Sha256::new();
        let mut room = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            match content.read(&mut room)? {
                0 => break,
                n => {
                    hash.update(&room[..n]);
                    bytes += n as u64;
                }
            }
        }
        let digits = hash.finalize();
        Ok(Identity {
            file: file.to_owned(),
            bytes,
            sha256: digits.iter().map(|b| format!("{b:02x}")).collect(),
        })
    }
}

impl Profile {
    /// The profile of a recording, whose file is `identity`.
    ///
    /// # Errors
    /// If it does not say which pages were allocated, or its kernel is not known.
    pub fn of(rec: &Recording, identity: &Identity) -> Result<Profile> {
        let has = |name: &str| rec.events.tables.iter().any(|t| t.name == name);
        if !has("mm_page_alloc") {
            return Err(
                Error::lacking("the recording has no page events").remedy(Remedy::RecordProcesses)
            );
        }
        let era = Era::of(&rec.meta.kernel_release)?;
        let processes = Processes::of(rec)?;
        let programs = processes.programs();
        let mut walk = walk::Walk::new(rec, era, &processes, &programs);
        walk.run()?;
        let (mut all, mut program) = summary::of(&walk.finish(), &processes, &programs);
        objects::add(rec, &processes, &programs, &mut all, &mut program)?;
        let taken = |u: &Use| u.pages.values().map(|c| c.taken_pages).sum::<u64>();
        let least = taken(&all) / 1000;
        let programs = if processes.known { program.len() } else { 0 };
        program.retain(|p| processes.known && taken(p) >= least.max(1));
        program.sort_by_key(|p| (std::cmp::Reverse(taken(p)), p.name.clone()));
        for p in &mut program {
            objects::keep_most(&mut p.slab);
        }
        Ok(Profile {
            profile: VERSION,
            recording: source(rec, identity),
            programs_left_out: (programs - program.len()) as u64,
            all,
            program,
        })
    }

    /// The program of this name.
    pub fn program(&self, name: &str) -> Option<&Use> {
        self.program.iter().find(|p| p.name == name)
    }
}

/// Whether a field may be left out.
fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn source(rec: &Recording, identity: &Identity) -> Source {
    let fact = |name: &str| rec.meta.facts.get(name).cloned().unwrap_or_default();
    let meminfo = rec.snapshots.iter().find_map(|s| s.file("meminfo"));
    let memory = meminfo.and_then(|m| MemInfo::parse(m).ok()?.get("MemTotal"));
    Source {
        file: identity.file.clone(),
        file_bytes: identity.bytes,
        sha256: identity.sha256.clone(),
        command: fact("command"),
        kernel: rec.meta.kernel_release.clone(),
        date: fact("date"),
        cpus: rec.meta.cpus,
        memory_bytes: memory.unwrap_or(0) << 10,
        page_bytes: rec.meta.page_size,
        recorder: fact("recorder"),
        profiler: format!("unfrag {}", env!("CARGO_PKG_VERSION")),
        events: rec.events.len() as u64,
        lost_events: rec.meta.lost.iter().map(|l| l.count.unwrap_or(1)).sum(),
    }
}
