//! Recordings of hosts that a replay is not made for, of hosts whose CPUs have gaps, and of none at all: each is answered
//! or refused, by name, and none ends in a panic.

use crate::recording_support::host::{Host, PAGES, START};
use unfrag_eras::Manager;
use unfrag_lab::blame::blame;
use unfrag_lab::export::Exporter;
use unfrag_lab::inspect;
use unfrag_lab::profile::{Identity, Profile};
use unfrag_lab::replay::model::ReplayHost;
use unfrag_lab::replay::view::detail::Detail;
use unfrag_lab::replay::view::terminal::render;
use unfrag_lab::replay::{CompactionChoice, Mode, NoWatch, Options, Report, Watch, replay};
use unfrag_lab::report::screen::Screen;
use unfrag_lab::slab;
use unfrag_lab::summary::summarize;
use unfrag_lab::top;
use unfrag_linux::recording::{Recording, Snapshot};

fn one(kernel: &str) -> Options {
    Options {
        kernels: vec![kernel.into()],
        members: Some(1),
        ..Options::default()
    }
}

fn replayed(rec: &Recording) -> Result<Report, String> {
    replay(rec, "made", &one("6.1"), &mut NoWatch).map_err(|e| e.to_string())
}

/// Looks at each snapshot as `top` does, and as an export does.
struct Looks(Exporter);

impl Watch for Looks {
    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, m: &Manager<'_, ReplayHost>) {
        let sound = m.inspect().validate();
        assert!(sound.is_ok(), "{kernel} at {}: {sound:?}", snap.name);
        let _ = top::replayed::view(kernel, snap, m);
        self.0.at_snapshot(kernel, snap, m);
    }
}

#[test]
fn cpus_may_have_gaps_and_may_come_later() {
    let plain = replayed(&Host::default().record()).unwrap();
    for (in_zoneinfo, in_events, all) in [
        (vec![0, 2], vec![0, 2], 2),
        (vec![0, 1], vec![0, 1, 2], 3),
        (vec![0, 1], vec![0, 512], 3),
        (vec![7], vec![65_535], 2),
        (vec![0, 4_000_000_000], vec![0, 1], 3),
    ] {
        let host = Host {
            cpus: in_zoneinfo.clone(),
            event_cpus: in_events.clone(),
            ..Host::default()
        };
        let report = replayed(&host.record()).unwrap();
        let case = format!("{in_zoneinfo:?} {in_events:?}");
        assert_eq!(report.recording.cpus, all, "{case}");
        let (this, plain) = (&report.kernels[0], &plain.kernels[0]);
        assert_eq!(
            this.totals["allocations"], plain.totals["allocations"],
            "{case}"
        );
        let error = this.accuracy.as_ref().unwrap().free_pages_error;
        assert!(error.max < 0.02, "{case}: {error:?}");
    }
}

/// Numbers stand for themselves alone: another numbering of the same CPUs changes no answer.
#[test]
fn the_numbers_of_cpus_change_no_answer() {
    let of = |cpus: [u16; 2]| {
        let host = Host {
            cpus: cpus.map(u32::from).to_vec(),
            event_cpus: cpus.to_vec(),
            ..Host::default()
        };
        let report = replayed(&host.record()).unwrap();
        serde_json::to_string(&report).unwrap()
    };
    assert_eq!(of([0, 1]), of([0, 2]));
    assert_eq!(of([0, 1]), of([4, 63]));
}

#[test]
fn an_exported_tree_has_the_hosts_own_numbers() {
    let host = Host {
        cpus: vec![0, 2],
        event_cpus: vec![0, 2],
        ..Host::default()
    };
    let at = tempfile::tempdir().unwrap();
    let mut exporter = Exporter::new(at.path(), false);
    replay(&host.record(), "made", &one("6.1"), &mut exporter).unwrap();
    assert!(exporter.finish().unwrap() > 0);
    let text = std::fs::read_to_string(at.path().join("s0001/zoneinfo")).unwrap();
    assert!(
        text.contains("cpu: 2\n") && !text.contains("cpu: 1\n"),
        "{text}"
    );
}

