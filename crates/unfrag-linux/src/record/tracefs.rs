//! The kernel's tracer: its mount point, and instances of it that belong to recorders.
//!
//! Invariant: nothing outside `instances/unfrag-*` is written. A user of an instance holds a shared lock on
//! its directory. An instance without a lock was left by a recorder that died, in whatever pid namespace,
//! and [`Tracefs::remove_stale`] removes it. Making an instance and looking for stale ones both hold a lock
//! on `instances` itself, so a new instance is never taken for a stale one.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result};

/// Prefix of the names of recorders' instances.
const PREFIX: &str = "unfrag-";

/// Time for the kernel to release an instance whose files were closed.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Help: what still works without the right to trace.
pub const WITHOUT_TRACING: &str =
    "without that right, `unfrag snapshot` and `unfrag inspect /proc` still work";

/// A mounted tracefs.
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: PathBuf,
}

impl Tracefs {
    /// Finds the mount point.
    ///
    /// # Errors
    /// If there is none, or it may not be read; says what to do.
    pub fn find() -> Result<Tracefs> {
        let mounts = Path::new("/proc/self/mounts");
        let text = fs::read(mounts).map_err(|e| Error::from(e).in_file(mounts))?;
        let root = mount_point(&String::from_utf8_lossy(&text)).ok_or_else(|| {
            Error::unsupported("tracefs is not mounted").help(format!(
                "as root: mount -t tracefs nodev /sys/kernel/tracing; a container needs it mounted \
                 from the host, writable; {WITHOUT_TRACING}"
            ))
        })?;
        let instances = root.join("instances");
        match fs::metadata(&instances) {
            Ok(_) => Ok(Tracefs { root }),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Error::unsupported(
                "this kernel's tracer has no instances (they came with Linux 3.10)",
            )
            .in_file(&root)
            .help(WITHOUT_TRACING)),
            Err(e) => Err(access_error(e, &instances)),
        }
    }

    /// Removes instances of recorders that died; gives their names.
    ///
    /// # Errors
    /// If the instances cannot be listed.
    pub fn remove_stale(&self) -> Result<Vec<String>> {
        let dir = self.root.join("instances");
        let lock = lock_instances(&dir)?;
        let mut stale = vec![];
        for item in fs::read_dir(&dir).map_err(|e| access_error(e, &dir))? {
            let Ok(name) = item
                .map_err(|e| access_error(e, &dir))?
                .file_name()
                .into_string()
            else {
                continue;
            };
            if !is_recorders(&name) {
                continue;
            }
            if let Ok(f) = File::open(dir.join(&name))
                && flock(&f, FlockOperation::NonBlockingLockExclusive).is_ok()
            {
                stale.push((name, f));
            }
        }
        drop(lock);
        stale.retain(|(name, _)| remove_at(&dir.join(name)).is_ok());
        Ok(stale.into_iter().map(|(name, _)| name).collect())
    }

    /// Makes an instance, stopped and with no event in it.
    ///
    /// # Errors
    /// If that is not allowed; says which right is missing.
    pub fn instance(&self) -> Result<Instance> {
        let id = std::process::id();
        let names = std::iter::once(format!("{PREFIX}{id}"))
            .chain((2..100).map(|n| format!("{PREFIX}{id}-{n}")));
        let instances = self.root.join("instances");
        let _lock = lock_instances(&instances)?;
        for name in names {
            let dir = instances.join(name);
            match fs::create_dir(&dir) {
                Ok(()) => {
                    let instance = Instance::open(&dir)?;
                    instance.set("tracing_on", "0")?;
                    return Ok(instance);
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(access_error(e, &dir)),
            }
        }
        Err(Error::malformed("too many instances of one name")
            .in_file(&instances)
            .help("remove those that nobody uses with rmdir"))
    }
}

/// Locks `instances` until the file is dropped, so that no other recorder makes or removes an instance.
fn lock_instances(instances: &Path) -> Result<File> {
    let f = File::open(instances).map_err(|e| access_error(e, instances))?;
    flock(&f, FlockOperation::LockExclusive).map_err(|e| access_error(e.into(), instances))?;
    Ok(f)
}

/// Whether an instance of this name belongs to a recorder.
fn is_recorders(name: &str) -> bool {
    let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.split('-').all(number))
}

/// The tracer's directory according to /proc/self/mounts: tracefs or, before Linux 4.1, a directory of debugfs.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    let of_type = |wanted: &str| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (place, kind) = (words.next()?, words.next()?);
            (kind == wanted).then(|| PathBuf::from(unescape(place)))
        })
    };
    of_type("tracefs").or_else(|| of_type("debugfs").map(|d| d.join("tracing")))
}

/// Undoes the octal escapes that a mount point has for spaces and the like.
fn unescape(place: &str) -> String {
    let mut parts = place.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|o| u8::from_str_radix(o, 8).ok()) {
            Some(byte) => {
                out.push(char::from(byte));
                out += &part[3..];
            }
            None => {
                out.push('\\');
                out += part;
            }
        }
    }
    out
}

