//! A part of a log, or two logs mixed, never tells more than the whole logs do: each verdict, each number and each advised
//! setting is one that a whole log gives, or is not known. `spec: K.3, K.4`
//!
//! `UNFRAG_SEED` sets the seed of what is drawn, `UNFRAG_ROUNDS` the rounds for each log, `UNFRAG_LOGS` a directory of
//! more logs.

use std::fs;
use std::path::PathBuf;
use unfrag_lab::explain::answer::{Failure, Held, ZoneAnswer};
use unfrag_lab::explain::{Explanation, explain};

fn explained(text: &str) -> Explanation {
    explain(text.as_bytes()).unwrap()
}

/// The logs of the tests and samples, with their names.
fn logs() -> Vec<(String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut dirs = vec![root.join("tests/kernel_logs"), root.join("../../samples")];
    dirs.extend(std::env::var_os("UNFRAG_LOGS").map(PathBuf::from));
    let mut found = vec![];
    for dir in dirs {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let is_log = path.extension().is_some_and(|e| e == "txt" || e == "log");
            if is_log {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                found.push((name, text));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 47, "{} logs", found.len());
    found
}

/// Numbers from a seed.
struct Chance(u64);

impl Chance {
    fn of_settings() -> (Chance, u64) {
        let number = |name: &str, default: u64| {
            std::env::var(name)
                .ok()
                .and_then(|v| v.parse().ok())
                .unwrap_or(default)
        };
        let (seed, rounds) = (number("UNFRAG_SEED", 1), number("UNFRAG_ROUNDS", 3));
        println!("seed {seed} (UNFRAG_SEED), {rounds} rounds (UNFRAG_ROUNDS)");
        (Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), rounds)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % n.max(1)
    }
}

/// Whether `part` is not known, or what one of the whole has.
fn is_of<T: PartialEq>(part: &Option<T>, whole: &Option<T>) -> bool {
    part.is_none() || part == whole
}

fn zone_is_of(part: &ZoneAnswer, whole: &Failure, is_judged: bool) -> bool {
    whole.zones.iter().any(|z| {
        (z.node, &z.zone) == (part.node, &part.zone)
            && is_of(&part.free_kib, &z.free_kib)
            && is_of(&part.largest_order, &z.largest_order)
            && (!is_judged
                || is_of(&part.usable_kib, &z.usable_kib)
                    && is_of(&part.mark_kib, &z.mark_kib)
                    && is_of(&part.protection_kib, &z.protection_kib))
    })
}

/// What a report of a changed log says that no report of the whole logs says, by the one that is most like it.
fn beyond_one(part: &Failure, whole: &[Failure]) -> Option<String> {
    let wrong = whole.iter().map(|w| unlike(part, w));
    let least = wrong.min_by_key(Vec::len).unwrap_or(vec!["a report"]);
    (!least.is_empty()).then(|| {
        format!(
            "{} of line {} {:?} {:?}: another {}",
            part.kind,
            part.line,
            part.task,
            part.verdict,
            least.join(", "),
        )
    })
}

/// What of a report is neither as in one of the whole log nor unknown.
fn unlike(part: &Failure, w: &Failure) -> Vec<&'static str> {
    let is_unknown = part.verdict.is_none() || part.verdict == Some("incomplete");
    // Without its release or its flags a request is judged by other rules, which is said.
    let is_judged = part.kernel == w.kernel && part.verdict.is_some() && part.gfp == w.gfp;
    let checks = [
        // What a slab cache says of a failure that stands elsewhere names the order of the cache.
        (
            "order",
            is_of(&part.order, &w.order) || part.kind == "slab" && is_unknown,
        ),
        ("kernel", is_of(&part.kernel, &w.kernel)),
        (
            "verdict",
            is_unknown
                || part.verdict == w.verdict
                || part.kernel != w.kernel
                // Which names a control group's limit as one of its causes: the kill before it was cut off.
                || part.verdict == Some("not-a-page") && w.is_fault,
        ),
        (
            "zone",
            part.zones.iter().all(|z| zone_is_of(z, w, is_judged)),
        ),
        ("page size", is_of(&part.page_bytes, &w.page_bytes)),
        ("holder", holds_as(part, w)),
        ("setting", advises_as(part, w)),
        ("stall", is_of(&part.stall_ms, &w.stall_ms)),
        ("control group", is_of(&part.cgroup, &w.cgroup)),
    ];
    let wrong = checks.into_iter().filter(|(_, is_as_whole)| !is_as_whole);
    wrong.map(|(what, _)| what).collect()
}

/// Whether a holder is one of the whole's. What is in no counter may be a pool of huge pages as long as no line tells of these.
fn is_same_holder(part: &Held, whole: &Held) -> bool {
    const REST: &str = "in no counter";
    part.kind == whole.kind
        && (part.name == whole.name || part.name.starts_with(REST) && whole.name.starts_with(REST))
}

