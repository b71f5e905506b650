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

    /// Allocators of some rows, as they were measured.
    fn allocators(&self, of: impl Fn(&Row) -> Option<&String>) -> Vec<&String> {
        let mut seen = BTreeSet::new();
        let all = self.0.iter().filter_map(of);
        all.filter(|&a| seen.insert(a)).collect()
    }

    fn print_times(&self) {
        for wanted in [0, 9] {
            let of = |r: &Row| match r {
                Row::Time {
                    work,
                    order,
                    threads,
                    ..
                } if *order == wanted => Some((*work, *threads)),
                _ => None,
            };
            let mut seen = BTreeSet::new();
            let columns: Vec<_> = self
                .0
                .iter()
                .filter_map(of)
                .filter(|&c| seen.insert(c))
                .collect();
            if columns.is_empty() {
                continue;
            }
            println!("\nNanoseconds an operation, order {wanted}; threads in brackets");
            let heads = columns
                .iter()
                .map(|(work, threads)| format!("{work} ({threads})"));
            line("allocator", heads);
            let allocators = self.allocators(|r| match r {
                Row::Time { allocator, .. } => Some(allocator),
                _ => None,
            });
            for a in allocators {
                let cell = |column: &(&str, usize)| {
                    let cell = self.0.iter().find_map(|r| match r {
                        Row::Time { allocator, ns, .. }
                            if allocator == a && of(r) == Some(*column) =>
                        {
                            Some(*ns)
                        }
                        _ => None,
                    });
                    cell.map_or("-".to_owned(), |ns| format!("{ns:.1}"))
                };
                line(a, columns.iter().map(cell));
            }
        }
    }

    fn print_regain(&self) {
        let allocators = self.allocators(|r| match r {
            Row::Regain { allocator, .. } => Some(allocator),
            _ => None,
        });
        if allocators.is_empty() {
            return;
        }
        println!("\nWhole free blocks of 2 MiB, by churn alone, after so many rounds");
        line("allocator", ROUNDS.iter().map(|r| format!("round {r}")));
        for a in allocators {
            let cell = |wanted: &u32| {
                let cell = self.0.iter().find_map(|r| match r {
                    Row::Regain {
                        allocator,
                        round,
                        blocks,
                    } if allocator == a && round == wanted => Some(blocks),
                    _ => None,
                });
                cell.map_or("-".to_owned(), ToString::to_string)
            };
            line(a, ROUNDS.iter().map(cell));
        }
    }

    fn print_pollution(&self) {
        let of = |r: &Row| match r {
            Row::Pollution {
                gib, tainted: t, ..
            } => Some((t.unit, *gib, t.fill, t.in_phases)),
            _ => None,
        };
        let mut seen = BTreeSet::new();
        let columns: Vec<_> = self
            .0
            .iter()
            .filter_map(of)
            .filter(|&c| seen.insert(c))
            .collect();
        if columns.is_empty() {
            return;
        }
        println!(
            "\nBlocks that hold an unmovable frame, over the fewest that could; by fill, steady or in phases"
        );
        let head = |&(unit, _, fill, in_phases): &(&str, u32, u32, bool)| {
            format!("{unit} {fill}%{}", if in_phases { " ph" } else { "" })
        };
        line("allocator", columns.iter().map(head));
        let allocators = self.allocators(|r| match r {
            Row::Pollution { allocator, .. } => Some(allocator),
            _ => None,
        });
        for a in allocators {
            let cell = |column: &(&str, u32, u32, bool)| {
                let cell = self.0.iter().find_map(|r| match r {
                    Row::Pollution {
                        allocator, tainted, ..
                    } if allocator == a && of(r) == Some(*column) => Some(tainted),
                    _ => None,
                });
                cell.map_or("-".to_owned(), |t| {
                    if t.unit == "1 GiB" {
                        format!("{} / {}", t.blocks, t.fewest)
                    } else {
                        format!("{:.3}", t.blocks as f64 / t.fewest.max(1) as f64)
                    }
                })
            };
            line(a, columns.iter().map(cell));
        }
    }
}

fn line(name: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(|c| format!("{c:>16}")).collect();
    println!("{name:<24}{}", cells.concat());
}
