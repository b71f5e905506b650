//! The course of a recording.
//!
//! 1. Instance, spool and guardian are made.
//! 2. The trace begins, with a marker and the first snapshot.
//! 3. The command runs, or time passes on the whole host; a snapshot is taken each second.
//! 4. The last snapshot, a marker, the end of the trace.
//! 5. The file is made.
//!
//! Invariant: the guardian runs before the first event, and no failure here leaves an instance behind: what
//! was collected becomes a file or, if the command never ran, is removed.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::command::{self, Starter};
use super::events;
use super::finish::{Ending, finish};
use super::guardian::{Guardian, Watched};
use super::host;
use super::names;
use super::procfs::{Extent, Sources, Untaken};
use super::recovery::{Found, recover_all};
use super::rotation::{self, Keep, Rotation, Totals};
use super::spool::{Job, Spool};
use super::spooler::{self, Spooler};
use super::stacks;
use super::tracefs::{Instance, Tracefs, WITHOUT_TRACING};
use crate::error::{Error, Result};
use crate::input_text::escaped_lines;
use crate::recording::Recording;
use crate::signals;
use crate::snapshots::dates;
use crate::target::{self, Target};
use crate::trace::tracedat::raw;

/// The name of the first snapshot of a recording, taken once the trace runs.
pub const BEGIN: &str = "begin";
/// The name of the last snapshot of a recording, taken before the trace ends.
pub const END: &str = "end";

/// Time between two snapshots.
const PERIOD: Duration = Duration::from_secs(1);
/// Time between two snapshots of a recording in segments.
const LONG_PERIOD: Duration = Duration::from_secs(10);

/// What is recorded.
#[derive(Clone, Debug)]
pub enum Scope {
    /// A command, and whatever it starts.
    Command(Vec<OsString>),
    /// The whole host, for a time or until a signal.
    System(Option<Duration>),
    /// The whole host, while a command runs.
    SystemWhile(Vec<OsString>),
}

impl Scope {
    /// The command that runs.
    fn command(&self) -> Option<&[OsString]> {
        match self {
            Scope::Command(words) | Scope::SystemWhile(words) => Some(words),
            Scope::System(_) => None,
        }
    }
}

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is recorded.
    pub scope: Scope,
    /// Where the file goes, by the rules of [`Target`]; the command's output goes to the standard error if that
    /// is the standard output.
    pub output: PathBuf,
    /// Whether to record objects of slab caches.
    pub slab: bool,
    /// Whether to record which process did what; not in an anonymous recording.
    pub processes: bool,
    /// Whether events of large requests and of wake-ups have kernel stacks; not in an anonymous recording.
    pub stacks: bool,
    /// Further events, as `SUBSYSTEM:NAME`.
    pub events: Vec<String>,
    /// Whether to leave out names and numbers of processes.
    pub anonymous: bool,
    /// Whether to keep the words of the command.
    pub command_line: bool,
    /// Bytes of each CPU's ring buffer; `None` chooses by the size of memory.
    pub buffer: Option<usize>,
}

/// The result of a recording in segments.
#[derive(Debug)]
pub struct DoneInSegments {
    /// Numbers of the segments.
    pub totals: Totals,
    /// Files that could not be read for a snapshot.
    pub untaken: Vec<Untaken>,
    /// Instances that dead recorders had left, now removed.
    pub stale: Vec<String>,
    /// Bytes of each CPU's ring buffer, which is the kernel's memory.
    pub buffer: usize,
    /// Why the trace ended before its time, such as a full disk.
    pub cut_short: Option<Error>,
}

/// The result of a recording.
#[derive(Debug)]
pub struct Done {
    /// The recording, as the file holds it.
    pub recording: Recording,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// How the command ended.
    pub status: Option<ExitStatus>,
    /// Files that could not be read for a snapshot.
    pub untaken: Vec<Untaken>,
    /// Instances that dead recorders had left, now removed.
    pub stale: Vec<String>,
    /// Why the trace ended before the command did, such as a full disk.
    pub cut_short: Option<Error>,
}

