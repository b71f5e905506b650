//! Real kernels replayed, and measured against what they did themselves.
//!
//! The sample that ships is always replayed, the full recordings where `UNFRAG_DATA` names their
//! directory. Thresholds are those that hold today. `spec: 10`

use crate::recording_support::*;
use unfrag_eras::{CpuId, MigrateType, Order};
use unfrag_lab::replay::answer::report::{Accuracy, Observed, Report, SnapshotError};
use unfrag_lab::replay::causes::{Action, Op};
use unfrag_lab::replay::model::Sim;
use unfrag_lab::replay::{
    CompactionChoice, Mode, NoWatch, Options, ReclaimChoice, StartChoice, replay,
};
use unfrag_linux::freelists::{FreeLists, PcpKind};
use unfrag_linux::recording::{Recording, Snapshot};

const LEAST_SKILL_OF_ORDER_DISTRIBUTION: f64 = 0.8;
const LEAST_SKILL_OF_UNUSABLE_INDEX_AT_9: f64 = 0.8;

fn run(rec: &Recording, start: StartChoice, mode: Mode) -> Report {
    let options = Options {
        start,
        mode,
        ..Options::default()
    };
    replay(rec, "a recording", &options, &mut NoWatch).expect("a replay")
}

fn accuracy(report: &Report) -> &Accuracy {
    let own = report.kernels.iter().find(|k| k.recorded_era);
    own.and_then(|k| k.accuracy.as_ref())
        .expect("the recorded era is measured")
}

/// Shows a replay's accuracy beside a failing assertion.
fn show(name: &str, a: &Accuracy) {
    println!(
        "{name}: order distribution {:?}, free pages {:?}, unusable at 9 {:?}, frames {:?}",
        a.order_distribution_error, a.free_pages_error, a.unusable_index_error["9"], a.frame_match
    );
}

fn check_accuracy_of_gcc(rec: &Recording) {
    let report = run(rec, StartChoice::Auto, Mode::Predict);
    let a = accuracy(&report);
    show("768M", a);
    let unusable = &a.unusable_index_error["9"];
    assert!(a.order_distribution_error.skill.unwrap() >= LEAST_SKILL_OF_ORDER_DISTRIBUTION);
    assert!(a.order_distribution_error.p90 <= 0.05);
    assert!(a.free_pages_error.median <= 0.003);
    assert!(unusable.median <= 0.01);
    assert!(unusable.skill.unwrap() >= LEAST_SKILL_OF_UNUSABLE_INDEX_AT_9);
    assert_eq!(report.start, "counts");
    assert!(a.snapshots > 100);
}

#[test]
fn the_sample_is_predicted_far_better_than_by_a_forecaster() {
    check_accuracy_of_gcc(sample());
}

#[test]
fn the_768_mib_recording_is_predicted_far_better_than_by_a_forecaster() {
    if let Some(rec) = gcc() {
        check_accuracy_of_gcc(rec);
    }
}

/// When the walk over a mark's free lists was done, in the trace's clock (both have the same).
fn time_of_lists(mark: &Snapshot) -> u64 {
    let lists = mark.files.iter().find(|f| f.name == "freelists");
    lists.and_then(|f| f.time).expect("dated lists").1
}

fn apply_until(
    sim: &mut Sim,
    ops: &[Op],
    causes: &unfrag_lab::replay::causes::Causes,
    end: impl Fn(&Op) -> bool,
) {
    for op in ops.iter().take_while(|o| !end(o)) {
        sim.apply(op, causes);
    }
}

fn type_of(number: u8) -> MigrateType {
    [
        MigrateType::Unmovable,
        MigrateType::Movable,
        MigrateType::Reclaimable,
        MigrateType::HighAtomic,
        MigrateType::Isolate,
    ][usize::from(number)]
}

/// Every buddy list and every per-CPU list, in list order. Returns blocks compared.
fn assert_same_lists(sim: &Sim, lists: &FreeLists) -> [usize; 2] {
    let m = sim.manager.inspect();
    let mut compared = [0, 0];
    for z in m.zones() {
        let name = m.zone_config(z).kind.name();
        let theirs = lists.zone(name).expect("the zone is in freelists");
        for area in &theirs.orders {
            for list in &area.lists {
                let mt = type_of(list.migratetype);
                let ours: Vec<u64> = m.free_list(z, Order(area.order), mt).map(|p| p.0).collect();
                assert!(ours == list.pfns, "{name}, order {}, {mt:?}", area.order);
                compared[0] += ours.len();
            }
        }
        for set in &theirs.pcps {
            for list in &set.lists {
                let index = match list.kind {
                    PcpKind::MigrateType(t) => usize::from(list.order) * 3 + usize::from(t),
                    PcpKind::Thp(i) => usize::from(i),
                };
                let cpu = CpuId(set.cpu);
                let ours: Vec<u64> = m.pcp_list(z, cpu, index).map(|p| p.0).collect();
                assert!(ours == list.pfns, "{name}, {cpu:?}, list {index}");
                compared[1] += ours.len();
            }
            let view = m.set(z, CpuId(set.cpu));
            assert_eq!(
                (view.count, view.high, view.batch, view.factor),
                (set.count, set.high, set.batch, i32::from(set.free_factor)),
                "{name}, CPU {}",
                set.cpu
            );
        }
    }
    compared
}

