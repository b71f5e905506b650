//! Interrupts and code outside of the machine.

use super::{Log, config, free_machine};
use crate::engine::{Channel, MS, SEC, Spec, US};
use crate::kernel::{Engine, Sim};

#[test]
fn interrupt_delays_the_interrupted_task() {
    let mut config = config(2);
    config.costs.context_switch = 0;
    config.costs.interrupt = 2 * US;
    let mut m = Engine::new(&config).unwrap();
    m.spawn(Spec::new("a").on(0), |cx| {
        cx.spend(10 * US);
        assert_eq!(cx.now(), 17 * US);
    });
    m.spawn(Spec::new("b").on(1), |cx| {
        cx.spend(10 * US);
        assert_eq!(cx.now(), 10 * US);
    });
    m.sim().interrupt(4 * US, |sim| {
        assert!(sim.in_interrupt());
        let current = sim.current().unwrap();
        assert_eq!(sim.task_name(current), Some("a"));
        sim.spend_interrupt(5 * US);
    });
    m.run(SEC);
    let times = m.sim().cpu_times(0);
    assert_eq!((times.user, times.irq, times.idle), (10 * US, 7 * US, 0));
    assert!(!m.sim().in_interrupt());
}

#[test]
fn interrupts_of_one_cpu_do_not_nest() {
    let mut m = free_machine(1);
    let log = Log::default();
    for (at, name) in [(10, "first"), (12, "second"), (12, "third")] {
        let log = log.clone();
        m.sim().interrupt(at, move |sim| {
            log.note(sim.now(), name);
            sim.spend_interrupt(100);
        });
    }
    m.run_to(MS);
    let order = [(10, "first"), (110, "second"), (210, "third")];
    assert_eq!(log.taken(), order);
    assert_eq!(m.sim().cpu_times(0).irq, 300);
    assert_eq!(m.sim().cpu_times(0).total(), MS);
}

#[test]
fn interrupt_time_is_not_part_of_a_time_slice() {
    let mut m = free_machine(1);
    for name in ["a", "b"] {
        m.spawn(Spec::new(name), |cx| cx.spend(150 * US));
    }
    m.sim()
        .interrupt(30 * US, |sim| sim.spend_interrupt(60 * US));
    // The first slice: 30 µs, the interrupt, the other 70.
    m.run_to(160 * US - 1);
    assert_eq!(m.sim().switches(), 1);
    m.run_to(161 * US);
    assert_eq!(m.sim().switches(), 2);
}

#[test]
fn task_woken_by_an_interrupt_runs_after_it() {
    let c = Channel::new(300, 1);
    let mut m = free_machine(1);
    m.spawn(Spec::new("a"), move |cx| {
        cx.wait(c, None);
        assert_eq!(cx.now(), 5 * US + 400);
    });
    m.sim().interrupt(5 * US, move |sim| {
        assert_eq!(sim.current(), None);
        sim.wake(c);
        sim.spend_interrupt(400);
    });
    m.run(SEC);
}

#[test]
fn code_outside_of_the_machine_takes_no_time() {
    fn sample(sim: &mut Sim, log: Log) {
        log.note(sim.now(), "sample");
        let next = sim.now() + MS;
        sim.at(next, move |sim| sample(sim, log));
    }
    let mut m = free_machine(1);
    let log = Log::default();
    let told = log.clone();
    m.sim().at(0, move |sim| sample(sim, told));
    m.spawn(Spec::new("a"), |cx| cx.spend(2 * MS + 1));
    m.run(SEC);
    let samples = [(0, "sample"), (MS, "sample"), (2 * MS, "sample")];
    assert_eq!(log.taken(), samples);
    assert_eq!(m.sim().now(), 2 * MS + 1);
    assert_eq!(m.sim().cpu_times(0).user, 2 * MS + 1);
}