/// An error of the tracer's files, with the right that is missing.
fn access_error(e: std::io::Error, path: &Path) -> Error {
    let help = match e.kind() {
        ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => format!(
            "root's right to trace was taken away here: by a container that lacks CAP_SYS_ADMIN and \
             CAP_DAC_OVERRIDE, or by kernel lockdown (see /sys/kernel/security/lockdown); {WITHOUT_TRACING}"
        ),
        ErrorKind::PermissionDenied => {
            format!("recording needs root, or the right to write to tracefs; {WITHOUT_TRACING}")
        }
        ErrorKind::ReadOnlyFilesystem => {
            format!(
                "tracefs is mounted read-only here, as containers do: mount it writable; {WITHOUT_TRACING}"
            )
        }
        _ => WITHOUT_TRACING.to_owned(),
    };
    Error::from(e).in_file(path).help(help)
}

fn remove_at(dir: &Path) -> Result<()> {
    let _ = fs::write(dir.join("tracing_on"), "0");
    let start = Instant::now();
    loop {
        match fs::remove_dir(dir) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() == ErrorKind::ResourceBusy && start.elapsed() < RELEASE_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(e) => {
                let help = format!("remove it by hand: rmdir {}", dir.display());
                return Err(Error::from(e).in_file(dir).help(help));
            }
        }
    }
}

/// An instance of the tracer: buffers, events and settings of its own.
#[derive(Debug)]
pub struct Instance {
    dir: PathBuf,
    /// Holds the shared lock.
    _lock: File,
}

impl Instance {
    /// Opens an instance that exists, and takes its shared lock.
    ///
    /// # Errors
    /// If it is gone.
    pub fn open(dir: &Path) -> Result<Instance> {
        let lock = File::open(dir).map_err(|e| access_error(e, dir))?;
        flock(&lock, FlockOperation::NonBlockingLockShared)
            .map_err(|e| access_error(e.into(), dir))?;
        Ok(Instance {
            dir: dir.to_owned(),
            _lock: lock,
        })
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file of it.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Writes a setting.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.path(file);
        // Without O_CREAT, which tracefs refuses with a misleading error.
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .and_then(|mut f| f.write_all(value.as_bytes()))
            .map_err(|e| access_error(e, &path))
    }

    /// Writes a setting that not every kernel has.
    ///
    /// # Errors
    /// If the kernel has it and refuses.
    pub fn set_if_there(&self, file: &str, value: &str) -> Result<bool> {
        if !self.path(file).exists() {
            return Ok(false);
        }
        self.set(file, value).map(|()| true)
    }

    /// The bytes of a file of it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn get(&self, file: &str) -> Result<Vec<u8>> {
        let path = self.path(file);
        // Some files give everything at the first read, and drop what does not fit.
        let mut room = vec![0; 64 << 10];
        let mut content = vec![];
        let mut read = || -> std::io::Result<()> {
            let mut from = File::open(&path)?;
            loop {
                match from.read(&mut room)? {
                    0 => return Ok(()),
                    n => content.extend_from_slice(&room[..n]),
                }
            }
        };
        read().map_err(|e| access_error(e, &path))?;
        Ok(content)
    }

    /// Its CPUs, ascending.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn cpus(&self) -> Result<Vec<u16>> {
        let dir = self.path("per_cpu");
        let mut cpus = vec![];
        for item in fs::read_dir(&dir).map_err(|e| access_error(e, &dir))? {
            let name = item.map_err(|e| access_error(e, &dir))?.file_name();
            let number = name.to_str().and_then(|n| n.strip_prefix("cpu"));
            cpus.extend(number.and_then(|n| n.parse::<u16>().ok()));
        }
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// The tracer's counts: the `stats` of each CPU after a line `CPU: N`.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn counts(&self) -> Result<String> {
        let mut text = String::new();
        for cpu in self.cpus()? {
            let stats = self.get(&format!("per_cpu/cpu{cpu}/stats"))?;
            text += &format!("CPU: {cpu}\n{}", String::from_utf8_lossy(&stats));
        }
        Ok(text)
    }

    /// Removes the instance, once its files are closed.
    ///
    /// # Errors
    /// If it stays in use.
    pub fn remove(self) -> Result<()> {
        remove_at(&self.dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefs_is_preferred_to_debugfs() {
        let both = "sysfs /sys sysfs rw 0 0\ndebugfs /sys/kernel/debug debugfs rw 0 0\n\
                    nodev /sys/kernel/tracing tracefs rw 0 0\n";
        assert_eq!(mount_point(both), Some("/sys/kernel/tracing".into()));
        let old = "debugfs /d\\040x debugfs rw 0 0\n";
        assert_eq!(mount_point(old), Some("/d x/tracing".into()));
        assert_eq!(mount_point("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn instances_of_others_are_left_alone() {
        assert!(is_recorders("unfrag-123") && is_recorders("unfrag-123-2"));
        for other in ["unfrag", "unfrag-", "unfrag-x", "my-unfrag-1", "unfrag-1-"] {
            assert!(!is_recorders(other), "{other}");
        }
    }

    #[test]
    fn an_access_error_says_what_still_works() {
        let e = access_error(ErrorKind::PermissionDenied.into(), Path::new("/t"));
        assert!(e.to_string().contains("unfrag snapshot"), "{e}");
    }
}
