//! What was measured, as tables and as JSON.

use crate::quality::Tainted;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A number that was measured.
pub enum Row {
    Time {
        work: &'static str,
        allocator: String,
        order: u8,
        threads: usize,
        ns: f64,
    },
    Regain {
        allocator: String,
        round: u32,
        blocks: usize,
    },
    Pollution {
        allocator: String,
        gib: u32,
        tainted: Tainted,
    },
}

#[derive(Default)]
pub struct Rows(pub Vec<Row>);

/// Rounds of `regain` that the table shows.
const ROUNDS: [u32; 5] = [0, 10, 20, 50, 100];

impl Rows {
    pub fn json(&self) -> String {
        let row = |r: &Row| match r {
            Row::Time {
                work,
                allocator,
                order,
                threads,
                ns,
            } => json!({"work": work, "allocator": allocator, "order": order, "threads": threads,
                "ns": (ns * 100.0).round() / 100.0}),
            Row::Regain {
                allocator,
                round,
                blocks,
            } => {
                json!({"work": "regain", "allocator": allocator, "order": 0, "threads": 1, "round": round,
                "blocks": blocks})
            }
            Row::Pollution {
                allocator,
                gib,
                tainted: t,
            } => {
                json!({"work": "pollution", "allocator": allocator, "order": 0, "threads": 1, "gib": gib,
                "fill": t.fill, "mix": if t.in_phases { "phases" } else { "steady" }, "unit": t.unit,
                "blocks": t.blocks, "fewest": t.fewest})
            }
        };
        let rows: Vec<Value> = self.0.iter().map(row).collect();
        format!("{:#}\n", json!({ "rows": rows }))
    }

    pub fn print(&self) {
        self.print_times();
        self.print_regain();
        self.print_pollution();
    }

    fn print_times(&self) {
        for wanted in [0, 9] {
            self.table(
                &format!("Nanoseconds an operation, order {wanted}; threads in brackets"),
                |r| match r {
                    Row::Time {
                        work,
                        allocator,
                        order,
                        threads,
                        ns,
                    } if *order == wanted => {
                        Some((allocator, format!("{work} ({threads})"), format!("{ns:.1}")))
                    }
                    _ => None,
                },
            );
        }
    }

    fn print_regain(&self) {
        self.table(
            "Whole free blocks of 2 MiB, by churn alone, after so many rounds",
            |r| match r {
                Row::Regain {
                    allocator,
                    round,
                    blocks,
                } if ROUNDS.contains(round) => {
                    Some((allocator, format!("round {round}"), blocks.to_string()))
                }
                _ => None,
            },
        );
    }

    fn print_pollution(&self) {
        self.table(
            "Blocks that hold an unmovable frame, over the fewest that could; by fill, steady or in phases",
            |r| match r {
                Row::Pollution {
                    allocator,
                    tainted: t,
                    ..
                } => {
                    let phases = if t.in_phases { " ph" } else { "" };
                    let ratio = t.blocks as f64 / t.fewest.max(1) as f64;
                    let cell = match t.unit {
                        "1 GiB" => format!("{} / {}", t.blocks, t.fewest),
                        _ => format!("{ratio:.3}"),
                    };
                    Some((allocator, format!("{} {}%{phases}", t.unit, t.fill), cell))
                }
                _ => None,
            },
        );
    }

    /// A table of the rows for which `of` has an allocator, a column and a cell; in the order in which they come.
    fn table<'a>(
        &'a self,
        title: &str,
        of: impl Fn(&'a Row) -> Option<(&'a String, String, String)>,
    ) {
        let cells: Vec<_> = self.0.iter().filter_map(of).collect();
        if cells.is_empty() {
            return;
        }
        println!("\n{title}");
        let columns = in_order(cells.iter().map(|(_, column, _)| column));
        line("allocator", columns.iter().map(|c| c.as_str()));
        for a in in_order(cells.iter().map(|(allocator, _, _)| *allocator)) {
            let cell = |column: &&String| {
                let mut of = cells.iter().filter(|(b, c, _)| *b == a && c == *column);
                of.next().map_or("-", |(_, _, cell)| cell.as_str())
            };
            line(a, columns.iter().map(cell));
        }
    }
}

/// Each of some names once, as they come.
fn in_order<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut seen = BTreeSet::new();
    names.filter(|&name| seen.insert(name)).collect()
}

fn line<'a>(name: &str, cells: impl Iterator<Item = &'a str>) {
    let cells: Vec<String> = cells.map(|c| format!("{c:>16}")).collect();
    println!("{name:<24}{}", cells.concat());
}
