//! What the tests of the command share: running it, and small inputs.
#![allow(dead_code)]

pub mod blocks;
pub mod book;

use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use unfrag_linux::gfp_text::Era;
#[cfg(target_os = "linux")]
use unfrag_linux::record::tracefs::Tracefs;
use unfrag_linux::recording::{Recording, Snapshot};
use unfrag_linux::{file, recording};

/// The command, in the directory of the project, with no settings of whoever runs the tests.
pub fn unfrag() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unfrag"));
    command.current_dir(root());
    for name in ["NO_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(name);
    }
    command
}

/// Runs the command with these words.
pub fn run(words: &[&str]) -> Output {
    unfrag()
        .args(words)
        .output()
        .expect("the command was built")
}

/// Runs the command with these words, and something on its standard input.
pub fn given(words: &[&str], input: &[u8]) -> Output {
    let mut child = unfrag()
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input)
        .expect("the command reads");
    child.wait_with_output().expect("it ends")
}

/// Lays out a host whose files can all be read, with 4 GiB of frames whose flags are none: they are the kernel's own.
pub fn lay_out_host(directory: &Path) {
    let fixtures = root().join("crates/unfrag-linux/tests/fixtures/procfs");
    for file in [
        "buddyinfo",
        "zoneinfo",
        "vmstat",
        "meminfo",
        "pagetypeinfo",
        "slabinfo",
    ] {
        fs::copy(fixtures.join(file), directory.join(file)).unwrap();
    }
    let flags = fs::File::create(directory.join("kpageflags")).unwrap();
    flags.set_len(8 << 20).unwrap();
}

