//! Memory offline and online.

use super::*;

const PAGES: u64 = 1 << 15;

fn zones(pages: u64) -> [ZoneConfig; 2] {
    [
        zone(0, ZoneKind::Dma32, BASE, 8192),
        zone(0, ZoneKind::Normal, BASE + 8192, pages),
    ]
}

/// Marks and protections of both zones, and the sizes of the per-CPU lists of the first CPU.
fn sizes(m: &M) -> Vec<String> {
    let of = |z: u8| {
        let v = m.zone_view(z);
        let (s, c) = (m.set_view(z, 0), v.config);
        let sets = (s.high_min, s.high_max, s.batch);
        let pages = (c.present, c.managed, v.free_counter);
        format!("{:?} {:?} {sets:?} {pages:?}", v.marks, v.protection)
    };
    [0, 1].map(of).to_vec()
}

fn settled(m: &mut M) {
    m.drain_all();
    m.vmstat_update(0);
}

/// Half of a zone goes before anything was allocated: the machine is then sized as one that never had it, in every era,
/// and as one that always had it once it is back.
#[test]
fn a_machine_is_sized_by_what_is_online() {
    for era in ERAS {
        let of = |pages| booted(&zones(pages), 1, rules(era), Default::default());
        let (mut m, mut small, mut large) = (of(PAGES), of(PAGES / 2), of(PAGES));
        settled(&mut small);
        settled(&mut large);
        let half = Pfn(BASE + 8192 + PAGES / 2);
        m.offline_unused(CpuId(0), half, PAGES / 2)
            .expect("it is not in use");
        settled(&mut m);
        m.check();
        assert_eq!(sizes(&m), sizes(&small), "{era}");
        while let Ok(p) = m.alloc(0, MOV) {
            assert!(p < half, "{era}: {p:?} is offline");
        }
        let mut m = of(PAGES);
        m.offline_unused(CpuId(0), half, PAGES / 2)
            .expect("it is not in use");
        m.online(half, PAGES / 2).expect("it is offline");
        settled(&mut m);
        m.check();
        assert_eq!(sizes(&m), sizes(&large), "{era}");
        let nr_free = |m: &M| m.zone_view(1).nr_free;
        assert_eq!(nr_free(&m), nr_free(&large), "{era}");
    }
}

#[test]
fn pages_move_before_their_memory_goes() {
    for era in ERAS {
        let mut o = Owned::new(booted(&zones(PAGES), 1, rules(era), quiet()));
        while o.pages.len() < 20_000 {
            o.grow(0).expect("a page");
        }
        // It begins where most pages are.
        let count = |o: &Owned, at: u64| o.used(at, 4096);
        let starts = (0..PAGES / 4096).map(|i| BASE + 8192 + i * 4096);
        let start = starts.max_by_key(|&at| count(&o, at)).expect("one");
        let inside = count(&o, start);
        assert!(inside > 0);
        let refused = o.m.offline_unused(CpuId(0), Pfn(start), 4096);
        assert!(
            matches!(refused, Err(ClaimError::Busy(_))),
            "{era}: {refused:?}"
        );
        o.check();
        let mut offline = Offline::new(Pfn(start), 4096);
        assert_eq!(drive(&mut o, &mut offline), Ok(()), "{era}");
        o.check();
        assert_eq!(o.moved, inside);
        assert_eq!(o.m.zone_view(1).config.managed, PAGES - 4096);
        let gone = Claim::range(Pfn(start), 1);
        let offline = ClaimError::InTheWay(Pfn(start), Obstacle::Offline);
        assert_eq!(o.claim(gone), Err(offline));
        o.m.online(Pfn(start), 4096).expect("it is offline");
        o.check();
        assert_eq!(o.m.zone_view(1).config.managed, PAGES);
    }
}

#[test]
fn memory_that_cannot_go_or_come_is_named() {
    let mut m = booted(&zones(PAGES), 1, rules("6.18"), quiet());
    let at = |n: u64| Pfn(BASE + 8192 + n);
    let cpu = CpuId(0);
    let unaligned = Err(ClaimError::Unaligned(512));
    assert_eq!(m.offline_unused(cpu, at(1), 512), unaligned);
    assert_eq!(m.offline_unused(cpu, at(0), 511), unaligned);
    assert_eq!(m.offline_unused(cpu, at(0), 0), unaligned);
    assert_eq!(m.online(at(0), 100), Err(OnlineError::Unaligned(512)));
    assert_eq!(m.online(at(0), 512), Err(OnlineError::NotOffline(at(0))));
    m.offline_unused(cpu, at(0), 512).expect("not in use");
    let next = Err(OnlineError::NotOffline(at(512)));
    assert_eq!(m.online(at(0), 1024), next);
    let beyond = m.online(at(0), 2 * PAGES);
    assert_eq!(beyond, Err(OnlineError::NotOffline(at(PAGES))));
    let why = beyond.expect_err("refused").to_string();
    assert!(why.contains("is not offline"), "{why}");
    m.check();
}
