//! A [`Report`] as one HTML file that opens without a network. Tables and sentences are written here; the
//! scripts in `assets/` draw the charts from the data that the page holds.
//!
//! Invariant: the page loads nothing (its own content policy forbids it), nothing from the report
//! reaches the page unescaped, and the same report gives the same bytes.

use super::changes;
use super::detail::Detail;
use super::reduction;
use super::said::Told;
use super::side_by_side;
use super::trust::unmeasured;
use super::wording;
use super::wording::ZoneChoice;
use crate::geometry::Sizes;
use crate::replay::answer::Report;
use crate::replay::answer::report::{Accuracy, KernelReport};
use crate::report::html_page;
use crate::report::html_page::{TIMELINE, escape, fill, paragraph, table};
use crate::report::number::thousands;
use crate::report::table::SideBySide;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const PAGE: &str = include_str!("../../../assets/page/page.html");
const CHARTS: &str = include_str!("../../../assets/page/charts.js");
const BLOCK_MAP: &str = include_str!("../../../assets/page/block_map.js");

/// What the scripts read.
#[derive(Serialize)]
struct Data<'a> {
    report: &'a Report,
    zones: Vec<ZoneData<'a>>,
}

/// A zone as the scripts look it up.
#[derive(Serialize)]
struct ZoneData<'a> {
    node: u32,
    zone: &'a str,
}

/// The whole page.
pub fn render(report: &Report, detail: Detail) -> String {
    let zones = wording::zones(report);
    let reduced = reduction::reduce(report);
    let drawn = reduced.as_ref().map_or(report, |t| &t.report);
    let mut summary = summary(report);
    if let Some(t) = &reduced {
        paragraph(&mut summary, "hint", &t.sentence);
    }
    let title = format!("Replay of {}", report.recording.file);
    let sizes = report.recording.sizes;
    let large = sizes.large_order();
    let body = fill(PAGE, |name| match name {
        "large_order" => large.to_string(),
        "large_size" => sizes.of_order(large),
        "size_of_3" => sizes.of_order(3),
        "changes" => what_changes(report, detail),
        "zone_options" => zone_options(report, &zones),
        "end_tables" => end_tables(report, &zones, detail),
        "accuracy" => accuracy(report),
        "totals" => {
            let totals = shown(side_by_side::totals_table(report, detail), detail);
            match totals.rows.is_empty() {
                true => String::new(),
                false => table("", &totals, None),
            }
        }
        "failures" => failures(report, detail),
        "left_out" => left_out(detail),
        "notes" => notes(report),
        "settings" => settings(report),
        other => unreachable!("the page's template has no {other}"),
    });
    let scripts = [TIMELINE, CHARTS, BLOCK_MAP];
    html_page::with_charts(&title, &summary, &body, &data(drawn, &zones), &scripts)
}

/// The data as JSON in which nothing can end the script element that holds it.
fn data(report: &Report, zones: &[ZoneChoice]) -> String {
    let data = Data {
        report,
        zones: zones
            .iter()
            .map(|z| ZoneData {
                node: z.node,
                zone: &z.zone,
            })
            .collect(),
    };
    html_page::json(&data)
}

/// The answer, and how far to trust it.
fn summary(report: &Report) -> String {
    let mut out = String::new();
    let told = Told::of(report);
    paragraph(&mut out, "recording", &wording::head_sentence(report));
    for text in told.answer.paragraphs() {
        paragraph(&mut out, "answer", &text);
    }
    out.push_str("<div class=\"trust\">\n<p>How far to trust this:</p>\n<ul>\n");
    for trusted in &told.trust.questions {
        let (of, word) = (trusted.question.words(), trusted.word());
        let class = word.replace(' ', "-");
        let because = escape(&trusted.because);
        let _ = writeln!(
            out,
            "<li><span class=\"grade {class}\">{word}</span> for {of}. {because}</li>"
        );
    }
    let rest = escape(&told.trust.sentences.join(" "));
    let _ = writeln!(out, "</ul>\n<p>{rest}</p>\n</div>");
    out
}

