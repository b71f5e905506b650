//! Failures of every kind, each before its own judge: virtual requests, faults, slab caches, contiguous areas, tries that
//! do no harm, and pages refused by zones whose lines have boosts and reserves. `spec: K.4`
//!
//! Each input is made here, in the form that kernels print; numbers are chosen so that one of them decides.

use unfrag_lab::explain::answer::{Explanation, Failure};
use unfrag_lab::explain::{explain, text};

pub(crate) fn explained(text: &str) -> Explanation {
    explain(text.as_bytes()).unwrap()
}

pub(crate) fn one(text: &str) -> Failure {
    let mut answer = explained(text);
    assert_eq!(answer.reports.len(), 1, "{text}\n{answer:#?}");
    assert_eq!(answer.skipped, [], "{text}");
    answer.reports.remove(0)
}

pub(crate) fn advised(f: &Failure) -> String {
    let each = f.advice.iter().map(|a| {
        let command = a.command.clone().unwrap_or_default();
        format!("{} {command}\n", a.action)
    });
    each.collect()
}

pub(crate) fn value(f: &Failure, setting: &str) -> Option<u64> {
    f.advice.iter().find(|a| a.setting == Some(setting))?.value
}

/// Free blocks from order 0 on, with one set of letters, and their sum.
fn blocks(place: &str, counts: &[u64], letters: &str) -> String {
    let mut line = format!("{place}:");
    let mut sum = 0;
    for order in 0..11 {
        let (n, kib) = (counts.get(order).copied().unwrap_or(0), 4u64 << order);
        sum += n * kib;
        line += &match n {
            0 => format!(" 0*{kib}kB"),
            _ => format!(" {n}*{kib}kB ({letters})"),
        };
    }
    format!("{line} = {sum}kB\n")
}

/// A zone: where it is, its amounts, its `lowmem_reserve`, its free blocks.
pub(crate) type Zone<'a> = (&'a str, &'a str, &'a str, &'a [u64]);

pub(crate) fn request(head: &str, release: &str, zones: &[Zone]) -> String {
    let mut out =
        format!("{head}\nCPU: 1 PID: 7 Comm: worker Not tainted {release} #1\nMem-Info:\n");
    for (place, amounts, reserve, _) in zones {
        out += &format!("{place} {amounts}\nlowmem_reserve[]: {reserve}\n");
    }
    for (place, .., counts) in zones {
        out += &blocks(place, counts, "UME");
    }
    out
}

pub(crate) fn failed(order: u8, mode: &str) -> String {
    format!(
        "worker: page allocation failure: order:{order}, mode:{mode}, nodemask=(null),cpuset=/,mems_allowed=0"
    )
}

pub(crate) const KERNEL: &str = "0xcc0(GFP_KERNEL)";
pub(crate) const ATOMIC: &str = "0x820(GFP_ATOMIC)";

/// DMA, DMA32 and Normal of a host of 16 GiB; Normal has the amounts that are given.
pub(crate) fn host<'a>(normal: &'a str, counts: &'a [u64]) -> [Zone<'a>; 3] {
    [
        (
            "Node 0 DMA",
            "free:9000kB boost:0kB min:60kB low:76kB high:92kB reserved_highatomic:0KB present:15996kB managed:15360kB free_cma:0kB",
            "0 1700 15000 15000 15000",
            &[0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 0],
        ),
        (
            "Node 0 DMA32",
            "free:20000kB boost:8000kB min:14000kB low:16000kB high:18000kB reserved_highatomic:0KB present:1900000kB managed:1800000kB free_cma:0kB",
            "0 0 13300 13300 13300",
            &[5000, 0, 0],
        ),
        ("Node 0 Normal", normal, "0 0 0 0 0", counts),
    ]
}

pub(crate) const ROOMY: &str = "free:190000kB boost:100000kB min:160000kB low:180000kB high:200000kB reserved_highatomic:0KB present:14000000kB managed:13600000kB free_cma:0kB";

