//! Questions of a model: a replay, a scenario, a published experiment.

use crate::answer::{
    Answer, GivenMoment, Text, View, Within, below_window, chosen, json, name_of, screen, window,
};
use crate::work::{Reporter, run};
use pyo3::prelude::*;
use std::path::PathBuf;
use unfrag_lab::era::settings::Setting;
use unfrag_lab::error::{Asked, Error as LabError, Result};
use unfrag_lab::find::recordings;
use unfrag_lab::replay::view::detail::Detail;
use unfrag_lab::replay::view::said::Told;
use unfrag_lab::replay::view::{html, observed, svg, terminal};
use unfrag_lab::replay::{self as lab_replay, Watch};
use unfrag_lab::{experiment as lab_experiment, simulate as lab_simulate};
use unfrag_linux::segments::{Beginning, Covered};
use unfrag_machine::scenario::Outcome;

/// What begins at page flags before a window.
const BEGINS: &str = "The replay, and what it counts, begins at";

/// Tells how far a replay is.
struct Watcher<'a>(&'a Reporter);

impl Watch for Watcher<'_> {
    fn progress(&mut self, done: u64, total: u64) {
        self.0.at(done, total);
    }

    fn wants_snapshots(&self) -> bool {
        false
    }
}

/// Settings as they were given: a value, or `VALUE@SECONDS`.
fn timed(settings: &[(String, String)]) -> Result<Vec<Setting>> {
    let all = settings
        .iter()
        .map(|(name, value)| Setting::new(name, value));
    all.collect::<std::result::Result<_, _>>()
        .map_err(|e| LabError::option(Asked::Setting, e))
}

/// Replays a recording.
#[pyfunction]
#[pyo3(signature = (path, kernels, settings, recorded, memory, mode, start, reclaim, compaction, members, snapshots, release, any_share, memory_budget, within, progress))]
#[allow(clippy::too_many_arguments)]
pub fn replay(
    py: Python<'_>,
    path: PathBuf,
    kernels: Vec<String>,
    settings: Vec<(String, String)>,
    recorded: Vec<(String, String)>,
    memory: Option<u64>,
    mode: &str,
    start: &str,
    reclaim: &str,
    compaction: Option<&str>,
    members: Option<u32>,
    snapshots: Vec<PathBuf>,
    release: Option<String>,
    any_share: bool,
    memory_budget: u64,
    within: (GivenMoment, GivenMoment),
    progress: Option<Py<PyAny>>,
) -> PyResult<Answer> {
    use lab_replay::{CompactionChoice, Mode, Options, ReclaimChoice, StartChoice};
    let reclaims = [
        ("modelled", ReclaimChoice::Modelled),
        ("given", ReclaimChoice::Given),
    ];
    let compactions = [
        ("modelled", CompactionChoice::Modelled),
        ("given", CompactionChoice::Given),
        ("none", CompactionChoice::None),
    ];
    let starts = [
        ("auto", StartChoice::Auto),
        ("exact", StartChoice::Exact),
        ("occupancy", StartChoice::Occupancy),
        ("counts", StartChoice::Counts),
        ("boot", StartChoice::Boot),
    ];
    let options = Options {
        kernels,
        set: vec![],
        recorded: vec![],
        memory,
        mode: chosen(
            "mode",
            mode,
            &[("predict", Mode::Predict), ("observe", Mode::Observe)],
        )?,
        start: chosen("start", start, &starts)?,
        reclaim: chosen("reclaim", reclaim, &reclaims)?,
        compaction: compaction
            .map(|name| chosen("compaction", name, &compactions))
            .transpose()?,
        members,
        any_share,
    };
    run(py, progress, move |reporter| {
        let options = Options {
            set: timed(&settings)?,
            recorded: timed(&recorded)?,
            ..options
        };
        let name = name_of(&path);
        let streamed = recordings::streamed(
            &path,
            &snapshots,
            release.as_deref(),
            &window(within),
            Beginning::PageFlags,
        )?;
        let input = streamed.input(memory_budget);
        let report = lab_replay::replay(input, &name, &options, &mut Watcher(reporter))
            .map_err(|e| e.about(&path))?;
        let covered = streamed.covered.clone();
        Ok(Answer {
            json: json(&Within::of(covered.as_ref(), &Told::of(&report)))?,
            view: Box::new(Replay { report, covered }),
        })
    })
}

struct Replay {
    report: lab_replay::Report,
    covered: Option<Covered>,
}

impl View for Replay {
    fn text(&self) -> String {
        let screen = screen();
        let text = match self.report.observe {
            Some(_) => observed::render(&self.report, screen.width),
            None => terminal::render(&self.report, &screen, Detail::Short),
        };
        below_window(self.covered.as_ref(), BEGINS, &text)
    }
    fn html(&self) -> Option<String> {
        Some(html::render(&self.report, Detail::Short))
    }
    fn svg(&self) -> Option<String> {
        Some(svg::render(&self.report))
    }
}

/// Runs a scenario file.
#[pyfunction]
#[pyo3(signature = (scenario, kernel, settings, machine, seed, oom_killer, costs, progress))]
#[allow(clippy::too_many_arguments)]
pub fn simulate(
    py: Python<'_>,
    scenario: PathBuf,
    kernel: Option<String>,
    settings: Vec<(String, String)>,
    machine: Option<String>,
    seed: u64,
    oom_killer: bool,
    costs: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Answer> {
    run(py, progress, move |reporter| {
        let options = lab_simulate::file::Options {
            kernel: kernel.as_deref(),
            set: &settings,
            machine: machine.as_deref(),
            seed,
            oom_killer,
            costs: costs.as_deref(),
        };
        let outcome =
            lab_simulate::file::run(&scenario, &options, |done, all| reporter.at(done, all))?;
        Ok(Answer {
            json: json(&outcome)?,
            view: Box::new(Simulation(outcome)),
        })
    })
}

struct Simulation(Outcome);

impl View for Simulation {
    fn text(&self) -> String {
        lab_simulate::text::render(&self.0).into_string()
    }
    fn html(&self) -> Option<String> {
        Some(lab_simulate::html::render(&self.0))
    }
}

/// Runs a published experiment.
#[pyfunction]
#[pyo3(signature = (name, kernels, machines, runs, seed, costs, progress))]
#[allow(clippy::too_many_arguments)]
pub fn experiment(
    py: Python<'_>,
    name: &str,
    kernels: Vec<String>,
    machines: Vec<String>,
    runs: Option<u32>,
    seed: u64,
    costs: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Answer> {
    use lab_experiment::{Name, Options};
    let all = Name::ALL.map(|name| (name.as_str(), name));
    let name = chosen("name", name, &all)?;
    run(py, progress, move |reporter| {
        let options = Options {
            kernels,
            machines,
            runs: runs.unwrap_or(name.default_runs()),
            seed,
            costs: costs
                .as_deref()
                .map(lab_simulate::file::costs)
                .transpose()?,
        };
        let report = lab_experiment::run(name, &options, &|done, total| reporter.at(done, total))?;
        let text = lab_experiment::text::render(name, &report);
        Answer::new(&report, Text(text.into_string()))
    })
}
