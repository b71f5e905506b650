//! Questions of a trace: who asks for what, who spoils pageblocks, who wakes kswapd and kcompactd, what a command does, what
//! slab caches would hold.

use crate::answer::{
    Answer, Drawn, GivenMoment, Text, View, Within, below_window, chosen, json, name_of, screen,
    window,
};
use crate::work::run;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use unfrag_lab::blame::text::{MOMENTS, Rows};
use unfrag_lab::blame::{self as lab_blame, Blame, svg};
use unfrag_lab::error::Result;
use unfrag_lab::find::recordings;
use unfrag_lab::input::MEMORY_BUDGET;
use unfrag_lab::profile::{self as lab_profile, Identity, Profile};
use unfrag_lab::report::window::COUNTED_FROM;
use unfrag_lab::slab as lab_slab;
use unfrag_lab::summary as lab_summary;
use unfrag_lab::wakes::{self as lab_wakes, Wakes, flame};
use unfrag_linux::Error;
use unfrag_linux::input_text::escaped_path;
use unfrag_linux::segments::Beginning;
use unfrag_slab::{Design, FirstAttempt, Rules};

/// Rows of each list that are shown.
const TOP: usize = 10;
/// Holders that are shown.
const HOLDERS: usize = 12;

/// What a trace alone tells.
#[pyfunction]
#[pyo3(signature = (path, release, within))]
pub fn summary(
    py: Python<'_>,
    path: PathBuf,
    release: Option<String>,
    within: (GivenMoment, GivenMoment),
) -> PyResult<Answer> {
    run(py, None, move |_| {
        let of = window(within);
        let streamed = recordings::streamed(&path, &[], release.as_deref(), &of, Beginning::Exact)?;
        let source = path.display().to_string();
        let found = lab_summary::summarize(streamed.input(MEMORY_BUDGET), &source)
            .map_err(|e| e.about(&path))?;
        let covered = streamed.covered.as_ref();
        let text = lab_summary::text::render(&found, TOP, &screen());
        let text = Text(below_window(covered, COUNTED_FROM, &text));
        Answer::new(&Within::of(covered, &found), text)
    })
}

/// Who holds the kernel memory that breaks up huge pages.
#[pyfunction]
#[pyo3(signature = (path, release, within))]
pub fn blame(
    py: Python<'_>,
    path: PathBuf,
    release: Option<String>,
    within: (GivenMoment, GivenMoment),
) -> PyResult<Answer> {
    run(py, None, move |_| {
        let of = window(within);
        let begins = Beginning::PageFlags;
        let streamed = recordings::streamed(&path, &[], release.as_deref(), &of, begins)?;
        let found = lab_blame::blame(streamed.input(MEMORY_BUDGET), &name_of(&path))
            .map_err(|e| e.about(&path))?;
        let covered = streamed.covered.as_ref();
        let rows = Rows {
            holders: HOLDERS,
            intervals: MOMENTS,
        };
        let text = lab_blame::text::render(&found, rows, &escaped_path(&path), &screen());
        let text = below_window(covered, COUNTED_FROM, &text);
        Ok(Answer {
            json: json(&Within::of(covered, &found))?,
            view: Box::new(Drawn {
                text,
                found,
                svg: |found: &Blame| Some(svg::render(found)),
            }),
        })
    })
}

/// Who has kswapd and kcompactd work, and who compacts.
#[pyfunction]
#[pyo3(signature = (path, release, within))]
pub fn wakes(
    py: Python<'_>,
    path: PathBuf,
    release: Option<String>,
    within: (GivenMoment, GivenMoment),
) -> PyResult<Answer> {
    run(py, None, move |_| {
        let of = window(within);
        let begins = Beginning::Recorded;
        let streamed = recordings::streamed(&path, &[], release.as_deref(), &of, begins)?;
        let found = lab_wakes::wakes(streamed.input(MEMORY_BUDGET), &name_of(&path))
            .map_err(|e| e.about(&path))?;
        let covered = streamed.covered.as_ref();
        let text = lab_wakes::text::render(&found, HOLDERS, &escaped_path(&path), &screen());
        let text = below_window(covered, COUNTED_FROM, &text);
        Ok(Answer {
            json: json(&Within::of(covered, &found))?,
            view: Box::new(Drawn {
                text,
                found,
                // A flame graph, where it is known how long anything worked.
                svg: |found: &Wakes| found.is_timed().then(|| flame::render(found)),
            }),
        })
    })
}

