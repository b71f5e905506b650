//! The HTTP server: the figures at `/metrics`, and a page that links to them.
//!
//! Invariant: whatever is sent to the port, memory, connections and readings of procfs stay bounded, and an honest
//! scrape is answered. Scrapes that wait at the same time share one reading, which began after each of them
//! came.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
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
/// Most bytes of a request's header.
const HEADER_BYTES: usize = 16 << 10;
/// Most lines of a request's header.
const HEADER_LINES: usize = 64;
/// Least time from the begin of one reading to that of the next.
const PAUSE: Duration = Duration::from_millis(100);
/// Pause after a connection that could not be accepted, such as for want of descriptors.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);

const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const HOME: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>unfrag exporter</title></head>\n\
<body><h1>unfrag exporter</h1><p><a href=\"/metrics\">Metrics</a></p></body></html>\n";

/// Makes the figures' text; `None` if procfs cannot be read.
pub type Figures = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The last reading: when it began, and what it gave.
#[derive(Default)]
struct Last(Option<(Instant, Option<Bytes>)>);

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

async fn converse(stream: TcpStream, shared: Arc<Shared>, asked: Arc<AtomicBool>) {
    let service = service_fn(|request| {
        asked.store(true, Ordering::Relaxed);
        answer(request, Arc::clone(&shared))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(HEADER_BYTES)
        .max_headers(HEADER_LINES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Whoever asked and went away, or never asked, is no reason to stop.
    let _ = timeout(CONNECTION_TIME, connection).await;
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let came = Instant::now();
    let path = request.uri().path();
    if !matches!(path, "/" | "/metrics") {
        let text = "the figures are at /metrics\n";
        return Ok(response(StatusCode::NOT_FOUND, PLAIN, text));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD\n");
        let allowed = hyper::header::HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(ALLOW, allowed);
        return Ok(refused);
    }
    if path == "/" {
        return Ok(response(StatusCode::OK, HTML, HOME));
    }
    Ok(match figures(&shared, came).await {
        Some(text) => response(StatusCode::OK, METRICS, text),
        None => {
            let text = "procfs cannot be read\n";
            response(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, text)
        }
    })
}

/// The figures of a reading that began after `came`.
async fn figures(shared: &Shared, came: Instant) -> Option<Bytes> {
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
    let text = made.ok().flatten().map(Bytes::from);
    last.0 = Some((began, text.clone()));
    text
}

fn response(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
