//! A reading of a host in the text format of OpenMetrics.
//!
//! Names and units by Prometheus' conventions: bytes, seconds and ratios, never pages or percent; counters
//! have the kernel's own names, and end in `_total`. Zones of a node are told apart by labels.

use super::files;
use super::gauges::{Labels, Named, of_zone};
use super::need::{self, Need};
use prometheus_client::encoding::text::encode as write;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::time::Duration;
use unfrag_lab::doctor::work::{self, Work};
use unfrag_lab::doctor::{Diagnosis, Evidence, Forecast, ZoneDiagnosis};

/// One reading of a host.
pub struct Reading {
    /// What was read.
    pub evidence: Evidence,
    /// What the doctor makes of it.
    pub diagnosis: Diagnosis,
}

/// What is known of page flags.
#[derive(Clone, Copy, Default)]
pub struct PageFlags<'a> {
    /// Pause between two readings; `None` where they are not asked for.
    pub every: Option<Duration>,
    /// The last diagnosis that saw them, and its age.
    pub last: Option<(&'a Diagnosis, Duration)>,
}

/// The text.
pub fn encode(reading: &Reading, flags: PageFlags<'_>, needs: &[Need]) -> String {
    let now = &reading.diagnosis;
    let last = flags.last.filter(|(d, _)| d.obstacles.is_some());
    let mut registry = Registry::with_prefix("unfrag");
    sizes(&mut registry, now);
    zones(&mut registry, now);
    files::register(&mut registry, &reading.evidence);
    nodes(&mut registry, now);
    if let Some(stat) = &reading.evidence.vmstat {
        let each = now.work.iter();
        each.for_each(|w| counter(&mut registry, w, work::kernels_name(stat, w.counter)));
    }
    huge_pages(&mut registry, now, last.map(|(d, _)| d));
    need::register(&mut registry, needs);
    if let Some((d, _)) = last {
        obstacles(&mut registry, d);
    }
    page_flags(&mut registry, flags.every, last.map(|(_, age)| age));
    sources(&mut registry, now, flags.every.map(|_| last.is_some()));
    let mut out = String::new();
    write(&mut out, &registry).expect("a String takes everything");
    out
}

/// How old the figures from page flags are, and how often they are asked for.
fn page_flags(r: &mut Registry, every: Option<Duration>, age: Option<Duration>) {
    let seconds = |d: Duration| d.as_secs_f64();
    if let Some(age) = age {
        let help = "Age of what was read from page flags";
        Named::new(r, "page_flags_age_seconds", help).set(vec![], seconds(age));
    }
    if let Some(every) = every {
        let help = "Pause between two readings of page flags";
        Named::new(r, "page_flags_interval_seconds", help).set(vec![], seconds(every));
    }
}

/// Which files could be read. `flags`: whether page flags were; `None` where nobody asked for them.
fn sources(r: &mut Registry, now: &Diagnosis, flags: Option<bool>) {
    let readable = Named::new(
        r,
        "source_readable",
        "Whether a file of procfs could be read",
    );
    let names = [
        "buddyinfo",
        "zoneinfo",
        "pagetypeinfo",
        "meminfo",
        "vmstat",
        "slabinfo",
    ];
    let seen = |file| Some(now.unread.iter().all(|u| u.file != file));
    let each = names.into_iter().map(|file| (file, seen(file)));
    for (file, seen) in each.chain([("kpageflags", flags)]) {
        let value = seen.map(|seen| f64::from(u8::from(seen)));
        readable.set_known(vec![("file", file.into())], value);
    }
}

fn zone_labels(z: &ZoneDiagnosis) -> Labels {
    of_zone(z.node, &z.zone)
}