#[test]
fn a_boost_is_no_part_of_the_setting() {
    let f = one(&request(
        &failed(3, KERNEL),
        "6.8.2",
        &host(ROOMY, &[100_000, 0, 0]),
    ));
    assert_eq!(f.verdict, Some("fragmented"));
    // 60 + (14,000 - 8,000) + (160,000 - 100,000).
    let setting = 66_060_u64;
    let twice = (2 * setting).next_multiple_of(64);
    assert_eq!(value(&f, "vm.min_free_kbytes"), Some(twice));
    assert!(
        f.advice
            .iter()
            .any(|a| a.cost.contains("it was about 66,060"))
    );
    assert!(
        f.notes
            .iter()
            .any(|n| n.contains("Normal hold a boost of 97.7 MiB"))
    );
    assert!(
        text::render(
            &explained(&request(
                &failed(3, KERNEL),
                "6.8.2",
                &host(ROOMY, &[100_000])
            )),
            usize::MAX
        )
        .contains("of that boost KiB")
    );
}

#[test]
fn an_urgent_page_is_checked_again_without_the_boost() {
    let zone = "free:2000kB boost:3000kB min:6000kB low:7000kB high:8000kB present:786432kB managed:740000kB free_cma:0kB";
    let urgent = one(&request(
        &failed(0, ATOMIC),
        "6.8.2",
        &[("Normal", zone, "0 0", &[500])],
    ));
    // (6,000 - 3,000) KiB are 750 pages; less a half 375, less a quarter of that 282.
    assert_eq!(urgent.zones[0].mark_kib, Some(4 * 282));
    assert_eq!(urgent.verdict, Some("raced"));
    let zone = zone.replace("free:2000kB", "free:4000kB");
    let zones: [Zone; 1] = [("Normal", &zone, "0 0", &[1000])];
    let plain = one(&request(&failed(0, KERNEL), "6.8.2", &zones));
    assert_eq!(plain.verdict, Some("short"));
    assert_eq!(plain.advice[0].setting, Some("vm.watermark_boost_factor"));
    assert!(
        plain
            .notes
            .iter()
            .any(|n| n.contains("without it the zone would serve"))
    );
}

#[test]
fn of_the_high_atomic_reserve_a_kernel_takes_off_what_its_line_says() {
    let zone = "free:900000kB boost:0kB min:300000kB low:400000kB high:500000kB reserved_highatomic:650000KB active_anon:9kB present:64000000kB managed:63000000kB free_cma:0kB";
    let ask = |release: &str, zone: &str| {
        let zones: [Zone; 1] = [("Node 0 Normal", zone, "0 0 0 0", &[1000, 112_000])];
        one(&request(
            &failed(0, "0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP)"),
            release,
            &zones,
        ))
    };
    let old = ask("6.6.1", zone);
    assert_eq!(
        (old.verdict, old.zones[0].usable_kib),
        (Some("reserved"), Some(250_000))
    );
    assert!(old.meaning.contains("high-atomic reserve") && !advised(&old).contains("programs"));
    let new = ask(
        "6.14.1",
        &zone.replace("active_anon", "free_highatomic:40KB active_anon"),
    );
    assert_eq!(
        (new.verdict, new.zones[0].usable_kib),
        (Some("raced"), Some(900_000 - 40))
    );
}

#[test]
fn a_field_of_a_zone_that_is_not_known_is_said() {
    let zone = "free:900kB min:1000kB low:1200kB high:1400kB moon_dust:8kB present:64000kB managed:63000kB";
    let zones: [Zone; 1] = [("Node 0 Normal", zone, "0 0", &[225])];
    let f = one(&request(&failed(0, KERNEL), "6.14.1", &zones));
    assert!(
        f.notes
            .iter()
            .any(|n| n.contains("not known here") && n.ends_with("moon_dust"))
    );
}

