//! What memory that no zone manages yet ([`crate::host::amounts`]) adds to the forecast.
//!
//! Invariant: it counts in whole huge pages, and only as far as MemFree has it.

use super::diagnosis::ZoneDiagnosis;
use super::forecast::Forecast;
use crate::host::Host;
use crate::host::amounts::{Late, late};
use crate::report::number::bytes;

/// Adds such memory to the forecast of the zone that it belongs to. Answers whether the zones are all that the host has, as
/// far as meminfo tells.
pub(super) fn add(host: &Host, found: &mut [ZoneDiagnosis], notes: &mut Vec<String>) -> bool {
    let Some((what, all)) = late(host) else {
        return true;
    };
    let size = all.saturating_mul(host.geometry.page_size);
    let memory = format!("MemTotal counts {} MiB that no zone manages", size >> 20);
    match what {
        Late::Elsewhere => {
            notes.push(format!(
                "MemTotal counts {} more than the zones here manage: a zone or a node may be missing, and sums over the host are not known",
                bytes(size)
            ));
            return false;
        }
        Late::Unknown { at } => {
            found[at].huge_pages = without_numbers(found[at].huge_pages);
            notes.push(format!(
                "{memory} yet; whether it is free is not known (MemFree and the free pages of all zones would tell)"
            ));
        }
        Late::InUse => notes.push(format!(
            "{memory}, and by MemFree none of it is free: it is not counted"
        )),
        Late::Free { at, pages } => {
            let n = pages / host.geometry.huge_page_pages();
            let more = |x: Option<u64>| x.map(|x| x.saturating_add(n));
            let f = found[at].huge_pages;
            found[at].huge_pages = Forecast {
                now: more(f.now),
                now_at_most: more(f.now_at_most),
                after_compaction: more(f.after_compaction),
                after_reclaim: more(f.after_reclaim),
                by_asking_again: more(f.by_asking_again),
                at_most: more(f.at_most),
                ..f
            };
            let zone = &host.zones[at];
            notes.push(format!(
                "{memory} yet: this kernel adds them when they are asked for, and they are counted as {n} huge pages of node {}, \
                 zone {}, as far as MemFree has them",
                zone.node, zone.name
            ));
        }
    }
    true
}

/// The forecast of a zone to which free memory may have to be added: none of its numbers is known then, nor a bound.
fn without_numbers(f: Forecast) -> Forecast {
    Forecast {
        perhaps_now: f.perhaps_now,
        compaction_unhindered: f.compaction_unhindered,
        ..Forecast::default()
    }
}
