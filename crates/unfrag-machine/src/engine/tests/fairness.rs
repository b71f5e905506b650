//! How the CPUs are shared.

use super::{Log, config, free_machine};
use crate::engine::{Channel, MS, Priority, SEC, Spec, TaskId, US};
use crate::kernel::Engine;

fn hogs(m: &mut Engine, n: usize) -> Vec<TaskId> {
    (0..n)
        .map(|_| {
            m.spawn(Spec::new("hog"), |cx| {
                loop {
                    cx.spend(700 * US);
                }
            })
        })
        .collect()
}

fn shares(m: &mut Engine, tasks: &[TaskId]) -> Vec<u64> {
    let sim = m.sim();
    tasks
        .iter()
        .map(|&t| sim.task_times(t).unwrap().user)
        .collect()
}

#[test]
fn equal_tasks_get_equal_time() {
    for (cpus, n) in [(1, 3), (2, 4), (2, 3), (4, 7), (3, 10)] {
        let mut m = free_machine(cpus);
        let tasks = hogs(&mut m, n);
        m.run(2 * SEC);
        let fair = 2 * SEC * cpus as u64 / n as u64;
        for got in shares(&mut m, &tasks) {
            let off = got.abs_diff(fair) * 100 / fair;
            assert!(
                off <= 4,
                "{n} tasks on {cpus} CPUs: {got} instead of {fair}"
            );
        }
    }
}

#[test]
fn time_slice_lasts_a_quantum() {
    let mut m = free_machine(1);
    hogs(&mut m, 2);
    m.run(100 * MS);
    // 100 µs each.
    assert_eq!(m.sim().switches(), 1000);
    let mut m = free_machine(1);
    hogs(&mut m, 1);
    m.run(100 * MS);
    assert_eq!(m.sim().switches(), 1);
}

#[test]
fn all_cpu_time_is_accounted_for() {
    let mut config = config(2);
    config.costs.context_switch = 2_000;
    let mut m = Engine::new(&config).unwrap();
    let tasks = hogs(&mut m, 6);
    m.run(SEC);
    let mut user = 0;
    let mut switching = 0;
    for cpu in 0..2 {
        let times = m.sim().cpu_times(cpu);
        assert!(times.total().abs_diff(SEC) <= 2_000, "{times:?}");
        user += times.user;
        switching += times.switching;
    }
    assert_eq!(shares(&mut m, &tasks).iter().sum::<u64>(), user);
    assert_eq!(switching, m.sim().switches() * 2_000);
    // A quantum of 100 µs and a switch of 2 take turns.
    assert!((user * 2).abs_diff(switching * 100) <= user / 50);
}

#[test]
fn sleeper_runs_first() {
    let mut m = free_machine(1);
    hogs(&mut m, 8);
    let log = Log::default();
    let told = log.clone();
    m.spawn(Spec::new("sleeper"), move |cx| {
        for _ in 0..100 {
            cx.sleep(5 * MS);
            let woken = cx.now();
            cx.spend(10 * US);
            told.note(cx.now() - woken, "late");
            assert!(woken % (100 * US) == 0 || woken > 0);
        }
    });
    m.run(2 * SEC);
    let late = log.taken();
    assert_eq!(late.len(), 100);
    assert!(late.iter().all(|l| l.0 <= 110 * US), "{late:?}");
}

#[test]
fn ping_pong_does_not_starve_a_third_task() {
    let mut m = free_machine(1);
    let hog = hogs(&mut m, 1);
    let (ping, pong) = (Channel::new(300, 0), Channel::new(300, 1));
    for (mine, other) in [(ping, pong), (pong, ping)] {
        m.spawn(Spec::new("player"), move |cx| {
            loop {
                cx.spend(5 * US);
                cx.with(|sim| sim.wake(other));
                cx.wait(mine, Some(40 * MS));
            }
        });
    }
    m.run(SEC);
    let got = shares(&mut m, &hog)[0];
    assert!(got > SEC / 4, "the hog had {got} ns of a second");
}

#[test]
fn realtime_preempts_at_once() {
    let mut m = free_machine(2);
    hogs(&mut m, 5);
    m.spawn(Spec::new("audio").priority(Priority::Realtime), |cx| {
        for i in 1..=50 {
            cx.sleep(MS + 333);
            assert_eq!(cx.now(), i * (MS + 333) + (i - 1) * 1000);
            cx.spend(1000);
        }
    });
    m.run(200 * MS);
}

#[test]
fn a_bound_task_stays_on_its_cpu() {
    let mut m = free_machine(2);
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            m.spawn(Spec::new("bound").on(1), |cx| {
                loop {
                    cx.spend(50 * US);
                    assert_eq!(cx.with(|sim| sim.cpu()), 1);
                }
            })
        })
        .collect();
    m.run(300 * MS);
    for got in shares(&mut m, &tasks) {
        assert!(got.abs_diff(100 * MS) <= 200 * US, "{got}");
    }
    assert_eq!(m.sim().cpu_times(0).idle, 300 * MS);
}

#[test]
fn idle_cpu_steals_a_waiting_task() {
    let mut m = free_machine(2);
    for (cpu, ms) in [(0, 50), (1, 10)] {
        let spec = Spec::new("audio").priority(Priority::Realtime).on(cpu);
        m.spawn(spec, move |cx| cx.spend(ms * MS));
    }
    let log = Log::default();
    let told = log.clone();
    m.spawn(Spec::new("waits"), move |cx| {
        told.note(cx.now(), "runs");
        assert_eq!(cx.with(|sim| sim.cpu()), 1);
    });
    m.run(SEC);
    assert_eq!(log.taken(), [(10 * MS, "runs")]);
}

#[test]
fn yield_goes_behind_the_others() {
    let mut m = free_machine(1);
    let log = Log::default();
    for name in ["a", "b", "c"] {
        let log = log.clone();
        m.spawn(Spec::new(name), move |cx| {
            for _ in 0..2 {
                cx.spend(US);
                log.note(0, name);
                cx.yield_now();
            }
        });
    }
    m.run(SEC);
    let order: Vec<_> = log.taken().iter().map(|n| n.1).collect();
    assert_eq!(order, ["a", "b", "c", "a", "b", "c"]);
}
