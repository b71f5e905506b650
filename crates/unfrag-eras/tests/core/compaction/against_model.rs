//! Runs of the allocator against the naive model, in thousands of small zones. `spec: 5.1, 5.2, 5.3`
//!
//! The seed is printed. `UNFRAG_SEED=n` sets another one, `UNFRAG_CASES=n` the number of zones.

use super::super::flips::world::Chance;
use super::super::model::compaction::{Content, Run, Zone};
use super::super::support::*;
use unfrag_eras::MigrateType::{Movable, Reclaimable, Unmovable};
use unfrag_eras::compact::{Mode, Outcome};
use unfrag_eras::drive::Operation;
use unfrag_eras::frame::{FrameKind, OwnerId};
use unfrag_eras::kernel::Capture;
use unfrag_eras::lab::RunRequest;
use unfrag_eras::migrate::MoveVerdict;
use unfrag_eras::reclaim::{Answer, Need, PageFlags, Step};
use unfrag_eras::restore::CompactPositions;
use unfrag_eras::{Order, Pfn, Sysctl, ZoneId, ZoneKind};

const BUSY: u32 = 1;

struct Pair {
    m: M,
    model: Zone,
}

impl Pair {
    fn new(era: &str, c: &mut Chance) -> Pair {
        let blocks = 4 + c.below(5) as usize;
        // Some zones end within a pageblock.
        let len = blocks * 512 - c.of(&[0, 0, 3, 256, 500]);
        let mut rules = rules(era);
        if let Some(compact) = &mut rules.compact {
            (compact.fast_search, compact.capture) = (false, Capture::No);
        }
        let sysctl =
            quiet().with(|s: &mut Sysctl| s.extfrag_threshold = c.of(&[500, 500, 0, 800, 1000]));
        let threshold = i64::from(sysctl.extfrag_threshold);
        let zones = [zone(0, ZoneKind::Normal, BASE, len as u64)];
        let mut m = fresh(&zones, 1, rules, sysctl);
        let min = c.below(60) as usize;
        let low = min + c.below(40) as usize;
        m.marks(0, min as u64, low as u64, low as u64 + 20);
        // Frees go to the buddy lists at once.
        m.sized(0, 0, 0, 1);
        let mut types = Vec::new();
        for i in 0..blocks {
            // Pairs alike, so that a merge of two pageblocks has one type.
            let mt = c.of(&[Movable, Movable, Movable, Unmovable, Reclaimable]);
            types.push(if i % 2 == 1 { types[i - 1] } else { mt });
            m.block_is(i as u64, types[i]);
        }
        let mut frames = Vec::new();
        while frames.len() < len {
            // Runs of frames alike, as fragments are.
            let free = c.of(&[1, 2, 6, 9]);
            let longest = c.of(&[1, 3, 20, 700]);
            let run = 1 + c.below(longest) as usize;
            let what = match c.below(10) {
                n if n < free => Content::Free,
                0..9 => Content::Page { busy: false },
                _ => Content::Kernel,
            };
            for _ in 0..run.min(len - frames.len()) {
                frames.push(match what {
                    Content::Page { .. } if c.one_in(30) => Content::Page { busy: true },
                    Content::Page { .. } if c.one_in(60) => Content::Pinned {
                        writeback: c.one_in(2),
                    },
                    other => other,
                });
            }
        }
        let mut model = Zone {
            old: era == "2.6.36",
            passes_over_next: rules.compact.is_some_and(|c| c.passes_over_next),
            frames,
            types,
            skip: vec![false; blocks],
            min,
            low,
            extfrag_threshold: threshold,
            migrate: [0; 2],
            free: (len - 1) / 512 * 512,
            moves: Vec::new(),
            migrate_scanned: 0,
            free_scanned: 0,
            success: 0,
            fail: 0,
        };
        for skip in &mut model.skip {
            *skip = !model.old && c.one_in(8);
        }
        for (i, skip) in model.skip.iter().enumerate() {
            m.lab().edit().skipped(Pfn(block(i as u64)), *skip).unwrap();
        }
        if !model.old && c.one_in(2) {
            // As runs before left them.
            let at = c.below(blocks as u64 / 2) as usize * 512;
            model.migrate = [at + c.of(&[0, 512]), at];
            model.free -= c.of(&[0, 512]);
            let pfn = |i: usize| Pfn(BASE + i as u64);
            let positions = CompactPositions {
                migrate: model.migrate.map(pfn),
                free: pfn(model.free),
                considered: 0,
                defer_shift: 0,
                order_failed: 0,
            };
            m.lab().edit().compaction(ZoneId(0), positions).unwrap();
        }
        let owner = OwnerId::new(1).unwrap();
        for (i, f) in model.frames.iter().enumerate() {
            let p = Pfn(BASE + i as u64);
            match f {
                Content::Free => continue,
                Content::Kernel => _ = m.used_at(p.0, 0, UNM),
                _ => _ = m.used_at(p.0, 0, MOV),
            }
            let busy = matches!(f, Content::Page { busy: true });
            m.pages().adopt(p, owner, if busy { BUSY } else { 0 });
            if let Content::Pinned { writeback } = f {
                let flag = if *writeback {
                    PageFlags::WRITEBACK
                } else {
                    PageFlags::LOCKED
                };
                m.pages().set(p, flag);
            }
        }
        for (at, order) in model.blocks() {
            m.free_at(BASE + at as u64, order, model.types[at / 512]);
        }
        // Marks are held against what is free now.
        m.counters(0, 0, model.free_pages() as i64);
        m.check();
        Pair { m, model }
    }

