//! What runs and requests are counted as, when a run notices its block, and what wakes the daemon. `spec: 5.1, 5.3, 5.5`

use super::super::support::*;
use unfrag_eras::compact::{Kcompactd, Mode, Outcome};
use unfrag_eras::drive::Operation;
use unfrag_eras::host::Host;
use unfrag_eras::lab::RunRequest;
use unfrag_eras::migrate::MoveVerdict;
use unfrag_eras::reclaim::{Answer, Need, Step, Verdict};
use unfrag_eras::{Begun, Builder, CpuId, MigrateType, NodeId, Order, Pfn, ZoneId, ZoneKind};

/// A zone of 8 pageblocks, in each of which `used` frames are in use and the rest is free, whose CPU keeps what is freed.
fn sparse(era: &str, late: bool, used: u64) -> M {
    let mut rules = rules(era);
    let compact = rules.compact.as_mut().expect("it compacts");
    (compact.notices_capture_late, compact.fast_search) = (late, false);
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = fresh(&zones, 1, rules, quiet());
    m.marks(0, 30, 40, 50).sized(0, 0, 4096, 63);
    for i in 0..8 {
        m.block_is(i, MigrateType::Movable);
        let (first, end) = (block(i) + 64, block(i) + 64 + used);
        (first..end).for_each(|pfn| _ = m.used_at(pfn, 0, MOV));
        // Free frames at both ends, in the largest blocks that fit.
        for (mut at, to) in [(block(i), first), (end, block(i + 1))] {
            while at < to {
                let order = at.trailing_zeros().min((to - at).ilog2());
                m.free_at(at, order as u8, MigrateType::Movable);
                at += 1 << order;
            }
        }
    }
    m.counters(0, 0, 8 * (512 - used) as i64);
    m
}

/// A request's run for an order, or a daemon's; all pages that it asks about are moved. The outcome, and where they were.
fn run(m: &mut M, order: u8, mode: Mode, direct: bool) -> (Outcome, Vec<u64>) {
    let mut run = m.lab().compaction(&RunRequest {
        zone: ZoneId(0),
        order: Some(Order(order)),
        migratetype: MigrateType::Movable,
        mode,
        direct,
        whole: false,
    });
    let (mut from, mut answer, cpu) = (Vec::new(), Answer::Go, m.cpu);
    loop {
        answer = match run.step(&mut **m, cpu, answer) {
            Step::Done(outcome) => return (outcome, from),
            Step::Need(Need::Migrate) => Answer::Migrated(run.migration().ask(|ask| {
                from.push(ask.from.0);
                MoveVerdict::Moved
            })),
            Step::Need(_) => Answer::Go,
        };
    }
}

fn all_moved(m: &mut M, direct: bool) -> (Outcome, usize) {
    let (outcome, from) = run(m, 9, Mode::Async, direct);
    (outcome, from.len())
}

/// The pageblocks that pages were in, in turn.
fn blocks(from: &[u64]) -> Vec<u64> {
    let mut blocks: Vec<u64> = from.iter().map(|pfn| (pfn - BASE) / 512).collect();
    blocks.dedup();
    blocks
}

/// `spec: 5.1`: where the next run goes on.
#[test]
fn the_next_run_leaves_out_the_pageblock_behind_the_one_that_was_finished() {
    for (era, late, want) in [
        ("5.9", false, [&[0][..], &[1], &[2]]),
        ("6.1", false, [&[0], &[2], &[4]]),
        ("6.18", true, [&[0, 1], &[2, 3], &[4, 5]]),
    ] {
        let mut m = sparse(era, late, 64);
        for want in want {
            let (outcome, from) = run(&mut m, 9, Mode::Async, true);
            assert_eq!(
                (outcome, &blocks(&from)[..]),
                (Outcome::Success, want),
                "{era}"
            );
        }
    }
}

/// `spec: 5.1`: the free lists have nothing in the upper half of the zone, where the search for targets looks.
#[test]
fn where_the_search_finds_a_place_alone_the_sweep_finds_the_targets() {
    for era in ["5.6", "5.9", "6.1", "6.18"] {
        let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
        let mut m = fresh(&zones, 1, rules(era), quiet());
        m.marks(0, 30, 40, 50).sized(0, 0, 0, 1);
        for i in 0..8 {
            m.block_is(i, MigrateType::Movable);
            let gfp = if i == 0 { MOV } else { UNM };
            for pfn in block(i)..block(i + 1) {
                match (i, pfn % 2) {
                    (0 | 2, 0) => m.free_at(pfn, 0, MigrateType::Movable),
                    _ => m.used_at(pfn, 0, gfp),
                };
            }
        }
        m.counters(0, 0, 512);
        let (outcome, from) = run(&mut m, 5, Mode::SyncLight, true);
        assert_eq!(outcome, Outcome::Success, "{era}");
        assert_eq!(blocks(&from), [0], "{era}");
        m.check();
    }
}

/// `spec: 5.1`: 6.1 ends at the border of the pageblock that it emptied, 6.12 after the first pages of the next one.
#[test]
fn a_captured_block_is_noticed_at_once_or_after_the_next_pages() {
    for (era, late, used, want) in [
        ("6.1", false, 128, 128),
        ("6.18", true, 128, 160),
        ("6.1", false, 32, 32),
        ("6.18", true, 32, 64),
        // A batch is what is left where a pageblock has less.
        ("6.1", false, 10, 10),
        ("6.18", true, 10, 20),
    ] {
        let own = rules(era).compact.map(|c| c.notices_capture_late);
        assert_eq!(own, Some(late), "{era}");
        let mut m = sparse(era, late, used);
        assert_eq!(all_moved(&mut m, true), (Outcome::Success, want), "{era}");
    }
}

