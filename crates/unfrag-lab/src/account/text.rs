//! An account as text: first what no counter has, then every use, then counters beside page flags.
//!
//! Invariant: every number has its unit; what is not known is said, and names of an input cannot control the terminal.

use super::answer::{Account, Basis, Bounds, Extent, ZoneFrames};
use super::growth::{Answer, Growth};
use super::sites::SiteGrowth;
use super::uses::Use;
use crate::report::columns;
use crate::report::number::{bytes, duration, percent, thousands};
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::fmt::Write as _;

/// Places of the kernel's source that a short answer has.
const SITES: usize = 10;

/// The answer. `all`: with every place of the source, and blocks by order.
pub fn render(answer: &Answer, all: bool, screen: &Screen) -> Text {
    let (a, growth) = (&answer.account, answer.growth.as_ref());
    let mut out = Text::new();
    let kernel = match &a.kernel_release {
        Some(release) => format!(", Linux {}", printable(release)),
        None => String::new(),
    };
    let source = match a.source.as_str() {
        "/proc" => "this host",
        other => other,
    };
    let by = match a.basis {
        Basis::PageFlags => "each counted once, by page flags",
        Basis::Counters => "by the kernel's counters alone",
    };
    let _ = writeln!(
        out,
        "{}{kernel}: {} in {} frames of {}, {by}",
        printable(source),
        bytes(a.bytes(a.exist)),
        thousands(a.exist),
        bytes(a.page_size)
    );
    let mut paragraph = |text: &str| wrapped(&mut out, Place::Hanging("  "), screen.width, text);
    paragraph(&not_counted(a));
    if let Some(growth) = growth {
        paragraph(&grew(a, growth));
    }
    if let Some(drift) = a.drift {
        let frames = |n: Option<u64>| n.map_or("not known".to_owned(), thousands);
        let off = match a.off_by {
            Some(off) if off > 0 => format!(
                " What is in no counter may be off by {}.",
                bytes(a.bytes(off))
            ),
            _ => String::new(),
        };
        paragraph(&format!(
            "NOT OF ONE MOMENT: reading the flags took {}; meanwhile {} frames were allocated and {} freed. Counters are the mean of before and after.{off}",
            duration(drift.seconds),
            frames(drift.allocated),
            frames(drift.freed)
        ));
    }
    if let (None, Some(off)) = (a.drift, a.off_by.filter(|n| *n > 0)) {
        paragraph(&format!(
            "NOT OF ONE MOMENT: page flags and counters of a copy are read one after the other. They differ by {}, so what is in no counter may be off by as much.",
            bytes(a.bytes(off))
        ));
    }
    uses(a, growth, &mut out);
    compared(a, screen, &mut out);
    zones(a, screen, &mut out);
    if all {
        by_order(a, screen, &mut out);
    }
    sites(a, growth, all, screen, &mut out);
    if !a.unread.is_empty() || !a.notes.is_empty() {
        out.push('\n');
    }
    for unread in &a.unread {
        let text = format!("{}: {}", printable(&unread.file), printable(&unread.why));
        wrapped(&mut out, Place::Hanging("  "), screen.width, &text);
    }
    for note in &a.notes {
        let text = format!("note: {}", printable(note));
        wrapped(&mut out, Place::Hanging("  "), screen.width, &text);
    }
    out
}

/// A size between two bounds.
fn between(a: &Account, bounds: Bounds) -> String {
    let [low, likely, high] =
        [bounds.at_least, bounds.likely, bounds.at_most].map(|n| bytes(a.bytes(n)));
    match low == high {
        true => likely,
        false => format!("{likely} ({low} to {high})"),
    }
}

fn not_counted(a: &Account) -> String {
    let all = a.exist.max(1) as f64;
    let of = percent(a.in_no_counter.likely as f64 / all);
    let how = match a.basis {
        Basis::PageFlags => "",
        Basis::Counters => {
            " Without page flags that is what is left of all memory, so what counters leave out or count twice is in it."
        }
    };
    format!(
        "IN NO COUNTER: {}, {of} of all. These are pages of the kernel that none of its counters has: buffers of drivers, pipes and sockets, leaks.{how}",
        between(a, a.in_no_counter)
    )
}

/// Frames more or fewer, as a size.
fn signed(a: &Account, frames: i64) -> String {
    let sign = if frames < 0 { '-' } else { '+' };
    format!("{sign}{}", bytes(a.bytes(frames.unsigned_abs())))
}

