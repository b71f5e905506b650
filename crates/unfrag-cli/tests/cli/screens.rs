//! The first screen of each command: the answer first, in words that somebody knows who has never seen it.

use crate::support::{SAMPLE, fails, json, root, run, stdout, text};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Lines of a first screen.
const LINES: usize = 25;
const LOG: &str = "samples/page-allocation-failure.log";

/// Words that an engineer on call does not know, and what must stand beside them on a first screen; `None` where nothing
/// makes up for them.
const WORDS: [(&str, Option<&str>); 11] = [
    ("era", None),
    ("eras", None),
    ("skill", None),
    (
        "unusable index",
        Some("share of free memory in pieces too small"),
    ),
    ("spoilt", None),
    ("raced", None),
    ("protected", None),
    ("kept kib", None),
    ("open to it", None),
    ("per-cpu lists", Some("kept by CPUs")),
    ("members", None),
];

/// The first screen of a text, in one line of small letters.
fn first_screen(shown: &str) -> String {
    let lines: Vec<&str> = shown.lines().take(LINES).collect();
    let words = lines.join(" ");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether words stand in a text, not as a part of longer ones.
fn stands(text: &str, words: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
    })
}

fn directories(of: &str) -> Vec<String> {
    let all = fs::read_dir(root().join(of)).expect("a directory");
    let mut all: Vec<PathBuf> = all.map(|e| e.expect("an entry").path()).collect();
    all.sort();
    all.iter()
        .map(|p| p.to_str().expect("a name").to_owned())
        .collect()
}

/// Inputs of the doctor and of `inspect`: a recording, and copies of procfs of every age.
fn hosts() -> Vec<String> {
    let fixtures = "crates/unfrag-linux/tests/fixtures";
    let ages = ["procfs", "linux-2.6.32", "linux-6.18"].map(|name| format!("{fixtures}/{name}"));
    std::iter::once(SAMPLE.to_owned()).chain(ages).collect()
}

fn logs() -> Vec<String> {
    let all = directories("crates/unfrag-lab/tests/kernel_logs");
    let is_log = |p: &String| p.ends_with(".log") || p.ends_with(".txt");
    std::iter::once(LOG.to_owned())
        .chain(all.into_iter().filter(is_log))
        .collect()
}

