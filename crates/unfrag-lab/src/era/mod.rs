//! Numbers and names by kernel: which preset a release is, and the sysctls.

mod release;
pub mod sysctl;

pub use release::Era;
