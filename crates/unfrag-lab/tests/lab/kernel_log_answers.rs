//! What somebody on call reads of a failure: a reason in each zone's row, a verdict that speaks of all zones that were tried,
//! what to do now and what to look at longer first, and who was killed. `spec: K.4`
//!
//! Each input is made here, in the form that kernels print; numbers are chosen so that one of them decides.

use crate::kernel_log_judges::{
    ATOMIC, KERNEL, KILLED, ROOMY, TASKS, Zone, explained, failed, host, one, oom, request, value,
};
use unfrag_lab::explain::answer::{Failure, When};
use unfrag_lab::explain::text;

fn shown(log: &str) -> String {
    text::render(&explained(log), usize::MAX).to_string()
}

fn reasons(f: &Failure) -> Vec<(&str, &str)> {
    let each = f.zones.iter();
    each.map(|z| (z.zone.as_str(), z.why.as_deref().unwrap_or("")))
        .collect()
}

/// Free memory is above what must be kept, and with the request's own pages it is not.
#[test]
fn a_row_tells_by_how_many_kib_its_zone_was_short() {
    let normal = "free:126872kB min:63960kB low:79948kB high:95936kB present:15663104kB managed:15343300kB free_cma:0kB";
    let dma32 = "free:63492kB min:3556kB low:4444kB high:5332kB present:964268kB managed:898436kB free_cma:0kB";
    let dma =
        "free:13312kB min:64kB low:80kB high:96kB present:15992kB managed:15360kB free_cma:0kB";
    let zones: [Zone; 3] = [
        (
            "Node 0 DMA",
            dma,
            "0 833 15809 15809",
            &[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2],
        ),
        (
            "Node 0 DMA32",
            dma32,
            "0 0 14975 14975",
            &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15],
        ),
        ("Node 0 Normal", normal, "0 0 0 0", &[31_000, 300]),
    ];
    let log = request(&failed(4, "0x40c40(GFP_NOFS|__GFP_COMP)"), "5.19.0", &zones);
    let f = one(&log);
    assert_eq!(f.verdict, Some("fragmented"));
    assert_eq!(
        reasons(&f),
        [
            ("DMA", "49,988 KiB short"),
            // 63,492 - 60 is below 3,556 + 4 * 14,975.
            ("DMA32", "24 KiB short, as 60 KiB of the request count"),
            ("Normal", "no piece is large enough"),
        ]
    );
    let left = "what was free in DMA and DMA32 had to stay there";
    assert!(f.answer.contains(left), "{}", f.answer);
    let kept = "DMA keeps all that it has for requests that can use no other zone";
    assert!(f.notes.iter().any(|n| n.starts_with(kept)), "{:?}", f.notes);
}

#[test]
fn each_row_of_a_failure_has_its_reason() {
    let few = "free:4000kB min:60000kB low:70000kB high:80000kB present:14000000kB managed:13600000kB free_cma:0kB";
    let areas = "free:90000kB min:60000kB low:70000kB high:80000kB present:14000000kB managed:13600000kB free_cma:80000kB";
    let ample = "free:900000kB min:60000kB low:70000kB high:80000kB present:14000000kB managed:13600000kB free_cma:0kB";
    for (order, mode, normal, counts, why) in [
        (0, KERNEL, few, &[1000][..], "56,000 KiB short"),
        (
            0,
            KERNEL,
            areas,
            &[22_500],
            "50,000 KiB short without contiguous memory areas (CMA)",
        ),
        (0, KERNEL, ample, &[225_000], "would serve it"),
        (3, ATOMIC, ample, &[225_000], "no piece is large enough"),
        (
            0,
            "0xcc1(GFP_KERNEL|GFP_DMA)",
            ample,
            &[225_000],
            "not for this request",
        ),
    ] {
        let f = one(&request(
            &failed(order, mode),
            "6.8.2",
            &host(normal, counts),
        ));
        let all = reasons(&f);
        assert_eq!(all[2], ("Normal", why), "{:?}", f.verdict);
        assert!(all.iter().all(|(_, why)| !why.is_empty()), "{all:?}");
    }
    // 12 blocks of order 3 are 384 KiB, of which the kernel keeps half of its mark.
    let old = "free:4048kB min:4000kB low:5000kB high:6000kB present:1020000kB managed:1000000kB";
    let zones: [Zone; 1] = [("Node 0 DMA32", old, "0 0 0", &[800, 90, 4, 2])];
    let head = "swapper: page allocation failure. order:3, mode:0x4020";
    let f = one(&request(head, "2.6.30.5", &zones));
    assert_eq!(f.verdict, Some("marks"));
    assert_eq!(
        reasons(&f)[0].1,
        "too little is free in pieces so large or larger"
    );
}

