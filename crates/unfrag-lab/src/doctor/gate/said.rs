//! The answer to needs in words, and the commands that carry it out.
//!
//! Invariant: the line has at most [`WIDTH`] signs, and says which means its numbers are of.

use super::answer::{Asked, ByMeans, Kind, Needs, Room, Verdict, verdict};
use super::means::{After, Means};
use super::need::Need;
use crate::doctor::answer::{pool, preparing, short_lists_note};
use crate::doctor::diagnosis::Diagnosis;
use crate::report::number::{bytes, thousands};
use crate::report::screen::printable;
use std::fmt::Write as _;

/// Signs in a line for other programs: what node-problem-detector takes.
pub(super) const WIDTH: usize = 80;

/// The answer.
pub(super) fn answer(d: &Diagnosis, each: Vec<Asked>, after: After) -> Needs {
    let by_means: Vec<ByMeans> = Means::ALL
        .iter()
        .map(|&means| ByMeans {
            means,
            is_allowed: after.allows(means),
            verdict: verdict(&each, means),
        })
        .collect();
    let first = |is: &dyn Fn(&ByMeans) -> bool| by_means.iter().find(|m| is(m)).map(|m| m.means);
    let gives = first(&|m| m.is_allowed && m.verdict == Verdict::Yes);
    let any = first(&|m| m.verdict == Verdict::Yes);
    // Of means that may give it the dearest gives most.
    let open = by_means.iter().rfind(|m| m.verdict == Verdict::Unknown);
    let to_try = any.or(open.map(|m| m.means));
    let is_no = |m: &ByMeans| !m.is_allowed || m.verdict == Verdict::No;
    let verdict = match gives {
        Some(_) => Verdict::Yes,
        None if by_means.iter().all(is_no) => Verdict::No,
        None => Verdict::Unknown,
    };
    let of = gives.unwrap_or(after.most());
    let mut notes = notes(d, &each, verdict);
    if any.is_none() {
        notes.extend(at_boot(d, &shown(&each, verdict, of)));
    }
    notes.extend(d.notes.iter().cloned());
    let mut commands = to_try.map_or(vec![], |means| commands(d, &each, means));
    if verdict == Verdict::Unknown
        && let Some((first, note)) = adding(d)
    {
        commands.insert(0, first);
        notes.insert(0, note);
    }
    let mut answer = sentence(&each, verdict, of, any);
    if let Some(n) = d.memory.added_when_asked()
        && shown(&each, verdict, of)
            .iter()
            .any(|a| verdict == Verdict::Unknown && a.need.bytes > d.huge_page_bytes)
    {
        let _ = write!(
            answer,
            "; the most only if the {} that the kernel adds when asked come in whole pieces",
            bytes(n)
        );
    }
    Needs {
        line: line(&each, verdict, of, d),
        answer,
        commands,
        notes,
        verdict,
        means: gives,
        after,
        by_means,
        each,
    }
}

/// The command by which the kernel adds memory that no zone manages yet, and what to know of it; `None` where there is none.
fn adding(d: &Diagnosis) -> Option<(String, String)> {
    let n = d.memory.added_when_asked()?;
    let (pool, has) = pool(d);
    let all = d
        .huge_pages
        .now
        .or(d.huge_pages.now_at_most)?
        .saturating_add(has?);
    Some((
        format!("pool={pool}; was=$(cat $pool); echo {all} > $pool; echo $was > $pool"),
        format!(
            "the first command has the kernel add its {}, as it asks for all that is free and gives it back: for a moment nothing is left for others; then ask again",
            bytes(n)
        ),
    ))
}

/// What gives needs for certain at boot; `None` where nothing does.
fn at_boot(d: &Diagnosis, needs: &[&Asked]) -> Option<String> {
    const GIB: u64 = 1 << 30;
    let one = |a: &&Asked| {
        let all = a.need.bytes.saturating_mul(a.need.count);
        match a.kind {
            Kind::HugePages => {
                let size = Need::new(1, a.need.bytes).what();
                Some(format!("hugepagesz={size} hugepages={}", a.need.count))
            }
            Kind::Runs if a.need.bytes <= GIB && d.page_size == 4096 => {
                Some(format!("hugepagesz=1G hugepages={}", all.div_ceil(GIB)))
            }
            Kind::Runs => Some(format!("cma={}M", all.div_ceil(1 << 20))),
            Kind::Blocks => None,
        }
    };
    let each: Vec<String> = needs.iter().filter_map(one).collect();
    (!each.is_empty()).then(|| {
        format!(
            "for certain only at boot, on the kernel's command line: {}",
            each.join(" ")
        )
    })
}

