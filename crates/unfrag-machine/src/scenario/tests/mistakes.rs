//! Mistakes in a file, with their places and help.

use super::super::Scenario;
use super::{SMALL, desk_alone, mistake, small};

/// The error after one text of the file is replaced.
fn told(from: &str, to: &str) -> (String, String, Option<String>) {
    assert!(SMALL.contains(from), "{from}");
    let e = mistake(&SMALL.replacen(from, to, 1));
    (e.message, e.place.map_or(String::new(), |p| p.text), e.help)
}

#[test]
fn unknown_names_are_mistakes() {
    let (message, line, help) = told(
        "device = \"crypt\"\nsize = \"1 GiB\"",
        "device = \"sdb\"\nsize = \"1 GiB\"",
    );
    assert_eq!(message, "there is no disk or encrypting layer `sdb`");
    assert_eq!(line, "device = \"sdb\"");
    assert_eq!(help.as_deref(), Some("there are: sda, crypt"));

    let (message, line, help) = told("program = \"work\"", "program = \"works\"");
    assert_eq!(message, "there is no program `works`");
    assert_eq!(line, "program = \"works\"");
    assert_eq!(help.as_deref(), Some("there are: forever, listen, work"));

    let (message, _, help) = told("disk = \"sda\"", "disk = \"crypt\"");
    assert_eq!(message, "there is no disk `crypt`");
    assert_eq!(help.as_deref(), Some("there are: sda"));

    let (message, _, help) = told("fork = \"70 us\"", "forks = \"70 us\"");
    assert_eq!(message, "there is no cost `forks`");
    assert!(help.is_some_and(|h| h.contains("context-switch")));

    let (message, line, help) = told("cost-percent = 250", "cost-percent = 0");
    assert_eq!(message, "the kernel's work takes 0 % of its time");
    assert_eq!(line, "cost-percent = 0");
    assert_eq!(help.as_deref(), Some("give 1 to 10000"));

    let disk = "name = \"sda\"\n";
    let both = format!("{disk}elevator = \"cfq\"\nasync-starved = 4\n");
    let (message, _, help) = told(disk, &both);
    assert_eq!(message, "`async-starved` says nothing to CFQ");
    assert!(help.is_some_and(|h| h.starts_with("leave it out")));

    let (message, line, _) = told("image-in = \"tmp\"", "image-in = \"scratch\"");
    assert_eq!(message, "there is no tmpfs above this one `scratch`");
    assert_eq!(line, "image-in = \"scratch\"");
}

#[test]
fn toml_errors_have_a_line() {
    let (message, line, _) = told("memory = \"512 MiB\"", "memmory = \"512 MiB\"");
    assert!(
        message.starts_with("unknown field `memmory`, expected one of"),
        "{message}"
    );
    assert_eq!(line, "memmory = \"512 MiB\"");
    let (message, line, _) = told("memory = \"512 MiB\"", "memory = 512");
    assert!(
        message.contains("a size with its unit, such as \"512 MiB\""),
        "{message}"
    );
    assert_eq!(line, "memory = 512");
    let (message, line, _) = told("\"50 ms\"", "\"50 days\"");
    assert!(message.starts_with("unknown unit \"days\""), "{message}");
    assert!(line.starts_with("steps = "), "{line}");
    let steps = "steps = [{ compute = \"1 h\" }]";
    for share in ["101", "-1", "99999999999"] {
        let touch =
            format!("{{ touch = {{ pattern = {{ reuse = {{ hot = {share}, others = 10 }} }} }} }}");
        let (message, line, _) = told(steps, &format!("steps = [\n{touch},\n]"));
        let why = format!("{share}: a share is 0 to 100 percent");
        assert_eq!((message, line), (why, format!("{touch},")));
    }
    let (message, ..) = told("kind = \"stall\"", "kind = \"stalls\"");
    assert!(message.contains("stalls"), "{message}");
    let (message, ..) = told("cpus = 2\n", "");
    assert!(message.contains("missing field `cpus`"), "{message}");
    let (message, ..) = told("name = \"small\"", "name = \"small");
    assert!(!message.is_empty());
}

