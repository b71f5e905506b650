//! The trace readers on small files: written here, or recorded on a 6.18 host.

use crate::trace_support::dat::{Buffer, Dat, Entry, Packing};
use crate::trace_support::same::{assert_same, counts};
use crate::trace_support::{fixture, recording};
use unfrag_linux::recording::{FieldKind, Recording};
use unfrag_linux::{Options, read, tracedat};

fn read_dat(data: &[u8]) -> Recording {
    tracedat::read(data).unwrap_or_else(|e| panic!("{e}"))
}

fn string(r: &Recording, kind: usize, field: &str, row: usize) -> String {
    let column = r.events.tables[kind]
        .column(field)
        .expect("the field is there");
    r.strings[column[row] as usize].clone()
}

/// Two CPUs, two kinds of events.
fn two_cpus(big: bool) -> Dat {
    let cpu0 = vec![
        Entry::Record(0, Dat::alloc(big, 7, 0x1000, -1)),
        Entry::Record(5, Dat::cache_free(big, 8, 0xffff_8881_0000_0000, "dentry")),
        Entry::Record(100, Dat::alloc(big, 9, u64::MAX, 1)),
    ];
    let cpu1 = vec![Entry::Record(5, Dat::alloc(big, 0, 0x2000, 2))];
    let pages = [cpu0, cpu1].map(|e| Dat::page(big, 1_000_000_007, None, &e));
    Dat::new(big, pages.to_vec())
}

#[test]
fn formats_6_and_7_hold_the_same_events() {
    let expected = read_dat(&two_cpus(false).v6());
    let e = &expected.events;
    assert_eq!(
        e.time,
        [1_000_000_007, 1_000_000_012, 1_000_000_012, 1_000_000_112]
    );
    assert_eq!(e.cpu, [0, 0, 1, 0]);
    assert_eq!(e.flags, [1, 0, 1, 1]);
    assert_eq!(e.preempt, [2, 0, 2, 2]);
    let alloc = &e.tables[0];
    assert_eq!(
        (alloc.system.as_str(), alloc.name.as_str()),
        ("kmem", "mm_page_alloc")
    );
    assert_eq!(alloc.column("pfn"), Some(&[0x1000, 0x2000, u64::MAX][..]));
    assert_eq!(alloc.column("migratetype"), Some(&[u64::MAX, 2, 1][..]));
    assert_eq!(alloc.fields[3].kind, FieldKind::Signed);
    assert_eq!(string(&expected, 1, "name", 0), "dentry");
    let tasks: Vec<(i32, &str)> = expected
        .tasks
        .iter()
        .map(|t| (t.pid, t.comm.as_str()))
        .collect();
    assert_eq!(
        tasks,
        [(7, "sh"), (8, "two words"), (0, "<idle>"), (9, "<...>")]
    );
    assert_eq!(expected.meta.kernel_release, "6.1.0-test");
    assert_eq!(expected.meta.clock, "mono");
    assert_eq!((expected.meta.cpus, expected.meta.page_size), (2, 4096));
    assert_eq!(expected.meta.source, "trace.dat v6");

    for big in [false, true] {
        let dat = two_cpus(big);
        let mut files = vec![dat.v6()];
        files.extend([Packing::None, Packing::Zstd, Packing::Zlib].map(|p| dat.v7(p)));
        for data in files {
            let mut r = read_dat(&data);
            r.meta.source.clone_from(&expected.meta.source);
            assert_eq!(r, expected);
        }
    }
}

#[test]
fn entries_of_every_type_move_the_time() {
    for big in [false, true] {
        let record = || Dat::alloc(big, 7, 1, 0);
        let top = 0xa800_0000_0000_0000;
        let mut long = record();
        long.resize(200, 0);
        let entries = [
            Entry::Record(1, record()),
            Entry::Extend(1 << 40 | 3),
            Entry::Record(1, record()),
            Entry::Discarded(10, 40),
            Entry::Long(1, long),
            Entry::Stamp(0x123_4567_89ab_cdef),
            Entry::Record(2, record()),
            Entry::Padding,
        ];
        let pages = [
            Dat::page(big, top, None, &entries),
            Dat::page(big, top | 1 << 62, None, &[]),
        ];
        let r = read_dat(&Dat::new(big, vec![pages.concat()]).v6());
        let extended = top + 1 + (1 << 40) + 3 + 1;
        let stamped = top | 0x123_4567_89ab_cdef;
        assert_eq!(
            r.events.time,
            [top + 1, extended, extended + 11, stamped + 2]
        );
    }
}

