//! What `MADV_COLLAPSE` would make of a mapping: how many huge pages, and what it copies for them.
//!
//! The rule (`spec: 7.11`): a huge page is made of each range of addresses that is aligned to it and lies in the mapping, if at
//! least one page of it is in memory, however many are missing: these are filled with zeroes, and pages that are swapped out are
//! read. Up to 6.17 one of the pages has to be writable as it is: then a range of which none is this process' alone is not known.
//! A range that a huge page maps already stays as it is. It is known for anonymous memory; for shared memory as far as
//! this process maps it. Of a range with a guard page none is made. The process must have written to anonymous memory
//! once: of a mapping that has no page but zeroes it is not known whether it did. For files it depends on the kernel's configuration and on who has the file open, so it is not.
//!
//! Invariant: a forecast is a number only where the rule is certain. It says what happens if the huge pages can be had.

use super::window::Window;
use serde::Serialize;
use unfrag_linux::procfs::smaps::Mapping;

/// Whose memory a mapping shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Anonymous.
    Anonymous,
    /// Shared memory: memfd, tmpfs of a name that tells, shared anonymous memory.
    Shared,
    /// A file.
    File,
    /// The pool of huge pages.
    Hugetlb,
    /// Devices, and pages that the kernel shows.
    Device,
}

/// Why nothing is made of a mapping, or it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The process wants no huge pages: `prctl(PR_SET_THP_DISABLE)`.
    ProcessRefuses,
    /// The mapping wants none: `MADV_NOHUGEPAGE`.
    MappingRefuses,
    /// It is no memory that huge pages can be made of.
    Unfit,
    /// The file's offset is not aligned as the addresses are.
    Misaligned,
    /// A file: it depends on the kernel and on who has it open.
    File,
    /// Who handles its faults (userfaultfd) may have to be asked.
    Userfault,
    /// The kernel does not tell the mapping's flags.
    NoFlags,
    /// It is only read, and kernels differ.
    ReadOnly,
    /// It has no page of its own, so it may never have been written to: then none is made.
    OnlyZeroes,
}

impl Reason {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Reason::ProcessRefuses => "the process refuses huge pages (prctl)",
            Reason::MappingRefuses => "MADV_NOHUGEPAGE is set",
            Reason::Unfit => "no memory that huge pages are made of",
            Reason::Misaligned => "offset and address are not aligned alike",
            Reason::File => "a file: not known",
            Reason::Userfault => "userfaultfd: not known",
            Reason::NoFlags => "without VmFlags: not known",
            Reason::ReadOnly => "only read: kernels differ",
            Reason::OnlyZeroes => "only pages of zeroes: not known",
        }
    }

    /// Whether it is known that nothing is made.
    pub fn is_certain(self) -> bool {
        matches!(
            self,
            Reason::ProcessRefuses | Reason::MappingRefuses | Reason::Unfit | Reason::Misaligned
        )
    }
}

/// What would be made of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Collapse {
    /// Huge pages that map it already.
    pub huge_now: u64,
    /// Huge pages that map it then; `null` where that is not known.
    pub huge_after: Option<u64>,
    /// Pages that are copied.
    pub copied_pages: u64,
    /// Pages that are filled with zeroes: memory that it takes more.
    pub filled_pages: u64,
    /// Pages that are read from swap.
    pub swapped_pages: u64,
    /// Ranges of which it is not known: all that is there is swapped out, or shared with others where the kernel wants a page
    /// that can be written, or some of it may be neither.
    pub unknown_ranges: u64,
    /// Why it is nothing, or not known.
    pub reason: Option<Reason>,
}

