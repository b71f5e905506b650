use crate::Calibration;
use crate::engine::{MS, SEC};
use crate::mm::frames::Use;
use crate::scenario::{Kernel, Outcome, Scenario};

const MACHINE: &str = r#"
name = "test"
limit = "1 h"

[[machine]]
name = "pc"
layout = "x86-32"
memory = "128 MiB"
cpus = 2
hz = 250

[[machine.disk]]
name = "sda"
size = "40 GiB"

[machine.swap]
device = "sda"
at = "20 GiB"
size = "1 GiB"

[[machine.file-system]]
name = "home"
kind = "ext3"
device = "sda"
size = "8 GiB"

[[machine.file-system]]
name = "tmp"
kind = "tmpfs"
size = "256 MiB"

[trees.src]
on = "home"
dirs = 20
files = 400
sizes = [["4 KiB", 60], ["12 KiB", 30], ["64 KiB", 10]]

[files.log]
on = "home"
size = "2 MiB"

[images.sh]
on = "home"
text = "600 KiB"
data = "40 KiB"
used = 60
libraries = ["libc"]
areas = 6

[images.libc]
on = "home"
text = "1.25 MiB"
used = 25

[images.cc]
on = "home"
text = "6 MiB"
data = "300 KiB"
used = 50
libraries = ["libc"]
areas = 10
"#;

fn parse(programs: &str) -> Result<Scenario, String> {
    Scenario::parse("test.toml", &format!("{MACHINE}\n{programs}")).map_err(|e| e.to_string())
}

/// Runs a scenario to its end; everything must be accounted for afterwards.
fn run_on(kernel: &str, programs: &str, seed: u64) -> Outcome {
    let s = parse(programs).unwrap();
    let kernel = Kernel::preset(kernel).unwrap();
    let machine = s.machine(None).unwrap();
    let mut run = s
        .start(machine, &kernel, &Calibration::standard(), seed)
        .unwrap();
    let ended = run.engine.run(3600 * SEC);
    assert_eq!(
        ended,
        crate::Ended::Finished,
        "at {} ms",
        run.engine.sim().now() / MS
    );
    let account = run.engine.sim().check(16).unwrap();
    assert_eq!((account.anon, account.kernel[Use::Pinned as usize]), (0, 0));
    run.finish(|_| ())
}

fn run(programs: &str) -> Outcome {
    run_on("2.6.32", programs, 1)
}

