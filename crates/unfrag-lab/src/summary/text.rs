//! A [`Summary`] as text for a terminal.
//!
//! Invariant: every number has its unit; what is cut off is counted; text of the trace cannot control the
//! terminal.

use super::answer;
use super::phrases::{counted, who};
use super::report::{
    Answer, Asked, Compaction, DirectReclaim, Fallbacks, Kswapd, Lost, Requests, Summary, Times,
};
use crate::report::columns;
use crate::report::number::{duration, percent, thousands};
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What stands for a field that an event lacks.
const UNKNOWN: &str = "-";

/// Text being written.
struct Page<'a> {
    out: Text,
    top: usize,
    screen: &'a Screen,
}

/// The whole summary, with at most `top` rows of each list.
pub fn render(s: &Summary, top: usize, screen: &Screen) -> Text {
    let mut page = Page {
        out: Text::new(),
        top,
        screen,
    };
    page.beginning(s);
    page.kinds(s);
    if let Some(r) = &s.requests {
        page.requests(r);
    }
    if let Some(f) = &s.fallbacks {
        page.fallbacks(f);
    }
    if let Some(c) = &s.compaction {
        page.compaction(c);
    }
    if let Some(k) = &s.kswapd {
        page.kswapd(k);
    }
    if let Some(d) = &s.direct_reclaim {
        page.direct_reclaim(d);
    }
    page.end(s);
    page.out
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
    }

    fn head(&mut self, text: &str) {
        self.out.push('\n');
        self.out.push_head(self.screen, text);
    }

    /// A table; the first `left` columns hold text. Rows beyond the first `top` are counted.
    fn table(&mut self, left: usize, head: &[&str], rows: Vec<Vec<String>>) {
        let more = rows.len().saturating_sub(self.top);
        let mut all = vec![head.iter().map(|h| (*h).to_owned()).collect()];
        all.extend(rows.into_iter().take(self.top));
        columns::push(&mut self.out, "  ", left, &all);
        if more > 0 {
            let _ = writeln!(
                self.out,
                "  and {} more; --top {} shows them",
                thousands(more as u64),
                self.top.saturating_add(more)
            );
        }
    }

    fn beginning(&mut self, s: &Summary) {
        let kernel = s.kernel.as_deref().map_or_else(
            || "kernel not known".to_owned(),
            |k| format!("Linux {}", printable(k)),
        );
        self.line(&format!("{}, {kernel}", printable(&s.source)));
        if let Some(sentence) = answer::sentences(s) {
            wrapped(
                &mut self.out,
                Place::Hanging("  "),
                self.screen.width,
                &sentence,
            );
        }
        let cpus = match s.cpus {
            0 => String::new(),
            n => format!(", {}", counted(n.into(), "CPU")),
        };
        self.line(&format!(
            "{}{cpus}: {} in {}, from {:.6} s of the trace's clock",
            printable(&s.format),
            counted(s.events, "event"),
            match s.seconds {
                short if short < 1.0 => format!("{} ms", millis(short)),
                long => duration(long),
            },
            s.first_seconds
        ));
        let share = s.share_of_allocations.map(|share| {
            format!(
                "{} of the pages that the host allocated meanwhile; ",
                percent(share)
            )
        });
        let mut share = share.unwrap_or_default();
        for line in lost(&s.lost) {
            let share = std::mem::take(&mut share);
            self.line(&format!("{share}{line}"));
        }
    }

    fn kinds(&mut self, s: &Summary) {
        self.head("Events");
        let row = |k: &super::report::KindCount| vec![printable(&k.event), thousands(k.count)];
        self.table(1, &["event", "count"], s.kinds.iter().map(row).collect());
    }

    fn requests(&mut self, r: &Requests) {
        self.head("Who asks for which orders");
        let orders: Vec<u64> = r.orders.keys().copied().collect();
        let names: Vec<String> = orders.iter().map(|o| format!("order {o}")).collect();
        let mut head = vec!["process", "pages", "failed", "requests"];
        head.extend(names.iter().map(String::as_str));
        let rows = r.processes.iter().map(|p| {
            let mut row = vec![
                who(&p.who),
                thousands(p.pages),
                thousands(p.failed),
                thousands(p.count),
            ];
            let of = |o: &u64| p.orders.get(o).map_or(String::new(), |n| thousands(*n));
            row.extend(orders.iter().map(of));
            row
        });
        self.table(1, &head, rows.collect());
        self.head("What is asked for");
        let rows = r.kinds.iter().map(|k| {
            vec![
                or_unknown(k.flags.as_deref()),
                or_unknown(k.migratetype.as_deref()),
                k.order.to_string(),
                thousands(k.count),
                thousands(k.failed),
                thousands(k.pages),
            ]
        });
        let head = ["flags", "type", "order", "requests", "failed", "pages"];
        self.table(2, &head, rows.collect());
        self.head("Failed requests");
        if r.failures.is_empty() {
            self.line(&format!("  none of {}", counted(r.count, "request")));
            return;
        }
        let rows = r.failures.iter().map(|f| {
            vec![
                who(&f.who),
                or_unknown(f.flags.as_deref()),
                or_unknown(f.migratetype.as_deref()),
                f.order.to_string(),
                thousands(f.count),
            ]
        });
        self.table(
            3,
            &["process", "flags", "type", "order", "failed"],
            rows.collect(),
        );
    }

    fn fallbacks(&mut self, f: &Fallbacks) {
        self.head("Requests served from blocks of another type (extfrag)");
        let fragmenting = f.fragmenting.map_or(String::new(), |n| {
            format!(", {} of them from less than a pageblock", thousands(n))
        });
        self.line(&format!("  {}{fragmenting}", counted(f.count, "event")));
        let rows = f.kinds.iter().map(|k| {
            let ownership = k
                .change_ownership
                .map(|o| if o { "taken over" } else { "lent" });
            vec![
                who(&k.who),
                or_unknown(k.wanted.as_deref()),
                or_unknown(k.taken_from.as_deref()),
                or_unknown(ownership),
                number(k.order),
                number(k.fallback_order),
                thousands(k.count),
            ]
        });
        let head = [
            "process",
            "wanted",
            "taken from",
            "block",
            "order",
            "block's order",
            "count",
        ];
        self.table(4, &head, rows.collect());
    }

    fn compaction(&mut self, c: &Compaction) {
        self.head("Compaction");
        if let Some(direct) = &c.direct {
            self.line("  Requests that compacted for themselves");
            self.asked(direct);
        }
        if let Some(runs) = &c.runs {
            let open = match runs.open {
                0 => String::new(),
                n => format!(", {} not ended in the trace", thousands(n)),
            };
            self.line(&format!(
                "  {} over a zone{open}",
                counted(runs.begun, "run")
            ));
            let rows = runs.results.iter().map(|r| {
                let mut row = vec![ended_as(r.result.as_deref()), thousands(r.count)];
                row.extend(times(&r.time));
                row
            });
            let rows: Vec<_> = rows.collect();
            if !rows.is_empty() {
                self.table(1, &["ended as", "runs", "ms in all", "longest, ms"], rows);
            }
        }
        for (title, list) in [
            ("is the zone worth it?", &c.suitable),
            ("is the run done?", &c.finished),
        ] {
            if let Some(list) = list {
                let row = |a: &Answer| {
                    let order = match a.order {
                        Some(..0) => "none".to_owned(),
                        order => number(order),
                    };
                    vec![or_unknown(a.result.as_deref()), order, thousands(a.count)]
                };
                self.table(
                    1,
                    &[title, "order", "times"],
                    list.iter().map(row).collect(),
                );
            }
        }
        for (name, scanner) in [
            ("pages to move", &c.migrate_scanner),
            ("free pages", &c.free_scanner),
        ] {
            if let Some(s) = scanner {
                self.line(&format!(
                    "  looking for {name}: {} scanned, {} taken, in {}",
                    counted(s.scanned, "page"),
                    thousands(s.taken),
                    counted(s.ranges, "range")
                ));
            }
        }
        if let Some(m) = &c.moved {
            self.line(&format!(
                "  {} moved, {} could not be, in {}",
                counted(m.migrated, "page"),
                thousands(m.failed),
                match m.batches {
                    1 => "1 batch".to_owned(),
                    n => format!("{} batches", thousands(n)),
                }
            ));
        }
        if let Some(orders) = &c.deferred {
            self.line(&format!(
                "  put off, as earlier runs were in vain (deferred): {}",
                by_order(orders)
            ));
        }
        if let Some(orders) = &c.kcompactd {
            self.line(&format!("  kcompactd woken: {}", by_order(orders)));
        }
    }

    fn kswapd(&mut self, k: &Kswapd) {
        self.head("kswapd");
        if let Some(asked) = &k.asked {
            self.line("  Who wakes it");
            self.asked(asked);
        }
        if let Some(wakes) = &k.wakes {
            let rows = wakes
                .iter()
                .map(|w| vec![number(w.node), number(w.order), thousands(w.count)]);
            self.table(0, &["node", "order", "woke up"], rows.collect());
        }
        if let Some(sleeps) = k.sleeps {
            let slept = match sleeps {
                1 => "went to sleep once".to_owned(),
                n => format!("went to sleep {} times", thousands(n)),
            };
            self.line(&format!("  {slept}"));
        }
        if k.awake.timed > 0 {
            self.line(&format!(
                "  awake for {} ms in {}, {} ms at most",
                millis(k.awake.seconds),
                counted(k.awake.timed, "spell"),
                millis(k.awake.longest_seconds)
            ));
        }
    }

    fn direct_reclaim(&mut self, d: &DirectReclaim) {
        self.head("Direct reclaim");
        let mut said = format!("  {}", counted(d.stalls, "stall"));
        if let Some(pages) = d.reclaimed {
            let _ = write!(said, ", {} reclaimed", counted(pages, "page"));
        }
        for (n, what) in [
            (d.open, "not ended in the trace"),
            (d.begun_before, "more begun before it"),
        ] {
            if n > 0 {
                let _ = write!(said, ", {} {what}", thousands(n));
            }
        }
        self.line(&said);
        if d.kinds.is_empty() {
            return;
        }
        let rows = d.kinds.iter().map(|k| {
            let mut row = vec![who(&k.who), number(k.order), thousands(k.count)];
            row.extend(times(&k.time));
            row.push(k.reclaimed.map_or(UNKNOWN.to_owned(), thousands));
            row
        });
        let head = [
            "process",
            "order",
            "stalls",
            "ms in all",
            "longest, ms",
            "pages reclaimed",
        ];
        self.table(1, &head, rows.collect());
    }

    fn asked(&mut self, list: &[Asked]) {
        let row = |a: &Asked| vec![who(&a.who), number(a.order), thousands(a.count)];
        self.table(
            1,
            &["process", "order", "times"],
            list.iter().map(row).collect(),
        );
    }

    fn end(&mut self, s: &Summary) {
        let missing = match s.says_what_was_recorded {
            true => "Not recorded",
            false => "Not in this trace: not recorded, or it did not happen",
        };
        for (head, list) in [
            ("Recorded, and did not happen", &s.did_not_happen),
            (missing, &s.not_recorded),
        ] {
            if !list.is_empty() {
                self.head(head);
                let rows: Vec<_> = list.iter().map(|n| vec![n.question, &n.events]).collect();
                columns::push(&mut self.out, "  ", 2, &rows);
            }
        }
        if !s.assumed.is_empty() {
            self.head("Assumed");
            for sentence in &s.assumed {
                self.line(&format!("  {}", printable(sentence)));
            }
        }
    }
}