#[test]
fn a_zone_that_is_not_in_the_text_leaves_no_verdict_and_no_setting() {
    let normal =
        "free:17000kB min:55000kB low:69000kB high:83000kB present:13369344kB managed:13037568kB";
    for (mode, counts) in [(ATOMIC, [4250]), (KERNEL, [4250])] {
        let zones = host(normal, &counts);
        let whole = one(&request(&failed(0, mode), "5.10.0", &zones));
        for gone in 1..3 {
            let left: Vec<Zone> = (0..3).filter(|i| *i != gone).map(|i| zones[i]).collect();
            let f = one(&request(&failed(0, mode), "5.10.0", &left));
            assert!(
                f.verdict == Some("incomplete") || f.verdict == whole.verdict,
                "without {}: {:?}, whole {:?}",
                zones[gone].0,
                f.verdict,
                whole.verdict
            );
            assert_eq!(
                value(&f, "vm.min_free_kbytes"),
                None,
                "without {}",
                zones[gone].0
            );
            assert_eq!(value(&f, "vm.watermark_scale_factor"), None);
        }
        let only = one(&request(&failed(0, mode), "5.10.0", &zones[..1]));
        assert_eq!(
            (only.verdict, value(&only, "vm.min_free_kbytes")),
            (Some("incomplete"), None)
        );
    }
}

#[test]
fn every_cut_of_a_report_gives_its_verdict_or_none() {
    let normal =
        "free:17000kB min:55000kB low:69000kB high:83000kB present:13369344kB managed:13037568kB";
    for (order, mode, normal, counts) in [
        (0, ATOMIC, normal, vec![4250]),
        (0, KERNEL, normal, vec![4250]),
        (3, KERNEL, ROOMY, vec![100_000]),
        (3, KERNEL, ROOMY, vec![90_000, 4000, 0, 50]),
    ] {
        let whole_text = request(&failed(order, mode), "6.8.2", &host(normal, &counts));
        let whole = one(&whole_text);
        let lines: Vec<&str> = whole_text.lines().collect();
        for to in 1..=lines.len() {
            let cut = lines[..to].join("\n");
            let f = explained(&cut).reports.remove(0);
            let verdict = f.verdict;
            assert!(
                verdict == Some("incomplete") || verdict == whole.verdict,
                "{to} lines: {verdict:?}, whole {:?}",
                whole.verdict
            );
            for setting in ["vm.min_free_kbytes", "vm.watermark_scale_factor"] {
                let (part, whole) = (value(&f, setting), value(&whole, setting));
                assert!(
                    part.is_none() || part == whole,
                    "{to} lines: {part:?}, whole {whole:?}"
                );
            }
        }
    }
}

#[test]
fn virtual_requests_have_their_own_reasons() {
    let tail = "mode:0xdc0(GFP_KERNEL|__GFP_ZERO), nodemask=(null),cpuset=/,mems_allowed=0";
    for (line, verdict) in [
        (format!("app: vmalloc error: size 65536, vm_struct allocation failed, {tail}"), "address-space"),
        (format!("app: vmalloc error: size 0, exceeds total pages, {tail}"), "caller"),
        (format!("app: vmalloc: allocation failure: 0 bytes, {tail}"), "caller"),
        (format!("app: vmalloc error: size 5497558138880, exceeds total pages, {tail}"), "too-large"),
        (format!("app: vmalloc error: size 0, page order 9, failed to allocate pages, {tail}"), "harmless"),
        (format!("app: vmalloc error: size 8192, page order 0, failed to allocate pages, {tail}"), "incomplete"),
        (format!("app: vmalloc: allocation failure: 7000000000 bytes, {tail}"), "incomplete"),
        ("vmap allocation for size 2101248 failed: use vmalloc=<size> to increase size".to_owned(), "address-space"),
        ("vmalloc_node_range for size 20480 failed: Address range restricted to 0xf0000000 - 0xf1000000".to_owned(), "address-space"),
    ] {
        let f = one(&line);
        assert_eq!((f.kind, f.verdict), ("vmalloc", Some(verdict)), "{line}");
        assert!(!advised(&f).contains("sysctl"), "{line}: {}", advised(&f));
        assert!(!f.advice.is_empty(), "{line}");
    }
}

#[test]
fn a_virtual_request_is_judged_by_the_memory_that_the_text_has() {
    let body = |bytes: u64| {
        let head = format!(
            "app: vmalloc: allocation failure: {bytes} bytes, mode:{KERNEL}, nodemask=(null)"
        );
        let zones: [Zone; 1] = [(
            "Node 0 Normal",
            "free:500000kB min:10000kB low:12000kB high:14000kB present:4194304kB managed:4000000kB",
            "0 0",
            &[125_000],
        )];
        request(&head, "5.4.1", &zones) + "1048576 pages RAM\n"
    };
    assert_eq!(one(&body(1 << 33)).verdict, Some("too-large"));
    assert_eq!(one(&body(1 << 20)).verdict, Some("address-space"));
}

