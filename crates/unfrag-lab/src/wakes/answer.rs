//! The answer, made of what the walk counted.

use super::asks::Flags;
use super::callers::{Caller, caller};
use super::daemon::Time;
use super::known::Known;
use super::report::{Branch, Measure, Program, Row, Stacks, Wakes, Worked};
use super::sums::{Key, Row as Sum, WORKS, Work};
use super::walk::{COMMON, Walk};
use super::words::{order_words, sentence};
use crate::error::{Error, Result};
use crate::input::Input;
use crate::input::counted::Counted;
use std::collections::BTreeMap;
use unfrag_linux::event::Kind;

/// The fact by which a recorder says what stacks are named by.
const STACKS: &str = "stacks";

/// Who caused what kswapd, kcompactd and compaction did, of the recording that is called `source`.
///
/// # Errors
/// If it has no event that tells it, or cannot be read.
pub fn wakes<'r>(input: impl Into<Input<'r>>, source: &str) -> Result<Wakes> {
    let input = input.into();
    let known = Known::of(&input);
    if !known.anything() {
        let what = "the recording has no wake-ups of kswapd or kcompactd, and no compaction";
        return Err(Error::lacking(what).help(how()));
    }
    let mut walk = Walk::of(&input);
    let counted = Counted::walk(&input, COMMON, &mut walk)?;
    walk.end();
    Ok(of_walk(&input, source, &counted, known, walk))
}

/// What has to be recorded.
fn how() -> String {
    let events = [
        Kind::WakeupKswapd,
        Kind::KswapdWake,
        Kind::KswapdSleep,
        Kind::WakeupKcompactd,
        Kind::KcompactdWake,
        Kind::KcompactdSleep,
        Kind::CompactTry,
        Kind::CompactBegin,
        Kind::CompactEnd,
    ];
    let events: Vec<String> = events.map(Kind::event).into();
    format!(
        "record with `unfrag record --system --stacks`; with another tracer, record {}",
        events.join(" ")
    )
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

    /// Wake-ups of both daemons.
    fn wakes(&self) -> u64 {
        self.count[0] + self.count[1]
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn part(of: u64, whole: u64) -> f64 {
    of as f64 / whole.max(1) as f64
}

/// What the walk tells.
fn of_walk(input: &Input, source: &str, counted: &Counted, known: Known, walk: Walk) -> Wakes {
    let rec = input.recording;
    let flags = Flags::of(&rec.meta.kernel_release);
    let measures = known.measures(walk.switches, walk.wakings);
    let measured = |work: Work, time: Time| match measures[work as usize] {
        Some(Measure::Awake) => time.awake,
        Some(_) => time.cpu,
        None => 0,
    };
    let told = Told {
        measures,
        wakes: [known.asked()[0], known.asked()[1], measures[2].is_some()],
        requests: known.requests(),
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
    let count = |work: Work| -> u64 { groups.values().map(|g| g.count[work as usize]).sum() };
    let counts = WORKS.map(count);
    let wakes = |work: Work| told.wakes[work as usize].then(|| counts[work as usize]);
    let worked = |work: Work| {
        let at = work as usize;
        Some(Worked {
            measure: measures[at]?,
            seconds: seconds(all[at]),
            not_recorded_seconds: seconds(unseen[at]),
            own_timer_seconds: seconds(own[at]),
            unsure_seconds: match measures[at] {
                Some(Measure::Awake) => seconds(walk.unsure[at]),
                _ => 0.0,
            },
            at_work_at_end: walk.at_work[at] > 0 && known.awake().get(at).is_none_or(|a| *a),
            count: counts[at],
        })
    };
    let mut sorted: Vec<(&Group, &Grouped)> = groups.iter().collect();
    sorted.sort_by_key(|(_, g)| std::cmp::Reverse((g.all(), g.wakes(), g.requests)));
    let row =
        |(group, sums): (&Group, &Grouped)| row(group, sums, (all, counts), told, flags.as_ref());
    let callers: Vec<Row> = sorted.into_iter().map(row).collect();
    let fact = |name: &str| rec.meta.facts.get(name).map_or("", String::as_str);
    let (first, last) = counted.span.unwrap_or_default();
    let (begin, end) = input.window;
    let (first, last) = (begin.unwrap_or(first), end.unwrap_or(last));
    let mut found = Wakes {
        source: source.into(),
        kernel_release: rec.meta.kernel_release.clone(),
        events: counted.events,
        lost_events: rec.meta.lost_events(),
        seconds: seconds(last.saturating_sub(first)),
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
        kswapd_wakes: wakes(Work::Kswapd),
        kcompactd_wakes: wakes(Work::Kcompactd),
        answer: String::new(),
        callers,
        branches,
    };
    found.answer = sentence(&found);
    found
}

/// What the recording tells of rows.
#[derive(Clone, Copy)]
struct Told {
    measures: [Option<Measure>; 3],
    /// How often each work was caused.
    wakes: [bool; 3],
    requests: bool,
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

fn row(
    group: &Group,
    sums: &Grouped,
    (all, counts): ([u64; 3], [u64; 3]),
    told: Told,
    flags: Option<&Flags>,
) -> Row {
    let measures = told.measures;
    let count = |at: usize| told.wakes[at].then_some(sums.count[at]);
    let all_wakes = counts[0] + counts[1];
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
        share: measures
            .iter()
            .any(Option::is_some)
            .then(|| part(sums.all(), all.iter().sum())),
        wakes_share: (all_wakes > 0).then(|| part(sums.wakes(), all_wakes)),
        daemon_share: is_known.then(|| part(kswapd + kcompactd, all[0] + all[1])),
        kswapd_seconds: time(Work::Kswapd),
        kcompactd_seconds: time(Work::Kcompactd),
        direct_seconds: time(Work::Direct),
        kswapd_wakes: count(0),
        kcompactd_wakes: count(1),
        direct_runs: count(2),
        requests: told.requests.then_some(sums.requests),
        failed: told.requests.then_some(sums.failed),
    }
}
