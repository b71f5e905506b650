//! Which share of a host's allocations a recording holds.
//!
//! Who records one command sees what that command asks for; what others ask for meanwhile changes memory all the same.
//! The kernel counts the pages that all of them get (`pgalloc_*` of vmstat, one counter for each zone). Between two
//! snapshots that the trace covers, these counters tell the pages of the host, and the events those of the recording.
//!
//! Invariant: a share that snapshots and events do not tell is `None`, never none or all.

use crate::event::{At, Kind, Page, Tracker, Unreadable};
use crate::procfs::vmstat::VmStat;
use crate::recording::{Meta, Recording, Snapshot};

/// The fact with the pages that the events of a recording allocate, between its first and its last snapshot.
pub const RECORDED_PAGES: &str = "recorded_pages";
/// The fact with the pages that the host allocated in the same time.
pub const HOST_PAGES: &str = "host_pages";

/// Pages that were allocated between the first and the last snapshot within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// By the events.
    pub recorded: u64,
    /// By the counters of the host, at least one.
    pub host: u64,
}

impl Share {
    /// That of these pages; `None` if the host allocated none.
    pub fn new(recorded: u64, host: u64) -> Option<Share> {
        (host > 0).then_some(Share { recorded, host })
    }

    /// From 0 to 1. The events may have more than the counters: a little, as the files of a snapshot are read one after
    /// the other while the host works; and pages that compaction hands to a request at once are in no counter.
    pub fn fraction(self) -> f64 {
        (self.recorded as f64 / self.host as f64).min(1.0)
    }

    /// That which the facts of a recording tell: of the whole recording, not of a window.
    pub fn noted(meta: &Meta) -> Option<Share> {
        let fact = |name: &str| meta.facts.get(name)?.parse().ok();
        Share::new(fact(RECORDED_PAGES)?, fact(HOST_PAGES)?)
    }

    /// Notes it among the facts of a recording.
    pub fn note(self, meta: &mut Meta) {
        let facts = [(RECORDED_PAGES, self.recorded), (HOST_PAGES, self.host)];
        let facts = facts.map(|(name, pages)| (name.to_owned(), pages.to_string()));
        meta.facts.extend(facts);
    }
}

/// A snapshot's counters.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// When they were read, in the clock of the events.
    time: u64,
    /// Pages that the host allocated since it was started.
    host: u64,
    /// Pages that the events before it allocate.
    recorded: u64,
}

/// The pages that events allocate, while they are counted.
#[derive(Clone, Debug, Default)]
pub struct Count {
    /// In the order of time.
    moments: Vec<Moment>,
    /// The first of them that the events have not reached.
    next: usize,
    first: Option<u64>,
    last: u64,
    pages: u64,
    /// Whether there was an event that names no block.
    unreadable: bool,
}

impl Count {
    /// Of a recording whose events are to come.
    pub fn of(rec: &Recording) -> Count {
        Count::between(&rec.snapshots, &rec.meta)
    }

    /// Of events that are to come, between these snapshots.
    pub fn between(snapshots: &[Snapshot], meta: &Meta) -> Count {
        let moment = |s: &Snapshot| {
            let time = s.time_of("vmstat")?;
            Some(Moment {
                time: time.checked_add_signed(meta.snapshot_offset_ns.checked_neg()?)?,
                host: allocated(s.file("vmstat")?)?,
                recorded: 0,
            })
        };
        let mut moments: Vec<Moment> = snapshots.iter().filter_map(moment).collect();
        moments.sort_by_key(|m| m.time);
        Count {
            moments,
            ..Count::default()
        }
    }

    /// The share, now that all events were counted.
    pub fn share(mut self) -> Option<Share> {
        let first = self.first.filter(|_| !self.unreadable)?;
        self.reach(self.last);
        let within = &self.moments[..self.next];
        let begin = within.iter().find(|m| m.time >= first)?;
        let end = within.last()?;
        // Counters that go back are those of another boot.
        Share::new(
            end.recorded.checked_sub(begin.recorded)?,
            end.host.checked_sub(begin.host)?,
        )
    }

