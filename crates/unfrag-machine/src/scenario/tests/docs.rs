//! The page about scenario files is correct.

use super::super::{Kernel, Outcome, Scenario};
use crate::Calibration;

const PAGE: &str = include_str!("../../../../../docs/scenario-file.md");

fn block(kind: &str) -> &'static str {
    let from = PAGE.split_once(&format!("```{kind}\n")).unwrap().1;
    from.split_once("```").unwrap().0
}

fn run(text: &str) -> Outcome {
    let s = Scenario::parse("example.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let machine = s.machine(None).unwrap();
    let kernel = Kernel::preset("2.6.31").unwrap();
    let run = s.start(machine, &kernel, &Calibration::standard(), 1);
    run.unwrap().finish(|_| ())
}

#[test]
fn the_example_is_a_scenario_and_runs_to_its_end() {
    let o = run(block("toml"));
    assert_eq!(o.ended, "finished");
    assert!(o.programs.failures.is_empty(), "{:?}", o.programs.failures);
    // 80 jobs, two makes, the player.
    assert!(o.programs.processes >= 83, "{}", o.programs.processes);
    assert!(o.devices["crypt"]["pages_read"] > 0);
}

#[test]
fn inheriting_machine_of_the_docs_works() {
    let (before, rest) = PAGE
        .split_once("the others say what differs:\n\n```toml\n")
        .unwrap();
    assert!(before.contains("`like`"));
    let more = rest.split_once("```").unwrap().0;
    let text = block("toml").replacen("[trees.src]", &format!("{more}\n[trees.src]"), 1);
    let s = Scenario::parse("example.toml", &text).unwrap_or_else(|e| panic!("{e}"));
    let config = |name| {
        let kernel = Kernel::preset("2.6.31").unwrap();
        let machine = s.machine(Some(name)).unwrap();
        machine.config(&kernel, &Calibration::standard(), 1)
    };
    let (one, other) = (config("desk"), config("desk-2g"));
    assert_eq!(
        (one.cpus, one.crypts.len()),
        (other.cpus, other.crypts.len())
    );
    assert!(other.disks[0].bandwidth > one.disks[0].bandwidth);
}

#[test]
fn sampling_does_not_change_a_run() {
    let one = run(block("toml"));
    assert_eq!(one, run(block("toml")));
    let mut often = run(&block("toml").replacen("\"500 ms\"", "\"7 ms\"", 1));
    assert!(often.samples.len() > 10 * one.samples.len());
    often.samples = one.samples.clone();
    assert_eq!(one, often);
}

#[test]
fn mistake_of_the_docs_is_as_shown() {
    let text = block("toml").replacen("device = \"crypt\"", "device = \"sdb\"", 1);
    let e = Scenario::parse("builds.toml", &text).unwrap_err();
    assert_eq!(e.to_string().trim(), block("text").trim());
}

#[test]
fn docs_name_every_step() {
    let text = block("toml").replacen("{ exec = \"cc\" }", "\"no-such-step\"", 1);
    let told = Scenario::parse("s.toml", &text).unwrap_err().message;
    let (_, known) = told.split_once("expected one of ").unwrap();
    let mut known: Vec<_> = known.split(", ").map(|s| s.trim_matches('`')).collect();
    let table = PAGE.split_once("| steps | what they do |\n").unwrap().1;
    let rows = table.lines().skip(1).take_while(|l| l.starts_with('|'));
    let mut named: Vec<_> = rows
        .flat_map(|r| r.split('|').nth(1).unwrap().split(','))
        .map(|s| s.trim().trim_matches('`'))
        .collect();
    known.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, known);
}

/// Rows of the table with this head: the first cell, and the row as a whole.
fn rows(head: &str) -> Vec<(&'static str, &'static str)> {
    let table = PAGE.split_once(head).unwrap().1;
    let rows = table.lines().skip(2).take_while(|l| l.starts_with('|'));
    let first = |r: &'static str| r.split('|').nth(1).unwrap().trim().trim_matches('`');
    rows.map(|r| (first(r), r)).collect()
}

/// The keys that could stand where `no-such-key` stands.
fn known_keys(text: &str) -> Vec<String> {
    let told = Scenario::parse("s.toml", text).unwrap_err().message;
    let names = told.split('`').skip(3).step_by(2);
    assert!(told.contains("`no-such-key`, expected"), "{told}");
    names.map(str::to_owned).collect()
}

#[test]
fn docs_name_every_key_of_steps() {
    let rows = rows("| step | keys |");
    assert_eq!(rows.len(), 18);
    for (step, row) in rows {
        let wrong = format!("{{ {step} = {{ no-such-key = 1 }} }}");
        let text = block("toml").replacen("{ exec = \"cc\" }", &wrong, 1);
        for key in known_keys(&text) {
            let named = row.contains(&format!("`{key}`")) || row.contains(&format!("`{key} = "));
            assert!(named, "`{key}` of `{step}`");
        }
    }
}

#[test]
fn docs_name_every_key_of_tables() {
    let example = block("toml");
    for (after, prefix) in [
        ("name = \"desk\"", ""),
        ("name = \"sda\"", ""),
        ("sample = \"500 ms\"", "[kernel]"),
    ] {
        let text = example.replacen(after, &format!("{after}\n{prefix}\nno-such-key = 1"), 1);
        for key in known_keys(&text) {
            let spellings = ["`", " = ", "]"].map(|end| format!("{key}{end}"));
            assert!(spellings.iter().any(|s| PAGE.contains(s)), "`{key}`");
        }
    }
}

#[test]
fn kernel_of_the_docs_exists() {
    let from = PAGE.find("[kernel]\n").unwrap();
    let table = PAGE[from..].split_once("```").unwrap().0;
    let text = block("toml").replacen("[[machine]]", &format!("{table}\n[[machine]]"), 1);
    let s = Scenario::parse("s.toml", &text).unwrap_or_else(|e| panic!("{e}"));
    let rules = s.kernel(None).unwrap().rules;
    let plain = Kernel::preset("2.6.31").unwrap().rules;
    assert_ne!(
        (rules.reclaim.congestion, rules.kswapd.nap),
        (plain.reclaim.congestion, plain.kswapd.nap)
    );
}
