//! Advice that holds: none where nothing is wrong, however often one looks; exactly one, with its numbers, where one thing is.

use crate::advice_support::{Hosts, Moves, Watch};

/// What makes a host what it is.
type Make = fn(&mut Hosts);

/// Readings of each sound host.
const LOOKS: u64 = 100;

#[test]
fn where_nothing_is_wrong_there_is_no_advice_in_a_hundred_readings() {
    let seed = crate::advice_support::seed();
    let quiet: Moves = |_, _| vec![];
    let kswapd: Moves = |t, r| {
        vec![
            ("pgscan_kswapd", t * 900 + r % 5000),
            ("compact_daemon_wake", t / 30),
        ]
    };
    let busy: Moves = |t, r| {
        vec![
            ("pgscan_kswapd", t * 2000 + r % 9000),
            ("allocstall_normal", t / 5),
            ("compact_stall", t * 6),
            ("compact_success", t * 5),
            ("compact_fail", t),
            ("thp_fault_alloc", t * 40),
            ("thp_fault_fallback", t * 2),
        ]
    };
    let full: Make = |h| h.free_blocks = [400, 300, 200, 150, 80, 40, 20, 10, 4, 0, 0];
    let table: [(&str, Make, Moves); 9] = [
        ("fresh", |_| {}, quiet),
        ("page cache full", full, kswapd),
        ("busy", |_| {}, busy),
        ("busy, and full of page cache", full, busy),
        (
            "stalls that are long over",
            |h| {
                h.since_boot("compact_stall", 205_761);
                h.since_boot("compact_fail", 182_420);
                h.since_boot("compact_success", 23_341);
                h.since_boot("allocstall_normal", 90_000_000);
                h.since_boot("thp_fault_fallback", 80_000);
                h.since_boot("oom_kill", 3);
            },
            quiet,
        ),
        ("fragmented, and nobody asks", |h| h.fragment(), kswapd),
        ("much slab", |h| h.slab_blocks = 90, kswapd),
        (
            "the boost off, no proactive compaction, faults that wait",
            |h| {
                h.fragment();
                h.set("watermark_boost_factor", 0);
                h.set("compaction_proactiveness", 0);
                h.set("compact_unevictable_allowed", 0);
                h.defrag = "always";
            },
            busy,
        ),
        ("thp never waits", |h| h.defrag = "never", busy),
    ];
    for (name, make, moves) in table {
        let mut host = Hosts::sound();
        make(&mut host);
        for look in 0..LOOKS {
            // One reading, two a second apart, a long watch: each at another moment.
            for watch in [Watch::One, Watch::Second, Watch::Long] {
                if watch == Watch::Long && look % 10 > 0 {
                    continue;
                }
                let d = host.diagnosed(moves, watch, seed ^ look << 8);
                let commands: Vec<&str> = d.advice.iter().map(|a| &a.command[..]).collect();
                assert!(
                    commands.is_empty(),
                    "{name}, {watch:?}, look {look}, UNFRAG_SEED={seed}: {commands:?}"
                );
                if watch != Watch::One {
                    let candidates: Vec<&str> =
                        d.candidates.iter().map(|c| &c.advice.command[..]).collect();
                    assert!(
                        candidates.is_empty(),
                        "{name}, {watch:?}, look {look}, UNFRAG_SEED={seed}: {candidates:?}"
                    );
                }
            }
        }
    }
}

/// A wrong thing, and what is advised: a part of the command, and the change as text.
struct Wrong {
    name: &'static str,
    make: Make,
    moves: Moves,
    watch: Watch,
    advised: &'static [(&'static str, &'static str)],
}

const IN_VAIN: Moves = |t, _| {
    vec![
        ("compact_stall", t * 30),
        ("compact_fail", t * 25),
        ("compact_success", t * 5),
    ]
};

