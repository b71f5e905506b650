//! kswapd and kcompactd: tasks that sleep until they are needed.

use crate::compact::{self, Kernel};
use crate::frames::{self, Engine, Era, LOW, Locals};
use crate::{cache, owners, task};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use unfrag::NodeId;
use unfrag::owners::{Reclaim, Turn, Want};
use unfrag_eras::compact::Kcompactd;
use unfrag_eras::drive::{Operation, World};
use unfrag_eras::reclaim::{Answer, Kswapd, Need, Step};

/// Frames that kswapd asks for at a time.
const BATCH: u64 = 32;
/// Ticks between two looks.
const LOOK: u64 = 2;

static STOPS: AtomicBool = AtomicBool::new(false);
/// Whole free blocks that kcompactd keeps ready; 0: it does nothing ahead of demand.
static KEEPS: AtomicU32 = AtomicU32::new(0);

/// Starts both on a CPU.
pub fn start(cpu: usize) -> [task::Handle; 2] {
    match frames::engine() {
        Engine::Own(own) => [
            task::spawn(cpu, || kswapd(own)),
            task::spawn(cpu, || kcompactd(own)),
        ],
        Engine::Era(era) => [
            task::spawn(cpu, || {
                let woken = || era.with(|m, _| m.host().kswapd.swap(false, Relaxed));
                run(era, &mut Kswapd::new(NodeId(0)), woken, || true);
            }),
            task::spawn(cpu, || {
                let woken = || era.with(|m, _| m.host().kcompactd.swap(false, Relaxed));
                run(era, &mut Kcompactd::new(NodeId(0)), woken, || {
                    KEEPS.load(Relaxed) > 0
                });
            }),
        ],
    }
}

/// Ends both.
pub fn stop() {
    STOPS.store(true, Relaxed);
}

/// Has kcompactd work ahead of demand. unfrag's own keeps so many whole free blocks ready; an era goes by its
/// `compaction_proactiveness`.
pub fn keep_ready(blocks: u32) {
    KEEPS.store(blocks, Relaxed);
}

/// Drops page cache when memory was short, until the high watermark is reached.
fn kswapd(own: &Locals) {
    while !STOPS.load(Relaxed) {
        task::sleep(LOOK);
        if !own.shared().take_short() && own.room() > LOW {
            continue;
        }
        let mut reclaim = Reclaim::new(own.shared(), &owners::ROSTER, Want::High).batch(BATCH);
        while let Turn::Ask { frames, .. } = reclaim.step() {
            reclaim.answer(cache::reclaim(frames as usize) as u64);
            // What this CPU keeps of it is for all.
            own.flush();
        }
    }
}

/// Makes whole free blocks ahead of demand.
fn kcompactd(own: &Locals) {
    while !STOPS.load(Relaxed) {
        let keeps = KEEPS.load(Relaxed);
        if !compact::make_ahead(own, keeps) {
            task::sleep(LOOK);
        }
    }
}

/// Runs a daemon of an era until [`stop`]. It sleeps until it is woken, or for its own time if `looks`.
fn run<O: Operation>(
    era: &Era,
    daemon: &mut O,
    woken: impl Fn() -> bool,
    looks: impl Fn() -> bool,
) {
    let mut world = Kernel(era);
    let mut answer = Answer::Go;
    loop {
        let step = world.locked(|m, cpu| daemon.step(m, cpu, answer));
        answer = match step {
            Step::Done(_) => return,
            Step::Need(Need::Evict) => Answer::Evicted(world.evict(daemon.eviction())),
            Step::Need(Need::Migrate) => Answer::Migrated(world.migrate(daemon.migration())),
            Step::Need(Need::Sleep(ms)) => match sleep(ms, &woken, &looks) {
                Some(left) => Answer::Left(left),
                None => return,
            },
            Step::Need(need) => world.meet(need),
        };
    }
}

/// Sleeps until woken, at most for so many milliseconds. Returns how many are left; `None` at the end.
fn sleep(ms: Option<u32>, woken: &impl Fn() -> bool, looks: &impl Fn() -> bool) -> Option<u32> {
    let begin = task::now();
    loop {
        if STOPS.load(Relaxed) {
            return None;
        }
        let slept = (task::now() - begin) as u32;
        if woken() {
            return Some(ms.map_or(1, |ms| ms.saturating_sub(slept).max(1)));
        }
        if ms.is_some_and(|ms| slept >= ms) && looks() {
            return Some(0);
        }
        task::sleep(LOOK);
    }
}
