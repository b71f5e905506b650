//! The files that the kernel of a state would show.

use std::fmt::Write as _;
use std::io;
use unfrag_eras::{Manager, MigrateType, Order, ZoneId};
use unfrag_lab::doctor::{Evidence, Examined, examine};
use unfrag_lab::host::files::Files;
use unfrag_linux::kpageflags::{ANON, BUDDY, COMPOUND_HEAD, COMPOUND_TAIL, LRU, NOPAGE, SLAB};

use super::memory::Watched;
use super::state::{BASE, BLOCK, Held, State};

const DIRTY: u64 = 1 << 4;
const SWAPBACKED: u64 = 1 << 14;
const HUGE: u64 = 1 << 17;
const PRIVATE: u64 = 1 << 35;

/// The files of a state.
struct Shown(Vec<(String, Vec<u8>)>);

impl Files for Shown {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found
            .map(|(_, text)| text.clone())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl State {
    /// What its files say.
    pub fn examined(&self) -> (Evidence, Examined) {
        let files = self.with(|memory| Shown::of(self, &memory.m));
        let evidence = Evidence::read("here", files).expect("files");
        let examined = examine(&evidence).expect("a release");
        (evidence, examined)
    }

    /// Migrate types that its kernel has.
    fn shown_types(&self) -> Vec<(&'static str, MigrateType)> {
        let types = [
            ("Unmovable", MigrateType::Unmovable),
            ("Movable", MigrateType::Movable),
            ("Reclaimable", MigrateType::Reclaimable),
            ("HighAtomic", MigrateType::HighAtomic),
            ("CMA", MigrateType::Cma),
            ("Isolate", MigrateType::Isolate),
        ];
        let is_new = self.era != "2.6.36";
        let of_era = |name: &str| is_new || !matches!(name, "HighAtomic" | "CMA");
        types.into_iter().filter(|t| of_era(t.0)).collect()
    }
}

impl Shown {
    fn of(state: &State, m: &Manager<Watched>) -> Shown {
        let release = match state.era {
            "2.6.36" => state.era.to_owned(),
            era => format!("{era}.0"),
        };
        let mut files = vec![
            ("buddyinfo".into(), buddyinfo(state, m).into()),
            ("zoneinfo".into(), zoneinfo(state, m).into()),
            ("pagetypeinfo".into(), pagetypeinfo(state, m).into()),
            (
                "version".into(),
                format!("Linux version {release} (x) #1\n").into(),
            ),
            ("kpageflags".into(), flags(state)),
        ];
        // Kernels before 5.7 do not count pins.
        if !matches!(state.era, "2.6.36" | "5.6") {
            let pins = state.pins();
            let vmstat = format!(
                "nr_foll_pin_acquired {}\nnr_foll_pin_released 7\n",
                pins + 7
            );
            files.push(("vmstat".into(), vmstat.into()));
        }
        Shown(files)
    }
}

fn buddyinfo(state: &State, m: &Manager<Watched>) -> String {
    let mut out = String::new();
    for (z, zone) in state.zones.iter().enumerate() {
        let _ = write!(out, "Node {}, zone {:>8} ", zone.node, zone.kind.name());
        for order in 0..11 {
            let types = state.shown_types();
            let count = |mt| m.inspect().free_list_len(ZoneId(z as u8), Order(order), mt);
            let n: u64 = types.iter().map(|t| count(t.1)).sum();
            let _ = write!(out, "{n:>6} ");
        }
        out += "\n";
    }
    out
}

fn pagetypeinfo(state: &State, m: &Manager<Watched>) -> String {
    let types = state.shown_types();
    let mut typed = "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n".to_owned();
    let mut table = "\nNumber of blocks type ".to_owned();
    types.iter().for_each(|t| _ = write!(table, "{:>13}", t.0));
    table += " \n";
    for (z, zone) in state.zones.iter().enumerate() {
        let (id, node, kind) = (ZoneId(z as u8), zone.node, zone.kind.name());
        let _ = write!(table, "Node {node}, zone {kind:>8} ");
        let blocks = m.inspect().blocks_by_type(id);
        for (name, mt) in &types {
            let _ = write!(typed, "Node {node:>4}, zone {kind:>8}, type {name:>12} ");
            let count = |o| m.inspect().free_list_len(id, Order(o), *mt);
            (0..11).for_each(|o| _ = write!(typed, "{:>6} ", count(o)));
            typed += "\n";
            let _ = write!(table, "{:>13}", blocks[*mt as usize]);
        }
        table += " \n";
    }
    typed + &table
}

fn zoneinfo(state: &State, m: &Manager<Watched>) -> String {
    let mut out = String::new();
    for (z, start) in state.starts().into_iter().enumerate() {
        let zone = state.zones[z];
        let (id, node, kind) = (ZoneId(z as u8), zone.node, zone.kind.name());
        let (free, pages, min) = (state.free(z), zone.blocks * BLOCK, state.min);
        let of_node = state.zones.iter().filter(|other| other.node == node);
        let keeps: Vec<String> = of_node
            .map(|other| state.keeps(z, other.kind).to_string())
            .collect();
        let cache = state.frames_of(z, |h| matches!(h, Held::Cache | Held::PinnedCache));
        let listed = state.frames_of(z, |h| h == Held::PerCpu);
        let areas = (0..11).map(|o| m.inspect().free_list_len(id, Order(o), MigrateType::Cma) << o);
        let areas: u64 = areas.sum();
        let _ = write!(
            out,
            "Node {node}, zone {kind:>8}\n  pages free     {free}\n        min      {min}\n        low      {min}\n        high     {min}\n        spanned  {pages}\n        present  {pages}\n        managed  {pages}\n        protection: ({})\n      nr_free_pages {free}\n      nr_zone_inactive_file {cache}\n      nr_zone_active_file 0\n      nr_slab_reclaimable 0\n      nr_free_cma  {areas}\n  pagesets\n    cpu: 0\n              count:    {listed}\n              high:     0\n              batch:    1\n  vm stats threshold: 4\n  node_unreclaimable:  0\n  start_pfn:           {start}\n",
            keeps.join(", ")
        );
    }
    out
}

fn flags(state: &State) -> Vec<u8> {
    let end = BASE + state.frames();
    let mut words = vec![NOPAGE; end as usize];
    for &(pfn, order, held) in &state.held {
        let all = &mut words[pfn as usize..(pfn + (1 << order)) as usize];
        let (head, tail) = match held {
            Held::Free => (BUDDY, BUDDY),
            Held::PerCpu | Held::Driver => (0, 0),
            Held::Process | Held::PinnedProcess => (LRU | ANON | SWAPBACKED, COMPOUND_TAIL),
            Held::Cache | Held::PinnedCache => (LRU, COMPOUND_TAIL),
            Held::Dirty => (LRU | DIRTY | PRIVATE, COMPOUND_TAIL),
            Held::Slab => (SLAB, COMPOUND_TAIL),
            Held::Hugetlb => (HUGE, HUGE | COMPOUND_TAIL),
        };
        all.fill(tail);
        all[0] = head;
        if tail & COMPOUND_TAIL != 0 && order > 0 {
            all[0] |= COMPOUND_HEAD;
        }
    }
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}
