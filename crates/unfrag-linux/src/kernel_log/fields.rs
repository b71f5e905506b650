//! The fields of a whole statement: numbers, masks, zones, free blocks. `spec: K.1, K.2`
//!
//! Invariant: nothing panics or overflows; a number that is cut off or beyond 64 bits is left out or largest.

use super::report::{Blocks, Cache, Letters, Mask, Memory, Zone};
use super::statement::{is_ellipsis, zone_place};

/// The number that `text` begins with, and what follows; saturates.
pub fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    Some((text[..digits].parse().unwrap_or(u64::MAX), &text[digits..]))
}

/// The number behind `name`, such as `order:` or `order=`, which may be negative.
pub fn signed_after(text: &str, name: &str) -> Option<i64> {
    let mut from = 0;
    while let Some(at) = text[from..].find(name) {
        let rest = text[from + at + name.len()..].trim_start();
        if let Some(rest) = rest.strip_prefix('-')
            && let Some((n, _)) = number(rest)
        {
            return i64::try_from(n).ok().map(|n| -n);
        }
        if let Some((n, _)) = number(rest) {
            return i64::try_from(n).ok();
        }
        from += at + name.len();
    }
    None
}

/// The number behind `name`.
pub fn after(text: &str, name: &str) -> Option<u64> {
    signed_after(text, name).and_then(|n| u64::try_from(n).ok())
}

/// The order of a request.
pub fn order(text: &str) -> Option<i32> {
    let n = signed_after(text, "order:").or_else(|| signed_after(text, "order="));
    let n = n.or_else(|| signed_after(text, "page order "));
    let n = n.or_else(|| {
        // `0-order allocation failed` of 2.4.
        let at = text.find("-order allocation")?;
        let digits = text[..at]
            .bytes()
            .rev()
            .take_while(u8::is_ascii_digit)
            .count();
        text[at - digits..at].parse().ok()
    });
    i32::try_from(n?).ok()
}

/// The mask of a request.
pub fn mask(text: &str) -> Mask {
    for name in ["mode:", "gfp_mask=", "gfp=", "gfp_mask:"] {
        let Some(at) = text.find(name) else { continue };
        let rest = text[at + name.len()..].trim_start();
        let Some(hex) = rest.strip_prefix("0x") else {
            continue;
        };
        let digits = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        let raw = u64::from_str_radix(&hex[..digits], 16).ok();
        let names = hex[digits..].strip_prefix('(').and_then(|n| {
            let end = n.find(')')?;
            let names = n[..end].trim();
            names.contains("GFP").then(|| names.replace("&#124;", "|"))
        });
        return Mask { raw, names };
    }
    Mask::default()
}

/// The nodes of `nodemask=0-1,4` and `mems_allowed=0`; `None` for `(null)`.
pub fn nodes(text: &str, name: &str) -> Option<Vec<u32>> {
    let at = text.find(name)?;
    let mut rest = &text[at + name.len()..];
    let mut nodes = vec![];
    while let Some((first, after)) = number(rest) {
        let (last, after) = match after.strip_prefix('-').and_then(number) {
            Some((last, after)) => (last, after),
            None => (first, after),
        };
        // No kernel has more nodes than this.
        nodes.extend((first..=last.min(1024)).filter_map(|n| u32::try_from(n).ok()));
        match after.strip_prefix(',') {
            Some(next)
                if next.as_bytes().first().is_some_and(u8::is_ascii_digit)
                    && nodes.len() < 1024 =>
            {
                rest = next
            }
            _ => break,
        }
    }
    (!nodes.is_empty()).then_some(nodes)
}

/// The task before `separator`; `None` if there is none.
pub fn task(text: &str, separator: &str) -> Option<String> {
    let name = text[..text.find(separator)?].trim().trim_end_matches(':');
    (!name.is_empty() && name.len() <= 64).then(|| name.to_owned())
}

