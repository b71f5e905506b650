//! Every command in the README, in the book, in the files beside it and in `--help` works as it stands.
//!
//! A `console` block ([`blocks`](crate::support::blocks)) is run in a directory with `samples/`, a `trace.dat` and `snapshots/`;
//! the lines that it shows must be among those printed (`…` stands for any). `cargo run … --` is the command that was built for
//! the tests. A comment before the block says what it needs beyond that, and the block is left out, aloud, where that is not to
//! be had: `<!-- needs: perf root -->`. What builds or tests the whole project is left to `.ci/run`, which must name it:
//! `<!-- run by: .ci/run -->`. Of what else builds it (`<!-- run by: hand -->`) the crates, tests and scripts must exist.
//!
//! Invariant: a reader sees a command as somebody would type it. What only a test needs, such as an end after two seconds, stands
//! in a comment, and what is shown has options that the command takes all the same.

use crate::support::blocks::{Block, blocks, calls};
use crate::support::book::{chapters, in_project, name, pages, read};
use crate::support::{head, lay_out, root, run as unfrag, sample, skipped, stdout, text};
use std::fs;
use std::os::unix::fs::symlink;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Why a block cannot be run here, if so.
fn lacks(block: &Block) -> Option<String> {
    let works = |script: &str| {
        let out = Command::new("bash").args(["-c", script]).output();
        out.is_ok_and(|o| o.status.success())
    };
    let missing = block.needs.iter().find(|need| match need.as_str() {
        "root" => !works("[ $(id -u) = 0 ]"),
        "trace-cmd" => {
            // Being installed is not enough: some hosts let nobody trace.
            !works("cd $(mktemp -d) && trace-cmd record -q -e kmem:mm_page_alloc -o t.dat true")
        }
        "perf" => {
            !works("cd $(mktemp -d) && perf record -q -a -e kmem:mm_page_alloc -o p.data -- true")
        }
        "tracing" => {
            let unfrag = env!("CARGO_BIN_EXE_unfrag");
            !works(&format!("cd $(mktemp -d) && {unfrag} record -- true"))
        }
        // What others do here is theirs: only who asks for it gets it recorded.
        "UNFRAG_TRACE_HOST=1" => std::env::var_os("UNFRAG_TRACE_HOST").is_none(),
        // Elsewhere root may not mount, or there is no such file.
        "slabtop" => !works("slabtop --version && [ -e /proc/slabinfo ] && unshare -m true"),
        "node-exporter" => !works("prometheus-node-exporter --version"),
        other => panic!("{}: what is {other:?}?", block.place),
    });
    missing.map(|m| format!("{}: {m} does not work here", block.place))
}

fn run(block: &Block, directory: &Path) {
    let program = Path::new(env!("CARGO_BIN_EXE_unfrag"));
    let path = std::env::var("PATH").unwrap_or_default();
    let script = block
        .to_run()
        .replace("cargo run --release -p unfrag-cli --", "unfrag");
    let out = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(directory)
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .env("COLUMNS", "100")
        .env_remove("LC_ALL")
        .output()
        .unwrap();
    let printed = text(&out.stdout);
    let said = text(&out.stderr);
    assert!(
        out.status.success(),
        "{}\n{script}\n{printed}{said}",
        block.place
    );
    let lines: Vec<&str> = printed
        .lines()
        .chain(said.lines())
        .map(str::trim_end)
        .collect();
    for shown in block.shown.iter().filter(|s| !s.is_empty() && *s != "…") {
        assert!(
            lines.contains(&&shown[..]),
            "{}: {shown:?} is not printed:\n{printed}{said}",
            block.place
        );
    }
}

/// Fails unless `.ci/run` runs each command of a block.
fn is_in_the_ci(block: &Block) {
    let ci = read(&root().join(".ci/run"));
    for command in block.script.lines() {
        assert!(
            ci.contains(command),
            "{}: .ci/run does not run {command:?}",
            block.place
        );
    }
}

/// Fails unless the crates, tests, benchmarks and scripts exist that the commands of a block name: they build
/// the project, which a test of it cannot do.
fn names_what_exists(block: &Block) {
    for command in block.script.lines() {
        let words: Vec<&str> = command.split_whitespace().collect();
        let mut paths: Vec<PathBuf> = words
            .iter()
            .filter(|w| in_project(w))
            .map(|w| root().join(w))
            .collect();
        let after = |flag: &str| {
            let at = words.iter().position(|w| *w == flag)?;
            words.get(at + 1).copied()
        };
        if let (true, Some(package)) = (words.contains(&"cargo"), after("-p")) {
            let package = root().join("crates").join(package);
            for (flag, folder) in [("--test", "tests"), ("--bench", "benches")] {
                if let Some(target) = after(flag) {
                    let file = package.join(folder).join(format!("{target}.rs"));
                    let directory = package.join(folder).join(target).join("main.rs");
                    paths.push(if directory.exists() { directory } else { file });
                }
            }
            paths.push(package);
        }
        for path in paths {
            assert!(
                path.exists(),
                "{}: {command:?}: there is no {}",
                block.place,
                name(&path)
            );
        }
    }
}

/// A directory as whoever reads the docs has it.
fn reader() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    symlink(root().join("samples"), dir.path().join("samples")).unwrap();
    fs::create_dir(dir.path().join("docs")).unwrap();
    lay_out(&head(&sample(), 20), dir.path());
    dir
}

