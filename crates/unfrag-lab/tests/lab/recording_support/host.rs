//! A small recorded host: one zone of 64 MiB on two CPUs, whose command takes and frees some pages.

use super::synthetic::{Maker, USER_PAGE};
use unfrag_linux::recording::{Recording, Snapshot, SnapshotFile};

/// First frame of its zone.
pub const START: u64 = 65_536;
/// Frames of its zone.
pub const PAGES: u64 = 16_384;
/// Free blocks of each order at the start.
const FREE: [u64; 11] = [64, 0, 0, 100, 0, 0, 0, 0, 0, 0, 12];

/// What its files tell, each of which can be told otherwise.
#[derive(Clone, Debug)]
pub struct Host {
    /// CPUs that zoneinfo shows.
    pub cpus: Vec<u32>,
    /// CPUs of the events, in turn.
    pub event_cpus: Vec<u16>,
    /// Free blocks of each order.
    pub free: Vec<u64>,
    /// The order of a pageblock.
    pub pageblock_order: u32,
    /// Pages of a pageblock.
    pub pages_per_block: u64,
    /// MemTotal in KiB; no meminfo without it.
    pub total_kib: Option<u64>,
    /// Hugepagesize in KiB.
    pub huge_kib: u64,
    /// The manifest's page size in bytes.
    pub page_size: u32,
    /// Snapshots.
    pub snapshots: u64,
    /// Order of one event's block.
    pub order: u64,
}

impl Default for Host {
    fn default() -> Host {
        Host {
            cpus: vec![0, 1],
            event_cpus: vec![0, 1],
            free: FREE.to_vec(),
            pageblock_order: 9,
            pages_per_block: 512,
            total_kib: Some(PAGES * 4),
            huge_kib: 2048,
            page_size: 4096,
            snapshots: 4,
            order: 0,
        }
    }
}

impl Host {
    fn snapshot(&self, number: u64, time: u64) -> Snapshot {
        let columns = |n: &mut dyn Iterator<Item = u64>| -> String {
            n.map(|n| format!("{n:>6} ")).collect::<String>() + "\n"
        };
        let free = columns(&mut self.free.iter().copied());
        let none = columns(&mut self.free.iter().map(|_| 0));
        let orders = columns(&mut (0..self.free.len() as u64));
        let mut files = vec![("buddyinfo", format!("Node 0, zone   Normal {free}"))];
        let mut types = format!(
            "Page block order: {}\nPages per block:  {}\n\nFree pages count per migrate type at order {orders}",
            self.pageblock_order, self.pages_per_block
        );
        for (name, row) in [
            ("Unmovable", &none),
            ("Movable", &free),
            ("Reclaimable", &none),
        ] {
            types += &format!("Node    0, zone   Normal, type {name:>12} {row}");
        }
        types += "\nNumber of blocks type     Unmovable      Movable  Reclaimable \nNode 0, zone   Normal            8           24            0 \n";
        files.push(("pagetypeinfo", types));
        let sets = self.cpus.iter().map(|cpu| {
            format!("    cpu: {cpu}\n              count: 0\n              high:  160\n              batch: 63\n  vm stats threshold: 8\n")
        });
        files.push((
            "zoneinfo",
            format!(
                "Node 0, zone   Normal
  pages free     13152
        boost    0
        min      128
        low      160
        high     192
        spanned  {PAGES}
        present  {PAGES}
        managed  {PAGES}
        cma      0
        protection: (0, 0, 0, 0)
  pagesets
{}  node_unreclaimable:  0
  start_pfn:           {START}
",
                sets.collect::<String>()
            ),
        ));
        let freed = 1000 + number * 10;
        files.push((
            "vmstat",
            format!(
                "nr_free_pages 13152\npgalloc_normal {freed}\npgfree {freed}\npgmigrate_success 0\n"
            ),
        ));
        if let Some(total) = self.total_kib {
            files.push((
                "meminfo",
                format!(
                    "MemTotal:       {total} kB\nMemFree:          52608 kB\nHugepagesize:       {} kB\n",
                    self.huge_kib
                ),
            ));
        }
        let file = |(name, content): (&str, String)| SnapshotFile {
            name: name.into(),
            time: Some((time, time)),
            content: content.into(),
        };
        Snapshot {
            name: format!("s{number:04}"),
            files: files.into_iter().map(file).collect(),
        }
    }

    /// Its recording.
    pub fn record(&self) -> Recording {
        let mut m = Maker::default();
        let mut snapshots = vec![];
        let rounds = self.snapshots.max(1);
        for round in 0..rounds {
            for i in 0..40 {
                m.cpu = self.event_cpus[i as usize % self.event_cpus.len()];
                let pfn = START + PAGES - 8192 + round * 64 + i;
                m.task("worker").alloc(pfn, 0, USER_PAGE).wait(1_000_000);
                if i % 4 == 3 {
                    m.free(pfn, 0).wait(1_000_000);
                }
                if i == 20 && round < self.snapshots {
                    snapshots.push(self.snapshot(round, m.now));
                }
            }
        }
        m.alloc(START + PAGES / 4, self.order, USER_PAGE);
        m.rec.meta.kernel_release = "6.1.0".into();
        // So that counters of vmstat are read, too.
        m.rec.meta.facts.insert("scope".into(), "system".into());
        m.rec.meta.page_size = self.page_size;
        m.rec.snapshots = snapshots;
        m.rec
    }
}
