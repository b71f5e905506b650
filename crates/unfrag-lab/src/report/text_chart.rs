//! Line charts made of characters: braille dots where the terminal has them, plain ASCII elsewhere.
//!
//! Invariant: no line is wider than asked for, and the same series give the same text.

use super::screen::{Style, Text};
use std::fmt::Write as _;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line of braille dots.
    Line,
    /// This character at every point and on the way between points.
    Glyph(char),
    /// This character at every point, nothing between, over everything else.
    Point(char),
}

/// One curve of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points in ascending order of x.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub mark: Mark,
    /// Its colour.
    pub color: Style,
}

/// A chart to be drawn.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// Heading, with the unit of y.
    pub title: &'a str,
    /// Columns of the whole chart, labels included.
    pub width: usize,
    /// Rows of the plot, axis and headings not counted.
    pub height: usize,
    /// Highest value of the y axis; the lowest is 0.
    pub y_max: f64,
    /// Decimals of the y labels.
    pub y_decimals: usize,
    /// Last second of the x axis; the first is 0.
    pub x_max: f64,
    /// Whether box-drawing and braille characters may be used.
    pub unicode: bool,
}

/// One character of the plot.
#[derive(Clone, Copy, Default)]
struct Cell {
    /// Braille dots set so far.
    dots: u8,
    /// A character that replaces the dots.
    glyph: Option<char>,
    /// Colour of what was drawn last.
    color: Style,
}

/// Braille dots of a cell by column (2) and row (4).
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// The smallest of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10 times a power of ten that is not below `value`.
pub fn nice_ceiling(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let found = steps.into_iter().find(|s| s * power >= value * 0.999_999);
    found.unwrap_or(10.0) * power
}

impl Chart<'_> {
    /// The chart as lines of text, each ended by a newline.
    pub fn draw(&self, series: &[Series]) -> Text {
        let labels = self.y_labels();
        let label_width = labels.iter().map(String::len).max().unwrap_or(0);
        let columns = self.width.saturating_sub(label_width + 2).max(8);
        let mut cells = vec![Cell::default(); columns * self.height];
        // Points lie over lines, whatever the order of the series.
        for s in series.iter().filter(|s| !matches!(s.mark, Mark::Point(_))) {
            self.draw_line(&mut cells, columns, s);
        }
        for s in series {
            if let Mark::Point(glyph) = s.mark {
                for &(x, y) in &s.points {
                    let (col, row) = self.cell_of(columns, x, y);
                    cells[row * columns + col] = Cell {
                        dots: 0,
                        glyph: Some(glyph),
                        color: s.color,
                    };
                }
            }
        }

        let mut out = Text::new();
        out.push_str(&clip(self.title, self.width));
        out.push('\n');
        let (wall, corner, floor) = if self.unicode {
            ('┤', '└', '─')
        } else {
            ('|', '+', '-')
        };
        for row in 0..self.height {
            let label = if row == 0 {
                &labels[0]
            } else if row == self.height / 2 {
                &labels[1]
            } else {
                ""
            };
            let _ = write!(out, "{label:>label_width$} {wall}");
            push_row(&mut out, &cells[row * columns..(row + 1) * columns]);
            out.push('\n');
        }
        let _ = write!(out, "{:>label_width$} {corner}", labels[2]);
        out.extend(std::iter::repeat_n(floor, columns));
        out.push('\n');
        let end = if self.x_max < 600.0 {
            format!("{:.0} s", self.x_max)
        } else {
            format!("{:.0} min", self.x_max / 60.0)
        };
        let gap = columns.saturating_sub(end.len() + 3);
        let pad = label_width + 2;
        let _ = writeln!(out, "{:pad$}0 s{:gap$}{end}", "", "");
        self.push_legend(&mut out, series);
        out
    }

    /// Labels at the top, in the middle and at the bottom.
    fn y_labels(&self) -> [String; 3] {
        let middle_row = self.height / 2;
        let middle = self.y_max * (1.0 - middle_row as f64 / self.height as f64);
        [self.y_max, middle, 0.0].map(|v| format!("{v:.*}", self.y_decimals))
    }

    /// Position of a point in dots: 2 a column, 4 a row.
    fn dot_of(&self, columns: usize, x: f64, y: f64) -> (i64, i64) {
        let last_x = (columns * 2 - 1) as f64;
        let last_y = (self.height * 4 - 1) as f64;
        let fx = if self.x_max > 0.0 {
            x / self.x_max
        } else {
            0.0
        };
        let fy = y / self.y_max;
        (
            (fx.clamp(0.0, 1.0) * last_x).round() as i64,
            ((1.0 - fy.clamp(0.0, 1.0)) * last_y).round() as i64,
        )
    }

    fn cell_of(&self, columns: usize, x: f64, y: f64) -> (usize, usize) {
        let (dx, dy) = self.dot_of(columns, x, y);
        (dx as usize / 2, dy as usize / 4)
    }

    fn draw_line(&self, cells: &mut [Cell], columns: usize, series: &Series) {
        let mut before = None;
        for &(x, y) in &series.points {
            let to = self.dot_of(columns, x, y);
            let from = before.unwrap_or(to);
            let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).max(1);
            for step in 0..=steps {
                let dx = (from.0 + (to.0 - from.0) * step / steps) as usize;
                let dy = (from.1 + (to.1 - from.1) * step / steps) as usize;
                let cell = &mut cells[dy / 4 * columns + dx / 2];
                match series.mark {
                    Mark::Line => cell.dots |= DOTS[dx % 2][dy % 4],
                    Mark::Glyph(c) | Mark::Point(c) => cell.glyph = Some(c),
                }
                cell.color = series.color;
            }
            before = Some(to);
        }
    }

    /// The legend, on as many lines as it takes.
    fn push_legend(&self, out: &mut Text, series: &[Series]) {
        let mut used = 0;
        for s in series {
            let sign = match s.mark {
                Mark::Line => "⠒⠒".into(),
                Mark::Glyph(c) | Mark::Point(c) => c.to_string(),
            };
            let length = 2 + sign.chars().count() + 1 + s.name.chars().count();
            if used > 0 && used + length > self.width {
                out.push('\n');
                used = 0;
            }
            out.push_str("  ");
            out.push_styled(s.color, &sign);
            let _ = write!(out, " {}", s.name);
            used += length;
        }
        out.push('\n');
    }
}

