//! The LRU lists by kind of page and age.

/// An LRU list. The order of the first four is that of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Lru {
    /// Anonymous pages (and tmpfs) not used lately.
    InactiveAnon = 1,
    /// Anonymous pages in use.
    ActiveAnon = 2,
    /// Page cache not used lately.
    InactiveFile = 3,
    /// Page cache in use.
    ActiveFile = 4,
    /// Locked in memory.
    Unevictable = 5,
}

/// Number of LRU lists.
pub const NR_LRU: usize = 5;

/// List code in the state of a page that reclaim or a move has isolated.
pub(crate) const ISOLATED: u8 = 6;

/// List code in the state of a page that a move has isolated, and that was on no list that reclaim scans.
pub(crate) const ISOLATED_OTHER: u8 = 7;

impl Lru {
    /// All lists.
    pub(crate) const ALL: [Lru; NR_LRU] = [
        Lru::InactiveAnon,
        Lru::ActiveAnon,
        Lru::InactiveFile,
        Lru::ActiveFile,
        Lru::Unevictable,
    ];

    /// The lists that reclaim scans.
    pub const EVICTABLE: [Lru; 4] = [
        Lru::InactiveAnon,
        Lru::ActiveAnon,
        Lru::InactiveFile,
        Lru::ActiveFile,
    ];

    pub(crate) const fn from_code(code: u8) -> Option<Lru> {
        Some(match code {
            1 => Lru::InactiveAnon,
            2 => Lru::ActiveAnon,
            3 => Lru::InactiveFile,
            4 => Lru::ActiveFile,
            5 => Lru::Unevictable,
            _ => return None,
        })
    }
    pub(crate) const fn index(self) -> usize {
        self as usize - 1
    }
    /// Whether it holds page cache.
    pub const fn is_file(self) -> bool {
        matches!(self, Lru::InactiveFile | Lru::ActiveFile)
    }
    /// Whether its pages are in use.
    pub const fn is_active(self) -> bool {
        matches!(self, Lru::ActiveAnon | Lru::ActiveFile)
    }
    pub(crate) const fn new(file: bool, active: bool) -> Lru {
        match (file, active) {
            (false, false) => Lru::InactiveAnon,
            (false, true) => Lru::ActiveAnon,
            (true, false) => Lru::InactiveFile,
            (true, true) => Lru::ActiveFile,
        }
    }
}
