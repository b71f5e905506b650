//! CPU time of the laboratory: what a thousand events, or a MiB of a log, take from file to answer.
//!
//! - `replay`: the sample, which needs no reclaim; loading included.
//! - `pressure`: the same in less memory, an ensemble of replays that reclaim.
//! - `summary`: the sample's events, from its file.
//! - `explain`: a kernel's log without a failure, and a log of programs that is no kernel's.
//! - `import`: text of `trace-cmd report`, read and packed.
//!
//! ```console
//! $ cargo bench -p unfrag-lab
//! ```
//!
//! Each row is the median of several runs in one process, with the least and the largest. `-- --repeat 9` asks for more of
//! them, `-- pressure` for one row.

use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use unfrag_lab::explain::explain;
use unfrag_lab::find::recordings;
use unfrag_lab::input::MEMORY_BUDGET;
use unfrag_lab::replay::{NoWatch, Options, replay};
use unfrag_lab::summary::summarize;
use unfrag_linux::file;
use unfrag_linux::segments::{Beginning, Window};

/// Bytes of a generated log.
const LOG: usize = 64 << 20;
/// Events of a generated trace.
const EVENTS: usize = 500_000;

/// What a row counts.
#[derive(Clone, Copy)]
enum Unit {
    Events,
    Bytes,
}

struct Row {
    name: &'static str,
    unit: Unit,
    /// Does the work once, and says how much it was.
    work: Box<dyn Fn() -> usize>,
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/gcc-768M.unfrag")
}

/// The sample's replay; gives its number of events.
fn replayed(options: &Options) -> usize {
    let recording = file::read(&sample()).expect("the sample");
    replay(&recording, "the sample", options, &mut NoWatch).expect("a replay");
    recording.events.len()
}

fn summarized() -> usize {
    let streamed = recordings::streamed(&sample(), &[], None, &Window::default(), Beginning::Exact);
    let streamed = streamed.expect("the sample");
    let input = streamed.input(MEMORY_BUDGET);
    summarize(input, "the sample").expect("a summary").events as usize
}

/// A log whose lines begin as `head` says.
fn log(head: fn(usize) -> String) -> Vec<u8> {
    const MESSAGES: [&str; 5] = [
        "usb 1-1: new high-speed USB device using xhci_hcd",
        "audit: type=1400 audit(1699.1:22): operation=\"profile_load\" name=\"lsb_release\"",
        "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
        "e1000e 0000:00:1f.6 eth0: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: Rx/Tx",
        "docker0: port 1(veth7) entered blocking state",
    ];
    let mut text = String::with_capacity(LOG + 200);
    for i in 0.. {
        if text.len() >= LOG {
            break;
        }
        let _ = writeln!(text, "{}{}", head(i), MESSAGES[i % MESSAGES.len()]);
    }
    text.into_bytes()
}

/// Text of `trace-cmd report`.
fn trace() -> Vec<u8> {
    let mut text = String::from("cpus=2\n");
    for i in 0..EVENTS {
        let (pfn, at) = ((i / 48).wrapping_mul(0x9e37_79b9) >> 12 & 0x3_ffff, i * 3);
        let head = format!(
            "{:>22} [{:03}] ....  {:>5}.{:06}: ",
            ["cc1-7", "make-5", "kworker/0:1-33", "<idle>-0"][i / 500 % 4],
            i % 2,
            1000 + at / 1_000_000,
            at % 1_000_000
        );
        let _ = match i % 10 {
            0..5 => writeln!(
                text,
                "{head}mm_page_alloc:        page=0x{pfn:x} pfn=0x{pfn:x} order=0 migratetype=1 \
                 gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_COMP"
            ),
            _ => writeln!(
                text,
                "{head}mm_page_free:         page=0x{pfn:x} pfn=0x{pfn:x} order=0"
            ),
        };
    }
    text.into_bytes()
}

fn imported(text: &[u8]) -> usize {
    let options = unfrag_linux::Options {
        kernel_release: Some("6.1.0"),
        ..unfrag_linux::Options::default()
    };
    let recording = unfrag_linux::read(text, &options).expect("a trace");
    file::to_bytes(&recording).expect("a file");
    recording.events.len()
}

fn rows() -> Vec<Row> {
    let of_kernel = log(|i| format!("[{:12.6}] ", i as f64 * 0.013));
    let of_programs = log(|i| format!("Feb  9 08:09:{:02} host-a app[{i}]: ", i % 60));
    let text = trace();
    let explained = |log: Vec<u8>| {
        move || {
            explain(&log[..]).expect("an answer");
            log.len()
        }
    };
    let less = Options {
        memory: Some(420 << 20),
        ..Options::default()
    };
    let row = |name, unit, work| Row { name, unit, work };
    vec![
        row(
            "replay",
            Unit::Events,
            Box::new(|| replayed(&Options::default())),
        ),
        row("pressure", Unit::Events, Box::new(move || replayed(&less))),
        row("summary", Unit::Events, Box::new(summarized)),
        row(
            "explain, a kernel's log",
            Unit::Bytes,
            Box::new(explained(of_kernel)),
        ),
        row(
            "explain, programs' log",
            Unit::Bytes,
            Box::new(explained(of_programs)),
        ),
        row(
            "import of text",
            Unit::Events,
            Box::new(move || imported(&text)),
        ),
    ]
}

/// CPU time of this process so far, in seconds.
fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn main() {
    let mut repeat = 5;
    let mut only = vec![];
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            // Given by cargo.
            "--bench" => {}
            "--repeat" => {
                let number = args.next().and_then(|n| n.parse().ok());
                repeat = number.filter(|&n| n > 0).expect("--repeat NUMBER");
            }
            _ => only.push(arg),
        }
    }
    println!(
        "{:<26} {:>9} {:>19}   a second of CPU",
        "", "CPU s", "least - largest"
    );
    for row in rows() {
        if !only.is_empty() && !only.iter().any(|o| row.name.contains(&o[..])) {
            continue;
        }
        let mut amount = 0;
        let mut times: Vec<f64> = (0..repeat)
            .map(|_| {
                let before = cpu();
                amount = (row.work)();
                cpu() - before
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let rate = amount as f64 / median / 1e6;
        let unit = match row.unit {
            Unit::Events => "million events",
            Unit::Bytes => "MB",
        };
        let (least, largest) = (times[0], times[times.len() - 1]);
        println!(
            "{:<26} {median:>9.3} {least:>9.3} - {largest:>7.3}   {rate:.2} {unit}",
            row.name
        );
    }
}