#[test]
fn all_zones_that_were_short_are_named() {
    let few = "free:4000kB min:60000kB low:70000kB high:80000kB present:14000000kB managed:13600000kB free_cma:0kB";
    let f = one(&request(&failed(0, KERNEL), "6.8.2", &host(few, &[1000])));
    assert_eq!(f.verdict, Some("short"));
    let named = "node 0 Normal had 4,000 KiB free for it, and must keep 60,000 KiB; DMA and DMA32 were short too";
    assert!(f.answer.contains(named), "{}", f.answer);
    for jargon in ["count for it", "against a mark"] {
        assert!(!f.meaning.contains(jargon), "{}", f.meaning);
    }
}

/// A log is of one moment: what stays is never to be done now, and has the doctor's value.
#[test]
fn a_setting_is_looked_at_longer_first() {
    let mut settings = 0;
    let tight = ROOMY.replace("boost:100000kB", "boost:0kB");
    let short = tight.replace("free:190000kB", "free:9000kB active_file:9000000kB");
    for (order, mode, normal) in [(3, KERNEL, ROOMY), (3, ATOMIC, &tight), (0, ATOMIC, &short)] {
        let log = request(&failed(order, mode), "6.8.2", &host(normal, &[100_000]));
        let f = one(&log);
        for a in f.advice.iter().filter(|a| a.setting.is_some()) {
            assert!(a.when > When::Now, "{a:?}");
            assert_eq!(a.look_first, Some("unfrag doctor --for 10m"), "{a:?}");
            settings += 1;
        }
        let shown = shown(&log);
        for now in shown.split("   DO now   ").skip(1) {
            let now = now.split("\n   DO later").next().unwrap_or(now);
            let now = now.split("\n   perhaps").next().unwrap_or(now);
            assert!(!now.contains("sysctl"), "{shown}");
        }
    }
    assert!(settings > 2, "{settings}");
}

/// Marks of 2,044 KiB are those of 2,048 that were set, of which the doctor makes 4,096.
#[test]
fn a_setting_that_is_known_by_its_marks_leads_to_the_doctors_value() {
    let zones: [Zone; 2] = [
        (
            "Node 0 DMA",
            "free:896kB min:4kB low:4kB high:4kB present:1656kB managed:1024kB free_cma:0kB",
            "0 322 322 322",
            &[0, 0, 0, 0, 0, 1, 1, 1],
        ),
        (
            "Node 0 DMA32",
            "free:1200kB min:2040kB low:2548kB high:3056kB present:376680kB managed:330336kB free_cma:0kB",
            "0 0 0 0",
            &[300],
        ),
    ];
    let counts = "active_anon:0 inactive_anon:0 isolated_anon:0\n active_file:9000 inactive_file:0 isolated_file:0\n free:524 free_pcp:0 free_cma:0\n";
    let log = request(&failed(0, KERNEL), "6.12.1", &zones)
        .replace("worker", "kswapd0")
        .replace("Mem-Info:\n", &format!("Mem-Info:\n{counts}"));
    let f = one(&log);
    assert_eq!(f.verdict, Some("short"));
    assert_eq!(
        value(&f, "vm.min_free_kbytes"),
        Some(4096),
        "{:?}",
        f.advice
    );
}

/// With far more free than a larger setting would keep, it would have changed nothing.
#[test]
fn more_is_not_to_be_kept_free_where_more_was_free() {
    let ample = ROOMY.replace("free:190000kB", "free:900000kB");
    for mode in [KERNEL, ATOMIC] {
        let f = one(&request(
            &failed(3, mode),
            "6.8.2",
            &host(&ample, &[225_000]),
        ));
        assert_eq!(f.verdict, Some("fragmented"));
        for setting in ["vm.min_free_kbytes", "vm.watermark_scale_factor"] {
            assert_eq!(value(&f, setting), None, "{setting}");
        }
        assert!(
            f.advice.iter().any(|a| a.when == When::Now),
            "{:?}",
            f.advice
        );
    }
}

/// Half of what is free lies in huge pages: at the default nothing is compacted ahead, at 80 it would be.
#[test]
fn proactiveness_is_named_where_the_default_does_nothing() {
    let zone = "free:800000kB min:4000kB low:5000kB high:6000kB present:4000000kB managed:3900000kB free_cma:0kB";
    let of = |counts: &[u64]| {
        let zones: [Zone; 1] = [("Node 0 DMA32", zone, "0", counts)];
        let f = one(&request(&failed(10, KERNEL), "6.12.1", &zones));
        (f.verdict, value(&f, "vm.compaction_proactiveness"))
    };
    let half = of(&[100_000, 0, 0, 0, 0, 0, 0, 0, 0, 195]);
    assert_eq!(half, (Some("fragmented"), Some(80)));
    assert_eq!(
        of(&[200_000]),
        (Some("fragmented"), None),
        "it begins at the default"
    );
}