    /// The moments up to this time were reached.
    #[inline]
    fn reach(&mut self, time: u64) {
        while let Some(moment) = self.moments.get_mut(self.next)
            && moment.time <= time
        {
            moment.recorded = self.pages;
            self.next += 1;
        }
    }

    #[inline]
    fn see(&mut self, at: &At) {
        self.first.get_or_insert(at.time);
        self.last = at.time;
        self.reach(at.time);
    }
}

impl Tracker for Count {
    type Error = Unreadable;

    fn takes(&self, kind: Kind) -> bool {
        kind == Kind::Alloc
    }

    #[inline]
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<(), Unreadable> {
        self.see(at);
        if let Some(Page::Alloc(alloc)) = page
            && let Some(block) = alloc.block()
        {
            self.pages = self.pages.saturating_add(block.pages());
        }
        Ok(())
    }

    fn unreadable(&mut self, at: &At, kind: Kind, _: Unreadable) -> Result<(), Unreadable> {
        self.see(at);
        self.unreadable |= kind == Kind::Alloc;
        Ok(())
    }
}

/// The share of a recording whose events are here; `None` if allocations were not recorded.
pub fn of(rec: &Recording) -> Option<Share> {
    if !crate::event::Coverage::of(rec).has(Kind::Alloc) {
        return None;
    }
    let mut count = Count::of(rec);
    // It takes whatever an event says, so the walk has no error.
    let _ = crate::event::walk(&rec.events, &rec.strings, &mut count);
    count.share()
}

