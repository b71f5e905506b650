//! The spool: the directory that holds a recording while it is made.
//!
//! It lies beside the file that it becomes, as `NAME.spool-PID-NUMBER`, and that name says which file: no path is read
//! from a file in it, so whoever lays a spool somewhere cannot direct what is written.
//!
//! Invariant: at any moment `finish` can make a file from it, even after a crash. The [`Job`] is written before
//! the trace begins, sub-buffers are appended, and a snapshot counts once its line stands in `index.tsv`. All of it is
//! reached through the directory that was opened first, and without links, whatever lies at its path meanwhile.

use std::borrow::Cow;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::spool_name;
use crate::error::{Error, Result};
use crate::recording::Snapshot;
use crate::target::{Target, own_user, parent};

/// Name of the member that holds the [`Job`].
const JOB: &str = "job.json";
/// Its name until it is complete.
const NEW_JOB: &str = "job.json.new";

/// The list of kernel threads: lines `PID NAME`, of which the last one for a PID counts.
pub const THREADS: &str = "kernel-threads";
/// The list of all other tasks, in lines of the same form.
pub const NAMES: &str = "cmdlines";
/// The numbers of the recorder's own tasks, a line each.
pub const RECORDER: &str = "recorder-tasks";
/// Names of the kernel's code, as `/proc/kallsyms` lists them; of several for an address the first one counts.
pub const SYMBOLS: &str = "symbols";

/// A recording's parameters, known before the trace begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Job {
    /// Numbers of the recorder's own tasks that the tracer followed.
    #[serde(default)]
    pub recorder: Vec<i32>,
    /// Whether names and numbers of tasks are kept out of the file.
    #[serde(default = "yes")]
    pub anonymous: bool,
    /// Whether events have kernel stacks.
    #[serde(default)]
    pub stacks: bool,
    /// `uname -r`.
    pub kernel_release: String,
    /// Bytes of a page.
    pub page_size: u32,
    /// CPUs.
    pub cpus: u32,
    /// Further facts.
    pub facts: Vec<(String, String)>,
    /// `events/header_page` of tracefs.
    pub header_page: String,
    /// Subsystem and `format` file of each recorded event.
    pub formats: Vec<(String, String)>,
}

/// Names that nobody agreed to are not published.
fn yes() -> bool {
    true
}

/// A spool.
#[derive(Debug)]
pub struct Spool {
    /// Its path, for messages.
    dir: PathBuf,
    handle: File,
}

impl Spool {
    /// Makes the spool of `output`: beside it if it is a regular file, else in the temporary directory
    /// (`TMPDIR`, or `/tmp`). Only its owner may read it.
    ///
    /// # Errors
    /// If it cannot be made there.
    pub fn create(output: &Target) -> Result<Spool> {
        let (base, is_beside) = match output {
            Target::File(file) => (file.clone(), true),
            _ => (std::env::temp_dir().join("recording.unfrag"), false),
        };
        let help = match is_beside {
            false => {
                "the recording is collected in the temporary directory: set TMPDIR to a directory that can be \
                  written"
            }
            true => {
                "the recording is collected beside the file that it becomes: name one in a directory that \
                  can be written"
            }
        };
        let base = std::path::absolute(base)?;
        let made = spool_name::make(&base).map_err(|e| Error::from(e).in_file(&base).help(help))?;
        let spool = Spool::at(&made)?;
        let snapshots = DirBuilder::new()
            .mode(0o700)
            .create(spool.at_name("snapshots"));
        snapshots.map_err(|e| Error::from(e).in_file(&made))?;
        Ok(spool)
    }

