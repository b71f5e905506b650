//! Wrong calls, and the answer that each gets, in debug builds as in release builds: an error with a way out, or a panic that
//! names the misuse where the caller of an unsafe function broke its word; never a wrong block, and nothing lost.
//!
//! What is of one pool, given to another: `pool/pools.rs`. What owners do wrong: `pool/calls.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::time::Duration;
use unfrag_pool::{
    AllocError, Builder, FRAME_BYTES, Heap, HostMemory, Order, Owner, Place, Pool, PoolError,
};

const MIB: usize = 1 << 20;

struct Nothing;

impl Owner for Nothing {
    fn migrate(&self, _tag: u32, _place: Place<'_>) {}
}

/// What a call that must fail says.
fn said<T, E: std::fmt::Display>(result: Result<T, E>) -> String {
    result.map_or_else(|e| e.to_string(), |_| "it succeeded".to_owned())
}

/// What a call that must panic says.
fn panics(f: impl FnOnce()) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        return "it returned".to_owned();
    };
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_default()
}

/// All of the pool is free, and whole.
fn check_whole(pool: &Pool, what: &str) {
    pool.flush();
    pool.validate().expect("every invariant");
    let stats = pool.stats();
    assert_eq!(stats.free, stats.present, "{what}");
    let huge: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order::HUGE).ok()).collect();
    assert_eq!(huge.len() as u64 * 512, stats.present, "{what}");
}

/// Settings that cannot be, and those that are only odd.
#[test]
fn a_builder_says_what_is_wrong_or_makes_a_pool_that_works() {
    let ok = || Pool::builder().arena(4 * MIB);
    let too_large = "there is no room for";
    let empty = "a pool needs an arena, and an arena at least 2 MiB";
    let marks = "the watermarks must rise";
    let wrong: Vec<(&str, Builder, &str)> = vec![
        ("no arena", Pool::builder(), empty),
        ("a limit only", Pool::builder().limit(MIB), empty),
        ("an arena of nothing", Pool::builder().arena(0), empty),
        ("an arena of a page", ok().arena(4096), empty),
        (
            "all addresses",
            Pool::builder().arena(usize::MAX),
            too_large,
        ),
        (
            "twice all",
            ok().arena(usize::MAX).arena(usize::MAX),
            too_large,
        ),
        ("8 TiB", Pool::builder().arena(8 << 40), too_large),
        ("a limit of all", ok().limit(usize::MAX), too_large),
        ("no such node", ok().arena_on(99, 4 * MIB), "NUMA node 99"),
        (
            "only there",
            Pool::builder().arena_on(usize::MAX, 4 * MIB),
            "NUMA node 18446744073709551615",
        ),
        ("falling marks", ok().watermarks(9, 3, 4), marks),
        ("falling marks", ok().watermarks(1, 4, 3), marks),
        ("marks of all", ok().watermarks(0, 0, 1024), marks),
        (
            "marks above all",
            ok().watermarks(u64::MAX, u64::MAX, u64::MAX),
            marks,
        ),
    ];
    for (what, builder, answer) in wrong {
        let said = said(builder.build());
        assert!(said.contains(answer), "{what}: {said}");
    }
    let odd: Vec<(&str, Builder)> = vec![
        ("threads without end", ok().threads(usize::MAX)),
        ("no thread", ok().threads(0)),
        ("patience without end", ok().patience(Duration::MAX)),
        ("more huge pages than there are", ok().keep_huge(u32::MAX)),
        ("a limit below the arenas", ok().limit(1)),
        ("a limit of no whole block", ok().limit(4 * MIB + 5)),
        ("a part of a block more", Pool::builder().arena(5 * MIB)),
    ];
    for (what, builder) in odd {
        let pool = builder.build().unwrap_or_else(|e| panic!("{what}: {e}"));
        drop(pool.alloc(Order(0)).expect(what));
        // kcompactd, which may have been woken, finds nothing to do.
        pool.compact(1);
        check_whole(&pool, what);
    }
}

