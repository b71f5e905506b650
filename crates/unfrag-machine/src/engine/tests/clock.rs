//! Time: sleeps, ticks, timeouts, limits.

use super::{Log, free_machine};
use crate::engine::{Channel, Ended, MS, SEC, Spec, US, Waited};

const C: Channel = Channel::new(Channel::FIRST_FREE, 7);

#[test]
fn a_sleep_takes_its_time_and_no_cpu() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("a"), |cx| {
        cx.spend(3 * US);
        assert_eq!(cx.sleep(10 * MS + 1), 0);
        assert_eq!(cx.now(), 10 * MS + 1 + 3 * US);
    });
    assert_eq!(m.run(SEC), Ended::Finished);
    let times = m.sim().cpu_times(0);
    assert_eq!((times.user, times.idle), (3 * US, 10 * MS + 1));
}

// Ticks of 4 ms (HZ 250): HZ/50 is 5 ticks.
#[test]
fn a_timeout_ends_on_the_edge_of_a_tick() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("a"), |cx| {
        cx.spend(5 * MS);
        assert_eq!(cx.wait(C, Some(20 * MS)), Waited::TimedOut);
        assert_eq!(cx.now(), 24 * MS);
        // 1 ns is one tick, which begins here.
        assert_eq!(cx.wait(C, Some(1)), Waited::TimedOut);
        assert_eq!(cx.now(), 28 * MS);
    });
    assert_eq!(m.run(SEC), Ended::Finished);
}

#[test]
fn user_time_is_spent_before_system_time() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("a"), |cx| {
        cx.spend_both(3 * MS, 2 * MS);
        let times = cx.times();
        assert_eq!((times.user, times.system), (3 * MS, 2 * MS));
    });
    // A second task shares the CPU, so that the piece is charged in parts.
    m.spawn(Spec::new("b"), |cx| cx.spend(9 * MS));
    for (at, user, system) in [(MS, MS, 0), (3 * MS, 3 * MS, 0)] {
        m.sim().at(at, move |sim| {
            let times = sim.cpu_times(0);
            assert_eq!((times.user, times.system), (user, system));
        });
    }
    assert_eq!(m.run(SEC), Ended::Finished);
    let times = m.sim().cpu_times(0);
    assert_eq!((times.user, times.system), (12 * MS, 2 * MS));
}

#[test]
fn events_at_the_end_of_work_come_before_the_code() {
    let mut m = free_machine(1);
    let log = Log::default();
    let told = log.clone();
    m.spawn(Spec::new("a"), move |cx| {
        cx.spend(MS);
        told.note(cx.now(), "work");
        cx.spend(MS);
        told.note(cx.now(), "work");
    });
    for at in [MS, 2 * MS] {
        let told = log.clone();
        m.sim().at(at, move |sim| told.note(sim.now(), "event"));
    }
    m.run(SEC);
    let order = [
        (MS, "event"),
        (MS, "work"),
        (2 * MS, "event"),
        (2 * MS, "work"),
    ];
    assert_eq!(log.taken(), order);
}

#[test]
fn wake_up_returns_the_rest_in_ticks() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("waiter"), |cx| {
        cx.spend(MS);
        assert_eq!(cx.wait(C, Some(20 * MS)), Waited::Woken { left: 12 * MS });
        assert_eq!(cx.now(), 9 * MS);
    });
    m.sim().at(9 * MS, |sim| assert_eq!(sim.wake(C), 1));
    assert_eq!(m.run(SEC), Ended::Finished);
}

#[test]
fn stale_timer_does_nothing() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("waiter"), |cx| {
        cx.wait(C, Some(20 * MS));
        assert_eq!(cx.now(), MS);
        assert_eq!(cx.wait(C, Some(40 * MS)), Waited::TimedOut);
        assert_eq!(cx.now(), 40 * MS);
    });
    m.sim().at(MS, |sim| {
        sim.wake(C);
    });
    // Comes before the old timer, so that this is still there when the new wait begins.
    m.sim().at(10 * MS, |_| ());
    assert_eq!(m.run(SEC), Ended::Finished);
    assert_eq!(m.sim().now(), 40 * MS);
}

#[test]
fn run_continues_after_its_limit() {
    let mut m = free_machine(2);
    let log = Log::default();
    for name in ["a", "b"] {
        let log = log.clone();
        m.spawn(Spec::new(name), move |cx| {
            cx.spend(10 * MS);
            log.note(cx.now(), "done");
        });
    }
    assert_eq!(m.run(4 * MS), Ended::TimeLimit);
    assert_eq!((m.sim().now(), log.taken().len()), (4 * MS, 0));
    assert_eq!(m.sim().cpu_times(1).user, 4 * MS);
    assert_eq!(m.run(SEC), Ended::Finished);
    assert_eq!(log.taken(), [(10 * MS, "done"), (10 * MS, "done")]);
    assert_eq!(m.run_to(SEC), Ended::TimeLimit);
    assert_eq!(m.sim().now(), SEC);
}

#[test]
fn run_ends_when_stopped_or_stuck() {
    let mut m = free_machine(1);
    m.spawn(Spec::new("a"), |cx| {
        cx.spend(10 * MS);
        cx.wait(C, None);
    });
    m.sim().at(MS, |sim| sim.stop());
    assert_eq!(m.run(SEC), Ended::Stopped);
    assert_eq!(m.sim().now(), MS);
    assert_eq!(m.run(SEC), Ended::Stuck);
    assert_eq!(m.sim().now(), 10 * MS);
}