    /// The spool that exists at `dir`, whoever made it.
    ///
    /// # Errors
    /// If there is no directory, or a link.
    pub fn at(dir: &Path) -> Result<Spool> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let handle = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(dir)
            .map_err(|e| match fs::symlink_metadata(dir) {
                Ok(m) if m.is_symlink() => Error::malformed("is a symbolic link").in_file(dir),
                _ => Error::from(e).in_file(dir).help(
                    "name a directory that a recorder left behind, NAME.unfrag.spool-PID-NUMBER",
                ),
            })?;
        Ok(Spool {
            dir: dir.to_owned(),
            handle,
        })
    }

    /// The spool at `dir`, if a recorder of this user made it and nobody else could change it since.
    ///
    /// # Errors
    /// If that is not so; says why.
    pub(super) fn own(dir: &Path) -> Result<Spool> {
        let spool = Spool::at(dir)?;
        let meta = spool.handle.metadata()?;
        let why = match (meta.uid() == own_user(), meta.mode() & 0o077) {
            (false, _) => format!("belongs to another user ({})", meta.uid()),
            (_, 0) => return Ok(spool),
            _ => format!("is open to other users (mode {:o})", meta.mode() & 0o777),
        };
        Err(Error::malformed(why).in_file(dir))
    }

    /// Where it was made.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file of it, as messages name it.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A file of it, as it is opened: in the directory itself, whatever lies at its path.
    fn at_handle(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()))
    }

    fn at_name(&self, name: &str) -> PathBuf {
        self.at_handle().join(name)
    }

    /// Opens a regular file of it.
    fn open(&self, name: &str, options: &mut OpenOptions) -> Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = options
            .mode(0o600)
            .custom_flags(flags.bits() as i32)
            .open(self.at_name(name));
        let file = opened.map_err(|e| Error::from(e).in_file(&self.path(name)))?;
        match file.metadata() {
            Ok(m) if m.is_file() => Ok(file),
            _ => Err(Error::malformed("is no regular file").in_file(&self.path(name))),
        }
    }

    /// Opens the file of a CPU to append to it; gives its path, for messages.
    ///
    /// # Errors
    /// If that cannot be done.
    pub(super) fn append_to(&self, cpu: u16) -> Result<(PathBuf, File)> {
        let name = of_cpu(cpu);
        let file = self.open(&name, OpenOptions::new().append(true).create(true))?;
        Ok((self.path(&name), file))
    }

    /// Bytes of the sub-buffers of so many CPUs.
    pub(super) fn raw_bytes(&self, cpus: u16) -> u64 {
        let size = |cpu| fs::metadata(self.at_name(&of_cpu(cpu))).map_or(0, |m| m.len());
        (0..cpus).map(size).sum()
    }

    /// The directory in which an output can be written first, if it goes to the same one as the spool: whatever a
    /// recorder that is killed leaves there goes with the spool.
    pub(super) fn room_for(&self, output: &Target) -> Option<PathBuf> {
        let Target::File(file) = output else {
            return None;
        };
        let file = std::path::absolute(file).ok()?;
        (parent(&file) == parent(&self.dir)).then(|| self.at_handle())
    }

    /// Whether nothing was collected in it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn is_empty(&self) -> Result<bool> {
        let named = |e: std::io::Error| Error::from(e).in_file(&self.dir);
        for item in fs::read_dir(self.at_handle()).map_err(named)? {
            let item = item.map_err(named)?;
            let is_empty = match item.file_name().to_str() {
                Some(NEW_JOB) => true,
                Some("snapshots") => {
                    fs::read_dir(item.path()).is_ok_and(|mut d| d.next().is_none())
                }
                _ => false,
            };
            if !is_empty {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the job.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn set_job(&self, job: &Job) -> Result<()> {
        let path = self.path(JOB);
        let json =
            serde_json::to_vec(job).map_err(|e| Error::malformed(e.to_string()).in_file(&path))?;
        let mut new = self.open(NEW_JOB, OpenOptions::new().write(true).create_new(true))?;
        new.write_all(&json)
            .and_then(|()| fs::rename(self.at_name(NEW_JOB), self.at_name(JOB)))
            .map_err(|e| Error::from(e).in_file(&path))
    }

    /// Reads the job.
    ///
    /// # Errors
    /// If this is no spool.
    pub fn job(&self) -> Result<Job> {
        let json = self.read(JOB).map_err(|e| {
            e.help("name a directory that a recorder left behind, NAME.unfrag.spool-PID-NUMBER")
        })?;
        serde_json::from_slice(&json)
            .map_err(|e| Error::malformed(e.to_string()).in_file(&self.path(JOB)))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let mut content = vec![];
        self.open(name, OpenOptions::new().read(true))?
            .read_to_end(&mut content)
            .map_err(|e| Error::from(e).in_file(&self.path(name)))?;
        Ok(content)
    }

    fn read_if_there(&self, name: &str) -> Result<Vec<u8>> {
        match self.read(name) {
            Err(e) if e.is_not_found() => Ok(vec![]),
            read => read,
        }
    }

    /// Adds a snapshot.
    ///
    /// # Errors
    /// If it cannot be written; nothing of it counts then.
    pub fn add(&self, snapshot: &Snapshot) -> Result<()> {
        let base = self.at_name("snapshots");
        let inner = base.join(&snapshot.name);
        let written = (|| {
            DirBuilder::new()
                .mode(0o700)
                .recursive(true)
                .create(&inner)?;
            let mut lines = String::new();
            for file in &snapshot.files {
                let (bytes, ending) = match file.content.packed() {
                    Some(packed) => (Cow::Borrowed(packed), ".zst"),
                    None => (file.content.bytes(), ""),
                };
                fs::write(inner.join(format!("{}{ending}", file.name)), bytes)?;
                let (begin, end) = file.time.unwrap_or_default();
                let (name, size) = (&file.name, file.content.len());
                lines += &format!("{}/{name}\t{begin}\t{end}\t{size}\n", snapshot.name);
            }
            let path = base.join("index.tsv");
            let is_new = !path.exists();
            let mut index = OpenOptions::new().append(true).create(true).open(path)?;
            if is_new {
                lines.insert_str(0, "record\tt0_ns\tt1_ns\tbytes\n");
            }
            index.write_all(lines.as_bytes())
        })();
        written.map_err(|e: std::io::Error| {
            let _ = fs::remove_dir_all(&inner);
            Error::from(e).in_file(&self.path("snapshots").join(&snapshot.name))
        })
    }

    /// Appends to one of the lists [`THREADS`], [`NAMES`], [`RECORDER`] and [`SYMBOLS`].
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn add_lines(&self, list: &str, lines: &[u8]) -> Result<()> {
        self.open(list, OpenOptions::new().append(true).create(true))?
            .write_all(lines)
            .map_err(|e| Error::from(e).in_file(&self.path(list)))
    }

    /// One of these lists; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn lines(&self, list: &str) -> Result<Vec<u8>> {
        self.read_if_there(list)
    }

    /// The file of each CPU's sub-buffers, of `size` bytes each, and how many bytes the whole ones take.
    ///
    /// # Errors
    /// If they cannot be opened.
    pub fn sub_buffers(&self, size: u64) -> Result<Vec<(u16, File, u64)>> {
        let named = |e: std::io::Error| Error::from(e).in_file(&self.dir);
        let mut all = vec![];
        for item in fs::read_dir(self.at_handle()).map_err(named)? {
            let name = item.map_err(named)?.file_name();
            let name = name.to_str().unwrap_or("");
            let number = name
                .strip_prefix("cpu")
                .and_then(|n| n.strip_suffix(".raw"));
            let Some(cpu) = number.and_then(|n| n.parse().ok()) else {
                continue;
            };
            let file = self.open(name, OpenOptions::new().read(true))?;
            let len = file
                .metadata()
                .map_err(|e| Error::from(e).in_file(&self.path(name)))?
                .len();
            all.push((cpu, file, len / size * size));
        }
        all.sort_unstable_by_key(|(cpu, ..)| *cpu);
        Ok(all)
    }

    /// Cuts off a partial sub-buffer at the end of each file, so that more can be appended.
    ///
    /// # Errors
    /// If the files cannot be changed.
    pub fn cut_to(&self, size: u64, cpus: &[u16]) -> Result<()> {
        for &cpu in cpus {
            let name = of_cpu(cpu);
            let file = match self.open(&name, OpenOptions::new().write(true)) {
                Err(e) if e.is_not_found() => continue,
                file => file?,
            };
            file.metadata()
                .and_then(|m| file.set_len(m.len() / size * size))
                .map_err(|e| Error::from(e).in_file(&self.path(&name)))?;
        }
        Ok(())
    }

    /// The snapshots that count.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>> {
        const INDEX: &str = "snapshots/index.tsv";
        let index = self.read_if_there(INDEX)?;
        if index.is_empty() {
            return Ok(vec![]);
        }
        // A partial line at the end does not count.
        let whole = index.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        if whole < index.len() {
            self.open(INDEX, OpenOptions::new().write(true))?
                .set_len(whole as u64)
                .map_err(|e| Error::from(e).in_file(&self.path(INDEX)))?;
        }
        let mut all =
            crate::snapshots::read(&self.at_name("snapshots")).map_err(|e| self.named(e))?;
        for snapshot in &mut all {
            snapshot.files.retain(|f| f.time.is_some());
        }
        all.retain(|s| !s.files.is_empty());
        Ok(all)
    }

    /// Removes the sub-buffers, to make room for the file made from them.
    pub fn remove_sub_buffers(&self, cpus: impl Iterator<Item = u16>) {
        for cpu in cpus {
            let _ = fs::remove_file(self.at_name(&of_cpu(cpu)));
        }
    }

    /// Keeps it out of the way of what looks for spools; gives where it lies from now on.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub(super) fn set_aside(dir: &Path) -> Result<PathBuf> {
        for to in spool_name::set_aside(dir) {
            if matches!(fs::symlink_metadata(&to), Err(e) if e.kind() == ErrorKind::NotFound) {
                let renamed = fs::rename(dir, &to).map(|()| to);
                return renamed.map_err(|e| Error::from(e).in_file(dir));
            }
        }
        Err(Error::malformed("too many of this name were set aside").in_file(dir))
    }

    /// Removes it. What is left of it if that is cut short is no spool any more.
    ///
    /// # Errors
    /// If that cannot be done.
    pub fn remove(self) -> Result<()> {
        let named = |e: std::io::Error| Error::from(e).in_file(&self.dir);
        let gone = spool_name::removed(&self.dir);
        let dir = match fs::rename(&self.dir, &gone) {
            Ok(()) => &gone,
            Err(_) => &self.dir,
        };
        fs::remove_dir_all(dir).map_err(named)
    }

    /// Removes what is left in a directory of spools whose removal was cut short.
    pub(super) fn remove_rests(dir: &Path) {
        for item in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = item.path();
            if spool_name::is_removed(&path) && Spool::own(&path).is_ok() {
                let _ = fs::remove_dir_all(path);
            }
        }
    }

    /// An error with the path of the spool in place of that of its descriptor.
    fn named(&self, mut e: Error) -> Error {
        let inner = e
            .file
            .as_deref()
            .and_then(|f| f.strip_prefix(self.at_handle()).ok());
        let path = inner.map_or(self.dir.clone(), |inner| self.dir.join(inner));
        e.file = Some(path);
        e
    }
}

