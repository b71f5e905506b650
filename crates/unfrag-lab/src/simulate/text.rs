//! A run as text: aligned columns, the same on every screen.

use super::alloc_failures::failure_text;
use super::phrases::{kernel, seconds};
use super::tables;
use super::tables::Table;
use crate::report::columns;
use crate::report::number::thousands;
use crate::report::screen::Text;
use std::fmt::Write as _;
use unfrag_machine::scenario::Outcome;

/// What spoils blocks, of each zone.
const SPOILERS: usize = 5;

/// The run.
pub fn render(o: &Outcome) -> Text {
    let mut out = format!(
        "{} on {}, kernel {}, seed {}: {} after {:.3} s of its time; {}\n\n",
        o.scenario,
        o.machine,
        kernel(o),
        o.seed,
        o.ended,
        seconds(o.elapsed_ns),
        failed(o)
    );
    push_table(&mut out, &tables::tasks(o), "");
    let cpu = &o.cpu;
    let _ = writeln!(
        out,
        "\nprocesses with all that they forked: {}, with {:.3} s of user and {:.3} s of system time\n\
         kswapd: {:.3} s of CPU time",
        o.programs.processes,
        seconds(cpu.user_ns),
        seconds(cpu.system_ns),
        seconds(o.kswapd_cpu_ns)
    );
    for table in [tables::failures(o), tables::lines(o)] {
        if !table.is_empty() {
            out.push('\n');
            push_table(&mut out, &table, "");
        }
    }
    for r in &o.programs.high_order {
        let (done, all) = (r.successes(), r.attempts.len());
        let _ = writeln!(
            out,
            "\n{}: {done} of {all} attempts of order {}",
            r.name, r.order
        );
    }
    out.push('\n');
    for m in &o.programs.marks {
        let _ = writeln!(
            out,
            "At {:.3} s, {} of {} {}: what stands in the way of large blocks",
            seconds(m.at_ns),
            m.name,
            m.task,
            m.number
        );
        push_table(&mut out, &tables::blocks(&m.obstacles), "  ");
        out.push('\n');
        push_table(&mut out, &tables::spoilers(&m.obstacles, SPOILERS), "  ");
        out.push('\n');
    }
    if !o.programs.marks.is_empty() {
        let _ = writeln!(out, "{}\n", tables::legend().join("\n"));
    }
    if let Some(failed) = failure_text(o) {
        let _ = writeln!(out, "{}\n\n{}", failed.head, failed.reports);
    }
    push_table(&mut out, &tables::counters(o), "");
    let _ = writeln!(
        out,
        "\nCosts of the kernel's work: those of the calibration with the hash {}",
        o.calibration
    );
    out.into()
}

/// Whether anything of it failed.
fn failed(o: &Outcome) -> String {
    let programs: u64 = o.programs.failures.values().sum();
    match (programs, failure_text(o).is_some()) {
        (0, false) => "nothing failed".into(),
        (0, true) => "allocations failed, as told below".into(),
        (n, _) => format!("{} failures of its programs", thousands(n)),
    }
}

/// Labels to the left, values to the right, two blanks between columns.
fn push_table(out: &mut String, table: &Table, indent: &str) {
    let cells = &table.cells;
    let row = |label: &str, values: &[String]| -> Vec<String> {
        let label = [label.to_owned()];
        label.into_iter().chain(values.iter().cloned()).collect()
    };
    let head = row(table.corner, &cells.heads);
    let rows = cells.rows.iter().map(|r| row(&r.label, &r.values));
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    columns::push(out, indent, 1, &rows);
}
