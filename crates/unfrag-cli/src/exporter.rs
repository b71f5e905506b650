//! `unfrag exporter`: the doctor's figures for Prometheus.
//!
//! A scrape reads procfs afresh; page flags, which take long on large hosts, are read by a thread of their
//! own at its own pace, and a gauge says how old they are.
//!
//! Invariant: nothing but `/metrics` is served, and only on the address that was asked for; what a host
//! does not show is left out, never exported as 0.

mod metrics;

use crate::doctor::{inside, read};
use crate::failure::{Failure, Result};
use crate::output::print;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tiny_http::{Header, Method, Request, Response, Server};
use unfrag_lab::doctor::{Diagnosis, Evidence, examine};

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
    /// Seconds between two readings of the page flags; 0 for none
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
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
    let first = diagnose(&args.proc, args.print)?;
    if args.print {
        return print(&metrics::encode(&first, Some((&first, Duration::ZERO))));
    }
    let server = Server::http(args.listen).map_err(|e| Failure::Output {
        to: args.listen.to_string(),
        error: io::Error::other(e.to_string()),
    })?;
    let flags = Flags::default();
    if args.page_flags_every > 0 {
        let (flags, proc) = (Arc::clone(&flags), args.proc.clone());
        let pause = Duration::from_secs(args.page_flags_every);
        thread::spawn(move || keep_reading(&flags, &proc, pause));
    }
    eprintln!("serving http://{}/metrics", server.server_addr());
    for request in server.incoming_requests() {
        // Whoever asked and went away is no reason to stop.
        let _ = answer(request, &args.proc, &flags);
    }
    Ok(())
}

fn keep_reading(flags: &Flags, proc: &Path, pause: Duration) {
    loop {
        if let Ok(d) = diagnose(proc, true)
            && d.obstacles.is_some()
        {
            *flags.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), d));
        }
        thread::sleep(pause);
    }
}

fn diagnose(proc: &Path, with_flags: bool) -> Result<Diagnosis> {
    let is_own = proc == Path::new("/proc");
    let evidence = Evidence::read(&proc.display().to_string(), |name| match name {
        "kpageflags" if !with_flags => Err(io::Error::other("read at its own pace")),
        _ => read(proc, is_own, name),
    });
    let evidence = evidence.map_err(|e| inside(e, proc))?;
    Ok(examine(&evidence).map_err(|e| inside(e, proc))?.diagnosis)
}

fn answer(request: Request, proc: &Path, flags: &Flags) -> io::Result<()> {
    let plain = |text: &str, code: u16| Response::from_string(text).with_status_code(code);
    if request.url() != "/metrics" {
        return request.respond(plain("the figures are at /metrics\n", 404));
    }
    if !matches!(request.method(), Method::Get | Method::Head) {
        return request.respond(plain("only GET\n", 405));
    }
    let Ok(now) = diagnose(proc, false) else {
        return request.respond(plain("procfs cannot be read\n", 500));
    };
    let text = {
        let kept = flags.lock().unwrap_or_else(PoisonError::into_inner);
        let with_flags = kept.as_ref().map(|(at, d)| (d, at.elapsed()));
        metrics::encode(&now, with_flags)
    };
    let kind = "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    let kind: Header = kind.parse().expect("a header");
    request.respond(Response::from_string(text).with_header(kind))
}
