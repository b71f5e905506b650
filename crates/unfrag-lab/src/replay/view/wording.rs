//! Sentences and phrases about a report that the terminal, the page and the picture share.
//!
//! Invariant: a sentence says no more than the [`Report`] holds, and every number carries its unit.

use crate::geometry::Sizes;
use crate::replay::answer::Report;
use crate::replay::answer::report::{
    Accuracy, FrameMatch, HugeFaults, Measure, Sample, ZoneSample,
};
use crate::report::number::{bytes, duration, percent, thousands};
use crate::report::screen::printable;
use std::collections::BTreeSet;

/// A zone below this share of the managed memory is reported but neither pooled nor drawn first.
const SMALL_ZONE: f64 = 0.05;

/// A zone that occurs in a report.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneChoice {
    /// Node id.
    pub node: u32,
    /// Zone name, such as `DMA32`.
    pub zone: String,
    /// Pages that the zone manages, by the first sample that shows it.
    pub managed_pages: u64,
    /// Share of the pages that all zones manage, 0 to 1.
    pub share: f64,
}

impl ZoneChoice {
    /// `DMA32`, or `node 1 DMA32` where there are several nodes.
    pub fn label(&self, many_nodes: bool) -> String {
        if many_nodes {
            format!("node {} {}", self.node, self.zone)
        } else {
            self.zone.clone()
        }
    }

    /// Whether the zone holds enough of the memory for accuracy to be pooled over it.
    pub fn matters(&self) -> bool {
        self.share >= SMALL_ZONE
    }

    /// This zone's state in `sample`.
    pub fn of<'a>(&self, sample: &'a Sample) -> Option<&'a ZoneSample> {
        sample
            .zones
            .iter()
            .find(|z| z.node == self.node && z.zone == self.zone)
    }

    /// This zone's state in the last sample that shows it.
    pub fn last<'a>(&self, samples: &'a [Sample]) -> Option<&'a ZoneSample> {
        samples.iter().rev().find_map(|s| self.of(s))
    }
}

/// Every zone that the report shows, the largest first.
pub fn zones(report: &Report) -> Vec<ZoneChoice> {
    let mut found: Vec<ZoneChoice> = Vec::new();
    let first = report.recorded.iter().take(1);
    let each = report.kernels.iter().flat_map(|k| k.samples.iter().take(1));
    for zone in first.chain(each).flat_map(|s| &s.zones) {
        if !found
            .iter()
            .any(|f| f.node == zone.node && f.zone == zone.zone)
        {
            found.push(ZoneChoice {
                node: zone.node,
                zone: zone.zone.clone(),
                managed_pages: zone.managed_pages,
                share: 0.0,
            });
        }
    }
    let all: u64 = found.iter().map(|z| z.managed_pages).sum();
    for zone in &mut found {
        zone.share = ratio(zone.managed_pages, all);
    }
    found.sort_by(|a, b| {
        b.managed_pages
            .cmp(&a.managed_pages)
            .then_with(|| (a.node, &a.zone).cmp(&(b.node, &b.zone)))
    });
    found
}

/// Whether the zones lie on more than one node.
pub fn many_nodes(zones: &[ZoneChoice]) -> bool {
    zones.iter().any(|z| z.node != zones[0].node)
}

/// Names of pageblock types in these zone states, the common ones first.
pub fn pageblock_types<'a>(states: impl Iterator<Item = &'a ZoneSample>) -> Vec<String> {
    const FIRST: [&str; 3] = ["Unmovable", "Movable", "Reclaimable"];
    let names: BTreeSet<&String> = states.flat_map(|z| z.pageblocks.keys()).collect();
    let rank = |name: &str| FIRST.iter().position(|f| *f == name).unwrap_or(FIRST.len());
    let mut names: Vec<String> = names.into_iter().cloned().collect();
    names.sort_by_key(|n| rank(n));
    names
}

