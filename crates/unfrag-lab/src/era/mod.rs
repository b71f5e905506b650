//! Numbers and names by kernel release: migratetypes, request flags, presets, sysctls.

mod release;
pub mod sysctl;

pub use release::Era;
