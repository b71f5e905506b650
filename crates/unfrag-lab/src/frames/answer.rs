//! The memory of a process, or of all processes of a cgroup, and the frames that it lies in.
//!
//! Invariant: sums are over mappings, but for frames: a frame that several mappings or processes show is one.

use super::blocks::Blocks;
use super::flags::Flags;
use super::group;
use super::mapping::{self, Frames, MappingFrames, Resume, Sizes};
use super::process::{Process, has_ended, release};
use crate::error::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessFrames {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its mappings of which something is in memory, in the order of their addresses.
    pub mappings: Vec<MappingFrames>,
}

/// What `MADV_COLLAPSE` of all mappings would make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Collapsed {
    /// Huge pages that map memory now.
    pub huge_now: u64,
    /// Huge pages that map memory then, in mappings of which it is known.
    pub huge_after: u64,
    /// Huge pages that would be made: exact where the rule is known, and they can be had.
    pub made: u64,
    /// Pages that are copied.
    pub copied_pages: u64,
    /// Pages that are filled with zeroes: memory that it takes more.
    pub filled_pages: u64,
    /// Pages that are read from swap.
    pub swapped_pages: u64,
    /// Pages in mappings of which it is not known what would be made.
    pub unknown_pages: u64,
    /// Ranges that are swapped out as a whole: not known.
    pub unknown_ranges: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// What it is of.
    pub of: String,
    /// Sizes of pages.
    pub sizes: Sizes,
    /// The processes.
    pub processes: Vec<ProcessFrames>,
    /// Pages in memory; those that several processes map count for each.
    pub present: u64,
    /// Pages that are swapped out.
    pub swapped: u64,
    /// The frames that they lie in.
    pub frames: Frames,
    /// Pages by the order of the run of pages that they are in; empty where frames may not be seen.
    pub runs: BTreeMap<u32, u64>,
    /// Pages by the order of the folio that they are in; empty without page flags.
    pub folios: BTreeMap<u32, u64>,
    /// Bytes that huge pages map.
    pub huge_bytes: u64,
    /// What `MADV_COLLAPSE` of all of it would make.
    pub collapse: Collapsed,
    /// What faults if all of it is mapped anew.
    pub resume: Resume,
    /// What could not be seen.
    pub notes: Vec<String>,
}

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of<'a> {
    /// A process.
    Process(u32),
    /// The processes of a cgroup, by its path or its name.
    Group(&'a Path),
}

/// The answer about a process or a cgroup of the host whose procfs this is.
///
/// # Errors
/// If there is none, or it may not be read.
pub fn frames(proc: &Path, of: &Of) -> Result<Answer> {
    let (name, pids) = match of {
        Of::Process(pid) => (None, vec![*pid]),
        Of::Group(path) => {
            let group = group::find(path)?;
            let name = format!("cgroup {}", group.display());
            (Some(name), group::processes(&group)?)
        }
    };
    let mut reading = Reading::new(proc);
    let mut unread = vec![];
    for pid in pids {
        match reading.process(proc, pid) {
            Ok(()) => {}
            // Those that end, and the kernel's, are no reason to say nothing of the others.
            Err(e) if name.is_some() => unread.push((pid, e)),
            Err(e) => return Err(e),
        }
    }
    if reading.processes.is_empty()
        && let Some((_, e)) = unread.pop()
    {
        return Err(e);
    }
    let name = name.unwrap_or_else(|| {
        let one = reading.processes.first();
        one.map_or(String::new(), |p| format!("process {} ({})", p.pid, p.name))
    });
    let mut answer = reading.finish(name, &unread)?;
    if release(proc).is_some_and(|era| !era.is_at_least(6, 1)) {
        let note = "MADV_COLLAPSE is there from Linux 6.1 on: this kernel has none";
        answer.notes.push(note.into());
    }
    Ok(answer)
}

struct Reading {
    sizes: Option<Sizes>,
    huge_bytes: Option<u64>,
    flags: Option<Flags>,
    blocks: Blocks,
    processes: Vec<ProcessFrames>,
}

impl Reading {
    fn new(proc: &Path) -> Reading {
        // A copy of procfs is of a host whose sysfs is not here.
        let size = match proc == Path::new("/proc") {
            true => fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").ok(),
            false => None,
        };
        Reading {
            sizes: None,
            huge_bytes: size.and_then(|s| s.trim().parse().ok()),
            flags: None,
            blocks: Blocks::default(),
            processes: vec![],
        }
    }

