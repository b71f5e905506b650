//! The `.unfrag` file gives back exactly the recording that was written.

use std::path::Path;
use std::process::Command;

use proptest::collection::vec;
use proptest::prelude::*;
use unfrag_linux::recording::*;
use unfrag_linux::{Options, file, open, snapshots};

/// Columns as traces have them, and extreme ones.
fn numbers(len: usize) -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        any::<u64>().prop_map(move |v| vec![v; len]),
        vec(0u64..12, len),
        vec(any::<u64>(), len),
        vec(any::<i16>().prop_map(|v| i64::from(v) as u64), len),
        vec(
            prop_oneof![Just(0), Just(u64::MAX), Just(1 << 63), Just((1 << 32) - 1)],
            len
        ),
        (any::<u64>(), vec(0u64..5000, len)).prop_map(|(first, steps)| {
            let mut at = first;
            steps
                .iter()
                .map(|&s| {
                    at = at.wrapping_add(s).wrapping_sub(900);
                    at
                })
                .collect()
        }),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_]{0,12}", any::<String>(), Just("pfn".to_owned())]
}

fn table(rows: usize) -> impl Strategy<Value = EventTable> {
    let kind = prop_oneof![
        Just(FieldKind::Unsigned),
        Just(FieldKind::Signed),
        Just(FieldKind::String)
    ];
    let field = (name(), kind).prop_map(|(name, kind)| Field { name, kind });
    (name(), name(), vec((field, numbers(rows)), 0..5)).prop_map(|(system, name, fields)| {
        let (fields, columns) = fields.into_iter().unzip();
        EventTable {
            system,
            name,
            fields,
            columns,
        }
    })
}

fn events() -> impl Strategy<Value = Events> {
    (0usize..300, 1usize..5).prop_flat_map(|(n, kinds)| {
        let kind = vec(0..kinds as u8, n);
        (
            numbers(n),
            vec(any::<u16>(), n),
            vec(0u32..3, n),
            vec(any::<u8>(), n),
            kind,
        )
            .prop_flat_map(move |(mut time, cpu, task, flags, kind)| {
                time.sort_unstable();
                let rows = |k| kind.iter().filter(|&&x| usize::from(x) == k).count();
                let tables: Vec<_> = (0..kinds).map(|k| table(rows(k))).collect();
                let preempt = flags.iter().map(|f| f / 16).collect();
                let common = Events {
                    time,
                    cpu,
                    task,
                    flags,
                    preempt,
                    kind,
                    tables: vec![],
                };
                tables.prop_map(move |tables| Events {
                    tables,
                    ..common.clone()
                })
            })
    })
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let file = (
        name(),
        any::<Option<(u64, u64)>>(),
        vec(any::<u8>(), 0..200),
    )
        .prop_map(|(name, time, content)| SnapshotFile {
            name,
            time,
            content: content.into(),
        });
    (name(), vec(file, 0..4)).prop_map(|(name, files)| Snapshot { name, files })
}

fn meta() -> impl Strategy<Value = Meta> {
    let lost = (any::<u16>(), any::<u64>(), any::<Option<u64>>()).prop_map(
        |(cpu, before_event, count)| Lost {
            cpu,
            before_event,
            count,
        },
    );
    let numbers = (any::<u32>(), any::<u32>(), any::<i64>());
    let facts = proptest::collection::btree_map(name(), name(), 0..4);
    (name(), name(), name(), numbers, vec(lost, 0..4), facts).prop_map(
        |(kernel_release, source, clock, (page_size, cpus, offset), lost, facts)| Meta {
            kernel_release,
            page_size,
            cpus,
            source,
            clock,
            snapshot_offset_ns: offset,
            lost,
            facts,
        },
    )
}

fn recording() -> impl Strategy<Value = Recording> {
    let task = (any::<i32>(), name()).prop_map(|(pid, comm)| Task { pid, comm });
    (
        meta(),
        events(),
        vec(task, 3..6),
        vec(name(), 0..5),
        vec(snapshot(), 0..5),
    )
        .prop_map(|(meta, events, tasks, strings, snapshots)| Recording {
            meta,
            events,
            tasks,
            strings,
            snapshots,
        })
}

