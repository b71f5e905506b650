//! LRU lists of a whole node: 16 GiB, of which DMA has the first 16 MiB. What reclaim asks of the memory
//! behind the lists is the node's, not that of its first zone. `spec: 4.1, 4.2`

use super::*;
use unfrag_eras::kernel::LruRules;
use unfrag_eras::{MigrateType, Sysctl};

const DMA: ZoneId = ZoneId(0);
const NORMAL: ZoneId = ZoneId(2);

/// The eras whose nodes have lists.
fn eras() -> impl Iterator<Item = &'static str> {
    let all = unfrag_eras::kernel::PRESETS.iter();
    let per_node = all.filter(|p| matches!(p.rules.reclaim.lru, LruRules::PerNode(_)));
    per_node.map(|p| p.name)
}

#[test]
fn there_are_eras_with_lists_by_node() {
    assert_eq!(
        eras().collect::<Vec<_>>(),
        ["5.6", "5.9", "6.1", "6.12", "6.18", "7.2"]
    );
}

/// 16 GiB, of which a sixteenth is kept free: marks are far from nothing even in DMA.
fn with_node(era: &str, f: impl FnOnce(&mut Machine)) {
    let part = |kind, start, end| ZoneConfig::whole(NodeId(0), kind, Pfn(start), end - start);
    let zones = [
        part(ZoneKind::Dma, 1, 1 << 12),
        part(ZoneKind::Dma32, 1 << 12, 1 << 20),
        part(ZoneKind::Normal, 1 << 20, 1 << 22),
    ];
    let config = Config {
        sysctl: Sysctl::default().with(|s| {
            s.min_free_kbytes = 1 << 20;
        }),
        ..Config::new(&zones, super::era(era))
    };
    let owners = Owners {
        swap: 1 << 30,
        ..Owners::default()
    };
    with_config(&config, owners, f);
}

/// Puts `n` new pages on a list of the node.
fn pages(m: &mut Machine, n: u64, lru: Lru, flags: PageFlags) -> Vec<Pfn> {
    let new = |_| {
        let p = m.alloc(0, Gfp::HIGHUSER_MOVABLE).unwrap();
        m.pages().lru_add(p, lru, flags);
        p
    };
    (0..n).map(new).collect()
}

/// Takes all that DMA has.
fn empty_dma(m: &mut Machine) {
    let request = Request::new(Order(0), Gfp::KERNEL | Gfp::DMA);
    while m.core.lab().alloc_in_zone(DMA, &request).is_ok() {}
    assert_eq!(m.inspect().zone(DMA).free_pages, 0);
}

/// Reclaims for a page of DMA, which none of the pages on lists is in.
fn reclaim(m: &mut Machine) {
    let gfp = Gfp::KERNEL | Gfp::DMA | Gfp::NORETRY;
    let a = begin(m, 0, gfp, Context::default());
    assert!(finish(m, a).0.is_err());
}

fn len(m: &Machine, lru: Lru) -> u64 {
    m.inspect().lru(DMA).pages[lru as usize - 1]
}

/// `spec: 4.1`
#[test]
fn an_empty_dma_zone_keeps_the_scan_on_page_cache() {
    for name in eras() {
        with_node(name, |m| {
            let anon = 100_000;
            pages(
                m,
                anon,
                Lru::InactiveAnon,
                PageFlags::MAPPED | PageFlags::YOUNG,
            );
            pages(m, 300, Lru::InactiveFile, PageFlags::empty());
            empty_dma(m);
            // DMA alone has less, page cache included, than its high mark.
            assert!(m.inspect().zone(DMA).marks.high > 300, "{name}");
            let all = m.inspect().zones().map(|z| m.inspect().zone(z));
            let spare = |v: ZoneView| v.free_pages as i64 - v.marks.high as i64;
            assert!(all.map(spare).sum::<i64>() > 0, "{name}");
            reclaim(m);
            assert!(len(m, Lru::InactiveFile) <= 300 - 32, "{name}");
            // Long before the last priority, at which shares do not count.
            let looked = m.reclaim_counters().pgscan_direct;
            assert!(looked < anon / 3, "{name}: {looked}");
        });
    }
}

