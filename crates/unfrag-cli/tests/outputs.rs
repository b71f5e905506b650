//! Where each command writes its output: the standard output, a device, a pipe, a link, a file. Nothing but a
//! regular file is ever replaced.
#![cfg(target_os = "linux")]

mod support;

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{SAMPLE, can_trace, head, lay_out, sample, skipped, text, unfrag};

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
        assert!(!support::root().join("-").exists());
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
    support::fails(&["replay", SAMPLE, "--html", "-", "--json"], 2, &words);
    support::fails(
        &["replay", SAMPLE, "--html", "-", "--svg", "/dev/stdout"],
        2,
        &words,
    );
    support::fails(&["doctor", SAMPLE, "--html", "-", "--json"], 2, &words);
    support::fails(&["profile", SAMPLE, "-o", "-", "--json"], 2, &words);
    let scenario = "samples/small-build.toml";
    support::fails(&["simulate", scenario, "--html", "-", "--json"], 2, &words);
}

#[test]
fn a_tree_of_files_needs_a_directory() {
    for to in ["-", "/dev/stdout", "/dev/null"] {
        support::fails(
            &["replay", SAMPLE, "--export-procfs", to],
            2,
            &["--export-procfs", "must be a directory"],
        );
    }
}
