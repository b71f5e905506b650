//! What would have helped, the most effective first, with its cost.
//!
//! Invariant: nothing destroys data; nothing is advised that the text excludes; where no setting helps, none is named.

use super::amounts::size_kib;
use super::answer::{Advice, When};
use super::callers;
use super::case::{Case, Finding};
use super::sentences::is_unexplained;
use super::settings::{file_kib, gap, less_protection, more_reserve, no_boost, proactive};
use super::verdict::{Verdict, closed_lists};
use crate::report::number::bytes;
use unfrag_eras::Gfp;
use unfrag_linux::kernel_log::Kind;

/// Advice for a case.
pub fn advice(case: &Case, order: Option<i32>) -> Vec<Advice> {
    let order = order.and_then(|o| u8::try_from(o).ok()).unwrap_or(0);
    let mut all = vec![];
    let Some(verdict) = case.verdict else {
        return not_failed(case);
    };
    let is_of_order = matches!(
        verdict,
        Verdict::Marks | Verdict::Reserved | Verdict::Fragmented | Verdict::TooLarge
    );
    let is_whole_reserve = case.finding == Finding::WholeReserve;
    if order > 0 && is_of_order && !is_whole_reserve {
        all.extend(callers::advice(case));
    }
    if !matches!(
        verdict,
        Verdict::Raced | Verdict::Harmless | Verdict::Incomplete
    ) {
        all.extend(no_boost(case));
    }
    match verdict {
        Verdict::Manual => all.push(Advice {
            when: When::Later,
            ..once("nothing needs to change: keep people from sysrq-f", "sysctl -w kernel.sysrq=176", "other functions of sysrq stay", "certain")
        }),
        Verdict::Cgroup => cgroup(case, &mut all),
        Verdict::TooLarge if case.finding == Finding::ExceedsPages => all.push(text(
            "mend the length that the caller computes or takes from outside: no machine has so much, and no setting helps",
            "a change of the program or driver",
            "certain",
        )),
        Verdict::TooLarge => all.push(text("ask for smaller blocks, or for virtual memory (vmalloc, kvmalloc): no setting makes this request succeed", "a change of the driver or program", "certain")),
        Verdict::AddressSpace => all.push(text(
            "fewer or smaller mappings in this range of addresses, or a larger range where the kernel has a parameter for it (vmalloc= on some machines): pages are not what lacks, so no setting of vm helps",
            "a change of what is loaded, or of the boot line",
            "likely",
        )),
        Verdict::Caller => all.push(text(
            "mend the caller, which the call trace names: it asked for 0 bytes, so a length was computed wrong",
            "a change of the driver or program",
            "certain",
        )),
        Verdict::NotAPage => all.push(at_once(
            "look at the lines before this one, and at the limits of control groups: a page fault's handler said that memory was out, and no page was refused",
            "none",
            "likely",
        )),
        Verdict::Harmless => all.push(text(
            "nothing needs to change: the code that asked goes on without this memory, and the line is a warning",
            "none",
            "likely",
        )),
        Verdict::Incomplete => incomplete(case, &mut all),
        Verdict::Raced if is_unexplained(case, order) => {}
        Verdict::Raced if case.report.kind == Kind::Oom => after_kill(case, &mut all),
        Verdict::Raced => {
            all.extend(more_reserve(case, "more free memory bridges such moments", "possible"));
            all.push(text("nothing, if it happened once", "none", "likely"));
        }
        Verdict::Marks => {
            all.extend(more_reserve(case, "kswapd then frees more blocks of every order ahead of demand", "likely"));
            all.push(text("a kernel since 4.4, which asks only whether a block of the order is free", "another kernel", "likely"));
        }
        Verdict::Reserved if is_whole_reserve => all.push(text(
            "a kernel since 6.12 or so takes off only what is free of the high-atomic reserve; this one takes off all of it, used or not",
            "another kernel",
            "likely",
        )),
        Verdict::Reserved => {
            all.extend(compaction(case));
            if closed_lists(&case.zones).iter().any(|l| l.contains("CMA")) && case.has_cma() {
                all.push(text("a smaller area (cma=) leaves more blocks to requests that are not movable", "the devices that need the area get less", "likely"));
            }
        }
        Verdict::Fragmented => fragmented(case, order, &mut all),
        Verdict::Cma => {
            all.push(text("a smaller area (cma= boot parameter) leaves more memory to requests that are not movable", "the devices that need the area get less", "likely"));
            all.extend(more_reserve(case, "kswapd then keeps more ordinary memory free", "possible"));
        }
        Verdict::Protected => all.push(less_protection()),
        Verdict::Zone => zone(case, &mut all),
        Verdict::Short => short(case, &mut all),
    }
    all
}

