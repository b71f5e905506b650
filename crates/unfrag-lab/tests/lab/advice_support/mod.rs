//! A host of 512 MiB in one zone, made by hand: its blocks, counters and settings, at any moment of a watch.

use std::collections::BTreeMap;
use std::io;
use unfrag_lab::doctor::{Diagnosis, Evidence, Reading, examine};
use unfrag_linux::kpageflags::{ANON, BUDDY, LRU, PageFlags, SLAB};

/// Pageblocks.
const BLOCKS: u64 = 256;
const UPTODATE: u64 = 1 << 3;
const UNEVICTABLE: u64 = 1 << 18;

/// How far counters rose in some seconds, with a random number.
pub type Moves = fn(u64, u64) -> Vec<(&'static str, u64)>;

/// How long a host is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// One reading.
    One,
    /// Two, a second apart.
    Second,
    /// 61 over ten minutes.
    Long,
}

/// The seed of a test.
pub fn seed() -> u64 {
    let given = std::env::var("UNFRAG_SEED").ok();
    given.and_then(|s| s.parse().ok()).unwrap_or(58)
}

/// A host.
pub struct Hosts {
    /// Free blocks by order.
    pub free_blocks: [u64; 11],
    /// Pageblocks of which one page is slab.
    pub slab_blocks: u64,
    /// Pageblocks of which one page is mlocked.
    pub unevictable_blocks: u64,
    /// Pageblocks of which half is memory that moves.
    pub mixed_blocks: u64,
    /// Pageblocks of which half is clean page cache.
    pub clean_blocks: u64,
    /// Pageblocks without a flag.
    pub unflagged_blocks: u64,
    /// Pages of slab that cannot be reclaimed.
    pub unreclaimable: u64,
    /// The min mark in pages.
    pub min: u64,
    /// Transparent huge pages' `defrag`.
    pub defrag: &'static str,
    counters: BTreeMap<&'static str, u64>,
    settings: BTreeMap<&'static str, u64>,
}

impl Hosts {
    /// One with most of its memory free in the largest blocks.
    pub fn sound() -> Hosts {
        let counters = [
            "allocstall_normal",
            "allocstall_movable",
            "compact_stall",
            "compact_fail",
            "compact_success",
            "compact_daemon_wake",
            "thp_fault_alloc",
            "thp_fault_fallback",
            "htlb_buddy_alloc_fail",
            "pgscan_kswapd",
            "oom_kill",
        ];
        let settings = [
            ("min_free_kbytes", 4096),
            ("watermark_scale_factor", 10),
            ("watermark_boost_factor", 15000),
            ("compaction_proactiveness", 20),
            ("compact_unevictable_allowed", 1),
            ("vfs_cache_pressure", 100),
        ];
        Hosts {
            free_blocks: [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 90],
            slab_blocks: 0,
            unevictable_blocks: 0,
            mixed_blocks: 0,
            clean_blocks: 0,
            unflagged_blocks: 0,
            unreclaimable: 2_000,
            min: 1024,
            defrag: "madvise",
            counters: counters.map(|name| (name, 0)).into(),
            settings: settings.into(),
        }
    }

    /// Most free memory in small pieces among memory that moves: three quarters of it, for a score of 75.
    pub fn fragment(&mut self) {
        self.mixed_blocks = 200;
        self.free_blocks = [200 * 128, 200 * 32, 200 * 16, 0, 0, 0, 0, 0, 0, 34, 0];
    }

    /// A counter at the moment when the watch begins.
    pub fn since_boot(&mut self, counter: &'static str, n: u64) {
        self.counters.insert(counter, n);
    }

    /// A sysctl.
    pub fn set(&mut self, name: &'static str, value: u64) {
        self.settings.insert(name, value);
    }

    fn free_pages(&self) -> u64 {
        self.free_blocks
            .iter()
            .enumerate()
            .map(|(o, n)| n << o)
            .sum()
    }

    fn flags(&self) -> PageFlags {
        let mut words = vec![];
        let kinds = [
            (self.slab_blocks, SLAB, 1),
            (self.unevictable_blocks, LRU | ANON | UNEVICTABLE, 1),
            (self.mixed_blocks, LRU | ANON, 256),
            (self.clean_blocks, LRU | UPTODATE, 256),
            (self.unflagged_blocks, 0, 512),
        ];
        for (blocks, flags, pages) in kinds {
            for _ in 0..blocks {
                words.extend((0..512).map(|i| if i < pages { flags } else { BUDDY }));
            }
        }
        let whole: u64 = (9..11).map(|o| self.free_blocks[o] << (o - 9)).sum();
        words.resize(words.len() + (whole * 512) as usize, BUDDY);
        // The rest is used to the last page.
        let used = LRU | ANON | UPTODATE;
        words.resize((BLOCKS * 512) as usize, used);
        PageFlags { words }
    }

