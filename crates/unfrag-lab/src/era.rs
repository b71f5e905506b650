//! What the numbers in a recording mean, by the kernel that wrote them.
//!
//! Migratetype numbers, gfp bits and event names changed between kernels; everything is decided here
//! by the release, and nothing anywhere else. `spec: linux-mm 2.5, 2.6, 7.6, 7.7`

use unfrag::{Gfp, MigrateType};
use unfrag_linux::Error;

/// The kernel that recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Era {
    /// The era of a release such as `6.1.0-56-cloud-amd64`; an empty one counts as today's.
    ///
    /// # Errors
    /// If it does not begin with a version number.
    pub fn of(release: &str) -> Result<Era, Error> {
        if release.is_empty() {
            return Ok(Era {
                major: 6,
                minor: 18,
                patch: 0,
            });
        }
        let mut n = release
            .split(|c: char| !c.is_ascii_digit())
            .take(3)
            .map(|p| p.parse::<u32>().ok());
        let (Some(Some(major)), Some(Some(minor))) = (n.next(), n.next()) else {
            return Err(Error::malformed(format!(
                "the kernel release `{release}` does not begin with a version number"
            )));
        };
        Ok(Era {
            major,
            minor,
            patch: n.next().flatten().unwrap_or(0),
        })
    }

    /// Name of the preset that behaves like this kernel.
    pub fn preset(self) -> &'static str {
        match (self.major, self.minor, self.patch) {
            (..=1, ..) | (2, ..=5, _) | (2, 6, ..=23) => "2.6.14",
            (2, 6, 24..=27) => "2.6.24",
            (2, 6, 28..=29) => "2.6.28",
            (2, 6, 30) => "2.6.30",
            (2, 6, 31) => "2.6.31",
            (2, 6, 32..=34) => "2.6.32",
            (2, ..) | (3, ..) | (4, ..=3, _) => "2.6.36",
            (4, ..) | (5, ..=7, _) => "5.6",
            (5, ..=12, _) => "5.9",
            (5, ..) | (6, ..=6, _) => "6.1",
            _ => "6.18",
        }
    }

    /// Whether compaction emits an event for a target that goes back to its own list unused.
    /// `spec: linux-6.1 7.6`
    pub fn shows_returned_targets(self) -> bool {
        self.preset() == "6.18"
    }

    /// The type with a number of this kernel; `None` if it has no such number.
    pub fn migratetype(self, number: u64) -> Option<MigrateType> {
        use MigrateType::{Cma, HighAtomic, Isolate, Movable, Reclaimable, Reserve, Unmovable};
        // MOVABLE and RECLAIMABLE changed places in 4.4, when RESERVE became HIGHATOMIC.
        let names: &[MigrateType] = if (self.major, self.minor) >= (4, 4) {
            &[Unmovable, Movable, Reclaimable, HighAtomic, Cma, Isolate]
        } else {
            &[Unmovable, Reclaimable, Movable, Reserve, Isolate]
        };
        names.get(usize::try_from(number).ok()?).copied()
    }

    /// The type with this number on a kernel without contiguous memory areas, as free-list dumps of
    /// such kernels number them.
    pub fn migratetype_without_cma(self, number: u64) -> Option<MigrateType> {
        match self.migratetype(number) {
            Some(MigrateType::Cma) => Some(MigrateType::Isolate),
            other => other,
        }
    }

    /// The request flags of a raw mask of this kernel.
    pub fn gfp(self, raw: u64) -> Gfp {
        if self.major >= 3 {
            return Gfp::from_bits_retain(raw as u32);
        }
        const OLD: [(u64, Gfp); 16] = [
            (0x8, Gfp::MOVABLE),
            (0x10, Gfp::DIRECT_RECLAIM.union(Gfp::KSWAPD_RECLAIM)),
            (0x20, Gfp::HIGH),
            (0x40, Gfp::IO),
            (0x80, Gfp::FS),
            (0x200, Gfp::NOWARN),
            (0x400, Gfp::RETRY_MAYFAIL),
            (0x800, Gfp::NOFAIL),
            (0x1000, Gfp::NORETRY),
            (0x4000, Gfp::COMP),
            (0x8000, Gfp::ZERO),
            (0x1_0000, Gfp::NOMEMALLOC),
            (0x2_0000, Gfp::HARDWALL),
            (0x4_0000, Gfp::THISNODE),
            (0x8_0000, Gfp::RECLAIMABLE),
            (0x7, Gfp::empty()),
        ];
        let zones = Gfp::from_bits_retain(raw as u32 & 7);
        OLD.iter()
            .filter(|(bit, _)| raw & bit != 0)
            .fold(zones, |g, (_, f)| g | *f)
    }
}