/// Pages that a host allocated since it was started, by its vmstat; `None` if that does not say it. Which zones there
/// are, and so which counters, is the host's.
///
/// `spec: 7.3`
fn allocated(vmstat: &[u8]) -> Option<u64> {
    let vmstat = VmStat::parse(vmstat).ok()?;
    let mut zones = vmstat
        .counters
        .iter()
        .filter(|(name, _)| name.starts_with("pgalloc_"))
        .map(|(_, pages)| pages)
        .peekable();
    zones.peek()?;
    zones.try_fold(0u64, u64::checked_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{EventTable, Events, Field, FieldKind, SnapshotFile, Task};

    /// Allocations of (time, first frame, order), and snapshots of (time, vmstat).
    fn recording(allocations: &[(u64, u64, u64)], snapshots: &[(u64, &str)]) -> Recording {
        let field = |name: &str| Field {
            name: name.into(),
            kind: FieldKind::Unsigned,
        };
        let n = allocations.len();
        let column = |f: fn(&(u64, u64, u64)) -> u64| allocations.iter().map(f).collect();
        Recording {
            events: Events {
                time: column(|a| a.0),
                cpu: vec![0; n],
                task: vec![0; n],
                flags: vec![0; n],
                preempt: vec![0; n],
                kind: vec![0; n],
                tables: vec![EventTable {
                    system: "kmem".into(),
                    name: "mm_page_alloc".into(),
                    fields: ["pfn", "order", "gfp_flags"].map(field).into(),
                    columns: vec![column(|a| a.1), column(|a| a.2), vec![0; n]],
                }],
            },
            tasks: vec![Task::default()],
            snapshots: snapshots
                .iter()
                .map(|&(time, vmstat)| Snapshot {
                    name: "s".into(),
                    files: vec![SnapshotFile {
                        name: "vmstat".into(),
                        time: Some((time, time)),
                        content: vmstat.as_bytes().to_vec().into(),
                    }],
                })
                .collect(),
            ..Recording::default()
        }
    }

    const NO_FRAME: u64 = u64::MAX;

    /// What is tested, allocations, snapshots, and pages of the recording and of the host.
    type Case<'c> = (
        &'c str,
        &'c [(u64, u64, u64)],
        &'c [(u64, &'c str)],
        Option<(u64, u64)>,
    );

    /// What each recording tells, or that it tells nothing.
    #[test]
    fn pages_of_the_events_are_held_against_those_of_all_zones_between_two_snapshots() {
        let all: [Case<'_>; 10] = [
            (
                "orders are pages, failures are none, all zones count, and what is outside does not",
                &[
                    (0, 9, 0),
                    (5, 8, 9),
                    (6, NO_FRAME, 4),
                    (9, 7, 1),
                    (30, 1, 3),
                ],
                &[
                    (2, "pgalloc_dma32 5\npgalloc_normal 100\npgfree 3\n"),
                    (20, "pgalloc_dma32 15\npgalloc_normal 1118\npgfree 3\n"),
                ],
                Some((514, 1028)),
            ),
            (
                "snapshots outside the trace do not count",
                &[(5, 1, 0), (8, 2, 0), (10, 3, 0), (15, 4, 0)],
                &[
                    (1, "pgalloc_normal 1\n"),
                    (6, "pgalloc_normal 10\n"),
                    (12, "pgalloc_normal 14\n"),
                    (99, "pgalloc_normal 99\n"),
                ],
                Some((2, 4)),
            ),
            (
                "a zone that few have",
                &[(0, 1, 0), (2, 1, 0), (9, 1, 0)],
                &[(1, "pgalloc_device 0\n"), (5, "pgalloc_device 1\n")],
                Some((1, 1)),
            ),
            ("no snapshot", &[(0, 1, 0)], &[], None),
            (
                "one snapshot",
                &[(0, 1, 0), (9, 1, 0)],
                &[(5, "pgalloc_normal 1\n")],
                None,
            ),
            (
                "no counter",
                &[(0, 1, 0), (9, 1, 0)],
                &[(1, "pgfree 1\n"), (5, "pgfree 2\n")],
                None,
            ),
            (
                "another boot",
                &[(0, 1, 0), (9, 1, 0)],
                &[(1, "pgalloc_normal 9\n"), (5, "pgalloc_normal 2\n")],
                None,
            ),
            (
                "counters that overflow",
                &[(0, 1, 0), (9, 1, 0)],
                &[
                    (1, "pgalloc_dma 18446744073709551615\npgalloc_normal 1\n"),
                    (5, "pgalloc_dma 18446744073709551615\npgalloc_normal 9\n"),
                ],
                None,
            ),
            (
                "a host at rest",
                &[(0, 1, 0), (9, 1, 0)],
                &[(1, "pgalloc_normal 2\n"), (5, "pgalloc_normal 2\n")],
                None,
            ),
            (
                "an event that names no block",
                &[(0, 1, 0), (2, 1, 77), (9, 1, 0)],
                &[(1, "pgalloc_normal 2\n"), (5, "pgalloc_normal 4\n")],
                None,
            ),
        ];
        for (what, allocations, snapshots, expected) in all {
            let rec = recording(allocations, snapshots);
            let share = of(&rec).map(|s| (s.recorded, s.host));
            assert_eq!(share, expected, "{what}");
        }
        let mut later = recording(&[(0, 1, 0), (5, 1, 0), (9, 1, 0)], &[]);
        later.snapshots = recording(
            &[],
            &[(101, "pgalloc_normal 1\n"), (108, "pgalloc_normal 5\n")],
        )
        .snapshots;
        later.meta.snapshot_offset_ns = 100;
        assert_eq!(of(&later), Share::new(1, 4), "clocks apart");
        later.events.tables[0].name = "mm_page_free".into();
        assert_eq!(of(&later), None, "no allocations recorded");
    }

    #[test]
    fn what_is_noted_is_read_again() {
        let mut meta = Meta::default();
        assert_eq!(Share::noted(&meta), None);
        let share = Share::new(3, 4).unwrap();
        share.note(&mut meta);
        assert_eq!(Share::noted(&meta), Some(share));
        assert!((share.fraction() - 0.75).abs() < 1e-9);
        for bad in ["", "-1", "0", "x"] {
            meta.facts.insert(HOST_PAGES.into(), bad.into());
            assert_eq!(Share::noted(&meta), None, "{bad:?}");
        }
        assert_eq!(Share::new(9, 4).map(Share::fraction), Some(1.0));
    }
}
