//! unfrag's own chooser of what moves. `spec: 5.1, 5.3`
//!
//! The seed is printed. `UNFRAG_SEED=n` sets another one.

use super::super::flips::world::Chance;
use super::super::support::*;
use unfrag_eras::compact::{Compaction, Kcompactd, Mode, Outcome};
use unfrag_eras::drive::Operation;
use unfrag_eras::frame::{FrameKind, OwnerId};
use unfrag_eras::lab::RunRequest;
use unfrag_eras::migrate::{MoveAsk, MoveVerdict};
use unfrag_eras::reclaim::{Answer, Need, PageFlags, Step, Verdict};
use unfrag_eras::{Begun, Gfp, MigrateType, NodeId, Order, Pfn, ZoneId, ZoneKind};

const BLOCK: u64 = 512;
const THP: Gfp = Gfp::HIGHUSER_MOVABLE.union(Gfp::NORETRY);

/// Memory in movable pageblocks, where `used` says which frames hold a page of an owner.
fn filled(era: &str, blocks: u64, used: impl FnMut(u64, u64) -> bool) -> M {
    filled_but(era, blocks, None, used)
}

/// The same; `first` is how the first frame was asked for, by a user who has not said who it is.
fn filled_but(
    era: &str,
    blocks: u64,
    first: Option<Gfp>,
    mut used: impl FnMut(u64, u64) -> bool,
) -> M {
    let zones = [zone(0, ZoneKind::Normal, BASE, blocks * BLOCK)];
    let mut m = fresh(&zones, 1, rules(era), quiet());
    m.marks(0, 30, 40, 50).sized(0, 0, 0, 1);
    let mut free = 0;
    for i in 0..blocks {
        m.block_is(i, MigrateType::Movable);
        let taken: Vec<bool> = (0..BLOCK).map(|f| used(i, f)).collect();
        let mut f = 0;
        while f < BLOCK {
            let fits = |o: &u8| {
                let n = 1u64 << o;
                f % n == 0 && taken[f as usize..(f + n) as usize].iter().all(|t| !t)
            };
            let pfn = block(i) + f;
            match (0..=9).rev().find(fits) {
                Some(order) => {
                    m.free_at(pfn, order, MigrateType::Movable);
                    (f, free) = (f + (1 << order), free + (1 << order));
                }
                None => {
                    let gfp = first.filter(|_| pfn == BASE);
                    m.used_at(pfn, 0, gfp.unwrap_or(MOV));
                    if gfp.is_none() {
                        own(&mut m, pfn);
                    }
                    f += 1;
                }
            }
        }
    }
    m.counters(0, 0, free);
    m.check();
    m
}

fn own(m: &mut M, pfn: u64) {
    let owner = OwnerId::new(3).expect("an owner");
    assert!(m.pages().adopt(Pfn(pfn), owner, pfn as u32));
}

/// Frames in use of each pageblock.
fn used_by_block(m: &M, blocks: u64) -> Vec<u64> {
    let used = |p: u64| m.inspect().frame(Pfn(p)).expect("a frame");
    let mut counts = vec![0; blocks as usize];
    let mut at = BASE;
    while at < BASE + blocks * BLOCK {
        let (f, n) = (used(at), 1 << used(at).order.0);
        if f.kind == FrameKind::Used {
            counts[((at - BASE) / BLOCK) as usize] += n;
        }
        at += n;
    }
    counts
}

fn free_blocks(m: &M) -> u64 {
    m.zone_view(0).nr_free[9] + 2 * m.zone_view(0).nr_free[10]
}

/// A run, with what owners say.
fn finish(
    m: &mut M,
    run: &mut Compaction,
    owner: &mut dyn FnMut(&MoveAsk) -> MoveVerdict,
) -> Outcome {
    let (mut answer, cpu) = (Answer::Go, m.cpu);
    loop {
        answer = match run.step(&mut **m, cpu, answer) {
            Step::Done(outcome) => return outcome,
            Step::Need(Need::Migrate) => Answer::Migrated(run.migration().ask(|a| owner(a))),
            Step::Need(_) => Answer::Go,
        };
        m.check();
    }
}

fn run_for(order: Option<u8>, direct: bool) -> RunRequest {
    RunRequest {
        zone: ZoneId(0),
        order: order.map(Order),
        migratetype: MigrateType::Movable,
        mode: Mode::SyncLight,
        direct,
        whole: order.is_none(),
    }
}