/// An event while the recording runs.
enum Event {
    Exited(std::io::Result<ExitStatus>),
    Signal(i32),
    GaveUp,
}

/// Records. `guardian` is a command that calls [`watch`](super::watch) with its last word, which is added here.
///
/// # Errors
/// If a right is missing (said before anything starts), the command cannot be started, or the file not be written.
pub fn record(options: &Options, guardian: Command) -> Result<Done> {
    let target = Target::of(&options.output).map_err(|e| {
        let help = match e.kind() {
            std::io::ErrorKind::IsADirectory => "name a file, not a directory",
            _ => "",
        };
        Error::from(e).in_file(&options.output).help(help)
    })?;
    let tracefs = Tracefs::find()?;
    if matches!(options.scope, Scope::Command(_)) {
        check_pid_namespace(Path::new("/proc/self/ns/pid"))?;
    }
    let stale = tracefs.remove_stale()?;
    // From here on a signal ends the recording, and not the process: something would be left of it.
    let events = Events::listen()?;
    let instance = tracefs.instance()?;
    Session::begin(options, &target, instance, guardian, None)?.run(options, &events, stale)
}

/// Records the whole host into the directory `options.output`, a segment after the other. `tell` hears at the beginning
/// what becomes of the spools that dead recorders had left there.
///
/// # Errors
/// If a right is missing, another recorder is at work there, or nothing can be written there.
pub fn record_in_segments(
    options: &Options,
    keep: Keep,
    guardian: Command,
    tell: &mut dyn FnMut(Found),
) -> Result<DoneInSegments> {
    let tracefs = Tracefs::find()?;
    let dir = &directory(&options.output)?;
    let _lock = rotation::lock(dir)?;
    let stale = tracefs.remove_stale()?;
    recover_all(dir, tell);
    let events = Events::listen()?;
    let target = Target::File(rotation::segment_path(dir, 0));
    let instance = tracefs.instance()?;
    let mut session = Session::begin(options, &target, instance, guardian, Some(dir))?;
    let job = session.spool.job();
    match job.and_then(|job| Rotation::start(dir, keep, job)) {
        Ok(rotation) => session.rotation = Some(rotation),
        Err(e) => return Err(session.abandon(e)),
    }
    session.period = LONG_PERIOD;
    session.run_in_segments(options, &events, stale)
}

/// The directory of segments at this path, which is made if it is not there, for its owner alone.
fn directory(path: &Path) -> Result<PathBuf> {
    let made = target::directory(path).and_then(|dir| {
        let dir = std::path::absolute(dir)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        Ok(dir)
    });
    made.map_err(|e| Error::from(e).in_file(path))
}

/// What happens while a recording runs.
struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
}

impl Events {
    /// Signals are events from here on.
    fn listen() -> Result<Events> {
        let (sender, receiver) = channel();
        signals::listen(&sender, Event::Signal)?;
        Ok(Events { sender, receiver })
    }
}

/// The first error; prints the second as a warning.
fn with_warning(e: Error, second: Result<()>) -> Error {
    if let Err(second) = second {
        eprintln!("warning: {}", escaped_lines(&second.to_string()));
    }
    e
}

/// Refuses a container with process numbers of its own: the tracer knows tasks by their numbers on the host.
fn check_pid_namespace(link: &Path) -> Result<()> {
    /// Link of the initial namespace.
    const FIRST: &str = "pid:[4026531836]";
    match std::fs::read_link(link) {
        Ok(name) if name.as_os_str() != FIRST => Err(Error::unsupported(
            "this container numbers its processes itself, so the tracer cannot be told which to follow",
        )
        .help(format!(
            "start the container with the host's process numbers (--pid=host), or use --system; {WITHOUT_TRACING}"
        ))),
        _ => Ok(()),
    }
}

