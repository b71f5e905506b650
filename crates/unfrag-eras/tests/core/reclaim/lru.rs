//! What a scan of LRU lists takes, keeps and writes. `spec: 4.1, 4.5`

use super::evictions::migrate;
use super::*;
use unfrag_eras::MoveError;
use unfrag_eras::frame::FrameKind;

/// `spec: 4.3`
#[test]
fn every_era_reclaims_clean_page_cache() {
    for name in ERAS {
        with(era(name), Owners::default(), |m| {
            fill(m, PageFlags::empty());
            // Down to the min mark nothing needs to be reclaimed; then direct reclaim does.
            let mut direct = 0;
            for _ in 0..FRAMES / 4 {
                let p = alloc(m, Gfp::HIGHUSER_MOVABLE);
                m.lru_add_new(p, true);
                direct = m.reclaim_counters().allocstall;
            }
            let c = *m.reclaim_counters();
            assert!(direct > 0, "{name}");
            assert_eq!(c.pgsteal_direct, m.owners.released, "{name}");
            assert!(c.pgscan_direct >= c.pgsteal_direct, "{name}");
            // V19 may find nothing while its marks hold; then kswapd is not woken.
            assert!(name == "v19" || !m.host().woken.is_empty(), "{name}");
        });
    }
}

#[test]
fn a_host_hears_of_a_page_before_it_gets_it_or_is_asked_about_it() {
    for name in ERAS {
        let host = Owners {
            swap: 1 << 20,
            ..Owners::default()
        };
        with(era(name), host, |m| {
            let pages = fill(m, PageFlags::MAPPED);
            let heard = m.host_mut().announced.take();
            assert!(pages.iter().all(|p| heard.contains(p)), "{name}");
            for _ in 0..FRAMES / 4 {
                let p = alloc(m, Gfp::HIGHUSER_MOVABLE);
                m.lru_add_new(p, true);
            }
            let (asked, announced) = (&m.owners.asked, m.host().announced.borrow());
            assert!(!asked.is_empty(), "{name}");
            assert!(asked.is_subset(&announced), "{name}");
        });
    }
}

#[test]
fn as_long_as_no_page_has_aged_all_that_were_touched_are_marked() {
    for name in ERAS {
        with(era(name), Owners::default(), |m| {
            let pages = fill(m, PageFlags::empty());
            let touched: Vec<Pfn> = pages.into_iter().step_by(2).collect();
            for p in &touched {
                m.pages()
                    .set(*p, PageFlags::MAPPED | PageFlags::YOUNG | PageFlags::DIRTY);
                m.pages().clear(*p, PageFlags::DIRTY);
            }
            assert_eq!(m.inspect().nr_aged(), 0, "{name}");
            while m.inspect().nr_aged() == 0 {
                let p = alloc(m, Gfp::HIGHUSER_MOVABLE);
                m.lru_add_new(p, true);
            }
            let marked = |p: &&Pfn| m.page_flags(**p).contains(PageFlags::YOUNG);
            let marked = touched.iter().filter(marked).count();
            assert!(marked < touched.len(), "{name}");
            assert!(
                touched.len() - marked <= m.inspect().nr_aged() as usize,
                "{name}"
            );
        });
    }
}

/// Pages looked at of anonymous ones, all in use, for each of page cache, all of which can be taken, as
/// shares of their lists.
fn anon_for_file(name: &str) -> f64 {
    let host = Owners {
        swap: 1 << 20,
        ..Owners::default()
    };
    let mut found = 0.0;
    with(era(name), host, |m| {
        let (mut anon, mut file) = (0u32, 0u32);
        while let Ok(Begun::Got(p)) = m.begin_alloc(0, Gfp::HIGHUSER_MOVABLE, Context::default()) {
            let cache = (anon + file) % 4 != 0;
            m.lru_add(
                p,
                if cache {
                    Lru::InactiveFile
                } else {
                    Lru::InactiveAnon
                },
            );
            let flags = PageFlags::YOUNG | PageFlags::MAPPED;
            m.pages()
                .set(p, if cache { PageFlags::empty() } else { flags });
            if cache { file += 1 } else { anon += 1 }
        }
        keep_busy(m, |m| {
            m.reclaim_counters().pgsteal_kswapd > u64::from(file) / 2
        });
        let c = m.reclaim_counters();
        let (hot, taken) = (c.pgactivate as f64, c.pgsteal_kswapd as f64);
        found = (hot / f64::from(anon)) / (taken / f64::from(file));
    });
    found
}

