//! A diagnosis in the text format of OpenMetrics.
//!
//! Names and units by Prometheus' conventions: bytes, seconds and ratios, never pages or percent; counters
//! end in `_total`. Zones of a node are told apart by labels.

use prometheus_client::encoding::text::encode as write;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use unfrag_lab::doctor::work::Work;
use unfrag_lab::doctor::{Diagnosis, Forecast, ZoneDiagnosis};

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Gauges of one name.
struct Named(Gauges);

impl Named {
    fn new(registry: &mut Registry, name: &str, help: &str) -> Named {
        let family = Gauges::default();
        registry.register(name, help, family.clone());
        Named(family)
    }

    /// Sets what is known.
    fn set_known(&self, labels: Labels, value: Option<f64>) {
        if let Some(value) = value {
            self.set(labels, value);
        }
    }

    fn set(&self, labels: Labels, value: impl Into<f64>) {
        self.0.get_or_create(&labels).set(value.into());
    }
}

/// Names of the counters that [`Work`] has, without `unfrag_` and `_total`.
const COUNTERS: [(&str, &str); 15] = [
    ("allocstall", "direct_reclaim_stalls"),
    ("compact_stall", "compaction_stalls"),
    ("compact_fail", "compaction_failures"),
    ("compact_success", "compaction_successes"),
    ("compact_daemon_wake", "kcompactd_wakeups"),
    (
        "compact_migrate_scanned",
        "compaction_migrate_scanned_pages",
    ),
    ("compact_free_scanned", "compaction_free_scanned_pages"),
    ("pgmigrate_success", "migrated_pages"),
    ("pgmigrate_fail", "migration_failed_pages"),
    ("thp_fault_alloc", "thp_faults"),
    ("thp_fault_fallback", "thp_fault_fallbacks"),
    ("htlb_buddy_alloc_fail", "hugetlb_allocation_failures"),
    ("pgscan_direct", "direct_reclaim_scanned_pages"),
    ("pgscan_kswapd", "kswapd_scanned_pages"),
    ("oom_kill", "oom_kills"),
];

/// The text. `with_flags` is the last diagnosis that saw page flags, and its age.
pub fn encode(now: &Diagnosis, with_flags: Option<(&Diagnosis, Duration)>) -> String {
    let mut registry = Registry::with_prefix("unfrag");
    sizes(&mut registry, now);
    zones(&mut registry, now);
    nodes(&mut registry, now);
    now.work.iter().for_each(|w| counter(&mut registry, w));
    huge_pages(&mut registry, now, with_flags.map(|(d, _)| d));
    if let Some((d, age)) = with_flags.filter(|(d, _)| d.obstacles.is_some()) {
        obstacles(&mut registry, d);
        Named::new(
            &mut registry,
            "page_flags_age_seconds",
            "Age of what was read from page flags",
        )
        .set(vec![], age.as_secs_f64());
    }
    let unread = Named::new(
        &mut registry,
        "source_readable",
        "Whether a file of procfs could be read",
    );
    for file in [
        "buddyinfo",
        "zoneinfo",
        "pagetypeinfo",
        "meminfo",
        "vmstat",
        "slabinfo",
        "kpageflags",
    ] {
        let seen = match (file, with_flags) {
            ("kpageflags", flags) => flags.is_some_and(|(d, _)| d.obstacles.is_some()),
            _ => now.unread.iter().all(|u| u.file != file),
        };
        unread.set(vec![("file", file.into())], f64::from(u8::from(seen)));
    }
    let mut out = String::new();
    write(&mut out, &registry).expect("a String takes everything");
    out
}

fn zone_labels(z: &ZoneDiagnosis) -> Labels {
    vec![("node", z.node.to_string()), ("zone", z.zone.clone())]
}

fn sizes(r: &mut Registry, d: &Diagnosis) {
    let page = Named::new(r, "page_size_bytes", "Size of a page");
    page.set(vec![], d.page_size as f64);
    let huge = Named::new(r, "huge_page_size_bytes", "Size of a huge page");
    huge.set(vec![], d.huge_page_bytes as f64);
}

