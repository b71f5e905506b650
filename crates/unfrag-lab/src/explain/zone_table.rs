//! The zones of a failure as a table.
//!
//! Invariant: a column says what it is; one that is the same in all rows and says nothing is left out.

use super::answer::{Failure, ZoneAnswer};
use crate::report::columns;
use crate::report::number::{bytes, thousands};

/// A column: its head, and a zone's cell.
type Column<'a> = (&'static str, Box<dyn Fn(&ZoneAnswer) -> String + 'a>);

/// Appends it, if there are zones.
pub fn push(out: &mut String, f: &Failure) {
    if f.zones.is_empty() {
        return;
    }
    let any = |test: &dyn Fn(&ZoneAnswer) -> bool| f.zones.iter().any(test);
    let mut columns: Vec<Column> = vec![];
    let mut left = 1;
    if any(&|z| z.node != f.zones[0].node) {
        columns.push(("node", Box::new(|z| z.node.to_string())));
        left = 2;
    }
    columns.push(("zone", Box::new(|z| z.zone.clone())));
    columns.push(("free KiB", Box::new(|z| number(z.free_kib))));
    if any(&|z| z.usable_kib != z.free_kib) {
        columns.push(("free for it KiB", Box::new(|z| number(z.usable_kib))));
    }
    columns.push(("must keep KiB", Box::new(|z| number(must_keep(z)))));
    if any(&|z| z.boost_kib.is_some_and(|k| k > 0)) {
        columns.push(("of that boost KiB", Box::new(|z| number(z.boost_kib))));
    }
    if any(&|z| z.protection_kib != Some(0)) {
        columns.push((
            "of that for others KiB",
            Box::new(|z| number(z.protection_kib)),
        ));
    }
    columns.push((
        "largest free block it may take",
        Box::new(|z| block(z, z.largest_usable_order, f.page_bytes)),
    ));
    if any(&|z| z.largest_order != z.largest_usable_order) {
        columns.push((
            "largest free block",
            Box::new(|z| block(z, z.largest_order, f.page_bytes)),
        ));
    }
    let mut rows: Vec<Vec<String>> =
        vec![columns.iter().map(|(head, _)| (*head).to_owned()).collect()];
    rows.extend(
        f.zones
            .iter()
            .map(|z| columns.iter().map(|(_, cell)| cell(z)).collect()),
    );
    let mut table = String::new();
    columns::push(&mut table, "   ", left, &rows);
    let says = f.zones.iter().map(|z| z.why.as_deref().unwrap_or(""));
    let says = std::iter::once("").chain(says);
    for (line, why) in table.lines().zip(says) {
        let line = format!("{line}  {why}");
        *out += line.trim_end();
        out.push('\n');
    }
}

fn number(n: Option<u64>) -> String {
    n.map_or("?".to_owned(), thousands)
}

fn must_keep(z: &ZoneAnswer) -> Option<u64> {
    Some(z.mark_kib?.saturating_add(z.protection_kib?))
}

fn block(z: &ZoneAnswer, order: Option<u8>, page_bytes: Option<u64>) -> String {
    match (order, page_bytes) {
        (None, _) if !z.blocks_whole => "?".to_owned(),
        (Some(o), Some(page)) if o < 40 => bytes(page << o),
        (Some(o), _) => format!("order {o}"),
        (None, _) => "-".to_owned(),
    }
}
