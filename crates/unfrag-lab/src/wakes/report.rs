//! The answer, as data.

use super::asks::{Flags, MayFail};
use super::callers::{Caller, caller};
use super::daemon::Time;
use super::sums::{Key, Row as Sum, WORKS, Work};
use super::walk::Walk;
use crate::input::Input;
use crate::input::counted::Counted;
use serde::Serialize;
use std::collections::BTreeMap;
use unfrag_linux::event::{Coverage, Kind};

/// The fact by which a recorder says what stacks are named by.
const STACKS: &str = "stacks";

/// Who caused what kswapd, kcompactd and compaction did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Wakes {
    /// Name of the recording.
    pub source: String,
    /// Release of the recorded kernel.
    pub kernel_release: String,
    /// Events.
    pub events: u64,
    /// Events that the recorder lost, at least.
    pub lost_events: u64,
    /// Seconds from the first event to the last.
    pub seconds: f64,
    /// Whether only a command was recorded: wake-ups by others are not in it.
    pub of_command: bool,
    /// What is known of who asked.
    pub stacks: Stacks,
    /// What kswapd did; `null` where the recording does not tell.
    pub kswapd: Option<Worked>,
    /// What kcompactd did.
    pub kcompactd: Option<Worked>,
    /// What tasks compacted themselves.
    pub direct: Option<Worked>,
    /// Who it was, in a sentence.
    pub answer: String,
    /// Who asked, by time; who took none stands last, by requests.
    pub callers: Vec<Row>,
    /// The same with whole stacks, for a picture.
    #[serde(skip)]
    pub(super) branches: Vec<Branch>,
}

/// What is known of who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stacks {
    /// Programs alone: stacks were not recorded.
    #[default]
    None,
    /// Stacks, with functions by name.
    Names,
    /// Stacks, whose addresses the host did not name.
    Addresses,
}

/// What is measured of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Time on a CPU, by switches of tasks.
    OnCpu,
    /// Time from waking to going to sleep, what was waited for included.
    Awake,
    /// Time from the beginning of a run to its end, what was waited for included.
    BeginToEnd,
}

/// What was done of a work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Worked {
    /// How it is measured.
    pub measure: Measure,
    /// Seconds in all.
    pub seconds: f64,
    /// Of these, those of which the wake-up was not recorded.
    pub not_recorded_seconds: f64,
    /// Of these, those of a daemon's own timer.
    pub own_timer_seconds: f64,
    /// How often it was caused.
    pub count: u64,
}

/// A program that asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its share of the row, from 0 to 1: of its time or, where that is none, of its requests.
    pub share: f64,
}

/// Who asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Functions that asked, the innermost first; `null` without a stack.
    pub functions: Option<Vec<String>>,
    /// The innermost module in the stack.
    pub module: Option<String>,
    /// Programs on whose behalf, the largest share first.
    pub programs: Vec<Program>,
    /// Order that was asked for; -1 for compaction of all memory, `null` where the event does not say.
    pub order: Option<i64>,
    /// Flags of the request; `null` where the event does not say.
    pub flags: Option<String>,
    /// Whether the request may fail; `null` where that is not known, and where it is no request.
    pub may_fail: Option<MayFail>,
    /// Whether it is no request, but the kernel's own affair.
    pub is_no_request: bool,
    /// Share of all time, from 0 to 1.
    pub share: f64,
    /// Share of kswapd's and kcompactd's time, from 0 to 1; `null` where that is not known.
    pub daemon_share: Option<f64>,
    /// Seconds of kswapd.
    pub kswapd_seconds: Option<f64>,
    /// Seconds of kcompactd.
    pub kcompactd_seconds: Option<f64>,
    /// Seconds of its own compaction.
    pub direct_seconds: Option<f64>,
    /// Wake-ups of kswapd.
    pub kswapd_wakes: u64,
    /// Wake-ups of kcompactd, those through kswapd included.
    pub kcompactd_wakes: u64,
    /// Runs of compaction of its own.
    pub direct_runs: u64,
    /// Requests of order 3 and more.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
}

/// Time at the end of a path, for a picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Branch {
    pub path: Vec<String>,
    pub nanoseconds: u64,
}

/// What the recording tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// That kswapd and kcompactd were woken.
    asked: [bool; 2],
    /// That they woke, and slept.
    awake: [bool; 2],
    /// That tasks compacted.
    direct: bool,
    switches: bool,
}

impl Known {
    /// The kinds of events that tell it.
    pub const KINDS: [Kind; 12] = [
        Kind::Alloc,
        Kind::CompactTry,
        Kind::CompactBegin,
        Kind::CompactEnd,
        Kind::WakeupKcompactd,
        Kind::KcompactdWake,
        Kind::KcompactdSleep,
        Kind::WakeupKswapd,
        Kind::KswapdWake,
        Kind::KswapdSleep,
        Kind::Switch,
        Kind::Stack,
    ];