/// What cannot be, and words that the refusal has: of the size that was found, and of the place.
fn impossible() -> Vec<(Host, Vec<&'static str>)> {
    let usual = Host::default;
    vec![
        (
            Host {
                page_size: 0,
                ..usual()
            },
            vec!["manifest", "pages of 0 bytes"],
        ),
        (
            Host {
                page_size: 5000,
                ..usual()
            },
            vec!["manifest", "pages of 5000 bytes"],
        ),
        // A huge page of 2 MiB that is a pageblock of order 9 says pages of 4 KiB.
        (
            Host {
                page_size: 65_536,
                total_kib: Some(1),
                ..usual()
            },
            vec!["manifest", "64 KiB", "meminfo", "4 KiB"],
        ),
        (
            Host {
                page_size: 65_536,
                ..usual()
            },
            vec![
                "manifest",
                "64 KiB",
                "meminfo and zoneinfo of snapshot `s0000`",
                "4 KiB",
            ],
        ),
        (
            Host {
                pageblock_order: 10,
                ..usual()
            },
            vec!["pagetypeinfo", "1024 pages", "512 pages"],
        ),
        (
            Host {
                free: vec![1; 9],
                ..usual()
            },
            vec!["pagetypeinfo", "512 pages", "9 orders"],
        ),
        (
            Host {
                pageblock_order: 4_000_000_000,
                ..usual()
            },
            vec!["pagetypeinfo"],
        ),
    ]
}

/// Hosts of other sizes, and words of the refusal of a profile, where it is refused.
fn others() -> Vec<(Host, Vec<&'static str>)> {
    let usual = Host::default;
    let wide = |orders: usize| {
        let mut free = usual().free;
        free.resize(orders, 0);
        free
    };
    vec![
        (
            Host {
                page_size: 65_536,
                total_kib: None,
                ..usual()
            },
            vec!["pages of 64 KiB", "manifest", "unfrag inspect"],
        ),
        (
            Host {
                total_kib: Some(PAGES * 64),
                ..usual()
            },
            vec!["this one has pages of 64 KiB (meminfo and zoneinfo of snapshot `s0000`)"],
        ),
    ]
    .into_iter()
    .chain([
        (
            Host {
                free: wide(14),
                total_kib: None,
                ..usual()
            },
            vec!["14 orders", "buddyinfo of snapshot `s0000`"],
        ),
        (
            Host {
                free: wide(9),
                pageblock_order: 8,
                pages_per_block: 256,
                total_kib: None,
                ..usual()
            },
            vec![],
        ),
        (
            Host {
                pageblock_order: 10,
                pages_per_block: 1024,
                total_kib: None,
                ..usual()
            },
            vec![],
        ),
    ])
    .collect()
}

#[test]
fn impossible_hosts_are_refused_with_what_was_found_and_where() {
    for (host, words) in impossible() {
        let rec = host.record();
        let e = replayed(&rec).expect_err("there is no such host");
        for word in &words {
            assert!(e.contains(word), "`{word}` is not in: {e}");
        }
        assert!(!e.contains("same host"), "{e}");
        let e = blame(&rec, "made").unwrap_err().to_string();
        assert!(words.iter().all(|w| e.contains(w)), "{e}");
    }
}

/// A replay, a view and a count of spoilt pageblocks take the sizes as they are; a profile of another page size drives no
/// simulated machine.
#[test]
fn other_hosts_are_replayed_and_a_profile_says_which_size_it_is_not_made_for() {
    for (host, words) in others() {
        let rec = host.record();
        let report = replayed(&rec).unwrap_or_else(|e| panic!("{e} of {host:?}"));
        assert!(!report.recording.sizes.are_usual(), "{host:?}");
        let blame = blame(&rec, "made").unwrap();
        assert_eq!(blame.sizes, report.recording.sizes, "{host:?}");
        let e = Profile::of(&rec, &Identity::default()).map(|_| ());
        let e = e.err().map_or_else(String::new, |e| e.to_string());
        assert!(words.iter().all(|w| e.contains(w)), "{e}");
    }
}

