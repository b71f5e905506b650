//! What all still pictures share: ground, ink, palette, and how one is drawn into memory.

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64 as Span;
use plotters::prelude::*;
use unfrag_linux::input_text::escaped_lines;

/// Height of the title and of a row of the legend, in pixels.
pub(crate) const TITLE: i32 = 34;
pub(crate) const LEGEND_ROW: i32 = 24;
/// The library writes 100 pixels for every 124 asked for.
pub(crate) const FONT: &str = "sans-serif";
/// Okabe and Ito's palette, darkened where white ground asks for it; as in the page.
pub(crate) const COLORS: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xb3, 0x56, 0x8c),
    RGBColor(0xb0, 0x7d, 0x00),
    RGBColor(0x2f, 0x8f, 0xc4),
];
pub(crate) const INK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
const MUTED: RGBColor = RGBColor(0x57, 0x60, 0x6a);
const GRID: RGBColor = RGBColor(0xe6, 0xe9, 0xed);

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A picture of so many pixels as SVG, in which XML has no place for what controls a screen. Every range that `draw` gives to the library has to be drawable.
pub(crate) fn in_memory(size: (u32, u32), draw: impl FnOnce(&Area) -> Drawn) -> String {
    let mut out = String::new();
    {
        let root = SVGBackend::with_string(&mut out, size).into_drawing_area();
        // Writing into a string cannot fail.
        draw(&root).expect("an SVG in memory can be drawn");
    }
    escaped_lines(&out).into_owned()
}

/// The lines and labels of a plot: horizontal lines alone.
pub(crate) fn plain_axes(mesh: &mut MeshStyle<'_, '_, Span, Span, SVGBackend<'_>>) {
    mesh.disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(MUTED)
        .label_style((FONT, 16).into_font().color(&MUTED))
        .y_labels(6);
}
