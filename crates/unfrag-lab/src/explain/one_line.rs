//! Messages of one line that say that memory was short: what each means, what decides, and what to do. `spec: K.5`
//!
//! Invariant: one row for each message; a sentence names a number only if the message has it.

use super::answer::{Advice, Failure, When};
use crate::report::number::{bytes, thousands};
use unfrag_linux::kernel_log::Event;
use unfrag_linux::kernel_log::event::About;

/// A row of the catalogue.
struct Row {
    about: About,
    /// Its name in `--json`.
    kind: &'static str,
    /// What happened, as a headline.
    title: &'static str,
    /// What the message says, from its numbers.
    says: fn(&Event) -> String,
    /// What decides, or does not.
    decides: &'static str,
    /// What to do, a command for it, and what it costs.
    todo: &'static [(&'static str, Option<&'static str>, &'static str)],
}

const ROWS: &[Row] = &[
    Row {
        about: About::Killed,
        kind: "oom-kill",
        title: "the OOM killer ended a task",
        says: killed,
        decides: "Why memory was short is not in this line: it stands in the report before it (invoked oom-killer).",
        todo: &[(
            "find the report before this line",
            Some("journalctl -k | unfrag explain -"),
            "none",
        )],
    },
    Row {
        about: About::NoVictim,
        kind: "oom-no-task",
        title: "the OOM killer found no task that it may end",
        says: |_| {
            "Memory was out, and no task may be killed for it: all are kernel threads, or excluded by oom_score_adj=-1000.".into()
        },
        decides: "The report before this line says what holds the memory.",
        todo: &[(
            "find the report before this line, and exclude fewer tasks (oom_score_adj)",
            Some("journalctl -k | unfrag explain -"),
            "none",
        )],
    },
    Row {
        about: About::NotReaped,
        kind: "oom-not-reaped",
        title: "a killed task did not give its memory back",
        says: |e| {
            format!(
                "The memory of the killed task{} could not be taken back at once; it comes back when the task ends.",
                pid(e)
            )
        },
        decides: "What the task waits for decides: a lock, or storage that does not answer.",
        todo: &[(
            "see what the task waits for",
            Some("echo w > /proc/sysrq-trigger"),
            "some lines in the log",
        )],
    },
    Row {
        about: About::HugePool,
        kind: "hugetlb-pool",
        title: "the pool of huge pages did not get all that it should",
        says: huge_pool,
        decides: "Memory was too fragmented, or too small, when the pool was filled.",
        todo: &[
            (
                "reserve them at boot, when memory is whole (hugepages= on the kernel's command line)",
                None,
                "a restart; the memory serves nothing else",
            ),
            (
                "compact memory, then ask again",
                Some("echo 1 > /proc/sys/vm/compact_memory"),
                "some seconds of one CPU",
            ),
        ],
    },
    Row {
        about: About::Bounce,
        kind: "swiotlb-full",
        title: "the bounce buffer of devices is full",
        says: bounce,
        decides: "No page request failed: the buffer has a fixed size, and what uses it are devices that cannot reach all memory, or guests with encrypted memory.",
        todo: &[
            (
                "a larger buffer: swiotlb=SLOTS on the kernel's command line, in slots of 2 KiB",
                None,
                "memory that serves nothing else, and a restart",
            ),
            (
                "an IOMMU, or a driver with a wider DMA mask, needs no bounce buffer",
                None,
                "depends on the device",
            ),
        ],
    },
    Row {
        about: About::DmaPool,
        kind: "dma-pool",
        title: "the pool for atomic DMA is too small",
        says: |_| {
            "A driver asked in atomic context for memory that a device can reach, and the pool that is kept for this had none.".into()
        },
        decides: "The pool's size decides, not free memory.",
        todo: &[(
            "a larger pool: coherent_pool=SIZE on the kernel's command line",
            None,
            "memory that serves nothing else, and a restart",
        )],
    },
    Row {
        about: About::PerCpu,
        kind: "percpu",
        title: "the allocator of per-CPU memory had no room",
        says: per_cpu,
        decides: "An atomic request cannot make the area larger; one that may sleep fails when memory or addresses for a new chunk are missing.",
        todo: &[(
            "see what holds per-CPU memory, such as control groups that are gone but not freed",
            Some("grep Percpu /proc/meminfo; grep -H nr_dying /sys/fs/cgroup/cgroup.stat"),
            "none",
        )],
    },
    Row {
        about: About::RangeBusy,
        kind: "cma-range-busy",
        title: "a range of contiguous memory had busy pages",
        says: |_| {
            "A page in the range was pinned or in use. CMA and huge pages of a gigabyte try the next range: this is a notice, and harmless by itself.".into()
        },
        decides: "Only a line that says alloc failed, or the caller's own error, tells that the request failed.",
        todo: &[],
    },
    Row {
        about: About::AreaRefused,
        kind: "cma-not-reserved",
        title: "a contiguous area could not be set aside at boot",
        says: |e| {
            match e.numbers.get("mib") {
            Some(mib) => format!("{} MiB in a row were not free where the area may lie when the kernel started.", thousands(*mib)),
            None => "So much memory in a row was not free where the area may lie when the kernel started.".into(),
        }
        },
        decides: "The limits of the area (a DMA mask, a node) and what the firmware keeps decide.",
        todo: &[(
            "a smaller area, or another place: cma=SIZE@START-END",
            None,
            "a restart",
        )],
    },
    Row {
        about: About::CrashKernel,
        kind: "crashkernel",
        title: "memory for a crash kernel was not set aside",
        says: |_| {
            "There is no room of that size where crashkernel= allows it; no crash dump can be taken.".into()
        },
        decides: "The range that crashkernel= names decides, not free memory.",
        todo: &[(
            "a smaller size, or crashkernel=SIZE,high",
            None,
            "a restart",
        )],
    },
    Row {
        about: About::Waits,
        kind: "memory-thread-waits",
        title: "a thread that frees or collects memory waits",
        says: waits,
        decides: "No allocation failed. What it waits for decides: a lock that another task holds, or storage that does not answer.",
        todo: &[(
            "see which tasks wait, and for what",
            Some("echo w > /proc/sysrq-trigger"),
            "some lines in the log",
        )],
    },
    Row {
        about: About::Overcommit,
        kind: "overcommit",
        title: "address space was refused by the limit of overcommit",
        says: overcommit,
        decides: "vm.overcommit_memory and the commit limit decide; free memory does not.",
        todo: &[(
            "compare CommitLimit and Committed_AS; raise vm.overcommit_ratio or add swap, or use less",
            Some("grep -i commit /proc/meminfo"),
            "none",
        )],
    },
    Row {
        about: About::Tcp,
        kind: "tcp-memory",
        title: "TCP is at its limit of memory",
        says: |_| "Sockets hold as much memory as net.ipv4.tcp_mem allows.".into(),
        decides: "That limit decides, not free memory.",
        todo: &[(
            "see how much sockets hold, and who; then raise net.ipv4.tcp_mem",
            Some("cat /proc/net/sockstat"),
            "memory that sockets may take",
        )],
    },
    Row {
        about: About::Refused,
        kind: "enomem",
        title: "a driver or file system was refused memory",
        says: |e| match &e.name {
            Some(name) => format!("{name} got ENOMEM (-12)."),
            None => "A request for memory was answered with ENOMEM (-12).".into(),
        },
        decides: "What was asked for, how much of it, and why it was refused is not in this line; the cause may be a limit or a resource of the device, not memory.",
        todo: &[(
            "look for a failed allocation at the same time",
            Some("journalctl -k | unfrag explain -"),
            "none",
        )],
    },
];

