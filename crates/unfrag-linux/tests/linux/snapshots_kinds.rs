//! Every kind of text that is read, pasted before and after every other: what two give together is what they give apart.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use unfrag_linux::procfs::{BuddyInfo, MemInfo, PageTypeInfo, SlabInfo, VmStat, ZoneInfo};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::snapshots;

fn fixture(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::read_to_string(root.join(path)).unwrap()
}

fn pasted(text: &str) -> Vec<Snapshot> {
    snapshots::read_bytes("paste", text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn one(text: &str) -> Snapshot {
    let mut all = pasted(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn file(snapshot: &Snapshot, name: &str) -> String {
    let names: Vec<_> = snapshot.files.iter().map(|f| &f.name).collect();
    let content = snapshot
        .file(name)
        .unwrap_or_else(|| panic!("no {name} in {names:?}"));
    String::from_utf8(content.to_vec()).unwrap()
}

/// All files of a text by name, each with its contents in order. The end of a file that stands alone is kept as it is,
/// so ends do not count.
fn files(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in pasted(text).iter().flat_map(|s| &s.files) {
        let content = String::from_utf8(file.content.bytes().into_owned()).unwrap();
        // Of a row that stood in a table of its own, nothing but the numbers counts.
        all.entry(file.name.clone())
            .or_default()
            .push(content.trim().to_owned());
    }
    all
}

const SLABTOP: &str = " Active / Total Objects (% used)    : 5000 / 6000 (83.3%)
 Active / Total Slabs (% used)      : 300 / 300 (100.0%)
 Active / Total Caches (% used)     : 105 / 129 (81.4%)
 Active / Total Size (% used)       : 1121.33K / 1200.93K (93.5%)
 Minimum / Average / Maximum Object : 0.01K / 0.06K / 8.00K

  OBJS ACTIVE  USE OBJ SIZE  SLABS OBJ/SLAB CACHE SIZE NAME
  6400   6400 100%    0.06K    100       64       400K anon_vma_node
   320    280  87%    2.00K     20       16       640K kmalloc-2048
";

const SLAB_TOOL: &str =
    "Name                   Objects Objsize           Space Slabs/Part/Cpu  O/S O %Fr %Ef Flg
dentry                   84210     192           16.4M      3991/12/18   21 0   0  98 a
kmalloc-4k                 731    4096            3.1M         80/6/14    8 3   6  94
";

const CRASH: &str = "NODE
  0
ZONE  NAME        SIZE    FREE      MEM_MAP       START_PADDR  START_MAPNR
  0   DMA         4095    3976  ffffea0000000040      1000            1
AREA    SIZE  FREE_AREA_STRUCT  BLOCKS  PAGES
  0       4k  ffff88043ffd8068       2      2
  1       8k  ffff88043ffd80d0       1      2
";

const DRGN: &str = "Per-zone buddy allocator's information:
Node ID  Zone     Order 0        1        2        3        4        5        6        7        8        9       10
Node 0   DMA            0        0        0        0        0        0        0        0        1        1        2
Node 0   Normal     15009     3297     1623      524     1914     1305      518      264      102       83    95121
";

const HOTSOS: &str = "  memory:
    nodes:
      1:
        zones:
          Normal:
            8: 0
            7: 0
            6: 0
            5: 0
            4: 1167
            3: 13656
            2: 42644
            1: 143208
            0: 426212
";

const METRICS: &str = "# HELP node_vmstat_compact_fail /proc/vmstat information field compact_fail.
# TYPE node_vmstat_compact_fail untyped
node_vmstat_compact_fail 1.8242e+05
node_vmstat_compact_success 23341
node_memory_MemFree_bytes 8.7240704e+08
node_memory_HugePages_Total 7
";

const NODES: &str = "Node 0 MemTotal:        1030924 kB
Node 0 MemFree:          354088 kB
Node 0 HugePages_Total:     3
Node 1 MemTotal:        1031416 kB
Node 1 MemFree:          557252 kB
Node 1 HugePages_Total:     4
";

const THP: &str =
    "/sys/kernel/mm/transparent_hugepage/defrag:[always] defer defer+madvise madvise never
/sys/kernel/mm/transparent_hugepage/enabled:always [madvise] never
/sys/kernel/mm/transparent_hugepage/khugepaged/defrag:1
/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages:5
";

const SYSCTL: &str = "vm.min_free_kbytes = 67584
vm.watermark_scale_factor = 10
";

/// Kinds of text by name, each as a command prints it, with the command that printed it.
fn kinds() -> Vec<(&'static str, &'static str, String)> {
    let mut all: Vec<(&str, &str, String)> = vec![];
    for (name, path, command) in [
        ("buddyinfo", "procfs/buddyinfo", "cat /proc/buddyinfo"),
        (
            "pagetypeinfo",
            "procfs/pagetypeinfo",
            "sudo cat /proc/pagetypeinfo",
        ),
        ("zoneinfo", "procfs/zoneinfo", "cat /proc/zoneinfo"),
        (
            "zoneinfo 2.6.32",
            "linux-2.6.32/zoneinfo",
            "cat /proc/zoneinfo",
        ),
        ("zoneinfo 6.18", "linux-6.18/zoneinfo", "cat /proc/zoneinfo"),
        ("vmstat", "procfs/vmstat", "cat /proc/vmstat"),
        ("meminfo", "procfs/meminfo", "cat /proc/meminfo"),
        ("slabinfo", "procfs/slabinfo", "sudo cat /proc/slabinfo"),
        (
            "unusable_index",
            "procfs/unusable_index",
            "cat /sys/kernel/debug/extfrag/unusable_index",
        ),
    ] {
        all.push((name, command, fixture(path)));
    }
    let without_heading: String = fixture("procfs/slabinfo")
        .lines()
        .skip(2)
        .map(|l| format!("{l}\n"))
        .collect();
    all.push((
        "slabinfo of grep",
        "grep kmalloc /proc/slabinfo",
        without_heading,
    ));
    let flat: String = fixture("procfs/zoneinfo")
        .lines()
        .map(|l| format!("{}\n", l.trim_start()))
        .collect();
    all.push(("zoneinfo without indentation", "cat /proc/zoneinfo", flat));
    let some = "compact_stall 205761\ncompact_fail 182420\nthp_fault_alloc 20263113\n";
    all.push((
        "vmstat of grep",
        "egrep 'thp|compact' /proc/vmstat",
        some.into(),
    ));
    for (name, command, text) in [
        ("slabtop", "slabtop -o -s c", SLABTOP),
        ("slabinfo tool", "./slabinfo", SLAB_TOOL),
        ("crash", "kmem -f", CRASH),
        ("drgn", "drgn buddyinfo.py", DRGN),
        ("hotsos", "hotsos --full", HOTSOS),
        ("metrics", "curl -s localhost:9100/metrics", METRICS),
        ("nodes", "cat /sys/devices/system/node/node*/meminfo", NODES),
        ("thp", "grep -r . /sys/kernel/mm/transparent_hugepage", THP),
        ("sysctl", "sysctl -a", SYSCTL),
    ] {
        all.push((name, command, text.to_owned()));
    }
    all
}

/// What two texts give together, where each file has its contents in any order of moments.
fn together(a: &str, b: &str) -> BTreeMap<String, Vec<String>> {
    let mut all = files(a);
    for (name, contents) in files(b) {
        all.entry(name).or_default().extend(contents);
    }
    all.values_mut().for_each(|contents| contents.sort());
    all
}

#[test]
fn what_two_kinds_give_together_is_what_they_give_apart() {
    let kinds = kinds();
    for (name_a, command_a, a) in &kinds {
        for (name_b, command_b, b) in &kinds {
            // The zones of another host may be those that this one lacks.
            let are_hosts = [name_a, name_b].iter().all(|n| n.starts_with("zoneinfo"));
            if name_a != name_b && are_hosts {
                continue;
            }
            let apart = together(a, b);
            // Where a part of a file stands directly below another part of it, nothing tells where one ends.
            let file_of = |name: &str| name.split(' ').next().map(str::to_owned);
            let are_parts = name_a != name_b && file_of(name_a) == file_of(name_b);
            let forms = [
                ("prompts", format!("$ {command_a}\n{a}$ {command_b}\n{b}")),
                (
                    "prompts and blanks",
                    format!(
                        "[root@web3 ~]# {command_a}\n{a}\n[root@web3 ~]# {command_b}\n{b}\n[root@web3 ~]# "
                    ),
                ),
                (
                    "a prompt of SUSE",
                    format!("web3:~ # {command_a}\n{a}web3:~ # {command_b}\n{b}"),
                ),
                ("a blank line", format!("{a}\n{b}")),
                ("nothing", format!("{a}{b}")),
                (
                    "prose",
                    format!("{a}\nThat was one, and here is the other:\n\n{b}"),
                ),
                ("quotes of one", format!("{a}\n{}", quoted(b, ">>>> "))),
                ("quotes", quoted(&format!("{a}\n{b}"), "> ")),
                ("times of the kernel", timed(&format!("{a}{b}"))),
                ("times of a log", logged(&format!("{a}{b}"))),
                (
                    "a prompt of a user",
                    format!(
                        "me@web3:/tmp$ {command_a}\n{a}me@web3:/tmp$ {command_b}\n{b}me@web3:/tmp$ exit\n"
                    ),
                ),
                ("fences", format!("```\n{a}```\n\n```\n{b}```\n")),
            ];
            for (form, text) in forms {
                if are_parts && ["nothing", "times of the kernel", "times of a log"].contains(&form)
                {
                    continue;
                }
                // Settings that are stated again have one value; it is the same here.
                let mut found = files(&text);
                found.values_mut().for_each(|contents| contents.sort());
                let mut apart = apart.clone();
                if name_a == name_b
                    || [name_a, name_b]
                        .iter()
                        .all(|n| **n == "thp" || **n == "sysctl")
                {
                    for set in [&mut apart, &mut found] {
                        set.values_mut().for_each(Vec::dedup);
                    }
                }
                if name_a == name_b && *name_a == "sysctl" {
                    continue;
                }
                assert_eq!(found, apart, "{name_a}, then {name_b}, {form}:\n{text}");
            }
        }
    }
}

fn quoted(text: &str, mark: &str) -> String {
    text.lines().map(|l| format!("{mark}{l}\n")).collect()
}

fn timed(text: &str) -> String {
    let line = |(n, l): (usize, &str)| format!("[{:>5}.{:06}] {l}\n", 178, n);
    text.lines().enumerate().map(line).collect()
}

fn logged(text: &str) -> String {
    let line = |l: &str| format!("Jan  2 03:04:05 web3 kernel: {l}\n");
    text.lines().map(line).collect()
}

#[test]
fn a_row_that_a_mailer_broke_anywhere_is_whole_again() {
    let types = fixture("procfs/pagetypeinfo");
    let slabs = fixture("procfs/slabinfo");
    for width in [60, 66, 72, 78, 90] {
        let wrapped =
            |text: &str| -> String { text.lines().flat_map(|l| broken(l, width)).collect() };
        let snapshot = one(&wrapped(&types));
        let read = PageTypeInfo::parse(snapshot.file("pagetypeinfo").unwrap()).unwrap();
        let whole = PageTypeInfo::parse(types.as_bytes()).unwrap();
        assert_eq!(read.free, whole.free, "{width}");
        assert_eq!(read.blocks, whole.blocks, "{width}");
        assert!(
            read.notes.not_understood.is_empty(),
            "{width}: {:?}",
            read.notes.not_understood
        );
        let snapshot = one(&wrapped(&slabs));
        let read = SlabInfo::parse(snapshot.file("slabinfo").unwrap()).unwrap();
        assert_eq!(
            read.caches,
            SlabInfo::parse(slabs.as_bytes()).unwrap().caches,
            "{width}"
        );
    }
}

/// A line broken at blanks, so that no part is longer than `width`, as mailers do.
fn broken(line: &str, width: usize) -> Vec<String> {
    let (mut parts, mut rest) = (vec![], line);
    while rest.len() > width {
        let Some(at) = rest[..width]
            .rfind(' ')
            .filter(|&at| !rest[..at].trim().is_empty())
        else {
            break;
        };
        parts.push(format!("{}\n", &rest[..at]));
        rest = rest[at..].trim_start();
    }
    parts.push(format!("{rest}\n"));
    parts
}

/// A text, and what has to be among the settings that it states, or nothing.
#[test]
fn settings_are_taken_where_they_are_stated_and_nowhere_else() {
    let thp = "transparent_hugepage";
    let with_path = |name: &str, value: &str| format!("/sys/kernel/mm/{thp}/{name}:{value}\n");
    for (text, file_name, value) in [
        (format!("$ cat /sys/kernel/mm/{thp}/enabled\n[always] madvise never\n"), "thp/enabled", Some("[always] madvise never")),
        (format!("web3:~ # cat /sys/kernel/mm/{thp}/{{enabled,defrag}}\nalways [madvise] never\nalways defer [never]\n"), "thp/defrag", Some("always defer [never]")),
        (with_path("khugepaged/max_ptes_none", "511"), "thp/khugepaged/max_ptes_none", Some("511")),
        (with_path("hugepages-64kB/enabled", "always [inherit] madvise never"), "thp/hugepages-64kB/enabled", Some("always [inherit] madvise never")),
        ("# cd /sys/kernel/mm/transparent_hugepage; grep . *\nenabled:always [madvise] never\n".into(), "thp/enabled", Some("always [madvise] never")),
        ("==> /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages <==\n5\n".into(), "sysfs/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", Some("5")),
        ("$ sysctl -n vm.swappiness vm.min_free_kbytes\n60\n67584\n".into(), "sysctl-vm", Some("vm.swappiness = 60\nvm.min_free_kbytes = 67584")),
        ("$ cat /proc/sys/vm/lowmem_reserve_ratio\n256\t256\t32\t0\t0\n".into(), "sysctl-vm", Some("vm.lowmem_reserve_ratio = 256\t256\t32\t0\t0")),
        ("$ cat /proc/sys/vm/foo /proc/sys/vm/swappiness\ncat: /proc/sys/vm/foo: No such file or directory\n60\n".into(), "sysctl-vm", Some("vm.swappiness = 60")),
        // A command that writes prints no value; what follows is another's.
        ("# echo 500000 > /proc/sys/vm/nr_hugepages\n17\n".into(), "sysctl-vm", None),
        ("$ cat /proc/sys/vm/swappiness\nnot a number\n60\n".into(), "sysctl-vm", None),
        ("I set /proc/sys/vm/swappiness yesterday.\nIt was good.\n60\n".into(), "sysctl-vm", None),
        (format!("I know of /sys/kernel/mm/{thp}/enabled: it is fine\n"), "thp/enabled", None),
        (with_path("enabled", ""), "thp/enabled", None),
    ] {
        let found = snapshots::read_bytes("paste", text.as_bytes()).unwrap_or_default();
        let found = found.iter().find_map(|s| s.file(file_name));
        let found = found.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        assert_eq!(found.as_deref().map(str::trim_end), value, "{text}");
    }
}

#[test]
fn metrics_are_the_files_that_they_were_made_of_for_each_host() {
    let text = "# HELP node_buddyinfo_blocks Count of free blocks according to size.
# TYPE node_buddyinfo_blocks gauge
node_buddyinfo_blocks{node=\"0\",size=\"0\",zone=\"Normal\",instance=\"a\"} 4381 1764000000000
node_buddyinfo_blocks{node=\"0\",size=\"1\",zone=\"Normal\",instance=\"a\"} 1.093e+03
node_buddyinfo_blocks{node=\"0\",size=\"0\",zone=\"Normal\",instance=\"b\"} 7
go_goroutines{instance=\"a\"} 8
node_memory_Active_anon_bytes{instance=\"a\"} 4096
node_memory_HugePages_Total{instance=\"a\"} 3
node_vmstat_compact_fail{instance=\"a\"} 5
node_zoneinfo_nr_free_pages{instance=\"a\",node=\"0\",zone=\"Normal\"} 4400
node_zoneinfo_min_pages{instance=\"a\",node=\"0\",zone=\"Normal\"} 100
node_slabinfo_objects{instance=\"a\",slab=\"dentry\"} 42
node_slabinfo_objects_per_slab{instance=\"a\",slab=\"dentry\"} 21
node_slabinfo_pages_per_slab{instance=\"a\",slab=\"dentry\"} 1
node_uname_info{instance=\"a\",release=\"6.1.0-9\"} 1
";
    let hosts = pasted(text);
    assert_eq!(hosts.len(), 2);
    let a = &hosts[0];
    let buddy = BuddyInfo::parse(a.file("buddyinfo").unwrap()).unwrap();
    assert_eq!(buddy.zones[0].free, [4381, 1093]);
    assert!(buddy.zones[0].goes_on, "two orders are not all");
    assert!(
        BuddyInfo::parse(hosts[1].file("buddyinfo").unwrap())
            .unwrap()
            .zones[0]
            .goes_on
    );
    let meminfo = MemInfo::parse(a.file("meminfo").unwrap()).unwrap();
    assert_eq!(
        (meminfo.get("Active(anon)"), meminfo.get("HugePages_Total")),
        (Some(4), Some(3))
    );
    assert_eq!(
        VmStat::parse(a.file("vmstat").unwrap())
            .unwrap()
            .get("compact_fail"),
        Some(5)
    );
    let zones = ZoneInfo::parse(a.file("zoneinfo").unwrap()).unwrap();
    let zone = zones.zone(0, "Normal").unwrap();
    assert_eq!(
        (zone.free, zone.pages("min"), zone.pages("low")),
        (4400, Some(100), None)
    );
    let slabs = SlabInfo::parse(a.file("slabinfo").unwrap()).unwrap();
    assert_eq!(slabs.cache("dentry").unwrap().num_slabs, 2);
    assert!(file(a, "version").starts_with("Linux version 6.1.0-9 "));
}

#[test]
fn a_row_whose_end_was_left_out_says_so_and_is_written_so() {
    let text = "Node 0, zone   Normal      1      2 ...\n";
    let info = BuddyInfo::parse(text.as_bytes()).unwrap();
    assert_eq!(
        (&info.zones[0].free[..], info.zones[0].goes_on),
        (&[1, 2][..], true)
    );
    assert_eq!(info.write(), text);
}

#[test]
fn nodes_are_one_host_however_they_are_pasted() {
    let lists = [
        "==> /sys/devices/system/node/node0/meminfo <==\nNode 0 MemFree: 5 kB\n==> /sys/devices/system/node/node0/vmstat <==\nnr_free_pages 7\n==> /sys/devices/system/node/node1/meminfo <==\nNode 1 MemFree: 6 kB\n==> /sys/devices/system/node/node1/vmstat <==\nnr_free_pages 8\n",
        "/sys/devices/system/node/node0/meminfo:Node 0 MemFree: 5 kB\n/sys/devices/system/node/node1/meminfo:Node 1 MemFree: 6 kB\n/sys/devices/system/node/node0/vmstat:nr_free_pages 7\n/sys/devices/system/node/node1/vmstat:nr_free_pages 8\n",
    ];
    for text in lists {
        let host = one(text);
        assert_eq!(
            MemInfo::parse(host.file("meminfo").unwrap())
                .unwrap()
                .get("MemFree"),
            Some(11)
        );
        assert_eq!(
            VmStat::parse(host.file("vmstat").unwrap())
                .unwrap()
                .get("nr_free_pages"),
            Some(15)
        );
        assert_eq!(
            MemInfo::parse(host.file("node1/meminfo").unwrap())
                .unwrap()
                .get("MemFree"),
            Some(6)
        );
    }
    // What one node does not tell has no sum.
    let host = one("Node 0 MemFree: 5 kB\nNode 0 Slab: 2 kB\nNode 1 MemFree: 6 kB\n");
    assert_eq!(
        MemInfo::parse(host.file("meminfo").unwrap())
            .unwrap()
            .get("Slab"),
        None
    );
}

/// Files that a directory or an archive holds, and why each is not read.
#[test]
fn what_is_not_read_is_named_with_its_reason() {
    let mut tar = tar::Builder::new(vec![]);
    let mut header = |path: &str, kind: tar::EntryType, content: &str| {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, content.as_bytes()).unwrap();
    };
    let row = "Node 0, zone Normal 1 2 3\n";
    header("proc/buddyinfo", tar::EntryType::Regular, row);
    header("proc/vmstat", tar::EntryType::Regular, "");
    header("proc/zoneinfo", tar::EntryType::Symlink, "");
    header(
        "../proc/meminfo",
        tar::EntryType::Regular,
        "MemFree: 5 kB\n",
    );
    header("/proc/pagetypeinfo", tar::EntryType::Regular, row);
    header("../../etc/passwd", tar::EntryType::Regular, "x\n");
    let tar = tar.into_inner().unwrap();
    let read = snapshots::look_at_bytes("x.tar", &tar).unwrap();
    let why = |name: &str| {
        let found = read.skipped.iter().find(|s| s.file.contains(name));
        found.map(|s| s.why.clone()).unwrap_or_default()
    };
    assert_eq!(read.snapshots.len(), 1);
    assert!(why("vmstat").starts_with("empty"));
    assert!(why("zoneinfo").starts_with("a link"));
    assert!(why("meminfo").contains("outside"));
    assert!(why("pagetypeinfo").contains("outside"));
    assert_eq!(read.skipped.len(), 4, "nothing else: {:?}", read.skipped);

    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("buddyinfo"), row).unwrap();
    fs::write(dir.path().join("meminfo"), "").unwrap();
    std::os::unix::fs::symlink("/proc/vmstat", dir.path().join("vmstat")).unwrap();
    let read = snapshots::look(dir.path()).unwrap();
    let skipped: Vec<&str> = read.skipped.iter().map(|s| s.file.as_str()).collect();
    assert_eq!(skipped, ["meminfo", "vmstat"]);
}

/// A directory with one thing in it that is not read, and what is said of it.
#[test]
fn nothing_in_a_directory_is_passed_over_without_a_word() {
    type Make = fn(&Path);
    let row = "Node 0, zone Normal 1 2 3\n";
    let cases: [(&str, Make, &str, &str); 8] = [
        (
            "a link to a directory",
            |d| std::os::unix::fs::symlink("/proc/self", d.join("proc")).unwrap(),
            "proc",
            "a link",
        ),
        (
            "a link to an archive",
            |d| std::os::unix::fs::symlink("/no/such", d.join("sos.tar.gz")).unwrap(),
            "sos.tar.gz",
            "a link",
        ),
        (
            "an archive in a directory",
            |d| {
                fs::create_dir(d.join("in")).unwrap();
                fs::write(d.join("in/more.tar"), "x").unwrap();
            },
            "in/more.tar",
            "an archive inside",
        ),
        (
            "a socket",
            |d| drop(std::os::unix::net::UnixListener::bind(d.join("vmstat")).unwrap()),
            "vmstat",
            "neither a file",
        ),
        (
            "text of something else",
            |d| fs::write(d.join("zoneinfo.txt"), "no zone in it\n").unwrap(),
            "zoneinfo.txt",
            "not the text of one moment",
        ),
        (
            "two moments",
            |d| {
                let row = "Node 0, zone Normal 1 2 3 4 5 6 7 8 9 0 1\n";
                fs::write(d.join("buddyinfo-twice.txt"), row.repeat(2)).unwrap();
            },
            "buddyinfo-twice.txt",
            "there from another file",
        ),
        (
            "the same file again",
            |d| fs::write(d.join("buddyinfo.txt"), "Node 0, zone Normal 1 2 3\n").unwrap(),
            "buddyinfo.txt",
            "there from another file",
        ),
        (
            "empty",
            |d| fs::write(d.join("pagetypeinfo"), "").unwrap(),
            "pagetypeinfo",
            "empty",
        ),
    ];
    for (what, make, file, why) in cases {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("buddyinfo"), row).unwrap();
        make(dir.path());
        let read = snapshots::look(dir.path()).unwrap();
        let told: Vec<_> = read
            .skipped
            .iter()
            .map(|s| (&s.file[..], &s.why[..]))
            .collect();
        assert_eq!(told.len(), 1, "{what}: {told:?}");
        assert!(
            told[0].0 == file && told[0].1.contains(why),
            "{what}: {told:?}"
        );
        assert_eq!(read.snapshots.len(), 1, "{what}");
    }
}

#[test]
fn where_nothing_is_found_the_files_that_are_there_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..9 {
        fs::write(
            dir.path().join(format!("out{n}.txt")),
            "Node 0, zone Normal 1 2\n",
        )
        .unwrap();
    }
    let read = snapshots::look(dir.path()).unwrap();
    assert!(read.snapshots.is_empty());
    let told: Vec<_> = read.skipped.iter().map(|s| &s.file[..]).collect();
    assert_eq!(told.len(), 6, "{told:?}");
    assert_eq!((told[0], told[5]), ("out0.txt", "4 other files"));
    assert!(read.skipped[0].why.contains("give it by itself"));
}