/// Task and release of a `CPU: N PID: N Comm: NAME` line.
pub fn task_and_release(text: &str) -> Option<(String, Option<String>)> {
    let at = text.find("Comm:").or_else(|| text.find("comm:"))?;
    let rest = text[at + "Comm:".len()..].trim_start();
    let taint = ["Not tainted", "Tainted:", "Kdump:"]
        .iter()
        .filter_map(|t| rest.find(t))
        .min();
    let name = rest[..taint.unwrap_or(rest.len())].trim();
    let words: Vec<&str> = rest[taint.unwrap_or(0)..].split_whitespace().collect();
    let is_release = |w: &&&str| {
        let mut parts = w.split('.');
        let digits = |p: Option<&str>| {
            p.is_some_and(|p| p.bytes().next().is_some_and(|b| b.is_ascii_digit()))
        };
        digits(parts.next()) && digits(parts.next())
    };
    let release = words
        .iter()
        .find(is_release)
        .map(|w| w.trim_matches(['(', ')', ',']).to_owned());
    Some((name.to_owned(), release))
}

/// `cache: NAME, object size: 232, buffer size: 256, default order: 2, min order: 0`.
pub fn cache(text: &str) -> Option<Cache> {
    let rest = text[text.find("cache: ")? + "cache: ".len()..].trim_start();
    let order = |name| signed_after(text, name).and_then(|n| i32::try_from(n).ok());
    Some(Cache {
        name: rest.split(',').next()?.trim().to_owned(),
        object_bytes: after(text, "object size:"),
        order: order("default order:").or_else(|| order(" order:")),
        min_order: order("min order:"),
    })
}

/// A zone's amounts.
pub fn zone(text: &str) -> Option<Zone> {
    let (node, rest) = zone_place(text.trim_start())?;
    let (name, amounts) = rest.split_once(' ')?;
    let mut zone = Zone {
        node,
        is_node_named: text.trim_start().starts_with("Node"),
        name: name.to_owned(),
        is_elided: amounts.split_whitespace().any(is_ellipsis),
        ..Zone::default()
    };
    each_kib(amounts, |key, n| {
        if zone.kib.len() < MOST_AMOUNTS {
            zone.kib.insert(key.to_owned(), n);
        }
    });
    Some(zone)
}

/// Amounts of one line at most.
const MOST_AMOUNTS: usize = 128;

/// Each `name:5kB` of a line.
fn each_kib(amounts: &str, mut found: impl FnMut(&str, u64)) {
    let mut from = amounts;
    while let Some(colon) = from.find(':') {
        let before = &from[..colon];
        let key = before.rsplit([' ', '\t']).next().unwrap_or("");
        let rest = from[colon + 1..].trim_start();
        if let Some((n, rest)) = number(rest)
            && (rest.starts_with("kB") || rest.starts_with("KB"))
        {
            found(key, n);
        }
        from = &from[colon + 1..];
    }
}

/// Adds the amounts of a `Node 0 active_anon:5kB ...` line.
pub fn node(text: &str, memory: &mut Memory) {
    memory.has_node_lines = true;
    memory.node_lines = memory.node_lines.saturating_add(1);
    each_kib(text, |key, n| {
        if memory.node_kib.len() < MOST_AMOUNTS || memory.node_kib.contains_key(key) {
            let sum = memory.node_kib.entry(key.to_owned()).or_default();
            *sum = sum.saturating_add(n);
        }
    });
}

/// Adds the pool of a `Node 0 hugepages_total=4 ... hugepages_size=2048kB` line.
pub fn hugepages(text: &str, memory: &mut Memory) {
    if let (Some(total), Some(kib)) = (
        after(text, "hugepages_total="),
        after(text, "hugepages_size="),
    ) {
        let sum = memory.hugetlb_kib.unwrap_or(0);
        memory.hugetlb_kib = Some(sum.saturating_add(total.saturating_mul(kib)));
    }
}

/// Free pages of a contiguous memory area, and all of it: `=> 122 free of 16384 total pages`.
pub fn cma_pages(text: &str) -> Option<(u64, u64)> {
    let (free, total) = text.rsplit_once("=>")?.1.split_once(" free of ")?;
    Some((number(free.trim())?.0, number(total.trim())?.0))
}

/// The numbers of a `lowmem_reserve[]:` line, in pages.
pub fn reserve(text: &str) -> Option<Vec<u64>> {
    let (_, numbers) = text.split_once(':')?;
    // What follows is at places that are not known.
    if numbers.split_whitespace().any(is_ellipsis) {
        return None;
    }
    let pages: Vec<u64> = numbers
        .split_whitespace()
        .map_while(|t| Some(number(t)?.0))
        .take(16)
        .collect();
    (!pages.is_empty()).then_some(pages)
}

