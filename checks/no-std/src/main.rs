//! Checks that the eras and the slab caches need no `std`, no allocator and no libc. The program is
//! linked from `core`, `unfrag-eras`, `unfrag-slab` and the `unfrag` beneath them alone. It runs two managers of different eras side by
//! side, and slab caches of each design over a third. Its exit status is 0, or the number of the step
//! that failed.

#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr::NonNull;
use unfrag_eras::{Builder, CpuId, Gfp, Manager, NullHost, Order, Pfn, Request, ZoneId};
use unfrag_slab::{CacheFlags, Design, FrameEntry, Kmalloc, LockedPages, SlabConfig, Slabs};

mod bare;

const PAGES: u64 = 8192;
const WORDS: usize = 20_000;

/// Memory for the metadata of one manager.
struct Arena(UnsafeCell<[u64; WORDS]>);

// SAFETY: the program has one thread, and each arena is borrowed once.
unsafe impl Sync for Arena {}

static ARENAS: [Arena; 3] = [const { Arena(UnsafeCell::new([!0; WORDS])) }; 3];

/// Memory behind the frames of the third manager, and the table of its slab caches.
#[repr(align(4096))]
struct Room(UnsafeCell<[u8; PAGES as usize * 4096]>);
struct Table(UnsafeCell<[FrameEntry; PAGES as usize]>);

// SAFETY: the program has one thread, and each is borrowed once.
unsafe impl Sync for Room {}
// SAFETY: the program has one thread, and each is borrowed once.
unsafe impl Sync for Table {}

static ROOM: Room = Room(UnsafeCell::new([0; PAGES as usize * 4096]));
static TABLE: Table = Table(UnsafeCell::new(
    [const { FrameEntry::new() }; PAGES as usize],
));

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    bare::exit(101)
}

/// The step that failed.
type Step = Result<(), i32>;

fn check(step: i32, ok: bool) -> Step {
    if ok { Ok(()) } else { Err(step) }
}

const ZONE: ZoneId = ZoneId(0);

fn boot(era: &str, arena: &'static Arena) -> Result<Manager<'static, NullHost>, i32> {
    let config = Builder::new()
        .region(Pfn(0x10_0000), PAGES)
        .cpus(2)
        .era(era);
    let words = config.layout().map_err(|_| 2)?.words;
    check(3, words <= WORDS)?;
    // SAFETY: each arena is handed out once, by `run`.
    let memory = unsafe { &mut *arena.0.get() };
    config.boot(NullHost, memory).map_err(|_| 4)
}

/// Allocates and frees in both managers, by turns.
fn run() -> Step {
    let [one, two, _] = &ARENAS;
    let mut managers = [boot("6.1", one)?, boot("2.6.32", two)?];
    let mut held = [[None; 600]; 2];
    for i in 0..600 {
        for (m, held) in managers.iter_mut().zip(&mut held) {
            let order = Order([0, 0, 1, 4][i % 4]);
            let gfp = [Gfp::KERNEL, Gfp::HIGHUSER_MOVABLE][i / 2 % 2];
            let cpu = CpuId(i as u32 / 8 % 2);
            let request = Request::new(order, gfp).on(cpu);
            held[i] = Some((m.alloc(&request).map_err(|_| 10)?, order));
        }
    }
    for (m, held) in managers.iter_mut().zip(&held) {
        let m = m.inspect();
        check(20, m.validate().is_ok())?;
        let used: u64 = held
            .iter()
            .flatten()
            .map(|(_, o)| u64::from(o.frames()))
            .sum();
        check(
            21,
            m.zone(ZONE).free_pages + m.pcp_pages(ZONE) + used == PAGES,
        )?;
    }
    // Freed backwards in one and forwards in the other.
    for i in 0..600 {
        for (k, m) in managers.iter_mut().enumerate() {
            let at = if k == 0 { 599 - i } else { i };
            let (pfn, order) = held[k][at].take().ok_or(30)?;
            m.free(CpuId(0), pfn, order).map_err(|_| 31)?;
        }
    }
    for m in &mut managers {
        m.drain_all();
        check(40, m.inspect().validate().is_ok())?;
        let zone = m.inspect().zone(ZONE);
        check(41, zone.free_pages == PAGES)?;
        check(42, zone.nr_free[10] == PAGES / 1024)?;
        let largest = Request::new(Order(10), Gfp::HIGHUSER_MOVABLE);
        check(43, m.alloc(&largest).is_ok())?;
    }
    Ok(())
}

/// Allocates and frees by size in caches of each design, over a third manager.
fn run_slabs() -> Step {
    let manager = boot("6.18", &ARENAS[2])?;
    let base = NonNull::new(ROOM.0.get().cast()).ok_or(50)?;
    // SAFETY: the room has a page for each frame, and serves nothing else.
    let pages: LockedPages<NullHost> = unsafe { LockedPages::new(manager, base) }.ok_or(51)?;
    // SAFETY: the table is borrowed here alone.
    let table = unsafe { &mut *TABLE.0.get() };
    let slabs = Slabs::new(&pages, table, &SlabConfig::default()).map_err(|_| 52)?;
    let cpu = slabs.cpu(0).map_err(|_| 53)?;
    for design in Design::ALL {
        let sizes = Kmalloc::new(&slabs, design, CacheFlags::RED_ZONE).map_err(|_| 54)?;
        let mut held = [None; 500];
        for (i, place) in held.iter_mut().enumerate() {
            let memory = sizes.alloc(&cpu, 1 + i * 40, Gfp::KERNEL | Gfp::ZERO);
            *place = Some(memory.map_err(|_| 55)?);
        }
        for memory in held.iter().flatten() {
            // SAFETY: allocated above, and freed once.
            unsafe { sizes.free(&cpu, *memory) }.map_err(|_| 56)?;
        }
        check(57, sizes.destroy().is_ok())?;
        check(58, slabs.slab_pages() == 0)?;
    }
    drop(cpu);
    drop(slabs);
    let mut manager = pages.into_manager();
    manager.drain_all();
    check(59, manager.inspect().zone(ZONE).free_pages == PAGES)
}

/// What the entry point calls.
extern "C" fn program() -> ! {
    bare::exit(match run().and_then(|()| run_slabs()) {
        Ok(()) => 0,
        Err(step) => step,
    })
}

/// Where the kernel starts the process.
#[unsafe(no_mangle)]
#[unsafe(naked)]
extern "C" fn _start() -> ! {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("xor ebp, ebp", "and rsp, -16", "call {}", sym program);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov x29, xzr", "b {}", sym program);
}
