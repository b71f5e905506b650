//! The answer as a flame graph: time by kernel stack.
//!
//! Invariant: the same answer gives the same bytes; the picture refers to nothing outside itself.

use super::report::Wakes;
use crate::report::flame::{Flame, render as drawn};
use crate::report::number::duration;
use crate::report::screen::printable;

/// The picture as SVG.
pub fn render(w: &Wakes) -> String {
    let mut flame = Flame::default();
    for branch in &w.branches {
        let path = branch.path.iter().map(String::as_str);
        flame.add(path, branch.nanoseconds);
    }
    let title = format!(
        "{}: what kswapd, kcompactd and compaction took in {}, by who asked",
        printable(&w.source),
        duration(w.seconds)
    );
    drawn(&flame, &title, &|nanoseconds| {
        let seconds = nanoseconds as f64 / 1e9;
        match seconds {
            s if s < 1.0 => format!("{:.2} ms", s * 1e3),
            s => format!("{s:.2} s"),
        }
    })
}
