//! Evictions: what owners are asked, in what order, and the state of pages meanwhile.

use super::*;
use unfrag_eras::frame::{FrameKind, OwnerId};
use unfrag_eras::reclaim::Eviction;
use unfrag_eras::{Move, MoveError};

/// Drives direct reclaims for single pages until `enough`, with evictions met by `met`.
fn reclaim_until(
    m: &mut Machine,
    enough: impl Fn(&Machine) -> bool,
    mut met: impl FnMut(&mut Machine<'_>, &Eviction) -> Verdicts,
) {
    for _ in 0..FRAMES {
        let gfp = Gfp::HIGHUSER_MOVABLE | Gfp::NORETRY;
        if let Begun::Allocation(a) = m.begin_alloc(0, gfp, Context::default()).unwrap() {
            let _ = drive_asking(m, a, &mut met, |_, _| None);
        }
        if enough(m) {
            return;
        }
    }
    panic!("not enough");
}

/// Pages that are free, or on the CPU's list.
fn unused(m: &Machine) -> u64 {
    m.zone().free_pages + m.inspect().pcp_pages(ZONE)
}

#[test]
fn an_allocation_ends_in_a_world_that_gives_nothing() {
    for name in ERAS {
        for order in [0, 2, 5] {
            let host = Owners {
                swap: 1 << 20,
                ..Owners::default()
            };
            with_frames(2048, era(name), host, |m| {
                let pages = fill(m, PageFlags::MAPPED);
                for p in pages.iter().step_by(3) {
                    m.lru_add(*p, Lru::InactiveAnon);
                }
                leave_single_pages(m);
                let few = m.zone().marks.min as i64 / 4;
                while m.zone().free_counter > few && m.alloc(0, Gfp::KERNEL | Gfp::MEMALLOC).is_ok()
                {
                }
                let (before, on_lists) = (unused(m), m.lru().pages.iter().sum::<u64>());
                let mut asked = 0;
                let a = begin(m, order, Gfp::KERNEL, Context::default());
                let nobody = |m: &mut Machine<'_>, e: &Eviction| {
                    m.inspect().validate().unwrap();
                    asked += e.asks().len();
                    assert!(asked < 100_000_000, "{name}: it goes on for ever");
                    e.ask(|_| Verdict::Busy)
                };
                let got = drive_asking(m, a, nobody, |_, need| {
                    (need == Need::Oom).then_some(Answer::Killed(false))
                });
                assert!(got.is_err(), "{name}, order {order}: {got:?}");
                assert!(asked > 0, "{name}, order {order}");
                m.inspect().validate().unwrap();
                assert_eq!(unused(m), before, "{name}");
                let v = m.lru();
                assert_eq!(
                    (v.pages.iter().sum::<u64>(), v.isolated),
                    (on_lists, [0; 2])
                );
            });
        }
    }
}

#[test]
fn batches_hold_at_most_32_pages_in_the_order_of_their_list() {
    for name in ERAS {
        with(era(name), Owners::default(), |m| {
            let pages = fill(m, PageFlags::empty());
            // The oldest page is at the end where reclaim begins.
            let oldest: Vec<Pfn> = m.inspect().lru_list(ZONE, Lru::InactiveFile).collect();
            let oldest: Vec<Pfn> = oldest.into_iter().rev().collect();
            assert_eq!(oldest, pages, "{name}");
            let mut seen: Vec<Pfn> = Vec::new();
            let mut sizes = Vec::new();
            let wanted = |m: &Machine| m.reclaim_counters().pgscan_direct > 1000;
            reclaim_until(m, wanted, |m, e| {
                let batch: Vec<Pfn> = e.asks().iter().map(|a| a.page).collect();
                sizes.push(batch.len());
                assert!(batch.len() <= 32, "{name}: {}", batch.len());
                assert!(!e.sync, "{name}");
                for a in e.asks() {
                    assert!(!a.unmap && a.content == Content::Clean, "{name}");
                    assert_eq!(m.lru_of(a.page), None, "{name}: it is isolated");
                }
                seen.extend(batch);
                e.ask(|_| Verdict::Keep)
            });
            let n = seen.len().min(pages.len());
            assert_eq!(seen[..n], pages[..n], "{name}: {sizes:?}");
            assert!(sizes.contains(&32), "{name}: {sizes:?}");
        });
    }
}

