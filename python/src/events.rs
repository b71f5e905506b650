//! Recordings, and their events as tables.

use crate::arrow::{Stream, borrowed};
use crate::errors::UnfragError;
use crate::work::run;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Int8Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt64Type,
};
use arrow_array::{ArrayRef, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use unfrag_lab::find::recordings;
use unfrag_linux::recording::{self, EventTable, FieldKind};
use unfrag_linux::segments::Window;

/// A recording: events, snapshots of procfs, and what is known of the host.
#[pyclass(frozen, module = "unfrag")]
pub struct Recording {
    inner: Arc<recording::Recording>,
    path: PathBuf,
}

#[pymethods]
impl Recording {
    /// Reads an .unfrag file, a directory of segments, or a raw trace with `snapshots` beside it.
    #[new]
    #[pyo3(signature = (path, *, snapshots=vec![], release=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        snapshots: Vec<PathBuf>,
        release: Option<String>,
    ) -> PyResult<Recording> {
        let from = path.clone();
        let inner = run(py, None, move |_| {
            recordings::recording(&from, &snapshots, release.as_deref(), &Window::default())
        })?;
        Ok(Recording {
            inner: Arc::new(inner),
            path,
        })
    }

    /// Where it was read from.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// `uname -r` of the recorded kernel; empty if unknown.
    #[getter]
    fn kernel_release(&self) -> &str {
        &self.inner.meta.kernel_release
    }

    /// Bytes in a page.
    #[getter]
    fn page_size(&self) -> u32 {
        self.inner.meta.page_size
    }

    /// CPUs of the host.
    #[getter]
    fn cpus(&self) -> u32 {
        self.inner.meta.cpus
    }

    /// The format that it was read from.
    #[getter]
    fn source(&self) -> &str {
        &self.inner.meta.source
    }

    /// Further facts of the recorder, by name.
    #[getter]
    fn facts(&self) -> BTreeMap<String, String> {
        self.inner.meta.facts.clone()
    }

    /// Names of the snapshots, in the order of time.
    #[getter]
    fn snapshots(&self) -> Vec<String> {
        self.inner
            .snapshots
            .iter()
            .map(|s| s.name.clone())
            .collect()
    }

    /// A file of a snapshot, such as `buddyinfo`.
    fn snapshot(&self, name: &str, file: &str) -> PyResult<Vec<u8>> {
        let snapshot = self.inner.snapshots.iter().find(|s| s.name == name);
        let snapshot =
            snapshot.ok_or_else(|| PyKeyError::new_err(format!("no snapshot {name:?}")))?;
        let content = snapshot.file(file);
        let content = content
            .ok_or_else(|| PyKeyError::new_err(format!("snapshot {name} has no file {file:?}")))?;
        Ok(content.to_vec())
    }

    /// Kinds of events, with the number of each.
    #[getter]
    fn kinds(&self) -> Vec<(String, usize)> {
        let tables = self.inner.events.tables.iter();
        tables
            .map(|t| (full_name(t), t.columns.first().map_or(0, Vec::len)))
            .collect()
    }

    fn __len__(&self) -> usize {
        self.inner.events.time.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<unfrag.Recording {}: {} events, {} snapshots, {} CPUs, kernel {}>",
            self.path.display(),
            self.inner.events.time.len(),
            self.inner.snapshots.len(),
            self.inner.meta.cpus,
            self.inner.meta.kernel_release,
        )
    }

    /// All events: time in nanoseconds of the trace clock, CPU, name and process id of the task, flags, preemption count, and
    /// kind. Time, CPU, flags and preemption counts are not copied.
    fn events(&self) -> PyResult<Stream> {
        let (r, e) = (&self.inner, &self.inner.events);
        let comms = r.tasks.iter().map(|t| t.comm.clone()).collect();
        let pid = |task: &u32| r.tasks.get(*task as usize).map_or(0, |t| t.pid);
        let pids: PrimitiveArray<Int32Type> = e.task.iter().map(pid).collect();
        // The numbers are small, so that they read the same with a sign, which pandas wants of them.
        let task = primitive::<Int32Type, _>(&e.task, r);
        let kind = primitive::<Int8Type, _>(&e.kind, r);
        let kinds = e.tables.iter().map(full_name).collect();
        Stream::new(vec![
            ("time".into(), column::<UInt64Type, _>(&e.time, r)),
            ("cpu".into(), column::<UInt16Type, _>(&e.cpu, r)),
            ("comm".into(), named(&task, comms)?),
            ("pid".into(), Arc::new(pids)),
            ("flags".into(), column::<UInt8Type, _>(&e.flags, r)),
            ("preempt".into(), column::<UInt8Type, _>(&e.preempt, r)),
            ("kind".into(), named(&kind, kinds)?),
        ])
    }

    /// The events of one kind, such as `kmem:mm_page_alloc`: their time, CPU and task, and their own fields, which are not
    /// copied.
    fn table(&self, kind: &str) -> PyResult<Stream> {
        let (r, e) = (&self.inner, &self.inner.events);
        let at = e
            .tables
            .iter()
            .position(|t| full_name(t) == kind || t.name == kind);
        let at = at.ok_or_else(|| {
            let known: Vec<String> = e.tables.iter().map(full_name).collect();
            PyKeyError::new_err(format!(
                "no events of kind {kind:?}: there are {}",
                known.join(", ")
            ))
        })?;
        let table = &e.tables[at];
        let rows: Vec<usize> = (0..e.kind.len())
            .filter(|&i| usize::from(e.kind[i]) == at)
            .collect();
        let time: PrimitiveArray<UInt64Type> = rows.iter().map(|&i| e.time[i]).collect();
        let cpu: PrimitiveArray<UInt16Type> = rows.iter().map(|&i| e.cpu[i]).collect();
        let task: PrimitiveArray<Int32Type> = rows.iter().map(|&i| e.task[i] as i32).collect();
        let comms = r.tasks.iter().map(|t| t.comm.clone()).collect();
        let mut columns: Vec<(String, ArrayRef)> = vec![
            ("time".into(), Arc::new(time)),
            ("cpu".into(), Arc::new(cpu)),
            ("comm".into(), named(&task, comms)?),
        ];
        for (field, values) in table.fields.iter().zip(&table.columns) {
            let array = match field.kind {
                FieldKind::Unsigned => column::<UInt64Type, _>(values, r),
                FieldKind::Signed => column::<Int64Type, _>(values, r),
                FieldKind::String => {
                    named(&primitive::<Int64Type, _>(values, r), r.strings.clone())?
                }
            };
            columns.push((field.name.clone(), array));
        }
        Stream::new(columns)
    }
}