/// Calls of a pool of 4 MiB with room for 4 more, in which nothing is wrong afterwards.
#[test]
fn a_pool_answers_wrong_calls_with_an_error_and_is_as_before() {
    type Call = fn(&Pool) -> String;
    let short = AllocError::Short.to_string();
    let order = AllocError::OrderTooLarge.to_string();
    let calls: Vec<(&str, Call, &str)> = vec![
        ("order 255", |p| said(p.alloc(Order(255))), &order),
        ("order 64, now", |p| said(p.try_alloc(Order(64))), &order),
        ("order 32", |p| said(p.alloc_movable(Order(32))), &order),
        ("order 31", |p| said(p.try_alloc_movable(Order(31))), &order),
        ("order 19", |p| said(p.alloc_raw(Order(19))), &order),
        (
            "order 18 for an owner",
            |p| {
                let id = p.register(std::sync::Arc::new(Nothing)).ok();
                said(p.alloc_for(id.expect("an owner"), u32::MAX, Order(18)))
            },
            &order,
        ),
        (
            "order 200 for an owner, now",
            |p| {
                let id = p.register(std::sync::Arc::new(Nothing)).ok();
                said(p.try_alloc_for(id.expect("an owner"), 0, Order(200)))
            },
            &order,
        ),
        ("all bytes", |p| said(p.alloc_bytes(usize::MAX)), &short),
        (
            "a byte too many",
            |p| said(p.alloc_bytes(4 * MIB + 1)),
            &short,
        ),
        ("a block too large", |p| said(p.alloc(Order(11))), &short),
        (
            "an arena of nothing",
            |p| said(p.add_arena(0, None)),
            "an arena at least 2 MiB",
        ),
        (
            "an arena of all",
            |p| said(p.add_arena(usize::MAX, None)),
            "there is no room for",
        ),
        (
            "an arena beyond the limit",
            |p| said(p.add_arena(6 * MIB, None)),
            "there is no room for 1536 frames",
        ),
        (
            "an arena nowhere",
            |p| said(p.add_arena(2 * MIB, Some(99))),
            "NUMA node 99",
        ),
        (
            "no bytes",
            |p| format!("{:?}", p.alloc_bytes(0).map(|e| (e.len(), e.is_empty()))),
            "Ok((0, true))",
        ),
        (
            "as many huge pages as there never were",
            |p| format!("{} {}", p.compact(u32::MAX), said(p.release(u32::MAX))),
            "0 it succeeded",
        ),
        (
            "numbers in a directory that is none",
            |p| said(p.write_procfs("/proc/self/status".as_ref())),
            "",
        ),
    ];
    let pool = Pool::builder().arena(4 * MIB).limit(8 * MIB);
    let pool = pool.patience(Duration::MAX).build().expect("a pool");
    for (what, call, answer) in calls {
        let said = call(&pool);
        assert!(said.contains(answer), "{what}: {said}");
        assert_ne!(said, "it succeeded", "{what}");
        check_whole(&pool, what);
    }
}

