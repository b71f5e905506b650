//! What a line of a report states, by how it begins. `spec: K.1, K.2`
//!
//! Invariant: [`kind_of`] looks at the beginning of a message and at fixed phrases alone, so that it takes time in its
//! length.

use super::holders;
use super::phrases::searcher;
use super::report::Stamp;
use crate::procfs::ZONES;
use aho_corasick::AhoCorasick;
use std::sync::LazyLock;

/// What a line states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `COMM: page allocation failure: order:N, mode:...`, a stall, or the form of 2.4.
    Failure,
    /// `COMM invoked oom-killer: ...`.
    Oom,
    /// `SLUB: Unable to allocate memory on node`.
    Slab,
    /// `cache: NAME, object size: N, ...`.
    Cache,
    /// `vmalloc: allocation failure: N bytes`.
    Vmalloc,
    /// `cma_alloc: alloc failed`.
    Cma,
    /// `Allocation of length N from process`.
    Length,
    /// `SysRq : Show Memory`.
    Show,
    /// `N callbacks suppressed`.
    Suppressed,
    /// `COMPACTION is disabled`.
    NoCompaction,
    /// `CPU: N PID: N Comm: NAME ... RELEASE #BUILD`.
    Cpu,
    /// `COMM cpuset=/ mems_allowed=0`.
    Cpuset,
    /// A function of a call trace, or its head.
    Call,
    /// `Mem-Info:`.
    MemInfo,
    /// Counts in pages.
    Counts,
    /// `Node 0 active_anon:NkB ...`.
    Node,
    /// `Node 0 DMA free:NkB ...`.
    Zone,
    /// `lowmem_reserve[]: ...`.
    Reserve,
    /// `Node 0 DMA: N*4kB ... = NkB`.
    Blocks,
    /// Page cache, swap, page frames: the end of a memory report.
    Tail,
    /// A table of per-CPU lists.
    Table,
    /// A pool of huge pages.
    Hugepages,
    /// A line of the tables of tasks, of slab caches or of places that allocate.
    Holder,
    /// `=> 122 free of 16384 total pages`, of a contiguous memory area.
    CmaPages,
    /// `oom-kill:constraint=...`, `Memory cgroup out of memory`.
    OomKill,
    /// `Out of memory: Killed process N (NAME)`.
    Killed,
}

impl Kind {
    /// Whether the lines of such a statement may have been wrapped.
    pub const fn may_wrap(self) -> bool {
        !matches!(
            self,
            Kind::MemInfo
                | Kind::Show
                | Kind::Call
                | Kind::Suppressed
                | Kind::NoCompaction
                | Kind::Table
                | Kind::Hugepages
                | Kind::Holder
                | Kind::CmaPages
        )
    }
}

/// A statement, put together from the lines that it was wrapped into.
pub struct Statement {
    /// What it states.
    pub kind: Kind,
    /// Its text.
    pub text: String,
    /// The same text without the blanks that were put between wrapped lines.
    pub tight: String,
    /// The number of its first line.
    pub line: u64,
    /// When it was printed.
    pub time: Option<Stamp>,
}

/// What a message states; `None` if it is none of a report's.
pub fn kind_of(message: &str) -> Option<Kind> {
    let text = message.trim_start();
    let first = *text.as_bytes().first()?;
    match first {
        b'[' if holders::is_task(text) => return Some(Kind::Holder),
        b'[' => return (text.starts_with("[<") || is_call(text)).then_some(Kind::Call),
        b'?' | b'<' if is_call(text) => return Some(Kind::Call),
        _ => {}
    }
    if holders::is_line(text) {
        return Some(Kind::Holder);
    }
    if let Some(kind) = memory(text, first) {
        return Some(kind);
    }
    let named = match PHRASES.is_match(text) {
        true => headline(text).or_else(|| around(text)),
        false => None,
    };
    named.or_else(|| is_call(text).then_some(Kind::Call))
}

