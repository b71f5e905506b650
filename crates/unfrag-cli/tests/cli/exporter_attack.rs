//! `unfrag exporter` on a hostile network: slow connections, a header without end, many scrapes at once.
#![cfg(target_os = "linux")]

use crate::support::{root, unfrag};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Connections that send a byte a second.
const SLOW: usize = 300;
/// Scrapes at once.
const SCRAPES: usize = 100;
/// Most memory that all of it may take, in KiB.
const MOST_MEMORY: u64 = 20 << 10;
/// Longest time of a scrape; a second where nothing else runs.
const LONGEST: Duration = Duration::from_secs(5);
/// Bytes of the header without end, if `UNFRAG_ATTACK_MIB` does not say.
const HEADER_MIB: usize = 64;

struct Exporter(Child, String);

impl Exporter {
    fn start() -> Exporter {
        let proc = root().join("crates/unfrag-linux/tests/fixtures/procfs");
        let mut child = unfrag()
            .args(["exporter", "--listen", "127.0.0.1:0", "--proc"])
            .arg(proc)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut said).unwrap();
        let address = said.trim().strip_prefix("serving http://");
        let address = address.and_then(|a| a.strip_suffix("/metrics")).unwrap();
        Exporter(child, address.to_owned())
    }

    /// A line of `/proc/PID/status`, in KiB.
    fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
        line.trim_start_matches(':')
            .trim()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Scrapes all at once; the longest time that one took.
fn scrapes(address: &str) -> Duration {
    let all: Vec<_> = (0..SCRAPES)
        .map(|_| {
            let address = address.to_owned();
            thread::spawn(move || {
                let start = Instant::now();
                let answer = ask(&address, "GET /metrics");
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                assert!(answer.contains("unfrag_free_bytes{"), "{answer}");
                start.elapsed()
            })
        })
        .collect();
    all.into_iter().map(|t| t.join().unwrap()).max().unwrap()
}

#[test]
fn an_attack_costs_little_memory_and_delays_no_scrape() {
    let exporter = Exporter::start();
    let address = exporter.1.clone();
    let before = exporter.memory("VmRSS");
    let over = Arc::new(AtomicBool::new(false));
    let slow = thread::spawn({
        let (address, over) = (address.clone(), Arc::clone(&over));
        move || {
            let open = || TcpStream::connect(&address).ok();
            let mut all: Vec<_> = (0..SLOW).map(|_| open()).collect();
            while !over.load(Ordering::Relaxed) {
                for stream in &mut all {
                    // Whoever is cut off comes again.
                    if stream.as_mut().is_none_or(|s| s.write_all(b"G").is_err()) {
                        *stream = open();
                    }
                }
                thread::sleep(Duration::from_secs(1));
            }
        }
    });
    let endless = thread::spawn({
        let address = address.clone();
        let mib = std::env::var("UNFRAG_ATTACK_MIB").ok();
        let mib = mib.map_or(HEADER_MIB, |n| n.parse().unwrap());
        move || {
            let block = [b'a'; 1 << 16];
            let mut sent = 0;
            while sent < mib << 20 {
                // Each connection is cut off: the rest goes through others.
                let Ok(mut stream) = TcpStream::connect(&address) else {
                    continue;
                };
                let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ");
                while sent < mib << 20 && stream.write_all(&block).is_ok() {
                    sent += block.len();
                }
                sent += block.len();
            }
        }
    });
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        longest = longest.max(scrapes(&address));
        thread::sleep(Duration::from_secs(1));
    }
    endless.join().unwrap();
    over.store(true, Ordering::Relaxed);
    slow.join().unwrap();
    let more = exporter.memory("VmHWM").saturating_sub(before);
    let told = format!("longest scrape {longest:?}, {more} KiB more at most");
    let _ = writeln!(std::io::stderr(), "{told}");
    assert!(longest < LONGEST && more <= MOST_MEMORY, "{told}");
}

#[test]
fn connections_that_say_nothing_leave_room_for_scrapes() {
    let exporter = Exporter::start();
    let idle: Vec<_> = (0..700)
        .map(|_| TcpStream::connect(&exporter.1).unwrap())
        .collect();
    let start = Instant::now();
    assert!(ask(&exporter.1, "GET /metrics").starts_with("HTTP/1.1 200"));
    assert!(start.elapsed() < LONGEST, "{:?}", start.elapsed());
    drop(idle);
}

#[test]
fn requests_are_answered_as_exporters_do() {
    let exporter = Exporter::start();
    let address = &exporter.1;
    assert!(ask(address, "GET /metrics?collect=all").starts_with("HTTP/1.1 200"));
    let home = ask(address, "GET /");
    assert!(
        home.contains("text/html") && home.contains("href=\"/metrics\""),
        "{home}"
    );
    let head = ask(address, "HEAD /metrics");
    let (lines, body) = head.split_once("\r\n\r\n").unwrap();
    assert!(
        lines.starts_with("HTTP/1.1 200") && body.is_empty(),
        "{head}"
    );
    assert!(ask(address, "GET /metricsx").starts_with("HTTP/1.1 404"));
    let refused = ask(address, "DELETE /metrics");
    assert!(
        refused.starts_with("HTTP/1.1 405") && refused.contains("allow: GET"),
        "{refused}"
    );
    let long = format!("GET /{}", "a".repeat(15 << 10));
    assert!(ask(address, &long).starts_with("HTTP/1.1 404"));
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nX: {}", "a".repeat(17 << 10)).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 431");
}
