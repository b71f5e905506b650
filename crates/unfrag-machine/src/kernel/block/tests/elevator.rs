//! The order in which requests are served.

use super::{Ends, config, machine, plain_disk, read, write};
use crate::block::Cfq;
use crate::engine::{MS, Nanos, SEC, Spec};
use crate::kernel::Engine;

#[test]
fn elevator_is_c_look() {
    let mut m = machine(plain_disk());
    let ends = Ends::default();
    // The first is taken at once with the others; from there upwards, then from the lowest.
    m.spawn(Spec::new("first"), |cx| {
        cx.transfer(read(50_000, 1)).unwrap()
    });
    let told = ends.clone();
    m.sim().at(1, move |sim| {
        for page in [10_000, 90_000, 60_000, 30_000, 70_000] {
            told.submit(sim, page, read(page, 1));
        }
    });
    m.run(SEC);
    assert_eq!(ends.order(), [60_000, 70_000, 90_000, 10_000, 30_000]);
}

#[test]
fn sync_batches_go_before_async_ones() {
    let mut disk = plain_disk();
    disk.queue.batch = 4;
    let mut m = machine(disk);
    let ends = Ends::default();
    for i in 0..20 {
        ends.submit(m.sim(), 100 + i, write(1_000 + 10 * i, 1));
        ends.submit(m.sim(), i, read(2_000 + 10 * i, 1));
    }
    m.run(SEC);
    let kinds: Vec<_> = ends.order().chunks(4).map(|c| c[0] >= 100).collect();
    // Two batches of reads for one of writes, while there are reads.
    let expected = [
        false, false, true, false, false, true, false, true, true, true,
    ];
    assert_eq!(kinds, expected);
}

/// A disk full of reads, each followed by the next, and one write of page 5; when does it end?
fn write_under_reads(async_expire: Nanos, async_starved: u32) -> Nanos {
    let mut disk = plain_disk();
    disk.queue.async_expire = async_expire;
    disk.queue.async_starved = async_starved;
    let mut m = Engine::new(&config(disk)).unwrap();
    for reader in 0..4 {
        m.spawn(Spec::kthread("reader"), move |cx| {
            for i in 0.. {
                cx.transfer(read(10_000 * (reader + 1) + 7 * i, 1)).unwrap();
            }
        });
    }
    let ends = Ends::default();
    let told = ends.clone();
    m.sim().at(MS, move |sim| told.submit(sim, 0, write(5, 1)));
    m.run_to(20 * SEC);
    ends.times().first().map_or(Nanos::MAX, |at| at - MS)
}

#[test]
fn overdue_write_goes_first() {
    let never = u32::MAX;
    let soon = write_under_reads(100 * MS, never);
    assert!((100 * MS..250 * MS).contains(&soon), "{soon}");
    let late = write_under_reads(2 * SEC, never);
    assert!((2 * SEC..2 * SEC + 150 * MS).contains(&late), "{late}");
    assert!(write_under_reads(2 * SEC, 2) < SEC);
}

#[test]
fn an_overdue_read_goes_first_among_reads() {
    let mut disk = plain_disk();
    disk.queue.sync_expire = 50 * MS;
    disk.queue.batch = 1;
    let mut m = machine(disk);
    // A stream that always has one ahead of the head, and one behind it.
    for reader in 0..2 {
        m.spawn(Spec::kthread("stream"), move |cx| {
            for i in 0.. {
                cx.transfer(read(50_000 + 40 * i + 20 * reader, 1)).unwrap();
            }
        });
    }
    let ends = Ends::default();
    let told = ends.clone();
    m.sim()
        .at(10 * MS, move |sim| told.submit(sim, 0, read(5, 1)));
    m.run_to(SEC);
    let at = ends.times()[0];
    assert!((60 * MS..80 * MS).contains(&at), "{at}");
}

/// Writes that end within two seconds beside a seeking reader that reads again 1 ms after each read.
fn writes_beside_a_reader(low_latency: bool, ncq: bool) -> usize {
    let mut disk = plain_disk();
    disk.queue.ncq = ncq;
    disk.queue.cfq = Some(Cfq {
        low_latency,
        ..Cfq::default()
    });
    let mut m = machine(disk);
    m.spawn(Spec::new("reader"), |cx| {
        for i in 0.. {
            let page = if i % 2 == 0 { 10 + i } else { 100_000 + i };
            cx.transfer(read(page, 1)).unwrap();
            cx.sleep(MS);
        }
    });
    let ends = Ends::default();
    let told = ends.clone();
    m.sim().at(SEC, move |sim| {
        for i in 0..100 {
            told.submit(sim, i, write(50_000 + 10 * i, 1));
        }
    });
    m.run_to(3 * SEC);
    ends.order().len()
}

#[test]
fn cfq_keeps_the_disk_for_a_seeking_reader() {
    assert_eq!(writes_beside_a_reader(false, true), 100);
    // One between two turns of 100 ms: then the reader asks again.
    for (low_latency, ncq) in [(false, false), (true, true)] {
        let written = writes_beside_a_reader(low_latency, ncq);
        assert!((10..=20).contains(&written), "{written}");
    }
}
