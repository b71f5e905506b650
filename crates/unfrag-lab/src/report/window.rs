//! What an answer says of the window of time that it is about.
//!
//! Invariant: the command and Python say it in the same words: a line before the text, and `window` in the JSON. Nothing is said
//! where all was asked for.

use super::screen::Text;
use serde::Serialize;
use unfrag_linux::segments::{Covered, CoveredData};

/// What is said of events before a window, before the moment from which on they are read.
pub const COUNTED_FROM: &str = "Events before it are read, but not counted, from";

/// An answer as JSON, with the window that it is about, if one was chosen.
#[derive(Serialize)]
pub struct Within<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<CoveredData>,
    #[serde(flatten)]
    answer: &'a T,
}

impl<T> Within<'_, T> {
    /// An answer about what is covered.
    pub fn of<'a>(covered: Option<&Covered>, answer: &'a T) -> Within<'a, T> {
        Within {
            window: covered.and_then(Covered::data),
            answer,
        }
    }
}

/// The line that says what the window is, before an answer's text; none where all was asked for. `begins` says what begins
/// at page flags before it.
pub fn line(covered: Option<&Covered>, begins: &str) -> String {
    let sentence = covered.and_then(|c| c.sentence(begins));
    sentence.map_or(String::new(), |s| s + "\n")
}

/// An answer's text below that line.
pub fn below_line(covered: Option<&Covered>, begins: &str, text: &Text) -> Text {
    let mut out = Text::from(line(covered, begins));
    out.append(text);
    out
}
