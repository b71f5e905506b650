//! Names of spools: the file that one becomes, the process that made it, and its state.
//!
//! | name | state |
//! |---|---|
//! | `NAME.spool-PID-NUMBER` | a recording that is being made, or was when its recorder died |
//! | `NAME.set-aside-PID-NUMBER` | no file could be made of it; nobody looks for it |
//! | `.removed-NAME.spool-PID-NUMBER` | its file is there, and it is being removed |
//!
//! Invariant: a state changes by one rename. The file lies beside the spool, whatever the spool holds.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What stands between the name of the file and the rest of a spool's name.
const MARK: &str = ".spool-";
/// The same, of a spool that no file could be made of.
const ASIDE: &str = ".set-aside-";

/// The first characters of a spool's name while it is removed.
const REMOVED: &str = ".removed-";

/// The file that the spool at this path becomes; `None` if this is not the name of a spool.
pub fn output_of(dir: &Path) -> Option<PathBuf> {
    let (name, _) = split(dir.file_name()?)?;
    Some(dir.with_file_name(OsStr::from_bytes(name)))
}

/// A spool's name, in front of the mark and behind it.
fn split(name: &OsStr) -> Option<(&[u8], &[u8])> {
    let name = name.as_bytes();
    let at = |mark: &str| {
        let found = memchr::memmem::rfind(name, mark.as_bytes())?;
        (found > 0).then(|| (&name[..found], &name[found + mark.len()..]))
    };
    at(MARK).or_else(|| at(ASIDE))
}

/// Whether this is the name of a spool of a recorder's process.
pub fn is_of(dir: &Path, process: &str) -> bool {
    let rest = dir.file_name().and_then(split).map(|(_, rest)| rest);
    rest.and_then(|r| r.split(|&b| b == b'-').next()) == Some(process.as_bytes())
}

/// The process whose spool this is, by its name.
pub fn process_of(dir: &Path) -> Option<String> {
    let (_, rest) = split(dir.file_name()?)?;
    let number = rest.split(|&b| b == b'-').next()?;
    Some(String::from_utf8_lossy(number).into_owned())
}

/// The names that this spool may have once it is set aside, the best first.
pub fn set_aside(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let parts = dir.file_name().and_then(split);
    parts.into_iter().flat_map(move |(name, rest)| {
        (1..100).map(move |n| {
            let mut to = [name, ASIDE.as_bytes(), rest].concat();
            if n > 1 {
                to.extend(format!("-{n}").as_bytes());
            }
            dir.with_file_name(OsStr::from_bytes(&to))
        })
    })
}

/// The name that this spool has while it is removed.
pub fn removed(dir: &Path) -> PathBuf {
    let mut name = OsString::from(REMOVED);
    name.push(dir.file_name().unwrap_or_default());
    dir.with_file_name(name)
}

/// Whether this is the name of a spool that is being removed.
pub fn is_removed(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default();
    name.as_bytes().starts_with(REMOVED.as_bytes()) && split(name).is_some()
}

/// Whether this is the name of the spool of a segment.
pub fn is_of_segment(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default().as_bytes();
    !name.starts_with(b".") && memchr::memmem::find(name, b".unfrag.spool-").is_some()
}

/// Makes the spool of a file, for its owner alone, under a name that nothing has.
pub fn make(base: &Path) -> io::Result<PathBuf> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = clock.map_or(0, |t| t.subsec_nanos());
    let mut tries = 0;
    loop {
        let mut name = base.as_os_str().to_owned();
        name.push(format!(
            "{MARK}{}-{:x}",
            std::process::id(),
            first.wrapping_add(tries)
        ));
        let dir = PathBuf::from(name);
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && tries < 100 => tries += 1,
            made => return made.map(|()| dir),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_the_file_and_nothing_else_does() {
        let of = |name: &str| output_of(Path::new(name));
        let wanted = Some(PathBuf::from("d/x.unfrag"));
        assert_eq!(of("d/x.unfrag.spool-12-ab"), wanted);
        assert_eq!(of("d/x.unfrag.spool-12"), wanted);
        assert_eq!(of("d/x.unfrag.set-aside-12-ab-2"), wanted);
        assert_eq!(of("d/a.spool-1.spool-2-b"), Some("d/a.spool-1".into()));
        for other in ["d/x.unfrag", "d/.spool-12", "d/..", "d", "/", "d/x.spool"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert!(is_of(Path::new("x.spool-12-ab"), "12"));
        assert!(!is_of(Path::new("x.spool-12-ab"), "1"));
        assert_eq!(process_of(Path::new("x.spool-12-ab")).unwrap(), "12");
    }

    #[test]
    fn no_state_is_taken_for_another() {
        let spool = Path::new("d/1.unfrag.spool-12-ab");
        assert!(is_of_segment(spool) && !is_removed(spool));
        let gone = removed(spool);
        assert!(!is_of_segment(&gone) && is_removed(&gone));
        let names: Vec<_> = set_aside(spool).take(2).collect();
        let wanted = ["d/1.unfrag.set-aside-12-ab", "d/1.unfrag.set-aside-12-ab-2"];
        assert_eq!(names, wanted.map(PathBuf::from));
        assert!(names.iter().all(|n| !is_of_segment(n) && !is_removed(n)));
    }
}
