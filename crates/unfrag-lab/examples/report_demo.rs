//! The constructed report of the tests, to be looked at:
//! `cargo run -p unfrag-lab --example report_demo -- html` (or `svg`, or `text COLUMNS`).

#[path = "../tests/lab/report_support/mod.rs"]
mod report_support;

use unfrag_lab::replay::view::detail::Detail;
use unfrag_lab::replay::view::{html, svg, terminal};
use unfrag_lab::report::screen::Screen;

fn main() {
    let report = report_support::example_report();
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("html") => print!("{}", html::render(&report, Detail::All)),
        Some("svg") => print!("{}", svg::render(&report)),
        _ => {
            let width = words.next().and_then(|w| w.parse().ok()).unwrap_or(80);
            let screen = Screen {
                width,
                color: true,
                unicode: true,
            };
            print!("{}", &*terminal::render(&report, &screen, Detail::All));
        }
    }
}
