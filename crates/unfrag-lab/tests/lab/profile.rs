//! Profiles of small recordings made by hand, and the profiles that ship. `spec: 7.6, 8.6`

use crate::recording_support::synthetic::{Maker, USER_PAGE};
use std::path::Path;
use unfrag_lab::profile::class::Class;
use unfrag_lab::profile::pages::{Freed, Pages};
use unfrag_lab::profile::{Identity, Profile, Use};
use unfrag_linux::kpageflags::{BUDDY, PageFlags};
use unfrag_linux::recording::{FieldKind, Snapshot, SnapshotFile};

const READ: u64 = 0x15_2c4a;
const WRITE: u64 = 0x14_1cca;
const TABLE: u64 = 0x44_0dc0;
const VFORK: u64 = 0x4100;
const THREAD: u64 = 0x3d_0f00;

/// A recording of a command on 6.18; the recorder is its first task.
fn command() -> Maker {
    let mut m = Maker::default();
    m.rec.meta.kernel_release = "6.18.1".into();
    m.rec.meta.page_size = 4096;
    m.rec.meta.facts.insert("scope".into(), "command".into());
    m.task("<idle>").task("recorder");
    m
}

fn pid(m: &mut Maker, comm: &str) -> u64 {
    m.task(comm);
    m.rec.tasks.iter().find(|t| t.comm == comm).unwrap().pid as u64
}

/// `parent` starts `child`, which runs next.
fn starts(m: &mut Maker, parent: &str, child: &str, flags: u64) {
    let pid = pid(m, child);
    m.task(parent);
    m.event("task_newtask", &[("pid", pid), ("clone_flags", flags)]);
    m.task(child);
}

fn runs(m: &mut Maker, task: &str, path: &str) {
    let pid = pid(m, task);
    m.rec.strings.push(path.into());
    let name = m.rec.strings.len() as u64 - 1;
    m.event("sched_process_exec", &[("filename", name), ("pid", pid)]);
    let table = m
        .rec
        .events
        .tables
        .iter_mut()
        .find(|t| t.name == "sched_process_exec");
    table.unwrap().fields[0].kind = FieldKind::String;
}

fn exits(m: &mut Maker, task: &str) {
    let pid = pid(m, task);
    m.event("sched_process_exit", &[("pid", pid)]);
}

fn switches(m: &mut Maker, from: &str, state: u64, to: &str) {
    let (from, to) = (pid(m, from), pid(m, to));
    m.event(
        "sched_switch",
        &[("prev_pid", from), ("prev_state", state), ("next_pid", to)],
    );
}

/// A page enters page cache.
fn enters(m: &mut Maker, pfn: u64, device: u64, inode: u64, index: u64) {
    let fields = [
        ("pfn", pfn),
        ("i_ino", inode),
        ("index", index),
        ("s_dev", device),
        ("order", 0),
    ];
    m.event("mm_filemap_add_to_page_cache", &fields);
}

fn of(m: &Maker) -> Profile {
    Profile::of(&m.rec, &Identity::default()).unwrap()
}

fn pages(u: &Use, class: Class) -> &Pages {
    &u.pages[&class]
}

/// `sh` runs `cc1`, which takes three pages.
fn compiler() -> Maker {
    let mut m = command();
    starts(&mut m, "recorder", "sh", VFORK);
    runs(&mut m, "sh", "/bin/sh");
    starts(&mut m, "sh", "cc1", VFORK);
    runs(&mut m, "cc1", "/usr/lib/gcc/cc1");
    m.alloc(100, 0, USER_PAGE)
        .alloc(101, 0, USER_PAGE)
        .alloc(102, 0, USER_PAGE);
    m
}

