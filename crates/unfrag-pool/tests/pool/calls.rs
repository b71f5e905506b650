//! What owners do while they are called: whatever it is, it ends, no frame is lost, and the daemons go on.

use super::check_all_free;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};
use unfrag_pool::{Order, Owned, Owner, OwnerId, Place, Pool};

const MIB: usize = 1 << 20;

/// More than any of these tests may take.
pub const LONG: Duration = Duration::from_secs(60);

/// Runs `f`, which must come to an end.
pub fn ends<T: Send + 'static>(what: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    let (to, from) = channel();
    let thread = std::thread::spawn(move || {
        let _ = to.send(f());
    });
    match from.recv_timeout(LONG) {
        Ok(done) => {
            thread.join().expect("no panic");
            done
        }
        Err(_) if thread.is_finished() => panic!("{what}: it panicked"),
        Err(_) => panic!("{what}: it does not end"),
    }
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LONG / 2, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

type Act = Box<dyn Fn(&Arc<Pool>, &Acts) + Send + Sync>;

/// An owner that does something in each call, before it answers as it should.
struct Acts {
    pool: OnceLock<Weak<Pool>>,
    blocks: Mutex<Vec<Option<Owned>>>,
    act: Act,
    calls: AtomicU64,
    nested: AtomicU64,
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Counts the calls on a thread that are under way.
struct Depth;

impl Depth {
    fn enter(of: &Acts) -> Depth {
        of.calls.fetch_add(1, Relaxed);
        if DEPTH.replace(DEPTH.get() + 1) > 0 {
            of.nested.fetch_add(1, Relaxed);
        }
        Depth
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Acts {
    /// A full pool, all of it the owner's.
    fn pool_of(pool: Pool, act: Act) -> (Arc<Pool>, Arc<Acts>, OwnerId) {
        let pool = Arc::new(pool);
        let owner = Arc::new(Acts {
            pool: OnceLock::new(),
            blocks: Mutex::default(),
            act,
            calls: AtomicU64::new(0),
            nested: AtomicU64::new(0),
        });
        let Ok(id) = pool.register(owner.clone()) else {
            panic!("the first owner");
        };
        owner.fill(&pool, id);
        owner.pool.set(Arc::downgrade(&pool)).expect("once");
        (pool, owner, id)
    }

    fn fill(&self, pool: &Pool, id: OwnerId) {
        let mut tag = 0;
        while let Ok(block) = pool.try_alloc_for(id, tag, Order(0)) {
            self.blocks.lock().expect("no panic").push(Some(block));
            tag += 1;
        }
    }

    /// Lets go of all but one of so many.
    fn thin(&self, pool: &Pool, one_of: usize) {
        let mut blocks = self.blocks.lock().expect("no panic");
        let all = blocks.iter_mut().enumerate();
        all.filter(|(i, _)| i % one_of != 0)
            .for_each(|(_, b)| *b = None);
        drop(blocks);
        pool.flush();
    }

    fn act(&self) {
        if let Some(pool) = self.pool.get().and_then(Weak::upgrade) {
            (self.act)(&pool, self);
        }
    }
}

impl Owner for Acts {
    fn migrate(&self, tag: u32, place: Place<'_>) {
        let _depth = Depth::enter(self);
        self.act();
        let mut blocks = self.blocks.lock().expect("no panic");
        if let Some(Some(block)) = blocks.get_mut(tag as usize) {
            place.carry(block);
        }
    }

    fn reclaim(&self, frames: usize) -> usize {
        let _depth = Depth::enter(self);
        self.act();
        let mut blocks = self.blocks.lock().expect("no panic");
        let held = blocks.iter_mut().filter(|b| b.is_some()).take(frames);
        held.map(|b| *b = None).count()
    }
}

/// An owner that moves nothing.
struct Nothing;

impl Owner for Nothing {
    fn migrate(&self, _tag: u32, _place: Place<'_>) {}
}

fn pool(mib: usize) -> Pool {
    let pool = Pool::builder().arena(mib * MIB).limit(4 * mib * MIB);
    let pool = pool.patience(Duration::from_millis(200)).build();
    pool.expect("a pool")
}

/// What an owner may ask of the pool in a call, by name.
fn acts() -> Vec<(&'static str, Act)> {
    vec![
        (
            "takes a page",
            Box::new(|p, _| drop(p.alloc(Order(0)).ok())),
        ),
        (
            "takes a huge page",
            Box::new(|p, _| drop(p.alloc(Order::HUGE).ok())),
        ),
        (
            "takes what is larger than the pool",
            Box::new(|p, _| drop(p.alloc(Order(20)).ok())),
        ),
        (
            "takes a movable block and pins it",
            Box::new(|p, _| {
                if let Ok(mut m) = p.alloc_movable(Order(0)) {
                    m.pin_mut().fill(1);
                }
            }),
        ),
        (
            "takes much",
            Box::new(|p, _| drop(p.alloc_bytes(3 * MIB).ok())),
        ),
        ("compacts", Box::new(|p, _| assert_eq!(p.compact(1), 0))),
        (
            "releases and flushes",
            Box::new(|p, _| {
                p.release(1).expect("the system agrees");
                p.flush();
            }),
        ),
        (
            "registers another one",
            Box::new(|p, _| drop(p.register(Arc::new(Nothing)))),
        ),
        (
            "adds an arena",
            Box::new(|p, _| drop(p.add_arena(2 * MIB, None))),
        ),
        (
            "looks at all",
            Box::new(|p, _| {
                p.validate().expect("every invariant");
                drop((p.stats(), p.procfs(), format!("{p:?}")));
            }),
        ),
        (
            "frees what it has",
            Box::new(|_, owner| {
                let mut blocks = owner.blocks.lock().expect("no panic");
                if let Some(block) = blocks.iter_mut().rev().find(|b| b.is_some()) {
                    *block = None;
                }
            }),
        ),
    ]
}

#[test]
fn an_owner_may_use_its_pool_while_it_is_called() {
    for (what, act) in acts() {
        let (calls, nested) = ends(what, move || {
            let (pool, owner, _) = Acts::pool_of(pool(16), act);
            // Reclaim, by a request and by kswapd.
            let some: Vec<_> = (0..100).filter_map(|_| pool.alloc(Order(0)).ok()).collect();
            assert_eq!(some.len(), 100, "{what}");
            drop(some);
            // Moves, by a request, by hand, and by kcompactd.
            owner.thin(&pool, 4);
            drop(pool.alloc(Order::HUGE).ok());
            pool.compact(3);
            drop(pool.alloc_bytes(5 * MIB).ok());
            owner.blocks.lock().expect("no panic").clear();
            until(what, || {
                // kcompactd may be in a call still, and have what it took.
                let stats = pool.stats();
                stats.free == stats.present
            });
            check_all_free(&pool);
            (owner.calls.load(Relaxed), owner.nested.load(Relaxed))
        });
        assert!(calls > 10, "{what}: {calls} calls");
        assert_eq!(nested, 0, "{what}: a call led to another one");
    }
}

/// Two pools whose owners take from the other one: no call leads to one of the other pool.
#[test]
fn owners_may_use_another_pool_while_they_are_called() {
    ends("two pools", || {
        let other: Arc<OnceLock<Arc<Pool>>> = Arc::default();
        let act = |other: Arc<OnceLock<Arc<Pool>>>| -> Act {
            Box::new(move |_, _| {
                // The other one may not be there as yet.
                if let Some(pool) = other.get() {
                    drop((pool.alloc(Order(0)).ok(), pool.alloc(Order::HUGE).ok()));
                    assert_eq!(pool.compact(1), 0);
                }
            })
        };
        let (a, of_a, _) = Acts::pool_of(pool(8), act(other.clone()));
        let (b, of_b, _) = Acts::pool_of(pool(8), Box::new(|_, _| ()));
        other.set(b.clone()).expect("once");
        for _ in 0..50 {
            drop(a.alloc(Order(0)).expect("reclaimed"));
        }
        of_a.thin(&a, 3);
        a.compact(2);
        assert!(of_a.calls.load(Relaxed) > 0 && of_a.nested.load(Relaxed) == 0);
        assert_eq!(of_b.nested.load(Relaxed), 0);
        drop(of_b);
    });
}

/// An owner whose calls wait in the middle.
struct Waits {
    blocks: Mutex<Vec<Owned>>,
    here: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
    is_first: AtomicBool,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Owner for Waits {
    fn migrate(&self, tag: u32, place: Place<'_>) {
        let at_once = self.at_once.fetch_add(1, Relaxed) + 1;
        self.most_at_once.fetch_max(at_once, Relaxed);
        if self.is_first.swap(false, Relaxed) {
            self.here.lock().expect("no panic").send(()).expect("heard");
            let go_on = self.go_on.lock().expect("no panic");
            go_on.recv_timeout(LONG).expect("told to go on");
        }
        let mut blocks = self.blocks.lock().expect("no panic");
        if let Some(block) = blocks.get_mut(tag as usize) {
            place.carry(block);
        }
        self.at_once.fetch_sub(1, Relaxed);
    }
}

/// While an owner's call takes long, others allocate, free and compact, and the owner is called for them, too.
#[test]
fn a_call_that_takes_long_keeps_nobody_waiting() {
    ends("a call that waits", || {
        let pool = pool(32);
        let ((here, arrived), (continues, go_on)) = (channel(), channel());
        let owner = Arc::new(Waits {
            blocks: Mutex::default(),
            here: Mutex::new(here),
            go_on: Mutex::new(go_on),
            is_first: AtomicBool::new(true),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
        });
        let Ok(id) = pool.register(owner.clone()) else {
            panic!("the first owner");
        };
        let mut frames = Vec::new();
        while let Ok(block) = pool.try_alloc(Order(0)) {
            frames.push(block);
        }
        // One frame of eight is the owner's.
        frames.retain(|f| !f.number().is_multiple_of(8));
        pool.flush();
        let mut tag = 0;
        while let Ok(block) = pool.try_alloc_for(id, tag, Order(0)) {
            owner.blocks.lock().expect("no panic").push(block);
            tag += 1;
        }
        drop(frames);
        pool.flush();
        std::thread::scope(|s| {
            let first = s.spawn(|| pool.compact(1));
            arrived.recv_timeout(LONG).expect("the first call");
            assert!(pool.compact(2) > 0, "another thread compacts");
            assert!(pool.alloc(Order::HUGE).is_ok());
            drop(pool.alloc(Order(0)).expect("memory"));
            pool.validate().expect("every invariant");
            assert!(!first.is_finished());
            continues.send(()).expect("heard");
            first.join().expect("no panic");
        });
        assert_eq!(owner.most_at_once.load(Relaxed), 2);
        owner.blocks.lock().expect("no panic").clear();
        check_all_free(&pool);
    });
}

/// An owner that panics now and then: before it moves a block, after that, and while it gives frames back.
#[derive(Default)]
struct Panics {
    blocks: Mutex<Vec<Option<Owned>>>,
    calls: AtomicU64,
    calm: AtomicBool,
}

impl Panics {
    fn blocks(&self) -> std::sync::MutexGuard<'_, Vec<Option<Owned>>> {
        self.blocks.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn one_of(&self, so_many: u64) {
        let calls = self.calls.fetch_add(1, Relaxed);
        if !self.calm.load(Relaxed) && calls.is_multiple_of(so_many) {
            // Without the words of the hook, which would fill the test's output.
            std::panic::resume_unwind(Box::new("an owner's panic"));
        }
    }
}

impl Owner for Panics {
    fn migrate(&self, tag: u32, place: Place<'_>) {
        self.one_of(301);
        if let Some(Some(block)) = self.blocks().get_mut(tag as usize) {
            place.carry(block);
            self.one_of(301);
        }
    }

    fn reclaim(&self, frames: usize) -> usize {
        self.one_of(3);
        let mut blocks = self.blocks();
        let held = blocks.iter_mut().filter(|b| b.is_some()).take(frames);
        let gave = held.map(|b| *b = None).count();
        drop(blocks);
        self.one_of(3);
        gave
    }
}

#[test]
fn a_panic_of_an_owner_is_counted_and_the_daemons_go_on() {
    ends("panics", || {
        let pool = Pool::builder().arena(32 * MIB).keep_huge(6);
        let pool = pool.watermarks(0, 1024, 2048).build().expect("a pool");
        let owner = Arc::new(Panics::default());
        let Ok(id) = pool.register(owner.clone()) else {
            panic!("the first owner");
        };
        let take = |tag| pool.try_alloc_for(id, tag, Order(0)).ok();
        // kswapd is woken again and again.
        for tag in 0..32 << 8 {
            let block = take(tag);
            owner.blocks().push(block);
        }
        let mut frames = Vec::new();
        until("kswapd reclaims in spite of panics", || {
            frames.extend((0..100).filter_map(|_| pool.try_alloc(Order(0)).ok()));
            pool.stats().event("pgsteal_kswapd") >= 1500
        });
        drop(frames);
        let by_reclaim = pool.stats().event("owner_panic");
        assert!(by_reclaim > 0);
        // kcompactd makes huge pages of what is left.
        let mut i = 0;
        owner.blocks().iter_mut().for_each(|b| {
            i += 1;
            if i % 4 != 0 {
                *b = None;
            }
        });
        pool.flush();
        until("kcompactd compacts in spite of panics", || {
            let stats = pool.stats();
            let made = stats.event("compact_daemon_success") > 0;
            made && stats.whole_blocks >= 6 && stats.event("owner_panic") > by_reclaim
        });
        // And so does whoever compacts by hand.
        let before = pool.stats().event("owner_panic");
        for _ in 0..20 {
            pool.compact(1);
        }
        assert!(pool.stats().event("owner_panic") > before);
        assert!(pool.stats().event("pgmigrate_success") > 0);
        owner.calm.store(true, Relaxed);
        owner.blocks().clear();
        check_all_free(&pool);
        // Nothing is kept apart: all of it can be had.
        let all = std::iter::from_fn(|| pool.try_alloc(Order::HUGE).ok());
        assert_eq!(all.collect::<Vec<_>>().len(), 16);
    });
}

/// An owner that says that it gives back what it does not.
struct Lies(AtomicU64);

impl Owner for Lies {
    fn migrate(&self, _tag: u32, _place: Place<'_>) {}
    fn reclaim(&self, _frames: usize) -> usize {
        self.0.fetch_add(1, Relaxed);
        usize::MAX
    }
}

#[test]
fn an_owner_that_lies_keeps_nobody_busy() {
    ends("lies", || {
        let pool = pool(4);
        let owners = [Arc::new(Lies(0.into())), Arc::new(Lies(0.into()))];
        for owner in &owners {
            assert!(pool.register(owner.clone()).is_ok());
        }
        let all: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order(0)).ok()).collect();
        assert!(pool.alloc(Order(0)).is_err(), "patience ends");
        // kswapd sleeps until it is woken again.
        let calls = || owners.iter().map(|o| o.0.load(Relaxed)).sum::<u64>();
        let mut before = calls();
        until("kswapd sleeps", || {
            std::thread::sleep(Duration::from_millis(50));
            std::mem::replace(&mut before, calls()) == calls()
        });
        drop(all);
    });
}
