//! What `unfrag simulate` and `unfrag experiment` refuse, and what a run tells that fails or does not end.

use crate::support::{fails, json, root, stdout, text};
use std::fs;
use tempfile::tempdir;

const SMALL: &str = "samples/small-build.toml";

#[test]
fn a_mistake_is_shown_in_its_line_with_the_way_out() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("wrong.toml");
    let source = fs::read_to_string(root().join(SMALL)).unwrap();
    let wrong = source.replacen("hz = ", "hertz = ", 1);
    let at = wrong.lines().position(|l| l.starts_with("hertz")).unwrap() + 1;
    fs::write(&file, wrong).unwrap();
    let file = file.to_str().unwrap();
    let told = text(&fails(&["simulate", file], 1, &[]).stderr);
    let mut lines = told.lines();
    let first = lines.next().unwrap();
    let place = format!("error: {file}:{at}:1: unknown field `hertz`, expected one of ");
    assert!(first.starts_with(&place), "{told}");
    let line = lines.next().unwrap();
    assert!(line.starts_with(&format!(" {at} | hertz = ")), "{told}");
    let marks = format!(" {:w$} | ^^^^^", "", w = at.to_string().len());
    assert_eq!(lines.next(), Some(marks.as_str()), "{told}");
    // What is in a file cannot command the terminal.
    let evil = dir.path().join("evil.toml");
    fs::write(&evil, "name = \"a\"\nlimit = \u{1b}[2J\n").unwrap();
    let told = text(&fails(&["simulate", evil.to_str().unwrap()], 1, &[]).stderr);
    assert!(
        !told.contains('\u{1b}') && told.contains(r"\u{1b}[2J"),
        "{told}"
    );
    assert_eq!(told.matches("help:").count(), 0, "{told}");
    fs::write(&evil, b"name = \"\xff\"\n").unwrap();
    let told = [
        "evil.toml: byte 8: this is no UTF-8",
        "help: name a scenario",
    ];
    fails(&["simulate", evil.to_str().unwrap()], 1, &told);
}

#[test]
fn a_setting_that_the_kernel_does_not_have_is_refused() {
    let set = |kernel, value| ["simulate", SMALL, "--kernel", kernel, "--set", value];
    let scale = "vm.watermark_scale_factor=100";
    let told = &[
        "2.6.32 has no vm.watermark_scale_factor",
        "vm.min_free_kbytes",
    ];
    fails(&set("2.6.32", scale), 2, told);
    fails(
        &set("6.1", "vm.defrag_mode=1"),
        2,
        &["6.1 has no vm.defrag_mode"],
    );
    assert!(stdout(&set("6.18", scale)).contains("vm.watermark_scale_factor = 100"));
    // The last word on a setting holds.
    let [a, b] = ["vm.min_free_kbytes=4096", "vm.min_free_kbytes=8192"];
    let shown = stdout(&["simulate", SMALL, "--set", a, "--set", b]);
    assert!(shown.contains("(vm.min_free_kbytes = 8192)"), "{shown}");
}

/// A machine of 64 MiB without swap, and on it `steps`.
fn on_64_mib(steps: &str) -> String {
    format!(
        "name = \"t\"\nlimit = \"10 s\"\n[[machine]]\nname = \"m\"\nlayout = \"x86-64\"\nmemory = \"64 MiB\"\ncpus = 1\nhz = 250\n\
         [[machine.file-system]]\nname = \"tmp\"\nkind = \"tmpfs\"\nsize = \"8 MiB\"\n\
         [programs.p]\nsteps = [{steps}]\n[[task]]\nprogram = \"p\"\n[[task]]\nname = \"calm\"\nprogram = \"wait\"\n\
         [programs.wait]\nsteps = [{{ sleep = \"10 ms\" }}, {{ line = \"done\" }}]\n"
    )
}