#[test]
fn a_build_runs_its_jobs_and_leaves_its_outputs() {
    let o = run(r#"
[programs.make]
steps = [
  { exec = "sh" },
  { parallel = { jobs = 40, at-most = 3, program = "job" } },
  { line = "done" },
]
[programs.job]
steps = [{ fork = { program = "cc" } }]
[programs.cc]
steps = [
  { exec = "cc" },
  { read = { file = { tree = "src" } } },
  { read = { file = { tree = "src", pick = "popular", files = 20 } } },
  { grow = { size = { from = "2 MiB", to = "6 MiB" } } },
  { touch = { each = "5 us" } },
  { touch = { pattern = "random", times = 2, each = "5 us" } },
  { compute = { from = "20 ms", to = "60 ms" } },
  { create = { tree = "src", size = { one-of = [["4 KiB", 1], ["40 KiB", 2]] } } },
]
[[task]]
program = "make"
"#);
    // The task, and two for each job.
    assert_eq!(o.programs.processes, 81);
    assert!(o.programs.failures.is_empty(), "{:?}", o.programs.failures);
    assert_eq!(o.programs.lines.len(), 1);
    assert!(o.counters["pgfault"] > 40 * 500);
    // 40 jobs of 40 ms and more on two CPUs.
    assert!(
        (SEC..20 * SEC).contains(&o.elapsed_ns),
        "{} ms",
        o.elapsed_ns / MS
    );
}

#[test]
fn reuse_costs_no_faults_and_no_user_time() {
    let with = |pattern: &str| {
        run(&format!(
            r#"
[programs.work]
steps = [{{ grow = {{ size = "4 MiB" }} }}, {{ touch = {{ each = "5 us", pattern = {pattern} }} }}]
[[task]]
program = "work"
"#
        ))
    };
    let (once, again) = (
        with("\"sequential\""),
        with("{ reuse = { hot = 75, others = 10 } }"),
    );
    assert!(again.programs.failures.is_empty());
    assert_eq!(once.counters["pgfault"], again.counters["pgfault"]);
    assert_eq!(once.tasks[0].user_ns, again.tasks[0].user_ns);
    assert!(once.tasks[0].user_ns >= 1024 * 5000);
}

#[test]
fn equal_seeds_are_equal_runs_and_others_differ() {
    let programs = r#"
[programs.work]
steps = [
  { exec = "cc" },
  { grow = { size = { from = "1 MiB", to = "30 MiB" } } },
  { touch = { pattern = "random", each = "1 us" } },
  { read = { file = { tree = "src", pick = "random", files = 50 } } },
]
[[task]]
program = "work"
count = 6
"#;
    let a = run_on("2.6.30", programs, 5);
    assert_eq!(a, run_on("2.6.30", programs, 5));
    assert_ne!(a.trace_hash, run_on("2.6.30", programs, 6).trace_hash);
}

#[test]
fn trees_are_unpacked_copied_walked_and_removed() {
    let o = run(r#"
[programs.work]
steps = [
  { unpack = { archive = "log", like = "src", name = "a{number}", on = "tmp", each = "2 us" } },
  { copy-tree = { from = "a{number}", name = "b{number}", on = "home" } },
  { walk = "b{number}" },
  { read-tree = { tree = "b{number}" } },
  { remove-tree = "a{number}" },
  { remove-tree = "b{number}" },
  "sync",
]
[[task]]
program = "work"
count = 2
"#);
    assert!(o.programs.failures.is_empty(), "{:?}", o.programs.failures);
    assert_eq!(o.memory.dirty, 0);
}

#[test]
fn area_is_touched_part_by_part() {
    let faults = |next: bool, times: u32| {
        let o = run(&format!(
            r#"
[programs.work]
steps = [
  {{ exec = "cc" }},
  {{ grow = {{ size = "4 MiB" }} }},
  {{ repeat = {{ times = {times}, steps = [{{ touch = {{ size = "1 MiB", next = {next} }} }}] }} }},
]
[[task]]
program = "work"
"#
        ));
        o.counters["pgfault"]
    };
    let pages = 256;
    let first = faults(false, 1);
    assert_eq!(faults(false, 4), first);
    assert_eq!(faults(true, 1), first);
    assert_eq!(faults(true, 4), first + 3 * pages);
    assert_eq!(faults(true, 9), first + 3 * pages);
}

#[test]
// `spec: 8.1`
fn high_order_attempts_are_timed_and_freed() {
    let o = run(r#"
[programs.module]
steps = [
  { high-order = { name = "load", order = 10, attempts = 12, every = "100 ms", high = true } },
  { high-order = { name = "again", order = 10, attempts = 12, every = "100 ms", high = true } },
]
[[task]]
program = "module"
"#);
    let [load, again] = &o.programs.high_order[..] else {
        panic!("{:?}", o.programs.high_order)
    };
    assert_eq!((load.attempts.len(), load.order), (12, 10));
    let times: Vec<_> = load.attempts.iter().map(|a| a.at_ns / MS).collect();
    assert!(times.windows(2).all(|w| w[1] - w[0] >= 99), "{times:?}");
    assert!(load.successes() > 6 && load.percent() <= 100, "{load:?}");
    assert_eq!(
        again.successes(),
        load.successes(),
        "the first ones were freed"
    );
    assert!(
        load.attempts
            .iter()
            .flat_map(|a| a.zone)
            .all(|z| z == "Normal" || z == "DMA")
    );
}

#[test]
fn barrier_flag_and_kill() {
    let o = run(r#"
[programs.slow]
steps = [{ sleep = "300 ms" }, { barrier = { name = "start", parties = 2 } }, { line = "met" },
         { sleep = "1 s" }, { set = "over" }, { kill = "endless" }]
[programs.fast]
steps = [{ barrier = { name = "start", parties = 2 } }, { line = "met" },
         { repeat = { until = "over", steps = [{ compute = "10 ms" }, { sleep = "10 ms" }] } }, { line = "told" }]
[programs.endless]
steps = [{ fork = { program = "forever", wait = false } }, { grow = { size = "1 MiB" } },
         { repeat = { for = "1 h", steps = [{ touch = {} }, { sleep = "5 ms" }] } }]
[programs.forever]
steps = [{ sleep = "1 h" }]
[[task]]
program = "slow"
[[task]]
program = "fast"
[[task]]
program = "endless"
"#);
    let lines: Vec<_> = o
        .programs
        .lines
        .iter()
        .map(|l| (l.task.as_str(), l.at_ns / (100 * MS)))
        .collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines.contains(&("slow", 3))
            && lines.contains(&("fast", 3))
            && lines.contains(&("fast", 13))
    );
    assert!(o.elapsed_ns < 2 * SEC);
    assert_eq!(o.programs.failures["killed"], 2);
}

#[test]
fn a_paced_stream_is_written_as_it_comes() {
    let o = run(r#"
[programs.player]
steps = [{ receive = { size = "1 MiB", rate = "500 kB/s", order = 2, file = "log", line = "chunk" } }]
[[task]]
program = "player"
"#);
    let lines = &o.programs.lines;
    assert!(
        (30..36).contains(&lines.len()),
        "{} lines of 32 KiB",
        lines.len()
    );
    let seconds = o.elapsed_ns as f64 / SEC as f64;
    assert!((2.0..2.3).contains(&seconds), "{seconds}");
}

#[test]
fn kept_objects_are_freed_at_exit() {
    let o = run(r#"
[programs.work]
steps = [
  { kmalloc = { cache = "dentry", count = 5000, keep = "d" } },
  { kmalloc = { size = "2 KiB", count = 500, keep = "k" } },
  { record = "full" },
  { kfree = "d" },
  { kmalloc = { cache = "names_cache", count = 1000, rights = "atomic" } },
  { churn = { on = "home", files = 50, size = "8 KiB" } },
]
[[task]]
program = "work"
"#);
    assert_eq!(o.programs.marks.len(), 1);
    assert!(o.programs.failures.is_empty());
}

#[test]
fn out_of_memory_kills_processes_only() {
    for kernel in [
        "2.6.14", "v19", "2.6.24", "2.6.30", "2.6.31", "2.6.32", "2.6.36",
    ] {
        let o = run_on(
            kernel,
            r#"
[programs.hog]
steps = [{ exec = "cc" }, { grow = { size = "400 MiB" } },
         { repeat = { times = 3, steps = [{ touch = {} }] } }]
[[task]]
program = "hog"
count = 5
"#,
            3,
        );
        assert!(
            !o.programs.failures.is_empty() && o.programs.processes == 5,
            "{kernel}: {:?} {:?}",
            o.programs.failures,
            o.counters
        );
    }
}

#[test]
fn unknown_names_are_reported_with_their_step() {
    let tell = |step: &str| {
        let text = format!(
            "[programs.p]\nsteps = [{{ compute = \"1 ms\" }}, {step}]\n[[task]]\nprogram = \"p\""
        );
        parse(&text).err().unwrap_or_default()
    };
    let e = tell("{ walk = \"scr\" }");
    assert!(e.contains("there is no tree `scr`\n"), "{e}");
    // The name in the second step of the line.
    assert!(
        e.contains("[{ compute = \"1 ms\" }, { walk = \"scr\" }]\n"),
        "{e}"
    );
    assert!(e.contains(&format!("{}^^^^^\n", " ".repeat(40))), "{e}");
    assert!(e.ends_with("help: there are: src"), "{e}");
    let e = tell("{ exec = \"gcc\" }");
    assert!(
        e.contains("no image `gcc`\n") && e.ends_with("there are: cc, libc, sh"),
        "{e}"
    );
    assert!(tell("{ fork = { program = \"q\" } }").contains("no program `q`"));
    assert!(tell("{ write = { file = \"x\", size = \"1 B\" } }").contains("no file `x`\n"));
    assert!(tell("{ churn = { on = \"usr\", files = 1 } }").contains("no file system `usr`"));
    assert!(tell("{ repeat = { steps = [\"wait\"] } }").contains("give `times`, `for` or `until`"));
    assert!(tell("{ repeat = { times = 1, steps = [{ walk = \"y\" }] } }").contains("no tree `y`"));
    assert!(tell("{ kmalloc = { size = \"1 MiB\" } }").contains("1 B to 4 KiB"));
    assert!(tell("{ kmalloc = { cache = \"inodes\" } }").contains("no slab cache `inodes`"));
    // Names that would do nothing if they were not checked.
    assert!(tell("{ touch = { area = \"hepa\" } }").contains("no area `hepa`"));
    assert!(tell("{ unmap = \"hepa\" }").contains("no area `hepa`"));
    assert!(tell("{ kfree = \"them\" }").contains("no kept object `them`"));
    assert!(tell("{ kill = \"nobody\" }").contains("no task `nobody`"));
    assert!(
        tell("{ repeat = { until = \"dnoe\", steps = [\"wait\"] } }")
            .contains("no `set` of `dnoe`")
    );
    assert!(tell("{ jump = 3 }").contains("unknown variant"));
    assert_eq!(tell("{ walk = \"src\" }"), "");
}

/// A source of profiles with one program.
struct One(super::recorded::Behaviour);

impl super::recorded::Profiles for One {
    fn behaviour(
        &self,
        profile: &str,
        program: Option<&str>,
    ) -> Result<super::recorded::Behaviour, (String, String)> {
        match (profile, program) {
            ("made", Some("cc1")) => Ok(self.0.clone()),
            _ => Err((
                format!("there is no profile `{profile}`"),
                "there is: made".into(),
            )),
        }
    }
}

#[test]
fn recorded_steps_reproduce_the_totals() {
    use super::recorded::{Behaviour, Quantiles};
    let cc1 = Behaviour {
        anonymous: Quantiles::new(150, 260, 420, 2200, 281),
        tenths: [24, 42, 55, 65, 74, 81, 87, 93, 97, 99],
        cpu: Quantiles::new(2_600_000, 8_000_000, 25_600_000, 320_000_000, 12_300_000),
        read: Quantiles::new(1, 2, 12, 250, 8),
        written: Quantiles::new(2, 2, 3, 1296, 4),
    };
    let text = |step: &str| {
        format!(
            "{MACHINE}\n[programs.make]\nsteps = [{{ parallel = {{ jobs = 400, at-most = 4, program = \"cc1\" }} }}]\n\
             [programs.cc1]\nsteps = [{step}]\n[[task]]\nprogram = \"make\"\n"
        )
    };
    let run = |step: &str| {
        let s = Scenario::parse_with("test.toml", &text(step), &One(cc1.clone()));
        let s = s.unwrap_or_else(|e| panic!("{e}"));
        let machine = s.machine(None).unwrap();
        let kernel = s.kernel(Some("6.1")).unwrap();
        let run = s.start(machine, &kernel, &Calibration::standard(), 1);
        let o = run.unwrap().finish(|_| ());
        assert_eq!(o.ended, "finished");
        assert!(o.programs.failures.is_empty(), "{:?}", o.programs.failures);
        o
    };
    let none = run("{ compute = \"1 us\" }");
    let all = run(
        "{ recorded = { profile = \"made\", program = \"cc1\", reads = \"src\", writes = \"src\" } }",
    );
    let half = run(
        "{ recorded = { profile = \"made\", program = \"cc1\", memory-percent = 50, cpu-percent = 200 } }",
    );
    // With 400 processes the mean of their memory is within 12 % for 95 of 100 seeds.
    let faults = |o: &Outcome| (o.counters["pgfault"] - none.counters["pgfault"]) / 400;
    assert!((247..315).contains(&faults(&all)), "{}", faults(&all));
    assert!((123..158).contains(&faults(&half)), "{}", faults(&half));
    let cpu = |o: &Outcome| (o.cpu.user_ns + o.cpu.system_ns) / 400;
    let (once, twice) = (cpu(&all) - cpu(&none), cpu(&half) - cpu(&none));
    assert!((10_400_000..14_400_000).contains(&once), "{once}");
    assert!((20_800_000..28_800_000).contains(&twice), "{twice}");
    let dirtied = |o: &Outcome| o.counters["pgpgout"] + o.memory.dirty;
    assert!(
        dirtied(&all) > dirtied(&half) + 400 * 2,
        "{}",
        dirtied(&all)
    );
    let bad = |step: &str| Scenario::parse_with("test.toml", &text(step), &One(cc1.clone())).err();
    let e = bad("{ recorded = { profile = \"mad\" } }").unwrap();
    assert_eq!(e.message, "there is no profile `mad`");
    assert!(e.place.is_some_and(|p| p.text.contains("recorded")));
    let e =
        bad("{ recorded = { profile = \"made\", program = \"cc1\", cpu-percent = 0 } }").unwrap();
    assert_eq!(e.message, "0 % of what was recorded");
    let e = parse(
        "[programs.a]\nsteps = [{ recorded = { profile = \"made\" } }]\n[[task]]\nprogram = \"a\"",
    )
    .unwrap_err();
    assert!(e.contains("no place is known"), "{e}");
}