fn sizes(r: &mut Registry, d: &Diagnosis) {
    let page = Named::new(r, "page_size_bytes", "Size of a page");
    page.set(vec![], d.page_size as f64);
    let huge = Named::new(r, "huge_page_size_bytes", "Size of a huge page");
    huge.set(vec![], d.huge_page_bytes as f64);
    let all = [
        (
            "unmanaged_bytes",
            "Memory that MemTotal counts and no zone manages yet, as the kernel adds it when asked",
            d.memory.unmanaged_bytes,
        ),
        (
            "unmanaged_free_bytes",
            "What of that is free",
            d.memory.unmanaged_free_bytes,
        ),
    ];
    for (name, help, value) in all {
        let value = value.map(|n| n as f64);
        Named::new(r, name, help).set_known(vec![], value);
    }
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

/// A counter, under the `name` that it has in vmstat.
fn counter(r: &mut Registry, w: &Work, name: &str) {
    let counter: Counter = Counter::default();
    counter.inc_by(w.total);
    // Begins with a capital, as a sentence: `requests …` become `Requests …`.
    let mut help = w.what.to_owned();
    help[..1].make_ascii_uppercase();
    r.register(format!("vmstat_{name}"), help, counter);
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
        "obstacle_examined_pageblocks",
        "Blocks of a huge page's size that were looked through for obstacles",
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
    use unfrag_lab::doctor::examine;

    fn of(evidence: Evidence) -> Reading {
        let diagnosis = examine(&evidence).unwrap().diagnosis;
        Reading {
            evidence,
            diagnosis,
        }
    }

    fn plainly(reading: &Reading) -> String {
        encode(reading, PageFlags::default(), &[])
    }

    fn reading() -> Reading {
        let read = |name: &str| match name {
            "buddyinfo" => Ok(b"Node 0, zone DMA32 100 50 0 0 0 0 0 0 0 1 2 \n".to_vec()),
            "vmstat" => Ok(b"compact_stall 7\n".to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        of(Evidence::read("here", read).unwrap())
    }

    #[test]
    fn names_carry_units_and_counters_end_in_total() {
        let text = plainly(&reading());
        assert!(
            text.contains("unfrag_free_bytes{node=\"0\",zone=\"DMA32\"} 11304960"),
            "{text}"
        );
        assert!(
            text.contains("unfrag_vmstat_compact_stall_total 7"),
            "{text}"
        );
        assert!(text.contains("means=\"now_at_most\"} 5"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        for line in text.lines().filter(|l| !l.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(!name.contains("percent") && !name.contains("kib"), "{name}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let text = plainly(&reading());
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
        let text = plainly(&of(Evidence::read("here", read).unwrap()));
        assert!(!text.contains("zone=\"DMA\",means=\"now\""), "{text}");
        assert!(text.contains("zone=\"Normal\",means=\"now\"} 0"), "{text}");
    }

    #[test]
    fn page_flags_that_nobody_asked_for_are_not_unreadable() {
        let of_flags = |text: &str| {
            let lines = text
                .lines()
                .filter(|l| l.contains("kpageflags") || l.contains("page_flags"));
            lines
                .filter(|l| !l.starts_with('#'))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(of_flags(&plainly(&reading())), Vec::<String>::new());
        let asked = PageFlags {
            every: Some(Duration::from_secs(60)),
            last: None,
        };
        let expected = [
            "unfrag_page_flags_interval_seconds{} 60.0",
            "unfrag_source_readable{file=\"kpageflags\"} 0.0",
        ];
        assert_eq!(of_flags(&encode(&reading(), asked, &[])), expected);
    }

    #[test]
    fn the_larger_of_two_needs_for_one_place_holds() {
        let needs = ["9", "512", "7@node1"].map(|n| n.parse().unwrap());
        let text = encode(&reading(), PageFlags::default(), &needs);
        assert!(text.contains("unfrag_needed_huge_pages{} 512.0"), "{text}");
        assert!(
            text.contains("unfrag_needed_huge_pages{node=\"1\"} 7.0"),
            "{text}"
        );
        assert!(!plainly(&reading()).contains("unfrag_needed"));
    }

    #[test]
    fn the_number_of_caches_is_bounded_and_their_sum_is_not_cut() {
        let mut text = String::from("slabinfo - version: 2.1\n# name\n");
        for i in 0..200 {
            let name = format!("c{i}\"\\{{");
            text += &format!(
                "{name:<17} {:>6} {:>6} {:>6} {:>4} {:>4} : tunables {:>4} {:>4} {:>4} : slabdata {i:>6} {i:>6} {:>6}\n",
                i * 20,
                i * 21,
                192,
                21,
                2,
                0,
                0,
                0,
                0
            );
        }
        let read = |name: &str| match name {
            "slabinfo" => Ok(text.clone().into_bytes()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        let out = plainly(&of(Evidence::read("here", read).unwrap()));
        let caches: Vec<&str> = out
            .lines()
            .filter(|l| l.starts_with("unfrag_slab_cache_bytes{"))
            .collect();
        assert_eq!(caches.len(), files::CACHES, "{out}");
        let largest = format!(
            r#"unfrag_slab_cache_bytes{{cache="c199\"\\{{"}} {}.0"#,
            199 * 2 * 4096
        );
        assert!(
            caches.contains(&largest.as_str()),
            "{largest} in {caches:?}"
        );
        let all = format!(
            "unfrag_slab_bytes{{}} {}.0",
            (0..200).sum::<u64>() * 2 * 4096
        );
        assert!(out.contains(&all), "{all} in {out}");
    }
}
