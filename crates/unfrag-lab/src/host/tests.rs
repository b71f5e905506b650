//! What a host is made from files that are missing, bad, or of two moments.

use super::*;
use unfrag_linux::recording::SnapshotFile;

const BUDDY: &str = "Node 0, zone   Normal     10      0      0      0      0      0      0      0      0      3      1 \n";
const ZONES: &str = "Node 0, zone   Normal
  pages free     2570
        boost    8
        min      64
        low      80
        high     96
        spanned  4096
        present  4096
        managed  4000
        protection: (0, 0)
  pagesets
    cpu: 0
              count: 20
              high:  100
              batch: 8
    cpu: 2
              count: 5
              high:  100
              batch: 8
  start_pfn:           1024
";
const TYPES: &str = "Page block order: 9
Pages per block:  512

Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 
Node    0, zone   Normal, type    Unmovable     10      0      0      0      0      0      0      0      0      0      0 
Node    0, zone   Normal, type      Movable      0      0      0      0      0      0      0      0      0      1      1 
Node    0, zone   Normal, type   HighAtomic      0      0      0      0      0      0      0      0      0      2      0 

Number of blocks type     Unmovable      Movable   HighAtomic 
Node 0, zone   Normal            1            5            2 
";
const AMOUNTS: &str =
    "MemTotal:          16000 kB\nMemFree:           10280 kB\nHugepagesize:       2048 kB\n";
const ALL: [(&str, &str); 4] = [
    ("buddyinfo", BUDDY),
    ("zoneinfo", ZONES),
    ("pagetypeinfo", TYPES),
    ("meminfo", AMOUNTS),
];

fn snapshot(files: &[(&str, &str)]) -> Snapshot {
    let file = |(name, text): &(&str, &str)| SnapshotFile {
        name: (*name).into(),
        content: text.as_bytes().to_vec().into(),
        ..SnapshotFile::default()
    };
    Snapshot {
        name: "s0001".into(),
        files: files.iter().map(file).collect(),
    }
}

/// What a host knows: free pages of its lists, blocks of huge pages that are not withheld, pages on per-CPU lists, pageblocks
/// that are not movable, CPUs, bytes in a page if they are derived.
type Known = (
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    usize,
    Option<u64>,
);

fn known(host: &Host) -> Known {
    let zone = host.zone(0, "Normal");
    let of = |f: &dyn Fn(&Zone) -> Option<u64>| zone.and_then(f);
    let is_derived = host.geometry.page_size_from == geometry::PageSizeFrom::Derived;
    (
        of(&|z| z.free_pages),
        of(&Zone::free_huge),
        of(&|z| z.pcp),
        of(&Zone::unmovable_blocks),
        host.cpus().count(),
        Some(host.geometry.page_size).filter(|_| is_derived),
    )
}

#[test]
fn each_file_that_is_missing_or_bad_costs_what_it_alone_tells() {
    let bad = "cat: Permission denied\n";
    let whole: Known = (Some(2570), Some(3), Some(25), Some(3), 2, Some(4096));
    let without: [(&str, Known); 5] = [
        ("none", whole),
        // The types add up to the lists.
        ("buddyinfo", whole),
        ("zoneinfo", (whole.0, whole.1, None, whole.3, 0, whole.5)),
        // Nothing tells what is withheld.
        (
            "pagetypeinfo",
            (whole.0, Some(5), whole.2, None, 2, whole.5),
        ),
        ("meminfo", (whole.0, whole.1, whole.2, whole.3, 2, None)),
    ];
    for (name, expected) in without {
        let missing: Vec<_> = ALL.into_iter().filter(|(n, _)| *n != name).collect();
        let host = Host::of_snapshot(&snapshot(&missing));
        assert_eq!(known(&host), expected, "without {name}");
        let spoilt = ALL.map(|(n, text)| (n, if n == name { bad } else { text }));
        let host = Host::of_snapshot(&snapshot(&spoilt));
        assert_eq!(known(&host), expected, "with a bad {name}");
        let empty = ALL.map(|(n, text)| (n, if n == name { "" } else { text }));
        let host = Host::of_snapshot(&snapshot(&empty));
        assert_eq!(known(&host), expected, "with an empty {name}");
        // A replay goes on without a file that it can do without, and names one that is bad.
        assert!(Host::recorded(&snapshot(&missing)).is_ok(), "{name}");
        let refused = Host::recorded(&snapshot(&spoilt)).err();
        let file = refused.and_then(|e| e.file);
        let is_needed = !matches!(name, "none" | "meminfo");
        assert_eq!(file, is_needed.then(|| name.into()), "{name}");
    }
    assert_eq!(known(&Host::of_snapshot(&snapshot(&[]))), Known::default());
}