#[test]
fn the_lines_of_one_virtual_request_are_one_event() {
    let log = "[ 5.1] vmap allocation for size 131072 failed: use vmalloc=<size> to increase size\n\
               [ 5.2] init: vmalloc error: size 65536, vm_struct allocation failed, mode:0xcc0(GFP_KERNEL), nodemask=(null)\n\
               [ 5.3] CPU: 0 PID: 1 Comm: init Not tainted 6.6.0 #1\n";
    let f = one(log);
    assert_eq!(
        (f.verdict, f.line, f.task.as_deref()),
        (Some("address-space"), 1, Some("init"))
    );
}

#[test]
fn a_page_fault_that_failed_was_refused_no_page() {
    let fault = |at: &str| {
        format!(
            "[{at}1] app invoked oom-killer: gfp_mask=0x0(), order=0, oom_score_adj=0\n\
             [{at}2] CPU: 2 PID: 15 Comm: app Not tainted 5.15.0 #5\n\
             [{at}3] Call Trace:\n\
             [{at}4]  pagefault_out_of_memory+0x46/0x60\n\
             [{at}5] Mem-Info:\n\
             [{at}6] Node 0 Normal free:6904828kB min:55544kB low:69428kB high:83312kB present:13238272kB managed:12871060kB free_cma:0kB\n\
             [{at}7] lowmem_reserve[]: 0 0 0\n\
             [{at}8] {}",
            blocks("Node 0 Normal", &[1_726_207], "UME")
        )
    };
    let alone = one(&fault("20.00"));
    assert_eq!((alone.verdict, alone.is_fault), (Some("not-a-page"), true));
    assert!(!advised(&alone).contains("sysctl"));
    let kill = "[19.90] app invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
                [19.91] memory: usage 524268kB, limit 524288kB, failcnt 28\n\
                [19.92] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=box,mems_allowed=0,oom_memcg=/box,task_memcg=/box,task=app,pid=15,uid=0\n\
                [19.93] Memory cgroup out of memory: Killed process 15 (app) total-vm:50336kB, anon-rss:0kB\n";
    let both = explained(&(kill.to_owned() + &fault("20.00"))).reports;
    assert_eq!(both.len(), 2);
    let last = &both[1];
    assert_eq!(
        (last.verdict, last.cgroup.as_deref()),
        (Some("cgroup"), Some("/box"))
    );
    let later = explained(&(kill.to_owned() + &fault("90.00"))).reports;
    assert_eq!(later[1].verdict, Some("not-a-page"));
}

#[test]
fn slab_caches_are_read_in_the_forms_of_all_kernels() {
    let cache = "  cache: skb_head, object size: 232, buffer size: 256, default order: 1, min order: 0\n  node 0: slabs: 940, objs: 30080, free: 0\n";
    for place in ["on node -1", "on CPU 3 (of node 0) on node -1"] {
        let f = one(&format!(
            "SLUB: Unable to allocate memory {place}, gfp=0x820(GFP_ATOMIC)\n{cache}"
        ));
        assert_eq!(
            (f.kind, f.order, f.cache.as_deref()),
            ("slab", Some(0), Some("skb_head"))
        );
        assert_eq!(
            (f.gfp.join("|").as_str(), f.may_wait),
            ("GFP_ATOMIC", Some(false))
        );
    }
    let of_group = "SLUB: Unable to allocate memory on node -1 (gfp=0x2088020)\n  cache: mounts(77:abc), object size: 384, buffer size: 384, default order: 2, min order: 0\n";
    let f = one(of_group);
    assert_eq!(
        (f.verdict, f.cgroup.as_deref()),
        (Some("cgroup"), Some("abc"))
    );
    // Bit 25 and caches of groups are younger than 2.6.32.
    assert!(
        f.rules.contains("4.4") && !f.gfp.iter().any(|g| g.starts_with("0x")),
        "{} {:?}",
        f.rules,
        f.gfp
    );
}

