//! Reads a trace and says what is in it: `cargo run --release --example import -- FILE [RELEASE]`.

use std::path::Path;
use std::time::Instant;

use unfrag_linux::{Options, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("which file?")?;
    let release = args.next();
    let options = Options {
        kernel_release: release.as_deref(),
    };
    let start = Instant::now();
    let recording = open(Path::new(&file), &options)?;
    let seconds = start.elapsed().as_secs_f64();
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
