//! The answer for people.

use super::answer::{Explanation, Failure, ZoneAnswer};
use super::held;
use super::one_line;
use crate::report::columns;
use crate::report::number::{bytes, thousands};
use crate::report::screen::Text;

/// Failures that are shown in full; of more the rest is a line each.
const IN_FULL: usize = 20;
/// Lines not understood that are shown.
const MOST_SKIPPED: usize = 10;

/// The whole answer. Nothing of the log in it controls the terminal.
pub fn render(e: &Explanation) -> Text {
    whole(e).into()
}

fn whole(e: &Explanation) -> String {
    let mut out = String::new();
    if e.reports.is_empty() {
        out += "No report of a failed allocation, of the OOM killer or of memory is in it.\n";
    }
    if e.reports.len() > 1 {
        let total: u64 = e.reports.iter().map(|f| f.count).sum();
        out += &format!(
            "{} reports, {} of them different.\n\n",
            thousands(total),
            e.reports.len()
        );
    }
    for (i, f) in e.reports.iter().enumerate() {
        if i == IN_FULL {
            out += "More of them, a line each:\n";
        }
        if i < IN_FULL {
            failure(&mut out, i + 1, f);
        } else {
            out += &format!(
                "{:>4}. {}: {}\n",
                i + 1,
                headline(f),
                f.verdict.unwrap_or("no failure")
            );
        }
    }
    if !e.skipped.is_empty() {
        out += "Not understood:\n";
        for s in e.skipped.iter().take(MOST_SKIPPED) {
            out += &format!("  line {}: {}\n", s.line, s.why);
        }
        if e.skipped.len() > MOST_SKIPPED {
            out += &format!(
                "  and {} more lines; --json lists them\n",
                e.skipped.len() - MOST_SKIPPED
            );
        }
    }
    for note in &e.notes {
        out += &format!("note: {note}\n");
    }
    out
}

fn headline(f: &Failure) -> String {
    let who = f.task.as_deref().unwrap_or("a task without a name");
    let what = match (f.bytes, f.order) {
        // Pages of a virtual request need not be in a row.
        (Some(b), Some(0)) if f.kind == "vmalloc" => bytes(b),
        (_, Some(-1)) => "no memory".to_owned(),
        (Some(b), Some(o)) => format!("{} (order {o})", bytes(b)),
        (Some(b), None) => bytes(b),
        (None, Some(o)) => format!("a block of order {o}"),
        (None, None) => "memory".to_owned(),
    };
    let text = match f.kind {
        "oom" if f.is_fault => format!("the OOM killer ran: a page fault of {who} failed"),
        "oom" => format!("the OOM killer ran: {who} asked for {what}"),
        "stall" => format!("{who} waited for {what}"),
        "slab" => format!(
            "the cache {} got no pages: {what}",
            f.cache.as_deref().unwrap_or("?")
        ),
        "vmalloc" => format!("virtual memory failed: {who} asked for {what}"),
        "cma" => "a contiguous memory area gave no range".to_owned(),
        "show-memory" => "a report of memory".to_owned(),
        kind => match one_line::title(kind) {
            Some(title) => title.to_owned(),
            None => format!("allocation failed: {who} asked for {what}"),
        },
    };
    match f.count {
        1 => text,
        n => format!("{text}, {} times", thousands(n)),
    }
}

fn failure(out: &mut String, number: usize, f: &Failure) {
    *out += &format!("{number}. {} (line {})\n", headline(f), f.line);
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            *out += &format!("   {name:<9}{text}\n");
        }
    };
    let when = match (&f.first, &f.last) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(first), _) => first.clone(),
        _ => String::new(),
    };
    line("verdict", &f.summary);
    line("when", &when);
    if !f.gfp.is_empty() {
        let how = match f.how.as_str() {
            "" => String::new(),
            how => format!(": {how}"),
        };
        line("flags", &format!("{}{how}", f.gfp.join("|")));
    }
    // A message of one line is no report: it has neither a kernel nor rules.
    if !f.rules.is_empty() {
        line("kernel", f.kernel.as_deref().unwrap_or("not in the text"));
    }
    line("rules", &f.rules);
    if f.verdict.is_some() {
        line("why", &f.meaning);
    }
    line("sure", &f.sure);
    for (head, text) in held::lines(&f.held) {
        line(head, &text);
    }
    for note in &f.notes {
        line("note", note);
    }
    zones(out, f);
    if !f.advice.is_empty() {
        *out += "   What would have helped\n";
        for (i, a) in f.advice.iter().enumerate() {
            *out += &format!("   {}. {} ({})\n", i + 1, a.action, a.sure);
            if let Some(command) = &a.command {
                *out += &format!("        {command}\n");
            }
            *out += &format!("      cost: {}\n", a.cost);
        }
    }
    out.push('\n');
}

fn zones(out: &mut String, f: &Failure) {
    if f.zones.is_empty() {
        return;
    }
    let has_boost = f.zones.iter().any(|z| z.boost_kib.is_some_and(|k| k > 0));
    let mut head = vec![
        "node",
        "zone",
        "may use",
        "free KiB",
        "counts KiB",
        "mark KiB",
        "kept KiB",
        "largest open to it",
        "largest",
    ];
    if has_boost {
        head.push("boost KiB");
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
    rows.extend(f.zones.iter().map(|z| row(z, f.page_bytes, has_boost)));
    columns::push(out, "   ", 3, &rows);
}

fn row(z: &ZoneAnswer, page_bytes: Option<u64>, has_boost: bool) -> Vec<String> {
    let number = |n: Option<u64>| n.map_or("?".to_owned(), thousands);
    let block = |o: Option<u8>| match (o, page_bytes) {
        (None, _) if !z.blocks_whole => "?".to_owned(),
        (Some(o), Some(page)) if o < 40 => bytes(page << o),
        (Some(o), _) => format!("order {o}"),
        (None, _) => "-".to_owned(),
    };
    let allowed = match z.allowed {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    };
    let mut cells = vec![
        z.node.to_string(),
        z.zone.clone(),
        allowed.to_owned(),
        number(z.free_kib),
        number(z.usable_kib),
        number(z.mark_kib),
        number(z.protection_kib),
        block(z.largest_usable_order),
        block(z.largest_order),
    ];
    if has_boost {
        cells.push(number(z.boost_kib));
    }
    cells
}