/// `part / whole`, 0 if there is no whole.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// One measure of the accuracy, ready to be printed.
#[derive(Clone, Debug)]
pub struct AccuracyRow {
    /// What is measured.
    pub name: String,
    /// Unit of the error.
    pub unit: &'static str,
    /// The numbers.
    pub measure: Measure,
    /// What the numbers mean, in one sentence.
    pub plain: String,
    /// Whether the error is a share, shown in percent.
    is_share: bool,
}

impl AccuracyRow {
    /// An error of this measure as text: a percentage, or four decimals of the index.
    pub fn error(&self, value: f64) -> String {
        if self.is_share {
            percent(value)
        } else {
            format!("{value:.4}")
        }
    }
}

/// The measures in the order in which they are shown.
pub fn accuracy_rows(accuracy: &Accuracy, sizes: &Sizes) -> Vec<AccuracyRow> {
    let share = |name: &str, unit, measure: Measure, before: &str, after: &str| AccuracyRow {
        name: name.into(),
        unit,
        measure,
        is_share: true,
        plain: format!(
            "At half of the snapshots {before} at most {} {after}; at nine of ten, at most {}.",
            percent(measure.median),
            percent(measure.p90)
        ),
    };
    let index = |order: u8| {
        let measure = *accuracy.unusable_index_error.get(&order.to_string())?;
        let size = sizes.of_order(order);
        Some(AccuracyRow {
            name: format!("Unusable index, order {order}"),
            unit: "index 0 to 1",
            measure,
            is_share: false,
            plain: format!(
                "Half of the snapshots are within {:.4} of the recorded share of free memory that \
                 cannot serve a {size} request; nine of ten, within {:.4}.",
                measure.median, measure.p90
            ),
        })
    };
    let mut rows = vec![
        share(
            "Order distribution",
            "of free pages",
            accuracy.order_distribution_error,
            "",
            "of free memory sits in blocks of another size than recorded",
        ),
        share(
            "Free pages",
            "of free pages",
            accuracy.free_pages_error,
            "the amount of free memory is off by",
            "",
        ),
    ];
    rows.extend(index(3));
    rows.extend(index(sizes.large_order()));
    rows.extend(accuracy.pageblock_type_error.map(|measure| {
        share(
            "Pageblock type",
            "of pageblocks",
            measure,
            "",
            "of pageblocks have another type than recorded",
        )
    }));
    for row in &mut rows {
        row.plain = row.plain.replace("  ", " ").replace(" ;", ";");
    }
    rows
}

/// The share of allocations on the kernel's own frame, in one sentence.
pub fn frame_match_sentence(m: &FrameMatch) -> String {
    format!(
        "Frames: {} of {} allocations ({}) on the kernel's own frame.",
        thousands(m.matched),
        thousands(m.allocations),
        percent(ratio(m.matched, m.allocations))
    )
}

/// Which faults got a huge page, in one sentence.
pub fn huge_faults_sentence(h: &HugeFaults) -> String {
    let share = |s: Option<f64>| s.map_or_else(|| "-".into(), percent);
    let wait = h.wait.map_or_else(String::new, |w| {
        format!(
            " {:.1} % were served without compaction of their own; the 90th percentile of the wait is {:.0} times the median.",
            w.at_once_percent, w.p90_over_p50
        )
    });
    format!(
        "Huge-page faults: {} of {} got one, {} in the recording, {} in both (precision {}, recall {}).{wait}",
        thousands(h.predicted),
        thousands(h.faults),
        thousands(h.recorded),
        thousands(h.both),
        share(h.precision),
        share(h.recall)
    )
}

/// The notes of all kernels, each once. A note that does not hold for all kernels names those it holds for.
pub fn notes(report: &Report) -> Vec<String> {
    if report.kernels.is_empty() {
        return vec![];
    }
    let mut said: Vec<(&String, Vec<&str>)> = Vec::new();
    for kernel in &report.kernels {
        for note in &kernel.notes {
            match said.iter_mut().find(|(n, _)| *n == note) {
                Some((_, names)) => names.push(&kernel.kernel),
                None => said.push((note, vec![&kernel.kernel])),
            }
        }
    }
    let all = report.kernels.len();
    let said = said.into_iter().map(|(note, names)| {
        if names.len() == all {
            note.clone()
        } else {
            format!("{}: {note}", names.join(", "))
        }
    });
    std::iter::once(start_sentence(report))
        .chain(said)
        .collect()
}

