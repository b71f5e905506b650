//! Snapshots from what people have: a file by itself, pasted text, sosreports and packed archives.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use unfrag_linux::procfs::{BuddyInfo, ExtfragIndex, PageTypeInfo, SlabInfo, VmStat, ZoneInfo};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::snapshots;

use crate::common::Random;

fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs")
}

fn text_of(path: &str) -> String {
    fs::read_to_string(inputs().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn fixture(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::read_to_string(root.join(path)).unwrap()
}

fn pasted(text: &str) -> Vec<Snapshot> {
    snapshots::read_bytes("standard input", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

fn one(text: &str) -> Snapshot {
    let mut all = pasted(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.files.iter().map(|f| f.name.as_str()).collect()
}

fn file(snapshot: &Snapshot, name: &str) -> String {
    let content = snapshot
        .file(name)
        .unwrap_or_else(|| panic!("no {name} in {:?}", names(snapshot)));
    String::from_utf8(content.to_vec()).unwrap()
}

#[test]
fn a_file_by_itself_is_known_by_its_content_and_kept_byte_for_byte() {
    for kind in [
        "buddyinfo",
        "pagetypeinfo",
        "zoneinfo",
        "vmstat",
        "meminfo",
        "slabinfo",
        "unusable_index",
    ] {
        let text = fixture(&format!("procfs/{kind}"));
        let snapshot = one(&text);
        assert_eq!(names(&snapshot), [kind]);
        assert_eq!(file(&snapshot, kind), text);
    }
    for kernel in ["linux-2.6.32", "linux-6.18"] {
        for kind in ["pagetypeinfo", "zoneinfo", "extfrag_index"] {
            let text = fixture(&format!("{kernel}/{kind}"));
            let snapshot = one(&text);
            assert_eq!(names(&snapshot), [kind], "{kernel}");
            assert_eq!(file(&snapshot, kind), text);
        }
    }
    for kernel in fs::read_dir(inputs().join("kernels")).unwrap() {
        for path in fs::read_dir(kernel.unwrap().path()).unwrap() {
            let path = path.unwrap().path();
            let kind = path.file_name().unwrap().to_str().unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let snapshot = one(&text);
            assert_eq!(names(&snapshot), [kind], "{}", path.display());
            assert_eq!(file(&snapshot, kind), text, "{}", path.display());
        }
    }
}

#[test]
fn a_file_that_a_terminal_changed_is_kept_as_it_is() {
    for case in ["watch", "crlf", "blank-line", "no-newline"] {
        let path = inputs().join(format!("watch-crlf-no-newline/{case}/buddyinfo"));
        let all = snapshots::read(&path).unwrap();
        assert_eq!(
            all[0].file("buddyinfo"),
            Some(&fs::read(&path).unwrap()[..]),
            "{case}"
        );
    }
}

/// Several files under headings of one form.
fn under(heading: impl Fn(&str) -> String, files: &[(&str, String)]) -> String {
    files
        .iter()
        .map(|(name, text)| heading(name) + text + "\n")
        .collect()
}

#[test]
fn several_files_are_split_at_prompts_headings_and_fences() {
    let kinds = [
        "buddyinfo",
        "zoneinfo",
        "pagetypeinfo",
        "vmstat",
        "meminfo",
        "slabinfo",
    ];
    let files: Vec<(&str, String)> = kinds
        .iter()
        .map(|k| (*k, fixture(&format!("procfs/{k}"))))
        .collect();
    let forms: Vec<(&str, String)> = vec![
        (
            "user's prompt",
            under(|n| format!("$ cat /proc/{n}\n"), &files),
        ),
        (
            "root's prompt",
            under(|n| format!("[root@web3 ~]# cat /proc/{n}\n"), &files),
        ),
        ("head", under(|n| format!("==> /proc/{n} <==\n"), &files)),
        (
            "bugreport",
            under(
                |n| format!("------ {} (/proc/{n}) ------\n", n.to_uppercase()),
                &files,
            ),
        ),
        ("bare", under(|n| format!("{n}:\n"), &files)),
        (
            "markdown",
            under(|n| format!("Here is {n}.\n\n```\n"), &files).replace("\n\nHere", "\n```\nHere"),
        ),
        ("nothing", under(|_| String::new(), &files)),
    ];
    for (form, text) in forms {
        for text in [
            text.clone(),
            text.replace('\n', "\r\n"),
            quoted(&text),
            quoted(&quoted(&text)),
        ] {
            let snapshot = one(&text);
            assert_eq!(
                snapshot.files.len(),
                kinds.len(),
                "{form}: {:?}",
                names(&snapshot)
            );
            for (name, content) in &files {
                assert_eq!(&file(&snapshot, name), content, "{form}: {name}");
            }
        }
    }
}

fn quoted(text: &str) -> String {
    text.lines().map(|l| format!("> {l}\n")).collect()
}

#[test]
fn readings_that_begin_again_are_snapshots_in_order() {
    let read = |n: u64| {
        format!("Node 0, zone      DMA      {n}      2 \nNode 0, zone   Normal     10      {n} \n")
    };
    let watch: String = (0..3)
        .map(|n| format!("Every 2.0s: cat /proc/buddyinfo   Mon\n\n{}\n", read(n)))
        .collect();
    let bare: String = (0..3).map(read).collect();
    for text in [watch, bare] {
        let all = pasted(&text);
        assert_eq!(all.len(), 3);
        for (n, snapshot) in all.iter().enumerate() {
            let info = BuddyInfo::parse(snapshot.file("buddyinfo").unwrap()).unwrap();
            assert_eq!((info.zones[0].free[0], info.zones.len()), (n as u64, 2));
        }
    }
    let ptype = text_of("numa-pagetypeinfo/pagetypeinfo");
    let all = pasted(&format!("{ptype}{ptype}"));
    assert_eq!(all.len(), 2, "sections of nodes are of one reading");
    for snapshot in &all {
        assert_eq!(file(snapshot, "pagetypeinfo"), ptype);
    }
    let zones = text_of("kernels/5.4-2node/zoneinfo");
    assert_eq!(pasted(&format!("{zones}{zones}")).len(), 2);
}

#[test]
fn the_release_and_the_sysctls_come_from_their_commands() {
    let text = "$ uname -a\nLinux node1 5.4.0-97-generic #110-Ubuntu SMP x86_64 GNU/Linux\n\
                $ sysctl -a\nkernel.pid_max = 4194304\nvm.min_free_kbytes = 67584\nvm.swappiness = 60\n\
                $ cat /proc/buddyinfo\nNode 0, zone   Normal      1      2 \n";
    let snapshot = one(text);
    assert!(file(&snapshot, "version").starts_with("Linux version 5.4.0-97-generic "));
    assert_eq!(
        file(&snapshot, "sysctl-vm"),
        "vm.min_free_kbytes = 67584\nvm.swappiness = 60\n"
    );
    let short =
        one("# uname -r\n3.10.0-1160.el7.x86_64\n# cat /proc/buddyinfo\nNode 0, zone Normal 1 2\n");
    assert!(file(&short, "version").starts_with("Linux version 3.10.0-1160.el7.x86_64 "));
    let whole = one("Linux version 4.9.56 (x) #53\n");
    assert_eq!(file(&whole, "version"), "Linux version 4.9.56 (x) #53\n");
}

#[test]
fn a_file_that_could_not_be_read_costs_only_itself() {
    let text = "$ cat /proc/buddyinfo\nNode 0, zone   Normal      1      2 \n\
                $ cat /proc/pagetypeinfo\ncat: /proc/pagetypeinfo: Permission denied\n";
    let snapshot = one(text);
    assert!(BuddyInfo::parse(snapshot.file("buddyinfo").unwrap()).is_ok());
    assert!(PageTypeInfo::parse(snapshot.file("pagetypeinfo").unwrap()).is_err());
    let ptype = text_of("numa-pagetypeinfo/pagetypeinfo");
    let again = one(&format!("{text}$ sudo cat /proc/pagetypeinfo\n{ptype}"));
    assert_eq!(file(&again, "pagetypeinfo"), ptype);
    let all = snapshots::read(&inputs().join("one-bad-file")).unwrap();
    assert_eq!(names(&all[0]), ["buddyinfo", "pagetypeinfo"]);
}

#[test]
fn rows_that_a_mailer_wrapped_are_whole_again() {
    let text = "Node 0, zone   Normal  16792  18297  16358  12665   8591   6357   4021   1957\n\
                725    413   5536\n\
                Node 1, zone   Normal      1      2      3      4      5      6      7      8\n\
                9     10     11\n";
    let info = BuddyInfo::parse(one(text).file("buddyinfo").unwrap()).unwrap();
    assert_eq!(info.zones[0].free[8..], [725, 413, 5536]);
    assert_eq!(info.zones[1].free, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
}

#[test]
fn a_text_that_is_cut_off_is_cut_in_the_file_where_it_ends() {
    let text = "$ cat /proc/vmstat\nnr_free_pages 77\n$ cat /proc/buddyinfo\n\
                Node 0, zone      DMA      1      2      3 \nNode 0, zone   Nor";
    let snapshot = one(text);
    let info = BuddyInfo::parse(snapshot.file("buddyinfo").unwrap()).unwrap();
    assert!(info.notes.cut);
    assert_eq!(info.zones.len(), 1);
    assert_eq!(names(&snapshot), ["buddyinfo", "vmstat"]);
}

#[test]
fn indexes_are_told_apart_by_their_values() {
    let unusable = "Node 0, zone   Normal 0.000 0.058 1.000 \n";
    let extfrag = "Node 0, zone   Normal -1.000 -1.000  0.913 \n";
    assert_eq!(names(&one(unusable)), ["unusable_index"]);
    assert_eq!(names(&one(extfrag)), ["extfrag_index"]);
    let named =
        one("# cat /sys/kernel/debug/extfrag/extfrag_index\nNode 0, zone   Normal 0.000 0.058 \n");
    let index = ExtfragIndex::parse(named.file("extfrag_index").unwrap()).unwrap();
    assert_eq!(index.zones[0].thousandths, [0, 58]);
}

#[test]
fn tables_of_other_programs_become_the_files_that_they_stand_for() {
    let tool = "Name                   Objects Objsize           Space Slabs/Part/Cpu  O/S O %Fr %Ef Flg\n\
                dentry                   84210     192           16.4M      3991/12/18   21 0   0  98 a\n\
                kmalloc-4k                 731    4096            3.1M         80/6/14    8 3   6  94\n";
    let info = SlabInfo::parse(one(tool).file("slabinfo").unwrap()).unwrap();
    let cache = info.cache("kmalloc-4k").unwrap();
    assert_eq!(
        (
            cache.active_objs,
            cache.num_slabs,
            cache.num_objs,
            cache.pagesperslab
        ),
        (731, 94, 752, 8)
    );
    let crash = "crash> kmem -f\nNODE\n  0\n\
                 ZONE  NAME        SIZE    FREE      MEM_MAP       START_PADDR  START_MAPNR\n\
                 \x20 0   DMA         4095    3976  ffffea0000000040      1000            1\n\
                 AREA    SIZE  FREE_AREA_STRUCT  BLOCKS  PAGES\n\
                 \x20 0       4k  ffff88043ffd8068       2      2\n\
                 \x20 1       8k  ffff88043ffd80d0       1      2\n\
                 ZONE  NAME        SIZE    FREE      MEM_MAP       START_PADDR  START_MAPNR\n\
                 \x20 1   DMA32    1044480  606010  ffffea0000040000     1000000         4096\n\
                 AREA    SIZE  FREE_AREA_STRUCT  BLOCKS  PAGES\n\
                 \x20 0       4k  ffff88043ffd8768      78     78\n";
    let info = BuddyInfo::parse(one(crash).file("buddyinfo").unwrap()).unwrap();
    assert_eq!(info.zone(0, "DMA").unwrap().free, [2, 1]);
    assert_eq!(info.zone(0, "DMA32").unwrap().free, [78]);
    let e = snapshots::read_bytes("x", b"Name Objects Objsize Space\nnothing here\n").unwrap_err();
    assert!(e.to_string().contains("slabinfo"), "{e}");
}

/// The files of a sosreport below a leading directory, and some of the others that it holds.
fn sosreport() -> Vec<(String, Vec<u8>)> {
    let at = "sosreport-node1-2026-11-25-abc";
    let mut files = vec![];
    for path in [
        "proc/buddyinfo",
        "proc/vmstat",
        "proc/zoneinfo",
        "uname",
        "sos_commands/kernel/uname_-a",
        "sos_commands/kernel/sysctl_-a",
    ] {
        files.push((
            format!("{at}/{path}"),
            fs::read(inputs().join("sosreport").join(path)).unwrap(),
        ));
    }
    for (path, text) in [
        ("uptime", " 12:00:01 up 3 days,  2:11,  1 user\n"),
        ("proc/uptime", ""),
        (
            "sys/devices/system/node/node0/meminfo",
            "Node 0 MemTotal: 5 kB\n",
        ),
        ("sys/devices/system/node/node0/vmstat", "nr_free_pages 1\n"),
        ("sys/module/x/version", "1.2\n"),
        (
            "sys/kernel/mm/transparent_hugepage/defrag",
            "always [madvise] never\n",
        ),
        (
            "sys/kernel/debug/extfrag/unusable_index",
            "Node 0, zone      DMA 0.000 0.058 \n",
        ),
        ("proc/sys/vm/min_free_kbytes", "67584\n"),
        (
            "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            "5\n",
        ),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/demote", "no\n"),
        (
            "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
            "3\n",
        ),
        ("sys/kernel/mm/lru_gen/enabled", "0x0007\n"),
        ("sys/kernel/mm/ksm/run", "0\n"),
        ("sys/module/damon_reclaim/parameters/enabled", "N\n"),
        ("sys/module/other/parameters/enabled", "N\n"),
    ] {
        files.push((format!("{at}/{path}"), text.as_bytes().to_vec()));
    }
    files
}

fn tar_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(vec![]);
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, &content[..]).unwrap();
    }
    tar.into_inner().unwrap()
}

fn assert_is_sosreport(all: &[Snapshot], what: &str) {
    assert_eq!(
        all.len(),
        1,
        "{what}: {:?}",
        all.iter().map(|s| &s.name).collect::<Vec<_>>()
    );
    let mut found = names(&all[0]);
    found.sort_unstable();
    // The amounts are those of its node: it has no meminfo of its own.
    let wanted = [
        "buddyinfo",
        "meminfo",
        "node0/meminfo",
        "sys/vm/min_free_kbytes",
        "sysctl-vm",
        "sysfs/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
        "sysfs/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "sysfs/kernel/mm/ksm/run",
        "sysfs/kernel/mm/lru_gen/enabled",
        "sysfs/module/damon_reclaim/parameters/enabled",
        "thp/defrag",
        "unusable_index",
        "version",
        "vmstat",
        "zoneinfo",
    ];
    assert_eq!(found, wanted, "{what}");
    assert!(
        file(&all[0], "version").starts_with("Linux version 5.4.0-97-generic"),
        "{what}"
    );
    assert!(
        file(&all[0], "sysctl-vm").contains("vm.min_free_kbytes = 67584"),
        "{what}"
    );
    let zones = ZoneInfo::parse(all[0].file("zoneinfo").unwrap()).unwrap();
    assert_eq!(zones.zone(0, "Normal").unwrap().free, 18491);
    let vmstat = VmStat::parse(all[0].file("vmstat").unwrap()).unwrap();
    assert_eq!(
        (
            vmstat.get("compact_stall"),
            vmstat.get("thp_fault_fallback")
        ),
        (Some(1038), Some(387))
    );
}

#[test]
fn a_sosreport_is_one_snapshot_as_a_tree_and_as_an_archive() {
    let files = sosreport();
    let directory = std::env::temp_dir().join(format!("unfrag-sos-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    for (path, content) in &files {
        let path = directory.join("cases").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    assert_is_sosreport(
        &snapshots::read(&directory.join("cases")).unwrap(),
        "above the root",
    );
    let root = directory.join("cases/sosreport-node1-2026-11-25-abc");
    assert_is_sosreport(&snapshots::read(&root).unwrap(), "the root");

    let tar = tar_of(&files);
    let mut xz = lzma_rust2::XzWriter::new(vec![], lzma_rust2::XzOptions::with_preset(1)).unwrap();
    xz.write_all(&tar).unwrap();
    let xz = xz.finish().unwrap();
    let mut bz2 = bzip2::write::BzEncoder::new(vec![], bzip2::Compression::fast());
    bz2.write_all(&tar).unwrap();
    let bz2 = bz2.finish().unwrap();
    let zstd = zstd::encode_all(&tar[..], 1).unwrap();
    for (name, packed) in [
        ("s.tar", &tar),
        ("s.tar.xz", &xz),
        ("s.tar.bz2", &bz2),
        ("s.tar.zst", &zstd),
        ("download", &xz),
    ] {
        let path = directory.join(name);
        fs::write(&path, packed).unwrap();
        assert_is_sosreport(&snapshots::read(&path).unwrap(), name);
        assert_is_sosreport(
            &snapshots::read_bytes("standard input", packed).unwrap(),
            name,
        );
        fs::write(&path, &packed[..packed.len() / 2]).unwrap();
        let e = snapshots::read(&path).unwrap_err().to_string();
        assert!(e.contains("cut off") && e.contains(name), "{e}");
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_reports_hosts_are_a_snapshot_each() {
    let row = b"Node 0, zone   Normal      1      2 \n".to_vec();
    let files: Vec<_> = ["worker-0", "worker-1"]
        .iter()
        .map(|host| {
            (
                format!("must-gather/quay/nodes/{host}/proc/buddyinfo"),
                row.clone(),
            )
        })
        .collect();
    let all = snapshots::read_bytes("m.tar", &tar_of(&files)).unwrap();
    let found: Vec<_> = all.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(found, ["worker-0", "worker-1"]);
}

#[test]
fn files_with_longer_names_are_taken_by_their_content() {
    let files = [
        (
            "a/buddyinfo.txt",
            "$ cat /proc/buddyinfo\nNode 0, zone   Normal      1      2 \n",
        ),
        (
            "a/uname-a",
            "Linux h 6.1.0-9-amd64 #1 SMP x86_64 GNU/Linux\n",
        ),
        ("a/my-vmstat", "procs ---memory---\n r b swpd\n"),
    ];
    let files: Vec<_> = files
        .iter()
        .map(|(p, t)| ((*p).to_owned(), t.as_bytes().to_vec()))
        .collect();
    let all = snapshots::read_bytes("x.tar", &tar_of(&files)).unwrap();
    assert_eq!(names(&all[0]), ["buddyinfo", "version"]);
    assert_eq!(
        file(&all[0], "buddyinfo"),
        "Node 0, zone   Normal      1      2 \n"
    );
}

#[test]
fn prose_is_no_snapshot() {
    for text in [
        "",
        "hello\n",
        "Items: 5\nTotal: 7\n",
        "Node failure on web3\n",
        "a 1\nb 2\n",
    ] {
        let e = snapshots::read_bytes("notes.txt", text.as_bytes()).unwrap_err();
        assert!(e.to_string().contains("notes.txt"), "{e}");
    }
}

#[test]
fn damaged_text_never_panics_and_splits_the_same_again() {
    let mut random = Random::seeded();
    let text: String = ["buddyinfo", "pagetypeinfo", "zoneinfo", "unusable_index"]
        .iter()
        .map(|k| format!("$ cat /proc/{k}\n{}", fixture(&format!("procfs/{k}"))))
        .collect();
    for _ in 0..2000 {
        let damaged = random.damage(text.as_bytes());
        if let Ok(all) = snapshots::read_bytes("x", &damaged) {
            for file in all.iter().flat_map(|s| &s.files) {
                let _ = crate::common::echo(&file.name, &file.content.bytes());
            }
        }
    }
}

/// A reading ends where the next one begins, with prompts or without, whichever file comes first.
#[test]
fn of_two_files_in_one_text_each_gets_its_own_lines() {
    let kinds = [
        "buddyinfo",
        "pagetypeinfo",
        "zoneinfo",
        "vmstat",
        "meminfo",
        "slabinfo",
    ];
    let texts = kinds.map(|kind| (kind, fixture(&format!("procfs/{kind}"))));
    let setting = (
        "sysctl-vm",
        "/proc/sys/vm/min_free_kbytes:67584\n".to_owned(),
    );
    let all: Vec<(&str, String)> = texts.into_iter().chain([setting]).collect();
    for (first, before) in &all {
        for (second, after) in all.iter().filter(|(kind, _)| kind != first) {
            for (head, between) in [
                ("", ""),
                ("$ cat /proc/x\n", "\n$ cat /proc/y\n"),
                ("", "\n> quoted\n\n"),
            ] {
                let both = one(&format!("{head}{before}{between}{after}"));
                for (kind, alone) in [(first, before), (second, after)] {
                    let alone = file(&one(alone), kind);
                    assert_eq!(
                        file(&both, kind).trim_end(),
                        alone.trim_end(),
                        "{first}, {second}: {between:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn settings_are_read_as_cat_head_and_grep_print_them() {
    let s = one(
        "# cat /proc/sys/vm/min_free_kbytes\n164231\n\n# cat /proc/sys/vm/{watermark_scale_factor,lowmem_reserve_ratio}\n10\n256 256 32\n\
         $ head /sys/kernel/mm/transparent_hugepage/*\n==> /sys/kernel/mm/transparent_hugepage/defrag <==\nalways defer [madvise] never\n\
         $ grep . /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/use_zero_page\n\
         /sys/kernel/mm/transparent_hugepage/enabled:[always] madvise never\n\
         /sys/kernel/mm/transparent_hugepage/use_zero_page:1\n",
    );
    assert_eq!(
        file(&s, "sysctl-vm"),
        "vm.min_free_kbytes = 164231\nvm.watermark_scale_factor = 10\nvm.lowmem_reserve_ratio = 256 256 32\n"
    );
    assert_eq!(file(&s, "thp/defrag"), "always defer [madvise] never\n");
    assert_eq!(file(&s, "thp/enabled"), "[always] madvise never\n");
    // A value that has not the form of the setting is none: the command failed, or something else was printed.
    let none = pasted("$ cat /proc/sys/vm/min_free_kbytes\ncat: no such file\n7\nMemFree: 4 kB\n");
    assert!(none.iter().all(|s| s.file("sysctl-vm").is_none()));
}

#[test]
fn tables_of_other_tools_are_read_as_the_files_they_were_made_of() {
    let top = one(
        " Active / Total Objects (% used)    : 734 / 740 (99.9%)\n\n  OBJS ACTIVE  USE OBJ SIZE  SLABS OBJ/SLAB CACHE SIZE NAME\n\
         6400   6300  98%    0.06K    100       64       400K ebitmap_node\n  69 36 52%    2.00K   4       16    128K kmalloc-2048\n",
    );
    let slabs = SlabInfo::parse(top.file("slabinfo").unwrap()).unwrap();
    let c = slabs.cache("ebitmap_node").unwrap();
    assert_eq!(
        (c.active_objs, c.num_slabs, c.pagesperslab, c.objsize),
        (6300, 100, 1, 64)
    );
    assert_eq!(slabs.cache("kmalloc-2048").unwrap().pagesperslab, 8);
    let buddy = |text: &str| {
        let info = BuddyInfo::parse(one(text).file("buddyinfo").unwrap()).unwrap();
        info.zones
            .into_iter()
            .map(|z| (z.node, z.zone, z.free))
            .collect::<Vec<_>>()
    };
    let normal = |node, free: &[u64]| (node, "Normal".to_owned(), free.to_vec());
    let drgn = "Node ID  Zone     Order 0        1        2        3        4        5        6\nNode 1   Normal   7 6 5 4 3 2 1\n";
    assert_eq!(buddy(drgn), [normal(1, &[7, 6, 5, 4, 3, 2, 1])]);
    let yaml = "memory:\n  nodes:\n    1:\n      zones:\n        Normal:\n          1: 5\n          0: 9\n";
    assert_eq!(buddy(yaml), [normal(1, &[9, 5])]);
    let metrics = "# TYPE node_buddyinfo_blocks gauge\nnode_buddyinfo_blocks{node=\"0\",size=\"0\",zone=\"Normal\"} 3\n\
                   node_buddyinfo_blocks{node=\"0\",size=\"1\",zone=\"Normal\"} 1.2e+01\n";
    assert_eq!(buddy(metrics), [normal(0, &[3, 12])]);
    let row = "Count: 40 45 34 34 31 27 22 16 6 0 0\n";
    assert_eq!(buddy(row)[0].2, [40, 45, 34, 34, 31, 27, 22, 16, 6, 0, 0]);
    // An order that is missing is not one with nothing free: what follows is not known, and no kernel has so many.
    for order in ["2".to_owned(), "24".to_owned(), usize::MAX.to_string()] {
        let gap = yaml.replace("1: 5", &format!("{order}: 5"));
        let info = BuddyInfo::parse(one(&gap).file("buddyinfo").unwrap()).unwrap();
        assert_eq!(
            (&info.zones[0].free[..], info.zones[0].goes_on),
            (&[9][..], true)
        );
    }
}

#[test]
fn slab_caches_are_read_without_their_heading_and_with_times_of_the_kernel() {
    let row = "RAWv6                 18     18    864   18    4 : tunables    0    0    0 : slabdata      1      1      0\n";
    for text in [row.to_owned(), format!("[  178.523854] {row}")] {
        assert_eq!(file(&one(&text), "slabinfo"), row);
    }
    assert_eq!(pasted(&format!("{row}later:\n{row}")).len(), 2);
}

#[test]
fn directories_of_nodes_are_one_host() {
    let dir = tempfile::tempdir().unwrap();
    for (node, free) in [(0, 100), (1, 23)] {
        let inner = dir
            .path()
            .join(format!("sys/devices/system/node/node{node}"));
        fs::create_dir_all(&inner).unwrap();
        fs::write(
            inner.join("meminfo"),
            format!("Node {node} MemFree:  {free} kB\nNode {node} HugePages_Total: 1\n"),
        )
        .unwrap();
        fs::write(inner.join("vmstat"), format!("nr_free_pages {free}\n")).unwrap();
    }
    let all = snapshots::read(dir.path()).unwrap();
    assert_eq!(all.len(), 1);
    assert!(
        file(&all[0], "meminfo").contains("123 kB"),
        "{}",
        file(&all[0], "meminfo")
    );
    assert_eq!(file(&all[0], "vmstat"), "nr_free_pages 123\n");
}