#[test]
fn anonymous_pages_in_use_are_scanned_on_from_5_8() {
    // 30 to 140 with costs held to 2 to 1; the first looks are at equal cost, 60 to 140.
    for name in ["5.9", "6.1", "6.18"] {
        let ratio = anon_for_file(name);
        assert!((0.2..0.35).contains(&ratio), "{name}: {ratio}");
    }
    for name in ["2.6.33", "5.6"] {
        let ratio = anon_for_file(name);
        assert!(ratio < 0.1, "{name}: {ratio}");
    }
}

/// `spec: 4.5`
#[test]
fn lumpy_reclaim_takes_the_neighbours() {
    for (name, lumpy) in [("2.6.32", true), ("2.6.14", false)] {
        with(era(name), Owners::default(), |m| {
            let pages = fill(m, PageFlags::empty());
            // Neighbours in memory are far apart in age: a stride through all pages.
            for i in 0..pages.len() {
                m.lru_add(pages[i * 7919 % pages.len()], Lru::InactiveFile);
            }
            leave_single_pages(m);
            let served = (0..20).any(|_| {
                let a = begin(m, 5, Gfp::HIGHUSER_MOVABLE, Context::default());
                finish(m, a).0.is_ok()
            });
            assert_eq!(served, lumpy, "{name}");
        });
    }
}

/// At priorities of 10 and more; the list is long enough that 32 pages are looked at there.
/// `spec: 4.5`
#[test]
fn lumpy_takes_neighbours_on_its_list_at_any_priority() {
    for (name, lumpy) in [("2.6.28", true), ("2.6.33", true), ("2.6.14", false)] {
        with_frames(4 * FRAMES, era(name), Owners::default(), |m| {
            let pages = fill(m, PageFlags::empty());
            for i in 0..pages.len() {
                let p = pages[i * 7919 % pages.len()];
                let active = p.0 % 4 == 3;
                m.lru_add(
                    p,
                    if active {
                        Lru::ActiveFile
                    } else {
                        Lru::InactiveFile
                    },
                );
            }
            leave_single_pages(m);
            let a = begin(m, 2, Gfp::KERNEL | Gfp::NORETRY, Context::default());
            finish(m, a).0.unwrap_err();
            let freed = |m: &Machine, p: &Pfn| m.lru_of(*p).is_none();
            let gone: BTreeSet<Pfn> = pages.iter().copied().filter(|p| freed(m, p)).collect();
            assert!(gone.len() >= 32, "{name}: {}", gone.len());
            assert!(
                gone.iter().all(|p| p.0 % 4 != 3),
                "{name}: an active page went"
            );
            let all: BTreeSet<Pfn> = pages.iter().copied().collect();
            let alone = gone.iter().filter(|p| {
                let first = p.0 & !3;
                (first..first + 3).any(|n| all.contains(&Pfn(n)) && !gone.contains(&Pfn(n)))
            });
            let alone = alone.count();
            assert_eq!(alone == 0, lumpy, "{name}: {alone} of {}", gone.len());
        });
    }
}

