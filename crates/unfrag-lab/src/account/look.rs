//! One look at a host's memory: frames by their flags, and the counters beside them.
//!
//! Flags of a host that runs are not read in one moment: each frame is as it was when its flags were read. So the counters are
//! read before and after, their mean stands beside the flags, and what was allocated and freed meanwhile is said. Frames on
//! per-CPU lists have no flag, so that what these hold is read several times on the way. What the reading itself takes (its
//! buffers may be a huge page) is taken before the first of these readings, so that it is in all of them.
//!
//! Invariant: nothing is guessed. A file that is missing is named, with what is not known without it.

use super::counters::Counters;
use super::tally::{Counted, Counting, Tally, Told};
use crate::geometry::PageSizeFrom;
use crate::host::files::{self, Files, Lacking, Reader, Unread};
use crate::host::{Host, OfSnapshot, whole};
use crate::report::number::{bytes, duration};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;
use unfrag_linux::kpageflags;
use unfrag_linux::procfs::{AllocInfo, VmStat, ZoneInfo, vmallocinfo};
use unfrag_linux::recording::Snapshot;

/// What is lacking without page flags.
const WITHOUT_FLAGS: &str =
    "uses are those that counters tell, and what none of them has is what is left";

const LACKING: &Lacking = &Lacking {
    needed: &[
        (
            "zoneinfo",
            "which frames exist, and what each node and zone has, not known",
        ),
        (
            "meminfo",
            "vmalloc, per-CPU areas and hugetlb pools not known",
        ),
        (kpageflags::NAME, WITHOUT_FLAGS),
    ],
    further: &[
        ("vmstat", "what changed meanwhile not known"),
        ("allocinfo", "who allocated it not known"),
        ("vmallocinfo", "vmalloc of each node not known"),
    ],
};

/// What changed while the flags were read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// Seconds that it took.
    pub seconds: f64,
    /// Frames that were allocated meanwhile; `null` without vmstat.
    pub allocated: Option<u64>,
    /// Frames that were freed meanwhile.
    pub freed: Option<u64>,
}

/// What was read at one moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// What it is of.
    pub source: String,
    /// Nanoseconds of the source's clock, where it has one.
    pub time: Option<u64>,
    /// The host.
    pub host: Host,
    /// Its counters.
    pub counters: Counters,
    /// Frames of each zone of the host, in its order; `None` without page flags or zoneinfo.
    pub zones: Option<Vec<Tally>>,
    /// What changed while they were read; `None` of a copy.
    pub drift: Option<Drift>,
    /// Whether zones of the host are missing from zoneinfo, so that counters of the host have more than its zones.
    pub lacks_zones: bool,
    /// Frames that per-CPU lists may have had more, or fewer, than what is counted as theirs.
    pub unsettled: u64,
    /// The same of each zone.
    pub unsettled_by_zone: Vec<u64>,
    /// Bytes by the place that allocated them.
    pub sites: Option<AllocInfo>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// What contradicts itself, and what was not understood.
    pub notes: Vec<String>,
}

impl Look {
    /// Reads the files of a host that runs. `page_size`: bytes in a page, where they are given.
    pub fn live(source: &str, from: &dyn Files, page_size: Option<u64>) -> Look {
        Look::read(source, from, true, page_size)
    }

    /// Reads a copy of the files of a host.
    pub fn copy(source: &str, from: &dyn Files, page_size: Option<u64>) -> Look {
        let mut look = Look::read(source, from, false, page_size);
        look.time = from.read("uptime").ok().and_then(|text| {
            let text = std::str::from_utf8(&text).ok()?;
            let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
            (0.0..1e9)
                .contains(&seconds)
                .then_some((seconds * 1e9) as u64)
        });
        look
    }

