//! Pages shared by slab caches and other users: a block belongs to its holder until it is freed.

use super::support::{Eras, Memory as Real};
use unfrag::Gfp;
use unfrag_eras::{Manager, NullHost, ZoneId};
use unfrag_slab::{
    Cache, FrameEntry, LockedPages, PageBlock, PageRequest, Pages, SlabConfig, Slabs,
};

type Memory = Real<Eras>;

/// Every byte, or fewer where each takes its time.
const STEP: usize = if cfg!(miri) { 251 } else { 1 };

fn request(order: u8) -> PageRequest {
    PageRequest::new(order, Gfp::KERNEL)
}

fn free(manager: &Manager<NullHost>) -> u64 {
    let (inside, zone) = (manager.inspect(), ZoneId(0));
    inside.zone(zone).free_pages + inside.pcp_pages(zone)
}

#[test]
fn a_page_block_returns_on_drop_or_free() {
    let memory = Memory::new(1, 256);
    let pages = &memory.pages.source;
    let before = pages.view(free);
    let mut blocks: Vec<PageBlock> = (0..6)
        .map(|i| pages.alloc_block(&request(i % 3)).unwrap())
        .collect();
    assert_eq!(pages.view(free), before - 2 * (1 + 2 + 4));
    for (i, block) in blocks.iter_mut().enumerate() {
        let room = block.memory();
        assert_eq!(room.len(), 4096 << (i % 3));
        assert!(room.as_ptr().addr().is_multiple_of(4096));
        room.iter_mut().step_by(STEP).for_each(|byte| {
            byte.write(i as u8);
        });
    }
    for (i, block) in blocks.iter_mut().enumerate() {
        // SAFETY: it was written above.
        let whole = |byte: &std::mem::MaybeUninit<u8>| unsafe { byte.assume_init() } == i as u8;
        let mut written = block.memory().iter().step_by(STEP);
        assert!(written.all(whole), "blocks overlap");
    }
    let mut frames: Vec<(u64, u64)> = blocks
        .iter()
        .map(|b| (b.first().0, b.first().0 + (1 << b.order())))
        .collect();
    frames.sort_unstable();
    assert!(frames.windows(2).all(|w| w[0].1 <= w[1].0));
    blocks.pop().unwrap().free();
    drop(blocks);
    assert_eq!(pages.view(free), before, "each went back once");
    pages.view(|m| m.inspect().validate().unwrap());
}

#[test]
fn a_block_may_go_back_on_another_thread() {
    let memory = Memory::new(1, 256);
    let pages = &memory.pages.source;
    let before = pages.view(free);
    let mut block = pages.alloc_block(&request(0)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            block.memory()[0].write(1);
        });
    });
    assert_eq!(pages.view(free), before);
}

#[test]
fn no_block_is_handed_out_when_there_is_none() {
    let memory = Memory::new(1, 256);
    let pages = &memory.pages.source;
    let all: Vec<PageBlock> = std::iter::from_fn(|| pages.alloc_block(&request(0))).collect();
    assert!(all.len() > 100);
    assert!(pages.alloc_block(&request(0)).is_none());
    assert!(pages.alloc_block(&request(10)).is_none());
}

/// A frame of a live slab must never be freed by another user, or two values of a cache would share memory. Blocks
/// that come and go do not free such a frame.
#[test]
fn values_in_slabs_keep_apart_from_blocks_that_come_and_go() {
    let memory = Memory::new(1, 512);
    let pages = &memory.pages.source;
    let mut table: Vec<FrameEntry> = (0..512).map(|_| FrameEntry::new()).collect();
    let slabs = Slabs::new(pages, &mut table, &SlabConfig::default()).unwrap();
    let cpu = slabs.cpu(0).unwrap();
    let cache: Cache<[u64; 32]> = Cache::new(&slabs, "value").unwrap();
    let mut values = vec![];
    let mut blocks = vec![];
    for n in 0..if cfg!(miri) { 60 } else { 600u64 } {
        values.push(cache.alloc(&cpu, Gfp::KERNEL, [n; 32]).unwrap());
        let mut block = pages.alloc_block(&request((n % 2) as u8)).unwrap();
        block.memory().iter_mut().step_by(STEP).for_each(|byte| {
            byte.write(0xee);
        });
        blocks.push(block);
        if n % 3 > 0 {
            drop(blocks.swap_remove((n * 7) as usize % blocks.len()));
        }
        if blocks.len() > 80 {
            blocks.clear();
        }
    }
    for (n, value) in values.iter().enumerate() {
        assert!(value.iter().all(|word| *word == n as u64), "value {n}");
    }
}

#[test]
fn what_caches_took_is_free_in_the_manager_when_they_are_gone() {
    let memory = Memory::new(1, 256);
    let pages = &memory.pages.source;
    let before = pages.view(free);
    memory.with(&SlabConfig::default(), |slabs| {
        let cpu = slabs.cpu(0).unwrap();
        let cache: Cache<u64> = Cache::new(slabs, "value").unwrap();
        drop(cache.alloc(&cpu, Gfp::KERNEL, 7).unwrap());
        assert!(pages.view(free) < before);
    });
    // SAFETY: draining moves free frames alone.
    unsafe { pages.with_mut(|m| m.drain_all()) };
    pages.view(|m| assert_eq!((free(m), m.inspect().pcp_pages(ZoneId(0))), (before, 0)));
}

#[test]
fn what_caches_share_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<LockedPages<NullHost>>();
    shared::<PageBlock>();
    shared::<&dyn Pages>();
}

#[test]
fn a_window_that_begins_within_a_page_is_refused() {
    let config = unfrag_eras::Builder::new().region(unfrag::Pfn(1024), 64);
    let mut words = vec![0u64; config.layout().unwrap().words];
    let manager = config.boot(NullHost, &mut words).unwrap();
    let at = std::ptr::NonNull::new(std::ptr::without_provenance_mut(4096 + 8)).unwrap();
    let made: Option<LockedPages<_>> = unsafe { LockedPages::new(manager, at) };
    assert!(made.is_none(), "no multiple of a page");
}
