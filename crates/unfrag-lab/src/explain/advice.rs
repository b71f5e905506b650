//! What would have helped, the most effective first, with its cost.
//!
//! Invariant: a value is computed from the report and lies in the range of its sysctl; a setting is named only for
//! kernels that have it.

use super::answer::Advice;
use super::callers;
use super::case::Case;
use super::verdict::Verdict;
use unfrag_linux::kernel_log::{Kind, Memory};

/// Advice for a case.
pub fn advice(case: &Case, order: Option<i32>) -> Vec<Advice> {
    let order = order.and_then(|o| u8::try_from(o).ok()).unwrap_or(0);
    let mut all = vec![];
    let Some(verdict) = case.verdict else {
        return not_failed(case);
    };
    if order > 0 && !matches!(verdict, Verdict::Manual | Verdict::Cgroup) {
        all.extend(callers::advice(&case.report.calls));
    }
    match verdict {
        Verdict::Manual => all.push(plain("nothing needs to change: keep people from sysrq-f", "sysctl -w kernel.sysrq=176", "other functions of sysrq stay", "certain")),
        Verdict::Cgroup => all.push(plain(
            "raise the limit of the control group, or let what runs in it use less",
            "echo BYTES > /sys/fs/cgroup/GROUP/memory.max",
            "the memory is missing elsewhere",
            "certain",
        )),
        Verdict::TooLarge => all.push(text("ask for smaller blocks, or for virtual memory (vmalloc, kvmalloc): no setting makes this request succeed", "a change of the driver or program", "certain")),
        Verdict::Incomplete => all.push(text("find the whole report: `journalctl -k`, a serial console, or a larger ring buffer (log_buf_len=)", "none", "certain")),
        Verdict::Raced => {
            all.extend(more_reserve(case, "more free memory bridges such moments", "possible"));
            all.push(text("if it happened once, nothing", "none", "likely"));
        }
        Verdict::Marks => {
            all.extend(more_reserve(case, "kswapd then frees more blocks of every order ahead of demand", "likely"));
            all.extend(compaction(case));
        }
        Verdict::Reserved => {
            all.extend(compaction(case));
            all.push(text("a smaller area (cma=) leaves more blocks to requests that are not movable", "the devices that need the area get less", "likely"));
        }
        Verdict::Fragmented => fragmented(case, order, &mut all),
        Verdict::Cma => {
            all.push(text("a smaller area (cma= boot parameter) leaves more memory to requests that are not movable", "the devices that need the area get less", "likely"));
            all.extend(more_reserve(case, "kswapd then keeps more ordinary memory free", "possible"));
        }
        Verdict::Protected => all.push(Advice {
            action: "let requests for higher zones use more of the lower ones: a larger number in vm.lowmem_reserve_ratio keeps less".into(),
            command: Some("sysctl -w vm.lowmem_reserve_ratio=\"1024 1024 128\"".into()),
            setting: Some("vm.lowmem_reserve_ratio"),
            value: None,
            cost: "requests that can use only the low zones fail sooner".into(),
            sure: "likely",
        }),
        Verdict::Zone => {
            all.push(text(
                "let the request use other zones: a driver with a wider DMA mask, or a 64-bit kernel, which has no HighMem",
                "another driver or kernel",
                "likely",
            ));
            all.extend(slab_leak(case));
        }
        Verdict::Short => short(case, &mut all),
    }
    all
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
        (Kind::Cma, Some((_, Some(-16)))) => vec![text(
            "end what pins pages in the area (RDMA, VFIO, O_DIRECT), or ask again: the next range may be free",
            "none, or those programs",
            "likely",
        )],
        (Kind::Cma, _) => vec![plain(
            "a larger area",
            "cma=N (boot parameter)",
            "the area holds only movable memory besides",
            "likely",
        )],
        _ => vec![],
    }
}

