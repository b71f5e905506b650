//! The answer as a picture: spoilt blocks over time, stacked by holder.
//!
//! Invariant: the same answer gives the same bytes; the picture refers to nothing outside itself.

use super::report::Blame;
use crate::report::number::thousands;
use crate::report::text_chart::nice_ceiling;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width and height in pixels.
const SIZE: (u32, u32) = (960, 460);
/// Height of the title, and of a row of the legend.
const TITLE: i32 = 34;
const LEGEND_ROW: i32 = 24;
const LEFT: u32 = 64;
const FONT: &str = "sans-serif";
/// Holders with a colour of their own; the others are one.
const COLORED: usize = 7;
/// Okabe and Ito's palette, darkened where white ground asks for it; the last is for the others.
const COLORS: [RGBColor; COLORED + 1] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xb3, 0x56, 0x8c),
    RGBColor(0xb0, 0x7d, 0x00),
    RGBColor(0x2f, 0x8f, 0xc4),
    RGBColor(0x6b, 0x4f, 0xa0),
    RGBColor(0xb4, 0xba, 0xc2),
];
const INK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
const MUTED: RGBColor = RGBColor(0x57, 0x60, 0x6a);
const GRID: RGBColor = RGBColor(0xe6, 0xe9, 0xed);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The picture as SVG.
pub fn render(blame: &Blame) -> String {
    let mut out = String::new();
    {
        let root = SVGBackend::with_string(&mut out, SIZE).into_drawing_area();
        // Writing into a string cannot fail, and every range is made to be drawable.
        draw(&root, blame).expect("an SVG in memory can be drawn");
    }
    out
}

/// The name of a colour.
fn label(blame: &Blame, color: usize) -> String {
    match blame.holders.get(color) {
        Some(holder) if color < COLORED => holder.label(),
        _ => format!("{} others", blame.holders.len().saturating_sub(COLORED)),
    }
}

fn draw(root: &Area, blame: &Blame) -> Drawn {
    root.fill(&WHITE)?;
    let (title, rest) = root.split_vertically(TITLE);
    let head = format!(
        "{}: spoilt pageblocks, by who holds their kernel memory",
        blame.source
    );
    title.draw(&Text::new(
        head,
        (14, 10),
        (FONT, 22).into_font().color(&INK),
    ))?;
    let colors = blame.holders.len().min(COLORED + 1);
    let rows = colors.div_ceil(2) as i32;
    let (plot, legend) = rest.split_vertically(SIZE.1 as i32 - TITLE - rows * LEGEND_ROW - 8);
    let most = blame
        .intervals
        .iter()
        .map(|i| i.spoilt_blocks)
        .fold(0.0, f64::max);
    let last = blame.seconds.max(1e-3);
    let (unit, name) = match last {
        s if s >= 3.0 * 3600.0 => (3600.0, "h"),
        s if s >= 600.0 => (60.0, "min"),
        _ => (1.0, "s"),
    };
    let mut chart = ChartBuilder::on(&plot)
        .margin_top(10)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(0.0..last / unit, 0.0..nice_ceiling(most))?;
    let since = match &blame.began {
        Some(date) => format!("{name} since {date} UTC"),
        None => format!("{name} since the first event"),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(MUTED)
        .label_style((FONT, 16).into_font().color(&MUTED))
        .x_desc(since)
        .x_labels(8)
        .y_labels(6)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| {
            if most < 10.0 {
                format!("{y:.1}")
            } else {
                thousands(*y as u64)
            }
        })
        .draw()?;
    let ends = blame.intervals.iter().skip(1).map(|i| i.seconds);
    for (i, end) in blame.intervals.iter().zip(ends.chain([last])) {
        let mut sums = [0.0; COLORED + 1];
        for (&holder, &share) in &i.by_holder {
            sums[holder.min(COLORED)] += share;
        }
        let (from, to) = (i.seconds / unit, end / unit);
        let mut floor = 0.0;
        for (color, share) in sums.into_iter().enumerate().filter(|(_, s)| *s > 0.0) {
            let corners = [(from, floor), (to, floor + share)];
            chart.draw_series([Rectangle::new(corners, COLORS[color].filled())])?;
            floor += share;
        }
    }
    let anchor = Pos::new(HPos::Left, VPos::Center);
    let style = (FONT, 16).into_font().color(&INK).pos(anchor);
    for (color, filled) in COLORS.iter().enumerate().take(colors) {
        let x = LEFT as i32 + (color as i32 % 2) * (SIZE.0 as i32 / 2 - 40);
        let y = color as i32 / 2 * LEGEND_ROW + LEGEND_ROW / 2;
        let corners = [(x, y - 6), (x + 16, y + 6)];
        legend.draw(&Rectangle::new(corners, filled.filled()))?;
        legend.draw(&Text::new(label(blame, color), (x + 24, y), style.clone()))?;
    }
    root.present()?;
    Ok(())
}
