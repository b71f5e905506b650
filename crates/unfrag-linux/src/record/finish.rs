//! Makes the file from the spool.
//!
//! Invariant: every event that the kernel counted is in the file or in a gap: for each CPU, events and gaps
//! add up to what the tracer read and overwrote. In an anonymous recording a task has no name, and a
//! number that is its own in this file only. Kernel threads keep their names, which tell of no user.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};

use super::deferred;
use super::names::runs_softirqs;
use super::spool::{Job, NAMES, RECORDER, Spool, THREADS};
use super::spool_name::output_of;
use super::stacks;
use crate::error::{Error, Result};
use crate::event::role::RECORDER_TASKS;
use crate::event::walk;
use crate::file::{self, Writer};
use crate::output::{Holds, Output};
use crate::recording::UNKNOWN_COMM;
use crate::recording::{Events, Lost, Meta, Recording, Task};
use crate::share;
use crate::target::Target;
use crate::trace::event::batches::{BATCH, Batches, all_at_once};
use crate::trace::event::symbols::Symbols;
use crate::trace::source::Source;
use crate::trace::tracedat::raw;

/// How a recording ended. It is passed by value, because the spool may lie on a full disk.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// What the tracer counted ([`Instance::counts`](super::tracefs::Instance::counts)); empty if that is not known.
    pub counts: String,
    /// What it had counted when the recording began; empty for nothing.
    pub before: String,
    /// Why it ended before the command or the time was over; `None` if it did not.
    pub early: Option<String>,
}

impl Ending {
    /// The recorder died.
    pub fn died() -> Ending {
        Ending {
            early: Some("the recorder died".into()),
            ..Ending::default()
        }
    }
}

/// A segment that was made.
#[derive(Debug)]
pub struct Segment {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub file_bytes: u64,
    /// Events in it.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
}

/// Makes the file from the spool of a whole host in bounded memory, and removes the spool.
///
/// # Errors
/// As [`finish`].
pub fn finish_in_batches(spool: Spool, ending: &Ending) -> Result<Segment> {
    let path = told(&spool)?;
    let job = spool.job()?;
    let names = Names::of(&spool)?;
    let size = raw::sub_buffer(&job.header_page)?;
    let files = spool.sub_buffers(size.into())?;
    let begun = begin(&spool, &Target::File(path.clone()));
    let mut writer = Writer::new(begun.map_err(|e| Error::from(e).in_file(&path))?);
    let mut decoded = Decoded::default();
    let snapshots = spool.snapshots()?;
    // Of one clock, as the trace's own is that of the snapshots.
    let mut pages = share::Count::between(&snapshots, &Meta::default());
    let mut give = |batch: Events| {
        decoded.add(&batch);
        // It takes whatever an event says. Allocations are written as numbers.
        let _ = walk(&batch, &[], &mut pages);
        writer.events(&batch)
    };
    let symbols = stacks::symbols(&spool, &job)?;
    let raw = job_raw(&job, &names.cmdlines, symbols, &files);
    let mut rest = raw::read(
        raw,
        &mut Batches {
            limit: BATCH,
            give: &mut give,
        },
    )?;
    reconcile(&mut rest.meta.lost, ending, &decoded);
    note(&mut rest, ending);
    note_tasks(&mut rest, &job, &names);
    rest.snapshots = snapshots;
    if let Some(share) = pages.share() {
        share.note(&mut rest.meta);
    }
    let lost = rest.meta.lost_events();
    let written = writer.finish(&rest).and_then(|to| Ok(to.commit()?));
    let file_bytes = written.map_err(|e| e.in_file(&path))?;
    spool.remove()?;
    Ok(Segment {
        path,
        file_bytes,
        events: decoded.events,
        lost,
    })
}

/// Numbers of events that were decoded.
#[derive(Default)]
struct Decoded {
    events: u64,
    by_cpu: HashMap<u16, u64>,
}

impl Decoded {
    fn add(&mut self, events: &Events) {
        self.events += events.len() as u64;
        for &cpu in &events.cpu {
            *self.by_cpu.entry(cpu).or_default() += 1;
        }
    }
}

