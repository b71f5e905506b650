//! `unfrag exporter`: the doctor's figures for Prometheus.
//!
//! A scrape gets figures read after it came (`server`); page flags, which take long on large hosts, are read by a thread of their
//! own at its own pace, with the lowest priority and a little at a time; a gauge says how old they are.
//!
//! Invariant: nothing but the figures and a page that links to them is served, and only on the address that was asked for; what a host
//! does not show is left out, never exported as 0.

mod files;
mod gauges;
mod http;
mod listen;
mod metrics;
mod need;
mod server;

use crate::failure::{Failure, Result};
use crate::output::print;
use crate::quantity::seconds;
use crate::standard::say_line;
use metrics::{PageFlags, Reading};
use need::Need;
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use server::Server;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use unfrag_lab::doctor::{Diagnosis, Evidence, examine};
use unfrag_lab::find::host_files::{FlagsPace, HostFiles};

/// Serve the doctor's figures to Prometheus
///
/// On http://127.0.0.1:19809/metrics unless told otherwise. Root sees what stands in the way of huge pages;
/// any other user gets the rest, and unfrag_source_readable says what is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag exporter --print
  unfrag exporter --print --huge 512 --huge 128@node0
  unfrag exporter --listen localhost:0")]
pub struct Args {
    /// Address or name, and port, to listen on; port 0 takes a free one, and says which
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:19809", value_parser = listen::listen)]
    listen: String,
    /// Where procfs is, such as /host/proc in a container
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    proc: PathBuf,
    /// Time between two readings of the page flags, such as 300, 5m or 1h; 0 for none
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = seconds)]
    page_flags_every: u64,
    /// Huge pages that this host must be able to give, such as 512 or 512@node1; may be given several times. They are
    /// exported for the alerts that compare what can be had with them
    #[arg(long, value_name = "N[@nodeM]")]
    huge: Vec<Need>,
    /// Print the metrics once instead, page flags included
    #[arg(long)]
    print: bool,
}

/// The last diagnosis with page flags, and when it was made.
type Flags = Arc<Mutex<Option<(Instant, Diagnosis)>>>;

/// Carries it out; serves until it is ended.
///
/// # Errors
/// If nothing can be read, or the address cannot be listened on.
pub fn run(args: &Args) -> Result<()> {
    let every = (args.page_flags_every > 0).then(|| Duration::from_secs(args.page_flags_every));
    // What cannot be read at all is said now, not at the first scrape.
    let pace = match every {
        Some(_) if args.print => FlagsPace::AtOnce,
        _ => FlagsPace::Never,
    };
    let first = read(&args.proc, pace)?;
    if args.print {
        let last = Some((&first.diagnosis, Duration::ZERO));
        let flags = PageFlags { every, last };
        return print(metrics::encode(&first, flags, &args.huge));
    }
    let failed = |error| Failure::Output {
        to: args.listen.clone(),
        error,
    };
    let server = bind(&args.listen)?;
    let address = server.address().map_err(failed)?;
    let flags = Flags::default();
    if let Some(pause) = every {
        let (flags, proc) = (Arc::clone(&flags), args.proc.clone());
        thread::spawn(move || keep_reading(&flags, &proc, pause));
    }
    say_line(format!("serving http://{address}/metrics"));
    let (proc, needs) = (args.proc.clone(), args.huge.clone());
    let figures = move || {
        let now = read(&proc, FlagsPace::Never).ok()?;
        let kept = flags.lock().unwrap_or_else(PoisonError::into_inner);
        let last = kept.as_ref().map(|(at, d)| (d, at.elapsed()));
        Some(metrics::encode(&now, PageFlags { every, last }, &needs))
    };
    server.serve(Arc::new(figures))
}

/// Listens on the first of the addresses that can be had.
fn bind(listen: &str) -> Result<Server> {
    let mut first = None;
    for address in listen::addresses(listen)? {
        match Server::bind(address) {
            Ok(server) => return Ok(server),
            Err(error) => first = first.or(Some(error)),
        }
    }
    let error = first.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
    Err(Failure::Output {
        to: listen.to_owned(),
        error,
    })
}

fn keep_reading(flags: &Flags, proc: &Path, pause: Duration) {
    // The thread's own priority; if it cannot be lowered, the pauses between two reads are left.
    let _ = setpriority_process(Some(gettid()), 19);
    loop {
        if let Ok(Reading { diagnosis: d, .. }) = read(proc, FlagsPace::Gently)
            && d.obstacles.is_some()
        {
            *flags.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), d));
        }
        thread::sleep(pause);
    }
}

fn read(proc: &Path, flags: FlagsPace) -> Result<Reading> {
    let files = HostFiles {
        proc,
        is_own: proc == Path::new("/proc"),
        flags,
    };
    let evidence = Evidence::read(&proc.display().to_string(), files);
    let evidence = evidence.map_err(|e| e.inside(proc))?;
    let diagnosis = examine(&evidence).map_err(|e| e.inside(proc))?.diagnosis;
    Ok(Reading {
        evidence,
        diagnosis,
    })
}
