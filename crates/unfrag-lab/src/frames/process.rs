//! The files of a process, as `/proc` has them.
//!
//! Invariant: all that is read is of one process: that it ended meanwhile, or that its number is another's, is an error that says
//! so, never an answer.

use super::collapse::Rule;
use crate::era::Era;
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use unfrag_linux::procfs::pagemap::Entry;
use unfrag_linux::procfs::smaps::{self, Mapping};

/// No such process, as the kernel's error number.
const ESRCH: i32 = 3;

/// A process that is read.
pub struct Process {
    directory: PathBuf,
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its mappings.
    pub mappings: Vec<Mapping>,
    /// What `MADV_COLLAPSE` of it depends on.
    pub(super) rule: Rule,
    /// When it began, in the kernel's ticks.
    began: Option<u64>,
    pagemap: File,
}

impl Process {
    /// Opens the process with this number of the host whose procfs this is.
    ///
    /// # Errors
    /// If there is none, it is a kernel thread or has ended, or may not be read.
    pub fn open(proc: &Path, pid: u32) -> Result<Process> {
        let directory = proc.join(pid.to_string());
        if !directory.is_dir() {
            return Err(Error::lacking(format!("there is no process {pid}"))
                .help("give the number of one that runs, as ps shows it, or a cgroup"));
        }
        let read = |name: &str| fs::read_to_string(directory.join(name));
        let failed = |e: io::Error| failed(pid, &e);
        let status = read("status").map_err(failed)?;
        let value = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name));
            line.map(|l| l.trim_start_matches(':').trim().to_owned())
        };
        let name = value("Name").unwrap_or_default();
        if value("State").is_some_and(|s| s.starts_with('Z')) {
            return Err(Error::lacking(format!(
                "process {pid} has ended, and only waits for its parent to ask for its status"
            ))
            .help("it has no memory left: give one that runs"));
        }
        // A thread of the kernel has none of these lines, and neither has a process that has given its memory back as it ends.
        // The kernel's are children of kthreadd, which is number 2.
        let is_kernels = pid == 2 || value("PPid").is_some_and(|p| p == "2");
        let has_memory = value("VmSize").is_some() || value("Name").is_none();
        if !has_memory && !is_kernels {
            return Err(gone(pid));
        }
        if !has_memory {
            return Err(Error::lacking(format!(
                "process {pid} is a thread of the kernel, which has no memory of its own"
            ))
            .help("where the kernel's memory is: unfrag account"));
        }
        let smaps = read("smaps").map_err(failed)?;
        let mappings = smaps::parse(&smaps).map_err(|e| e.in_file(&directory.join("smaps")))?;
        if mappings.is_empty() {
            return Err(gone(pid));
        }
        let pagemap = File::open(directory.join("pagemap")).map_err(failed)?;
        Ok(Process {
            began: began(&directory),
            rule: Rule {
                refuses: value("THP_enabled").as_deref() == Some("0"),
                takes_unwritable: release(proc).is_some_and(|era| era.is_at_least(6, 18)),
            },
            directory,
            pid,
            name,
            mappings,
            pagemap,
        })
    }

    /// Reads the words of the pages from this one on, as many as there is room for.
    ///
    /// # Errors
    /// If the process ended.
    pub fn pages(&self, first: u64, room: &mut Vec<Entry>, pages: usize) -> Result<()> {
        let mut bytes = vec![0; 8 * pages];
        let mut filled = 0;
        while filled < bytes.len() {
            match self
                .pagemap
                .read_at(&mut bytes[filled..], 8 * first + filled as u64)
            {
                Ok(0) => return Err(gone(self.pid)),
                Ok(n) => filled += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(failed(self.pid, &e)),
            }
        }
        room.clear();
        let words = bytes.as_chunks::<8>().0;
        room.extend(words.iter().map(|w| Entry(u64::from_le_bytes(*w))));
        Ok(())
    }

    /// Whether it is still the process that was opened.
    ///
    /// # Errors
    /// If it ended, or its number is another's.
    pub fn check(&self) -> Result<()> {
        match self.directory.is_dir() && began(&self.directory) == self.began {
            true => Ok(()),
            false => Err(gone(self.pid)),
        }
    }
}

/// The kernel whose procfs this is, as far as it says.
pub(super) fn release(proc: &Path) -> Option<Era> {
    let text = fs::read_to_string(proc.join("version")).ok()?;
    let rest = text.strip_prefix("Linux version ")?;
    Era::of(rest.split_ascii_whitespace().next()?).ok()
}

/// When a process began: the 22nd number of `stat`, after its name in brackets.
fn began(directory: &Path) -> Option<u64> {
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Whether an error says that a process ended while it was read.
pub fn has_ended(e: &Error) -> bool {
    e.to_string().contains(ENDED)
}

const ENDED: &str = "ended while it was read";

fn gone(pid: u32) -> Error {
    Error::lacking(format!("process {pid} {ENDED}")).help("give one that goes on running")
}

fn failed(pid: u32, e: &io::Error) -> Error {
    if e.raw_os_error() == Some(ESRCH) || e.kind() == ErrorKind::NotFound {
        return gone(pid);
    }
    match e.kind() {
        ErrorKind::PermissionDenied => Error::lacking(format!(
            "the memory of process {pid} may not be looked at: it is another user's, or protects itself"
        ))
        .help("run as root of the host (in a container root may lack it): it needs CAP_SYS_PTRACE for another user's process, and CAP_SYS_ADMIN for the numbers of frames"),
        _ => Error::lacking(format!("process {pid} cannot be read: {e}")),
    }
}
