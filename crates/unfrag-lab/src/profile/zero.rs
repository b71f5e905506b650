//! Fields that a profile's file leaves out.

/// Whether a number is 0, which is what a field that is left out is read as.
pub(super) fn is_zero(n: &u64) -> bool {
    *n == 0
}