/// What a spool knows of names.
struct Names {
    kernel_threads: HashMap<i32, String>,
    /// Lines `PID NAME` of all tasks.
    cmdlines: Vec<u8>,
    /// The recorder's own tasks.
    recorder: Vec<i32>,
}

impl Names {
    fn of(spool: &Spool) -> Result<Names> {
        let mut cmdlines = spool.lines(THREADS)?;
        let kernel_threads = parse_names(&cmdlines);
        cmdlines.extend(spool.lines(NAMES)?);
        let recorder = spool.lines(RECORDER)?;
        let recorder = String::from_utf8_lossy(&recorder);
        Ok(Names {
            kernel_threads,
            cmdlines,
            recorder: recorder.lines().filter_map(|l| l.parse().ok()).collect(),
        })
    }
}

/// The sub-buffers of each CPU with what a job knows of them.
fn job_raw<'a>(
    job: &'a Job,
    cmdlines: &'a [u8],
    symbols: Symbols,
    files: &'a [(u16, File, u64)],
) -> raw::Raw<'a> {
    let mut facts: BTreeMap<String, String> = job.facts.iter().cloned().collect();
    facts.extend(stacks::fact(job, &symbols));
    let of = |(cpu, file, len): &'a (u16, File, u64)| (*cpu, Source::File(file, *len));
    raw::Raw {
        header_page: &job.header_page,
        formats: &job.formats,
        cmdlines,
        symbols,
        cpus: files.iter().map(of).collect(),
        meta: Meta {
            kernel_release: job.kernel_release.clone(),
            page_size: job.page_size,
            cpus: job.cpus,
            source: "unfrag record".into(),
            clock: "mono".into(),
            facts,
            ..Meta::default()
        },
    }
}

/// Notes how a recording ended.
fn note(recording: &mut Recording, ending: &Ending) {
    if let Some(why) = &ending.early {
        let facts = &mut recording.meta.facts;
        facts.insert("ended_early".into(), why.clone());
    }
}

/// Notes which tasks are the recorder's own, and makes all anonymous where that was asked for.
fn note_tasks(recording: &mut Recording, job: &Job, names: &Names) {
    let is_own = |t: &Task| job.recorder.contains(&t.pid) || names.recorder.contains(&t.pid);
    let own: Vec<usize> = (0..recording.tasks.len())
        .filter(|&i| is_own(&recording.tasks[i]))
        .collect();
    if job.anonymous {
        anonymize(&mut recording.tasks, &names.kernel_threads);
    }
    // One task may have had several names.
    let numbers: BTreeSet<i32> = own.iter().map(|&i| recording.tasks[i].pid).collect();
    if !numbers.is_empty() {
        let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
        let facts = &mut recording.meta.facts;
        facts.insert(RECORDER_TASKS.into(), numbers.join(" "));
    }
}

/// A file that was made.
#[derive(Debug)]
pub struct Made {
    /// What it holds.
    pub recording: Recording,
    /// Its size in bytes.
    pub file_bytes: u64,
}

/// The file that a spool's name says.
fn told(spool: &Spool) -> Result<PathBuf> {
    output_of(spool.dir()).ok_or_else(|| {
        Error::malformed("does not bear the name of a spool, NAME.unfrag.spool-PID-NUMBER")
            .in_file(spool.dir())
            .help("name the file to be made: -o FILE")
    })
}

/// Begins the output, in the spool where that is possible.
fn begin(spool: &Spool, to: &Target) -> std::io::Result<Output> {
    match spool.room_for(to) {
        Some(dir) => Output::create_in(&dir, to, Holds::Recording),
        None => Output::create(to, Holds::Recording),
    }
}

/// Makes the file from the spool, and removes the spool.
///
/// # Errors
/// If the spool is damaged beyond what a crash does, or the file cannot be written; the spool stays.
pub fn finish(spool: Spool, ending: &Ending, output: &Path) -> Result<Made> {
    let recording = read(&spool, ending)?;
    let put = || {
        let begun = Target::of(output).and_then(|to| begin(&spool, &to));
        let written = begun
            .map_err(Error::from)
            .and_then(|to| file::write_to(&recording, to));
        written.map_err(|e| e.in_file(output))
    };
    let mut done = put();
    if done.as_ref().is_err_and(Error::is_full) && matches!(Target::of(output), Ok(Target::File(_)))
    {
        // The sub-buffers are many times larger than the file, whose content is in memory.
        spool.remove_sub_buffers((0..=u16::MAX).take(recording.meta.cpus as usize));
        done = put();
    }
    let file_bytes = done.map_err(|e| {
        let help = format!(
            "what was collected lies in {}: make room there or elsewhere, then unfrag record --recover {0} -o FILE",
            spool.dir().display()
        );
        e.help(help)
    })?;
    spool.remove()?;
    Ok(Made {
        recording,
        file_bytes,
    })
}