#[test]
fn a_cache_and_the_page_that_it_was_refused_are_one_event() {
    let zone = "free:400000kB min:110000kB low:140000kB high:170000kB present:14684160kB managed:14395832kB free_cma:0kB";
    let zones: [Zone; 1] = [("Node 0 Normal", zone, "0 0 0", &[100_000])];
    let page = request(&failed(0, "0x800(GFP_NOWAIT)"), "5.13.2", &zones);
    let cache = "SLUB: Unable to allocate memory on node -1, gfp=0x800(GFP_NOWAIT)\n  cache: skb_head, object size: 224, buffer size: 256, default order: 0, min order: 0\n";
    let f = one(&(page + cache));
    assert_eq!(
        (f.kind, f.cache.as_deref(), f.kernel.as_deref()),
        ("allocation-failure", Some("skb_head"), Some("5.13.2"))
    );
    // Three times the mark: nothing came back.
    assert_eq!(f.verdict, Some("raced"));
    assert!(f.meaning.contains("does not explain") && !f.meaning.contains("came back"));
    assert_eq!(f.advice, []);
}

#[test]
fn a_contiguous_area_says_how_full_it_is() {
    let ask = |asked: u64, ret: i64, free: u64| {
        one(&format!(
            "cma: cma_alloc: video: alloc failed, req-size: {asked} pages, ret: {ret}\n\
             cma: number of available pages: 3@125+20@4076=> {free} free of 16384 total pages\n"
        ))
    };
    let full = ask(300, -12, 122);
    assert!(full.meaning.contains("nearly full") && advised(&full).contains("a larger area video"));
    let busy = ask(300, -12, 9000);
    assert!(busy.meaning.contains("9000 of its 16384") && advised(&busy).contains("pins pages"));
    assert!(!advised(&full).contains("cma="));
}

#[test]
fn a_zone_is_closed_for_one_reason_and_the_advice_is_for_that() {
    let small = "free:2000kB min:4000kB low:5000kB high:6000kB present:800000kB managed:760000kB free_cma:0kB";
    let large = "free:2000000kB min:4000kB low:5000kB high:6000kB present:2400000kB managed:2300000kB free_cma:0kB";
    let few: &[u64] = &[440, 0, 0, 0, 0, 0, 1];
    let many: &[u64] = &[500_000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20];
    let limited = |nodes: &str, mode: &str| {
        format!(
            "box: page allocation failure: order:0, mode:{mode}, nodemask=(null),cpuset=box,mems_allowed={nodes}"
        )
    };
    for (head, zones, needed, not) in [
        (
            failed(3, KERNEL),
            [
                ("Normal", small, "0 18000 18000", few),
                ("HighMem", large, "0 0 0", many),
            ],
            "64-bit",
            "DMA mask",
        ),
        (
            failed(0, "0xcc1(GFP_KERNEL|GFP_DMA)"),
            [
                ("Node 0 DMA", small, "0 0 0", few),
                ("Node 0 Normal", large, "0 0 0", many),
            ],
            "DMA mask",
            "64-bit",
        ),
        (
            limited("1", "0x100cca(GFP_HIGHUSER_MOVABLE)"),
            [
                ("Node 0 Normal", large, "0 0 0", many),
                ("Node 1 Normal", small, "0 0 0", few),
            ],
            "cpuset.mems",
            "DMA mask",
        ),
        (
            limited("4", "0x100cc2(GFP_HIGHUSER)"),
            [
                ("Node 4 Movable", large, "0 0 0", many),
                (
                    "Node 4 Device",
                    "free:0kB min:0kB low:0kB high:0kB present:0kB managed:0kB",
                    "0 0 0",
                    &[],
                ),
            ],
            "cpuset.mems",
            "DMA mask",
        ),
    ] {
        let f = one(&request(&head, "5.10.3", &zones));
        assert_eq!(f.verdict, Some("zone"), "{head}: {}", f.meaning);
        let advice = advised(&f);
        assert!(
            advice.contains(needed) && !advice.contains(not),
            "{head}: {advice}"
        );
        assert!(
            !advice.contains("compact_memory") && !f.meaning.contains("()"),
            "{head}: {}",
            f.meaning
        );
    }
}

