//! A trace that is read in batches holds the same events as one that is read at once, whatever its format.

use crate::trace_support::fixture;
use std::fs;
use std::path::Path;
use unfrag_linux::error::Cause;
use unfrag_linux::file::{self, Writer};
use unfrag_linux::recording::Recording;
use unfrag_linux::{Meter, Options, Result, stream};

/// What comes of a trace that goes into a file in batches of so many events.
fn through_batches(path: &Path, batch: usize) -> Result<Recording> {
    let options = Options {
        kernel_release: Some("6.18.44"),
        batch,
    };
    let mut writer = Writer::new(std::io::Cursor::new(vec![]));
    let meter = Meter::default();
    let rest = stream(path, &options, &meter, &mut |events| writer.events(&events))?;
    assert!(meter.bytes() > 0, "progress is counted");
    file::from_bytes(&writer.finish(&rest)?.into_inner())
}

fn at_once(path: &Path) -> Recording {
    let options = Options {
        kernel_release: Some("6.18.44"),
        ..Options::default()
    };
    let mut recording = unfrag_linux::open(path, &options).unwrap();
    // A file has columns for each kind of event, though no event may have come.
    for table in &mut recording.events.tables {
        table.columns.resize(table.fields.len(), vec![]);
    }
    recording
}

/// Whether both are the same; else what differs first.
fn same(a: &Recording, b: &Recording, what: &str) {
    assert_eq!(a.meta, b.meta, "{what}");
    assert_eq!(a.tasks, b.tasks, "{what}");
    assert_eq!(a.strings, b.strings, "{what}");
    let (x, y) = (&a.events, &b.events);
    assert_eq!(x.len(), y.len(), "{what}");
    let first = (0..x.len()).find(|&i| {
        let of = |e: &unfrag_linux::recording::Events| {
            (
                e.time[i],
                e.cpu[i],
                e.task[i],
                e.flags[i],
                e.preempt[i],
                e.kind[i],
            )
        };
        of(x) != of(y)
    });
    assert_eq!(first, None, "{what}");
    assert!(x == y, "{what}: fields differ");
}

#[test]
fn batches_hold_what_is_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let fixtures = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trace_fixtures"));
    let mut compared = 0;
    for item in fixtures.unwrap() {
        let name = item.unwrap().file_name().into_string().unwrap();
        let content = fixture(&name);
        let plain = dir.path().join(&name);
        fs::write(&plain, &content).unwrap();
        let packed = dir.path().join(format!("{name}.zst"));
        fs::write(&packed, zstd::encode_all(&content[..], 3).unwrap()).unwrap();
        if unfrag_linux::open(&plain, &Options::default()).is_err() {
            continue;
        }
        let whole = at_once(&plain);
        for (path, batch) in [(&plain, 0), (&plain, 100), (&plain, 1000), (&packed, 300)] {
            match through_batches(path, batch) {
                Ok(read) => same(&read, &whole, &format!("{name} in batches of {batch}")),
                // A batch holds back an eighth of its events for those that come late.
                Err(e) => assert!(
                    matches!(e.cause, Cause::NotInBatches(_)) && batch > 0,
                    "{name} in batches of {batch}: {e}"
                ),
            }
            compared += 1;
        }
    }
    assert!(compared >= 20, "{compared}");
}

/// Lines of a trace file, at these microseconds.
fn lines(times: impl Iterator<Item = u64>) -> String {
    let line = |t: u64| {
        format!(
            "  sh-{} [000] ....  {}.{:06}: mm_page_free: page=0xff pfn={t} order=0\n",
            1 + t % 3,
            t / 1_000_000,
            t % 1_000_000
        )
    };
    times.map(line).collect()
}

#[test]
fn an_event_that_comes_late_finds_its_place_or_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.txt");
    // Each tenth comes three lines late.
    let late = (0..5000u64).map(|i| if i % 10 == 9 { 100 * (i - 3) } else { 100 * i });
    fs::write(&path, lines(late)).unwrap();
    same(
        &through_batches(&path, 100).unwrap(),
        &at_once(&path),
        "late",
    );
    let reverse = (0..5000u64).map(|i| 100 * (5000 - i));
    fs::write(&path, lines(reverse)).unwrap();
    let e = through_batches(&path, 100).unwrap_err();
    assert!(matches!(e.cause, Cause::NotInBatches(_)), "{e}");
    assert!(at_once(&path).events.time.is_sorted());
}

#[test]
fn a_long_text_is_read_in_pieces_without_losing_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.txt");
    // More than two pieces of 4 MiB; some lines are wrapped as a mailer does it.
    let mut text = lines((0..150_000).map(|i| 7 * i));
    let mut wrapped = String::new();
    for (i, line) in text.lines().enumerate() {
        match i % 1000 {
            999 => wrapped += &line.replace(": page=", ":\npage="),
            _ => wrapped += line,
        }
        wrapped.push('\n');
    }
    std::mem::swap(&mut text, &mut wrapped);
    assert!(text.len() > 9 << 20);
    fs::write(&path, &text).unwrap();
    let whole = at_once(&path);
    assert_eq!(whole.events.len(), 150_000);
    assert!(through_batches(&path, 0).unwrap() == whole);
}
