//! Output over the first serial port, and the exit of QEMU with a code.

use crate::lock::Spin;
use core::fmt::Write;
use x86_64::instructions::port::Port;

const DATA: u16 = 0x3f8;
/// Line status, and its bit that says that a byte may be written.
const STATUS: u16 = DATA + 5;
const READY: u8 = 0x20;
/// QEMU's device `isa-debug-exit`.
const EXIT: u16 = 0xf4;

/// The port.
pub struct Serial(());

/// The one port, for [`print!`](crate::print).
pub static SERIAL: Spin<Serial> = Spin::const_new(
    <crate::lock::IrqLock as lock_api::RawMutex>::INIT,
    Serial(()),
);

impl Write for Serial {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        for b in s.bytes() {
            // SAFETY: Reading the status and writing a byte changes no memory.
            unsafe {
                while Port::<u8>::new(STATUS).read() & READY == 0 {}
                Port::new(DATA).write(b);
            }
        }
        Ok(())
    }
}

/// Writes to the serial port.
macro_rules! print {
    ($($arg:tt)*) => {{
        // It cannot fail.
        let _ = core::fmt::Write::write_fmt(&mut *crate::serial::SERIAL.lock(), format_args!($($arg)*));
    }};
}

/// Writes a line to the serial port.
macro_rules! println {
    () => { print!("\n") };
    ($($arg:tt)*) => { print!("{}\n", format_args!($($arg)*)) };
}

/// How the machine ends; QEMU exits with twice the number and one.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Verdict {
    /// All was right: 33.
    Passed = 16,
    /// Something was wrong, and has been printed: 35.
    Failed = 17,
}

/// Turns the machine off.
pub fn exit(verdict: Verdict) -> ! {
    // SAFETY: It ends the machine.
    unsafe { Port::new(EXIT).write(verdict as u32) };
    loop {
        x86_64::instructions::hlt();
    }
}

/// Writes what is wrong, whoever holds the port's lock.
pub fn panic_line(what: core::fmt::Arguments) {
    let _ = Serial(()).write_fmt(format_args!("\npanic: {what}\n"));
}
