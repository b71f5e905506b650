//! A picture of a [`Report`] as SVG: unusable index and free memory, predicted against recorded, side by
//! side.
//!
//! Invariant: the same report gives the same bytes; the picture refers to nothing outside itself.

use super::said::Told;
use super::wording;
use super::wording::ZoneChoice;
use crate::replay::answer::Report;
use crate::replay::answer::report::{Sample, Spread, ZoneSample};
use crate::report::number::thousands;
use crate::report::screen::printable;
use crate::report::svg::{
    Area, COLORS, Drawn, FONT, INK, LEGEND_ROW, TITLE, in_memory, plain_axes,
};
use crate::report::text_chart::nice_ceiling;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width and height in pixels.
const SIZE: (u32, u32) = (960, 380);
/// Height of a line of text below the plots, and its most characters. No font is measured here.
const LINE: i32 = 20;
const LINE_CHARS: usize = 125;
/// Where the plots begin.
const LEFT: i32 = 52;
/// One curve: its name, which kernel it is (none for the recorded one) and its points.
struct Curve {
    name: String,
    kernel: Option<usize>,
    points: Vec<(f64, f64)>,
    /// Of an ensemble: when, the least, the largest.
    band: Vec<(f64, f64, f64)>,
}

/// The picture of the largest zone as SVG.
pub fn render(report: &Report) -> String {
    let below = lines_below(report);
    let size = (SIZE.0, SIZE.1 + LINE as u32 * below.len() as u32);
    in_memory(size, |root| draw(root, report, &below))
}

