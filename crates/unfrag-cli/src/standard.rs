//! The standard streams, which a terminal may show.
//!
//! Invariant: whatever this command writes to them as text is a [`Text`], so that nothing of an input, a file's name, an
//! option or a library's message controls the terminal. No other module opens them.

use crate::inputs::without_number;
use crate::terminal;
use clap::Parser;
use std::backtrace::Backtrace;
use std::borrow::Cow;
use std::io::{self, Write};
use std::panic;
use std::path::Path;
use unfrag_lab::report::screen::{Style, Text};
use unfrag_linux::input_text::{escaped_bytes, escaped_json};
use unfrag_linux::target::Target;

/// Writes text to the standard output.
///
/// # Errors
/// If that fails.
pub fn write(text: &Text) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// The text of an output, in a format of its own, as it is written to a path. A file gets it as it is. Elsewhere a terminal
/// may show it, so what controls a screen is written as JSON, TOML and scripts write it.
pub fn for_place<'a>(path: &Path, content: &'a [u8]) -> Cow<'a, [u8]> {
    match (Target::of(path), std::str::from_utf8(content)) {
        (Ok(Target::File(_)), _) | (_, Err(_)) => Cow::Borrowed(content),
        (_, Ok(text)) => match escaped_json(text) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
    }
}

/// Writes text to the standard error, which may be gone: that is no failure.
pub fn say(text: impl Into<Text>) {
    let _ = io::stderr().lock().write_all(text.into().as_bytes());
}

/// Writes a line to the standard error.
pub fn say_line(text: impl Into<Text>) {
    let mut text = text.into();
    text.push('\n');
    say(text);
}

/// Draws over the line of the terminal that the standard error is; an empty text clears it.
pub fn redraw_line(text: impl Into<Text>) {
    let mut line = b"\r\x1b[2K".to_vec();
    line.extend_from_slice(text.into().as_bytes());
    let _ = io::stderr().lock().write_all(&line);
}

/// The word that begins a message of an error, in its colours.
pub fn error_word() -> Text {
    let style = match terminal::colors_on_stderr() {
        true => Style::Error,
        false => Style::Plain,
    };
    let mut text = Text::new();
    text.push_styled(style, "error:");
    text
}

/// Panics are said as all else is: a message may quote an input.
pub fn take_panics() {
    panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name").to_owned();
        let trace = Backtrace::capture();
        say_line(format!("thread {name}: {info}\n{trace}"));
    }));
}

/// Reads the command line.
///
/// # Errors
/// With what the reader has to say: a mistake, or the help that was asked for. It quotes words of the command line, so
/// these are read again escaped: then its own colours are the only sequences in it.
pub fn options<T: Parser>() -> Result<T, clap::Error> {
    let said = match T::try_parse() {
        Ok(options) => return Ok(options),
        Err(said) => said,
    };
    let words = std::env::args_os().map(|w| escaped_bytes(w.as_encoded_bytes()));
    Err(match T::try_parse_from(words) {
        Err(escaped) => escaped,
        Ok(_) => clap::Error::raw(
            said.kind(),
            Text::from(said.render().to_string()).into_string(),
        ),
    })
}

/// Says what the reader of the command line has to say; gives the exit status. Help that nobody can read is no success.
pub fn say_of_options(said: &clap::Error) -> u8 {
    let status = u8::try_from(said.exit_code()).unwrap_or(2);
    match said.print().and_then(|()| io::stdout().flush()) {
        Err(error) if status == 0 && error.kind() != io::ErrorKind::BrokenPipe => {
            let mut text = error_word();
            text.push_str(&format!(" standard output: {}\n", without_number(&error)));
            say(text);
            1
        }
        _ => status,
    }
}
