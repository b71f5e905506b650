//! Names of gfp bits, by era of the kernel: from the text of a trace to a mask, and back.
//!
//! A mask means nothing without the kernel that wrote it: bits moved in 2.6.30, 4.4, 4.10, 4.18, 5.1 and 6.3.
//! The tables of 6.1 and 6.18 are those of the kernels' own event formats (`print fmt` of
//! `mm_page_alloc`). Those of older eras agree with public failure reports, where kernels print masks
//! next to names, such as `0x24201ca(GFP_HIGHUSER_MOVABLE|__GFP_COLD)`.
//!
//! Invariant: for every era and every mask, `parse(print(mask)) == mask`.

mod tables;

use std::fmt::Write;

use tables::{RECLAIM_4_10, Table, V2_6_23, V2_6_32, V4_4, V4_10, V4_18, V5_1, V6_3, V6_18};

/// Kernels that agree about gfp bits and their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// 2.6.29 and older: `__GFP_MOVABLE`, of 2.6.23 and later, is bit 0x100000.
    V2_6_23,
    /// 2.6.30 to 4.3: `__GFP_WAIT`; names of single flags lack their underscores.
    V2_6_32,
    /// 4.4 to 4.9: direct and kswapd reclaim apart.
    V4_4,
    /// 4.10 to 4.17.
    V4_10,
    /// 4.18 to 5.0.
    V4_18,
    /// 5.1 to 6.2, in the order of 6.1.
    V5_1,
    /// 6.3 to 6.8: without `__GFP_ATOMIC`.
    V6_3,
    /// From 6.9 on, in the order of 6.18; `GFP_NOWAIT` implies `__GFP_NOWARN`.
    V6_18,
}

/// A gfp string with a name that its era does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no gfp flag of this kernel")]
pub struct UnknownFlag {
    /// The name.
    pub name: String,
}

impl Era {
    /// All eras, oldest first.
    pub const ALL: [Era; 8] = [
        Era::V2_6_23,
        Era::V2_6_32,
        Era::V4_4,
        Era::V4_10,
        Era::V4_18,
        Era::V5_1,
        Era::V6_3,
        Era::V6_18,
    ];
    /// The newest.
    pub const NEWEST: Era = Era::V6_18;