/// Node, zone and free blocks of a `Node 0 DMA: 3*4kB (U) ... = 12kB` line.
pub fn blocks(text: &str) -> Option<(u32, String, Blocks)> {
    let (node, rest) = zone_place(text.trim_start())?;
    let (name, rest) = rest.split_once(':')?;
    let mut rest = rest.trim_start();
    if let Some(blocks) = elided(rest) {
        return Some((node, name.trim().to_owned(), blocks));
    }
    let mut blocks = Blocks::default();
    if rest.starts_with("empty") {
        blocks.total_kib = Some(0);
    }
    while let Some((count, after)) = number(rest) {
        let Some((kib, after)) = after.strip_prefix('*').and_then(number) else {
            break;
        };
        let Some(after) = after.strip_prefix("kB") else {
            break;
        };
        let mut after = after.trim_start();
        let page = *blocks.page_kib.get_or_insert(kib);
        // Each column is twice the one before it: what is not was put together from two lines.
        if u32::try_from(blocks.orders.len())
            .ok()
            .and_then(|o| page.checked_shl(o))
            != Some(kib)
            || page == 0
        {
            break;
        }
        let mut letters = Letters::default();
        if let Some(inner) = after.strip_prefix('(') {
            let Some((names, behind)) = inner.split_once(')') else {
                blocks.orders.push((count, letters));
                return Some((node, name.trim().to_owned(), blocks));
            };
            letters = Letters::parse(names.trim()).unwrap_or_default();
            after = behind.trim_start();
        }
        blocks.orders.push((count, letters));
        rest = after;
    }
    if let Some(sum) = rest.strip_prefix('=')
        && let Some((kib, unit)) = number(sum.trim_start())
        && unit.starts_with("kB")
    {
        blocks.total_kib = Some(kib);
    }
    Some((node, name.trim().to_owned(), blocks))
}

/// Free blocks of which columns were left out (`... 15*256kB ... 0*512kB`), if any were. Pages of 4 KiB are taken for
/// granted where the first column is not there.
fn elided(row: &str) -> Option<Blocks> {
    let words: Vec<&str> = row.split_whitespace().collect();
    words.iter().any(|w| is_ellipsis(w)).then_some(())?;
    let column = |w: &&str| {
        let (count, rest) = number(w)?;
        let (kib, unit) = number(rest.strip_prefix('*')?)?;
        (unit == "kB" && kib.is_power_of_two()).then_some((count, kib))
    };
    let columns: Vec<(u64, u64)> = words.iter().filter_map(column).collect();
    let mut orders = vec![];
    let page = match words.first().and_then(column) {
        Some((_, kib)) => kib,
        None => 4,
    };
    for (count, kib) in columns {
        let order = (kib / page).checked_ilog2()?;
        let order = usize::try_from(order).ok().filter(|o| *o < 40)?;
        if orders.len() <= order {
            orders.resize(order + 1, (0, Letters::default()));
        }
        orders[order].0 = count;
    }
    (!orders.is_empty()).then_some(Blocks {
        page_kib: words.first().and_then(column).map(|c| c.1),
        orders,
        total_kib: None,
        is_elided: true,
    })
}

/// Counts in pages: `active_anon:5 inactive_anon:7`.
pub fn counts(text: &str, memory: &mut Memory) {
    if text.starts_with("Active:") || text.starts_with("Free pages:") {
        memory.is_old_form = true;
    }
    if text.starts_with("Free pages:") {
        memory.free_kib = after(text, "Free pages:").or(memory.free_kib);
    }
    for token in text.split_whitespace() {
        if let Some((name, value)) = token.split_once(':')
            && let Some((n, "")) = number(value)
            && memory.pages.len() < 128
        {
            memory.pages.insert(name.to_ascii_lowercase(), n);
        }
    }
}

/// Whether a line of the end of a memory report says what `memory` does not have yet.
pub fn is_new_tail(text: &str, memory: &Memory) -> bool {
    let has = |phrase: &str| text.contains(phrase);
    if has("reserved pages") || has("pages reserved") {
        memory.reserved_pages.is_none()
    } else if has("pages cma reserved") {
        memory.cma_pages.is_none()
    } else {
        memory.ram_pages.is_none()
    }
}

