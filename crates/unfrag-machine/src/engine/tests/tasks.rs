//! Tasks: start, end, waiting, order.

use super::{Log, config, free_machine};
use crate::engine::{Channel, Ended, MS, Nanos, Priority, Rng, SEC, Spec, US, Waited};
use crate::kernel::Engine;

const C: Channel = Channel::new(300, 0);

#[test]
fn waiters_wake_in_order_of_arrival() {
    let mut m = free_machine(1);
    let log = Log::default();
    for name in ["a", "b", "c"] {
        let log = log.clone();
        m.spawn(Spec::new(name), move |cx| {
            cx.wait(C, None);
            log.note(cx.now(), name);
        });
    }
    m.sim().at(MS, |sim| assert!(sim.wake_one(C)));
    m.sim().at(2 * MS, |sim| assert_eq!(sim.wake(C), 2));
    m.sim().at(3 * MS, |sim| assert!(!sim.wake_one(C)));
    assert_eq!(m.run(SEC), Ended::Finished);
    assert_eq!(log.taken(), [(MS, "a"), (2 * MS, "b"), (2 * MS, "c")]);
}

#[test]
fn wake_up_is_for_its_channel_only() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("a"), |cx| {
        assert_eq!(cx.wait(C, Some(8 * MS)), Waited::TimedOut);
    });
    m.sim().at(MS, |sim| {
        // Every other channel of this kind, those in the same bucket among them.
        (1..5000).for_each(|k| assert_eq!(sim.wake(Channel::new(300, k)), 0));
    });
    assert_eq!(m.run(SEC), Ended::Finished);
}

#[test]
fn join_waits_until_the_end() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("parent"), |cx| {
        let child = cx.spawn(Spec::new("child"), |cx| {
            cx.sleep(3 * MS);
        });
        cx.join(child);
        assert_eq!(cx.now(), 3 * MS);
        // The slot has a new task; the old id does not refer to it.
        let other = cx.spawn(Spec::new("other"), |cx| {
            cx.sleep(MS);
        });
        assert_ne!(child, other);
        cx.join(child);
        assert_eq!(cx.now(), 3 * MS);
        assert!(cx.with(|sim| sim.is_alive(other) && !sim.is_alive(child)));
        cx.join(other);
    });
    assert_eq!(m.run(SEC), Ended::Finished);
    assert_eq!(m.sim().now(), 4 * MS);
}

#[test]
fn a_kill_ends_sleeps_and_killable_waits_only() {
    let mut m = free_machine(1);
    let log = Log::default();
    let told = log.clone();
    let victim = m.spawn(Spec::new("victim"), move |cx| {
        assert_eq!(cx.wait(C, Some(8 * MS)), Waited::TimedOut);
        told.note(cx.now(), "waited");
        assert!(cx.killed());
        assert_eq!(
            cx.wait_killable(C, Some(8 * MS)),
            Waited::Woken { left: 8 * MS }
        );
        assert_eq!(cx.sleep(MS), MS);
        told.note(cx.now(), "did not");
    });
    let told = log.clone();
    let sleeper = m.spawn(Spec::new("sleeper"), move |cx| {
        assert_eq!(cx.sleep(10 * MS), 9 * MS);
        told.note(cx.now(), "woken");
    });
    m.sim().at(MS, move |sim| {
        sim.kill(victim);
        sim.kill(sleeper);
        assert!(sim.is_killed(victim));
    });
    assert_eq!(m.run(SEC), Ended::Finished);
    let order = [(MS, "woken"), (8 * MS, "waited"), (8 * MS, "did not")];
    assert_eq!(log.taken(), order);
    // The waiters are gone.
    m.sim().kill(victim);
    assert!(!m.sim().is_killed(victim));
}

