//! Settings of the administrator (`/proc/sys/vm`).

use crate::frame::NR_ZONE_KINDS;

/// Settings of the administrator, with Linux' names and defaults. 0 means "let the kernel choose"
/// where Linux has it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sysctl {
    /// `vm.min_free_kbytes`; 0: from the size of memory.
    pub min_free_kbytes: u64,
    /// `vm.watermark_scale_factor`, in 1/10000 of a zone (1 to 3000).
    pub watermark_scale_factor: u64,
    /// `vm.watermark_boost_factor`, in 1/10000 of the high mark; 0: no boost.
    pub watermark_boost_factor: u64,
    /// `vm.lowmem_reserve_ratio` by zone.
    pub lowmem_reserve_ratio: [u64; NR_ZONE_KINDS],
    /// `vm.percpu_pagelist_high_fraction` (before 5.14 `percpu_pagelist_fraction`); 0: by marks.
    pub percpu_pagelist_high_fraction: u64,
    /// `vm.defrag_mode` (6.15 and later), 0 or 1.
    pub defrag_mode: bool,
    /// `vm.page_group_by_mobility_disabled`; always so where memory is too small to group.
    pub group_by_mobility_disabled: bool,
    /// Transparent huge pages are on, so that khugepaged runs.
    pub transparent_hugepage: bool,
    /// `vm.swappiness`, 0 to 100 (200 since 5.8).
    pub swappiness: u64,
    /// `/sys/kernel/mm/lru_gen/enabled`: pages stand in generations, in kernels that can (6.1 and later). Off by default,
    /// as in mainline; distributions differ.
    pub lru_gen: bool,
    /// `/sys/kernel/mm/lru_gen/min_ttl_ms`: a generation that is younger, in milliseconds of
    /// [`Manager::set_time_ms`](crate::Manager::set_time_ms), is not evicted; 0: any may be.
    pub lru_gen_min_ttl_ms: u64,
    /// `vm.compaction_proactiveness`, 0 to 100 (5.9 and later).
    pub compaction_proactiveness: u8,
    /// `vm.extfrag_threshold`, 0 to 1000: zones with a lower fragmentation index are not compacted for costly orders.
    pub extfrag_threshold: u16,
    /// `vm.compact_unevictable_allowed`: pages locked in memory are moved, too.
    pub compact_unevictable_allowed: bool,
}

impl Sysctl {
    /// These settings, changed.
    /// ```
    /// let sysctl = unfrag_eras::Sysctl::default().with(|s| s.min_free_kbytes = 8192);
    /// # assert_eq!(sysctl.min_free_kbytes, 8192);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Sysctl)) -> Sysctl {
        change(&mut self);
        self
    }
}

impl Default for Sysctl {
    fn default() -> Self {
        Sysctl {
            min_free_kbytes: 0,
            watermark_scale_factor: 10,
            watermark_boost_factor: 15000,
            lowmem_reserve_ratio: [256, 256, 32, 32, 0],
            percpu_pagelist_high_fraction: 0,
            defrag_mode: false,
            group_by_mobility_disabled: false,
            transparent_hugepage: true,
            swappiness: 60,
            lru_gen: false,
            lru_gen_min_ttl_ms: 0,
            compaction_proactiveness: 20,
            extfrag_threshold: 500,
            compact_unevictable_allowed: true,
        }
    }
}