#[test]
fn no_compaction_where_blocks_of_the_order_are_free() {
    let zone = "free:3000kB min:2940kB low:3600kB high:4400kB present:749560kB managed:671404kB free_cma:0kB";
    let zones: [Zone; 1] = [("Node 0 Normal", zone, "0 0", &[100, 0, 0, 0, 0, 4, 8])];
    let f = one(&request(&failed(5, KERNEL), "5.19.1", &zones));
    assert_eq!(f.verdict, Some("short"));
    assert!(f.meaning.contains("128 KiB (order 5) are free") && f.meaning.contains("less 124 KiB"));
    assert!(!advised(&f).contains("compact"));
}

#[test]
fn what_is_kept_is_the_cause_only_if_it_is_much() {
    let normal = "free:9000kB min:26000kB low:32500kB high:39000kB present:13158000kB managed:12900000kB free_cma:0kB";
    let lower = |kept: &'static str| {
        let lower = "free:1900000kB min:6000kB low:7500kB high:9000kB present:3039600kB managed:2980000kB free_cma:0kB";
        let zones: [Zone; 2] = [
            ("Node 0 DMA32", lower, kept, &[475_000]),
            ("Node 0 Normal", normal, "0 0 0", &[2250]),
        ];
        one(&request(&failed(0, ATOMIC), "5.15.2", &zones))
    };
    assert_eq!(lower("0 480000 480000").verdict, Some("protected"));
    let hair = "free:31476kB min:37680kB low:45052kB high:52424kB present:3653608kB managed:3588072kB free_cma:0kB";
    let zones: [Zone; 2] = [
        ("Node 0 DMA32", hair, "0 4433 4433", &[7869]),
        (
            "Node 0 Normal",
            "free:9000kB min:56392kB low:65880kB high:75368kB present:4718592kB managed:4548188kB free_cma:0kB",
            "0 0 0",
            &[2250],
        ),
    ];
    let f = one(&request(&failed(0, ATOMIC), "5.15.2", &zones));
    assert_eq!(f.verdict, Some("short"));
    let first = f.advice[0].setting;
    assert!(
        matches!(
            first,
            Some("vm.min_free_kbytes" | "vm.watermark_scale_factor")
        ),
        "{first:?}"
    );
}

pub(crate) const TASKS: &str = "Tasks state (memory values in pages):\n\
    [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n\
    [    268]     0   268    22862      267   208896        0          -250 logger\n\
    [   4738]  1000  4738    35626    70000   327680        0             0 builder\n\
    [   4739]  1000  4739    35626    32400   327680        0             0 builder\n";
pub(crate) const KILLED: &str = "Out of memory: Killed process 4738 (builder) total-vm:9kB, anon-rss:5kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:0\n";

pub(crate) fn oom() -> String {
    let counts = "active_anon:5000 inactive_anon:6000 isolated_anon:0\n active_file:100 inactive_file:40 isolated_file:0\n unevictable:0 dirty:0 writeback:0\n slab_reclaimable:300000 slab_unreclaimable:400000\n mapped:0 shmem:171 pagetables:700\n free:9000 free_pcp:400 free_cma:0\n\
        Node 0 active_anon:20000kB inactive_anon:24000kB active_file:400kB inactive_file:160kB kernel_stack:10000kB pagetables:2800kB all_unreclaimable? no\n";
    let zone = "free:36000kB boost:0kB min:40000kB low:50000kB high:60000kB present:4300000kB managed:4000000kB free_cma:0kB";
    let zones: [Zone; 1] = [("Node 0 Normal", zone, "0 0 0", &[9000])];
    let head = "builder invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0";
    request(head, "6.10.1", &zones).replace("Mem-Info:\n", &format!("Mem-Info:\n{counts}"))
        + "Free swap  = 0kB\nTotal swap = 0kB\n1075000 pages RAM\n"
}