/// A huge page, in a world in which all owners move their pages.
fn huge_page(m: &mut M, order: u8) -> Option<Pfn> {
    let request = m.request(order, THP);
    let mut a = match m.begin(&request).ok()? {
        Begun::Got(pfn) => return Some(pfn),
        Begun::Allocation(a) => a,
    };
    let (mut answer, cpu) = (Answer::Go, m.cpu);
    loop {
        answer = match a.step(&mut **m, cpu, answer) {
            Step::Done(got) => return got.ok(),
            Step::Need(Need::Migrate) => {
                Answer::Migrated(a.migration().ask(|_| MoveVerdict::Moved))
            }
            Step::Need(Need::Evict) => Answer::Evicted(a.eviction().ask(|_| Verdict::Busy)),
            Step::Need(Need::Shrink { .. }) => Answer::Freed(0),
            Step::Need(Need::Oom) => Answer::Killed(false),
            Step::Need(Need::CongestionWait { .. } | Need::Throttle { .. }) => Answer::Left(0),
            Step::Need(_) => Answer::Go,
        };
    }
}

/// Pages moved for each huge page, when as many are asked for as `wanted`; how many there were, and the least pages.
fn copies(m: &mut M, blocks: u64, wanted: usize) -> (usize, u64, u64) {
    let mut costs = used_by_block(m, blocks);
    costs.sort_unstable();
    let got = (0..wanted)
        .take_while(|_| huge_page(m, 9).is_some())
        .count();
    m.check();
    let moved = m.inspect().compact_counters().pgmigrate_success;
    (got, moved, costs[..got].iter().sum())
}

/// A quarter of each pageblock is in use, as by the test that fragments memory in the source. The scanners move a page
/// for some targets more than once, and 32 of the next pageblock with each block; when they have met, they have left out
/// every second one.
#[test]
fn from_quarter_full_blocks_each_gain_costs_a_quarter() {
    let mut m = filled("unfrag-lists", 256, |_, f| f % 4 == 1);
    let (got, moved, least) = copies(&mut m, 256, 150);
    println!("unfrag: {got} blocks, {moved} pages moved, {least} at least");
    assert_eq!((got, least), (150, 150 * 128));
    assert!(moved * 100 <= least * 102);
    let mut m = filled("6.18", 256, |_, f| f % 4 == 1);
    let (got, moved, _) = copies(&mut m, 256, 100);
    println!("6.18: {got} blocks, {moved} pages moved");
    assert!((70..=100).contains(&got), "{got} blocks");
    let each = moved / got as u64;
    assert!((160..=240).contains(&each), "{moved} pages");
}

/// Each pageblock is full to a share of its own, or all to the same one, at random.
#[test]
fn from_random_fill_gains_cost_what_the_cheapest_blocks_do() {
    let first = setting("UNFRAG_SEED", 1);
    for seed in first..first + 3 {
        for (wanted, same) in [
            (1, None),
            (10, None),
            (100, None),
            (60, Some(250)),
            (40, Some(600)),
        ] {
            let of = |era: &str| {
                let mut c = Chance(seed);
                let shares: Vec<u64> = (0..256).map(|_| same.unwrap_or(c.below(1000))).collect();
                let mut m = filled(era, 256, |i, _| c.below(1000) < shares[i as usize]);
                copies(&mut m, 256, wanted)
            };
            let (got, moved, least) = of("unfrag-lists");
            println!(
                "seed {seed}, {same:?}: {got} blocks of {wanted}, {moved} pages moved, {least} at least"
            );
            assert_eq!(got, wanted);
            assert!(moved * 100 <= least * 102, "{moved} for {least}");
        }
    }
}

/// Blocks of the largest order cost what the cheapest aligned pair of pageblocks does.
#[test]
fn a_block_of_two_pageblocks_is_the_cheapest_pair() {
    let mut c = Chance(setting("UNFRAG_SEED", 3));
    println!("seed {}", c.0);
    let shares: Vec<u64> = (0..64).map(|_| 200 + c.below(800)).collect();
    let mut m = filled("unfrag-lists", 64, |i, _| {
        c.below(1000) < shares[i as usize]
    });
    let used = used_by_block(&m, 64);
    let least = used.chunks(2).map(|p| p[0] + p[1]).min().expect("pairs");
    let got = huge_page(&mut m, 10).expect("a block");
    assert_eq!(got.0 % 1024, 0);
    assert_eq!(m.inspect().compact_counters().pgmigrate_success, least);
    m.check();
}

