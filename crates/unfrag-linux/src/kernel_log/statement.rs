//! What a line of a report states, by how it begins, and how wrapped pieces of it are put together again.
//! `spec: K.1, K.2`
//!
//! Invariant: [`kind_of`] looks at the beginning of a message and at fixed phrases alone, so that it takes time in its
//! length.

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
    /// A table of per-CPU lists, of hugepages or of tasks.
    Table,
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
        )
    }
}

/// What a message states; `None` if it is none of a report's.
pub fn kind_of(message: &str) -> Option<Kind> {
    let text = message.trim_start();
    let first = *text.as_bytes().first()?;
    match first {
        b'[' => return (text.starts_with("[<") || is_call(text)).then_some(Kind::Call),
        b'?' | b'<' if is_call(text) => return Some(Kind::Call),
        _ => {}
    }
    if let Some(kind) = memory(text, first) {
        return Some(kind);
    }
    headline(text)
        .or_else(|| around(text))
        .or_else(|| is_call(text).then_some(Kind::Call))
}

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
    if has("Unable to allocate memory on node") {
        return Some(Kind::Slab);
    }
    if has("vmalloc: allocation failure")
        || has("vmalloc error: size")
        || has("vmap allocation for size")
    {
        return Some(Kind::Vmalloc);
    }
    if has("alloc failed, req-size:") || has("cma_alloc:") && has("alloc failed") {
        return Some(Kind::Cma);
    }
    if has("Allocation of length ") {
        return Some(Kind::Length);
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
    if text.starts_with("Node")
        && ["hugepages_total", "memory in pages"]
            .iter()
            .any(|t| rest.starts_with(t))
    {
        return Some(Kind::Table);
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
    if word == 0 || !rest.as_bytes()[0].is_ascii_uppercase() {
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
    let is_blocks = digits > 0 && blocks[digits..].starts_with('*') || blocks.starts_with("empty");
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

/// Whether `text`, a line without a beginning of its own, may go on with a statement of this kind.
pub fn goes_on(kind: Kind, so_far: &str, text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || !kind.may_wrap() {
        return false;
    }
    match kind {
        Kind::Zone | Kind::Node => text.split_whitespace().any(is_amount) || is_fragment(text),
        Kind::Counts => text.split_whitespace().any(|t| t.contains(':')) || is_fragment(text),
        Kind::Blocks => {
            let is_part = |b: u8| b.is_ascii_digit() || b" *kB()=UMEHCRI".contains(&b);
            !is_whole_blocks(so_far) && text.bytes().all(is_part)
        }
        Kind::Reserve => text.bytes().all(|b| b.is_ascii_digit() || b == b' '),
        Kind::Failure | Kind::Oom if !is_whole_request(so_far) || is_mask_cut(so_far, text) => {
            text.len() < 400
        }
        Kind::Failure | Kind::Oom | Kind::Slab | Kind::Vmalloc | Kind::Cma | Kind::Length => {
            let words = [
                "order", "mode", "mask", "GFP", "_adj", "mems", "cpuset", "=", "allocat",
                "failure", "oom", "pages", "ret",
            ];
            text.len() < 400 && words.iter().any(|w| text.contains(w))
                || so_far.matches('(').count() > so_far.matches(')').count()
        }
        Kind::Cpu => text.len() < 100 && (text.contains('#') || text.contains("ainted")),
        Kind::OomKill => text.contains(['=', ',', '/', ':']),
        Kind::Cpuset | Kind::Cache | Kind::Killed | Kind::Tail => {
            text.contains(['=', ':']) && text.len() < 100
        }
        _ => false,
    }
}

/// Whether the text so far ends in a mask that the next line goes on with.
fn is_mask_cut(so_far: &str, next: &str) -> bool {
    let last = so_far.rsplit(' ').next().unwrap_or("");
    let hex = ["mode:0x", "gfp_mask=0x"]
        .iter()
        .find_map(|m| last.strip_prefix(m));
    let is_hex = |t: &str| t.bytes().all(|b| b.is_ascii_hexdigit());
    let end = next.find(['(', ',', ' ']).unwrap_or(next.len());
    hex.is_some_and(is_hex) && is_hex(&next[..end])
}

/// Whether order and mask of a request are there.
fn is_whole_request(text: &str) -> bool {
    let is_followed = |name: &str| {
        let behind = text
            .split_once(name)
            .map(|(_, rest)| rest.trim_start_matches('-'));
        behind.is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains([',', '(', ' ', '/'])
                || rest.len() > 3
        })
    };
    (is_followed("order:") || is_followed("order=") || text.contains("-order "))
        && (is_followed("mode:") || is_followed("gfp_mask=") || is_followed("gfp="))
}

fn is_whole_blocks(text: &str) -> bool {
    text.rsplit_once('=')
        .is_some_and(|(_, sum)| sum.trim_end().ends_with("kB"))
}

fn is_amount(token: &str) -> bool {
    token.ends_with("kB")
        || token.ends_with("KB")
        || token.starts_with("pages_scanned:")
        || token.starts_with("all_unreclaimable")
}

/// A single piece of a name or number.
fn is_fragment(text: &str) -> bool {
    if matches!(text, "B" | "kB") {
        return true;
    }
    text.len() < 40
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_():?>".contains(&b))
}

/// Puts the next line of a wrapped statement behind the text so far, with a blank or without.
pub fn join(kind: Kind, so_far: &mut String, next: &str) {
    let next = next.trim_end();
    if !so_far.ends_with(' ') && !next.starts_with(' ') && needs_blank(kind, so_far, next) {
        so_far.push(' ');
    }
    so_far.push_str(next);
}

fn needs_blank(kind: Kind, so_far: &str, next: &str) -> bool {
    let last = so_far.rsplit(' ').next().unwrap_or("");
    let first = next.split(' ').next().unwrap_or("");
    let begins_digit = first.as_bytes().first().is_some_and(u8::is_ascii_digit);
    match kind {
        Kind::Zone | Kind::Node | Kind::Counts => {
            let has_value = |t: &str| t.split_once(':').is_some_and(|(_, v)| !v.is_empty());
            match last {
                "Node" | "all_unreclaimable?" => true,
                _ if first.starts_with("free:")
                    || last.bytes().all(|b| b.is_ascii_digit())
                        && !begins_digit
                        && !first.starts_with("kB") =>
                {
                    true
                }
                _ if kind != Kind::Counts && begins_digit => last.ends_with("kB"),
                _ if kind == Kind::Counts && begins_digit => false,
                _ if last.starts_with("pages_scanned:") || kind == Kind::Counts => {
                    has_value(last) && !first.starts_with(':')
                }
                _ => last.ends_with("kB") || last.ends_with("KB") || matches!(last, "yes" | "no"),
            }
        }
        Kind::Blocks => {
            let last_whole =
                last.ends_with("kB") || last.ends_with(')') || last.ends_with(':') || last == "=";
            last_whole && !first.starts_with(['k', 'B', '*', ')'])
        }
        // Each number is at least as large as the one before it.
        Kind::Reserve => match (last.parse::<u64>(), first.parse::<u64>()) {
            (Ok(last), Ok(first)) => first >= last,
            _ => true,
        },
        Kind::Failure | Kind::Oom | Kind::Vmalloc | Kind::Slab => {
            let is_open = so_far.matches('(').count() > so_far.matches(')').count();
            let words = [
                "page",
                "allocation",
                "failure:",
                "failure.",
                "invoked",
                "oom-killer:",
                "for",
                "stalls",
                "error:",
                "size",
            ];
            !is_open
                && (last.ends_with([',', '.', ':', ')']) || words.contains(&last))
                && !first.starts_with([',', ')', ':'])
        }
        Kind::OomKill => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(kind: Kind, pieces: &[&str]) -> String {
        let mut text = pieces[0].to_owned();
        pieces[1..].iter().for_each(|p| join(kind, &mut text, p));
        text
    }

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
            ("Node 0 hugepages_total=0 hugepages_free=0", Kind::Table),
        ] {
            assert_eq!(kind_of(line), Some(kind), "{line}");
        }
        assert_eq!(kind_of("usb 1-1: new high-speed USB device"), None);
        assert_eq!(kind_of("Normal exit of process 5"), None);
    }

    #[test]
    fn wrapped_lines_are_joined_in_the_midst_of_words_and_numbers() {
        let zone = "Node 0 DMA free:10176kB min:7296kB isolated(anon):0kB pages_scanned:34 all_unreclaimable? no";
        for at in 1..zone.len() {
            let (a, b) = zone.split_at(at);
            // A mailer that wraps between words drops the blank.
            let (a, b) = (a.trim_end(), b.trim_start());
            let text = joined(Kind::Zone, &[a, b]);
            if at > "Node 0 DMA free:".len() {
                assert_eq!(text, zone, "{a:?} {b:?}");
            }
        }
        let blocks = "Node 0 DMA: 3*4kB (UM) 12*8kB 0*16kB (U) = 1340kB";
        for at in "Node 0 DMA: 3".len()..blocks.len() {
            let (a, b) = blocks.split_at(at);
            assert_eq!(
                joined(Kind::Blocks, &[a.trim_end(), b.trim_start()]),
                blocks,
                "{a:?} {b:?}"
            );
        }
    }
}