#[test]
fn pages_by_class_and_program() {
    let mut m = compiler();
    m.alloc(110, 0, TABLE)
        .alloc(120, 0, READ)
        .alloc(121, 0, WRITE)
        .alloc(122, 0, READ);
    enters(&mut m, 120, 8 << 20, 77, 4);
    enters(&mut m, 121, 8 << 20, 78, 0);
    // A block device as a file: an inode of its own number on a device without one.
    enters(&mut m, 122, 3, 8 << 20, 9000);
    m.task("sh").alloc(130, 0, USER_PAGE);
    m.task("recorder").alloc(140, 0, USER_PAGE);
    let p = of(&m);
    let cc1 = p.program("cc1").unwrap();
    for (class, taken) in [
        (Class::Anonymous, 3),
        (Class::PageTables, 1),
        (Class::FileRead, 1),
        (Class::FileWritten, 1),
        (Class::Metadata, 1),
    ] {
        assert_eq!(pages(cc1, class).taken_pages, taken, "{class:?}");
    }
    assert_eq!(
        pages(&p.all, Class::Anonymous).taken_pages,
        4,
        "the recorder's is not among them"
    );
    assert_eq!(cc1.started_by["sh"], 1);
    assert_eq!(
        (cc1.files.read_files, cc1.files.read_file_pages.max),
        (1, 5)
    );
    assert_eq!(
        (cc1.files.written_files, cc1.files.written_file_pages.max),
        (1, 1)
    );
    assert_eq!(
        (p.all.processes, p.all.processes_at_most, p.all.vforked),
        (2, 2, 2)
    );
    let each = cc1.each.as_ref().unwrap();
    assert_eq!(each.anonymous_high_water_pages.max, 3);
    assert_eq!(each.file_read_pages.max, 1);
}

#[test]
fn frees_by_who_frees() {
    let mut m = compiler();
    for pfn in 103..107 {
        m.alloc(pfn, 0, USER_PAGE);
    }
    m.free(100, 0);
    m.task("<idle>").free(101, 0);
    m.task("kswapd0").free(102, 0);
    exits(&mut m, "cc1");
    m.wait(5_000_000).free(103, 0);
    // 104 is allocated again without a free; 105 is free at the end.
    m.task("sh").alloc(104, 0, USER_PAGE);
    let mut flags = PageFlags {
        words: vec![0; 200],
    };
    flags.words[105] = BUDDY;
    m.rec.snapshots.push(Snapshot {
        name: "end".into(),
        files: vec![SnapshotFile {
            name: "kpageflags".into(),
            time: None,
            content: flags.write().into(),
        }],
    });
    let p = of(&m);
    let cc1 = pages(p.program("cc1").unwrap(), Class::Anonymous);
    let freed = Freed {
        running: 1,
        at_exit: 1,
        by_others: 1,
        reclaimed: 1,
        unseen: 2,
    };
    assert_eq!(
        (cc1.taken_pages, cc1.freed_pages, cc1.held_pages),
        (7, freed, 1)
    );
    assert_eq!(cc1.high_water_pages, 7);
    let life = cc1.lifetime_us.unwrap();
    assert!((5000..5200).contains(&life.max), "{life:?}");
}

#[test]
fn an_exit_event_after_the_frees_is_handled() {
    let mut m = compiler();
    m.free(100, 0);
    m.alloc(103, 0, USER_PAGE);
    m.free(101, 0).free(102, 0).free(103, 0);
    exits(&mut m, "cc1");
    let p = of(&m);
    let freed = pages(&p.all, Class::Anonymous).freed_pages;
    assert_eq!((freed.running, freed.at_exit), (1, 3));
}

#[test]
fn direct_reclaim_counts_as_reclaim() {
    let mut m = compiler();
    m.event("mm_vmscan_direct_reclaim_begin", &[("order", 0)]);
    m.free(100, 0);
    m.event("mm_vmscan_direct_reclaim_end", &[("nr_reclaimed", 1)]);
    m.free(101, 0);
    let freed = pages(&of(&m).all, Class::Anonymous).freed_pages;
    assert_eq!((freed.reclaimed, freed.running), (1, 1));
}

#[test]
fn cpu_time_and_blocked_time() {
    let mut m = compiler();
    switches(&mut m, "sh", 1, "cc1");
    m.task("cc1").wait(3_000_000);
    switches(&mut m, "cc1", 2, "<idle>");
    m.task("<idle>").wait(20_000_000);
    switches(&mut m, "<idle>", 0, "cc1");
    m.task("cc1").wait(1_000_000);
    // Its last switch is not recorded: it counts up to its last event.
    m.alloc(108, 0, USER_PAGE);
    m.task("<idle>").wait(9_000_000);
    m.free(108, 0);
    let p = of(&m);
    let cc1 = p.program("cc1").unwrap();
    assert!(
        (4000..4010).contains(&cc1.cpu_us.unwrap()),
        "{:?}",
        cc1.cpu_us
    );
    let blocked = cc1.each.as_ref().unwrap().blocked_us.unwrap().max;
    assert!((20_000..20_010).contains(&blocked), "{blocked}");
}

