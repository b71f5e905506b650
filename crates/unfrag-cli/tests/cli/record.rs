//! `unfrag record` on this very host, of commands started here. Where nobody may trace, says so aloud.
#![cfg(target_os = "linux")]

use crate::support::{can_trace, kill, text, unfrag};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use unfrag_linux::event::{Role, Roles};
use unfrag_linux::file;
use unfrag_linux::kpageflags::PageFlags;
use unfrag_linux::record::tracefs::Tracefs;
use unfrag_linux::recording::Recording;
use unfrag_linux::share::Share;

/// Where the instances of a recorder with this process id would be.
fn instances_of(pid: u32) -> Vec<PathBuf> {
    let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let named = |name: &str| name == format!("unfrag-{pid}");
    let all = roots
        .iter()
        .filter_map(|r| fs::read_dir(format!("{r}/instances")).ok());
    all.flatten()
        .filter_map(|i| Some(i.ok()?.path()))
        .filter(|p| p.file_name().and_then(|n| n.to_str()).is_some_and(named))
        .collect()
}

fn start(dir: &TempDir, words: &[&str]) -> Child {
    unfrag()
        .current_dir(dir.path())
        .args(["record", "-o", "x.unfrag"])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built")
}

fn record(dir: &TempDir, words: &[&str]) -> (Output, Recording) {
    let child = start(dir, words);
    let pid = child.id();
    let out = child.wait_with_output().unwrap();
    assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
    assert_eq!(
        left_behind(dir.path()),
        ["x.unfrag"],
        "{}",
        text(&out.stderr)
    );
    (out, file::read(&dir.path().join("x.unfrag")).unwrap())
}

fn left_behind(dir: &Path) -> Vec<String> {
    let items = fs::read_dir(dir).unwrap().map(|i| i.unwrap().file_name());
    let mut names: Vec<String> = items.map(|n| n.into_string().unwrap()).collect();
    names.retain(|n| n.starts_with("x.unfrag"));
    names.sort();
    names
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < Duration::from_secs(60), "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn count(recording: &Recording, name: &str) -> usize {
    let tables = recording.events.tables.iter().filter(|t| t.name == name);
    tables.map(|t| t.columns[0].len()).sum()
}

