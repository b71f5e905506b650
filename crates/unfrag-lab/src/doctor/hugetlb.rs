//! Pools of huge pages: what they hold, by size and node.
//!
//! Invariant: idle is what is free and not promised (reserved) to a mapping: it can be given back, and nobody waits for it.

use crate::host::Host;
use crate::host::files::{self, Files};
use crate::report::number::{bytes, thousands};
use serde::Serialize;

/// Sizes of huge pages in KiB, of all architectures: powers of two from the first to the second.
const SIZES: [u32; 2] = [6, 24];

/// A pool of huge pages of one size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Bytes in one.
    pub size: u64,
    /// Huge pages in it, surplus ones among them.
    pub total: u64,
    /// Of these, not in use.
    pub free: u64,
    /// Of the free ones, promised to mappings.
    pub reserved: u64,
    /// Beyond what was set: given back when they are free.
    pub surplus: u64,
    /// Of each node, by number: total and free.
    pub nodes: Vec<(u32, u64, u64)>,
}

impl Pool {
    /// Free and promised to nobody.
    pub fn idle(&self) -> u64 {
        self.free.saturating_sub(self.reserved)
    }

    /// Whether no part of it is more than the whole: counters are read one after the other, and copies may be of two hosts.
    pub fn agrees(&self) -> bool {
        let Pool {
            total,
            free,
            reserved,
            surplus,
            ..
        } = *self;
        let of_nodes = self.nodes.iter().all(|(_, total, free)| free <= total);
        free <= total && reserved <= free && surplus <= total && of_nodes
    }

    /// That it does not agree; `None` if it does.
    pub(super) fn contradiction(&self) -> Option<String> {
        (!self.agrees()).then(|| {
            format!(
                "the hugetlb pool of {} pages: {} in all by one number, {} free, {} reserved and {} surplus by others, which contradict each other, or are not of one moment: what is idle is not known",
                bytes(self.size),
                thousands(self.total),
                thousands(self.free),
                thousands(self.reserved),
                thousands(self.surplus)
            )
        })
    }

    /// What has to be set so that all idle ones are given back.
    pub fn without_idle(&self) -> u64 {
        let set = self.total.saturating_sub(self.surplus);
        set.saturating_sub(self.idle())
    }

    /// The file that sets its size.
    pub fn file(&self) -> String {
        format!(
            "/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages",
            self.size >> 10
        )
    }
}

/// The pools that sysfs tells, with those of these nodes.
pub(super) fn pools(from: &dyn Files, nodes: &[u32]) -> Vec<Pool> {
    let number = |path: String| -> Option<u64> { files::text(from, &path)?.parse().ok() };
    let one = |kib: u64| {
        let of = |file| {
            number(format!(
                "sysfs/kernel/mm/hugepages/hugepages-{kib}kB/{file}"
            ))
        };
        let of_node = |&node: &u32| {
            let of = |file| {
                number(format!(
                    "sysfs/devices/system/node/node{node}/hugepages/hugepages-{kib}kB/{file}"
                ))
            };
            Some((node, of("nr_hugepages")?, of("free_hugepages")?))
        };
        Some(Pool {
            size: kib << 10,
            total: of("nr_hugepages")?,
            free: of("free_hugepages")?,
            reserved: of("resv_hugepages")?,
            surplus: of("surplus_hugepages")?,
            nodes: nodes.iter().filter_map(of_node).collect(),
        })
    };
    let [first, last] = SIZES;
    (first..=last).filter_map(|n| one(1 << n)).collect()
}

/// The pools that sysfs told, or else the default one by meminfo.
pub(super) fn known<'a>(
    told: &'a [Pool],
    by_meminfo: &'a Option<Pool>,
) -> impl Iterator<Item = &'a Pool> {
    told.iter()
        .chain(by_meminfo.iter().filter(|_| told.is_empty()))
}

/// The default pool, by meminfo: what is known where sysfs is not there.
pub(super) fn by_meminfo(host: &Host) -> Option<Pool> {
    let meminfo = host.meminfo.as_ref()?;
    Some(Pool {
        size: host.meminfo_bytes("Hugepagesize")?,
        total: meminfo.get("HugePages_Total")?,
        free: meminfo.get("HugePages_Free")?,
        reserved: meminfo.get("HugePages_Rsvd")?,
        surplus: meminfo.get("HugePages_Surp")?,
        nodes: vec![],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn idle_pages_are_free_and_promised_to_nobody() {
        let read = |name: &str| -> io::Result<Vec<u8>> {
            let pool = "sysfs/kernel/mm/hugepages/hugepages-2048kB/";
            let node = "sysfs/devices/system/node/node1/hugepages/hugepages-2048kB/";
            let text = match (name.strip_prefix(pool), name.strip_prefix(node)) {
                (Some("nr_hugepages"), _) => "512",
                (Some("free_hugepages"), _) => "300",
                (Some("resv_hugepages"), _) => "100",
                (Some("surplus_hugepages"), _) => "12",
                (_, Some("nr_hugepages")) => "256",
                (_, Some("free_hugepages")) => "200",
                _ => return Err(io::ErrorKind::NotFound.into()),
            };
            Ok(format!("{text}\n").into_bytes())
        };
        let all = pools(&read, &[0, 1]);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].idle(), all[0].without_idle()), (200, 300));
        assert_eq!(all[0].nodes, [(1, 256, 200)]);
    }
}