#[test]
fn forks_and_threads_count_with_their_origin() {
    let mut m = command();
    starts(&mut m, "recorder", "sh", VFORK);
    runs(&mut m, "sh", "/bin/sh");
    starts(&mut m, "sh", "child", 0);
    m.alloc(100, 0, USER_PAGE);
    starts(&mut m, "child", "grandchild", 0);
    m.alloc(101, 0, USER_PAGE);
    starts(&mut m, "sh", "thread", THREAD);
    m.alloc(102, 0, USER_PAGE).alloc(103, 0, USER_PAGE);
    // A process that the recorder starts later is not of the command.
    starts(&mut m, "recorder", "other", 0);
    m.alloc(104, 0, USER_PAGE);
    let p = of(&m);
    let forked = p.program("sh (fork)").unwrap();
    assert_eq!(forked.processes, 2);
    assert_eq!(pages(forked, Class::Anonymous).taken_pages, 2);
    let sh = p.program("sh").unwrap();
    assert_eq!((sh.processes, sh.threads), (1, 1));
    assert_eq!(pages(sh, Class::Anonymous).taken_pages, 2);
    assert_eq!(p.program.len(), 2);
}

#[test]
fn a_reused_pid_is_another_process() {
    let mut m = command();
    starts(&mut m, "recorder", "sh", VFORK);
    runs(&mut m, "sh", "/bin/sh");
    for (program, pages) in [("one", 1), ("two", 2)] {
        starts(&mut m, "sh", "same", VFORK);
        runs(&mut m, "same", program);
        for i in 0..pages {
            m.alloc(200 + i, 0, USER_PAGE);
        }
        exits(&mut m, "same");
        for i in 0..pages {
            m.free(200 + i, 0);
        }
    }
    let p = of(&m);
    assert_eq!(
        pages(p.program("one").unwrap(), Class::Anonymous).taken_pages,
        1
    );
    let two = pages(p.program("two").unwrap(), Class::Anonymous);
    assert_eq!((two.taken_pages, two.freed_pages.at_exit), (2, 2));
}