#[test]
fn what_is_lacking_is_said_where_the_question_says_so() {
    const LACKING: &Lacking = &Lacking {
        needed: &[("buddyinfo", "so nothing is known")],
        further: &[("meminfo", "so sizes are assumed")],
    };
    let of = |files: &[(&str, &str)]| {
        let files = snapshot(files);
        let files = OfSnapshot(&files);
        let mut reader = Reader::new(&files, LACKING);
        Host::read(&mut reader);
        let named = reader.unread.iter().map(|u| u.file.clone());
        (named.collect::<Vec<_>>(), reader.errors.len())
    };
    assert_eq!(of(&[]), (vec!["buddyinfo".to_owned()], 0));
    assert_eq!(of(&ALL), (vec![], 0));
    let bad = ALL.map(|(name, _)| (name, "nothing of a kernel\n"));
    let named = vec!["buddyinfo".to_owned(), "meminfo".to_owned()];
    assert_eq!(of(&bad), (named, 4));
}

#[test]
fn two_files_of_one_moment_that_disagree_are_named() {
    let with = |free| Host {
        zones: vec![Zone {
            name: "Normal".into(),
            free_pages: Some(free),
            info: Some(zoneinfo::Zone {
                free: 240_000,
                ..zoneinfo::Zone::default()
            }),
            ..Zone::default()
        }],
        ..Host::default()
    };
    assert_eq!(with(17_000).contradictions().len(), 1);
    assert!(with(239_000).contradictions().is_empty());
}

/// The recorder keeps one listing of what stands below `/sys/kernel/mm`, whatever the question asks for by file.
#[test]
fn settings_in_a_recorders_listing_are_found_by_the_names_of_their_files() {
    let listing = "/sys/kernel/mm/lru_gen/enabled=0x0007
/sys/kernel/mm/transparent_hugepage/defrag=[always] defer defer+madvise madvise never
/sys/kernel/mm/transparent_hugepage/enabled = always [madvise] never
";
    let of = |files: &[(&str, &str)]| Snapshot {
        name: "end".into(),
        files: files
            .iter()
            .map(|(name, text)| SnapshotFile {
                name: (*name).into(),
                time: None,
                content: text.as_bytes().to_vec().into(),
            })
            .collect(),
    };
    let snapshot = of(&[
        ("settings", listing),
        ("thp/enabled", "always madvise [never]\n"),
    ]);
    let files = OfSnapshot(&snapshot);
    let read = |name: &str| files::text(&files, name);
    assert_eq!(
        read("sysfs/kernel/mm/lru_gen/enabled").as_deref(),
        Some("0x0007")
    );
    assert_eq!(read("sysfs/kernel/mm/ksm/run"), None);
    assert_eq!(read("enabled"), None);
    let settings = settings::read(&files);
    assert_eq!(settings["thp_defrag"], "always");
    assert_eq!(settings["thp_enabled"], "never", "its own file comes first");
    assert!(
        settings::unread(&settings)
            .iter()
            .all(|u| u.file == "sysctls")
    );
    let snapshot = of(&[("settings", listing)]);
    assert_eq!(
        settings::read(&OfSnapshot(&snapshot))["thp_enabled"],
        "madvise"
    );
}
