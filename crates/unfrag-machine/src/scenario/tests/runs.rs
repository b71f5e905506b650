//! Runs and their outcomes.

use super::super::{Outcome, Progress, Scenario};
use super::{SMALL, desk_alone, kernel, small};
use crate::Calibration;
use crate::engine::{MS, SEC};

fn run(s: &Scenario, machine: Option<&str>, seed: u64) -> Outcome {
    let machine = s.machine(machine).unwrap();
    let run = s.start(machine, &kernel("2.6.31"), &Calibration::standard(), seed);
    run.unwrap().finish(|_| ())
}

#[test]
fn run_ends_with_the_last_foreground_task() {
    let o = run(&small(), None, 1);
    assert_eq!(
        (o.ended, o.scenario.as_str(), o.kernel.as_str()),
        ("finished", "small", "2.6.31")
    );
    assert_eq!((o.machine.as_str(), o.seed), ("desk", 1));
    assert_eq!(
        o.calibration,
        format!("{:016x}", Calibration::standard().hash)
    );
    let tasks: Vec<_> = o
        .tasks
        .iter()
        .map(|t| (t.name.as_str(), t.number))
        .collect();
    assert_eq!(
        tasks,
        [("work", 0), ("work", 1), ("player", 0), ("forever", 0)]
    );
    let started: Vec<_> = o.tasks.iter().filter_map(|t| t.started_ns).collect();
    let begins = [20 * MS, 20 * MS, 0, 0];
    // At once or after a turn of another, and a switch.
    for (at, begin) in started.iter().zip(begins) {
        assert!((begin..begin + 2 * MS).contains(at), "{started:?}");
    }
    assert_eq!(o.tasks[0].user_ns, 450 * MS);
    assert_eq!(o.tasks[3].ended_ns, None);
    let ends = o.tasks.iter().filter_map(|t| t.ended_ns).max();
    assert_eq!(ends, Some(o.elapsed_ns));
    // Realtime: 4 ms of sleep, and its work at once, but for the making and the end of its process.
    let player = o.tasks[2].ended_ns.unwrap();
    assert!((5 * MS..5 * MS + MS / 5).contains(&player), "{player}");
    // Three tasks on two CPUs, for 600 to 700 ms.
    assert!(
        (600 * MS..800 * MS).contains(&o.elapsed_ns),
        "{}",
        o.elapsed_ns
    );
}

#[test]
fn samples_are_equidistant_and_add_up() {
    let s = small();
    let o = run(&s, Some("old"), 1);
    let times: Vec<_> = o.samples.iter().map(|s| s.at_ns).collect();
    let (last, regular) = times.split_last().unwrap();
    assert_eq!(*last, o.elapsed_ns);
    assert!(
        regular
            .iter()
            .enumerate()
            .all(|(i, &at)| at == i as u64 * 100 * MS)
    );
    let config =
        s.machine(Some("old"))
            .unwrap()
            .config(&kernel("2.6.31"), &Calibration::standard(), 1);
    let managed: u64 = config.zones.iter().map(|z| z.managed).sum();
    for s in &o.samples {
        let m = &s.memory;
        let sum = m.free
            + m.anon
            + m.file
            + m.page_tables
            + m.stacks
            + m.slab
            + m.network
            + m.pinned
            + m.other;
        assert_eq!(sum, managed);
        let blocks = s.free_blocks.iter().flat_map(|z| z.iter().enumerate());
        assert!(blocks.map(|(order, n)| n << order).sum::<u64>() <= m.free);
        let c = &s.cpu;
        let all = c.user_ns + c.system_ns + c.irq_ns + c.switching_ns + c.iowait_ns + c.idle_ns;
        assert!(all.abs_diff(s.at_ns) < MS / 10, "{all} of {}", s.at_ns);
    }
    assert_eq!(o.memory, o.samples.last().unwrap().memory);
}

#[test]
fn outcome_is_reproducible_and_json() {
    let s = small();
    let one = run(&s, None, 1);
    assert_eq!(one, run(&s, None, 1));
    let json = serde_json::to_value(&one).unwrap();
    assert_eq!(json["tasks"][2]["name"], "player");
    assert_eq!(json["samples"][0]["memory"]["anon"], 0);
    assert!(json["devices"]["sda"]["reads"].is_u64());
    assert!(json["counters"]["pgfault"].is_u64());
}

#[test]
fn run_ends_at_its_limit_with_progress() {
    let short = SMALL.replace("limit = \"10 s\"", "limit = \"250 ms\"");
    let s: Scenario = Scenario::parse("s.toml", &short).unwrap();
    let machine = s.machine(None).unwrap();
    let run = s.start(machine, &kernel("2.6.31"), &Calibration::standard(), 1);
    let mut told = vec![];
    let o = run.unwrap().finish(|p| told.push(p));
    assert_eq!((o.ended, o.elapsed_ns), ("time-limit", 250 * MS));
    let at = |now, awaited| Progress {
        now,
        limit: 250 * MS,
        awaited,
    };
    assert_eq!(told, [at(100 * MS, 2), at(200 * MS, 2)]);
    assert_eq!(o.tasks[0].ended_ns, None);
    assert!(SEC > o.elapsed_ns);
}

#[test]
fn program_can_write_a_backing_file() {
    let pages = |written: &str| {
        let step = format!("{{ write = {{ file = \"image\", size = \"{written}\" }} }}, ");
        let text = desk_alone().replace("steps = [{ sleep", &format!("steps = [{step}{{ sleep"));
        assert!(text.contains(&step));
        let o = run(&Scenario::parse("s.toml", &text).unwrap(), None, 1);
        assert!(o.programs.failures.is_empty(), "{:?}", o.programs.failures);
        // Pages of tmpfs are on the anonymous lists, and stay when their writer has ended.
        o.memory.anon
    };
    assert_eq!(pages("24 MiB") - pages("8 MiB"), 16 << 8);
}