/// Blocks by address, which an unsafe function takes back.
#[test]
fn a_wrong_address_is_named_and_frees_nothing() {
    type Call = fn(&Pool, NonNull<u8>);
    let (nowhere, misaligned) = ("no frame of this pool begins at", "no block of order");
    let mut calls: Vec<(&str, Call, &str)> = vec![
        (
            "a foreign address",
            |p, _| {
                let mut other = [0_u8; 2 * FRAME_BYTES];
                // SAFETY: a misuse, which ends before anything is given back; so are all below.
                unsafe { p.free_raw(NonNull::from(&mut other).cast(), Order(0)) };
            },
            nowhere,
        ),
        (
            "inside of a frame",
            // SAFETY: as above.
            |p, b| unsafe { p.free_raw(b.add(8), Order(0)) },
            nowhere,
        ),
        (
            "behind the pool",
            // SAFETY: as above.
            |p, b| unsafe {
                p.free_raw(
                    NonNull::new(b.as_ptr().wrapping_add(1 << 30)).expect("an address"),
                    Order(0),
                );
            },
            nowhere,
        ),
        (
            "inside of a block of its order",
            // SAFETY: as above.
            |p, b| unsafe { p.free_raw(b.add(FRAME_BYTES), Order(3)) },
            misaligned,
        ),
        (
            "an order that there is not",
            // SAFETY: as above.
            |p, b| unsafe { p.free_raw(b, Order(255)) },
            misaligned,
        ),
    ];
    if cfg!(debug_assertions) {
        // What only the book knows.
        calls.push((
            "at another order",
            // SAFETY: as above.
            |p, b| unsafe { p.free_raw(b, Order(2)) },
            "was allocated at order 3",
        ));
    }
    for (what, call, answer) in calls {
        let pool = Pool::builder().arena(4 * MIB).build().expect("a pool");
        let block = pool.alloc_raw(Order(3)).expect("memory");
        let said = panics(|| call(&pool, block));
        assert!(said.contains(answer), "{what}: {said}");
        if answer != "was allocated at order 3" {
            // SAFETY: the block is out still.
            unsafe { pool.free_raw(block, Order(3)) };
            check_whole(&pool, what);
        }
    }
    // A block of another pool.
    let pools = [(); 2].map(|()| Pool::builder().arena(4 * MIB).build().expect("a pool"));
    let block = pools[0].alloc_raw(Order(0)).expect("memory");
    // SAFETY: as above.
    let said = panics(|| unsafe { pools[1].free_raw(block, Order(0)) });
    assert!(said.contains(nowhere), "{said}");
    // SAFETY: it is out still, of this pool.
    unsafe { pools[0].free_raw(block, Order(0)) };
    pools.iter().for_each(|p| check_whole(p, "both"));
}

#[test]
fn memory_of_the_host_has_no_page_beyond_its_end() {
    let too_large = HostMemory::map(usize::MAX, true).err();
    assert!(matches!(too_large, Some(PoolError::TooLarge { .. })));
    let mut memory = HostMemory::map(10 * FRAME_BYTES, false).expect("memory");
    memory.bytes().fill(7);
    assert!(panics(|| memory.page(10).fill(1)).contains("page 10 of 10"));
    assert!(panics(|| memory.page(u32::MAX).fill(1)).contains("of 10"));
    // Numbers that wrap around would discard what is not its own.
    for (first, pages) in [(0, 11), (10, 1), (u32::MAX, 2), (2, u32::MAX)] {
        let said = panics(|| drop(memory.discard(first, pages)));
        assert!(said.contains("more of 10"), "{first} {pages}: {said}");
    }
    assert!(memory.bytes().iter().all(|&b| b == 7));
    memory.discard(10, 0).expect("nothing");
    memory.discard(1, 1).expect("the system agrees");
    assert_eq!((memory.page(0)[0], memory.page(1)[0]), (7, 0));
    assert!(
        HostMemory::map(0, true)
            .expect("nothing")
            .bytes()
            .is_empty()
    );
}

static HEAP: Heap = Heap::new();

#[test]
fn the_heap_refuses_what_cannot_be() {
    let most = isize::MAX as usize;
    for zeroed in [false, true] {
        for align in [0, 3, 5, 6, 7, 12, 24, 4097, (1 << 20) + 1, usize::MAX] {
            for size in [0, 1, 100, 40_000, 3 * MIB, 40 * MIB] {
                let got = HEAP.allocate(size, align, zeroed);
                assert_eq!(got, None, "{size} bytes at a multiple of {align}");
            }
        }
        for (size, align) in [
            (usize::MAX, 1),
            (usize::MAX, 1 << 30),
            (usize::MAX - 4096, 8),
            (most, 16),
            (most + 1, 4096),
            (16, 1 << 62),
            (16, 1 << 63),
            (most, 1 << 63),
        ] {
            let got = HEAP.allocate(size, align, zeroed);
            assert_eq!(got, None, "{size} bytes at a multiple of {align}");
        }
    }
    let memory = HEAP.allocate(100, 8, false).expect("memory");
    // SAFETY: the memory is in use, and given back once.
    unsafe {
        memory.write_bytes(9, 100);
        for size in [usize::MAX, most, most + 1] {
            assert_eq!(HEAP.resize(memory, 8, size), None);
        }
        assert!((0..100).all(|i| memory.add(i).read() == 9));
        HEAP.free(memory);
    }
}