#[test]
fn without_process_events_all_is_one_process() {
    let mut m = command();
    m.task("recorder").event("print", &[("ip", 0)]);
    m.alloc(100, 0, USER_PAGE);
    m.task("<...>")
        .alloc(101, 0, USER_PAGE)
        .alloc(102, 9, 0x3d_24ca);
    m.task("kswapd0").alloc(99, 0, USER_PAGE).free(101, 0);
    let p = of(&m);
    assert_eq!((p.all.processes, p.program.len()), (0, 0));
    let all = pages(&p.all, Class::Anonymous);
    assert_eq!((all.taken_pages, all.freed_pages.reclaimed), (513, 1));
    assert_eq!(all.taken_by_order, [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn slab_objects_by_cache_and_program() {
    let mut m = compiler();
    let mut object = |task: &str, ptr: u64, size: u64| {
        let fields = [
            ("call_site", 1),
            ("ptr", ptr),
            ("bytes_req", size),
            ("bytes_alloc", size),
            ("gfp_flags", 0xcc0),
        ];
        m.task(task).event("kmalloc", &fields);
    };
    object("cc1", 0x1000, 90);
    object("cc1", 0x2000, 90);
    object("sh", 0x3000, 90);
    object("recorder", 0x4000, 90);
    m.task("<idle>")
        .event("kfree", &[("call_site", 2), ("ptr", 0x1000)]);
    let p = of(&m);
    let all = &p.all.slab[0];
    assert_eq!((all.cache.as_str(), all.object_bytes), ("kmalloc-96", 96));
    assert_eq!(
        (all.taken, all.freed, all.held, all.high_water),
        (3, 1, 2, 3)
    );
    assert_eq!(p.program("cc1").unwrap().slab[0].taken, 2);
}

#[test]
fn growth_by_tenths_of_a_life() {
    let mut m = compiler();
    // Half way through its life it holds half of what it holds at most.
    m.wait(50_000_000);
    m.alloc(103, 0, USER_PAGE)
        .alloc(104, 0, USER_PAGE)
        .alloc(105, 0, USER_PAGE);
    m.wait(50_000_000);
    exits(&mut m, "cc1");
    m.free(100, 0);
    let p = of(&m);
    let each = p.program("cc1").unwrap().each.as_ref().unwrap();
    assert_eq!(
        each.anonymous_percent_by_tenth,
        [50, 50, 50, 50, 50, 100, 100, 100, 100, 100]
    );
}

#[test]
fn unusable_recordings_are_refused() {
    let mut m = command();
    m.event("mm_vmscan_kswapd_wake", &[("nid", 0)]);
    let e = Profile::of(&m.rec, &Identity::default()).unwrap_err();
    assert!(e.to_string().contains("processes and slab events"), "{e}");
    m.alloc(1, 60, USER_PAGE);
    let e = Profile::of(&m.rec, &Identity::default()).unwrap_err();
    assert!(e.to_string().contains("order"), "{e}");
    let mut m = command();
    m.event("mm_page_alloc", &[("pfn", 1), ("order", 0)]);
    let e = Profile::of(&m.rec, &Identity::default()).unwrap_err();
    assert!(e.to_string().contains("gfp_flags"), "{e}");
    let mut m = compiler();
    m.rec.meta.kernel_release.clear();
    assert!(Profile::of(&m.rec, &Identity::default()).is_err());
}

#[test]
fn files_round_trip() {
    let mut m = compiler();
    exits(&mut m, "cc1");
    m.free(100, 0);
    let p = of(&m);
    let text = p.to_toml().unwrap();
    assert_eq!(Profile::from_toml(&text).unwrap(), p);
    assert_eq!(of(&m).to_toml().unwrap(), text);
    let e = Profile::from_toml(&text.replace("profile = 1", "profile = 9")).unwrap_err();
    assert!(e.to_string().contains("version 9"), "{e}");
    let e = Profile::from_toml("profile = 1\n[all]\nname = 3\n").unwrap_err();
    assert!(
        e.offset.is_some() && e.to_string().contains("make it anew"),
        "{e}"
    );
}

#[test]
fn identity_is_the_sha_256() {
    let identity = Identity::of("x.unfrag", &mut &b"abc"[..]).unwrap();
    let p = Profile::of(&compiler().rec, &identity).unwrap();
    // FIPS 180-2, appendix B.1.
    let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(p.recording.sha256, digits);
    assert_eq!(
        (p.recording.file.as_str(), p.recording.file_bytes),
        ("x.unfrag", 3)
    );
}

/// Checks that pages taken are those freed and those held, of each class.
fn adds_up(u: &Use, place: &str) {
    for (class, p) in &u.pages {
        let f = p.freed_pages;
        let freed = f.running + f.at_exit + f.by_others + f.reclaimed + f.unseen;
        assert_eq!(
            p.taken_pages,
            freed + p.held_pages,
            "{place}, {}, {class:?}",
            u.name
        );
        let by_order = p.taken_by_order.iter().enumerate().map(|(o, n)| n << o);
        assert_eq!(
            by_order.sum::<u64>(),
            p.taken_pages,
            "{place}, {}, {class:?}",
            u.name
        );
        assert!(
            p.high_water_pages <= p.taken_pages,
            "{place}, {}, {class:?}",
            u.name
        );
    }
    for o in &u.slab {
        assert_eq!(
            o.taken,
            o.freed + o.held,
            "{place}, {}, {}",
            u.name,
            o.cache
        );
    }
}

#[test]
fn shipped_profiles_are_consistent() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
    let mut names = vec![];
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let p = Profile::from_toml(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(p.to_toml().unwrap(), text, "{name}: not as it is written");
        let r = &p.recording;
        assert_eq!((r.sha256.len(), r.lost_events), (64, 0), "{name}");
        assert!(
            !r.command.is_empty() && !r.kernel.is_empty() && r.date.len() == 10,
            "{name}"
        );
        assert!(
            p.all.processes > 0 && p.all.cpu_us.is_some_and(|c| c > 0),
            "{name}"
        );
        for used in p.program.iter().chain([&p.all]) {
            adds_up(used, &name);
        }
        let sum: u64 = p.program.iter().map(|u| u.processes).sum();
        assert!(sum <= p.all.processes, "{name}");
        names.push(name);
    }
    for wanted in [
        "compile", "link", "make-j2", "updatedb", "tar-x", "cp-a", "rm-rf", "git-log", "gitk",
        "rsync",
    ] {
        assert!(names.iter().any(|n| n == wanted), "no {wanted}");
    }
}
