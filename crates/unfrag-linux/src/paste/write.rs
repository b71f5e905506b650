//! A snapshot as words.
//!
//! Invariant: each part is told whole or is named among those that were left out.

use super::counters;
use super::form::{BEGIN, END, MOST, PART, PARTS, WIDTH};
use super::known;
use super::words::{Word, Words};
use crate::procfs::meminfo::Line;
use crate::procfs::pagetypeinfo::Count;
use crate::procfs::slabinfo::{Cache, LARGEST, pages_of_large};
use crate::procfs::zoneinfo::Zone;
use crate::procfs::{BuddyInfo, MemInfo, PageTypeInfo, SlabInfo, VmStat, ZoneInfo, uptime};
use crate::recording::Snapshot;
use crate::snapshots::settings::NUMBERS_OF_VM;

/// Slab caches that are told, the largest.
const CACHES: usize = 12;

/// A text to paste.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paste {
    /// The text.
    pub text: String,
    /// Parts that there was no room for.
    pub left_out: Vec<&'static str>,
    /// Whether it has any number but those of the host's kernel and its time.
    pub tells: bool,
}

/// Earlier readings, and the seconds since each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Earlier<'a> {
    /// Of vmstat: what happened of late.
    pub vmstat: Option<(&'a VmStat, f64)>,
    /// Of slabinfo: which caches grow.
    pub slabs: Option<(&'a SlabInfo, f64)>,
}

/// A snapshot as a text to paste, below a head for people.
pub fn write(head: &str, now: &Snapshot, before: &Earlier) -> Paste {
    let mut parts: Vec<(&'static str, Words)> = vec![];
    for part in PARTS {
        let words = match part {
            "host" => host(now),
            "settings" => settings(now),
            "nodes" => Some(nodes(now)),
            "before" => before.vmstat.and_then(|(stat, s)| earlier(now, stat, s)),
            "slabinfo" => now.file(part).and_then(|bytes| caches(bytes, before.slabs)),
            file => now.file(file).and_then(|bytes| words_of(file, bytes)),
        };
        parts.extend(words.filter(|w| !w.0.is_empty()).map(|w| (part, w)));
    }
    let mut left_out = vec![];
    loop {
        let text = laid_out(head, &parts, &left_out);
        // The host is told in any case, and fits.
        if text.len() <= MOST || parts.len() < 2 {
            return Paste {
                tells: parts.len() > 1,
                text,
                left_out,
            };
        }
        let dropped = parts.pop();
        left_out.extend(dropped.map(|(part, _)| part));
    }
}

/// The text of these parts.
fn laid_out(head: &str, parts: &[(&'static str, Words)], left_out: &[&str]) -> String {
    let mut out = String::new();
    fill(&mut out, head.split_whitespace());
    out.push('\n');
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let mut begin = Words::default();
    begin.put_list(
        "holds",
        names(&parts.iter().map(|(n, _)| *n).collect::<Vec<_>>()),
    );
    if !left_out.is_empty() {
        begin.put_list("left", names(left_out));
    }
    let text = |words: &Words| words.0.iter().map(Word::text).collect::<Vec<_>>();
    let begin = text(&begin);
    fill(
        &mut out,
        [BEGIN].into_iter().chain(begin.iter().map(String::as_str)),
    );
    for (name, words) in parts {
        let (first, last) = (format!("{PART}:{name}"), format!("sum:{}", words.sum()));
        let words = text(words);
        let words = words.iter().map(String::as_str);
        fill(
            &mut out,
            [first.as_str()]
                .into_iter()
                .chain(words)
                .chain([last.as_str()]),
        );
    }
    fill(
        &mut out,
        [format!("{END}:{}", parts.len()).as_str()].into_iter(),
    );
    out
}

/// Adds words as lines of no more than [`WIDTH`] characters.
fn fill<'w>(out: &mut String, words: impl Iterator<Item = &'w str>) {
    let mut width = 0;
    for word in words {
        let len = word.chars().count();
        if width > 0 && width + 1 + len > WIDTH {
            out.push('\n');
            width = 0;
        }
        if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += len;
    }
    if width > 0 {
        out.push('\n');
    }
}

/// The release and the time since boot.
fn host(now: &Snapshot) -> Option<Words> {
    let mut words = Words::default();
    let version = String::from_utf8_lossy(now.file("version").unwrap_or_default()).into_owned();
    // `Linux version RELEASE …`, or `Linux HOST RELEASE …` as `uname -a` says.
    let mut version = version.split_whitespace();
    let release = match (version.next(), version.next(), version.next()) {
        (Some("Linux"), Some(_), Some(release)) => known::release(release),
        _ => String::new(),
    };
    if !release.is_empty() {
        words.put("release", release);
    }
    if let Some(ns) = now.file("uptime").and_then(|text| uptime::parse(text).ok()) {
        words.put(
            "uptime",
            format!("{}.{:02}", ns / 1_000_000_000, ns / 10_000_000 % 100),
        );
    }
    // A part without words is none, and a paste has a first one.
    if words.0.is_empty() {
        words.put("release", "unknown");
    }
    Some(words)
}

/// Settings of `vm`, and those of transparent huge pages.
fn settings(now: &Snapshot) -> Option<Words> {
    let mut words = Words::default();
    let mut put = |name: &str, value: &str| {
        if NUMBERS_OF_VM.contains(&name)
            && !value.is_empty()
            && value.bytes().all(|b| b.is_ascii_digit())
        {
            words.put(&format!("vm.{name}"), value);
        }
    };
    let listing = String::from_utf8_lossy(now.file("sysctl-vm").unwrap_or_default()).into_owned();
    for line in listing.lines() {
        if let Some((path, value)) = line.split_once(['=', ':']) {
            put(
                path.trim().rsplit(['/', '.']).next().unwrap_or_default(),
                value.trim(),
            );
        }
    }
    for file in &now.files {
        if let (Some(name), Some(value)) = (file.name.strip_prefix("sys/vm/"), now.file(&file.name))
        {
            put(name, String::from_utf8_lossy(value).trim());
        }
    }
    for (name, choices) in known::CHOICES {
        let bytes = now.file(name).map(<[u8]>::to_vec);
        let bytes = bytes.or_else(|| now.listed(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let chosen = text
            .split_once('[')
            .and_then(|(_, rest)| Some(rest.split_once(']')?.0));
        if let Some(chosen) = chosen.filter(|c| choices.contains(c)) {
            words.put(&name.replace('/', "."), format!("[{chosen}]"));
        }
    }
    Some(words)
}

/// Amounts of each node.
fn nodes(now: &Snapshot) -> Words {
    let mut words = Words::default();
    for file in &now.files {
        let number = file
            .name
            .strip_prefix("node")
            .and_then(|n| n.strip_suffix("/meminfo"));
        let number: Option<u32> = number.and_then(|n| n.parse().ok());
        let read = now
            .file(&file.name)
            .and_then(|text| MemInfo::parse(text).ok());
        let (Some(number), Some(read)) = (number, read) else {
            continue;
        };
        let told = |name: &str| known::OF_NODES.contains(&name);
        for line in read.lines.iter().filter(|l| told(&l.name)) {
            words.put(&format!("{number}.{}", line.name), amount(line));
        }
    }
    words
}

/// A value of meminfo, with its unit.
fn amount(line: &Line) -> String {
    format!("{}{}", line.value, if line.kib { "k" } else { "" })
}

/// What vmstat's counters have grown by.
fn earlier(now: &Snapshot, before: &VmStat, seconds: f64) -> Option<Words> {
    let now = VmStat::parse(now.file("vmstat")?).ok()?;
    let mut words = Words::default();
    words.put("seconds", format!("{seconds:.3}"));
    for (name, value) in now
        .counters
        .iter()
        .filter(|(name, _)| counters::is_known(name))
    {
        let grown = before
            .get(name)
            .and_then(|before| value.checked_sub(before));
        if let Some(grown) = grown.filter(|g| *g > 0) {
            words.put(name, grown);
        }
    }
    Some(words)
}

/// A file as words; `None` if it is not what the kernel writes.
fn words_of(file: &str, bytes: &[u8]) -> Option<Words> {
    let mut words = Words::default();
    match file {
        "buddyinfo" => {
            let read = BuddyInfo::parse(bytes).ok()?;
            for row in read.zones.iter().filter(|r| is_zone(&r.zone)) {
                let mut free: Vec<String> = row.free.iter().map(u64::to_string).collect();
                free.extend(row.goes_on.then(|| "..".to_owned()));
                words.put_list(&zone_key(row.node, &row.zone), free);
            }
        }
        "zoneinfo" => {
            let read = ZoneInfo::parse(bytes).ok()?;
            read.zones
                .iter()
                .filter(|z| is_zone(&z.name))
                .for_each(|z| zone(&mut words, z));
        }
        "meminfo" => {
            let read = MemInfo::parse(bytes).ok()?;
            for line in read.lines.iter().filter(|l| known::of_meminfo(&l.name)) {
                words.put(&line.name, amount(line));
            }
        }
        "vmstat" => {
            let read = VmStat::parse(bytes).ok()?;
            for (name, value) in read.counters.iter().filter(|(n, _)| counters::is_known(n)) {
                words.put(name, value);
            }
        }
        "pagetypeinfo" => types(&mut words, &PageTypeInfo::parse(bytes).ok()?),
        _ => return None,
    }
    Some(words)
}

fn is_zone(name: &str) -> bool {
    known::ZONES.contains(&name)
}

fn zone_key(node: u32, zone: &str) -> String {
    format!("{node}.{zone}")
}

fn zone(words: &mut Words, zone: &Zone) {
    words.put(&zone_key(zone.node, &zone.name), zone.free);
    let groups = [
        ("n", zone.per_node.as_ref(), &known::OF_COUNTERS[..]),
        ("z", Some(&zone.pages), &known::OF_ZONE),
        ("c", Some(&zone.counters), &known::OF_COUNTERS),
        ("e", Some(&zone.last), &known::LAST),
    ];
    for (letter, counters, names) in groups {
        let counters = counters.into_iter().flat_map(|c| c.iter());
        for (name, value) in counters.filter(|(n, _)| names.contains(n)) {
            words.put(&format!("{letter}.{name}"), value);
        }
    }
    if !zone.protection.is_empty() {
        words.put_list("protection", zone.protection.iter().map(u64::to_string));
    }
    // What all per-CPU lists hold; a list without a number makes their sum unknown.
    if let Some(sets) = &zone.pagesets {
        let counts = sets.iter().map(|s| s.fields.get("count"));
        let sum = counts
            .into_iter()
            .try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)));
        words.put("lists", sum.map_or("unknown".to_owned(), |n| n.to_string()));
    }
}

fn types(words: &mut Words, read: &PageTypeInfo) {
    words.put("order", read.pageblock_order);
    words.put("pages", read.pages_per_block);
    words.put("sections", u8::from(read.by_node));
    words.put_list("orders", read.orders.iter().map(u64::to_string));
    let is_type = |name: &str| known::TYPES.contains(&name);
    for row in read
        .free
        .iter()
        .filter(|r| is_zone(&r.zone) && is_type(&r.migratetype))
    {
        let key = format!("{}.{}.{}", row.node, row.zone, row.migratetype);
        let count = |c: &Count| format!("{}{}", c.blocks, if c.capped { "+" } else { "" });
        words.put_list(&key, row.counts.iter().map(count));
    }
    // The rows of the table count by these names, so either all of them are known or none is told.
    if !read.blocks.migratetypes.is_empty() && read.blocks.migratetypes.iter().all(|t| is_type(t)) {
        words.put_list("types", read.blocks.migratetypes.iter().cloned());
        for row in read.blocks.rows.iter().filter(|r| is_zone(&r.zone)) {
            words.put_list(
                &zone_key(row.node, &row.zone),
                row.blocks.iter().map(u64::to_string),
            );
        }
    }
}

/// The caches that grew most, then the largest; each with its slabs before, where that is known.
fn caches(bytes: &[u8], before: Option<(&SlabInfo, f64)>) -> Option<Words> {
    let mut words = Words::default();
    let mut read = SlabInfo::parse(bytes).ok()?;
    let pages = |c: &Cache| c.pages(1);
    let slabs_before = |c: &Cache| {
        let (before, _) = before?;
        // Of two caches of one name the last one counts, as for the doctor.
        let found = before.caches.iter().rev().find(|b| b.name == c.name);
        let pages = found.map_or(0, pages);
        Some(pages / u64::from(c.pagesperslab).max(1))
    };
    read.caches.sort_by_key(|c| {
        let usual = u64::from(c.pagesperslab);
        let before = slabs_before(c).map(|b| b.saturating_mul(usual));
        let grown = before.map_or(0, |b| pages(c).saturating_sub(b));
        std::cmp::Reverse((grown, pages(c)))
    });
    if let Some((_, seconds)) = before {
        words.put("over", format!("{seconds:.3}"));
    }
    // The doctor shows the largest whatever grew.
    let large = pages_of_large(read.caches.iter().map(pages));
    let told = read.caches.iter().enumerate();
    let told = told.filter(|(n, c)| *n < CACHES || pages(c) >= large);
    for (n, (_, c)) in told.take(CACHES + LARGEST).enumerate() {
        let numbers = [
            c.active_objs,
            c.num_objs,
            c.objsize.into(),
            c.objperslab.into(),
            c.pagesperslab.into(),
            c.active_slabs,
            c.num_slabs,
        ];
        // Whoever made another cache may have given it a name that says who he is.
        let name = match known::of_caches(&c.name) {
            true => c.name.replace('-', "."),
            false => format!("other.{}", n + 1),
        };
        let numbers = numbers.into_iter().chain(slabs_before(c));
        words.put_list(&name, numbers.map(|n| n.to_string()));
    }
    Some(words)
}