fn grew(a: &Account, growth: &Growth) -> String {
    let over = match growth.seconds {
        Some(s) => format!(" in {}", duration(s)),
        None => String::new(),
    };
    let off = match growth.give_or_take {
        Some(0) => String::new(),
        Some(n) => format!(" (give or take {})", bytes(a.bytes(n))),
        None => " (by how much that may be off is not known)".to_owned(),
    };
    let mut most: Vec<_> = growth.uses.iter().filter(|u| u.frames != 0).collect();
    most.sort_by_key(|u| std::cmp::Reverse(u.frames.unsigned_abs()));
    let most: Vec<String> = most
        .iter()
        .filter(|u| u.kind != Use::Kernel)
        .take(3)
        .map(|u| format!("{} {}", u.kind.name(), signed(a, u.frames)))
        .collect();
    let others = match most.is_empty() {
        true => String::new(),
        false => format!("; {}", most.join("; ")),
    };
    format!(
        "GREW{over}, since {}: in no counter {}{off}{others}.",
        printable(&growth.since),
        signed(a, growth.in_no_counter)
    )
}

fn uses(a: &Account, growth: Option<&Growth>, out: &mut Text) {
    let all = a.exist.max(1) as f64;
    let mut rows = vec![
        vec!["used for", "frames", "size", "share"]
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    ];
    if growth.is_some() {
        rows[0].push("grew".into());
    }
    let mut push = |name: String, frames: u64, grown: Option<i64>| {
        let mut row = vec![
            name,
            thousands(frames),
            bytes(a.bytes(frames)),
            percent(frames as f64 / all),
        ];
        if growth.is_some() {
            row.push(match grown {
                Some(0) | None => String::new(),
                Some(n) => signed(a, n),
            });
        }
        rows.push(row);
    };
    for u in &a.uses {
        let grown = growth.and_then(|g| g.uses.iter().find(|x| x.kind == u.kind));
        let grown = grown.map(|g| g.frames);
        if u.frames == 0 && grown.is_none_or(|g| g == 0) {
            continue;
        }
        push(u.kind.name().to_owned(), u.frames, grown);
        if u.kind == Use::Kernel {
            for part in &a.kernel {
                push(format!("  {}", part.part), part.frames, None);
            }
            let grown = growth.map(|g| g.in_no_counter);
            push("  in no counter".into(), a.in_no_counter.likely, grown);
        }
    }
    let all_of = match a.extent {
        Extent::All => "all that exist",
        Extent::ListedZones => "all of the zones that zoneinfo lists",
        Extent::MemTotal => "all of MemTotal",
    };
    push(all_of.into(), a.exist, None);
    out.push('\n');
    columns::push(out, "  ", 1, &rows);
    let mut across = vec![];
    let mut tell = |what: &str, n: Option<u64>| {
        if let Some(n) = n.filter(|n| *n > 0) {
            across.push(format!("{what} {}", bytes(a.bytes(n))));
        }
    };
    tell("unevictable", a.across.unevictable);
    tell("locked by processes", a.across.mlocked);
    tell("in CMA areas", a.across.cma);
    tell("free in CMA areas", a.across.cma_free);
    if !across.is_empty() {
        let _ = writeln!(out, "  of all these: {}", across.join(", "));
    }
    if let (Some(spanned), Some(holes)) = (a.spanned, a.holes) {
        let _ = writeln!(
            out,
            "  zones span {} frames, of which {} do not exist (holes)",
            thousands(spanned),
            thousands(holes)
        );
    }
}

fn compared(a: &Account, screen: &Screen, out: &mut Text) {
    if a.compared.is_empty() {
        return;
    }
    head(
        out,
        "What page flags show, and what the kernel's counters say (frames)",
        screen,
    );
    let mut rows = vec![
        ["", "counter", "page flags", "counted", "difference"]
            .map(String::from)
            .to_vec(),
    ];
    for c in &a.compared {
        rows.push(vec![
            c.what.to_owned(),
            c.counter.to_owned(),
            thousands(c.frames),
            thousands(c.counted),
            match c.difference {
                0 => "0".into(),
                n if n < 0 => format!("-{}", thousands(n.unsigned_abs())),
                n => format!("+{}", thousands(n.unsigned_abs())),
            },
        ]);
    }
    columns::push(out, "  ", 2, &rows);
    let text = "A difference is what the counter has and flags do not show, or the other way round: large blocks of kmalloc are counted as slab and have no mark; anonymous memory that nobody maps is not counted; huge pages that are mapped in pieces are not counted as such; and what changed while the flags were read.";
    wrapped(out, Place::Each("  "), screen.width, text);
}

