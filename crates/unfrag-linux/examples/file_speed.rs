//! How large a recording's file is, and how fast it is written and read:
//! `cargo run --release -p unfrag-linux --example file_speed -- TRACE [SNAPSHOTS...]`.

use std::path::Path;
use std::time::Instant;

use unfrag_linux::{Options, file, open, snapshots};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (trace, archives) = args.split_first().ok_or("which trace?")?;
    let mut recording = open(Path::new(trace), &Options::default())?;
    let archives: Vec<&Path> = archives.iter().map(Path::new).collect();
    recording.snapshots = snapshots::read_all(&archives)?;
    let events = recording.events.len();
    let path = std::env::temp_dir().join("file_speed.unfrag");
    let best = |run: &mut dyn FnMut() -> Result<(), unfrag_linux::Error>| {
        let mut best = f64::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            run()?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok::<f64, unfrag_linux::Error>(best)
    };
    let written = best(&mut || file::write(&recording, &path))?;
    let mut back = None;
    let read = best(&mut || {
        back = None;
        back = Some(file::read(&path)?);
        Ok(())
    })?;
    assert!(
        back == Some(recording),
        "what was read is not what was written"
    );
    let size = std::fs::metadata(&path)?.len();
    println!(
        "{events} events in {size} bytes ({:.3} an event)",
        size as f64 / events as f64
    );
    println!(
        "written in {:.0} ms ({:.1} M/s)",
        written * 1e3,
        events as f64 / written / 1e6
    );
    println!(
        "read in {:.1} ms ({:.1} M/s)",
        read * 1e3,
        events as f64 / read / 1e6
    );
    std::fs::remove_file(&path)?;
    Ok(())
}
