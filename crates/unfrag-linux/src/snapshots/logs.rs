//! Logs of monitors: a line `time: EPOCH` before each copy of one procfs file.

use super::dates;
use super::file_names::KNOWN;
use crate::error::Error;
use crate::recording::{Snapshot, SnapshotFile};

const MARK: &[u8] = b"time: ";

/// One copy of the file.
pub(super) struct Copy<'a> {
    /// The time as it was written.
    name: &'a str,
    /// Nanoseconds since 1970.
    pub time: u64,
    content: &'a [u8],
}

/// Where a copy begins and ends.
type Bounds = std::ops::Range<usize>;

impl Copy<'_> {
    /// A snapshot of this copy alone, of the file called `file`.
    pub fn into_snapshot(self, file: &str) -> Snapshot {
        let file = SnapshotFile {
            name: file.to_owned(),
            time: Some((self.time, self.time)),
            content: self.content.into(),
        };
        Snapshot {
            name: self.name.to_owned(),
            files: vec![file],
        }
    }
}

/// Whether a file looks like a log.
pub(super) fn is_log(content: &[u8]) -> bool {
    content.starts_with(MARK)
}

/// The procfs file that the log called `name` holds copies of.
pub(super) fn file_of(name: &str) -> Option<&'static str> {
    KNOWN.iter().copied().find(|known| name.contains(known))
}

/// The copies of a log. Empty lines after a copy belong to the log, not to the copy.
pub(super) fn split(text: &[u8]) -> Result<Vec<Copy<'_>>, Error> {
    let mut found: Vec<(&str, u64, Bounds)> = vec![];
    let mut at = 0;
    for line in text.split_inclusive(|&b| b == b'\n') {
        let next = at + line.len();
        if let Some(time) = line.strip_prefix(MARK) {
            let malformed =
                || Error::malformed("expected seconds since 1970").at((at + MARK.len()) as u64);
            let name = std::str::from_utf8(time).map_err(|_| malformed())?.trim();
            let time = dates::epoch(name).ok_or_else(malformed)?;
            found.push((name, time, next..next));
        } else {
            let (_, _, bounds) = found
                .last_mut()
                .ok_or_else(|| Error::malformed("expected a line `time: EPOCH`").at(0))?;
            if line != b"\n" {
                bounds.end = next;
            }
        }
        at = next;
    }
    let copy = |(name, time, bounds): (_, _, Bounds)| Copy {
        name,
        time,
        content: &text[bounds],
    };
    Ok(found.into_iter().map(copy).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_split_at_its_times() {
        let log =
            b"time: 1397146210\nNode 0\nNode 1\n\ntime: 1397146211.5\n\ntime: 1397146212\nx\n";
        let copies = split(log).unwrap();
        let contents: Vec<_> = copies.iter().map(|c| c.content).collect();
        assert_eq!(contents, [&b"Node 0\nNode 1\n"[..], b"", b"x\n"]);
        assert_eq!(copies[1].time, 1_397_146_211_500_000_000);
        assert_eq!(copies[0].name, "1397146210");
    }

    #[test]
    fn a_wrong_time_is_named_by_offset() {
        let e = split(b"time: 1397146210\nx\ntime: now\n").err().unwrap();
        assert_eq!(e.offset, Some(25));
        assert!(split(b"Node 0\n").is_err());
    }

    #[test]
    fn a_logs_name_says_what_it_holds() {
        assert_eq!(file_of("proc-buddyinfo-stress-1.gz"), Some("buddyinfo"));
        assert_eq!(file_of("vmstat"), Some("vmstat"));
        assert_eq!(file_of("top-1"), None);
    }
}