    /// Reads a snapshot.
    pub fn of_snapshot(source: &str, snapshot: &Snapshot, page_size: Option<u64>) -> Look {
        let mut look = Look::read(source, &OfSnapshot(snapshot), false, page_size);
        let times = [kpageflags::NAME, "zoneinfo", "meminfo"];
        look.time = times.iter().find_map(|f| snapshot.time_of(f));
        let of = |file| snapshot.time_of(file);
        if let (Some(flags), Some(counters), Some(_)) =
            (of(kpageflags::NAME), of("zoneinfo"), &look.zones)
        {
            let apart = flags.abs_diff(counters) as f64 / 1e9;
            if apart >= 1.0 {
                look.notes.push(format!(
                    "page flags and counters were read {} apart",
                    duration(apart)
                ));
            }
        }
        look
    }

    /// Whether any of the files was there that tell what memory is used for.
    pub fn tells(&self) -> bool {
        !self.counters.host.is_empty()
    }

    fn read(source: &str, from: &dyn Files, is_live: bool, page_size: Option<u64>) -> Look {
        let mut reader = Reader::new(from, LACKING);
        let host = measured(Host::read(&mut reader), page_size);
        let vmstat = reader.get("vmstat", VmStat::parse);
        let vmalloc = reader.get("vmallocinfo", vmallocinfo::by_node);
        let mut counters = Counters::read(&host, vmstat.as_ref(), vmalloc.as_ref());
        let spans: Vec<_> = host.zones.iter().map(|z| z.span()).collect();
        let is_told = host.zoneinfo.is_some() && spans.iter().all(|s| !s.is_empty());
        let mut lists = vec![];
        let mut before = None;
        let counted = is_told.then(|| {
            let counting = Counting::new(&spans, host.geometry.huge_order);
            let mut sample = || {
                if before.is_none() {
                    before = Some(Before::read(from, page_size, vmalloc.as_ref()));
                }
                let again = from.read("zoneinfo").ok();
                let zones = again.and_then(|text| files::zoneinfo(&text).ok());
                lists.extend(zones.map(|info| per_cpu_of(&host, &info)));
            };
            let mut nothing = || ();
            let between: &mut dyn FnMut() = if is_live { &mut sample } else { &mut nothing };
            reader.stream(kpageflags::NAME, |flags| counting.read(flags, between))
        });
        let sites = reader.get("allocinfo", files::allocinfo);
        let mut drift = None;
        let mut unread = std::mem::take(&mut reader.unread);
        let counted = counted.flatten().filter(|counted| {
            let why = unfit(counted, &host);
            unread.extend(why.iter().map(|why| Unread {
                file: kpageflags::NAME.to_owned(),
                why: format!("{why}: {WITHOUT_FLAGS}"),
            }));
            why.is_none()
        });
        if let Some(before) = before.filter(|_| counted.is_some()) {
            let again = measured(Host::read(&mut reader), page_size);
            let later = reader.get("vmstat", VmStat::parse);
            let after = Counters::read(&again, later.as_ref(), vmalloc.as_ref());
            counters = before.counters.mean(&after);
            lists.push(per_cpu(&again));
            drift = Some(Drift {
                seconds: before.begin.elapsed().as_secs_f64(),
                allocated: events(&before.vmstat, &later, |n| n.starts_with("pgalloc_")),
                freed: events(&before.vmstat, &later, |n| n == "pgfree"),
            });
        } else {
            lists.push(per_cpu(&host));
        }
        let mut notes = host.partly.clone();
        notes.extend(files::partly(&[
            ("meminfo", host.meminfo.as_ref().map(|f| &f.notes)),
            ("vmstat", vmstat.as_ref().map(|f| &f.notes)),
            ("allocinfo", sites.as_ref().map(|f| &f.notes)),
        ]));
        notes.extend(sites.iter().flat_map(files::of_allocinfo));
        if sites.is_none() && from.read("allocinfo").is_ok_and(|text| text.is_empty()) {
            notes.push("allocinfo is empty: who allocated it not known".into());
        }
        notes.extend(host.of_sizes.iter().cloned());
        let is_assumed = host.geometry.page_size_from == PageSizeFrom::Assumed;
        if is_assumed && !host.of_sizes.iter().any(|n| n.contains("--page-size")) {
            notes.push(format!(
                "no file tells the size of a page: {} are assumed for every size; give --page-size SIZE",
                bytes(host.geometry.page_size)
            ));
        }
        let exist = existing(&host);
        let outside = counted.as_ref().map_or(0, |c| c.outside);
        let lacks_zones = exist.lacks_zones(&host, outside);
        if lacks_zones {
            let what = "zoneinfo lacks zones of this host: what is counted by zone is of those that it lists, and how much of the host's counters lies in them is not known";
            notes.push(what.into());
        }
        if let Some(most) = exist.most() {
            notes.extend(counters.refuse_more_than(most));
        }
        if host.zoneinfo.is_some() {
            notes.extend(host.contradictions());
            if !is_told {
                let what =
                    "zoneinfo does not tell which frames each zone has, so page flags are not used";
                notes.push(what.into());
            }
        }
        let (on_lists, unsettled) = mean(&lists, host.zones.len());
        let unsettled_by_zone = off_by(&lists, host.zones.len());
        let zones = counted.map(|counted| {
            if counted.outside > 0 {
                notes.push(format!(
                    "{} frames in use lie outside of all zones that zoneinfo lists, and are not counted",
                    counted.outside
                ));
            }
            let mut zones = counted.zones;
            for (i, (tally, zone)) in zones.iter_mut().zip(&host.zones).enumerate() {
                let frames = counted.frames[i];
                if frames != spans[i].end - spans[i].start {
                    notes.push(format!(
                        "node {}, zone {}: another zone lies between its frames, and has those that both span",
                        zone.node, zone.name
                    ));
                }
                let untold = [
                    ("what exists of it", zone.told("present")),
                    ("what the allocator manages", zone.managed),
                    ("pages on per-CPU lists", on_lists[i]),
                ];
                let untold = untold.iter().filter(|(_, n)| n.is_none());
                notes.extend(untold.map(|(what, _)| {
                    format!(
                        "node {}, zone {}: zoneinfo does not tell {what}",
                        zone.node, zone.name
                    )
                }));
                let told = Told {
                    present: zone.told("present").unwrap_or(frames),
                    managed: zone.managed.or(zone.told("present")).unwrap_or(frames),
                    pcp: on_lists[i].unwrap_or(0),
                };
                let contradicted = tally.settle(frames, told);
                notes.extend(contradicted.into_iter().map(|what| {
                    format!("node {}, zone {}: {what}", zone.node, zone.name)
                }));
            }
            zones
        });
        Look {
            source: source.to_owned(),
            time: None,
            host,
            counters,
            zones,
            drift,
            lacks_zones,
            unsettled,
            unsettled_by_zone,
            sites,
            unread,
            notes,
        }
    }
}

