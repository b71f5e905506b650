//! Disks that stall or fail lose nothing.

use super::{CRYPT, DISK, Ends, bio, config, plain_disk, read};
use crate::block::{Dir, Fault, IoError};
use crate::engine::{Ended, MS, Rng, SEC, Spec, US};
use crate::kernel::{Engine, Sim};

#[test]
fn nothing_completes_while_a_disk_stalls() {
    let mut disk = plain_disk();
    disk.faults.push(Fault::Stall {
        from: 120 * US,
        to: 10 * MS,
    });
    let mut m = super::machine(disk);
    m.spawn(Spec::new("a"), |cx| {
        for i in 0..4 {
            cx.transfer(read(i, 1)).unwrap();
            let at = [50 * US, 100 * US, 10 * MS, 10 * MS + 50 * US][i as usize];
            assert_eq!(cx.now(), at);
        }
    });
    assert_eq!(m.run(SEC), Ended::Finished);
}

#[test]
fn only_faulty_sectors_fail() {
    let mut m = super::machine(plain_disk());
    m.sim().world().block.inject(
        DISK,
        Fault::Fail {
            from: 0,
            to: 10 * MS,
            first_sector: 20,
            end_sector: 32,
        },
    );
    m.spawn(Spec::new("a"), |cx| {
        // Sectors 20 to 31 are in pages 2 and 3.
        let outcome: Vec<_> = (0..6).map(|i| cx.transfer(read(i, 1)).is_err()).collect();
        assert_eq!(outcome, [false, false, true, true, false, false]);
        assert_eq!(
            cx.transfer(bio(CRYPT, Dir::Write, false, 0, 4)),
            Err(IoError)
        );
        assert_eq!(cx.transfer(bio(CRYPT, Dir::Read, true, 0, 4)), Err(IoError));
        cx.sleep(10 * MS);
        assert_eq!(cx.transfer(read(2, 1)), Ok(()));
    });
    assert_eq!(m.run(SEC), Ended::Finished);
    assert_eq!(m.sim().block.disk_stats(DISK).failed_bios, 4);
}

fn storm(sim: &mut Sim, ends: &Ends, rng: &mut Rng, from: u64) {
    for token in from..from + 50 {
        let device = [DISK, CRYPT][rng.below(2) as usize];
        let dir = [Dir::Read, Dir::Write][rng.below(2) as usize];
        let (page, pages) = (rng.below(4000), 1 + rng.below(32) as u32);
        ends.submit(sim, token, bio(device, dir, rng.chance(1, 2), page, pages));
    }
}

#[test]
fn every_bio_ends_once_with_faults() {
    for seed in 1..=8 {
        println!("seed {seed}");
        let mut rng = Rng::named(seed, "faults");
        let mut config = config(plain_disk());
        config.seed = seed;
        config.crypts[0].io_thread = rng.chance(1, 2);
        for _ in 0..4 {
            let from = rng.below(2 * SEC);
            config.disks[0].faults.push(Fault::Stall {
                from,
                to: from + rng.below(300 * MS),
            });
            let first_sector = rng.below(30_000);
            config.disks[0].faults.push(Fault::Fail {
                from,
                to: from + rng.below(500 * MS),
                first_sector,
                end_sector: first_sector + rng.below(10_000),
            });
        }
        let mut m = Engine::new(&config).unwrap();
        let ends = Ends::default();
        for i in 0..20 {
            let (ends, mut rng) = (ends.clone(), Rng::named(seed, &format!("storm {i}")));
            let at = rng.below(SEC);
            m.sim()
                .at(at, move |sim| storm(sim, &ends, &mut rng, i * 50));
        }
        m.run_to(100 * SEC);
        let mut order = ends.order();
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(m.sim().block.totals(), (1000, 1000));
        assert_eq!(m.sim().block.in_flight(), 0);
        let stats = m.sim().block.disk_stats(DISK);
        assert!(stats.failed_bios > 0 && stats.failed_bios < 1000);
        assert_eq!(stats.reads + stats.writes + stats.merges, 1000);
    }
}
