//! A kernel that boots under QEMU, gives all frames of the machine to unfrag, and puts it under load.
//!
//! # The files, from the ground up
//! - `entry.s`: from the loader to Rust. `memory_map`, `params`: what the loader says. `serial`: output, and the exit.
//! - `cpu`, `once`: what is one CPU's, and what is set once. `apic`, `tables`: interrupts and page tables as the CPU has them.
//! - `faults`: interrupts at the worst moments. `lock`: the spin lock.
//! - `frames`, `heap`: all frames, in unfrag's own engine or under the rules of an era; slab caches on them.
//! - `task`, `mutex`: tasks, the scheduler, and the lock that tasks wait for. `tlb`: flushes on all CPUs.
//! - `owners`, `space`, `spaces`, `cache`: who has movable frames.
//! - `compact`, `daemons`: direct compaction, kswapd, kcompactd. `atomic`: interrupt handlers that allocate.
//! - `interrupts`: the ways in, and who is called.
//! - `pattern`, `workload`, `report`: what it runs, and what it says.
#![no_std]
#![no_main]

extern crate alloc;

#[macro_use]
mod serial;

mod apic;
mod atomic;
mod cache;
mod compact;
mod cpu;
mod daemons;
mod faults;
mod frames;
mod heap;
mod interrupts;
mod lock;
mod memory_map;
mod mutex;
mod once;
mod owners;
mod params;
mod pattern;
mod report;
mod space;
mod spaces;
mod tables;
mod task;
mod tlb;
mod workload;

use memory_map::FRAME;
use once::Once;
use params::Params;
use unfrag::Pfn;

core::arch::global_asm!(include_str!("entry.s"), options(att_syntax));

/// The timer of each CPU ticks so often a second.
const HZ: u32 = 1000;
/// The page where the other CPUs start.
const TRAMPOLINE: u64 = 8;
/// Fewer frames are too few for what it runs: 32 MiB.
const FEWEST: u64 = 8000;
/// Bytes of the first stack of each other CPU.
const STACK: usize = 65536;

/// What a CPU needs to start its timer.
static TIMER: Once<u32> = Once::new();

unsafe extern "C" {
    static kernel_start: u8;
    static kernel_end: u8;
    static trampoline: u8;
    static trampoline_end: u8;
    static cpus_started: core::sync::atomic::AtomicU32;
    static mut cpu_stacks: [u64; cpu::MAX_CPUS];
}

/// The first CPU, from `entry.s`.
#[unsafe(no_mangle)]
extern "C" fn kernel_main(start_info: u64) -> ! {
    cpu::init(0);
    interrupts::init();
    interrupts::load();
    // SAFETY: Nothing has been written but the kernel's own memory.
    let loaded = unsafe { memory_map::read(start_info) };
    let params = match Params::parse(loaded.command_line) {
        Ok(params) => params,
        Err(word) => {
            panic!("parameter {word:?}: see boot/src/params.rs for the parameters and their values")
        }
    };
    let mut map = loaded.map;
    for (start, bytes) in params.holes() {
        map.remove(start / FRAME..(start + bytes).div_ceil(FRAME));
    }
    let (start, end) = (&raw const kernel_start as u64, &raw const kernel_end as u64);
    // Frame 0 and the page where CPUs start are nobody's.
    map.remove(0..1);
    map.remove(TRAMPOLINE..TRAMPOLINE + 1);
    map.remove(start / FRAME..end / FRAME);
    for r in map.regions() {
        println!(
            "memory: frames {:#9x} to {:#9x}, {:8} KiB",
            r.start,
            r.end - 1,
            (r.end - r.start) * 4
        );
    }
    assert!(
        map.frames() >= FEWEST,
        "{} KiB of memory: the kernel needs 32 MiB",
        map.frames() * 4
    );
    owners::init(&mut map, end / FRAME);
    let table = heap::carve(&mut map, end / FRAME);
    // SAFETY: interrupts are off while a CPU uses its `Local`, so its answer is before or behind that.
    let barrier = unsafe { unfrag::Barrier::new(tlb::barrier) };
    let from = end / FRAME;
    if let Err(why) = frames::init(params.engine, &mut map, from, params.cpus, barrier) {
        panic!("engine={}: {why}", params.engine);
    }
    heap::init(table, params.cpus);
    task::init();

    apic::mask_old_controllers();
    apic::enable();
    let per_ms = *TIMER.set(apic::measure_timer());
    cpu::set_count(params.cpus);
    start_others(params.cpus, per_ms);
    println!(
        "{} CPUs, {} frames, {} free",
        params.cpus,
        map.frames(),
        frames::free_frames()
    );
    let frames = map.frames();
    task::spawn(0, move || workload::run(params, frames));
    run()
}

/// Starts the other CPUs, and waits until they are there.
fn start_others(cpus: usize, per_ms: u32) {
    let stacks = &raw mut cpu_stacks;
    // SAFETY: The CPUs that read it have not started.
    let stacks = unsafe { &mut *stacks };
    for own in &mut stacks[1..cpus] {
        let stack = alloc::vec![0u64; STACK / 8].leak();
        *own = stack.as_ptr_range().end as u64;
    }
    // SAFETY: The page is nobody's, and mapped at its own address.
    unsafe {
        let bytes = (&raw const trampoline_end).offset_from(&raw const trampoline) as usize;
        let page = memory_map::frame::<u8>(Pfn(TRAMPOLINE));
        page.copy_from_nonoverlapping(&raw const trampoline, bytes);
    }
    if cpus > 1 {
        apic::start_others(per_ms, TRAMPOLINE as u8);
    }
    let started = || unsafe { cpus_started.load(core::sync::atomic::Ordering::Acquire) } as usize;
    for _ in 0..1000 {
        if started() >= cpus {
            break;
        }
        apic::wait_ms(per_ms, 1);
    }
    assert!(
        started() == cpus,
        "{} of {cpus} CPUs started: say cpus= as many as the machine has",
        started()
    );
}

/// Another CPU, from `entry.s`.
#[unsafe(no_mangle)]
extern "C" fn cpu_main(id: u64) -> ! {
    cpu::init(id as usize);
    interrupts::load();
    apic::enable();
    run()
}

/// Runs tasks until the machine ends.
fn run() -> ! {
    apic::start_timer(*TIMER.get(), HZ);
    task::run()
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    x86_64::instructions::interrupts::disable();
    serial::panic_line(format_args!("CPU {}: {info}", cpu::id()));
    serial::exit(serial::Verdict::Failed)
}