/// What counters said when the first flags were read.
struct Before {
    begin: Instant,
    counters: Counters,
    vmstat: Option<VmStat>,
}

impl Before {
    /// Says nothing of what cannot be read: what was read first said that.
    fn read(
        from: &dyn Files,
        page_size: Option<u64>,
        vmalloc: Option<&BTreeMap<u32, u64>>,
    ) -> Before {
        let begin = Instant::now();
        let mut reader = Reader::new(from, Lacking::UNSAID);
        let host = measured(Host::read(&mut reader), page_size);
        let vmstat = reader.get("vmstat", VmStat::parse);
        Before {
            begin,
            counters: Counters::read(&host, vmstat.as_ref(), vmalloc),
            vmstat,
        }
    }
}

/// With this page size, where one is given.
fn measured(mut host: Host, page_size: Option<u64>) -> Host {
    if page_size.is_some() {
        host.measure(page_size, host.listed(), None);
    }
    host
}

/// Frames that exist, as two files tell.
struct Existing {
    /// As zoneinfo's zones have them.
    present: Option<u64>,
    /// As meminfo has them, but for those that the allocator was never given.
    total: Option<u64>,
}

fn existing(host: &Host) -> Existing {
    let total = host.meminfo_bytes("MemTotal");
    Existing {
        present: host.of_all(|z| z.pages("present")),
        total: total.map(|b| host.geometry.pages(b)),
    }
}