#[test]
fn losses_stand_before_the_next_event_of_their_cpu() {
    let one = |time, lost| {
        let entries = [Entry::Record(0, Dat::alloc(false, 7, time, 0))];
        Dat::page(false, time, lost, &entries)
    };
    let cpu0 = [one(10, None), one(30, Some(Some(5)))].concat();
    let empty = Dat::page(false, 35, Some(Some(2)), &[]);
    let cpu1 = [
        one(20, Some(None)),
        empty.clone(),
        one(40, Some(Some(1))),
        empty,
    ]
    .concat();
    let r = read_dat(&Dat::new(false, vec![cpu0, cpu1]).v7(Packing::Zstd));
    let lost: Vec<_> = r
        .meta
        .lost
        .iter()
        .map(|l| (l.cpu, l.before_event, l.count))
        .collect();
    let expected = [
        (1, 1, None),
        (0, 2, Some(5)),
        (1, 3, Some(3)),
        (1, 4, Some(2)),
    ];
    assert_eq!(lost, expected);
}

#[test]
fn the_top_buffer_is_read_and_others_are_named() {
    let mut dat = two_cpus(false);
    let other = Buffer {
        name: "other",
        cpus: vec![Vec::new()],
    };
    dat.buffers.insert(0, other);
    let r = read_dat(&dat.v7(Packing::Zstd));
    assert_eq!(r.events.len(), 4);
    assert_eq!(r.meta.facts["buffers not read"], "other");
    dat.buffers[1].name = "named";
    let r = read_dat(&dat.v7(Packing::None));
    assert_eq!(
        (r.events.len(), r.meta.facts["buffer"].as_str()),
        (0, "other")
    );
}

#[test]
fn latency_data_are_read_as_text() {
    let text = "# tracer: nop\n  sh-7  [001] d..1.  7.000001: kfree: ptr=00000000e7dbe299\n";
    let r = read_dat(&two_cpus(false).v6_latency(text));
    assert_eq!(r.meta.kernel_release, "6.1.0-test");
    assert_eq!(r.meta.source, "trace.dat v6, latency text");
    assert_eq!(r.events.tables[0].columns[0], [0xe7db_e299]);
}

#[test]
fn a_recording_reads_as_trace_cmd_and_the_kernel_print_it() {
    let mut v6 = recording("host-6.18.v6.dat.zst");
    let v7 = recording("host-6.18.v7.dat");
    v6.meta.source.clone_from(&v7.meta.source);
    assert_eq!(v6, v7);
    assert_eq!(v7.meta.kernel_release, "6.18.44");
    let report = recording("host-6.18.report.txt.zst");
    let compared = assert_same(&v7, &report);
    assert_eq!((compared.events, compared.fields), (118, 637));
    assert_eq!(v7.meta.lost, report.meta.lost);
    assert_eq!(v7.meta.lost[0].count, Some(398));

    let mut trace = recording("host-6.18.trace.txt.zst");
    // The trace file names tasks that the list in the recording lacks.
    for t in &mut trace.tasks {
        t.comm = v7
            .tasks
            .iter()
            .find(|u| u.pid == t.pid)
            .expect("the same pids")
            .comm
            .clone();
    }
    // The trace file has hashed pointers.
    for t in &mut trace.events.tables {
        for f in &mut t.fields {
            if f.name == "ptr" {
                f.kind = FieldKind::String;
            }
        }
    }
    assert_same(&v7, &trace);
    assert_eq!(v7.events.flags, trace.events.flags);
    assert_eq!(v7.events.preempt, trace.events.preempt);
}

#[test]
fn perf_data_reads_as_perf_script_prints_it() {
    let r = recording("p.data.zst");
    let compared = assert_same(&r, &recording("p.script.txt.zst"));
    assert_eq!(compared.events, 55);
    assert_eq!(r.meta.source, "perf.data");
    assert!(r.meta.kernel_release.starts_with("6.18."));
    assert!(r.tasks.iter().any(|t| t.comm == "ls"));
    let names = |r: &Recording| counts(r).into_iter().map(|c| c.0).collect::<Vec<_>>();
    for (name, source, events) in [
        ("pz.data.zst", "perf.data, compressed", 55),
        ("pp.data.zst", "perf.data of a pipe", 56),
    ] {
        let other = recording(name);
        assert_eq!(
            (other.meta.source.as_str(), other.events.len()),
            (source, events)
        );
        assert_eq!(names(&other), names(&r));
    }
}