/// Finds any phrase of a line that is known by one: most lines have none, and are looked at once.
static PHRASES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    const ANY: [&str; 36] = [
        "page allocation failure",
        "page allocation stalls",
        "-order allocation failed",
        "invoked oom-killer",
        "oom-killer:",
        "Unable to allocate memory on",
        "vmalloc: allocation failure",
        "vmalloc error: size",
        "vmap allocation for size",
        "vmalloc_node_range for size",
        "alloc failed",
        "Allocation of length ",
        "total pages",
        "SysRq",
        "sysrq:",
        "oom-kill:",
        "Memory cgroup out of memory",
        "killed as a result of limit of",
        "memory: usage ",
        "Killed process ",
        "Kill process ",
        "kill process ",
        "killing process ",
        "Comm:",
        "comm:",
        "cpuset=",
        "callbacks suppressed",
        "COMPACTION is disabled",
        "Call Trace:",
        "Call trace:",
        "Backtrace:",
        "Workqueue:",
        "Hardware name:",
        "mems_allowed=",
        "PID: ",
        "Pid: ",
    ];
    searcher(ANY.iter())
});

/// A function with its offset, such as `alloc_ring+0x1f/0x2e0 [driver]`.
fn is_call(text: &str) -> bool {
    text.find("+0x")
        .is_some_and(|at| text[at..].contains("/0x"))
}

fn headline(text: &str) -> Option<Kind> {
    let has = |phrase: &str| text.contains(phrase);
    if has("page allocation failure")
        || has("page allocation stalls")
        || has("-order allocation failed")
    {
        return Some(Kind::Failure);
    }
    if has("invoked oom-killer") || text.starts_with("oom-killer:") {
        return Some(Kind::Oom);
    }
    if has("Unable to allocate memory on node") || has("Unable to allocate memory on CPU") {
        return Some(Kind::Slab);
    }
    if has("vmalloc: allocation failure")
        || has("vmalloc error: size")
        || has("vmap allocation for size")
        || has("vmalloc_node_range for size")
    {
        return Some(Kind::Vmalloc);
    }
    if has("alloc failed, req-size:") || has("cma_alloc:") && has("alloc failed") {
        return Some(Kind::Cma);
    }
    if has("Allocation of length ") {
        return Some(Kind::Length);
    }
    if has(" free of ") && has("=>") && has("total pages") {
        return Some(Kind::CmaPages);
    }
    (has("SysRq") || has("sysrq:")).then_some(())?;
    has("Show Memory").then_some(Kind::Show)
}

fn around(text: &str) -> Option<Kind> {
    let has = |phrase: &str| text.contains(phrase);
    if text.starts_with("oom-kill:")
        || has("Memory cgroup out of memory")
        || has("killed as a result of limit of")
    {
        return Some(Kind::OomKill);
    }
    if text.starts_with("memory: usage ") && has("limit ") {
        return Some(Kind::OomKill);
    }
    if has("Killed process ")
        || has("Kill process ")
        || has("kill process ")
        || text.starts_with("VM: killing process ")
    {
        return Some(Kind::Killed);
    }
    if (has("Comm:") && text.contains("PID: ")) || (has("comm:") && has("Pid: ")) {
        return Some(Kind::Cpu);
    }
    if has("cpuset=") && has(" mems_allowed=") {
        return Some(Kind::Cpuset);
    }
    if has("callbacks suppressed") {
        return Some(Kind::Suppressed);
    }
    if has("COMPACTION is disabled") {
        return Some(Kind::NoCompaction);
    }
    let is_trace = [
        "Call Trace:",
        "Call trace:",
        "Backtrace:",
        "Workqueue:",
        "Hardware name:",
    ];
    is_trace
        .iter()
        .any(|t| text.starts_with(t))
        .then_some(Kind::Call)
}