fn zones(a: &Account, screen: &Screen, out: &mut Text) {
    if a.zones.is_empty() {
        return;
    }
    head(out, "By zone", screen);
    let mut rows = vec![
        [
            "node",
            "zone",
            "exist",
            "free",
            "cache",
            "shared",
            "anonymous",
            "slab",
            "kernel",
            "in no counter",
        ]
        .map(String::from)
        .to_vec(),
    ];
    for z in a.nodes.iter().chain(&a.zones) {
        let of = |kinds: &[Use]| {
            let of = z.uses.iter().filter(|u| kinds.contains(&u.kind));
            bytes(a.bytes(of.map(|u| u.frames).sum()))
        };
        rows.push(vec![
            z.node.to_string(),
            name(z),
            bytes(a.bytes(z.exist)),
            of(&[Use::Free, Use::PerCpu]),
            of(&[Use::CleanCache, Use::DirtyCache, Use::Writeback]),
            of(&[Use::Shmem]),
            of(&[Use::Anon, Use::AnonLarge, Use::AnonHuge]),
            of(&[Use::Slab]),
            of(&[Use::Kernel]),
            format!(
                "{} to {}",
                bytes(a.bytes(z.in_no_counter.at_least)),
                bytes(a.bytes(z.in_no_counter.at_most))
            ),
        ]);
    }
    columns::push(out, "  ", 2, &rows);
    let text = "vmalloc, per-CPU areas and some others are counted for the whole host alone, so what no counter has of a zone is known by its bounds.";
    wrapped(out, Place::Each("  "), screen.width, text);
}

fn name(z: &ZoneFrames) -> String {
    match z.zone.as_str() {
        "" => "all zones".into(),
        zone => printable(zone),
    }
}

fn by_order(a: &Account, screen: &Screen, out: &mut Text) {
    let kinds = [
        ("anonymous", &a.anon_by_order),
        ("shared", &a.shmem_by_order),
        ("page cache", &a.cache_by_order),
    ];
    let most = kinds.iter().filter_map(|(_, of)| of.keys().max()).max();
    let Some(most) = most else { return };
    head(out, "By the size of the blocks that it lies in", screen);
    let mut rows = vec![
        ["block", "anonymous", "shared", "page cache"]
            .map(String::from)
            .to_vec(),
    ];
    for order in 0..=*most {
        let mut row = vec![bytes(a.page_size << order)];
        row.extend(kinds.map(|(_, of)| match of.get(&order) {
            Some(n) => bytes(a.bytes(*n)),
            None => "-".into(),
        }));
        rows.push(row);
    }
    columns::push(out, "  ", 1, &rows);
}

fn sites(a: &Account, growth: Option<&Growth>, all: bool, screen: &Screen, out: &mut Text) {
    let most = if all { usize::MAX } else { SITES };
    let grown = growth.and_then(|g| g.call_sites.as_ref());
    if let Some(grown) = grown {
        head(
            out,
            "Places of the kernel's source that grew most (allocinfo)",
            screen,
        );
        let more: Vec<&SiteGrowth> = grown.iter().filter(|s| s.grown > 0).collect();
        let mut rows = vec![["place", "grew", "holds"].map(String::from).to_vec()];
        for s in more.iter().take(most) {
            let size = |n: i64| bytes(n.unsigned_abs());
            rows.push(vec![printable(&s.place), size(s.grown), size(s.bytes)]);
        }
        columns::push(out, "  ", 1, &rows);
        left_out(out, more.len(), most);
    }
    let Some(sites) = a.call_sites.as_ref().filter(|_| grown.is_none()) else {
        return;
    };
    head(
        out,
        "Places of the kernel's source that hold most (allocinfo)",
        screen,
    );
    let mut rows = vec![["place", "holds", "allocations"].map(String::from).to_vec()];
    for s in sites.iter().take(most) {
        rows.push(vec![
            printable(&s.place),
            bytes(s.bytes.unsigned_abs()),
            thousands(s.calls),
        ]);
    }
    columns::push(out, "  ", 1, &rows);
    left_out(out, sites.len(), most);
    let text = "Slab pages and the objects in them are both counted, each at its own place.";
    wrapped(out, Place::Each("  "), screen.width, text);
}

fn left_out(out: &mut Text, n: usize, most: usize) {
    if n > most {
        let _ = writeln!(
            out,
            "  and {} more; --all shows them",
            thousands((n - most) as u64)
        );
    }
}

fn head(out: &mut Text, text: &str, screen: &Screen) {
    out.push('\n');
    out.push_head(screen, text);
}
