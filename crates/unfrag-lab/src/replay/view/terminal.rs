//! A [`Report`] as text: what it is, the answer, how far to trust it, then tables with kernels side by side, and small charts
//! of predicted against recorded; at last what to ask next.
//!
//! Invariant: without colour the text holds no escape sequence, without unicode it is ASCII as far
//! as the names in the report are, and no line but a single unbreakable name exceeds the width.

use super::changes;
use super::detail::Detail;
use super::next;
use super::said::Told;
use super::side_by_side;
use super::wording;
use super::wording::ZoneChoice;
use crate::geometry::Sizes;
use crate::replay::answer::Report;
use crate::replay::answer::report::{KernelReport, Sample, ZoneSample};
use crate::report::number::{duration, thousands};
use crate::report::ruled::Ruled;
use crate::report::screen::{Screen, Style, Text};
use crate::report::table::SideBySide;
use crate::report::text_chart::{Chart, Series};
use crate::report::text_chart::{Mark, nice_ceiling};
use std::fmt::Write as _;

/// Colours of the kernels, in order and over again.
const COLORS: [u8; 6] = [4, 3, 2, 5, 6, 1];
/// Signs of the kernels where lines cannot be told apart by colour.
const SIGNS: [char; 9] = ['#', '+', 'x', '=', '%', '*', '@', '~', '&'];
/// Charts and sentences get no wider than this, however wide the terminal.
const WIDEST: usize = 110;
/// Rows of a chart's plot.
const CHART_ROWS: usize = 10;
/// Failures listed for each kernel before the rest is summed up.
const FAILURES_LISTED: usize = 5;

/// The report as text.
pub fn render(report: &Report, screen: &Screen, detail: Detail) -> Text {
    let mut page = Page {
        told: Told::of(report),
        report,
        screen,
        detail,
        zones: wording::zones(report),
        left_out: LeftOut::default(),
    };
    let mut out = Text::new();
    page.push_header(&mut out);
    page.push_changes(&mut out);
    let shown: Vec<ZoneChoice> = page.shown_zones().cloned().collect();
    for zone in &shown {
        page.push_zone(&mut out, zone);
    }
    page.push_small_zones(&mut out);
    page.push_totals(&mut out);
    page.push_failures(&mut out);
    page.push_accuracy(&mut out);
    for zone in shown.iter().take(1) {
        page.push_charts(&mut out, zone);
    }
    page.push_notes(&mut out);
    page.push_end(&mut out);
    out
}

/// Rows that a short view does not show.
#[derive(Default)]
struct LeftOut {
    /// Zero, or not known, in every column.
    zero: usize,
    /// Others.
    other: usize,
}

/// The report, the screen and its zones, which every section needs.
struct Page<'a> {
    told: Told<'a>,
    report: &'a Report,
    screen: &'a Screen,
    detail: Detail,
    zones: Vec<ZoneChoice>,
    left_out: LeftOut,
}

