//! Tables beside a memory report that tell what holds memory: tasks, unreclaimable slab caches, and the places in the
//! code that allocate most. `spec: K.2`
//!
//! Invariant: a sum is given only of a table that was seen from its head to its end, each line once; names are bounded
//! in number. A list that is sorted by size may be cut off: its first lines hold all the same.

use super::report::Holders;
use std::collections::BTreeMap;

/// Names of a table at most.
const MOST_NAMES: usize = 4096;
/// Places in the code that are kept.
const MOST_PLACES: usize = 32;

/// Whether the text is a line of the table of tasks: `[    268]     0   268    22862      267 ...`.
pub fn is_task(text: &str) -> bool {
    let Some((pid, rest)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) else {
        return false;
    };
    let pid = pid.trim();
    if pid == "pid" {
        return rest.contains("total_vm");
    }
    !pid.is_empty()
        && pid.bytes().all(|b| b.is_ascii_digit())
        && rest
            .split_whitespace()
            .take(4)
            .filter(|t| is_digits(t))
            .count()
            == 4
}

/// Whether the text is another line of such tables.
pub fn is_line(text: &str) -> bool {
    text.starts_with("Tasks state (memory values in pages)")
        || text.starts_with("Memory allocations:")
        || text.starts_with("Unreclaimable slab info:")
        || is_caches_head(text)
        || text.contains(" func:") && place(text).is_some()
        || text.ends_with("KB") && cache(text).is_some()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_caches_head(text: &str) -> bool {
    text.starts_with("Name ") && text.split_whitespace().eq(["Name", "Used", "Total"])
}

/// Name and pages of a task; the fourth number behind its own is what is resident. The name is the last column, and may
/// have blanks.
fn task(text: &str) -> Option<(&str, u64)> {
    let (_, rest) = text.split_once(']')?;
    let mut words = rest.split_whitespace();
    let resident = words.clone().nth(3)?.parse().ok()?;
    let is_number = |w: &&str| is_digits(w.strip_prefix('-').unwrap_or(w));
    let numbers = words.by_ref().take_while(is_number).count();
    // Seven columns since 2.6, and up to ten.
    if numbers < 6 {
        return None;
    }
    let columns = rest.split_whitespace().nth(numbers)?;
    let at = columns.as_ptr() as usize - rest.as_ptr() as usize;
    Some((rest[at..].trim_end(), resident))
}

/// Name and KiB of `xfs_icr   263KB   263KB`.
fn cache(text: &str) -> Option<(&str, u64)> {
    let mut words = text.split_whitespace();
    let (name, used, total) = (words.next()?, words.next()?, words.next()?);
    let kib = |t: &str| t.strip_suffix("KB").filter(|n| is_digits(n))?.parse().ok();
    let _: u64 = kib(used)?;
    words.next().is_none().then_some(())?;
    Some((name, kib(total)?))
}

/// Place, bytes and allocations of `3176243200   247900 mm/slub.c:2264 func:alloc_slab_page`; the bytes may have a unit.
fn place(text: &str) -> Option<(String, u64, u64)> {
    let (head, function) = text.split_once(" func:")?;
    let mut words = head.split_whitespace();
    let first = words.next()?;
    let value: f64 = first.parse().ok().filter(|n: &f64| n.is_finite())?;
    let mut next = words.next()?;
    let unit = match next {
        "B" => Some(1u64),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        "TiB" => Some(1 << 40),
        _ => None,
    };
    if unit.is_some() {
        next = words.next()?;
    }
    let bytes = match unit {
        Some(unit) => (value * unit as f64) as u64,
        None => first.parse().ok()?,
    };
    let calls = next.parse().ok()?;
    let module = head.split_once('[').and_then(|(_, m)| m.split_once(']'));
    let function = function.split_whitespace().next()?;
    let name = match module {
        Some((module, _)) => format!("{function} [{module}]"),
        None => function.to_owned(),
    };
    (name.len() < 128).then_some((name, bytes, calls))
}

/// A table whose lines are added up by name.
#[derive(Default)]
struct Table {
    heads: u32,
    is_damaged: bool,
    is_over: bool,
    rows: BTreeMap<String, (u64, u64)>,
}

impl Table {
    fn head(&mut self) {
        self.heads += 1;
        self.is_damaged |= self.heads > 1;
    }

    fn add(&mut self, row: Option<(&str, u64)>) {
        self.is_damaged |= self.heads == 0 || self.is_over || row.is_none();
        let Some((name, amount)) = row else { return };
        if self.rows.len() < MOST_NAMES || self.rows.contains_key(name) {
            let sum = self.rows.entry(name.to_owned()).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(amount));
        } else {
            self.is_damaged = true;
        }
    }

    fn end(&mut self) {
        self.is_over |= self.heads > 0;
    }

    fn whole(self) -> Option<BTreeMap<String, (u64, u64)>> {
        (self.is_over && !self.is_damaged && !self.rows.is_empty()).then_some(self.rows)
    }
}