#[test]
fn a_reserve_that_looks_like_the_cause_is_said_not_to_be() {
    let zone = |free: &str| {
        let zone = format!(
            "free:1482936kB boost:0kB min:410416kB low:739404kB high:1068392kB reserved_highatomic:1073152KB free_highatomic:{free} present:134217728kB managed:131000000kB free_cma:0kB"
        );
        let zones: [Zone; 1] = [("Node 0 Normal", &zone, "0 0 0 0", &[370_000])];
        let head = "java invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0";
        request(head, "6.18.1", &zones)
    };
    let log = zone("0KB");
    let f = one(&log);
    assert_eq!(f.verdict, Some("raced"));
    let note = "the high-atomic reserve of node 0 Normal (1 GiB, reserved_highatomic) is not the cause: this kernel takes off only what is free of it (0 B, free_highatomic)";
    assert!(f.notes.iter().any(|n| n == note), "{:?}", f.notes);
    let shown = shown(&log);
    for needed in ["oom-kill:constraint=", "MEMCG", "CPUSET", "sysrq"] {
        assert!(shown.contains(needed), "{needed}: {shown}");
    }
    assert!(!shown.contains("sure     Sure"), "{shown}");
    let blamed = one(&zone("1073152KB"));
    assert_eq!(blamed.verdict, Some("short"));
    assert!(
        !blamed.notes.iter().any(|n| n.contains("not the cause")),
        "{:?}",
        blamed.notes
    );
}

#[test]
fn who_was_killed_stands_in_the_headline_and_what_to_do_is_a_line_each() {
    let log = oom() + TASKS + KILLED;
    let shown = shown(&log);
    let first = shown.lines().next().unwrap();
    assert_eq!(
        first,
        "1. the OOM killer ended builder: builder asked for 4 KiB (order 0) (line 1)"
    );
    let line = |begin: &str| {
        let found = shown.lines().find(|l| l.starts_with(begin));
        found.unwrap_or_else(|| panic!("{begin}: {shown}"))
    };
    let fewer = line("   DO now   run fewer of them at once");
    assert!(fewer.contains("2 builder hold 400 MiB"), "{fewer}");
    line("   DO later add swap");
    let twice = shown_of_two(&log);
    let ran = "1. the OOM killer ran (builder was ended first): builder asked for 4 KiB (order 0), 2 times";
    assert!(twice.starts_with(ran), "{twice}");
}

fn shown_of_two(log: &str) -> String {
    shown(&(log.to_owned() + "\n" + &log.replace("(builder)", "(logger)")))
}

/// A disk's queue does not govern a file system that reads by a backing device of its own.
#[test]
fn a_read_ahead_is_set_where_its_file_system_has_it() {
    let log = request(&failed(4, KERNEL), "6.1.3", &host(ROOMY, &[100_000])).replace(
        "Mem-Info:",
        "Call Trace:\n btrfs_lookup_bio_sums+0x542/0x580 [btrfs]\n extent_readahead+0x40d/0x440 [btrfs]\nMem-Info:",
    );
    let f = one(&log);
    let ahead = f
        .advice
        .iter()
        .find(|a| a.action.contains("read-ahead"))
        .unwrap();
    assert_eq!(
        ahead.command.as_deref(),
        Some("echo 512 > /sys/class/bdi/btrfs-N/read_ahead_kb")
    );
    assert_eq!(ahead.when, When::Later);
    let is_disk = |c: &str| c.contains("/queue/read_ahead_kb");
    assert!(
        !f.advice
            .iter()
            .any(|a| a.command.as_deref().is_some_and(is_disk))
    );
}

#[test]
fn a_text_without_a_line_of_a_kernel_is_no_log() {
    for (text, is_log) in [
        ("", false),
        (
            "bash-12 [000] d..1. 12.5: mm_page_alloc: page=0x1 pfn=0x1 order=0\n",
            false,
        ),
        ("[   12.500000] usb 1-1: new high-speed USB device\n", true),
        (" lowmem_reserve[]: 0 0\n", true),
    ] {
        assert_eq!(explained(text).is_log, is_log, "{text}");
        assert_eq!(
            shown(text).contains("no line of it is a kernel's"),
            !is_log,
            "{text}"
        );
    }
    assert!(
        explained(&request(
            &failed(3, KERNEL),
            "6.8.2",
            &host(ROOMY, &[100_000])
        ))
        .is_log
    );
}