/// `spec: 4.5`
#[test]
fn cheap_orders_wait_for_writes_since_2_6_31() {
    for (name, waits) in [("2.6.30", false), ("2.6.31", true), ("2.6.33", true)] {
        with(era(name), Owners::default(), |m| {
            fill(m, PageFlags::DIRTY);
            leave_single_pages(m);
            let a = begin(m, 2, Gfp::KERNEL | Gfp::NORETRY, Context::default());
            let mut waited = 0;
            let _ = drive_otherwise(m, a, |_, need| {
                waited += u32::from(matches!(need, Need::PageWriteback(_)));
                // Nothing is written meanwhile.
                matches!(need, Need::CongestionWait { .. }).then_some(Answer::Left(0))
            });
            assert_eq!(waited > 0, waits, "{name}: {waited}");
        });
    }
}

/// `spec: 4.1`
#[test]
fn dirty_pages_are_written_and_freed_when_that_ended() {
    with(era("2.6.32"), Owners::default(), |m| {
        fill(m, PageFlags::DIRTY);
        for _ in 0..400 {
            if let Begun::Allocation(a) = m.begin_alloc(0, Gfp::KERNEL, Context::default()).unwrap()
            {
                finish(m, a).0.unwrap();
            }
        }
        let c = m.reclaim_counters();
        assert!(c.nr_vmscan_write > 0);
        assert!(
            c.pgrotated > 0,
            "written pages wait where reclaim looks next"
        );
        assert!(c.pgsteal_direct > 0 && c.pgsteal_direct <= c.nr_vmscan_write);
    });
}

/// tmpfs to 2.6.29: a page gets its slot in swap, goes round its list, and is written then.
#[test]
fn a_page_that_is_to_be_written_later_goes_round_its_list_first() {
    let host = Owners {
        swap: 1 << 20,
        placed: Some(BTreeSet::new()),
        ..Owners::default()
    };
    with(era("2.6.28"), host, |m| {
        fill_as(m, false, PageFlags::DIRTY);
        keep_busy(m, |m| !m.owners.writing.is_empty());
        // Many a batch of 32 has been given a place before the first page comes up again.
        let placed = |m: &Machine| m.owners.placed.as_ref().map_or(0, BTreeSet::len);
        assert!(placed(m) > 10 * 32, "{}", placed(m));
        keep_busy(m, |m| m.reclaim_counters().pgsteal_kswapd > 1000);
        let c = m.reclaim_counters();
        assert!(c.nr_vmscan_write >= c.pgsteal_kswapd + placed(m) as u64);
    });
}

/// `spec: 4.1`
#[test]
fn pages_in_use_get_a_second_chance() {
    with(era("2.6.32"), Owners::default(), |m| {
        let pages = fill(m, PageFlags::empty());
        let young = PageFlags::MAPPED | PageFlags::YOUNG;
        for &p in &pages[..64] {
            m.pages().set(p, young);
        }
        assert_eq!(m.inspect().nr_mapped(), 64);
        for _ in 0..300 {
            if let Begun::Allocation(a) = m.begin_alloc(0, Gfp::KERNEL, Context::default()).unwrap()
            {
                finish(m, a).0.unwrap();
            }
        }
        // The oldest are looked at first, and all became active.
        assert!(
            pages[..64]
                .iter()
                .all(|&p| m.lru_of(p) == Some(Lru::ActiveFile))
        );
        assert!(m.reclaim_counters().pgactivate >= 64);
        // Two reads make a page active; one does not.
        let p = pages[pages.len() - 1];
        m.pages().mark_accessed(p);
        assert_eq!(m.lru_of(p), Some(Lru::InactiveFile));
        m.pages().mark_accessed(p);
        assert_eq!(m.lru_of(p), Some(Lru::ActiveFile));
    });
}

/// A referenced page of tmpfs that is not mapped is reclaimed as soon as a file's page.
#[test]
fn a_used_page_of_tmpfs_that_nobody_maps_is_taken() {
    let host = Owners {
        swap: 1 << 20,
        ..Owners::default()
    };
    with(era("2.6.28"), host, |m| {
        for p in fill_as(m, false, PageFlags::REFERENCED) {
            m.lru_add(p, Lru::InactiveAnon);
        }
        keep_busy(m, |m| m.reclaim_counters().pgsteal_kswapd > 1000);
        assert_eq!(m.reclaim_counters().pgactivate, 0);
    });
}

