//! What was measured, as a table.

use super::outcome::{Outcome, PERCENTILES, Report};
use crate::report::columns;
use crate::report::screen::Text;

/// The table: a column a ground.
pub fn render(r: &Report) -> Text {
    let mut out = format!(
        "hugepage-latency on real memory: {} MiB, three quarters of each 2 MiB free; times of a zeroed huge page\n\n",
        r.bytes >> 20
    );
    let mut head = vec!["".to_owned()];
    head.extend(r.outcomes.iter().map(|o| o.on.to_owned()));
    let mut rows = vec![head];
    let mut row = |name: &str, cell: &dyn Fn(&Outcome) -> String| {
        let cells = r.outcomes.iter().map(cell);
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    for p in PERCENTILES {
        let name = match p {
            50 => "median, µs".to_owned(),
            100 => "longest, µs".to_owned(),
            p => format!("{p}th percentile, µs"),
        };
        row(&name, &|o| {
            let of = o.percentiles_us.iter().find(|(q, _)| *q == p);
            of.map_or("-".to_owned(), |(_, us)| format!("{us:.0}"))
        });
    }
    row("huge pages", &|o| {
        format!("{} of {}", o.huge_pages, o.wanted)
    });
    row("time of all, s", &|o| format!("{:.2}", o.total_s));
    row("frames copied", &|o| o.frames_copied.to_string());
    row("pages kept", &|o| o.pages_kept.to_string());
    row("pages wrong afterwards", &|o| o.pages_wrong.to_string());
    columns::push(&mut out, "", 1, &rows);
    out.into()
}