/// Default size in bytes of each CPU's buffer: a hundredth of memory in all, from 1 to 16 MiB each.
fn usual_buffer(memory: u64, cpus: usize) -> usize {
    let share = memory / 100 / cpus.max(1) as u64;
    (share as usize).clamp(1 << 20, 16 << 20) & !0xffff
}

/// What [`Session::set_up`] made: guardian, bytes of a sub-buffer, bytes of a buffer, and the command's
/// starter.
type Ready = (Guardian, usize, usize, Option<Starter>);

/// A recording under way.
struct Session {
    instance: Instance,
    spool: Spool,
    guardian: Guardian,
    sub_buffer: usize,
    buffer: usize,
    starter: Option<Starter>,
    sources: Sources,
    untaken: Vec<Untaken>,
    names: ScopeOfNames,
    period: Duration,
    spooler: Option<Spooler>,
    rotation: Option<Rotation>,
    /// Why no further segment could be begun.
    stuck: Option<Error>,
}

/// Whose names are noted while they run. What begins later has an event that names it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeOfNames {
    Nobody,
    /// All that runs of what is recorded when a command's recording begins.
    Recorder,
    Everybody,
}

/// What was collected.
struct Collected {
    status: Option<ExitStatus>,
    ending: Ending,
    cut_short: Option<Error>,
}

impl Session {
    /// Makes the spool of `target`, and sets everything up; where that fails, nothing is left.
    fn begin(
        options: &Options,
        target: &Target,
        instance: Instance,
        guardian: Command,
        segments: Option<&Path>,
    ) -> Result<Session> {
        let spool = match Spool::create(target) {
            Ok(spool) => spool,
            Err(e) => return Err(with_warning(e, instance.remove())),
        };
        match Session::set_up(options, target, &instance, &spool, guardian, segments) {
            Ok(ready) => Ok(Session::new(options, instance, spool, ready)),
            Err(e) => Err(with_warning(e, instance.remove().and(spool.remove()))),
        }
    }

    fn new(options: &Options, instance: Instance, spool: Spool, ready: Ready) -> Session {
        let (guardian, sub_buffer, buffer, starter) = ready;
        Session {
            instance,
            spool,
            guardian,
            sub_buffer,
            buffer,
            starter,
            sources: Sources::default(),
            untaken: vec![],
            names: match (options.anonymous, &options.scope) {
                (true, _) => ScopeOfNames::Nobody,
                (_, Scope::Command(_)) => ScopeOfNames::Recorder,
                (_, Scope::System(_) | Scope::SystemWhile(_)) => ScopeOfNames::Everybody,
            },
            period: PERIOD,
            spooler: None,
            rotation: None,
            stuck: None,
        }
    }

