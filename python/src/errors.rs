//! Errors of the laboratory as exceptions, with the same texts.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pyo3::create_exception!(
    unfrag,
    UnfragError,
    PyValueError,
    "Why a question cannot be answered: what is wrong, where, and the way out."
);

/// An error of the laboratory.
pub fn lab(e: impl Into<unfrag_lab::error::Error>) -> PyErr {
    UnfragError::new_err(e.into().to_string())
}
