//! Exceptions and interrupts: the table, the way in and out, and who is called.
//!
//! Invariant: a handler runs with interrupts off. Only a page fault may let other tasks run, and the timer when it is done.

use crate::{apic, atomic, cpu, faults, task, tlb};
use core::arch::naked_asm;
use x86_64::VirtAddr;
use x86_64::registers::control::Cr2;
use x86_64::structures::gdt::{Descriptor, GlobalDescriptorTable};
use x86_64::structures::idt::InterruptDescriptorTable;
use x86_64::structures::tss::TaskStateSegment;

/// What is on the stack when a handler is called: registers that a call may change, then what the CPU pushed.
#[repr(C)]
pub struct Frame {
    registers: [u64; 9],
    error: u64,
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

/// A way in: pushes an error code if the CPU does not, saves the registers, and calls `$handler` with the frame.
macro_rules! way_in {
    ($name:ident, $push:literal, $handler:path) => {
        #[unsafe(naked)]
        extern "C" fn $name() {
            naked_asm!(
                $push,
                "push rax", "push rcx", "push rdx", "push rsi", "push rdi",
                "push r8", "push r9", "push r10", "push r11",
                "mov rdi, rsp",
                // The stack is a multiple of 16 at a call: 15 words have been pushed.
                "sub rsp, 8",
                "cld",
                "call {handler}",
                "add rsp, 8",
                "pop r11", "pop r10", "pop r9", "pop r8",
                "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax",
                "add rsp, 8",
                "iretq",
                handler = sym $handler,
            )
        }
    };
}

way_in!(timer_in, "push 0", timer);
way_in!(flush_in, "push 0", flush);
way_in!(fault_in, "push 0", bad_moment);
way_in!(spurious_in, "push 0", spurious);
way_in!(page_fault_in, "", page_fault);
way_in!(with_error_in, "", exception);
way_in!(without_error_in, "push 0", exception);
way_in!(double_fault_in, "", double_fault);

extern "C" fn timer(_: &Frame) {
    apic::end_of_interrupt();
    faults::check();
    atomic::tick();
    task::tick();
}

extern "C" fn flush(_: &Frame) {
    tlb::answer();
    apic::end_of_interrupt();
}

extern "C" fn bad_moment(_: &Frame) {
    faults::check();
    atomic::allocate();
    apic::end_of_interrupt();
}

extern "C" fn spurious(_: &Frame) {}

extern "C" fn page_fault(frame: &Frame) {
    let at = Cr2::read_raw();
    let waits = cpu::may_switch() && task::wait_for_page(VirtAddr::new_truncate(at));
    assert!(
        waits,
        "page fault at {at:#x}, instruction at {:#x}",
        frame.rip
    );
}

extern "C" fn exception(frame: &Frame) {
    let (rip, error) = (frame.rip, frame.error);
    panic!("exception at {rip:#x}, error code {error:#x}");
}

extern "C" fn double_fault(frame: &Frame) {
    let (rip, rsp) = (frame.rip, frame.rsp);
    panic!("double fault at {rip:#x}, stack at {rsp:#x}");
}

/// The stack of double faults: the usual one may have overflowed.
const FAULT_STACK: usize = 16384;

#[repr(C, align(16))]
struct Stack([u8; FAULT_STACK]);

/// The segments of a CPU.
struct Segments {
    tss: TaskStateSegment,
    gdt: GlobalDescriptorTable,
}

static mut STACKS: [Stack; cpu::MAX_CPUS] = [const { Stack([0; FAULT_STACK]) }; cpu::MAX_CPUS];
static mut SEGMENTS: [Option<Segments>; cpu::MAX_CPUS] = [const { None }; cpu::MAX_CPUS];
static mut TABLE: InterruptDescriptorTable = InterruptDescriptorTable::new();

/// Fills the table. Called once, before any CPU loads it.
pub fn init() {
    let at = |way: extern "C" fn()| VirtAddr::new(way as usize as u64);
    // SAFETY: No CPU has the table yet. Each way in ends with `iretq`, and fits whether the CPU pushes an error code.
    unsafe {
        let table = &raw mut TABLE;
        let table = &mut *table;
        table.divide_error.set_handler_addr(at(without_error_in));
        table.invalid_opcode.set_handler_addr(at(without_error_in));
        table
            .general_protection_fault
            .set_handler_addr(at(with_error_in));
        table
            .stack_segment_fault
            .set_handler_addr(at(with_error_in));
        table.page_fault.set_handler_addr(at(page_fault_in));
        table
            .double_fault
            .set_handler_addr(at(double_fault_in))
            .set_stack_index(0);
        table[apic::TIMER].set_handler_addr(at(timer_in));
        table[apic::FLUSH].set_handler_addr(at(flush_in));
        table[apic::FAULT].set_handler_addr(at(fault_in));
        table[apic::SPURIOUS].set_handler_addr(at(spurious_in));
    }
}

/// Loads the tables on the calling CPU.
pub fn load() {
    use x86_64::instructions::segmentation::{CS, DS, SS, Segment};
    let id = cpu::id();
    // SAFETY: Each CPU has its own segments, which last; the stack is used by nobody else.
    unsafe {
        let mut tss = TaskStateSegment::new();
        let stack = VirtAddr::from_ptr(&raw const STACKS[id]);
        tss.interrupt_stack_table[0] = stack + FAULT_STACK as u64;
        let own = &raw mut SEGMENTS[id];
        let own = (*own).insert(Segments {
            tss,
            gdt: GlobalDescriptorTable::new(),
        });
        let code = own.gdt.append(Descriptor::kernel_code_segment());
        let data = own.gdt.append(Descriptor::kernel_data_segment());
        let tss = own.gdt.append(Descriptor::tss_segment_unchecked(&own.tss));
        own.gdt.load_unsafe();
        CS::set_reg(code);
        DS::set_reg(data);
        SS::set_reg(data);
        x86_64::instructions::tables::load_tss(tss);
        let table = &raw const TABLE;
        (*table).load_unsafe();
    }
}
