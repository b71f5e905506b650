//! What recorders that died left in a directory of segments.
//!
//! A spool becomes the segment that its name says. One of which none can be made, because it is damaged or because
//! somebody else may have laid it there, is renamed, so that it is neither lost nor found again at the next start.
//!
//! Invariant: nothing here ends a recording, and no path is read from a file. Only what a recorder of this user made is
//! read, and nothing is removed but spools whose segments are there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::finish::{Ending, finish_in_batches};
use super::spool::Spool;
use super::spool_name;
use crate::error::{Error, Result};
use crate::file::Reader;
use crate::input_text::escaped_path;
use crate::target::own_user;

/// What became of a spool that was found.
#[derive(Debug)]
pub enum Found {
    /// It is this segment now.
    Segment(PathBuf),
    /// No segment can be made of it.
    SetAside {
        /// Where it was.
        from: PathBuf,
        /// Where it lies now; `None` if it could not be renamed.
        to: Option<PathBuf>,
        /// Why.
        why: Error,
    },
    /// There is no room for its segment; it stays as it is, for the next start.
    Waits {
        /// Where it is.
        spool: PathBuf,
        /// Why.
        why: Error,
    },
}

/// Spools in a directory, the oldest first.
pub(super) fn spools(dir: &Path) -> Vec<PathBuf> {
    let items = fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = items.map(|item| item.path());
    let mut all: Vec<PathBuf> = paths.filter(|p| spool_name::is_of_segment(p)).collect();
    all.sort();
    all
}

/// Makes segments of the spools in a directory, which is locked; tells what became of each.
pub(super) fn recover_all(dir: &Path, tell: &mut dyn FnMut(Found)) {
    for path in spools(dir) {
        match recover(&path) {
            Ok(Some(segment)) => tell(Found::Segment(segment)),
            Ok(None) => {}
            Err(why) if why.is_full() => tell(Found::Waits { spool: path, why }),
            Err(why) => {
                let to = Spool::set_aside(&path).ok();
                tell(Found::SetAside {
                    from: path,
                    to,
                    why,
                });
            }
        }
    }
    Spool::remove_rests(dir);
}