fn fragmented(case: &Case, order: u8, all: &mut Vec<Advice>) {
    if case.may_wait == Some(false) {
        all.extend(more_reserve(
            case,
            "the request cannot wait for compaction; with more memory free, more blocks are whole",
            "likely",
        ));
        if case.kernel.era.is_at_least(5, 9) {
            all.push(proactive(case));
        }
        all.extend(gap(case));
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
    if case.report.no_compaction || !case.kernel.compacts() {
        return vec![text(
            "a kernel that compacts memory (CONFIG_COMPACTION, 2.6.35 and later)",
            "another kernel",
            "likely",
        )];
    }
    let mut all = vec![plain(
        "compact memory now, and before such requests are due",
        "echo 1 > /proc/sys/vm/compact_memory",
        "seconds of a CPU for each 100 GiB; programs wait while their pages move",
        "likely",
    )];
    if case.kernel.era.is_at_least(5, 9) {
        all.push(proactive(case));
    }
    all
}

fn proactive(case: &Case) -> Advice {
    // 20 is the default; each half of free memory outside large blocks that is to go wants as much again.
    let value = if case.may_wait == Some(false) { 60 } else { 40 };
    Advice {
        action: "let kcompactd compact ahead of demand".into(),
        command: Some(format!("sysctl -w vm.compaction_proactiveness={value}")),
        setting: Some("vm.compaction_proactiveness"),
        value: Some(value),
        cost: "CPU time of kcompactd in the background".into(),
        sure: "possible",
    }
}

/// `vm.min_free_kbytes` at twice what it is, as far as there is memory for it.
fn more_reserve(case: &Case, why: &str, sure: &'static str) -> Option<Advice> {
    let memory = case.report.memory.as_ref()?;
    let current = sum(memory, "min");
    let size: u64 = memory
        .zones
        .iter()
        .filter_map(|z| z.size_kib())
        .fold(0, u64::saturating_add);
    if current == 0 || size == 0 || current > size {
        return None;
    }
    // More than a twentieth of memory starves programs, and marks above what can be freed stop every allocation.
    let within = size / 20;
    let reclaimable = sum(memory, "free").saturating_add(file_kib(case, memory));
    let value = current.saturating_mul(2).min(within).min(reclaimable);
    (value > current + current / 10).then(|| Advice {
        action: format!("keep more memory free: {why}"),
        command: Some(format!("sysctl -w vm.min_free_kbytes={value}")),
        setting: Some("vm.min_free_kbytes"),
        value: Some(value),
        cost: format!(
            "{} KiB less for programs and page cache (it was about {current})",
            value - current
        ),
        sure,
    })
}

/// `vm.watermark_scale_factor`, so that kswapd begins earlier.
fn gap(case: &Case) -> Option<Advice> {
    if !case.kernel.era.is_at_least(4, 6) {
        return None;
    }
    let memory = case.report.memory.as_ref()?;
    let size: u64 = memory
        .zones
        .iter()
        .filter_map(|z| z.size_kib())
        .fold(0, u64::saturating_add);
    let gap = sum(memory, "low").checked_sub(sum(memory, "min"))?;
    let now = gap.saturating_mul(10_000).checked_div(size)?.max(10);
    let value = (now * 4).clamp(40, 1000);
    Some(Advice {
        action: "let kswapd begin earlier: it then frees memory before urgent requests need it"
            .into(),
        command: Some(format!("sysctl -w vm.watermark_scale_factor={value}")),
        setting: Some("vm.watermark_scale_factor"),
        value: Some(value),
        cost: format!(
            "about {} KiB less for programs and page cache",
            (size / 10_000).saturating_mul(value - now.min(value))
        ),
        sure: "likely",
    })
}

fn short(case: &Case, all: &mut Vec<Advice>) {
    let Some(memory) = &case.report.memory else {
        return;
    };
    let size: u64 = memory
        .zones
        .iter()
        .filter_map(|z| z.size_kib())
        .fold(0, u64::saturating_add);
    all.extend(slab_leak(case));
    // It could not wait for what could have been freed.
    if case.may_wait == Some(false) {
        let sure = if file_kib(case, memory) > size / 20 {
            "likely"
        } else {
            "possible"
        };
        all.extend(more_reserve(
            case,
            "the request could not wait until kswapd had freed some",
            sure,
        ));
        all.extend(gap(case));
    }
    if memory.swap_total_kib == Some(0) {
        all.push(text(
            "swap: memory of programs cannot leave without it",
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
    all.push(text(
        "fewer or smaller programs, or more memory: no setting makes up for what is not there",
        "none but that",
        "certain",
    ));
}

/// Memory of the kernel that fills a machine or its low zones.
fn slab_leak(case: &Case) -> Option<Advice> {
    let memory = case.report.memory.as_ref()?;
    let pages = memory
        .pages
        .get("slab_unreclaimable")
        .or_else(|| memory.pages.get("slab"))?;
    let kib = pages.saturating_mul(case.page_kib.unwrap_or(4));
    let low: u64 = memory
        .zones
        .iter()
        .filter(|z| !matches!(z.name.as_str(), "HighMem" | "Movable"))
        .filter_map(|z| z.size_kib())
        .fold(0, u64::saturating_add);
    (low > 0 && kib > low / 2).then(|| {
        plain(
            "the kernel's own slab caches fill more than half of the memory that it can use: find which grows",
            "slabtop -o -s c",
            "none; a leak needs a mended kernel or driver",
            "likely",
        )
    })
}

fn sum(memory: &Memory, name: &str) -> u64 {
    memory
        .zones
        .iter()
        .filter_map(|z| z.kib(name))
        .fold(0, u64::saturating_add)
}

fn file_kib(case: &Case, memory: &Memory) -> u64 {
    let of = |name: &str| memory.pages.get(name).copied().unwrap_or(0);
    let pages = of("active_file").saturating_add(of("inactive_file"));
    pages.saturating_mul(case.page_kib.unwrap_or(4))
}

fn text(action: &str, cost: &str, sure: &'static str) -> Advice {
    Advice {
        action: action.to_owned(),
        command: None,
        setting: None,
        value: None,
        cost: cost.to_owned(),
        sure,
    }
}

fn plain(action: &str, command: &str, cost: &str, sure: &'static str) -> Advice {
    Advice {
        command: Some(command.to_owned()),
        ..text(action, cost, sure)
    }
}
