//! What a command takes is bounded by what it is given: by the bytes of a file, by the number of events, and by the
//! memory and the disk that there are. Beyond that it says how much it would take, and where.

use crate::support::{SAMPLE, head, root, sample, skipped, text, unfrag};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use unfrag_linux::file;

/// A run of the command.
struct Ran {
    status: Option<i32>,
    said: String,
    /// Bytes that it printed.
    printed: u64,
    /// Its largest resident size in MiB, as far as it was seen.
    mib: u64,
    time: Duration,
}

/// Runs the command below a limit of address space, with its output to a file.
fn run(words: &[&str], limit_kib: Option<u64>) -> Ran {
    let [out, err] = [(); 2].map(|()| tempfile::NamedTempFile::new().expect("room"));
    let mut command = match limit_kib {
        None => {
            let mut command = unfrag();
            command.args(words);
            command
        }
        Some(kib) => {
            let mut command = Command::new("sh");
            let script = format!("ulimit -v {kib}; exec \"$0\" \"$@\"");
            command.args(["-c", &script, env!("CARGO_BIN_EXE_unfrag")]);
            command.args(words).current_dir(root());
            command
        }
    };
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out.reopen().expect("a file"))
        .stderr(err.reopen().expect("a file"))
        .spawn()
        .expect("the command was built");
    let (path, mut most) = (format!("/proc/{}/status", child.id()), 0);
    let status = loop {
        let status = fs::read_to_string(&path).unwrap_or_default();
        // Until it has its name, its memory is still that of these tests, which it was spawned from.
        let line = status
            .strip_prefix("Name:\tunfrag\n")
            .and_then(|own| own.lines().find_map(|l| l.strip_prefix("VmHWM:")));
        let kib = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0) >> 10);
        if let Some(status) = child.try_wait().expect("it runs") {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(120) {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
            panic!("{words:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    Ran {
        status: status.code(),
        said: fs::read_to_string(err.path()).expect("text"),
        printed: fs::metadata(out.path()).expect("a file").len(),
        mib: most,
        time: begin.elapsed(),
    }
}

/// A GiB of one byte, packed.
fn gzip(byte: u8) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    (0..1024).for_each(|_| to.write_all(&vec![byte; 1 << 20]).unwrap());
    to.finish().unwrap()
}

fn zstd(byte: u8) -> Vec<u8> {
    let mut to = zstd::Encoder::new(vec![], 1).unwrap();
    (0..1024).for_each(|_| to.write_all(&vec![byte; 1 << 20]).unwrap());
    to.finish().unwrap()
}

/// A tar archive of one file; what is told beside a header, such as a long name, has a type of its own.
fn tar(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut tar = header.to_vec();
    tar.extend(content);
    tar.resize(tar.len().next_multiple_of(512) + 1024, 0);
    tar
}

#[test]
fn a_few_packed_bytes_never_stand_for_gigabytes_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (zeros, lines) = (gzip(0), gzip(b'\n'));
    let mut twice = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    twice.write_all(&lines).unwrap();
    let long_name = tar("././@LongLink", b'L', &vec![b'n'; 300 << 20]);
    let cases: [(&str, Vec<u8>); 7] = [
        ("zeros.gz", zeros),
        ("lines.gz", lines.clone()),
        ("lines.zst", zstd(b'\n')),
        ("twice.gz", twice.finish().unwrap()),
        ("one.tar", tar("buddyinfo.gz", b'0', &lines)),
        (
            "one.tar.zst",
            zstd::bulk::compress(&tar("buddyinfo", b'0', &vec![b'\n'; 300 << 20]), 1).unwrap(),
        ),
        ("name.tar.zst", zstd::bulk::compress(&long_name, 1).unwrap()),
    ];
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for (name, content) in &cases {
        fs::write(dir.path().join(name), content).unwrap();
    }
    fs::write(tree.join("buddyinfo.gz"), &lines).unwrap();
    let out = dir.path().join("out.unfrag");
    let out = out.to_str().unwrap();
    let mut refused = 0;
    for name in cases.iter().map(|(name, _)| *name).chain(["tree"]) {
        let path = dir.path().join(name);
        let path = path.to_str().unwrap();
        for words in [
            &["inspect", path][..],
            &["doctor", path],
            &["explain", path],
            &["summary", path],
            &["replay", path],
            &["blame", path],
            &["import", path, "-o", out],
            &["import", SAMPLE, "--snapshots", path, "-o", out],
        ] {
            let ran = run(words, None);
            assert!(ran.mib < 250, "{words:?}: {} MiB, {}", ran.mib, ran.said);
            assert!(
                ran.time < Duration::from_secs(60),
                "{words:?}: {:?}",
                ran.time
            );
            assert_ne!(ran.status, Some(101), "{words:?}: {}", ran.said);
            assert!(
                !ran.said.contains("out of memory"),
                "{words:?}: {}",
                ran.said
            );
            if ran.said.contains("the limit is") {
                refused += 1;
                assert!(ran.said.contains(" help: "), "{words:?}: {}", ran.said);
            }
        }
    }
    assert!(refused > 20, "{refused} were refused for their size");
}