/// Whose memory it is.
pub(super) fn kind(m: &Mapping) -> Kind {
    let has = |flag| m.has_flag(flag) == Some(true);
    if has("ht") {
        return Kind::Hugetlb;
    }
    let is_special = ["[vvar", "[vdso", "[vsyscall", "[uprobes", "[sigpage"];
    if has("io") || has("pf") || is_special.iter().any(|s| m.name.starts_with(s)) {
        return Kind::Device;
    }
    let of_memory = ["/memfd:", "/dev/shm/", "/SYSV", "/dev/zero"];
    let is_named =
        of_memory.iter().any(|n| m.name.starts_with(n)) || m.name.starts_with("[anon_shmem");
    match (is_named && m.is_shared(), m.inode == 0 && !m.is_shared()) {
        (true, _) => Kind::Shared,
        (_, true) => Kind::Anonymous,
        // What is written to a private mapping of shared memory is collapsed by neither rule.
        _ => Kind::File,
    }
}

/// What the rule depends on beside the mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    /// Whether the process wants no huge pages.
    pub refuses: bool,
    /// Whether ranges without a writable page are taken as well (6.18 and later).
    pub takes_unwritable: bool,
}

/// Counts ranges of a mapping.
pub(super) struct Forecast {
    rule: Rule,
    reason: Option<Reason>,
    found: Collapse,
    /// Ranges of which a huge page is made, or is there.
    taken: Ranges,
    /// Those of them that have swapped pages.
    with_swapped: Ranges,
    /// Bytes of a huge page.
    huge: u64,
    /// Pages that are swapped out as pagemap has it, and bytes as smaps has it.
    swapped: (u64, Option<u64>),
    is_shared: bool,
}

/// Ranges that a huge page would map.
#[derive(Clone, Copy, Debug, Default)]
struct Ranges {
    number: u64,
    /// Pages in memory, but for those of zeroes.
    present: u64,
    swapped: u64,
    filled: u64,
}

impl Ranges {
    fn add(&mut self, other: Ranges) {
        self.number += other.number;
        self.present += other.present;
        self.swapped += other.swapped;
        self.filled += other.filled;
    }
}

impl Forecast {
    /// A forecast for a mapping. `huge`: bytes in a huge page.
    pub fn new(m: &Mapping, rule: Rule, huge: u64) -> Forecast {
        let bytes = |name| m.bytes(name).unwrap_or(0);
        let mapped = bytes("AnonHugePages") + bytes("ShmemPmdMapped") + bytes("FilePmdMapped");
        Forecast {
            rule,
            reason: reason(m, rule, huge),
            found: Collapse {
                huge_now: mapped / huge,
                ..Collapse::default()
            },
            taken: Ranges::default(),
            with_swapped: Ranges::default(),
            huge,
            swapped: (0, m.bytes("Swap")),
            is_shared: kind(m) == Kind::Shared,
        }
    }

    /// Adds a range. `zeroes`: how many of its pages are those that all who only read share.
    pub fn add(&mut self, window: &Window, zeroes: u64) {
        let swapped = window.count(|e| e.is_swapped() && !e.is_present());
        self.swapped.0 += swapped;
        let is_guarded = window.pages.iter().any(|e| e.is_guard());
        if self.reason.is_some() || !window.is_whole || is_guarded {
            return;
        }
        let present = window.present();
        let own = window.count(|e| e.is_present() && e.is_exclusive());
        let is_taken = match self.rule.takes_unwritable {
            true => present > 0,
            // Shared memory is taken whoever may write it.
            false => own > 0 || self.is_shared && present > 0,
        };
        if !is_taken {
            self.found.unknown_ranges += u64::from(swapped + present > 0);
            return;
        }
        let copied = present.saturating_sub(zeroes);
        let range = Ranges {
            number: 1,
            present: copied,
            swapped,
            filled: (window.pages.len() as u64).saturating_sub(copied + swapped),
        };
        match swapped {
            0 => self.taken.add(range),
            _ => self.with_swapped.add(range),
        }
    }

    /// What would be made. `pages`: in a huge page.
    pub fn finish(self, pages: u64) -> Collapse {
        let mut found = self.found;
        found.reason = self.reason;
        let mut taken = self.taken;
        // Marks that kernels before 6.15 do not tell from swap, such as a guard's.
        let (swapped, told) = self.swapped;
        match told.is_some_and(|bytes| swapped * (self.huge / pages) > bytes) {
            true => found.unknown_ranges += self.with_swapped.number,
            false => taken.add(self.with_swapped),
        }
        found.swapped_pages = taken.swapped;
        found.filled_pages = taken.filled;
        match self.reason {
            None => {
                // Mapped by a huge page since the flags were read, or the other way round.
                found.huge_after = Some(taken.number.max(found.huge_now));
                found.copied_pages = taken.present.saturating_sub(found.huge_now * pages);
            }
            Some(reason) if reason.is_certain() => found.huge_after = Some(found.huge_now),
            Some(_) => {}
        }
        found
    }
}