/// A table as far as it is shown: in short without the rows that are zero in every column.
fn shown(table: SideBySide, detail: Detail) -> SideBySide {
    match detail {
        Detail::Short => side_by_side::without_zeros(table).0,
        Detail::All => table,
    }
}

fn left_out(detail: Detail) -> String {
    let mut out = String::new();
    if detail == Detail::Short {
        let text = "Rows that are zero or not known on all sides, and kernels of which nothing can be said, stand in no table here; \
                    a page made with --all has them.";
        paragraph(&mut out, "hint", text);
    }
    out
}

/// What would be different, where anything was asked beside the recorded kernel of which something can be said.
fn what_changes(report: &Report, detail: Detail) -> String {
    let all = shown(changes::table(report, detail), detail);
    let rest: Vec<String> = Told::of(report).answer.rest().collect();
    let has_rows = !all.heads.is_empty() && !all.rows.is_empty();
    if !has_rows && rest.is_empty() {
        return String::new();
    }
    let mut out = String::from("<section id=\"changes\">\n<h2>What would be different</h2>\n");
    if has_rows {
        out.push_str(&table("", &all, None));
    }
    for sentence in rest {
        paragraph(&mut out, "hint", &sentence);
    }
    out.push_str("</section>\n");
    out
}

fn zone_options(report: &Report, zones: &[ZoneChoice]) -> String {
    let many = wording::many_nodes(zones);
    let mut out = String::new();
    for (i, zone) in zones.iter().enumerate() {
        let _ = write!(
            out,
            "<option value=\"{i}\">{} ({} MiB)</option>",
            escape(&zone.label(many)),
            report.recording.sizes.mib(zone.managed_pages)
        );
    }
    out
}

fn end_tables(report: &Report, zones: &[ZoneChoice], detail: Detail) -> String {
    let many = wording::many_nodes(zones);
    let mut out = String::new();
    for (i, zone) in zones.iter().enumerate() {
        let caption = format!(
            "Zone {}, {} MiB managed",
            zone.label(many),
            report.recording.sizes.mib(zone.managed_pages)
        );
        let end = side_by_side::zone_table(report, zone, detail);
        let end = shown(end, detail);
        let end = match end.rows.is_empty() {
            true => "<p class=\"hint\">Nothing can be said of this zone.</p>".to_owned(),
            false => table("", &end, Some(&caption)),
        };
        let _ = writeln!(out, "<div data-zone=\"{i}\">{end}</div>");
    }
    out
}

fn accuracy(report: &Report) -> String {
    let mut out = String::new();
    for kernel in report.kernels.iter().chain(&report.own) {
        if let Some(accuracy) = &kernel.accuracy {
            push_accuracy(&mut out, kernel, accuracy, &report.recording.sizes);
        }
    }
    if out.is_empty() {
        paragraph(
            &mut out,
            "hint",
            &format!("Not measured. {}", unmeasured(report)),
        );
    }
    out
}