/// Lines of a memory report.
fn memory(text: &str, first: u8) -> Option<Kind> {
    match first {
        b'0'..=b'9' => return pages(text),
        b'M' if text.starts_with("Mem-Info") || text.starts_with("Mem-info") => {
            return Some(Kind::MemInfo);
        }
        b'l' if text.starts_with("lowmem_reserve[]") => return Some(Kind::Reserve),
        b'p' if text.starts_with("protections[]") => return Some(Kind::Reserve),
        b'c' if text.starts_with("cache: ") && text.contains("object size:") => {
            return Some(Kind::Cache);
        }
        b'C' if text.starts_with("CPU") && (text.contains("hi:") || text.contains("Hot:")) => {
            return Some(Kind::Table);
        }
        b'c' if text.starts_with("cpu ") && text.contains(": high ") | text.contains(": low ") => {
            return Some(Kind::Table);
        }
        b'F' if text.starts_with("Free swap") => return Some(Kind::Tail),
        b'F' if text.starts_with("Free pages:") => return Some(Kind::Counts),
        b'T' if text.starts_with("Total swap") || text.starts_with("Total of ") => {
            return Some(Kind::Tail);
        }
        b'S' if text.starts_with("Swap cache") => return Some(Kind::Tail),
        _ => {}
    }
    if is_counts(text) {
        return Some(Kind::Counts);
    }
    let (_, rest) = zone_place(text)?;
    if text.starts_with("Node") {
        if rest.starts_with("hugepages_total") {
            return Some(Kind::Hugepages);
        }
        if rest.starts_with("memory in pages") {
            return Some(Kind::Table);
        }
    }
    let is_node = ["active_anon:", "inactive_anon:", "reclaimable:"]
        .iter()
        .any(|t| rest.starts_with(t));
    if text.starts_with("Node") && is_node {
        return Some(Kind::Node);
    }
    let word = rest
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
        .count();
    // Another name is one that was cut.
    if !ZONES.contains(&&rest[..word]) {
        return None;
    }
    let behind = &rest[word..];
    if behind.trim_start().starts_with("free:") && behind.starts_with(' ') {
        return Some(Kind::Zone);
    }
    if behind.trim_start().starts_with("per-cpu:") {
        return Some(Kind::Table);
    }
    let blocks = behind.strip_prefix(':')?.trim_start();
    let digits = blocks.bytes().take_while(u8::is_ascii_digit).count();
    // Whoever pasted it may have left out columns.
    let is_elided = is_ellipsis(blocks) && blocks.contains('*') && blocks.contains("kB");
    let is_blocks =
        digits > 0 && blocks[digits..].starts_with('*') || blocks.starts_with("empty") || is_elided;
    is_blocks.then_some(Kind::Blocks)
}

/// `N pages RAM` and its like.
fn pages(text: &str) -> Option<Kind> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[digits..].trim_start();
    let begins = [
        "pages ",
        "reserved pages",
        "total pagecache pages",
        "free buffer pages",
    ];
    begins
        .iter()
        .any(|b| rest.starts_with(b))
        .then_some(Kind::Tail)
}

/// Whether the text is counts of pages: `active_anon:5 ...`, with no unit behind the number.
fn is_counts(text: &str) -> bool {
    const NAMES: [&str; 16] = [
        "active_anon",
        "inactive_anon",
        "isolated_anon",
        "active_file",
        "inactive_file",
        "isolated_file",
        "unevictable",
        "slab_reclaimable",
        "slab",
        "mapped",
        "free",
        "active",
        "inactive",
        "dirty",
        "kernel_misc_reclaimable",
        "sec_pagetables",
    ];
    let name = text
        .bytes()
        .take_while(|b| b.is_ascii_alphabetic() || *b == b'_')
        .count();
    if name == 0 || !NAMES.contains(&text[..name].to_ascii_lowercase().as_str()) {
        return false;
    }
    let Some(rest) = text[name..].strip_prefix(':') else {
        return false;
    };
    let rest = rest.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0
        && matches!(
            rest.as_bytes().get(digits),
            None | Some(b' ' | b'#' | b'\n')
        )
}