#[test]
fn impossible_numbers_are_mistakes() {
    for (from, to, message, help) in [
        (
            "cpus = 2",
            "cpus = 0",
            "the number of CPUs cannot be 0",
            "give a number from 1 to 256",
        ),
        (
            "hz = 250",
            "hz = 60",
            "no kernel has a timer of 60 Hz",
            "hz is 100, 250, 300 or 1000",
        ),
        (
            "irq-cpu = 1",
            "irq-cpu = 2",
            "the CPU for interrupts cannot be 2",
            "give a number from 0 to 1",
        ),
        (
            "cpu = 0",
            "cpu = 1",
            "the CPU of a task cannot be 1",
            "give a number from 0 to 0",
        ),
        (
            "count = 2",
            "count = 0",
            "the number of tasks cannot be 0",
            "give a number from 1 to 10000",
        ),
        (
            "nr-requests = 64",
            "nr-requests = 8",
            "the number of requests cannot be 8",
            "give a number from 16 to 65536",
        ),
        (
            "memory = \"512 MiB\"",
            "memory = \"20 MiB\"",
            "the kernel leaves nothing of this memory",
            "give the machine 32 MiB or more",
        ),
        (
            "kernel-keeps = \"24 MiB\"",
            "kernel-keeps = \"2 GiB\"",
            "the kernel leaves nothing of this memory",
            "let it keep less of it",
        ),
        (
            "bandwidth = \"60 MB/s\"",
            "bandwidth = \"0 B/s\"",
            "a disk without bandwidth",
            "1 B/s at least",
        ),
        (
            "size = \"160 GiB\"",
            "size = \"1 B\"",
            "too small a disk",
            "1 MiB at least",
        ),
    ] {
        let (m, line, h) = told(from, to);
        assert_eq!((m.as_str(), h.as_deref()), (message, Some(help)));
        assert!(line.contains(to), "{line}");
    }
}

#[test]
fn places_fit_and_do_not_overlap() {
    let (message, line, help) = told("size = \"5 GiB\"", "size = \"60 GiB\"");
    assert_eq!(message, "file system `scratch` does not fit on `crypt`");
    assert_eq!(
        (line.as_str(), help.as_deref()),
        ("size = \"60 GiB\"", Some("the device has 61440 MiB"))
    );
    let to_the_end = SMALL.replacen("size = \"5 GiB\"", "size = \"59 GiB\"", 1);
    assert!(Scenario::parse("s.toml", &to_the_end).is_ok());
    let (message, _, help) = told("at = \"1 GiB\"", "at = \"1023 MiB\"");
    assert_eq!(message, "file system `scratch` lies on swap");
    assert_eq!(
        help.as_deref(),
        Some("swap ends at 1024 MiB of the device; set `at`")
    );
    // On the disk itself, where the layer's swap is too.
    let scratch = "device = \"crypt\"\nat = \"1 GiB\"\nsize = \"5 GiB\"";
    let there = "device = \"sda\"\nat = \"100.5 GiB\"\nsize = \"5 GiB\"";
    assert_eq!(told(scratch, there).0, "file system `scratch` lies on swap");
}

#[test]
fn file_system_has_one_suitable_place() {
    for (from, to, message) in [
        (
            "kind = \"ext3\"\ndevice = \"crypt\"",
            "kind = \"tmpfs\"\ndevice = \"crypt\"",
            "tmpfs is on no device",
        ),
        (
            "device = \"crypt\"\nat = \"1 GiB\"",
            "",
            "file system `scratch` is nowhere",
        ),
        (
            "image-in = \"tmp\"",
            "image-in = \"tmp\"\ndevice = \"sda\"",
            "a file system is in one place",
        ),
        (
            "name = \"tmp\"",
            "name = \"scratch\"",
            "`scratch` is the name of two",
        ),
        (
            "name = \"crypt\"\ndisk",
            "name = \"sda\"\ndisk",
            "`sda` is the name of two",
        ),
        (
            "name = \"old\"",
            "name = \"desk\"",
            "`desk` is the name of two",
        ),
    ] {
        assert_eq!(told(from, to).0, message);
    }
}

