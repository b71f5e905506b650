//! The kernel's block layer at work: bios on their way to the devices and back.
//!
//! - `path`: the way of a bio from its submission to its end.
//! - `crypt`: the threads of an encrypting layer.
//! - `congestion`: waiting for a queue to become emptier.

mod congestion;
mod crypt;
mod path;
#[cfg(test)]
mod tests;
