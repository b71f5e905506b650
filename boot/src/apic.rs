//! The local interrupt controller of each CPU: its timer, and interrupts to others.

use crate::memory_map::direct;
use core::hint::spin_loop;
use x86_64::instructions::port::Port;

/// Interrupts by vector.
pub const TIMER: u8 = 0x40;
/// Other CPUs ask for a flush of the TLB.
pub const FLUSH: u8 = 0x41;
/// A CPU interrupts itself, to allocate at a bad moment.
pub const FAULT: u8 = 0x42;
/// What the controller raises by mistake.
pub const SPURIOUS: u8 = 0xff;

const BASE: u64 = 0xfee0_0000;
const EOI: u64 = 0xb0;
const SVR: u64 = 0xf0;
/// Requested interrupts, 32 to a register.
const IRR: u64 = 0x200;
const ICR_LOW: u64 = 0x300;
const ICR_HIGH: u64 = 0x310;
const LVT_TIMER: u64 = 0x320;
const TIMER_COUNT: u64 = 0x380;
const TIMER_NOW: u64 = 0x390;
const TIMER_DIVIDE: u64 = 0x3e0;

const PERIODIC: u32 = 1 << 17;
const MASKED: u32 = 1 << 16;
const PENDING: u32 = 1 << 12;
const ASSERT: u32 = 1 << 14;
const INIT: u32 = 5 << 8;
const STARTUP: u32 = 6 << 8;
const ALL_OTHERS: u32 = 3 << 18;
const SELF: u32 = 1 << 18;

fn read(register: u64) -> u32 {
    // SAFETY: The controller's registers, which are no memory of anybody.
    unsafe { direct::<u32>(BASE + register).read_volatile() }
}

fn write(register: u64, value: u32) {
    // SAFETY: As above.
    unsafe { direct::<u32>(BASE + register).write_volatile(value) }
}

/// Turns the calling CPU's controller on.
pub fn enable() {
    write(SVR, 0x100 | u32::from(SPURIOUS));
}

/// Masks the two old controllers of the PC, whose interrupts would come as exceptions.
pub fn mask_old_controllers() {
    for port in [0x21, 0xa1] {
        // SAFETY: It changes no memory.
        unsafe { Port::<u8>::new(port).write(0xff) };
    }
}

/// Interrupts the calling CPU with [`TIMER`] so many times a second.
pub fn start_timer(per_ms: u32, hz: u32) {
    write(TIMER_DIVIDE, 0b1011);
    write(LVT_TIMER, PERIODIC | u32::from(TIMER));
    write(TIMER_COUNT, (per_ms * 1000 / hz).max(1));
}

/// How far the timer counts in a millisecond, by the old timer of the PC, which counts at 1,193,182 Hz.
pub fn measure_timer() -> u32 {
    const TICKS: u16 = 11_932; // 10 ms
    write(TIMER_DIVIDE, 0b1011);
    write(LVT_TIMER, MASKED);
    // SAFETY: Channel 2 of the timer makes no interrupt: bit 0 of port 0x61 starts it, bit 5 says that it has ended.
    unsafe {
        let mut gate = Port::<u8>::new(0x61);
        let off = gate.read() & !3;
        gate.write(off);
        Port::<u8>::new(0x43).write(0xb0);
        Port::<u8>::new(0x42).write(TICKS as u8);
        Port::<u8>::new(0x42).write((TICKS >> 8) as u8);
        write(TIMER_COUNT, u32::MAX);
        gate.write(off | 1);
        while gate.read() & 0x20 == 0 {}
    }
    let counted = u32::MAX - read(TIMER_NOW);
    write(TIMER_COUNT, 0);
    counted / 10
}

/// Waits by the timer that [`measure_timer`] measured.
pub fn wait_ms(per_ms: u32, ms: u32) {
    write(TIMER_COUNT, u32::MAX);
    while u32::MAX - read(TIMER_NOW) < per_ms.saturating_mul(ms) {
        spin_loop();
    }
    write(TIMER_COUNT, 0);
}

/// Ends the handling of an interrupt.
pub fn end_of_interrupt() {
    write(EOI, 0);
}

/// Whether an interrupt waits until the calling CPU turns interrupts on.
pub fn is_pending(vector: u8) -> bool {
    read(IRR + u64::from(vector / 32) * 16) >> (vector % 32) & 1 == 1
}

fn send(command: u32) {
    write(ICR_HIGH, 0);
    write(ICR_LOW, command);
    while read(ICR_LOW) & PENDING != 0 {
        spin_loop();
    }
}

/// Interrupts all other CPUs.
pub fn interrupt_others(vector: u8) {
    send(ALL_OTHERS | ASSERT | u32::from(vector));
}

/// Interrupts the calling CPU.
pub fn interrupt_self(vector: u8) {
    send(SELF | ASSERT | u32::from(vector));
}

/// Starts all other CPUs in real mode, at the page of this number.
pub fn start_others(per_ms: u32, page: u8) {
    send(ALL_OTHERS | ASSERT | INIT);
    wait_ms(per_ms, 10);
    for _ in 0..2 {
        send(ALL_OTHERS | ASSERT | STARTUP | u32::from(page));
        wait_ms(per_ms, 1);
    }
}
