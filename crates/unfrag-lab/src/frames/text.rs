//! The answer as text: frames first, then huge pages and what would make more, then each mapping.
//!
//! Invariant: every number has its unit; what may not be seen is said; names cannot control the terminal.

use super::answer::Answer;
use super::mapping::MappingFrames;
use crate::report::columns;
use crate::report::number::{bytes, counted, percent, thousands};
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::fmt::Write as _;

/// Mappings that a short answer has.
const MAPPINGS: usize = 12;
/// Widest name of a mapping.
const NAME: usize = 32;

/// The answer. `all`: with every mapping.
pub fn render(a: &Answer, all: bool, screen: &Screen) -> Text {
    let mut out = Text::new();
    let size = |pages: u64| bytes(pages.saturating_mul(a.sizes.page));
    let huge = bytes(a.sizes.huge_bytes());
    let swapped = match a.swapped {
        0 => String::new(),
        n => format!(", {} swapped out", size(n)),
    };
    let page = bytes(a.sizes.page);
    let (of, mapped) = (printable(&a.of), thousands(a.present));
    // What several mappings or processes show is one frame.
    let shared = a.frames.pages.filter(|n| *n != a.present);
    let _ = match shared {
        Some(frames) => writeln!(
            out,
            "{of}: {} in memory ({} frames of {page}, each counted once; mapped as {mapped} pages{swapped})",
            size(frames),
            thousands(frames)
        ),
        None if a.frames.pages.is_none() && a.processes.len() > 1 => writeln!(
            out,
            "{of}: {} mapped ({mapped} pages of {page}; what several processes share counts for each{swapped})",
            size(a.present)
        ),
        None => writeln!(
            out,
            "{of}: {} in memory ({mapped} pages of {page}{swapped})",
            size(a.present)
        ),
    };
    let mut paragraph = |text: &str| wrapped(&mut out, Place::Hanging("  "), screen.width, text);
    let f = &a.frames;
    if let (Some(n), Some(few), Some(gib), Some(few_gib), Some(moves)) =
        (f.huge, f.huge_fewest, f.gib, f.gib_fewest, f.moves)
    {
        paragraph(&format!(
            "FRAMES: it lies in {} frames of {huge}, and could in {}; in {} of 1 GiB, and could in {}. To bring it into the fewest of {huge}, compaction would have to move {} ({}), at least.",
            thousands(n),
            thousands(few),
            thousands(gib),
            thousands(few_gib),
            counted(moves, "page"),
            size(moves)
        ));
    } else {
        paragraph("FRAMES: not known.");
    }
    let share = a.huge_bytes as f64 / (a.present.max(1) * a.sizes.page) as f64;
    paragraph(&format!(
        "HUGE PAGES: they map {} of {} ({}).",
        bytes(a.huge_bytes),
        match shared {
            Some(_) => format!("{} that are mapped", size(a.present)),
            None => "it".into(),
        },
        percent(share)
    ));
    let c = &a.collapse;
    let mut would = format!(
        "MADV_COLLAPSE of all of it would make {} of {huge}, if they can be had: {} then. It copies {}, fills {} with zeroes (memory that it takes more)",
        match c.made {
            1 => "1 huge page".into(),
            n => format!("{} huge pages", thousands(n)),
        },
        thousands(c.huge_after),
        size(c.copied_pages),
        size(c.filled_pages)
    );
    match c.swapped_pages {
        0 => would.push('.'),
        n => {
            let _ = write!(would, " and reads {} from swap.", size(n));
        }
    }
    if c.unknown_pages > 0 {
        let _ = write!(
            would,
            " Of {} in files and other mappings it is not known.",
            size(c.unknown_pages)
        );
    }
    if c.unknown_ranges > 0 {
        let _ = write!(
            would,
            " Nor of {} that are swapped out or shared as a whole, or have marks that may be no swap.",
            counted(c.unknown_ranges, "range")
        );
    }
    paragraph(&would);
    let r = &a.resume;
    paragraph(&format!(
        "MAPPED ANEW, mapping by mapping, as a virtual machine that is restored from its snapshot, it faults {} times in pages of {} if all of it is used, {} times in {huge}, {} in 1 GiB.",
        thousands(r.pages),
        bytes(a.sizes.page),
        thousands(r.huge),
        thousands(r.gib)
    ));
    by_order(a, screen, &mut out);
    mappings(a, all, screen, &mut out);
    if !a.notes.is_empty() {
        out.push('\n');
    }
    for note in &a.notes {
        let text = format!("note: {}", printable(note));
        wrapped(&mut out, Place::Hanging("  "), screen.width, &text);
    }
    out
}