#[test]
fn losses_of_perf_are_gaps() {
    let r = recording("lost.data");
    let lost: Vec<_> = r
        .meta
        .lost
        .iter()
        .map(|l| (l.cpu, l.before_event, l.count))
        .collect();
    assert_eq!(lost, [(0, 0, Some(5)), (1, 0, Some(7))]);
    assert_eq!(r.events.len(), 6);
}

#[test]
fn every_form_of_text_of_a_6_18_kernel_is_read() {
    for (name, events, tasks) in [
        ("tgid.txt", 9, 2),
        ("noirq.txt", 11, 2),
        ("latency.txt", 15, 2),
        ("stack.txt", 3, 1),
        ("call_chains.txt", 3, 1),
        ("pipe_lost.txt", 16, 3),
    ] {
        let r = recording(name);
        let n = (r.events.len(), r.tasks.len());
        assert_eq!(n, (events, tasks), "{name}");
        assert!(!r.meta.facts.contains_key("lines not understood"), "{name}");
    }
    let lost = recording("pipe_lost.txt").meta.lost;
    let lost: Vec<_> = lost
        .iter()
        .map(|l| (l.cpu, l.before_event, l.count))
        .collect();
    assert_eq!(lost, [(1, 0, Some(411)), (0, 10, Some(819))]);
}

/// `spec: 7.6`
#[test]
fn text_of_old_kernels_has_their_event_names_and_gfp_bits() {
    let text = b"  gnome-terminal-1567  [000]  4415.246466: mm_page_free_direct: page=ffffea0003db9f40 pfn=1155800 order=0\n\
        gnome-terminal-1567  [000]  4415.246506: mm_page_alloc: page=ffffea0003db9f40 pfn=1155800 order=0 migratetype=2 gfp_flags=GFP_KERNEL|GFP_REPEAT|GFP_ZERO\n\
        gnome-terminal-1567  [000]  4415.246508: mm_pagevec_free: page=ffffea0003db9f40 pfn=1155800 order=0 cold=0\n";
    let options = Options {
        kernel_release: Some("2.6.32-5-amd64"),
        ..Default::default()
    };
    let r = read(text, &options).unwrap();
    let names: Vec<&str> = r.events.tables.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(
        names,
        ["mm_page_free_direct", "mm_page_alloc", "mm_pagevec_free"]
    );
    assert_eq!(r.events.tables[1].column("gfp_flags"), Some(&[0x84d0][..]));
    assert_eq!(r.events.tables[2].column("cold"), Some(&[0][..]));
    assert_eq!(
        (r.tasks[0].comm.as_str(), r.tasks[0].pid),
        ("gnome-terminal", 1567)
    );
    assert_eq!(r.events.time[0], 4_415_246_466_000);
}

#[test]
fn compressed_files_open_as_what_they_hold() {
    let plain = two_cpus(false).v6();
    let expected = read_dat(&plain);
    let zst = zstd::bulk::compress(&plain, 3).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gz, &zst).unwrap();
    let gz = gz.finish().unwrap();
    for data in [&plain, &zst, &gz] {
        assert_eq!(read(data, &Options::default()).unwrap(), expected);
    }
}

#[test]
fn a_file_cut_off_says_where_and_what_to_do() {
    let data = two_cpus(false).v7(Packing::Zstd);
    let e = tracedat::read(&data[..data.len() - 1]).unwrap_err();
    assert!(e.offset.is_some() && !e.help.is_empty(), "{e}");
    let p = fixture("host-6.18.v7.dat");
    let e = read(&p[..p.len() / 2], &Options::default()).unwrap_err();
    assert!(e.offset.is_some() && !e.help.is_empty(), "{e}");
}

#[test]
fn absurd_sizes_are_errors_and_cost_no_memory() {
    let dat = two_cpus(false);
    let mut bomb = dat.v7(Packing::Zstd);
    // The size that the first section (headers) claims to unpack to.
    let section = b"\x10\0\x01\0";
    let at = bomb
        .windows(4)
        .position(|w| w == section)
        .expect("it is there");
    bomb[at + 20..at + 24].copy_from_slice(&u32::MAX.to_le_bytes());
    let e = tracedat::read(&bomb).unwrap_err();
    assert!(e.to_string().contains("limit"), "{e}");
}