#[test]
fn programs_that_fail_are_told_with_the_reason() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("s.toml");
    let (path, page) = (file.to_str().unwrap(), dir.path().join("s.html"));
    for (steps, why) in [
        (
            "{ grow = { size = \"200 MiB\" } }, { touch = {} }",
            "killed",
        ),
        (
            "{ create = { on = \"tmp\", size = \"9 MiB\" } }",
            "no space on the file system",
        ),
    ] {
        fs::write(&file, on_64_mib(steps)).unwrap();
        let shown = stdout(&["simulate", path, "--html", page.to_str().unwrap()]);
        let words = |start: &str| {
            let line = shown.lines().find(|l| l.starts_with(start));
            let line = line.unwrap_or_else(|| panic!("no {start}: {shown}"));
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(words("p ").contains(why), "{shown}");
        assert!(words("calm ").contains("done"), "{shown}");
        assert_eq!(words(why), format!("{why} 1"));
        let page = fs::read_to_string(&page).unwrap();
        assert!(page.contains("some of it by failures") && page.contains(why));
        let o = json(&["simulate", path, "--json"]);
        assert_eq!(o["tasks"][0]["failed"], why);
        assert!(o["tasks"][1]["failed"].is_null());
        let kills = u64::from(why == "killed");
        assert_eq!(o["counters"]["oom_kill"], kills, "{why}");
    }
    // What fits on it does.
    fs::write(
        &file,
        on_64_mib("{ create = { on = \"tmp\", size = \"8 MiB\" } }"),
    )
    .unwrap();
    let o = json(&["simulate", path, "--json", "--no-oom-killer"]);
    assert_eq!(o["programs"]["failures"].as_object().unwrap().len(), 0);
    assert_eq!(o["memory"]["anon"], 2048);
}

#[test]
fn what_takes_no_time_comes_to_the_limit() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("s.toml");
    let many = "1000000000000000000";
    for steps in [
        format!("{{ repeat = {{ times = {many}, steps = [{{ compute = \"0 ms\" }}] }} }}"),
        format!("{{ grow = {{ size = \"4 KiB\" }} }}, {{ touch = {{ times = {many} }} }}"),
        "{ repeat = { for = \"1 h\", steps = [{ line = \"x\" }] } }".to_owned(),
    ] {
        fs::write(&file, on_64_mib(&steps)).unwrap();
        let shown = stdout(&["simulate", file.to_str().unwrap()]);
        assert!(shown.contains("time-limit after 10.000 s"), "{shown}");
        let words = |l: &str| l.split_whitespace().collect::<Vec<_>>().join(" ");
        let calm = shown
            .lines()
            .map(words)
            .any(|l| l.starts_with("calm done 1 "));
        assert!(calm, "{shown}");
    }
}

#[test]
fn a_page_never_takes_the_place_of_the_scenario() {
    let dir = tempdir().unwrap();
    let (file, link) = (dir.path().join("s.toml"), dir.path().join("s.html"));
    let content = on_64_mib("\"exit\"");
    fs::write(&file, &content).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for to in [&file, &link] {
        let args = [
            "simulate",
            file.to_str().unwrap(),
            "--html",
            to.to_str().unwrap(),
        ];
        fails(
            &args,
            2,
            &["is the file that is read", "write to another one"],
        );
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
}

#[test]
fn a_page_that_cannot_be_written_is_named() {
    fails(
        &["simulate", SMALL, "--html", "no/such/dir/run.html"],
        1,
        &["no/such/dir/run.html"],
    );
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    fails(&["simulate", "no.toml"], 1, &["no.toml", "check the path"]);
    fails(&["simulate", "/"], 1, &["name a file, not a directory"]);
    fails(
        &["simulate", SMALL, "--kernel", "2.4"],
        1,
        &["2.4", "2.6.14"],
    );
    let set = |value| ["simulate", SMALL, "--set", value];
    fails(&set("vm.zone_reclaim_mode=1"), 2, &["vm.min_free_kbytes"]);
    fails(
        &["simulate", SMALL, "--machine", "large"],
        1,
        &["large", "small"],
    );
    fails(
        &["experiment", "atomic", "--kernel", "3.0"],
        1,
        &["3.0", "2.6.31"],
    );
    fails(
        &["experiment", "atomic", "--machine", "arm"],
        1,
        &["arm", "x86-64"],
    );
    fails(&["experiment", "speed"], 2, &["highorder"]);
    fails(
        &["experiment", "one-time", "--machine", "2TiB"],
        1,
        &["2TiB", "32GiB"],
    );
    fails(
        &["experiment", "one-time", "--costs", "none.toml"],
        1,
        &["none.toml", "unfrag calibrate"],
    );
    fails(
        &["experiment", "one-time", "--costs", SMALL],
        1,
        &["small-build.toml"],
    );
}