    /// Everything before the first event.
    fn set_up(
        options: &Options,
        target: &Target,
        instance: &Instance,
        spool: &Spool,
        guardian: Command,
        segments: Option<&Path>,
    ) -> Result<Ready> {
        let mut meta = host::meta();
        let cpus = instance.cpus()?;
        let header_page = text(instance.get("events/header_page")?);
        let sub_buffer = raw::sub_buffer(&header_page)? as usize;
        let memory = rustix::system::sysinfo();
        let memory = memory.totalram as u64 * u64::from(memory.mem_unit);
        let buffer = options
            .buffer
            .unwrap_or_else(|| usual_buffer(memory, cpus.len()));
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", &(buffer >> 10).to_string())?;
        instance.set_if_there("buffer_percent", &spooler::WAKE_PERCENT.to_string())?;
        instance.set_if_there("options/overwrite", "1")?;
        // Names come with events of their own; this option has the kernel note one at every switch of tasks.
        instance.set_if_there("options/record-cmd", "0")?;
        let command = options.scope.command();
        let starter = command
            .map(|c| Starter::new(c, *target == Target::Stdout))
            .transpose()?;
        let scope = match (&options.scope, &starter) {
            (Scope::Command(_), Some(s)) => {
                if !instance.set_if_there("options/event-fork", "1")? {
                    return Err(Error::unsupported(
                        "this kernel's tracer cannot follow a command's children (it came with Linux 4.7)",
                    )
                    .help("use --system"));
                }
                // The thread that starts the command is followed up to there, and no other one of the recorder.
                let mut followed = vec![s.task];
                followed.extend(names::of_kernel());
                let followed: Vec<_> = followed.iter().map(i32::to_string).collect();
                instance.set("set_event_pid", &followed.join(" "))?;
                "command"
            }
            _ => "system",
        };
        let mut kinds = vec![events::PAGES, events::USUAL];
        if options.slab {
            kinds.push(events::SLAB);
        }
        if !options.anonymous {
            kinds.push(events::NAMES);
        }
        if options.processes {
            kinds.push(events::PROCESSES);
        }
        let mut formats = events::enable(instance, &kinds, &options.events)?;
        if options.stacks {
            formats.extend(stacks::enable(instance, options.processes)?);
        }
        meta.facts.insert("scope".into(), scope.into());
        meta.facts.insert("snapshot_clock".into(), "mono".into());
        meta.facts.insert("date".into(), today());
        meta.facts.insert(
            "recorder".into(),
            format!("unfrag {}", env!("CARGO_PKG_VERSION")),
        );
        if options.command_line
            && let Some(words) = command
        {
            let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
            meta.facts.insert("command".into(), words.join(" "));
        }
        meta.facts.extend([rotation::fact_of_clock()]);
        if segments.is_some() {
            meta.facts.extend(rotation::fact_of_boot());
        }
        spool.set_job(&Job {
            recorder: starter.iter().map(|s| s.task).collect(),
            anonymous: options.anonymous,
            stacks: options.stacks,
            kernel_release: meta.kernel_release,
            page_size: meta.page_size,
            cpus: cpus.len() as u32,
            facts: meta.facts.into_iter().collect(),
            header_page,
            formats,
        })?;
        if options.stacks {
            stacks::note_symbols(spool)?;
        }
        let watched = Watched {
            spool: spool.dir().to_owned(),
            output: match (segments, target) {
                (Some(dir), _) => dir.to_owned(),
                (_, Target::Stdout) => "-".into(),
                (_, Target::File(path) | Target::Special(path) | Target::Descriptor(path)) => {
                    std::path::absolute(path)?
                }
            },
            instance: instance.dir().to_owned(),
            in_segments: segments.is_some(),
        };
        let guardian = Guardian::start(guardian, &watched, target)?;
        Ok((guardian, sub_buffer, buffer, starter))
    }

    /// From the first event to the file.
    fn run(mut self, options: &Options, events: &Events, stale: Vec<String>) -> Result<Done> {
        let Collected {
            status,
            ending,
            cut_short,
        } = match self.collect(options, events) {
            Ok(collected) => collected,
            Err(e) => return Err(self.abandon(e)),
        };
        let Session {
            instance,
            spool,
            guardian,
            untaken,
            ..
        } = self;
        let removed = instance.remove();
        let finished = finish(spool, &ending, &options.output);
        guardian.dismiss();
        removed?;
        let finished = finished?;
        Ok(Done {
            recording: finished.recording,
            file_bytes: finished.file_bytes,
            status,
            untaken,
            stale,
            cut_short,
        })
    }

    /// From the first event to the last segment.
    fn run_in_segments(
        mut self,
        options: &Options,
        events: &Events,
        stale: Vec<String>,
    ) -> Result<DoneInSegments> {
        let Collected {
            ending, cut_short, ..
        } = match self.collect(options, events) {
            Ok(collected) => collected,
            Err(e) => return Err(self.abandon(e)),
        };
        let Session {
            instance,
            spool,
            guardian,
            untaken,
            rotation,
            stuck,
            buffer,
            ..
        } = self;
        let removed = instance.remove();
        let mut totals = Totals::default();
        if let Some(mut rotation) = rotation {
            rotation.end_segment(spool, ending.counts, ending.early);
            totals = rotation.finish();
        }
        guardian.dismiss();
        removed?;
        Ok(DoneInSegments {
            totals,
            untaken,
            stale,
            buffer,
            cut_short: stuck.or(cut_short),
        })
    }