/// `spec: 4.1`
#[test]
fn a_free_dma_zone_moves_the_scan_to_anonymous_pages() {
    for name in eras() {
        with_node(name, |m| {
            pages(m, 100_000, Lru::InactiveAnon, PageFlags::empty());
            pages(m, 50_000, Lru::InactiveFile, PageFlags::empty());
            // What else there is, is the kernel's; DMA stays free for those who need it.
            while m.alloc(10, Gfp::KERNEL | Gfp::NORETRY).is_ok() {}
            drain_normal_to_min(m);
            let v = m.inspect().zone(DMA);
            assert!(v.free_pages > v.marks.high, "{name}");
            let all = m.inspect().zones().map(|z| m.inspect().zone(z));
            let spare = |v: ZoneView| v.free_pages as i64 - v.marks.high as i64;
            assert!(all.map(spare).sum::<i64>() < -50_000, "{name}");
            for _ in 0..200 {
                match m.begin_alloc(0, Gfp::KERNEL, Context::default()).unwrap() {
                    Begun::Got(_) => {}
                    Begun::Allocation(a) => _ = finish(m, a).0.unwrap(),
                }
            }
            assert!(m.reclaim_counters().pgsteal_direct > 0, "{name}");
            assert_eq!(len(m, Lru::InactiveFile), 50_000, "{name}");
            assert!(len(m, Lru::InactiveAnon) < 100_000, "{name}");
        });
    }
}

/// Takes single pages as long as that needs no reclaim.
fn drain_normal_to_min(m: &mut Machine) {
    while m.alloc(0, Gfp::KERNEL | Gfp::NORETRY).is_ok() {}
}

/// `spec: 4.1`
#[test]
fn inactive_ratio_of_sixteen_gib_is_twelve() {
    // 10 × 16: its root is 12. With the 16 MiB of DMA it would be one for one.
    for name in eras() {
        for (inactive, low) in [(9_000, false), (8_000, true)] {
            with_node(name, |m| {
                // Nothing is taken, so that lists stay as long as they are.
                let locked = PageFlags::LOCKED;
                pages(m, 100_000, Lru::ActiveAnon, locked);
                pages(m, inactive, Lru::InactiveAnon, locked);
                empty_dma(m);
                reclaim(m);
                let c = m.reclaim_counters();
                assert!(c.pgscan_direct > 0, "{name}");
                assert_eq!(c.pgrefill > 0, low, "{name}: {inactive} inactive, {c:?}");
            });
        }
    }
}

/// `spec: 4.2`
#[test]
fn a_page_freed_in_the_normal_zone_gives_a_node_hope_again() {
    for name in eras() {
        with_node(name, |m| {
            let other = m.alloc(0, Gfp::HIGHUSER_MOVABLE).unwrap();
            assert_eq!(m.inspect().zone_of(other), Some(NORMAL), "{name}");
            let held = pages(m, 1000, Lru::InactiveFile, PageFlags::LOCKED);
            empty_dma(m);
            m.core.drain_all();
            let mut times = 0;
            while !m.inspect().lru(DMA).all_unreclaimable {
                reclaim(m);
                times += 1;
                assert!(times < 100, "{name}: it never gives up");
            }
            // Unreclaimable lists are scanned at the first priority only, which finds too few pages.
            let scanned = m.reclaim_counters().pgscan_direct;
            assert!(scanned >= 6 * 1000, "{name}: {scanned}");
            reclaim(m);
            assert_eq!(m.reclaim_counters().pgscan_direct, scanned, "{name}");
            m.free(other, 0).unwrap();
            m.core.drain_all();
            assert!(!m.inspect().lru(DMA).all_unreclaimable, "{name}");
            reclaim(m);
            let more = m.reclaim_counters().pgscan_direct - scanned;
            assert!(more >= 1000, "{name}: {more}");
            // The zones have no lists of their own.
            for p in &held[..10] {
                assert_eq!(m.lru_of(*p), Some(Lru::InactiveFile));
            }
            assert_eq!(m.inspect().lru(NORMAL), LruView::default());
            assert!(m.inspect().block_type(held[0]) == Some(MigrateType::Movable));
        });
    }
}
