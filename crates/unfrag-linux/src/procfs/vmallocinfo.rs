//! `/proc/vmallocinfo`: pages of vmalloc by node, which no counter of a node has (`spec: 7.10`).
//!
//! Invariant: only areas whose pages vmalloc took count, as in meminfo's `VmallocUsed`; pages that others took and that are only
//! mapped (`vmap`, `ioremap`) do not.

use crate::error::Error;
use std::collections::BTreeMap;

/// Pages of each node.
///
/// # Errors
/// If a line is no area of addresses; names the byte at which it begins.
pub fn by_node(bytes: &[u8]) -> Result<BTreeMap<u32, u64>, Error> {
    let text = String::from_utf8_lossy(bytes);
    let mut all: BTreeMap<u32, u64> = BTreeMap::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let read = read_line(line, &mut all);
        read.ok_or_else(|| Error::malformed("vmallocinfo: no area of addresses").at(at))?;
        at += line.len() as u64;
    }
    Ok(all)
}

fn read_line(line: &str, all: &mut BTreeMap<u32, u64>) -> Option<()> {
    let mut words = line.split_ascii_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let is_address = |a: &str| a.starts_with("0x");
    if !is_address(begin) || !is_address(end) || words.next()?.parse::<u64>().is_err() {
        return None;
    }
    let words: Vec<&str> = words.collect();
    if !words.contains(&"vmalloc") {
        return Some(());
    }
    let on_node = words.iter().filter_map(|w| {
        let (node, pages) = w.strip_prefix('N')?.split_once('=')?;
        Some((node.parse::<u32>().ok()?, pages.parse::<u64>().ok()?))
    });
    for (node, pages) in on_node {
        let sum = all.entry(node).or_default();
        *sum = sum.saturating_add(pages);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_vmalloc_took_counts() {
        let text = "\
0xffffc90000000000-0xffffc90000005000   20480 irq_init_percpu_irqstack+0xed/0x120 vmap
0xffffc90000005000-0xffffc90000007000    8192 acpi_os_map_iomem+0x1bc/0x1e0 phys=0x00000000000a0000 ioremap
0xffffc90000008000-0xffffc9000000d000   20480 kernel_clone+0xb8/0x400 pages=4 vmalloc N0=3 N1=1
0xffffc90000010000-0xffffc90000015000   20480 kernel_clone+0xb8/0x400 pages=4 vmalloc vpages N1=4
0x00000000c0000000-0x00000000c1000000 16777216 vm_map_ram
0x00000000c2000000-0x00000000c3000000 16777216 unpurged vm_area
";
        let all = by_node(text.as_bytes()).unwrap();
        assert_eq!(all, BTreeMap::from([(0, 3), (1, 5)]));
        let e = by_node(format!("{text}no area\n").as_bytes()).unwrap_err();
        assert_eq!(e.offset, Some(text.len() as u64));
    }
}
