//! Reads a trace and says what is in it: `cargo run --release --example import -- FILE [RELEASE]`.
//! With `--dump` after the file, prints every event instead, with its raw fields.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use unfrag_linux::recording::{FieldKind, Recording};
use unfrag_linux::{Options, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("which file?")?;
    let mut release = args.next();
    let dump = release.as_deref() == Some("--dump");
    if dump {
        release = args.next();
    }
    let options = Options {
        kernel_release: release.as_deref(),
    };
    let start = Instant::now();
    let recording = open(Path::new(&file), &options)?;
    let seconds = start.elapsed().as_secs_f64();
    if dump {
        return print_events(&recording);
    }
    let n = recording.events.len();
    let mut counts: Vec<_> = recording
        .events
        .tables
        .iter()
        .map(|t| (&t.system, &t.name, 0))
        .collect();
    for &k in &recording.events.kind {
        counts[k as usize].2 += 1;
    }
    counts.sort();
    for (system, name, count) in counts {
        println!("{count:>9} {system}:{name}");
    }
    println!("{:?}", recording.meta);
    println!(
        "{n} events, {} tasks, {} strings in {seconds:.3} s: {:.2} million events a second",
        recording.tasks.len(),
        recording.strings.len(),
        n as f64 / seconds / 1e6
    );
    Ok(())
}

fn print_events(recording: &Recording) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let e = &recording.events;
    let mut rows = vec![0; e.tables.len()];
    let mut lost = recording.meta.lost.iter().peekable();
    for i in 0..e.len() {
        while let Some(l) = lost.next_if(|l| l.before_event == i as u64) {
            writeln!(out, "CPU:{} lost {:?}", l.cpu, l.count)?;
        }
        let table = &e.tables[e.kind[i] as usize];
        let row = rows[e.kind[i] as usize];
        rows[e.kind[i] as usize] += 1;
        let task = &recording.tasks[e.task[i] as usize];
        write!(
            out,
            "{}-{} [{:03}] {}.{:09} {:x} {:x}: {}:",
            task.comm,
            task.pid,
            e.cpu[i],
            e.time[i] / 1_000_000_000,
            e.time[i] % 1_000_000_000,
            e.flags[i],
            e.preempt[i],
            table.name
        )?;
        for (field, column) in table.fields.iter().zip(&table.columns) {
            match field.kind {
                FieldKind::Unsigned => write!(out, " {}={}", field.name, column[row])?,
                FieldKind::Signed => write!(out, " {}={}", field.name, column[row] as i64)?,
                FieldKind::String => {
                    write!(
                        out,
                        " {}={}",
                        field.name, recording.strings[column[row] as usize]
                    )?;
                }
            }
        }
        writeln!(out)?;
    }
    Ok(())
}