#[test]
fn the_shorter_active_list_of_page_cache_is_spared_from_2_6_31() {
    for (name, spared) in [("2.6.30", false), ("2.6.31", true), ("2.6.33", true)] {
        with(era(name), Owners::default(), |m| {
            let pages = fill(m, PageFlags::empty());
            for p in pages.iter().step_by(4) {
                m.lru_add(*p, Lru::ActiveFile);
            }
            keep_busy(m, |m| m.reclaim_counters().pgsteal_kswapd > 2000);
            let moved = m.reclaim_counters().pgdeactivate;
            assert_eq!(moved == 0, spared, "{name}: {moved}");
        });
    }
}

/// `spec: 4.1`
#[test]
fn anonymous_pages_need_swap() {
    for (swap, ok) in [(0, false), (FRAMES, true)] {
        for name in ["2.6.14", "2.6.32", "6.18"] {
            let host = Owners {
                swap,
                ..Owners::default()
            };
            with(era(name), host, |m| {
                fill_as(m, false, PageFlags::DIRTY);
                let mut last = Ok(Pfn(0));
                for _ in 0..600 {
                    match m.begin_alloc(0, Gfp::KERNEL, Context::default()).unwrap() {
                        Begun::Got(_) => {}
                        Begun::Allocation(a) => last = finish(m, a).0,
                    }
                }
                assert_eq!(last.is_ok(), ok, "{name} with {swap} places in swap");
                assert_eq!(m.reclaim_counters().oom_kill > 0, !ok, "{name}");
            });
        }
    }
}

/// A request made during I/O or inside a file system writes no pages there.
#[test]
fn a_request_writes_only_what_its_rights_allow() {
    let all = Gfp::KERNEL | Gfp::NORETRY;
    for name in ERAS {
        for (file, gfp, writes) in [
            (true, all - Gfp::FS, false),
            (true, all - Gfp::FS - Gfp::IO, false),
            (false, all - Gfp::FS, true),
            (false, all - Gfp::FS - Gfp::IO, false),
            (false, all, true),
        ] {
            let host = Owners {
                swap: FRAMES,
                ..Owners::default()
            };
            with(era(name), host, |m| {
                fill_as(m, file, PageFlags::DIRTY);
                for _ in 0..600 {
                    if let Ok(Begun::Allocation(a)) = m.begin_alloc(0, gfp, Context::default()) {
                        let _ = finish(m, a);
                    }
                }
                let c = *m.reclaim_counters();
                assert!(c.pgscan_direct > 0, "{name}: nothing was looked at");
                assert_eq!(
                    c.nr_vmscan_write > 0,
                    writes,
                    "{name}, file {file}: {gfp:?}"
                );
                assert!(writes || m.owners.in_swap.is_empty(), "{name}: {gfp:?}");
            });
        }
    }
}

#[test]
fn a_request_without_rights_still_takes_clean_pages() {
    for name in ERAS {
        with(era(name), Owners::default(), |m| {
            fill(m, PageFlags::empty());
            for _ in 0..600 {
                alloc(m, Gfp::KERNEL - Gfp::FS - Gfp::IO);
            }
            assert!(m.reclaim_counters().pgsteal_direct > 0, "{name}");
        });
    }
}

