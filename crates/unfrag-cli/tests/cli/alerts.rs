//! The alerts and the dashboard that ship: by Prometheus' own tool where it is installed, and against what the exporter
//! prints: no name, label or value in them is one that no host has.

use crate::support::{book, lay_out_host, root, skipped, stdout, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

const RULES: &str = "dashboards/unfrag-alerts.yml";
const TESTS: &str = "dashboards/unfrag-alerts-test.yml";

/// Values by label, and labels by metric.
type Metrics = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What the exporter prints of a host whose files can all be read.
fn exported() -> Metrics {
    let dir = tempfile::tempdir().unwrap();
    lay_out_host(dir.path());
    let proc = dir.path().to_str().unwrap();
    let needs = ["--huge", "5", "--huge", "5@node0"];
    let printed = stdout(&[&["exporter", "--print", "--proc", proc][..], &needs].concat());
    let mut all = Metrics::new();
    for line in printed.lines().filter(|l| !l.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let metric = all.entry(name.to_owned()).or_default();
        for label in labels
            .trim_end_matches('}')
            .split(',')
            .filter(|l| !l.is_empty())
        {
            let (key, value) = label.split_once('=').unwrap();
            let values = metric.entry(key.to_owned()).or_default();
            values.insert(value.trim_matches('"').to_owned());
        }
    }
    all.insert("up".into(), BTreeMap::new());
    all
}

/// Labels that every scrape has.
const OF_SCRAPE: [&str; 2] = ["job", "instance"];

/// The metrics of a query with what stands in braces behind each.
fn selectors(query: &str) -> Vec<(&str, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = vec![];
    let mut rest = query;
    while let Some(at) = rest.find(is_name) {
        rest = &rest[at..];
        let (name, after) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
        rest = after;
        let braces = rest.strip_prefix('{').and_then(|r| r.split_once('}'));
        if let Some((_, after)) = braces {
            rest = after;
        }
        if name == "up" || name.starts_with("unfrag_") {
            found.push((name, braces.map_or("", |(inside, _)| inside)));
        }
    }
    found
}

/// Checks a query; answers the labels that its metrics have.
fn check(query: &str, metrics: &Metrics) -> BTreeSet<String> {
    let mut known: BTreeSet<String> = OF_SCRAPE.map(str::to_owned).into();
    let found = selectors(query);
    assert!(!found.is_empty(), "{query} asks for nothing");
    for (name, matchers) in found {
        let labels = metrics.get(name);
        let labels = labels.unwrap_or_else(|| panic!("{name} is exported nowhere: {query}"));
        known.extend(labels.keys().cloned());
        for matcher in matchers.split(',').filter(|m| !m.is_empty()) {
            let (key, value) = matcher.split_once('=').unwrap();
            let key = key.trim().trim_end_matches('!');
            if OF_SCRAPE.contains(&key) {
                continue;
            }
            let values = labels.get(key);
            let values = values.unwrap_or_else(|| panic!("{name} has no label {key}: {query}"));
            for value in value.trim_start_matches('~').trim_matches('"').split('|') {
                // A bound that stands for what is not known is there for no host that tells all.
                let has = values.contains(value) || value.is_empty() || value == "now_at_most";
                assert!(has, "{name} has no {key} {value}: {query}");
            }
        }
    }
    for word in ["by (", "on ("] {
        for group in query.split(word).skip(1) {
            for label in group.split(')').next().unwrap().split(',') {
                assert!(known.contains(label.trim()), "{label} is no label: {query}");
            }
        }
    }
    known
}

/// A rule as it stands in the file: its keys and values.
type Rule = BTreeMap<String, String>;

/// Reads the file as it is written: a key and a value a line, and folded blocks. What it does not know fails.
fn rules() -> Vec<Rule> {
    let mut rules: Vec<Rule> = vec![];
    let mut folded = None;
    for line in fs::read_to_string(root().join(RULES)).unwrap().lines() {
        let (indent, line) = (line.len() - line.trim_start().len(), line.trim());
        let header = ["groups:", "- name: unfrag", "rules:"].contains(&line);
        if line.is_empty() || line.starts_with('#') || header {
            folded = None;
        } else if let Some(key) = folded
            .clone()
            .filter(|_| indent == 10 && rules.last().is_some())
        {
            let rule: &mut Rule = rules.last_mut().unwrap();
            let text: &mut String = rule.entry(key).or_default();
            text.push_str(line);
            text.push(' ');
        } else {
            folded = None;
            let line = match line.strip_prefix("- ") {
                Some(first) => {
                    rules.push(Rule::new());
                    first
                }
                None => line,
            };
            let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("{line:?}"));
            let rule = rules.last_mut().unwrap();
            match value.trim() {
                ">-" => folded = Some(key.to_owned()),
                value => assert!(
                    rule.insert(key.into(), value.trim_matches('"').into())
                        .is_none()
                ),
            }
        }
    }
    rules
}

