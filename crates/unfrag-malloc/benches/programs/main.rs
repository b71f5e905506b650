//! Programs, and loads of allocation calls, under `LD_PRELOAD`: time and resident memory on unfrag's heap, beside glibc, jemalloc,
//! mimalloc and tcmalloc, in one run.
//!
//! ```console
//! $ cargo bench -p unfrag-malloc --bench programs -- --json programs.json
//! ```

mod calls;
// The tests use the rest of it.
#[allow(dead_code)]
mod loads;

use calls::{LOADS, Numbers};
use clap::Parser;
use loads::{Amount, EmptyDir, Outcome, Result, Work, command};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Parser)]
struct Args {
    /// Write the rows to a file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// One row only, by its name; several with commas. `calls`: all loads of calls; `programs`: all programs.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Runs of each; the median counts.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// The shared object to measure, if not the one beside the bench.
    #[arg(long)]
    library: Option<PathBuf>,
    /// Run a load here.
    #[arg(long, hide = true)]
    load: Option<String>,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Args {
    fn wants(&self, half: &str, row: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == half || o == row)
    }
}

/// The shared objects of Debian's packages.
const PEERS: [(&str, &[&str]); 3] = [
    ("jemalloc", &["libjemalloc.so.2"]),
    ("mimalloc", &["libmimalloc.so.2", "libmimalloc.so.3"]),
    ("tcmalloc", &["libtcmalloc_minimal.so.4"]),
];

/// An allocator: its name, and what is loaded.
type Allocator = (&'static str, PathBuf);

/// The allocators that are there.
fn allocators(ours: Option<PathBuf>) -> Result<Vec<Allocator>> {
    let libc = find(&["libc.so.6"]).ok_or("libc.so.6 is not in a directory of libraries")?;
    // Before what a program was linked with, as the others are.
    let mut all = vec![("glibc", libc)];
    for (name, files) in PEERS {
        match find(files) {
            Some(path) => all.push((name, path)),
            None => eprintln!("{name} is not installed: its column is left out"),
        }
    }
    // The bench lies beside the library, or in `deps` there.
    let exe = std::env::current_exe()?;
    let beside = || {
        let mut dirs = exe.ancestors().map(|d| d.join("libunfrag_malloc.so"));
        dirs.find(|p| p.exists())
    };
    let ours = ours.or_else(beside);
    let ours = ours.ok_or("libunfrag_malloc.so is not beside the bench")?;
    // By a name without its whole path the loader looks elsewhere, and goes on without it where it finds none.
    let ours = ours
        .canonicalize()
        .map_err(|e| format!("{}: {e}", ours.display()))?;
    all.push(("unfrag", ours));
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

/// The median, and the least and the most.
fn spread(of: impl Iterator<Item = f64>) -> Result<[f64; 3]> {
    let mut all: Vec<f64> = of.collect();
    all.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return Err("no run".into());
    };
    Ok([all[all.len() / 2], *first, *last])
}

const MIB: f64 = (1 << 20) as f64;

/// One row of the programs.
fn program(work: Work, allocators: &[Allocator], repeat: usize) -> Result<Vec<Value>> {
    let mut outcomes: Vec<Vec<Outcome>> = allocators.iter().map(|_| Vec::new()).collect();
    // In turns, so that a slow minute of the machine is everybody's.
    for _ in 0..repeat {
        for ((_, library), outcomes) in allocators.iter().zip(&mut outcomes) {
            let dir = EmptyDir::new()?;
            outcomes.push(work.run(Some(library), &dir.0, Amount::Much)?);
        }
    }
    let first = outcomes[0][0].answer.clone();
    let mut rows = Vec::new();
    for ((name, _), outcomes) in allocators.iter().zip(outcomes) {
        if let Some(other) = outcomes.iter().find(|o| o.answer != first) {
            let said = String::from_utf8_lossy(&other.answer).into_owned();
            return Err(format!("{} answers otherwise on {name}: {said}", work.name()).into());
        }
        let [s, least, most] = spread(outcomes.iter().map(|o| o.time.as_secs_f64()))?;
        let [resident, ..] = spread(outcomes.iter().map(|o| o.resident as f64))?;
        println!(
            "{:14}{name:10}{s:>9.2} s  ({least:.2} to {most:.2}){:>9.1} MiB",
            work.name(),
            resident / MIB
        );
        rows.push(json!({
            "work": work.name(), "allocator": name, "seconds": s, "least": least, "most": most, "resident_bytes": resident,
        }));
    }
    Ok(rows)
}

/// Runs a load of calls in a process of its own.
fn load(name: &str, library: &Path) -> Result<Numbers> {
    let exe = std::env::current_exe()?;
    let exe = exe.to_str().ok_or("the bench's path is no text")?;
    let dir = EmptyDir::new()?;
    let out = command(exe, Some(library), &dir.0)
        .args(["--load", name])
        .output()?;
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let numbers = calls::read(&said).filter(|_| out.status.success());
    numbers.ok_or_else(|| {
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        format!(
            "{name} on {} ends with {}: {why}",
            library.display(),
            out.status
        )
        .into()
    })
}

/// One row of the loads of calls.
fn calls_of(of: &calls::Load, allocators: &[Allocator], repeat: usize) -> Result<Vec<Value>> {
    let mut runs: Vec<Vec<Numbers>> = allocators.iter().map(|_| Vec::new()).collect();
    for _ in 0..repeat {
        for ((_, library), runs) in allocators.iter().zip(&mut runs) {
            runs.push(load(of.name, library)?);
        }
    }
    let mut rows = Vec::new();
    println!("{}: {}", of.name, of.what);
    for ((name, _), runs) in allocators.iter().zip(runs) {
        let [ns, least, most] = spread(runs.iter().map(|r| r.ns))?;
        let [resident, ..] = spread(runs.iter().map(|r| r.most as f64))?;
        let [left, ..] = spread(runs.iter().map(|r| r.left as f64))?;
        let [huge, ..] = spread(runs.iter().map(|r| r.huge))?;
        println!(
            "{:14}{name:10}{ns:>9.1} ns ({least:.1} to {most:.1}){:>9.1} MiB, at the end {:.1}; huge pages {huge:.0} %",
            of.name,
            resident / MIB,
            left / MIB
        );
        rows.push(json!({
            "load": of.name, "allocator": name, "ns": ns, "least": least, "most": most,
            "resident_bytes": resident, "left_bytes": left, "huge_percent": huge,
        }));
    }
    Ok(rows)
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(name) = &args.load {
        return Ok(calls::run(name)?);
    }
    let allocators = allocators(args.library.clone())?;
    let mut rows = Vec::new();
    println!(
        "median of {} (least to most); most resident memory",
        args.repeat
    );
    for work in Work::ALL {
        if !args.wants("programs", work.name()) {
            continue;
        }
        match work.missing() {
            Some(why) => println!("{:14}left out: {why}", work.name()),
            None => rows.extend(program(work, &allocators, args.repeat)?),
        }
    }
    for of in &LOADS {
        if args.wants("calls", of.name) {
            rows.extend(calls_of(of, &allocators, args.repeat)?);
        }
    }
    if let Some(file) = args.json {
        let text = serde_json::to_string_pretty(&json!({ "rows": rows }))?;
        std::fs::write(file, text + "\n")?;
    }
    Ok(())
}