/// The name of the file that holds a CPU's sub-buffers.
fn of_cpu(cpu: u16) -> String {
    format!("cpu{cpu}.raw")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::SnapshotFile;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("unfrag-spool-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn snapshot(name: &str, time: u64) -> Snapshot {
        Snapshot {
            name: name.into(),
            files: vec![SnapshotFile {
                name: "vmstat".into(),
                time: Some((time, time + 5)),
                content: "pgfree 1\n".into(),
            }],
        }
    }

    #[test]
    fn a_snapshot_with_a_partial_line_does_not_count() {
        let dir = scratch("index");
        let spool = Spool::create(&Target::File(dir.join("x.unfrag"))).unwrap();
        spool.add(&snapshot("begin", 100)).unwrap();
        spool.add(&snapshot("s0001", 200)).unwrap();
        let index = spool.dir().join("snapshots/index.tsv");
        let text = fs::read(&index).unwrap();
        fs::write(&index, &text[..text.len() - 6]).unwrap();
        let all = spool.snapshots().unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0], snapshot("begin", 100));
        spool.remove().unwrap();
        fs::remove_dir(dir).unwrap();
    }

    #[test]
    fn a_partial_sub_buffer_is_cut_off() {
        let dir = scratch("cut");
        let spool = Spool::create(&Target::File(dir.join("x.unfrag"))).unwrap();
        let file = spool.dir().join("cpu3.raw");
        fs::write(&file, vec![7; 2 * 4096 + 100]).unwrap();
        assert_eq!(spool.sub_buffers(4096).unwrap()[0].2, 2 * 4096);
        spool.cut_to(4096, &[0, 3]).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().len(), 2 * 4096);
        spool.remove().unwrap();
        fs::remove_dir(dir).unwrap();
    }
}
