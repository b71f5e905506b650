//! The spool: the directory that holds a recording while it is made.
//!
//! Invariant: at any moment `finish` can make a file from it, even after a crash. The [`Job`] is written before
//! the trace begins, sub-buffers are appended, and a snapshot counts once its line stands in `index.tsv`.

use std::borrow::Cow;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::recording::Snapshot;
use crate::target::Target;

/// Name of the member that holds the [`Job`].
const JOB: &str = "job.json";

/// The list of kernel threads: lines `PID NAME`, of which the last one for a PID counts.
pub const THREADS: &str = "kernel-threads";
/// The list of all other tasks, in lines of the same form.
pub const NAMES: &str = "cmdlines";

/// A recording's parameters, known before the trace begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Job {
    /// The file to be made.
    pub output: PathBuf,
    /// Whether it is one of several segments.
    #[serde(default)]
    pub in_segments: bool,
    /// The tracer's instance.
    pub instance: PathBuf,
    /// Whether names and numbers of tasks may stand in the file.
    pub names: bool,
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

/// The file in the spool's directory `dir` that holds a CPU's sub-buffers.
pub fn spool_file(dir: &Path, cpu: u16) -> PathBuf {
    dir.join(format!("cpu{cpu}.raw"))
}

/// A spool.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
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
        let mut name = base.into_os_string();
        name.push(format!(".spool-{}", std::process::id()));
        let dir = PathBuf::from(name);
        let help = |e: &std::io::Error| match e.kind() {
            ErrorKind::AlreadyExists => {
                "a recorder that died left it: unfrag record --recover makes a file of it"
            }
            _ if !is_beside => {
                "the recording is collected in the temporary directory: set TMPDIR to a directory that can be \
                  written"
            }
            _ => {
                "the recording is collected beside the file that it becomes: name one in a directory that \
                  can be written"
            }
        };
        DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .and_then(|()| fs::create_dir(dir.join("snapshots")))
            .map_err(|e| {
                let help = help(&e);
                Error::from(e).in_file(&dir).help(help)
            })?;
        Ok(Spool { dir })
    }

    /// The spool that exists at `dir`.
    #[must_use]
    pub fn at(dir: &Path) -> Spool {
        Spool {
            dir: dir.to_owned(),
        }
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes the job.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn set_job(&self, job: &Job) -> Result<()> {
        let path = self.dir.join(JOB);
        let json =
            serde_json::to_vec(job).map_err(|e| Error::malformed(e.to_string()).in_file(&path))?;
        fs::write(&path, json).map_err(|e| Error::from(e).in_file(&path))
    }

    /// Reads the job.
    ///
    /// # Errors
    /// If this is no spool.
    pub fn job(&self) -> Result<Job> {
        let path = self.dir.join(JOB);
        let json = fs::read(&path).map_err(|e| {
            Error::from(e)
                .in_file(&path)
                .help("name a directory that a recorder left behind, NAME.unfrag.spool-PID")
        })?;
        serde_json::from_slice(&json).map_err(|e| Error::malformed(e.to_string()).in_file(&path))
    }

    /// Adds a snapshot.
    ///
    /// # Errors
    /// If it cannot be written; nothing of it counts then.
    pub fn add(&self, snapshot: &Snapshot) -> Result<()> {
        let base = self.dir.join("snapshots");
        let inner = base.join(&snapshot.name);
        let written = (|| {
            fs::create_dir_all(&inner)?;
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
            Error::from(e).in_file(&inner)
        })
    }

    /// Appends to one of the lists [`THREADS`] and [`NAMES`].
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn add_lines(&self, list: &str, lines: &[u8]) -> Result<()> {
        let path = self.dir.join(list);
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut f| f.write_all(lines))
            .map_err(|e| Error::from(e).in_file(&path))
    }

    /// One of these lists; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn lines(&self, list: &str) -> Result<Vec<u8>> {
        read_if_there(&self.dir.join(list))
    }

    /// The file of each CPU's sub-buffers, of `size` bytes each, and how many bytes the whole ones take.
    ///
    /// # Errors
    /// If they cannot be opened.
    pub fn sub_buffers(&self, size: u64) -> Result<Vec<(u16, File, u64)>> {
        let named = |e: std::io::Error| Error::from(e).in_file(&self.dir);
        let mut all = vec![];
        for item in fs::read_dir(&self.dir).map_err(named)? {
            let path = item.map_err(named)?.path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
            let number = name
                .strip_prefix("cpu")
                .and_then(|n| n.strip_suffix(".raw"));
            let Some(cpu) = number.and_then(|n| n.parse().ok()) else {
                continue;
            };
            let opened = File::open(&path).and_then(|f| Ok((f.metadata()?.len(), f)));
            let (len, file) = opened.map_err(|e| Error::from(e).in_file(&path))?;
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
            let path = spool_file(&self.dir, cpu);
            let cut = |file: File| -> std::io::Result<()> {
                let len = file.metadata()?.len();
                file.set_len(len / size * size)
            };
            match OpenOptions::new().write(true).open(&path) {
                Ok(file) => cut(file).map_err(|e| Error::from(e).in_file(&path))?,
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(Error::from(e).in_file(&path)),
            }
        }
        Ok(())
    }

    /// The snapshots that count.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>> {
        let base = self.dir.join("snapshots");
        let path = base.join("index.tsv");
        let mut index = read_if_there(&path)?;
        if index.is_empty() {
            return Ok(vec![]);
        }
        // A partial line at the end does not count.
        let whole = index.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        if whole < index.len() {
            index.truncate(whole);
            fs::write(&path, &index).map_err(|e| Error::from(e).in_file(&path))?;
        }
        let mut all = crate::snapshots::read(&base)?;
        for snapshot in &mut all {
            snapshot.files.retain(|f| f.time.is_some());
        }
        all.retain(|s| !s.files.is_empty());
        Ok(all)
    }

    /// Removes the sub-buffers, to make room for the file made from them.
    pub fn remove_sub_buffers(&self, cpus: impl Iterator<Item = u16>) {
        for cpu in cpus {
            let _ = fs::remove_file(spool_file(&self.dir, cpu));
        }
    }

    /// Removes it.
    ///
    /// # Errors
    /// If that cannot be done.
    pub fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.dir).map_err(|e| Error::from(e).in_file(&self.dir))
    }
}

fn read_if_there(path: &Path) -> Result<Vec<u8>> {
    match fs::read(path) {
        Ok(content) => Ok(content),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(vec![]),
        Err(e) => Err(Error::from(e).in_file(path)),
    }
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
        let file = spool_file(spool.dir(), 3);
        fs::write(&file, vec![7; 2 * 4096 + 100]).unwrap();
        assert_eq!(spool.sub_buffers(4096).unwrap()[0].2, 2 * 4096);
        spool.cut_to(4096, &[0, 3]).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().len(), 2 * 4096);
        spool.remove().unwrap();
        fs::remove_dir(dir).unwrap();
    }
}