fn row(about: About) -> &'static Row {
    let found = ROWS.iter().find(|r| r.about == about);
    found.expect("each message has a row")
}

fn pid(e: &Event) -> String {
    e.numbers
        .get("pid")
        .map_or(String::new(), |p| format!(" (pid {p})"))
}

fn killed(e: &Event) -> String {
    let who = e.name.as_deref().unwrap_or("A task");
    let held = match e.numbers.get("anon-rss") {
        Some(kib) => format!(
            ", which held {} of anonymous memory",
            bytes(kib.saturating_mul(1024))
        ),
        None => String::new(),
    };
    let limit = match e.is_cgroup {
        true => " The limit of a control group was reached, not the end of the host's memory.",
        false => "",
    };
    format!("{who}{} was killed{held}.{limit}", pid(e))
}

fn huge_pool(e: &Event) -> String {
    let size = e
        .text
        .split_once("page size ")
        .and_then(|(_, rest)| rest.split_once(" failed"));
    let size = size.map_or(String::new(), |(size, _)| format!(" of {size}"));
    match (e.numbers.get("wanted"), e.numbers.get("got")) {
        (Some(wanted), Some(got)) => format!(
            "{} of {} pages{size} were had; {} are missing.",
            thousands(*got),
            thousands(*wanted),
            thousands(wanted.saturating_sub(*got))
        ),
        (Some(wanted), None) => format!(
            "{} pages{size} were asked for, and fewer were had.",
            thousands(*wanted)
        ),
        _ => "Fewer pages were had than asked for.".into(),
    }
}

