//! One request and its answer over HTTP/1.1, as a scraper has them: no body comes, and the connection ends with the answer.
//!
//! Invariant: of a request no more than [`HEADER_BYTES`] are kept, whatever is sent, and it is looked through only when a line
//! has come. Whoever was answered gets the answer, even if it sent more than was read.

use chrono::Utc;
use httparse::{EMPTY_HEADER, Error, Request, Status};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Most bytes of a request's header.
const HEADER_BYTES: usize = 16 << 10;
/// Most lines of a request's header.
const HEADER_LINES: usize = 64;
/// Most bytes that are read, and forgotten, of a client that sends on after it was answered: an answer on a connection that is
/// closed with bytes unread may be lost.
const LEFT_OVER_BYTES: usize = 64 << 10;
/// Longest time that it is waited for the client to end the connection, too.
const LEFT_OVER_TIME: Duration = Duration::from_secs(1);

const PLAIN: &str = "text/plain; charset=utf-8";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    method: String,
    /// Without what stands behind a question mark.
    pub path: String,
}

impl Asked {
    /// Whether it only reads, as a scraper does.
    pub fn is_read(&self) -> bool {
        matches!(&*self.method, "GET" | "HEAD")
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    status: &'static str,
    kind: &'static str,
    text: Arc<str>,
}

impl Answer {
    /// With a text of this kind.
    pub fn of(kind: &'static str, text: impl Into<Arc<str>>) -> Answer {
        Answer {
            status: "200 OK",
            kind,
            text: text.into(),
        }
    }

    /// That says why there is none, such as `404 Not Found`.
    pub fn refused(status: &'static str, text: &str) -> Answer {
        Answer {
            status,
            kind: PLAIN,
            text: text.into(),
        }
    }

    fn too_large() -> Answer {
        Answer::refused(
            "431 Request Header Fields Too Large",
            "the header is too large\n",
        )
    }
}

/// Reads a request; `Err` has what to answer if it is none.
///
/// # Errors
/// If whoever connected went away.
pub async fn read(stream: &mut TcpStream) -> io::Result<Result<Asked, Answer>> {
    let mut header: Vec<u8> = vec![];
    let mut room = [0; 1024];
    while header.len() < HEADER_BYTES {
        let n = stream.read(&mut room).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        header.extend_from_slice(&room[..n]);
        if room[..n].contains(&b'\n')
            && let Some(read) = parsed(&header)
        {
            return Ok(read);
        }
    }
    Ok(Err(Answer::too_large()))
}

/// What a header asks for, once it is complete.
fn parsed(header: &[u8]) -> Option<Result<Asked, Answer>> {
    let mut lines = [EMPTY_HEADER; HEADER_LINES];
    let mut request = Request::new(&mut lines);
    match request.parse(header) {
        Ok(Status::Partial) => None,
        Ok(Status::Complete(_)) => Some(Ok(Asked {
            method: request.method.unwrap_or_default().to_owned(),
            path: path(request.path.unwrap_or_default()).to_owned(),
        })),
        Err(Error::TooManyHeaders) => Some(Err(Answer::too_large())),
        Err(_) => Some(Err(Answer::refused(
            "400 Bad Request",
            "that is no request\n",
        ))),
    }
}

/// The path of a request's target, which a proxy gives with the host's name before it.
fn path(target: &str) -> &str {
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

/// Writes an answer, and ends the connection.
///
/// # Errors
/// If whoever asked went away.
pub async fn write(stream: &mut TcpStream, answer: &Answer, to: Option<&Asked>) -> io::Result<()> {
    let Answer { status, kind, text } = answer;
    let date = Utc::now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let allow = match status.starts_with("405") {
        true => "allow: GET, HEAD\r\n",
        false => "",
    };
    let mut all = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{allow}connection: close\r\ndate: {date}\r\n\r\n",
        text.len()
    );
    if to.is_none_or(|asked| asked.method != "HEAD") {
        all.push_str(text);
    }
    stream.write_all(all.as_bytes()).await?;
    stream.shutdown().await?;
    timeout(LEFT_OVER_TIME, forget(stream))
        .await
        .unwrap_or(Ok(()))
}

/// Reads what a client sends on.
async fn forget(stream: &mut TcpStream) -> io::Result<()> {
    let mut left = LEFT_OVER_BYTES;
    let mut room = [0; 1024];
    while left > 0 {
        match stream.read(&mut room).await? {
            0 => break,
            n => left = left.saturating_sub(n),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(header: &str) -> Result<Asked, &'static str> {
        let read = parsed(header.as_bytes()).ok_or("not complete")?;
        read.map_err(|answer| answer.status)
    }

    #[test]
    fn a_request_is_its_method_and_its_path() {
        for (target, path) in [
            ("/metrics", "/metrics"),
            ("/metrics?collect=all", "/metrics"),
            ("http://host:1/metrics?a=/b", "/metrics"),
            ("http://host", "/"),
            ("*", "*"),
        ] {
            let is = asked(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let wanted = Asked {
                method: "GET".into(),
                path: path.into(),
            };
            assert_eq!(is, Ok(wanted), "{target}");
        }
        assert!(asked("HEAD / HTTP/1.0\n\n").is_ok_and(|a| a.is_read()));
        assert!(asked("POST / HTTP/1.1\r\n\r\n").is_ok_and(|a| !a.is_read()));
    }

    #[test]
    fn what_is_no_request_is_refused_and_half_a_one_is_waited_for() {
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: a\r\n"), Err("not complete"));
        assert_eq!(asked("\u{1}\u{2}\r\n\r\n"), Err("400 Bad Request"));
        assert_eq!(asked("GET / FTP/3\r\n\r\n"), Err("400 Bad Request"));
        let lines = "a: b\r\n".repeat(HEADER_LINES + 1);
        let many = asked(&format!("GET / HTTP/1.1\r\n{lines}\r\n"));
        assert!(many.is_err_and(|s| s.starts_with("431")));
    }
}