/// `spec: 10`: 333,903 of 333,903; lists identical in list order.
#[test]
fn huge_p20_reaches_the_kernels_own_lists_at_fragmented() {
    let Some(rec) = huge_p20() else { return };
    let (plan, mut memory) = exact_plan(rec);
    let mut sim = recorded_era(rec, &plan, &mut memory);
    let fragmented = mark(rec, "fragmented");
    let end = plan.trace_time(time_of_lists(fragmented));
    let ops = plan.causes.ops.to_vec().unwrap();
    apply_until(&mut sim, &ops, &plan.causes, |o| o.time > end);
    assert_eq!(sim.tally.allocated, 333_903);
    assert_eq!(sim.tally.on_same_frame, 333_903);
    let lists = FreeLists::parse(fragmented.file("freelists").unwrap()).unwrap();
    let [buddy, held] = assert_same_lists(&sim, &lists);
    assert!(buddy > 1000 && held > 1000, "{buddy} and {held} blocks");
    sim.manager.inspect().validate().expect("sound structures");
}

fn is_kswapd_begin(op: &Op) -> bool {
    matches!(op.action, Action::KswapdBegins { .. })
}

/// Up to the first wake of kswapd.
const ALLOCATIONS: u64 = 219_347;

/// `spec: 10`: to the first kswapd run, 8 fallbacks among them.
#[test]
fn pressure_stays_on_the_kernels_own_frames_until_kswapd_runs() {
    let Some(rec) = pressure() else { return };
    let (plan, mut memory) = exact_plan(rec);
    let mut sim = recorded_era(rec, &plan, &mut memory);
    let ops = plan.causes.ops.to_vec().unwrap();
    let first = ops.iter().position(is_kswapd_begin);
    let until = ops[first.expect("kswapd ran")].time;
    apply_until(&mut sim, &ops, &plan.causes, is_kswapd_begin);
    println!("{:?}", plan.inferred);
    let t = &sim.tally;
    assert_eq!((t.allocated, t.on_same_frame), (ALLOCATIONS, ALLOCATIONS));
    let taken = sim.manager.host().extfrag.as_deref().unwrap_or_default();
    let ours: Vec<u32> = taken.iter().map(|e| e.pfn.0 as u32).collect();
    let kind = kind(rec, "mm_page_alloc_extfrag");
    let times = rec.events.time.iter().zip(&rec.events.kind);
    let times = times.filter(|(_, k)| usize::from(**k) == kind).map(|e| e.0);
    let pfns = rec.events.tables[kind].column("pfn").expect("frames");
    let since = times
        .zip(pfns)
        .filter(|(t, _)| (plan.start.time..=until).contains(t));
    let theirs: Vec<u32> = since.map(|(_, pfn)| *pfn as u32).collect();
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 8);
    sim.manager.inspect().validate().expect("sound structures");
}

/// The number of a kind of event.
fn kind(rec: &Recording, event: &str) -> usize {
    let kind = rec.events.tables.iter().position(|t| t.name == event);
    kind.expect("the event was recorded")
}

/// Seconds from the first event of the trace to the first one of a kind.
fn first(rec: &Recording, event: &str) -> f64 {
    let kind = kind(rec, event);
    let at = rec.events.kind.iter().position(|k| usize::from(*k) == kind);
    (rec.events.time[at.expect("it happened")] - rec.events.time[0]) as f64 / 1e9
}

fn worst(errors: &[&SnapshotError]) -> f64 {
    let own = errors.iter().map(|e| e.order_distribution[0]);
    own.fold(0.0, f64::max)
}

/// Below 0.001 in all snapshots but one, between the first kswapd run and direct reclaim: there the free
/// counter stands within 40 pages of the low mark (9,003 of 9,040 where frames first differ for good), and
/// which CPU came first decides the zone.
const MOST_BEFORE_DIRECT_RECLAIM: f64 = 0.0015;

/// Until compaction moves pages: khugepaged is refused a huge page in the model, where CPUs hold 535 pages more than on the
/// host at that moment, and one of eleven huge blocks stays free that is in use there, among 10,600 free pages.
const MOST_BEFORE_COMPACTION: f64 = 0.115;