/// The recording that a spool holds.
fn read(spool: &Spool, ending: &Ending) -> Result<Recording> {
    let job = spool.job()?;
    let size = raw::sub_buffer(&job.header_page)?;
    let names = Names::of(spool)?;
    let files = spool.sub_buffers(size.into())?;
    let symbols = stacks::symbols(spool, &job)?;
    let raw = job_raw(&job, &names.cmdlines, symbols, &files);
    let mut recording = all_at_once(|batches| raw::read(raw, batches))?;
    let mut decoded = Decoded::default();
    decoded.add(&recording.events);
    reconcile(&mut recording.meta.lost, ending, &decoded);
    note(&mut recording, ending);
    if recording
        .meta
        .facts
        .get("scope")
        .is_some_and(|s| s == "command")
    {
        let is_follower = |t: &Task| {
            let thread = names.kernel_threads.get(&t.pid);
            let is_own = job.recorder.contains(&t.pid);
            t.pid == 0 || is_own || thread.is_some_and(|name| runs_softirqs(name))
        };
        let followers: Vec<bool> = recording.tasks.iter().map(is_follower).collect();
        deferred::drop_of_others(&mut recording, &followers);
    }
    note_tasks(&mut recording, &job, &names);
    recording.snapshots = spool.snapshots()?;
    if let Some(share) = share::of(&recording) {
        share.note(&mut recording.meta);
    }
    Ok(recording)
}

/// The tracer's counts for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    /// Events copied out of its buffer.
    read: u64,
    /// Events never copied: overwritten, dropped, or left in the buffer.
    lost: u64,
}

/// Parses the `stats` of all CPUs, each after a line `CPU: N`.
fn parse_stats(stats: &str) -> BTreeMap<u16, Counted> {
    let mut all: BTreeMap<u16, Counted> = BTreeMap::new();
    let mut cpu = 0;
    for (key, value) in stats.lines().filter_map(|l| l.split_once(':')) {
        let Ok(value) = value.trim().parse::<u64>() else {
            continue;
        };
        match key.trim() {
            "CPU" => {
                cpu = value as u16;
                all.entry(cpu).or_default();
            }
            "read events" => all.entry(cpu).or_default().read = value,
            "overrun" | "commit overrun" | "dropped events" | "entries" => {
                all.entry(cpu).or_default().lost += value;
            }
            _ => {}
        }
    }
    all
}

/// Adds gaps so that gaps and the events of each CPU add up to what the tracer counted.
fn reconcile(gaps: &mut Vec<Lost>, ending: &Ending, decoded: &Decoded) {
    let before = parse_stats(&ending.before);
    for (cpu, counted) in parse_stats(&ending.counts) {
        let there = decoded.by_cpu.get(&cpu).copied().unwrap_or(0);
        let before = before.get(&cpu).copied().unwrap_or_default();
        let read = counted.read.saturating_sub(before.read);
        let lost = counted.lost.saturating_sub(before.lost) + read.saturating_sub(there);
        set_lost(gaps, cpu, lost, decoded.events);
    }
}

/// Makes the gaps of a CPU add up to `lost`: a gap of unknown size takes what is missing; if there is none, a
/// gap is added at the end of the trace.
fn set_lost(gaps: &mut Vec<Lost>, cpu: u16, lost: u64, events: u64) {
    let mine = |l: &&Lost| l.cpu == cpu;
    let known: u64 = gaps.iter().filter(mine).filter_map(|l| l.count).sum();
    let missing = lost.saturating_sub(known);
    let mut unknown: Vec<&mut Lost> = gaps
        .iter_mut()
        .filter(|l| l.cpu == cpu && l.count.is_none())
        .collect();
    match unknown.as_mut_slice() {
        [] if missing == 0 => {}
        [] => gaps.push(Lost {
            cpu,
            before_event: events,
            count: Some(missing),
        }),
        [only] => only.count = Some(missing),
        // How they are spread over the gaps is unknown: the first gets all.
        [first, rest @ ..] => {
            first.count = Some(missing);
            rest.iter_mut().for_each(|l| l.count = Some(0));
        }
    }
}

