//! A recording that can be shared names nobody, and what is one thing stays one thing.

use std::collections::BTreeSet;
use unfrag_linux::event::{Role, Roles};
use unfrag_linux::file;
use unfrag_linux::recording::{
    EventTable, Field, FieldKind, Meta, Recording, Snapshot, SnapshotFile, Task,
};
use unfrag_linux::redact;
use unfrag_linux::segments::Window;

/// Words that a user, a host or a path may have; none of them may be left.
const SECRETS: [&str; 14] = [
    "alice",
    "payroll",
    "wonderland",
    "hunter2",
    "topsecret",
    "rabbit",
    "queen",
    "hatter",
    "dormouse",
    "cheshire",
    "croquet",
    "teaparty",
    "jabberwock",
    "sda7",
];

/// Numbers that name something.
const PTR: u64 = 0xffff_8880_1234_5640;
const SITE: u64 = 0xffff_ffff_8123_4567;
const ADDR: u64 = 0x7f12_3456_7000;
const INODE: u64 = 7_351_977;
const DEVICE: u64 = 259 << 20 | 7;
const PID: u64 = 31_337;

fn strings() -> Vec<String> {
    [
        "",
        "/home/alice/payroll",
        "dentry(9:alice.slice)",
        "kmalloc-64",
        "topsecret",
        "raid5-rabbit",
        "COMPACT_SUCCESS",
        "queen",
    ]
    .map(str::to_owned)
    .into()
}

struct Builder(Recording);

impl Builder {
    /// A table of one event, by task 1; fields of text begin with a quote.
    fn event(&mut self, system: &str, name: &str, fields: &[(&str, u64)]) {
        let events = &mut self.0.events;
        let field = |&(name, _): &(&str, u64)| Field {
            name: name.trim_start_matches('"').into(),
            kind: match name.starts_with('"') {
                true => FieldKind::String,
                false => FieldKind::Unsigned,
            },
        };
        events.tables.push(EventTable {
            system: system.into(),
            name: name.into(),
            fields: fields.iter().map(field).collect(),
            columns: fields.iter().map(|f| vec![f.1]).collect(),
        });
        events.kind.push(events.tables.len() as u8 - 1);
        events.time.push(events.time.len() as u64 + 1);
        events.cpu.push(0);
        events.task.push(1);
        events.flags.push(0);
        events.preempt.push(0);
    }
}

