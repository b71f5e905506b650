//! Of a kernel stack, who asked for memory.
//!
//! Invariant: functions of the page allocator, of slab caches and of other allocators over them are passed by, from the
//! innermost on; where a stack has nothing else, it is taken as it is.

/// Functions that are shown of a caller.
const SHOWN: usize = 3;

/// Beginnings of names on the allocator's own path, from the tracer's to those that drivers call.
const OWN: [&str; 54] = [
    "trace_event_",
    "__traceiter_",
    "perf_trace_",
    "event_triggers_",
    "stacktrace_",
    "ftrace_",
    "wakeup_kswapd",
    "wake_all_kswapds",
    "wakeup_kcompactd",
    "get_page_from_freelist",
    "rmqueue",
    "__rmqueue",
    "alloc_pages",
    "__alloc_pages",
    "alloc_frozen_pages",
    "__alloc_frozen_pages",
    "alloc_page_interleave",
    "folio_alloc",
    "__folio_alloc",
    "vma_alloc_",
    "get_free_pages",
    "__get_free_pages",
    "get_zeroed_page",
    "try_to_compact_pages",
    "compact_zone",
    "compact_node",
    "alloc_slab_page",
    "allocate_slab",
    "new_slab",
    "slab_alloc",
    "__slab_alloc",
    "___slab_alloc",
    "refill_objects",
    "refill_sheaf",
    "__refill_",
    "__pcs_",
    "cache_alloc_refill",
    "____cache_alloc",
    "fallback_alloc",
    "cache_grow",
    "kmem_cache_alloc",
    "__kmem_cache_alloc",
    "kmalloc",
    "__kmalloc",
    "___kmalloc",
    "__do_kmalloc",
    "kvmalloc",
    "__kvmalloc",
    "vmalloc",
    "__vmalloc",
    "vm_area_alloc_pages",
    "mempool_",
    "dma_alloc_",
    "dma_direct_alloc",
];

/// Who asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Caller {
    /// Functions, the innermost first; the others called them.
    pub functions: Vec<String>,
    /// The module that is innermost in the whole stack, if there is one.
    pub module: Option<String>,
}

/// Who asked, of a folded stack: the outermost function first, parted by `;`.
pub(super) fn caller(stack: &str) -> Caller {
    let inner_first: Vec<&str> = stack.rsplit(';').filter(|f| !f.is_empty()).collect();
    let asked = inner_first.iter().position(|f| !is_own(f)).unwrap_or(0);
    let shown = inner_first[asked..].iter().take(SHOWN);
    let module = inner_first.iter().find_map(|f| module(f));
    Caller {
        functions: shown.map(|f| plain(f).to_owned()).collect(),
        module: module.map(str::to_owned),
    }
}

/// A function's name without what compilers and builds add to it; its module stays.
fn plain(function: &str) -> &str {
    let name = function.split([' ', '.']).next().unwrap_or(function);
    match function.contains(' ') {
        true => function,
        false => name.strip_suffix("_noprof").unwrap_or(name),
    }
}

fn module(function: &str) -> Option<&str> {
    let (_, module) = function.split_once(' ')?;
    Some(module.trim_start_matches('[').trim_end_matches(']'))
}

/// A module's function is never the allocator's.
fn is_own(function: &str) -> bool {
    !function.contains(' ') && OWN.iter().any(|own| function.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stack: &str) -> (String, Option<String>) {
        let c = caller(stack);
        (c.functions.join(" <- "), c.module)
    }

    #[test]
    fn the_allocators_own_functions_are_passed_by() {
        let stack = "entry;do_syscall_64;unix_stream_sendmsg;sock_alloc_send_pskb;alloc_skb_with_frags;\
                     alloc_pages_noprof;alloc_pages_mpol;__alloc_frozen_pages_noprof;trace_event_raw_event_mm_page_alloc";
        let caller = "alloc_skb_with_frags <- sock_alloc_send_pskb <- unix_stream_sendmsg";
        assert_eq!(of(stack), (caller.into(), None));
        let stack = "kthread;copy_process;kmem_cache_alloc_node_noprof;__slab_alloc.isra.0;___slab_alloc;allocate_slab";
        assert_eq!(of(stack).0, "copy_process <- kthread");
    }

    #[test]
    fn a_driver_is_named_wherever_it_stands() {
        let stack =
            "do_init;setup [e1000];ring [e1000];dma_alloc_attrs;__alloc_pages;wakeup_kswapd";
        assert_eq!(
            of(stack),
            (
                "ring [e1000] <- setup [e1000] <- do_init".into(),
                Some("e1000".into())
            )
        );
        let far = "deep [nv];a;b;c;d;__alloc_pages";
        assert_eq!(of(far), ("d <- c <- b".into(), Some("nv".into())));
    }

    #[test]
    fn a_stack_of_nothing_else_is_shown_as_it_is() {
        assert_eq!(of("__alloc_pages;rmqueue").0, "rmqueue <- __alloc_pages");
        assert_eq!(of("").0, "");
        assert_eq!(
            of("0xffffffff81000000;kmalloc_large").0,
            "0xffffffff81000000"
        );
    }
}
