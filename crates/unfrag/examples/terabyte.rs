//! What a terabyte of addresses costs: bytes of metadata while one gigabyte of it is memory, and the time until all of it is.
//!
//! `cargo run --release -p unfrag --example terabyte`

use std::time::{Duration, Instant};
use unfrag::maps::Gigabyte;
use unfrag::{MAX_SHARDS, Memory, MemoryConfig, MemoryLayout, Pfn};

const GIGABYTE: u64 = 1 << 18;
const TERABYTE: u64 = 1 << 28;
const CPUS: usize = 64;
const CONFIG: MemoryConfig = MemoryConfig::new(Pfn(0), TERABYTE)
    .with_shards(MAX_SHARDS)
    .with_locals(CPUS);
const ROOM: MemoryLayout = MemoryLayout::of(&CONFIG);

type Lock = spin::Mutex<()>;

/// Metadata while so many gigabytes have memory.
const fn bytes(gigabytes: usize) -> usize {
    let words = ROOM.locals + gigabytes * MemoryLayout::GIGABYTE;
    size_of::<Memory<Lock>>() + ROOM.gigabytes * size_of::<Gigabyte>() + words * size_of::<u64>()
}

const _: () = assert!(bytes(1) < 1 << 20, "a mebibyte");

/// How long a new memory takes to have all of a terabyte, in words that nobody has touched, and in words that are mapped.
fn time(touched: bool) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut directory: Vec<Gigabyte> = (0..ROOM.gigabytes).map(|_| Gigabyte::NONE).collect();
    let mut words = vec![0; ROOM.words];
    if touched {
        words.fill(1);
    }
    let mut words = &mut words[..];
    let memory: Memory<Lock> = Memory::new(CONFIG);
    memory.start(&mut directory, &mut words)?;
    let start = Instant::now();
    memory.add(Pfn(0), TERABYTE, &mut words)?;
    let time = start.elapsed();
    assert_eq!(memory.free_frames(), TERABYTE);
    Ok(time)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{CPUS} CPUs, a span of {} GiB", TERABYTE / GIGABYTE);
    for gigabytes in [0, 1, ROOM.gigabytes] {
        println!(
            "metadata with {gigabytes} GiB of memory: {} KiB",
            bytes(gigabytes).div_ceil(1024)
        );
    }
    for (touched, what) in [(true, "mapped"), (false, "fresh")] {
        let mut times = (0..5)
            .map(|_| time(touched))
            .collect::<Result<Vec<_>, _>>()?;
        times.sort();
        println!(
            "1 TiB added, in {what} words: {:.1?} (of 5: {:.1?} to {:.1?})",
            times[2], times[0], times[4]
        );
    }
    Ok(())
}