/// A profile, and a replay of slab caches, do not depend on pageblocks.
#[test]
fn a_profile_needs_the_page_size_alone() {
    let identity = Identity::default();
    let host = Host {
        pageblock_order: 10,
        pages_per_block: 1024,
        ..Host::default()
    };
    assert!(Profile::of(&host.record(), &identity).is_ok());
    let host = Host {
        page_size: 65_536,
        total_kib: None,
        ..Host::default()
    };
    let e = Profile::of(&host.record(), &identity)
        .unwrap_err()
        .to_string();
    assert!(e.contains("a profile") && e.contains("64 KiB"), "{e}");
    let e = slab::replay(&host.record(), "made", &slab::Options::default()).unwrap_err();
    assert!(e.to_string().contains("64 KiB"), "{e}");
}

/// Snapshots that come later are looked at, too.
#[test]
fn a_later_snapshot_of_another_host_is_refused() {
    let mut rec = Host::default().record();
    let other = Host {
        free: vec![1; 14],
        ..Host::default()
    };
    let last = rec.snapshots.len() - 1;
    rec.snapshots[last].files[0] = other.record().snapshots[last].files[0].clone();
    let e = replayed(&rec).unwrap_err();
    assert!(e.contains("11 orders") && e.contains("14 orders"), "{e}");
    assert!(e.contains(&format!("`s000{last}`")), "{e}");
}

/// Without snapshots, the events tell orders that no host with pages of 4 KiB has.
#[test]
fn an_event_of_a_larger_order_is_refused() {
    let host = Host {
        order: 13,
        ..Host::default()
    };
    let rec = host.record();
    let words = |e: String| e.contains("order 13") && e.contains("4 KiB");
    assert!(words(replayed(&rec).unwrap_err()));
    assert!(words(blame(&rec, "made").unwrap_err().to_string()));
    let e = Profile::of(&rec, &Identity::default()).unwrap_err();
    assert!(words(e.to_string()));
}

#[test]
fn what_was_not_recorded_is_no_zero() {
    let report = replayed(&Host::default().record()).unwrap();
    let totals = &report.kernels[0].totals;
    assert_eq!(totals["fallbacks_recorded"], None);
    assert_eq!(
        totals["failures_recorded"],
        Some(0),
        "allocations were recorded"
    );
}

/// A generator for mutations: xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick(&mut self, values: &[u64]) -> u64 {
        values[self.below(values.len() as u64) as usize]
    }
}

/// Numbers that tend to be forgotten.
const ODD: [u64; 14] = [
    0,
    1,
    9,
    10,
    11,
    63,
    64,
    255,
    START - 1,
    START + PAGES,
    START + PAGES - 1,
    1 << 32,
    1 << 52,
    u64::MAX,
];