#[test]
fn every_alert_asks_for_what_is_exported_and_leads_to_a_page() {
    let metrics = exported();
    let rules = rules();
    let mut names = BTreeSet::new();
    for rule in &rules {
        let of = |key: &str| {
            rule.get(key)
                .unwrap_or_else(|| panic!("no {key}: {rule:?}"))
                .as_str()
        };
        let name = of("alert");
        assert!(names.insert(name), "{name} stands twice");
        let known = check(of("expr"), &metrics);
        assert!(of("for").ends_with('m'), "{name}");
        assert!(["warning", "critical"].contains(&of("severity")), "{name}");
        for text in [of("summary"), of("description")] {
            for label in text.split("$labels.").skip(1) {
                let label = label
                    .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .next()
                    .unwrap();
                assert!(
                    known.contains(label),
                    "{name}: {label} is no label of {:?}",
                    of("expr")
                );
            }
        }
        assert!(
            of("summary").contains("{{ $labels.instance }}"),
            "{name} names no host"
        );
        let (page, section) = of("runbook").split_once('#').unwrap();
        let page = book::read(&root().join(page));
        let heading = format!("## {name}");
        assert!(page.lines().any(|l| l == heading), "no section {heading}");
        assert_eq!(section, name.to_lowercase());
    }
    assert_eq!(names.len(), 10);
    let tests = fs::read_to_string(root().join(TESTS)).unwrap();
    for name in names {
        let tested = tests
            .matches(&format!("alertname: {name}\n        exp_alerts:"))
            .count();
        assert!(tested > 0, "no test in which {name} fires");
        let quiet = tests.matches(&format!("alertname: {name} }}")).count();
        assert!(quiet > 0, "no test in which {name} does not");
    }
}

#[test]
fn every_panel_says_what_it_shows_by_host_from_what_is_exported() {
    let metrics = exported();
    let dashboard = fs::read_to_string(root().join("dashboards/unfrag.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let mut with_thresholds = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        let description = panel["description"].as_str().unwrap();
        assert!(
            description.len() > 40 && description.ends_with('.'),
            "{title}: {description:?}"
        );
        let thresholds = &panel["fieldConfig"]["defaults"]["thresholds"]["steps"];
        with_thresholds += usize::from(thresholds.as_array().is_some_and(|s| s.len() > 1));
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let known = check(query, &metrics);
            for (name, matchers) in selectors(query) {
                assert!(
                    matchers.contains(r#"instance=~"$instance""#),
                    "{title}: {name} of all hosts"
                );
            }
            for group in query.split("by (").skip(1) {
                assert!(
                    group.starts_with("instance"),
                    "{title} adds hosts together: {query}"
                );
            }
            let legend = target["legendFormat"].as_str().unwrap();
            assert!(legend.contains("{{instance}}"), "{title}: {legend}");
            for label in legend.split("{{").skip(1) {
                let label = label.split('}').next().unwrap();
                assert!(known.contains(label), "{title}: {label} is no label");
            }
        }
    }
    assert!(with_thresholds >= 6, "{with_thresholds}");
}

#[test]
fn the_command_prints_the_files_that_ship() {
    for (flag, file) in [
        ("--print-alerts", RULES),
        ("--print-dashboard", "dashboards/unfrag.json"),
    ] {
        let shipped = fs::read_to_string(root().join(file)).unwrap();
        assert_eq!(stdout(&["exporter", flag]), shipped, "{flag}");
    }
}

#[test]
fn the_alerts_fire_when_they_should() {
    let dir = root();
    let promtool = |words: &[&str]| {
        Command::new("promtool")
            .current_dir(&dir)
            .args(words)
            .output()
    };
    match promtool(&["test", "rules", TESTS]) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            skipped("promtool is not installed, so no alert is tried");
        }
        out => {
            let out = out.unwrap();
            assert!(
                out.status.success(),
                "{}{}",
                text(&out.stdout),
                text(&out.stderr)
            );
            assert!(Path::new(&dir).join(RULES).is_file());
            assert!(
                promtool(&["check", "rules", RULES])
                    .unwrap()
                    .status
                    .success()
            );
        }
    }
}
