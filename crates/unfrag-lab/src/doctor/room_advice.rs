//! Advice to make room for large blocks, once: where requests for them went unserved while the host was watched.
//!
//! Invariant: the reason names each number that speaks for it, and which requests it concerns; the change is what the forecast
//! has for the very command. Where that is no gain, the advice is withdrawn.

use super::advice::{Advice, Change, Lasts, MadeHugePages, Sure, Unit};
use super::answer::{DROP, preparing};
use super::diagnosis::{Diagnosis, Obstacle, ZoneDiagnosis};
use super::evidence::Evidence;
use super::frames::FrameUse;
use super::needs::{needs, past_needs};
use super::obstacles::held_by_slab;
use super::slabs;
use super::standing::Standing;
use super::watch::Watch;
use crate::report::number::{bytes, thousands};
use std::sync::Arc;

/// Share of blocks that slab alone spoils, above which it is worth shrinking.
const SPOILED_SHARE: f64 = 0.10;

/// Room for large blocks, for all reasons together.
pub(super) fn make_room(d: &Diagnosis, e: &Evidence, watch: &Watch) -> Option<(Advice, Standing)> {
    let is_watched = watch.watched().readings > 1;
    let mut reasons = match is_watched {
        true => needs(watch),
        false => past_needs(d),
    };
    if reasons.is_empty() && is_watched {
        return None;
    }
    let scattered: Vec<&ZoneDiagnosis> = d.zones.iter().filter(|z| is_scattered(z)).collect();
    reasons.extend(scattered.iter().map(|z| nothing_whole(d, z)));
    if reasons.is_empty() {
        return None;
    }
    // What is free makes no block unless there is enough of it.
    let is_short = !scattered.is_empty()
        && scattered
            .iter()
            .all(|z| z.free_pages.is_some_and(|n| n < 1 << d.huge_order));
    let f = &d.huge_pages;
    let gains = |to: Option<u64>| {
        Some((f.now?, to?)).filter(|(now, to)| to > now && (to - now) * 10 >= *to)
    };
    let with_compaction = gains(f.after_compaction);
    let with_both = gains(f.after_reclaim);
    let (drops, gain) = match (with_compaction, with_both) {
        (Some(gain), _) => (false, Some(gain)),
        (None, Some(gain)) => (true, Some(gain)),
        (None, None) => (is_short, None),
    };
    let (command, cost) = match (e.compacts(), drops) {
        (true, drops) => (
            preparing(d, drops, true).join("; "),
            match drops {
                false => "a CPU is busy for seconds while memory is moved; best in quiet hours",
                true => {
                    "what was cached is read from disk again; a CPU is busy for seconds while memory is moved"
                }
            },
        ),
        (false, _) => (
            DROP.into(),
            "what was cached is read from disk again; this kernel does not compact, so large blocks that must be had are best set aside at boot (hugepages=)",
        ),
    };
    let change = gain.map(|(from, to)| Change {
        what: format!("free huge pages of {}", bytes(d.huge_page_bytes)),
        unit: Unit::Number,
        from,
        to,
        sure: Sure::About,
    });
    let standing = match (is_watched, &change, f.now.zip(f.after_reclaim)) {
        (false, ..) => Standing::Needs(
            "a need for it now: unfrag doctor --for 60 while the load runs shows whether requests go unserved".into(),
        ),
        (true, Some(_), _) => Standing::Given,
        (true, None, Some((now, after))) => Standing::Against(format!(
            "{} huge pages can be had now, and {} after compacting and dropping caches: it would make no room worth its cost",
            thousands(now),
            thousands(after)
        )),
        (true, None, None) => Standing::Needs(
            "the number that it changes: page flags (/proc/kpageflags, that is root) would tell".into(),
        ),
    };
    let advice = Advice {
        command,
        lasts: Lasts::Once,
        setting: None,
        current: None,
        value: None,
        reason: reasons.join("; "),
        change,
        cost: cost.into(),
        prediction: None,
        predicted: None,
        huge_pages: None,
    };
    Some((advice, standing))
}

