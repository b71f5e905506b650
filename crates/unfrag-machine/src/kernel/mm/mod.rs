//! The kernel's work on memory.

pub mod alloc;
mod areas;
mod bios;
pub(crate) mod caller;
pub mod check;
mod crypt_pages;
mod evict;
mod fault;
mod file_area;
mod kswapd;
mod needs;
pub mod obstacles;
mod oom;
pub(crate) mod prefetch;
mod process;
mod swapin;
#[cfg(test)]
mod tests;
pub mod touch;

pub use caller::Who;