/// A row of cells, trailing blanks left out, a colour sequence only where the colour changes.
fn push_row(out: &mut Text, cells: &[Cell]) {
    let shown = |c: &Cell| c.glyph.is_some() || c.dots != 0;
    let length = cells.iter().rposition(shown).map_or(0, |i| i + 1);
    let mut color = Style::Plain;
    for cell in &cells[..length] {
        let wanted = if shown(cell) {
            cell.color
        } else {
            Style::Plain
        };
        if wanted != color {
            out.end(color);
            out.begin(wanted);
            color = wanted;
        }
        out.push(match (cell.glyph, cell.dots) {
            (Some(c), _) => c,
            (None, 0) => ' ',
            (None, dots) => char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' '),
        });
    }
    out.end(color);
}

/// At most `width` characters of `text`.
fn clip(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(unicode: bool) -> Chart<'static> {
        Chart {
            title: "A slope",
            width: 24,
            height: 4,
            y_max: 1.0,
            y_decimals: 1,
            x_max: 10.0,
            unicode,
        }
    }

    fn slope(mark: Mark) -> Series {
        Series {
            name: "6.1".into(),
            points: vec![(0.0, 0.0), (10.0, 1.0)],
            mark,
            color: Style::Plain,
        }
    }

    #[test]
    fn an_ascii_slope_climbs_from_corner_to_corner() {
        let text = chart(false).draw(&[slope(Mark::Glyph('*'))]).into_string();
        let rows: Vec<&str> = text.lines().collect();
        assert!(text.is_ascii());
        assert!(rows[1].ends_with('*') && rows[1].len() == 24, "{text}");
        assert_eq!(rows[4].find('*'), Some(5), "{text}");
    }

    #[test]
    fn points_lie_over_braille_lines() {
        let mut dots = slope(Mark::Point('o'));
        dots.points.truncate(1);
        let text = chart(true).draw(&[dots, slope(Mark::Line)]).into_string();
        assert!(
            text.lines().nth(4).is_some_and(|l| l.contains("┤o⣀")
                || l.contains("┤o⡠")
                || l.contains("┤o⠤")
                || l.contains("┤o⠔")),
            "{text}"
        );
    }

    #[test]
    fn values_outside_the_axes_stay_inside_the_plot() {
        let mut s = slope(Mark::Line);
        s.points = vec![(-5.0, -3.0), (50.0, 7.0)];
        let text = chart(true).draw(&[s]).into_string();
        assert!(text.lines().all(|l| l.chars().count() <= 24), "{text}");
    }

    #[test]
    fn ceilings_are_round() {
        assert_eq!(nice_ceiling(0.0), 1.0);
        assert_eq!(nice_ceiling(433.0), 500.0);
        assert_eq!(nice_ceiling(100.0), 100.0);
        assert_eq!(nice_ceiling(0.017), 0.02);
    }
}