/// Shrinking slab, where it spoils many blocks and large blocks are wanted.
pub(super) fn shrink_slab(
    d: &Diagnosis,
    e: &Evidence,
    watch: &Watch,
) -> Option<(Advice, Standing)> {
    let needs = needs(watch);
    let blocks: u64 = d.zones.iter().filter_map(|z| z.blocks).sum();
    let slab = d
        .obstacles
        .as_ref()?
        .iter()
        .find(|o| o.kind == FrameUse::Slab)?;
    let (reclaimable, kept) = (
        e.host.meminfo_bytes("SReclaimable")?,
        e.host.meminfo_bytes("SUnreclaim")?,
    );
    let much = slab.blocks_alone as f64 > SPOILED_SHARE * blocks as f64 && reclaimable > kept;
    if needs.is_empty() || !much {
        return None;
    }
    let mut advice = shrink(d, e)?;
    advice.reason = format!(
        "slab alone is in the way in {} of {} blocks, and {}",
        thousands(slab.blocks_alone),
        thousands(blocks),
        needs.join("; ")
    );
    Some((advice, Standing::Given))
}

/// What helps against slab that stands in the way, should more large blocks be needed.
pub(super) fn shrink(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    let slab = d
        .obstacles
        .as_ref()?
        .iter()
        .find(|o| o.kind == FrameUse::Slab)?;
    let reclaimable = e.host.meminfo_bytes("SReclaimable").filter(|&n| n > 0)?;
    if slab.blocks == 0 {
        return None;
    }
    let named: Vec<String> = slabs::shrinkable(e, d.page_size)
        .into_iter()
        .map(|(name, pages)| format!("{name} {}", bytes(pages.saturating_mul(d.page_size))))
        .collect();
    let named = match named.is_empty() {
        true => String::new(),
        false => format!(": {}", named.join(", ")),
    };
    Some(Advice {
        command: "echo 2 > /proc/sys/vm/drop_caches".into(),
        lasts: Lasts::Once,
        setting: None,
        current: None,
        value: None,
        reason: format!(
            "slab is in {} blocks, and {} of it can be reclaimed{named}",
            thousands(slab.blocks),
            bytes(reclaimable)
        ),
        change: Some(Change {
            what: "slab that can be reclaimed".into(),
            unit: Unit::Bytes,
            from: reclaimable,
            to: 0,
            sure: Sure::AtBest,
        }),
        cost:
            "names and inodes of files are read from disk again; a slab stays for one object in use"
                .into(),
        prediction: None,
        predicted: None,
        huge_pages: Some(made_of_slab(d, e, slab)),
    })
}

/// Huge pages that freeing slab makes: none for sure, as page flags do not show which of its objects are in use.
fn made_of_slab(d: &Diagnosis, e: &Evidence, slab: &Obstacle) -> MadeHugePages {
    let blocks = e.blocks.as_ref();
    let held = blocks.map(|all| held_by_slab(all.iter().map(Arc::as_ref)));
    let f = &d.huge_pages;
    let (now, all) = (f.now, f.after_reclaim.max(f.by_asking_again));
    let more = match now.zip(all).filter(|(now, all)| all > now) {
        Some((now, all)) => format!(
            "drop page cache too, then compact ({} in all by the model; now there are {})",
            thousands(all),
            thousands(now)
        ),
        None => "end programs, or set huge pages aside at boot (hugepages=)".into(),
    };
    MadeHugePages {
        at_least: 0,
        at_most: held,
        at_most_with_compaction: held.map(|held| held.max(slab.blocks_alone)),
        more,
    }
}

/// Whether nothing that is free is in blocks of a huge page's size.
fn is_scattered(z: &ZoneDiagnosis) -> bool {
    z.extfrag_for_order_9 == Some(100) && z.free_pages.is_none_or(|n| n > 0)
}

fn nothing_whole(d: &Diagnosis, z: &ZoneDiagnosis) -> String {
    let size = |order: u8| bytes(d.page_size << order);
    let huge = size(d.huge_order);
    let place = format!("node {}, zone {}", z.node, z.zone);
    match z.largest_free_order {
        Some(order) => format!(
            "{place}: nothing free is in whole {huge} blocks, the largest has {}: requests above order {order} compact and reclaim first or fail (huge pages, and drivers that ask for that much at once); smaller ones are served",
            size(order)
        ),
        None => format!(
            "{place}: nothing free is in whole {huge} blocks: requests for huge pages compact and reclaim first or fail; smaller ones may be served"
        ),
    }
}
