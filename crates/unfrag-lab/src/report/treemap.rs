//! Rectangles whose areas are shares of a whole, as near to squares as they can be.
//!
//! Invariant: the tiles cover the area, and no two overlap. Values of 0 have no tile.

/// A rectangle: left, top, width, height.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tile {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// The tiles of these values, in their order; an empty one for a value of 0.
///
/// Rows are filled along the shorter side of what is left, the largest value first, as long as the worst of a row's tiles gets
/// no narrower.
pub(crate) fn tiles(values: &[u64], area: Tile) -> Vec<Tile> {
    let mut order: Vec<usize> = (0..values.len()).filter(|&i| values[i] > 0).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(values[i]), i));
    let total: f64 = order.iter().map(|&i| values[i] as f64).sum();
    let mut out = vec![Tile::default(); values.len()];
    let scale = area.width * area.height / total.max(1.0);
    let size = |i: usize| values[i] as f64 * scale;
    let mut left = area;
    let mut rest = &order[..];
    while !rest.is_empty() {
        let side = left.width.min(left.height);
        let mut taken = 1;
        let worst = |n: usize| {
            let sum: f64 = rest[..n].iter().map(|&i| size(i)).sum();
            let thick = sum / side;
            let ratio = |i: &usize| {
                let long = size(*i) / thick;
                (long / thick).max(thick / long)
            };
            rest[..n].iter().map(ratio).fold(0.0, f64::max)
        };
        while taken < rest.len() && worst(taken + 1) <= worst(taken) {
            taken += 1;
        }
        let sum: f64 = rest[..taken].iter().map(|&i| size(i)).sum();
        let thick = sum / side;
        let mut at = 0.0;
        let is_wide = left.width >= left.height;
        for &i in &rest[..taken] {
            let long = size(i) / thick;
            out[i] = match is_wide {
                true => Tile {
                    x: left.x,
                    y: left.y + at,
                    width: thick,
                    height: long,
                },
                false => Tile {
                    x: left.x + at,
                    y: left.y,
                    width: long,
                    height: thick,
                },
            };
            at += long;
        }
        match is_wide {
            true => {
                left.x += thick;
                left.width -= thick;
            }
            false => {
                left.y += thick;
                left.height -= thick;
            }
        }
        rest = &rest[taken..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_the_area_by_their_values() {
        let area = Tile {
            x: 10.0,
            y: 20.0,
            width: 600.0,
            height: 400.0,
        };
        let values = [6, 0, 6, 4, 3, 2, 2, 1];
        let all = tiles(&values, area);
        for (value, tile) in values.iter().zip(&all) {
            let size = tile.width * tile.height;
            assert!((size - *value as f64 * 10_000.0).abs() < 1e-6, "{tile:?}");
        }
        let apart = |a: &Tile, b: &Tile| {
            let near = 1e-9;
            a.x + a.width <= b.x + near
                || b.x + b.width <= a.x + near
                || a.y + a.height <= b.y + near
                || b.y + b.height <= a.y + near
        };
        for (i, a) in all.iter().enumerate() {
            assert!(a.x >= 10.0 - 1e-9 && a.x + a.width <= 610.0 + 1e-9 || values[i] == 0);
            assert!(all[..i].iter().all(|b| apart(a, b)), "{i}");
        }
        assert!(tiles(&[], area).is_empty());
        assert_eq!(tiles(&[0], area), [Tile::default()]);
    }
}
