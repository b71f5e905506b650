//! Where results go: the standard output, and files.
//!
//! Invariant: a file appears under its name only once it is complete.

use crate::failure::{Failure, Result};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use crate::progress::Progress;
pub use crate::terminal::Screen;

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
    let Some((to, partial)) = target_of(path).map_err(failed)? else {
        let open = fs::OpenOptions::new().write(true).open(path);
        return open.and_then(|mut f| f.write_all(content)).map_err(failed);
    };
    let done = fs::write(&partial, content).and_then(|()| fs::rename(&partial, to));
    done.map_err(|e| {
        let _ = fs::remove_file(&partial);
        failed(e)
    })
}

/// Checks that a file can be written, before the work whose result goes there.
///
/// # Errors
/// If it cannot.
pub fn check_writable(path: &Path) -> Result<()> {
    let Some((_, partial)) = target_of(path).map_err(|e| Failure::output(path, e))? else {
        return Ok(());
    };
    let tried = fs::write(&partial, []).and_then(|()| fs::remove_file(&partial));
    tried.map_err(|e| Failure::output(path, e))
}

/// Checks that the output is not the file that is read.
///
/// # Errors
/// If it is: the input would be lost.
pub fn check_not_input(output: &Path, input: &Path) -> Result<()> {
    let file = |path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    match (file(output), file(input)) {
        (Some(to), Some(from)) if to == from => Err(Failure::usage(
            format!("{} is the file that is read", output.display()),
            "write to another one",
        )),
        _ => Ok(()),
    }
}

/// The regular file that a path leads to, whether it exists or not, and the name under which it is written
/// first; `None` if the path leads to something else, such as a pipe.
fn target_of(path: &Path) -> io::Result<Option<(PathBuf, PathBuf)>> {
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
            check_writable(&other).unwrap();
            write_file(&other, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::symlink_metadata(&other).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "no leftovers");
        let round = dir.path().join("round");
        symlink("round", &round).unwrap();
        assert!(check_writable(&round).is_err());
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
        check_writable(&pipe).unwrap();
        write_file(&pipe, b"hello").unwrap();
        assert_eq!(reader.join().unwrap(), "hello");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check_writable(dir.path()).is_err(), "a directory");
        assert!(check_writable(&dir.path().join("no/file")).is_err());
        assert!(write_file(&dir.path().join("no/file"), b"").is_err());
    }
}
