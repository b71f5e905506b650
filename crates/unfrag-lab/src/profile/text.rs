//! A profile as text.

use super::class::Class;
use super::{Profile, Use};
use crate::report::number::{bytes, counted, thousands};
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::fmt::Write as _;

/// Caches listed, those taken most first.
const CACHES: usize = 12;
/// Programs listed, those that took most pages first.
const PROGRAMS: usize = 16;

/// The whole profile.
pub fn render(p: &Profile, screen: &Screen) -> Text {
    let mut out = Text::new();
    head(p, screen, &mut out);
    pages(&p.all, screen, &mut out);
    files(&p.all, &mut out);
    programs(p, screen, &mut out);
    caches(p, screen, &mut out);
    out
}

fn head(p: &Profile, screen: &Screen, out: &mut Text) {
    let r = &p.recording;
    let mut facts = vec![
        format!("Linux {}", printable(&r.kernel)),
        counted(r.cpus.into(), "CPU"),
    ];
    if r.memory_bytes > 0 {
        facts.push(bytes(r.memory_bytes));
    }
    if !r.date.is_empty() {
        facts.push(printable(&r.date));
    }
    facts.push(counted(r.events, "event"));
    if r.lost_events > 0 {
        facts.push(format!("{} lost", thousands(r.lost_events)));
    }
    let facts = facts.join(", ");
    if r.command.is_empty() {
        let _ = writeln!(out, "{}, {facts}", printable(&r.file));
    } else {
        let title = printable(&format!("{}: {}", r.file, r.command));
        let title: String = title.chars().take(screen.width).collect();
        out.push_head(screen, &title);
        let _ = writeln!(out, "{facts}");
    }
    wrapped(out, Place::Hanging("  "), screen.width, &answer(p));
    let all = &p.all;
    let mut facts = vec![format!("{} s", seconds(all.wall_us))];
    if let Some(cpu) = all.cpu_us {
        facts.push(format!("{} s on a CPU", seconds(cpu)));
    }
    if all.processes > 0 {
        let at_most = thousands(all.processes_at_most);
        facts.push(format!(
            "{} processes, at most {at_most} at once",
            thousands(all.processes)
        ));
    } else {
        facts.push("processes not told apart: record with --processes".into());
    }
    let _ = writeln!(out, "{}\n", facts.join(", "));
}

/// Kinds of memory that the first sentence names.
const NAMED: usize = 2;

/// How much memory it took at most, of what kind, and how much it still holds.
fn answer(p: &Profile) -> String {
    let amount = |pages: u64| bytes(pages * u64::from(p.recording.page_bytes));
    let most = p.all.high_water_pages;
    let kinds = p
        .all
        .pages
        .iter()
        .filter(|(class, _)| !class.is_page_cache());
    let mut kinds: Vec<_> = kinds.map(|(c, n)| (c, n.high_water_pages)).collect();
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let kinds: Vec<String> = kinds
        .into_iter()
        .take(NAMED)
        .map(|(class, n)| format!("{} {}", called(*class), amount(n)))
        .collect();
    let of = match kinds.is_empty() {
        true => String::new(),
        false => format!(" (most of it: {})", kinds.join(", ")),
    };
    let held: u64 = p.all.pages.values().map(|n| n.held_pages).sum();
    format!(
        "It took {} pages ({}) at once at most, beside page cache{of}; at the end it holds {} pages ({}), page cache included.",
        thousands(most),
        amount(most),
        thousands(held),
        amount(held)
    )
}

/// What a class is called.
fn called(class: Class) -> &'static str {
    match class {
        Class::Anonymous => "anonymous",
        Class::FileRead => "files read",
        Class::FileWritten => "files written",
        Class::Metadata => "file-system metadata",
        Class::PageTables => "page tables",
        Class::KernelStacks => "kernel stacks",
        Class::SlabReclaimable => "slab, reclaimable",
        Class::SlabUnmovable => "slab",
        Class::Other => "other kernel memory",
    }
}

