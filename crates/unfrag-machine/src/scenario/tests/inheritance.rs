//! Machines that inherit from others with `like`.

use super::super::{Machine, Scenario};
use super::{SMALL, kernel, mistake};
use crate::Calibration;

/// The file with these machines before its second one.
fn with(machines: &str) -> String {
    let old = "[[machine]]\nname = \"old\"";
    assert!(SMALL.contains(old));
    SMALL.replacen(old, &format!("{machines}\n{old}"), 1)
}

const SLOW: &str = r#"
[[machine]]
name = "slow"
like = "desk"
cpus = 4
costs = { fork = "90 us" }

[[machine.disk]]
name = "sda"
bandwidth = "30 MB/s"

[[machine.disk]]
name = "sdb"
size = "10 GiB"

[machine.swap]
at = "40 GiB"
"#;

/// Everything that a run of a machine depends on, as text.
fn config(text: &str, machine: &str) -> String {
    let s = Scenario::parse("s.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let machine: &Machine = s.machine(Some(machine)).unwrap();
    let config = machine.config(&kernel("2.6.31"), &Calibration::standard(), 7);
    format!("{config:#?}")
}

#[test]
fn like_inherits_and_overrides() {
    let text = with(SLOW);
    assert_ne!(config(&text, "slow"), config(&text, "desk"));
    let written_out = SMALL
        .replacen("cpus = 2", "cpus = 4", 1)
        .replacen("fork = \"70 us\"", "fork = \"90 us\"", 1)
        .replacen("60 MB/s", "30 MB/s", 1)
        .replacen(
            "[[machine.crypt]]",
            "[[machine.disk]]\nname = \"sdb\"\nsize = \"10 GiB\"\n\n[[machine.crypt]]",
            1,
        )
        .replacen("[machine.swap]", "[machine.swap]\nat = \"40 GiB\"", 1);
    assert_eq!(config(&text, "slow"), config(&written_out, "desk"));
    assert_eq!(config(&text, "desk"), config(SMALL, "desk"));
}

#[test]
fn like_is_transitive() {
    let slower = "[[machine]]\nname = \"slower\"\nlike = \"slow\"\n";
    let text = with(&format!("{SLOW}\n{slower}"));
    assert_eq!(config(&text, "slower"), config(&text, "slow"));
}

/// The error for these machines: message, line, help.
fn told(machines: &str) -> (String, String, String) {
    let e = mistake(&with(machines));
    let line = e.place.map_or(String::new(), |p| p.text);
    (e.message, line, e.help.unwrap_or_default())
}

#[test]
fn like_needs_an_earlier_machine() {
    let like = |of: &str| told(&SLOW.replacen("\"desk\"", of, 1));
    for later in ["old", "slow", "nowhere"] {
        let (message, line, help) = like(&format!("\"{later}\""));
        assert_eq!(
            message,
            format!("there is no machine `{later}` before this one")
        );
        assert_eq!(line, format!("like = \"{later}\""));
        assert_eq!(help, "there are: desk");
    }
    let (message, line, _) = like("3");
    assert_eq!(message, "`like` is not the name of a machine");
    assert_eq!(line, "like = 3");
    let first = SMALL.replacen("layout =", "like = \"old\"\nlayout =", 1);
    let e = mistake(&first);
    assert_eq!(
        e.help.as_deref(),
        Some("the first machine says all by itself")
    );
}

#[test]
fn inherited_mistake_is_shown_where_written() {
    let (message, ..) = told(&SLOW.replacen("name = \"slow\"\n", "", 1));
    assert!(message.contains("missing field `name`"), "{message}");
    // The inherited value does not fit: interrupts go to a second CPU.
    let (message, line, _) = told(&SLOW.replacen("cpus = 4", "cpus = 1", 1));
    assert!(message.contains("CPU"), "{message}");
    assert!(line.starts_with("scheduler = "), "{line}");
    let (message, line, _) = told(&SLOW.replacen("cpus = 4", "cpu = 4", 1));
    assert!(message.starts_with("unknown field `cpu`"), "{message}");
    assert_eq!(line, "cpu = 4");
}