/// The tables that are being read.
#[derive(Default)]
pub struct Tables {
    tasks: Table,
    caches: Table,
    places: Vec<(String, u64, u64)>,
}

impl Tables {
    /// Takes a line of a table.
    pub fn take(&mut self, text: &str) {
        if text.starts_with("Tasks state") {
            self.caches.end();
        } else if is_caches_head(text) {
            self.caches.head();
        } else if let Some(rest) = text.strip_prefix('[') {
            self.caches.end();
            match rest.trim_start().starts_with("pid") {
                true => self.tasks.head(),
                false => self.tasks.add(task(text)),
            }
        } else if let Some(place) = place(text) {
            if self.places.len() < MOST_PLACES {
                self.places.push(place);
            }
        } else if text.ends_with("KB") {
            self.caches.add(cache(text));
        }
    }

    /// The line behind all tables was seen.
    pub fn end(&mut self) {
        self.tasks.end();
        self.caches.end();
    }

    /// What the tables tell.
    pub fn finish(self) -> Holders {
        let caches = self.caches.whole();
        let is_sorted = self.places.is_sorted_by(|a, b| a.1 >= b.1);
        Holders {
            tasks: self.tasks.whole(),
            caches: caches.map(|c| c.into_iter().map(|(name, (_, kib))| (name, kib)).collect()),
            allocations: if is_sorted { self.places } else { vec![] },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASKS: [&str; 4] = [
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        "[    268]     0   268    22862      267   208896        0          -250 logger",
        "[   4738]  1000  4738    35626    32417   327680        0             0 build job",
        "[   4739]  1000  4739    35626    30000   327680        0             0 build job",
    ];

    fn of(lines: &[&str], is_ended: bool) -> Holders {
        let mut tables = Tables::default();
        for line in lines {
            assert!(is_task(line) || is_line(line), "{line}");
            tables.take(line);
        }
        if is_ended {
            tables.end();
        }
        tables.finish()
    }

    #[test]
    fn tasks_are_added_up_by_name_only_if_the_table_is_whole() {
        let tasks = of(&TASKS, true).tasks.unwrap();
        assert_eq!(tasks["build job"], (2, 62417));
        assert_eq!(tasks["logger"], (1, 267));
        assert_eq!(of(&TASKS[1..], true).tasks, None);
        assert_eq!(of(&TASKS, false).tasks, None);
        assert_eq!(of(&[TASKS, TASKS].concat(), true).tasks, None);
        let cut = [TASKS[0], "[    268]     0   268    22862      267"];
        assert_eq!(of(&cut, true).tasks, None);
        let narrow = [
            "[ pid ]   uid  tgid total_vm      rss cpu oom_adj name",
            "[  900]     0   900     1500      300   1      -5 udevd",
        ];
        assert_eq!(of(&narrow, true).tasks.unwrap()["udevd"], (1, 300));
    }

    #[test]
    fn caches_and_places_are_read() {
        let lines = [
            "Memory allocations:",
            "  3176243200   247900 mm/slub.c:2264 func:alloc_slab_page",
            "    1.50 GiB   511334 fs/x/icache.c:82 [xfs] func:xfs_inode_alloc",
            "Unreclaimable slab info:",
            "Name                      Used          Total",
            "xfs_buf_item             696KB       1189KB",
            "Tasks state (memory values in pages):",
        ];
        let found = of(&lines, false);
        assert_eq!(found.caches.unwrap()["xfs_buf_item"], 1189);
        assert_eq!(
            found.allocations,
            [
                ("alloc_slab_page".to_owned(), 3_176_243_200, 247_900),
                ("xfs_inode_alloc [xfs]".to_owned(), 3 << 29, 511_334)
            ]
        );
        for prose in [
            "Name of the host",
            "it has 5KB",
            "[12] is a footnote",
            "a func:b",
        ] {
            assert!(!is_task(prose) && !is_line(prose), "{prose}");
        }
    }
}