    /// From the first event to the last one that is copied.
    fn collect(&mut self, options: &Options, events: &Events) -> Result<Collected> {
        let gave_up = {
            let sender = events.sender.clone();
            move || drop(sender.send(Event::GaveUp))
        };
        self.spooler = Some(Spooler::start(
            &self.instance,
            self.sub_buffer,
            self.buffer,
            &self.spool,
            gave_up,
        )?);
        let ran = self.traced(options, events);
        // The trace ends here in any case.
        let stopped = self.instance.set("tracing_on", "0");
        let spooled = self.spooler.take().map_or(Ok(()), Spooler::stop);
        let status = ran?;
        let drained = spooled
            .and(stopped)
            .and_then(|()| spooler::drain(&self.instance, self.sub_buffer, &self.spool));
        if options.stacks {
            // Modules may have been loaded meanwhile; without room for more names, those from the beginning do.
            let _ = stacks::note_symbols(&self.spool);
        }
        let counts = self.instance.counts();
        let cut_short = drained.err();
        Ok(Collected {
            status,
            ending: Ending {
                counts: counts.unwrap_or_default(),
                early: cut_short.as_ref().map(|e| e.cause.to_string()),
                ..Ending::default()
            },
            cut_short,
        })
    }

    /// The part between the two markers; gives the command's status.
    fn traced(&mut self, options: &Options, events: &Events) -> Result<Option<ExitStatus>> {
        self.instance.set("tracing_on", "1")?;
        self.instance.set("trace_marker", "unfrag: begin\n")?;
        self.note_names()?;
        let _ = self.snapshot(BEGIN, Extent::FlagsThenCounts);
        let mut child = None;
        let mut deadline = None;
        match &options.scope {
            Scope::Command(_) | Scope::SystemWhile(_) => {
                let Some(starter) = self.starter.take() else {
                    return Err(Error::malformed("no command to record"));
                };
                // A terminal's signal reached this process alone.
                if let Ok(Event::Signal(_)) = events.receiver.try_recv() {
                    return Err(
                        Error::unsupported("a signal came before the command was started")
                            .help("neither was the command run nor a recording made"),
                    );
                }
                let mut started = starter.start()?;
                child = Some(started.id() as i32);
                let sender = events.sender.clone();
                std::thread::spawn(move || drop(sender.send(Event::Exited(started.wait()))));
                // That thread is gone by the end.
                let _ = self.note_recorder();
            }
            Scope::System(time) => deadline = time.map(|t| Instant::now() + t),
        }
        let status = self.wait(&events.receiver, child, deadline);
        names::note_kernel_threads(&self.spool)?;
        self.note_recorder()?;
        let _ = self.snapshot(END, Extent::CountsThenFlags);
        self.instance.set("trace_marker", "unfrag: end\n")?;
        status
    }

