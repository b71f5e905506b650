//! No part is more than its whole, and one number stands for one thing, whichever line of a host's files is missing.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use unfrag_lab::doctor::forecast::Attainability;
use unfrag_lab::doctor::gate::answer::Verdict;
use unfrag_lab::doctor::gate::means::Means;
use unfrag_lab::doctor::gate::{Need, Needs, judge};
use unfrag_lab::doctor::{Evidence, Examined, examine, text};
use unfrag_lab::report::screen::Screen;
use unfrag_linux::file;

/// The files of a host by their names.
type Files = BTreeMap<String, Vec<u8>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A host whose zone Normal does not manage all of its memory yet, and keeps its free huge blocks for atomic requests.
fn late() -> Files {
    let zone = |name: &str, start: u64, (free, present, managed): (u64, u64, u64)| {
        format!(
            "Node 0, zone {name:>8}\n  pages free     {free}\n        boost    0\n        min      512\n        low      640\n        high     768\n        spanned  {present}\n        present  {present}\n        managed  {managed}\n        cma      0\n        protection: (0, 0, 0)\n      nr_free_pages {free}\n      nr_zone_inactive_file 4096\n      nr_zone_active_file 4096\n      nr_free_cma  0\n  pagesets\n    cpu: 0\n              count:    0\n              high:     10\n              batch:    1\n  vm stats threshold: 4\n  node_unreclaimable:  0\n  start_pfn:           {start}\n"
        )
    };
    let zones = zone("DMA32", 0, (204_800, 262_144, 262_144))
        + &zone("Normal", 262_144, (102_400, 1_048_576, 524_288));
    let mut types = "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n".to_owned();
    for (name, kind, small, large) in [
        ("DMA32", "Movable", 0, 200),
        ("DMA32", "HighAtomic", 0, 0),
        ("Normal", "Movable", 51_200, 0),
        ("Normal", "HighAtomic", 0, 50),
    ] {
        types += &format!(
            "Node    0, zone {name:>8}, type {kind:>12} {small:>6}      0      0      0      0      0      0      0      0      0 {large:>6} \n"
        );
    }
    types += "\nNumber of blocks type      Movable   HighAtomic \nNode 0, zone    DMA32          512            0 \nNode 0, zone   Normal          924          100 \n";
    let buddy = "Node 0, zone    DMA32      0      0      0      0      0      0      0      0      0      0    200 \nNode 0, zone   Normal  51200      0      0      0      0      0      0      0      0      0     50 \n";
    let meminfo = "MemTotal:        5242880 kB\nMemFree:         3276800 kB\nMemAvailable:    3500000 kB\nBuffers:           10000 kB\nCached:            50000 kB\nShmem:              1000 kB\nSReclaimable:       5000 kB\nSUnreclaim:         5000 kB\nCmaTotal:           4096 kB\nCmaFree:            2048 kB\nHugePages_Total:      10\nHugePages_Free:        8\nHugePages_Rsvd:        3\nHugePages_Surp:        0\nHugepagesize:       2048 kB\nDirectMap4k:        5000 kB\n";
    let node = "Node 0 MemTotal:        5242880 kB\nNode 0 MemFree:         3276800 kB\n";
    [
        ("zoneinfo", zones.as_str()),
        ("pagetypeinfo", &types),
        ("buddyinfo", buddy),
        ("meminfo", meminfo),
        ("node0/meminfo", node),
        ("version", "Linux version 6.18.2 (x) #1\n"),
    ]
    .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
    .into()
}

/// Hosts of several kernels, by a name.
fn hosts() -> Vec<(&'static str, Files)> {
    let fixtures = root().join("crates/unfrag-linux/tests/fixtures");
    let of = |name: &str, release: &str| -> Files {
        let files = std::fs::read_dir(fixtures.join(name)).unwrap();
        let mut all: Files = files
            .map(|f| f.unwrap())
            .map(|f| {
                let name = f.file_name().into_string().unwrap();
                (name, std::fs::read(f.path()).unwrap())
            })
            .collect();
        let version = format!("Linux version {release} (x) #1\n");
        all.insert("version".into(), version.into_bytes());
        all.remove("freelists");
        all
    };
    let sample = file::read(&root().join("samples/gcc-768M.unfrag")).unwrap();
    let last = sample.snapshots.last().unwrap();
    let recorded = last
        .files
        .iter()
        .map(|f| (f.name.clone(), f.content.bytes().into_owned()))
        .collect();
    // Its types and its zones are of two hosts.
    let mut types = of("linux-6.18", "6.18.2");
    let zones = types.remove_entry("zoneinfo").into_iter().collect();
    vec![
        ("6.1", of("procfs", "6.1.0")),
        ("6.18, types", types),
        ("6.18, zones", zones),
        ("2.6.32", of("linux-2.6.32", "2.6.32")),
        ("recorded", recorded),
        ("late", late()),
    ]
}

