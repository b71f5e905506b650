//! A share of the pages of an area.

use crate::input::Percent;

/// A share of an area's pages, scattered over it; the same pages for each process.
#[derive(Clone, Copy)]
pub(super) struct Scattered {
    limit: u32,
}

impl Scattered {
    pub(super) const fn new(share: Percent) -> Scattered {
        let limit = share.get() * 65_536 / 100;
        Scattered { limit }
    }

    /// Whether a page is one of them.
    #[inline]
    pub(super) const fn has(self, page: u32) -> bool {
        page.wrapping_mul(2_654_435_761) >> 16 & 0xffff < self.limit
    }
}

#[cfg(test)]
mod unit {
    use super::Scattered;
    use crate::input::Percent;

    #[test]
    fn scattered_share_has_its_size_and_spread() {
        let share = |percent| Scattered::new(Percent::new(percent).unwrap());
        let used = |percent| (0..4000).filter(|&i| share(percent).has(i)).count();
        assert_eq!((used(0), used(100)), (0, 4000));
        assert!((1500..1700).contains(&used(40)), "{}", used(40));
        let last_quarter = (3000..4000).filter(|&i| share(40).has(i)).count();
        assert!((350..450).contains(&last_quarter), "{last_quarter}");
    }
}
