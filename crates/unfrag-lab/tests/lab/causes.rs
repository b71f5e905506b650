//! From small traces to causes, rule by rule. `spec: 7.6, 10`

use crate::recording_support::synthetic::{Maker, PAGE_DIRECTORY, USER_PAGE};
use unfrag_eras::Gfp;
use unfrag_lab::era::Era;
use unfrag_lab::replay::causes::{
    Action, Causes, FIRST_ALLOC, FIRST_FREE, INVERSION_NS, Op, causes,
};

const FRAMES: u32 = 4096;

/// Causes of a trace whose start is known by counts only.
fn by_counts(m: &Maker) -> Causes {
    of("6.1.0", m, None)
}

/// Causes of a trace at whose start all frames were free but these.
fn with_used(m: &Maker, used: &[u32]) -> Causes {
    of("6.1.0", m, Some(used))
}

fn of(release: &str, m: &Maker, used: Option<&[u32]>) -> Causes {
    let era = Era::of(release).unwrap();
    let free = |p: u32| !used.unwrap_or_default().contains(&p);
    let free: Option<&dyn Fn(u32) -> bool> = if used.is_some() { Some(&free) } else { None };
    causes(&m.rec, era, FRAMES, 0, u64::MAX, free).unwrap()
}

/// An operation in a word, and the frame that it is about (of a stack, its number).
fn brief(op: &Op) -> (&'static str, u32) {
    let freed = op.freed().map_or(0, |b| b.pfn);
    match op.action {
        Action::Alloc { pfn, .. } => ("alloc", pfn.get()),
        Action::AllocRaced { pfn, .. } => ("alloc raced", pfn.get()),
        Action::AllocFailed { .. } => ("alloc failed", 0),
        Action::AllocUnseen { .. } => ("alloc unseen", 0),
        Action::Free { .. } => ("free", freed),
        Action::FreeReclaimed { .. } => ("free reclaimed", freed),
        Action::FreeUnseen { .. } => ("free unseen", freed),
        Action::Stack { index } => ("stack", index.get()),
        Action::Moved { pfn, .. } => ("moved", pfn.get()),
        Action::MovedAway { pfn, .. } => ("moved away", pfn.get()),
        Action::MovedTo { pfn, .. } => ("moved to", pfn.get()),
        Action::KswapdBegins { .. } => ("kswapd begins", 0),
        Action::KswapdEnds { .. } => ("kswapd ends", 0),
        Action::DrainAll => ("drain all", 0),
    }
}

fn ops(c: &Causes) -> Vec<Op> {
    c.ops.to_vec().unwrap()
}

fn briefs(c: &Causes) -> Vec<(&'static str, u32)> {
    ops(c).iter().map(brief).collect()
}

fn words(c: &Causes) -> Vec<&'static str> {
    ops(c).iter().map(|op| brief(op).0).collect()
}

/// Number of the migration that an operation is one side of.
fn number(op: &Op) -> u32 {
    match op.action {
        Action::MovedAway { number, .. } | Action::MovedTo { number, .. } => number.get(),
        _ => panic!("no side of a migration: {op:?}"),
    }
}

fn free_all(m: &mut Maker, pages: &[u64]) {
    for p in pages {
        m.free(*p, 0);
    }
}

fn isolate(m: &mut Maker, taken: u64) {
    m.event("mm_compaction_isolate_migratepages", &[("nr_taken", taken)]);
}

fn migrated(m: &mut Maker, n: u64) {
    m.event("mm_compaction_migratepages", &[("nr_migrated", n)]);
}

fn begin(m: &mut Maker) {
    m.event("mm_compaction_begin", &[("sync", 0)]);
}

fn end(m: &mut Maker) {
    m.event("mm_compaction_end", &[("sync", 0)]);
}

/// The old frame in the swap entry of a page under migration: inverted, from bit 9 on.
fn set_pte(m: &mut Maker, addr: u64, old: u64) {
    m.event("set_migration_pte", &[("addr", addr), ("pte", !(old << 9))]);
}

fn remove_pte(m: &mut Maker, addr: u64, new: u64) {
    m.event(
        "remove_migration_pte",
        &[("addr", addr), ("pte", new << 12 | 0x67)],
    );
}

