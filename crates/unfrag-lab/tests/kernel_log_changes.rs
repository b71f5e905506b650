//! A part of a log, or two logs mixed, never tells more than the whole logs do: each verdict and each number is one that
//! a whole log gives, or is not known. `spec: K.3, K.4`
//!
//! `UNFRAG_SEED` sets the seed of what is drawn, `UNFRAG_ROUNDS` the rounds for each log.

use std::fs;
use std::path::PathBuf;
use unfrag_lab::explain::answer::{Failure, ZoneAnswer};
use unfrag_lab::explain::{Explanation, explain};

fn explained(text: &str) -> Explanation {
    explain(text.as_bytes()).unwrap()
}

/// The logs of the tests and samples whose lines are those of a kernel, with their names.
fn logs() -> Vec<(String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![];
    for dir in ["tests/kernel_logs", "../../samples"] {
        for entry in fs::read_dir(root.join(dir)).unwrap() {
            let path = entry.unwrap().path();
            let is_log = path.extension().is_some_and(|e| e == "txt" || e == "log");
            if let Some(text) = fs::read_to_string(&path).ok().filter(|_| is_log)
                && !text.starts_with(['{', '<'])
            {
                found.push((
                    path.file_name().unwrap().to_string_lossy().into_owned(),
                    text,
                ));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 40, "{} logs", found.len());
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

/// Logs of which the lines that are cut off decide, and nothing before them says that they are missing: the page size, the
/// sum of free lists against a counter that drifted, the cpuset, the zone HighMem. Of their parts only what was read is
/// compared, not the verdict.
const LAST_LINES_DECIDE: [&str; 6] = [
    "cpuset-node.txt",
    "drifted-counter.txt",
    "highmem-lowmem.txt",
    "ia64-2nodes-oom.txt",
    "ia64-overflow.txt",
    "ppc64-power7-order0.txt",
];

/// What a report of a changed log says that no report of the whole logs says.
fn beyond(part: &Failure, whole: &[Failure], is_read_only: bool) -> Option<String> {
    let is_unknown = is_read_only || part.verdict.is_none() || part.verdict == Some("incomplete");
    // Without its release or its order a request is judged by other rules, which is said.
    let fits = |w: &Failure| {
        let is_judged =
            part.kernel == w.kernel && part.verdict.is_some() && part.gfp == w.gfp && !is_read_only;
        // What a slab cache says of a failure that stands elsewhere names the order of the cache.
        let has_order = is_of(&part.order, &w.order) || part.kind == "slab" && is_unknown;
        has_order
            && is_of(&part.kernel, &w.kernel)
            && (is_unknown || part.verdict == w.verdict || part.kernel != w.kernel)
            && part.zones.iter().all(|z| zone_is_of(z, w, is_judged))
    };
    if whole.iter().any(fits) {
        return None;
    }
    Some(format!(
        "{} of line {} {:?} order {:?} kernel {:?} {:?} {}",
        part.kind,
        part.line,
        part.task,
        part.order,
        part.kernel,
        part.verdict,
        serde_json::to_string(&part.zones).unwrap()
    ))
}

/// What the answer to a changed log says that the whole logs do not.
fn all_beyond(name: &str, text: &str, whole: &[Failure]) -> Vec<String> {
    let is_read_only = LAST_LINES_DECIDE.contains(&name);
    let answer = explained(text);
    answer
        .reports
        .iter()
        .filter_map(|part| beyond(part, whole, is_read_only))
        .collect()
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
                for what in all_beyond(&name, &part.join("\n"), &whole) {
                    wrong.push(format!("{name} {how} line {}: {what}", at + 1));
                }
            }
        }
    }
    fail_if_any(&wrong);
}

#[test]
fn two_logs_in_one_tell_what_each_tells() {
    let (mut chance, rounds) = Chance::of_settings();
    let logs = logs();
    let mut wrong = vec![];
    for (i, (name, text)) in logs.iter().enumerate() {
        for _ in 0..rounds {
            let (other_name, other) = &logs[(i + 1 + chance.below(logs.len() - 1)) % logs.len()];
            let whole = [explained(text).reports, explained(other).reports].concat();
            let (a, b): (Vec<&str>, Vec<&str>) = (text.lines().collect(), other.lines().collect());
            // One behind the other, cut anywhere; or the lines of two hosts among one another.
            let cut = chance.below(a.len());
            let behind = [&a[..cut], &b[..]].concat().join("\n");
            let mut mixed = String::new();
            let (mut at, mut other_at) = (0, 0);
            while at < a.len() || other_at < b.len() {
                let is_first = other_at == b.len() || at < a.len() && chance.below(2) == 0;
                let (host, line) = match is_first {
                    true => ("alpha", a[at]),
                    false => ("beta-2.example", b[other_at]),
                };
                at += usize::from(is_first);
                other_at += usize::from(!is_first);
                // Which host printed a line is only known from lines that say so.
                mixed += &format!("Mar  3 01:02:03 {host} kernel: {line}\n");
            }
            for (how, text) in [("cut, then", behind), ("mixed with", mixed)] {
                let is_plain = |t: &[&str]| t.iter().all(|l| l.starts_with('[') || l.is_empty());
                if how == "mixed with" && !(is_plain(&a) && is_plain(&b)) {
                    continue;
                }
                for what in all_beyond(name, &text, &whole) {
                    wrong.push(format!("{name} {how} {other_name}: {what}"));
                }
            }
        }
    }
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
        let (a, b): (Vec<&str>, Vec<&str>) = (text.lines().collect(), other.lines().collect());
        for _ in 0..rounds {
            let (mut at, mut other_at) = (0, 0);
            let mut mixed = vec![];
            while at < a.len() || other_at < b.len() {
                let is_first = other_at == b.len() || at < a.len() && chance.below(2) == 0;
                mixed.push(if is_first { a[at] } else { b[other_at] });
                at += usize::from(is_first);
                other_at += usize::from(!is_first);
            }
            for what in all_beyond(&name, &mixed.join("\n"), &whole) {
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

#[test]
fn wrapped_quoted_and_reversed_logs_tell_no_more_than_the_whole() {
    let (mut chance, rounds) = Chance::of_settings();
    let mut wrong = vec![];
    for (name, text) in logs() {
        let whole = explained(&text).reports;
        let mut tried = vec![];
        let mut reversed: Vec<&str> = text.lines().collect();
        reversed.reverse();
        tried.push(("reversed".to_owned(), reversed.join("\n")));
        for _ in 0..rounds {
            let width = 40 + chance.below(120);
            let mark = ["", "> ", "| ", "  ", "# "][chance.below(5)];
            let cut = |line: &str| -> String {
                let chars: Vec<char> = line.chars().collect();
                let pieces: Vec<String> = chars
                    .chunks(width)
                    .map(|c| mark.to_owned() + &c.iter().collect::<String>())
                    .collect();
                pieces.join("\n") + "\n"
            };
            tried.push((
                format!("at {width} behind {mark:?}"),
                text.lines().map(cut).collect(),
            ));
        }
        for (how, changed) in tried {
            for what in all_beyond(&name, &changed, &whole) {
                wrong.push(format!("{name} {how}: {what}"));
            }
        }
    }
    fail_if_any(&wrong);
}
