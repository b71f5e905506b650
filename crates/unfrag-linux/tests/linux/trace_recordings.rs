//! The trace readers on real recordings, compared with `trace-cmd report` and `perf script`.
//!
//! The recordings are not in the repository: `UNFRAG_DATA` names their directory. Without it the
//! tests say that they are skipped. Where the tools are installed, every event is compared with their
//! text, field by field; the counts are compared anyway.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::trace_support::same::{assert_same, counts};
use unfrag_linux::recording::Recording;
use unfrag_linux::{Options, open, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    TraceCmd,
    Perf,
}

/// A recording, and what its tool counts in it.
struct Known {
    path: &'static str,
    tool: Tool,
    counts: &'static [(&'static str, u64)],
}

const KNOWN: &[Known] = &[
    Known {
        path: "qemu-6.1-1536M-huge-p20/trace.dat.zst",
        tool: Tool::TraceCmd,
        counts: &[
            ("mm_compaction_begin", 93),
            ("mm_compaction_defer_reset", 164),
            ("mm_compaction_end", 93),
            ("mm_compaction_finished", 1416),
            ("mm_compaction_isolate_freepages", 932),
            ("mm_compaction_isolate_migratepages", 1405),
            ("mm_compaction_kcompactd_sleep", 127),
            ("mm_compaction_migratepages", 1010),
            ("mm_compaction_suitable", 94),
            ("mm_compaction_try_to_compact_pages", 83),
            ("mm_filemap_add_to_page_cache", 185),
            ("mm_migrate_pages", 1010),
            ("mm_migrate_pages_start", 1010),
            ("mm_page_alloc", 335030),
            ("mm_page_free", 411315),
            ("remove_migration_pte", 68700),
            ("set_migration_pte", 68700),
        ],
    },
    Known {
        path: "qemu-6.1-640M-compact/pages.dat.zst",
        tool: Tool::TraceCmd,
        counts: &[
            ("mm_compaction_begin", 227),
            ("mm_compaction_defer_compaction", 22),
            ("mm_compaction_defer_reset", 307),
            ("mm_compaction_deferred", 292),
            ("mm_compaction_end", 227),
            ("mm_compaction_finished", 1325),
            ("mm_compaction_isolate_freepages", 670),
            ("mm_compaction_isolate_migratepages", 1184),
            ("mm_compaction_kcompactd_sleep", 55),
            ("mm_compaction_kcompactd_wake", 4),
            ("mm_compaction_migratepages", 716),
            ("mm_compaction_suitable", 656),
            ("mm_compaction_try_to_compact_pages", 436),
            ("mm_compaction_wakeup_kcompactd", 2),
            ("mm_khugepaged_scan_pmd", 16),
            ("mm_migrate_pages", 716),
            ("mm_page_alloc", 593314),
            ("mm_page_alloc_extfrag", 15),
            ("mm_page_free", 639037),
            ("mm_vmscan_direct_reclaim_begin", 101),
            ("mm_vmscan_direct_reclaim_end", 101),
            ("mm_vmscan_kswapd_sleep", 3),
            ("mm_vmscan_kswapd_wake", 153),
            ("mm_vmscan_lru_shrink_inactive", 2579),
        ],
    },
    Known {
        path: "qemu-6.1-640M-pressure/trace.dat.zst",
        tool: Tool::TraceCmd,
        counts: &[
            ("mm_collapse_huge_page", 5),
            ("mm_collapse_huge_page_isolate", 5),
            ("mm_compaction_begin", 4),
            ("mm_compaction_end", 4),
            ("mm_compaction_finished", 607),
            ("mm_compaction_isolate_freepages", 531),
            ("mm_compaction_isolate_migratepages", 603),
            ("mm_compaction_kcompactd_sleep", 74),
            ("mm_compaction_kcompactd_wake", 10),
            ("mm_compaction_migratepages", 518),
            ("mm_compaction_suitable", 73),
            ("mm_compaction_try_to_compact_pages", 2),
            ("mm_filemap_add_to_page_cache", 248841),
            ("mm_filemap_delete_from_page_cache", 246943),
            ("mm_khugepaged_scan_pmd", 20),
            ("mm_migrate_pages", 518),
            ("mm_migrate_pages_start", 518),
            ("mm_page_alloc", 730109),
            ("mm_page_alloc_extfrag", 9),
            ("mm_page_free", 770962),
            ("mm_vmscan_direct_reclaim_begin", 11),
            ("mm_vmscan_direct_reclaim_end", 11),
            ("mm_vmscan_kswapd_sleep", 11),
            ("mm_vmscan_kswapd_wake", 46),
            ("mm_vmscan_wakeup_kswapd", 34),
            ("remove_migration_pte", 21317),
            ("set_migration_pte", 21318),
        ],
    },
    Known {
        path: "qemu-6.1-768M-gcc/pages.dat.zst",
        tool: Tool::TraceCmd,
        counts: &[
            ("mm_collapse_huge_page", 59),
            ("mm_compaction_kcompactd_sleep", 353),
            ("mm_khugepaged_scan_pmd", 133),
            ("mm_page_alloc", 409387),
            ("mm_page_alloc_extfrag", 6),
            ("mm_page_alloc_zone_locked", 244166),
            ("mm_page_free", 347403),
            ("mm_page_free_batched", 329777),
            ("mm_page_pcpu_drain", 178076),
        ],
    },
    Known {
        path: "qemu-6.1-768M-gcc/slab.dat.zst",
        tool: Tool::TraceCmd,
        counts: &[
            ("kfree", 469),
            ("kmalloc", 128),
            ("kmem_cache_alloc", 1180),
            ("kmem_cache_free", 943),
            ("mm_page_alloc", 199),
            ("mm_page_alloc_zone_locked", 15),
            ("mm_page_free", 170),
            ("mm_page_free_batched", 151),
            ("rss_stat", 110),
        ],
    },
    Known {
        path: "qemu-6.1-768M-gcc/guest-perf.data.zst",
        tool: Tool::Perf,
        counts: &[("mm_page_alloc", 12903), ("mm_page_free", 12971)],
    },
    Known {
        path: "host-6.18-gcc/gcc-perf.data.zst",
        tool: Tool::Perf,
        counts: &[
            ("mm_page_alloc", 104270),
            ("mm_page_alloc_zone_locked", 78246),
            ("mm_page_free", 20626),
            ("mm_page_free_batched", 20311),
        ],
    },
];