#[test]
fn a_command_is_recorded_with_its_children_and_keeps_streams_and_status() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "read line; echo \"got $line\"; for i in $(seq 100); do /bin/true; done; exit 7";
    let mut child = start(&dir, &["--", "sh", "-c", script]);
    use std::io::Write as _;
    child.stdin.take().unwrap().write_all(b"a word\n").unwrap();
    let out = child.wait_with_output().unwrap();
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(7), "{said}");
    assert_eq!(text(&out.stdout), "got a word\n");
    let r = file::read(&dir.path().join("x.unfrag")).unwrap();
    assert_eq!(r.meta.lost, [], "{said}");
    // A hundred programs, each of some forty pages at least.
    let (allocs, frees) = (count(&r, "mm_page_alloc"), count(&r, "mm_page_free"));
    assert!(
        allocs > 3000 && frees > allocs / 2,
        "{allocs} and {frees}: {said}"
    );
    // Both ends lie within the trace, on its clock.
    let (first, last) = (r.events.time[0], *r.events.time.last().unwrap());
    let snapshots = [&r.snapshots[0], r.snapshots.last().unwrap()];
    assert_eq!(snapshots.map(|s| &s.name[..]), ["begin", "end"]);
    for s in snapshots {
        assert!(s.files.iter().all(|f| {
            let (begin, end) = f.time.unwrap();
            first < begin && begin <= end && end < last
        }));
        let flags = PageFlags::of(s).unwrap().unwrap();
        assert!(flags.words.len() > 1000);
    }
    // More programs than the tracer remembers the names of: each has its own.
    let named = |name: &str| r.tasks.iter().filter(|t| t.comm == name).count();
    assert!(named("true") == 100 && named("<...>") == 0, "{:?}", r.tasks);
    // Arguments may be secrets.
    assert!(!r.meta.facts.contains_key("command"));
    // How much of the host it is, and whom it names, is said.
    let share = Share::noted(&r.meta).expect("there are two snapshots");
    assert!(share.recorded > 1000 && share.fraction() > 0.0, "{share:?}");
    for words in [
        " % of the pages that the host allocated meanwhile",
        "it holds the names of programs: `unfrag redact`",
    ] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn the_whole_host_is_recorded_while_a_command_runs() {
    if !can_trace() {
        return;
    }
    if std::env::var_os("UNFRAG_TRACE_HOST").is_none() {
        crate::support::skipped("UNFRAG_TRACE_HOST=1 lets tests record the whole host");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "for i in $(seq 50); do /bin/true; done; sleep 2; exit 3";
    let (out, r) = record(&dir, &["--system", "--", "sh", "-c", script]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert_eq!(r.meta.facts["scope"], "system");
    let share = Share::noted(&r.meta).expect("there are snapshots");
    assert!(
        r.meta.lost_events() > 0 || share.fraction() > 0.7,
        "{share:?}: {said}"
    );
    let named = |name: &str| r.tasks.iter().any(|t| t.comm == name);
    assert!(named("true") && named("sleep"), "{:?}", r.tasks);
    let roles = Roles::of(&r);
    assert!(roles.all().contains(&Role::Recorder), "{:?}", r.meta.facts);
}

#[test]
fn an_anonymous_recording_names_no_program_and_the_words_of_a_command_are_kept_on_demand() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "for i in $(seq 20); do /bin/true; done; exec sleep 0.1";
    let (_, r) = record(&dir, &["--anonymous", "--", "sh", "-c", script]);
    let names = ["sh", "true", "sleep", "seq"];
    let bytes = fs::read(dir.path().join("x.unfrag")).unwrap();
    assert!(!bytes.is_empty() && r.tasks.len() > 10);
    assert!(
        r.tasks.iter().all(|t| !names.contains(&&t.comm[..])),
        "{:?}",
        r.tasks
    );
    assert!(
        r.strings.iter().all(|s| !names.contains(&&s[..])),
        "{:?}",
        r.strings
    );
    let (_, r) = record(&dir, &["--command-line", "--", "sh", "-c", script]);
    assert!(r.tasks.iter().any(|t| t.comm == "sleep"), "{:?}", r.tasks);
    assert!(r.meta.facts["command"].starts_with("sh -c"));
}

/// `true` takes some forty pages; the recorder takes thousands, for the page flags and its spool.
#[test]
fn the_recorder_is_not_the_command() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (out, r) = record(&dir, &["--json", "--", "true"]);
    // Threads of the kernel reclaim and compact, whomever they serve.
    let threads = |comm: &str| {
        let all = ["kswapd", "kcompactd", "khugepaged", "kdamond", "ksoftirqd/"];
        comm == "<idle>" || comm == "swapper" || all.iter().any(|t| comm.starts_with(t))
    };
    let table = |name: &str| r.events.tables.iter().position(|t| t.name == name).unwrap();
    let (allocs, frees) = (table("mm_page_alloc"), table("mm_page_free"));
    let mut pages = std::collections::BTreeMap::<&str, u64>::new();
    let mut row = 0;
    for (&kind, &task) in r.events.kind.iter().zip(&r.events.task) {
        let comm = &r.tasks[task as usize].comm[..];
        if usize::from(kind) == allocs {
            *pages.entry(comm).or_default() +=
                1 << r.events.tables[allocs].column("order").unwrap()[row];
            row += 1;
        } else if usize::from(kind) == frees {
            assert!(comm == "true" || threads(comm), "{comm} freed");
        }
    }
    let of_true = pages.remove("true").unwrap();
    assert!((20..200).contains(&of_true), "{of_true} pages");
    assert!(pages.keys().all(|comm| threads(comm)), "{pages:?}");
    let said: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
    assert_eq!(
        said["allocated_pages"],
        of_true + pages.values().sum::<u64>()
    );
    let readers: [&[&str]; 4] = [
        &["summary"],
        &["top"],
        &["blame"],
        &["profile", "-o", "x.toml"],
    ];
    for words in readers {
        let mut command = unfrag();
        command
            .current_dir(dir.path())
            .arg(words[0])
            .arg("x.unfrag")
            .args(&words[1..]);
        let out = command.output().unwrap();
        let said = text(&out.stdout) + &text(&out.stderr);
        assert!(!said.contains("panicked"), "{words:?}: {said}");
        // In a table a task's name stands before its numbers.
        for line in said.lines() {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default();
            let has_numbers = words
                .next()
                .is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit()));
            let is_own = ["spooler", "starter", "signals", "unfrag"].contains(&name);
            assert!(!(is_own && has_numbers), "{words:?}: {line}");
        }
    }
}