    /// Of a recording.
    pub fn of(input: &Input) -> Known {
        let coverage = Coverage::of(input.recording);
        let has = |kind| coverage.has(kind);
        Known {
            asked: [has(Kind::WakeupKswapd), has(Kind::WakeupKcompactd)],
            awake: [
                has(Kind::KswapdWake) && has(Kind::KswapdSleep),
                has(Kind::KcompactdWake) && has(Kind::KcompactdSleep),
            ],
            direct: has(Kind::CompactBegin) && has(Kind::CompactEnd),
            switches: has(Kind::Switch),
        }
    }

    /// Whether there is an answer at all.
    pub fn anything(self) -> bool {
        self.direct || self.asked.contains(&true)
    }

    /// How each work is measured, where it is.
    fn measures(self, walk: &Walk) -> [Option<Measure>; 3] {
        let of = |work: Work| {
            let at = work as usize;
            // Switches of other tasks alone say nothing of a daemon.
            let has_switches = self.switches && (walk.switches[at] > 0 || walk.wakings[at] == 0);
            match () {
                () if !self.asked[at] => None,
                () if has_switches => Some(Measure::OnCpu),
                () if self.awake[at] => Some(Measure::Awake),
                () => None,
            }
        };
        let direct = self.direct.then_some(Measure::BeginToEnd);
        [of(Work::Kswapd), of(Work::Kcompactd), direct]
    }
}

/// Who asked for what: what a row of the answer is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    caller: Option<Caller>,
    /// Where there is no stack.
    program: Option<String>,
    order: Option<i64>,
    gfp: Option<u64>,
}

/// Sums of a row of the answer.
#[derive(Clone, Debug, Default)]
struct Grouped {
    /// Nanoseconds.
    time: [u64; 3],
    count: [u64; 3],
    requests: u64,
    failed: u64,
    /// Nanoseconds and requests of each program.
    programs: BTreeMap<String, (u64, u64)>,
}

