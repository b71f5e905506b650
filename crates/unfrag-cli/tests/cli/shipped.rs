//! What ships beside the command (units, container, Kubernetes, node-problem-detector) has options that the command takes, and the
//! port that it listens on.

use crate::support::{root, run, stdout, text};
use serde_json::Value;
use std::fs;

fn read(file: &str) -> String {
    fs::read_to_string(root().join("dist").join(file)).unwrap()
}

/// The words of a list in JSON, on the line that has them after `head`.
fn list(file: &str, head: &str) -> Vec<String> {
    let content = read(file);
    let line = content.lines().find_map(|l| l.trim().strip_prefix(head));
    let line = line.unwrap_or_else(|| panic!("{file} has no {head}"));
    serde_json::from_str(line.trim()).unwrap()
}

/// What a unit starts, with its own values for its variables, and without flags that a host adds.
fn started(unit: &str) -> Vec<String> {
    let content = read(&format!("systemd/{unit}.service"));
    let of = |key: &'static str| content.lines().filter_map(move |l| l.strip_prefix(key));
    let mut start = of("ExecStart=").next().unwrap().to_owned();
    for variable in of("Environment=") {
        let (name, value) = variable.split_once('=').unwrap();
        start = start.replace(&format!("${{{name}}}"), value);
    }
    let words = start.strip_prefix("/usr/bin/unfrag ").unwrap();
    let words = words.split(' ').filter(|w| *w != "$FLAGS");
    words.map(str::to_owned).collect()
}

/// The commands of all that ships, by what has them.
fn commands() -> Vec<(String, Vec<String>)> {
    let mut all = vec![
        ("Dockerfile".into(), list("container/Dockerfile", "CMD")),
        (
            "DaemonSet".into(),
            list("kubernetes/daemonset.yaml", "args:"),
        ),
    ];
    for unit in ["unfrag-exporter", "unfrag-record"] {
        all.push((unit.into(), started(unit)));
    }
    let detector = read("node-problem-detector/unfrag-memory.json");
    let detector: Value = serde_json::from_str(&detector).unwrap();
    for rule in detector["rules"].as_array().unwrap() {
        let reason = rule["reason"].as_str().unwrap().to_owned();
        let args = serde_json::from_value(rule["args"].clone()).unwrap();
        all.push((reason, args));
    }
    all
}

#[test]
fn every_command_that_ships_has_options_that_the_command_takes() {
    let commands = commands();
    assert!(commands.len() >= 6, "{commands:?}");
    for (what, words) in commands {
        assert!(
            words.iter().all(|w| !w.contains('$')),
            "{what}: a variable without a value: {words:?}"
        );
        let mut asked: Vec<&str> = words.iter().map(String::as_str).collect();
        asked.push("--help");
        let out = run(&asked);
        assert!(out.status.success(), "{what}: {}", text(&out.stderr));
    }
}

#[test]
fn the_node_problem_detector_gets_a_status_and_a_line_that_fits() {
    let mut asked = 0;
    for (what, words) in commands().iter().filter(|(_, w)| w.contains(&"npd".into())) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let out = run(&words);
        let said = text(&out.stdout);
        assert!(out.status.code().is_some_and(|s| s <= 2), "{what}: {said}");
        assert_eq!(said.lines().count(), 1, "{what}: {said}");
        assert!(said.trim().chars().count() <= 80, "{what}: {said}");
        asked += 1;
    }
    assert_eq!(asked, 2);
}

#[test]
fn all_that_ships_names_the_port_of_the_exporter() {
    let help = stdout(&["exporter", "--help"]);
    let (_, rest) = help.split_once("[default: 127.0.0.1:").expect("a default");
    let (port, _) = rest.split_once(']').unwrap();
    assert!(port.parse::<u16>().is_ok(), "{port}");
    for file in [
        "container/Dockerfile",
        "kubernetes/daemonset.yaml",
        "systemd/unfrag-exporter.service",
    ] {
        assert!(read(file).contains(port), "{file}");
    }
    for (what, words) in commands() {
        if let Some(listen) = words.iter().position(|w| w == "--listen") {
            let at = &words[listen + 1];
            assert!(at.ends_with(&format!(":{port}")), "{what}: {at}");
        }
    }
}

#[test]
fn units_are_hardened_and_belong_to_nobody_until_enabled() {
    for unit in ["unfrag-exporter", "unfrag-record"] {
        let content = read(&format!("systemd/{unit}.service"));
        for line in [
            "ProtectSystem=strict",
            "NoNewPrivileges=yes",
            "MemoryDenyWriteExecute=yes",
            "RestrictNamespaces=yes",
            "SystemCallArchitectures=native",
            "WantedBy=multi-user.target",
        ] {
            assert!(content.lines().any(|l| l == line), "{unit} has no {line}");
        }
        for key in ["CapabilityBoundingSet=", "CPUQuota=", "SystemCallFilter="] {
            assert!(content.lines().any(|l| l.starts_with(key)), "{unit}: {key}");
        }
    }
}
