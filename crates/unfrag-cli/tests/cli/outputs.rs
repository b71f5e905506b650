//! Where each command writes its output: the standard output, a device, a pipe, a link, a file. Nothing but a
//! regular file is ever replaced.
#![cfg(target_os = "linux")]

use crate::support::{SAMPLE, can_trace, head, kill, lay_out, sample, skipped, text, unfrag};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use unfrag_linux::file;

/// A command line, of which the last word names the output, and the bytes that its output begins with.
struct Case {
    words: Vec<String>,
    begin: &'static [u8],
    /// Whether the same command gives the same bytes again.
    same: bool,
    /// Whether it has a text of its own beside.
    prints: bool,
}

/// A trace with its snapshots, and the command lines of all that write a file.
fn cases(dir: &Path) -> Vec<Case> {
    lay_out(&head(&sample(), 2), dir);
    let trace = dir.join("trace.dat").display().to_string();
    let snapshots = dir.join("snapshots").display().to_string();
    let case = |line: &str, begin: &'static [u8]| Case {
        words: line.split(' ').map(str::to_owned).collect(),
        begin,
        same: true,
        prints: true,
    };
    let mut all = vec![
        case(
            &format!("import {trace} --snapshots {snapshots} -o"),
            b"PK\x03\x04",
        ),
        case(&format!("replay {SAMPLE} --members 1 --html"), b"<!"),
        case(&format!("replay {SAMPLE} --members 1 --svg"), b"<svg"),
        case(&format!("doctor {SAMPLE} --html"), b"<!"),
        case(&format!("profile {SAMPLE} -o"), b""),
        case("simulate samples/small-build.toml --html", b"<!"),
        case("redact samples/slab-find.unfrag", b"PK\x03\x04"),
        case(
            "slab samples/slab-find.unfrag --allocator slub --slabinfo",
            b"slabinfo - version",
        ),
        Case {
            same: false,
            ..case("snapshot -o", b"PK\x03\x04")
        },
    ];
    if can_trace() {
        all.push(Case {
            same: false,
            // What it says goes to the standard error in any case.
            prints: false,
            ..case("record -o", b"PK\x03\x04")
        });
    }
    all
}

impl Case {
    /// The command that writes to `to`, with temporary files in `temporary`.
    fn command(&self, to: &str, temporary: &Path) -> Command {
        let mut command = unfrag();
        command.args(&self.words).arg(to).env("TMPDIR", temporary);
        if self.words[0] == "record" {
            command.args(["--", "echo", "the command"]);
        }
        command
    }

    fn run(&self, to: &str, temporary: &Path) -> Output {
        let out = self.command(to, temporary).output().unwrap();
        let said = text(&out.stderr);
        assert!(!said.contains("panicked"), "{:?} {to}: {said}", self.words);
        out
    }

    fn succeeds(&self, to: &str, temporary: &Path) -> Output {
        let out = self.run(to, temporary);
        let said = text(&out.stderr);
        assert!(out.status.success(), "{:?} {to}: {said}", self.words);
        out
    }

    /// Checks content against that of a regular file.
    fn check(&self, content: &[u8], file: &[u8], what: &str) {
        let words = &self.words;
        assert!(
            !content.is_empty() && content.starts_with(self.begin),
            "{words:?} to {what}"
        );
        if self.same {
            assert!(content == file, "{words:?} to {what} differs from a file");
        }
    }
}

