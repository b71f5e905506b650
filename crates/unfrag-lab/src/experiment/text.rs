//! The result of an experiment as text: the source's numbers beside ours.

use super::name::Name;
use super::report::{Compared, Outcome, Report, Unfinished};
use crate::report::columns;
use crate::report::screen::Text;
use std::fmt::Write as _;

fn number(x: f64) -> String {
    if x == 0.0 || x.abs() >= 100.0 {
        format!("{x:.0}")
    } else if x.abs() >= 10.0 {
        format!("{x:.1}")
    } else {
        format!("{x:.2}")
    }
}

fn or_dash(x: Option<f64>, shown: impl Fn(f64) -> String) -> String {
    x.map_or_else(|| "-".into(), shown)
}

/// The metric of which this is one iteration or tenth, and its number.
fn part_of(metric: &str) -> Option<(&str, usize)> {
    let (of, n) = metric.rsplit_once('_')?;
    let n = n.parse().ok().filter(|n| (1..=PARTS).contains(n))?;
    Some((of, n))
}

/// Parts that a metric has at most.
const PARTS: usize = 10;

/// The tables.
pub fn render(name: Name, r: &Report) -> Text {
    let mut out = format!(
        "{}: {} {} a kernel, seeds from {}. source: what its authors measured; ours: the median of the runs here,\n\
         from the least to the largest; times in virtual seconds\n\n",
        r.experiment,
        r.runs,
        if r.runs == 1 { "run" } else { "runs" },
        r.seed
    );
    metrics(&mut out, r);
    parts(&mut out, name, r);
    against(&mut out, &r.comparisons);
    unfinished(&mut out, r);
    let _ = writeln!(
        out,
        "\nCosts of the kernel's work: those of the calibration with the hash {}",
        r.calibration
    );
    out.into()
}

