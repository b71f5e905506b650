//! A recording in segments: one spool after the other becomes a file of its own.
//!
//! A thread of the lowest priority makes the files while the recording goes on, and removes the oldest ones beyond the
//! bytes that may be kept.
//!
//! Invariant: a segment is complete once it has its name. What is not yet one lies in a spool beside it, and becomes one
//! when the next recorder starts there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use rustix::time::{ClockId, clock_gettime};

use super::finish::{Ending, finish_in_batches};
use super::rate::Rate;
use super::spool::{Job, Spool};
use super::stacks;
use crate::error::{Error, Result};
use crate::segments::{self, BOOT, EPOCH_OFFSET};
use crate::snapshots::dates;
use crate::target::Target;

/// What is kept of a recording in segments.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Bytes of all segments; the oldest go first.
    pub bytes: u64,
    /// Time after which a segment ends.
    pub segment: Duration,
    /// Hears once, soon after the beginning, how much is written.
    pub tell: fn(&Keep, Rate),
}

/// Raw bytes of the trace that become one byte of a segment, about.
const RAW_BYTES: u64 = 12;
/// Segments that there are at least of what is kept.
const FEWEST: u64 = 16;
/// Raw bytes after which a segment ends, at least and at most.
const RAW: std::ops::RangeInclusive<u64> = 8 << 20..=512 << 20;

/// Numbers of a recording in segments.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Segments that were made.
    pub segments: u64,
    /// Events in them.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Bytes of the segments, of those that were removed as well.
    pub bytes: u64,
    /// The time that they are of.
    pub time: Duration,
    /// Segments that were removed, as there was no more room for them.
    pub removed: u64,
    /// Segments that there are in the directory at the end, those of earlier recorders among them.
    pub kept: u64,
    /// Bytes of these.
    pub kept_bytes: u64,
    /// Bytes that the directory held at most, spools included.
    pub most_bytes: u64,
    /// What went wrong, and lies in a spool.
    pub failed: Vec<String>,
}

impl Totals {
    /// How much was written; `None` if no segment was made.
    pub fn rate(&self) -> Option<Rate> {
        (self.segments > 0).then_some(Rate {
            bytes: self.bytes,
            time: self.time,
            is_estimate: false,
        })
    }
}

/// How long a recording goes on before it says how much it writes, unless a segment ends sooner.
const SOON: Duration = Duration::from_secs(20);

/// Makes files of spools, one after the other.
pub(super) struct Rotation {
    dir: PathBuf,
    keep: Keep,
    raw_limit: u64,
    job: Job,
    began: Instant,
    number: u64,
    /// What the tracer had counted when the present segment began.
    before: String,
    /// Whether it was said how much is written.
    told: bool,
    sender: Sender<(Spool, Ending, Duration)>,
    finisher: JoinHandle<()>,
    totals: Arc<Mutex<Totals>>,
}

impl Rotation {
    /// Begins with the first segment, whose job is `job`.
    pub fn start(dir: &Path, keep: Keep, job: Job) -> Result<Rotation> {
        let (sender, receiver) = channel();
        let totals: Arc<Mutex<Totals>> = Arc::default();
        let finisher = {
            let (dir, totals) = (dir.to_owned(), Arc::clone(&totals));
            std::thread::Builder::new()
                .name("segments".into())
                .spawn(move || make_segments(&dir, keep.bytes, &receiver, &totals))?
        };
        let raw_limit = (keep.bytes / FEWEST).saturating_mul(RAW_BYTES);
        Ok(Rotation {
            dir: dir.to_owned(),
            keep,
            raw_limit: raw_limit.clamp(*RAW.start(), *RAW.end()),
            job,
            began: Instant::now(),
            number: 0,
            before: String::new(),
            told: false,
            sender,
            finisher,
            totals,
        })
    }