/// Makes the segment of a spool; `None` if there was nothing to be made.
fn recover(path: &Path) -> Result<Option<PathBuf>> {
    let spool = Spool::own(path)?;
    // A recorder may die before it has begun.
    if spool.is_empty()? {
        spool.remove()?;
        return Ok(None);
    }
    if let Some(segment) = spool_name::output_of(path)
        && let Ok(there) = fs::symlink_metadata(&segment)
    {
        // A segment gets its name once it is complete; then its spool is removed. A link may lead anywhere.
        let is_own = there.is_file() && there.uid() == own_user();
        return match is_own && Reader::open(&segment).is_ok() {
            true => spool.remove().map(|()| None),
            false => {
                let name = escaped_path(&segment);
                let why = format!("{name} is there already, and is no recording of this user");
                Err(Error::malformed(why).in_file(path))
            }
        };
    }
    finish_in_batches(spool, &Ending::died()).map(|made| Some(made.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use crate::record::spool::Job;
    use crate::recording::Recording;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

    const NAME: &str = "20261128T060000Z-000000.unfrag";

    /// A spool as a recorder leaves it, without events.
    fn lay(dir: &Path) -> PathBuf {
        let spool = dir.join(format!("{NAME}.spool-12-ab"));
        fs::create_dir_all(spool.join("snapshots")).unwrap();
        fs::set_permissions(&spool, fs::Permissions::from_mode(0o700)).unwrap();
        let job = Job {
            header_page: HEADER_PAGE.into(),
            page_size: 4096,
            cpus: 1,
            ..Job::default()
        };
        Spool::at(&spool).unwrap().set_job(&job).unwrap();
        spool
    }

    fn found(dir: &Path) -> Vec<Found> {
        let mut all = vec![];
        recover_all(dir, &mut |f| all.push(f));
        all
    }

    fn names(dir: &Path) -> Vec<String> {
        let items = fs::read_dir(dir).unwrap().map(|i| i.unwrap().file_name());
        let mut names: Vec<String> = items.map(|n| n.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_spool_becomes_the_segment_of_its_name_whatever_its_job_says() {
        let dir = tempfile::tempdir().unwrap();
        let spool = lay(dir.path());
        let victim = dir.path().join("victim");
        fs::write(&victim, "victim").unwrap();
        // A job with paths, as whoever lays a spool would write one.
        let job = fs::read_to_string(spool.join("job.json")).unwrap();
        let paths = format!("{{\"output\":{victim:?},\"instance\":{victim:?},");
        fs::write(spool.join("job.json"), job.replacen('{', &paths, 1)).unwrap();
        let all = found(dir.path());
        assert!(
            matches!(&all[..], [Found::Segment(p)] if *p == dir.path().join(NAME)),
            "{all:?}"
        );
        assert_eq!(names(dir.path()), [NAME, "victim"]);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
        let segment = dir.path().join(NAME);
        file::read(&segment).unwrap();
        assert_eq!(fs::metadata(segment).unwrap().mode() & 0o777, 0o600);
    }

    /// What is done to a spool, and a word of the reason for which it is set aside.
    type Damage = (&'static str, fn(&Path), &'static str);

    const DAMAGES: &[Damage] = &[
        (
            "no job",
            |s| fs::rename(s.join("job.json"), s.join("x")).unwrap(),
            "No such file",
        ),
        (
            "an empty job",
            |s| fs::write(s.join("job.json"), "").unwrap(),
            "EOF",
        ),
        (
            "no JSON",
            |s| fs::write(s.join("job.json"), "{]").unwrap(),
            "key",
        ),
        (
            "another JSON",
            |s| fs::write(s.join("job.json"), "[1]").unwrap(),
            "invalid",
        ),
        (
            "small sub-buffers",
            |s| {
                let job = fs::read_to_string(s.join("job.json")).unwrap();
                fs::write(s.join("job.json"), job.replace("size:4080", "size:0")).unwrap();
            },
            "sub-buffers",
        ),
        (
            "a job behind a link",
            |s| {
                fs::rename(s.join("job.json"), s.join("x")).unwrap();
                symlink("x", s.join("job.json")).unwrap();
            },
            "symbolic links",
        ),
        (
            "a job that is a pipe",
            |s| {
                fs::remove_file(s.join("job.json")).unwrap();
                let made = std::process::Command::new("mkfifo")
                    .arg(s.join("job.json"))
                    .status();
                assert!(made.unwrap().success());
            },
            "no regular file",
        ),
        (
            "a job that is a directory",
            |s| {
                fs::remove_file(s.join("job.json")).unwrap();
                fs::create_dir(s.join("job.json")).unwrap();
            },
            "no regular file",
        ),
        (
            "sub-buffers behind a link",
            |s| symlink("/proc/version", s.join("cpu0.raw")).unwrap(),
            "symbolic links",
        ),
        (
            "sub-buffers of noise",
            |s| fs::write(s.join("cpu0.raw"), [0xa5; 8192]).unwrap(),
            "",
        ),
        (
            "an index of noise",
            |s| fs::write(s.join("snapshots/index.tsv"), "\u{1}\tx\ty\tz\n").unwrap(),
            "",
        ),
        (
            "no directory",
            |s| {
                fs::remove_dir_all(s).unwrap();
                fs::write(s, "mine").unwrap();
            },
            "Not a directory",
        ),
        (
            "a link",
            |s| {
                fs::rename(s, s.with_file_name("elsewhere")).unwrap();
                symlink("elsewhere", s).unwrap();
            },
            "symbolic link",
        ),
        (
            "open to others",
            |s| fs::set_permissions(s, fs::Permissions::from_mode(0o770)).unwrap(),
            "mode 770",
        ),
        (
            "a link to a recording bears that name",
            |s| {
                file::write(&Recording::default(), &s.with_file_name("other.unfrag")).unwrap();
                symlink("other.unfrag", s.with_file_name(NAME)).unwrap();
            },
            "is no recording",
        ),
        (
            "something of that name is there",
            |s| fs::write(s.with_file_name(NAME), "mine").unwrap(),
            "is no recording",
        ),
    ];

    #[test]
    fn a_damaged_or_foreign_spool_is_set_aside_once_and_whole() {
        let own = fs::metadata("/proc/self").unwrap().uid();
        let foreign: Damage = (
            "of another user",
            |s| chown(s, Some(61_001), None).unwrap(),
            "61001",
        );
        let all = DAMAGES.iter().chain((own == 0).then_some(&foreign));
        for (what, damage, reason) in all {
            let dir = tempfile::tempdir().unwrap();
            let spool = lay(dir.path());
            damage(&spool);
            let before = names(dir.path());
            let inside = fs::read_dir(&spool)
                .map(|_| names(&spool))
                .unwrap_or_default();
            let all = found(dir.path());
            let aside = match &all[..] {
                // Noise may hold no event at all, which is not damage.
                [Found::Segment(_)] if reason.is_empty() => continue,
                [
                    Found::SetAside {
                        from,
                        to: Some(to),
                        why,
                    },
                ] if *from == spool => {
                    assert!(why.to_string().contains(reason), "{what}: {why}");
                    to
                }
                other => panic!("{what}: {other:?}"),
            };
            let new_name = format!("{NAME}.set-aside-12-ab");
            assert_eq!(
                aside.file_name().unwrap().to_str(),
                Some(&new_name[..]),
                "{what}"
            );
            // Nothing else has changed, and nothing is missing.
            let mut wanted = before;
            let old_name = spool.file_name().unwrap().to_str().unwrap();
            wanted
                .iter_mut()
                .filter(|n| *n == old_name)
                .for_each(|n| n.clone_from(&new_name));
            wanted.sort();
            assert_eq!(names(dir.path()), wanted, "{what}");
            if fs::symlink_metadata(aside).unwrap().is_dir() {
                assert_eq!(names(aside), inside, "{what}");
            }
            if let Ok(mine) = fs::read_to_string(dir.path().join(NAME)) {
                assert_eq!(mine, "mine");
            }
            assert!(found(dir.path()).is_empty(), "{what}: found again");
        }
    }

    #[test]
    fn what_is_set_aside_takes_no_name_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        for n in 1..4 {
            let spool = lay(dir.path());
            fs::write(spool.join("job.json"), format!("{n}")).unwrap();
            assert_eq!(found(dir.path()).len(), 1);
        }
        let first = format!("{NAME}.set-aside-12-ab");
        assert_eq!(
            names(dir.path()),
            [first.clone(), format!("{first}-2"), format!("{first}-3")]
        );
        for (n, name) in names(dir.path()).iter().enumerate() {
            let job = fs::read_to_string(dir.path().join(name).join("job.json")).unwrap();
            assert_eq!(job, format!("{}", n + 1));
        }
    }

    #[test]
    fn a_spool_in_which_nothing_is_or_whose_segment_is_there_goes() {
        let dir = tempfile::tempdir().unwrap();
        let spool = lay(dir.path());
        fs::rename(spool.join("job.json"), spool.join("job.json.new")).unwrap();
        assert!(found(dir.path()).is_empty());
        assert_eq!(names(dir.path()), [""; 0]);
        // A recorder died between the segment's last step and the spool's removal.
        let segment = dir.path().join(NAME);
        file::write(&Recording::default(), &segment).unwrap();
        let before = fs::read(&segment).unwrap();
        lay(dir.path());
        assert!(found(dir.path()).is_empty());
        assert_eq!(names(dir.path()), [NAME]);
        assert_eq!(fs::read(&segment).unwrap(), before);
        // Or within that removal.
        let spool = lay(dir.path());
        fs::remove_file(spool.join("job.json")).unwrap();
        fs::write(spool.join("cpu0.raw"), [7; 100]).unwrap();
        fs::rename(&spool, spool_name::removed(&spool)).unwrap();
        assert!(found(dir.path()).is_empty());
        assert_eq!(names(dir.path()), [NAME]);
    }
}
