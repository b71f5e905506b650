//! The questions: each answered with what the command prints by `--json`, and with views of it.

use crate::work::{Reporter, run};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fs::File;
use std::path::{Path, PathBuf};
use unfrag_lab::doctor::{self as lab_doctor, examine};
use unfrag_lab::era::settings::Setting;
use unfrag_lab::error::{Asked, Error as LabError, Result};
use unfrag_lab::find::evidence::{Examine, evidence};
use unfrag_lab::find::{moments, recordings};
use unfrag_lab::replay::view::detail::Detail;
use unfrag_lab::replay::view::said::Told;
use unfrag_lab::replay::view::{html, observed, svg, terminal};
use unfrag_lab::replay::{self as lab_replay, Watch};
use unfrag_lab::report::screen::Screen;
use unfrag_lab::{
    experiment as lab_experiment, explain as lab_explain, inspect as lab_inspect,
    simulate as lab_simulate,
};
use unfrag_linux::segments::{Beginning, Window};
use unfrag_machine::scenario::Outcome;

/// What an answer looks like. It is drawn when somebody looks.
trait View: Send + Sync {
    fn text(&self) -> String;
    fn html(&self) -> Option<String> {
        None
    }
    fn svg(&self) -> Option<String> {
        None
    }
}

/// An answer: its JSON, and what it looks like.
#[pyclass(frozen, module = "unfrag")]
pub struct Answer {
    /// The answer as the command prints it by `--json`.
    #[pyo3(get)]
    json: String,
    view: Box<dyn View>,
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
}

impl Answer {
    fn new(value: &impl serde::Serialize, view: impl View + 'static) -> Result<Answer> {
        Ok(Answer {
            json: json(value)?,
            view: Box::new(view),
        })
    }
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| LabError::contradiction(e.to_string()))
}

/// Names of what may be chosen, in an error.
fn chosen<T: Copy>(what: &str, name: &str, all: &[(&str, T)]) -> PyResult<T> {
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
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

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
#[pyo3(signature = (path, kernels, settings, recorded, memory, mode, start, reclaim, compaction, members, snapshots, release, any_share, memory_budget, progress))]
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
        let all = Window::default();
        let streamed = recordings::streamed(
            &path,
            &snapshots,
            release.as_deref(),
            &all,
            Beginning::PageFlags,
        )?;
        let input = streamed.input(memory_budget);
        let report = lab_replay::replay(input, &name, &options, &mut Watcher(reporter))
            .map_err(|e| e.about(&path))?;
        Ok(Answer {
            json: json(&Told::of(&report))?,
            view: Box::new(Replay(report)),
        })
    })
}

struct Replay(lab_replay::Report);

impl View for Replay {
    fn text(&self) -> String {
        let screen = screen();
        if self.0.observe.is_some() {
            return observed::render(&self.0, screen.width).into_string();
        }
        terminal::render(&self.0, &screen, Detail::Short).into_string()
    }
    fn html(&self) -> Option<String> {
        Some(html::render(&self.0, Detail::Short))
    }
    fn svg(&self) -> Option<String> {
        Some(svg::render(&self.0))
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

/// What an answer is drawn for as text.
fn screen() -> Screen {
    Screen {
        width: 110,
        ..Screen::default()
    }
}

/// A view that is text alone.
struct Text(String);

impl View for Text {
    fn text(&self) -> String {
        self.0.clone()
    }
}

/// Examines a host, a copy of its procfs, or a snapshot.
#[pyfunction]
#[pyo3(signature = (path, snapshot, seconds))]
pub fn doctor(
    py: Python<'_>,
    path: PathBuf,
    snapshot: Option<String>,
    seconds: f64,
) -> PyResult<Answer> {
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err(PyValueError::new_err(format!(
            "seconds={seconds}: from 0 to 86400"
        )));
    }
    run(py, None, move |_| {
        let what = Examine {
            snapshot: snapshot.as_deref(),
            seconds,
            window: Window::default(),
        };
        let (evidence, recording) = evidence(&path, &what)?;
        let mut examined = examine(&evidence).map_err(|e| e.inside(&path))?;
        if let Some(recording) = recording {
            let diagnosis = &mut examined.diagnosis;
            lab_doctor::predict::predict(diagnosis, &recording, &name_of(&path))?;
        }
        Ok(Answer {
            json: json(&examined.diagnosis)?,
            view: Box::new(Examination(examined)),
        })
    })
}

struct Examination(lab_doctor::Examined);

impl View for Examination {
    fn text(&self) -> String {
        lab_doctor::text::render(&self.0.diagnosis, &screen()).into_string()
    }
    fn html(&self) -> Option<String> {
        Some(lab_doctor::map::html(&self.0))
    }
}

/// The indexes of fragmentation.
#[pyfunction]
#[pyo3(signature = (path, snapshot))]
pub fn inspect(py: Python<'_>, path: PathBuf, snapshot: Option<String>) -> PyResult<Answer> {
    run(py, None, move |_| {
        let found = moments::moments(&path, snapshot.as_deref(), None, &Window::default())?;
        let text = lab_inspect::text::render(&found, &screen());
        Answer::new(&found, Text(text.into_string()))
    })
}

/// Why allocations of a kernel log failed: of a file, or of the text itself.
#[pyfunction]
#[pyo3(signature = (log, is_path))]
pub fn explain(py: Python<'_>, log: String, is_path: bool) -> PyResult<Answer> {
    run(py, None, move |_| {
        let answer = if is_path {
            let path = Path::new(&log);
            let file = File::open(path).map_err(|e| unfrag_linux::Error::from(e).in_file(path))?;
            lab_explain::explain(file).map_err(|e| e.inside(path))?
        } else {
            lab_explain::explain(log.as_bytes())?
        };
        let text = lab_explain::text::render(&answer, screen().width);
        Answer::new(&answer, Text(text.into_string()))
    })
}