fn cgroup(case: &Case, all: &mut Vec<Advice>) {
    all.push(match case.finding {
        Finding::CacheOfCgroup => at_once(
            "raise the limit of the control group's kernel memory (memory.kmem.limit_in_bytes), or let what runs in it use less: the host's memory is not what lacks",
            "the memory is missing elsewhere",
            "certain",
        ),
        _ => {
            let group = group(case);
            let old = format!("/sys/fs/cgroup/memory/{group}/memory.limit_in_bytes");
            let new = format!("/sys/fs/cgroup/{group}/memory.max");
            // The second version of control groups has limits of memory since 4.5, beside the first.
            let is_old = case.kernel.is_said && !case.kernel.era.is_at_least(4, 5);
            let (also, file) = match is_old {
                true => (String::new(), old),
                false => (format!(" (with control groups of version 1: {old})"), new),
            };
            once(
                &format!("raise the limit of the control group, or let what runs in it use less{also}"),
                &format!("echo BYTES > {file}"),
                "the memory is missing elsewhere",
                "certain",
            )
        }
    });
}

/// The group whose limit was reached, as it stands in a path; `GROUP` where it is not known, or no word for a shell.
fn group<'a>(case: &Case<'a>) -> &'a str {
    let is_word = |g: &&str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.:@-".contains(c);
        !g.is_empty() && g.chars().all(is_plain) && !g.split('/').any(|part| part == "..")
    };
    let named = case.report.cgroup.as_deref();
    let named = named.map(|g| g.trim_matches('/')).filter(is_word);
    named.unwrap_or("GROUP")
}

/// The OOM killer ran, and what it freed may be what is free: what helps is what helps against a shortage.
fn after_kill(case: &Case, all: &mut Vec<Advice>) {
    let Some(memory) = &case.report.memory else {
        return;
    };
    if file_kib(case) > size_kib(memory) / 5 {
        all.push(text(
            "another kernel: reclaim left pages of files that could have been freed, and no setting makes it take them",
            "another kernel",
            "possible",
        ));
    } else {
        let slab = slab_leak(case);
        if slab.is_none() {
            all.push(fewer(case));
        }
        all.extend(slab);
    }
    all.push(text("nothing, if it happened once", "none", "likely"));
}

fn incomplete(case: &Case, all: &mut Vec<Advice>) {
    if case.zones.iter().any(|z| z.is_nonsense) {
        all.push(text(
            "another kernel: this one computes marks or protection wrong (a kernel of late 2019 did so with a memory balloon, until 5.5)",
            "another kernel",
            "likely",
        ));
    } else if case.finding == Finding::VirtualNotSaid {
        all.push(text(
            "compare the size with the machine's memory: if it is larger, the caller computed it wrong, else mappings fill the kernel's range of addresses; no setting of vm helps",
            "none",
            "likely",
        ));
    } else {
        all.push(at_once("find the whole report: `journalctl -k`, a serial console, or a larger ring buffer (log_buf_len=)", "none", "certain"));
    }
}

/// Memory is free in a zone that the request may not use: why it may not decides what helps.
fn zone(case: &Case, all: &mut Vec<Advice>) {
    let free = |z: &&super::zones::Judged| {
        !z.is_allowed && z.has_any_block == Some(true) && z.is_above_min == Some(true)
    };
    let is_zone = |name: &str| {
        case.zones
            .iter()
            .filter(free)
            .any(|z| z.answer.zone == name)
    };
    let is_limited = case.report.nodemask.is_some() || case.report.mems_allowed.is_some();
    let may = |z: &super::zones::Judged| case.gfp.is_some_and(|g| z.may_be_used_by(g));
    if is_limited && case.zones.iter().filter(free).any(may) {
        all.push(text(
            "add nodes with free memory to the cpuset (cpuset.mems), or take the memory policy off",
            "memory of other nodes is farther away",
            "likely",
        ));
        return;
    }
    if is_limited && is_zone("Movable") && !case.zones.iter().any(|z| z.is_allowed) {
        all.push(text(
            "add a node with zone Normal to cpuset.mems: the nodes that are allowed have memory for movable pages only, and the kernel's own data may not lie there",
            "memory of other nodes is farther away",
            "certain",
        ));
        return;
    }
    if case
        .gfp
        .is_some_and(|g| g.intersects(Gfp::DMA | Gfp::DMA32))
    {
        all.push(text(
            "let the request use other zones: a driver that can address more memory asks for a wider DMA mask",
            "another driver or device",
            "likely",
        ));
    } else if is_zone("HighMem") {
        all.push(text(
            "a 64-bit kernel, which has no HighMem; or less for the kernel's own data, such as fewer and smaller buffers of the driver that asks",
            "another kernel, or less throughput",
            "likely",
        ));
    } else if is_zone("Movable") {
        all.push(text(
            "less memory in zone Movable (movablecore=, or memory that was plugged in as movable): the kernel's own data may not lie there",
            "huge pages and unplugging have less to take from",
            "likely",
        ));
    }
    all.extend(slab_leak(case));
    if all.is_empty() {
        all.push(text(
            "less use of the zones that the request may use: what is free elsewhere is closed to it",
            "none but that",
            "possible",
        ));
    }
}

