//! Whether advice is given: what evidence a command needs.
//!
//! A setting stays, so it needs several readings that speak for it; what is done once needs a need for it while the host was
//! watched. What was counted since boot makes a candidate at most.
//!
//! Invariant: by the same counters and states, the same standing; a busy second of a sound host gives no setting.

use super::evidence::Evidence;
use super::watch::{READINGS, SPAN, Step, Watch};
use crate::host::Zone;

/// What a candidate for a setting lacks.
pub(super) const LONGER: &str = "a longer look, with at least three readings over a minute: unfrag doctor --for 10m, or a recording or dated copies of the host that are as long";
/// What a candidate for a setting lacks whose effect no formula tells.
pub(super) const REPLAY: &str =
    "a number that it changes: a replay tells (unfrag doctor --recording FILE.unfrag)";

/// Whether advice is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is.
    Given,
    /// It is not, before there is this.
    Needs(String),
    /// It is not, as this speaks against it.
    Against(String),
}

/// The standing of a setting for which each step of the time that was watched speaks or not; `None` if they do not.
/// `in_history`: whether what was counted since boot speaks for it, where nothing was watched.
pub(super) fn of_setting(
    watch: &Watch,
    in_history: bool,
    speaks: impl Fn(&Step) -> bool,
) -> Option<Standing> {
    let lacks = || Standing::Needs(LONGER.into());
    match watch.watched().readings {
        0 | 1 => in_history.then(lacks),
        _ if !watch.mostly(speaks) => None,
        _ if !watch.is_long() => Some(lacks()),
        _ => Some(Standing::Given),
    }
}

/// The standing of a setting for which a state of the zones speaks, now and in at least half of the readings; `None` if not.
pub(super) fn of_state(e: &Evidence, speaks: impl Fn(&[Zone]) -> bool) -> Option<Standing> {
    let earlier = e.readings.iter().filter(|r| !r.zones.is_empty());
    let all: Vec<(f64, bool)> = earlier
        .map(|r| (r.seconds_before, speaks(&r.zones)))
        .chain([(0.0, speaks(&e.host.zones))])
        .collect();
    let now = all.last().is_some_and(|(_, yes)| *yes);
    let many = all.iter().filter(|(_, yes)| *yes).count() * 2 >= all.len();
    let is_long = all.len() >= READINGS && all[0].0 >= SPAN;
    match (now && many, is_long) {
        (false, _) => None,
        (true, false) => Some(Standing::Needs(LONGER.into())),
        (true, true) => Some(Standing::Given),
    }
}