/// The sample's beginning, with its last event at another time.
fn far(last: u64, to: &Path) {
    let mut recording = head(&sample(), 1);
    *recording.events.time.last_mut().unwrap() = last;
    file::write(&recording, to).unwrap();
}

#[test]
fn one_event_far_in_time_costs_no_more_than_one_event() {
    let dir = tempfile::tempdir().unwrap();
    let first = sample().events.time[0];
    const YEAR: u64 = 365 * 86_400_000_000_000;
    for (name, last) in [
        ("a-year", first + YEAR),
        ("centuries", first + 292 * YEAR),
        ("the-end", u64::MAX),
    ] {
        let path = dir.path().join(name);
        far(last, &path);
        let path = path.to_str().unwrap();
        let page = dir.path().join("page");
        let page = page.to_str().unwrap();
        let tree = dir.path().join("tree");
        for words in [
            &["replay", path, "--members", "1", "--json"][..],
            &[
                "replay",
                path,
                "--members",
                "1",
                "--kernel",
                "6.18",
                "--html",
                page,
            ],
            &["replay", path, "--members", "1", "--svg", page],
            &["replay", path, "--mode", "observe"],
            &[
                "replay",
                path,
                "--members",
                "1",
                "--export-procfs",
                tree.to_str().unwrap(),
            ],
            &["top", path, "--interval", "0.01", "--count", "3"],
            &["blame", path, "--json"],
            &["blame", path, "--svg", page],
            &["summary", path, "--json"],
            &["profile", path, "--json"],
            &["slab", path],
            &["inspect", path, "--json"],
            &["doctor", path, "--json"],
        ] {
            let ran = run(words, None);
            let written = fs::metadata(page).map_or(0, |m| m.len());
            assert_ne!(ran.status, Some(101), "{name}: {words:?}: {}", ran.said);
            assert!(
                ran.time < Duration::from_secs(60),
                "{name}: {words:?}: {:?}",
                ran.time
            );
            assert!(
                ran.printed < 5 << 20,
                "{name}: {words:?}: {} bytes",
                ran.printed
            );
            assert!(written < 10 << 20, "{name}: {words:?}: {written} bytes");
            assert!(ran.mib < 1000, "{name}: {words:?}: {} MiB", ran.mib);
        }
    }
}

#[test]
fn a_size_that_memory_does_not_hold_is_refused_with_what_it_takes() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("large.toml");
    let small = fs::read_to_string(root().join("samples/small-build.toml")).unwrap();
    let memory = small
        .lines()
        .find(|l| l.trim_start().starts_with("memory"))
        .expect("a size");
    fs::write(&scenario, small.replace(memory, "memory = \"4 TiB\"")).unwrap();
    let scenario = scenario.to_str().unwrap();
    let slab = "samples/slab-find.unfrag";
    for words in [
        &["replay", SAMPLE, "--memory", "1T"][..],
        &["replay", SAMPLE, "--memory", "15T", "--members", "1"],
        &["slab", slab, "--memory", "8T"],
        &["simulate", scenario],
    ] {
        let ran = run(words, Some(4_000_000));
        assert_eq!(ran.status, Some(1), "{words:?}: {}", ran.said);
        for word in ["to model", "can be modelled here", " help: "] {
            assert!(ran.said.contains(word), "{words:?}: {}", ran.said);
        }
        assert!(ran.mib < 1000, "{words:?}: {} MiB", ran.mib);
    }
    // What is beyond any machine stays refused as such, whatever memory there is.
    for size in ["17T", "99999999999G", "18446744073709551615"] {
        for words in [
            ["replay", SAMPLE, "--memory", size],
            ["slab", slab, "--memory", size],
        ] {
            let ran = run(&words, Some(4_000_000));
            assert!(matches!(ran.status, Some(1 | 2)), "{words:?}: {}", ran.said);
        }
    }
    // And what is possible is done.
    let ran = run(
        &["replay", SAMPLE, "--memory", "2G", "--members", "1"],
        Some(4_000_000),
    );
    assert_eq!(ran.status, Some(0), "{}", ran.said);
}

