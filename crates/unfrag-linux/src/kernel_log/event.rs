//! Messages of one line that say that memory was short, or that something waits for it. `spec: K.5`
//!
//! Invariant: a message is known by fixed phrases; its numbers are those that stand behind fixed words, and one that is
//! not there is not known.

use super::fields;
use super::phrases::searcher;
use super::report::Stamp;
use aho_corasick::AhoCorasick;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What such a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum About {
    /// The OOM killer ended a task.
    Killed,
    /// The OOM killer found no task that it may end.
    NoVictim,
    /// The OOM killer's task did not give its memory back.
    NotReaped,
    /// The pool of huge pages did not get all that it should.
    HugePool,
    /// The bounce buffer of devices is full.
    Bounce,
    /// The pool for atomic DMA is too small.
    DmaPool,
    /// The allocator of per-CPU memory had no room.
    PerCpu,
    /// A range of a contiguous area had busy pages.
    RangeBusy,
    /// A contiguous area could not be set aside at boot.
    AreaRefused,
    /// Memory for a crash kernel could not be set aside.
    CrashKernel,
    /// A thread that frees or collects memory waits.
    Waits,
    /// A request for address space was more than overcommit allows.
    Overcommit,
    /// TCP is at its limit of memory.
    Tcp,
    /// A driver or file system was refused memory.
    Refused,
}

/// A row of the catalogue: a message is of it if it holds one of the phrases of each list.
struct Row {
    about: About,
    phrases: &'static [&'static [&'static str]],
    /// Names of numbers, and the words that they stand behind.
    numbers: &'static [(&'static str, &'static str)],
}

const ROWS: &[Row] = &[
    Row {
        about: About::NoVictim,
        phrases: &[&[
            "Out of memory and no killable processes",
            "System is deadlocked on memory",
            "compulsory panic_on_oom",
        ]],
        numbers: &[],
    },
    Row {
        about: About::NotReaped,
        phrases: &[&["oom_reaper: unable to reap"]],
        numbers: &[("pid", "pid:")],
    },
    Row {
        about: About::Killed,
        phrases: &[&["Killed process ", "Kill process ", "killing process "]],
        numbers: &[
            ("pid", "rocess "),
            ("total-vm", "total-vm:"),
            ("anon-rss", "anon-rss:"),
            ("file-rss", "file-rss:"),
            ("shmem-rss", "shmem-rss:"),
        ],
    },
    Row {
        about: About::HugePool,
        phrases: &[&["HugeTLB: allocating "], &["failed"]],
        numbers: &[("wanted", "allocating "), ("got", "nly allocated ")],
    },
    Row {
        about: About::Bounce,
        phrases: &[&["swiotlb buffer is full", "Out of SW-IOMMU space"]],
        numbers: &[
            ("bytes", "sz: "),
            ("bytes", "space for "),
            ("slots", "total "),
            ("used", "used "),
        ],
    },
    Row {
        about: About::DmaPool,
        phrases: &[&[
            "atomic DMA coherent pool is too small",
            "atomic allocation, GFP",
            "pool for atomic allocation",
            "Failed to get suitable pool for",
        ]],
        numbers: &[],
    },
    Row {
        about: About::PerCpu,
        phrases: &[&["percpu: allocation failed"]],
        numbers: &[
            ("bytes", "size="),
            ("align", "align="),
            ("atomic", "atomic="),
        ],
    },
    Row {
        about: About::RangeBusy,
        phrases: &[&["alloc_contig_range"], &["PFNs busy", "pfns busy"]],
        numbers: &[],
    },
    Row {
        about: About::AreaRefused,
        phrases: &[&[
            "cma: Failed to reserve",
            "cma: CMA: failed to reserve",
            "hugetlb_cma: reservation failed",
        ]],
        numbers: &[("mib", "reserve ")],
    },
    Row {
        about: About::CrashKernel,
        phrases: &[&[
            "crashkernel reservation failed",
            "crashkernel: memory value expected",
            "cannot allocate crashkernel",
        ]],
        numbers: &[],
    },
    Row {
        about: About::Waits,
        phrases: &[
            &[
                "task khugepaged",
                "task kcompactd",
                "task kswapd",
                "task ksmd",
                "task oom_reaper",
            ],
            &["blocked for more than", "stuck for", "hung"],
        ],
        numbers: &[("seconds", "more than ")],
    },
    Row {
        about: About::Overcommit,
        phrases: &[&["not enough memory for the allocation"]],
        numbers: &[("pid", "pid: "), ("bytes", "bytes: ")],
    },
    Row {
        about: About::Tcp,
        phrases: &[&["TCP: out of memory"]],
        numbers: &[],
    },
    Row {
        about: About::Refused,
        phrases: &[&[
            "err -12",
            "err=-12",
            "err: -12",
            "err:-12",
            "error -12",
            "error=-12",
            "error: -12",
            "errno -12",
            "errno=-12",
            "error code -12",
            "ret -12",
            "ret=-12",
            "ret: -12",
            "ret = -12",
            "rc -12",
            "rc=-12",
            "rc: -12",
            "status -12",
            "status=-12",
            "failed: -12",
            "failed -12",
            "failed with -12",
            "failed (-12)",
            "(-12)",
            "returned -12",
            "returns -12",
            "with -12",
            "code -12",
            "ENOMEM",
        ]],
        numbers: &[],
    },
];

/// Words of which one stands in every such message that holds none of a report's words.
pub const WORDS: [&str; 22] = [
    "killable processes",
    "deadlocked on memory",
    "panic_on_oom",
    "unable to reap",
    "HugeTLB: alloc",
    "swiotlb buffer",
    "SW-IOMMU space",
    "coherent pool",
    "suitable pool",
    "PFNs busy",
    "pfns busy",
    "ailed to reserve",
    "reservation failed",
    "crashkernel",
    "blocked for more",
    "stuck for",
    "TCP: out of mem",
    "ENOMEM",
    " -12",
    "=-12",
    ":-12",
    "(-12)",
];

/// A message of one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What it is about.
    pub about: About,
    /// Its line, from 1.
    pub line: u64,
    /// When.
    pub time: Option<Stamp>,
    /// Its text.
    pub text: String,
    /// The task, device or driver that it names.
    pub name: Option<String>,
    /// Its numbers, by their names.
    pub numbers: BTreeMap<&'static str, u64>,
    /// Whether it names the limit of a control group.
    pub is_cgroup: bool,
}

