//! The answer as a picture: spoilt blocks over time, stacked by holder.
//!
//! Invariant: the same answer gives the same bytes; the picture refers to nothing outside itself.

use super::report::Blame;
use crate::report::number::thousands;
use crate::report::screen::printable;
use crate::report::svg::{
    Area, COLORS, Drawn, FONT, INK, LEGEND_ROW, TITLE, in_memory, plain_axes,
};
use crate::report::text_chart::nice_ceiling;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width and height in pixels.
const SIZE: (u32, u32) = (960, 460);
const LEFT: u32 = 64;
/// Holders with a colour of their own; the others are one.
const COLORED: usize = COLORS.len();
const OTHERS: RGBColor = RGBColor(0xb4, 0xba, 0xc2);

/// The picture as SVG.
pub fn render(blame: &Blame) -> String {
    in_memory(SIZE, |root| draw(root, blame))
}

/// The colour with a number; the last is for the others.
fn color(number: usize) -> RGBColor {
    COLORS.get(number).copied().unwrap_or(OTHERS)
}

/// The name of a colour.
fn label(blame: &Blame, number: usize) -> String {
    match blame.holders.get(number) {
        Some(holder) if number < COLORED => printable(&holder.label()),
        _ => format!("{} others", blame.holders.len().saturating_sub(COLORED)),
    }
}

fn draw(root: &Area, blame: &Blame) -> Drawn {
    root.fill(&WHITE)?;
    let (title, rest) = root.split_vertically(TITLE);
    let head = format!(
        "{}: blocks that kernel memory breaks up, by who holds it",
        printable(&blame.source)
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
    let mut mesh = chart.configure_mesh();
    plain_axes(&mut mesh);
    mesh.x_desc(since)
        .x_labels(8)
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
        for (number, share) in sums.into_iter().enumerate().filter(|(_, s)| *s > 0.0) {
            let corners = [(from, floor), (to, floor + share)];
            chart.draw_series([Rectangle::new(corners, color(number).filled())])?;
            floor += share;
        }
    }
    let anchor = Pos::new(HPos::Left, VPos::Center);
    let style = (FONT, 16).into_font().color(&INK).pos(anchor);
    for number in 0..colors {
        let x = LEFT as i32 + (number as i32 % 2) * (SIZE.0 as i32 / 2 - 40);
        let y = number as i32 / 2 * LEGEND_ROW + LEGEND_ROW / 2;
        let corners = [(x, y - 6), (x + 16, y + 6)];
        legend.draw(&Rectangle::new(corners, color(number).filled()))?;
        legend.draw(&Text::new(label(blame, number), (x + 24, y), style.clone()))?;
    }
    root.present()?;
    Ok(())
}