#[test]
fn run_waits_for_foreground_programs_only() {
    let mut m = free_machine(1);
    let dropped = std::rc::Rc::new(());
    let held = dropped.clone();
    m.spawn(Spec::kthread("flusher"), move |cx| {
        let _held = held;
        loop {
            cx.sleep(MS);
        }
    });
    m.spawn(Spec::new("updatedb").background(), |cx| {
        cx.spend(SEC);
    });
    // That one of them ends makes no difference either.
    m.spawn(Spec::kthread("worker"), |cx| cx.spend(US));
    m.spawn(Spec::new("a"), |cx| cx.spend(MS));
    assert_eq!(m.run(SEC), Ended::Finished);
    assert!((2 * MS..=2 * MS + 200 * US).contains(&m.sim().now()));
    assert_eq!(std::rc::Rc::strong_count(&dropped), 2);
    drop(m);
    assert_eq!(std::rc::Rc::strong_count(&dropped), 1);
}

#[test]
fn iowait_counts_on_the_last_cpu() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("a"), |cx| {
        cx.wait_io(C, Some(20 * MS));
        assert_eq!(cx.times().iowait, 20 * MS);
        cx.wait(C, Some(8 * MS));
    });
    m.run(SEC);
    let times = m.sim().cpu_times(0);
    assert_eq!((times.iowait, times.idle), (20 * MS, 8 * MS));
}

#[test]
#[should_panic(expected = "out of cheese")]
fn panic_of_a_task_propagates() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("waits"), |cx| {
        let _guard = String::from("dropped by unwinding");
        cx.wait(C, None);
    });
    m.spawn(Spec::new("panics"), |cx| {
        cx.spend(MS);
        panic!("out of cheese");
    });
    m.run(SEC);
}

/// Runs a mix of operations; returns digest and end time.
fn mixed(seed: u64, piece: Nanos) -> (u64, Nanos, u64) {
    let mut m = Engine::new(&config(3)).unwrap();
    for i in 0..12u64 {
        let class = [
            Priority::Normal,
            Priority::Normal,
            Priority::Kthread,
            Priority::Realtime,
        ];
        let spec = Spec::new("mixed").priority(class[i as usize % 4]);
        m.spawn(spec, move |cx| {
            let mut rng = Rng::named(seed, &format!("task {i}"));
            for _ in 0..300 {
                match rng.below(6) {
                    0 => cx.spend(rng.below(300 * US)),
                    1 => cx.spend_system(rng.below(3 * US)),
                    2 => {
                        cx.sleep(rng.below(MS));
                    }
                    3 => {
                        let c = Channel::new(300, rng.below(4));
                        cx.wait_io(c, Some(rng.below(8 * MS)));
                    }
                    4 => {
                        let (c, at) = (Channel::new(300, rng.below(4)), rng.below(MS));
                        cx.with(|sim| {
                            let at = sim.now() + at;
                            sim.interrupt(at, move |sim| {
                                sim.wake(c);
                            })
                        });
                    }
                    _ => {
                        let ns = rng.below(50 * US);
                        let child = cx.spawn(Spec::new("child"), move |cx| cx.spend(ns));
                        cx.join(child);
                    }
                }
            }
        });
    }
    let mut pieces = (1..).map(|i: Nanos| m.run(i.saturating_mul(piece)));
    let end = pieces.find(|&end| end != Ended::TimeLimit);
    assert_eq!(end, Some(Ended::Finished));
    let sim = m.sim();
    for cpu in 0..3 {
        let (total, now) = (sim.cpu_times(cpu).total(), sim.now());
        assert!(total.abs_diff(now) < 10 * US, "CPU {cpu}: {total} of {now}");
    }
    (sim.trace_hash(), sim.now(), sim.switches())
}

#[test]
fn a_run_is_a_function_of_its_inputs() {
    let one = mixed(1, SEC);
    assert_eq!(one, mixed(1, SEC));
    assert_ne!(one.0, mixed(2, SEC).0);
    // Where it is interrupted to look at it makes no difference.
    assert_eq!(one, mixed(1, 333 * US));
    assert_eq!(one, mixed(1, 7 * MS + 1));
}
