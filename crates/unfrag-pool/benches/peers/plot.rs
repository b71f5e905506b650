//! What was measured, as a picture: times as points on a logarithmic scale, a row for each work; huge blocks regained, as
//! lines.

use crate::allocators::NAMES;
use crate::report::{Row, Rows};
use crate::works::WORKS;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (960, 900);

/// Writes an SVG file.
pub fn write(rows: &Rows, path: &Path) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (times, regain) = root.split_vertically(520);
    draw_times(rows, &times)?;
    draw_regain(rows, &regain)?;
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// A row of the times, in the order that they stand in from below: order, threads, place of the work in `WORKS`, all counted down.
type Line = Reverse<(u8, usize, usize)>;
/// An allocator, and its nanoseconds.
type Point<'r> = (&'r str, f64);

/// The colour of an allocator, the same in each part: the bound grey, ours black, the eras blue, the registry's the others.
fn color(name: &str) -> RGBColor {
    let hue_and_light = match name {
        "array" => return RGBColor(150, 150, 150),
        "unfrag" => return BLACK,
        "2.6.14" => (0.50, 0.60),
        "V19" => (0.53, 0.40),
        "2.6.32" => (0.57, 0.70),
        "6.1" => (0.61, 0.50),
        "6.18" => (0.64, 0.30),
        "buddy_system_allocator" => (0.0, 0.45),
        "buddy-slab-allocator" => (0.08, 0.50),
        "bitmap-allocator" => (0.83, 0.50),
        "branch_allocator" => (0.92, 0.65),
        _ => (0.33, 0.35),
    };
    let (h, l) = hue_and_light;
    let (r, g, b) = HSLColor(h, 0.8, l).to_backend_color().rgb;
    RGBColor(r, g, b)
}

/// Those that are in the rows, in the order of `NAMES`.
fn in_order<'r>(present: impl Iterator<Item = &'r str>) -> Vec<&'r str> {
    let present: BTreeSet<&str> = present.collect();
    NAMES.into_iter().filter(|n| present.contains(n)).collect()
}

fn draw_times(rows: &Rows, area: &Area) -> Result<(), Box<dyn Error>> {
    let mut of: BTreeMap<Line, Vec<Point>> = BTreeMap::new();
    for row in &rows.0 {
        if let Row::Time {
            work,
            allocator,
            order,
            threads,
            ns,
        } = row
        {
            let place = WORKS.iter().position(|w| w == work).unwrap_or(0);
            of.entry(Reverse((*order, *threads, place)))
                .or_default()
                .push((allocator, *ns));
        }
    }
    let names = in_order(of.values().flatten().map(|(a, _)| *a));
    let all = of.values().flatten().map(|(_, ns)| *ns);
    let (least, most) = all.fold((1.0_f64, 10.0_f64), |(a, b), ns| (a.min(ns), b.max(ns)));
    let mut chart = ChartBuilder::on(area)
        .caption("Nanoseconds an operation", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(200)
        .build_cartesian_2d((least * 0.8..most * 20.0).log_scale(), 0.0..of.len() as f64)?;
    let labels: Vec<String> = of
        .keys()
        .map(|Reverse((order, threads, place))| {
            let work = WORKS[*place];
            let plural = if *threads == 1 { "" } else { "s" };
            format!("{work}, order {order}, {threads} thread{plural}")
        })
        .collect();
    chart
        .configure_mesh()
        .y_labels(of.len() * 2 + 1)
        .y_label_formatter(&|y| {
            let half = (y.fract() - 0.5).abs() < 0.01;
            let label = labels.get(y.floor() as usize).filter(|_| half);
            label.cloned().unwrap_or_default()
        })
        .x_label_formatter(&|ns| format!("{ns} ns"))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for name in &names {
        let points: Vec<(f64, f64)> = of
            .values()
            .enumerate()
            .flat_map(|(y, cells)| {
                let own = cells.iter().filter(|(a, _)| a == name);
                own.map(move |(_, ns)| (*ns, y as f64 + 0.5))
            })
            .collect();
        let radius = if *name == "unfrag" { 6 } else { 4 };
        let style = color(name).filled();
        chart
            .draw_series(points.iter().map(|p| Circle::new(*p, radius, style)))?
            .label(*name)
            .legend(move |(x, y)| Circle::new((x + 8, y), 4, style));
    }
    legend(&mut chart)
}

fn draw_regain(rows: &Rows, area: &Area) -> Result<(), Box<dyn Error>> {
    let mut of: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for row in &rows.0 {
        if let Row::Regain {
            allocator,
            round,
            blocks,
        } = row
        {
            of.entry(allocator)
                .or_default()
                .push((f64::from(*round), *blocks as f64));
        }
    }
    if of.is_empty() {
        return Ok(());
    }
    let points = || of.values().flatten();
    let rounds = points().map(|p| p.0).fold(1.0, f64::max);
    let most = points().map(|p| p.1).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(
            "Whole free blocks of 2 MiB after so many rounds of churn",
            ("sans-serif", 18),
        )
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(200)
        .build_cartesian_2d(0.0..rounds, 0.0..most * 1.05)?;
    chart
        .configure_mesh()
        .x_label_formatter(&|round| format!("{round}"))
        .y_label_formatter(&|blocks| format!("{blocks}"))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for name in in_order(of.keys().copied()) {
        let points = &of[name];
        let style = color(name).stroke_width(if name == "unfrag" { 3 } else { 2 });
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    legend(&mut chart)
}

fn legend<'a, 'b: 'a, X: Ranged<ValueType = f64>>(
    chart: &mut ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, RangedCoordf64>>,
) -> Result<(), Box<dyn Error>> {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::MiddleRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
