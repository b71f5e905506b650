//! `/proc/PID/pagemap`: one 64-bit word for each page of a process' address space (`spec: 7.10`).
//!
//! Invariant: bits are the kernel's stable interface (4.2 and later). A frame's number is 0 where whoever reads has no right to
//! see it, so 0 is never taken for a frame.

/// A page as its word tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(pub u64);

impl Entry {
    /// Whether a frame is mapped.
    pub fn is_present(self) -> bool {
        self.0 >> 63 & 1 == 1
    }

    /// Whether it is swapped out, or on its way between two frames. Other marks of the kernel say the same before Linux 6.15.
    pub fn is_swapped(self) -> bool {
        self.0 >> 62 & 1 == 1 && !self.is_guard()
    }

    /// Whether whoever touches it is killed (`MADV_GUARD_INSTALL`); told from Linux 6.15 on.
    pub fn is_guard(self) -> bool {
        !self.is_present() && self.0 >> 58 & 1 == 1
    }

    /// Whether its frame is of a file, or of memory that processes share.
    pub fn is_of_file(self) -> bool {
        self.0 >> 61 & 1 == 1
    }

    /// Whether no other process maps its frame.
    pub fn is_exclusive(self) -> bool {
        self.0 >> 56 & 1 == 1
    }

    /// Its frame; `None` if it has none, or nobody says which.
    pub fn frame(self) -> Option<u64> {
        let frame = self.0 & ((1 << 55) - 1);
        (self.is_present() && frame != 0).then_some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_is_hidden_is_none() {
        let of = |word: u64| (Entry(word).is_present(), Entry(word).frame());
        assert_eq!(of(1 << 63 | 1 << 56 | 0x1234), (true, Some(0x1234)));
        assert_eq!(of(1 << 63), (true, None), "without the right to see it");
        // The low bits of a page that is swapped out say where to.
        assert_eq!(of(1 << 62 | 0x1234), (false, None));
        let guard = Entry(1 << 62 | 1 << 58);
        assert!(guard.is_guard() && !guard.is_swapped() && !Entry(1 << 62).is_guard());
        assert!(Entry(1 << 62).is_swapped() && Entry(1 << 61).is_of_file());
    }
}
