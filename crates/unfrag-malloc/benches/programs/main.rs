//! Programs under `LD_PRELOAD`: time and resident memory on unfrag's heap, beside glibc, jemalloc and mimalloc, in one run.
//!
//! ```console
//! $ cargo bench -p unfrag-malloc --bench programs -- --json programs.json
//! ```

// The tests use the rest of it.
#[allow(dead_code)]
mod loads;

use clap::Parser;
use loads::{Amount, EmptyDir, Outcome, Result, Work};
use serde_json::json;
use std::path::PathBuf;

#[derive(Parser)]
struct Args {
    /// Write the rows to a file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// One work only: gcc, redis, python or sqlite.
    #[arg(long)]
    only: Option<String>,
    /// Runs of each; the median counts.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The shared objects of Debian's packages.
const PEERS: [(&str, &[&str]); 2] = [
    ("jemalloc", &["libjemalloc.so.2"]),
    ("mimalloc", &["libmimalloc.so.2", "libmimalloc.so.3"]),
];

/// The allocators that are there: a name, and what is loaded.
fn allocators() -> Result<Vec<(&'static str, Option<PathBuf>)>> {
    let libc = find(&["libc.so.6"]).ok_or("libc.so.6 is not in a directory of libraries")?;
    // Before what a program was linked with, as the others are.
    let mut all = vec![("glibc", Some(libc))];
    for (name, files) in PEERS {
        match find(files) {
            Some(path) => all.push((name, Some(path))),
            None => eprintln!("{name} is not installed: its column is left out"),
        }
    }
    // The bench lies beside the library, or in `deps` there.
    let exe = std::env::current_exe()?;
    let ours = exe
        .ancestors()
        .map(|d| d.join("libunfrag_malloc.so"))
        .find(|p| p.exists());
    all.push((
        "unfrag",
        Some(ours.ok_or("libunfrag_malloc.so is not beside the bench")?),
    ));
    Ok(all)
}

fn find(files: &[&str]) -> Option<PathBuf> {
    let arch = std::env::consts::ARCH;
    let dirs = [
        format!("/usr/lib/{arch}-linux-gnu"),
        "/usr/lib64".into(),
        "/usr/lib".into(),
    ];
    let all = dirs
        .iter()
        .flat_map(|d| files.iter().map(move |f| PathBuf::from(d).join(f)));
    all.into_iter().find(|p| p.exists())
}

fn median<T: Ord + Copy>(mut of: Vec<T>) -> Option<T> {
    of.sort_unstable();
    of.get(of.len() / 2).copied()
}

fn main() -> Result<()> {
    let args = Args::parse();
    let allocators = allocators()?;
    let mut rows = Vec::new();
    let heads: String = allocators.iter().map(|(n, _)| format!("{n:>20}")).collect();
    println!(
        "{:8}{heads}   (s, MiB resident; median of {})",
        "work", args.repeat
    );
    for work in Work::ALL {
        if args.only.as_ref().is_some_and(|only| only != work.name()) {
            continue;
        }
        if let Some(why) = work.missing() {
            println!("{:8} left out: {why}", work.name());
            continue;
        }
        let mut outcomes: Vec<Vec<Outcome>> = allocators.iter().map(|_| Vec::new()).collect();
        // In turns, so that a slow minute of the machine is everybody's.
        for _ in 0..args.repeat {
            for ((_, library), outcomes) in allocators.iter().zip(&mut outcomes) {
                let dir = EmptyDir::new()?;
                outcomes.push(work.run(library.as_deref(), &dir.0, Amount::Much)?);
            }
        }
        let first = outcomes[0][0].answer.clone();
        let mut line = format!("{:8}", work.name());
        for ((name, _), outcomes) in allocators.iter().zip(outcomes) {
            if let Some(other) = outcomes.iter().find(|o| o.answer != first) {
                let said = String::from_utf8_lossy(&other.answer).into_owned();
                return Err(format!("{} answers otherwise on {name}: {said}", work.name()).into());
            }
            let time = median(outcomes.iter().map(|o| o.time).collect()).ok_or("no run")?;
            let resident = median(outcomes.iter().map(|o| o.resident).collect()).ok_or("no run")?;
            let (s, mib) = (time.as_secs_f64(), resident as f64 / f64::from(1 << 20));
            line += &format!("{s:>11.2}{mib:>9.1}");
            rows.push(json!({
                "work": work.name(), "allocator": name, "seconds": s, "resident_bytes": resident,
            }));
        }
        println!("{line}");
    }
    if let Some(file) = args.json {
        std::fs::write(
            file,
            serde_json::to_string_pretty(&json!({ "rows": rows }))? + "\n",
        )?;
    }
    Ok(())
}
