//! The readahead window of an open file.

/// Most pages read ahead at once: 128 KiB.
pub const MAX_WINDOW: u32 = 32;
/// Pages of the first window.
pub const FIRST_WINDOW: u32 = 4;

/// The readahead state of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readahead {
    /// First page of the present window.
    start: u32,
    /// Its length; 0 before the first one.
    size: u32,
    /// Page that is expected next.
    pub(crate) next: u32,
}

impl Readahead {
    /// The window to read when page `index` is missing: the next, larger one for sequential reads, else that
    /// page alone.
    pub fn miss(&mut self, index: u32) -> (u32, u32) {
        let in_order = index == self.next || index == self.start + self.size;
        if index > 0 && !in_order {
            (self.start, self.size) = (index, 0);
            return (index, 1);
        }
        self.start = index;
        self.size = match self.size {
            0 => FIRST_WINDOW,
            n => (n * 2).min(MAX_WINDOW),
        };
        (self.start, self.size)
    }

    /// The window to read when the marked page of the present one is reached.
    pub fn marker(&mut self) -> (u32, u32) {
        self.start += self.size;
        self.size = (self.size * 2).clamp(FIRST_WINDOW, MAX_WINDOW);
        (self.start, self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_doubles_for_sequential_reads() {
        let mut ra = Readahead::default();
        assert_eq!(ra.miss(0), (0, 4));
        let windows: Vec<_> = (0..5).map(|_| ra.marker()).collect();
        assert_eq!(windows, [(4, 8), (12, 16), (28, 32), (60, 32), (92, 32)]);
    }

    #[test]
    fn random_read_resets_the_window() {
        let mut ra = Readahead::default();
        ra.miss(0);
        assert_eq!(ra.miss(100), (100, 1));
        ra.next = 101;
        assert_eq!(ra.miss(101), (101, 4));
    }
}
