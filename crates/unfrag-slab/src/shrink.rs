//! How much of a cache of objects reclaim asks its owner to scan. `spec: 4.1`
//!
//! Each call adds `4 × scanned / seeks × objects / (lru_pages + 1)` to what the owner still has to scan, capped at
//! twice its objects; it scans in batches of 128. Who the owners are, and when they are asked, is the caller's.

/// Objects scanned at a time.
pub const SHRINK_BATCH: u64 = 128;
/// Default cost of making an object again (`DEFAULT_SEEKS`).
pub const DEFAULT_SEEKS: u32 = 2;

/// Objects that a shrinker has to scan after a pass over the LRU lists. `spec: 4.1`
pub fn shrink_target(pending: u64, scanned: u64, lru_pages: u64, objects: u64, seeks: u32) -> u64 {
    let delta = 4 * u128::from(scanned) / u128::from(seeks.max(1));
    let delta = delta.saturating_mul(u128::from(objects)) / (u128::from(lru_pages) + 1);
    let total = u128::from(pending).saturating_add(delta);
    u64::try_from(total.min(2 * u128::from(objects))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 4.1`
    #[test]
    fn share_of_a_shrinker() {
        // 4 × 1000 / 2 × 500 / (9999 + 1) = 100.
        assert_eq!(shrink_target(0, 1000, 9999, 500, 2), 100);
        assert_eq!(
            shrink_target(30, 1000, 9999, 500, 2),
            130,
            "what is pending adds up"
        );
        assert_eq!(
            shrink_target(0, 1 << 40, 0, 500, 2),
            1000,
            "capped at twice the objects"
        );
        assert_eq!(shrink_target(5, 0, 100, 0, 2), 0);
    }

    #[test]
    fn a_share_of_the_largest_numbers_is_capped_too() {
        let most = u64::MAX;
        assert_eq!(shrink_target(most, most, 0, most, 0), most);
        assert_eq!(shrink_target(0, most, most, 3, 1), 6);
    }
}
