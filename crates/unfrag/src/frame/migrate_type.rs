//! Migrate types: the mobility of a request, a free list or a pageblock.

/// The mobility of a request, a free list or a pageblock. One set of names for all eras: V19's `KernNoRclm`,
/// `EasyRclm` and `KernRclm` are [`Unmovable`](MigrateType::Unmovable),
/// [`Movable`](MigrateType::Movable) and [`Reclaimable`](MigrateType::Reclaimable). The numbers
/// that a kernel prints differ by era; the numbers here are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MigrateType {
    /// Kernel memory that stays where it is.
    Unmovable = 0,
    /// Memory of users: it can be moved or swapped.
    Movable = 1,
    /// Kernel memory that a shrinker gives back.
    Reclaimable = 2,
    /// Reserve for high-order atomic requests (4.4 and later).
    HighAtomic = 3,
    /// `MIGRATE_RESERVE` of 2.6.24 to 4.3.
    Reserve = 4,
    /// V19's reserve for fallbacks.
    Fallback = 5,
    /// Contiguous memory areas.
    Cma = 6,
    /// Taken out of use for the time being.
    Isolate = 7,
}

/// Number of migrate types.
pub const NR_TYPES: usize = 8;

impl MigrateType {
    /// All types, in the order of their numbers here.
    pub const ALL: [MigrateType; NR_TYPES] = [
        MigrateType::Unmovable,
        MigrateType::Movable,
        MigrateType::Reclaimable,
        MigrateType::HighAtomic,
        MigrateType::Reserve,
        MigrateType::Fallback,
        MigrateType::Cma,
        MigrateType::Isolate,
    ];

    /// The type with this number.
    #[inline]
    pub const fn from_bits(bits: u8) -> MigrateType {
        Self::ALL[(bits & 7) as usize]
    }

    /// Its name, as `/proc/pagetypeinfo` has it (but for V19). `spec: 7.1`
    pub const fn name(self) -> &'static str {
        match self {
            MigrateType::Unmovable => "Unmovable",
            MigrateType::Movable => "Movable",
            MigrateType::Reclaimable => "Reclaimable",
            MigrateType::HighAtomic => "HighAtomic",
            MigrateType::Reserve => "Reserve",
            MigrateType::Fallback => "Fallback",
            MigrateType::Cma => "CMA",
            MigrateType::Isolate => "Isolate",
        }
    }

    /// Whether requests ask for it: the first three.
    #[inline]
    pub const fn is_ordinary(self) -> bool {
        (self as u8) < 3
    }
}
