//! The standard streams, which a terminal may show.
//!
//! Invariant: whatever this command writes to them as text is a [`Text`], so that nothing of an input, a file's name, an
//! option or a library's message controls the terminal. No other module opens them.

use crate::terminal;
use std::backtrace::Backtrace;
use std::borrow::Cow;
use std::io::{self, Write};
use std::panic;
use std::path::Path;
use unfrag_lab::report::screen::{Style, Text};
use unfrag_linux::input_text::{controls, escaped, escaped_json};
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

/// What the reader of the command line has to say: a mistake, or the help that was asked for. Gives the exit status.
pub fn say_of_options(said: &clap::Error) -> u8 {
    let mut hostile: Vec<String> = std::env::args_os()
        .flat_map(|word| pieces(&word.to_string_lossy()))
        .filter(|piece| piece.contains(controls) || piece.contains('\u{fffd}'))
        .collect();
    if hostile.is_empty() {
        // Its own colours stay, unless a word of the command line could be among them in disguise.
        let _ = said.print();
    } else {
        hostile.sort_by_key(|piece| std::cmp::Reverse(piece.len()));
        let mut text = said.render().to_string();
        for piece in hostile {
            text = text.replace(&piece, &escaped(&piece));
        }
        if said.use_stderr() {
            say(text);
        } else {
            let _ = write(&text.into());
        }
    }
    u8::try_from(said.exit_code()).unwrap_or(2)
}

/// A word of the command line, and the parts of it that a message may quote.
fn pieces(word: &str) -> Vec<String> {
    let value = word.split_once('=').map_or(word, |(_, value)| value);
    let mut all = vec![word.to_owned(), value.to_owned()];
    all.extend(value.split(',').map(str::to_owned));
    all
}
