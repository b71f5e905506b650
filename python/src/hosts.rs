//! Questions of a host's memory at a moment, and of its log.

use crate::answer::{
    Answer, GivenMoment, Text, View, Within, below_window, json, name_of, screen, window,
};
use crate::work::run;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::PathBuf;
use unfrag_lab::doctor::gate::answer::Room;
use unfrag_lab::doctor::gate::{After, Need, Needs, huge_page_rooms, judge, render};
use unfrag_lab::doctor::judged_settings::judged;
use unfrag_lab::doctor::{self as lab_doctor, Diagnosis, examine, first_screen};
use unfrag_lab::error::Result;
use unfrag_lab::find::evidence::{Examine, evidence, is_own};
use unfrag_lab::find::moments;
use unfrag_lab::report::screen::Text as Screenful;
use unfrag_lab::{explain as lab_explain, inspect as lab_inspect};
use unfrag_linux::Error;
use unfrag_linux::input_text::escaped_path;
use unfrag_linux::segments::Covered;

/// Examines a host, a copy of its procfs, or a snapshot; says whether it can give what is needed.
#[pyfunction]
#[pyo3(signature = (path, snapshot, seconds, need, huge, after, within))]
#[allow(clippy::too_many_arguments)]
pub fn doctor(
    py: Python<'_>,
    path: PathBuf,
    snapshot: Option<String>,
    seconds: f64,
    need: Vec<String>,
    huge: Option<u64>,
    after: Vec<String>,
    within: (GivenMoment, GivenMoment),
) -> PyResult<Answer> {
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err(PyValueError::new_err(format!(
            "seconds={seconds}: from 0 to 86400"
        )));
    }
    let wanted = need.iter().map(|text| text.parse::<Need>());
    let wanted: std::result::Result<Vec<Need>, String> = wanted.collect();
    let mut wanted = wanted.map_err(|e| PyValueError::new_err(format!("need: {e}")))?;
    if huge == Some(0) {
        return Err(PyValueError::new_err(
            "huge=0: a count of huge pages is from 1 on",
        ));
    }
    if wanted.is_empty() && huge.is_none() && !after.is_empty() {
        let text = "after= is about a need, and none is given: add need=, such as need=\"200x32M\", or huge=64";
        return Err(PyValueError::new_err(text));
    }
    let after = match after.is_empty() {
        true => After::default(),
        false => after
            .join(",")
            .parse::<After>()
            .map_err(|e| PyValueError::new_err(format!("after: {e}")))?,
    };
    run(py, None, move |_| {
        let what = Examine {
            snapshot: snapshot.as_deref(),
            seconds,
            window: window(within),
        };
        let (evidence, recording) = evidence(&path, &what)?;
        let mut examined = examine(&evidence).map_err(|e| e.inside(&path))?;
        if let Some(count) = huge {
            wanted.push(Need::new(count, examined.diagnosis.huge_page_bytes));
        }
        let needs = match wanted.is_empty() {
            true => None,
            false => Some(judge(&evidence, &examined, &wanted, after)?),
        };
        let has_trace = recording.as_ref().is_some_and(|r| !r.events.is_empty());
        if let Some(recording) = recording {
            let diagnosis = &mut examined.diagnosis;
            lab_doctor::predict::predict(diagnosis, &recording, &name_of(&path))?;
            diagnosis.judged_settings = judged(diagnosis);
        }
        let rooms = huge_page_rooms(&evidence, &examined);
        let covered = evidence.covered;
        let whole = Whole {
            needs: needs.as_ref(),
            diagnosis: &examined.diagnosis,
        };
        Ok(Answer {
            json: json(&Within::of(covered.as_ref(), &whole))?,
            view: Box::new(Examination {
                path,
                examined,
                needs,
                rooms,
                has_trace,
                covered,
            }),
        })
    })
}

/// A diagnosis, and the answer to the needs beside it.
#[derive(Serialize)]
struct Whole<'a> {
    needs: Option<&'a Needs>,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
}

struct Examination {
    path: PathBuf,
    examined: lab_doctor::Examined,
    needs: Option<Needs>,
    rooms: Option<[Room; 4]>,
    /// Whether what was examined is a recording with a trace.
    has_trace: bool,
    covered: Option<Covered>,
}

impl Examination {
    fn first_screen(&self) -> Screenful {
        let is_now = is_own(&self.path);
        let command = match is_now {
            true => "unfrag doctor".to_owned(),
            false => format!("unfrag doctor {}", escaped_path(&self.path)),
        };
        let who = format!("unfrag blame {}", escaped_path(&self.path));
        let asked = first_screen::Asked {
            is_now,
            command: &command,
            who: self.has_trace.then_some(&who),
            has_tables: false,
            rooms: self.rooms,
        };
        first_screen::render(&self.examined.diagnosis, asked, &screen())
    }
}

impl View for Examination {
    fn text(&self) -> String {
        let text = match &self.needs {
            Some(needs) => render(needs).into(),
            None => self.first_screen(),
        };
        below_window(self.covered.as_ref(), "", &text)
    }
    fn html(&self) -> Option<String> {
        Some(lab_doctor::map::html(&self.examined))
    }
}

/// The indexes of fragmentation.
#[pyfunction]
#[pyo3(signature = (path, snapshot, within))]
pub fn inspect(
    py: Python<'_>,
    path: PathBuf,
    snapshot: Option<String>,
    within: (GivenMoment, GivenMoment),
) -> PyResult<Answer> {
    run(py, None, move |_| {
        let found = moments::moments(&path, snapshot.as_deref(), None, &window(within))?;
        let covered = found.covered.as_ref();
        let text = lab_inspect::text::render(&found, &screen());
        let text = Text(below_window(covered, "", &text));
        Answer::new(&Within::of(covered, &found), text)
    })
}

/// What a kernel log is read from.
#[derive(FromPyObject)]
pub enum Log {
    /// The text itself.
    Bytes(Vec<u8>),
    /// A file.
    Path(PathBuf),
}

/// Why allocations of a kernel log failed.
#[pyfunction]
#[pyo3(signature = (log))]
pub fn explain(py: Python<'_>, log: Log) -> PyResult<Answer> {
    run(py, None, move |_| {
        let answer = match &log {
            Log::Path(path) => {
                let file = File::open(path).map_err(|e| Error::from(e).in_file(path))?;
                explained(file).map_err(|e| e.inside(path))?
            }
            Log::Bytes(text) => explained(text.as_slice())?,
        };
        let text = lab_explain::text::render(&answer, screen().width);
        Answer::new(&answer, Text(text.into_string()))
    })
}

/// Explains a text. Bytes without a report would read as a log in which nothing failed, so a recording is refused.
fn explained(mut text: impl Read) -> Result<lab_explain::Explanation> {
    let mut head = vec![];
    let begin = text.by_ref().take(16).read_to_end(&mut head);
    begin.map_err(Error::from)?;
    let is_recording = BEGINNINGS.iter().any(|b| head.starts_with(b));
    if is_recording {
        let error =
            Error::unsupported("it is a recording or an archive, which holds no kernel log");
        return Err(error.help("ask of it: unfrag.summary(path)").into());
    }
    lab_explain::explain(Cursor::new(head).chain(text))
}

/// What recordings begin with: an .unfrag file, a trace of trace-cmd, one of perf.
const BEGINNINGS: [&[u8]; 3] = [b"PK\x03\x04", b"\x17\x08Dtracing", b"PERFILE2"];