/// How much better than counting a measure is: a phrase for a table.
pub fn skill_words(skill: Option<f64>) -> &'static str {
    match skill {
        None => "nothing to compare with",
        Some(s) if s >= 0.8 => "much better than counting",
        Some(s) if s >= 0.5 => "better than counting",
        Some(s) if s > 0.05 => "little better than counting",
        Some(s) if s > -0.05 => "no better than counting",
        Some(_) => "worse than counting",
    }
}

/// Whether an era has the name of the release that was recorded, and is not just the nearest to it.
pub(super) fn is_own_release(era: &str, release: &str) -> bool {
    let rest = release.strip_prefix(era);
    release.is_empty() || rest.is_some_and(|r| !r.starts_with(|c: char| c.is_ascii_digit()))
}

/// The recording in one sentence.
pub fn recording_sentence(report: &Report) -> String {
    let r = &report.recording;
    format!(
        "{}: Linux {}, {} {}, {} managed, {} events and {} snapshots in {}.",
        printable(&r.file),
        printable(&r.kernel_release),
        r.cpus,
        if r.cpus == 1 { "CPU" } else { "CPUs" },
        bytes(r.managed_bytes),
        thousands(r.events),
        thousands(r.snapshots),
        duration(r.seconds)
    )
}

/// What was replayed, and under what, in one sentence.
pub fn head_sentence(report: &Report) -> String {
    let r = &report.recording;
    let recording = format!(
        "{}: kernel {}, {}, {}, {} events",
        printable(&r.file),
        printable(&r.kernel_release),
        bytes(r.managed_bytes),
        duration(r.seconds),
        thousands(r.events)
    );
    if report.mode == "observe" {
        return format!("{recording}; every frame where the trace put it.");
    }
    let names: Vec<&str> = report.kernels.iter().map(|k| k.kernel.as_str()).collect();
    let names = match &names[..] {
        [] => "no kernel".into(),
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        [one, ..] => (*one).to_string(),
    };
    let with = match report.asked_settings.is_empty() {
        true => String::new(),
        false => format!(" with {}", report.asked_settings.join(", ")),
    };
    format!("{recording}; replayed under {names}{with}.")
}

/// Where the replay begins, in one sentence.
pub fn start_sentence(report: &Report) -> String {
    let start = match report.start.as_str() {
        "exact" => "the kernel's own free lists",
        "occupancy" => "each page as the page flags of the first snapshot show it",
        "counts" => "the counts in the first snapshot",
        "boot" => "a boot of its own that places anew what was in use",
        other => other,
    };
    format!("The replay begins at {start}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::number::{mib, order_size};

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(mib(256), "1.0");
        assert_eq!(mib(1_000_000), "3,906.3");
        assert_eq!(bytes(640 << 20), "640 MiB");
        assert_eq!(order_size(0), "4 KiB");
        assert_eq!(order_size(9), "2 MiB");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.00001), "< 0.01 %");
        assert_eq!(percent(0.0312), "3.1 %");
        assert_eq!(percent(0.91), "91 %");
        assert_eq!(percent(0.99999), "99.99 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(duration(725.2), "12 min 5 s");
    }

    #[test]
    fn the_nearest_era_is_not_the_recorded_kernel() {
        assert!(is_own_release("6.1", "6.1.0-56-cloud-amd64"));
        assert!(is_own_release("6.18", "6.18"));
        assert!(!is_own_release("6.1", "6.18.2"));
        assert!(!is_own_release("6.1", "5.14.0-362.el9"));
    }

    #[test]
    fn skill_reads_from_better_to_worse() {
        assert_eq!(skill_words(Some(0.93)), "much better than counting");
        assert_eq!(skill_words(Some(0.0)), "no better than counting");
        assert_eq!(skill_words(Some(-1.5)), "worse than counting");
        assert_eq!(skill_words(None), "nothing to compare with");
    }
}