/// Whether what holds memory is as much as in the whole. With fewer counters smaller ones move up; the counters of a node
/// are read at another moment than those of the whole; and a task's row that is missing leaves no trace.
fn holds_as(part: &Failure, whole: &Failure) -> bool {
    part.held.iter().all(|h| {
        let of_whole = whole.held.iter().find(|w| is_same_holder(h, w));
        match of_whole {
            Some(w) if h.kind == "task" => h.bytes <= w.bytes,
            Some(w) => h.bytes.abs_diff(w.bytes) <= w.bytes / 50,
            None => !h.name.starts_with("in no counter"),
        }
    })
}

fn settings(of: &Failure) -> impl Iterator<Item = (&'static str, Option<u64>)> {
    of.advice.iter().filter_map(|a| Some((a.setting?, a.value)))
}

/// Whether each setting that is advised is advised by the whole, with the same value.
fn advises_as(part: &Failure, whole: &Failure) -> bool {
    settings(part).all(|a| settings(whole).any(|b| a == b))
}

/// What the answer to a changed log says that the whole logs do not.
fn all_beyond(text: &str, whole: &[Failure]) -> Vec<String> {
    let answer = explained(text);
    let beyond = answer.reports.iter();
    let mut all: Vec<String> = beyond.filter_map(|part| beyond_one(part, whole)).collect();
    let (n, of) = (failures(&answer.reports), failures(whole));
    if n > of {
        all.push(format!("{n} failures of {of}"));
    }
    all
}

/// How many failures there are, but for messages of one line, which say by themselves what a whole report says too.
fn failures(all: &[Failure]) -> u64 {
    const KINDS: [&str; 5] = ["allocation-failure", "oom", "slab", "vmalloc", "stall"];
    let counted = all.iter().filter(|f| KINDS.contains(&f.kind));
    counted.map(|f| f.count).sum()
}

fn fail_if_any(wrong: &[String]) {
    let shown = wrong
        .iter()
        .take(120)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(wrong.is_empty(), "{} of them:\n{shown}", wrong.len());
}

#[test]
fn a_log_that_is_cut_or_lacks_a_line_tells_no_more_than_the_whole() {
    let mut wrong = vec![];
    for (name, text) in logs() {
        let whole = explained(&text).reports;
        let lines: Vec<&str> = text.lines().collect();
        for at in 0..=lines.len() {
            let dropped = [&lines[..at], &lines[(at + 1).min(lines.len())..]].concat();
            for (how, part) in [
                ("to", &lines[..at]),
                ("from", &lines[at..]),
                ("without", &dropped[..]),
            ] {
                for what in all_beyond(&part.join("\n"), &whole) {
                    wrong.push(format!("{name} {how} line {}: {what}", at + 1));
                }
            }
        }
    }
    fail_if_any(&wrong);
}

/// The lines of two logs among one another, drawn by chance, each behind what `before` says of its log.
fn mixed(chance: &mut Chance, [a, b]: [&str; 2], before: [&str; 2]) -> String {
    let (mut a, mut b) = (a.lines().peekable(), b.lines().peekable());
    let mut out = String::new();
    loop {
        let is_first = match (a.peek(), b.peek()) {
            (None, None) => return out,
            (Some(_), Some(_)) => chance.below(2) == 0,
            (first, _) => first.is_some(),
        };
        let (before, line) = match is_first {
            true => (before[0], a.next()),
            false => (before[1], b.next()),
        };
        out += before;
        out += line.unwrap_or("");
        out.push('\n');
    }
}

/// Each log with others that are drawn, and what both tell.
fn with_others(mut tried: impl FnMut(&mut Chance, [&(String, String); 2], &[Failure])) {
    let (mut chance, rounds) = Chance::of_settings();
    let logs = logs();
    for (i, log) in logs.iter().enumerate() {
        for _ in 0..rounds {
            let other = &logs[(i + 1 + chance.below(logs.len() - 1)) % logs.len()];
            let whole = [explained(&log.1).reports, explained(&other.1).reports].concat();
            tried(&mut chance, [log, other], &whole);
        }
    }
}

/// Whether the second log is seen to be no part of the first: it says whose request it is of, and that is another task.
fn can_be_told_apart(text: &str, other: &str) -> bool {
    let tasks = |text: &str| -> Vec<Option<String>> {
        let reports = explained(text).reports;
        reports.into_iter().map(|r| r.task).collect()
    };
    let first = tasks(other).into_iter().next().flatten();
    first.is_some() && !tasks(text).contains(&first)
}

#[test]
fn a_log_behind_the_beginning_of_another_tells_what_each_tells() {
    let mut wrong = vec![];
    with_others(|chance, [(name, text), (other_name, other)], whole| {
        let lines: Vec<&str> = text.lines().collect();
        let cut = lines[..chance.below(lines.len())].join("\n");
        if !can_be_told_apart(text, other) {
            return;
        }
        for what in all_beyond(&format!("{cut}\n{other}"), whole) {
            wrong.push(format!("{name}, cut, then {other_name}: {what}"));
        }
    });
    fail_if_any(&wrong);
}

