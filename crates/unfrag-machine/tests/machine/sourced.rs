//! Compaction that unfrag's own engine leads: what gets in the way of a run at each step, and what is made ahead of demand.

use unfrag_eras::compact::{Compaction, Kcompactd};
use unfrag_eras::drive::Operation;
use unfrag_eras::frame::{FrameKind, OwnerId};
use unfrag_eras::kernel::UNFRAG;
use unfrag_eras::migrate::{MoveAsk, MoveVerdict};
use unfrag_eras::reclaim::{Answer, Need, Step, Verdict};
use unfrag_eras::source::Source;
use unfrag_eras::{
    Begun, Builder, CpuId, Gfp, Host, Manager, MigrateType, NodeId, Order, Pfn, Request, Sysctl,
    ZoneId,
};
use unfrag_machine::own::Own;

const CPU: CpuId = CpuId(0);
const ZONE: ZoneId = ZoneId(0);
const BASE: u64 = 0x4_0000;
const BLOCK: u64 = 512;
const MOV: Gfp = Gfp::HIGHUSER_MOVABLE;

struct Chosen(Box<Own>);

impl Host for Chosen {
    const SOURCES: bool = true;
    fn source(&mut self) -> Option<&mut dyn Source> {
        Some(&mut *self.0)
    }
}

type M<'m> = Manager<'m, Chosen>;

