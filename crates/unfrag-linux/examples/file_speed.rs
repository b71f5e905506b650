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
    for _ in 0..3 {
        let start = Instant::now();
        file::write(&recording, &path)?;
        let written = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let back = file::read(&path)?;
        let read = start.elapsed().as_secs_f64();
        assert!(back == recording, "what was read is not what was written");
        let size = std::fs::metadata(&path)?.len();
        println!(
            "{events} events, {} snapshots, {size} bytes ({:.3} an event), \
             written in {:.0} ms ({:.1} M/s), read in {:.1} ms ({:.1} M/s)",
            recording.snapshots.len(),
            size as f64 / events as f64,
            written * 1e3,
            events as f64 / written / 1e6,
            read * 1e3,
            events as f64 / read / 1e6,
        );
    }
    Ok(())
}