/// A recording with a secret wherever one may be.
fn planted() -> Recording {
    let task = |pid: u64, comm: &str| Task {
        pid: pid as i32,
        comm: comm.into(),
    };
    let mut b = Builder(Recording {
        meta: Meta {
            kernel_release: "6.18.0".into(),
            source: "unfrag record".into(),
            clock: "mono".into(),
            facts: [
                ("command", "payroll --password hunter2"),
                ("scope", "system"),
                ("recorder_tasks", "31339"),
                ("boot_id", "wonderland"),
                ("ended_early", "/home/alice/x.unfrag: no space"),
                ("events recorded", "kmem:mm_page_alloc jabberwock:croquet"),
                ("hostname", "wonderland"),
                ("first lines not understood", "line 3 is `alice`"),
                ("date", "2026-11-28"),
            ]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
            ..Meta::default()
        },
        tasks: vec![
            task(0, "<idle>"),
            task(PID, "payroll"),
            task(PID + 1, "payroll"),
            task(PID + 2, "alice-recorder"),
            task(40, "kswapd0"),
            task(41, "kworker/0:1-topsecret"),
            task(42, "jbd2/sda7-8"),
            task(43, "rcu_hatter"),
        ],
        strings: strings(),
        ..Recording::default()
    });
    b.event(
        "kmem",
        "mm_page_alloc",
        &[
            ("pfn", 99),
            ("order", 0),
            ("gfp_flags", 0xcc0),
            ("migratetype", 1),
            ("page", PTR),
        ],
    );
    b.event("kmem", "mm_page_free", &[("pfn", 99), ("order", 0)]);
    b.event(
        "filemap",
        "mm_filemap_add_to_page_cache",
        &[
            ("pfn", 99),
            ("i_ino", INODE),
            ("s_dev", DEVICE),
            ("index", 3),
            ("order", 0),
        ],
    );
    b.event(
        "filemap",
        "mm_filemap_delete_from_page_cache",
        &[
            ("pfn", 99),
            ("i_ino", INODE),
            ("s_dev", DEVICE),
            ("order", 0),
        ],
    );
    b.event(
        "migrate",
        "set_migration_pte",
        &[("addr", ADDR), ("pte", 5), ("order", 0)],
    );
    b.event(
        "migrate",
        "remove_migration_pte",
        &[("addr", ADDR), ("pte", 6), ("order", 0)],
    );
    b.event(
        "kmem",
        "kmem_cache_alloc",
        &[
            ("ptr", PTR),
            ("call_site", SITE),
            ("bytes_req", 8),
            ("bytes_alloc", 8),
            ("gfp_flags", 1),
            ("\"name", 2),
        ],
    );
    b.event(
        "kmem",
        "kmem_cache_free",
        &[("ptr", PTR), ("call_site", SITE), ("\"name", 5)],
    );
    b.event(
        "task",
        "task_newtask",
        &[("pid", PID), ("\"comm", 4), ("clone_flags", 0)],
    );
    b.event(
        "sched",
        "sched_process_exec",
        &[("\"filename", 1), ("pid", PID), ("old_pid", PID)],
    );
    b.event(
        "sched",
        "sched_switch",
        &[
            ("\"prev_comm", 4),
            ("prev_pid", PID),
            ("prev_state", 2),
            ("\"next_comm", 7),
            ("next_pid", PID + 1),
        ],
    );
    b.event("ftrace", "print", &[("ip", SITE), ("\"buf", 7)]);
    b.event(
        "jabberwock",
        "croquet",
        &[("teaparty", PTR), ("\"dormouse", 1)],
    );
    b.event(
        "compaction",
        "mm_compaction_end",
        &[("migrate_pfn", 1), ("free_pfn", 2), ("\"status", 6)],
    );
    b.event(
        "compaction",
        "mm_compaction_finished",
        &[("order", 9), ("\"ret", 4)],
    );
    let file = |name: &str, text: &str| SnapshotFile {
        name: name.into(),
        time: Some((1, 2)),
        content: text.as_bytes().to_vec().into(),
    };
    b.0.snapshots = vec![Snapshot {
        name: "cheshire".into(),
        files: vec![
            file("vmstat", "pgalloc_normal 5\nalice was here\npgfree 7\n"),
            file("version", "Linux version 6.18.0 (alice@wonderland) #1\n"),
            file("sysctl-vm", "/mnt/alice/proc/sys/vm/min_free_kbytes=5\n"),
            file("dmesg", "alice logged in\n"),
            file("hatter.txt", "teaparty\n"),
            file(
                "slabinfo",
                "slabinfo - version: 2.1\n# name <croquet>\n\
                 dentry(9:alice.slice) 1 1 192 21 1 : tunables 0 0 0 : slabdata 1 1 0\n\
                 raid5-rabbit 1 1 192 21 1 : tunables 0 0 0 : slabdata 1 1 0\n",
            ),
        ],
    }];
    b.0
}

/// All that a recording holds, as text.
fn content(r: &Recording) -> String {
    let files = r.snapshots.iter().flat_map(|s| &s.files);
    let files: Vec<String> = files
        .map(|f| String::from_utf8_lossy(&f.content.bytes()).into_owned())
        .collect();
    let names: Vec<_> = r
        .snapshots
        .iter()
        .flat_map(|s| s.files.iter().map(|f| (&s.name, &f.name)))
        .collect();
    format!(
        "{:?} {:?} {:?} {:?} {names:?} {files:?}",
        r.meta, r.events, r.tasks, r.strings
    )
}