/// Changes one field somewhere.
fn mutate(rec: &mut Recording, r: &mut Random) {
    let events = &mut rec.events;
    let at = r.below(events.cpu.len() as u64) as usize;
    match r.below(10) {
        0 => events.cpu[at] = r.pick(&[2, 63, 512, 4095, 65_535]) as u16,
        1..=3 => {
            let table = r.below(events.tables.len() as u64) as usize;
            let table = &mut events.tables[table];
            let column = r.below(table.columns.len() as u64) as usize;
            let column = &mut table.columns[column];
            let row = r.below(column.len() as u64) as usize;
            column[row] = match r.below(3) {
                0 => r.pick(&ODD),
                1 => START + r.below(PAGES),
                _ => r.below(12),
            };
        }
        4 => rec.meta.page_size = r.pick(&[0, 1, 4096, 5000, 65_536, u64::from(u32::MAX)]) as u32,
        5 => rec.meta.cpus = r.pick(&[0, 3, 8192, u64::from(u32::MAX)]) as u32,
        // A number in a file of a snapshot.
        _ => {
            let snapshot = r.below(rec.snapshots.len() as u64) as usize;
            let files = &mut rec.snapshots[snapshot].files;
            let file = r.below(files.len() as u64) as usize;
            let text = String::from_utf8_lossy(files[file].content.plain().unwrap_or_default());
            let numbers: Vec<&str> = text
                .split_inclusive(|c: char| !c.is_ascii_digit())
                .collect();
            let is_number = |w: &&str| w.starts_with(|c: char| c.is_ascii_digit());
            let count = numbers.iter().filter(|w| is_number(w)).count() as u64;
            let which = r.below(count.max(1));
            // Zones of terabytes are possible, and take their time and memory: they are not what is asked here.
            let new = match r.below(4) {
                0 => r.pick(&[0, 1, 2, 7, 9, 10, 11, 13, 511, 513]),
                1 => r.pick(&[START, PAGES, START + 1, PAGES - 1, 2 * PAGES, 100_000]),
                2 => r.pick(&[1 << 33, 1 << 40, 1 << 63, u64::MAX]),
                _ => r.below(70_000),
            };
            let (mut seen, mut changed) = (0, String::new());
            for word in numbers {
                if is_number(&word) {
                    if seen == which {
                        let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
                        changed += &format!("{new}{rest}");
                    } else {
                        changed += word;
                    }
                    seen += 1;
                } else {
                    changed += word;
                }
            }
            files[file].content = changed.into();
        }
    }
}

/// Asks every question about a recording. Each is answered or refused.
fn ask_all(rec: &Recording, r: &mut Random) -> [bool; 3] {
    let at = tempfile::tempdir().unwrap();
    let mut looks = Looks(Exporter::new(at.path(), false));
    let kernel = ["6.1", "2.6.32", "6.18", "unfrag"][r.below(4) as usize];
    let mut options = one(kernel);
    match r.below(6) {
        0 => options.mode = Mode::Observe,
        1 => options.memory = Some(512 << 20),
        2 => options.compaction = Some(CompactionChoice::Given),
        _ => {}
    }
    let replayed = replay(rec, "made", &options, &mut looks);
    if let Ok(report) = &replayed {
        let screen = Screen {
            width: 100,
            color: false,
            unicode: true,
        };
        assert!(render(report, &screen, Detail::All).contains("made"));
    }
    let blamed = blame(rec, "made");
    let profile = Profile::of(rec, &Identity::default());
    let _ = slab::replay(rec, "made", &slab::Options::default());
    let _ = summarize(rec, "made");
    for snapshot in &rec.snapshots {
        let _ = inspect::of_snapshot(snapshot, None);
    }
    [replayed.is_ok(), blamed.is_ok(), profile.is_ok()]
}

#[test]
fn no_recording_makes_a_question_panic() {
    let seed = std::env::var("UNFRAG_SEED").ok();
    let seed: u64 = seed.and_then(|s| s.parse().ok()).unwrap_or(20_261_129);
    let rounds = std::env::var("UNFRAG_ROUNDS").ok();
    let rounds: u64 = rounds.and_then(|s| s.parse().ok()).unwrap_or(200);
    println!("UNFRAG_SEED={seed} UNFRAG_ROUNDS={rounds}");
    let whole = Host::default().record();
    let mut answered = [0; 3];
    let mut panics = vec![];
    for round in 0..rounds {
        println!("round {round}");
        let mut r = Random((seed ^ (round << 32)) | 1);
        for _ in 0..8 {
            r.next();
        }
        let mut rec = whole.clone();
        for _ in 0..1 + r.below(3) {
            mutate(&mut rec, &mut r);
        }
        // All of them are of interest, and not just the first.
        let asked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ask_all(&rec, &mut r)));
        let Ok(asked) = asked else {
            panics.push(round);
            continue;
        };
        for (sum, ok) in answered.iter_mut().zip(asked) {
            *sum += u64::from(ok);
        }
    }
    assert!(
        panics.is_empty(),
        "panics in rounds {panics:?} of seed {seed}"
    );
    println!("answered: {answered:?} of {rounds}");
    assert!(
        answered.iter().all(|n| *n > rounds / 10),
        "{answered:?} of {rounds}"
    );
}