#[test]
fn pressure_is_followed_through_reclaim_as_given() {
    let Some(rec) = pressure() else { return };
    let options = Options {
        start: StartChoice::Exact,
        reclaim: ReclaimChoice::Given,
        ..Options::default()
    };
    let report = replay(rec, "a recording", &options, &mut NoWatch).expect("a replay");
    let a = accuracy(&report);
    show("pressure", a);
    let kswapd = first(rec, "mm_vmscan_kswapd_wake");
    let direct = first(rec, "mm_vmscan_direct_reclaim_begin");
    let compaction = first(rec, "mm_compaction_begin");
    let between = |from: f64, to: f64| -> Vec<&SnapshotError> {
        let inside = |e: &&SnapshotError| (from..to).contains(&e.seconds);
        let found: Vec<_> = a.by_snapshot.iter().filter(inside).collect();
        println!(
            "{from} to {to} s: at most {} in {} snapshots",
            worst(&found),
            found.len()
        );
        assert!(!found.is_empty());
        found
    };
    assert_eq!(worst(&between(0.0, kswapd)), 0.0);
    assert!(worst(&between(0.0, direct)) <= MOST_BEFORE_DIRECT_RECLAIM);
    assert!(worst(&between(direct, compaction)) <= MOST_BEFORE_COMPACTION);
    for e in between(direct, compaction) {
        let [ours, forecast] = e.order_distribution;
        assert!(ours < forecast / 5.0, "{e:?}");
    }
    for e in between(compaction, f64::MAX) {
        let [ours, forecast] = e.order_distribution;
        assert!(ours < forecast, "{e:?}");
    }
}

/// Of vmstat at the end of the recording.
const PGSTEAL_KSWAPD: u64 = 164_424;
const PAGEOUTRUN: u64 = 46;
const ALLOCSTALL: u64 = 11;

/// `spec: 4.8`
#[test]
fn modelled_reclaim_takes_what_the_kernel_took() {
    let Some(rec) = pressure() else { return };
    let report = run(rec, StartChoice::Exact, Mode::Predict);
    let totals = &report.kernels[0].totals;
    println!("{totals:?}");
    assert!(totals["pgsteal_kswapd"].unwrap().abs_diff(PGSTEAL_KSWAPD) <= PGSTEAL_KSWAPD / 10);
    let runs = totals["pageoutrun"].unwrap();
    assert!(
        (PAGEOUTRUN * 2 / 3..=PAGEOUTRUN * 3 / 2).contains(&runs),
        "{runs} runs"
    );
    assert!(totals["allocstall"].unwrap() <= 2 * ALLOCSTALL);
    assert!(
        totals["failures"].unwrap() < 100,
        "what it reclaims suffices"
    );
    // The middle of many; that of a single replay varies by 0.2 with kswapd's phase (docs/accuracy.md).
    let skill = |a: &Accuracy| a.free_pages_error.skill.expect("some error");
    let exact = skill(accuracy(&report));
    // Beside the answer from an exact start there is one replay from counts.
    let one = report.kernels[0].accuracy_from_counts.as_ref();
    let one = skill(one.expect("a start from counts"));
    assert!(one >= 0.3, "{one}");
    let counts = skill(accuracy(&run(rec, StartChoice::Counts, Mode::Predict)));
    println!("skill of free pages {exact:.2}, from counts {counts:.2}");
    assert!(exact >= 0.6 && counts >= 0.6, "{exact} {counts}");
    let of = &report.kernels[0].ensemble;
    let [least, median, most] = of
        .as_ref()
        .and_then(|e| e.free_pages_skill)
        .expect("skills");
    assert!(least <= median && median <= most && median < exact);
}

/// With the pages that moved there moved here as well, free memory is where the kernel had it: the share
/// of it in blocks of another size is a tenth of what it is if they stay, or half under pressure.
#[test]
fn compaction_as_given_leaves_free_memory_as_the_kernel_did() {
    for (rec, times) in [(huge_p20(), 10.0), (pressure(), 2.0)] {
        let Some(rec) = rec else { return };
        let [given, none] = [CompactionChoice::Given, CompactionChoice::None].map(|compaction| {
            let options = Options {
                start: StartChoice::Exact,
                reclaim: ReclaimChoice::Given,
                compaction: Some(compaction),
                ..Options::default()
            };
            let report = replay(rec, "a recording", &options, &mut NoWatch).expect("a replay");
            let totals = &report.kernels[0].totals;
            let moved = totals["migrated_pages_as_given"].unwrap();
            let a = accuracy(&report).clone();
            show("compaction", &a);
            (a, moved, moved + totals["migrated_pages_ignored"].unwrap())
        });
        assert_eq!(none.1, 0);
        assert!(
            given.1 * 10 > given.2 * 8,
            "{} of {} moved",
            given.1,
            given.2
        );
        let median = |a: &Accuracy| a.order_distribution_error.median;
        assert!(median(&given.0) * times < median(&none.0));
        for error in [
            |a: &Accuracy| a.order_distribution_error.skill,
            |a: &Accuracy| a.free_pages_error.skill,
            |a: &Accuracy| a.unusable_index_error["9"].skill,
        ] {
            let skill = |a: &Accuracy| error(a).expect("some error");
            assert!(skill(&given.0) > skill(&none.0));
        }
    }
}

