//! No text of an input controls the screen: of files, their names, options, the environment, and whatever a message
//! quotes of them, through every command and every form of its output.

use crate::support::{head, root, sample, skipped, text, unfrag, write_snapshot};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use unfrag_linux::file;
use unfrag_linux::input_text::controls;
use unfrag_linux::recording::{Recording, SnapshotFile};

/// Text that sets a title, clears a screen, reverses colours (by two forms of the sequence), hides what follows, turns
/// the order around and breaks lines.
const HOSTILE: &str = "x\x1b]0;title\x07\x1b[2J\u{9b}7m\x1b[7m\u{7f}\u{85}\u{61c}\u{200f}\u{202e}\u{2066}\u{2028}\x08\r";

/// Begins a line that looks like a message.
const LINE: &str = "\nerror: not so";

/// The same without white space and line ends, which no name in a column has.
fn word() -> String {
    HOSTILE.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The same as a name of a file, with a byte that is no UTF-8 and a line that looks like a message.
fn file_name(ending: &str) -> OsString {
    let mut name = HOSTILE.as_bytes().to_owned();
    name.push(0xff);
    name.extend(LINE.as_bytes());
    name.extend(ending.as_bytes());
    OsString::from_vec(name)
}

/// What a screen would obey in the bytes that a command printed.
fn obeyed(bytes: &[u8]) -> Option<String> {
    let Ok(said) = std::str::from_utf8(bytes) else {
        return Some(format!("no UTF-8: {:?}", String::from_utf8_lossy(bytes)));
    };
    let layout = |c: char| matches!(c, '\n' | '\t');
    let at = said.find(|c| controls(c) && !layout(c))?;
    let near: String = said[at..].chars().take(40).collect();
    Some(format!("{near:?}"))
}

fn check(what: &str, out: &Output) {
    for (stream, bytes) in [("output", &out.stdout), ("error", &out.stderr)] {
        if let Some(found) = obeyed(bytes) {
            panic!("{what}: the standard {stream} has {found}");
        }
        assert!(
            !bytes.windows(LINE.len()).any(|w| w == LINE.as_bytes()),
            "{what}: a name begins a line of its own"
        );
    }
    assert_ne!(
        out.status.code(),
        Some(101),
        "{what}: {}",
        text(&out.stderr)
    );
}

fn run(words: &[OsString]) -> Output {
    unfrag()
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("the command was built")
}

fn words(all: &[&OsStr]) -> Vec<OsString> {
    all.iter().map(|&w| w.to_owned()).collect()
}

/// Hostile inputs of each kind.
struct Inputs {
    _dir: tempfile::TempDir,
    at: PathBuf,
    recording: PathBuf,
    slab: PathBuf,
    trace: PathBuf,
    tree: PathBuf,
    pasted: PathBuf,
    log: PathBuf,
    scenario: PathBuf,
}

impl Inputs {
    fn new() -> Inputs {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join(file_name(".d"));
        fs::create_dir(&at).unwrap();
        let path = |ending: &str| at.join(file_name(ending));
        let mut gcc = head(&sample(), 2);
        spoil(&mut gcc);
        file::write(&gcc, &path(".unfrag")).unwrap();
        let mut find = file::read(&root().join("samples/slab-find.unfrag")).unwrap();
        spoil(&mut find);
        file::write(&find, &path(".slab.unfrag")).unwrap();
        let mut moment = sample().snapshots[0].clone();
        moment.files.iter_mut().for_each(|f| spoil_file(f, true));
        let release = format!("Linux version 6.1.0{} (someone)\n", word());
        moment.files.push(SnapshotFile {
            name: "version".into(),
            content: release.into_bytes().into(),
            ..SnapshotFile::default()
        });
        let mut pasted = vec![];
        for f in &moment.files {
            if matches!(
                f.name.as_str(),
                "buddyinfo" | "zoneinfo" | "vmstat" | "slabinfo"
            ) {
                pasted.extend(f.content.bytes().iter());
            }
        }
        fs::write(path(".txt"), pasted).unwrap();
        write_snapshot(&moment, &path(".tree").join(file_name(".1")));
        write_snapshot(&moment, &path(".tree").join("2"));
        let log = fs::read_to_string(root().join("samples/page-allocation-failure.log")).unwrap();
        fs::write(
            path(".log"),
            log.replace(": page allocation", &format!("{}: page allocation", word())),
        )
        .unwrap();
        fs::write(path(".trace"), trace()).unwrap();
        let scenario = format!("name = \"{}\"\n[[task]]\n{HOSTILE} = 1\n", word());
        fs::write(path(".toml"), scenario).unwrap();
        Inputs {
            recording: path(".unfrag"),
            slab: path(".slab.unfrag"),
            trace: path(".trace"),
            tree: path(".tree"),
            pasted: path(".txt"),
            log: path(".log"),
            scenario: path(".toml"),
            at: at.clone(),
            _dir: dir,
        }
    }
}

/// Every text of a recording, made hostile.
fn spoil(rec: &mut Recording) {
    let hostile = format!("{HOSTILE}{LINE}");
    rec.meta.kernel_release += &word();
    rec.meta.kernel_release += LINE;
    rec.meta.source += &hostile;
    rec.meta.clock += &hostile;
    rec.meta.facts.insert(hostile.clone(), hostile.clone());
    for (name, value) in &mut rec.meta.facts {
        if name == "command" {
            *value += &hostile;
        }
    }
    rec.tasks.iter_mut().for_each(|t| t.comm += &hostile);
    rec.strings.iter_mut().for_each(|s| *s += &hostile);
    for (i, snapshot) in rec.snapshots.iter_mut().enumerate() {
        snapshot.name = format!("{i:03}{hostile}");
        snapshot.files.iter_mut().for_each(|f| spoil_file(f, false));
    }
}

/// Names in a file of procfs, made hostile; those of zones only if they are not needed.
fn spoil_file(f: &mut SnapshotFile, zones_too: bool) {
    let Ok(mut text) = String::from_utf8(f.content.bytes().into_owned()) else {
        return;
    };
    match f.name.as_str() {
        "slabinfo" => text = text.replace("dentry ", &format!("dentry{} ", word())),
        "vmstat" => text += &format!("some{} 5\n", word()),
        "meminfo" => text += &format!("Some{}: 5 kB\n", word()),
        "buddyinfo" | "zoneinfo" | "pagetypeinfo" if zones_too => {
            text = text.replace("DMA32", &format!("DMA{}", word()));
        }
        _ => return,
    }
    f.content = text.into_bytes().into();
}

/// A trace as `trace_pipe` prints it, of a task with a hostile name and a line that is none.
fn trace() -> String {
    let mut out = String::new();
    for i in 0..40 {
        let (name, pfn) = (word(), 0x1000 + i);
        out += &format!(
            " {name}-77 [000] ..... 10.{i:06}: mm_page_alloc: page={pfn:#x} pfn={pfn:#x} order=0 migratetype=0 gfp_flags=GFP_KERNEL\n"
        );
    }
    out + &format!("what {HOSTILE} is this\n")
}

/// The commands, as the command's own help lists them.
fn commands() -> Vec<String> {
    let help = crate::support::stdout(&["--help"]);
    let (list, _) = help.split_once("Options:").expect("a list");
    let is_first = |l: &&str| l.starts_with("  ") && !l[2..].starts_with(' ');
    let names = list.lines().filter(is_first);
    names
        .filter_map(|l| l.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Options that take a value, as a command's help lists them.
fn options(command: &str) -> Vec<String> {
    let help = crate::support::stdout(&[command, "--help"]);
    let mut all = vec![];
    for line in help.lines() {
        let line = line.trim_start();
        let line = line
            .split_once(", --")
            .map_or(line.to_owned(), |(_, l)| format!("--{l}"));
        if let Some((name, rest)) = line.split_once(' ')
            && name.starts_with("--")
            && rest.starts_with('<')
        {
            all.push(name.to_owned());
        }
    }
    all
}

/// The command lines of each command over hostile inputs, without the first word.
fn lines(i: &Inputs) -> BTreeMap<&'static str, Vec<Vec<OsString>>> {
    let o = OsStr::new;
    let (recording, slab, tree) = (
        i.recording.as_os_str(),
        i.slab.as_os_str(),
        i.tree.as_os_str(),
    );
    let (pasted, log, trace) = (i.pasted.as_os_str(), i.log.as_os_str(), i.trace.as_os_str());
    let scenario = i.scenario.as_os_str();
    let missing = i.at.join(file_name(".missing"));
    let missing = missing.as_os_str();
    let made = i.at.join(file_name(".made"));
    let made = made.as_os_str();
    let json = o("--json");
    let both = |inputs: &[&OsStr]| -> Vec<Vec<OsString>> {
        let each = |f: &&OsStr| [words(&[f]), words(&[f, json])];
        inputs.iter().flat_map(each).collect()
    };
    let with = |more: &[&[&OsStr]], mut lines: Vec<Vec<OsString>>| {
        lines.extend(more.iter().map(|l| words(l)));
        lines
    };
    BTreeMap::from([
        (
            "import",
            with(
                &[
                    &[trace, o("-o"), made],
                    &[trace, o("--snapshots"), tree, o("-o"), made],
                    &[recording, o("-o"), made],
                    &[missing, o("-o"), made],
                ],
                vec![],
            ),
        ),
        ("summary", both(&[recording, slab, trace, missing, log])),
        (
            "replay",
            with(
                &[
                    &[recording, o("--html"), o("-")],
                    &[recording, o("--svg"), o("-")],
                    &[recording, o("--html"), o("/dev/stderr")],
                    &[recording, o("--export-procfs"), made],
                    &[recording, o("--html"), made, o("--timing")],
                    &[recording, o("--mode"), o("observe")],
                    &[recording, o("--kernel"), o("2.6.32")],
                ],
                both(&[recording, trace, missing]),
            ),
        ),
        (
            "inspect",
            with(
                &[
                    &[tree, tree],
                    &[tree, recording, json],
                    &[tree, o("--snapshot"), o(HOSTILE)],
                    &[recording, o("--snapshot"), missing],
                    &[o("/proc"), tree],
                ],
                both(&[tree, pasted, recording, trace, missing]),
            ),
        ),
        (
            "account",
            with(
                &[
                    &[tree, recording],
                    &[recording, recording, json],
                    &[recording, o("--svg"), o("-")],
                    &[recording, o("--snapshot"), o(HOSTILE)],
                ],
                both(&[tree, pasted, recording, trace, missing]),
            ),
        ),
        (
            "frames",
            with(&[&[o("1"), o("--proc"), tree]], both(&[missing, tree])),
        ),
        (
            "top",
            with(
                &[&[recording, o("--count"), o("2"), o("--interval"), o("0.01")]],
                both(&[tree, recording, missing]),
            ),
        ),
        (
            "record",
            with(
                &[
                    &[o("--recover"), missing],
                    &[o("-o"), tree, o("--"), o("true")],
                    &[o("--event"), o(HOSTILE), o("-o"), made, o("--"), o("true")],
                    &[o("--keep"), o("1M"), o("-o"), recording, o("--system")],
                    &[o("-o"), made, o("--"), missing],
                ],
                vec![],
            ),
        ),
        (
            "redact",
            with(
                &[
                    &[recording, made],
                    &[trace, made],
                    &[missing, made],
                    &[recording, recording],
                    &[recording, tree],
                ],
                vec![],
            ),
        ),
        (
            "snapshot",
            with(
                &[
                    &[o("--proc"), tree, o("-o"), made],
                    &[o("--proc"), missing, o("-o"), made],
                    &[o("--proc"), o("/proc"), o("-o"), made, json],
                ],
                vec![],
            ),
        ),
        (
            "doctor",
            with(
                &[
                    &[tree, o("--huge"), o("5")],
                    &[tree, o("--map")],
                    &[tree, o("--html"), o("-")],
                    &[tree, o("--html"), made],
                    &[recording, o("--snapshot"), o(HOSTILE)],
                    &[tree, o("--recording"), pasted],
                    &[tree, o("--recording"), recording],
                ],
                both(&[tree, pasted, recording, missing]),
            ),
        ),
        (
            "paste",
            with(
                &[
                    &[tree],
                    &[pasted],
                    &[recording],
                    &[missing],
                    &[tree, o("--snapshot"), o(HOSTILE)],
                    &[recording, o("--from"), o(HOSTILE)],
                ],
                vec![],
            ),
        ),
        ("explain", both(&[log, trace, missing, tree])),
        (
            "blame",
            with(
                &[
                    &[recording, o("--svg"), o("-")],
                    &[recording, o("--svg"), made],
                ],
                both(&[recording, slab, trace, missing]),
            ),
        ),
        (
            "exporter",
            with(
                &[
                    &[o("--print"), o("--proc"), tree],
                    &[o("--print"), o("--proc"), missing],
                ],
                vec![],
            ),
        ),
        (
            "experiment",
            with(
                &[&[o(HOSTILE)], &[o("atomic"), o("--costs"), missing]],
                vec![],
            ),
        ),
        (
            "simulate",
            with(
                &[
                    &[scenario],
                    &[missing],
                    &[pasted],
                    &[o("samples/small-build.toml"), o("--costs"), scenario],
                ],
                vec![],
            ),
        ),
        (
            "slab",
            with(
                &[&[slab, o("--slabinfo"), o("-"), o("--allocator"), o("slub")]],
                both(&[slab, recording, missing]),
            ),
        ),
        (
            "profile",
            with(
                &[&[recording, o("-o"), o("-")], &[slab, o("-o"), o("-")]],
                both(&[recording, slab, missing]),
            ),
        ),
        (
            "calibrate",
            with(
                &[&[o("--mib"), o("1"), o("--rounds"), o("1"), o("-o"), tree]],
                vec![],
            ),
        ),
    ])
}

#[test]
fn no_text_of_an_input_reaches_the_screen_as_it_is() {
    let inputs = Inputs::new();
    let lines = lines(&inputs);
    let mut answered = 0;
    for command in commands() {
        let lines = lines.get(command.as_str());
        let lines = lines.unwrap_or_else(|| panic!("`{command}` has no line with hostile inputs"));
        for line in lines {
            let all = [vec![OsString::from(&command)], line.clone()].concat();
            let what = format!("{all:?}");
            let out = run(&all);
            check(&what, &out);
            if out.status.success() && line.contains(&OsString::from("--json")) {
                answered += 1;
                // Lines of `top` are a value each.
                let all = serde_json::Deserializer::from_slice(&out.stdout).into_iter::<Value>();
                for json in all {
                    assert!(json.is_ok(), "{what}: no JSON: {}", text(&out.stdout));
                }
            }
        }
    }
    assert!(
        answered > 10,
        "{answered} of the inputs could be used at all"
    );
}

#[test]
fn json_keeps_what_a_name_is() {
    let inputs = Inputs::new();
    let all = words(&[
        "inspect".as_ref(),
        inputs.recording.as_ref(),
        "--json".as_ref(),
    ]);
    let out = run(&all);
    check("inspect --json", &out);
    let json: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let name = &json["snapshots"][0]["name"];
    assert_eq!(name.as_str(), Some(format!("000{HOSTILE}{LINE}").as_str()));
}

#[test]
fn no_option_reaches_the_screen_as_it_is() {
    let hostile = file_name("");
    let utf8 = OsString::from(HOSTILE);
    for command in commands() {
        let first = OsString::from(&command);
        let mut lines = vec![
            vec![hostile.clone()],
            vec![
                first.clone(),
                hostile.clone(),
                hostile.clone(),
                hostile.clone(),
            ],
            vec![first.clone(), OsString::from(format!("--{HOSTILE}"))],
        ];
        for option in options(&command) {
            for value in [&hostile, &utf8] {
                let mut joined = OsString::from(format!("{option}="));
                joined.push(value);
                // A file that is not there, for the commands that need one: nothing is recorded or computed.
                lines.push(vec![first.clone(), joined.clone(), "no-such-file".into()]);
                lines.push(vec![first.clone(), joined, "--no-such-option".into()]);
            }
        }
        for line in lines {
            let out = run(&line);
            check(&format!("{line:?}"), &out);
            assert!(!out.status.success(), "{line:?}");
        }
    }
    let guardian = words(&["guardian".as_ref(), hostile.as_ref()]);
    check("guardian", &run(&guardian));
    check("nothing", &run(&[]));
}

#[test]
fn neither_the_environment_nor_the_commands_own_name_reaches_the_screen() {
    let inputs = Inputs::new();
    let hostile = file_name("");
    for name in [
        "TMPDIR",
        "TERM",
        "COLUMNS",
        "LINES",
        "LANG",
        "LC_ALL",
        "NO_COLOR",
        "RUST_BACKTRACE",
        "HOME",
    ] {
        for line in [
            words(&[
                "replay".as_ref(),
                inputs.recording.as_ref(),
                "--memory-budget".as_ref(),
                "4K".as_ref(),
            ]),
            words(&["inspect".as_ref(), "no-such-file".as_ref()]),
            words(&["--help".as_ref()]),
        ] {
            let out = unfrag().args(&line).env(name, &hostile).output().unwrap();
            check(&format!("{name}, {line:?}"), &out);
        }
    }
    let link = inputs.at.join(file_name(".link"));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_unfrag"), &link).unwrap();
    for line in [
        vec!["--help"],
        vec!["inspect", "--no-such-option"],
        vec!["inspect", "-h"],
    ] {
        let out = std::process::Command::new(&link)
            .args(&line)
            .output()
            .unwrap();
        check(&format!("{line:?} by another name"), &out);
    }
}

/// On a terminal there are sequences, and all of them are of the command itself.
#[test]
fn on_a_terminal_the_only_sequences_are_styles() {
    let script = "script";
    if !std::process::Command::new(script)
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
    {
        return skipped("no `script` to have a terminal by");
    }
    let inputs = Inputs::new();
    let dir = tempfile::tempdir().unwrap();
    // `script` takes the command as text for a shell; these names have no place in it.
    for (from, to) in [
        (&inputs.tree, "tree"),
        (&inputs.recording, "rec"),
        (&inputs.log, "log"),
        (&inputs.slab, "slab"),
    ] {
        std::os::unix::fs::symlink(from, dir.path().join(to)).unwrap();
    }
    let mut styled = 0;
    for line in [
        "doctor tree",
        "doctor tree --map",
        "inspect tree",
        "inspect rec",
        "summary rec",
        "blame rec",
        "slab slab",
        "profile rec",
        "top tree --count 1",
        "explain log",
        "replay rec --members 1",
        "inspect $'a\\x1b[7mb'",
        "inspect --a=$'a\\x1b[7mb'",
    ] {
        let command = format!("{} {line}", env!("CARGO_BIN_EXE_unfrag"));
        let out = std::process::Command::new(script)
            .args(["-qec", &command, "/dev/null"])
            .current_dir(dir.path())
            .env("SHELL", "/bin/bash")
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = text(&out.stdout);
        styled += usize::from(said.contains("\x1b["));
        let bare = without_styles(&said);
        assert_eq!(
            obeyed(bare.replace("\r\n", "\n").as_bytes()),
            None,
            "{line}"
        );
    }
    assert!(styled > 3, "a terminal has styles");
}

/// Without the sequences that the command makes: colours, bold, and what a progress bar draws.
fn without_styles(said: &str) -> String {
    let mut out = String::new();
    let mut rest = said;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        out += before;
        let end = after
            .find(|c: char| c.is_ascii_alphabetic())
            .map_or(after.len(), |n| n + 1);
        let sequence = &after[..end];
        let own = sequence.strip_suffix('m').is_some_and(|n| {
            n.split(';')
                .all(|n| n.parse::<u8>().map_or(n.is_empty(), |n| n != 7))
        }) || matches!(sequence, "2J" | "H" | "2K");
        if !own {
            out += "\x1b[";
            out += sequence;
        }
        rest = &after[end..];
    }
    // A progress bar begins its line anew.
    (out + rest).replace("\r\n", "\n").replace('\r', "")
}

#[test]
fn what_is_written_to_a_file_keeps_its_text() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = Inputs::new();
    let to = dir.path().join("slabinfo");
    let line = words(&[
        "slab".as_ref(),
        inputs.slab.as_ref(),
        "--slabinfo".as_ref(),
        to.as_ref(),
        "--allocator".as_ref(),
        "slub".as_ref(),
    ]);
    let out = run(&line);
    check("slab --slabinfo", &out);
    assert!(Path::new(&to).exists(), "{}", text(&out.stderr));
}