#[test]
fn rule_1_a_compacting_task_frees_sources_and_unused_targets() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE);
    begin(&mut m);
    m.free(100, 0).free(900, 0);
    end(&mut m);
    let c = with_used(&m, &[]);
    assert_eq!((c.classes.migrated, c.classes.unused_targets), (1, 1));
    // Neither is a free of the workload's.
    assert_eq!(briefs(&c), [("alloc", 100), ("moved away", 100)]);
}

#[test]
fn rule_1_kcompactd_compacts_though_its_begin_was_not_recorded() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE).task("kcompactd0").free(100, 0);
    assert_eq!(with_used(&m, &[]).classes.migrated, 1);
}

#[test]
fn rule_1_a_free_while_migrating_is_a_source() {
    let mut m = Maker::default();
    m.task("kcompactd0").alloc(100, 0, USER_PAGE);
    begin(&mut m);
    isolate(&mut m, 1);
    m.free(100, 0);
    migrated(&mut m, 1);
    // 100 went to 900 without a word, and 900 goes on to 800.
    isolate(&mut m, 1);
    m.free(900, 0);
    migrated(&mut m, 1);
    m.free(901, 0);
    end(&mut m);
    m.task("user").free(800, 0);
    let c = with_used(&m, &[]);
    assert_eq!((c.classes.migrated, c.classes.unused_targets), (2, 1));
    assert_eq!(c.classes.unexplained_frees, 0);
    assert_eq!(
        briefs(&c),
        [
            ("alloc", 100),
            ("moved away", 100),
            ("moved to", 900),
            ("moved away", 900),
            ("moved to", 800),
            ("free", 800)
        ]
    );
    assert_eq!(number(&ops(&c)[1]), number(&ops(&c)[2]));
    assert_eq!(number(&ops(&c)[3]), number(&ops(&c)[4]));
}

#[test]
fn rule_1_where_nothing_was_isolated_nothing_migrates() {
    let mut m = Maker::default();
    begin(&mut m);
    isolate(&mut m, 1);
    m.free(100, 0);
    migrated(&mut m, 1);
    isolate(&mut m, 0);
    m.free(900, 0).free(901, 0);
    end(&mut m);
    let c = with_used(&m, &[100]);
    assert_eq!((c.classes.migrated, c.classes.unused_targets), (1, 2));
}

#[test]
fn rule_1_an_unused_target_was_free_at_the_start() {
    let mut m = Maker::default();
    begin(&mut m);
    isolate(&mut m, 1);
    m.free(100, 0);
    migrated(&mut m, 1);
    m.free(900, 0);
    end(&mut m);
    let c = by_counts(&m);
    assert_eq!((c.first[100], c.first[900]), (FIRST_FREE, FIRST_ALLOC));
}

/// `spec: 7.6`: 6.18 emits the event though the page goes back to the private list.
#[test]
fn rule_1_newer_kernels_show_returned_targets() {
    let mut m = Maker::default();
    begin(&mut m);
    isolate(&mut m, 2);
    m.free(100, 0).free(900, 0);
    migrated(&mut m, 1);
    end(&mut m);
    let today = of("6.18.0", &m, Some(&[100]));
    assert_eq!(
        (today.classes.migrated, today.classes.unused_targets),
        (1, 1)
    );
    let before = with_used(&m, &[100]);
    assert_eq!(
        (before.classes.migrated, before.classes.unused_targets),
        (2, 0)
    );
}

#[test]
fn rule_1_what_an_interrupt_frees_belongs_to_no_task() {
    let mut m = Maker::default();
    m.task("kcompactd0").alloc(100, 0, USER_PAGE);
    begin(&mut m);
    isolate(&mut m, 1);
    const SOFTIRQ: u8 = 0x10;
    m.flags = SOFTIRQ;
    m.free(100, 0);
    let c = with_used(&m, &[]);
    assert_eq!((c.classes.migrated, c.classes.frees), (0, 1));
    assert_eq!(briefs(&c)[1], ("free", 100));
}

