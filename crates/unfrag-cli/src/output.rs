//! Where results go: standard output, files, and what the terminal can show.
//!
//! Invariant: a file appears under its name only once it is complete; colour and progress appear on
//! a terminal only.

use crate::failure::{Failure, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use terminal_size::{Width, terminal_size_of};

/// What the standard output can show.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub color: bool,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

/// Columns where there is no terminal to ask.
const USUAL_WIDTH: usize = 100;
/// Fewer columns than this are not laid out for.
const LEAST_WIDTH: usize = 40;

impl Screen {
    /// What the standard output of this process can show.
    pub fn stdout() -> Screen {
        let out = io::stdout();
        let terminal = out.is_terminal();
        let columns = match terminal_size_of(&out) {
            Some((Width(w), _)) if terminal && w > 0 => usize::from(w),
            _ => columns_asked_for().unwrap_or(USUAL_WIDTH),
        };
        Screen {
            width: columns.max(LEAST_WIDTH),
            color: terminal && colors_wanted(),
            unicode: unicode(),
        }
    }
}

fn columns_asked_for() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

fn colors_wanted() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Whether the locale is one of UTF-8; so it is if none is set.
fn unicode() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|n| std::env::var(n).ok())
        .find(|v| !v.is_empty());
    named.is_none_or(|v| {
        let v = v.to_ascii_lowercase();
        v.contains("utf-8") || v.contains("utf8")
    })
}

/// What begins and ends a stressed word on the standard error.
pub fn error_colors() -> (&'static str, &'static str) {
    if io::stderr().is_terminal() && colors_wanted() {
        ("\x1b[1;31m", "\x1b[0m")
    } else {
        ("", "")
    }
}

/// Writes to the standard output.
///
/// # Errors
/// If that fails; [`Failure::ReaderGone`] if its reader has stopped.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    done.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::Output {
            to: "standard output".into(),
            error,
        },
    })
}

/// Writes a value as JSON to the standard output.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| Failure::Output {
        to: "standard output".into(),
        error: e.into(),
    })?;
    text.push('\n');
    print(&text)
}

/// Writes a file, which appears under its name only once it is complete. Through a symbolic link it is written
/// where that leads, and what is no regular file (a pipe, a device) is written as it stands.
///
/// # Errors
/// If it cannot be written.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let failed = |e| Failure::output(path, e);
    let Some((to, partial)) = replaced(path).map_err(failed)? else {
        let open = fs::OpenOptions::new().write(true).open(path);
        return open.and_then(|mut f| f.write_all(content)).map_err(failed);
    };
    let done = fs::write(&partial, content).and_then(|()| fs::rename(&partial, to));
    done.map_err(|e| {
        let _ = fs::remove_file(&partial);
        failed(e)
    })
}

/// Asks whether a file can be written, before the work whose result goes there.
///
/// # Errors
/// If it cannot.
pub fn can_write(path: &Path) -> Result<()> {
    let Some((_, partial)) = replaced(path).map_err(|e| Failure::output(path, e))? else {
        return Ok(());
    };
    let tried = fs::write(&partial, []).and_then(|()| fs::remove_file(&partial));
    tried.map_err(|e| Failure::output(path, e))
}

/// Asks whether what is written is another file than what is read.
///
/// # Errors
/// If it is not: the input would be lost.
pub fn apart(output: &Path, input: &Path) -> Result<()> {
    let file = |path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    match (file(output), file(input)) {
        (Some(to), Some(from)) if to == from => Err(Failure::usage(
            format!("{} is the file that is read", output.display()),
            "write to another one",
        )),
        _ => Ok(()),
    }
}

/// The regular file that a path leads to, there or not yet, and the name under which it is written first; none
/// if something else is there.
fn replaced(path: &Path) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let mut to = path.to_owned();
    let mut links = 0;
    while let Ok(next) = fs::read_link(&to) {
        links += 1;
        if links > MOST_LINKS {
            return Err(io::Error::other("too many symbolic links"));
        }
        to = to.parent().unwrap_or(Path::new("")).join(next);
    }
    match fs::metadata(&to) {
        Ok(m) if m.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(m) if !m.is_file() => return Ok(None),
        _ => {}
    }
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    Ok(Some((to, partial.into())))
}

/// Symbolic links that are followed one after the other, as many as Linux follows.
const MOST_LINKS: u32 = 40;

/// A sign of life on the standard error, if that is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// With a message, and no idea of how long it takes.
    pub fn new(message: &'static str) -> Progress {
        let bar = if io::stderr().is_terminal() {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::hidden()
        };
        bar.set_message(message);
        bar.enable_steady_tick(std::time::Duration::from_millis(100));
        Progress(bar)
    }

    /// What happens now.
    pub fn message(&self, message: String) {
        self.0.set_message(message);
    }

    /// How much of `total` is done.
    pub fn at(&self, done: u64, total: u64) {
        if self.0.length() != Some(total) {
            let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %");
            self.0
                .set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.0.disable_steady_tick();
            self.0.set_length(total);
        }
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, symlink};

    #[test]
    fn a_link_stays_a_link_and_what_it_leads_to_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|n| dir.path().join(n));
        symlink("link", &other).unwrap();
        symlink("file", &link).unwrap();
        for content in ["one", "two"] {
            can_write(&other).unwrap();
            write_file(&other, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::symlink_metadata(&other).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "no leftovers");
        let round = dir.path().join("round");
        symlink("round", &round).unwrap();
        assert!(can_write(&round).is_err());
    }

    #[test]
    fn a_pipe_is_written_to_and_stays_a_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        can_write(&pipe).unwrap();
        write_file(&pipe, b"hello").unwrap();
        assert_eq!(reader.join().unwrap(), "hello");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let dir = tempfile::tempdir().unwrap();
        assert!(can_write(dir.path()).is_err(), "a directory");
        assert!(can_write(&dir.path().join("no/file")).is_err());
        assert!(write_file(&dir.path().join("no/file"), b"").is_err());
    }
}
