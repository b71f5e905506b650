//! Loads of nothing but allocation calls, as a process of its own on each allocator: the time of a call, and the memory that it holds.
//!
//! Four are known by name, and written here from their published descriptions:
//! - *larson*: P. Larson, M. Krishnan, "Memory allocation for long-running server applications", ISMM 1998;
//! - *xmalloc*: C. Lever, D. Boreham, "malloc() performance in a multithreaded Linux environment", USENIX 2000;
//! - *cache-scratch*: E. Berger and others, "Hoard: a scalable memory allocator for multithreaded applications", ASPLOS 2000;
//! - *alloc-test*: S. Ignatchenko and others, "Testing memory allocators", ACCU Overload 147, 2018.
//!
//! Each operation writes to what it has taken. Random numbers have fixed seeds, so that all allocators get the same calls.

use libc::c_void;
use std::collections::VecDeque;
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A load.
pub struct Load {
    pub name: &'static str,
    pub what: &'static str,
    run: fn() -> Numbers,
}

/// What a run showed.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Nanoseconds of an operation, the allocation of a piece and its free: of the CPU time of all threads.
    pub ns: f64,
    /// Bytes: most resident memory, and at the end.
    pub most: u64,
    pub left: u64,
    /// The share of the resident memory at its height, or the end, that huge pages back, in percent.
    pub huge: f64,
}

pub const LOADS: [Load; 14] = [
    Load {
        name: "pair-64",
        what: "64 bytes taken and freed",
        run: || pairs(64, 20_000_000),
    },
    Load {
        name: "replace",
        what: "100,000 objects of 16 to 512 bytes, a random one replaced",
        run: || replace(100_000, 16, 512, 5_000_000),
    },
    Load {
        name: "larson",
        what: "two threads replace objects of 8 to 1000 bytes, which threads after them inherit",
        run: larson,
    },
    Load {
        name: "hand-64",
        what: "64 bytes taken by one thread and freed by another",
        run: || hand_over(64, 5_000_000),
    },
    Load {
        name: "hand-1k",
        what: "1 KiB taken by one thread and freed by another",
        run: || hand_over(1024, 3_000_000),
    },
    Load {
        name: "replace-runs",
        what: "500 pieces of 4 to 256 KiB, a random one replaced",
        run: || replace(500, 4 << 10, 256 << 10, 1_000_000),
    },
    Load {
        name: "pair-100k",
        what: "100,000 bytes taken and freed",
        run: || pairs(100_000, 2_000_000),
    },
    Load {
        name: "pair-1m",
        what: "1,000,000 bytes taken and freed",
        run: || pairs(1_000_000, 1_000_000),
    },
    Load {
        name: "calloc-1m",
        what: "1 MiB of zeros taken, written and freed (3,000 times)",
        run: zeroed,
    },
    Load {
        name: "xmalloc",
        what: "one thread takes batches of 8 to 2048 bytes, another frees them",
        run: xmalloc,
    },
    Load {
        name: "cache-scratch",
        what: "two threads write 1,000 times to objects that were neighbours",
        run: cache_scratch,
    },
    Load {
        name: "alloc-test",
        what: "two threads fill and empty random places, few objects large",
        run: alloc_test,
    },
    Load {
        name: "phases",
        what: "16 phases of other sizes, 800 MB in use; then 90 % freed, and 5 s with a call now and then",
        run: || phases(true),
    },
    Load {
        name: "phases-idle",
        what: "the same, and 5 s without a call",
        run: || phases(false),
    },
];

/// Runs a load here, and prints its numbers on a line for [`read`].
pub fn run(name: &str) -> Result<(), String> {
    let load = LOADS.iter().find(|load| load.name == name);
    let load = load.ok_or_else(|| format!("no load is called {name}"))?;
    let of = (load.run)();
    println!("{} {} {} {}", of.ns, of.most, of.left, of.huge);
    Ok(())
}

/// The numbers that a run printed.
pub fn read(printed: &str) -> Option<Numbers> {
    let mut words = printed.split_whitespace();
    Some(Numbers {
        ns: words.next()?.parse().ok()?,
        most: words.next()?.parse().ok()?,
        left: words.next()?.parse().ok()?,
        huge: words.next()?.parse().ok()?,
    })
}

/// A generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * n as u64) >> 32) as usize
    }
}

/// A piece of memory, which one thread has at a time.
#[derive(Clone, Copy)]
struct Piece(*mut c_void);

// SAFETY: memory of the C library may be used and freed by any thread.
unsafe impl Send for Piece {}

impl Piece {
    const NONE: Piece = Piece(null_mut());

