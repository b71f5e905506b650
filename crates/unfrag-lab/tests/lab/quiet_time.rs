//! What the model's daemons do while nobody asks for anything, up to a moment that is looked at.

use crate::recording_support::host::{Host, START};
use crate::recording_support::machine::{FIRST, PAGES, empty, memory, op, sim};
use crate::recording_support::synthetic::{Maker, USER_PAGE};
use unfrag_eras::{Gfp, ZoneId};
use unfrag_lab::era::settings::Setting;
use unfrag_lab::replay::causes::{Action, Causes, RecordedReclaim};
use unfrag_lab::replay::model::Sim;
use unfrag_lab::replay::model::reclaim::{Effort, RecordedDaemon};
use unfrag_lab::replay::{NoWatch, Options, replay};
use unfrag_linux::recording::Recording;

const EFFORT: Effort = Effort {
    pace: 1000,
    spares: 0,
    kswapd: false,
};

const SECOND: u64 = 1_000_000_000;

/// Pages in free blocks as large as a huge page.
fn in_huge_blocks(s: &Sim) -> u64 {
    let free = s.manager.inspect().zone(ZoneId(0)).nr_free;
    free.iter().zip(0..).skip(9).map(|(n, o)| n << o).sum()
}

/// Fills memory with pages of a program, and gives all but each fourth back.
fn fragment(s: &mut Sim) {
    let gfp = Gfp::HIGHUSER_MOVABLE | Gfp::ZERO;
    let frames = FIRST..FIRST + PAGES - 256;
    for pfn in frames.clone() {
        s.apply(&op(Action::alloc(pfn, 0, gfp)), &Causes::default());
    }
    for pfn in frames.filter(|p| p % 4 != 0) {
        s.apply(&op(Action::free(pfn, 0)), &Causes::default());
    }
    s.manager.drain_all();
}

#[test]
fn daemons_work_while_nobody_asks_for_anything() {
    let start = empty();
    let mut memory = memory(&start);
    let mut s = sim(&start, &mut memory);
    let reclaim = RecordedReclaim::default();
    s.enable_reclaim(&reclaim, EFFORT);
    s.enable_own_compaction(&RecordedDaemon {
        proactive_from: Some(SECOND),
        runs: vec![],
    });
    fragment(&mut s);
    let before = in_huge_blocks(&s);
    s.live_until(SECOND - 1);
    assert_eq!(in_huge_blocks(&s), before, "it begins later");
    s.live_until(60 * SECOND);
    assert!(in_huge_blocks(&s) >= before + 512);
    s.manager.inspect().validate().expect("sound structures");
}

/// A host whose program fills memory and gives all but each fourth page back, and of whose minute after that there are
/// snapshots and no events.
fn quiet_minute() -> Recording {
    let mut m = Maker::default();
    m.rec = Host::default().record();
    m.now = m.rec.events.time.last().expect("events") + 1000;
    // None of those that the host's own command takes.
    let frames = || (START + 100..START + 8000).chain(START + 8500..START + 12_500);
    for pfn in frames() {
        m.task("worker").alloc(pfn, 0, USER_PAGE);
    }
    for pfn in frames().filter(|p| p % 4 != 0) {
        m.free(pfn, 0);
    }
    let last = m.now;
    let mut later = m.rec.snapshots.last().expect("snapshots").clone();
    for (name, after) in [("at once", SECOND / 1000), ("a minute later", 60 * SECOND)] {
        later.name = name.into();
        for f in &mut later.files {
            f.time = Some((last + after, last + after));
        }
        m.rec.snapshots.push(later.clone());
    }
    m.wait(61 * SECOND).alloc(START + 9000, 0, USER_PAGE);
    m.rec
}

/// The state of a snapshot is that of its moment: a minute without events is a minute in which kcompactd looks 120 times.
#[test]
fn what_a_snapshot_shows_after_a_quiet_minute_has_the_daemons_work_in_it() {
    let rec = quiet_minute();
    let options = Options {
        kernels: vec!["6.1".into()],
        set: vec![Setting::parse("vm.compaction_proactiveness=60").unwrap()],
        ..Options::default()
    };
    let report = replay(&rec, "made", &options, &mut NoWatch).expect("a replay");
    let huge = |name: &str| {
        let sample = report.kernels[0].samples.iter().find(|s| s.name == name);
        let zones = &sample.unwrap_or_else(|| panic!("{name}")).zones;
        zones.iter().map(|z| z.free_huge_blocks).sum::<u64>()
    };
    let [begin, end] = ["at once", "a minute later"].map(huge);
    assert!(end > begin, "{begin} and {end}");
}
