//! The scheduling policies of each era.

use super::{Log, free_config};
use crate::engine::{Fair, MS, Nanos, Policy, SEC, Spec, TaskId, US};
use crate::kernel::Engine;

fn machine(policy: Policy) -> Engine {
    let mut config = free_config(1);
    config.sched.policy = policy;
    Engine::new(&config).unwrap()
}

/// The settings of 2.6.24 to 2.6.31 for one CPU.
const FAIR: Policy = Policy::Fair(Fair {
    latency: 20 * MS,
    min_granularity: 4 * MS,
    wakeup_granularity: 5 * MS,
    sleeper_credit: 20 * MS,
});

fn hog(m: &mut Engine, nice: i8) -> TaskId {
    m.spawn(Spec::new("hog").nice(nice), |cx| {
        loop {
            cx.spend(100 * US);
        }
    })
}

/// A task that sleeps and uses some time repeatedly, and notes how late it got its CPU.
fn sleeper(m: &mut Engine, sleep: Nanos, use_up: Nanos) -> Log {
    let log = Log::default();
    let told = log.clone();
    m.spawn(Spec::new("sleeper"), move |cx| {
        loop {
            let due = cx.now() + sleep;
            cx.sleep(sleep);
            cx.spend(1);
            told.note(cx.now() - due, "late");
            cx.spend(use_up);
        }
    });
    log
}

/// The `q`th percentile of the noted times after the first ten.
fn late(log: &Log, q: usize) -> Nanos {
    let mut times: Vec<_> = log.taken().iter().skip(10).map(|l| l.0).collect();
    assert!(times.len() > 20, "{times:?}");
    times.sort_unstable();
    times[(times.len() - 1) * q / 100]
}

fn user(m: &mut Engine, t: TaskId) -> Nanos {
    m.sim().task_times(t).unwrap().user
}

#[test]
fn fair_slices_depend_on_the_load() {
    for (hogs, turn) in [(2, 10 * MS), (4, 5 * MS), (5, 4 * MS), (9, 4 * MS)] {
        let mut m = machine(FAIR);
        for _ in 0..hogs {
            hog(&mut m, 0);
        }
        m.run(10 * SEC);
        let expected = 10 * SEC / turn;
        let got = m.sim().switches();
        assert!(
            got.abs_diff(expected) <= expected / 50,
            "{hogs} hogs: {got}"
        );
    }
}

#[test]
fn sleeper_preempts_under_the_fair_policy() {
    let mut m = machine(FAIR);
    hog(&mut m, 0);
    hog(&mut m, 0);
    let slept = sleeper(&mut m, 50 * MS, 100 * US);
    m.run(10 * SEC);
    assert!(late(&slept, 100) <= 200 * US);
    // Without preemption on wakeup: up to a time slice.
    let mut m = machine(Policy::Fair(Fair::rounds(7 * MS)));
    hog(&mut m, 0);
    hog(&mut m, 0);
    let slept = sleeper(&mut m, 50 * MS, 100 * US);
    m.run(10 * SEC);
    let latest = late(&slept, 100);
    assert!((5 * MS..=7 * MS + 200 * US).contains(&latest), "{latest}");
}

#[test]
fn small_lead_does_not_preempt() {
    // After it had 5 ms it is behind, and waits for the rest of a turn of 10 ms; then it is before the hog
    // by 5 ms, and takes its place.
    let mut m = machine(FAIR);
    hog(&mut m, 0);
    let slept = sleeper(&mut m, 500 * US, 5 * MS);
    m.run(10 * SEC);
    let times: Vec<_> = slept.taken().iter().map(|l| l.0).collect();
    let (waited, at_once): (Vec<Nanos>, Vec<_>) = times.iter().partition(|l| **l > MS);
    assert!(waited.iter().all(|l| l.abs_diff(9_500 * US) < 10 * US));
    assert!(waited.len().abs_diff(at_once.len()) < times.len() / 5);
}

#[test]
fn shares_follow_nice_levels() {
    // 1.25 to the power of 5 is 3.05.
    let mut m = machine(FAIR);
    let (a, b) = (hog(&mut m, -5), hog(&mut m, 0));
    m.run(60 * SEC);
    let percent = user(&mut m, a) * 100 / user(&mut m, b);
    assert!((295..=315).contains(&percent), "{percent}");
    let mut m = machine(FAIR);
    let (a, b) = (hog(&mut m, 5), hog(&mut m, 0));
    m.run(60 * SEC);
    let percent = user(&mut m, b) * 100 / user(&mut m, a);
    assert!((295..=315).contains(&percent), "{percent}");
}

#[test]
fn settings_scale_with_log2_of_cpus() {
    let Policy::Fair(f) = FAIR else {
        unreachable!()
    };
    let on = |cpus| f.on(cpus).latency / MS;
    assert_eq!([1, 2, 3, 4, 7, 8].map(on), [20, 40, 40, 60, 60, 80]);
    // SLES 11's manual for 8 CPUs.
    assert_eq!(f.on(8).min_granularity, 16 * MS);
    assert_eq!(f.on(8).wakeup_granularity, 20 * MS);
}

#[test]
fn arrays_give_hogs_100_ms_in_each_round() {
    let mut m = machine(Policy::Arrays);
    let hogs: Vec<_> = (0..3).map(|_| hog(&mut m, 0)).collect();
    m.run(30 * SEC);
    let switches = m.sim().switches();
    assert!(switches.abs_diff(300) <= 6, "{switches}");
    for h in hogs {
        assert!(user(&mut m, h).abs_diff(10 * SEC) <= 100 * MS);
    }
}

#[test]
fn arrays_prefer_sleepers() {
    let mut m = machine(Policy::Arrays);
    hog(&mut m, 0);
    hog(&mut m, 0);
    let slept = sleeper(&mut m, 20 * MS, MS);
    m.run(20 * SEC);
    assert!(late(&slept, 90) <= 200 * US);
}

#[test]
fn time_slice_of_a_lone_task_restarts() {
    let mut m = machine(Policy::Arrays);
    hog(&mut m, 0);
    m.run(250 * MS);
    let log = Log::default();
    let told = log.clone();
    m.spawn(Spec::new("late"), move |cx| {
        cx.spend(1);
        told.note(cx.now(), "first");
    });
    m.run(SEC);
    let first = log.taken()[0].0;
    assert!(first.abs_diff(300 * MS) <= 200 * US, "{first}");
}