#[test]
fn what_a_recorder_and_its_guardian_left_is_made_a_file_where_its_name_says() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    let script = format!(
        "for i in $(seq 20); do /bin/true; done; echo > {}; sleep 3",
        ready.display()
    );
    let mut child = start(&dir, &["--", "sh", "-c", &script]);
    wait_for("command", || ready.exists());
    let [spool] = &left_behind(dir.path())[..] else {
        panic!("{:?}", left_behind(dir.path()));
    };
    let guardian = fs::read_dir("/proc").unwrap().flatten().find_map(|item| {
        let pid: u32 = item.file_name().to_str()?.parse().ok()?;
        let line = fs::read(item.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        (line.contains("record-guardian") && line.contains(&spool[..])).then_some(pid)
    });
    kill(child.id(), "STOP");
    kill(guardian.unwrap(), "KILL");
    child.kill().unwrap();
    child.wait().unwrap();
    let spool = dir.path().join(spool);
    // Paths of a planted job are not obeyed.
    let victim = dir.path().join("victim");
    fs::write(&victim, "victim").unwrap();
    let job = fs::read_to_string(spool.join("job.json")).unwrap();
    fs::write(
        spool.join("job.json"),
        job.replacen('{', &format!("{{\"output\":{victim:?},"), 1),
    )
    .unwrap();
    let recover = |words: &[&str]| {
        let mut command = unfrag();
        command
            .current_dir(dir.path())
            .args(["record", "--recover"])
            .arg(&spool)
            .args(words);
        command.output().unwrap()
    };
    fs::write(dir.path().join("x.unfrag"), "newer").unwrap();
    let out = recover(&[]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("is there already") && said.contains("-o FILE"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(dir.path().join("x.unfrag")).unwrap(),
        "newer"
    );
    fs::remove_file(dir.path().join("x.unfrag")).unwrap();
    let out = recover(&[]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(left_behind(dir.path()), ["x.unfrag"]);
    // What the ring buffers held went with the instance.
    let r = file::read(&dir.path().join("x.unfrag")).unwrap();
    assert_eq!(r.meta.facts["ended_early"], "the recorder died");
    assert_eq!(r.snapshots[0].name, "begin");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
}

#[test]
fn a_signal_goes_to_the_command_and_the_recording_ends_well() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    let script = format!(
        "trap 'exit 5' TERM; echo > {}; sleep 20 >&- 2>&- & wait",
        ready.display()
    );
    let child = start(&dir, &["--", "sh", "-c", &script]);
    wait_for("command", || ready.exists());
    kill(child.id(), "TERM");
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(5), "{}", text(&out.stderr));
    assert_eq!(left_behind(dir.path()), ["x.unfrag"]);
    let r = file::read(&dir.path().join("x.unfrag")).unwrap();
    assert_eq!(r.snapshots.last().unwrap().name, "end");
}

#[test]
fn a_killed_recorder_leaves_no_instance_and_a_readable_file() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    let work = "for i in $(seq 50); do /bin/true; done";
    let script = format!("{work}; echo > {}; sleep 4", ready.display());
    let mut child = start(&dir, &["--", "sh", "-c", &script]);
    let pid = child.id();
    wait_for("command", || ready.exists());
    assert_eq!(
        instances_of(pid).len().min(1),
        1,
        "nothing is being recorded"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("file", || left_behind(dir.path()) == ["x.unfrag"]);
    assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
    let r = file::read(&dir.path().join("x.unfrag")).unwrap();
    assert_eq!(r.meta.facts["ended_early"], "the recorder died");
    assert_eq!(r.meta.lost, []);
    let frees = count(&r, "mm_page_free");
    assert!(
        frees > 1000,
        "{frees} frees: what the ring buffers held is missing"
    );
}

#[test]
fn an_abandoned_instance_is_removed_at_the_next_start() {
    if !can_trace() {
        return;
    }
    // Another test's recorder may be the one that removes it, a little later, and says so: then once
    // more.
    let removes = || {
        let instance = Tracefs::find().unwrap().instance().unwrap();
        let place = instance.dir().to_owned();
        let dir = tempfile::tempdir().unwrap();
        let (_, _) = record(&dir, &["--", "true"]);
        assert!(place.exists(), "an instance in use was removed");
        drop(instance);
        let out = start(&dir, &["--", "true"]).wait_with_output().unwrap();
        wait_for("removal", || !place.exists());
        text(&out.stderr).contains("left by a recorder that died")
    };
    assert!((0..20).any(|_| removes()));
}

#[test]
fn lost_events_are_counted_to_the_last() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "for i in $(seq 60); do /bin/true; done";
    let words = [
        "--slab", "--buffer", "64K", "--json", "--", "sh", "-c", script,
    ];
    let (out, r) = record(&dir, &words);
    let said: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
    let lost: u64 = r.meta.lost.iter().map(|l| l.count.unwrap()).sum();
    assert_eq!(said["lost_events"], lost);
    assert!(count(&r, "kmem_cache_alloc") > 1000);
}

#[test]
fn a_command_that_cannot_be_started_leaves_nothing() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let child = start(&dir, &["--", "no-such-program"]);
    let pid = child.id();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.contains("no-such-program"), "{said}");
    assert_eq!(left_behind(dir.path()), Vec::<String>::new());
    assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
}

#[test]
fn a_replay_takes_the_recording() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, _) = record(
        &dir,
        &[
            "--",
            "sh",
            "-c",
            "for i in $(seq 50); do /bin/true; done; sleep 1.2",
        ],
    );
    let replay = unfrag()
        .current_dir(dir.path())
        // What others do meanwhile is not in it.
        .args(["replay", "x.unfrag", "--any-share"])
        .output()
        .unwrap();
    assert!(replay.status.success(), "{}", text(&replay.stderr));
}