fn push_accuracy(out: &mut String, kernel: &KernelReport, accuracy: &Accuracy, sizes: &Sizes) {
    let _ = write!(
        out,
        "<p>Kernel {} against {} recorded snapshots. Skill 1 makes no error; 0 errs as much as a \
         forecaster who holds the first snapshot's distribution and only counts allocations and \
         frees.</p>\n<div class=\"scroll\"><table class=\"accuracy\"><thead><tr><th></th>\
         <th scope=\"col\">median</th><th scope=\"col\">p90</th><th scope=\"col\">max</th>\
         <th scope=\"col\">skill</th><th scope=\"col\" class=\"words\"></th></tr></thead><tbody>\n",
        escape(&kernel.kernel),
        thousands(accuracy.snapshots)
    );
    for row in wording::accuracy_rows(accuracy, sizes) {
        let m = &row.measure;
        let skill = m.skill.map_or_else(|| "-".into(), |s| format!("{s:.2}"));
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{} <small>{}</small></th><td>{}</td><td>{}</td><td>{}</td>\
             <td>{skill}</td><td class=\"words\">{} Skill: {}.</td></tr>",
            row.name,
            row.unit,
            escape(&row.error(m.median)),
            escape(&row.error(m.p90)),
            escape(&row.error(m.max)),
            escape(&row.plain),
            wording::skill_words(m.skill)
        );
    }
    out.push_str("</tbody></table></div>\n");
    if let Some(m) = accuracy.frame_match {
        paragraph(out, "frames", &wording::frame_match_sentence(&m));
    }
    if let Some(h) = accuracy.huge_faults {
        paragraph(out, "huge-faults", &wording::huge_faults_sentence(&h));
    }
}

/// As on the terminal: in short, none where nothing can be said of free memory, and none of kernels that no table has.
fn failures(report: &Report, detail: Detail) -> String {
    let kernels = report.kernels.iter();
    let kernels: Vec<_> = kernels.filter(|k| changes::is_shown(k, detail)).collect();
    let kinds = side_by_side::failures_by_kind(&kernels);
    let is_withheld = detail == Detail::Short && Told::of(report).answer.cannot_say.is_some();
    if kinds.is_empty() || is_withheld {
        return String::new();
    }
    let mut out = String::from(
        "<h3>Allocations that failed</h3>\n<div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">order</th>",
    );
    for kernel in kernels {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&kernel.kernel));
    }
    out.push_str("<th scope=\"col\" class=\"mask\">gfp mask</th></tr></thead><tbody>\n");
    for ((order, gfp), counts) in kinds {
        let size = report.recording.sizes.of_order(order);
        let _ = write!(out, "<tr><th scope=\"row\">{order}, {size}</th>");
        for count in counts {
            let _ = write!(out, "<td>{}</td>", thousands(count));
        }
        let mask = escape(gfp).replace('|', "|<wbr>");
        let _ = writeln!(out, "<td class=\"mask\"><code>{mask}</code></td></tr>");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn notes(report: &Report) -> String {
    let notes = wording::notes(report);
    if notes.is_empty() {
        return String::new();
    }
    let mut out = String::from("<ul>\n");
    for note in notes {
        let _ = writeln!(out, "<li>{}</li>", escape(&note));
    }
    out.push_str("</ul>\n");
    out
}

/// Every setting, a column for each kernel; those that differ stand out.
fn settings(report: &Report) -> String {
    let kernels = &report.kernels;
    let names: BTreeSet<&String> = kernels.iter().flat_map(|k| k.settings.keys()).collect();
    if names.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<details><summary>Every setting in force</summary>\n<div class=\"scroll\"><table>\
         <thead><tr><th>Setting</th>",
    );
    for kernel in kernels {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&kernel.kernel));
    }
    out.push_str("</tr></thead><tbody>\n");
    for name in names {
        let values: Vec<String> = kernels
            .iter()
            .map(|k| match k.settings.get(name) {
                None => "-".into(),
                Some(serde_json::Value::Null) => "computed".into(),
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
            })
            .collect();
        let differs = values.iter().any(|v| *v != values[0]);
        let class = if differs { " class=\"differs\"" } else { "" };
        let _ = write!(
            out,
            "<tr{class}><th scope=\"row\"><code>{}</code></th>",
            escape(name)
        );
        for value in values {
            let _ = write!(out, "<td>{}</td>", escape(&value));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div></details>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_of_ours_ends_its_own_element() {
        for script in [html_page::ECHARTS, TIMELINE, CHARTS, BLOCK_MAP] {
            assert!(!script.to_ascii_lowercase().contains("</script"));
            assert!(!script.contains("<!--"));
        }
    }
}
