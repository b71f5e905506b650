//! The settings of a question over time: those of the recorded host, changed as they are asked for.
//!
//! Invariant: without anything asked for, the settings at each time are the recorded host's.

use crate::era::settings::{RecordedSettings, Setting};
use crate::era::sysctl;
use crate::error::{Asked, Error, Result};
use unfrag_eras::Sysctl;

/// `vm.compaction_proactiveness`.
pub(super) const PROACTIVENESS: &str = "vm.compaction_proactiveness";

/// The settings of a question over time.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// Those at the beginning of the replay.
    pub(super) first: Sysctl,
    /// From when on which others hold, in nanoseconds of the trace's clock, ascending.
    pub(super) changes: Vec<(u64, Sysctl)>,
    /// Whether they are the recorded host's all the time.
    pub(super) is_recorded: bool,
    /// Whether marks and lists of CPUs have to be computed anew.
    pub(super) moves_marks: bool,
}

/// A setting that is asked for, from a time of the trace's clock on.
struct AskedFor<'a> {
    name: &'a str,
    value: &'a str,
    from: u64,
}

impl Schedule {
    /// From the beginning of a replay on. `time_of`: the trace's time of so many nanoseconds after the first event.
    ///
    /// # Errors
    /// If a setting cannot be asked for so.
    pub(super) fn of(
        recorded: &RecordedSettings,
        set: &[Setting],
        begin: u64,
        time_of: impl Fn(u64) -> u64,
    ) -> Result<Schedule> {
        let mut asked = vec![];
        for s in set {
            let last = recorded.values(&s.name).last().map_or(0, |v| v.0);
            let from = s.at.map_or(last, &time_of);
            if sysctl::changes_marks(&s.name) && s.at.is_some_and(|_| from > begin) {
                return Err(Error::option(
                    Asked::Setting,
                    format!("{}: marks and lists are those of the beginning", s.name),
                )
                .help("leave out the time of this setting"));
            }
            // What the host had anyway is no question.
            let mut later = recorded.values(&s.name).iter().filter(|v| v.0 > from);
            if recorded.value(&s.name, from) == Some(&s.value) && later.all(|v| v.1 == s.value) {
                continue;
            }
            let (name, value) = (&s.name[..], &s.value[..]);
            asked.push(AskedFor { name, value, from });
        }
        asked.sort_by_key(|a| a.from);
        let moves_marks = asked.iter().any(|a| sysctl::changes_marks(a.name));
        let at = |time: u64| -> Result<Sysctl> {
            let mut all = recorded.at(time, moves_marks);
            for a in &asked {
                if a.from <= time || sysctl::changes_marks(a.name) {
                    sysctl::set(&mut all, a.name, a.value)?;
                }
            }
            Ok(all)
        };
        let first = at(begin)?;
        let mut times: Vec<u64> = recorded
            .changes()
            .chain(asked.iter().map(|a| a.from))
            .collect();
        times.retain(|t| *t > begin);
        times.sort_unstable();
        times.dedup();
        let mut changes: Vec<(u64, Sysctl)> = vec![];
        let mut is_recorded = first == recorded.at(begin, moves_marks) && !moves_marks;
        for time in times {
            let then = at(time)?;
            is_recorded &= then == recorded.at(time, moves_marks);
            if then != changes.last().map_or(first, |c| c.1) {
                changes.push((time, then));
            }
        }
        Ok(Schedule {
            first,
            changes,
            is_recorded,
            moves_marks,
        })
    }

    /// From when on compaction ahead of demand is on, if it ever is.
    pub(super) fn proactive_from(&self, begin: u64) -> Option<u64> {
        let all = [(begin, self.first)]
            .into_iter()
            .chain(self.changes.iter().copied());
        let mut on = all.filter(|(_, s)| s.compaction_proactiveness > 0);
        on.next().map(|(time, _)| time)
    }
}