impl Existing {
    fn most(&self) -> Option<u64> {
        let most = self.present.max(self.total);
        most.filter(|n| *n > 0)
    }

    /// Whether the host has more than its zones. `outside`: frames in use outside of all of them, of which some hosts have a few.
    fn lacks_zones(&self, host: &Host, outside: u64) -> bool {
        let Some(present) = self.present else {
            return false;
        };
        let few = present / 50;
        let has_more = self.total.is_some_and(|t| t > present.saturating_add(few));
        host.zoneinfo.is_some() && (!host.gaps().is_empty() || outside > few || has_more)
    }
}

/// Why flags cannot be those of this host's frames.
fn unfit(counted: &Counted, host: &Host) -> Option<String> {
    if !counted.zones.is_empty() && counted.zones.iter().all(Tally::is_bare) {
        return Some("no frame has a flag in it".into());
    }
    let is_cut = |zone: &&crate::host::Zone| {
        let (span, end) = (zone.span(), counted.end);
        let unread = span.end.saturating_sub(span.start.max(end));
        let present = zone.told("present").unwrap_or(0);
        unread > (span.end - span.start).saturating_sub(present)
    };
    let zone = host.zones.iter().find(is_cut)?;
    Some(format!(
        "it ends at frame {}, and node {}, zone {} has more behind that: it is cut off",
        counted.end, zone.node, zone.name
    ))
}

/// Frames on per-CPU lists of each zone.
fn per_cpu(host: &Host) -> Vec<Option<u64>> {
    host.zones.iter().map(|z| z.pcp).collect()
}

/// As another reading has it.
fn per_cpu_of(host: &Host, info: &ZoneInfo) -> Vec<Option<u64>> {
    let of = |z: &crate::host::Zone| whole::pcp_pages(info.zone(z.node, &z.name)?);
    host.zones.iter().map(of).collect()
}

/// The mean of several readings, and half of what all together differ by.
fn mean(lists: &[Vec<Option<u64>>], zones: usize) -> (Vec<Option<u64>>, u64) {
    let of = |zone: usize| {
        let all: Option<Vec<u64>> = lists.iter().map(|l| *l.get(zone)?).collect();
        let all = all?;
        let n = all.len() as u64;
        Some(all.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)) / n.max(1))
    };
    let sum = |l: &Vec<Option<u64>>| {
        let told = l.iter().flatten();
        told.fold(0, |sum: u64, n| sum.saturating_add(*n))
    };
    let most = lists.iter().map(sum).max().unwrap_or(0);
    let least = lists.iter().map(sum).min().unwrap_or(0);
    ((0..zones).map(of).collect(), (most - least).div_ceil(2))
}

/// Half of what several readings of each zone differ by.
fn off_by(lists: &[Vec<Option<u64>>], zones: usize) -> Vec<u64> {
    let of = |zone: usize| {
        let told = || lists.iter().filter_map(|l| *l.get(zone)?);
        let most = told().max().unwrap_or(0);
        (most - told().min().unwrap_or(0)).div_ceil(2)
    };
    (0..zones).map(of).collect()
}

/// Events between two readings.
fn events(
    before: &Option<VmStat>,
    after: &Option<VmStat>,
    is_one: impl Fn(&str) -> bool,
) -> Option<u64> {
    let sum = |stat: &VmStat| {
        let of = stat.counters.iter().filter(|(name, _)| is_one(name));
        let mut all = of.map(|(_, n)| n).peekable();
        all.peek()?;
        Some(all.fold(0, u64::saturating_add))
    };
    sum(after.as_ref()?)?.checked_sub(sum(before.as_ref()?)?)
}