/// What the end of a memory report says.
pub fn tail(text: &str, memory: &mut Memory) {
    let first = number(text).map(|(n, rest)| (n, rest.trim_start()));
    match first {
        Some((n, rest)) if rest.starts_with("pages RAM") || rest.starts_with("pages of RAM") => {
            memory.ram_pages = Some(n)
        }
        Some((n, rest))
            if rest.starts_with("pages reserved") || rest.starts_with("reserved pages") =>
        {
            memory.reserved_pages = Some(n);
        }
        Some((n, rest)) if rest.starts_with("pages cma reserved") => memory.cma_pages = Some(n),
        _ if text.starts_with("Free swap") => {
            memory.swap_free_kib = after(text, "=")
                .or(after(text, ":"))
                .or(memory.swap_free_kib)
        }
        _ if text.starts_with("Total swap") => memory.swap_total_kib = after(text, "="),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: K.1`
    #[test]
    fn requests_of_every_form_are_read() {
        assert_eq!(
            order("x: page allocation failure: order:4, mode:0x40dc0"),
            Some(4)
        );
        assert_eq!(
            order("x invoked oom-killer: gfp_mask=0xcc0, order=-1, oom_score_adj=0"),
            Some(-1)
        );
        assert_eq!(
            order("__alloc_pages: 3-order allocation failed (gfp=0x20/0)"),
            Some(3)
        );
        assert_eq!(
            order("vmalloc error: size 1048576, page order 9, failed"),
            Some(9)
        );
        let m = mask("mode:0x2084020(GFP_ATOMIC|__GFP_COMP), nodemask=(null)");
        assert_eq!(
            (m.raw, m.names.as_deref()),
            (Some(0x2084020), Some("GFP_ATOMIC|__GFP_COMP"))
        );
        assert_eq!(mask("(gfp=0x1d2/0)").raw, Some(0x1d2));
        assert_eq!(
            nodes("nodemask=0-1,4,cpuset=/", "nodemask="),
            Some(vec![0, 1, 4])
        );
        assert_eq!(nodes("nodemask=(null),cpuset=/", "nodemask="), None);
        let line =
            "CPU: 100 PID: 0 UID: 0 Comm: swapper/100 Tainted: G         C O    4.14.79-v7+ #1159";
        assert_eq!(
            task_and_release(line),
            Some(("swapper/100".into(), Some("4.14.79-v7+".into())))
        );
        let line = "Pid: 0, comm: swapper Not tainted 2.6.32-rc6 #1";
        assert_eq!(
            task_and_release(line),
            Some(("swapper".into(), Some("2.6.32-rc6".into())))
        );
    }

    /// `spec: K.2`
    #[test]
    fn zones_and_blocks_are_read_as_far_as_they_go() {
        let z = zone(
            "Node 1 Normal free:20564kB boost:0kB min:16524kB reserved_highatomic:2048KB page",
        )
        .unwrap();
        assert_eq!(
            (z.node, z.name.as_str(), z.kib("free"), z.kib("min")),
            (1, "Normal", Some(20564), Some(16524))
        );
        assert_eq!(z.kib("reserved_highatomic"), Some(2048));
        let (_, _, b) = blocks("Normal: 2*64kB (UC) 0*128kB 1*256kB (H) = 384kB").unwrap();
        assert_eq!(
            (b.page_kib, b.orders.len(), b.total_kib),
            (Some(64), 3, Some(384))
        );
        assert!(b.orders[0].1.has(Letters::CMA) && b.orders[2].1.has(Letters::HIGHATOMIC));
        let (_, _, elided) = blocks("Normal: ... 7*256kB ... 0*512kB 0*4096kB").unwrap();
        assert!(elided.is_elided && !elided.is_whole() && elided.page_kib.is_none());
        assert_eq!((elided.orders.len(), elided.orders[6].0), (11, 7));
        let (_, _, cut) = blocks("Normal: 2*4kB 3*8k").unwrap();
        assert!(!cut.is_whole() && cut.orders.len() == 1);
        assert_eq!(
            reserve("lowmem_reserve[]: 0 0 72057594037927935"),
            Some(vec![0, 0, 72057594037927935])
        );
        assert_eq!(
            zone("Normal free:99999999999999999999999kB")
                .unwrap()
                .kib("free"),
            Some(u64::MAX)
        );
    }
}
