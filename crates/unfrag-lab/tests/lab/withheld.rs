//! Memory that is withheld is named with its bytes and what gives it back; where none is, nothing is said.

use std::collections::HashMap;
use std::io;
use unfrag_lab::doctor::withheld::Withheld;
use unfrag_lab::doctor::{Diagnosis, Evidence, Examined, examine, map, text};
use unfrag_lab::report::screen::Screen;
use unfrag_linux::kpageflags::{ANON, BUDDY, LRU, PageFlags, SLAB};

/// 20 MiB in each of two zones, half of each free in whole blocks.
fn zone(name: &str, start: u64, cma: u64) -> String {
    format!(
        "Node 0, zone {name:>8}\n  pages free     2560\n        boost    0\n        min      64\n        low      80\n        high     96\n        spanned  5120\n        present  5120\n        managed  5120\n        cma      {cma}\n        protection: (0, 0)\n      nr_free_pages 2560\n      nr_free_cma {cma}\n  pagesets\n    cpu: 0\n              count:    0\n              high:     10\n              batch:    1\n  vm stats threshold: 4\n  node_unreclaimable:  0\n  start_pfn:           {start}\n"
    )
}

const BUDDYINFO: &str = "Node 0, zone   Normal      0      0      0      0      0      0      0      0      0      5      0 
Node 0, zone  Movable      0      0      0      0      0      0      0      0      0      5      0 
";

struct Files(HashMap<String, Vec<u8>>);

impl Files {
    fn sound() -> Files {
        let one = zone("Normal", 0, 0);
        Files(HashMap::new())
            .with("zoneinfo", &one)
            .with("buddyinfo", &format!("{}\n", BUDDYINFO.lines().next().unwrap()))
            .with("meminfo", "MemTotal: 20480 kB\nMemFree: 10240 kB\nMemAvailable: 11000 kB\nCmaTotal: 0 kB\nCmaFree: 0 kB\nHugePages_Total: 0\nHugePages_Free: 0\nHugePages_Rsvd: 0\nHugePages_Surp: 0\nHugepagesize: 2048 kB\nDirectMap4k: 4 kB\n")
            .with("version", "Linux version 6.18.2 (test)\n")
    }

    fn with(mut self, name: &str, text: &str) -> Files {
        self.0.insert(name.into(), text.into());
        self
    }

    fn meminfo(self, from: &str, to: &str) -> Files {
        let text = String::from_utf8(self.0["meminfo"].clone()).unwrap();
        assert!(text.contains(from), "{from}");
        self.with("meminfo", &text.replace(from, to))
    }

    fn examined(&self) -> Diagnosis {
        self.seen().diagnosis
    }

    fn seen(&self) -> Examined {
        let read = |name: &str| {
            let file = self.0.get(name).cloned();
            file.ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        examine(&Evidence::read("here", read).unwrap()).unwrap()
    }
}

fn named<'a>(d: &'a Diagnosis, name: &str) -> Option<&'a Withheld> {
    d.withheld.iter().find(|w| w.name.starts_with(name))
}

/// Pagetypeinfo of zone Normal with so many free blocks of order 9 in blocks of HighAtomic and of CMA.
fn types(highatomic: u64, cma: u64) -> String {
    let row = |kind: &str, n: u64| {
        format!(
            "Node    0, zone   Normal, type {kind:>12}      0      0      0      0      0      0      0      0      0 {n:>6}      0 \n"
        )
    };
    format!(
        "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n{}{}{}{}\nNumber of blocks type     Unmovable      Movable   HighAtomic          CMA \nNode 0, zone   Normal            0 {:>12} {highatomic:>12} {cma:>12} \n",
        row("Unmovable", 0),
        row("Movable", 5 - highatomic - cma),
        row("HighAtomic", highatomic),
        row("CMA", cma),
        10 - highatomic - cma,
    )
}

#[test]
fn a_sound_host_withholds_nothing() {
    let d = Files::sound().examined();
    assert_eq!(d.withheld, []);
    assert_eq!(
        (d.pins.free_bytes, d.pins.closed_bytes),
        (Some(10 << 20), Some(0))
    );
}