#[test]
fn every_command_in_the_docs_works() {
    let pages = pages();
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = Mutex::new(vec![]);
    // Most commands use one CPU at a time.
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, Relaxed)) {
                    // Every page is tried: whoever changes an output wants to see all that show it.
                    match panic::catch_unwind(|| run_page(page)) {
                        Ok(blocks) => ran.fetch_add(blocks, Relaxed),
                        Err(_) => {
                            failed.lock().unwrap().push(name(page));
                            0
                        }
                    };
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "said above, of: {}", failed.join(", "));
    let ran = ran.into_inner();
    assert!(ran >= 5, "only {ran} blocks were run");
}

/// Runs the commands of a page. How many blocks were run.
fn run_page(page: &Path) -> usize {
    let mut ran = 0;
    let reader = reader();
    for block in blocks(page) {
        if let Some(who) = &block.run_by {
            match who.as_str() {
                ".ci/run" => is_in_the_ci(&block),
                "hand" => names_what_exists(&block),
                other => panic!("{}: who is {other:?}?", block.place),
            }
        } else if let Some(why) = lacks(&block) {
            skipped(&why);
        } else {
            run(&block, reader.path());
            ran += 1;
        }
    }
    ran
}

/// Every block is looked at, also where it cannot be run here, or something else is run in its place.
#[test]
fn every_command_that_is_shown_has_options_that_the_command_takes() {
    let mut wrong = vec![];
    let mut looked_at = 0;
    for block in pages().iter().flat_map(|page| blocks(page)) {
        for words in calls(&block.script) {
            // Options are read in their order, so that one that is wrong is refused before the help is printed.
            let end = words.iter().position(|w| w == "--").unwrap_or(words.len());
            let mut asked: Vec<&str> = words[..end].iter().map(String::as_str).collect();
            asked.push("--help");
            let out = unfrag(&asked);
            if !out.status.success() {
                let said = text(&out.stderr);
                wrong.push(format!("{}: {words:?}: {said}", block.place));
            }
            looked_at += 1;
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(looked_at > 50, "only {looked_at} calls were found");
}

#[test]
fn no_command_of_the_book_is_shaped_by_its_test() {
    const FOR_TESTS: [&str; 7] = [
        "timeout ",
        "|| true",
        "|| echo",
        "mktemp",
        "/tmp/",
        "UNFRAG_",
        "sleep 1.5",
    ];
    let mut wrong = vec![];
    for block in chapters().iter().flat_map(|page| blocks(page)) {
        for sign in FOR_TESTS.iter().filter(|s| block.script.contains(**s)) {
            let place = &block.place;
            wrong.push(format!("{place}: {sign:?} belongs into a comment"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_example_in_the_help_works() {
    let reader = reader();
    let mut ran = 0;
    for command in [
        "import", "summary", "replay", "inspect", "doctor", "exporter", "record", "snapshot",
        "slab", "profile", "redact", "paste", "explain", "blame", "top", "account",
    ] {
        // Others are of files that nobody has here, or of a log that not everybody may read.
        let is_of_sample = ["explain", "blame", "top", "account"].contains(&command);
        let help = stdout(&[command, "--help"]);
        let (_, examples) = help.split_once("Example").expect("the help has an example");
        for line in examples
            .lines()
            .filter(|l| l.trim_start().starts_with("unfrag "))
            .filter(|l| !is_of_sample || l.contains("samples/"))
        {
            let mut block = Block::of(&format!("unfrag {command} --help"), line.trim());
            let need = match command {
                "record" if line.contains("--system") => Some("UNFRAG_TRACE_HOST=1"),
                "record" => Some("tracing"),
                "profile" if line.contains("ls.unfrag") => Some("tracing"),
                _ => None,
            };
            block.needs.extend(need.map(str::to_owned));
            if command == "exporter" && !line.contains("--print") {
                block.test = Some(format!("timeout 1 {} || [ $? = 124 ]", line.trim()));
            }
            if let Some(why) = lacks(&block) {
                skipped(&why);
            } else {
                run(&block, reader.path());
                ran += 1;
            }
        }
    }
    assert!(ran >= 5, "only {ran} examples were run");
}

#[test]
fn the_readme_has_two_commands_to_set_up_and_the_ci_runs_both() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = readme
        .split_once("## Set up\n")
        .expect("a section of that name");
    let (section, _) = rest.split_once("\n## ").expect("a section after it");
    let commands: Vec<&str> = section
        .lines()
        .filter_map(|l| l.strip_prefix("$ "))
        .collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    for command in commands {
        assert!(ci.contains(command), ".ci/run does not run {command:?}");
    }
}

#[test]
fn the_code_in_the_readme_is_that_of_the_engines_own_example() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("```rust\n").expect("a block of Rust");
    let (code, _) = rest.split_once("```").expect("its end");
    let engine = fs::read_to_string(root().join("crates/unfrag/src/lib.rs")).unwrap();
    let (_, rest) = engine.split_once("//! ```\n").expect("an example");
    let (example, _) = rest.split_once("//! ```").expect("its end");
    let example: String = example
        .lines()
        .map(|l| l.strip_prefix("//! ").unwrap_or(""))
        .filter(|l| !l.starts_with("# "))
        .map(|l| format!("{l}\n"))
        .collect();
    assert_eq!(
        code, example,
        "copy it from crates/unfrag/src/lib.rs, which is tested"
    );
}