/// What holds a page that cannot be moved is left alone, though it is the emptiest.
#[test]
fn blocks_that_cannot_be_emptied_are_not_begun() {
    for bad in 0..4 {
        // Not movable; of a user who cannot be asked; locked for a while; being written.
        let first = [Some(UNM), Some(MOV), None, None][bad];
        let mut m = filled_but("unfrag-lists", 8, first, |i, f| {
            f % 8 < i.max(1) + u64::from(i == 1)
        });
        match bad {
            2 => m.pages().set(Pfn(BASE), PageFlags::LOCKED),
            3 => m.pages().set(Pfn(BASE), PageFlags::WRITEBACK),
            _ => {}
        }
        let mut froms = Vec::new();
        let mut run = m.lab().compaction(&run_for(Some(9), true));
        let outcome = finish(&mut m, &mut run, &mut |a| {
            froms.push((a.from.0 - BASE) / BLOCK);
            MoveVerdict::Moved
        });
        assert_eq!(outcome, Outcome::Success, "case {bad}");
        assert_eq!(froms.len(), 128, "case {bad}: the second block's pages");
        assert!(froms.iter().all(|&b| b == 1), "case {bad}: {froms:?}");
        let cpu = m.cpu;
        run.abort(&mut m, cpu, Answer::Go);
        m.check();
    }
}

/// A block whose owner refuses is left alone for 2 runs, then 4, up to 64; a run for the whole zone tries it anyway.
#[test]
fn a_block_that_stays_is_left_alone_for_a_while() {
    let mut m = filled("unfrag-lists", 16, |i, f| {
        f % 8 < if i == 0 { 1 } else { 7 }
    });
    let mut tried = Vec::new();
    for n in 0..150u32 {
        let mut run = m.lab().compaction(&run_for(Some(9), false));
        let mut asked = false;
        finish(&mut m, &mut run, &mut |a| {
            asked |= a.from.0 < BASE + BLOCK;
            MoveVerdict::Busy
        });
        if asked {
            tried.push(n);
        }
    }
    let gaps: Vec<u32> = tried.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(gaps, [2, 4, 8, 16, 32, 64]);
    let mut run = m.lab().compaction(&run_for(None, false));
    let mut asked = 0;
    finish(&mut m, &mut run, &mut |a| {
        asked += u32::from(a.from.0 < BASE + BLOCK);
        MoveVerdict::Busy
    });
    assert_eq!(asked, 32, "one batch, and not once more in the same run");
    assert_eq!(free_blocks(&m), 0);
}

/// Refusals at each step: after the n-th page all owners say no. Whatever was moved stays moved, and all frames are
/// where they should be.
#[test]
fn a_refusal_at_any_page_leaves_everything_whole() {
    for refused in 0..64 {
        let mut m = filled("unfrag-lists", 8, |i, f| f % 8 < if i == 0 { 1 } else { 6 });
        let before: u64 = used_by_block(&m, 8).iter().sum();
        let mut run = m.lab().compaction(&run_for(Some(9), true));
        let mut n = 0;
        finish(&mut m, &mut run, &mut |_| {
            n += 1;
            if n - 1 == refused {
                MoveVerdict::Busy
            } else {
                MoveVerdict::Moved
            }
        });
        assert!(n > refused, "{refused}: it was asked about");
        let cpu = m.cpu;
        run.abort(&mut m, cpu, Answer::Go);
        m.check();
        let after: u64 = used_by_block(&m, 8).iter().sum();
        assert_eq!(before, after, "refused at {refused}");
        let types = (0..8).map(|i| m.type_of(block(i)));
        assert!(types.eq([MigrateType::Movable; 8]), "none is set apart");
    }
}

/// A run that is killed in the middle gives its block and its targets back.
#[test]
fn a_run_that_is_killed_holds_nothing() {
    for steps in 1..12 {
        let mut m = filled("unfrag-lists", 8, |_, f| f % 4 == 0);
        let before: u64 = used_by_block(&m, 8).iter().sum();
        let mut run = m.lab().compaction(&run_for(None, false));
        let (mut answer, cpu) = (Answer::Go, m.cpu);
        for _ in 0..steps {
            answer = match run.step(&mut *m, cpu, answer) {
                Step::Done(_) => break,
                Step::Need(Need::Migrate) => {
                    m.check();
                    Answer::Migrated(run.migration().ask(|_| MoveVerdict::Moved))
                }
                Step::Need(_) => Answer::Go,
            };
        }
        run.abort(&mut m, cpu, answer);
        m.check();
        assert_eq!(before, used_by_block(&m, 8).iter().sum::<u64>());
        assert!((0..8).all(|i| m.type_of(block(i)) == MigrateType::Movable));
    }
}

/// While a block is emptied nobody gets frames of it.
#[test]
fn nobody_allocates_from_a_block_that_is_being_emptied() {
    let mut m = filled("unfrag-lists", 8, |i, f| f % 8 < if i == 3 { 2 } else { 6 });
    let mut run = m.lab().compaction(&run_for(Some(9), true));
    let (mut answer, cpu, mut batches) = (Answer::Go, m.cpu, 0);
    loop {
        answer = match run.step(&mut *m, cpu, answer) {
            Step::Done(outcome) => break assert_eq!(outcome, Outcome::Success),
            Step::Need(Need::Migrate) => {
                batches += 1;
                for _ in 0..20 {
                    let p = m.take(0, MOV);
                    assert_ne!((p - BASE) / BLOCK, 3, "{p:#x}");
                }
                Answer::Migrated(run.migration().ask(|_| MoveVerdict::Moved))
            }
            Step::Need(_) => Answer::Go,
        };
        m.check();
    }
    assert_eq!(batches, 128 / 32);
    run.abort(&mut m, cpu, Answer::Go);
    m.check();
}

