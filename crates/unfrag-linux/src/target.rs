//! Where a file that is asked for by its path goes.
//!
//! `-` and `/dev/stdout` are the standard output. A device, a pipe, a socket or an open descriptor
//! (`/dev/fd/N`) is written to as it stands. Anything else is a regular file, which may lie behind symbolic links.
//!
//! Invariant: nothing but a regular file is ever replaced, and that only once its new content is complete.
//! A symbolic link stays.

use crate::no_room;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Symbolic links that are followed one after the other, as many as Linux follows.
const MOST_LINKS: u32 = 40;

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The standard output.
    Stdout,
    /// What is no regular file, or is open already: written to as it stands.
    Special(PathBuf),
    /// A regular file, whether it exists or not; no link.
    File(PathBuf),
}

impl Target {
    /// What `path` leads to.
    ///
    /// # Errors
    /// If it leads to a directory, or through more than 40 symbolic links.
    pub fn of(path: &Path) -> io::Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Stdout);
        }
        let mut to = path.to_owned();
        let mut links = 0;
        loop {
            match descriptor(&to) {
                Some(Descriptor::OwnStdout) => return Ok(Target::Stdout),
                Some(Descriptor::Other) => return Ok(Target::Special(path.to_owned())),
                None => {}
            }
            let Ok(next) = fs::read_link(&to) else { break };
            links += 1;
            if links > MOST_LINKS {
                return Err(io::Error::other("too many symbolic links"));
            }
            to = to.parent().unwrap_or(Path::new("")).join(next);
        }
        match fs::metadata(&to) {
            Ok(m) if m.is_dir() => Err(ErrorKind::IsADirectory.into()),
            Ok(m) if !m.is_file() => Ok(Target::Special(path.to_owned())),
            _ => Ok(Target::File(to)),
        }
    }

    /// Checks that it can be written, before the work whose result goes there. A pipe is not opened for
    /// that, as its reader would take that for the end.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check(&self) -> io::Result<()> {
        match self {
            Target::File(to) => {
                let partial = partial(to);
                fs::write(&partial, []).and_then(|()| fs::remove_file(&partial))
            }
            _ => Ok(()),
        }
    }

    /// Begins an output that is written piece by piece. What is no regular file gets it once it is complete; until then
    /// it lies in a file without a name in the temporary directory.
    ///
    /// # Errors
    /// If a file cannot be made there.
    pub fn create(&self) -> io::Result<Output> {
        let (file, partial) = match self {
            Target::File(to) => {
                let partial = partial(to);
                let mut options = OpenOptions::new();
                options.read(true).write(true).create(true).truncate(true);
                (options.open(&partial)?, Some(partial))
            }
            _ => (unnamed()?, None),
        };
        Ok(Output {
            to: self.clone(),
            file,
            partial,
        })
    }

    /// Opens what is no regular file.
    fn open(&self) -> io::Result<Box<dyn Write>> {
        Ok(match self {
            Target::Stdout => Box::new(io::stdout().lock()),
            // A descriptor's file may hold something already: what it is opened for here comes after that.
            Target::Special(path) | Target::File(path) => {
                Box::new(OpenOptions::new().append(true).open(path)?)
            }
        })
    }

    /// Writes `content`.
    ///
    /// # Errors
    /// If it cannot be written. A regular file is then what it was before.
    pub fn write(&self, content: &[u8]) -> io::Result<()> {
        match self {
            Target::Stdout | Target::Special(_) => {
                let mut out = self.open()?;
                out.write_all(content).and_then(|()| out.flush())
            }
            Target::File(to) => {
                let partial = partial(to);
                let done = fs::write(&partial, content).and_then(|()| fs::rename(&partial, to));
                done.inspect_err(|_| {
                    let _ = fs::remove_file(&partial);
                })
            }
        }
    }
}

/// An output that is being written, and appears once it is complete.
pub struct Output {
    to: Target,
    file: File,
    /// Where it is written first.
    partial: Option<PathBuf>,
}

impl Output {
    /// Completes the output; gives its size in bytes.
    ///
    /// # Errors
    /// If it cannot be written. A regular file is then what it was before.
    pub fn commit(mut self) -> io::Result<u64> {
        let size = self.file.seek(SeekFrom::End(0))?;
        match (&self.to, &self.partial) {
            (Target::File(to), Some(partial)) => {
                fs::rename(partial, to)?;
                self.partial = None;
            }
            _ => {
                self.file.rewind()?;
                let mut out = self.to.open()?;
                io::copy(&mut self.file, &mut out)?;
                out.flush()?;
            }
        }
        Ok(size)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}

/// A file in the temporary directory that is gone with its last user.
///
/// # Errors
/// If there is no room for it.
pub fn unnamed() -> io::Result<File> {
    tempfile::tempfile().map_err(|e| no_room::temporary(e, None))
}

/// The name under which a file is written first.
fn partial(to: &Path) -> PathBuf {
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    partial.into()
}

/// An open descriptor, as a path names it.
enum Descriptor {
    OwnStdout,
    Other,
}

/// The descriptor that a path names, such as `/dev/fd/3` or `/proc/self/fd/3`; `None` if it names none.
fn descriptor(path: &Path) -> Option<Descriptor> {
    let number: u32 = path.file_name()?.to_str()?.parse().ok()?;
    let directory = fs::canonicalize(path.parent()?).ok()?;
    if !directory.starts_with("/proc") || directory.file_name()? != "fd" {
        return None;
    }
    let own = fs::canonicalize("/proc/self/fd").ok()?;
    Some(match number {
        1 if directory == own => Descriptor::OwnStdout,
        _ => Descriptor::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, symlink};

    /// A fresh directory, removed at the end.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let name = format!("unfrag-target-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            fs::create_dir_all(&dir).unwrap();
            Dir(dir)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn write(path: &Path, content: &str) {
        let target = Target::of(path).unwrap();
        target.check().unwrap();
        target.write(content.as_bytes()).unwrap();
    }

    #[test]
    fn a_link_stays_a_link_and_what_it_leads_to_is_written() {
        let dir = Dir::new("link");
        let [file, link, other] = ["file", "link", "other"].map(|n| dir.0.join(n));
        symlink("link", &other).unwrap();
        symlink("file", &link).unwrap();
        for content in ["one", "two"] {
            write(&other, content);
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::symlink_metadata(&other).unwrap().is_symlink());
        assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 3, "no leftovers");
        let round = dir.0.join("round");
        symlink("round", &round).unwrap();
        assert!(Target::of(&round).is_err());
    }

    #[test]
    fn a_pipe_is_written_to_and_stays_a_pipe() {
        let dir = Dir::new("pipe");
        let pipe = dir.0.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write(&pipe, "hello");
        assert_eq!(reader.join().unwrap(), "hello");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn the_standard_output_goes_by_many_names() {
        for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert_eq!(
                Target::of(Path::new(name)).unwrap(),
                Target::Stdout,
                "{name}"
            );
        }
        let error = Path::new("/dev/stderr");
        assert_eq!(Target::of(error).unwrap(), Target::Special(error.into()));
        assert_eq!(
            Target::of(Path::new("1")).unwrap(),
            Target::File("1".into())
        );
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let dir = Dir::new("before");
        assert!(Target::of(&dir.0).is_err(), "a directory");
        let missing = Target::of(&dir.0.join("no/file")).unwrap();
        assert!(missing.check().is_err());
        assert!(missing.write(b"").is_err());
    }
}
