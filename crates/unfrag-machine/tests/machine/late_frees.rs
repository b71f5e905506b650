//! Objects that are freed after a grace period.

const SCENARIO: &str = r#"
name = "late"
limit = "1 min"

[[machine]]
name = "pc"
layout = "x86-32"
memory = "64 MiB"
cpus = 2
hz = 250

[[machine.disk]]
name = "sda"
size = "2 GiB"

[[machine.file-system]]
name = "home"
kind = "ext3"
device = "sda"
size = "1 GiB"

[trees.src]
on = "home"
dirs = 4
files = 100
sizes = [["4 KiB", 1]]

[programs.look]
steps = [{ read-tree = { tree = "src" } }, { sleep = "IDLE" }]

[[task]]
program = "look"
"#;

/// Open files at the end of a run that reads 100 files and then does nothing for a time.
fn open_files(kernel: &str, idle: &str) -> u64 {
    let o = crate::support::run("late.toml", &SCENARIO.replace("IDLE", idle), kernel);
    assert_eq!(o.ended, "finished");
    let filp = o.slabs.iter().find(|s| s.name == "filp").unwrap();
    filp.in_use
}

#[test]
fn open_files_are_freed_after_idle_seconds() {
    for kernel in ["2.6.14", "2.6.32", "6.18"] {
        let (soon, later) = (open_files(kernel, "1 ms"), open_files(kernel, "3 s"));
        assert!(soon > 0, "{kernel}: a grace period has passed for all");
        assert_eq!(later, 0, "{kernel}");
    }
}