    fn new(size: usize) -> Piece {
        // SAFETY: a call of the C library; the piece has a byte at least.
        unsafe {
            let at = libc::malloc(size);
            assert!(!at.is_null(), "no memory");
            at.cast::<u8>().write_volatile(1);
            Piece(at)
        }
    }

    fn free(self) {
        // SAFETY: each piece is freed once.
        unsafe { libc::free(self.0) };
    }
}

/// A line of `/proc/self/FILE` that begins with a word, in bytes.
fn line_of(file: &str, word: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(word));
    let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The share of huge pages at this moment, in percent.
fn huge_share() -> f64 {
    let all = line_of("smaps_rollup", "Rss:");
    100.0 * line_of("smaps_rollup", "AnonHugePages:") as f64 / all.max(1) as f64
}

/// What the process has used of CPUs.
fn cpu_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it can be written to.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn numbers(time: Duration, operations: usize, huge: f64) -> Numbers {
    Numbers {
        ns: time.as_nanos() as f64 / operations as f64,
        most: line_of("status", "VmHWM:"),
        left: line_of("status", "VmRSS:"),
        huge,
    }
}

fn pairs(size: usize, count: usize) -> Numbers {
    let begin = cpu_time();
    for _ in 0..count {
        black_box(Piece::new(black_box(size))).free();
    }
    numbers(cpu_time() - begin, count, huge_share())
}

fn replace(places: usize, least: usize, most: usize, count: usize) -> Numbers {
    let mut random = Random(42);
    let mut next = move |n| random.below(n);
    let mut all: Vec<Piece> = (0..places)
        .map(|_| Piece::new(least + next(most - least + 1)))
        .collect();
    let mut round = |count| {
        for _ in 0..count {
            let place = &mut all[next(places)];
            place.free();
            *place = Piece::new(least + next(most - least + 1));
        }
    };
    round(places * 2);
    let begin = cpu_time();
    round(count);
    let time = cpu_time() - begin;
    let huge = huge_share();
    let of = numbers(time, count, huge);
    all.into_iter().for_each(Piece::free);
    of
}

/// Each of two chains has 5,000 objects, which it replaces at random; after 500,000 replacements a new thread takes them over.
fn larson() -> Numbers {
    const CHAINS: usize = 2;
    const THREADS: usize = 10;
    const EACH: usize = 500_000;
    let begin = cpu_time();
    let chain = |number: usize| {
        let mut random = Random(4141 + number as u64);
        let size = |random: &mut Random| 8 + random.below(993);
        let mut all: Vec<Piece> = (0..5000).map(|_| Piece::new(size(&mut random))).collect();
        for _ in 0..THREADS {
            let thread = move || {
                for _ in 0..EACH {
                    let place = random.below(all.len());
                    all[place].free();
                    all[place] = Piece::new(size(&mut random));
                }
                (all, random)
            };
            (all, random) = std::thread::spawn(thread).join().expect("no panic");
        }
        all
    };
    let left: Vec<Vec<Piece>> = std::thread::scope(|s| {
        let chains: Vec<_> = (0..CHAINS).map(|n| s.spawn(move || chain(n))).collect();
        let ended = chains.into_iter().map(|c| c.join().expect("no panic"));
        ended.collect()
    });
    let count = CHAINS * EACH * THREADS;
    let of = numbers(cpu_time() - begin, count, huge_share());
    left.into_iter().flatten().for_each(Piece::free);
    of
}

/// One thread takes pieces, another frees them: batches of them wait in a queue.
fn through_queue(batches: usize, of: impl Fn(&mut Random) -> Vec<Piece> + Sync) -> Duration {
    const WAIT: usize = 4;
    let queue = Mutex::new(VecDeque::<Vec<Piece>>::new());
    let changed = Condvar::new();
    let begin = cpu_time();
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut random = Random(7);
            for _ in 0..batches {
                let batch = of(&mut random);
                let queue = queue.lock().expect("no panic");
                let mut queue = changed
                    .wait_while(queue, |q| q.len() >= WAIT)
                    .expect("no panic");
                queue.push_back(batch);
                changed.notify_one();
            }
        });
        s.spawn(|| {
            for _ in 0..batches {
                let queue = queue.lock().expect("no panic");
                let mut queue = changed
                    .wait_while(queue, |q| q.is_empty())
                    .expect("no panic");
                let batch = queue.pop_front().expect("one");
                changed.notify_one();
                drop(queue);
                batch.into_iter().for_each(Piece::free);
            }
        });
    });
    cpu_time() - begin
}

