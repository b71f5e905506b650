//! The laboratory of unfrag as a Python package.
//!
//! This extension answers with what the command prints by `--json`, as text, and with views of it. The Python side makes
//! objects of that (`python/unfrag`). Events go to Arrow without a copy.
//!
//! - `work`: long work without the interpreter lock, with progress, and stopped by Ctrl-C. `errors`: exceptions.
//! - `questions`: replay, simulate, doctor and the others. `events`, `arrow`: recordings and their events.

mod arrow;
mod errors;
mod events;
mod questions;
mod work;

use pyo3::prelude::*;

/// The extension of the package `unfrag`.
#[pymodule]
fn _unfrag(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("UnfragError", m.py().get_type::<errors::UnfragError>())?;
    m.add_class::<events::Recording>()?;
    m.add_class::<arrow::Stream>()?;
    m.add_class::<questions::Answer>()?;
    m.add_function(wrap_pyfunction!(questions::replay, m)?)?;
    m.add_function(wrap_pyfunction!(questions::simulate, m)?)?;
    m.add_function(wrap_pyfunction!(questions::experiment, m)?)?;
    m.add_function(wrap_pyfunction!(questions::doctor, m)?)?;
    m.add_function(wrap_pyfunction!(questions::inspect, m)?)?;
    m.add_function(wrap_pyfunction!(questions::explain, m)?)?;
    Ok(())
}
