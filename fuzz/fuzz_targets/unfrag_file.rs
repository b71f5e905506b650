//! Any bytes as a member of an `.unfrag` file (the first byte says which one), its checksum right,
//! so that they reach the decoder; and any bytes as the whole file.
#![no_main]

use std::io::{Cursor, Read, Write};
use std::sync::LazyLock;

use unfrag_linux::file;
use unfrag_linux::recording::*;

type Members = Vec<(String, Vec<u8>)>;

static MEMBERS: LazyLock<Members> = LazyLock::new(|| {
    let field = |name: &str, kind| Field {
        name: name.to_owned(),
        kind,
    };
    let recording = Recording {
        events: Events {
            time: (0..300).map(|i| i * 1000 + i * i % 331).collect(),
            cpu: (0..300).map(|i| i / 50 % 2).collect(),
            task: vec![0; 300],
            flags: vec![0; 300],
            preempt: vec![0; 300],
            kind: vec![0; 300],
            tables: vec![EventTable {
                system: "kmem".into(),
                name: "mm_page_free".into(),
                fields: vec![
                    field("pfn", FieldKind::Unsigned),
                    field("prio", FieldKind::Signed),
                ],
                columns: vec![
                    (0..300).map(|i| i * i % 1009).collect(),
                    vec![u64::MAX; 300],
                ],
            }],
        },
        tasks: vec![Task {
            pid: 1,
            comm: "init".into(),
        }],
        strings: vec!["dentry".into()],
        snapshots: vec![Snapshot {
            name: "s".into(),
            files: vec![SnapshotFile::default()],
        }],
        ..Recording::default()
    };
    let bytes = file::to_bytes(&recording).unwrap();
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let names: Vec<String> = zip
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect();
    let content = |name: String| {
        let mut content = vec![];
        zip.by_name(&name)
            .unwrap()
            .read_to_end(&mut content)
            .unwrap();
        (name, content)
    };
    names.into_iter().map(content).collect()
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&chosen, content)) = data.split_first() else {
        return;
    };
    let chosen = usize::from(chosen) % (MEMBERS.len() + 1);
    if chosen == MEMBERS.len() {
        let _ = file::from_bytes(content);
        return;
    }
    let mut zip = zip::ZipWriter::new(Cursor::new(vec![]));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (i, (name, original)) in MEMBERS.iter().enumerate() {
        zip.start_file(name.as_str(), stored).unwrap();
        zip.write_all(if i == chosen { content } else { original })
            .unwrap();
    }
    if let Ok(read) = file::from_bytes(&zip.finish().unwrap().into_inner()) {
        assert!(file::from_bytes(&file::to_bytes(&read).unwrap()).unwrap() == read);
    }
});