#[test]
fn backing_file_name_is_reserved() {
    let message = "`image` is the file that the file system of this name is in";
    let text = desk_alone();
    let e = mistake(&text.replace(
        "[programs.work]",
        "[files.image]\non = \"tmp\"\nsize = \"1 MiB\"\n\n[programs.work]",
    ));
    assert_eq!(e.message, message);
    assert_eq!(e.help.as_deref(), Some("give this one another name"));
    let create =
        "steps = [{ create = { on = \"tmp\", name = \"image\", size = \"1 MiB\" } }, { sleep";
    let e = mistake(&text.replace("steps = [{ sleep", create));
    assert_eq!(e.message, message);
    let e = mistake(&text.replace(
        "steps = [{ sleep",
        "steps = [{ write = { file = \"tmp\", size = \"1 MiB\" } }, { sleep",
    ));
    assert_eq!(e.message, "there is no file `tmp`");
    assert_eq!(e.help.as_deref(), Some("there are: image"));
}

#[test]
fn scenario_needs_machine_task_and_end() {
    let e = mistake(&SMALL.replace("limit = \"10 s\"", "limit = \"0 s\""));
    assert_eq!(
        e.to_string(),
        "s.toml:4:9: this is no time\n 4 | limit = \"0 s\"\n   |         ^^^^^\n help: give one above 0"
    );
    let tasks = SMALL.find("[[task]]").unwrap();
    let e = mistake(&format!(
        "{}task = []\n",
        &SMALL[..SMALL.find("[[machine]]").unwrap()]
    ));
    assert!(e.message.contains("missing field `machine`"), "{e}");
    let e = mistake(&SMALL[..tasks]);
    assert!(e.message.contains("missing field `task`"), "{e}");
    let lonely = format!(
        "{}[[task]]\nprogram = \"work\"\nbackground = true\n",
        &SMALL[..tasks]
    );
    assert_eq!(mistake(&lonely).message, "all tasks are in the background");
    let e = small().machine(Some("laptop")).err().map(|e| e.to_string());
    let shown = "small.toml: there is no machine `laptop`\n help: there are: desk, old";
    assert_eq!(e.as_deref(), Some(shown));
}

#[test]
fn too_many_samples_are_refused() {
    let sample = "sample = \"100 ms\"";
    let (message, line, help) = told(sample, "sample = \"1 ns\"");
    assert!(
        message.starts_with("10000000000 samples until `limit`"),
        "{message}"
    );
    assert_eq!(line, "sample = \"1 ns\"");
    assert_eq!(
        help.as_deref(),
        Some("give `sample = \"1 ms\"` or more, or a shorter `limit`")
    );
    let (message, line, _) = told(sample, "sample = \"0 s\"");
    assert_eq!(message, "this is no time");
    assert_eq!(line, "sample = \"0 s\"");
}

#[test]
fn recursive_program_is_refused() {
    let steps = "steps = [{ compute = \"1 h\" }]";
    let more = "steps = [{ fork = { program = \"again\" } }]\n\n[programs.again]\n\
                steps = [{ repeat = { times = 2, steps = [{ parallel = { jobs = 2, at-most = 1, program = \"forever\" } }] } }]";
    let (message, line, help) = told(steps, more);
    assert_eq!(
        message,
        "program `again` starts itself without end: again > forever > again (on machine `desk`)"
    );
    assert!(line.contains("parallel"), "{line}");
    assert!(help.is_some_and(|h| h.contains("`repeat`")));
}

#[test]
fn swap_of_less_than_a_page_is_no_swap() {
    let swap = SMALL.split_once("[machine.swap]").unwrap().1;
    let size = swap.lines().find(|l| l.starts_with("size")).unwrap();
    for none in ["size = \"0 B\"", "size = \"4095 B\""] {
        let (message, line, help) = told(size, none);
        assert!(message.ends_with("has no room for a page"), "{message}");
        assert_eq!(line, none);
        assert_eq!(help.as_deref(), Some("4 KiB at least"));
    }
}

#[test]
fn offset_needs_a_device() {
    for (kind, name) in [("kind = \"tmpfs\"", "tmp"), ("image-in = \"tmp\"", "image")] {
        let (message, line, help) = told(kind, &format!("{kind}\nat = \"3 MiB\""));
        assert_eq!(message, format!("file system `{name}` is on no device"));
        assert_eq!(line, "at = \"3 MiB\"");
        assert_eq!(help.as_deref(), Some("leave `at` out"));
    }
}