fn back(recording: &Recording) -> Recording {
    file::from_bytes(&file::to_bytes(recording).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_recording_comes_back_as_it_was(recording in recording()) {
        prop_assert!(back(&recording) == recording);
    }
}

/// `n` events of one kind without fields.
fn plain_events(n: u64, step: impl Fn(u64) -> u64) -> Recording {
    let len = n as usize;
    Recording {
        events: Events {
            time: (0..n).map(step).collect(),
            cpu: vec![1; len],
            task: vec![0; len],
            flags: vec![0; len],
            preempt: vec![0; len],
            kind: vec![0; len],
            tables: vec![EventTable {
                name: "tick".into(),
                ..EventTable::default()
            }],
        },
        tasks: vec![Task::default()],
        ..Recording::default()
    }
}

#[test]
fn an_empty_recording_is_read_back() {
    assert_eq!(back(&Recording::default()), Recording::default());
}

#[test]
fn transforms_continue_across_row_groups() {
    let n = (1 << 22) + 70_000;
    let recording = plain_events(n, |i| (1 << 50) + i * 1000 + i * i % 1013);
    assert!(back(&recording) == recording);
}

#[test]
fn constant_columns_cost_nothing() {
    let mut recording = plain_events(1 << 20, |i| i * 1000);
    let without = file::to_bytes(&recording).unwrap().len();
    let field = |i: usize| Field {
        name: format!("f{i}"),
        kind: FieldKind::Unsigned,
    };
    let table = &mut recording.events.tables[0];
    table.fields = (0..10).map(field).collect();
    table.columns = (0..10).map(|i| vec![u64::MAX >> i; 1 << 20]).collect();
    let with = file::to_bytes(&recording).unwrap().len();
    assert!(with < without + 10 * 500, "{without} -> {with}");
}

#[test]
fn a_file_that_compresses_too_well_is_padded() {
    let n = 10 << 20;
    let recording = plain_events(n, |i| i);
    let bytes = file::to_bytes(&recording).unwrap();
    assert!(bytes.len() as u64 > (2 * n - (16 << 20)) / 256);
    assert!(file::from_bytes(&bytes).unwrap() == recording);
}

#[test]
fn large_contents_are_split_and_joined() {
    let content: Vec<u8> = (0..40u32 << 20).map(|i| (i >> 14) as u8).collect();
    let file = |content: &[u8]| SnapshotFile {
        name: "kpageflags".into(),
        time: None,
        content: content.into(),
    };
    let files = vec![file(&content), file(&[]), file(&content[..16 << 20])];
    let snapshots = vec![
        Snapshot {
            name: "a".into(),
            files,
        },
        Snapshot::default(),
    ];
    let recording = Recording {
        snapshots,
        ..Recording::default()
    };
    let bytes = file::to_bytes(&recording).unwrap();
    assert!(bytes.len() < 200_000, "{}", bytes.len());
    assert!(file::from_bytes(&bytes).unwrap() == recording);
}

#[test]
fn a_recording_that_breaks_an_invariant_is_refused() {
    let message = |change: &dyn Fn(&mut Recording)| {
        let mut recording = plain_events(3, |i| i);
        change(&mut recording);
        file::to_bytes(&recording).unwrap_err().to_string()
    };
    assert!(message(&|r| r.events.time[2] = 0).contains("decreases"));
    assert!(message(&|r| r.events.kind[1] = 1).contains("kind"));
    assert!(message(&|r| r.events.task[1] = 7).contains("task"));
    assert!(message(&|r| r.events.cpu.truncate(1)).contains("length"));
    assert!(message(&|r| r.strings.push("x".repeat(17 << 20))).contains("limit"));
    let field = Field {
        name: "pfn".into(),
        kind: FieldKind::Unsigned,
    };
    let short = |r: &mut Recording| {
        r.events.tables[0].fields.push(field.clone());
        r.events.tables[0].columns.push(vec![1]);
    };
    assert!(message(&short).contains("tick"));
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let path = std::env::temp_dir().join(format!("unfrag-file-{}.unfrag", std::process::id()));
    let recording = plain_events(5, |i| i);
    file::write(&recording, &path).unwrap();
    assert_eq!(file::read(&path).unwrap(), recording);
    std::fs::write(&path, b"PK\x03\x04 but then nothing").unwrap();
    let e = file::read(&path).unwrap_err().to_string();
    assert!(
        e.contains("unfrag-file-") && e.contains("copy it again"),
        "{e}"
    );
    std::fs::remove_file(&path).unwrap();
    assert!(
        file::read(&path)
            .unwrap_err()
            .to_string()
            .contains("unfrag-file-")
    );
    assert!(file::write(&recording, Path::new("/nonexistent/x.unfrag")).is_err());
}

/// A recording with every transform and type.
fn varied() -> Recording {
    let n = 5000;
    let mut recording = plain_events(n, |i| 7_000_000_000 + i * 2113 + i * i % 977);
    let field = |name: &str, kind| Field {
        name: name.to_owned(),
        kind,
    };
    let table = &mut recording.events.tables[0];
    table.system = "kmem".into();
    table.fields = vec![
        field("pfn", FieldKind::Unsigned),
        field("order", FieldKind::Unsigned),
        field("prio", FieldKind::Signed),
        field("delta", FieldKind::Signed),
        field("ptr", FieldKind::Unsigned),
        field("name", FieldKind::String),
    ];
    table.columns = vec![
        (0..n).map(|i| (i * 3 / 64 * 64) ^ (i * 3 % 64)).collect(),
        (0..n).map(|i| i % 11).collect(),
        (0..n).map(|i| (i as i64 % 5 - 2) as u64).collect(),
        (0..n)
            .map(|i| (i as i64 * 7919 % 1_000_003 - 500_000) as u64)
            .collect(),
        (0..n)
            .map(|i| 0xffff_8880_0000_0000 + i * i * 4096 % (1 << 30))
            .collect(),
        (0..n).map(|i| i % 2).collect(),
    ];
    recording.strings = vec!["ext4_inode_cache".into(), "größer".into()];
    let file = SnapshotFile {
        name: "vmstat".into(),
        time: Some((1, 2)),
        content: "a 1\n".into(),
    };
    recording.snapshots = vec![Snapshot {
        name: "s".into(),
        files: vec![file],
    }];
    recording
}

#[test]
fn the_python_program_in_the_documentation_reads_a_file() {
    let python = |code: &str, args: &[&str]| {
        Command::new("python3")
            .arg("-c")
            .arg(code)
            .args(args)
            .output()
    };
    if !python("import numpy, pyarrow", &[]).is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: python3 with numpy and pyarrow is not here");
        return;
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/file-format.md");
    let document = std::fs::read_to_string(document).unwrap();
    let (_, code) = document.split_once("```python\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let recording = varied();
    let path = std::env::temp_dir().join(format!("unfrag-python-{}.unfrag", std::process::id()));
    file::write(&recording, &path).unwrap();
    let code = format!(
        "{code}\nprint(events['time'].sum(), recording['strings']['string'], recording['snapshots']['content'])"
    );
    let output = python(&code, &[path.to_str().unwrap()]).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let table = &recording.events.tables[0];
    let sums: Vec<String> = table
        .fields
        .iter()
        .zip(&table.columns)
        .map(|(field, column)| {
            let sum = column.iter().fold(0u64, |a, &v| a.wrapping_add(v));
            match field.kind {
                FieldKind::Signed => format!("'{}': {}", field.name, sum as i64),
                _ => format!("'{}': {sum}", field.name),
            }
        })
        .collect();
    let time: u64 = recording.events.time.iter().sum();
    let expected = format!(
        "kmem tick 5000 {{{}}}\n{time} ['ext4_inode_cache', 'größer'] [b'a 1\\n']\n",
        sums.join(", ")
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn recordings_take_no_more_than_five_million_bytes() {
    let Some(data) = crate::common::recorded_data() else {
        return;
    };
    let set = data.join("qemu-6.1-640M-compact");
    let mut recording = open(&set.join("pages.dat.zst"), &Options::default()).unwrap();
    recording.snapshots = snapshots::read(&set).unwrap();
    let bytes = file::to_bytes(&recording).unwrap();
    println!("{} events, {} bytes", recording.events.len(), bytes.len());
    assert!(bytes.len() <= 5_000_000);
    assert!(file::from_bytes(&bytes).unwrap() == recording);
    let set = data.join("qemu-6.1-1536M-huge-p20");
    let mut recording = open(&set.join("trace.dat.zst"), &Options::default()).unwrap();
    recording.snapshots = snapshots::read(&set).unwrap();
    assert!(back(&recording) == recording);
}
