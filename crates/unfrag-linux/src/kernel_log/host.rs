//! This host's kernel log: the journal's, or else the kernel's ring buffer.
//!
//! Invariant: what the log may lack is said with it.

use crate::error::{Error, Result};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A host's log.
pub struct HostLog {
    /// Where it is from, and why from there.
    pub source: String,
    /// Its text.
    pub text: Box<dyn Read>,
    /// What it may lack.
    pub lacking: Vec<String>,
}

/// The kernel's ring buffer.
const RING: &str = "/dev/kmsg";

/// Opens this host's log.
///
/// # Errors
/// If neither the journal nor the ring buffer can be read.
pub fn open() -> Result<HostLog> {
    match journal() {
        Ok(log) => Ok(log),
        Err(why) => {
            let mut log = ring()?;
            log.source = format!("{}, as the journal was not: {why}", log.source);
            Ok(log)
        }
    }
}

/// The journal of all boots that it has.
fn journal() -> std::result::Result<HostLog, String> {
    let mut child = Command::new("journalctl")
        .args([
            "--dmesg",
            "--boot=all",
            "--output=json",
            "--no-pager",
            "--quiet",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| match e.kind() {
            ErrorKind::NotFound => "there is no journalctl".to_owned(),
            _ => e.to_string(),
        })?;
    let mut out = child.stdout.take().ok_or("journalctl has no output")?;
    // A journal without a line is as good as none.
    let mut first = [0];
    match out.read(&mut first) {
        Ok(1) => {}
        _ => {
            let _ = child.kill();
            let _ = child.wait();
            return Err("it holds no line of the kernel that this user may read".into());
        }
    }
    let text = Journal {
        child,
        out,
        first: Some(first[0]),
    };
    Ok(HostLog {
        source: "the journal".into(),
        text: Box::new(text),
        lacking: vec!["boots from before the oldest entry that the journal keeps, and lines that the kernel's ring buffer lost before they were written".into()],
    })
}

struct Journal {
    child: Child,
    out: ChildStdout,
    first: Option<u8>,
}

impl Read for Journal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.first.take(), buffer) {
            (Some(byte), [to, ..]) => {
                *to = byte;
                Ok(1)
            }
            (first, buffer) => {
                self.first = first;
                self.out.read(buffer)
            }
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The ring buffer, as far back as it goes.
fn ring() -> Result<HostLog> {
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(RING);
    let file = open.map_err(|e| {
        let help = match e.kind() {
            ErrorKind::PermissionDenied => {
                "run it as root, or give the output of `dmesg` as a file"
            }
            _ => "give the output of `dmesg` or `journalctl -k` as a file",
        };
        Error::from(e).in_file(Path::new(RING)).help(help)
    })?;
    Ok(HostLog {
        source: "the kernel's ring buffer".into(),
        text: Box::new(Ring { file, left: vec![] }),
        lacking: vec!["what the ring buffer has overwritten, and earlier boots".into()],
    })
}

struct Ring {
    file: File,
    left: Vec<u8>,
}

impl Read for Ring {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            // A read gives one record, and fails if the record does not fit.
            let mut record = vec![0; 16 << 10];
            let n = loop {
                match self.file.read(&mut record) {
                    Ok(n) => break n,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break 0,
                    // The next record was overwritten before it was read: the one after it follows.
                    Err(e)
                        if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
                    Err(e) => return Err(e),
                }
            };
            record.truncate(n);
            self.left = record;
        }
        let n = self.left.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.left[..n]);
        self.left.drain(..n);
        Ok(n)
    }
}
