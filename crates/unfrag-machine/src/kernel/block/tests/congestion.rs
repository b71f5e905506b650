//! Full queues, and waiting for them. `spec: 4.4`

use super::{DISK, config, machine, plain_disk, read, write};
use crate::block::{CongestionWake, QueueConfig};
use crate::channels::congestion_channel;
use crate::engine::{Ended, MS, Nanos, SEC, Spec, US};
use crate::kernel::{Engine, Sim};

#[test]
fn thresholds_of_a_queue_of_128() {
    let q = QueueConfig::default();
    assert_eq!((q.congestion_on(), q.congestion_off()), (113, 103));
}

/// Submits writes that do not merge, `n` from number `from` on.
fn writes(sim: &mut Sim, from: u64, n: u64) {
    for i in from..from + n {
        sim.world().submit(write(10 * i, 1));
    }
}

#[test]
fn congestion_thresholds_per_class() {
    let mut m = machine(plain_disk());
    writes(m.sim(), 0, 112);
    assert!(!m.sim().block.congested(DISK, false));
    writes(m.sim(), 112, 1);
    assert!(m.sim().block.congested(DISK, false));
    assert!(!m.sim().block.congested(DISK, true));
    // As they complete, one by one.
    let mut last = 113;
    for step in 1.. {
        m.run_to(step * 100 * US);
        let sim = m.sim();
        let left = sim.block.requests(DISK, false);
        assert_eq!(sim.block.congested(DISK, false), left >= 103, "{left} left");
        assert!(left + 1 >= last);
        last = left;
        if left == 0 {
            break;
        }
    }
}

#[test]
fn a_task_that_finds_no_request_waits_for_one() {
    let mut m = machine(plain_disk());
    m.spawn(Spec::new("writer"), |cx| {
        for i in 0..128 {
            cx.submit(write(10 * i, 1));
        }
        assert_eq!(cx.now(), 0);
        // Contiguous with a waiting one: it needs no request of its own.
        cx.submit(write(1001, 1));
        assert_eq!(cx.now(), 0);
        cx.submit(write(10 * 200, 1));
        assert_eq!(cx.now(), 50 * US);
        assert_eq!(cx.with(|sim| sim.block.requests(DISK, false)), 128);
        // Reads have requests of their own.
        cx.submit(read(5, 1));
        assert_eq!(cx.now(), 50 * US);
    });
    assert_eq!(m.run(SEC), Ended::Finished);
    m.run_to(10 * SEC);
    assert_eq!(m.sim().block.totals(), (131, 131));
}

#[test]
fn free_request_takes_all_bios_that_fit() {
    let mut m = machine(plain_disk());
    m.spawn(Spec::new("writer"), |cx| {
        for i in 0..128 {
            cx.submit(write(10 * i, 1));
        }
        cx.with(|sim| {
            for page in [5000, 5001, 5002, 5003, 6000] {
                sim.world().submit(write(page, 1));
            }
        });
        // The first four at the first end, the last at the second.
        cx.settle();
        assert_eq!(cx.now(), 50 * US + 500 * US);
    });
    m.run(SEC);
}

#[test]
fn requests_are_given_in_order_of_waiting() {
    let mut m = machine(plain_disk());
    for task in 0..8u64 {
        m.spawn(Spec::new("writer"), move |cx| {
            for i in 0..200 {
                cx.submit(write(1 + 1000 * task + 3 * i, 1));
            }
        });
    }
    assert_eq!(m.run(100 * SEC), Ended::Finished);
    m.run_to(200 * SEC);
    assert_eq!(m.sim().block.totals(), (1600, 1600));
    assert_eq!(m.sim().block.in_flight(), 0);
}

#[test]
fn bios_from_interrupts_are_not_lost() {
    let mut m = machine(plain_disk());
    m.sim().interrupt(US, |sim| writes(sim, 0, 1000));
    m.spawn(Spec::new("writer"), |cx| {
        cx.spend(2 * US);
        // These are not its own.
        cx.settle();
        assert_eq!(cx.now(), 2 * US);
        cx.with(|sim| writes(sim, 1000, 300));
        let left = cx.with(|sim| sim.block.requests(DISK, false));
        assert_eq!(left, 128);
        cx.settle();
        assert!(cx.with(|sim| sim.block.in_flight() <= 128));
    });
    assert_eq!(m.run(100 * SEC), Ended::Finished);
    m.run_to(200 * SEC);
    assert_eq!(m.sim().block.totals(), (1300, 1300));
}

/// End of a wait of HZ/10 in a class that begins at 1 ms, while writes and reads are under way, each for
/// 100 µs or more.
fn wait_ends(wake: CongestionWake, sync: bool, n_writes: u64, n_reads: u64) -> Nanos {
    let mut config = config(plain_disk());
    config.congestion_wake = wake;
    let mut m = Engine::new(&config).unwrap();
    writes(m.sim(), 0, n_writes);
    for i in 0..n_reads {
        m.sim().world().submit(read(5 + 10 * i, 1));
    }
    m.spawn(Spec::new("waiter"), move |cx| {
        cx.spend(MS);
        cx.congestion_wait(sync, 100 * MS);
    });
    assert_eq!(m.run(SEC), Ended::Finished);
    m.sim().now()
}

#[test]
fn completion_below_the_threshold_ends_the_wait() {
    use CongestionWake::{BelowThreshold, Leaving};
    // Only writes: an async wait ends with the next of them, a sync wait with none.
    let ends = wait_ends(BelowThreshold, false, 50, 0);
    assert!((MS..2 * MS).contains(&ends), "{ends}");
    assert_eq!(wait_ends(BelowThreshold, true, 50, 0), 100 * MS);
    // The other way round.
    assert!(wait_ends(BelowThreshold, true, 0, 50) < 2 * MS);
    assert_eq!(wait_ends(BelowThreshold, false, 0, 50), 100 * MS);
    // By the narrower rule it was not congested, and leaves nothing.
    assert_eq!(wait_ends(Leaving, false, 50, 0), 100 * MS);
    // Where it was, both rules wait until 102 are left.
    let wide = wait_ends(BelowThreshold, false, 120, 0);
    assert_eq!(wide, wait_ends(Leaving, false, 120, 0));
    // 18 completions, the first of 50 µs, the others of 500.
    assert_eq!(wide, 50 * US + 17 * 500 * US);
}

#[test]
fn congestion_wait_ends_on_a_tick() {
    let mut m = machine(plain_disk());
    m.spawn(Spec::new("waiter"), |cx| {
        cx.spend(7 * MS);
        assert_eq!(cx.congestion_wait(false, 20 * MS), 0);
        assert_eq!(cx.now(), 24 * MS);
        cx.with(|sim| {
            sim.at(29 * MS, |sim| {
                sim.wake(congestion_channel(true));
            })
        });
        // From the edge at 24 ms 100 ms; at 29 ms 96 are left, by ticks.
        assert_eq!(cx.congestion_wait(true, 100 * MS), 96 * MS);
    });
    assert_eq!(m.run(SEC), Ended::Finished);
    let s = *m.sim().block.congestion();
    assert_eq!((s.waits, s.timeouts), ([1, 1], [1, 0]));
    assert_eq!(s.waited, [17 * MS, 5 * MS]);
}