    fn process(&mut self, proc: &Path, pid: u32) -> Result<()> {
        let process = Process::open(proc, pid)?;
        let sizes = match self.sizes {
            Some(sizes) => sizes,
            None => {
                let sizes = self.measure(&process)?;
                self.sizes = Some(sizes);
                self.blocks = Blocks::new(sizes.huge_order);
                sizes
            }
        };
        let flags = self
            .flags
            .get_or_insert_with(|| Flags::open(proc, sizes.huge_order));
        let mut blocks = Blocks::new(sizes.huge_order);
        let mut mappings = vec![];
        for m in &process.mappings {
            mappings.extend(mapping::read(&process, m, sizes, flags, &mut blocks)?);
        }
        process.check()?;
        self.blocks.merge(&blocks);
        self.processes.push(ProcessFrames {
            pid,
            name: process.name.clone(),
            mappings,
        });
        Ok(())
    }

    /// Sizes of the host's pages, as a mapping that is of no pool tells them.
    fn measure(&self, process: &Process) -> Result<Sizes> {
        let plain = process.mappings.iter();
        let mut told = plain
            .filter(|m| m.has_flag("ht") != Some(true))
            .filter_map(|m| m.bytes("KernelPageSize"));
        let page = told.next().filter(|n| n.is_power_of_two() && *n >= 4096);
        let page = page.ok_or_else(|| {
            Error::lacking("smaps does not tell the size of a page (KernelPageSize)")
                .help("it is there from Linux 2.6.29 on")
        })?;
        // A table of page tables fills a page with words of eight bytes.
        let huge = self.huge_bytes.filter(|n| n.is_power_of_two() && *n > page);
        let huge_order = huge.map_or(page / 8, |n| n / page).ilog2();
        Ok(Sizes {
            page,
            huge_order,
            gib_order: (1u64 << 30)
                .ilog2()
                .saturating_sub(page.ilog2())
                .max(huge_order),
        })
    }

    fn finish(self, of: String, unread: &[(u32, Error)]) -> Result<Answer> {
        let Some(sizes) = self.sizes else {
            return Err(Error::lacking("no process could be read")
                .help("run as root of the host: in a container root may lack CAP_SYS_PTRACE"));
        };
        let mappings = || self.processes.iter().flat_map(|p| &p.mappings);
        let sum = |of: fn(&MappingFrames) -> u64| mappings().map(of).sum::<u64>();
        let mut collapse = Collapsed {
            copied_pages: sum(|m| m.collapse.copied_pages),
            filled_pages: sum(|m| m.collapse.filled_pages),
            swapped_pages: sum(|m| m.collapse.swapped_pages),
            unknown_ranges: sum(|m| m.collapse.unknown_ranges),
            ..Collapsed::default()
        };
        for m in mappings() {
            collapse.huge_now += m.collapse.huge_now;
            match m.collapse.huge_after {
                Some(after) => {
                    collapse.huge_after += after;
                    collapse.made += after - m.collapse.huge_now;
                }
                None => {
                    collapse.huge_after += m.collapse.huge_now;
                    collapse.unknown_pages += m.present;
                }
            }
        }
        let by_order = |of: fn(&MappingFrames) -> &BTreeMap<u32, u64>| {
            let mut all: BTreeMap<u32, u64> = BTreeMap::new();
            for (order, pages) in mappings().flat_map(of) {
                *all.entry(*order).or_default() += pages;
            }
            all
        };
        let hidden = mappings().any(|m| m.present > 0 && m.frames.pages.is_none());
        let mut notes = vec![];
        if hidden {
            notes.push(
                "which frames its memory lies in may only be seen with CAP_SYS_ADMIN: run as root of the host (in a container root may lack it)"
                    .to_owned(),
            );
        } else if !self.flags.as_ref().is_some_and(Flags::are_there) {
            notes.push(
                "folios and pages of zeroes are not known: /proc/kpageflags, which only root may read"
                    .to_owned(),
            );
        }
        let ended = unread.iter().filter(|(_, e)| has_ended(e)).count();
        if ended > 0 {
            notes.push(format!("{ended} processes ended while they were read"));
        }
        for (_, e) in unread.iter().filter(|(_, e)| !has_ended(e)) {
            notes.push(e.to_string());
        }
        Ok(Answer {
            of,
            sizes,
            present: sum(|m| m.present),
            swapped: sum(|m| m.swapped),
            frames: Frames::of((!hidden).then_some(&self.blocks), sizes),
            runs: if hidden {
                BTreeMap::new()
            } else {
                by_order(|m| &m.runs)
            },
            folios: if hidden {
                BTreeMap::new()
            } else {
                by_order(|m| &m.folios)
            },
            huge_bytes: sum(|m| m.huge_bytes),
            collapse,
            resume: Resume {
                pages: sum(|m| m.resume.pages),
                huge: sum(|m| m.resume.huge),
                gib: sum(|m| m.resume.gib),
            },
            notes,
            processes: self.processes,
        })
    }
}