/// Names that keys name. Where a name has several keys, they are made one, as consumers want names to be unique.
fn named<K: ArrowDictionaryKeyType>(
    keys: &PrimitiveArray<K>,
    names: Vec<String>,
) -> PyResult<ArrayRef> {
    let mut at = HashMap::new();
    let mut unique: Vec<&str> = vec![];
    let own: Vec<usize> = names
        .iter()
        .map(|name| {
            *at.entry(name.as_str()).or_insert_with(|| {
                unique.push(name);
                unique.len() - 1
            })
        })
        .collect();
    let keys = match unique.len() == names.len() {
        true => keys.clone(),
        false => keys.unary(|key| {
            // A key without a name is refused below.
            let own = own.get(key.as_usize()).copied();
            own.and_then(K::Native::from_usize).unwrap_or(key)
        }),
    };
    let made = DictionaryArray::try_new(keys, Arc::new(StringArray::from(unique)));
    let wrong = |e| UnfragError::new_err(format!("the recording names what it does not have: {e}"));
    Ok(Arc::new(made.map_err(wrong)?))
}

/// A column over values of the recording.
fn column<P: ArrowPrimitiveType, T>(values: &[T], r: &Arc<recording::Recording>) -> ArrayRef {
    Arc::new(primitive::<P, T>(values, r))
}

/// A column over values of the recording.
fn primitive<P: ArrowPrimitiveType, T>(
    values: &[T],
    r: &Arc<recording::Recording>,
) -> PrimitiveArray<P> {
    assert!(
        size_of::<T>() == size_of::<P::Native>(),
        "the same bytes, read as another type"
    );
    let buffer = ScalarBuffer::new(borrowed(values, r), 0, values.len());
    PrimitiveArray::new(buffer, None)
}

/// The name of a kind, with its subsystem.
fn full_name(t: &EventTable) -> String {
    match t.system.is_empty() {
        true => t.name.clone(),
        false => format!("{}:{}", t.system, t.name),
    }
}
