//! What a question is answered with: what the command prints by `--json`, and views of it; and what questions have in common.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::Path;
use unfrag_lab::error::{Error as LabError, Result};
use unfrag_lab::report::screen::{Screen, Text as Screenful};
pub use unfrag_lab::report::window::Within;
use unfrag_lab::report::window::below_line;
use unfrag_linux::segments::{Covered, Moment, Window};

/// What an answer looks like. It is drawn when somebody looks.
pub trait View: Send + Sync {
    fn text(&self) -> String;
    fn html(&self) -> Option<String> {
        None
    }
    fn svg(&self) -> Option<String> {
        None
    }
    fn toml(&self) -> Option<String> {
        None
    }
}

/// An answer: its JSON, and what it looks like.
#[pyclass(frozen, module = "unfrag")]
pub struct Answer {
    /// The answer as the command prints it by `--json`.
    #[pyo3(get)]
    pub json: String,
    pub view: Box<dyn View>,
}

#[pymethods]
impl Answer {
    /// The answer as the command prints it on a screen.
    fn text(&self) -> String {
        self.view.text()
    }

    /// One HTML page that needs no network, where there is one.
    fn html(&self) -> Option<String> {
        self.view.html()
    }

    /// A still picture, where there is one.
    fn svg(&self) -> Option<String> {
        self.view.svg()
    }

    /// A file of TOML, where there is one.
    fn toml(&self) -> Option<String> {
        self.view.toml()
    }
}

impl Answer {
    /// An answer and its view.
    pub fn new(value: &impl serde::Serialize, view: impl View + 'static) -> Result<Answer> {
        Ok(Answer {
            json: json(value)?,
            view: Box::new(view),
        })
    }
}

/// A value as JSON.
///
/// # Errors
/// If it is none that JSON has.
pub fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| LabError::contradiction(e.to_string()))
}

/// A view that is text alone.
pub struct Text(pub String);

impl View for Text {
    fn text(&self) -> String {
        self.0.clone()
    }
}

/// A view that is text, and a picture of what was found.
pub struct Drawn<T> {
    pub text: String,
    pub found: T,
    /// The picture, where there is one of it.
    pub svg: fn(&T) -> Option<String>,
}

impl<T: Send + Sync> View for Drawn<T> {
    fn text(&self) -> String {
        self.text.clone()
    }
    fn svg(&self) -> Option<String> {
        (self.svg)(&self.found)
    }
}

/// What an answer is drawn for as text.
pub fn screen() -> Screen {
    Screen {
        width: 110,
        ..Screen::default()
    }
}

/// Names of what may be chosen, in an error.
pub fn chosen<T: Copy>(what: &str, name: &str, all: &[(&str, T)]) -> PyResult<T> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
        PyValueError::new_err(format!(
            "{what}={name:?}: choose one of {}",
            names.join(", ")
        ))
    })
}

/// What an input is called in an answer.
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A moment as Python gives it: whether it is a date, and nanoseconds since 1970, or else after the recording's beginning.
pub type GivenMoment = Option<(bool, u64)>;

/// A window as Python gives it.
pub fn window((from, to): (GivenMoment, GivenMoment)) -> Window {
    let moment = |(is_date, ns)| match is_date {
        true => Moment::At(ns),
        false => Moment::After(ns),
    };
    Window {
        from: from.map(moment),
        to: to.map(moment),
        ..Window::default()
    }
}

/// An answer's text below what is said of its window. `begins` says what begins at page flags before that.
pub fn below_window(covered: Option<&Covered>, begins: &str, text: &Screenful) -> String {
    below_line(covered, begins, text).into_string()
}