#[test]
fn a_page_that_its_owner_frees_while_it_is_asked_about_is_freed_once() {
    for name in ERAS {
        for verdict in [
            Verdict::Released,
            Verdict::Keep,
            Verdict::Busy,
            Verdict::NoSpace,
        ] {
            with(era(name), Owners::default(), |m| {
                let pages = fill(m, PageFlags::MAPPED);
                let told = |m: &Machine| m.inspect().counters().pgfree;
                let (mut gone, mut before) = (None, (0, 0));
                let wanted = |m: &Machine| m.reclaim_counters().pgscan_direct > 0;
                reclaim_until(m, wanted, |m, e| {
                    if gone.is_some() {
                        return e.ask(|_| Verdict::Busy);
                    }
                    before = (told(m), m.inspect().nr_mapped());
                    let page = e.asks()[e.asks().len() / 2].page;
                    m.free(page, 0).unwrap();
                    assert!(m.free(page, 0).is_err(), "{name}: freed twice");
                    assert!(m.page_flags(page).contains(PageFlags::FREED), "{name}");
                    gone = Some(page);
                    m.inspect().validate().unwrap();
                    // What is said of the others is that they stay.
                    let of = |a: &Ask| {
                        if a.page == page {
                            verdict
                        } else {
                            Verdict::Busy
                        }
                    };
                    e.ask(of)
                });
                let page = gone.unwrap();
                assert_eq!(told(m), before.0 + 1, "{name} {verdict:?}: told once");
                assert_eq!(m.inspect().nr_mapped(), before.1 - 1, "{name} {verdict:?}");
                assert_eq!(m.lru_of(page), None, "{name} {verdict:?}");
                assert!(!m.page_flags(page).contains(PageFlags::FREED), "{name}");
                assert_eq!(m.lru().isolated, [0; 2], "{name} {verdict:?}");
                // Reclaim does not count it as reclaimed.
                let stolen = m.reclaim_counters().pgsteal_direct;
                assert_eq!(stolen, 0, "{name} {verdict:?}");
                m.inspect().validate().unwrap();
                // It may have been the very page that the request got.
                let all = pages.iter().filter(|p| m.lru_of(**p).is_some()).count();
                assert_eq!(all, pages.len() - 1, "{name} {verdict:?}");
            });
        }
    }
}

#[test]
fn owners_are_told_by_their_name_and_key_wherever_a_page_went() {
    for name in ERAS {
        let host = Owners {
            swap: 1 << 20,
            ..Owners::default()
        };
        with(era(name), host, |m| {
            let cache = OwnerId::new(7).unwrap();
            let mut pages = fill(m, PageFlags::empty());
            for (i, p) in pages.iter().enumerate() {
                assert!(m.pages().adopt(*p, cache, i as u32), "{name}");
            }
            // Round the lists: active by two uses, and back; anonymous, and back.
            for p in &pages[..64] {
                m.pages().mark_accessed(*p);
                m.pages().mark_accessed(*p);
                assert_eq!(m.lru_of(*p), Some(Lru::ActiveFile), "{name}");
                m.lru_add(*p, Lru::InactiveFile);
            }
            // To other frames.
            for page in pages.iter_mut().take(64) {
                let free = (0x400..0x400 + FRAMES).map(Pfn).rev();
                let mut free = free.filter(|&p| m.inspect().free_block(p).is_some());
                let to = free.next().unwrap();
                migrate(m, *page, to).unwrap();
                let left = m.inspect().frame(*page).unwrap();
                assert_ne!(left.kind, FrameKind::Used);
                assert_eq!(left.owner, OwnerId::NONE, "{name}");
                *page = to;
            }
            let key_of = |p: Pfn| pages.iter().position(|&q| q == p).map(|i| i as u32);
            let mut asked = 0;
            let wanted = |m: &Machine| m.reclaim_counters().pgscan_direct > 600;
            let mut taken = Vec::new();
            reclaim_until(m, wanted, |_, e| {
                for a in e.asks() {
                    assert_eq!((a.owner, Some(a.key)), (cache, key_of(a.page)), "{name}");
                }
                asked += e.asks().len();
                taken.extend(e.asks().iter().map(|a| a.page));
                e.ask(|_| Verdict::Released)
            });
            assert!(asked > 0, "{name}");
            // The next user of the frames is not taken for the owner.
            for p in taken {
                let f = m.inspect().frame(p).unwrap();
                assert_eq!((f.owner, f.key), (OwnerId::NONE, 0), "{name}: {f:?}");
            }
            assert!(!m.pages().adopt(Pfn(1), cache, 1), "{name}: no such frame");
            let free = (0x400..0x400 + FRAMES).map(Pfn);
            let free = free.rev().find(|&p| m.inspect().free_block(p).is_some());
            assert!(
                !m.pages().adopt(free.unwrap(), cache, 1),
                "{name}: it is free"
            );
        });
    }
}

/// A whole move, in which the page's owner copies it at once.
pub fn migrate(m: &mut Machine, from: Pfn, to: Pfn) -> Result<(), MoveError> {
    Move::begin(m, CPU, from, to)?.commit(m, CPU);
    Ok(())
}