#[test]
fn rule_2_page_table_entries_name_both_sides() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE).alloc(101, 0, USER_PAGE);
    begin(&mut m);
    set_pte(&mut m, 0x7000, 100);
    set_pte(&mut m, 0x8000, 101);
    // In the other order, so that only the entries tell.
    remove_pte(&mut m, 0x8000, 901);
    remove_pte(&mut m, 0x7000, 900);
    m.free(100, 0).free(101, 0);
    end(&mut m);
    m.free(901, 0).free(900, 0);
    let c = with_used(&m, &[]);
    assert_eq!((c.classes.migrated, c.classes.migrated_paired), (2, 2));
    let moves = ops(&c).into_iter().filter_map(|op| match op.action {
        Action::Moved { pfn, to, .. } => Some((pfn.get(), to.get())),
        _ => None,
    });
    assert_eq!(moves.collect::<Vec<_>>(), [(100, 900), (101, 901)]);
    assert_eq!(
        (
            c.classes.frees,
            c.classes.matched,
            c.classes.unexplained_frees
        ),
        (2, 0, 0)
    );
}

#[test]
fn a_move_knows_for_which_order_memory_is_compacted() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE).alloc(101, 0, USER_PAGE);
    m.event("mm_compaction_try_to_compact_pages", &[("order", 9)]);
    begin(&mut m);
    m.free(100, 0);
    end(&mut m);
    m.task("kcompactd0");
    m.free(101, 0);
    m.event("mm_compaction_kcompactd_wake", &[("order", 3)]);
    m.alloc(102, 0, USER_PAGE).free(102, 0);
    m.event("mm_compaction_kcompactd_sleep", &[("nid", 0)]);
    m.alloc(103, 0, USER_PAGE).free(103, 0);
    let c = with_used(&m, &[]);
    let orders = ops(&c).into_iter().filter_map(|op| match op.action {
        Action::MovedAway { pfn, order, .. } => Some((pfn.get(), order)),
        _ => None,
    });
    assert_eq!(
        orders.collect::<Vec<_>>(),
        [(100, 9), (101, 0), (102, 3), (103, 0)]
    );
}

#[test]
fn rule_2_without_entries_the_oldest_source_is_matched() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE).alloc(101, 0, USER_PAGE);
    begin(&mut m);
    m.free(100, 0).free(101, 0);
    end(&mut m);
    m.free(900, 0);
    let c = with_used(&m, &[]);
    assert_eq!(
        (
            c.classes.migrated,
            c.classes.migrated_paired,
            c.classes.matched
        ),
        (2, 0, 1)
    );
    assert_eq!(
        briefs(&c)[2..],
        [
            ("moved away", 100),
            ("moved away", 101),
            ("moved to", 900),
            ("free", 900)
        ]
    );
    assert_eq!(
        number(&ops(&c)[2]),
        number(&ops(&c)[4]),
        "the first that left"
    );
}

#[test]
fn rule_2_a_page_that_returns_to_its_place_did_not_move() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE);
    set_pte(&mut m, 0x7000, 100);
    remove_pte(&mut m, 0x7000, 100);
    m.free(100, 0);
    assert_eq!(briefs(&with_used(&m, &[])), [("alloc", 100), ("free", 100)]);
}

#[test]
fn rule_3_a_free_shortly_after_the_next_allocation_came_before_it() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE);
    m.cpu = 1;
    m.alloc(100, 0, USER_PAGE);
    m.cpu = 0;
    m.free(100, 0);
    let c = with_used(&m, &[]);
    assert_eq!((c.classes.inverted, c.classes.unexplained_allocs), (1, 0));
    assert_eq!(briefs(&c), [("alloc", 100), ("free", 100), ("alloc", 100)]);
}

#[test]
fn rule_3_a_free_much_later_ends_the_second_allocation() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE).alloc(100, 0, USER_PAGE);
    m.wait(INVERSION_NS + 1).free(100, 0);
    let c = with_used(&m, &[]);
    assert_eq!((c.classes.inverted, c.classes.unexplained_allocs), (0, 1));
    assert_eq!(words(&c).last(), Some(&"free"));
    assert_eq!(c.ops.len(), 4);
}

#[test]
fn rule_4_four_untraced_frames_freed_by_a_worker_are_a_stack() {
    let mut m = Maker::default();
    m.task("kworker/0:1");
    free_all(&mut m, &[200, 201, 202, 203]);
    let c = with_used(&m, &[]);
    assert_eq!((c.classes.stack_pages, c.classes.unexplained_frees), (4, 0));
    assert_eq!(words(&c), ["free unseen"; 4]);
}

