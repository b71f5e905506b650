//! What the tests of a memory share.
#![allow(dead_code)]

use unfrag::lock_api::RawMutex;
use unfrag::maps::{EngineLayout, Gigabyte, GiveError};
use unfrag::{Memory, MemoryConfig, MemoryLayout, Pfn};

/// A memory that has been started, without frames.
pub fn started<R: RawMutex>(config: MemoryConfig) -> Memory<'static, R> {
    let room = MemoryLayout::of(&config);
    let directory = (0..room.gigabytes).map(|_| Gigabyte::NONE).collect();
    let memory = Memory::new(config);
    let mut words = vec![!0; room.locals].leak();
    let started = memory.start(Vec::leak(directory), &mut words);
    started.expect("a memory");
    memory
}

/// Adds frames, with words for as many tables as they may need.
pub fn add<R: RawMutex>(
    memory: &Memory<'static, R>,
    start: Pfn,
    frames: u64,
) -> Result<(), GiveError> {
    let words = EngineLayout::of(start, frames.min(1 << 24)).words;
    memory.add(start, frames, &mut vec![!0; words].leak())
}

/// A memory with all of the frames that it is made for.
pub fn full<R: RawMutex>(config: MemoryConfig) -> Memory<'static, R> {
    let memory = started(config);
    for area in config.areas.iter() {
        add(&memory, area.start, area.frames).expect("it is new");
    }
    memory
}