    /// The era of a release such as `6.1.0-56-cloud-amd64`; `None` if it does not begin with two
    /// numbers.
    pub fn of_release(release: &str) -> Option<Era> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let major: u32 = numbers.next()?.parse().ok()?;
        let minor: u32 = numbers.next()?.parse().ok()?;
        let patch: Option<u32> = numbers.next().and_then(|n| n.parse().ok());
        Some(match (major, minor) {
            (..2, _) | (2, ..6) => Era::V2_6_23,
            (2, 6) if patch.is_some_and(|p| p < 30) => Era::V2_6_23,
            (..4, _) | (4, ..4) => Era::V2_6_32,
            (4, ..10) => Era::V4_4,
            (4, ..18) => Era::V4_10,
            (4, _) | (5, 0) => Era::V4_18,
            (5, _) | (6, ..3) => Era::V5_1,
            (6, ..9) => Era::V6_3,
            _ => Era::V6_18,
        })
    }
    /// The mask that `text` means, such as `GFP_KERNEL|__GFP_ZERO`, `0xcc0`, `none`; bare hexadecimal
    /// digits, as recorders without names print them, are a mask too.
    ///
    /// # Errors
    /// If it holds a name that is none of this era's.
    pub fn parse(self, text: &str) -> Result<u64, UnknownFlag> {
        let mut mask = 0;
        for name in text.split('|').map(str::trim).filter(|n| !n.is_empty()) {
            mask |= self.mask_of(name).ok_or_else(|| UnknownFlag {
                name: name.to_owned(),
            })?;
        }
        Ok(mask)
    }
    fn mask_of(self, name: &str) -> Option<u64> {
        if let Some(hex) = name.strip_prefix("0x") {
            return u64::from_str_radix(hex, 16).ok();
        }
        if name == "none" {
            return Some(0);
        }
        let known = self.table().iter().chain(self.aliases());
        let exact = known.clone().find(|(n, _)| *n == name);
        // Kernels before 4.6 print single flags without underscores; lists copied by hand may too.
        let bare = |n: &'static str| n.trim_start_matches('_');
        let name_bare = name.trim_start_matches('_');
        exact
            .or_else(|| known.clone().find(|(n, _)| bare(n) == name_bare))
            .map(|&(_, mask)| mask)
            .or_else(|| u64::from_str_radix(name, 16).ok())
    }
    /// `mask` as a kernel of this era prints it: from the top of its list every complete mask, then
    /// unknown bits as one number.
    pub fn print(self, mask: u64) -> String {
        if mask == 0 {
            return if self <= Era::V2_6_32 {
                "GFP_NOWAIT"
            } else {
                "none"
            }
            .to_owned();
        }
        let mut left = mask;
        let mut text = String::new();
        for &(name, bits) in self.table() {
            if bits != 0 && left & bits == bits {
                left &= !bits;
                if !text.is_empty() {
                    text.push('|');
                }
                text.push_str(name);
            }
        }
        if left != 0 {
            if !text.is_empty() {
                text.push('|');
            }
            let _ = write!(text, "{left:#x}");
        }
        text
    }
    fn table(self) -> &'static Table {
        match self {
            Era::V2_6_23 => &V2_6_23,
            Era::V2_6_32 => &V2_6_32,
            Era::V4_4 => &V4_4,
            Era::V4_10 => &V4_10,
            Era::V4_18 => &V4_18,
            Era::V5_1 => &V5_1,
            Era::V6_3 => &V6_3,
            Era::V6_18 => &V6_18,
        }
    }
    /// Names that are read but never printed.
    fn aliases(self) -> &'static Table {
        match self {
            Era::V2_6_23 | Era::V2_6_32 => &[("GFP_NOWAIT", 0), ("GFP_DMA", 1), ("GFP_DMA32", 4)],
            Era::V4_4 | Era::V4_10 => &[("GFP_TEMPORARY", RECLAIM_4_10 | 0xd0)],
            // The tables of some recorders still name it.
            Era::V6_3 | Era::V6_18 => &[("__GFP_ATOMIC", 0)],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Masks beside their names, as kernels print them. `spec: 7.7`
    const PAIRS: &[(&str, u64, &str)] = &[
        ("2.6.28", 0x1201d2, "GFP_HIGHUSER_MOVABLE|GFP_COLD"),
        (
            "2.6.32",
            0x52d0,
            "GFP_KERNEL|GFP_NOWARN|GFP_NORETRY|GFP_COMP",
        ),
        ("2.6.32", 0x280da, "GFP_HIGHUSER_MOVABLE|GFP_ZERO"),
        (
            "3.10.0-1062.el7.x86_64",
            0x84d0,
            "GFP_KERNEL|GFP_REPEAT|GFP_ZERO",
        ),
        ("2.6.32", 0, "GFP_NOWAIT"),
        ("4.7.0-rc7", 0x24201ca, "GFP_HIGHUSER_MOVABLE|__GFP_COLD"),
        (
            "4.9.24-coreos",
            0x2084120,
            "GFP_ATOMIC|__GFP_COLD|__GFP_COMP",
        ),
        ("4.9.0", 0x2400840, "GFP_NOFS|__GFP_NOFAIL"),
        ("4.13.5", 0x14002c2, "GFP_KERNEL|__GFP_HIGHMEM|__GFP_NOWARN"),
        ("4.15.0-rc7+", 0x14280ca, "GFP_HIGHUSER_MOVABLE|__GFP_ZERO"),
        ("4.18.0-rc1", 0x6280ca, "GFP_HIGHUSER_MOVABLE|__GFP_ZERO"),
        ("4.19.69", 0x7080c0, "GFP_KERNEL_ACCOUNT|__GFP_ZERO"),
        ("5.0.0-rc1", 0x6200ca, "GFP_HIGHUSER_MOVABLE"),
        ("5.4.17", 0x40dc0, "GFP_KERNEL|__GFP_COMP|__GFP_ZERO"),
        ("5.9.0", 0x800, "GFP_NOWAIT"),
        ("6.1.192", 0x2800, "GFP_NOWAIT|__GFP_NOWARN"),
        ("6.1.16", 0xcd0, "GFP_KERNEL|__GFP_RECLAIMABLE"),
        ("6.1.0", 0xa20, "GFP_ATOMIC"),
        ("6.6.14", 0x820, "GFP_ATOMIC"),
        (
            "6.12.30",
            0x440dc0,
            "GFP_KERNEL_ACCOUNT|__GFP_ZERO|__GFP_COMP",
        ),
        (
            "6.18.44",
            0xd20d0,
            "__GFP_RECLAIMABLE|__GFP_IO|__GFP_FS|__GFP_NOWARN|__GFP_NORETRY|__GFP_COMP|__GFP_NOMEMALLOC",
        ),
        ("6.18.44", 0, "none"),
        ("6.18.44", 0x8000200, "0x8000200"),
    ];

    /// `spec: 7.7`
    #[test]
    fn masks_and_names_of_each_era_agree() {
        for &(release, mask, text) in PAIRS {
            let era = Era::of_release(release).unwrap();
            assert_eq!(era.parse(text), Ok(mask), "{release} {text}");
            assert_eq!(era.print(mask), text, "{release} {mask:#x}");
        }
    }

    #[test]
    fn raw_masks_and_names_without_underscores_are_read() {
        let era = Era::V5_1;
        assert_eq!(era.parse("0x152c4a"), Ok(0x152c4a));
        assert_eq!(era.parse("152c4a"), Ok(0x152c4a));
        assert_eq!(era.parse("GFP_KERNEL|GFP_ZERO"), Ok(0xdc0));
        assert!(era.parse("GFP_KERNEL|GFP_NEVER").is_err());
    }

    #[test]
    fn print_and_parse_are_inverse() {
        for era in Era::ALL {
            for a in 0..32 {
                for b in 0..32 {
                    let two = 1u64 << a | 1 << b;
                    for mask in [two, !two & 0x1ffffff, two | 0xcc0] {
                        assert_eq!(era.parse(&era.print(mask)), Ok(mask), "{era:?} {mask:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn releases_belong_to_eras() {
        assert_eq!(Era::of_release("2.6.24-27-generic"), Some(Era::V2_6_23));
        assert_eq!(Era::of_release("2.6.29.6"), Some(Era::V2_6_23));
        assert_eq!(Era::of_release("2.6.32-754.el6"), Some(Era::V2_6_32));
        assert_eq!(Era::of_release("6.18.44-fc"), Some(Era::V6_18));
        assert_eq!(Era::of_release("7.0"), Some(Era::V6_18));
        assert_eq!(Era::of_release("unknown"), None);
    }
}
