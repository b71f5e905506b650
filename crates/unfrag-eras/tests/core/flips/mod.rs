//! Every rule of every era decides something: with any one of them changed, a run that meets many
//! situations goes another way. A rule that nothing depends on is found here.
//!
//! A run is a function of the rules and a seed. All that can be seen of it is written down; a second
//! run under changed rules is held against that, and ends where it first differs.

mod busy;
mod compact_list;
mod compaction;
mod generation_list;
mod list;
mod scenes;
pub(super) mod world;

use super::support::{self, flatten};
use list::flips;
use scenes::{COMPACTION_SEEDS, SCENES, SEEDS, run};
use unfrag_eras::Rules;
use unfrag_eras::kernel::*;
use world::Observation;

/// Flips that change nothing here: the rule, the value that it gets (`*`: any), what must be so of the era,
/// and why.
type NoEffect = (&'static str, &'static str, fn(&Rules) -> bool, &'static str);

const NO_EFFECT: &[NoEffect] = &[
    (
        "marks.min_free_kbytes_cap",
        "*",
        |_| true,
        "takes 256 GiB to be seen; the formula has a test of its own",
    ),
    (
        "rights.leaves_cpuset",
        "*",
        |_| true,
        "there are no cpusets yet: the right is worked out, and nothing asks for it",
    ),
    (
        "placement.reclaimable_is_type_1",
        "*",
        |r| !matches!(r.pcp, Pcp::PerType { .. }),
        "numbers of types say in which turn lists by type are drained; else reports alone print them",
    ),
    (
        "pcp",
        "Searched",
        |r| matches!(r.pcp, Pcp::HotCold { .. }),
        "nobody asks for cold pages: the hot list is the one list",
    ),
    (
        "pcp",
        "HotCold { searched: false }",
        |r| r.placement == Placement::Ungrouped,
        "with one type there is nothing to search for",
    ),
    (
        "pcp",
        "PerType { drain: BatchFree, keep_type: true }",
        |r| r.placement == Placement::Ungrouped,
        "one type has one list",
    ),
    (
        "pcp.searched",
        "*",
        |r| r.placement == Placement::Ungrouped,
        "with one type there is nothing to search for",
    ),
    (
        "reclaim.lru.active_files",
        "ByRatio",
        |r| {
            r.reclaim
                .lru
                .split()
                .is_some_and(|s| s.active_files == ActiveFiles::WhenLonger)
        },
        "the ratio is 1 below a GiB",
    ),
    (
        "reclaim.lru.active_files",
        "WhenLonger",
        |r| {
            r.reclaim
                .lru
                .split()
                .is_some_and(|s| s.active_files == ActiveFiles::ByRatio)
        },
        "the ratio is 1 below a GiB",
    ),
    (
        "reclaim.lru.generations.stops_at_marks",
        "*",
        |r| r.generations().is_some_and(|g| !g.starts_by_size),
        "a run that begins at the first priority has met the marks before one of its passes frees the goal",
    ),
    (
        "reclaim.high_order",
        "Compaction",
        |r| r.reclaim.high_order == HighOrder::Nothing,
        "what is left to compaction, reclaim does nothing for; those that compact ask which it is",
    ),
    (
        "reclaim.high_order",
        "Nothing",
        |r| r.reclaim.high_order == HighOrder::Compaction,
        "what is left to compaction, reclaim does nothing for; those that compact ask which it is",
    ),
    (
        "placement.reserve_costly_only",
        "*",
        |r| !matches!(r.reserve(), Reserve::HighAtomic(_)),
        "a kernel without a high-atomic reserve sets no pageblock aside for any request",
    ),
    (
        "compact.room",
        "*",
        |r| {
            r.compact
                .is_some_and(|c| c.requests == CompactRequests::CostlyWithIo)
        },
        "costly requests are held against the low mark by each of the rules",
    ),
    (
        "compact.room",
        "Callers",
        |r| !r.pageblocks().is_some_and(|p| p.defrag_mode),
        "no caller names another mark than min: that begins with defrag mode",
    ),
    (
        "compact.room",
        "Low",
        |r| {
            let lows = r
                .compact
                .is_some_and(|c| c.room == CompactRoom::LowIfCostly);
            lows && !r.lists_follow_blocks()
        },
        "no run of these scenes begins between the min and the low mark; `compaction::vectors` has the numbers",
    ),
    (
        "compact.room",
        "LowIfCostly",
        |r| r.boost().is_none() && r.pageblocks().is_some_and(|p| p.defrag_mode),
        "without a boost no caller names a mark that is neither the min nor the low one",
    ),
    (
        "compact.finishes_found_block",
        "*",
        |r| !r.compact.is_some_and(|c| c.fast_search),
        "nothing is searched",
    ),
    (
        "compact.notices_capture_late",
        "*",
        |r| r.compact.is_some_and(|c| c.capture == Capture::No),
        "no block comes together for a request",
    ),
    (
        "compact.marks_at_once",
        "*",
        |r| !r.compact.is_some_and(|c| c.skips),
        "no pageblock is marked",
    ),
    (
        "compact.passes_over_next",
        "*",
        |r| !r.compact.is_some_and(|c| c.skips),
        "each run begins at the ends of the zone",
    ),
    (
        "compact.async_leaves_block",
        "*",
        |r| !r.compact.is_some_and(|c| c.modes),
        "no run is asynchronous",
    ),
    (
        "compact.gives_up",
        "*",
        |r| !r.compact.is_some_and(|c| c.modes),
        "a costly request gives up only after a reclaim",
    ),
    (
        "compact.spares_wanted_order",
        "*",
        |_| true,
        "a run ends when there is a block of the wanted order; `compaction::vectors` shows it in the middle of a pageblock",
    ),
    (
        "compact.proactive.floor",
        "*",
        |_| true,
        "no score here gets so low; the formula has tests of its own",
    ),
];

/// What is wrong with the rules of one era.
fn check(era: &Preset) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut known: Vec<Option<Vec<Observation>>> =
        vec![None; SCENES.len() * COMPACTION_SEEDS as usize];
    if std::env::var("ERA").is_ok_and(|e| e != era.name) {
        return wrong;
    }
    let flips = flips(&era.rules);
    for (path, _) in flatten::flat(&era.rules) {
        // These hosts choose no frames: a kernel that leaves that to them is refused, which `sources` shows.
        if path != "compact.chooser" && !flips.iter().any(|f| f.path == path) {
            wrong.push(format!("{}: nobody flips {path}", era.name));
        }
    }
    for flip in &flips {
        let what = format!("{}: {} = {}", era.name, flip.path, flip.to);
        let mut excuses = NO_EFFECT.iter();
        let excuse = excuses.find(|(path, to, of, _)| {
            *path == flip.path && (*to == "*" || *to == flip.to) && of(&era.rules)
        });
        let seeds = if excuse.is_some() {
            1
        } else {
            COMPACTION_SEEDS
        };
        let runs = (0..seeds).flat_map(|seed| SCENES.iter().enumerate().map(move |s| (seed, s)));
        let mut runs = runs.filter(|(seed, (_, scene))| match **scene {
            "large" => *seed == 0,
            "compaction" => true,
            // Nothing else depends on whether pages stand in generations.
            "generations" | "generations, starved" | "stream" => {
                *seed < SEEDS && flip.path.starts_with("reclaim.lru.generations")
            }
            _ => *seed < SEEDS,
        });
        let seen = runs.find_map(|(seed, (i, scene))| {
            let log = known[seed as usize * SCENES.len() + i]
                .get_or_insert_with(|| run(scene, &era.rules, (seed, None)).own);
            let record = run(scene, &flip.rules, (seed, Some(log)));
            (record.differs || record.at != log.len()).then(|| format!("{scene}, seed {seed}"))
        });
        match (seen, excuse) {
            (None, None) => wrong.push(format!("{what} changes nothing")),
            (Some(seen), Some(e)) => wrong.push(format!("{what} ({}) shows in {seen}", e.3)),
            _ => {}
        }
    }
    wrong
}

#[test]
fn each_rule_of_each_era_changes_what_is_seen() {
    let (some, others) = PRESETS.split_at(PRESETS.len() / 2);
    let all = |eras: &[Preset]| eras.iter().flat_map(check).collect::<Vec<_>>();
    let wrong = std::thread::scope(|s| {
        let beside = s.spawn(|| all(others));
        let mut wrong = all(some);
        wrong.extend(beside.join().expect("the other half"));
        wrong
    });
    assert!(
        wrong.is_empty(),
        "{}\n{} in all",
        wrong.join("\n"),
        wrong.len()
    );
}