#[test]
fn no_word_of_the_trade_stands_unexplained_on_a_first_screen() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut commands: Vec<Vec<String>> = [
        "--help",
        "top --count 1",
        "blame samples/gcc-768M.unfrag",
        "summary samples/gcc-768M.unfrag",
        "profile samples/gcc-768M.unfrag",
        "slab samples/slab-find.unfrag",
        "inspect samples/gcc-768M.unfrag --snapshot 1050",
        "inspect samples/gcc-768M.unfrag --snapshot 0000-idle --snapshot 1050",
        "doctor samples/gcc-768M.unfrag --huge 500",
        "doctor samples/gcc-768M.unfrag --need 20x4M",
        "inspect",
        "doctor",
    ]
    .map(words)
    .into();
    for host in hosts() {
        commands.push(vec!["doctor".into(), host.clone()]);
        commands.push(vec!["inspect".into(), host]);
    }
    commands.extend(logs().into_iter().map(|log| vec!["explain".into(), log]));
    let mut wrong = vec![];
    for command in &commands {
        let line: Vec<&str> = command.iter().map(String::as_str).collect();
        let out = run(&line);
        let shown = first_screen(&text(&out.stdout));
        assert!(!shown.is_empty(), "{command:?}: {}", text(&out.stderr));
        let small = shown.to_lowercase();
        for (word, explained) in WORDS {
            let is_explained = explained.is_some_and(|e| shown.contains(e));
            if stands(&small, word) && !is_explained {
                wrong.push(format!("{command:?}: `{word}` in: {shown}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks that in each text these begin lines, in this order.
fn in_order(shown: &str, begins: &[&str]) {
    let mut lines = shown.lines();
    for begin in begins {
        assert!(lines.any(|l| l.starts_with(begin)), "{begin}: {shown}");
    }
}

/// The head of why: a cause is looked for only where something fails.
fn why(shown: &str) -> String {
    let head = |begin: &str| shown.lines().any(|l| l.starts_with(begin));
    match (head("CAUSE: "), head("STATE: ")) {
        (true, false) => "CAUSE: ".into(),
        (false, true) => "STATE: ".into(),
        both => panic!("{both:?}: {shown}"),
    }
}

#[test]
fn a_cause_is_named_where_something_fails_alone() {
    let sound = stdout(&["doctor", SAMPLE]);
    assert!(sound.contains("nothing was failing"), "{sound}");
    assert!(
        sound.contains("\nSTATE: fine: 129 huge pages can be had"),
        "{sound}"
    );
    let failing = stdout(&["doctor", "samples/fragmented-384M.unfrag"]);
    assert_eq!(why(&failing), "CAUSE: ");
}

/// Whoever gives all below `DO:` to a shell does what is to be done, and nothing else.
#[test]
fn what_need_not_be_done_is_never_a_command() {
    let mut seen = 0;
    for host in ["/proc", "samples/fragmented-384M.unfrag", SAMPLE] {
        for words in [&["doctor", host][..], &["doctor", host, "--all"]] {
            let shown = stdout(words);
            let advised = json(&["doctor", host, "--json"])["diagnosis"]["advice"].take();
            let commands = to_do(&shown);
            let commands = commands.lines().filter(|l| !l.starts_with('#')).count();
            if host != "/proc" {
                assert_eq!(
                    commands,
                    advised.as_array().expect("advice").len(),
                    "{shown}"
                );
            }
            let Some((_, more)) = shown.split_once("\nIF MORE IS NEEDED") else {
                continue;
            };
            seen += 1;
            let block = more.lines().skip(1).take_while(|l| l.starts_with("  "));
            for line in block {
                assert!(line.starts_with("    # "), "{line}: {shown}");
            }
        }
    }
    assert!(seen >= 2, "{seen}");
}

/// A number that a first screen offers is one that `--huge` says yes to, or it is called a try.
#[test]
fn what_is_offered_for_more_is_what_huge_says_yes_to() {
    const FRAGMENTED: &str = "samples/fragmented-384M.unfrag";
    let shown = stdout(&["doctor", FRAGMENTED]).replace("\n    # ", " ");
    let (_, offered) = shown
        .split_once("huge pages by compaction or dropping caches: ")
        .expect("an offer");
    let number = |text: &str| {
        let (number, _) = text.trim_start().split_once(' ').expect("a number");
        number.replace(',', "")
    };
    let (certain, rest) = offered.split_once(" for certain, ").expect("both");
    assert!(
        rest.contains(" by the model (a try): unfrag doctor"),
        "{rest}"
    );
    let certain = number(&format!("{certain} "));
    for (n, begin) in [(certain, "yes"), (number(rest), "not known: ")] {
        let answer = stdout(&["doctor", FRAGMENTED, "--huge", &n]);
        assert!(answer.starts_with(begin), "{n}: {answer}");
    }
}

#[test]
fn the_doctor_says_now_then_the_cause_then_what_to_do() {
    for host in hosts() {
        let shown = stdout(&["doctor", &host]);
        in_order(
            &shown,
            &[
                "",
                "THEN: ",
                "HUGE PAGES of ",
                &why(&shown),
                "DO: ",
                "SETTINGS: ",
                "MORE: ",
            ],
        );
        assert!(!shown.contains("NOW: "), "{host}: {shown}");
    }
    let shown = stdout(&["doctor"]);
    in_order(
        &shown,
        &[
            "this host",
            "NOW: ",
            "HUGE PAGES of ",
            &why(&shown),
            "DO: ",
            "SETTINGS: ",
            "MORE: unfrag doctor --all",
        ],
    );
}

#[test]
fn the_doctor_tells_tables_only_where_all_is_asked_for() {
    let short = stdout(&["doctor", SAMPLE]);
    for table in [
        "Stalls, failures and compaction",
        "Node 0, zone",
        "since boot     ",
    ] {
        assert!(!short.contains(table), "{table}: {short}");
    }
    assert!(
        !short.lines().any(|l| l.trim_start().starts_with("0 ")),
        "{short}"
    );
    let all = stdout(&["doctor", SAMPLE, "--all"]);
    assert!(
        all.contains("Stalls, failures and compaction") && all.contains("Node 0, zone DMA32"),
        "{all}"
    );
    assert!(!all.contains("MORE: "), "{all}");
}

/// What the first screen says is what `--json` has.
#[test]
fn the_doctors_numbers_are_those_of_json() {
    let shown = first_screen(&stdout(&["doctor", SAMPLE]));
    let d = json(&["doctor", SAMPLE, "--json"])["diagnosis"].take();
    let number = |key: &str| d["huge_pages"][key].as_u64().expect("a number");
    let wanted = format!("{} could be had then", number("now"));
    assert!(shown.contains(&wanted), "{wanted}: {shown}");
    let wanted = format!("at most {} by any means", number("at_most"));
    assert!(shown.contains(&wanted), "{wanted}: {shown}");
    let zones = d["zones"].as_array().expect("zones");
    let zone = zones
        .iter()
        .find(|z| z["zone"] == "DMA32")
        .expect("it is there");
    let score = &zone["extfrag_for_order_9"];
    let wanted = format!("in zone DMA32: {score} % of what is free there");
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(&wanted), "{wanted}: {shown}");
}

#[test]
fn an_explanation_is_the_verdict_in_its_second_line_then_what_to_do() {
    for log in logs() {
        let shown = stdout(&["explain", &log]);
        let answer = json(&["explain", &log, "--json"]);
        let reports = answer["reports"].as_array().expect("reports");
        // A line that is further in than names are goes on with the one before.
        let shown = shown.replace(&format!("\n{:12}", ""), " ");
        let mut lines = shown.lines();
        for (i, report) in reports.iter().enumerate().take(20) {
            let head = format!("{}. ", i + 1);
            assert!(lines.any(|l| l.starts_with(&head)), "{log}: {shown}");
            let verdict = lines.next().expect("a line");
            let said = report["answer"].as_str().expect("a sentence");
            assert_eq!(verdict, format!("   verdict  {said}"), "{log}");
            if report["verdict"].is_string() {
                let next = lines.next().expect("a line").trim_start();
                assert!(
                    next.starts_with("DO") || next.starts_with("perhaps"),
                    "{log}: {next}"
                );
            }
        }
        if !reports.is_empty() {
            assert!(
                shown.ends_with("Is the host still like that?  unfrag doctor\n"),
                "{log}: {shown}"
            );
        }
    }
}

#[test]
fn blame_and_inspect_begin_with_the_answer() {
    in_order(
        &stdout(&["blame", SAMPLE]),
        &["gcc-768M", "WHO: ", "HOW MUCH: ", "KNOWN: "],
    );
    let second = stdout(&["blame", SAMPLE])
        .lines()
        .nth(1)
        .expect("a line")
        .to_owned();
    assert!(second.starts_with("WHO: "), "{second}");
    for host in hosts() {
        let shown = stdout(&["inspect", &host]);
        let first = shown.lines().next().expect("a line");
        assert!(first.contains("fragmented"), "{first}");
    }
}

/// Whether a shell understands a command.
fn is_shell(command: &str) -> bool {
    let read = Command::new("bash").args(["-n", "-c", command]).output();
    read.expect("a shell").status.success()
}

/// The lines below `DO:` that are commands or comments.
fn to_do(shown: &str) -> String {
    let (_, rest) = shown.split_once("\nDO: ").expect("what to do");
    let block = rest.lines().skip(1).take_while(|l| l.starts_with("  "));
    block
        .filter_map(|l| l.strip_prefix("    "))
        .map(|l| format!("{l}\n"))
        .collect()
}

#[test]
fn what_is_to_be_done_is_a_command_that_a_shell_understands() {
    let dir = tempfile::tempdir().expect("a directory");
    crate::support::lay_out_host(dir.path());
    let mut paths = hosts();
    paths.push(dir.path().to_str().expect("a name").to_owned());
    paths.push("/proc".into());
    for path in paths {
        let block = to_do(&stdout(&["doctor", &path]));
        assert!(is_shell(&block), "{path}: {block}");
    }
    let mut commands = 0;
    for log in logs() {
        let shown = stdout(&["explain", &log]);
        for report in json(&["explain", &log, "--json"])["reports"]
            .as_array()
            .expect("reports")
            .iter()
            .take(20)
        {
            for advice in report["advice"].as_array().expect("advice") {
                let Some(command) = advice["command"].as_str() else {
                    continue;
                };
                assert!(is_shell(command), "{log}: {command}");
                let line = format!("\n              {command}\n");
                assert!(shown.contains(&line), "{log}: {shown}");
                commands += 1;
            }
        }
    }
    assert!(commands > 5, "{commands}");
}

/// The commands by the source, without those that are hidden.
fn commands() -> Vec<String> {
    let source = fs::read_to_string(root().join("crates/unfrag-cli/src/main.rs")).expect("a file");
    let (_, list) = source.split_once("enum Command {\n").expect("the commands");
    let (list, _) = list.split_once("\n}").expect("their end");
    let names = list
        .lines()
        .filter_map(|l| l.trim().split_once('('))
        .map(|(name, _)| name);
    let names = names
        .filter(|n| n.chars().all(char::is_alphanumeric) && !["Guardian", "Pages"].contains(n));
    names.map(str::to_lowercase).collect()
}

#[test]
fn the_help_lists_each_command_once_and_says_where_to_start() {
    let help = stdout(&["--help"]);
    let (list, _) = help.split_once("Options:").expect("options");
    let all = commands();
    assert!(all.len() > 15, "{all:?}");
    for command in all {
        let begin = format!("  {command} ");
        assert_eq!(
            list.lines().filter(|l| l.starts_with(&begin)).count(),
            1,
            "{command}: {help}"
        );
        let own = stdout(&[&command, "--help"]);
        assert!(
            own.contains(&format!("\n  unfrag {command}"))
                || own.contains(&format!("| unfrag {command}")),
            "{command}: {own}"
        );
    }
    assert!(help.contains("First time here:   unfrag doctor"), "{help}");
    assert_eq!(run(&[]).status.code(), Some(2));
}

#[test]
fn a_wrong_command_line_is_answered_with_the_nearest_right_one() {
    for command in [
        "explain",
        "replay",
        "blame",
        "profile",
        "summary",
        "slab",
        "import",
        "redact",
        "frames",
        "simulate",
        "experiment",
    ] {
        let words = ["such as:", &format!("unfrag {command} ")];
        fails(&[command], 2, &words);
    }
    fails(
        &[SAMPLE],
        2,
        &[
            "unfrag doctor samples/gcc-768M.unfrag",
            "unfrag blame samples/gcc-768M.unfrag",
            "unfrag replay samples/gcc-768M.unfrag",
        ],
    );
    fails(
        &[LOG],
        2,
        &["unfrag explain samples/page-allocation-failure.log"],
    );
    fails(
        &["host.unfrag"],
        2,
        &["If host.unfrag is a file", "unfrag doctor host.unfrag"],
    );
    fails(&["explian"], 2, &["explain"]);
    fails(&["frobnicate"], 2, &["unfrag doctor"]);
}

/// An example of the hints that a sample is enough for works.
#[test]
fn what_the_hints_show_works() {
    for command in ["blame", "profile", "summary", "slab"] {
        let said = text(&run(&[command]).stderr);
        let example = said.lines().last().expect("an example").trim().to_owned();
        let words: Vec<&str> = example.split(' ').skip(1).collect();
        stdout(&words);
    }
}

#[test]
fn without_an_argument_it_is_this_host() {
    assert!(stdout(&["inspect"]).starts_with("this host, "));
    assert!(stdout(&["top", "--count", "1"]).starts_with("/proc: "));
    let zones = |words: &[&str]| {
        json(words)["snapshots"][0]["zones"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!(
        zones(&["inspect", "--json"]),
        zones(&["inspect", "/proc", "--json"])
    );
}