fn reason(m: &Mapping, rule: Rule, huge: u64) -> Option<Reason> {
    let kind = kind(m);
    let has = |flag| m.has_flag(flag) == Some(true);
    if matches!(kind, Kind::Hugetlb | Kind::Device) || has("de") && kind != Kind::File || has("mm")
    {
        return Some(Reason::Unfit);
    }
    if m.flags.is_none() {
        return Some(Reason::NoFlags);
    }
    if rule.refuses {
        return Some(Reason::ProcessRefuses);
    }
    if has("nh") {
        return Some(Reason::MappingRefuses);
    }
    if kind == Kind::File {
        return Some(Reason::File);
    }
    let is_aligned = m.addresses.start % huge == m.offset % huge;
    if kind == Kind::Shared && !is_aligned {
        return Some(Reason::Misaligned);
    }
    if has("um") || has("uw") || has("ui") {
        return Some(Reason::Userfault);
    }
    let is_unwritable = kind == Kind::Anonymous && !m.rights.contains('w');
    if is_unwritable && !rule.takes_unwritable {
        return Some(Reason::ReadOnly);
    }
    // Pages of zeroes count as none.
    let has_own = m.bytes("Rss") != Some(0) || m.bytes("Swap").is_some_and(|n| n > 0);
    let first = m.addresses.start.next_multiple_of(huge);
    let has_room = first.saturating_add(huge) <= m.addresses.end;
    (kind == Kind::Anonymous && !has_own && has_room).then_some(Reason::OnlyZeroes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::procfs::pagemap::Entry;
    use unfrag_linux::procfs::smaps;

    const HUGE: u64 = 2 << 20;

    fn mapping(head: &str, flags: &str) -> Mapping {
        let text = format!("{head}\nAnonHugePages: 2048 kB\nVmFlags: {flags}\n");
        smaps::parse(&text).unwrap().remove(0)
    }

    /// `spec: 7.11`
    #[test]
    fn a_huge_page_is_made_where_one_page_is_in_memory() {
        let m = mapping(
            "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 ",
            "rd wr ac",
        );
        let page = |word: u64| {
            let mut pages = vec![Entry(0); 512];
            pages[7] = Entry(word);
            pages
        };
        let (shared, own) = (1 << 63 | 0x77, 1 << 63 | 1 << 56 | 0x77);
        for (takes_unwritable, after, unknown) in [(true, 4, 1), (false, 2, 3)] {
            let rule = Rule {
                takes_unwritable,
                ..Rule::default()
            };
            let mut forecast = Forecast::new(&m, rule, HUGE);
            for (pages, is_whole, zeroes) in [
                // A huge page maps it already.
                (vec![Entry(own); 512], true, 0),
                (page(own), true, 0),
                (page(own), false, 0),
                (page(1 << 62), true, 0),
                (page(0), true, 0),
                (page(shared), true, 0),
                (page(shared), true, 1),
            ] {
                let window = Window {
                    first: 0,
                    pages: &pages,
                    is_whole,
                };
                forecast.add(&window, zeroes);
            }
            let found = forecast.finish(512);
            assert_eq!((found.huge_now, found.huge_after), (1, Some(after)));
            assert_eq!(found.unknown_ranges, unknown);
            // Of those that are taken, all but one of 512 pages each, and the page of zeroes.
            let (copied, filled) = match takes_unwritable {
                true => (2, 511 + 511 + 512),
                false => (1, 511),
            };
            assert_eq!((found.copied_pages, found.filled_pages), (copied, filled));
        }
    }

    /// `spec: 7.11`
    #[test]
    fn a_range_with_a_guard_page_or_a_mark_that_is_no_swap_is_not_taken() {
        let head = "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 ";
        let of = |swap: &str| {
            let text = format!("{head}\nRss: 100 kB\n{swap}VmFlags: rd wr ac\n");
            smaps::parse(&text).unwrap().remove(0)
        };
        let rule = Rule {
            takes_unwritable: true,
            ..Rule::default()
        };
        let own = 1 << 63 | 1 << 56 | 0x77;
        // The mark, what smaps says of swap, and huge pages, ranges that are not known.
        for (mark, swap, after, unknown) in [
            (1u64 << 62 | 1 << 58, "Swap: 0 kB\n", 1, 0),
            (1 << 62, "Swap: 0 kB\n", 1, 1),
            (1 << 62, "Swap: 4 kB\n", 2, 0),
            (1 << 62, "", 2, 0),
        ] {
            let mut forecast = Forecast::new(&of(swap), rule, HUGE);
            for other in [own, mark] {
                let mut pages = vec![Entry(own); 512];
                pages[9] = Entry(other);
                let window = Window {
                    first: 0,
                    pages: &pages,
                    is_whole: true,
                };
                forecast.add(&window, 0);
            }
            let found = forecast.finish(512);
            assert_eq!(found.huge_after, Some(after), "{mark:x} {swap}");
            assert_eq!(found.unknown_ranges, unknown, "{mark:x} {swap}");
        }
    }

    /// `spec: 7.11`
    #[test]
    fn of_a_mapping_that_has_only_pages_of_zeroes_it_is_not_known() {
        let of = |end: &str, rss: u64| {
            let text = format!(
                "7f0000000000-{end} rw-p 00000000 00:00 0 \nRss: {rss} kB\nSwap: 0 kB\nVmFlags: rd wr ac\n"
            );
            let rule = Rule {
                takes_unwritable: true,
                ..Rule::default()
            };
            let m = smaps::parse(&text).unwrap().remove(0);
            Forecast::new(&m, rule, HUGE).finish(512)
        };
        let zeroes = of("7f0000800000", 0);
        assert_eq!(
            (zeroes.reason, zeroes.huge_after),
            (Some(Reason::OnlyZeroes), None)
        );
        assert_eq!(of("7f0000800000", 4).reason, None);
        assert_eq!(of("7f0000100000", 0).huge_after, Some(0), "no range in it");
    }

    /// `spec: 7.11`
    #[test]
    fn what_is_refused_is_told_from_what_is_not_known() {
        let anon = "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 ";
        let memfd = "7f0000000000-7f0000800000 rw-s 00000000 00:01 9 /memfd:a (deleted)";
        let askew = "7f0000000000-7f0000800000 rw-s 00001000 00:01 9 /memfd:a (deleted)";
        let file = "7f0000000000-7f0000800000 r-xp 00000000 08:01 9 /usr/bin/true";
        let read = "7f0000000000-7f0000800000 r--p 00000000 00:00 0 ";
        for (head, flags, refuses, expected) in [
            (anon, "rd wr", false, None),
            (anon, "rd wr nh", false, Some(Reason::MappingRefuses)),
            (anon, "rd wr", true, Some(Reason::ProcessRefuses)),
            (anon, "rd wr pf io de", false, Some(Reason::Unfit)),
            (anon, "rd wr um", false, Some(Reason::Userfault)),
            (memfd, "rd wr sh", false, None),
            (memfd, "rd wr ht", false, Some(Reason::Unfit)),
            (askew, "rd wr sh", false, Some(Reason::Misaligned)),
            (file, "rd ex", false, Some(Reason::File)),
            (read, "rd", false, Some(Reason::ReadOnly)),
        ] {
            let rule = Rule {
                refuses,
                ..Rule::default()
            };
            let found = Forecast::new(&mapping(head, flags), rule, HUGE).finish(512);
            assert_eq!(found.reason, expected, "{head} {flags}");
            let is_known = expected.is_none_or(Reason::is_certain);
            assert_eq!(found.huge_after.is_some(), is_known, "{head} {flags}");
        }
    }
}