/// Makes requests for a huge block that nothing can bring; what they count as: stalls, failures, successes, and the
/// tries of each.
fn counted(era: &str, requests: usize) -> [u64; 3] {
    let zones = [zone(0, ZoneKind::Normal, BASE, 4096)];
    let mut m = fresh(&zones, 1, rules(era), quiet());
    m.marks(0, 30, 40, 50).sized(0, 0, 0, 1);
    for i in 0..8 {
        m.block_is(i, MigrateType::Movable);
    }
    for pfn in (BASE..BASE + 4096).step_by(2) {
        m.free_at(pfn, 0, MigrateType::Movable);
        m.used_at(pfn + 1, 0, UNM);
    }
    m.counters(0, 0, 2048);
    for _ in 0..requests {
        let request = m.request(9, MOV);
        let Ok(Begun::Allocation(mut a)) = m.begin(&request) else {
            panic!("it needs the slow path")
        };
        let (mut answer, cpu) = (Answer::Go, m.cpu);
        loop {
            answer = match a.step(&mut *m, cpu, answer) {
                Step::Done(got) => break assert!(got.is_err(), "nothing can be had"),
                Step::Need(Need::Migrate) => {
                    Answer::Migrated(a.migration().ask(|_| MoveVerdict::Busy))
                }
                Step::Need(Need::Evict) => Answer::Evicted(a.eviction().ask(|_| Verdict::Busy)),
                Step::Need(Need::Shrink { .. }) => Answer::Freed(0),
                Step::Need(Need::CongestionWait { .. } | Need::Throttle { .. }) => Answer::Left(0),
                Step::Need(_) => Answer::Go,
            };
        }
    }
    let c = m.inspect().compact_counters();
    [c.compact_stall, c.compact_fail, c.compact_success]
}

/// `spec: 5.3`: of 6.1 on, a request that was put off counts as one that compacted in vain.
#[test]
fn a_request_that_was_put_off_counts_as_a_failure_since_6_1() {
    // The daemon's failures put the zone off for 64 requests, of which each tries several times.
    for (era, counts) in [
        ("5.6", false),
        ("5.9", false),
        ("6.1", true),
        ("6.18", true),
    ] {
        let own = rules(era).compact.map(|c| c.counts_deferred);
        assert_eq!(own, Some(counts), "{era}");
        let [few, many] = [1, 40].map(|n| counted(era, n));
        for [stall, fail, success] in [few, many] {
            assert_eq!((stall, success), (fail, 0), "{era}");
        }
        let tries = many[0] as usize;
        assert_eq!(tries >= 40, counts, "{era}: {tries} of 40 requests");
    }
}

/// A host that notes the calls for kcompactd.
#[derive(Default)]
struct Calls(Vec<NodeId>);

impl Host for Calls {
    fn wake_kcompactd(&mut self, node: NodeId) {
        self.0.push(node);
    }
}

/// `spec: 5.5`: a write of a value other than 0 calls for the daemon, where there is one that compacts ahead of demand.
#[test]
fn a_write_of_the_proactiveness_calls_for_the_daemon() {
    for (era, percent, calls) in [
        ("5.6", 20, 0),
        ("5.9", 20, 1),
        ("6.1", 20, 1),
        ("6.18", 20, 1),
        ("6.18", 255, 1),
        ("6.18", 0, 0),
        ("2.6.36", 20, 0),
        ("2.6.32", 20, 0),
    ] {
        let builder = Builder::new().region(Pfn(0x10_0000), 4096).era(era);
        let mut memory = vec![0; builder.layout().expect("a layout").words];
        let booted = builder.boot(Calls::default(), &mut memory);
        let mut m = booted.expect("a manager");
        m.lab().set_compaction_proactiveness(percent);
        assert_eq!(m.host().0.len(), calls, "{era}, {percent}");
    }
}

/// `spec: 5.5`: what the call brings is a look; whether a run follows is the score's to say.
#[test]
fn a_write_of_the_proactiveness_starts_a_look_and_no_run_below_the_mark() {
    for (percent, runs) in [(20, false), (60, true)] {
        let mut m = sparse("6.18", true, 128);
        m.lab().set_compaction_proactiveness(0);
        // A quarter of the free frames in huge blocks is a score of 75 or so: above 60 percent's mark, below 20's.
        for _ in 0..2 {
            assert_eq!(all_moved(&mut m, false).0, Outcome::Success);
        }
        m.drain(0, 0);
        let score = m.fragmentation_score(NodeId(0));
        assert!((60..90).contains(&score), "{score}");
        let mut k = Kcompactd::new(NodeId(0));
        let cpu = CpuId(0);
        assert_eq!(k.run(&mut m, cpu, Answer::Go), Need::Sleep(None));
        m.lab().set_compaction_proactiveness(percent);
        let need = k.run(&mut m, cpu, Answer::Left(1));
        assert_eq!(need == Need::Sleep(Some(500)), !runs, "{percent}: {need:?}");
        k.abort(&mut m, cpu, Answer::Go);
    }
}