/// Parses lines `PID NAME`.
fn parse_names(lines: &[u8]) -> HashMap<i32, String> {
    let text = String::from_utf8_lossy(lines);
    let of_line = |line: &str| {
        let (pid, name) = line.split_once(' ')?;
        Some((pid.parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(of_line).collect()
}

/// Removes names and numbers from all tasks but the idle one; kernel threads keep their names.
fn anonymize(tasks: &mut [Task], kernel_threads: &HashMap<i32, String>) {
    let mut numbers: HashMap<i32, i32> = HashMap::new();
    for task in tasks {
        if task.pid == 0 {
            continue;
        }
        task.comm = match kernel_threads.get(&task.pid) {
            Some(name) => name.clone(),
            None => UNKNOWN_COMM.to_owned(),
        };
        let next = numbers.len() as i32 + 1;
        task.pid = *numbers.entry(task.pid).or_insert(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "CPU: 0\nentries: 0\noverrun: 7\ncommit overrun: 0\nbytes: 40\n\
        oldest event ts:  5.1\nnow ts:  6.2\ndropped events: 0\nread events: 3\n\
        CPU: 1\nentries: 2\noverrun: 0\ndropped events: 1\nread events: 4\n";

    fn recording(cpus: &[u16], lost: Vec<Lost>) -> Recording {
        Recording {
            meta: Meta {
                lost,
                ..Meta::default()
            },
            events: Events {
                cpu: cpus.to_vec(),
                time: (0..cpus.len() as u64).collect(),
                ..Events::default()
            },
            ..Recording::default()
        }
    }

    fn reconciled(r: &mut Recording, counts: &str) {
        let ending = Ending {
            counts: counts.into(),
            ..Ending::default()
        };
        let mut decoded = Decoded::default();
        decoded.add(&r.events);
        reconcile(&mut r.meta.lost, &ending, &decoded);
    }

    fn gap(cpu: u16, before_event: u64, count: Option<u64>) -> Lost {
        Lost {
            cpu,
            before_event,
            count,
        }
    }

    #[test]
    fn the_counts_of_each_cpu_are_read() {
        let all = parse_stats(STATS);
        assert_eq!(all[&0], Counted { read: 3, lost: 7 });
        assert_eq!(all[&1], Counted { read: 4, lost: 3 });
    }

    #[test]
    fn nothing_lost_is_no_gap() {
        let mut r = recording(&[0, 0], vec![]);
        reconciled(&mut r, "CPU: 0\noverrun: 0\nread events: 2\n");
        assert_eq!(r.meta.lost, []);
    }

    #[test]
    fn events_read_but_not_decoded_are_lost() {
        let mut r = recording(&[0, 0, 1, 1, 1, 1], vec![]);
        reconciled(&mut r, STATS);
        assert_eq!(r.meta.lost, [gap(0, 6, Some(8)), gap(1, 6, Some(3))]);
    }

    #[test]
    fn a_gap_of_unknown_size_takes_what_is_missing() {
        let known = gap(0, 0, Some(5));
        let mut r = recording(&[0, 0, 0], vec![known, gap(0, 2, None)]);
        reconciled(&mut r, "CPU: 0\noverrun: 7\nread events: 3\n");
        assert_eq!(r.meta.lost, [known, gap(0, 2, Some(2))]);
    }

    #[test]
    fn only_kernel_threads_keep_their_names() {
        let task = |pid, comm: &str| Task {
            pid,
            comm: comm.into(),
        };
        let mut tasks = [task(0, "<idle>"), task(4711, "vi"), task(55, "kswapd0")];
        anonymize(&mut tasks, &parse_names(b"55 kswapd0\n"));
        let wanted = [task(0, "<idle>"), task(1, UNKNOWN_COMM), task(2, "kswapd0")];
        assert_eq!(tasks, wanted);
    }
}
