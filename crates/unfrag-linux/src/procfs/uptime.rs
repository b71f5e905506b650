//! `/proc/uptime`: seconds since boot, and idle seconds, each with two decimals.

use super::scan::Scan;
use crate::error::Error;

/// Nanoseconds since boot, which the kernel rounds down to 10 ms here.
///
/// # Errors
/// Names the byte that does not fit the format.
pub fn parse(bytes: &[u8]) -> Result<u64, Error> {
    let mut scan = Scan::new("uptime", bytes);
    let seconds: u64 = scan.number()?;
    scan.expect(".")?;
    let at = scan.offset();
    let hundredths: u64 = scan.number()?;
    let digits = scan.since(at);
    if digits.len() != 2 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(scan.error_at(at, "seconds have two decimals"));
    }
    let ns = seconds
        .checked_mul(1_000_000_000)
        .and_then(|s| s.checked_add(hundredths * 10_000_000));
    ns.ok_or_else(|| {
        scan.error_at(
            0,
            format!("{seconds} seconds do not fit 64 bits of nanoseconds"),
        )
    })
}
