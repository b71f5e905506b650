//! pagetypeinfo read line by line: cut off, pasted, or with a section for each node.
//!
//! Invariant: sections of several nodes become one table; a table's columns are matched by name.

use super::super::notes::{Rows, read_lines};
use super::{
    BLOCKS_HEADER, BlockRow, BlockTable, FREE_HEADER, MIXED_HEADER, PageTypeInfo, Scan,
    read_free_row, read_numbers, read_zone,
};

/// The table that rows without a type belong to.
#[derive(Clone, Copy)]
enum Table {
    Blocks,
    Mixed,
}

/// Reads what is understood; `None` if there is no row.
pub(super) fn read(source: &str) -> Option<PageTypeInfo> {
    let mut info = PageTypeInfo::default();
    let mut table: Option<(Table, Vec<String>)> = None;
    let (mut free_rows, mut block_rows) = (Rows::default(), Rows::default());
    let mut sections = 0;
    let notes = read_lines(source, |line, ended| {
        let trimmed = line.trim();
        let text = format!("{trimmed}\n");
        let mut scan = Scan::new("pagetypeinfo", text.as_bytes());
        if let Some(order) = trimmed.strip_prefix("Page block order:") {
            info.pageblock_order = order.trim().parse().ok().filter(|_| ended)?;
            sections += 1;
        } else if let Some(pages) = trimmed.strip_prefix("Pages per block:") {
            info.pages_per_block = pages.trim().parse().ok().filter(|_| ended)?;
        } else if scan.accept(FREE_HEADER) {
            info.orders = read_numbers(&mut scan).ok().filter(|_| ended)?;
        } else if let Some((kind, rest)) = header(trimmed) {
            if !ended {
                return None;
            }
            let names: Vec<String> = rest.split_ascii_whitespace().map(str::to_owned).collect();
            let into = of(&mut info, kind);
            for name in &names {
                if !into.migratetypes.contains(name) {
                    into.migratetypes.push(name.clone());
                    into.rows.iter_mut().for_each(|row| row.blocks.push(0));
                }
            }
            table = Some((kind, names));
        } else if trimmed.contains(", type") {
            let row = read_free_row(&mut scan).ok()?;
            let columns = row.counts.len();
            let few = !ended && columns < info.orders.len();
            if columns == 0 || few || !free_rows.is_whole(line, columns, ended) {
                return None;
            }
            info.free.push(row);
        } else {
            let (node, zone) = read_zone(&mut scan).ok()?;
            let numbers = read_numbers(&mut scan).ok()?;
            let (kind, names) = table.as_ref()?;
            if numbers.len() != names.len() || !block_rows.is_whole(line, numbers.len(), ended) {
                return None;
            }
            let into = of(&mut info, *kind);
            let mut blocks = vec![0; into.migratetypes.len()];
            for (name, number) in names.iter().zip(numbers) {
                let column = into.migratetypes.iter().position(|m| m == name)?;
                blocks[column] = number;
            }
            into.rows.push(BlockRow { node, zone, blocks });
        }
        Some(())
    });
    info.by_node = sections > 1;
    info.notes = notes;
    let has_rows = !info.free.is_empty() || !info.blocks.rows.is_empty();
    has_rows.then_some(info)
}

fn header(line: &str) -> Option<(Table, &str)> {
    let blocks = line.strip_prefix(BLOCKS_HEADER.trim_end());
    let mixed = line.strip_prefix(MIXED_HEADER.trim_end());
    blocks
        .map(|rest| (Table::Blocks, rest))
        .or(mixed.map(|rest| (Table::Mixed, rest)))
}

fn of(info: &mut PageTypeInfo, table: Table) -> &mut BlockTable {
    match table {
        Table::Blocks => &mut info.blocks,
        Table::Mixed => info.mixed.get_or_insert_default(),
    }
}