#[test]
fn flags_set_beside_the_host_or_on_joining_agree() {
    for name in ERAS {
        with(era(name), Owners::default(), |m| {
            let new = PageFlags::MAPPED | PageFlags::YOUNG | PageFlags::DIRTY;
            let [one, by_one] = [(); 2].map(|()| alloc(m, Gfp::HIGHUSER_MOVABLE));
            m.pages().lru_add_new(one, false, new);
            m.lru_add_new(by_one, false);
            let (host, mut pages) = m.host_and_pages();
            host.woken = vec![17];
            pages.set(by_one, PageFlags::MAPPED | PageFlags::YOUNG);
            pages.set(by_one, PageFlags::DIRTY);
            assert_eq!(pages.flags(by_one), new, "{name}");
            assert_eq!(m.page_flags(one), m.page_flags(by_one), "{name}");
            assert_eq!(m.lru_of(one), m.lru_of(by_one), "{name}");
            assert_eq!(
                (m.inspect().nr_mapped(), m.inspect().nr_aged()),
                (2, 0),
                "{name}"
            );
            let (host, mut pages) = m.host_and_pages();
            assert_eq!(host.woken, [17]);
            pages.clear(one, PageFlags::YOUNG);
            // No longer young: nothing to count.
            pages.clear(one, PageFlags::YOUNG | PageFlags::MAPPED);
            assert_eq!(
                (m.inspect().nr_mapped(), m.inspect().nr_aged()),
                (1, 1),
                "{name}"
            );
            let nowhere = Pfn(1 << 40);
            m.host_and_pages().1.set(nowhere, new);
            assert_eq!(m.page_flags(nowhere), PageFlags::empty(), "{name}");
        });
    }
}

fn newest(m: &Machine, lru: Lru) -> Option<Pfn> {
    m.inspect().lru_list(ZONE, lru).next()
}

#[test]
fn a_page_that_moves_keeps_its_list_and_its_flags() {
    for name in ERAS {
        with(era(name), Owners::default(), |m| {
            let pages = fill(m, PageFlags::empty());
            let (page, other) = (pages[10], pages[20]);
            let flags = PageFlags::DIRTY | PageFlags::MAPPED | PageFlags::YOUNG;
            m.lru_add(page, Lru::ActiveFile);
            m.pages().set(page, flags);
            let (mapped, before) = (m.inspect().nr_mapped(), m.lru().pages);
            let free = (0x400..0x400 + FRAMES).map(Pfn);
            let to = free
                .rev()
                .find(|&p| m.inspect().free_block(p).is_some())
                .unwrap();
            assert_eq!(migrate(m, page, other), Err(MoveError::NotFree(other)));
            m.pages().set(page, PageFlags::WRITEBACK);
            assert_eq!(migrate(m, page, to), Err(MoveError::Busy(page)), "{name}");
            m.pages().clear(page, PageFlags::WRITEBACK);
            migrate(m, page, to).unwrap();
            assert_eq!(newest(m, Lru::ActiveFile), Some(to), "{name}");
            assert_eq!((m.page_flags(to), m.lru_of(page)), (flags, None));
            assert_eq!((m.inspect().nr_mapped(), m.lru().pages), (mapped, before));
            assert_eq!(
                migrate(m, page, to),
                Err(MoveError::NotMovable(page)),
                "it is free"
            );
        });
    }
}

#[test]
fn a_page_freed_while_reclaim_holds_it_is_freed_once() {
    with(era("2.6.32"), Owners::default(), |m| {
        let pages = fill(m, PageFlags::DIRTY);
        leave_single_pages(m);
        m.owners.congested = true;
        let a = begin(m, 5, Gfp::KERNEL | Gfp::RETRY_MAYFAIL, Context::default());
        let mut freed_held = 0;
        let _ = drive_otherwise(m, a, |m, need| {
            if matches!(need, Need::CongestionWait { .. }) && freed_held == 0 {
                let held = |p: &Pfn| {
                    let used = m.inspect().frame(*p).unwrap().kind == FrameKind::Used;
                    let writing = m.page_flags(*p).contains(PageFlags::WRITEBACK);
                    m.lru_of(*p).is_none() && used && !writing
                };
                let held: Vec<Pfn> = pages.iter().copied().filter(held).take(8).collect();
                for &p in &held {
                    m.free(p, 0).unwrap();
                    assert!(m.free(p, 0).is_err(), "freed twice");
                    freed_held += 1;
                }
            }
            None
        });
        assert!(freed_held > 0, "a lumpy batch holds pages while it waits");
    });
}
