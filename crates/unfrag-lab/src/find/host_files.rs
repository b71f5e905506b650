//! The files of a host: procfs or a copy of it, and sysfs where it is this host's own.
//!
//! Invariant: page flags are never held; they are read in pieces, at the pace that was asked for.

use crate::host::files::Files;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::Instant;

/// Why a link in a copy is not read.
const A_LINK: &str = "a link; what it points to is not read";

/// How page flags are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagsPace {
    /// Not at all.
    Never,
    /// As fast as the kernel gives them.
    AtOnce,
    /// A little at a time, so that a CPU has nine tenths of its time for others.
    Gently,
}

/// Files of procfs, and of sysfs where this host is examined.
pub struct HostFiles<'a> {
    /// Where procfs, or a copy of it, is.
    pub proc: &'a Path,
    /// Whether it is this host's own.
    pub is_own: bool,
    /// How page flags are read.
    pub flags: FlagsPace,
}

impl HostFiles<'_> {
    /// Refuses a link in a copy: what it points to may be another host's.
    fn is_plain(&self, name: &str) -> io::Result<()> {
        match !self.is_own && self.proc.join(name).is_symlink() {
            true => Err(io::Error::other(A_LINK)),
            false => Ok(()),
        }
    }
}

impl Files for HostFiles<'_> {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.is_plain(name)?;
        if let Some(name) = name.strip_prefix("sysfs/").filter(|_| self.is_own) {
            return fs::read(Path::new("/sys").join(name));
        }
        match name.strip_prefix("thp/") {
            Some(name) if self.is_own => {
                fs::read(Path::new("/sys/kernel/mm/transparent_hugepage").join(name))
            }
            Some(_) => Err(io::ErrorKind::NotFound.into()),
            None => match (fs::read(self.proc.join(name)), other_name(name)) {
                // A copy may have what `sysctl -a` said beside it.
                (Err(e), Some(other)) if e.kind() == io::ErrorKind::NotFound && !self.is_own => {
                    fs::read(self.proc.join(other))
                }
                (read, _) => read,
            },
        }
    }

    fn stream(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        self.is_plain(name)?;
        let open = || File::open(self.proc.join(name));
        Ok(match self.flags {
            FlagsPace::Never => return Err(io::Error::other("read at its own pace")),
            FlagsPace::AtOnce => Box::new(open()?),
            FlagsPace::Gently => Box::new(Gentle(open()?)),
        })
    }
}

/// A file of which each read is followed by a pause nine times as long.
struct Gentle(File);

impl Read for Gentle {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let begin = Instant::now();
        let n = self.0.read(room)?;
        thread::sleep(9 * begin.elapsed());
        Ok(n)
    }
}

/// The name under which the output of a command tells what a file does.
fn other_name(name: &str) -> Option<&'static str> {
    match name {
        "uname" => Some("uname_-a"),
        "sysctl-vm" => Some("sysctl_-a"),
        _ => None,
    }
}