/// Whether the text begins with the sign of something left out.
pub fn is_ellipsis(text: &str) -> bool {
    ["...", "\u{2026}", "[...]", "[\u{2026}]", "(...)"]
        .iter()
        .any(|e| text.starts_with(e))
}

/// The node of `Node 0 DMA ...`, and what follows; node 0 where none is named.
pub fn zone_place(text: &str) -> Option<(u32, &str)> {
    let Some(rest) = text.strip_prefix("Node") else {
        return Some((0, text));
    };
    let rest = rest.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let node = rest[..digits].parse().ok()?;
    Some((node, rest[digits..].trim_start_matches([' ', ','])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: K.1, K.2`
    #[test]
    fn lines_are_known_by_their_beginning() {
        for (line, kind) in [
            (
                "swapper: page allocation failure. order:2, mode:0x4020",
                Kind::Failure,
            ),
            (
                "python3: page allocation stalls for 10060ms, order:1,",
                Kind::Failure,
            ),
            (
                "__alloc_pages: 0-order allocation failed (gfp=0x20/0)",
                Kind::Failure,
            ),
            (
                "java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0",
                Kind::Oom,
            ),
            ("oom-killer: gfp_mask=0x200d2, order=0", Kind::Oom),
            (
                "SLUB: Unable to allocate memory on node -1, gfp=0x480020(GFP_ATOMIC)",
                Kind::Slab,
            ),
            ("Mem-info:", Kind::MemInfo),
            (
                " active_file:25113 inactive_file:31005 isolated_file:0",
                Kind::Counts,
            ),
            ("Active:151 inactive:62 dirty:0 free:253453", Kind::Counts),
            (
                "Node 0 active_anon:656008kB inactive_anon:361364kB",
                Kind::Node,
            ),
            ("Node 0 DMA  free:15852kB min:132kB", Kind::Zone),
            ("Normal free:1032kB min:508kB", Kind::Zone),
            ("lowmem_reserve[]: 0 0", Kind::Reserve),
            ("Node 0 DMA: 1*4kB (U) 0*8kB = 4kB", Kind::Blocks),
            ("HighMem: empty", Kind::Blocks),
            ("DMA32: ... 15*256kB ... 0*512kB", Kind::Blocks),
            ("Node 2 DMA per-cpu:", Kind::Table),
            ("CPU    0: hi:    6, btch:   1 usd:   5", Kind::Table),
            ("261247 pages of RAM", Kind::Tail),
            ("523776 pages RAM", Kind::Tail),
            (
                "CPU: 1 PID: 7 Comm: kworker/u16:3 Not tainted 5.4.19 #1",
                Kind::Cpu,
            ),
            ("Pid: 0, comm: swapper Not tainted 2.6.32-rc6 #1", Kind::Cpu),
            (" [<802f63f2>] dump_stack+0x1e/0x3c", Kind::Call),
            (" warn_alloc.cold+0x7b/0xdf", Kind::Call),
            ("Node 0 hugepages_total=0 hugepages_free=0", Kind::Hugepages),
            (
                "SLUB: Unable to allocate memory on CPU 1 (of node 0) on node -1, gfp=0x820(GFP_ATOMIC)",
                Kind::Slab,
            ),
            (
                "[    268]     0   268    22862      267   208896        0          -250 logger",
                Kind::Holder,
            ),
            ("Unreclaimable slab info:", Kind::Holder),
            ("xfs_icr                  263KB        263KB", Kind::Holder),
            ("   65536    16 mm/x.c:22 func:new_page", Kind::Holder),
            (
                "cma: number of available pages: 3@125+20@4076=> 23 free of 16384 total pages",
                Kind::CmaPages,
            ),
        ] {
            assert_eq!(kind_of(line), Some(kind), "{line}");
        }
        assert_eq!(kind_of("usb 1-1: new high-speed USB device"), None);
        assert_eq!(kind_of("Normal exit of process 5"), None);
    }
}