fn evidence(files: &Files) -> Option<Evidence> {
    let read = |name: &str| {
        let file = files.get(name).cloned();
        file.ok_or(std::io::ErrorKind::NotFound.into())
    };
    Evidence::read("here", read).ok()
}

fn examined(files: &Files) -> Option<(Evidence, Examined)> {
    let e = evidence(files)?;
    let x = examine(&e).unwrap();
    Some((e, x))
}

/// The bytes of `2.9 GiB`.
fn size(number: &str, unit: &str) -> Option<f64> {
    let unit = unit.trim_end_matches([',', ';', '.', ':', ')']);
    let at = ["B", "KiB", "MiB", "GiB", "TiB"]
        .iter()
        .position(|u| *u == unit)?;
    let number: f64 = number.replace(',', "").parse().ok()?;
    Some(number * 1024f64.powi(at as i32))
}

/// What a text says to be of a whole that is smaller: `3 GiB free of 2 GiB`.
fn too_large_parts(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let of_sizes = words.windows(6).filter_map(|w| match *w {
        [a, unit, "free", "of", b, other] => {
            let (a, b) = (size(a, unit)?, size(b, other)?);
            (a > b).then(|| w.join(" "))
        }
        _ => None,
    });
    let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
    let of_numbers = words.windows(3).filter_map(|w| {
        let (a, b) = (number(w[0])?, number(w[2])?);
        (w[1] == "of" && a > b).then(|| w.join(" "))
    });
    of_sizes.chain(of_numbers).collect()
}

/// Parts that are more than their wholes in an answer.
fn wrong(x: &Examined) -> Vec<String> {
    let d = &x.diagnosis;
    let mut all = too_large_parts(&text::render(d, &Screen::default()));
    let said = d.notes.iter().any(|n| n.contains("not of one moment"));
    let mut more = |what: &str, part: Option<u64>, whole: Option<u64>| {
        if let Some((part, whole)) = part.zip(whole)
            && part > whole
        {
            all.push(format!("{what}: {part} of {whole}"));
        }
    };
    for z in &d.zones {
        if !said {
            more("free pages", z.free_pages, z.managed_pages);
        }
        let f = &z.huge_pages;
        more("now", f.now, f.at_most);
        more("after compaction", f.after_compaction, f.at_most);
        more("after reclaim", f.after_reclaim, f.at_most);
        more(
            "kept huge blocks",
            z.highatomic_huge_blocks,
            z.free_huge_blocks,
        );
    }
    more("host now", d.huge_pages.now, d.huge_pages.at_most);
    more("open to pins", d.pins.free_bytes, d.pins.at_most_bytes);
    all
}

/// Places of an answer that hold nothing, and those that hold a number.
fn places(value: &Value, place: &str, none: &mut Vec<String>, numbers: &mut Vec<String>) {
    match value {
        Value::Null => none.push(place.to_owned()),
        Value::Number(_) => numbers.push(place.to_owned()),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, inner)| places(inner, &format!("{place}/{name}"), none, numbers)),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let name = |key: &str| item.get(key).map_or(String::new(), |v| v.to_string() + ".");
                let own = ["node", "zone", "order", "counter", "name", "command"].map(name);
                let own = own.concat();
                let own = if own.is_empty() { i.to_string() } else { own };
                places(item, &format!("{place}/{own}"), none, numbers);
            }
        }
        _ => {}
    }
}

#[test]
fn a_line_that_is_missing_makes_no_part_larger_than_its_whole_and_nothing_known() {
    let mut bad: Vec<String> = vec![];
    for (host, files) in hosts() {
        let (_, whole) = examined(&files).unwrap();
        let parts = wrong(&whole);
        assert!(parts.is_empty(), "{host}: {parts:?}");
        let (mut none, mut known) = (vec![], vec![]);
        let value = serde_json::to_value(&whole.diagnosis).unwrap();
        places(&value, "", &mut none, &mut known);
        // A bound stands where the number is not known; another page size makes other numbers.
        none.retain(|p| !p.contains("at_most") && !p.contains("page_size"));
        for (name, content) in &files {
            let Ok(content) = std::str::from_utf8(content) else {
                continue;
            };
            let lines: Vec<&str> = content.split_inclusive('\n').collect();
            for n in 0..lines.len() {
                let cut = [&lines[..n], &lines[n + 1..]].concat().concat();
                let mut some = files.clone();
                some.insert(name.clone(), cut.into_bytes());
                let Some((_, x)) = examined(&some) else {
                    continue;
                };
                let line = lines[n].trim();
                let parts = wrong(&x);
                bad.extend(
                    parts
                        .iter()
                        .map(|p| format!("{host}, {name}, without {line:?}: {p}")),
                );
                let (mut no, mut numbers) = (vec![], vec![]);
                let value = serde_json::to_value(&x.diagnosis).unwrap();
                places(&value, "", &mut no, &mut numbers);
                bad.extend(
                    numbers
                        .iter()
                        .filter(|p| none.contains(p))
                        .map(|p| format!("{host}, {name}, without {line:?}: {p} is known")),
                );
            }
        }
    }
    assert!(
        bad.is_empty(),
        "{}:\n{}",
        bad.len(),
        bad[..bad.len().min(40)].join("\n")
    );
}