/// Runs the command, which must succeed, and answers what it printed.
pub fn stdout(words: &[&str]) -> String {
    let out = run(words);
    assert!(out.status.success(), "{words:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Runs the command, which must succeed, and answers the JSON that it printed.
pub fn json(words: &[&str]) -> Value {
    serde_json::from_str(&stdout(words)).expect("--json prints JSON")
}

/// Runs the command, which must fail with `status` and say all of `words`.
pub fn fails(args: &[&str], status: i32, words: &[&str]) -> Output {
    let out = run(args);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
    for word in words {
        assert!(
            said.contains(word),
            "{args:?} does not say {word:?}: {said}"
        );
    }
    out
}

/// Whether a recording can be made here; says aloud if not.
#[cfg(target_os = "linux")]
pub fn can_trace() -> bool {
    let tried = Tracefs::find().and_then(|t| t.instance());
    match tried.and_then(|i| i.remove()) {
        Ok(()) => true,
        Err(e) => {
            skipped(&format!("nobody may trace here: {e}"));
            false
        }
    }
}

/// Sends a signal, such as `KILL`, to a process.
pub fn kill(pid: u32, signal: &str) {
    let script = format!("kill -{signal} {pid}");
    let done = Command::new("sh").args(["-c", &script]).status();
    assert!(done.expect("there is a shell").success());
}

/// What a run of the command took.
pub struct Measured {
    /// What it printed.
    pub stdout: String,
    /// Its largest resident size in MiB, as far as it was seen.
    pub mib: u64,
    pub time: Duration,
}

/// Runs the command, which must succeed, and measures it.
pub fn measured(words: &[&str]) -> Measured {
    let out = tempfile::NamedTempFile::new().expect("room for its output");
    let begin = Instant::now();
    let mut child = unfrag()
        .args(words)
        .stdout(out.reopen().expect("its output"))
        .spawn()
        .expect("the command was built");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let end = loop {
        if let Some(end) = child.try_wait().expect("it runs") {
            break end;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0) >> 10);
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(end.success(), "{words:?}: {end}");
    Measured {
        stdout: fs::read_to_string(out.path()).expect("text"),
        mib: most,
        time: begin.elapsed(),
    }
}

/// Bytes that should be text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The directory of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sample that ships.
pub const SAMPLE: &str = "samples/gcc-768M.unfrag";

/// The sample's recording.
pub fn sample() -> Recording {
    file::read(&root().join(SAMPLE)).expect("the sample is whole")
}

/// Says past the runner, which hides what a passing test prints, that something is not tested here.
pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// Changes a counter of a `vmstat`.
pub fn change_counter(file: &mut recording::SnapshotFile, name: &str, to: impl Fn(u64) -> u64) {
    let text = text(&file.content.bytes());
    let line = |line: &str| match line.split_once(' ') {
        Some((n, value)) if n == name => format!("{name} {}\n", to(value.parse().unwrap())),
        _ => format!("{line}\n"),
    };
    let changed: String = text.lines().map(line).collect();
    file.content = changed.into_bytes().into();
}

/// The first `seconds` of a recording, with the snapshots taken in them.
pub fn head(recording: &Recording, seconds: u64) -> Recording {
    let events = &recording.events;
    let end = events.time[0] + seconds * 1_000_000_000;
    let n = events.time.partition_point(|&t| t < end);
    let mut rows = vec![0; events.tables.len()];
    for &kind in &events.kind[..n] {
        rows[usize::from(kind)] += 1;
    }
    let mut tables = events.tables.clone();
    for (table, rows) in tables.iter_mut().zip(rows) {
        table.columns.iter_mut().for_each(|c| c.truncate(rows));
    }
    let first = 1 + seconds as usize;
    Recording {
        events: recording::Events {
            time: events.time[..n].to_vec(),
            cpu: events.cpu[..n].to_vec(),
            task: events.task[..n].to_vec(),
            flags: events.flags[..n].to_vec(),
            preempt: events.preempt[..n].to_vec(),
            kind: events.kind[..n].to_vec(),
            tables,
        },
        snapshots: recording.snapshots.iter().take(first).cloned().collect(),
        ..recording.clone()
    }
}

/// A short recording as a tracer and a shell loop would have left it in `directory`: `trace.dat`
/// (in truth text as of trace_pipe; formats go by content) and `snapshots/`.
pub fn lay_out(recording: &Recording, directory: &Path) {
    fs::write(directory.join("trace.dat"), trace_text(recording)).expect("written");
    let snapshots = directory.join("snapshots");
    for snapshot in &recording.snapshots {
        write_snapshot(snapshot, &snapshots.join(&snapshot.name));
    }
    let info = snapshots.join("info");
    fs::create_dir_all(&info).expect("made");
    let version = format!("Linux version {} (test)\n", recording.meta.kernel_release);
    fs::write(info.join("version"), version).expect("written");
}

/// A snapshot as a directory.
pub fn write_snapshot(snapshot: &Snapshot, directory: &Path) {
    fs::create_dir_all(directory).expect("made");
    for file in &snapshot.files {
        fs::write(directory.join(&file.name), file.content.bytes()).expect("written");
    }
}

/// The allocations and frees of a recording as the kernel's trace_pipe prints them.
fn trace_text(recording: &Recording) -> String {
    let events = &recording.events;
    let mut rows = vec![0; events.tables.len()];
    let mut out = String::new();
    for i in 0..events.len() {
        let kind = usize::from(events.kind[i]);
        let row = rows[kind];
        rows[kind] += 1;
        let table = &events.tables[kind];
        let value = |name| table.column(name).map_or(0, |c| c[row]);
        let event = match table.name.as_str() {
            "mm_page_alloc" => format!(
                "mm_page_alloc: page={:#x} pfn={:#x} order={} migratetype={} gfp_flags={}",
                value("pfn"),
                value("pfn"),
                value("order"),
                value("migratetype"),
                Era::V5_1.print(value("gfp_flags")),
            ),
            "mm_page_free" => format!(
                "mm_page_free: page={:#x} pfn={:#x} order={}",
                value("pfn"),
                value("pfn"),
                value("order"),
            ),
            _ => continue,
        };
        let task = &recording.tasks[events.task[i] as usize];
        let (time, cpu) = (events.time[i], events.cpu[i]);
        let _ = writeln!(
            out,
            "{:>16}-{:<7} [{cpu:03}] ..... {:>6}.{:06}: {event}",
            task.comm,
            task.pid,
            time / 1_000_000_000,
            time / 1000 % 1_000_000,
        );
    }
    out
}
