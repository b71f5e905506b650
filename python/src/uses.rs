//! Questions of what memory is used for: where it is, in how many frames it lies, how long large blocks last.

use crate::answer::{Answer, Drawn, GivenMoment, Text, Within, below_window, json, screen, window};
use crate::work::run;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use unfrag_lab::account::answer::Account;
use unfrag_lab::account::{svg, text as account_text};
use unfrag_lab::doctor::gate::Need;
use unfrag_lab::find::account::{Asked, accounted};
use unfrag_lab::find::days::foretold;
use unfrag_lab::forecast::text as forecast_text;
use unfrag_lab::frames::answer::{self as lab_frames, Of};
use unfrag_lab::frames::text as frames_text;
use unfrag_lab::geometry::PAGE_SIZES;

/// Where the memory is, every frame once, and what no counter of the kernel has.
#[pyfunction]
#[pyo3(signature = (path, later, snapshots, every, page_size, within))]
pub fn account(
    py: Python<'_>,
    path: PathBuf,
    later: Option<PathBuf>,
    snapshots: Vec<String>,
    every: Option<f64>,
    page_size: Option<u64>,
    within: (GivenMoment, GivenMoment),
) -> PyResult<Answer> {
    if let Some(seconds) = every.filter(|s| !(0.01..=86_400.0).contains(s)) {
        let text = format!("every={seconds}: from 0.01 to 86400 seconds");
        return Err(PyValueError::new_err(text));
    }
    if every.is_some() && (later.is_some() || !snapshots.is_empty()) {
        let text = "every= looks at this host twice: leave later= and snapshots= out";
        return Err(PyValueError::new_err(text));
    }
    let page_size = checked(page_size)?;
    run(py, None, move |_| {
        let (found, covered) = accounted(&Asked {
            path: &path,
            later: later.as_deref(),
            snapshots: &snapshots,
            every,
            window: window(within),
            page_size,
        })?;
        let text = account_text::render(&found, false, &screen());
        Ok(Answer {
            json: json(&Within::of(covered.as_ref(), &found))?,
            view: Box::new(Drawn {
                text: below_window(covered.as_ref(), "", &text),
                found: found.account,
                svg: |account: &Account| Some(svg::render(account)),
            }),
        })
    })
}

/// Whose memory it is.
#[derive(FromPyObject)]
pub enum Whose {
    /// A process, by its number.
    Process(u32),
    /// A cgroup, by its path or name.
    Group(PathBuf),
}

/// In how many frames the memory of a process or a cgroup lies, and what huge pages could be made of it.
#[pyfunction]
#[pyo3(signature = (of, proc))]
pub fn frames(py: Python<'_>, of: Whose, proc: PathBuf) -> PyResult<Answer> {
    run(py, None, move |_| {
        let of = match &of {
            Whose::Process(pid) => Of::Process(*pid),
            Whose::Group(path) => Of::Group(path),
        };
        let found = lab_frames::frames(&proc, &of)?;
        let text = frames_text::render(&found, false, &screen());
        Answer::new(&found, Text(text.into_string()))
    })
}

/// How long until a need of large blocks fails.
#[pyfunction]
#[pyo3(signature = (path, need, page_size, seed, within))]
pub fn forecast(
    py: Python<'_>,
    path: PathBuf,
    need: &str,
    page_size: Option<u64>,
    seed: u64,
    within: (GivenMoment, GivenMoment),
) -> PyResult<Answer> {
    let need: Need = need
        .parse()
        .map_err(|e| PyValueError::new_err(format!("need: {e}")))?;
    let page_size = checked(page_size)?;
    run(py, None, move |_| {
        let (found, covered) = foretold(&path, &window(within), need, page_size, seed)?;
        let covered = covered.as_ref();
        let text = forecast_text::render(&found, &screen());
        let text = Text(below_window(covered, "", &text));
        Answer::new(&Within::of(covered, &found), text)
    })
}

/// A page size that hosts have.
fn checked(page_size: Option<u64>) -> PyResult<Option<u64>> {
    match page_size {
        Some(n) if !PAGE_SIZES.contains(&n) => Err(PyValueError::new_err(format!(
            "page_size={n}: choose one of 4096, 8192, 16384, 65536"
        ))),
        other => Ok(other),
    }
}