fn zones(r: &mut Registry, d: &Diagnosis) {
    let size = |pages: u64| pages.saturating_mul(d.page_size) as f64;
    let free = Named::new(r, "free_bytes", "Memory on the buddy lists");
    let managed = Named::new(r, "managed_bytes", "Memory that the allocator manages");
    let pcp = Named::new(r, "per_cpu_bytes", "Memory on per-CPU lists");
    let marks = Named::new(r, "watermark_bytes", "Watermarks, boost included");
    let blocks = Named::new(r, "free_huge_pages", "Free blocks of a huge page's size");
    let outside = Named::new(
        r,
        "free_outside_huge_pages_ratio",
        "Share of free memory outside blocks of a huge page's size",
    );
    let unusable = Named::new(
        r,
        "unusable_index_ratio",
        "Share of free memory that an order cannot use",
    );
    let why = Named::new(
        r,
        "fragmentation_index_ratio",
        "Why an order would fail: 0 lack of memory, 1 fragmentation, -1 it would not",
    );
    for z in &d.zones {
        let with = |key: &'static str, value: String| {
            let mut labels = zone_labels(z);
            labels.push((key, value));
            labels
        };
        free.set_known(zone_labels(z), z.free_pages.map(size));
        pcp.set_known(zone_labels(z), z.pcp_pages.map(size));
        blocks.set_known(zone_labels(z), z.free_huge_blocks.map(|n| n as f64));
        let share = z.extfrag_for_order_9.map(|n| n as f64 / 100.0);
        outside.set_known(zone_labels(z), share);
        managed.set_known(zone_labels(z), z.managed_pages.map(size));
        for (mark, pages) in ["min", "low", "high"]
            .into_iter()
            .zip(z.watermarks.into_iter().flatten())
        {
            marks.set(with("mark", mark.into()), size(pages));
        }
        for (order, &value) in &z.unusable_index {
            unusable.set(with("order", order.to_string()), value);
        }
        for (order, &value) in &z.fragmentation_index {
            why.set(with("order", order.to_string()), value);
        }
    }
}

fn nodes(r: &mut Registry, d: &Diagnosis) {
    let score = Named::new(
        r,
        "fragmentation_score_ratio",
        "Score of proactive compaction",
    );
    for n in &d.nodes {
        let share = n.score.map(|s| s as f64 / 100.0);
        score.set_known(vec![("node", n.node.to_string())], share);
    }
    let atomic = Named::new(
        r,
        "atomic_requests_in_a_row",
        "Requests that may not wait that succeed before the first fails, counted to 100000",
    );
    for a in &d.atomic {
        let labels = vec![("node", a.node.to_string()), ("order", a.order.to_string())];
        atomic.set_known(labels, a.in_a_row.map(|n| n as f64));
    }
}

fn counter(r: &mut Registry, w: &Work) {
    let Some((_, name)) = COUNTERS.iter().find(|(c, _)| *c == w.counter) else {
        return;
    };
    let counter: Counter = Counter::default();
    counter.inc_by(w.total);
    // Begins with a capital, as a sentence: `requests …` become `Requests …`.
    let mut help = w.what.to_owned();
    help[..1].make_ascii_uppercase();
    r.register(*name, help, counter);
}

fn huge_pages(r: &mut Registry, now: &Diagnosis, with_flags: Option<&Diagnosis>) {
    let had = Named::new(
        r,
        "obtainable_huge_pages",
        "Huge pages that can be had, by means",
    );
    for z in &now.zones {
        let seen = with_flags.and_then(|d| {
            d.zones
                .iter()
                .find(|o| (o.node, &o.zone) == (z.node, &z.zone))
        });
        let f: &Forecast = seen.map_or(&z.huge_pages, |o| &o.huge_pages);
        let means = [
            ("now", z.huge_pages.now),
            ("now_at_most", z.huge_pages.now_at_most),
            ("compaction", f.after_compaction),
            ("reclaim", f.after_reclaim),
            ("asking_again", f.by_asking_again),
            ("at_most", f.at_most),
        ];
        for (name, n) in means {
            let Some(n) = n else { continue };
            let mut labels = zone_labels(z);
            labels.push(("means", name.into()));
            had.set(labels, n as f64);
        }
    }
    let is_of_default = now
        .default_huge_page_bytes
        .is_none_or(|n| n == now.huge_page_bytes);
    if let Some(n) = now.huge_pages_in_pool.filter(|_| is_of_default) {
        Named::new(r, "hugetlb_pool_pages", "Huge pages in the hugetlb pool").set(vec![], n as f64);
    }
}

