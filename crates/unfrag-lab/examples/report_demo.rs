//! Writes the constructed report of the tests as a page, a still picture and text, to be looked at:
//! `cargo run -p unfrag-lab --example report_demo -- DIRECTORY`.

#[path = "../tests/report_support/mod.rs"]
mod report_support;

use unfrag_lab::report::terminal;

fn main() -> std::io::Result<()> {
    let report = report_support::example_report();
    let width = std::env::args().nth(1).and_then(|w| w.parse().ok());
    for (color, unicode) in [(true, true), (false, true), (false, false)] {
        let options = terminal::Options {
            width: width.unwrap_or(80),
            color,
            unicode,
        };
        println!("{}", terminal::render(&report, &options));
    }
    Ok(())
}