fn metrics(out: &mut String, r: &Report) {
    let head = [
        "kernel", "machine", "metric", "source", "ours", "from", "to",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for o in &r.results {
        for (name, s) in &o.metrics {
            if part_of(name).is_some() {
                continue;
            }
            rows.push(vec![
                o.label(),
                o.machine.clone(),
                name.clone(),
                or_dash(o.quoted(name), number),
                number(s.median),
                number(s.min),
                number(s.max),
            ]);
        }
    }
    columns::push(out, "", 3, &rows);
}

/// Metrics that have parts: one row each, and one of the source.
fn parts(out: &mut String, name: Name, r: &Report) {
    let mut rows = vec![];
    for o in &r.results {
        let mut of: Vec<_> = o.metrics.keys().filter_map(|m| part_of(m)).collect();
        of.sort_unstable();
        of.dedup_by_key(|p| p.0);
        for (metric, _) in of {
            let row = |whose: &str, value: &dyn Fn(&str) -> Option<f64>| {
                let named = [&o.label(), &o.machine, metric, whose].map(str::to_owned);
                let one = |n| or_dash(value(&format!("{metric}_{n}")), number);
                named.into_iter().chain((1..=PARTS).map(one)).collect()
            };
            rows.push(row("ours", &|m| Some(o.metric(m)?.median)));
            if o.quoted(&format!("{metric}_1")).is_some() {
                rows.push(row("source", &|m| o.quoted(m)));
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    let what = match name {
        Name::SlabOrder => "By iteration",
        _ => "By tenths of the time until the end of the awaited program",
    };
    let _ = writeln!(out, "\n{what} (medians):\n");
    let head = ["kernel", "machine", "metric", "whose"].map(str::to_owned);
    let head = head.into_iter().chain((1..=PARTS).map(|n| n.to_string()));
    rows.insert(0, head.collect());
    columns::push(out, "", 4, &rows);
}

/// One kernel against another, in the manner of diff-aim9.
fn against(out: &mut String, all: &[Compared]) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nOne kernel (A) against another (B); +- is a standard error:\n"
    );
    let head = [
        "A", "B", "machine", "metric", "A", "B", "B - A", "%", "+-", "source %",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for c in all {
        let two = |x: f64| format!("{x:.2}");
        let percent = |x: Option<f64>| or_dash(x, |x| format!("{x:+.2}"));
        let error = or_dash(c.stderr_percent, two);
        rows.push(vec![
            c.a.clone(),
            c.b.clone(),
            c.machine.clone(),
            c.metric.clone(),
            two(c.a_median),
            two(c.b_median),
            two(c.b_median - c.a_median),
            percent(c.percent),
            error,
            percent(c.source_percent),
        ]);
    }
    columns::push(out, "", 4, &rows);
}

fn unfinished(out: &mut String, r: &Report) {
    if r.unfinished() == 0 {
        return;
    }
    out.push_str("\nNot in these numbers, because it did not come to its end:\n\n");
    let head = ["kernel", "machine", "seed", "ended", "after s"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let of = |o: &Outcome| {
        let row = |u: &Unfinished| {
            vec![
                o.label(),
                o.machine.clone(),
                u.seed.to_string(),
                u.ended.to_owned(),
                number(u.after_s),
            ]
        };
        o.unfinished.iter().map(row).collect::<Vec<_>>()
    };
    rows.extend(r.results.iter().flat_map(of));
    columns::push(out, "", 2, &rows);
}

#[cfg(test)]
mod tests {
    use super::super::compare::comparisons;
    use super::super::metric::PARALLEL_BUILD1;
    use super::super::source;
    use super::super::stats::Statistics;
    use super::*;

    fn outcome(kernel: &str, variant: &str, metrics: &[(&str, &[f64])]) -> Outcome {
        let of =
            |(name, values): &(&str, &[f64])| ((*name).to_owned(), Statistics::of(values).unwrap());
        Outcome {
            kernel: kernel.into(),
            machine: "m".into(),
            variant: variant.into(),
            settings: Default::default(),
            metrics: metrics.iter().map(of).collect(),
            unfinished: vec![],
            quoted: vec![],
        }
    }

    fn report(name: Name, results: Vec<Outcome>) -> String {
        let r = Report {
            experiment: name.as_str().into(),
            seed: 1,
            runs: 2,
            calibration: "c".into(),
            comparisons: comparisons(name, &results),
            results,
        };
        render(name, &r).to_string()
    }

    /// The row with these words, as words.
    fn row<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
        let of = |l: &&str| words.iter().all(|w| l.split_whitespace().any(|x| x == *w));
        let found = text.lines().find(of);
        found
            .unwrap_or_else(|| panic!("no {words:?}: {text}"))
            .split_whitespace()
            .collect()
    }

    /// `spec: 8.1`
    #[test]
    fn aim9_rows_look_like_diff_aim9() {
        let mut clean = outcome("2.6.14", "", &[("signal_test", &[100.0, 110.0])]);
        let mut v19 = outcome("v19", "", &[("signal_test", &[110.0, 121.0])]);
        (clean.quoted, v19.quoted) = (source::aim9("2.6.14"), source::aim9("v19"));
        let text = report(Name::Aim9, vec![clean, v19]);
        let row = row(&text, &["signal_test,"]);
        assert_eq!(row[..3], ["2.6.14", "v19", "m"]);
        assert_eq!(
            row[row.len() - 6..],
            ["105.00", "115.50", "10.50", "+10.00", "7.41", "+5.61"]
        );
        assert!(text.contains("signal_test, Signal Traps/second"));
    }

    #[test]
    fn iterations_are_in_order_with_the_source_below() {
        let metrics: Vec<_> = (1..=10).map(|n| format!("marginal_seconds_{n}")).collect();
        let values: Vec<_> = (1..=10).map(|n| [f64::from(n)]).collect();
        let metrics: Vec<_> = metrics
            .iter()
            .map(String::as_str)
            .zip(values.iter().map(|v| &v[..]))
            .collect();
        let mut o = outcome("2.6.28", "slub", &metrics);
        o.quoted = source::slab_order("slub");
        let text = report(Name::SlabOrder, vec![o]);
        let ours = row(&text, &["marginal_seconds", "ours"]);
        assert_eq!(ours[5..7], ["1.00", "2.00"]);
        assert_eq!(ours.last(), Some(&"10.0"));
        let source = row(&text, &["marginal_seconds", "source"]);
        assert_eq!(
            source[5..],
            ["173", "327", "428", "521", "-", "-", "-", "-", "-", "-"]
        );
    }

    /// `spec: 8.5`
    #[test]
    fn parallel_builds_are_compared_with_slqb() {
        let of =
            |variant, seconds: f64| outcome("2.6.28", variant, &[(PARALLEL_BUILD1, &[seconds])]);
        let text = report(Name::SlabOrder, vec![of("slqb", 50.0), of("slub", 60.0)]);
        let row = row(&text, &["slub", PARALLEL_BUILD1, "-"]);
        assert!(row.len() == 8, "{text}");
        let against = text.split_once("One kernel").unwrap().1;
        let row = self::row(against, &["slub", PARALLEL_BUILD1]);
        assert_eq!(row[row.len() - 3..], ["+20.00", "-", "+17.00"]);
    }

    #[test]
    fn an_unfinished_run_is_listed_with_its_seed() {
        let mut o = outcome("2.6.31", "x", &[("elapsed_s", &[5.0])]);
        o.unfinished.push(Unfinished {
            seed: 7,
            ended: "time-limit",
            after_s: 3600.0,
        });
        let text = report(Name::Atomic, vec![o]);
        assert_eq!(
            row(&text, &["time-limit"]),
            ["2.6.31", "x", "m", "7", "time-limit", "3600"]
        );
        assert!(!text.contains("One kernel"), "nothing to compare: {text}");
    }
}