    /// Says once how much is written, as soon as that shows.
    pub fn tell_rate(&mut self, spool: &Spool) {
        if self.told {
            return;
        }
        let made = self
            .totals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .rate();
        let time = self.began.elapsed();
        let so_far = (self.number == 0 && time >= SOON).then(|| Rate {
            bytes: spool.raw_bytes(self.job.cpus as u16) / RAW_BYTES,
            time,
            is_estimate: true,
        });
        if let Some(rate) = made.or(so_far) {
            self.told = true;
            (self.keep.tell)(&self.keep, rate);
        }
    }

    /// Whether the present segment is to end.
    pub fn is_due(&self, spool: &Spool) -> bool {
        if self.began.elapsed() >= self.keep.segment {
            return true;
        }
        spool.raw_bytes(self.job.cpus as u16) >= self.raw_limit
    }

    /// The spool of the next segment.
    pub fn next_spool(&mut self) -> Result<Spool> {
        self.number += 1;
        let segment = segment_path(&self.dir, self.number);
        self.job.facts.retain(|(name, _)| name != EPOCH_OFFSET);
        self.job.facts.push(fact_of_clock());
        let spool = Spool::create(&Target::File(segment))?;
        spool.set_job(&self.job)?;
        if self.job.stacks {
            stacks::note_symbols(&spool)?;
        }
        Ok(spool)
    }

    /// The present segment has ended; the tracer has counted so much.
    pub fn end_segment(&mut self, spool: Spool, counts: String, early: Option<String>) {
        let ending = Ending {
            before: std::mem::replace(&mut self.before, counts.clone()),
            counts,
            early,
        };
        let time = std::mem::replace(&mut self.began, Instant::now()).elapsed();
        // The thread ends only with this sender.
        let _ = self.sender.send((spool, ending, time));
    }

    /// Waits until all segments are made.
    pub fn finish(self) -> Totals {
        let Rotation {
            sender,
            finisher,
            totals,
            dir,
            ..
        } = self;
        drop(sender);
        let _ = finisher.join();
        let mut totals = totals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let left = own_segments(&dir);
        totals.kept = left.len() as u64;
        totals.kept_bytes = left.iter().map(size).sum();
        totals
    }
}

/// The path of a segment that begins now.
pub(super) fn segment_path(dir: &Path, number: u64) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |t| t.as_secs());
    let (date, rest) = (dates::date(seconds).replace('-', ""), seconds % 86_400);
    let (h, m, s) = (rest / 3600, rest / 60 % 60, rest % 60);
    dir.join(format!("{date}T{h:02}{m:02}{s:02}Z-{number:06}.unfrag"))
}

/// How far the clock of events is from the date.
pub(super) fn fact_of_clock() -> (String, String) {
    let ns =
        |t: rustix::time::Timespec| i128::from(t.tv_sec) * 1_000_000_000 + i128::from(t.tv_nsec);
    let offset = ns(clock_gettime(ClockId::Realtime)) - ns(clock_gettime(ClockId::Monotonic));
    (EPOCH_OFFSET.to_owned(), offset.to_string())
}

/// Which boot of the host this is.
pub(super) fn fact_of_boot() -> Option<(String, String)> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some((BOOT.to_owned(), id.trim().to_owned()))
}

fn make_segments(
    dir: &Path,
    keep: u64,
    receiver: &Receiver<(Spool, Ending, Duration)>,
    totals: &Mutex<Totals>,
) {
    // The thread's own; a recording does without it.
    let own = rustix::thread::gettid();
    let _ = rustix::process::setpriority_process(Some(own), 19);
    for (spool, ending, time) in receiver {
        let place = spool.dir().to_owned();
        let held = bytes_in(dir);
        let made = finish_in_batches(spool, &ending);
        let removed = remove_oldest(dir, keep);
        let mut t = totals.lock().unwrap_or_else(PoisonError::into_inner);
        t.most_bytes = t.most_bytes.max(held);
        t.removed += removed;
        match made {
            Ok(made) => {
                t.segments += 1;
                t.events += made.events;
                t.lost += made.lost;
                t.bytes += made.file_bytes;
                t.time += time;
            }
            Err(e) => t.failed.push(format!("{}: {e}", place.display())),
        }
    }
}