/// Bytes of a text that are kept.
const MOST_TEXT: usize = 400;

/// What a message states; `None` if it is none of the catalogue's.
pub fn event(text: &str, line: u64, time: Option<Stamp>) -> Option<Event> {
    let text = text.trim();
    let row = row_of(text)?;
    let mut numbers = BTreeMap::new();
    for (name, word) in row.numbers {
        if let Some(n) = fields::after(text, word) {
            numbers.entry(*name).or_insert(n);
        }
    }
    let name = match row.about {
        About::Killed => text
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'))
            .map(|(name, _)| name.to_owned()),
        About::Waits => fields::task(text.split_once("task ")?.1, " blocked"),
        About::Overcommit => text
            .split_once("comm: ")
            .and_then(|(_, rest)| rest.split(',').next())
            .map(str::to_owned),
        About::Bounce | About::Refused => text.split_once(": ").map(|(name, _)| name.to_owned()),
        _ => None,
    };
    // What these say without their number may be said by anybody.
    let needed = match row.about {
        About::Killed => "pid",
        About::HugePool => "wanted",
        _ => "",
    };
    if !needed.is_empty() && !numbers.contains_key(needed) {
        return None;
    }
    let end = (0..=MOST_TEXT.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))?;
    Some(Event {
        about: row.about,
        line,
        time,
        text: text[..end].to_owned(),
        name: name.filter(|n| !n.is_empty() && n.len() <= 64),
        numbers,
        is_cgroup: text.contains("emory cgroup"),
    })
}

/// Finds any phrase of the catalogue: most lines have none, and are looked at once.
static PHRASES: LazyLock<AhoCorasick> =
    LazyLock::new(|| searcher(ROWS.iter().flat_map(|r| r.phrases[0])));

fn row_of(text: &str) -> Option<&'static Row> {
    if !PHRASES.is_match(text) {
        return None;
    }
    let has = |phrase: &&str| {
        text.match_indices(*phrase).any(|(at, _)| {
            // `-120` is another number.
            !phrase.ends_with("12")
                || !text[at + phrase.len()..].starts_with(|c: char| c.is_ascii_digit())
        })
    };
    ROWS.iter()
        .find(|row| row.phrases.iter().all(|any| any.iter().any(has)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: K.5`
    #[test]
    fn messages_are_known_with_their_numbers() {
        for (text, about, name, numbers) in [
            (
                "Out of memory: Killed process 1234 (java) total-vm:8123456kB, anon-rss:7654321kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:16384kB oom_score_adj:0",
                About::Killed,
                Some("java"),
                &[
                    ("anon-rss", 7_654_321),
                    ("file-rss", 0),
                    ("pid", 1234),
                    ("shmem-rss", 0),
                    ("total-vm", 8_123_456),
                ][..],
            ),
            (
                "HugeTLB: allocating 4096 of page size 2.00 MiB failed.  Only allocated 3738 hugepages.",
                About::HugePool,
                None,
                &[("got", 3738), ("wanted", 4096)],
            ),
            (
                "nvme 0000:02:00.0: swiotlb buffer is full (sz: 262144 bytes), total 32768 (slots), used 32700 (slots)",
                About::Bounce,
                Some("nvme 0000:02:00.0"),
                &[("bytes", 262_144), ("slots", 32_768), ("used", 32_700)],
            ),
            (
                "percpu: allocation failed, size=2048 align=16 atomic=1, atomic alloc failed, no space left",
                About::PerCpu,
                None,
                &[("align", 16), ("atomic", 1), ("bytes", 2048)],
            ),
            (
                "INFO: task khugepaged:77 blocked for more than 122 seconds.",
                About::Waits,
                Some("khugepaged:77"),
                &[("seconds", 122)],
            ),
            (
                "mlx5_core 0000:81:00.0: mlx5_cmd_exec: command failed, err -12",
                About::Refused,
                Some("mlx5_core 0000:81:00.0"),
                &[],
            ),
            (
                "alloc_contig_range: [bc900, bd100) PFNs busy",
                About::RangeBusy,
                None,
                &[],
            ),
            (
                "__vm_enough_memory: pid: 9, comm: qemu, bytes: 4096 not enough memory for the allocation",
                About::Overcommit,
                Some("qemu"),
                &[("bytes", 4096), ("pid", 9)],
            ),
        ] {
            let e = event(text, 1, None).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((e.about, e.name.as_deref()), (about, name), "{text}");
            assert_eq!(e.numbers, numbers.iter().copied().collect(), "{text}");
        }
        for text in [
            "x: err -120",
            "INFO: task bash:7 blocked for more than 122 seconds.",
            "HugeTLB: registered 2.00 MiB page size",
            "usb 1-1: new high-speed USB device",
        ] {
            assert_eq!(event(text, 1, None), None, "{text}");
        }
    }
}
