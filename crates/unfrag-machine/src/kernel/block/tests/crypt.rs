//! The encrypting layer. `spec: 4.4`

use super::{CRYPT, DISK, Ends, bio, config, machine, plain_disk};
use crate::block::Dir;
use crate::engine::{Ended, MS, SEC, Spec, US};
use crate::kernel::Engine;

#[test]
fn reads_are_decrypted_and_writes_encrypted() {
    let mut m = machine(plain_disk());
    m.spawn(Spec::new("a"), |cx| {
        cx.transfer(bio(CRYPT, Dir::Read, true, 0, 4)).unwrap();
        assert_eq!(cx.now(), 4 * 50 * US + 4 * 10 * US);
        assert_eq!(cx.with(|sim| sim.cpu_times(0).system), 40 * US);
        let from = cx.now();
        cx.transfer(bio(CRYPT, Dir::Write, false, 4, 4)).unwrap();
        assert_eq!(cx.now() - from, 4 * 10 * US + 4 * 50 * US);
    });
    assert_eq!(m.run(SEC), Ended::Finished);
    let stats = m.sim().block.crypt_stats(CRYPT).unwrap();
    assert_eq!((stats.pages_read, stats.pages_written), (4, 4));
    assert_eq!(m.sim().block.crypt_stats(DISK), None);
}

#[test]
fn one_thread_serves_in_order() {
    let mut config = config(plain_disk());
    // Four CPUs change nothing.
    config.cpus = 4;
    config.costs.crypt_page = MS;
    let mut m = Engine::new(&config).unwrap();
    let ends = Ends::default();
    // The reads need the disk, 50 µs each, before they join the line; the writes are in it at once.
    for i in 0..3 {
        ends.submit(m.sim(), i, bio(CRYPT, Dir::Read, true, i, 1));
    }
    for i in 0..3 {
        ends.submit(
            m.sim(),
            10 + i,
            bio(CRYPT, Dir::Write, i % 2 == 0, 2000 * (i + 1), 1),
        );
    }
    m.run(SEC);
    let reads: Vec<_> = ends
        .0
        .borrow()
        .iter()
        .filter(|e| e.0 < 10)
        .copied()
        .collect();
    // 3 ms of writes first, then a millisecond each.
    assert_eq!(reads, [(0, 4 * MS), (1, 5 * MS), (2, 6 * MS)]);
    let system: u64 = (0..4).map(|c| m.sim().cpu_times(c).system).sum();
    assert_eq!(system, 6 * MS);
}

/// Many writes that fill the disk's queue, then one read of what the disk has under its head; when
/// does the read end, and how long was the thread blocked?
fn read_behind_writes(io_thread: bool) -> (u64, u64) {
    let mut config = config(plain_disk());
    config.crypts[0].io_thread = io_thread;
    config.disks[0].queue.async_starved = 1000;
    let mut m = Engine::new(&config).unwrap();
    for i in 0..400 {
        m.sim()
            .world()
            .submit(bio(CRYPT, Dir::Write, false, 30_000 + 20 * i, 1));
    }
    let ends = Ends::default();
    let told = ends.clone();
    m.sim().at(2 * MS, move |sim| {
        told.submit(sim, 0, bio(CRYPT, Dir::Read, true, 20_000, 1));
    });
    m.run_to(10 * SEC);
    assert_eq!(m.sim().block.totals(), (401, 401));
    (
        ends.times()[0],
        m.sim().block.crypt_stats(CRYPT).unwrap().blocked,
    )
}

#[test]
fn full_queue_blocks_reads_unless_another_thread_submits() {
    let (late, blocked) = read_behind_writes(false);
    let (soon, not_blocked) = read_behind_writes(true);
    assert!(late > 5 * soon, "{late} and {soon}");
    assert!(blocked > 100 * MS, "{blocked}");
    assert_eq!(not_blocked, 0);
}

#[test]
fn a_layer_is_congested_when_its_disk_is() {
    let mut m = machine(plain_disk());
    for i in 0..113 {
        m.sim().world().submit(super::write(10 * i, 1));
    }
    assert!(m.sim().block.congested(CRYPT, false));
    assert!(!m.sim().block.congested(CRYPT, true));
}

#[test]
fn layer_has_an_offset_on_the_disk() {
    let mut config = config(plain_disk());
    config.crypts[0].first_sector = 1 << 19;
    let mut m = Engine::new(&config).unwrap();
    let sim = m.sim();
    assert_eq!(
        (sim.block.sectors(CRYPT), sim.block.sectors(DISK)),
        (1 << 19, 1 << 20)
    );
    assert_eq!(sim.block.device("crypt"), Some(CRYPT));
    assert_eq!(sim.block.device("none"), None);
    m.spawn(Spec::new("a"), |cx| {
        cx.transfer(bio(CRYPT, Dir::Read, true, 0, 1)).unwrap();
        // Half of the disk: 1 ms + 8 ms * sqrt(1/2).
        assert_eq!(cx.now() / US, 1_000 + 5_656 + 50 + 10);
    });
    assert_eq!(m.run(SEC), Ended::Finished);
}