/// Files of two moments, or of two hosts: that is said, and no part is called one of a smaller whole.
#[test]
fn numbers_that_cannot_be_of_one_host_are_not_put_into_each_other() {
    for (host, files) in hosts() {
        for (name, content) in &files {
            let Ok(content) = std::str::from_utf8(content) else {
                continue;
            };
            let lines: Vec<&str> = content.split_inclusive('\n').collect();
            for n in 0..lines.len() {
                // The last number of the line is ten times what it was.
                let line = lines[n].trim_end();
                let end = line.rfind(|c: char| c.is_ascii_digit());
                let Some(end) = end.filter(|_| !line.contains("kpageflags")) else {
                    continue;
                };
                let changed = format!("{}0{}\n", &line[..=end], &line[end + 1..]);
                let text = [&lines[..n], &[&changed], &lines[n + 1..]]
                    .concat()
                    .concat();
                let mut some = files.clone();
                some.insert(name.clone(), text.into_bytes());
                let Some((_, x)) = examined(&some) else {
                    continue;
                };
                let said = text::render(&x.diagnosis, &Screen::default());
                let parts = too_large_parts(&said);
                assert!(parts.is_empty(), "{host}, {name}, {changed:?}: {parts:?}");
                for z in &x.diagnosis.zones {
                    if let Some((free, managed)) = z.free_pages.zip(z.managed_pages)
                        && free > managed
                    {
                        let place = format!("node {}, zone {}", z.node, z.zone);
                        let is_it =
                            |n: &String| n.contains(&place) && n.contains("not of one moment");
                        assert!(
                            x.diagnosis.notes.iter().any(is_it),
                            "{host}, {name}, {changed:?}: {:?}",
                            x.diagnosis.notes
                        );
                    }
                }
            }
        }
    }
}

fn needs(e: &Evidence, x: &Examined, count: u64) -> Needs {
    let need = Need::new(count, x.diagnosis.huge_page_bytes);
    judge(e, x, &[need], "drop,compact".parse().unwrap()).unwrap()
}

/// `spec: 9`
#[test]
fn so_many_huge_pages_and_a_need_of_as_many_are_one_question() {
    for (host, files) in hosts() {
        let (e, x) = examined(&files).unwrap();
        let f = x.diagnosis.huge_pages;
        let named = [
            f.now,
            f.now_at_most,
            f.after_compaction,
            f.after_reclaim,
            f.by_asking_again,
            f.at_most,
        ];
        let counts = named
            .iter()
            .flatten()
            .flat_map(|&n| [n / 2, n.saturating_sub(1), n, n + 1]);
        for count in counts.chain([1, 1 << 30]).filter(|&n| n > 0) {
            let (action, _) = f.attainability(count);
            let answer = needs(&e, &x, count);
            let of = |means: Means| answer.by_means[means as usize].verdict;
            let place = format!("{host}, {count}: {action:?}, {:?}", answer.each[0].rooms);
            match action {
                Attainability::Now => assert_ne!(of(Means::Now), Verdict::No, "{place}"),
                Attainability::AfterCompaction => {
                    assert_ne!(of(Means::Compact), Verdict::No, "{place}");
                }
                Attainability::AfterReclaim | Attainability::ByAskingAgain => {
                    assert_ne!(answer.verdict, Verdict::No, "{place}");
                }
                Attainability::Not => assert_ne!(answer.verdict, Verdict::Yes, "{place}"),
                Attainability::Unknown => {}
            }
            if let Some(now) = f.now {
                let room = answer.each[0].rooms[Means::Now as usize];
                let is_said = room.at_least <= now && room.at_most.is_none_or(|most| now <= most);
                assert!(is_said, "{now}: {place}");
            }
        }
    }
}

#[test]
fn memory_that_comes_when_it_is_asked_for_is_counted_alike() {
    let (e, x) = examined(&late()).unwrap();
    // 200 blocks of 4 MiB above the mark, and 512 MiB of the 2 GiB that no zone manages are free by MemFree.
    let now = x.diagnosis.huge_pages.now.unwrap();
    let room = needs(&e, &x, 1).each[0].rooms[Means::Now as usize];
    assert_eq!(room.at_least, now, "{:?}", x.diagnosis.notes);
    let of_zones: u64 = 399;
    assert_eq!(now, of_zones + (3_276_800 / 4 - 204_800 - 102_400) / 512);
}