#[test]
fn areas_and_zone_movable_are_closed_to_pins() {
    let zones = zone("Normal", 0, 512) + &zone("Movable", 5120, 0);
    let d = Files::sound()
        .with("zoneinfo", &zones)
        .with("buddyinfo", BUDDYINFO)
        .with("pagetypeinfo", &(types(0, 1)))
        .examined();
    let w = named(&d, "long_term_pins").unwrap();
    assert_eq!(w.bytes, 12 << 20, "2 MiB of areas, 10 MiB of zone Movable");
    assert_eq!(d.pins.free_bytes, Some(8 << 20));
    assert!(
        w.text.contains("RDMA") && w.text.contains("8 MiB of the 20 MiB"),
        "{}",
        w.text
    );
}

#[test]
fn what_a_zone_does_not_tell_leaves_pins_unknown() {
    let d = Files::sound().with("zoneinfo", "").examined();
    assert_eq!((d.pins.free_bytes, d.pins.at_most_bytes), (None, None));
    let cut = zone("Normal", 0, 0).replace("protection: (0, 0)", "protection: (0, 900)");
    let d = Files::sound().with("zoneinfo", &cut).examined();
    assert_eq!(d.pins.free_bytes, None, "a zone is missing");
}

#[test]
fn more_free_than_there_is_in_areas_is_a_handover() {
    for (total, free, beyond) in [
        (0u64, 2048u64, Some(2048u64)),
        (1024, 2048, Some(1024)),
        (2048, 2048, None),
        (4096, 2048, None),
    ] {
        let d = Files::sound()
            .with("zoneinfo", &zone("Normal", 0, 512))
            .meminfo("CmaTotal: 0 kB", &format!("CmaTotal: {total} kB"))
            .meminfo("CmaFree: 0 kB", &format!("CmaFree: {free} kB"))
            .examined();
        let w = named(&d, "kexec_handover");
        assert_eq!(w.map(|w| w.bytes >> 10), beyond, "{total} {free}");
        if let Some(w) = w {
            assert!(w.command.as_ref().unwrap().contains("kho=off"), "{w:?}");
        }
        assert!(named(&d, "long_term_pins").is_some(), "{total} {free}");
    }
}

#[test]
fn high_atomic_blocks_are_named_where_they_hold_the_free_ones() {
    for (kept, is_named) in [(0, false), (1, false), (2, false), (3, true), (5, true)] {
        let d = Files::sound()
            .with("pagetypeinfo", &types(kept, 0))
            .examined();
        let w = named(&d, "highatomic of zone Normal, node 0");
        assert_eq!(w.is_some(), is_named, "{kept}");
        if let Some(w) = w {
            assert_eq!(w.bytes, kept << 21);
        }
    }
}

#[test]
fn idle_pages_of_a_pool_are_named_with_the_command_that_gives_them_back() {
    let pool = "sysfs/kernel/mm/hugepages/hugepages-2048kB";
    let node = "sysfs/devices/system/node/node0/hugepages/hugepages-2048kB";
    for (nr, free, reserved, surplus, idle, target) in [
        (10, 6, 2, 0, 4, Some(6)),
        (10, 6, 6, 0, 0, None),
        (10, 0, 0, 0, 0, None),
        (0, 0, 0, 0, 0, None),
        (10, 10, 0, 3, 10, Some(0)),
    ] {
        let d = Files::sound()
            .with(&format!("{pool}/nr_hugepages"), &format!("{nr}\n"))
            .with(&format!("{pool}/free_hugepages"), &format!("{free}\n"))
            .with(&format!("{pool}/resv_hugepages"), &format!("{reserved}\n"))
            .with(
                &format!("{pool}/surplus_hugepages"),
                &format!("{surplus}\n"),
            )
            .with(&format!("{node}/nr_hugepages"), &format!("{nr}\n"))
            .with(&format!("{node}/free_hugepages"), &format!("{free}\n"))
            .examined();
        let w = named(&d, "hugetlb_idle of 2 MiB");
        assert_eq!(
            w.map_or(0, |w| w.bytes >> 21),
            idle,
            "{nr} {free} {reserved}"
        );
        let command = target
            .map(|n| format!("echo {n} > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"));
        assert_eq!(w.and_then(|w| w.command.clone()), command);
        assert_eq!(
            named(&d, "hugetlb_reserved").is_some(),
            reserved > 0 && idle == 0
        );
        assert_eq!(d.pools[0].nodes, [(0, nr, free)]);
    }
}

#[test]
fn without_sysfs_meminfo_tells_the_default_pool() {
    let d = Files::sound()
        .meminfo("HugePages_Total: 0", "HugePages_Total: 8")
        .meminfo("HugePages_Free: 0", "HugePages_Free: 5")
        .meminfo("HugePages_Rsvd: 0", "HugePages_Rsvd: 1")
        .examined();
    assert_eq!(named(&d, "hugetlb_idle of 2 MiB").unwrap().bytes, 8 << 20);
}

