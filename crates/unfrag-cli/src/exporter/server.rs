//! The HTTP server: the figures at `/metrics`, and a page that links to them.
//!
//! Invariant: whatever is sent to the port, memory, connections and readings of procfs stay bounded, and an honest
//! scrape is answered. Scrapes that wait at the same time share one reading, which began after each of them
//! came.

use super::http::{self, Answer, Asked};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::{sleep_until, timeout};

/// Most connections at once; beyond that, the one that has waited longest without asking makes room.
const MOST_CONNECTIONS: usize = 512;
/// Connections that the kernel keeps until they are accepted; of more, a client's first packet is lost, and it
/// tries again after a second.
const BACKLOG: u32 = 4096;
/// Longest time until a request's header is complete.
const HEADER_TIME: Duration = Duration::from_secs(3);
/// Longest life of a connection, reading and answer included.
const CONNECTION_TIME: Duration = Duration::from_secs(30);
/// Least time from the begin of one reading to that of the next.
const PAUSE: Duration = Duration::from_millis(100);
/// Pause after a connection that could not be accepted, such as for want of descriptors.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);

const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const HOME: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>unfrag exporter</title></head>\n\
<body><h1>unfrag exporter</h1><p><a href=\"/metrics\">Metrics</a></p></body></html>\n";

/// Makes the figures' text; `None` if procfs cannot be read.
pub type Figures = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The last reading: when it began, and what it gave.
#[derive(Default)]
struct Last(Option<(Instant, Option<Arc<str>>)>);

struct Shared {
    figures: Figures,
    last: Mutex<Last>,
}

/// A connection under way.
struct Connection {
    task: AbortHandle,
    /// Whether its request has come.
    asked: Arc<AtomicBool>,
}

/// A server that listens.
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
}

impl Server {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// If that cannot be done.
    pub fn bind(address: SocketAddr) -> io::Result<Server> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(2)
            .build()?;
        let listener = {
            let _context = runtime.enter();
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)?
        };
        Ok(Server { runtime, listener })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends.
    pub fn serve(self, figures: Figures) -> ! {
        self.runtime.block_on(accept(self.listener, figures))
    }
}

async fn accept(listener: TcpListener, figures: Figures) -> ! {
    let shared = Arc::new(Shared {
        figures,
        last: Mutex::default(),
    });
    let mut connections: VecDeque<Connection> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(AFTER_FAILED_ACCEPT).await;
            continue;
        };
        connections.retain(|c| !c.task.is_finished());
        if connections.len() >= MOST_CONNECTIONS {
            let idle = |c: &Connection| !c.asked.load(Ordering::Relaxed);
            let oldest = connections.iter().position(idle).unwrap_or(0);
            if let Some(dropped) = connections.remove(oldest) {
                dropped.task.abort();
            }
        }
        let asked = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(converse(stream, Arc::clone(&shared), Arc::clone(&asked)));
        connections.push_back(Connection {
            task: task.abort_handle(),
            asked,
        });
    }
}

async fn converse(mut stream: TcpStream, shared: Arc<Shared>, asked: Arc<AtomicBool>) {
    let conversation = async {
        // Whoever has not asked by then, or went away, gets no answer.
        let Ok(Ok(read)) = timeout(HEADER_TIME, http::read(&mut stream)).await else {
            return;
        };
        asked.store(true, Ordering::Relaxed);
        let (request, answer) = match read {
            Ok(request) => {
                let answer = answer(&request, &shared).await;
                (Some(request), answer)
            }
            Err(refusal) => (None, refusal),
        };
        let _ = http::write(&mut stream, &answer, request.as_ref()).await;
    };
    let _ = timeout(CONNECTION_TIME, conversation).await;
}

async fn answer(request: &Asked, shared: &Shared) -> Answer {
    let came = Instant::now();
    if !matches!(&*request.path, "/" | "/metrics") {
        return Answer::refused("404 Not Found", "the figures are at /metrics\n");
    }
    if !request.is_read() {
        return Answer::refused("405 Method Not Allowed", "only GET and HEAD\n");
    }
    if request.path == "/" {
        return Answer::of(HTML, HOME);
    }
    match figures(shared, came).await {
        Some(text) => Answer::of(METRICS, text),
        None => Answer::refused("500 Internal Server Error", "procfs cannot be read\n"),
    }
}

/// The figures of a reading that began after `came`.
async fn figures(shared: &Shared, came: Instant) -> Option<Arc<str>> {
    let mut last = shared.last.lock().await;
    if let Some((began, text)) = &last.0 {
        if *began >= came {
            return text.clone();
        }
        sleep_until((*began + PAUSE).into()).await;
    }
    let began = Instant::now();
    let make = Arc::clone(&shared.figures);
    let made = tokio::task::spawn_blocking(move || make()).await;
    let text = made.ok().flatten().map(Arc::from);
    last.0 = Some((began, text.clone()));
    text
}
