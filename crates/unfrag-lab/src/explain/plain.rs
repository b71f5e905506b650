//! The verdict for somebody who does not know the words of memory management: one sentence with the numbers that decide.
//!
//! Invariant: a number in it is one of the zones' rows, or of what holds memory.

use super::answer::Held;
use super::case::{Case, Finding};
use super::reasons::must_keep;
use super::sentences::{kib, name, size};
use super::verdict::Verdict;
use super::zones::Judged;
use crate::report::number::{bytes, thousands};

/// What happened, in one sentence; `meaning` where the verdict needs no other words.
pub fn plain(case: &Case, order: Option<i32>, meaning: &str, held: &[Held]) -> String {
    let size = size(case, order);
    let named = |test: &dyn Fn(&Judged) -> bool| {
        let names: Vec<String> = case.zones.iter().filter(|z| test(z)).map(name).collect();
        names.join(", ")
    };
    let of_zones = |how: &dyn Fn(&Judged) -> bool| -> Vec<&Judged> {
        case.zones
            .iter()
            .filter(|z| z.is_allowed && how(z))
            .collect()
    };
    match case.verdict {
        Some(Verdict::Fragmented) => {
            let rooms = of_zones(&|z| z.has_room == Some(true));
            let sum = |of: &dyn Fn(&Judged) -> Option<u64>| {
                let each: Option<Vec<u64>> = rooms.iter().map(|z| of(z)).collect();
                each.map(|all| all.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)))
            };
            let free = sum(&|z| z.answer.usable_kib);
            let keep = sum(&must_keep);
            let largest = rooms.iter().filter_map(|z| z.answer.largest_usable_order);
            let pieces =
                largest
                    .max()
                    .map_or("but no piece of it was for this request".into(), |o| {
                        format!(
                            "but in pieces of {} at most",
                            self::size(case, Some(o.into()))
                        )
                    });
            let keep = keep.map_or(String::new(), |k| {
                format!(", more than the {} that must be left there", kib(Some(k)))
            });
            format!(
                "memory was fragmented, not short: {} were free for it in {}{keep}, {pieces}, and it asked for {size}{}.",
                kib(free),
                named(&|z| z.is_allowed && z.has_room == Some(true)),
                had_to_stay(case),
            )
        }
        Some(Verdict::Marks) => format!(
            "a free block of {size} was there in {}, but the kernel may not take it: less would be left than it must keep{}.",
            named(&|z| z.is_allowed
                && z.has_block == Some(true)
                && z.passes_unprotected == Some(false)),
            had_to_stay(case),
        ),
        Some(Verdict::Protected) => format!(
            "memory was free in {}, but the kernel keeps it for requests that can use no other zone (vm.lowmem_reserve_ratio){}.",
            named(&|z| z.is_allowed && z.has_room_unprotected == Some(true)),
            match short_ones(case, |z| z.has_room_unprotected == Some(true)).as_slice() {
                [] => String::new(),
                short => format!("; too little was free in {}", few(case, short)),
            },
        ),
        Some(Verdict::Zone) => format!(
            "memory was free only in {}, where this request may not take any{}.",
            named(&|z| !z.is_allowed
                && z.has_any_block == Some(true)
                && z.is_above_min == Some(true)),
            match case.zones.iter().any(|z| z.is_allowed) {
                true => "; the zones that it may use were short",
                false => "",
            }
        ),
        Some(Verdict::Short) => short(case, held),
        Some(Verdict::Manual) => {
            "nothing failed: somebody ran the OOM killer by hand (sysrq-f).".into()
        }
        Some(Verdict::Reserved) if case.finding != Finding::WholeReserve => {
            let meaning = meaning.trim_start_matches("Memory is free, but ");
            format!(
                "memory was free, but {}{}.",
                lower(meaning.trim_end_matches('.')),
                had_to_stay(case),
            )
        }
        _ => lower(meaning),
    }
}

/// Zones of a node by their names alone; of several nodes with these. At most three of them.
fn few(case: &Case, zones: &[&Judged]) -> String {
    /// Names in a sentence.
    const MOST: usize = 3;
    let is_one_node = zones
        .iter()
        .all(|z| z.answer.node == case.zones[0].answer.node);
    let named = zones.iter().take(MOST).map(|z| match is_one_node {
        true => z.answer.zone.clone(),
        false => name(z),
    });
    let mut named: Vec<String> = named.collect();
    if let more @ 1.. = zones.len().saturating_sub(MOST) {
        named.push(format!("{more} more"));
    }
    match named.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => named.concat(),
    }
}

/// The zones that were tried and had too little, but for those that a sentence names.
fn short_ones<'c>(case: &'c Case, is_named: impl Fn(&Judged) -> bool) -> Vec<&'c Judged> {
    let tried = case.zones.iter().filter(|z| z.is_allowed);
    tried
        .filter(|z| z.has_room == Some(false) && !is_named(z))
        .collect()
}

/// What was free in zones that had too little, as a clause; empty if there are none.
fn had_to_stay(case: &Case) -> String {
    match short_ones(case, |_| false).as_slice() {
        [] => String::new(),
        short => format!("; what was free in {} had to stay there", few(case, short)),
    }
}

/// Which zones beside those that a sentence names were short, as a clause; empty if none.
fn were_short(case: &Case, is_named: impl Fn(&Judged) -> bool) -> String {
    match short_ones(case, is_named).as_slice() {
        [] => String::new(),
        short @ [_] => format!("; {} was short too", few(case, short)),
        short => format!("; {} were short too", few(case, short)),
    }
}

fn short(case: &Case, held: &[Held]) -> String {
    let exact = |n: Option<u64>| {
        n.map_or("an unknown amount".to_owned(), |k| {
            format!("{} KiB", thousands(k))
        })
    };
    // Where all zones are short, the largest is the one that tells.
    let largest = case.zones.iter().filter(|z| z.is_allowed);
    let zone = largest
        .max_by_key(|z| z.size_kib)
        .map_or(String::new(), |z| {
            let has = exact(z.answer.usable_kib.or(z.at_most_kib));
            let most = if z.answer.usable_kib.is_none() {
                "at most "
            } else {
                ""
            };
            format!(
                ": {} had {most}{has} free for it, and must keep {}{}",
                name(z),
                exact(must_keep(z)),
                were_short(case, |other| name(other) == name(z))
            )
        });
    let by = held.iter().find(|h| h.kind == "counter");
    let by = by.map_or(String::new(), |h| {
        let share = h
            .per_mille
            .map_or(String::new(), |p| format!(" ({}.{} %)", p / 10, p % 10));
        let is_counted = !h.name.starts_with("in ");
        // More than half is most, and what has no share may be any part.
        let what = match (h.per_mille.is_some_and(|p| p > 500), is_counted) {
            (true, true) => "most is held by",
            (true, false) => "most is",
            (false, true) => "the largest counter of what is held is",
            (false, false) => "the largest part is",
        };
        format!("; {what} {}: {}{share}", h.name, bytes(h.bytes))
    });
    format!("memory was used up, not fragmented{zone}{by}.")
}

/// A sentence that goes on after a head.
fn lower(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next();
    // A word of capitals stays one.
    let is_word =
        chars.clone().next().is_some_and(char::is_lowercase) || sentence.starts_with("A ");
    match first.filter(|_| is_word) {
        Some(c) => c.to_lowercase().chain(chars).collect(),
        None => sentence.to_owned(),
    }
}