fn obstacles(r: &mut Registry, d: &Diagnosis) {
    let all = Named::new(
        r,
        "pageblocks",
        "Pageblocks that hold memory of the allocator",
    );
    let memory = Named::new(
        r,
        "obstacle_bytes",
        "Memory that stands in the way of huge pages, by kind",
    );
    let blocks = Named::new(
        r,
        "obstacle_pageblocks",
        "Pageblocks that hold memory of this kind",
    );
    let alone = Named::new(
        r,
        "obstacle_alone_pageblocks",
        "Pageblocks that nothing but this kind spoils",
    );
    for z in &d.zones {
        if let Some(n) = z.blocks {
            all.set(zone_labels(z), n as f64);
        }
        for o in z.obstacles.iter().flatten() {
            let labels = || {
                let mut labels = zone_labels(z);
                let kind = serde_json::to_value(o.kind).expect("a plain name");
                labels.push(("kind", kind.as_str().unwrap_or_default().to_owned()));
                labels
            };
            memory.set(labels(), o.pages.saturating_mul(d.page_size) as f64);
            blocks.set(labels(), o.blocks as f64);
            alone.set(labels(), o.blocks_alone as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_lab::doctor::{Evidence, examine};

    fn diagnosis() -> Diagnosis {
        let read = |name: &str| match name {
            "buddyinfo" => Ok(b"Node 0, zone DMA32 100 50 0 0 0 0 0 0 0 1 2 \n".to_vec()),
            "vmstat" => Ok(b"compact_stall 7\n".to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        examine(&Evidence::read("here", read).unwrap())
            .unwrap()
            .diagnosis
    }

    #[test]
    fn names_carry_units_and_counters_end_in_total() {
        let text = encode(&diagnosis(), None);
        assert!(
            text.contains("unfrag_free_bytes{node=\"0\",zone=\"DMA32\"} 11304960"),
            "{text}"
        );
        assert!(text.contains("unfrag_compaction_stalls_total 7"), "{text}");
        assert!(text.contains("means=\"now_at_most\"} 5"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        for line in text.lines().filter(|l| !l.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(!name.contains("percent") && !name.contains("kib"), "{name}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let text = encode(&diagnosis(), None);
        for absent in [
            "unfrag_obstacle_bytes{",
            "unfrag_watermark_bytes{",
            "unfrag_managed_bytes{",
            "compaction\"}",
        ] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
        assert!(
            text.contains("unfrag_source_readable{file=\"zoneinfo\"} 0"),
            "{text}"
        );
    }

    #[test]
    fn a_zone_that_may_be_protected_promises_nothing() {
        let read = |name: &str| {
            match name {
            "buddyinfo" => Ok(
                b"Node 0, zone DMA 0 0 0 0 0 0 0 0 0 1 3 \nNode 0, zone Normal 9 0 0 0 0 0 0 0 0 0 0 \n"
                    .to_vec(),
            ),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
        };
        let d = examine(&Evidence::read("here", read).unwrap());
        let text = encode(&d.unwrap().diagnosis, None);
        assert!(!text.contains("zone=\"DMA\",means=\"now\""), "{text}");
        assert!(text.contains("zone=\"Normal\",means=\"now\"} 0"), "{text}");
    }

    #[test]
    fn every_counter_of_the_doctor_has_a_name_here() {
        for (counter, ..) in unfrag_lab::doctor::work::COUNTERS {
            assert!(COUNTERS.iter().any(|(c, _)| *c == counter), "{counter}");
        }
    }
}
