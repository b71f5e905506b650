//! A run as one HTML file that opens without a network. Tables are written here; the scripts in `assets/`
//! draw the charts from the data that the page holds.
//!
//! Invariant: the page loads nothing (its own content policy forbids it), nothing from the scenario reaches
//! the page unescaped, and the same outcome gives the same bytes.

use super::alloc_failures::failure_text;
use super::charts::{Chart, Charts, charts};
use super::phrases::{kernel, seconds};
use super::tables;
use super::tables::Table;
use crate::report::html_page;
use crate::report::html_page::{TIMELINE, escape, escape_lines, fill, paragraph};
use crate::report::number::{duration, thousands};
use std::fmt::Write as _;
use unfrag_machine::scenario::Outcome;

const PAGE: &str = include_str!("../../assets/page/simulated.html");
const SCRIPT: &str = include_str!("../../assets/page/simulated.js");
/// Slab caches that are listed, and what spoils blocks of each zone.
const CACHES: usize = 12;
const SPOILERS: usize = 8;
/// Marks that are unfolded.
const OPEN_MARKS: usize = 3;

/// The whole page.
pub fn render(o: &Outcome) -> String {
    let charts = charts(&o.samples, &o.zones);
    let title = format!("{} under {}", o.scenario, o.kernel);
    let figures = |wanted: &[&str]| figures(&charts, |id| wanted.contains(&id));
    let body = fill(PAGE, |name| match name {
        "memory" => figures(&["memory"]),
        "free" => self::figures(&charts, |id| id.starts_with("free-")),
        "stalls" => figures(&["waits", "stalls"]),
        "io" => figures(&["dirty", "io", "swap"]),
        "cpu" => figures(&["cpu", "kswapd"]),
        "tasks" => table(&tables::tasks(o)),
        "high_order" => section("Attempts at large blocks", &tables::high_order(o)),
        "marks" => marks(o),
        "slabs" => section(
            "Slab caches with most memory, at the end",
            &tables::slabs(o, CACHES),
        ),
        "failures" => {
            let lines = section("Lines that were printed", &tables::lines(o));
            section("Failures", &tables::failures(o)) + &lines
        }
        "alloc_failures" => alloc_failures(o),
        "counters" => table(&tables::counters(o)),
        other => unreachable!("the page's template has no {other}"),
    });
    let (summary, data) = (summary(o, &charts), html_page::json(&charts));
    html_page::with_charts(&title, &summary, &body, &data, &[TIMELINE, SCRIPT])
}

fn summary(o: &Outcome, charts: &Charts) -> String {
    let mut out = String::new();
    let how = match o.ended {
        "finished" if o.programs.failures.is_empty() => "all that it waits for was done",
        "finished" => "all that it waits for has ended, some of it by failures",
        "time-limit" => "it reached its time limit",
        "stopped" => "it was stopped",
        _ => "no task could go on",
    };
    let sentence = format!(
        "Machine {}, kernel {}, seed {}. The run ended after {} of its virtual time: {how}. {} processes ran. kswapd took {:.3} s \
         of CPU time, tasks spent {:.3} s in direct reclaim.",
        o.machine,
        kernel(o),
        o.seed,
        duration(seconds(o.elapsed_ns)),
        thousands(o.programs.processes),
        seconds(o.kswapd_cpu_ns),
        seconds(o.counters.get("direct_reclaim_ns").copied().unwrap_or(0)),
    );
    paragraph(&mut out, "run", &sentence);
    let identity = format!(
        "Calibration {}, digest of the run {}.",
        o.calibration, o.trace_hash
    );
    paragraph(&mut out, "hint", &identity);
    if let Some(sentence) = &charts.left_out {
        paragraph(&mut out, "hint", sentence);
    }
    out
}

fn figures(charts: &Charts, wanted: impl Fn(&str) -> bool) -> String {
    let found: Vec<&Chart> = charts.charts.iter().filter(|c| wanted(&c.id)).collect();
    let alone = if found.len() == 1 { " single" } else { "" };
    let mut out = format!("<div class=\"pair{alone}\">\n");
    for c in found {
        let tall = if c.stacked { " tall" } else { "" };
        let _ = writeln!(
            out,
            "<figure><figcaption>{} <small>{}{}</small></figcaption><div class=\"chart{tall}\" id=\"{}\"></div>\
             <div class=\"legend\" id=\"{}-legend\"></div></figure>",
            escape(&c.title),
            c.unit,
            match c.hint.as_str() {
                "" => String::new(),
                hint => format!(", {}", escape(hint)),
            },
            c.id,
            c.id
        );
    }
    out + "</div>\n"
}

fn marks(o: &Outcome) -> String {
    if o.programs.marks.is_empty() {
        return String::new();
    }
    let mut out = String::from("<section><h2>What stands in the way of large blocks</h2>\n");
    paragraph(&mut out, "hint", &tables::legend().join(" "));
    for (i, m) in o.programs.marks.iter().enumerate() {
        let open = if i < OPEN_MARKS { " open" } else { "" };
        let _ = writeln!(
            out,
            "<details{open}><summary>{}, at {:.3} s, by {} {}</summary><div class=\"beside\"><div>{}</div><div>{}</div></div></details>",
            escape(&m.name),
            seconds(m.at_ns),
            escape(&m.task),
            m.number,
            table(&tables::blocks(&m.obstacles)),
            table(&tables::spoilers(&m.obstacles, SPOILERS))
        );
    }
    out + "</section>\n"
}

/// What the kernel reported of allocations that failed; nothing, if none did.
fn alloc_failures(o: &Outcome) -> String {
    let Some(failed) = failure_text(o) else {
        return String::new();
    };
    let mut out = String::from("<section><h2>Allocations that failed</h2>\n");
    paragraph(&mut out, "hint", &failed.head);
    let _ = writeln!(
        out,
        "<pre style=\"overflow-x: auto\">{}</pre></section>",
        escape_lines(&failed.reports)
    );
    out
}

/// A section with one table; nothing, if the table is empty.
fn section(title: &str, of: &Table) -> String {
    if of.is_empty() {
        return String::new();
    }
    format!("<section><h2>{title}</h2>\n{}</section>\n", table(of))
}

fn table(of: &Table) -> String {
    html_page::table(of.corner, &of.cells, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_of_ours_ends_its_own_element() {
        assert!(!SCRIPT.to_ascii_lowercase().contains("</script") && !SCRIPT.contains("<!--"));
    }
}
