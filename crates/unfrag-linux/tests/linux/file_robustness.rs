//! No `.unfrag` file makes its reader panic, or take more memory than the file's size allows.

use std::io::{Cursor, Read, Write};

use unfrag_linux::file;
use unfrag_linux::recording::*;

use crate::common::Random;

fn recording() -> Recording {
    let n = 600u64;
    let field = |name: &str, kind| Field {
        name: name.to_owned(),
        kind,
    };
    let content = |i: u8| vec![i; 50];
    let file = |i| SnapshotFile {
        name: "vmstat".into(),
        time: Some((1, 2)),
        content: content(i).into(),
    };
    Recording {
        events: Events {
            time: (0..n).map(|i| 1000 * i + i * i % 331).collect(),
            cpu: (0..n).map(|i| (i / 50 % 2) as u16).collect(),
            task: (0..n).map(|i| (i / 7 % 3) as u32).collect(),
            flags: vec![0; 600],
            preempt: vec![1; 600],
            kind: vec![0; 600],
            tables: vec![EventTable {
                system: "kmem".into(),
                name: "mm_page_free".into(),
                fields: vec![
                    field("pfn", FieldKind::Unsigned),
                    field("name", FieldKind::String),
                ],
                columns: vec![(0..n).map(|i| i * i % 1009).collect(), vec![0; 600]],
            }],
        },
        tasks: (0..3)
            .map(|pid| Task {
                pid,
                comm: format!("task{pid}"),
            })
            .collect(),
        strings: vec!["dentry".into()],
        snapshots: vec![Snapshot {
            name: "s".into(),
            files: vec![file(0), file(1)],
        }],
        ..Recording::default()
    }
}

fn unpack(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let read = |i| {
        let mut member = zip.by_index(i).unwrap();
        let mut content = vec![];
        member.read_to_end(&mut content).unwrap();
        (member.name().unwrap().into_owned(), content)
    };
    (0..zip::ZipArchive::new(Cursor::new(bytes)).unwrap().len())
        .map(read)
        .collect()
}

/// A container with right checksums, whatever its members are.
fn pack(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(vec![]));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in members {
        zip.start_file(name.as_str(), options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The file with one member changed.
fn with(name: &str, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut members = unpack(&file::to_bytes(&recording()).unwrap());
    let member = members.iter_mut().find(|(n, _)| n == name).unwrap();
    member.1 = change(&member.1);
    pack(&members)
}

fn message(bytes: &[u8]) -> String {
    file::from_bytes(bytes).unwrap_err().to_string()
}

#[test]
fn a_damaged_file_is_refused_or_reads_the_same() {
    let mut random = Random::seeded();
    let original = recording();
    let bytes = file::to_bytes(&original).unwrap();
    for len in (0..bytes.len()).step_by(7) {
        assert!(file::from_bytes(&bytes[..len]).is_err(), "cut at {len}");
    }
    let mut harmless = 0;
    for _ in 0..4000 {
        if let Ok(read) = file::from_bytes(&random.damage(&bytes)) {
            assert!(
                read == original,
                "damage that changes something was not noticed"
            );
            harmless += 1;
        }
    }
    println!("{harmless} of 4000 damages were harmless");
}

#[test]
fn wrong_content_with_right_checksums_never_panics() {
    let mut random = Random::seeded();
    let members = unpack(&file::to_bytes(&recording()).unwrap());
    let (mut taken, mut decoder) = (0, 0);
    for _ in 0..6000 {
        let mut members = members.clone();
        let chosen = random.below(members.len());
        members[chosen].1 = random.damage(&members[chosen].1);
        match file::from_bytes(&pack(&members)) {
            Ok(_) => taken += 1,
            Err(e) => {
                let e = e.to_string();
                decoder += usize::from(e.contains("decoder cannot take"));
                assert!(!e.is_empty());
            }
        }
    }
    println!("{taken} of 6000 taken; {decoder} stopped only by the decoder's own panic");
}

#[test]
fn the_manifest_is_checked() {
    let manifest = |from: &str, to: &str| {
        let change = |json: &[u8]| {
            let json = std::str::from_utf8(json).unwrap();
            assert!(json.contains(from), "{from} in {json}");
            json.replacen(from, to, 1).into_bytes()
        };
        message(&with("manifest.json", change))
    };
    let rows = "\"rows\": 600";
    assert!(manifest(rows, "\"rows\": 18446744073709551615").contains("limit"));
    assert!(manifest(rows, "\"rows\": 601").contains("601"));
    assert!(manifest(rows, "\"rows\": -1").contains("manifest.json"));
    assert!(manifest("\"version\": 1", "\"version\": 3").contains("newer unfrag"));
    assert!(manifest("unfrag recording", "something else").contains("something else"));
    assert!(manifest("events.parquet", "evil.parquet").contains("evil.parquet"));
    assert!(manifest("\"int32\"", "\"int64\"").contains("events.parquet"));
    assert!(manifest("\"name\": \"cpu\"", "\"name\": \"gpu\"").contains("cpu"));
    assert!(manifest("\"delta\"", "\"zigzag-delta\"").contains("decreases"));
}

#[test]
fn a_missing_or_damaged_member_is_named() {
    let e = message(&with("tasks.parquet", |_| b"PAR1".to_vec()));
    assert!(e.contains("tasks.parquet"), "{e}");
    let mut members = unpack(&file::to_bytes(&recording()).unwrap());
    members.retain(|(name, _)| name != "snapshots.parquet");
    assert!(message(&pack(&members)).contains("snapshots.parquet"));
    members.clear();
    assert!(message(&pack(&members)).contains("manifest.json"));
    assert!(message(b"").contains("cut off"));
}

#[test]
fn unknown_members_are_ignored() {
    let mut members = unpack(&file::to_bytes(&recording()).unwrap());
    members.push(("notes.txt".into(), b"recorded on a Friday".to_vec()));
    assert_eq!(file::from_bytes(&pack(&members)).unwrap(), recording());
}
