//! Where a file that is asked for by its path goes.
//!
//! `-` and `/dev/stdout` are the standard output. A device, a pipe, a socket or an open descriptor
//! (`/dev/fd/N`) is written to as it stands. Anything else is a regular file, which may lie behind symbolic links.
//!
//! Somebody else may have laid a link, so that root writes to a file of their choice. A link of another user is
//! therefore followed only to what is that user's own, and where everybody may write (`/tmp`) not at all; nor is
//! another user's pipe written to there. Links of the user who writes, and root's, are followed. The same holds for
//! links among the directories on the way.
//!
//! Invariant: a [`Target`] holds a path that is no link itself, so whoever writes there needs no link to be followed.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::input_text::escaped_path;

/// Symbolic links that are followed one after the other, as many as Linux follows.
const MOST_LINKS: u32 = 40;

/// The flag of open(2) that refuses a symbolic link.
pub(crate) const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The standard output.
    Stdout,
    /// What is open already, by a path in `/dev/fd` or `/proc/PID/fd`.
    Descriptor(PathBuf),
    /// What exists and is no regular file: written to as it stands.
    Special(PathBuf),
    /// A regular file, whether it exists or not.
    File(PathBuf),
}

impl Target {
    /// What `path` leads to.
    ///
    /// # Errors
    /// If it leads to a directory, through more than 40 symbolic links, or through one that is not to be trusted.
    pub fn of(path: &Path) -> io::Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Stdout);
        }
        match follow(path)? {
            End::Descriptor(path, Descriptor::OwnStdout) => {
                drop(path);
                Ok(Target::Stdout)
            }
            End::Descriptor(path, Descriptor::Other) => Ok(Target::Descriptor(path)),
            End::Place(_, Some(m)) if m.is_dir() => Err(ErrorKind::IsADirectory.into()),
            End::Place(to, Some(m)) if !m.is_file() => {
                if is_foreign(m.uid()) && is_open_to_all(parent(&to)) {
                    return Err(not_trusted("is another user's", &m));
                }
                Ok(Target::Special(to))
            }
            End::Place(to, _) => Ok(Target::File(to)),
        }
    }
}

/// The directory that a path leads to, whether it exists or not, by the same rules.
///
/// # Errors
/// If something else lies there, or the way leads through a link that is not to be trusted.
pub fn directory(path: &Path) -> io::Result<PathBuf> {
    match follow(path)? {
        End::Place(to, None) => Ok(to),
        End::Place(to, Some(m)) if m.is_dir() => Ok(to),
        _ => Err(ErrorKind::NotADirectory.into()),
    }
}

/// What lies behind all links.
enum End {
    Descriptor(PathBuf, Descriptor),
    /// A path that is no link, and what is there.
    Place(PathBuf, Option<Metadata>),
}

fn follow(path: &Path) -> io::Result<End> {
    let mut to = path.to_owned();
    let mut foreign: Option<Metadata> = None;
    for _ in 0..=MOST_LINKS {
        if let Some(descriptor) = descriptor(&to) {
            return Ok(End::Descriptor(to, descriptor));
        }
        check_way(parent(&to), &mut 0)?;
        let found = match fs::symlink_metadata(&to) {
            Ok(m) => Some(m),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            // Whatever is wrong there is said when it is written.
            Err(_) => return Ok(End::Place(to, None)),
        };
        let Some(link) = found.as_ref().filter(|m| m.is_symlink()) else {
            if let Some(link) = foreign {
                let owner = match &found {
                    Some(m) => m.uid(),
                    None => fs::metadata(parent(&to))?.uid(),
                };
                if owner != link.uid() {
                    return Err(not_trusted(
                        "is a symbolic link to what is not theirs, of another user",
                        &link,
                    ));
                }
            }
            return Ok(End::Place(to, found));
        };
        let next = parent(&to).join(fs::read_link(&to)?);
        // Whatever is open is so already, whoever names it.
        if is_foreign(link.uid()) && descriptor(&next).is_none() {
            let other = foreign.as_ref().is_some_and(|f| f.uid() != link.uid());
            if other || is_open_to_all(parent(&to)) {
                return Err(not_trusted("is a symbolic link of another user", link));
            }
            foreign = found;
        }
        to = next;
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Checks the links among the directories on the way to a path: one of them leads what is written as far as a link at
/// its end does. `links` counts those that were met.
fn check_way(dir: &Path, links: &mut u32) -> io::Result<()> {
    // No link itself, and through none.
    let mut at = PathBuf::new();
    for part in dir.components() {
        at.push(part);
        // Whatever is wrong there is said when it is written.
        let Ok(link) = fs::symlink_metadata(&at) else {
            return Ok(());
        };
        if !link.is_symlink() {
            continue;
        }
        *links += 1;
        if *links > MOST_LINKS {
            return Err(io::Error::other("too many symbolic links"));
        }
        let above = parent(&at);
        check_way(&above.join(fs::read_link(&at)?), links)?;
        if is_foreign(link.uid()) {
            let leads_to_own = fs::metadata(&at).is_ok_and(|m| m.uid() == link.uid());
            if is_open_to_all(above) || !leads_to_own {
                let what = format!(
                    "goes through {}, a symbolic link of another user",
                    escaped_path(&at)
                );
                return Err(not_trusted(&what, &link));
            }
        }
        let Ok(real) = fs::canonicalize(&at) else {
            return Ok(());
        };
        at = real;
    }
    Ok(())
}

/// The directory in which a path lies.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// The user as whom this process writes.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a user is neither the one who writes nor root, who could write anywhere anyway.
fn is_foreign(user: u32) -> bool {
    user != 0 && user != own_user()
}

/// Whether everybody may put something into a directory.
fn is_open_to_all(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|m| m.mode() & 0o002 != 0)
}

fn not_trusted(what: &str, of: &Metadata) -> io::Error {
    io::Error::other(format!(
        "{what} (user {}), who could lead the output anywhere: it is not written to; remove it, or name another place",
        of.uid()
    ))
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
    use std::os::unix::fs::symlink;

    #[test]
    fn the_standard_output_goes_by_many_names() {
        for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert_eq!(
                Target::of(Path::new(name)).unwrap(),
                Target::Stdout,
                "{name}"
            );
        }
        let error = Target::of(Path::new("/dev/stderr")).unwrap();
        assert!(
            matches!(&error, Target::Descriptor(p) if p.ends_with("fd/2")),
            "{error:?}"
        );
        assert_eq!(
            Target::of(Path::new("1")).unwrap(),
            Target::File("1".into())
        );
    }

    #[test]
    fn a_path_is_what_lies_behind_its_links() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, to) in [("round", "round"), ("one", "two"), ("two", "new")] {
            symlink(to, at(name)).unwrap();
        }
        symlink(".", at("here")).unwrap();
        assert!(Target::of(&at("round")).is_err());
        assert_eq!(Target::of(&at("one")).unwrap(), Target::File(at("new")));
        assert_eq!(directory(&at("one")).unwrap(), at("new"));
        assert_eq!(
            Target::of(&at("here")).unwrap_err().kind(),
            ErrorKind::IsADirectory
        );
        assert!(directory(&at("here")).is_ok());
        fs::write(at("new"), "").unwrap();
        assert!(directory(&at("one")).is_err());
        assert_eq!(
            Target::of(Path::new("x")).unwrap(),
            Target::File("x".into())
        );
    }
}