fn names(dir: &Path) -> Vec<String> {
    let items = fs::read_dir(dir).unwrap().map(|i| i.unwrap().file_name());
    let mut names: Vec<String> = items.map(|n| n.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_output_goes_to_a_file_a_link_a_pipe_and_the_standard_output() {
    let inputs = tempfile::tempdir().unwrap();
    for case in cases(inputs.path()) {
        let dir = tempfile::tempdir().unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();

        let out = case.succeeds(&at("file"), temporary.path());
        let file = fs::read(at("file")).unwrap();
        case.check(&file, &file, "a file");
        let printed = out.stdout;

        fs::write(at("old"), "old").unwrap();
        symlink("old", at("link")).unwrap();
        case.succeeds(&at("link"), temporary.path());
        case.check(&fs::read(at("old")).unwrap(), &file, "a link");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());

        let made = Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        let reader = std::thread::spawn({
            let pipe = at("pipe");
            move || fs::read(pipe).unwrap()
        });
        case.succeeds(&at("pipe"), temporary.path());
        case.check(&reader.join().unwrap(), &file, "a pipe");
        assert!(fs::metadata(at("pipe")).unwrap().file_type().is_fifo());

        for name in ["-", "/dev/stdout", "/dev/fd/1"] {
            let out = case.succeeds(name, temporary.path());
            case.check(&out.stdout, &file, name);
            let said = text(&out.stderr);
            if case.prints {
                let first = text(&printed).lines().last().unwrap_or_default().to_owned();
                assert!(
                    case.words[0] == "snapshot" || said.contains(&first),
                    "{name}: {said}"
                );
            } else {
                assert!(said.contains("the command"), "{name}: {said}");
            }
        }
        // Behind a redirection lies a file that the shell has open.
        let redirected = File::create(at("redirected")).unwrap();
        let mut command = case.command("/dev/stdout", temporary.path());
        let done = command.stdout(redirected).stderr(Stdio::null()).status();
        assert!(done.unwrap().success());
        case.check(&fs::read(at("redirected")).unwrap(), &file, "a redirection");

        let all = ["file", "link", "old", "pipe", "redirected"];
        assert_eq!(names(dir.path()), all, "{:?}", case.words);
        assert_eq!(names(temporary.path()), [""; 0], "{:?}", case.words);
        assert!(!crate::support::root().join("-").exists());
    }
}

#[test]
fn a_device_is_written_to_and_never_replaced() {
    let inputs = tempfile::tempdir().unwrap();
    let dir = tempfile::tempdir().unwrap();
    // Devices of their own: a defect would replace the host's.
    let node = |name: &str, minor: &str| {
        let path = dir.path().join(name);
        let made = Command::new("mknod")
            .arg(&path)
            .args(["c", "1", minor])
            .stderr(Stdio::null())
            .status();
        let usable = made.is_ok_and(|s| s.success()) && File::open(&path).is_ok();
        usable.then(|| path.display().to_string())
    };
    let (Some(null), Some(full)) = (node("null", "3"), node("full", "7")) else {
        return skipped("no device can be made here, so none is written to");
    };
    let kind = |path: &str| {
        let meta = fs::symlink_metadata(path).unwrap();
        (meta.mode(), meta.rdev(), meta.ino())
    };
    for case in cases(inputs.path()) {
        let temporary = tempfile::tempdir().unwrap();
        let before = [kind(&null), kind(&full)];
        case.succeeds(&null, temporary.path());
        assert_eq!(names(temporary.path()), [""; 0], "{:?}", case.words);
        let out = case.run(&full, temporary.path());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{:?}: {said}", case.words);
        assert!(
            said.contains(&full) && said.contains("No space left"),
            "{said}"
        );
        assert_eq!([kind(&null), kind(&full)], before, "{:?}", case.words);
        assert_eq!(names(dir.path()), ["full", "null"], "{:?}", case.words);
        if case.words[0] == "record" {
            // What was recorded is not lost.
            let spool = temporary.path().join(&names(temporary.path())[0]);
            let made = temporary.path().join("made.unfrag");
            let recovered = unfrag()
                .args(["record", "--recover"])
                .arg(&spool)
                .arg("-o")
                .arg(&made)
                .output()
                .unwrap();
            assert!(recovered.status.success(), "{}", text(&recovered.stderr));
            assert_eq!(names(temporary.path()), ["made.unfrag"]);
            assert!(fs::metadata(&made).unwrap().len() > 1000);
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let inputs = tempfile::tempdir().unwrap();
    for case in cases(inputs.path()) {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = case.command("-", temporary.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = [0];
        let _ = child.stdout.take().unwrap().read(&mut first);
        let out = child.wait_with_output().unwrap();
        let said = text(&out.stderr);
        assert!(!said.contains("panicked"), "{:?}: {said}", case.words);
        assert!(
            matches!(out.status.code(), Some(0 | 1)),
            "{:?}: {said}",
            case.words
        );
    }
}

#[test]
fn two_results_do_not_share_the_standard_output() {
    let words = ["both go to the standard output", "name of a file"];
    crate::support::fails(&["replay", SAMPLE, "--html", "-", "--json"], 2, &words);
    crate::support::fails(
        &["replay", SAMPLE, "--html", "-", "--svg", "/dev/stdout"],
        2,
        &words,
    );
    crate::support::fails(&["doctor", SAMPLE, "--html", "-", "--json"], 2, &words);
    crate::support::fails(&["profile", SAMPLE, "-o", "-", "--json"], 2, &words);
    let scenario = "samples/small-build.toml";
    crate::support::fails(&["simulate", scenario, "--html", "-", "--json"], 2, &words);
}

#[test]
fn a_tree_of_files_needs_a_directory() {
    for to in ["-", "/dev/stdout", "/dev/null"] {
        crate::support::fails(
            &["replay", SAMPLE, "--export-procfs", to],
            2,
            &["--export-procfs", "must be a directory"],
        );
    }
}

/// Where the recordings of a case lie; nobody but their owner may read them.
fn holds_a_recording(case: &Case) -> bool {
    case.begin.starts_with(b"PK")
}

/// What lay beside an output before, and what an output must not change.
fn lay_traps(dir: &Path, name: &str) -> Vec<String> {
    fs::write(dir.join("victim"), "victim").unwrap();
    fs::write(dir.join(format!("{name}.partial")), "keep").unwrap();
    symlink("victim", dir.join(format!("{name}.tmp"))).unwrap();
    symlink("victim", dir.join(format!(".{name}.tmp"))).unwrap();
    symlink("victim", dir.join(format!("{name}.spool-1"))).unwrap();
    names(dir)
}

#[test]
fn an_output_changes_nothing_but_its_file_and_keeps_that_files_mode() {
    let inputs = tempfile::tempdir().unwrap();
    for case in cases(inputs.path()) {
        let words = &case.words;
        let dir = tempfile::tempdir().unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let mut wanted = lay_traps(dir.path(), "x");
        wanted.push("x".into());
        wanted.sort();
        let file = dir.path().join("x");
        let to = file.display().to_string();
        let mode = || fs::symlink_metadata(&file).unwrap().mode() & 0o777;
        case.succeeds(&to, temporary.path());
        if holds_a_recording(&case) {
            assert_eq!(mode(), 0o600, "{words:?}");
        } else {
            // The umask of whoever runs the tests.
            fs::write(dir.path().join("plain"), "").unwrap();
            let plain = fs::metadata(dir.path().join("plain")).unwrap().mode();
            fs::remove_file(dir.path().join("plain")).unwrap();
            assert_eq!(mode(), plain & 0o777, "{words:?}");
        }
        for kept in [0o600, 0o640] {
            fs::set_permissions(&file, fs::Permissions::from_mode(kept)).unwrap();
            case.succeeds(&to, temporary.path());
            assert_eq!(mode(), kept, "{words:?}");
        }
        assert_eq!(names(dir.path()), wanted, "{words:?}");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(
            (&read("victim")[..], &read("x.partial")[..]),
            ("victim", "keep"),
            "{words:?}"
        );
    }
}

#[test]
fn a_link_that_another_user_laid_leads_no_output_away() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("x");
    symlink("victim", &link).unwrap();
    let is_laid = std::os::unix::fs::lchown(&link, Some(61_001), None).is_ok();
    if !is_laid {
        return skipped("only root can make links of other users");
    }
    fs::write(dir.path().join("victim"), "victim").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let inputs = tempfile::tempdir().unwrap();
    for case in cases(inputs.path()) {
        let temporary = tempfile::tempdir().unwrap();
        let out = case.run(&link.display().to_string(), temporary.path());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{:?}: {said}", case.words);
        assert!(
            said.contains("link of another user (user 61001)"),
            "{:?}: {said}",
            case.words
        );
        assert_eq!(
            fs::read_to_string(dir.path().join("victim")).unwrap(),
            "victim"
        );
        assert_eq!(names(dir.path()), ["victim", "x"], "{:?}", case.words);
    }
}

#[test]
fn an_output_goes_where_its_directory_can_be_written() {
    // As nobody, who cannot write there, with the file itself open to all.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    use std::os::unix::process::CommandExt as _;
    let mut command = unfrag();
    command
        .args(["snapshot", "-o"])
        .arg(&file)
        .uid(65_534)
        .gid(65_534);
    let Ok(out) = command.output() else {
        return skipped("only root can run the command as another user");
    };
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    let place = dir.path().display().to_string();
    assert!(
        said.contains(&format!("Permission denied in the directory {place}")),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn of_several_writers_of_one_recording_one_wins_whole() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("same.unfrag");
    for _ in 0..3 {
        let mut all: Vec<_> = (0..4)
            .map(|_| {
                let mut command = unfrag();
                command.args(["snapshot", "-o"]).arg(&file);
                command.stdout(Stdio::null()).spawn().unwrap()
            })
            .collect();
        assert!(all.iter_mut().all(|c| c.wait().unwrap().success()));
        file::read(&file).unwrap();
        assert_eq!(names(dir.path()), ["same.unfrag"]);
    }
    if can_trace() {
        let recorder = || {
            let mut command = unfrag();
            command
                .args(["record", "-o"])
                .arg(&file)
                .args(["--", "sleep", "0.5"]);
            command.stderr(Stdio::null()).spawn().unwrap()
        };
        let mut all = [recorder(), recorder()];
        assert!(all.iter_mut().all(|c| c.wait().unwrap().success()));
        assert!(!file::read(&file).unwrap().events.is_empty());
        assert_eq!(names(dir.path()), ["same.unfrag"]);
    }
}

/// `UNFRAG_TEST_KILLS=50` kills more often.
#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.unfrag");
    let command = || {
        let mut command = unfrag();
        command
            .args(["snapshot", "-o"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let begin = Instant::now();
    assert!(command().status().unwrap().success());
    let usual = begin.elapsed();
    let kills: u32 = std::env::var("UNFRAG_TEST_KILLS").map_or(12, |n| n.parse().unwrap());
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut state = seed;
    for n in 0..kills {
        let signal = ["TERM", "INT", "KILL", "HUP"][n as usize % 4];
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Most of it is reading: later moments are more likely to hit the file.
        let share = 400 + (state >> 33) % 650;
        let before = fs::read(&file).unwrap();
        let mut child = command().spawn().unwrap();
        std::thread::sleep(usual * share as u32 / 1000);
        // It is not waited for yet, so its number is its own.
        kill(child.id(), signal);
        child.wait().unwrap();
        let after = fs::read(&file).unwrap();
        assert!(
            after == before || file::from_bytes(&after).is_ok(),
            "{signal} at {share}"
        );
        let mut left = names(dir.path());
        left.retain(|n| n != "x.unfrag");
        if signal == "KILL" {
            for name in left {
                assert!(
                    name.starts_with(".unfrag-") && name.ends_with(".tmp"),
                    "{name}"
                );
                fs::remove_file(dir.path().join(name)).unwrap();
            }
        } else {
            assert_eq!(left, [""; 0], "{signal} at {share}");
        }
    }
    // Whatever lies there does not disturb the next one.
    fs::write(dir.path().join(".unfrag-abcdef.tmp"), "left").unwrap();
    assert!(command().status().unwrap().success());
    file::read(&file).unwrap();
}

/// Whether SIGHUP is ignored here, and by what is started here.
fn hangups_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status
        .lines()
        .find_map(|l| l.strip_prefix("SigIgn:"))
        .unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0
}

#[test]
fn a_signal_while_an_output_is_written_removes_it() {
    // The trace is a pipe, so the writing lasts as long as the test wants.
    let dir = tempfile::tempdir().unwrap();
    let inputs = tempfile::tempdir().unwrap();
    lay_out(&head(&sample(), 1), inputs.path());
    let trace = fs::read(inputs.path().join("trace.dat")).unwrap();
    for signal in ["TERM", "INT", "HUP", "QUIT"] {
        // A program that is started with it ignored leaves it ignored, and would be waited for without end.
        if signal == "HUP" && hangups_are_ignored() {
            eprintln!("SKIPPED: {signal}: these tests were started with it ignored (nohup)");
            continue;
        }
        let file = dir.path().join("x.unfrag");
        fs::write(&file, "old").unwrap();
        let mut command = unfrag();
        command
            .args(["import", "/dev/stdin", "--release", "6.1.0", "-o"])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let feeder = std::thread::spawn({
            let trace = trace.clone();
            move || {
                use std::io::Write as _;
                let _ = input.write_all(&trace);
                input
            }
        });
        let begin = Instant::now();
        let is_begun = || names(dir.path()).iter().any(|n| n.ends_with(".tmp"));
        while !is_begun() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if is_begun() {
            kill(child.id(), signal);
        } else {
            let _ = child.kill();
            panic!("import has not begun to write within 20 s");
        }
        let end = child.wait().unwrap();
        drop(feeder.join().unwrap());
        assert!(!end.success());
        use std::os::unix::process::ExitStatusExt as _;
        assert!(end.signal().is_some(), "{signal}: {end}");
        assert_eq!(names(dir.path()), ["x.unfrag"], "{signal}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    }
}

#[test]
fn a_tree_of_files_is_its_owners_and_follows_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    let run = || {
        let words = ["replay", SAMPLE, "--members", "1", "--export-procfs"];
        unfrag().args(words).arg(&tree).output().unwrap()
    };
    let out = run();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&tree), 0o700);
    let first = tree.join(&names(&tree)[0]);
    assert_eq!(mode(&first), 0o700);
    let files = names(&first);
    assert!(
        files.iter().all(|n| mode(&first.join(n)) == 0o600),
        "{files:?}"
    );
    // A file that is a link is replaced; a directory that is one is refused.
    let victim = dir.path().join("victim");
    fs::write(&victim, "victim").unwrap();
    let one = first.join(&files[0]);
    fs::remove_file(&one).unwrap();
    symlink(&victim, &one).unwrap();
    assert!(run().status.success());
    assert!(fs::symlink_metadata(&one).unwrap().is_file());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::remove_dir_all(&first).unwrap();
    symlink(&elsewhere, &first).unwrap();
    let out = run();
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    assert_eq!(names(&elsewhere), [""; 0]);
}