#[test]
fn who_has_the_memory_is_said() {
    let places = "Memory allocations:\n  2867200000   700000 mm/slub.c:2264 func:new_slab\n  1047212032   511334 fs/x/inode.c:82 [x] func:inode_alloc\n";
    let caches = "Unreclaimable slab info:\nName                      Used          Total\nx_inode               932000KB     999000KB\nx_icr                  263KB        263KB\n";
    let f = one(&(oom() + places + caches + TASKS + KILLED));
    assert_eq!(f.verdict, Some("short"));
    let of = |kind: &str| -> Vec<(&str, u64, Option<u64>)> {
        let each = f.held.iter().filter(|h| h.kind == kind);
        each.map(|h| (h.name.as_str(), h.bytes, h.count)).collect()
    };
    assert_eq!(of("task")[0], ("builder", 102_400 * 4096, Some(2)));
    assert_eq!(of("counter")[0], ("slab caches", 700_000 * 4096, None));
    // 4,000,000 KiB less all that is counted.
    let counted = 4 * (5000 + 6000 + 140 + 700_000 + 700 + 9000 + 400) + 10_000;
    assert!(of("counter").iter().any(
        |(name, n, _)| name.starts_with("in no counter") && *n == (4_000_000 - counted) * 1024
    ));
    assert_eq!(of("cache")[0], ("x_inode", 999_000 * 1024, None));
    assert_eq!(
        of("code")[1],
        ("inode_alloc [x]", 1_047_212_032, Some(511_334))
    );
    let shown = text::render(
        &explained(&(oom() + places + caches + TASKS + KILLED)),
        usize::MAX,
    );
    for needed in [
        "slab caches 2.7 GiB (70.0 %)",
        "2 builder 400 MiB",
        "x_inode",
        "inode_alloc [x]",
    ] {
        assert!(shown.contains(needed), "{needed}: {}", &*shown);
    }
}

#[test]
fn a_table_that_is_cut_off_gives_no_sum() {
    for tasks in [
        TASKS.to_owned(),
        TASKS.lines().take(4).collect::<Vec<_>>().join("\n") + "\n",
    ] {
        let f = one(&(oom() + &tasks));
        assert!(!f.held.iter().any(|h| h.kind == "task"), "{:?}", f.held);
    }
}

#[test]
fn advice_for_a_caller_is_for_its_function_and_release() {
    let ask = |release: &str, call: &str| {
        let text = request(&failed(5, KERNEL), release, &host(ROOMY, &[100_000]));
        advised(&one(&text.replace(
            "Mem-Info:",
            &format!("Call Trace:\n {call}+0x29c/0x2f0\nMem-Info:"),
        )))
    };
    for (release, call, needed, not) in [
        ("5.10.2", "proc_sys_call_handler", "until 5.11", "3.17"),
        ("5.12.0", "proc_sys_call_handler", "", "5.11"),
        ("6.1.3", "btrfs_lookup_bio_sums", "read-ahead", "mkfs"),
        ("6.1.3", "btrfs_compress_pages", "", "Btrfs"),
        ("3.10.0", "seq_read", "one buffer", "mkfs"),
        ("4.19.0", "seq_read", "", "one buffer"),
        ("6.1.3", "dma_alloc_attrs", "at boot", "cma="),
        ("6.1.3", "tcp_sendmsg", "", "wmem_max"),
    ] {
        let advice = ask(release, call);
        assert!(
            advice.contains(needed) && !advice.contains(not),
            "{release} {call}: {advice}"
        );
    }
}

#[test]
fn numbers_beyond_all_memory_are_a_bug_and_not_shown() {
    let zones: [Zone; 2] = [
        (
            "Node 0 DMA32",
            "free:2600000kB min:7000kB low:10000kB high:13000kB present:3129216kB managed:3000000kB free_cma:0kB",
            "0 0 72057594037927865 72057594037927865",
            &[650_000],
        ),
        (
            "Node 0 Normal",
            "free:190000kB min:99395541895224kB low:73886371836733356kB high:147673348131571488kB present:1048576kB managed:1048576kB free_cma:0kB",
            "0 0 0 0",
            &[47_500],
        ),
    ];
    let log = request(&failed(0, KERNEL), "5.4.0-next", &zones);
    let f = one(&log);
    assert_eq!(f.verdict, Some("incomplete"));
    assert_eq!(
        (f.zones[0].protection_kib, f.zones[1].mark_kib),
        (None, None)
    );
    assert!(!advised(&f).contains("journalctl") && !advised(&f).contains("sysctl"));
    let shown = text::render(&explained(&log), usize::MAX);
    assert!(
        !shown.contains("72,057") && !shown.contains("288,230") && !shown.contains("99,395"),
        "{}",
        &*shown
    );
}

