//! Numbers and names by kernel release: migratetypes, request flags, presets, sysctls.
//!
//! `release`: what the numbers of a recording mean. [`sysctl`]: settings by name, and what they may be. [`settings`]: those
//! of a host over time. [`huge_pages`]: those of huge pages.

pub mod huge_pages;
mod release;
pub mod settings;
pub mod sysctl;

pub use release::Era;
