//! How long transfers take.

use super::{DISK, Ends, machine, plain_disk, read, write};
use crate::block::{DiskConfig, DiskStats};
use crate::engine::{Ended, MS, Rng, SEC, Spec, US};

#[test]
fn no_seek_at_the_head() {
    let mut m = machine(plain_disk());
    m.spawn(Spec::new("reader"), |cx| {
        for page in 0..4 {
            assert_eq!(cx.transfer(read(page, 1)), Ok(()));
            assert_eq!(cx.now(), (page + 1) * 50 * US);
        }
    });
    assert_eq!(m.run(SEC), Ended::Finished);
    let stats = m.sim().block.disk_stats(DISK);
    let expected = DiskStats {
        reads: 4,
        sectors_read: 32,
        busy: 200 * US,
        ..DiskStats::default()
    };
    assert_eq!(stats, expected);
    assert_eq!(m.sim().cpu_times(0).iowait, 200 * US);
}

#[test]
fn seek_time_follows_the_root_of_the_distance() {
    let mut m = machine(plain_disk());
    m.spawn(Spec::new("reader"), |cx| {
        let all = (1 << 20) / 8;
        // A quarter of the disk: half of the rest.
        cx.transfer(read(all / 4, 1)).unwrap();
        let there = cx.now();
        assert_eq!(there, MS + 4 * MS + 50 * US);
        // Back over a quarter and the page that was read.
        cx.transfer(read(0, 1)).unwrap();
        let back = cx.now() - there;
        assert!(
            (5 * MS + 50 * US..5 * MS + 60 * US).contains(&back),
            "{back}"
        );
        // Nine sixteenths: three quarters.
        cx.transfer(read(1 + all * 9 / 16, 1)).unwrap();
        assert_eq!(cx.now() - there - back, MS + 6 * MS + 50 * US);
    });
    m.run(SEC);
}

#[test]
fn near_sectors_need_no_seek() {
    let mut m = machine(plain_disk());
    m.spawn(Spec::new("reader"), |cx| {
        cx.transfer(read(3, 1)).unwrap();
        assert_eq!(cx.now(), 200 * US);
    });
    m.run(SEC);
    assert_eq!(m.sim().block.disk_stats(DISK).seeks, 0);
}

#[test]
fn a_desktop_disk_does_a_hundred_random_reads_a_second() {
    let mut m = machine(DiskConfig::desktop("sda", 160 << 30));
    m.spawn(Spec::new("reader"), |cx| {
        let mut rng = Rng::named(7, "pages");
        for _ in 0..1000 {
            let page = rng.below((160 << 30) / 4096);
            cx.transfer(read(page, 1)).unwrap();
        }
    });
    m.run(100 * SEC);
    let each = m.sim().now() / 1000;
    // Average seek 10 ms or so, half a turn 4.2 ms.
    assert!((12 * MS..16 * MS).contains(&each), "{each} ns a read");
}

#[test]
fn contiguous_bios_merge() {
    let mut m = machine(plain_disk());
    let ends = Ends::default();
    // 64 single pages, at once, the even ones first: 32 that do not touch, and 32 that fill the gaps.
    let pages = (0..64).step_by(2).chain((1..64).step_by(2));
    for (token, page) in pages.enumerate() {
        ends.submit(m.sim(), token as u64, write(page, 1));
    }
    // Later ones in front.
    for (token, page) in [(100, 103), (101, 102), (102, 101)] {
        ends.submit(m.sim(), token, write(page, 1));
    }
    assert_eq!(m.run(SEC), Ended::Finished);
    let stats = m.sim().block.disk_stats(DISK);
    // A request's bios end in the order of their sectors.
    assert_eq!(ends.order()[64..], [102, 101, 100]);
    // The odd pages close gaps at one end each, as nothing joins two requests: 32 requests; the last
    // three make one.
    assert_eq!((stats.writes, stats.merges), (33, 34));
    assert_eq!(stats.sectors_written, 67 * 8);

    let mut m = machine(plain_disk());
    for page in 0..64 {
        ends.submit(m.sim(), 200 + page, write(page, 1));
    }
    assert_eq!(m.run(SEC), Ended::Finished);
    // 128 KiB are 32 pages.
    let stats = m.sim().block.disk_stats(DISK);
    assert_eq!((stats.writes, stats.merges), (2, 62));
}

#[test]
fn directions_and_classes_do_not_merge() {
    let mut m = machine(plain_disk());
    let ends = Ends::default();
    ends.submit(m.sim(), 0, read(0, 1));
    ends.submit(m.sim(), 1, write(1, 1));
    let mut fsync = write(2, 1);
    fsync.sync = true;
    ends.submit(m.sim(), 2, fsync);
    ends.submit(m.sim(), 3, read(3, 1));
    m.run(SEC);
    assert_eq!(m.sim().block.disk_stats(DISK).merges, 0);
    assert_eq!(ends.order().len(), 4);
}

#[test]
fn a_plugged_queue_gathers_before_it_starts() {
    let mut disk = plain_disk();
    disk.queue.plug = 3 * MS;
    let mut m = machine(disk);
    m.spawn(Spec::new("writer"), |cx| {
        for page in 0..8 {
            cx.submit(write(page, 1));
            cx.spend(100 * US);
        }
    });
    let ends = Ends::default();
    ends.submit(m.sim(), 9, write(8, 1));
    m.run(SEC);
    assert_eq!(m.sim().block.disk_stats(DISK).writes, 2);
    assert_eq!(ends.times(), [3 * MS + 8 * 50 * US + 50 * US]);
}
