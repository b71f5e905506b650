//! What `unfrag profile` prints and writes, and how it refuses.

use crate::support::{SAMPLE, fails, json, run, skipped, stdout, text};
use std::fs;

#[test]
fn a_recording_without_processes_is_profiled_as_a_whole_and_says_so() {
    let shown = stdout(&["profile", SAMPLE]);
    assert!(shown.contains("record with --processes"), "{shown}");
    let p = json(&["profile", SAMPLE, "--json"]);
    assert_eq!(p["all"]["processes"], 0);
    let anonymous = &p["all"]["pages"]["anonymous"];
    let number = |name: &str| anonymous[name].as_u64().unwrap();
    let freed: u64 = anonymous["freed_pages"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(number("taken_pages"), freed + number("held_pages"));
    assert!(number("taken_pages") > 100_000);
    assert_eq!(p["recording"]["file"], "gcc-768M.unfrag");
}

#[test]
fn columns_are_aligned() {
    let shown = stdout(&["profile", SAMPLE]);
    let rows: Vec<&str> = shown
        .lines()
        .skip_while(|l| !l.starts_with("pages "))
        .take_while(|l| !l.contains(": "))
        .collect();
    assert!(rows.len() > 4, "{shown}");
    assert!(rows.iter().all(|r| r.len() == rows[0].len()), "{shown}");
}

#[test]
fn the_same_recording_gives_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = dir.path().join(name);
        stdout(&["profile", SAMPLE, "-o", path.to_str().unwrap()]);
        fs::read_to_string(path).unwrap()
    };
    let first = write("a.toml");
    assert!(first.contains("\n[recording]\n") && first.contains("\n[all.pages.anonymous]\n"));
    assert_eq!(first, write("b.toml"));
}

#[test]
fn what_has_no_pages_is_refused_and_so_is_what_cannot_be_read_or_written() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let line = "  find-7  [000] .....  1.000001: kfree: call_site=0xffffffff81000000 ptr=0x10\n";
    fs::write(&trace, line).unwrap();
    let trace = trace.to_str().unwrap();
    let words = ["profile", trace, "--release", "6.1.0"];
    fails(&words, 1, &[trace, "no page events", "--processes"]);
    fails(&["profile", "no-such-file"], 1, &["check the path"]);
    fails(&["profile", "samples"], 1, &["samples"]);
    fails(&["profile", "README.md"], 1, &["README.md"]);
    fails(
        &["profile", SAMPLE, "-o", "no/such/directory/x.toml"],
        1,
        &["no/such/directory/x.toml"],
    );
    fails(&["profile"], 2, &["FILE"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_of_this_host_is_told_program_by_program() {
    use unfrag_linux::record::tracefs::Tracefs;
    let may = Tracefs::find()
        .and_then(|t| t.instance())
        .and_then(|i| i.remove());
    if let Err(e) = may {
        return skipped(&format!("nobody may trace here: {e}"));
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.unfrag");
    let file = file.to_str().unwrap();
    let script =
        "for i in 1 2 3 4 5; do /bin/true; done; dd if=/dev/zero of=$0 bs=64k count=16; rm $0";
    let made = dir.path().join("made");
    let command = ["sh", "-c", script, made.to_str().unwrap()];
    let words = [
        &[
            "record",
            "--processes",
            "--command-line",
            "--slab",
            "-o",
            file,
            "--",
        ][..],
        &command,
    ]
    .concat();
    let out = run(&words);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let p = json(&["profile", file, "--json"]);
    let program = |name: &str| {
        let all = p["program"].as_array().unwrap().iter();
        let mut found = all.filter(|u| u["name"] == name);
        found
            .next()
            .unwrap_or_else(|| panic!("no {name}: {p}"))
            .clone()
    };
    assert_eq!(program("true")["processes"], 5);
    assert_eq!(program("true")["started_by"]["sh"], 5);
    let sh = program("sh");
    assert_eq!(sh["processes"], 1);
    for (name, class) in [("sh", "page_tables"), ("true", "anonymous")] {
        let taken = &program(name)["pages"][class]["taken_pages"];
        assert!(taken.as_u64().is_some_and(|n| n > 5), "{name}: {taken}");
    }
    assert!(
        sh["each"]["cpu_us"]["max"].as_u64().is_some_and(|n| n > 0),
        "{sh}"
    );
    let caches = p["all"]["slab"].as_array().unwrap();
    assert!(caches.iter().any(|c| c["cache"] == "vm_area_struct"), "{p}");
    assert!(
        p["recording"]["command"]
            .as_str()
            .unwrap()
            .starts_with("sh -c")
    );
    // Page cache of a temporary directory may be that of tmpfs, which has no events.
    if let Some(written) = p["all"]["pages"].get("file_written") {
        assert!(written["taken_pages"].as_u64().unwrap() >= 256, "{written}");
    }
}
