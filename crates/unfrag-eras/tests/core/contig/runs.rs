//! Any run of a length.

use super::*;

/// The fewest frames in use of all runs, by brute force; none if each holds something that stays.
fn least_used(o: &Owned, start: u64, end: u64, frames: u64, align: u64) -> Option<u64> {
    let whole = frames.next_multiple_of(512);
    let mut at = start.next_multiple_of(align.max(512));
    let mut least: Option<u64> = None;
    while at + whole <= end {
        let stays = (at..at + whole).any(|p| {
            let f = o.m.inspect().frame(Pfn(p)).expect("a frame");
            f.kind == FrameKind::Used && f.owner == OwnerId::NONE
        });
        if !stays {
            let used = o.used(at, whole);
            least = Some(least.map_or(used, |l| l.min(used)));
        }
        at += align.max(512);
    }
    least
}

/// The seed is printed. `UNFRAG_SEED=n` sets another one.
#[test]
fn the_run_with_the_fewest_pages_in_use_is_claimed() {
    let first = setting("UNFRAG_SEED", 1);
    let (mut claimed, mut refused) = (0, 0);
    for seed in first..first + 60 {
        println!("seed {seed}");
        let era = ["6.1", "6.12", "6.18"][seed as usize % 3];
        let zones = [zone(0, ZoneKind::Normal, BASE + 300, 40 * 512)];
        let mut c = Chance(seed);
        let mut o = Owned::new(booted(&zones, 1, rules(era), quiet()));
        while o.grow(0).is_some() {}
        o.m.drain_all();
        // Each pageblock is emptied to its own degree; a few pages stay.
        let keep: Vec<u64> = (0..64).map(|_| c.below(100)).collect();
        let pages: Vec<(u32, Pfn)> = o.pages.iter().map(|(k, p)| (*k, p.0)).collect();
        for (key, page) in pages {
            if c.below(100) >= keep[(page.0 / 512 % 64) as usize] {
                o.drop_page(key);
            } else if c.one_in(2000) {
                // Its owner gives it to the kernel.
                o.pages.remove(&key);
                o.m.pages().lru_del(page);
                assert!(o.m.pages().adopt(page, OwnerId::NONE, 0));
            }
        }
        o.m.drain_all();
        let frames = c.of(&[1, 511, 512, 513, 2048, 5000]);
        let align = c.of(&[0, 9, 11, 12]);
        let (start, end) = (BASE + 300, BASE + 300 + 40 * 512);
        let least = least_used(&o, start, end, frames, 1 << align);
        let claim = Claim::run(NodeId(0), frames as u32, Order(align));
        let got = o.claim(claim);
        match least {
            None => {
                refused += 1;
                assert_eq!(got, Err(ClaimError::NoRun));
            }
            Some(least) => {
                claimed += 1;
                let p = got.expect("a run").0;
                assert_eq!(p % (1 << align), 0);
                assert_eq!(o.used(p, frames), frames);
                if frames.is_multiple_of(512) {
                    assert_eq!(o.moved, least, "{era}: {frames} frames at {p:#x}");
                } else {
                    // Pages beside the range stay.
                    assert!(o.moved <= least);
                }
            }
        }
    }
    assert!(
        claimed > 20 && refused > 0,
        "{claimed} claimed, {refused} refused"
    );
}

/// A page of the cheapest run stays: the next one is taken, and what was moved has moved.
#[test]
fn a_run_whose_owner_refuses_is_left_for_another() {
    let zones = [zone(0, ZoneKind::Normal, BASE, 16 * 512)];
    let mut o = half_full("6.18", &zones, 3);
    let first = {
        let mut twin = half_full("6.18", &zones, 3);
        twin.claim(Claim::run(NodeId(0), 1024, Order(0)))
            .expect("a run")
            .0
    };
    let inside = |p: &Pfn| (first..first + 1024).contains(&p.0);
    let key = *o.pages.iter().find(|(_, (p, _))| inside(p)).expect("one").0;
    o.busy.insert(key);
    let other = o
        .claim(Claim::run(NodeId(0), 1024, Order(0)))
        .expect("a run")
        .0;
    let stays = o.pages[&key].0.0;
    assert!(!(other..other + 1024).contains(&stays));
}
