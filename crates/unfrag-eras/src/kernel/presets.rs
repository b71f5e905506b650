//! The eras as values.
//!
//! An era names its groups of rules (`preset_parts`, `preset_reclaim`, `preset_compact`). No era is written as a difference from another one.

use super::preset_compact::*;
use super::preset_parts::*;
use super::preset_reclaim::*;
use super::*;

/// A named era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preset {
    /// Name, such as `6.1`.
    pub name: &'static str,
    /// Its rules.
    pub rules: Rules,
}

/// All eras, oldest first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "2.6.14",
        rules: Rules {
            placement: Placement::Ungrouped,
            block_order: 10,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_14,
            pcp: Pcp::HotCold { searched: false },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_14,
            kswapd: KSWAPD_2_6_14,
            reclaim: RECLAIM_2_6_14,
            compact: None,
        },
    },
    Preset {
        name: "v19",
        rules: Rules {
            placement: Placement::V19,
            block_order: 10,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_14,
            pcp: Pcp::Kinds,
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_V19,
            kswapd: KSWAPD_2_6_14,
            reclaim: RECLAIM_2_6_14,
            compact: None,
        },
    },
    Preset {
        name: "2.6.24",
        rules: Rules {
            placement: PLACEMENT_2_6_24,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::HotCold { searched: true },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_14,
            reclaim: RECLAIM_2_6_24,
            compact: None,
        },
    },
    Preset {
        name: "2.6.28",
        rules: Rules {
            placement: PLACEMENT_2_6_24,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::Searched,
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_28,
            compact: None,
        },
    },
    Preset {
        name: "2.6.30",
        rules: Rules {
            placement: PLACEMENT_2_6_24,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::Searched,
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_30,
            compact: None,
        },
    },
    Preset {
        name: "2.6.31",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::Searched,
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_31,
            retry: RETRY_2_6_31,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_31,
            compact: None,
        },
    },
    Preset {
        name: "2.6.32-rc6",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: false,
            },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_31,
            retry: RETRY_2_6_31,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_32,
            compact: None,
        },
    },
    Preset {
        name: "2.6.32",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: false,
            },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_28,
            reclaim: RECLAIM_2_6_32,
            compact: None,
        },
    },
    Preset {
        name: "2.6.33",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: true,
            },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_33,
            reclaim: RECLAIM_2_6_32,
            compact: None,
        },
    },
    Preset {
        name: "2.6.36",
        rules: Rules {
            placement: PLACEMENT_2_6_31,
            block_order: 9,
            tail_if_merge_likely: false,
            marks: MARKS_2_6_24,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: true,
            },
            pcp_batch_cap_kbytes: 512,
            rights: RIGHTS_2_6_14,
            retry: RETRY_2_6_24,
            kswapd: KSWAPD_2_6_33,
            reclaim: RECLAIM_2_6_32,
            compact: Some(COMPACT_2_6_36),
        },
    },
    Preset {
        name: "5.6",
        rules: Rules {
            placement: PLACEMENT_5_6,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_5_6,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: true,
            },
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_5_6,
            compact: Some(COMPACT_5_6),
        },
    },
    Preset {
        name: "5.9",
        rules: Rules {
            placement: PLACEMENT_5_6,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_5_6,
            pcp: Pcp::PerType {
                drain: Drain::BatchFree,
                keep_type: true,
            },
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_5_9,
            compact: Some(COMPACT_5_9),
        },
    },
    Preset {
        name: "6.1",
        rules: Rules {
            placement: PLACEMENT_5_6,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_5_6,
            pcp: Pcp::Orders { tuned: None },
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_6_1,
            compact: Some(COMPACT_6_1),
        },
    },
    Preset {
        name: "6.12",
        rules: Rules {
            placement: PLACEMENT_6_12,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_6_12,
            pcp: PCP_6_12,
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_6_12,
            compact: Some(COMPACT_6_12),
        },
    },
    Preset {
        name: "6.18",
        rules: Rules {
            placement: PLACEMENT_6_18,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_6_12,
            pcp: PCP_6_18,
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_6_18,
            compact: Some(COMPACT_6_18),
        },
    },
    Preset {
        name: "7.2",
        rules: Rules {
            placement: PLACEMENT_6_18,
            block_order: 9,
            tail_if_merge_likely: true,
            marks: MARKS_6_12,
            pcp: PCP_6_18,
            pcp_batch_cap_kbytes: 1024,
            rights: RIGHTS_5_6,
            retry: RETRY_5_6,
            kswapd: KSWAPD_5_6,
            reclaim: RECLAIM_7_2,
            compact: Some(COMPACT_7_2),
        },
    },
];

/// unfrag's own engine, which a host chooses frames with ([`Chooser::Source`]), in a kernel that is else as 6.18.
pub static UNFRAG: Preset = Preset {
    name: "unfrag",
    rules: Rules {
        placement: PLACEMENT_SOURCED,
        block_order: 9,
        tail_if_merge_likely: true,
        marks: MARKS_6_12,
        pcp: PCP_6_18,
        pcp_batch_cap_kbytes: 1024,
        rights: RIGHTS_5_6,
        retry: RETRY_5_6,
        kswapd: KSWAPD_5_6,
        reclaim: RECLAIM_6_18,
        compact: Some(COMPACT_SOURCED),
    },
};

/// All kernels: [`PRESETS`], and [`UNFRAG`].
pub fn kernels() -> impl Iterator<Item = &'static Preset> {
    PRESETS.iter().chain([&UNFRAG])
}

/// The kernel called `name`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    kernels().find(|p| p.name.eq_ignore_ascii_case(name))
}
