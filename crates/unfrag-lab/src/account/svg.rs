//! An account as a picture: a tile for each use, as large as its share of all frames that exist.
//!
//! Invariant: the same answer gives the same bytes; the picture refers to nothing outside itself.

use super::answer::Account;
use super::uses::Use;
use crate::report::number::{bytes, percent};
use crate::report::screen::printable;
use crate::report::svg::{Area, Drawn, FONT, INK, LEGEND_ROW, TITLE, in_memory};
use crate::report::treemap::{Tile, tiles};
use plotters::prelude::*;

/// Width and height in pixels.
const SIZE: (u32, u32) = (960, 620);
/// Pixels of a tile that has room for its name.
const ROOM: (f64, f64) = (74.0, 34.0);

/// Uses that stand together, with their colour.
const GROUPS: [(&[Use], RGBColor); 5] = [
    (&[Use::Free, Use::PerCpu], RGBColor(0xdf, 0xe7, 0xee)),
    (
        &[Use::CleanCache, Use::DirtyCache, Use::Writeback],
        RGBColor(0x9c, 0xcf, 0x9a),
    ),
    (
        &[
            Use::Shmem,
            Use::Anon,
            Use::AnonLarge,
            Use::AnonHuge,
            Use::Hugetlb,
        ],
        RGBColor(0x8f, 0xbf, 0xe8),
    ),
    (
        &[Use::Slab, Use::PageTables, Use::ZeroPages, Use::Kernel],
        RGBColor(0xf5, 0xb5, 0x6e),
    ),
    (
        &[Use::Offline, Use::Broken, Use::Reserved],
        RGBColor(0xc4, 0xc8, 0xcd),
    ),
];

/// What no counter has stands out.
const NOT_COUNTED: RGBColor = RGBColor(0xd3, 0x32, 0x2c);

/// A named share.
struct Piece {
    name: String,
    frames: u64,
    color: RGBColor,
}

/// The picture as SVG.
pub fn render(account: &Account) -> String {
    in_memory(SIZE, |root| draw(root, account))
}

/// The pieces of a group; the kernel's other memory in its parts.
fn pieces(a: &Account, uses: &[Use], color: RGBColor) -> Vec<Piece> {
    let mut all = vec![];
    let mut push = |name: &str, frames, color| {
        all.push(Piece {
            name: name.to_owned(),
            frames,
            color,
        });
    };
    for &kind in uses {
        if kind != Use::Kernel {
            push(kind.name(), a.frames(kind), color);
            continue;
        }
        // Counters may have more than there is.
        let mut left = a.frames(kind);
        for part in &a.kernel {
            let frames = part.frames.min(left);
            left -= frames;
            push(part.part, frames, color);
        }
        push("in no counter", left, NOT_COUNTED);
    }
    all
}

fn draw(root: &Area, a: &Account) -> Drawn {
    root.fill(&WHITE)?;
    let head = format!(
        "{}: {}, by what it is used for",
        printable(&a.source),
        bytes(a.bytes(a.exist))
    );
    root.draw(&Text::new(
        head,
        (14, 10),
        (FONT, 22).into_font().color(&INK),
    ))?;
    let groups = GROUPS.map(|(uses, color)| pieces(a, uses, color));
    let sums: Vec<u64> = groups
        .iter()
        .map(|g| g.iter().map(|p| p.frames).sum())
        .collect();
    let whole = Tile {
        x: 10.0,
        y: f64::from(TITLE),
        width: f64::from(SIZE.0) - 20.0,
        height: f64::from(SIZE.1) - f64::from(TITLE) - 10.0 - f64::from(2 * LEGEND_ROW),
    };
    let mut small = vec![];
    for (group, area) in groups.iter().zip(tiles(&sums, whole)) {
        let frames: Vec<u64> = group.iter().map(|p| p.frames).collect();
        for (piece, tile) in group.iter().zip(tiles(&frames, area)) {
            if piece.frames == 0 {
                continue;
            }
            let label = [
                piece.name.clone(),
                format!(
                    "{}, {}",
                    bytes(a.bytes(piece.frames)),
                    percent(piece.frames as f64 / a.exist.max(1) as f64)
                ),
            ];
            if !draw_tile(root, tile, piece.color, &label)? {
                small.push(format!("{} {}", label[0], label[1]));
            }
        }
    }
    // What has no room in its tile stands below.
    let style = (FONT, 14).into_font().color(&INK);
    let y = SIZE.1 as i32 - 2 * LEGEND_ROW - 2;
    let lines = small.chunks(4).take(2).enumerate();
    for (i, names) in lines {
        let text = format!(
            "{}{}",
            if i == 0 { "small: " } else { "" },
            names.join("; ")
        );
        root.draw(&Text::new(
            text,
            (14, y + i as i32 * LEGEND_ROW),
            style.clone(),
        ))?;
    }
    root.present()?;
    Ok(())
}

/// Draws a tile; whether it had room for its name.
fn draw_tile(
    root: &Area,
    tile: Tile,
    color: RGBColor,
    label: &[String; 2],
) -> Result<bool, Box<dyn std::error::Error>> {
    let (left, top) = (tile.x.round() as i32, tile.y.round() as i32);
    let right = (tile.x + tile.width).round() as i32;
    let bottom = (tile.y + tile.height).round() as i32;
    let corners = [(left, top), (right, bottom)];
    root.draw(&Rectangle::new(corners, color.filled()))?;
    root.draw(&Rectangle::new(corners, WHITE.stroke_width(1)))?;
    let longest = label.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    // A character is about half as wide as the font is high.
    let has_room = tile.width >= ROOM.0.max(longest as f64 * 6.6) && tile.height >= ROOM.1;
    if has_room {
        let style = (FONT, 14).into_font().color(&INK);
        for (i, line) in label.iter().enumerate() {
            let at = (left + 6, top + 6 + 16 * i as i32);
            root.draw(&Text::new(line.clone(), at, style.clone()))?;
        }
    }
    Ok(has_room)
}