fn bounce(e: &Event) -> String {
    let who = e
        .name
        .as_deref()
        .map_or(String::new(), |n| format!(" for {n}"));
    let what = e.numbers.get("bytes").map_or("A transfer".to_owned(), |b| {
        format!("A transfer of {}", bytes(*b))
    });
    let full = match (e.numbers.get("used"), e.numbers.get("slots")) {
        (Some(used), Some(slots)) => format!(
            ": {} of {} slots are used",
            thousands(*used),
            thousands(*slots)
        ),
        _ => String::new(),
    };
    format!("{what}{who} found no room in the bounce buffer{full}.")
}

fn per_cpu(e: &Event) -> String {
    let what = e.numbers.get("bytes").map_or("A request".to_owned(), |b| {
        format!("A request of {} for each CPU", bytes(*b))
    });
    let how = match e.numbers.get("atomic") {
        Some(0) => " (one that may sleep)",
        Some(_) => " (an atomic one, for which the area could not grow)",
        None => "",
    };
    format!("{what}{how} found no room.")
}

fn waits(e: &Event) -> String {
    let who = e.name.as_deref().unwrap_or("A thread of memory management");
    match e.numbers.get("seconds") {
        Some(s) => format!("{who} waited for more than {} seconds.", thousands(*s)),
        None => format!("{who} waited for long."),
    }
}

fn overcommit(e: &Event) -> String {
    let who = e.name.as_deref().unwrap_or("A task");
    let what = e
        .numbers
        .get("bytes")
        .map_or("address space".to_owned(), |b| bytes(*b));
    format!(
        "{who}{} asked for {what}, which would have passed the limit of what may be promised.",
        pid(e)
    )
}

/// The answer for a message.
pub fn explained(e: &Event) -> Failure {
    let row = row(e.about);
    let stamp = e.time.as_ref().map(|t| t.text.clone());
    let advice = row.todo.iter().map(|(action, command, cost)| Advice {
        action: (*action).to_owned(),
        command: command.map(str::to_owned),
        setting: None,
        value: None,
        when: When::Perhaps,
        look_first: None,
        cost: (*cost).to_owned(),
        sure: "possible",
    });
    Failure {
        kind: row.kind,
        line: e.line,
        task: e.name.clone().filter(|_| !matches!(e.about, About::Killed)),
        bytes: e.numbers.get("bytes").copied(),
        count: 1,
        first: stamp.clone(),
        last: stamp,
        answer: format!("{} {}", (row.says)(e), row.decides),
        summary: format!("{} {}", (row.says)(e), row.decides),
        meaning: format!("{} {}", (row.says)(e), row.decides),
        killed: e.name.clone().filter(|_| e.about == About::Killed),
        advice: advice.collect(),
        ..Failure::default()
    }
}

/// What happened, for a kind that is such a message.
pub fn title(kind: &str) -> Option<&'static str> {
    ROWS.iter().find(|r| r.kind == kind).map(|r| r.title)
}

#[cfg(test)]
mod tests {
    use super::super::explain;

    fn answer(line: &str) -> super::Failure {
        let log = format!("[ 1234.567890] {line}\n");
        let mut found = explain(log.as_bytes()).unwrap();
        assert_eq!(found.reports.len(), 1, "{line}");
        found.reports.remove(0)
    }

