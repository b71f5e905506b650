//! Page tables as the CPU reads them: which ones are in use, and what an address leads to.

use crate::memory_map::{FRAME, frame};
use unfrag::Pfn;
use x86_64::registers::control::{Cr3, Cr3Flags};
use x86_64::structures::paging::page_table::{PageTableEntry, PageTableFlags as Flags};
use x86_64::structures::paging::{PageTable, PhysFrame};
use x86_64::{PhysAddr, VirtAddr};

/// An entry whose page is being moved: a bit that the CPU leaves to us.
pub const MOVES: Flags = Flags::BIT_9;

/// What an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Memory.
    Present,
    /// Memory that is being moved.
    Moves,
    /// Nothing.
    Nothing,
}

/// The frame of the kernel's own first table.
pub fn kernel_root() -> Pfn {
    unsafe extern "C" {
        static boot_pml4: PageTable;
    }
    Pfn(&raw const boot_pml4 as u64 / FRAME)
}

/// Has the calling CPU translate by the tables that begin in a frame.
pub fn load(root: Pfn) {
    let at = PhysAddr::new(root.0 * FRAME);
    if Cr3::read().0.start_address() != at {
        // SAFETY: The kernel's part of all tables is the same.
        unsafe { Cr3::write(PhysFrame::containing_address(at), Cr3Flags::empty()) };
    }
}

/// What an address leads to. Without a lock: entries change under their owner's lock, each as a whole.
pub fn state(root: Pfn, at: VirtAddr) -> State {
    // SAFETY: Tables stay as long as their space.
    match unsafe { entry(root, at).map(|e| (*e).flags()) } {
        Some(flags) if flags.contains(Flags::PRESENT) => State::Present,
        Some(flags) if flags.contains(MOVES) => State::Moves,
        _ => State::Nothing,
    }
}

/// The entry of a page of 4 KiB.
///
/// # Safety
/// The tables are whole, and none of them is freed meanwhile.
pub unsafe fn entry(root: Pfn, at: VirtAddr) -> Option<*mut PageTableEntry> {
    let levels = [at.p4_index(), at.p3_index(), at.p2_index()];
    let mut table = frame::<PageTable>(root);
    for index in levels {
        // SAFETY: As the caller says.
        let flags = unsafe { (&(*table))[index].flags() };
        if !flags.contains(Flags::PRESENT) || flags.contains(Flags::HUGE_PAGE) {
            return None;
        }
        // SAFETY: As above.
        let next = unsafe { (&(*table))[index].addr() };
        table = frame(Pfn(next.as_u64() / FRAME));
    }
    // SAFETY: As above.
    Some(unsafe { &raw mut (&mut (*table))[at.p1_index()] })
}
