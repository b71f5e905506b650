//! The events that are recorded.
//!
//! Invariant: no event carries a command line or an address of user memory. [`NAMES`] and [`PROCESSES`] name
//! programs, the latter with the paths of their files; an anonymous recording has neither. An event that a kernel
//! lacks is left out, except for [`PAGES`].

use super::tracefs::{Instance, WITHOUT_TRACING};
use crate::error::{Error, Result};

/// Allocations and frees of pages, without which there is nothing to replay.
pub const PAGES: &[&str] = &["kmem/mm_page_alloc", "kmem/mm_page_free"];

/// Further events of a usual recording: moves of pages within the allocator, page cache, compaction,
/// migration and reclaim.
///
/// `kmem/mm_page_free_batched` is left out, because it repeats nearly every `mm_page_free`.
pub const USUAL: &[&str] = &[
    "kmem/mm_page_alloc_zone_locked",
    "kmem/mm_page_pcpu_drain",
    "kmem/mm_page_alloc_extfrag",
    "filemap/mm_filemap_add_to_page_cache",
    "filemap/mm_filemap_delete_from_page_cache",
    "compaction/mm_compaction_begin",
    "compaction/mm_compaction_end",
    "compaction/mm_compaction_try_to_compact_pages",
    "compaction/mm_compaction_isolate_migratepages",
    "compaction/mm_compaction_isolate_freepages",
    "compaction/mm_compaction_migratepages",
    "compaction/mm_compaction_deferred",
    "compaction/mm_compaction_defer_compaction",
    "compaction/mm_compaction_defer_reset",
    "compaction/mm_compaction_wakeup_kcompactd",
    "compaction/mm_compaction_kcompactd_wake",
    "compaction/mm_compaction_kcompactd_sleep",
    "migrate/mm_migrate_pages",
    "migrate/mm_migrate_pages_start",
    "migrate/set_migration_pte",
    "migrate/remove_migration_pte",
    "vmscan/mm_vmscan_direct_reclaim_begin",
    "vmscan/mm_vmscan_direct_reclaim_end",
    "vmscan/mm_vmscan_memcg_reclaim_begin",
    "vmscan/mm_vmscan_memcg_reclaim_end",
    "vmscan/mm_vmscan_lru_shrink_inactive",
    "vmscan/mm_vmscan_throttled",
    "vmscan/mm_vmscan_wakeup_kswapd",
    "vmscan/mm_vmscan_kswapd_wake",
    "vmscan/mm_vmscan_kswapd_sleep",
];

/// Objects of slab caches. Kernels up to 6.0 have the `_node` ones.
pub const SLAB: &[&str] = &[
    "kmem/kmem_cache_alloc",
    "kmem/kmem_cache_alloc_node",
    "kmem/kmem_cache_free",
    "kmem/kmalloc",
    "kmem/kmalloc_node",
    "kmem/kfree",
];

/// Under which name a task begins, and what it is called later: what a task is named by in the file.
pub const NAMES: &[&str] = &["task/task_newtask", "task/task_rename"];

/// What each process does: who starts it, which program it runs, when it is on a CPU, when it ends.
pub const PROCESSES: &[&str] = &[
    "task/task_newtask",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "sched/sched_switch",
];

/// The event of a line written to `trace_marker`.
pub const MARKER: &str = "ftrace/print";

/// Enables those of these kinds, and of further ones (`SUBSYSTEM:NAME`), that this kernel has; gives subsystem and format
/// of each.
///
/// # Errors
/// If one of [`PAGES`] or a further one is not there, or the tracer refuses.
pub(super) fn enable(
    instance: &Instance,
    kinds: &[&[&str]],
    further: &[String],
) -> Result<Vec<(String, String)>> {
    let mut wanted: Vec<&str> = kinds.concat();
    let asked_for: Vec<String> = further.iter().map(|e| e.replacen(':', "/", 1)).collect();
    wanted.extend(asked_for.iter().map(String::as_str));
    let mut formats = vec![];
    for (i, event) in wanted.iter().enumerate() {
        let dir = format!("events/{event}");
        if wanted[..i].contains(event) {
            continue;
        }
        if !instance.path(&format!("{dir}/enable")).exists() {
            let help = if PAGES.contains(event) {
                format!("it needs tracepoints (CONFIG_TRACEPOINTS); {WITHOUT_TRACING}")
            } else if asked_for.iter().any(|a| a == event) {
                "events are named SUBSYSTEM:NAME, as in available_events of tracefs".to_owned()
            } else {
                continue;
            };
            let missing = format!("this kernel has no event {}", event.replacen('/', ":", 1));
            return Err(Error::unsupported(missing).help(help));
        }
        formats.push(format_of(instance, event)?);
        instance.set(&format!("{dir}/enable"), "1")?;
    }
    formats.push(format_of(instance, MARKER)?);
    Ok(formats)
}

pub(super) fn format_of(instance: &Instance, event: &str) -> Result<(String, String)> {
    let system = event.split('/').next().unwrap_or_default().to_owned();
    let format = instance.get(&format!("events/{event}/format"))?;
    Ok((system, String::from_utf8_lossy(&format).into_owned()))
}