    /// `spec: K.5`
    #[test]
    fn each_message_is_explained_with_its_numbers() {
        for (line, kind, words) in [
            (
                "Out of memory: Killed process 1234 (java) total-vm:8123456kB, anon-rss:7654321kB, file-rss:0kB",
                "oom-kill",
                &["java (pid 1234) was killed", "7.3 GiB", "not in this line"][..],
            ),
            (
                "Memory cgroup out of memory: Killed process 9 (a) total-vm:8kB, anon-rss:4kB, file-rss:0kB",
                "oom-kill",
                &["control group"],
            ),
            (
                "HugeTLB: allocating 4096 of page size 2.00 MiB failed.  Only allocated 3738 hugepages.",
                "hugetlb-pool",
                &["3,738 of 4,096 pages of 2.00 MiB", "358 are missing"],
            ),
            (
                "nvme 0000:02:00.0: swiotlb buffer is full (sz: 262144 bytes), total 32768 (slots), used 32700 (slots)",
                "swiotlb-full",
                &[
                    "256 KiB for nvme 0000:02:00.0",
                    "32,700 of 32,768 slots",
                    "No page request failed",
                ],
            ),
            (
                "percpu: allocation failed, size=2048 align=16 atomic=1, atomic alloc failed, no space left",
                "percpu",
                &["2 KiB for each CPU", "atomic"],
            ),
            (
                "alloc_contig_range: [bc900, bd100) PFNs busy",
                "cma-range-busy",
                &["harmless"],
            ),
            (
                "INFO: task khugepaged:77 blocked for more than 122 seconds.",
                "memory-thread-waits",
                &["122 seconds", "No allocation failed"],
            ),
            (
                "mlx5_core 0000:81:00.0: mlx5_cmd_exec: command failed, err -12",
                "enomem",
                &["mlx5_core 0000:81:00.0 got ENOMEM"],
            ),
            (
                "TCP: out of memory -- consider tuning tcp_mem",
                "tcp-memory",
                &["tcp_mem"],
            ),
            (
                "cma: Failed to reserve 512 MiB",
                "cma-not-reserved",
                &["512 MiB"],
            ),
        ] {
            let f = answer(line);
            assert_eq!((f.kind, f.verdict), (kind, None), "{line}");
            for word in words {
                assert!(f.meaning.contains(word), "{line}: {}", f.meaning);
            }
        }
    }

    /// Messages that differ in what they are about, as of another device, pool, task or limit.
    #[test]
    fn unlike_messages_are_entries_of_their_own() {
        for (a, b) in [
            (
                "Out of memory: Killed process 1 (init) total-vm:1kB, anon-rss:1kB, file-rss:0kB",
                "Out of memory: Killed process 5 (a) total-vm:1kB, anon-rss:1kB, file-rss:0kB",
            ),
            (
                "Out of memory: Killed process 5 (a) total-vm:1kB, anon-rss:1kB, file-rss:0kB",
                "Memory cgroup out of memory: Killed process 5 (a) total-vm:1kB, anon-rss:1kB, file-rss:0kB",
            ),
            (
                "HugeTLB: allocating 512 of page size 1.00 GiB failed.  Only allocated 12 hugepages.",
                "HugeTLB: allocating 512 of page size 2.00 MiB failed.  Only allocated 12 hugepages.",
            ),
            (
                "r8169 0000:03:00.0 eth0: rtl_open failed: -ENOMEM",
                "mlx5_core 0000:81:00.0: mlx5_cmd_exec: command failed, err -12",
            ),
            (
                "cma: cma_alloc: linux,cma: alloc failed, req-size: 256 pages, ret: -16",
                "cma: cma_alloc: reserved: alloc failed, req-size: 2560 pages, ret: -12",
            ),
            (
                "percpu: allocation failed, size=16 align=8 atomic=1, atomic alloc failed",
                "percpu: allocation failed, size=262144 align=8 atomic=0, failed to allocate",
            ),
        ] {
            let log = format!("[ 1.5] {a}\n[ 200.5] {b}\n[ 400.5] {a}\n");
            let found = explain(log.as_bytes()).unwrap().reports;
            let counts: Vec<u64> = found.iter().map(|f| f.count).collect();
            assert_eq!(counts, [2, 1], "{a}");
        }
    }

    #[test]
    fn equal_messages_are_one_entry() {
        let line = "[ 1.5] alloc_contig_range: [bc900, bd100) PFNs busy\n".repeat(4);
        let found = explain(line.as_bytes()).unwrap();
        assert_eq!((found.reports.len(), found.reports[0].count), (1, 4));
    }
}