    /// A file `seconds` after the beginning, of a watch that has so many random bits.
    fn file(&self, name: &str, moved: &[(&str, u64)], wobble: u64) -> Option<String> {
        // Single pages come and go.
        let mut free = self.free_blocks;
        free[0] += wobble % 8;
        let pages = self.free_pages() + wobble % 8;
        let row: String = free.iter().map(|n| format!("{n:>6} ")).collect();
        Some(match name {
            "buddyinfo" => format!("Node 0, zone   Normal {row}\n"),
            "zoneinfo" => format!(
                "Node 0, zone   Normal\n  per-node stats\n      nr_slab_unreclaimable {}\n  pages free     {pages}\n        boost    0\n        min      {}\n        low      {}\n        high     {}\n        spanned  131072\n        present  131072\n        managed  131072\n        cma      0\n        protection: (0, 0, 0)\n      nr_free_pages {pages}\n      nr_zone_inactive_file 9000\n      nr_zone_active_file 9000\n      nr_free_cma 0\n  pagesets\n    cpu: 0\n              count:    0\n              high:     10\n              batch:    1\n  vm stats threshold: 4\n  node_unreclaimable:  0\n  start_pfn:           0\n",
                self.unreclaimable,
                self.min,
                self.min / 4 * 5,
                self.min / 2 * 3
            ),
            "pagetypeinfo" => format!(
                "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \nNode    0, zone   Normal, type    Unmovable      0      0      0      0      0      0      0      0      0      0      0 \nNode    0, zone   Normal, type      Movable {row}\n\nNumber of blocks type     Unmovable      Movable \nNode 0, zone   Normal           10          246 \n"
            ),
            "meminfo" => format!(
                "MemTotal:         524288 kB\nMemFree:         {} kB\nBuffers:            1000 kB\nCached:            72000 kB\nShmem:                 0 kB\nSReclaimable:      61440 kB\nSUnreclaim:        {} kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\nHugePages_Surp:        0\nHugepagesize:       2048 kB\nDirectMap4k:       26624 kB\n",
                pages * 4,
                self.unreclaimable * 4
            ),
            "vmstat" => {
                let rose = |name: &str| moved.iter().find(|(n, _)| *n == name).map_or(0, |(_, n)| *n);
                let line = |(name, n): (&&str, &u64)| format!("{name} {}\n", n + rose(name));
                self.counters.iter().map(line).collect()
            }
            "slabinfo" => "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\next4_inode_cache  50000  50000   1000   32    8 : tunables    0    0    0 : slabdata   1500   1500      0\nkmalloc-64          500    500     64   64    1 : tunables    0    0    0 : slabdata     10     10      0\n".into(),
            "version" => "Linux version 6.1.2 (test)\n".into(),
            "thp/enabled" => "[always] madvise never\n".into(),
            "thp/defrag" => format!("[{}]\n", self.defrag),
            name => format!("{}\n", self.settings.get(name.strip_prefix("sys/vm/")?)?),
        })
    }

    /// What the doctor finds at the end of a watch.
    pub fn diagnosed(&self, moves: Moves, watch: Watch, mut random: u64) -> Diagnosis {
        let mut next = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            random >> 33
        };
        let times: &[u64] = match watch {
            Watch::One => &[],
            Watch::Second => &[0],
            Watch::Long => &[0, 10, 20, 30, 60, 100, 200, 300, 400, 500, 590],
        };
        let end = match watch {
            Watch::One => 0,
            Watch::Second => 1,
            Watch::Long => 600,
        };
        let from = |at: u64, random: u64| {
            let moved = moves(at, random);
            move |name: &str| -> io::Result<Vec<u8>> {
                let text = self.file(name, &moved, random);
                text.map(String::into_bytes)
                    .ok_or_else(|| io::ErrorKind::NotFound.into())
            }
        };
        let readings = times
            .iter()
            .filter_map(|&at| Reading::read((end - at) as f64, from(at, next())))
            .collect();
        let last = from(end, next());
        let flags = self.flags().write();
        let read = |name: &str| match name {
            "kpageflags" => Ok(flags.clone()),
            name => last(name),
        };
        let mut e = Evidence::read("here", read).unwrap();
        e.readings = readings;
        examine(&e).unwrap().diagnosis
    }
}