/// Calls `f` with memory full of pages of one owner, but for those whose block and frame `is_free` says.
fn with_memory(
    blocks: u64,
    proactiveness: u8,
    is_free: impl Fn(u64, u64) -> bool,
    f: impl FnOnce(&mut M<'_>),
) {
    let sysctl = Sysctl::default().with(|s| {
        s.min_free_kbytes = 128;
        s.watermark_scale_factor = 0;
        s.compaction_proactiveness = proactiveness;
    });
    let config = Builder::new()
        .region(Pfn(BASE), blocks * BLOCK)
        .era("unfrag")
        .sysctl(sysctl);
    let mut words = vec![0; config.layout().expect("a layout").words];
    let own = Own::of(&UNFRAG.rules).expect("its rules ask for one");
    let mut m = config.boot(Chosen(own), &mut words).expect("a manager");
    let owner = OwnerId::new(3).expect("an owner");
    let mut pages = Vec::new();
    while let Ok(page) = m.alloc(&Request::new(Order(0), MOV)) {
        assert!(m.pages().adopt(page, owner, page.0 as u32));
        pages.push(page);
    }
    for page in pages {
        let at = page.0 - BASE;
        if is_free(at / BLOCK, at % BLOCK) {
            m.free(CPU, page, Order(0)).expect("in use");
        }
    }
    m.drain_all();
    check(&m);
    f(&mut m);
}

/// Every invariant holds, and the engine has what the lists show, unless a run is under way.
fn check(m: &M<'_>) {
    m.inspect().validate().expect("a sound state");
    let shown = |zone: ZoneId| {
        let pages = m.inspect().zone(zone).nr_free;
        pages.iter().enumerate().map(|(o, n)| n << o).sum()
    };
    m.host().0.check(shown).expect("an engine that agrees");
}

/// Frames in use; no pageblock is set apart.
fn used(m: &M<'_>) -> u64 {
    assert_eq!(
        m.inspect().blocks_by_type(ZONE)[MigrateType::Isolate as usize],
        0
    );
    let config = m.inspect().zone_config(ZONE);
    let (mut at, end, mut used) = (config.start.0, config.start.0 + config.spanned, 0);
    while at < end {
        let f = m.inspect().frame(Pfn(at)).expect("a frame");
        let frames = 1 << f.order.0;
        used += if f.kind == FrameKind::Used { frames } else { 0 };
        at += frames;
    }
    used
}

fn free_huge(m: &M<'_>) -> u64 {
    let free = m.inspect().zone(ZONE).nr_free;
    free[9] + 2 * free[10]
}

fn moved(m: &M<'_>) -> u64 {
    m.inspect().compact_counters().pgmigrate_success
}

/// A huge page; `meet` is called where owners are asked to move pages.
fn huge_page(m: &mut M<'_>, mut meet: impl FnMut(&mut M<'_>)) -> Option<Pfn> {
    let request = Request::new(Order::HUGE, MOV | Gfp::NORETRY | Gfp::NOWARN);
    let mut a = match m.begin(&request).ok()? {
        Begun::Got(page) => return Some(page),
        Begun::Allocation(a) => a,
    };
    let mut answer = Answer::Go;
    loop {
        answer = match a.step(m, CPU, answer) {
            Step::Done(got) => return got.ok(),
            Step::Need(Need::Migrate) => {
                meet(m);
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

/// Goes on with a run over the zone for so many steps, or to its end, and aborts it.
fn compact(m: &mut M<'_>, steps: usize, mut owner: impl FnMut(&MoveAsk) -> MoveVerdict) {
    let (mut run, mut answer) = (Compaction::whole_zone(ZONE), Answer::Go);
    for _ in 0..steps {
        answer = match run.step(m, CPU, answer) {
            Step::Done(_) => break,
            Step::Need(Need::Migrate) => Answer::Migrated(run.migration().ask(|a| owner(a))),
            Step::Need(_) => Answer::Go,
        };
        m.inspect().validate().expect("a sound state");
    }
    run.abort(m, CPU, answer);
    check(m);
}

/// After the n-th page all owners say no. What was moved stays moved, and all frames are where they should be.
#[test]
fn a_refusal_at_any_page_leaves_everything_whole() {
    for refused in 0..64 {
        with_memory(
            8,
            0,
            |block, f| f % 8 >= if block == 0 { 1 } else { 6 },
            |m| {
                let (before, mut asked) = (used(m), 0);
                compact(m, usize::MAX, |_| {
                    asked += 1;
                    match asked - 1 < refused {
                        true => MoveVerdict::Moved,
                        false => MoveVerdict::Busy,
                    }
                });
                assert!(asked > refused, "{refused}: it was asked about");
                assert_eq!(moved(m), refused);
                assert_eq!(used(m), before, "refused at {refused}");
            },
        );
    }
}

#[test]
fn a_run_that_is_killed_holds_nothing() {
    for steps in 1..12 {
        with_memory(
            8,
            0,
            |_, f| f % 4 != 0,
            |m| {
                let before = used(m);
                compact(m, steps, |_| MoveVerdict::Moved);
                assert_eq!(used(m), before, "after {steps} steps");
            },
        );
    }
}

#[test]
fn nobody_allocates_from_a_block_that_is_being_emptied() {
    with_memory(
        8,
        0,
        |block, f| f % 8 >= if block == 3 { 2 } else { 6 },
        |m| {
            let mut others = Vec::new();
            let got = huge_page(m, |m| {
                others.extend((0..20).map_while(|_| m.alloc(&Request::new(Order(0), MOV)).ok()));
            });
            let got = got.expect("a huge page").0;
            assert_eq!(got, BASE + 3 * BLOCK, "the emptiest");
            assert_eq!(moved(m), 128, "what it held");
            assert!(others.len() >= 20);
            let within = others.iter().filter(|p| (got..got + BLOCK).contains(&p.0));
            assert_eq!(within.count(), 0);
            check(m);
        },
    );
}

/// Sleeps once, with the owners' verdict: how long the daemon sleeps now, and what it asked for.
fn period(m: &mut M<'_>, k: &mut Kcompactd, verdict: MoveVerdict) -> (Option<u32>, usize) {
    let (mut answer, mut asked) = (Answer::Left(0), 0);
    loop {
        answer = match k.run(m, CPU, answer) {
            Need::Sleep(ms) => return (ms, asked),
            Need::Migrate => {
                asked += k.migration().asks().len();
                Answer::Migrated(k.migration().ask(|_| verdict))
            }
            _ => Answer::Go,
        };
    }
}

/// Without demand kcompactd does nothing; with it, it keeps as many blocks free as one period asked for, and lets go
/// of that in time.
#[test]
fn as_many_huge_blocks_are_kept_free_as_are_asked_for() {
    with_memory(
        64,
        20,
        |_, f| f % 4 != 0,
        |m| {
            let mut k = Kcompactd::new(NodeId(0));
            for _ in 0..4 {
                assert_eq!(period(m, &mut k, MoveVerdict::Moved), (Some(500), 0));
            }
            assert_eq!(free_huge(m), 0);
            let take = |m: &mut M<'_>| (0..8).map(|_| huge_page(m, |_| ()).expect("one")).collect();
            let huge: Vec<Pfn> = take(m);
            period(m, &mut k, MoveVerdict::Moved);
            assert_eq!(free_huge(m), 9, "8 and an eighth more");
            // They are there at once the next time.
            let before = moved(m);
            let more: Vec<Pfn> = take(m);
            assert_eq!(moved(m), before);
            for page in huge.into_iter().chain(more) {
                m.free(CPU, page, Order::HUGE).expect("in use");
            }
            m.drain_all();
            for _ in 0..200 {
                assert_eq!(period(m, &mut k, MoveVerdict::Moved), (Some(500), 0));
            }
            // Nobody asked for long: what is used up is not made good.
            while free_huge(m) > 0 {
                m.alloc(&Request::new(Order(0), MOV)).expect("a page");
            }
            assert_eq!(period(m, &mut k, MoveVerdict::Moved), (Some(500), 0));
            check(m);
        },
    );
}

/// Where nothing can be gained, each look comes after twice the time, up to 32 seconds.
#[test]
fn where_nothing_is_gained_the_daemon_backs_off() {
    let asked_for = |m: &mut M<'_>, k: &mut Kcompactd| {
        period(m, k, MoveVerdict::Moved);
        for _ in 0..40 {
            huge_page(m, |_| ()).expect("one");
        }
    };
    with_memory(
        64,
        20,
        |_, f| f % 4 != 0,
        |m| {
            let mut k = Kcompactd::new(NodeId(0));
            asked_for(m, &mut k);
            let busy = |_| period(m, &mut k, MoveVerdict::Busy).0.expect("a time");
            let sleeps: Vec<_> = (0..7).map(busy).collect();
            assert_eq!(sleeps[..5], [1000, 2000, 4000, 8000, 16000]);
            let forgot = |&ms: &u32| ms == 32000 || ms == 500;
            assert!(sleeps[5..].iter().all(forgot), "{sleeps:?}");
            assert_eq!(free_huge(m), 0);
            check(m);
        },
    );
    // Off: it sleeps until it is asked.
    with_memory(
        64,
        0,
        |_, f| f % 4 != 0,
        |m| {
            let mut k = Kcompactd::new(NodeId(0));
            asked_for(m, &mut k);
            assert_eq!(period(m, &mut k, MoveVerdict::Moved), (None, 0));
        },
    );
}
