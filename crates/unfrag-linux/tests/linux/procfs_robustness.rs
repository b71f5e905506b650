//! No reader of text panics on any input, and what it accepts it can also write.

use unfrag_linux::kpageflags::PageFlags;
use unfrag_linux::procfs::{BuddyInfo, VmStat, ZoneInfo, uptime};
use unfrag_linux::snapshots;

use crate::common::{Random, echo};

const ROUNDS: usize = 2000;

macro_rules! fixtures {
    ($($name:literal: $path:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../fixtures/", $path)) as &[u8])),*]
    };
}

#[test]
fn damaged_procfs_text_is_refused_or_read_but_never_panics() {
    let mut random = Random::seeded();
    let (mut taken, mut refused) = (0, 0);
    for (name, text) in fixtures![
        "buddyinfo": "procfs/buddyinfo",
        "pagetypeinfo": "procfs/pagetypeinfo",
        "zoneinfo": "procfs/zoneinfo",
        "vmstat": "procfs/vmstat",
        "meminfo": "procfs/meminfo",
        "slabinfo": "procfs/slabinfo",
        "extfrag_index": "procfs/extfrag_index",
        "unusable_index": "procfs/unusable_index",
        "freelists": "procfs/freelists",
        "buddyinfo": "linux-2.6.32/buddyinfo",
        "pagetypeinfo": "linux-2.6.32/pagetypeinfo",
        "zoneinfo": "linux-2.6.32/zoneinfo",
        "slabinfo": "linux-2.6.32/slabinfo",
        "extfrag_index": "linux-2.6.32/extfrag_index",
        "pagetypeinfo": "linux-6.18/pagetypeinfo",
        "allocinfo": "linux-6.18/allocinfo",
        "zoneinfo": "linux-6.18/zoneinfo",
        "extfrag_index": "linux-6.18/extfrag_index",
    ] {
        for _ in 0..ROUNDS {
            let damaged = random.damage(text);
            match echo(name, &damaged).expect("every fixture has a reader") {
                Err(e) => {
                    refused += 1;
                    assert!(!e.to_string().is_empty());
                }
                Ok(written) => {
                    taken += 1;
                    let again = echo(name, written.as_bytes()).expect("the same reader");
                    let again = again.unwrap_or_else(|e| panic!("{name}: {e} in\n{written}"));
                    assert_eq!(again, written, "{name}");
                }
            }
        }
    }
    println!("{taken} taken, {refused} refused");
    assert!(taken > 1000 && refused > 100);
}

#[test]
fn every_prefix_of_a_file_is_given_back_and_never_has_a_number_that_the_file_has_not() {
    let text = include_str!("../fixtures/procfs/vmstat");
    let whole = VmStat::parse(text.as_bytes()).unwrap();
    for len in 0..text.len() {
        if let Ok(part) = VmStat::parse(&text.as_bytes()[..len]) {
            let mut all = whole.counters.iter().zip(part.counters.iter());
            assert!(all.all(|(a, b)| a == b), "vmstat cut at {len}");
            assert_eq!(part.notes.cut, len > 0 && text.as_bytes()[len - 1] != b'\n');
        }
    }
    let text = include_str!("../fixtures/procfs/zoneinfo");
    let whole = ZoneInfo::parse(text.as_bytes()).unwrap();
    for len in (0..text.len()).step_by(3) {
        if let Ok(part) = ZoneInfo::parse(&text.as_bytes()[..len]) {
            assert_eq!(part.write(), text[..len], "zoneinfo cut at {len}");
            for (a, b) in whole.zones.iter().zip(&part.zones) {
                assert_eq!(a.free, b.free, "zoneinfo cut at {len}");
                let same = |(name, value)| a.pages(name) == Some(value);
                assert!(b.pages.iter().all(same), "zoneinfo cut at {len}");
            }
        }
    }
    let text = include_str!("../fixtures/procfs/buddyinfo");
    let whole = BuddyInfo::parse(text.as_bytes()).unwrap();
    let first = text.find('\n').unwrap();
    for len in first + 1..text.len() {
        let part = BuddyInfo::parse(&text.as_bytes()[..len]).unwrap();
        assert_eq!(part.zones, whole.zones[..part.zones.len()], "cut at {len}");
    }
}

#[test]
fn damaged_logs_flags_and_times_never_panic() {
    let mut random = Random::seeded();
    let log =
        b"time: 1397146210\nNode 0, zone DMA 1 2 3\n\ntime: 1397146211.25\nNode 0, zone DMA 1\n";
    for _ in 0..ROUNDS {
        let _ = snapshots::parse_log("buddyinfo", &random.damage(log));
        let _ = uptime::parse(&random.damage(b"17.85 11.85\n"));
        let flags = random.damage(&[7; 64]);
        assert_eq!(
            PageFlags::read(&mut &flags[..]).is_ok(),
            flags.len().is_multiple_of(8)
        );
    }
}

#[test]
fn damaged_archives_never_panic() {
    let mut random = Random::seeded();
    let directory = std::env::temp_dir().join(format!("unfrag-robust-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut tar = tar::Builder::new(vec![]);
    for (path, content) in [
        ("index.tsv", "record\tt0\tt1\tbytes\na/vmstat\t5\t9\t4\n"),
        ("a/vmstat", "nr 1\n"),
        ("b/uptime", "1.25 3.50\n"),
        ("b/buddyinfo", "Node 0, zone DMA 1\n"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    let tar = tar.into_inner().unwrap();
    let packed = zstd::encode_all(&tar[..], 3).unwrap();
    let path = directory.join("damaged.tar.zst");
    for round in 0..600 {
        // The packed stream notices damage inside it, not damage before packing.
        let bytes = match round % 2 {
            0 => random.damage(&packed),
            _ => zstd::encode_all(&random.damage(&tar)[..], 1).unwrap(),
        };
        std::fs::write(&path, bytes).unwrap();
        if let Err(e) = snapshots::read(&path) {
            assert!(
                e.to_string().contains("damaged.tar.zst") || e.file.is_some(),
                "{e}"
            );
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
