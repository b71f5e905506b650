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
                ("fences", format!("```\n{a}```\n\n```\n{b}```\n")),
            ];
            for (form, text) in forms {
                if are_parts && ["nothing", "times of the kernel"].contains(&form) {
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