    fn core_run(&mut self, run: &Run) -> (Outcome, Vec<(usize, usize, bool)>) {
        let request = RunRequest {
            zone: ZoneId(0),
            order: run.order.map(Order),
            migratetype: run.mt,
            mode: run.mode,
            direct: false,
            whole: run.whole,
        };
        let suitable = self.m.lab().compaction_suitable(&request);
        assert_eq!(suitable, self.model.suitable(run), "suitability");
        let mut operation = self.m.lab().compaction(&request);
        let (mut answer, mut moves, cpu) = (Answer::Go, Vec::new(), self.m.cpu);
        loop {
            let step = operation.step(&mut *self.m, cpu, answer);
            answer = match step {
                Step::Done(outcome) => return (outcome, moves),
                Step::Need(Need::Migrate) => Answer::Migrated(operation.migration().ask(|ask| {
                    let stays = ask.key == BUSY;
                    let ix = |p: Pfn| (p.0 - BASE) as usize;
                    moves.push((ix(ask.from), ix(ask.to), !stays));
                    if stays {
                        MoveVerdict::Busy
                    } else {
                        MoveVerdict::Moved
                    }
                })),
                Step::Need(_) => Answer::Go,
            };
        }
    }

    fn run(&mut self, run: &Run) -> Outcome {
        let (outcome, moves) = self.core_run(run);
        self.model.moves.clear();
        assert_eq!(outcome, self.model.compact(run), "outcome of {run:?}");
        assert_eq!(moves, self.model.moves, "moves of {run:?}");
        self.compare();
        outcome
    }

    fn compare(&self) {
        self.m.check();
        let n = self.m.inspect().compact_counters();
        let m = &self.model;
        assert_eq!(
            (n.compact_migrate_scanned, n.compact_free_scanned),
            (m.migrate_scanned, m.free_scanned),
            "scanned"
        );
        assert_eq!(
            (n.pgmigrate_success, n.pgmigrate_fail),
            (m.success, m.fail),
            "moved"
        );
        for (i, f) in m.frames.iter().enumerate() {
            let p = Pfn(BASE + i as u64);
            let is_free = self.m.inspect().free_block(p).is_some();
            assert_eq!(is_free, *f == Content::Free, "frame {i}");
            if let Some(order) = m.block_at(i) {
                let f = self.m.inspect().frame(p).unwrap();
                assert_eq!((f.kind, f.order.0), (FrameKind::Buddy, order), "block {i}");
            }
        }
        for (i, skip) in m.skip.iter().enumerate() {
            let p = Pfn(block(i as u64));
            assert_eq!(self.m.inspect().is_skipped(p), *skip, "skip bit of {i}");
        }
        let at = self.m.inspect().compaction(ZoneId(0));
        if !m.old {
            let pfn = |i: usize| Pfn(BASE + i as u64);
            assert_eq!(at.migrate, m.migrate.map(pfn), "migrate scanner");
            assert_eq!(at.free, pfn(m.free), "free scanner");
        }
    }
}

#[test]
fn runs_go_as_the_naive_model_says() {
    let (first, cases) = (setting("UNFRAG_SEED", 1), setting("UNFRAG_CASES", 3000));
    let mut seen = [0u32; 9];
    let mut moved = 0;
    for seed in first..first + cases {
        let era = ["2.6.36", "5.6", "5.9", "6.1"][seed as usize % 4];
        println!("seed {seed}, {era}");
        let c = &mut Chance(seed);
        let mut pair = Pair::new(era, c);
        for _ in 0..4 {
            let modes = [Mode::Async, Mode::SyncLight, Mode::Sync];
            let run = Run {
                order: c.of(&[None, Some(9), Some(9), Some(6), Some(4), Some(3), Some(1)]),
                mt: c.of(&[Movable, Unmovable, Reclaimable]),
                mode: if pair.model.old {
                    Mode::Sync
                } else {
                    c.of(&modes)
                },
                whole: c.one_in(3),
            };
            seen[pair.run(&run) as usize] += 1;
        }
        moved += pair.model.success;
    }
    // Each way in which such a run can end was met.
    for outcome in [
        Outcome::NotSuitableZone,
        Outcome::Skipped,
        Outcome::Complete,
        Outcome::PartialSkipped,
        Outcome::Contended,
        Outcome::Success,
    ] {
        let n = seen[outcome as usize];
        assert!(n >= 10 || cases < 3000, "{outcome:?} was met {n} times");
    }
    println!("{seen:?}, {moved} pages moved");
}