/// The names of needs with a number each, as far as they fit into so many signs.
fn listed(each: &[&Asked], room: usize, number: &dyn Fn(&Asked) -> String) -> String {
    let one = |a: &&Asked| match number(a).as_str() {
        "" => a.name.clone(),
        n => format!("{} ({n})", a.name),
    };
    let all: Vec<String> = each.iter().map(one).collect();
    let whole = all.join(", ");
    if whole.chars().count() <= room {
        return whole;
    }
    let more = |n: usize| format!("{} and {} more", all[..n].join(", "), all.len() - n);
    let fitting = (1..all.len())
        .rev()
        .map(more)
        .find(|text| text.chars().count() <= room);
    fitting.unwrap_or_else(|| match all.len() {
        1 => format!("{} pieces", thousands(each[0].need.count)),
        n => format!("{n} needs"),
    })
}

/// The answer in one line.
fn line(each: &[Asked], verdict: Verdict, means: Means, d: &Diagnosis) -> String {
    let begin = word(verdict);
    let end = means.when();
    let used = begin.len() + end.len() + 3;
    let shown = shown(each, verdict, means);
    let number = |a: &Asked| number(verdict, a.rooms[means as usize]);
    // One number reads best at the end.
    let mut line = match shown.as_slice() {
        [one] => format!("{begin}: {} {end} ({})", one.name, number(one)),
        _ => String::new(),
    };
    if line.is_empty() || line.chars().count() > WIDTH {
        line = format!("{begin}: {} {end}", listed(&shown, WIDTH - used, &number));
    }
    let why = "; root would know";
    if verdict == Verdict::Unknown && needs_root(d) && line.len() + why.len() <= WIDTH {
        line += why;
    }
    line
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Unknown => "not known",
    }
}

/// The needs that a verdict is about: all, or those that it fails for.
fn shown(each: &[Asked], of: Verdict, means: Means) -> Vec<&Asked> {
    let is_it = |a: &&Asked| verdict(std::slice::from_ref(*a), means) == of;
    let some: Vec<&Asked> = each.iter().filter(is_it).collect();
    match some.is_empty() {
        true => each.iter().collect(),
        false => some,
    }
}

/// What there is, for a verdict.
fn number(verdict: Verdict, room: Room) -> String {
    match (verdict, room.at_most) {
        (Verdict::Yes, _) => room.at_least.to_string(),
        (Verdict::No, Some(most)) => format!("{most} at most"),
        (_, Some(most)) => format!("{} to {most}", room.at_least),
        (_, None) => format!("{} at least", room.at_least),
    }
}

fn needs_root(d: &Diagnosis) -> bool {
    let closed = |u: &crate::host::Unread| u.why.starts_with("only root");
    d.unread.iter().any(closed)
}

/// The answer as a sentence.
fn sentence(each: &[Asked], verdict: Verdict, means: Means, any: Option<Means>) -> String {
    let number = |a: &Asked| number(verdict, a.rooms[means as usize]);
    let list = listed(&shown(each, verdict, means), 1000, &number);
    let said = format!("{}: {list} {}", word(verdict), means.in_words());
    match any.filter(|_| verdict != Verdict::Yes) {
        Some(any) => format!("{said}; yes {}", any.in_words()),
        None => said,
    }
}