impl Page<'_> {
    /// Zones with a table of their own: the largest, and every other one that matters.
    fn shown_zones(&self) -> impl Iterator<Item = &ZoneChoice> {
        let shown = |(i, z): &(usize, &ZoneChoice)| *i == 0 || z.matters();
        self.zones.iter().enumerate().filter(shown).map(|(_, z)| z)
    }

    fn sizes(&self) -> &Sizes {
        &self.report.recording.sizes
    }

    fn label(&self, zone: &ZoneChoice) -> String {
        zone.label(wording::many_nodes(&self.zones))
    }

    fn push_header(&self, out: &mut Text) {
        self.push_wrapped(out, "", &wording::head_sentence(self.report));
        let answer = self.told.answer.paragraphs();
        self.push_led(out, "Answer: ", answer);
        let trust = &self.told.trust;
        self.push_led(out, "Trust: ", trust.paragraphs().into_iter());
    }

    /// Paragraphs of which the first begins with `lead`, and all are indented as far.
    fn push_led(&self, out: &mut Text, lead: &str, all: impl Iterator<Item = String>) {
        let blank = " ".repeat(lead.len());
        for (i, text) in all.enumerate() {
            let lead = if i == 0 { lead } else { &blank };
            self.push_wrapped(out, lead, &text);
        }
    }

    /// A table as far as this view has rows of it; in short without those that are zero in every column.
    fn shown(&mut self, of: impl Fn(Detail) -> SideBySide) -> SideBySide {
        let all = of(Detail::All);
        if self.detail == Detail::All {
            return all;
        }
        let (_, zero) = side_by_side::without_zeros(all.clone());
        let (short, _) = side_by_side::without_zeros(of(Detail::Short));
        self.left_out.zero += zero;
        self.left_out.other += (rows_of(&all) - zero).saturating_sub(rows_of(&short));
        short
    }

    fn push_changes(&mut self, out: &mut Text) {
        let report = self.report;
        let table = self.shown(|detail| changes::table(report, detail));
        if !table.heads.is_empty() && !table.rows.is_empty() {
            self.push_title(out, "What would be different");
            self.push_side_by_side(out, &table);
        } else if self.told.answer.rest().next().is_some() {
            out.push('\n');
        }
        for sentence in self.told.answer.rest() {
            self.push_wrapped(out, "", &sentence);
        }
        let silent = changes::silent(report);
        if self.detail == Detail::Short && !silent.is_empty() && self.kernels().next().is_some() {
            let text = format!(
                "In no table, as nothing can be said of it: {}.",
                silent.join(", ")
            );
            self.push_wrapped(out, "", &text);
        }
    }

    fn push_zone(&mut self, out: &mut Text, zone: &ZoneChoice) {
        let report = self.report;
        let table = self.shown(|detail| side_by_side::zone_table(report, zone, detail));
        if !self.has_kernels(&table) {
            self.left_out.other += rows_of(&table);
            return;
        }
        let title = format!(
            "{} at the end, after {} ({} MiB managed)",
            self.label(zone),
            duration(self.last_second()),
            self.sizes().mib(zone.managed_pages)
        );
        self.push_title(out, &title);
        self.push_side_by_side(out, &table);
    }

    /// Whether a table has more than what was recorded; with all numbers it always stands.
    fn has_kernels(&self, table: &SideBySide) -> bool {
        let kernels = table.heads.iter().filter(|h| *h != "recorded");
        let has_rows = !table.rows.is_empty();
        has_rows && (self.detail == Detail::All || kernels.count() > 0)
    }

    fn push_small_zones(&self, out: &mut Text) {
        let small: Vec<String> = self
            .zones
            .iter()
            .enumerate()
            .filter(|(i, z)| *i > 0 && !z.matters())
            .map(|(_, z)| {
                format!(
                    "{} ({} MiB)",
                    self.label(z),
                    self.sizes().mib(z.managed_pages)
                )
            })
            .collect();
        let is_shown = self.draws("free_pages_end") || self.draws("unusable_huge_end");
        if !small.is_empty() && is_shown {
            let text = format!("Not shown, below 5 % of memory: {}.", small.join(", "));
            self.push_wrapped(out, "", &text);
        }
    }

    fn push_totals(&mut self, out: &mut Text) {
        let report = self.report;
        let table = self.shown(|detail| side_by_side::totals_table(report, detail));
        if !self.has_kernels(&table) {
            self.left_out.other += rows_of(&table);
            return;
        }
        self.push_title(out, "Whole replay");
        self.push_side_by_side(out, &table);
    }

    fn push_failures(&self, out: &mut Text) {
        for kernel in self.kernels() {
            let is_withheld = self.told.answer.cannot_say.is_some() && self.detail == Detail::Short;
            if kernel.failures.is_empty() || is_withheld {
                continue;
            }
            self.push_title(
                out,
                &format!("Allocations that failed under {}", kernel.kernel),
            );
            let mut failures: Vec<_> = kernel.failures.iter().collect();
            failures.sort_by_key(|f| std::cmp::Reverse(f.count));
            for f in failures.iter().take(FAILURES_LISTED) {
                let text = format!(
                    "{} of order {} ({}), {}",
                    thousands(f.count),
                    f.order,
                    self.sizes().of_order(f.order),
                    f.gfp
                );
                self.push_wrapped(out, "  ", &text);
            }
            let rest = &failures[failures.len().min(FAILURES_LISTED)..];
            if !rest.is_empty() {
                let count: u64 = rest.iter().map(|f| f.count).sum();
                let text = format!("{} of {} other kinds", thousands(count), rest.len());
                self.push_wrapped(out, "  ", &text);
            }
        }
    }

    fn push_accuracy(&self, out: &mut Text) {
        if self.detail == Detail::Short {
            return;
        }
        for kernel in &self.report.kernels {
            let Some(accuracy) = &kernel.accuracy else {
                continue;
            };
            let release = &self.report.recording.kernel_release;
            let nearest = match wording::is_own_release(&kernel.kernel, release) {
                true => "",
                false => ", the nearest that is known,",
            };
            let title = format!(
                "Error of {}{nearest} against the recorded kernel ({} snapshots)",
                kernel.kernel,
                thousands(accuracy.snapshots)
            );
            self.push_title(out, &title);
            let rows = wording::accuracy_rows(accuracy, self.sizes());
            let mut table = Ruled::new(["Error", "median", "p90", "max", "skill", "of"], 1..5);
            for row in &rows {
                let m = &row.measure;
                table.push([
                    row.name.to_string(),
                    row.error(m.median),
                    row.error(m.p90),
                    row.error(m.max),
                    or_dash(m.skill.map(|s| format!("{s:.2}"))),
                    row.unit.to_string(),
                ]);
            }
            self.push_table(out, &table);
            self.push_wrapped(
                out,
                "",
                "Skill: 1 makes no error; 0 errs as much as holding the first snapshot's \
                 distribution and only counting allocations and frees.",
            );
            for row in &rows {
                let text = format!(
                    "{}: {} Skill: {}.",
                    row.name,
                    row.plain,
                    wording::skill_words(row.measure.skill)
                );
                self.push_wrapped(out, self.bullet(), &text);
            }
            if let Some(m) = accuracy.frame_match {
                let text = wording::frame_match_sentence(&m);
                self.push_wrapped(out, self.bullet(), &text);
            }
            if let Some(h) = accuracy.huge_faults {
                let text = wording::huge_faults_sentence(&h);
                self.push_wrapped(out, self.bullet(), &text);
            }
        }
    }

    fn push_charts(&self, out: &mut Text, zone: &ZoneChoice) {
        let name = self.label(zone);
        let large = self.sizes().large_order();
        let (size, large) = (self.sizes().of_order(large), large.to_string());
        let unusable = |z: &ZoneSample| z.unusable_index.get(&large).copied();
        let free = |z: &ZoneSample| Some(self.sizes().as_mib(z.free_pages));
        let x_max = self.last_second();
        if x_max <= 0.0 {
            return;
        }
        let states = self.all_samples().filter_map(|s| zone.of(s));
        let most = states.filter_map(free).fold(0.0, f64::max);
        let mut chart = Chart {
            title: &format!(
                "{name}: share of free memory in pieces below {size} (unusable index), over time"
            ),
            width: self.text_width(),
            height: CHART_ROWS,
            y_max: 1.0,
            y_decimals: 2,
            x_max,
            unicode: self.screen.unicode,
        };
        if self.draws("unusable_huge_end") {
            out.push('\n');
            out.append(&chart.draw(&self.series(zone, "unusable_huge_end", unusable)));
        }
        let title = format!("{name}: free memory (MiB), over time");
        chart.title = &title;
        chart.y_max = nice_ceiling(most);
        chart.y_decimals = if most < 10.0 { 1 } else { 0 };
        if self.draws("free_pages_end") {
            out.push('\n');
            out.append(&chart.draw(&self.series(zone, "free_pages_end", free)));
        }
    }

    /// Kernels of which something is said of a number.
    fn saying(&self, name: &str) -> impl Iterator<Item = &KernelReport> {
        let detail = self.detail;
        self.kernels()
            .filter(move |k| changes::is_said(k, name, detail))
    }

    /// Whether there is anything to draw of a number.
    fn draws(&self, name: &str) -> bool {
        self.saying(name).next().is_some()
    }

    /// One series for the recorded kernel and one for each replayed one of which something is said of a number.
    fn series(
        &self,
        zone: &ZoneChoice,
        name: &str,
        value: impl Fn(&ZoneSample) -> Option<f64>,
    ) -> Vec<Series> {
        let points = |samples: &[Sample]| -> Vec<(f64, f64)> {
            samples
                .iter()
                .filter_map(|s| Some((s.seconds, value(zone.of(s)?)?)))
                .collect()
        };
        // Two braille lines of one colour cannot be told apart.
        let kernels: Vec<_> = self.saying(name).collect();
        let braille = self.screen.unicode && (self.screen.color || kernels.len() == 1);
        let mut all: Vec<Series> = kernels
            .iter()
            .enumerate()
            .map(|(i, k)| Series {
                name: format!("{} predicted", k.kernel),
                points: points(&k.samples),
                mark: if braille {
                    Mark::Line
                } else {
                    Mark::Glyph(SIGNS[i % SIGNS.len()])
                },
                color: self.screen.style(Style::Named(COLORS[i % COLORS.len()])),
            })
            .collect();
        all.push(Series {
            name: "recorded".into(),
            points: points(&self.report.recorded),
            mark: Mark::Point(if self.screen.unicode { '●' } else { 'o' }),
            color: self.screen.style(Style::Stressed),
        });
        all.retain(|s| !s.points.is_empty());
        all
    }

    /// Kernels whose curves are drawn.
    fn kernels(&self) -> impl Iterator<Item = &KernelReport> {
        let all = self.report.kernels.iter();
        all.filter(|k| changes::is_shown(k, self.detail))
    }

    fn all_samples(&self) -> impl Iterator<Item = &Sample> {
        let predicted = self.kernels().flat_map(|k| &k.samples);
        self.report.recorded.iter().chain(predicted)
    }

    fn last_second(&self) -> f64 {
        self.all_samples().map(|s| s.seconds).fold(0.0, f64::max)
    }

    fn push_notes(&self, out: &mut Text) {
        let notes = wording::notes(self.report);
        if notes.is_empty() {
            return;
        }
        self.push_title(out, "Notes");
        for note in notes {
            self.push_wrapped(out, self.bullet(), &note);
        }
    }

    /// What is left out, and what to ask next.
    fn push_end(&self, out: &mut Text) {
        out.push('\n');
        let LeftOut { zero, other } = self.left_out;
        if zero + other > 0 {
            let text = format!(
                "Left out: {} rows, {zero} of them zero or not known on all sides{}; --all shows them.",
                zero + other,
                if self.measured() {
                    ", and the errors snapshot by snapshot"
                } else {
                    ""
                }
            );
            self.push_wrapped(out, "", &text);
        }
        self.push_wrapped(out, "", &next::next(self.report, &self.told.answer));
    }

    fn measured(&self) -> bool {
        self.report.kernels.iter().any(|k| k.accuracy.is_some())
    }

    /// A table with a column for each kernel, broken into several where the width demands it.
    fn push_side_by_side(&self, out: &mut Text, all: &SideBySide) {
        let labelled: Vec<(String, &[String])> = all
            .rows
            .iter()
            .map(|r| (format!("{:1$}{2}", "", 2 * r.depth, r.label), &r.values[..]))
            .collect();
        let length = |text: &String| text.chars().count();
        let column = |i: usize| -> usize {
            let values = labelled.iter().filter_map(|(_, values)| values.get(i));
            values.chain([&all.heads[i]]).map(length).max().unwrap_or(0) + 3
        };
        let labels = labelled.iter().map(|(l, _)| length(l)).max().unwrap_or(0) + 2;
        let mut from = 0;
        while from < all.heads.len() {
            let mut to = from + 1;
            let mut used = labels + column(from);
            while to < all.heads.len() && used + column(to) <= self.screen.width {
                used += column(to);
                to += 1;
            }
            let heads = all.heads[from..to].iter().map(|h| &**h);
            let mut table = Ruled::new([""].into_iter().chain(heads), 1..to - from + 1);
            for (label, values) in &labelled {
                let mut cells = vec![label.as_str()];
                cells.extend(values.iter().take(to).skip(from).map(|v| v.as_str()));
                table.push(cells);
            }
            if from > 0 {
                out.push('\n');
            }
            self.push_table(out, &table);
            from = to;
        }
    }

    fn push_table(&self, out: &mut Text, table: &Ruled) {
        let rule = if self.screen.unicode { '─' } else { '-' };
        for (i, line) in table.lines(self.screen.width, rule).iter().enumerate() {
            if i == 0 {
                out.append(&self.screen.stressed(line));
            } else {
                out.push_str(line);
            }
            out.push('\n');
        }
    }

    fn push_title(&self, out: &mut Text, title: &str) {
        out.push('\n');
        out.push_head(self.screen, title);
    }

    /// A paragraph; its first line begins with `lead`, the others are indented as far.
    fn push_wrapped(&self, out: &mut Text, lead: &str, text: &str) {
        let indent = lead.chars().count();
        let room = self.text_width().saturating_sub(indent).max(1);
        let mut line = String::new();
        let mut first = true;
        let mut flush = |line: &mut String| {
            let start = if first { lead } else { "" };
            let _ = writeln!(out, "{start:indent$}{line}");
            line.clear();
            first = false;
        };
        for word in text.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                flush(&mut line);
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            flush(&mut line);
        }
    }

    fn text_width(&self) -> usize {
        self.screen.width.min(WIDEST)
    }

    fn bullet(&self) -> &'static str {
        if self.screen.unicode { "• " } else { "- " }
    }
}

/// Rows with values.
fn rows_of(table: &SideBySide) -> usize {
    table.rows.iter().filter(|r| !r.values.is_empty()).count()
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".into())
}
