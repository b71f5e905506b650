//! `unfrag exporter`: the doctor's figures for Prometheus.
//!
//! A scrape gets figures read after it came (`server`); page flags, which take long on large hosts, are read by a thread of their
//! own at its own pace, with the lowest priority and a little at a time; a gauge says how old they are.
//!
//! Invariant: nothing but the figures and a page that links to them is served, and only on the address that was asked for; what a host
//! does not show is left out, never exported as 0.

mod metrics;
mod server;

use crate::failure::{Failure, Result};
use crate::output::print;
use crate::quantity::seconds;
use crate::standard::say_line;
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use server::Server;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use unfrag_lab::doctor::{Diagnosis, Evidence, examine};
use unfrag_lab::find::host_files::{FlagsPace, HostFiles};

/// Serve the doctor's figures to Prometheus
///
/// On http://127.0.0.1:9101/metrics unless told otherwise. Root sees what stands in the way of huge pages;
/// any other user gets the rest, and unfrag_source_readable says what is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag exporter --print
  timeout 1 unfrag exporter --listen 127.0.0.1:0 || true")]
pub struct Args {
    /// Address and port to listen on; port 0 takes a free one, and says which
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9101")]
    listen: SocketAddr,
    /// Where procfs is, such as /host/proc in a container
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    proc: PathBuf,
    /// Time between two readings of the page flags, such as 300, 5m or 1h; 0 for none
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = seconds)]
    page_flags_every: u64,
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
    // What cannot be read at all is said now, not at the first scrape.
    let pace = if args.print {
        FlagsPace::AtOnce
    } else {
        FlagsPace::Never
    };
    let first = diagnose(&args.proc, pace)?;
    if args.print {
        return print(metrics::encode(&first, Some((&first, Duration::ZERO))));
    }
    let failed = |error| Failure::Output {
        to: args.listen.to_string(),
        error,
    };
    let server = Server::bind(args.listen).map_err(failed)?;
    let address = server.address().map_err(failed)?;
    let flags = Flags::default();
    if args.page_flags_every > 0 {
        let (flags, proc) = (Arc::clone(&flags), args.proc.clone());
        let pause = Duration::from_secs(args.page_flags_every);
        thread::spawn(move || keep_reading(&flags, &proc, pause));
    }
    say_line(format!("serving http://{address}/metrics"));
    let proc = args.proc.clone();
    let figures = move || {
        let now = diagnose(&proc, FlagsPace::Never).ok()?;
        let kept = flags.lock().unwrap_or_else(PoisonError::into_inner);
        let with_flags = kept.as_ref().map(|(at, d)| (d, at.elapsed()));
        Some(metrics::encode(&now, with_flags))
    };
    server.serve(Arc::new(figures))
}

fn keep_reading(flags: &Flags, proc: &Path, pause: Duration) {
    // The thread's own priority; if it cannot be lowered, the pauses between two reads are left.
    let _ = setpriority_process(Some(gettid()), 19);
    loop {
        if let Ok(d) = diagnose(proc, FlagsPace::Gently)
            && d.obstacles.is_some()
        {
            *flags.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), d));
        }
        thread::sleep(pause);
    }
}

fn diagnose(proc: &Path, flags: FlagsPace) -> Result<Diagnosis> {
    let files = HostFiles {
        proc,
        is_own: proc == Path::new("/proc"),
        flags,
    };
    let evidence = Evidence::read(&proc.display().to_string(), files);
    let evidence = evidence.map_err(|e| e.inside(proc))?;
    Ok(examine(&evidence).map_err(|e| e.inside(proc))?.diagnosis)
}