#[test]
fn lines_cut_by_a_pager_are_read_as_far_as_they_decide() {
    let log = |counts: &str| {
        format!(
            "{}\nCPU: 1 PID: 7 Comm: worker Not tainted 6.12.1 #1\nMem-Info:\nactive_anon:119 inactive_anon:14010 isolated_anon:0\n free:13000 free_pcp:99 free_cma:0\n\
             Node 0 DMA32 free:52000kB boost:0kB min:40000kB low:50000kB high:60000kB reserved_highatomic:0KB active_anon:4B\n\
             lowmem_reserve[]: 0 0 0 0\nNode 0 DMA32: {counts}B\n500000 pages RAM\n0 pages cma reserved\n",
            failed(1, KERNEL)
        )
    };
    // Of order 1 there are blocks, and those listed bear the counter out.
    let decided = one(&log("7000*4kB (UME) 2000*8kB (UME) 100*16kB (UM) 3*32k"));
    assert_eq!(decided.verdict, Some("raced"));
    // Whether larger blocks are free is not in the text.
    let open = one(&log("7000*4kB (UME) 0*8kB 0*16k"));
    assert_eq!(open.verdict, Some("incomplete"));
    assert!(text::render(&explained(&log("7000*4kB (UME) 0*8kB")), usize::MAX).contains('?'));
}

#[test]
fn kswapd_and_requests_without_io_are_named_for_what_they_are() {
    let zones = host(ROOMY, &[100_000]);
    let noio = one(&request(&failed(4, "0xc00(GFP_NOIO)"), "6.8.2", &zones));
    assert!(
        noio.how.contains("no I/O") && noio.how.contains("not compact"),
        "{}",
        noio.how
    );
    let kswapd = request(&failed(0, KERNEL), "6.8.2", &host("free:4000kB min:60000kB low:70000kB high:80000kB present:14000000kB managed:13600000kB free_cma:0kB", &[1000])).replace("worker", "kswapd0");
    let f = one(&kswapd);
    assert_eq!(f.may_wait, Some(false));
    assert!(f.how.contains("kswapd itself"));
    let refill = request(
        &failed(0, "0xc0c40(GFP_NOFS|__GFP_COMP|__GFP_NOMEMALLOC)"),
        "6.19.0",
        &zones,
    )
    .replace(
        "Mem-Info:",
        "Call Trace:\n refill_objects+0x25d/0x380\nMem-Info:",
    );
    assert_eq!(one(&refill).verdict, Some("harmless"));
    let smaller = |order| {
        request(
            &failed(order, "0x10cc0(GFP_KERNEL|__GFP_NORETRY)"),
            "6.8.2",
            &zones,
        )
    };
    let tries = explained(&(smaller(4) + &smaller(3))).reports;
    assert_eq!(
        (tries[0].verdict, tries[1].verdict),
        (Some("harmless"), Some("fragmented"))
    );
}

#[test]
fn the_second_line_is_the_verdict_and_what_to_do() {
    for log in [
        request(&failed(3, KERNEL), "6.8.2", &host(ROOMY, &[100_000])),
        oom() + TASKS + KILLED,
        "app: vmalloc: allocation failure: 0 bytes, mode:0xcc0(GFP_KERNEL)\n".to_owned(),
        "cma: cma_alloc: alloc failed, req-size: 2025 pages, ret: -16\n".to_owned(),
    ] {
        let f = one(&log);
        let shown = text::render(&explained(&log), usize::MAX);
        let mut lines = shown.lines().skip(1);
        assert_eq!(lines.next(), Some(&*format!("   verdict  {}", f.answer)));
        if !f.advice.is_empty() {
            let third = lines.next().unwrap();
            assert!(
                f.advice.iter().any(|a| third.contains(&a.action)),
                "{third}"
            );
        }
    }
}