#[test]
fn nothing_that_was_planted_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = ["from.unfrag", "to.unfrag"].map(|n| dir.path().join(n));
    file::write(&planted(), &from).unwrap();
    let done = redact::redact(&from, &to, &Window::default()).unwrap();
    let new = file::read(&to).unwrap();
    let (in_memory, removed) = redact::recording(planted());
    assert_eq!((&new, &done.removed), (&in_memory, &removed));
    let before = content(&planted());
    let after = content(&new);
    let raw = String::from_utf8_lossy(&std::fs::read(&to).unwrap()).into_owned();
    for secret in SECRETS {
        assert!(before.contains(secret), "{secret} was not planted");
        assert!(!after.contains(secret), "{secret} is left: {after}");
        assert!(!raw.contains(secret), "{secret} is left");
    }
    for number in [PTR, SITE, ADDR, INODE, DEVICE, PID, PID + 1, PID + 2] {
        assert!(
            before.contains(&number.to_string()),
            "{number} was not planted"
        );
        assert!(
            !after.contains(&number.to_string()),
            "{number} is left: {after}"
        );
    }
    // What was left out is said, and without its words.
    let said = format!("{removed:?}");
    assert!(SECRETS.iter().all(|s| !said.contains(s)), "{said}");
    assert!(
        removed.facts.contains("command") && removed.facts.contains("another fact"),
        "{said}"
    );
    assert_eq!(
        removed.files_of_snapshots,
        BTreeSet::from(["another file".to_owned()]),
        "{said}"
    );
    assert_eq!(removed.events, 1, "{said}");
}

#[test]
fn what_is_one_thing_stays_one_and_the_answers_numbers_stay() {
    let old = planted();
    let (new, _) = redact::recording(old.clone());
    assert_eq!(new.events.len(), old.events.len());
    assert_eq!(
        (&new.events.time, &new.events.kind, &new.events.task),
        (&old.events.time, &old.events.kind, &old.events.task)
    );
    let one = |name: &str, field: &str| {
        let table = new.events.tables.iter().find(|t| t.name == name).unwrap();
        table.column(field).map(|c| c[0])
    };
    let text = |name: &str, field: &str| new.strings[one(name, field).unwrap() as usize].as_str();
    assert_eq!(one("mm_page_alloc", "pfn"), Some(99));
    assert_eq!(one("mm_page_alloc", "page"), None);
    assert_eq!(
        one("set_migration_pte", "addr"),
        one("remove_migration_pte", "addr")
    );
    assert_eq!(one("set_migration_pte", "pte"), Some(5));
    assert_eq!(
        one("kmem_cache_alloc", "ptr"),
        one("kmem_cache_free", "ptr")
    );
    assert_eq!(one("task_newtask", "pid"), one("sched_process_exec", "pid"));
    assert_eq!(
        one("sched_switch", "prev_pid"),
        Some(new.tasks[1].pid as u64)
    );
    assert_eq!(
        one("sched_switch", "next_pid"),
        Some(new.tasks[2].pid as u64)
    );
    assert_eq!(text("mm_compaction_end", "status"), "COMPACT_SUCCESS");
    // A program is called the same by its path, and as a task.
    assert_eq!(text("sched_process_exec", "filename"), new.tasks[1].comm);
    assert_eq!(new.tasks[1].comm, new.tasks[2].comm);
    assert_ne!(new.tasks[1].pid, new.tasks[2].pid);
    let roles = Roles::of(&new);
    assert_eq!(roles.all(), Roles::of(&old).all());
    assert_eq!(roles.all()[3], Role::Recorder);
    let names: Vec<&str> = new.tasks.iter().map(|t| t.comm.as_str()).collect();
    assert_eq!(names[4], "kswapd0");
    assert!(
        names[5].starts_with("kworker/0:1-") && names[6].starts_with("jbd2/-"),
        "{names:?}"
    );
    // Redacting once more changes nothing but names that are numbers already.
    let (again, _) = redact::recording(new.clone());
    assert_eq!(
        (again.events.time, again.tasks.len()),
        (new.events.time, new.tasks.len())
    );
}