/// What a reader must know of the answer.
fn notes(d: &Diagnosis, each: &[Asked], verdict: Verdict) -> Vec<String> {
    let mut notes = vec![];
    if each.iter().any(|a| a.kind == Kind::Blocks) {
        notes.push("blocks are counted as the kernel and its drivers get them: not in contiguous memory areas (CMA), nor in zone Movable".to_owned());
    }
    if each.iter().any(|a| a.kind == Kind::Runs) {
        notes.push("no request of the allocator gets so large a piece: these are aligned runs that are free; in one piece only CMA, a pool of gigantic pages (hugetlb, such as 1 GiB), a driver's alloc_contig or the boot takes them, and they may empty more".to_owned());
    }
    let takes_away = |a: &Asked| {
        let least = |m: Means| a.rooms[m as usize].at_least;
        least(Means::Drop) < least(Means::Now) || least(Means::DropCompact) < least(Means::Compact)
    };
    if each.iter().any(takes_away) {
        notes.push("after drop less is promised than without: files are read back at once, and may be read into memory that is whole now".to_owned());
    }
    if verdict == Verdict::Unknown {
        if d.zones.iter().all(|z| z.blocks.is_none()) {
            notes.push(
                "what can be emptied only page flags tell (/proc/kpageflags, that is root)"
                    .to_owned(),
            );
        }
        if d.huge_pages.compaction_unhindered == Some(false) {
            notes.push("a folio waits to be written, at which a run of compaction may end: what that would give is not promised; run sync, and ask again".to_owned());
        }
        match d.pinned_pages {
            Some(0) => {}
            Some(n) => notes.push(format!(
                "{} pages are pinned, and page flags do not show which: as many blocks are not promised",
                thousands(n)
            )),
            // Without page flags nothing that a means frees is promised anyway.
            None if d.huge_pages.compaction_unhindered.is_none() => {}
            None => notes.push("how many pages drivers have pinned is not told (vmstat counts them since 5.7), and page flags do not show it: only what is free now is promised".to_owned()),
        }
    }
    notes
}

/// The commands that prepare memory by a means, and take from pools what pools give, the largest first.
fn commands(d: &Diagnosis, each: &[Asked], means: Means) -> Vec<String> {
    let mut all = preparing(d, means.drops(), means.compacts());
    all.extend(each.iter().filter_map(|a| take(d, a)));
    all
}

/// The command that makes a pool so much larger; `None` where no pool has pages of this size.
fn take(d: &Diagnosis, a: &Asked) -> Option<String> {
    let is_gigantic = a.kind == Kind::Runs && a.need.bytes == 1 << 30 && d.page_size == 4096;
    if a.kind != Kind::HugePages && !is_gigantic {
        return None;
    }
    let below = match a.need.node {
        Some(n) => format!("/sys/devices/system/node/node{n}"),
        None => "/sys/kernel/mm".to_owned(),
    };
    let kib = a.need.bytes >> 10;
    Some(format!(
        "pool={below}/hugepages/hugepages-{kib}kB/nr_hugepages; echo $(($(cat $pool) + {})) > $pool; cat $pool",
        a.need.count
    ))
}

/// The answer for people.
pub fn render(n: &Needs) -> String {
    let mut out = format!("{}\n\n", printable(&n.answer));
    let cell = |r: &Room| {
        let least = thousands(r.at_least);
        let within = match r.at_most {
            Some(most) if most == r.at_least => return least,
            Some(most) => format!("{least} to {}", thousands(most)),
            None => format!("{least} or more"),
        };
        match r.expected.filter(|&e| e > r.at_least) {
            Some(e) => format!("{within} (about {})", thousands(e)),
            None => within,
        }
    };
    // Where nothing may come before, there is nothing to mark.
    let is_marked = n
        .by_means
        .iter()
        .any(|m| m.is_allowed && m.means != Means::Now);
    let mut rows = vec![vec!["there are".to_owned()]];
    rows[0].extend(n.each.iter().map(|a| a.need.what()));
    for m in &n.by_means {
        let mut row = vec![format!(
            "{}{}",
            m.means.when(),
            if is_marked && m.is_allowed { " *" } else { "" }
        )];
        row.extend(n.each.iter().map(|a| cell(&a.rooms[m.means as usize])));
        row.push(word(m.verdict).to_owned());
        rows.push(row);
    }
    rows[0].push("enough?".to_owned());
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(c, w)| format!("{c:<w$}"));
        let _ = writeln!(
            out,
            "  {}",
            cells.collect::<Vec<_>>().join("   ").trim_end()
        );
    }
    if is_marked {
        out += "  * by what you said you would do (--after)\n";
    }
    if !n.commands.is_empty() {
        out.push('\n');
        if n.by_means.iter().all(|m| m.verdict != Verdict::Yes) {
            out += "not promised; to try it, as root, then ask again:\n";
        }
        if let Some(note) = short_lists_note(&n.commands.join(" ")) {
            let _ = writeln!(out, "  # {note}");
        }
        n.commands.iter().for_each(|c| _ = writeln!(out, "  {c}"));
    }
    if !n.notes.is_empty() {
        out.push('\n');
    }
    for note in &n.notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
    out
}
