//! The laboratory of unfrag as a Python package.
//!
//! This extension answers with what the command prints by `--json`, as text, and with views of it. The Python side makes
//! objects of that (`python/unfrag`). Events go to Arrow without a copy.
//!
//! - `work`: long work without the interpreter lock, with progress, and stopped by Ctrl-C. `errors`: exceptions.
//! - `answer`: what a question is answered with. `questions`: replay, simulate, experiment. `hosts`: doctor, inspect, explain.
//!   `traces`: summary, blame, wakes, profile, slab. `uses`: account, frames, forecast. `making`: recordings that are made.
//! - `events`, `arrow`: recordings and their events.

mod answer;
mod arrow;
mod errors;
mod events;
mod hosts;
mod making;
mod questions;
mod traces;
mod uses;
mod work;

use pyo3::prelude::*;

/// The extension of the package `unfrag`.
#[pymodule]
fn _unfrag(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("UnfragError", m.py().get_type::<errors::UnfragError>())?;
    m.add_class::<events::Recording>()?;
    m.add_class::<arrow::Stream>()?;
    m.add_class::<answer::Answer>()?;
    m.add_function(wrap_pyfunction!(questions::replay, m)?)?;
    m.add_function(wrap_pyfunction!(questions::simulate, m)?)?;
    m.add_function(wrap_pyfunction!(questions::experiment, m)?)?;
    m.add_function(wrap_pyfunction!(hosts::doctor, m)?)?;
    m.add_function(wrap_pyfunction!(hosts::inspect, m)?)?;
    m.add_function(wrap_pyfunction!(hosts::explain, m)?)?;
    m.add_function(wrap_pyfunction!(traces::summary, m)?)?;
    m.add_function(wrap_pyfunction!(traces::blame, m)?)?;
    m.add_function(wrap_pyfunction!(traces::wakes, m)?)?;
    m.add_function(wrap_pyfunction!(traces::profile, m)?)?;
    m.add_function(wrap_pyfunction!(traces::slab, m)?)?;
    m.add_function(wrap_pyfunction!(uses::account, m)?)?;
    m.add_function(wrap_pyfunction!(uses::frames, m)?)?;
    m.add_function(wrap_pyfunction!(uses::forecast, m)?)?;
    m.add_function(wrap_pyfunction!(making::import_trace, m)?)?;
    #[cfg(target_os = "linux")]
    {
        m.add_function(wrap_pyfunction!(making::record, m)?)?;
        m.add_function(wrap_pyfunction!(making::guard, m)?)?;
    }
    let ends = wrap_pyfunction!(work::ends, m)?;
    m.py().import("atexit")?.call_method1("register", (ends,))?;
    Ok(())
}