/// How a run of compaction ended, in words, with the kernel's own behind them.
fn ended_as(result: Option<&str>) -> String {
    let Some(result) = result else {
        return UNKNOWN.to_owned();
    };
    let words = match result {
        "complete" => "all of the zone looked at, no block made",
        "partial_skipped" => "part of the zone looked at, no block made",
        "success" | "partial" => "a block was made",
        "contended" => "given up, as others waited",
        "skipped" | "not_suitable_zone" => "not begun: too little free, or a block is there",
        "deferred" => "put off, as earlier runs were in vain",
        _ => return printable(result),
    };
    format!("{words} ({result})")
}

/// What is missing from the trace, a sentence each.
fn lost(l: &Lost) -> Vec<String> {
    if l.nothing() {
        return vec!["lost no event that the tracer knows of".to_owned()];
    }
    let mut out = vec![];
    if l.gaps > 0 {
        let mut said = format!(
            "lost {} in {}",
            counted(l.events, "event"),
            counted(l.gaps, "gap")
        );
        if l.gaps_of_unknown_size > 0 {
            let n = thousands(l.gaps_of_unknown_size);
            let _ = write!(said, ", and an unknown number in {n} of them");
        }
        out.push(said);
    }
    if let Some(n) = l.overwritten {
        out.push(format!(
            "lost {} before the first, overwritten",
            counted(n, "event")
        ));
    }
    if let Some(sentence) = &l.lines_not_understood {
        out.push(printable(&format!("{sentence}: the counts are too low")));
        out.extend(
            l.first_lines
                .iter()
                .map(|line| format!("  {}", printable(line))),
        );
    }
    out
}

fn times(t: &Times) -> [String; 2] {
    match t.timed {
        0 => [UNKNOWN.to_owned(), UNKNOWN.to_owned()],
        _ => [t.seconds, t.longest_seconds].map(millis),
    }
}

/// Seconds as milliseconds, without the unit: `1,704.026`.
fn millis(seconds: f64) -> String {
    let micros = (seconds * 1e6).round() as u64;
    format!("{}.{:03}", thousands(micros / 1000), micros % 1000)
}

fn by_order(orders: &BTreeMap<i64, u64>) -> String {
    let each = orders
        .iter()
        .map(|(order, n)| format!("{} of order {order}", thousands(*n)));
    each.collect::<Vec<_>>().join(", ")
}

fn number<N: ToString>(n: Option<N>) -> String {
    n.map_or(UNKNOWN.to_owned(), |n| n.to_string())
}

fn or_unknown(text: Option<&str>) -> String {
    text.map_or(UNKNOWN.to_owned(), printable)
}
