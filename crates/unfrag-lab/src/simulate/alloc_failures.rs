//! Allocations that failed, as the kernel that ran reports them in its log. `spec: 4.3 (9)`
//!
//! Invariant: a run without failures has no text.

use super::phrases::seconds;
use std::fmt::Write as _;
use unfrag_eras::Gfp;
use unfrag_linux::alloc_failure::{Failure, Wording, Zone, report};
use unfrag_machine::alloc_failure::{AllocFailure, ZoneState};
use unfrag_machine::scenario::Outcome;

/// The text about a run's failed allocations.
pub(super) struct FailureText {
    /// How many, and how many follow.
    pub head: String,
    /// The kernel's reports, each after its time.
    pub reports: String,
}

/// The failures of a run, if there were any.
pub(super) fn failure_text(o: &Outcome) -> Option<FailureText> {
    let all = &o.alloc_failures;
    if all.reported == 0 {
        return None;
    }
    let shown = match all.first.len() {
        n if n as u64 == all.reported => String::new(),
        n => format!("; the first {n}:"),
    };
    let wording = Wording::of(&o.kernel);
    let mut reports = String::new();
    for (i, f) in all.first.iter().enumerate() {
        let blank = if i > 0 { "\n" } else { "" };
        let by = if f.in_interrupt {
            ", in an interrupt"
        } else {
            ""
        };
        let _ = writeln!(reports, "{blank}At {:.6} s{by}:", seconds(f.at_ns));
        reports.push_str(&text(wording, f));
    }
    Some(FailureText {
        head: format!("allocations that failed: {}{shown}", all.reported),
        reports,
    })
}

fn text(wording: Wording, f: &AllocFailure) -> String {
    let zones: Vec<Zone> = f.zones.iter().map(zone).collect();
    let failure = Failure {
        task: f.task.as_deref(),
        cpu: f.cpu,
        order: f.order,
        gfp: Gfp::from_bits_retain(f.gfp),
        zones: &zones,
    };
    report(wording, &failure)
}

fn zone(z: &ZoneState) -> Zone<'_> {
    Zone {
        node: z.node,
        name: z.name,
        free: z.free,
        min: z.min,
        low: z.low,
        high: z.high,
        active_anon: z.active_anon,
        inactive_anon: z.inactive_anon,
        active_file: z.active_file,
        inactive_file: z.inactive_file,
        present: z.present,
        managed: z.managed,
        all_unreclaimable: z.all_unreclaimable,
        free_blocks: &z.free_blocks,
    }
}