/// `spec: 10`: from counts frames cannot be predicted, only amounts; with the order of the lists that the trace shows
/// these are as close as from the kernel's own lists.
#[test]
fn a_start_from_counts_is_close_to_an_exact_one() {
    let Some(rec) = huge_p20() else { return };
    let [exact, counts] = [StartChoice::Exact, StartChoice::Counts].map(|start| {
        let report = run(rec, start, Mode::Predict);
        let a = accuracy(&report).clone();
        show(&report.start, &a);
        a
    });
    assert!(exact.frame_match.is_some() && counts.frame_match.is_none());
    for a in [exact, counts] {
        assert!(a.order_distribution_error.skill.expect("some error") > 0.9);
        let huge = a.huge_faults.expect("huge pages were asked for");
        assert!(huge.precision >= Some(0.95) && huge.recall >= Some(0.95));
        // The recorded host served 83 % at once, and its 90th percentile was 63 times the median.
        let wait = huge.wait.expect("some got one");
        assert!((73.0..93.0).contains(&wait.at_once_percent), "{wait:?}");
        assert!((31.5..126.0).contains(&wait.p90_over_p50), "{wait:?}");
    }
}

fn observed(rec: &Recording) -> Observed {
    let found = run(rec, StartChoice::Auto, Mode::Observe).observe;
    found.expect("observe mode observes")
}

/// Holds every class of events against the kernel's own counter.
fn check_observed(rec: &Recording) -> Observed {
    let o = observed(rec);
    assert!(
        o.unclassified_share < 0.001,
        "{} unclassified",
        o.unclassified
    );
    for c in &o.classes {
        let difference = c.difference.expect("6.1 has all counters");
        assert!(difference.abs() <= 0.01, "{c:?}");
    }
    o
}

/// The kernel's own count of a class, which the trace must show to the page.
fn class(o: &Observed, counter: &str) -> (u64, u64) {
    let c = o.classes.iter().find(|c| c.counter == counter);
    let c = c.expect("the class is checked");
    (c.pages, c.counted.expect("6.1 counts it"))
}

const MIGRATED: &str = "pgmigrate_success";
const FAULTS: &str = "thp_fault_alloc";
const COLLAPSES: &str = "thp_collapse_alloc";

#[test]
fn observing_the_sample_finds_every_event_explained() {
    let o = check_observed(sample());
    assert_eq!(o.unclassified, 0);
    assert_eq!(class(&o, MIGRATED), (0, 0));
    assert_eq!(class(&o, FAULTS), (143, 143));
    assert_eq!(class(&o, COLLAPSES), (59, 59));
}

/// `spec: 7.6`: success is a free of the old frame, between isolation and the event that
/// counts the migrated.
#[test]
fn observing_direct_compaction_finds_every_page_that_the_kernel_migrated() {
    let Some(rec) = compact() else { return };
    let o = check_observed(rec);
    assert_eq!(class(&o, MIGRATED), (43_749, 43_749));
    assert_eq!(class(&o, FAULTS), (286, 286));
    assert_eq!(class(&o, COLLAPSES), (0, 0));
}

#[test]
fn observing_huge_p20_finds_every_event_explained_and_the_kernels_layout() {
    let Some(rec) = huge_p20() else { return };
    let o = check_observed(rec);
    assert_eq!(o.unclassified, 0);
    assert_eq!(class(&o, MIGRATED), (68_482, 68_482));
    assert_eq!(class(&o, FAULTS), (503, 503));
    assert_eq!(class(&o, COLLAPSES), (0, 0));
    let names: Vec<&str> = o.layouts.iter().map(|l| &l.name[..]).collect();
    assert_eq!(names[..2], ["filled", "fragmented"]);
    for l in &o.layouts {
        println!("{l:?}");
        // Pages without a mapping migrate without a word of where they went.
        let known = ["filled", "fragmented"].contains(&&l.name[..]);
        let most = if known { 0 } else { l.free_pages / 100 };
        assert!(l.wrongly_free <= most && l.wrongly_used <= most, "{l:?}");
    }
}

#[test]
fn observing_pressure_finds_every_event_explained() {
    let Some(rec) = pressure() else { return };
    let o = check_observed(rec);
    assert_eq!(o.unclassified, 0);
    assert_eq!(class(&o, MIGRATED), (41_527, 41_527));
    assert_eq!(class(&o, FAULTS), (132, 132));
    assert_eq!(class(&o, COLLAPSES), (5, 5));
}