fn not_failed(case: &Case) -> Vec<Advice> {
    match (case.report.kind, case.report.cma) {
        (Kind::Stall, _) => {
            let mut all: Vec<Advice> = more_reserve(
                case,
                "kswapd then frees memory ahead, and requests wait less",
                "likely",
            )
            .into_iter()
            .collect();
            all.push(text(
                "find what is written back slowly: the stall is a wait for reclaim",
                "none",
                "possible",
            ));
            all
        }
        (Kind::Cma, Some((_, Some(-16)))) => vec![busy_area()],
        (Kind::Cma, Some((asked, _))) => match case.report.cma_pages {
            Some((free, _)) if free >= asked.saturating_mul(2) => vec![busy_area()],
            _ => vec![larger_area(case)],
        },
        (Kind::Cma, None) => vec![larger_area(case)],
        _ => vec![],
    }
}

fn busy_area() -> Advice {
    text(
        "end what pins pages in the area (RDMA, VFIO, O_DIRECT), or ask again: the next range may be free",
        "none, or those programs",
        "likely",
    )
}

/// The default area has a boot parameter; others are the device tree's, or their driver's.
fn larger_area(case: &Case) -> Advice {
    match case.report.cma_name.as_deref() {
        None | Some("reserved") => text(
            "a larger area: cma=N on the kernel's command line",
            "the area holds only movable memory besides",
            "likely",
        ),
        Some(name) => text(
            &format!(
                "a larger area {name}, where it is set: in the device tree, on the boot line or by its driver"
            ),
            "the area holds only movable memory besides",
            "likely",
        ),
    }
}

fn fragmented(case: &Case, order: u8, all: &mut Vec<Advice>) {
    if case.may_wait == Some(false) {
        all.extend(more_reserve(
            case,
            "the request cannot wait for compaction; with more memory free, more blocks are whole",
            "likely",
        ));
        all.extend(gap(case));
        all.extend(compaction(case));
    } else {
        all.extend(compaction(case));
        all.extend(more_reserve(
            case,
            "with more memory free, more blocks are whole",
            "possible",
        ));
    }
    if order > 3 {
        all.push(text(
            "ask for it at boot, while blocks are free; or let the code that asks take single pages (kvmalloc)",
            "a change of the driver",
            "likely",
        ));
    }
}

fn compaction(case: &Case) -> Vec<Advice> {
    if case.report.no_compaction || case.kernel.is_said && !case.kernel.compacts() {
        return vec![text(
            "a kernel that compacts memory (CONFIG_COMPACTION, 2.6.35 and later)",
            "another kernel",
            "likely",
        )];
    }
    let mut all = vec![once(
        "compact memory now, and before such requests are due",
        "echo 1 > /proc/sys/vm/compact_memory",
        "seconds of a CPU for each 100 GiB; programs wait while their pages move",
        "likely",
    )];
    all.extend(proactive(case));
    all
}

