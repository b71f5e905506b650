//! Errors of the laboratory as exceptions, with the same texts.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::io::ErrorKind;
use unfrag_lab::error::{Cause, Error};
use unfrag_linux::error::Cause as InputCause;

pyo3::create_exception!(
    unfrag,
    UnfragError,
    PyValueError,
    "Why a question cannot be answered: what is wrong, where, and the way out."
);

/// An error of the laboratory. Where Python has a kind of its own, it is of both.
pub fn lab(e: impl Into<Error>) -> PyErr {
    let e = e.into();
    let text = e.to_string();
    let class = match &e.cause {
        Cause::Input(input) => match &input.cause {
            InputCause::Io(io) if io.kind() == ErrorKind::NotFound => Some("MissingFileError"),
            InputCause::Io(io) if io.kind() == ErrorKind::PermissionDenied => {
                Some("ForbiddenError")
            }
            _ => None,
        },
        _ => None,
    };
    match class {
        None => UnfragError::new_err(text),
        Some(class) => of_class(class, text),
    }
}

/// A name that is not there, as a `KeyError` too.
pub fn unknown_name(text: String) -> PyErr {
    of_class("UnknownNameError", text)
}

/// An exception of the module `unfrag.errors`.
fn of_class(class: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("unfrag.errors")
            .and_then(|m| m.getattr(class))
            .and_then(|class| class.call1((&text,)));
        made.map_or_else(|e| e, PyErr::from_value)
    })
}