fn by_order(a: &Answer, screen: &Screen, out: &mut Text) {
    let Some(most) = a.runs.keys().chain(a.folios.keys()).max() else {
        return;
    };
    head(out, "By the size of the blocks that it lies in", screen);
    let mut rows = vec![
        [
            "block",
            "consecutive, aligned",
            "share",
            "one folio",
            "share",
        ]
        .map(String::from)
        .to_vec(),
    ];
    let all = a.present.max(1) as f64;
    for order in 0..=*most {
        let mut row = vec![bytes(a.sizes.page << order)];
        for of in [&a.runs, &a.folios] {
            let pages = of.get(&order).copied();
            row.push(pages.map_or("-".into(), |n| bytes(n * a.sizes.page)));
            row.push(pages.map_or("-".into(), |n| percent(n as f64 / all)));
        }
        rows.push(row);
    }
    columns::push(out, "  ", 1, &rows);
    let text = "Consecutive: addresses and frames are both consecutive and aligned to the block, as a TLB can use it. A folio is what the kernel allocated as one block (mTHP, huge page).";
    wrapped(out, Place::Each("  "), screen.width, text);
}

fn mappings(a: &Answer, all: bool, screen: &Screen, out: &mut Text) {
    let size = |pages: u64| bytes(pages.saturating_mul(a.sizes.page));
    let is_one = a.processes.len() == 1;
    let mut each: Vec<(u32, &MappingFrames)> = a
        .processes
        .iter()
        .flat_map(|p| p.mappings.iter().map(|m| (p.pid, m)))
        .collect();
    if !all {
        each.sort_by_key(|(_, m)| std::cmp::Reverse(m.present));
    }
    let title = match all {
        true => "By mapping",
        false => "The largest mappings",
    };
    head(out, title, screen);
    let huge = bytes(a.sizes.huge_bytes());
    let frames = format!("frames of {huge}");
    let mut header = vec!["from", "name"];
    if !is_one {
        header.insert(0, "pid");
    }
    let words = header.len();
    header.extend(["in memory", &frames, "fewest", "huge", "collapse makes"]);
    let mut rows = vec![header.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let number = |n: Option<u64>| n.map_or("-".to_owned(), thousands);
    let most = if all { usize::MAX } else { MAPPINGS };
    for (pid, m) in each.iter().take(most) {
        let mut row = vec![m.begin.clone(), name(m)];
        if !is_one {
            row.insert(0, pid.to_string());
        }
        let made = m.collapse.huge_after.map(|n| n - m.collapse.huge_now);
        row.extend([
            size(m.present),
            number(m.frames.huge),
            number(m.frames.huge_fewest),
            bytes(m.huge_bytes),
            match (made, m.collapse.reason) {
                (None, _) => "not known".into(),
                (Some(0), Some(reason)) => reason.name().into(),
                (Some(n), _) => thousands(n),
            },
        ]);
        rows.push(row);
    }
    columns::push(out, "  ", words, &rows);
    if each.len() > most {
        let _ = writeln!(
            out,
            "  and {} more; --all shows them",
            thousands((each.len() - most) as u64)
        );
    }
}

/// What a mapping is of; the end of a long path says more than its beginning.
fn name(m: &MappingFrames) -> String {
    let name = match m.name.as_str() {
        "" => "anonymous".to_owned(),
        name => printable(name),
    };
    let n = name.chars().count();
    match n > NAME {
        true => std::iter::once('…')
            .chain(name.chars().skip(n - NAME + 1))
            .collect(),
        false => name,
    }
}

fn head(out: &mut Text, text: &str, screen: &Screen) {
    out.push('\n');
    out.push_head(screen, text);
}
