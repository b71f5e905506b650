//! `unfrag exporter` as Prometheus sees it: a real one from Debian, where it is installed, else the test
//! says so aloud and passes; and by hand, for what Prometheus does not ask.

use crate::support::{fails, root, run, skipped, stdout, text, unfrag};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program at work; stopped when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the exporter on a free port, of a directory as procfs; answers `ADDRESS:PORT`.
fn exporter(proc: &Path) -> (Running, String) {
    exporter_on("127.0.0.1:0", proc)
}

fn exporter_on(listen: &str, proc: &Path) -> (Running, String) {
    let mut child = unfrag()
        .args(["exporter", "--listen", listen, "--proc"])
        .arg(proc)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    let running = Running(child);
    let address = said
        .trim()
        .strip_prefix("serving http://")
        .and_then(|s| s.strip_suffix("/metrics"));
    (
        running,
        address
            .unwrap_or_else(|| panic!("it says {said:?}"))
            .to_owned(),
    )
}

/// A copy of procfs with two zones.
fn proc() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let fixtures = root().join("crates/unfrag-linux/tests/fixtures/procfs");
    for file in ["buddyinfo", "zoneinfo", "vmstat", "meminfo", "pagetypeinfo"] {
        fs::copy(fixtures.join(file), dir.path().join(file)).unwrap();
    }
    dir
}

/// Asks over HTTP; answers status line and body.
fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn nothing_but_metrics_is_served_and_only_to_be_read() {
    let proc = proc();
    let (_running, address) = exporter(proc.path());
    let (status, body) = ask(&address, "GET /metrics");
    assert!(status.contains("200"), "{status}");
    assert!(body.contains("unfrag_free_bytes{"), "{body}");
    assert!(ask(&address, "GET /etc/passwd").0.contains("404"));
    assert!(ask(&address, "POST /metrics").0.contains("405"));
    // A file that is damaged later is named by the scrape; all of them are its error, not the service's end.
    fs::write(proc.path().join("buddyinfo"), "no numbers\n").unwrap();
    let (status, body) = ask(&address, "GET /metrics");
    assert!(status.contains("200"), "{status}");
    assert!(
        body.contains(r#"unfrag_source_readable{file="buddyinfo"} 0"#),
        "{body}"
    );
    for file in ["zoneinfo", "pagetypeinfo", "meminfo", "vmstat"] {
        fs::write(proc.path().join(file), "no numbers\n").unwrap();
    }
    assert!(ask(&address, "GET /metrics").0.contains("500"));
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let out = run(&["exporter", "--listen", &address]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stderr).contains(&address),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn a_procfs_that_is_none_is_an_error_at_once() {
    let empty = tempfile::tempdir().unwrap();
    let out = run(&[
        "exporter",
        "--print",
        "--proc",
        empty.path().to_str().unwrap(),
    ]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("help:"), "{}", text(&out.stderr));
}

#[test]
fn it_listens_on_names_and_addresses() {
    let proc = proc();
    for listen in ["127.0.0.1:0", "localhost:0"] {
        let (_running, address) = exporter_on(listen, proc.path());
        assert!(ask(&address, "GET /metrics").0.contains("200"), "{listen}");
    }
    // Where there is no IPv6, that is said.
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        let (_running, address) = exporter_on("[::1]:0", proc.path());
        assert!(address.starts_with("[::1]:"), "{address}");
    }
}

#[test]
fn what_is_no_address_is_refused_with_one_that_is() {
    for (listen, why) in [
        ("19809", "no port"),
        ("localhost", "no port"),
        (":19809", "no address"),
        ("localhost:", "is no port"),
        ("localhost:http", "is no port"),
        ("localhost:70000", "is no port"),
        ("localhost:-1", "is no port"),
        ("no such host.invalid:0", "no such host.invalid:0"),
    ] {
        fails(
            &["exporter", "--listen", listen],
            2,
            &[why, "127.0.0.1:19809"],
        );
    }
    fails(&["exporter", "--print", "--huge", "0"], 2, &["512@node1"]);
}

#[test]
fn a_real_prometheus_scrapes_it_and_has_the_same_values() {
    match Command::new("prometheus")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
    {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return skipped("prometheus is not installed, so no real one scrapes the exporter");
        }
        other => assert!(other.unwrap().success()),
    }
    let proc = proc();
    let (_exporter, address) = exporter(proc.path());
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("prometheus.yml");
    fs::write(
        &config,
        format!(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: unfrag\n    static_configs:\n      - targets: ['{address}']\n"
        ),
    )
    .unwrap();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let listen = format!("127.0.0.1:{port}");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            dir.path().join("data").display()
        ))
        .arg(format!("--web.listen-address={listen}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _prometheus = Running(child);
    let until = Instant::now() + Duration::from_secs(60);
    let value = |query: &str| -> Option<Value> {
        TcpStream::connect(&listen).ok()?;
        let (_, body) = ask(&listen, &format!("GET /api/v1/query?query={query}"));
        // The body may be chunked: the JSON is what stands between the braces.
        let json = body.get(body.find('{')?..=body.rfind('}')?)?;
        let answer: Value = serde_json::from_str(json).ok()?;
        let result = answer["data"]["result"].as_array()?.clone();
        (!result.is_empty()).then_some(Value::Array(result))
    };
    while value("up==1").is_none() {
        assert!(
            Instant::now() < until,
            "prometheus never scraped the exporter"
        );
        std::thread::sleep(Duration::from_millis(300));
    }
    let printed = stdout(&[
        "exporter",
        "--print",
        "--proc",
        proc.path().to_str().unwrap(),
    ]);
    let mut compared = 0;
    for line in printed.lines().filter(|l| !l.starts_with('#')) {
        let (metric, number) = line.rsplit_once(' ').unwrap();
        let number: f64 = number.parse().unwrap();
        let query: String = metric
            .bytes()
            .map(|b| match b {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(b).to_string(),
                b => format!("%{b:02X}"),
            })
            .collect();
        let result = value(&query).unwrap_or_else(|| panic!("prometheus has no {metric}"));
        let seen: f64 = result[0]["value"][1].as_str().unwrap().parse().unwrap();
        assert_eq!(seen, number, "{metric}");
        compared += 1;
    }
    assert!(compared > 50, "only {compared} values were compared");
}