#[test]
fn zones_of_a_recording_that_memory_does_not_hold_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.unfrag");
    let mut recording = head(&sample(), 1);
    for snapshot in &mut recording.snapshots {
        for f in snapshot.files.iter_mut().filter(|f| f.name == "zoneinfo") {
            let mut zone = String::new();
            let mut lines = vec![];
            for line in String::from_utf8(f.content.bytes().into_owned())
                .unwrap()
                .lines()
            {
                if let Some(name) = line.strip_prefix("Node") {
                    zone = name.to_owned();
                }
                let is_last = zone.contains("DMA32") && line.trim_start().starts_with("spanned");
                lines.push(match is_last {
                    true => "        spanned  4000000000".to_owned(),
                    false => line.to_owned(),
                });
            }
            f.content = (lines.join("\n") + "\n").into_bytes().into();
        }
    }
    file::write(&recording, &path).unwrap();
    for command in ["replay", "top"] {
        let ran = run(&[command, path.to_str().unwrap()], Some(4_000_000));
        assert_eq!(ran.status, Some(1), "{command}: {}", ran.said);
        assert!(
            ran.said.contains("can be modelled here"),
            "{command}: {}",
            ran.said
        );
    }
}

#[test]
fn a_full_disk_is_named_with_what_was_to_be_written() {
    let full = |words: &[&str], needs: &[&str]| {
        let out = unfrag().args(words).output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{words:?}: {said}");
        for word in needs {
            assert!(
                said.contains(word),
                "{words:?} does not say {word:?}: {said}"
            );
        }
    };
    let no_space = "No space left on device";
    let one = ["replay", SAMPLE, "--members", "1"];
    for option in ["--html", "--svg"] {
        let words = [&one[..], &[option, "/dev/full"]].concat();
        full(&words, &["/dev/full", no_space, " bytes", " help: "]);
    }
    full(
        &["blame", SAMPLE, "--svg", "/dev/full"],
        &["/dev/full", no_space, " bytes"],
    );
    full(
        &["profile", SAMPLE, "-o", "/dev/full"],
        &["/dev/full", no_space, " bytes"],
    );
    full(
        &["snapshot", "-o", "/dev/full"],
        &["/dev/full", no_space, " help: "],
    );
    let dev_full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let into_full = |words: &[&str]| {
        let full = dev_full.try_clone().unwrap();
        let out = unfrag().args(words).stdout(full).output().unwrap();
        (out.status.code(), text(&out.stderr))
    };
    let (_, said) = into_full(&["inspect", SAMPLE]);
    assert!(
        said.contains("standard output") && said.contains(" bytes"),
        "{said}"
    );
    for words in [&["--help"][..], &["doctor", "--help"], &["--version"]] {
        let (status, said) = into_full(words);
        assert_eq!(status, Some(1), "{words:?}: {said}");
        assert!(said.contains("standard output"), "{words:?}: {said}");
    }
}

#[test]
fn a_directory_of_temporary_files_that_cannot_be_used_is_named() {
    let words = ["replay", SAMPLE, "--members", "1", "--memory-budget", "4K"];
    let tried = |dir: &str, needs: &[&str]| {
        let out = unfrag().args(words).env("TMPDIR", dir).output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{dir}: {said}");
        for word in needs {
            assert!(said.contains(word), "{dir}: no {word:?}: {said}");
        }
    };
    tried(
        "/no/such/directory",
        &["/no/such/directory", "No such file", "set TMPDIR"],
    );
    tried("/dev/null", &["/dev/null", "set TMPDIR"]);
    tried("/proc", &["/proc", "set TMPDIR"]);
    let dir = tempfile::tempdir().unwrap();
    let mount = |words: &[&str]| Command::new(words[0]).args(&words[1..]).output();
    let at = dir.path().to_str().unwrap();
    let mounted = mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", at]);
    if !mounted.is_ok_and(|o| o.status.success()) {
        return skipped("nobody may mount a small disk here");
    }
    let seen = std::panic::catch_unwind(|| {
        tried(at, &[at, "No space left on device", " bytes", "set TMPDIR"]);
        let to = format!("{at}/page.html");
        let out = unfrag()
            .args(["replay", SAMPLE, "--members", "1", "--html", &to])
            .output()
            .unwrap();
        let said = text(&out.stderr);
        for word in [&to, "No space left on device", " bytes"] {
            assert!(said.contains(word), "{said}");
        }
        let to = format!("{at}/x.unfrag");
        let out = unfrag().args(["snapshot", "-o", &to]).output().unwrap();
        let said = text(&out.stderr);
        assert!(
            said.contains(&to) && said.contains("No space left on device"),
            "{said}"
        );
    });
    let _ = mount(&["umount", at]);
    if let Err(panic) = seen {
        std::panic::resume_unwind(panic);
    }
}