/// Prints past the test runner, which hides what a passing test prints.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

fn data() -> Option<PathBuf> {
    let dir = std::env::var_os("UNFRAG_DATA").map(PathBuf::from);
    if dir.is_none() {
        skipped("UNFRAG_DATA does not name the directory of the recordings");
    }
    dir
}

/// The recordings that are there, one after another.
fn each(mut test: impl FnMut(&Path, &Known, Recording)) {
    let Some(dir) = data() else {
        return;
    };
    for known in KNOWN {
        let path = dir.join(known.path);
        if !path.exists() {
            skipped(&format!("there is no {}", path.display()));
            continue;
        }
        let recording = open(&path, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        test(&path, known, recording);
    }
}

#[test]
fn counts_by_name_equal_those_of_the_tools() {
    each(|_, known, recording| {
        let expected: Vec<(String, u64)> = known
            .counts
            .iter()
            .map(|&(n, c)| (n.to_owned(), c))
            .collect();
        assert_eq!(counts(&recording), expected, "{}", known.path);
        assert_eq!(recording.meta.cpus, 2);
        assert!(recording.meta.lost.is_empty());
        assert!(recording.events.time.is_sorted());
    });
}

/// What the tool of `known` prints of `file`, unless it is not installed.
fn printed(file: &Path, tool: Tool) -> Option<Vec<u8>> {
    let mut command = match tool {
        Tool::TraceCmd => Command::new("trace-cmd"),
        Tool::Perf => Command::new("perf"),
    };
    match tool {
        Tool::TraceCmd => command.arg("report"),
        Tool::Perf => command.arg("script"),
    };
    match command.arg("-i").arg(file).output() {
        Ok(output) if output.status.success() => Some(output.stdout),
        Ok(output) => {
            skipped(&String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(e) => {
            skipped(&format!("{tool:?}: {e}"));
            None
        }
    }
}

#[test]
fn every_event_equals_what_the_tools_print() {
    each(|path, known, recording| {
        let packed = std::fs::read(path).expect("it was read before");
        let plain = zstd::decode_all(&packed[..]).expect("it was unpacked before");
        let name = format!(
            "unfrag-{}-{}",
            std::process::id(),
            known.path.replace('/', "-")
        );
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, plain).expect("the temporary directory can be written");
        let printed = printed(&file, known.tool);
        std::fs::remove_file(&file).expect("it was just written");
        let Some(printed) = printed else {
            return;
        };
        let release = match recording.meta.kernel_release.as_str() {
            "" => "6.1.0",
            release => release,
        };
        let from_text = text::read(&printed, Some(release)).unwrap_or_else(|e| panic!("{e}"));
        let compared = assert_same(&recording, &from_text);
        println!("{}: {compared:?}", known.path);
        assert_eq!(compared.events, recording.events.len());
    });
}