#[test]
fn unknown_name_is_underlined() {
    let underlined = |text: &str| {
        let e = mistake(text);
        let p = e.place.unwrap_or_else(|| panic!("{}", e.message));
        p.text
            .chars()
            .skip(p.column - 1)
            .take(p.width)
            .collect::<String>()
    };
    let text = desk_alone();
    let tree = |on: &str| format!("{text}\n[trees.src]\nfiles = 3\non = \"{on}\"\n\n[files.log]\n");
    let after = "on = \"scratch\"\nsize = \"1 MiB\"\n";
    assert_eq!(underlined(&(tree("scrap") + after)), "\"scrap\"");
    let step = "steps = [{ sleep = \"4 ms\" }, ";
    let with = |steps: &str| text.replacen(step, &format!("{step}{steps}, "), 1);
    let once = "{ exec = \"cc\" }, { repeat = { times = 2, steps = [{ walk = \"srcs\" }] } }";
    let image = "\n[images.cc]\non = \"scratch\"\ntext = \"1 MiB\"\n";
    assert_eq!(underlined(&(with(once) + image)), "\"srcs\"");
    // The name is there twice, so the whole step is marked.
    let twice = "{ create = { tree = \"x\", name = \"x\", size = \"1 KiB\" } }";
    assert_eq!(underlined(&with(twice)), twice);
}

#[test]
fn oversized_file_is_reported_at_its_place() {
    use crate::Calibration;
    let text = desk_alone();
    // Also where the number of its pages has more than 32 bits.
    for size in ["900 GiB", "16 TiB", "15000000 TiB"] {
        let text = format!("{text}\n[files.huge]\non = \"scratch\"\nsize = \"{size}\"\n");
        let s = Scenario::parse("s.toml", &text).unwrap_or_else(|e| panic!("{e}"));
        let machine = s.machine(None).unwrap();
        let kernel = s.kernel(None).unwrap();
        let run = s.start(machine, &kernel, &Calibration::standard(), 1);
        let e = run.err().expect("no room for it");
        assert!(
            e.message.starts_with("file `huge` does not fit"),
            "{}",
            e.message
        );
        assert_eq!(e.place.map(|p| p.text).as_deref(), Some("[files.huge]"));
    }
}

#[test]
fn initial_files_need_a_disk() {
    let text = desk_alone();
    let e = mistake(&format!(
        "{text}\n[files.early]\non = \"tmp\"\nsize = \"4 KiB\"\n"
    ));
    assert_eq!(
        e.message,
        "nothing is on `tmp` before the run: it is in memory"
    );
    assert!(e.help.is_some_and(|h| h.ends_with("on a disk: scratch")));
}

#[test]
fn impossible_steps_are_mistakes() {
    let text = desk_alone();
    for (step, message) in [
        (
            "{ grow = { size = \"1 TiB\" } }",
            "an area of more than 256 GiB",
        ),
        (
            "{ receive = { size = \"1 MiB\", rate = \"1 MB/s\", order = 11 } }",
            "there is no order 11",
        ),
        (
            "{ receive = { size = \"1 MiB\", rate = \"0 MB/s\" } }",
            "a stream of which nothing comes",
        ),
        (
            "{ touch = { area = \"stack\", pattern = { stride = 0 } } }",
            "a stride of no page",
        ),
        (
            "{ repeat = { times = 2, steps = [] } }",
            "nothing is repeated",
        ),
        (
            "{ parallel = { jobs = 2, at-most = 0, program = \"work\" } }",
            "no job at a time",
        ),
    ] {
        let e = mistake(&text.replace("steps = [{ sleep", &format!("steps = [{step}, {{ sleep")));
        assert_eq!(e.message, message);
        assert!(e.help.is_some() && e.place.is_some(), "{step}");
    }
    let tree = format!("{text}\n[trees.all]\non = \"scratch\"\ndirs = 4000000000\n");
    assert!(mistake(&tree).message.starts_with("a tree of more than"));
}

#[test]
fn names_are_printable() {
    for (from, to) in [
        ("name = \"desk\"", "name = \"\""),
        ("name = \"desk\"", "name = \"\\u001b[2J\""),
    ] {
        let (message, _, help) = told(from, to);
        assert!(message.ends_with("cannot be printed"), "{message}");
        assert_eq!(help.as_deref(), Some("give a name of visible characters"));
    }
}
