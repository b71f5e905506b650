//! How long until a need fails: held against twelve hours of a guest with a real kernel (`checks/forecast-truth`).

use std::env;
use std::path::PathBuf;
use unfrag_lab::doctor::gate::Need;
use unfrag_lab::find::snapshots::snapshots;
use unfrag_lab::forecast::report::{Forecast, When};
use unfrag_lab::forecast::{Looks, forecast};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::segments::Window;

/// Looks from one moment at which it is asked to the next, and those of a short past.
const EVERY: usize = 30;
const SHORT: usize = 180;
/// Parts in a hundred of what was free in the last half hour that are needed.
const SHARES: [u64; 4] = [90, 75, 50, 25];
/// Bytes in the blocks that are needed.
const SIZES: [u64; 3] = [2 << 20, 512 << 10, 64 << 10];

/// The recording that ships, or another that `checks/forecast-truth/run` made.
fn recording() -> PathBuf {
    env::var_os("UNFRAG_LOOKS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../samples/looks-12-hours.tar.zst"),
        PathBuf::from,
    )
}

fn ask(all: &[Snapshot], need: Need) -> Forecast {
    let looks = Looks {
        snapshots: all,
        ..Looks::default()
    };
    forecast(looks, "guest", need, 1).unwrap()
}

/// Seconds at which a look was made, by its name; what is free in blocks of an order.
fn seen(look: &Snapshot, order: usize) -> (f64, u64) {
    let name = look.name.rsplit('/').next().unwrap();
    let time = unfrag_linux::snapshots::date(name).unwrap() as f64 / 1e9;
    let text = look.file("buddyinfo").unwrap().to_vec();
    let blocks = |line: &str| -> u64 {
        let counts = line.split_whitespace().skip(4).enumerate().skip(order);
        counts
            .map(|(o, n)| n.parse::<u64>().unwrap() << (o - order))
            .sum()
    };
    let text = String::from_utf8(text).unwrap();
    (time, text.lines().map(blocks).sum())
}

/// How often it was right.
#[derive(Debug, Default)]
struct Score {
    asked: u32,
    now: u32,
    not_known: u32,
    /// Intervals that end before the recording does, those of them that have the truth, and those before which the need has failed.
    whole: u32,
    inside: u32,
    early: u32,
    /// Intervals that begin before the recording ends, and end after it; those before which the need has failed.
    open: u32,
    open_early: u32,
    /// Answers that it fails after the recording, or not; those of which it has failed.
    after: u32,
    after_failed: u32,
}

impl Score {
    /// `truth`: days to the first look with too few; `left`: days to the last look.
    fn add(&mut self, when: &When, truth: Option<f64>, left: f64) {
        self.asked += 1;
        let failed = u32::from(truth.is_some());
        match *when {
            When::Now => self.now += 1,
            When::NotKnown { .. } => self.not_known += 1,
            When::Never | When::Later { .. } => {
                self.after += 1;
                self.after_failed += failed;
            }
            When::In {
                from_days, to_days, ..
            } => {
                let to = to_days.unwrap_or(f64::INFINITY);
                let truth = truth.unwrap_or(f64::INFINITY);
                if to <= left {
                    self.whole += 1;
                    self.inside += u32::from((from_days..=to).contains(&truth));
                    self.early += u32::from(truth < from_days);
                } else if from_days <= left {
                    self.open += 1;
                    self.open_early += u32::from(truth < from_days);
                } else {
                    self.after += 1;
                    self.after_failed += failed;
                }
            }
        }
    }
}

#[test]
fn the_truth_is_in_the_interval_as_often_as_it_says() {
    let mut all = snapshots(&recording(), &Window::default())
        .unwrap()
        .snapshots;
    // Free blocks alone are asked about: what could be had at best changes at so few moments that hardly one of its intervals ends
    // before the recording.
    for look in &mut all {
        look.files.retain(|f| f.name != "pagetypeinfo");
    }
    assert!(all.len() > 2 * SHORT, "{} looks", all.len());
    let mut score = Score::default();
    for size in SIZES {
        let order = (size / 4096).ilog2() as usize;
        let seen: Vec<(f64, u64)> = all.iter().map(|s| seen(s, order)).collect();
        for end in (SHORT - 2 * EVERY..=all.len() - 2 * EVERY).step_by(EVERY) {
            let mut late: Vec<u64> = seen[end - EVERY..end].iter().map(|l| l.1).collect();
            late.sort_unstable();
            let mut needs = SHARES.map(|share| late[EVERY / 2] * share / 100).to_vec();
            needs.dedup();
            let mut begins = vec![0, end.saturating_sub(SHORT)];
            begins.dedup();
            for need in needs.into_iter().filter(|n| *n > 0) {
                let days = |time: f64| (time - seen[end - 1].0) / 86_400.0;
                let failed = seen[end..].iter().find(|l| l.1 < need);
                let (truth, left) = (failed.map(|l| days(l.0)), days(seen[all.len() - 1].0));
                for &begin in &begins {
                    let f = ask(&all[begin..end], Need::new(need, size));
                    score.add(&f.free.when, truth, left);
                }
            }
        }
    }
    println!("{score:?}");
    // Of intervals that end before the recording does it is known whether they have the truth, and which they are was told
    // before that: those that reach beyond would count as right where the need does not fail.
    let share = f64::from(score.inside) / f64::from(score.whole);
    assert!((0.7..=0.9).contains(&share), "{share}: {score:?}");
    assert!(score.whole * 2 >= score.asked, "{score:?}");
    assert!(score.open_early * 10 <= score.open, "{score:?}");
    assert!(score.after_failed * 10 <= score.after, "{score:?}");
}
