//! What the numbers in a recording mean, by the kernel that wrote them.
//!
//! Migratetype numbers, gfp bits and event names changed between kernels; everything is decided here
//! by the release, and nothing anywhere else. `spec: 2.5, 2.6, 7.6, 7.7`

use crate::error::Error;
use unfrag_eras::{Gfp, MigrateType};
use unfrag_linux::gfp_text;

/// The kernel that made a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    major: u32,
    minor: u32,
    patch: u32,
    /// What each bit of a raw request mask means.
    gfp: [Gfp; 32],
}

impl Era {
    /// The era that is assumed for a host that does not say which kernel it runs: the newest of those with long support.
    pub fn newest() -> Era {
        let (major, minor, patch) = (6, 18, 0);
        let gfp = meanings(gfp_text::Era::NEWEST);
        Era {
            major,
            minor,
            patch,
            gfp,
        }
    }

    /// The era of a release such as `6.1.0-56-cloud-amd64`.
    ///
    /// # Errors
    /// If it does not begin with a version number.
    pub fn of(release: &str) -> Result<Era, Error> {
        if release.is_empty() {
            return Err(
                Error::lacking("the recording does not say which kernel made it")
                    .help("name its release, such as 6.1.0, where it is imported or read"),
            );
        }
        let mut n = release
            .split(|c: char| !c.is_ascii_digit())
            .take(3)
            .map(|p| p.parse::<u32>().ok());
        let (Some(Some(major)), Some(Some(minor))) = (n.next(), n.next()) else {
            return Err(Error::contradiction(format!(
                "the kernel release `{release}` does not begin with a version number"
            )));
        };
        Ok(Era {
            major,
            minor,
            patch: n.next().flatten().unwrap_or(0),
            gfp: meanings(gfp_text::Era::of_release(release).unwrap_or(gfp_text::Era::NEWEST)),
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
            (6, 7..=15, _) => "6.12",
            (6, ..) => "6.18",
            _ => "7.2",
        }
    }

    /// Whether the release is this one or a later one.
    pub fn is_at_least(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// Whether compaction emits an event for a target that goes back to its own list unused.
    /// `spec: 7.6`
    pub fn shows_returned_targets(self) -> bool {
        self.is_at_least(6, 7)
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
    #[inline]
    pub fn gfp(self, raw: u64) -> Gfp {
        let mut rest = raw as u32;
        let mut flags = Gfp::empty();
        while rest != 0 {
            flags |= self.gfp[rest.trailing_zeros() as usize];
            rest &= rest - 1;
        }
        flags
    }
}

/// What each bit means in the order of 6.1, by its name in `era`. Bits without a name there keep their
/// place in kernels of that order, and mean nothing in older ones.
fn meanings(era: gfp_text::Era) -> [Gfp; 32] {
    const SAME_ORDER: gfp_text::Era = gfp_text::Era::V5_1;
    // Those that choose the zone never moved, and 2.6.32 prints no name for all of them.
    const ZONE_BITS: usize = 4;
    let of = |bit: usize| {
        let raw = 1u64 << bit;
        if era >= SAME_ORDER || bit < ZONE_BITS {
            return Gfp::from_bits_retain(raw as u32);
        }
        match era.print(raw).as_str() {
            // Waiting was reclaiming and waking kswapd in one.
            "GFP_WAIT" | "__GFP_WAIT" => Gfp::DIRECT_RECLAIM | Gfp::KSWAPD_RECLAIM,
            "GFP_REPEAT" | "__GFP_REPEAT" => Gfp::RETRY_MAYFAIL,
            name if name.starts_with("0x") => Gfp::empty(),
            name => SAME_ORDER
                .parse(name)
                .map_or(Gfp::empty(), |m| Gfp::from_bits_retain(m as u32)),
        }
    };
    std::array::from_fn(of)
}