#[test]
fn rule_4_only_a_worker_frees_a_stack() {
    let mut m = Maker::default();
    m.alloc(100, 2, USER_PAGE);
    begin(&mut m);
    free_all(&mut m, &[100, 101, 102, 103]);
    end(&mut m);
    m.task("kworker/0:1");
    free_all(&mut m, &[200, 209, 202, 205]);
    m.task("user");
    free_all(&mut m, &[900, 901, 902, 903]);
    let c = with_used(&m, &[]);
    assert_eq!((c.classes.stack_pages, c.classes.matched), (4, 4));
    assert_eq!(c.classes.unexplained_frees, 0);
}

#[test]
fn rule_4_three_frames_are_no_stack() {
    let mut m = Maker::default();
    m.task("kworker/0:1");
    free_all(&mut m, &[200, 201, 202]);
    let c = with_used(&m, &[]);
    assert_eq!((c.classes.stack_pages, c.classes.unexplained_frees), (0, 3));
}

#[test]
fn rule_4_by_counts_a_stack_is_taken_with_the_next_page_directory() {
    let mut m = Maker::default();
    m.task("shell").alloc(300, 1, PAGE_DIRECTORY).free(203, 0);
    m.alloc(302, 1, PAGE_DIRECTORY)
        .alloc(304, 1, PAGE_DIRECTORY);
    m.task("kworker/0:1");
    free_all(&mut m, &[200, 203, 207, 201]);
    let c = by_counts(&m);
    assert_eq!(
        (c.classes.stack_pages, &c.stacks[..]),
        (4, &[[200, 203, 207, 201]][..])
    );
    // After the last use of one of its frames, before the directory that came next.
    assert_eq!(
        briefs(&c)[1..4],
        [("free", 203), ("stack", 0), ("alloc", 302)]
    );
    assert_eq!(
        (c.first[200], c.first[203], c.first[201]),
        (FIRST_ALLOC, FIRST_FREE, FIRST_ALLOC)
    );
}

#[test]
fn rule_4_by_counts_each_directory_serves_one_stack() {
    let mut m = Maker::default();
    m.task("shell")
        .alloc(302, 1, PAGE_DIRECTORY)
        .alloc(304, 1, PAGE_DIRECTORY);
    m.task("kworker/0:1");
    // Not adjacent: a stack is younger than the last use of the frame below it.
    free_all(&mut m, &[200, 201, 202, 203, 400, 401, 402, 403]);
    let c = by_counts(&m);
    assert_eq!(
        briefs(&c)[..4],
        [("stack", 0), ("alloc", 302), ("stack", 1), ("alloc", 304)]
    );
}

#[test]
fn rule_4_by_counts_frees_of_a_worker_far_apart_are_no_stack() {
    let mut m = Maker::default();
    m.task("kworker/0:1").free(200, 0).free(201, 0);
    m.wait(2_000_000).free(202, 0).free(203, 0);
    let c = by_counts(&m);
    assert_eq!(c.classes.stack_pages, 0);
    assert!((200..204).all(|p| c.first[p] == FIRST_FREE));
}

#[test]
fn rule_5_frees_by_kswapd_and_direct_reclaim_are_marked() {
    let mut m = Maker::default();
    m.alloc(100, 2, USER_PAGE)
        .alloc(104, 0, USER_PAGE)
        .alloc(105, 0, USER_PAGE);
    m.task("kswapd0").free(100, 2);
    m.task("user")
        .event("mm_vmscan_direct_reclaim_begin", &[("order", 0)]);
    m.free(104, 0);
    m.event("mm_vmscan_direct_reclaim_end", &[("nr_reclaimed", 1)]);
    m.free(105, 0);
    let c = with_used(&m, &[]);
    assert_eq!(c.classes.reclaimed, 5);
    assert_eq!(
        words(&c)[3..],
        ["free reclaimed", "free reclaimed", "drain all", "free"]
    );
}

fn wake(m: &mut Maker) {
    m.task("kswapd0")
        .event("mm_vmscan_kswapd_wake", &[("nid", 0)]);
}

fn sleep(m: &mut Maker) {
    m.task("kswapd0")
        .event("mm_vmscan_kswapd_sleep", &[("nid", 0)]);
}