fn short(case: &Case, all: &mut Vec<Advice>) {
    let Some(memory) = &case.report.memory else {
        return;
    };
    all.extend(slab_leak(case));
    let can_be_freed = file_kib(case) > size_kib(memory) / 20;
    // It could not wait for what could have been freed.
    let is_late = case.may_wait == Some(false) && can_be_freed;
    if case.may_wait == Some(false) {
        let sure = if is_late { "likely" } else { "possible" };
        all.extend(more_reserve(
            case,
            "the request could not wait until kswapd had freed some",
            sure,
        ));
        all.extend(gap(case));
    }
    if memory.swap_total_kib == Some(0) {
        all.push(text(
            "add swap: there is none, and memory of programs cannot leave without it",
            "disk space, and slower programs when it is used",
            "likely",
        ));
    } else if let (Some(free), Some(total)) = (memory.swap_free_kib, memory.swap_total_kib)
        && total > 0
        && free < total / 50
    {
        all.push(text(
            "more swap: it is full",
            "disk space, and slower programs",
            "likely",
        ));
    }
    let fewer = fewer(case);
    all.push(match is_late {
        true => Advice {
            when: When::Later,
            ..fewer
        },
        false => fewer,
    });
}

/// Less use, by whom it is used most: fewer of equal tasks at once, such as jobs of a build.
fn fewer(case: &Case) -> Advice {
    /// Names in the sentence.
    const MOST: usize = 2;
    let tasks = case.report.holders.tasks.iter().flatten();
    let mut tasks: Vec<(&String, u64, u64)> =
        tasks.map(|(name, (n, pages))| (name, *n, *pages)).collect();
    tasks.sort_by_key(|(_, _, pages)| std::cmp::Reverse(*pages));
    let hold = |(name, n, pages): &(&String, u64, u64)| {
        let held = pages.saturating_mul(case.page_kib?).saturating_mul(1024);
        Some(match n {
            1 => format!("{name} holds {}", bytes(held)),
            _ => format!("{n} {name} hold {}", bytes(held)),
        })
    };
    let many = tasks.iter().take(MOST).take_while(|(_, n, _)| *n > 1);
    let many: Vec<String> = many.filter_map(hold).collect();
    let largest = tasks.first().and_then(hold);
    let action = match (many.is_empty(), largest) {
        (false, _) => format!(
            "run fewer of them at once (a smaller -j, fewer workers), or add memory: {}",
            many.join(", ")
        ),
        (true, Some(largest)) => format!(
            "less use, or more memory: {largest}; no setting makes up for what is not there"
        ),
        (true, None) => {
            "fewer or smaller programs, or more memory: no setting makes up for what is not there"
                .into()
        }
    };
    at_once(&action, "none but that", "certain")
}

/// Memory of the kernel that fills a machine or its low zones. Before the OOM killer runs reclaim has taken what it could
/// of reclaimable caches, so that they count as well.
fn slab_leak(case: &Case) -> Option<Advice> {
    let memory = case.report.memory.as_ref()?;
    let of = |name: &str| case.amount(name).map(|n| n / 1024);
    let kept = of("slab_unreclaimable").or_else(|| of("slab"))?;
    let kib = match case.report.kind {
        Kind::Oom => kept.saturating_add(of("slab_reclaimable").unwrap_or(0)),
        _ => kept,
    };
    let low: u64 = memory
        .zones
        .iter()
        .filter(|z| !matches!(z.name.as_str(), "HighMem" | "Movable"))
        .filter_map(|z| z.size_kib())
        .fold(0, u64::saturating_add);
    let places = &case.report.holders.allocations;
    // Slabs' own pages are named beside what lies in them.
    let place = places.iter().find(|(name, ..)| !name.contains("slab"));
    let which = place.map_or(String::new(), |(name, n, _)| {
        format!(" ({name} allocated {})", bytes(*n))
    });
    (low > 0 && kib > low / 2).then(|| {
        once(
            &format!("the kernel's own slab caches fill more than half of the memory that it can use: find which grows{which}"),
            "slabtop -o -s c",
            "none; a leak needs a mended kernel or driver",
            "likely",
        )
    })
}

/// What stays, or is a change of something else.
fn text(action: &str, cost: &str, sure: &'static str) -> Advice {
    Advice {
        action: action.to_owned(),
        command: None,
        setting: None,
        value: None,
        when: When::of_lasting(sure),
        look_first: None,
        cost: cost.to_owned(),
        sure,
    }
}

/// What is done once, and has no command of its own.
fn at_once(action: &str, cost: &str, sure: &'static str) -> Advice {
    Advice {
        when: When::Now,
        ..text(action, cost, sure)
    }
}

/// What is done once, by a command.
fn once(action: &str, command: &str, cost: &str, sure: &'static str) -> Advice {
    Advice {
        command: Some(command.to_owned()),
        ..at_once(action, cost, sure)
    }
}