impl Grouped {
    fn all(&self) -> u64 {
        self.time.iter().sum()
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn part(of: u64, whole: u64) -> f64 {
    of as f64 / whole.max(1) as f64
}

impl Wakes {
    /// What the walk tells.
    pub(super) fn of(
        input: &Input,
        source: &str,
        counted: &Counted,
        known: Known,
        walk: Walk,
    ) -> Wakes {
        let rec = input.recording;
        let flags = Flags::of(&rec.meta.kernel_release);
        let measures = known.measures(&walk);
        let measured = |work: Work, time: Time| match measures[work as usize] {
            Some(Measure::Awake) => time.awake,
            Some(_) => time.cpu,
            None => 0,
        };
        let times = |row: &Sum| WORKS.map(|w| measured(w, row.time[w as usize]));
        let mut groups: BTreeMap<Group, Grouped> = BTreeMap::new();
        let mut branches = vec![];
        for (key, row) in walk.sums.keys.iter().zip(&walk.sums.rows) {
            let time = times(row);
            let program = &walk.names.all[key.program as usize];
            let stack = key.stack.map(|s| walk.stacks.all[s as usize].as_str());
            let group = groups.entry(group(key, stack, program)).or_default();
            for w in WORKS.map(|w| w as usize) {
                group.time[w] += time[w];
                group.count[w] += row.count[w];
            }
            group.requests += row.requests;
            group.failed += row.failed;
            let of = group.programs.entry(program.clone()).or_default();
            of.0 += time.iter().sum::<u64>();
            of.1 += row.requests + row.count.iter().sum::<u64>();
            branches.extend(branches_of(key, stack, program, time, flags.as_ref()));
        }
        let unseen = WORKS.map(|w| measured(w, walk.sums.unseen[w as usize]));
        let own = WORKS.map(|w| measured(w, walk.sums.own[w as usize]));
        for work in WORKS {
            for (whose, time) in [(NOT_RECORDED, unseen), (OWN_TIMER, own)] {
                branches.push(Branch {
                    path: vec![name(work).into(), whose.into()],
                    nanoseconds: time[work as usize],
                });
            }
        }
        branches.retain(|b| b.nanoseconds > 0);
        let sum = |work: Work| {
            let at = work as usize;
            let rows: u64 = groups.values().map(|g| g.time[at]).sum();
            rows + unseen[at] + own[at]
        };
        let all = WORKS.map(sum);
        let worked = |work: Work| {
            let at = work as usize;
            Some(Worked {
                measure: measures[at]?,
                seconds: seconds(all[at]),
                not_recorded_seconds: seconds(unseen[at]),
                own_timer_seconds: seconds(own[at]),
                count: groups.values().map(|g| g.count[at]).sum(),
            })
        };
        let mut sorted: Vec<(&Group, &Grouped)> = groups.iter().collect();
        sorted.sort_by_key(|(_, g)| std::cmp::Reverse((g.all(), g.requests)));
        let row =
            |(group, sums): (&Group, &Grouped)| row(group, sums, all, measures, flags.as_ref());
        let callers: Vec<Row> = sorted.into_iter().map(row).collect();
        let fact = |name: &str| rec.meta.facts.get(name).map_or("", String::as_str);
        let (first, last) = counted.span.unwrap_or_default();
        let mut found = Wakes {
            source: source.into(),
            kernel_release: rec.meta.kernel_release.clone(),
            events: counted.events,
            lost_events: rec.meta.lost_events(),
            seconds: seconds(last - first),
            of_command: fact("scope") == "command",
            stacks: match fact(STACKS) {
                "names" => Stacks::Names,
                "addresses" => Stacks::Addresses,
                // Another tracer's, which does not say.
                _ if callers.iter().any(|r| r.functions.is_some()) => Stacks::Addresses,
                _ => Stacks::None,
            },
            kswapd: worked(Work::Kswapd),
            kcompactd: worked(Work::Kcompactd),
            direct: worked(Work::Direct),
            answer: String::new(),
            callers,
            branches,
        };
        found.answer = super::text::sentence(&found);
        found
    }

    /// Seconds of all work that is known.
    pub fn all_seconds(&self) -> f64 {
        let all = [self.kswapd, self.kcompactd, self.direct];
        all.iter().flatten().map(|w| w.seconds).sum()
    }
}

/// Whose a daemon's time is that is no caller's.
const NOT_RECORDED: &str = "(wake-up not recorded)";
const OWN_TIMER: &str = "(its own timer)";

/// A work in words.
fn name(work: Work) -> &'static str {
    match work {
        Work::Kswapd => "kswapd",
        Work::Kcompactd => "kcompactd",
        Work::Direct => "compaction by the request itself",
    }
}

fn group(key: &Key, stack: Option<&str>, program: &str) -> Group {
    Group {
        caller: stack.map(caller),
        program: stack.is_none().then(|| program.to_owned()),
        order: key.order,
        gfp: key.gfp,
    }
}

fn branches_of(
    key: &Key,
    stack: Option<&str>,
    program: &str,
    time: [u64; 3],
    flags: Option<&Flags>,
) -> Vec<Branch> {
    let rest: Vec<String> = match stack {
        Some(stack) => stack.split(';').map(str::to_owned).collect(),
        None => {
            let gfp = key.gfp.zip(flags).map(|(gfp, f)| f.print(gfp));
            let order = key.order.map(order_words);
            order.into_iter().chain(gfp).collect()
        }
    };
    let of = |work: Work| Branch {
        path: [name(work).to_owned(), program.to_owned()]
            .into_iter()
            .chain(rest.iter().cloned())
            .collect(),
        nanoseconds: time[work as usize],
    };
    WORKS.map(of).into()
}

/// An order in words.
pub(super) fn order_words(order: i64) -> String {
    match order {
        ..0 => "all of memory".into(),
        order => format!("order {order}"),
    }
}

fn row(
    group: &Group,
    sums: &Grouped,
    all: [u64; 3],
    measures: [Option<Measure>; 3],
    flags: Option<&Flags>,
) -> Row {
    let time = |work: Work| {
        let at = work as usize;
        measures[at].map(|_| seconds(sums.time[at]))
    };
    let [kswapd, kcompactd, _] = sums.time;
    let is_known = measures[..2].iter().any(Option::is_some);
    let by_time = sums.all() > 0;
    let weight = |&(time, requests): &(u64, u64)| if by_time { time } else { requests };
    let whole: u64 = sums.programs.values().map(weight).sum();
    let mut programs: Vec<Program> = sums
        .programs
        .iter()
        .map(|(name, sum)| Program {
            name: name.clone(),
            share: part(weight(sum), whole),
        })
        .collect();
    programs.sort_by(|a, b| b.share.total_cmp(&a.share));
    let request = group.gfp.zip(group.order);
    Row {
        functions: group.caller.as_ref().map(|c| c.functions.clone()),
        module: group.caller.as_ref().and_then(|c| c.module.clone()),
        programs,
        order: group.order,
        flags: group.gfp.zip(flags).map(|(gfp, f)| f.print(gfp)),
        may_fail: request
            .zip(flags)
            .and_then(|((gfp, order), f)| f.may_fail(u64::try_from(order).ok()?, gfp)),
        is_no_request: group.gfp == Some(0) || group.order.is_some_and(|o| o < 0),
        share: part(sums.all(), all.iter().sum()),
        daemon_share: is_known.then(|| part(kswapd + kcompactd, all[0] + all[1])),
        kswapd_seconds: time(Work::Kswapd),
        kcompactd_seconds: time(Work::Kcompactd),
        direct_seconds: time(Work::Direct),
        kswapd_wakes: sums.count[0],
        kcompactd_wakes: sums.count[1],
        direct_runs: sums.count[2],
        requests: sums.requests,
        failed: sums.failed,
    }
}
