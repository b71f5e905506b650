//! Faults: disks that stall and fail, full swap, tasks killed at any time, owners that answer Busy. Every
//! frame stays accounted for, and equal runs are equal.

use unfrag_machine::scenario::Outcome;
use unfrag_machine::{Ended, Rng};

const SCENARIO: &str = r#"
name = "faults"
limit = "1 h"

[[machine]]
name = "pc"
layout = "x86-32"
memory = "48 MiB"
cpus = 2
hz = 250
owners-busy = [1, 20]

[[machine.disk]]
name = "sda"
size = "40 GiB"

[[machine.disk.fault]]
kind = "stall"
from = "3 s"
to = "5 s"

[[machine.disk.fault]]
kind = "fail"
from = "8 s"
to = "9 s"
at = "0 B"
size = "40 GiB"

[[machine.crypt]]
name = "secret"
disk = "sda"

[machine.swap]
device = "secret"
at = "20 GiB"
size = "SWAP"

[[machine.file-system]]
name = "home"
kind = "ext3"
device = "secret"
size = "4 GiB"

[[machine.file-system]]
name = "tmp"
kind = "tmpfs"
size = "128 MiB"

[[machine.file-system]]
name = "image"
kind = "ext2"
image-in = "tmp"
size = "64 MiB"

[trees.src]
on = "home"
dirs = 8
files = 500
sizes = [["4 KiB", 60], ["12 KiB", 30], ["64 KiB", 10]]

[files.music]
on = "home"
size = "4 KiB"

[images.cc]
on = "home"
text = "2 MiB"
data = "100 KiB"
used = 50
areas = 8

[programs.make]
steps = [{ exec = "cc" }, { parallel = { jobs = 120, at-most = 4, program = "job" } }]

[programs.job]
steps = [
  { exec = "cc" },
  { read = { file = { tree = "src", pick = "random", files = 8 } } },
  { read = { file = { tree = "src", pick = "random" }, mapped = true } },
  { grow = { size = { from = "6 MiB", to = "20 MiB" } } },
  { touch = { each = "10 us" } },
  { fork = { program = "child" } },
  { touch = { pattern = "random", each = "5 us" } },
  { create = { tree = "src", size = { from = "4 KiB", to = "40 KiB" } } },
]

[programs.child]
steps = [{ touch = { size = "512 KiB" } }, { kmalloc = { size = "2 KiB", count = 50, keep = "k" } }]

[programs.temporary]
steps = [{ repeat = { times = 4, steps = [
  { unpack = { like = "src", name = "t", on = "tmp" } },
  { copy-tree = { from = "t", name = "i", on = "image" } },
  { read-tree = { tree = "i" } },
  { remove-tree = "t" },
  { remove-tree = "i" },
] } }]

[programs.player]
steps = [{ receive = { size = "8 MiB", rate = "800 kB/s", order = 2, file = "music" } }]

[programs.compacts]
steps = [{ repeat = { times = 600, steps = [{ sleep = "100 ms" }, "compact-memory"] } }]

[[task]]
program = "make"
[[task]]
program = "temporary"
[[task]]
program = "player"
priority = "realtime"
[[task]]
program = "compacts"
background = true
"#;

/// Runs with kills at random times.
fn run(kernel: &str, swap: &str, seed: u64) -> Outcome {
    println!("{kernel}, swap of {swap}, seed {seed}");
    let text = SCENARIO.replace("SWAP", swap);
    let mut run = crate::support::start("faults.toml", &text, kernel, seed);
    let mut rng = Rng::named(seed, "kills");
    let mut now = 0;
    let ended = loop {
        now += rng.range(1_000_000..400_000_000);
        match run.engine.run(now) {
            Ended::TimeLimit if now < 3_600_000_000_000 => {}
            ended => break ended,
        }
        let sim = run.engine.sim();
        // Pages in the hands of tasks between their allocation and their use: few for each.
        sim.check(400)
            .unwrap_or_else(|e| panic!("at {now} ns: {e}"));
        let tasks: Vec<_> = sim
            .kernel_ref()
            .procs
            .iter()
            .filter_map(|(_, p)| p.task)
            .collect();
        // The tasks of the scenario are spared, so that the work goes on.
        if tasks.len() > 4 {
            let victim = tasks[4 + rng.below(tasks.len() as u64 - 4) as usize];
            sim.kill(victim);
        }
    };
    assert_eq!(ended, Ended::Finished, "at {now} ns");
    let account = run
        .engine
        .sim()
        .check(0)
        .unwrap_or_else(|e| panic!("at the end: {e}"));
    assert_eq!(account.anon, 0, "processes are gone, their pages too");
    let o = run.finish(|_| ());
    assert!(
        o.programs.failures.get("killed").is_some_and(|n| *n > 3),
        "{:?}",
        o.programs.failures
    );
    o
}

/// Runs with several seeds; faults must have happened.
fn survive(kernel: &str, swap: &str, seeds: std::ops::Range<u64>) {
    let mut sum = [0; 5];
    for seed in seeds {
        let o = run(kernel, swap, seed);
        let c = |name: &str| o.counters[name];
        let errors = c("read_errors") + c("write_errors");
        let moved = c("pgmigrate_success");
        for (s, n) in sum
            .iter_mut()
            .zip([c("pswpout"), c("pswpin"), c("pgpgin"), errors, moved])
        {
            *s += n;
        }
    }
    let [out, back, read, errors, moved] = sum;
    assert!(
        out > 500 && back > 0 && read > 1000 && errors > 0,
        "{kernel}: {sum:?}"
    );
    let compacts = unfrag_eras::preset(kernel).is_some_and(|p| p.rules.compact.is_some());
    assert_eq!(moved > 1000, compacts, "{kernel}: {moved} pages moved");
}

#[test]
fn frames_are_accounted_for_with_faults() {
    for kernel in [
        "2.6.14", "2.6.24", "2.6.30", "2.6.31", "2.6.32", "2.6.36", "6.1", "6.18",
    ] {
        survive(kernel, "256 MiB", 0..2);
    }
}

#[test]
fn a_full_swap_loses_nothing() {
    for kernel in ["2.6.30", "2.6.32", "6.1"] {
        survive(kernel, "12 MiB", 7..9);
    }
}

#[test]
fn equal_faults_give_equal_runs() {
    assert_eq!(run("2.6.32", "64 MiB", 3), run("2.6.32", "64 MiB", 3));
}
