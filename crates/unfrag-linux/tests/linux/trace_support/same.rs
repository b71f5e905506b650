//! Comparison of a recording with another one that was read from text.

use unfrag_linux::recording::{FieldKind, Recording};

/// How many events and fields were compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub events: usize,
    pub fields: usize,
}

/// Events by name, sorted.
pub fn counts(r: &Recording) -> Vec<(String, u64)> {
    let mut counts: Vec<(String, u64)> = r
        .events
        .tables
        .iter()
        .map(|t| (t.name.clone(), 0))
        .collect();
    for &k in &r.events.kind {
        counts[k as usize].1 += 1;
    }
    counts.sort();
    counts
}

/// A column in both recordings, and its name.
type Shared<'a> = (&'a [u64], &'a [u64], &'a str);

/// Compares event by event: time (to the microsecond that text prints), CPU, task, name, and the
/// fields that are numbers in both.
///
/// # Panics
/// On the first difference.
pub fn assert_same(binary: &Recording, text: &Recording) -> Compared {
    assert_eq!(counts(binary), counts(text));
    let (a, b) = (&binary.events, &text.events);
    let mut rows = vec![0usize; a.tables.len()];
    let mut compared = Compared::default();
    let kind_of: Vec<usize> = a
        .tables
        .iter()
        .map(|t| {
            b.tables
                .iter()
                .position(|u| u.name == t.name)
                .expect("counts are equal")
        })
        .collect();
    // Columns of numbers that both have, by kind.
    let shared: Vec<Vec<Shared>> = a
        .tables
        .iter()
        .zip(&kind_of)
        .map(|(t, &k)| {
            let u = &b.tables[k];
            t.fields
                .iter()
                .zip(&t.columns)
                .filter_map(|(f, column)| {
                    let i = u.fields.iter().position(|g| g.name == f.name)?;
                    let numbers = |k| k != FieldKind::String;
                    (numbers(f.kind) && numbers(u.fields[i].kind))
                        .then(|| (&column[..], &u.columns[i][..], f.name.as_str()))
                })
                .collect()
        })
        .collect();
    for i in 0..a.len() {
        let kind = a.kind[i] as usize;
        assert_eq!(kind_of[kind], b.kind[i] as usize, "kind of event {i}");
        assert!(a.time[i].abs_diff(b.time[i]) < 1000, "time of event {i}");
        assert_eq!(a.cpu[i], b.cpu[i], "CPU of event {i}");
        let (s, t) = (
            &binary.tasks[a.task[i] as usize],
            &text.tasks[b.task[i] as usize],
        );
        assert_eq!(s, t, "task of event {i}");
        let row = rows[kind];
        rows[kind] += 1;
        for (x, y, name) in &shared[kind] {
            // Text shows the frame of a failed allocation as 0.
            let failed = *name == "pfn" && x[row] == u64::MAX && y[row] == 0;
            assert!(
                x[row] == y[row] || failed,
                "{name} of event {i}: {} {}",
                x[row],
                y[row]
            );
            compared.fields += 1;
        }
        compared.events += 1;
    }
    compared
}