    /// Takes a snapshot a second until the end.
    fn wait(
        &mut self,
        receiver: &Receiver<Event>,
        child: Option<i32>,
        deadline: Option<Instant>,
    ) -> Result<Option<ExitStatus>> {
        let start = Instant::now();
        let mut taken = 0;
        let mut full = false;
        loop {
            let now = Instant::now();
            let next = start + self.period * (taken + 1);
            let mut until = deadline.map_or(next, |d| d.min(next));
            if self.rotation.is_some() {
                until = until.min(now + PERIOD);
            }
            match receiver.recv_timeout(until.saturating_duration_since(now)) {
                Ok(Event::Exited(status)) => return Ok(Some(status?)),
                Ok(Event::Signal(signal)) => match child {
                    Some(child) => command::forward(signal, child),
                    None => return Ok(None),
                },
                // The command runs on without a trace.
                Ok(Event::GaveUp) => {
                    let _ = self.instance.set("tracing_on", "0");
                    full = true;
                    if child.is_none() {
                        return Ok(None);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    if deadline.is_some_and(|d| Instant::now() >= d) {
                        return Ok(None);
                    }
                    // Snapshots that were missed, because one took long, are left out.
                    let due = (start.elapsed().as_nanos() / self.period.as_nanos()) as u32;
                    if !full && due > taken {
                        taken = due;
                        full = self
                            .snapshot(&format!("s{taken:04}"), Extent::Counts)
                            .is_err();
                    }
                    if let Err(e) = self.rotate() {
                        self.stuck = Some(e);
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Goes on in the next segment, if it is time for it.
    fn rotate(&mut self) -> Result<()> {
        if let Some(rotation) = &mut self.rotation {
            rotation.tell_rate(&self.spool);
        }
        if !self
            .rotation
            .as_ref()
            .is_some_and(|r| r.is_due(&self.spool))
        {
            return Ok(());
        }
        names::note_kernel_threads(&self.spool)?;
        self.note_recorder()?;
        let (Some(rotation), Some(spooler)) = (&mut self.rotation, &self.spooler) else {
            return Ok(());
        };
        let next = rotation.next_spool()?;
        let counts = match spooler.switch(&next) {
            Ok(counts) => counts,
            Err(e) => return Err(with_warning(e, next.remove())),
        };
        let ended = std::mem::replace(&mut self.spool, next);
        rotation.end_segment(ended, counts, None);
        self.note_names()?;
        self.snapshot(BEGIN, Extent::FlagsThenCounts)
    }

    /// Notes the names of what runs, and what of it is the recorder's own.
    fn note_names(&self) -> Result<()> {
        names::note_kernel_threads(&self.spool)?;
        self.note_recorder()?;
        if self.names == ScopeOfNames::Everybody {
            names::note_tasks(&self.spool)?;
        }
        Ok(())
    }

    fn note_recorder(&self) -> Result<()> {
        // Where everybody is named, the recorder is among them.
        let named = self.names == ScopeOfNames::Recorder;
        names::note_recorder(&self.spool, self.guardian.id(), named)
    }

    fn snapshot(&mut self, name: &str, extent: Extent) -> Result<()> {
        let (snapshot, untaken) = self.sources.take(name, extent);
        for u in untaken {
            if !self.untaken.contains(&u) {
                self.untaken.push(u);
            }
        }
        self.spool.add(&snapshot)
    }

    /// Ends a recording that has nothing to keep; gives back the error.
    fn abandon(self, e: Error) -> Error {
        let removed = self.instance.remove().and(self.spool.remove());
        self.guardian.dismiss();
        with_warning(e, removed)
    }
}

/// Today's date, such as `2026-11-22`, in UTC.
fn today() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    dates::date(now.map_or(0, |t| t.as_secs()))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_take_a_hundredth_of_memory() {
        assert_eq!(usual_buffer(24 << 30, 2), 16 << 20);
        assert_eq!(usual_buffer(128 << 20, 4), 1 << 20);
        let some = usual_buffer(768 << 20, 2);
        assert!(
            (3 << 20..4 << 20).contains(&some) && some.is_multiple_of(4096),
            "{some}"
        );
    }

    #[test]
    fn a_pid_namespace_is_refused() {
        let dir = std::env::temp_dir().join(format!("unfrag-ns-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let link = dir.join("pid");
        std::os::unix::fs::symlink("pid:[4026532000]", &link).unwrap();
        let e = check_pid_namespace(&link).unwrap_err();
        assert!(e.to_string().contains("--system"), "{e}");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
