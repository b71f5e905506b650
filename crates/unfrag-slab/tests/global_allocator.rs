//! The slab caches as the global allocator of a whole program, its test runner and threads included, over a static
//! array. It is a program of its own for that reason.

use std::cell::{Cell, UnsafeCell};
use std::collections::{BTreeMap, HashMap};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use unfrag::Pfn;
use unfrag_eras::{Builder, NullHost};
use unfrag_slab::{
    CacheFlags, Cpu, CurrentCpu, Design, FrameEntry, Heap, Kmalloc, LockedPages, SlabConfig, Slabs,
};

const FRAMES: usize = 32768;
const WORDS: usize = 80_000;
const CPUS: u16 = 8;

// As its first frame's number, a multiple of the largest block.
#[repr(align(4194304))]
struct Room(UnsafeCell<MaybeUninit<[u8; FRAMES * 4096]>>);
struct Static<T>(UnsafeCell<T>);
unsafe impl Sync for Room {}
unsafe impl<T> Sync for Static<T> {}

static ROOM: Room = Room(UnsafeCell::new(MaybeUninit::uninit()));
static METADATA: Static<[u64; WORDS]> = Static(UnsafeCell::new([0; WORDS]));
static TABLE: Static<[FrameEntry; FRAMES]> =
    Static(UnsafeCell::new([const { FrameEntry::new() }; FRAMES]));
type Source = LockedPages<'static, NullHost>;
static PAGES: Static<Option<Source>> = Static(UnsafeCell::new(None));
static SLABS: Static<Option<Slabs<'static>>> = Static(UnsafeCell::new(None));

/// A thread's CPU while it runs.
enum Mine {
    Unknown,
    None,
    Cpu(Cpu<'static>),
}

thread_local! {
    static MINE: Cell<Mine> = const { Cell::new(Mine::Unknown) };
}

struct Threads;

impl CurrentCpu for Threads {
    fn with<T>(&self, f: impl FnOnce(Option<&Cpu<'static>>) -> T) -> T {
        // The CPU is out of its place meanwhile, so that it is not used twice.
        match MINE.try_with(|m| m.replace(Mine::None)) {
            Err(_) => f(None),
            Ok(mine) => {
                let mine = match mine {
                    Mine::Unknown => {
                        let slabs = unsafe { (*SLABS.0.get()).as_ref() };
                        let free =
                            |s: &'static Slabs<'static>| (0..CPUS).find_map(|c| s.cpu(c).ok());
                        slabs.and_then(free).map_or(Mine::None, Mine::Cpu)
                    }
                    mine => mine,
                };
                let done = match &mine {
                    Mine::Cpu(cpu) => f(Some(cpu)),
                    _ => f(None),
                };
                let _ = MINE.try_with(|m| m.set(mine));
                done
            }
        }
    }

    fn start(&self, heap: &Heap<Self>) {
        let config = Builder::new().region(Pfn(1 << 20), FRAMES as u64);
        // Called once, before any other allocation.
        unsafe {
            let words = config.layout().expect("a layout").words;
            let metadata = &mut (&mut *METADATA.0.get())[..words];
            let manager = config.boot(NullHost, metadata).expect("a manager");
            let base = NonNull::new(ROOM.0.get().cast()).expect("an address");
            let pages = (*PAGES.0.get()).insert(LockedPages::new(manager, base).expect("pages"));
            let config = SlabConfig::new(CPUS);
            let slabs = Slabs::new(pages, &mut *TABLE.0.get(), &config).expect("caches");
            let slabs = (*SLABS.0.get()).insert(slabs);
            let sizes = Kmalloc::new(slabs, Design::Slub, CacheFlags::empty()).expect("sizes");
            heap.install(sizes).expect("not installed before");
        }
    }
}

#[global_allocator]
static HEAP: Heap<Threads> = Heap::new(Threads);

#[test]
fn ordinary_collections_live_on_slab_caches() {
    let mut tree = BTreeMap::new();
    let mut map = HashMap::new();
    let mut text = String::new();
    for i in 0..50_000u32 {
        tree.insert(i.wrapping_mul(2_654_435_761), format!("value {i}"));
        map.insert(i, vec![i; (i % 50) as usize]);
        text.push_str("ab");
    }
    assert_eq!(tree.len(), 50_000);
    assert!(
        tree.iter()
            .zip(tree.keys().skip(1))
            .all(|((a, _), b)| a < b)
    );
    assert!((0..50_000).all(|i| map[&i].iter().all(|x| *x == i)));
    assert_eq!((text.len(), text.matches("ab").count()), (100_000, 50_000));
    let boxed: Vec<Box<[u64; 16]>> = (0..1000).map(|i| Box::new([i; 16])).collect();
    assert!(boxed.iter().enumerate().all(|(i, b)| b[15] == i as u64));
    let mut stats = (0, 0);
    unsafe { (*SLABS.0.get()).as_ref() }
        .expect("caches")
        .each_cache(|c| stats = (stats.0 + c.allocs(), stats.1 + c.pages()));
    assert!(
        stats.0 > 150_000 && stats.1 > 1000,
        "they do live there: {stats:?}"
    );
}

#[test]
fn alignment_above_a_word_is_kept() {
    #[repr(align(64))]
    struct Line(#[allow(dead_code)] [u8; 72]);
    #[repr(align(4096))]
    struct Page(#[allow(dead_code)] u8);
    #[repr(align(65536))]
    struct Large(#[allow(dead_code)] u8);
    fn is_aligned<T>(all: &[Box<T>]) -> bool {
        let mut all = all.iter().map(|b| std::ptr::from_ref(&**b) as usize);
        all.all(|p| p % align_of::<T>() == 0)
    }
    let lines: Vec<_> = (0..100).map(|_| Box::new(Line([1; 72]))).collect();
    let pages: Vec<_> = (0..20).map(|_| Box::new(Page(1))).collect();
    let large: Vec<_> = (0..5).map(|_| Box::new(Large(1))).collect();
    assert!(is_aligned(&lines) && is_aligned(&pages) && is_aligned(&large));
}

#[test]
fn threads_beyond_the_number_of_cpus_are_served_without_one() {
    std::thread::scope(|threads| {
        let (send, receive) = std::sync::mpsc::channel::<Vec<String>>();
        for t in 0..20 {
            let send = send.clone();
            threads.spawn(move || {
                for i in 0..200 {
                    let made = (0..20).map(|j| format!("{t} {i} {j}")).collect();
                    send.send(made).expect("a receiver");
                }
            });
        }
        drop(send);
        // Freed on another CPU than allocated.
        assert_eq!(receive.into_iter().map(|v| v.len()).sum::<usize>(), 80_000);
    });
}

#[test]
fn memory_grows_in_place_within_its_size_class() {
    let mut v: Vec<u8> = Vec::with_capacity(65);
    let before = v.as_ptr();
    v.reserve_exact(90);
    assert_eq!(v.as_ptr(), before, "96 bytes serve both");
    v.extend([7; 90]);
    v.reserve_exact(1000);
    assert!(v.capacity() >= 1000 && v.iter().all(|b| *b == 7));
}