const WRONG: [Wrong; 13] = [
    Wrong {
        name: "compactions in vain, where compaction makes room",
        make: |h| h.fragment(),
        moves: IN_VAIN,
        watch: Watch::Second,
        advised: &[(
            "compact_memory",
            "free huge pages of 2 MiB: from 34 to about ",
        )],
    },
    Wrong {
        name: "the same for long: also a setting that compacts ahead",
        make: |h| h.fragment(),
        moves: IN_VAIN,
        watch: Watch::Long,
        advised: &[
            (
                "vm.compaction_proactiveness=50",
                "free huge pages of 2 MiB on node 0: from 34 to about ",
            ),
            (
                "compact_memory",
                "free huge pages of 2 MiB: from 34 to about ",
            ),
        ],
    },
    Wrong {
        name: "the hugetlb pool does not grow",
        make: |h| h.fragment(),
        moves: |t, _| vec![("htlb_buddy_alloc_fail", t)],
        watch: Watch::Second,
        advised: &[(
            "compact_memory",
            "free huge pages of 2 MiB: from 34 to about ",
        )],
    },
    Wrong {
        name: "requests reclaim first, all the time",
        make: |_| {},
        moves: |t, _| vec![("allocstall_normal", t * 5)],
        watch: Watch::Long,
        // 1,024 pages of min, and 131,072 managed: 256 above it, a quarter of min; 5 in 1,000 of the zone are 655.
        advised: &[(
            "vm.watermark_scale_factor=50",
            "(the low marks of all zones): from 5 MiB to about 6.6 MiB",
        )],
    },
    Wrong {
        name: "the same, where a quarter of min is more than a small share of memory",
        make: |h| h.min = 8192,
        moves: |t, _| vec![("allocstall_normal", t * 5)],
        watch: Watch::Long,
        // 2,048 pages above min now; 3 in 100 of the zone are 3,932, less than twice as many: no step changes enough.
        advised: &[],
    },
    Wrong {
        name: "requests that may not wait fail, all the time",
        make: |h| h.free_blocks = [9000, 30, 10, 0, 0, 0, 0, 0, 0, 0, 0],
        moves: |_, _| vec![],
        watch: Watch::Long,
        advised: &[("vm.min_free_kbytes=8192", "from 4 MiB to 8 MiB")],
    },
    Wrong {
        name: "mlocked memory spoils blocks and may not be moved",
        make: |h| {
            h.unevictable_blocks = 60;
            h.set("compact_unevictable_allowed", 0);
        },
        moves: IN_VAIN,
        watch: Watch::Long,
        advised: &[(
            "vm.compact_unevictable_allowed=1",
            "huge pages of 2 MiB that compaction can make: from ",
        )],
    },
    Wrong {
        name: "no fault waits, and many get small pages",
        make: |h| h.defrag = "never",
        moves: |t, _| vec![("thp_fault_alloc", t * 40), ("thp_fault_fallback", t * 10)],
        watch: Watch::Long,
        advised: &[(
            "echo defer+madvise > ",
            "that got small pages, of 30,000: from 6,000 to at best 0",
        )],
    },
    Wrong {
        name: "every fault waits, in vain",
        make: |h| h.defrag = "always",
        moves: IN_VAIN,
        watch: Watch::Long,
        advised: &[(
            "echo madvise > ",
            "that a request waited for: from 18,000 to at best 0",
        )],
    },
    Wrong {
        name: "slab fills a zone",
        make: |h| {
            h.free_blocks = [900, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            h.unreclaimable = 100_000;
        },
        moves: |_, _| vec![],
        watch: Watch::Second,
        advised: &[("slabtop", "")],
    },
    Wrong {
        name: "slab spoils blocks that are wanted",
        make: |h| h.slab_blocks = 90,
        moves: IN_VAIN,
        watch: Watch::Second,
        advised: &[(
            "drop_caches",
            "slab that can be reclaimed: from 60 MiB to at best 0 B",
        )],
    },
    Wrong {
        name: "processes are ended now",
        make: |_| {},
        moves: |t, _| vec![("oom_kill", t)],
        watch: Watch::Second,
        advised: &[("unfrag explain --journal", "")],
    },
    Wrong {
        name: "caches fill what is wanted",
        make: |h| h.clean_blocks = 100,
        moves: IN_VAIN,
        watch: Watch::Second,
        advised: &[(
            "echo 3 > /proc/sys/vm/drop_caches",
            "free huge pages of 2 MiB: from ",
        )],
    },
];

#[test]
fn where_one_thing_is_wrong_that_is_advised_with_its_numbers() {
    let seed = crate::advice_support::seed();
    for w in &WRONG {
        let mut host = Hosts::sound();
        (w.make)(&mut host);
        for look in 0..10 {
            let d = host.diagnosed(w.moves, w.watch, seed ^ look << 8);
            let said: Vec<(String, String)> = d
                .advice
                .iter()
                .map(|a| {
                    (
                        a.command.clone(),
                        a.change.as_ref().map_or(String::new(), |c| c.in_words()),
                    )
                })
                .collect();
            let place = format!("{}, look {look}, UNFRAG_SEED={seed}: {said:#?}", w.name);
            assert_eq!(said.len(), w.advised.len(), "{place}");
            for ((command, change), (part, numbers)) in said.iter().zip(w.advised) {
                assert!(command.contains(part), "{part}: {place}");
                assert!(change.contains(numbers), "{numbers}: {place}");
            }
        }
    }
}

#[test]
fn a_setting_needs_a_longer_look_than_what_is_done_once() {
    for w in WRONG.iter().filter(|w| w.watch == Watch::Long) {
        let mut host = Hosts::sound();
        (w.make)(&mut host);
        let d = host.diagnosed(w.moves, Watch::Second, 1);
        let settings = d
            .advice
            .iter()
            .filter(|a| a.lasts == unfrag_lab::doctor::advice::Lasts::Setting);
        assert_eq!(settings.count(), 0, "{}", w.name);
        let waits = d
            .candidates
            .iter()
            .any(|c| c.why_not.contains("unfrag doctor --for 10m"));
        assert_eq!(
            waits,
            !w.advised.is_empty(),
            "{}: {:?}",
            w.name,
            d.candidates
        );
    }
}

#[test]
fn where_compacting_makes_no_room_the_advice_is_withdrawn() {
    let host = Hosts::sound();
    let d = host.diagnosed(IN_VAIN, Watch::Second, 1);
    assert_eq!(d.advice, []);
    let [gone] = &d.withdrawn[..] else {
        panic!("{:?}", d.withdrawn);
    };
    assert!(
        gone.why_not
            .contains("it would make no room worth its cost"),
        "{gone:?}"
    );
}

#[test]
fn what_helps_against_slab_is_said_where_nobody_asks_too() {
    let mut host = Hosts::sound();
    host.slab_blocks = 20;
    let d = host.diagnosed(|_, _| vec![], Watch::Second, 1);
    assert_eq!(d.advice, []);
    let more = &d.if_more_is_needed[0];
    assert_eq!(more.command, "echo 2 > /proc/sys/vm/drop_caches");
    assert!(more.reason.contains("ext4_inode_cache"), "{more:?}");
    let made = more.huge_pages.as_ref().unwrap();
    assert_eq!((made.at_least, made.at_most), (0, Some(20)), "{made:?}");
    assert_eq!(made.at_most_with_compaction, Some(20), "{made:?}");
    let said = made.in_words(d.huge_page_bytes);
    assert!(
        said.starts_with("0 to 20 more of 2 MiB by itself"),
        "{said}"
    );
    // Of blocks that hold memory which moves as well, compaction makes huge pages after slab is gone: here none does.
    assert!(made.more.contains("set huge pages aside at boot"), "{said}");
    host.clean_blocks = 30;
    let d = host.diagnosed(|_, _| vec![], Watch::Second, 1);
    let made = d.if_more_is_needed[0].huge_pages.clone().unwrap();
    let all = d.huge_pages.after_reclaim.unwrap();
    let command = format!("then compact ({all} in all by the model");
    assert_eq!(made.at_most, Some(20), "{made:?}");
    assert!(made.more.contains(&command), "{made:?}");
}

#[test]
fn an_oom_kill_since_boot_leads_to_the_log() {
    let mut host = Hosts::sound();
    host.since_boot("oom_kill", 1);
    let d = host.diagnosed(|_, _| vec![], Watch::Second, 1);
    assert_eq!(d.history[0].next, Some("unfrag explain --journal"));
    assert_eq!(
        (d.history[0].since_boot, d.history[0].while_watched),
        (1, Some(0))
    );
}

#[test]
fn pageblocks_are_those_that_the_kernel_counts() {
    let mut host = Hosts::sound();
    // Whole blocks without a flag look like holes.
    host.unflagged_blocks = 7;
    let d = host.diagnosed(|_, _| vec![], Watch::One, 1);
    assert_eq!(d.zones[0].blocks, Some(256));
}