fn pages(all: &Use, screen: &Screen, out: &mut Text) {
    let names = [
        "taken",
        "at most",
        "own",
        "at exit",
        "others",
        "reclaimed",
        "held",
    ];
    let mut line = format!("{:<21}", "pages");
    for name in names {
        let _ = write!(line, "{name:>10}");
    }
    let _ = write!(line, "{:>13}", "lives ms");
    out.push_head(screen, &line);
    for (class, p) in &all.pages {
        let _ = write!(out, "{:<21}", called(*class));
        let freed = &p.freed_pages;
        for n in [
            p.taken_pages,
            p.high_water_pages,
            freed.running,
            freed.at_exit,
            freed.by_others + freed.unseen,
            freed.reclaimed,
            p.held_pages,
        ] {
            let _ = write!(out, "{:>10}", thousands(n));
        }
        let life = p
            .lifetime_us
            .map_or_else(|| "-".into(), |l| millis(l.median));
        let _ = writeln!(out, "{life:>13}");
    }
    let legend = "Freed: by the process that took them (own), as it ended (at exit), by others or later, or reclaimed by the kernel.";
    wrapped(out, Place::Each("  "), screen.width, legend);
    let larger = all.pages.iter().filter_map(|(class, p)| {
        let orders = p.taken_by_order.len();
        let blocks: u64 = p.taken_by_order.iter().skip(1).sum();
        (blocks > 0).then(|| {
            format!(
                "{} {} (up to order {})",
                called(*class),
                thousands(blocks),
                orders - 1
            )
        })
    });
    let larger: Vec<String> = larger.collect();
    if !larger.is_empty() {
        let text = format!("Blocks larger than a page: {}.", larger.join(", "));
        wrapped(out, Place::Each("  "), screen.width, &text);
    }
}

fn files(all: &Use, out: &mut Text) {
    let f = &all.files;
    let pages = |n: u64| counted(n, "page");
    for (what, n, sizes) in [
        ("read", f.read_files, &f.read_file_pages),
        ("written", f.written_files, &f.written_file_pages),
    ] {
        if n > 0 {
            let _ = writeln!(
                out,
                "{} {what}: median {}, 90 % up to {}, largest {}",
                counted(n, "file"),
                pages(sizes.median),
                pages(sizes.p90),
                pages(sizes.max)
            );
        }
    }
    if f.removed_pages > 0 {
        let _ = writeln!(
            out,
            "{} of page cache removed with their files",
            pages(f.removed_pages)
        );
    }
}

fn programs(p: &Profile, screen: &Screen, out: &mut Text) {
    if p.program.is_empty() {
        return;
    }
    let line = format!(
        "\n{:<20}{:>9}{:>11}{:>10}{:>11}{:>9}{:>8}{:>9}{:>9}",
        "program", "number", "life ms", "CPU ms", "anonymous", "90 %", "tables", "read", "written"
    );
    out.push_head(screen, &line);
    for u in p.program.iter().take(PROGRAMS) {
        let Some(e) = &u.each else { continue };
        let name: String = printable(&u.name).chars().take(19).collect();
        let _ = writeln!(
            out,
            "{name:<20}{:>9}{:>11}{:>10}{:>11}{:>9}{:>8}{:>9}{:>9}",
            thousands(u.processes),
            millis(e.life_us.median),
            e.cpu_us.map_or_else(|| "-".into(), |c| millis(c.median)),
            thousands(e.anonymous_high_water_pages.median),
            thousands(e.anonymous_high_water_pages.p90),
            thousands(e.page_tables_high_water_pages.median),
            thousands(e.file_read_pages.median),
            thousands(e.file_written_pages.median),
        );
    }
    more(p.program.len(), PROGRAMS, out);
}

fn caches(p: &Profile, screen: &Screen, out: &mut Text) {
    if p.all.slab.is_empty() {
        return;
    }
    let line = format!(
        "\n{:<24}{:>8}{:>12}{:>12}{:>12}{:>12}",
        "slab objects", "bytes", "taken", "at most", "freed", "held"
    );
    out.push_head(screen, &line);
    for o in p.all.slab.iter().take(CACHES) {
        let name = match o.cache.strip_prefix("?-") {
            Some(_) => "(not named)".into(),
            None => printable(&o.cache),
        };
        let name: String = name.chars().take(23).collect();
        let _ = write!(out, "{name:<24}{:>8}", thousands(o.object_bytes));
        for n in [o.taken, o.high_water, o.freed, o.held] {
            let _ = write!(out, "{:>12}", thousands(n));
        }
        out.push('\n');
    }
    more(p.all.slab.len(), CACHES, out);
}

fn more(all: usize, shown: usize, out: &mut Text) {
    if all > shown {
        let _ = writeln!(out, "and {} more; --json has all of them", all - shown);
    }
}

/// Seconds with three digits after the point.
fn seconds(us: u64) -> String {
    format!("{}.{:03}", thousands(us / 1_000_000), us / 1000 % 1000)
}

/// Milliseconds with one digit after the point.
fn millis(us: u64) -> String {
    format!("{}.{}", thousands(us / 1000), us / 100 % 10)
}
