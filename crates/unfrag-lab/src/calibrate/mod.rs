//! What does the kernel's work on pages cost on this computer? Measured for the simulated machine's cost model.
//!
//! - `measure`: the measurements. Here: what is measured, and the calibration that results.
//!
//! Invariant: what is not measured is that of the committed calibration of today, unchanged.

mod measure;

use crate::report::columns;
use crate::report::screen::Text;
use serde::Serialize;
use std::fmt::Write as _;
use unfrag_machine::Calibration;

/// A cost as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Its name in a calibration.
    pub cost: &'static str,
    /// Nanoseconds, here.
    pub ns: f64,
    /// Nanoseconds in the committed calibration.
    pub committed_ns: u64,
    /// What is one of it.
    pub what: &'static str,
}

/// The costs of this computer.
#[derive(Clone, Debug, Serialize)]
pub struct Costs {
    /// Those that were measured: the least of several rounds.
    pub measured: Vec<Measured>,
    /// Hash of the calibration that results, as results of runs with it name it.
    pub calibration: String,
    /// The calibration as a file.
    #[serde(skip)]
    pub text: String,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// MiB of memory that pages are zeroed and copied in. More than the caches hold, or their speed is measured.
    pub mib: u32,
    /// Rounds; the least is reported.
    pub rounds: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mib: 256,
            rounds: 5,
        }
    }
}

/// Measures. `progress` is called with the measurements that are done, and all of them.
pub fn run(options: Options, progress: &dyn Fn(u64, u64)) -> Costs {
    let mut committed = Calibration::modern();
    let mut measured = vec![];
    let all = measure::ALL;
    for (i, m) in all.iter().enumerate() {
        progress(i as u64, all.len() as u64);
        let least = (0..options.rounds.max(1))
            .map(|_| (m.run)(options.mib))
            .min_by(f64::total_cmp);
        let committed_ns = committed.cost(m.cost).copied().unwrap_or(0);
        measured.push(Measured {
            cost: m.cost,
            ns: least.unwrap_or(0.0),
            committed_ns,
            what: m.what,
        });
    }
    let text = file(&measured);
    let calibration = match Calibration::parse("measured", &text) {
        Ok(c) => format!("{:016x}", c.hash),
        Err(e) => unreachable!("{e}"),
    };
    Costs {
        measured,
        calibration,
        text,
    }
}

/// Nanoseconds as a calibration has them: at least one, since nothing is free.
fn whole(ns: f64) -> u64 {
    (ns.round() as u64).max(1)
}

/// The committed calibration with the measured costs in it.
fn file(measured: &[Measured]) -> String {
    let mut text = String::from(
        "# What the kernel's work takes, in CPU time. \"measured\": by `unfrag calibrate` on this computer; all else is\n\
         # that of the committed calibration of today.\n",
    );
    let head = Calibration::MODERN
        .lines()
        .take_while(|l| l.starts_with('#'))
        .count();
    for line in Calibration::MODERN.lines().skip(head) {
        let name = line.split(' ').next().unwrap_or_default();
        match measured.iter().find(|m| m.cost == name) {
            Some(m) => {
                let value = format!("{name} = \"{} ns\"", whole(m.ns));
                let _ = writeln!(text, "{value:<27} # measured: {}", m.what);
            }
            None => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

/// The measurements as a table.
pub fn render(costs: &Costs) -> Text {
    let head = ["cost", "here, ns", "committed, ns", "what is one of it"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for m in &costs.measured {
        let digits = if m.ns < 100.0 { 1 } else { 0 };
        rows.push(vec![
            m.cost.to_owned(),
            format!("{:.digits$}", m.ns),
            m.committed_ns.to_string(),
            m.what.to_owned(),
        ]);
    }
    // The words of the last column begin at the same place.
    let widest = rows.iter().map(|r| r[3].chars().count()).max().unwrap_or(0);
    for row in &mut rows {
        row[3] = format!("{:<widest$}", row[3]);
    }
    let mut out = String::new();
    columns::push(&mut out, "", 1, &rows);
    let _ = writeln!(out, "\ncalibration {}", costs.calibration);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Options = Options { mib: 8, rounds: 1 };

    #[test]
    fn what_was_measured_is_in_the_file_and_the_rest_is_as_committed() {
        let costs = run(SMALL, &|done, all| assert!(done < all));
        let mut new = Calibration::parse("new", &costs.text).expect("a calibration");
        let mut modern = Calibration::modern();
        for m in &costs.measured {
            assert!(m.ns > 0.0 && m.ns < 1e6, "{m:?}");
            assert_eq!(new.cost(m.cost).copied(), Some(whole(m.ns)));
            assert_eq!(modern.cost(m.cost).copied(), Some(m.committed_ns));
            *modern.cost(m.cost).expect("a cost") = whole(m.ns);
        }
        assert_eq!((new.costs, new.mem), (modern.costs, modern.mem));
        assert_eq!(costs.calibration, format!("{:016x}", new.hash));
        let table = render(&costs);
        assert!(costs.measured.iter().all(|m| table.contains(m.cost)));
    }

    #[test]
    fn nothing_is_free() {
        assert_eq!((whole(0.2), whole(1.5), whole(426.4)), (1, 2, 426));
    }
}