#[test]
fn page_cache_is_named_where_it_is_much() {
    let d = Files::sound()
        .meminfo("MemAvailable: 11000", "MemAvailable: 18000")
        .examined();
    let w = named(&d, "page_cache").unwrap();
    assert_eq!(w.bytes, 7760 << 10);
    assert!(w.text.contains("MemFree"), "{}", w.text);
    let older = Files::sound()
        .meminfo("MemAvailable: 11000 kB\n", "")
        .examined();
    assert!(
        named(&older, "page_cache").is_none(),
        "kernels before 3.14 do not tell it"
    );
}

#[test]
fn memory_blocks_are_kept_by_what_their_page_flags_show() {
    // Blocks of 4 MiB: two pageblocks each, five in all; the last is offline.
    let mut words = vec![BUDDY; 5120];
    words[1500] = SLAB;
    let mut files = Files::sound().with("sysfs/devices/system/memory/block_size_bytes", "400000\n");
    for n in 0..5 {
        let state = if n == 4 { "offline\n" } else { "online\n" };
        files = files.with(
            &format!("sysfs/devices/system/memory/memory{n}/state"),
            state,
        );
    }
    assert!(
        files.examined().memory_blocks.is_none(),
        "without page flags"
    );
    files
        .0
        .insert("kpageflags".into(), PageFlags { words }.write());
    let d = files.examined();
    let w = named(&d, "memory_blocks").unwrap();
    assert_eq!(w.bytes, 4 << 20);
    assert!(
        w.text.contains("1 of 4 memory blocks of 4 MiB") && w.text.contains("memory1: 1 page,"),
        "{}",
        w.text
    );
}

#[test]
fn the_map_shows_each_memory_block_and_what_keeps_it() {
    // Four blocks of 4 MiB: free; slab in it; in use, and all of it moves; a pageblock without any flag, which may be the
    // kernel's.
    let mut words = vec![BUDDY; 4096];
    words[1500] = SLAB;
    words[2100] = LRU | ANON;
    words[3072..3584].fill(0);
    let mut files = Files::sound().with("sysfs/devices/system/memory/block_size_bytes", "400000\n");
    for n in 0..4 {
        let state = format!("sysfs/devices/system/memory/memory{n}/state");
        files = files.with(&state, "online\n");
    }
    files
        .0
        .insert("kpageflags".into(), PageFlags { words }.write());
    let x = files.seen();
    let found = x.diagnosis.memory_blocks.as_ref().unwrap();
    assert_eq!((found.online, found.can_go), (4, 2));
    let kept: Vec<u64> = found.blocks.iter().map(|b| b.kept()).collect();
    assert_eq!(kept, [0, 1, 0, 512]);
    assert_eq!(found.blocks[2].to_move, 1);
    let drawn = map::terminal(&x, &Screen::default()).into_string();
    assert!(drawn.contains("2 of 4 could go"), "{drawn}");
    assert!(drawn.contains("\n.Suk  from block 0\n"), "{drawn}");
    assert!(map::html(&x).contains("2 of 4 could go"));
}

#[test]
fn places_of_the_source_that_allocate_are_in_the_tables() {
    let text = "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n     4194304     1024 drivers/x.c:7 [x] func:x_alloc\n";
    let x = Files::sound().with("allocinfo", text).seen();
    let sites = x.diagnosis.call_sites.as_ref().unwrap();
    assert_eq!((sites[0].bytes, sites[0].grown_bytes), (4 << 20, None));
    let tables = text::tables(&x.diagnosis, &Screen::default()).into_string();
    assert!(
        tables.contains("4 MiB") && tables.contains("drivers/x.c:7 [x] func:x_alloc"),
        "{tables}"
    );
    assert_eq!(Files::sound().examined().call_sites, None);
}

#[test]
fn what_else_reclaims_is_shown_or_not_known() {
    let d = Files::sound()
        .with("sysfs/kernel/mm/lru_gen/enabled", "0x0007\n")
        .with("sysfs/module/damon_reclaim/parameters/enabled", "N\n")
        .examined();
    assert_eq!(d.features.lru_gen.as_deref(), Some("0x0007"));
    assert_eq!(d.features.damon_reclaim.as_deref(), Some("N"));
    assert_eq!(d.features.ksm, None);
}
