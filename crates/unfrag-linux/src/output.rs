//! Outputs: the one way in which files are written for whoever asked for them.
//!
//! A regular file is written under a random name in the directory in which it will lie, made exclusively, and takes
//! its place in one step once it is complete. So a reader sees the old file or the new one, of several writers one
//! wins, and nothing that lies beside it is touched, whatever it is called. What is no regular file gets the content
//! once it is complete.
//!
//! Invariant: every file that this library, the laboratory and the command write goes through an [`Output`], except
//! for those of a spool, which lie in a directory of the recorder's own. What becomes of it is decided by the
//! [`Target`]; who may read it by [`Holds`].

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::input_text::escaped_path;
use crate::no_room;
use crate::target::{NO_FOLLOW, Target, own_user, parent};
use crate::unfinished::Unfinished;

/// What an output holds. A file that is replaced keeps its mode if it belongs to the user who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A recording or a snapshot: what procfs shows to root alone. Nobody but its owner may read it, and once it is
    /// there it outlives a crash of the host.
    Recording,
    /// One of many files that a recording becomes; as it can be made again, nothing waits for the disk.
    Copies,
    /// An answer. The umask says who may read it.
    Answer,
}

impl Holds {
    fn mode(self) -> u32 {
        match self {
            Holds::Recording | Holds::Copies => 0o600,
            Holds::Answer => 0o666,
        }
    }
}

/// An output that is being written, and appears once it is complete.
pub struct Output {
    to: Target,
    place: Place,
    holds: Holds,
    /// Mode of the file that is replaced, if it is to be kept.
    mode: Option<u32>,
}

/// Where it is written first.
enum Place {
    Named(Unfinished),
    Unnamed(File),
}

impl Output {
    /// Begins an output. For what is no regular file it lies in a file without a name in the temporary directory.
    ///
    /// # Errors
    /// If a file cannot be made there.
    pub fn create(to: &Target, holds: Holds) -> io::Result<Output> {
        match to {
            Target::File(file) => Output::create_in(parent(file), to, holds),
            _ => Ok(Output {
                to: to.clone(),
                place: Place::Unnamed(unnamed()?),
                holds,
                mode: None,
            }),
        }
    }

    /// Begins an output that is a regular file in another directory of the same file system.
    ///
    /// # Errors
    /// If a file cannot be made there.
    pub(crate) fn create_in(dir: &Path, to: &Target, holds: Holds) -> io::Result<Output> {
        let mode = match to {
            Target::File(file) => mode_to_keep(file),
            _ => None,
        };
        // A file that only its owner may read is so from the beginning.
        let first = mode.map_or(holds.mode(), |_| 0o600);
        let file = Unfinished::create(dir, first).map_err(|e| with_directory(e, dir))?;
        Ok(Output {
            to: to.clone(),
            place: Place::Named(file),
            holds,
            mode,
        })
    }

    /// Completes the output; gives its size in bytes.
    ///
    /// # Errors
    /// If it cannot be written. A regular file is then what it was before.
    pub fn commit(mut self) -> io::Result<u64> {
        let size = self.file()?.seek(SeekFrom::End(0))?;
        let is_synced = self.holds != Holds::Copies;
        if let Place::Named(_) = self.place {
            let mode = self.mode;
            let file = self.file()?;
            if let Some(mode) = mode {
                // A file system without modes keeps its own.
                let _ = file.set_permissions(Permissions::from_mode(mode));
            }
            if is_synced {
                synced(file)?;
            }
        }
        match (self.place, &self.to) {
            (Place::Named(file), Target::File(to)) => {
                file.put_at(to)?;
                if is_synced && let Ok(dir) = File::open(parent(to)) {
                    synced(&dir)?;
                }
            }
            (Place::Unnamed(mut file), to) => {
                file.rewind()?;
                let mut out = open(to)?;
                io::copy(&mut file, &mut out)?;
                out.flush()?;
            }
            (Place::Named(_), _) => return Err(io::Error::other("no file is to be made")),
        }
        Ok(size)
    }

    fn file(&mut self) -> io::Result<&mut File> {
        let gone = || io::Error::other("the file has its name already");
        match &mut self.place {
            Place::Named(file) => file.file().ok_or_else(gone),
            Place::Unnamed(file) => Ok(file),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file()?.write(bytes);
        written.map_err(|e| match self.place {
            // It is not the target that is full.
            Place::Unnamed(_) if no_room::is_full(&e) => no_room::temporary(e, None),
            _ => e,
        })
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file()?.seek(to)
    }
}

/// Writes an output.
///
/// # Errors
/// If it cannot be written. A regular file is then what it was before.
pub fn write(to: &Target, content: &[u8], holds: Holds) -> io::Result<()> {
    if let Target::File(_) = to {
        let mut output = Output::create(to, holds)?;
        output.write_all(content)?;
        return output.commit().map(drop);
    }
    let mut out = open(to)?;
    out.write_all(content).and_then(|()| out.flush())
}

/// Checks that a target can be written, before the work whose result goes there. A pipe is not opened for that, as its
/// reader would take that for the end.
///
/// # Errors
/// If it cannot.
pub fn check(to: &Target) -> io::Result<()> {
    match to {
        Target::File(_) => Output::create(to, Holds::Recording).map(drop),
        _ => Ok(()),
    }
}

/// A file in the temporary directory that is gone with its last user.
///
/// # Errors
/// If there is no room for it.
pub fn unnamed() -> io::Result<File> {
    tempfile::tempfile().map_err(|e| no_room::temporary(e, None))
}

/// Opens what is no regular file.
fn open(to: &Target) -> io::Result<Box<dyn Write>> {
    // A descriptor's file may hold something already: what it is opened for here comes after that.
    let mut options = OpenOptions::new();
    options.append(true);
    Ok(match to {
        Target::Stdout => Box::new(io::stdout().lock()),
        Target::Descriptor(path) => Box::new(options.open(path)?),
        Target::Special(path) | Target::File(path) => {
            let file = options.custom_flags(NO_FOLLOW).open(path)?;
            if file.metadata()?.is_file() {
                return Err(io::Error::other("became a regular file meanwhile"));
            }
            Box::new(file)
        }
    })
}

/// The mode of the file that is replaced. One of another user does not count: whoever laid it chose it for themselves.
fn mode_to_keep(file: &Path) -> Option<u32> {
    let old = fs::symlink_metadata(file).ok()?;
    (old.is_file() && old.uid() == own_user()).then(|| old.mode() & 0o777)
}

/// Waits until it is on the disk, where the file system can say so.
fn synced(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        done => done,
    }
}

/// Names the directory where the right is missing there: the file itself may be one that can be written.
fn with_directory(e: io::Error, dir: &Path) -> io::Error {
    let what = match e.kind() {
        ErrorKind::PermissionDenied => "Permission denied",
        ErrorKind::ReadOnlyFilesystem => "Read-only file system",
        _ => return e,
    };
    let place = escaped_path(dir);
    io::Error::new(
        e.kind(),
        format!("{what} in the directory {place}, where it is written under another name first"),
    )
}