/// A whole zone is emptied into as few blocks as hold its pages.
#[test]
fn a_run_over_the_whole_zone_gains_all_there_is() {
    let mut c = Chance(setting("UNFRAG_SEED", 5));
    println!("seed {}", c.0);
    let mut m = filled("unfrag-lists", 32, |_, _| c.below(100) < 40);
    let used: u64 = used_by_block(&m, 32).iter().sum();
    let mut run = m.lab().compaction(&run_for(None, false));
    let outcome = finish(&mut m, &mut run, &mut |_| MoveVerdict::Moved);
    assert_eq!(outcome, Outcome::Complete);
    // The marks keep some frames free: a pageblock more, at most.
    let most = 32 - used.div_ceil(BLOCK);
    assert!(
        (most - 1..=most).contains(&free_blocks(&m)),
        "{}",
        free_blocks(&m)
    );
    assert_eq!(used_by_block(&m, 32).iter().sum::<u64>(), used);
}

/// Sleeps once, with the owners' verdict: how long the daemon sleeps now, and what it asked for.
fn period(m: &mut M, k: &mut Kcompactd, verdict: MoveVerdict) -> (Option<u32>, usize) {
    let (mut answer, mut asked, cpu) = (Answer::Left(0), 0, m.cpu);
    loop {
        answer = match k.run(m, cpu, answer) {
            Need::Sleep(ms) => return (ms, asked),
            Need::Migrate => {
                asked += k.migration().asks().len();
                Answer::Migrated(k.migration().ask(|_| verdict))
            }
            _ => Answer::Go,
        };
        m.check();
    }
}

/// Without demand kcompactd does nothing; with it, it keeps as many blocks free as one period asked for, and lets go
/// of that in time.
#[test]
fn as_many_huge_blocks_are_kept_free_as_are_asked_for() {
    let mut m = filled("unfrag-lists", 64, |_, f| f % 4 == 0);
    let mut k = Kcompactd::new(NodeId(0));
    for _ in 0..4 {
        assert_eq!(period(&mut m, &mut k, MoveVerdict::Moved), (Some(500), 0));
    }
    assert_eq!(free_blocks(&m), 0);
    let huge: Vec<Pfn> = (0..8).map(|_| huge_page(&mut m, 9).expect("one")).collect();
    period(&mut m, &mut k, MoveVerdict::Moved);
    assert_eq!(free_blocks(&m), 9, "8 and an eighth more");
    // They are there at once the next time.
    let before = m.inspect().compact_counters().pgmigrate_success;
    let more: Vec<Pfn> = (0..8).map(|_| huge_page(&mut m, 9).expect("one")).collect();
    assert_eq!(m.inspect().compact_counters().pgmigrate_success, before);
    for p in huge.iter().chain(&more) {
        m.free(*p, 9).expect("it is in use");
    }
    m.drain(0, 0);
    for _ in 0..200 {
        assert_eq!(period(&mut m, &mut k, MoveVerdict::Moved), (Some(500), 0));
    }
    // Nobody asked for long: what is used up is not made good.
    while free_blocks(&m) > 0 {
        m.take(0, MOV);
    }
    assert_eq!(period(&mut m, &mut k, MoveVerdict::Moved), (Some(500), 0));
}

/// Where nothing can be gained, each look comes after twice the time, up to 32 seconds.
#[test]
fn where_nothing_is_gained_the_daemon_backs_off() {
    let mut m = filled("unfrag-lists", 64, |_, f| f % 4 == 0);
    let mut k = Kcompactd::new(NodeId(0));
    period(&mut m, &mut k, MoveVerdict::Moved);
    for _ in 0..40 {
        huge_page(&mut m, 9).expect("one");
    }
    let sleeps: Vec<_> = (0..7)
        .map(|_| period(&mut m, &mut k, MoveVerdict::Busy).0.expect("a time"))
        .collect();
    assert_eq!(sleeps[..5], [1000, 2000, 4000, 8000, 16000]);
    assert!(
        sleeps[5..].iter().all(|&ms| ms == 32000 || ms == 500),
        "{sleeps:?}"
    );
    assert_eq!(free_blocks(&m), 0);
    // Off: it sleeps until it is asked.
    m.lab().set_compaction_proactiveness(0);
    assert_eq!(period(&mut m, &mut k, MoveVerdict::Moved), (None, 0));
}