#[test]
fn a_snapshot_is_a_file_that_inspect_takes() {
    let dir = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let out = unfrag()
            .current_dir(dir.path())
            .args(words)
            .output()
            .unwrap();
        assert!(out.status.success(), "{words:?}: {}", text(&out.stderr));
        text(&out.stdout)
    };
    let said: serde_json::Value = serde_json::from_str(&run(&["snapshot", "--json"])).unwrap();
    let taken: Vec<_> = said["taken"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_str().unwrap())
        .collect();
    assert!(taken.contains(&"buddyinfo"), "{said}");
    let r = file::read(&dir.path().join("snapshot.unfrag")).unwrap();
    assert!(r.events.is_empty() && !r.meta.kernel_release.is_empty());
    // What is not in it is said, with the reason.
    for file in ["kpageflags", "pagetypeinfo", "zoneinfo"] {
        let missing = said["not_taken"]
            .as_array()
            .unwrap()
            .iter()
            .any(|n| n["file"] == file);
        assert_eq!(r.snapshots[0].content(file).is_some(), !missing, "{file}");
    }
    assert!(run(&["inspect", "snapshot.unfrag"]).contains("zone"));
}

#[test]
fn a_wrong_command_line_says_what_is_wanted() {
    for (words, wanted) in [
        (&["record"][..], "COMMAND"),
        (&["record", "--for", "5s", "--", "true"], "--for"),
        (
            &["record", "--system", "--for", "5s", "--", "true"],
            "--for",
        ),
        (
            &["record", "--system", "--keep", "1G", "--", "true"],
            "--keep",
        ),
        (&["record", "--for", "5s"], "--system"),
        (
            &["record", "--anonymous", "--processes", "--", "true"],
            "--processes",
        ),
        (
            &["record", "--anonymous", "--command-line", "--", "true"],
            "--command-line",
        ),
        (&["record", "--command-line", "--system"], "--command-line"),
        (&["record", "--system", "--for", "soon"], "60s"),
        (&["record", "--buffer", "1K", "--", "true"], "64K"),
        (&["record", "--event", "x", "--", "true"], "SUBSYSTEM:NAME"),
    ] {
        let out = crate::support::run(words);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(wanted), "{words:?}: {said}");
    }
}

#[test]
fn stacks_name_the_functions_that_ask_for_large_blocks_and_survive_redaction() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // A message of 60,000 bytes is copied into blocks of 32 KiB.
    let script = "import socket\na, b = socket.socketpair()\nfor i in range(50):\n a.send(b'x' * 60000)\n b.recv(60000)";
    let (out, r) = record(&dir, &["--stacks", "--", "python3", "-c", script]);
    if !out.status.success() {
        println!("SKIPPED: {}", text(&out.stderr));
        return;
    }
    let table = r.events.tables.iter().find(|t| t.name == "kernel_stack");
    let stacks = table.expect("there are stacks").column("stack").unwrap();
    assert!(stacks.len() >= 50, "{} stacks", stacks.len());
    let sends = |s: &&u64| r.strings[**s as usize].contains(";unix_stream_sendmsg;");
    assert!(stacks.iter().filter(sends).count() >= 50, "{:?}", r.strings);
    // One stack is one string, however often it comes.
    let distinct: std::collections::HashSet<_> = r.strings.iter().collect();
    assert_eq!(distinct.len(), r.strings.len());
    assert_eq!(r.meta.facts["stacks"], "names");
    let ask = |file: &str| {
        let asked = unfrag()
            .current_dir(dir.path())
            .args(["blame", "--wakes", file, "--json"])
            .output()
            .unwrap();
        let said: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
        said["callers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| {
                let functions = row["functions"].as_array().unwrap();
                functions.iter().any(|f| f == "unix_stream_sendmsg")
            })
            .cloned()
            .expect("the sender is there")
    };
    let before = ask("x.unfrag");
    assert_eq!(before["programs"][0]["name"], "python3");
    assert!(
        before["requests"].as_u64() >= Some(50) && before["order"] == 3,
        "{before}"
    );
    let redacted = unfrag()
        .current_dir(dir.path())
        .args(["redact", "x.unfrag", "shared.unfrag"])
        .output()
        .unwrap();
    assert!(redacted.status.success());
    let after = ask("shared.unfrag");
    assert_eq!(
        (&before["functions"], &before["requests"]),
        (&after["functions"], &after["requests"])
    );
}

#[test]
fn without_stacks_no_trigger_and_no_stack_is_left() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, r) = record(&dir, &["--", "true"]);
    assert_eq!(count(&r, "kernel_stack"), 0);
    assert!(!r.meta.facts.contains_key("stacks"));
}