/// Batches of 1,000 pieces.
fn hand_over(size: usize, count: usize) -> Numbers {
    let time = through_queue(count / 1000, |_| {
        (0..1000).map(|_| Piece::new(size)).collect()
    });
    numbers(time, count, huge_share())
}

fn zeroed() -> Numbers {
    const LEN: usize = 1 << 20;
    let begin = cpu_time();
    for n in 0..3000 {
        // SAFETY: that long, and freed once.
        unsafe {
            let at = libc::calloc(LEN, 1).cast::<u8>();
            assert!(!at.is_null() && *at.add(n * 300) == 0);
            at.write_bytes(n as u8, LEN);
            libc::free(black_box(at).cast());
        }
    }
    numbers(cpu_time() - begin, 3000, huge_share())
}

/// Batches of 1,000 pieces.
fn xmalloc() -> Numbers {
    const BATCHES: usize = 4000;
    let time = through_queue(BATCHES, |random| {
        let one = |_| Piece::new(8 << random.below(9));
        (0..1000).map(one).collect()
    });
    numbers(time, BATCHES * 1000, huge_share())
}

/// Each thread frees the object that it was given, then takes one again and again, writes 1,000 times to it, and frees it.
fn cache_scratch() -> Numbers {
    const ROUNDS: usize = 200_000;
    let given: Vec<Piece> = (0..2).map(|_| Piece::new(8)).collect();
    let begin = cpu_time();
    std::thread::scope(|s| {
        for piece in given {
            s.spawn(move || {
                let piece = piece;
                { piece }.free();
                for _ in 0..ROUNDS {
                    let piece = Piece::new(8);
                    for n in 0..1000_u16 {
                        // SAFETY: it has 8 bytes.
                        unsafe { piece.0.cast::<u8>().write_volatile(n as u8) };
                    }
                    piece.free();
                }
            });
        }
    });
    numbers(cpu_time() - begin, 2 * ROUNDS, huge_share())
}

/// A random place is emptied or filled. Sizes are uniform below a limit that is twice as large half as often, from 16 to 16 KiB.
fn alloc_test() -> Numbers {
    const PLACES: usize = 1 << 15;
    const COUNT: usize = 4_000_000;
    let thread = |number: u64| {
        let mut random = Random(number + 99);
        let mut all = vec![Piece::NONE; PLACES];
        for _ in 0..COUNT {
            let place = random.below(PLACES);
            if all[place].0.is_null() {
                let limit = 16
                    << (random.below(1 << 10) + 1)
                        .leading_zeros()
                        .saturating_sub(53);
                all[place] = Piece::new(1 + random.below(limit));
            } else {
                // SAFETY: it has a byte at least.
                black_box(unsafe { all[place].0.cast::<u8>().read_volatile() });
                all[place].free();
                all[place] = Piece::NONE;
            }
        }
        all.into_iter().for_each(Piece::free);
    };
    let begin = cpu_time();
    std::thread::scope(|s| {
        for number in 0..2 {
            s.spawn(move || thread(number));
        }
    });
    // Half of the operations of each thread take, half free.
    numbers(cpu_time() - begin, COUNT, huge_share())
}

/// In each phase half of what is there goes, at random, and objects of another size take its place. At the end nine of ten go.
fn phases(calls: bool) -> Numbers {
    const LIVE: usize = 800_000_000;
    let mut random = Random(3);
    let mut all: Vec<(Piece, u32)> = Vec::new();
    let (mut live, mut count) = (0, 0);
    let begin = cpu_time();
    for phase in 0..16_usize {
        // From 64 bytes to 64 KiB, up and down.
        let least = 64 << (phase * 7 % 11);
        all.retain(|(piece, size)| {
            let goes = random.below(2) == 0;
            if goes {
                piece.free();
                live -= *size as usize;
            }
            !goes
        });
        while live < LIVE {
            let size = least + random.below(least);
            let piece = Piece::new(size);
            // SAFETY: it is that long.
            unsafe { piece.0.write_bytes(phase as u8, size) };
            all.push((piece, size as u32));
            live += size;
            count += 1;
        }
    }
    let huge = huge_share();
    all.retain(|(piece, _)| {
        let stays = random.below(10) == 0;
        if !stays {
            piece.free();
        }
        stays
    });
    let time = cpu_time() - begin;
    // What the list itself takes is not the load's.
    all.shrink_to_fit();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(50));
        if calls {
            let some: Vec<Piece> = (0..200).map(|n| Piece::new(100 + n * 8)).collect();
            some.into_iter().for_each(Piece::free);
        }
    }
    let of = numbers(time, count, huge);
    all.into_iter().for_each(|(piece, _)| piece.free());
    of
}