/// The answer, in lines of the picture's width.
fn lines_below(report: &Report) -> Vec<String> {
    let mut lines = vec![];
    for sentence in Told::of(report).answer.paragraphs() {
        let mut line = String::new();
        for word in sentence.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > LINE_CHARS {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

fn draw(root: &Area, report: &Report, below: &[String]) -> Drawn {
    root.fill(&WHITE)?;
    let zones = wording::zones(report);
    let (root, foot) = root.split_vertically(SIZE.1 as i32);
    for (i, line) in below.iter().enumerate() {
        let style = (FONT, 14).into_font().color(&INK);
        foot.draw(&Text::new(line.clone(), (14, i as i32 * LINE), style))?;
    }
    let (title, rest) = root.split_vertically(TITLE);
    let zone = zones.first();
    let head = match zone {
        Some(z) => format!(
            "{}, zone {}: predicted against recorded",
            printable(&report.recording.file),
            z.label(wording::many_nodes(&zones))
        ),
        None => printable(&report.recording.file),
    };
    let style = (FONT, 22).into_font().color(&INK);
    title.draw(&Text::new(head, (14, 10), style))?;
    let Some(zone) = zone else {
        return Ok(());
    };
    let sizes = report.recording.sizes;
    let large = sizes.large_order().to_string();
    let index = |z: &ZoneSample| z.unusable_index.get(&large).copied();
    let unusable = curves(report, zone, index, |s| {
        s.unusable_index.get(&large).copied()
    });
    let mib = |pages: u64| sizes.as_mib(pages);
    let free = |z: &ZoneSample| Some(mib(z.free_pages));
    let free = curves(report, zone, free, |s| Some(s.free_pages.map(mib)));
    let highest = |c: &Curve| {
        let (line, band) = (c.points.iter().map(|p| p.1), c.band.iter().map(|b| b.2));
        line.chain(band).fold(0.0, f64::max)
    };
    let most = free.iter().map(highest);
    let most = nice_ceiling(most.fold(0.0, f64::max));
    let bottom = legend_places(&unusable).last().map_or(0, |p| p.1) + LEGEND_ROW / 2 + 6;
    let (plots, legend) = rest.split_vertically(SIZE.1 as i32 - TITLE - bottom);
    let (left, right) = plots.split_horizontally(SIZE.0 as i32 / 2);
    let title = format!("Unusable index, order {large} (0 to 1)");
    plot(&left, &title, &unusable, 1.0, 2)?;
    plot(&right, "Free memory (MiB)", &free, most, 0)?;
    draw_legend(&legend, &unusable)?;
    root.present()?;
    Ok(())
}

fn curves(
    report: &Report,
    zone: &ZoneChoice,
    value: impl Fn(&ZoneSample) -> Option<f64>,
    spread: impl Fn(&Spread) -> Option<[f64; 2]>,
) -> Vec<Curve> {
    let band = |samples: &[Sample]| -> Vec<(f64, f64, f64)> {
        let ends = |s: &Sample| {
            let [least, most] = spread(zone.of(s)?.spread.as_ref()?)?;
            Some((s.seconds, least, most))
        };
        samples.iter().filter_map(ends).collect()
    };
    let points = |samples: &[Sample]| -> Vec<(f64, f64)> {
        samples
            .iter()
            .filter_map(|s| Some((s.seconds, value(zone.of(s)?)?)))
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .collect()
    };
    // Drawn one over the other: the first kernel over the rest, the recorded one over all.
    let kernels = report.kernels.iter().enumerate().rev();
    let mut all: Vec<Curve> = kernels
        .map(|(i, k)| Curve {
            name: k.kernel.clone(),
            kernel: Some(i),
            points: points(&k.samples),
            band: band(&k.samples),
        })
        .collect();
    all.push(Curve {
        name: "recorded".into(),
        kernel: None,
        points: points(&report.recorded),
        band: vec![],
    });
    all.retain(|c| !c.points.is_empty());
    all
}

fn plot(area: &Area, title: &str, curves: &[Curve], y_max: f64, decimals: usize) -> Drawn {
    let last = curves.iter().flat_map(|c| &c.points).map(|p| p.0);
    let last = last.fold(0.0, f64::max).max(1e-3);
    let (second, unit) = if last < 600.0 {
        (1.0, "s")
    } else {
        (1.0 / 60.0, "min")
    };
    let style = (FONT, 18).into_font().color(&INK);
    area.draw(&Text::new(title.to_string(), (LEFT, 0), style))?;
    let mut chart = ChartBuilder::on(area)
        .margin_top(26)
        .margin_right(24)
        .x_label_area_size(26)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(0.0..last * second, 0.0..y_max)?;
    let mut mesh = chart.configure_mesh();
    plain_axes(&mut mesh);
    mesh.x_labels(6)
        .x_label_formatter(&|x| format!("{x:.0} {unit}"))
        .y_label_formatter(&|y| {
            if decimals > 0 {
                format!("{y:.decimals$}")
            } else {
                thousands(*y as u64)
            }
        })
        .draw()?;
    for curve in curves {
        if let Some(i) = curve.kernel {
            let (there, back) = (curve.band.iter(), curve.band.iter().rev());
            let edge = there.map(|b| (b.0 * second, b.2));
            let edge: Vec<_> = edge.chain(back.map(|b| (b.0 * second, b.1))).collect();
            let style = COLORS[i % COLORS.len()].mix(0.2).filled();
            if !edge.is_empty() {
                chart.draw_series([Polygon::new(edge, style)])?;
            }
        }
        // Many dots would hide the lines below them.
        let radius = if curve.points.len() > 150 { 0.8 } else { 2.2 };
        let points = curve.points.iter().map(|(x, y)| (x * second, *y));
        match curve.kernel {
            Some(i) if i < COLORS.len() => {
                chart.draw_series(LineSeries::new(points, COLORS[i].stroke_width(2)))?;
            }
            // Colours come round again, then as dashes.
            Some(i) => {
                let style = COLORS[i % COLORS.len()].stroke_width(2);
                chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?;
            }
            None => {
                chart.draw_series(points.map(|p| Circle::new(p, radius, INK.filled())))?;
            }
        }
    }
    Ok(())
}

/// The position of each sign of the legend, in the order in which the kernels were asked for.
fn legend_places(curves: &[Curve]) -> Vec<(i32, i32)> {
    let (mut x, mut y) = (LEFT, LEGEND_ROW / 2);
    let mut places = Vec::new();
    for curve in curves.iter().rev() {
        // No font is measured here; the width of a character is estimated generously.
        let width = 31 + 9 * curve.name.chars().count() as i32 + 22;
        if x > LEFT && x + width > SIZE.0 as i32 {
            x = LEFT;
            y += LEGEND_ROW;
        }
        places.push((x, y));
        x += width;
    }
    places
}

fn draw_legend(area: &Area, curves: &[Curve]) -> Drawn {
    let anchor = Pos::new(HPos::Left, VPos::Center);
    let style = (FONT, 18).into_font().color(&INK).pos(anchor);
    for (curve, (x, y)) in curves.iter().rev().zip(legend_places(curves)) {
        match curve.kernel {
            Some(i) => {
                let style = COLORS[i % COLORS.len()].stroke_width(3);
                let parts: &[(i32, i32)] = if i < COLORS.len() {
                    &[(0, 24)]
                } else {
                    &[(0, 10), (14, 24)]
                };
                for (from, to) in parts {
                    let line = vec![(x + from, y), (x + to, y)];
                    area.draw(&PathElement::new(line, style))?;
                }
            }
            None => {
                for dx in [2, 12, 22] {
                    area.draw(&Circle::new((x + dx, y), 2.2, INK.filled()))?;
                }
            }
        }
        area.draw(&Text::new(curve.name.clone(), (x + 31, y), style.clone()))?;
    }
    Ok(())
}