/// Whether a recorder gave a file this name: a date, a time and a number. Recordings of other names are the user's own.
fn is_segment(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let Some((when, number)) = name.split_at_checked(16) else {
        return false;
    };
    let number = number
        .strip_prefix(b"-")
        .and_then(|n| n.strip_suffix(b".unfrag"));
    digits(&when[..8])
        && when[8] == b'T'
        && digits(&when[9..15])
        && when[15] == b'Z'
        && number.is_some_and(|n| n.len() >= 6 && digits(n))
}

/// The segments that recorders made in a directory, the oldest first.
fn own_segments(dir: &Path) -> Vec<PathBuf> {
    let mut all = segments::list(dir).unwrap_or_default();
    all.retain(|path| is_segment(path));
    all
}

fn size(path: &PathBuf) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}

/// Removes the oldest segments until the others have no more than `keep` bytes; the newest stays.
fn remove_oldest(dir: &Path, keep: u64) -> u64 {
    let all = own_segments(dir);
    let mut total: u64 = all.iter().map(size).sum();
    let mut removed = 0;
    for segment in all.iter().take(all.len().saturating_sub(1)) {
        if total <= keep {
            break;
        }
        total -= size(segment);
        removed += u64::from(fs::remove_file(segment).is_ok());
    }
    removed
}

/// Bytes of all files in a directory and in those below it.
fn bytes_in(dir: &Path) -> u64 {
    let mut sum = 0;
    for item in fs::read_dir(dir).into_iter().flatten().flatten() {
        sum += match item.metadata() {
            Ok(m) if m.is_dir() => bytes_in(&item.path()),
            Ok(m) => m.len(),
            Err(_) => 0,
        };
    }
    sum
}

/// How long a recorder waits for a guardian that still finishes what another left.
const PATIENCE: Duration = Duration::from_secs(20);

/// Takes a directory for this process alone, until the file is closed.
///
/// # Errors
/// If another recorder has it.
pub(super) fn lock(dir: &Path) -> Result<File> {
    let file = File::open(dir).map_err(|e| Error::from(e).in_file(dir))?;
    let begin = Instant::now();
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if begin.elapsed() >= PATIENCE {
            return Err(
                Error::unsupported("another recorder is at work in this directory")
                    .in_file(dir)
                    .help("end it, or name another directory"),
            );
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_segments_go_first_and_the_newest_stays() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..5 {
            let name = format!("20261128T06000{i}Z-00000{i}.unfrag");
            fs::write(dir.path().join(name), vec![0; 100]).unwrap();
        }
        // The user's own recordings lie there, too.
        for name in [
            "0.unfrag",
            "20261128T060000Z.unfrag",
            "20261128T060000Z-best.unfrag",
        ] {
            fs::write(dir.path().join(name), vec![0; 1000]).unwrap();
        }
        assert_eq!(remove_oldest(dir.path(), 250), 3);
        let left = segments::list(dir.path()).unwrap();
        assert_eq!(left.len(), 3 + 2);
        assert!(
            left.iter()
                .any(|p| p.ends_with("20261128T060003Z-000003.unfrag"))
        );
        assert_eq!(remove_oldest(dir.path(), 0), 1);
        assert_eq!(segments::list(dir.path()).unwrap().len(), 3 + 1);
    }

    #[test]
    fn names_of_segments_sort_by_time() {
        let a = segment_path(Path::new("d"), 9);
        let b = segment_path(Path::new("d"), 10);
        assert!(a < b, "{a:?} {b:?}");
        assert!(is_segment(&a) && is_segment(&segment_path(Path::new("d"), 12_345_678)));
    }
}