fn end_of_run(c: &Causes) -> u64 {
    let end = ops(c).into_iter().find(|op| brief(op).0 == "kswapd ends");
    end.expect("the run ends").time
}

/// `spec: 10`: the later of kswapd's last page event and its sleep less 102 ms.
#[test]
fn a_run_of_kswapd_ends_102_ms_before_it_sleeps() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE);
    wake(&mut m);
    m.free(100, 0)
        .task("user")
        .alloc(101, 0, USER_PAGE)
        .wait(500_000_000);
    let slept = m.now;
    sleep(&mut m);
    let c = with_used(&m, &[]);
    assert_eq!(end_of_run(&c), slept - 102_000_000);
    assert_eq!(
        words(&c)[1..],
        ["kswapd begins", "free reclaimed", "alloc", "kswapd ends"]
    );
}

#[test]
fn a_run_of_kswapd_ends_with_its_last_page_if_that_is_later() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE);
    wake(&mut m);
    m.wait(450_000_000);
    let freed = m.now;
    m.free(100, 0).wait(50_000_000);
    sleep(&mut m);
    assert_eq!(end_of_run(&with_used(&m, &[])), freed);
}

#[test]
fn a_wakeup_ends_the_run_at_its_last_page() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE);
    wake(&mut m);
    let freed = m.now;
    m.free(100, 0).wait(200_000_000);
    m.task("user")
        .event("mm_vmscan_wakeup_kswapd", &[("nid", 0)])
        .wait(300_000_000);
    wake(&mut m);
    assert_eq!(end_of_run(&with_used(&m, &[])), freed);
}

/// `spec: 10`: the raw number is 2^64 - 1; only text shows 0.
#[test]
fn a_failed_allocation_has_no_frame_whether_raw_or_from_text() {
    let mut m = Maker::default();
    m.alloc(u64::MAX, 9, USER_PAGE).alloc(0, 9, USER_PAGE);
    let c = by_counts(&m);
    assert_eq!((c.classes.failed, c.classes.allocations), (2, 0));
    let gfp = Gfp::from_bits_retain(USER_PAGE as u32).into();
    let failed = Action::AllocFailed { order: 9, gfp };
    assert!(ops(&c).iter().all(|op| op.action == failed));
}

#[test]
fn the_first_event_of_a_frame_says_whether_it_was_free() {
    let mut m = Maker::default();
    m.alloc(96, 3, USER_PAGE)
        .free(96, 3)
        .free(200, 1)
        .alloc(200, 0, USER_PAGE);
    let c = by_counts(&m);
    assert!((96..104).all(|p| c.first[p] == FIRST_ALLOC));
    assert!((200..202).all(|p| c.first[p] == FIRST_FREE));
    assert_eq!(c.first[202], 0);
}

#[test]
fn an_event_beyond_the_hosts_frames_is_an_error() {
    for (pfn, order) in [(4096, 0), (4095, 1), (u64::MAX - 1, 10), (0, 11), (1, 64)] {
        let mut m = Maker::default();
        m.free(pfn, order);
        let era = Era::of("6.1.0").unwrap();
        let e = causes(&m.rec, era, FRAMES, 0, u64::MAX, None).unwrap_err();
        assert!(e.to_string().contains("frame"), "{e}");
    }
}

#[test]
fn events_without_their_numbers_are_an_error_that_names_the_field() {
    let mut m = Maker::default();
    m.event("mm_page_free", &[("pfn", 1)]);
    let e = causes(&m.rec, Era::of("6.1.0").unwrap(), FRAMES, 0, u64::MAX, None).unwrap_err();
    assert!(e.to_string().contains("`order`"), "{e}");
}

#[test]
fn events_outside_the_span_are_left_out() {
    let mut m = Maker::default();
    m.alloc(100, 0, USER_PAGE);
    let from = m.now;
    m.alloc(101, 0, USER_PAGE);
    let until = m.now - 1;
    m.alloc(102, 0, USER_PAGE);
    let era = Era::of("6.1.0").unwrap();
    let c = causes(&m.rec, era, FRAMES, from, until, None).unwrap();
    assert_eq!(briefs(&c), [("alloc", 101)]);
    assert_eq!(c.events, 1);
}