#[test]
fn lines_of_two_hosts_in_one_log_tell_what_each_tells() {
    let mut wrong = vec![];
    with_others(|chance, [(name, text), (other_name, other)], whole| {
        let before = [
            "Mar  3 01:02:03 alpha kernel: ",
            "Mar  3 01:02:03 beta-2.example kernel: ",
        ];
        let mixed = mixed(chance, [text, other], before);
        for what in all_beyond(&mixed, whole) {
            wrong.push(format!("{name} mixed with {other_name}: {what}"));
        }
    });
    fail_if_any(&wrong);
}

#[test]
fn reports_of_one_host_printed_into_one_another_tell_what_each_tells() {
    let (mut chance, rounds) = Chance::of_settings();
    let mut wrong = vec![];
    for (name, text) in logs() {
        let Some(other) = changed(&text) else {
            continue;
        };
        let whole = [explained(&text).reports, explained(&other).reports].concat();
        for _ in 0..rounds {
            let mixed = mixed(&mut chance, [&text, &other], ["", ""]);
            for what in all_beyond(&mixed, &whole) {
                wrong.push(format!("{name}: {what}"));
            }
        }
    }
    fail_if_any(&wrong);
}

/// The same log with another order and other numbers of free memory; `None` if nothing changed.
fn changed(text: &str) -> Option<String> {
    let mut out = String::new();
    for line in text.lines() {
        let mut line = line
            .replace("order:", "order:1")
            .replace(" free:", " free:1");
        if line.contains("*4kB") {
            line = line.replacen("*4kB", "1*4kB", 1);
            if let Some((row, _)) = line.rsplit_once("= ") {
                line = row.to_owned();
            }
        }
        out += &line;
        out.push('\n');
    }
    (out.contains("order:1") && out.contains("*4kB")).then_some(out)
}

/// Fails if a changed log tells more than the whole.
fn each_changed(mut change: impl FnMut(&mut Chance, &str) -> (String, String)) {
    let (mut chance, rounds) = Chance::of_settings();
    let mut wrong = vec![];
    for (name, text) in logs() {
        let whole = explained(&text).reports;
        for _ in 0..rounds {
            let (how, changed) = change(&mut chance, &text);
            for what in all_beyond(&changed, &whole) {
                wrong.push(format!("{name} {how}: {what}"));
            }
        }
    }
    fail_if_any(&wrong);
}

const MARKS: [&str; 7] = ["> ", ">> ", "> > ", "| ", "  ", "# ", "    "];

#[test]
fn a_log_whose_newest_line_is_first_tells_no_more_than_the_whole() {
    each_changed(|_, text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.reverse();
        ("reversed".into(), lines.join("\n"))
    });
}

#[test]
fn a_quoted_log_tells_no_more_than_the_whole() {
    each_changed(|chance, text| {
        let mark = MARKS[chance.below(MARKS.len())];
        let quoted = text.lines().map(|l| format!("{mark}{l}\n")).collect();
        (format!("behind {mark:?}"), quoted)
    });
}

#[test]
fn a_wrapped_log_tells_no_more_than_the_whole() {
    each_changed(|chance, text| {
        let width = 40 + chance.below(120);
        let mark = ["", MARKS[chance.below(MARKS.len())]][chance.below(2)];
        let cut = |line: &str| -> String {
            // An object whose text is cut in two is none: nothing tells whether a blank stood there.
            if line.starts_with('{') {
                return format!("{mark}{line}\n");
            }
            let chars: Vec<char> = line.chars().collect();
            let pieces: Vec<String> = chars
                .chunks(width)
                .map(|c| mark.to_owned() + &c.iter().collect::<String>())
                .collect();
            pieces.join("\n") + "\n"
        };
        let wrapped = text.lines().map(cut).collect();
        (format!("at {width} behind {mark:?}"), wrapped)
    });
}

#[test]
fn a_log_behind_a_prefix_tells_no_more_than_the_whole() {
    each_changed(|chance, text| {
        let form = chance.below(8);
        let (mut seconds, mut number) = (chance.below(60_000), chance.below(1000));
        let mut prefixed = String::new();
        for line in text.lines() {
            seconds += chance.below(2);
            number += 1;
            let time = format!(
                "{:02}:{:02}:{:02}",
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60
            );
            prefixed += &match form {
                0 => format!("Mar  3 {time} web-1 kernel: {line}\n"),
                1 => format!("2026-03-03T{time}.123456+01:00 web-1 kernel: {line}\n"),
                2 => format!("2026-03-03T{time}Z stderr F {line}\n"),
                3 => format!("node-7/dmesg-x2k4p {number} {line}\n"),
                4 => format!("<4>{line}\n"),
                5 => format!("{number}:{line}\n"),
                6 => format!("{{job=\"kernel\", host=\"a\"}} {time} {line}\n"),
                _ => format!("[{time}] {line}\n"),
            };
        }
        (format!("in form {form}"), prefixed)
    });
}