/// What a recorded command does to memory.
#[pyfunction]
#[pyo3(signature = (path, release, within))]
pub fn profile(
    py: Python<'_>,
    path: PathBuf,
    release: Option<String>,
    within: (GivenMoment, GivenMoment),
) -> PyResult<Answer> {
    run(py, None, move |_| {
        let of = window(within);
        let begins = Beginning::Exact;
        let (recording, covered) =
            recordings::recording(&path, &[], release.as_deref(), &of, begins)?;
        let identity = identity(&path)?;
        let found = Profile::of(&recording, &identity).map_err(|e| e.in_file(&path))?;
        let text = lab_profile::text::render(&found, &screen());
        let view = Profiled {
            text: below_window(Some(&covered), "", &text),
            toml: found.to_toml()?,
        };
        Answer::new(&Within::of(Some(&covered), &found), view)
    })
}

struct Profiled {
    text: String,
    toml: String,
}

impl View for Profiled {
    fn text(&self) -> String {
        self.text.clone()
    }
    fn toml(&self) -> Option<String> {
        Some(self.toml.clone())
    }
}

/// The identity of the recording in a file.
fn identity(path: &Path) -> Result<Identity> {
    let content = recordings::identity(path).map_err(|e| Error::from(e).in_file(path));
    Identity::of(&name_of(path), &mut content?).map_err(|e| e.in_file(path))
}

/// What SLAB, SLUB and SLQB would have held for the allocations of a trace.
#[pyfunction]
#[pyo3(signature = (path, allocators, rules, first_attempt, slub_max_order, slub_min_order, slub_min_objects, cpus, memory, release, within))]
#[allow(clippy::too_many_arguments)]
pub fn slab(
    py: Python<'_>,
    path: PathBuf,
    allocators: Vec<String>,
    rules: &str,
    first_attempt: Option<&str>,
    slub_max_order: Option<u8>,
    slub_min_order: Option<u8>,
    slub_min_objects: Option<u32>,
    cpus: Option<u16>,
    memory: u64,
    release: Option<String>,
    within: (GivenMoment, GivenMoment),
) -> PyResult<Answer> {
    let known = [
        ("slab", Design::Slab),
        ("slub", Design::Slub),
        ("slqb", Design::Slqb),
    ];
    let mut designs = vec![];
    for name in &allocators {
        let design = chosen("allocators", name, &known)?;
        if !designs.contains(&design) {
            designs.push(design);
        }
    }
    let eras = [("modern", Rules::MODERN), ("2.6.28", Rules::S2)];
    let mut rules = chosen("rules", rules, &eras)?;
    let attempts = [
        ("historic", FirstAttempt::Historic),
        ("if-plenty-free", FirstAttempt::IfPlentyFree),
        ("no-wait", FirstAttempt::NoWait),
        ("no-wake", FirstAttempt::NoWake),
        ("first-pass-only", FirstAttempt::FirstPassOnly),
    ];
    let slub = &mut rules.slub;
    if let Some(name) = first_attempt {
        slub.first_attempt = chosen("first_attempt", name, &attempts)?;
    }
    for (name, order) in [("max", slub_max_order), ("min", slub_min_order)] {
        if let Some(order @ 11..) = order {
            let text = format!("slub_{name}_order={order}: an order is from 0 to 10");
            return Err(PyValueError::new_err(text));
        }
    }
    if cpus.is_some_and(|n| !(1..=1024).contains(&n)) {
        return Err(PyValueError::new_err("cpus: from 1 to 1024"));
    }
    slub.max_order = slub_max_order.unwrap_or(slub.max_order);
    slub.min_order = slub_min_order.unwrap_or(slub.min_order);
    slub.min_objects = slub_min_objects.unwrap_or(slub.min_objects);
    if slub.min_order > slub.max_order {
        let (min, max) = (slub.min_order, slub.max_order);
        return Err(PyValueError::new_err(format!(
            "slub_min_order={min} is above the largest order, {max}: raise slub_max_order, or lower slub_min_order"
        )));
    }
    run(py, None, move |_| {
        let of = window(within);
        let begins = Beginning::Exact;
        let (recording, covered) =
            recordings::recording(&path, &[], release.as_deref(), &of, begins)?;
        let options = lab_slab::Options {
            designs,
            rules,
            cpus,
            memory,
        };
        let source = path.display().to_string();
        let found =
            lab_slab::replay(&recording, &source, &options).map_err(|e| e.in_file(&path))?;
        let text = lab_slab::text::render(&found, &screen());
        let text = Text(below_window(Some(&covered), "", &text));
        Answer::new(&Within::of(Some(&covered), &found), text)
    })
}
