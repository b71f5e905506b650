//! Recordings, and their events as tables.

use crate::answer::chosen;
use crate::arrow::{Stream, borrowed};
use crate::errors::{UnfragError, unknown_name};
use crate::work::run;
use arrow_array::builder::BinaryViewBuilder;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, DurationNanosecondType, Int8Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt64Type,
};
use arrow_array::{ArrayRef, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use unfrag_lab::find::recordings;
use unfrag_linux::recording::{self, EventTable, FieldKind};
use unfrag_linux::segments::{Beginning, Window};

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
            let (all, exact) = (Window::default(), Beginning::Exact);
            let read = recordings::recording(&from, &snapshots, release.as_deref(), &all, exact);
            read.map(|(recording, _)| recording)
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
        let snapshot = snapshot.ok_or_else(|| {
            let all = (self.inner.snapshots.first(), self.inner.snapshots.last());
            unknown_name(match all {
                (Some(first), Some(last)) => {
                    let (first, last) = (&first.name, &last.name);
                    format!("no snapshot {name:?}: the first is {first:?}, the last {last:?}, and `snapshots` has all")
                }
                _ => format!("no snapshot {name:?}: the recording has none"),
            })
        })?;
        let content = snapshot.content(file);
        let content = content.ok_or_else(|| {
            let known: Vec<&str> = snapshot.files.iter().map(|f| f.name.as_str()).collect();
            let known = known.join(", ");
            unknown_name(format!(
                "snapshot {name} has no file {file:?}: there are {known}"
            ))
        })?;
        Ok(content.bytes().into_owned())
    }

    /// The files of the snapshots, or those that are called `name`: snapshot, file, begin and end of its reading in
    /// nanoseconds of the events' clock (null where that is not known), and content. Content is not copied, but for page
    /// flags, which are packed in a recording.
    #[pyo3(signature = (name, time))]
    fn files(&self, name: Option<&str>, time: &str) -> PyResult<Stream> {
        let as_time = Time::of(time)?;
        let r = &self.inner;
        if let Some(name) = name {
            let known = r.snapshots.iter().flat_map(|s| &s.files);
            let known: BTreeSet<&str> = known.map(|f| f.name.as_str()).collect();
            if !known.contains(name) {
                let known: Vec<&str> = known.into_iter().collect();
                return Err(unknown_name(match known.is_empty() {
                    true => format!("no file {name:?}: the recording has no snapshots"),
                    false => format!("no file {name:?}: there are {}", known.join(", ")),
                }));
            }
        }
        let all = || {
            let files = r
                .snapshots
                .iter()
                .flat_map(|s| s.files.iter().map(move |f| (s, f)));
            files.filter(move |(_, f)| name.is_none_or(|name| f.name == name))
        };
        let offset = r.meta.snapshot_offset_ns;
        let time = |of: fn(&(u64, u64)) -> u64| -> PrimitiveArray<Int64Type> {
            let at = |t: &(u64, u64)| (of(t) as i64).saturating_sub(offset);
            all().map(|(_, f)| f.time.as_ref().map(at)).collect()
        };
        let mut content = BinaryViewBuilder::new();
        for (_, f) in all() {
            let buffer = match f.content.plain() {
                Some(bytes) => borrowed(bytes, r),
                None => Buffer::from_vec(f.content.bytes().into_owned()),
            };
            let too_long =
                |_| UnfragError::new_err(format!("{} has more than Arrow's 4 GiB", f.name));
            let length = u32::try_from(buffer.len()).map_err(too_long)?;
            let block = content.append_block(buffer);
            let appended = content.try_append_view(block, 0, length);
            appended.map_err(|e| UnfragError::new_err(format!("{}: {e}", f.name)))?;
        }
        let snapshots: DictionaryArray<Int32Type> = all().map(|(s, _)| s.name.as_str()).collect();
        let files: DictionaryArray<Int32Type> = all().map(|(_, f)| f.name.as_str()).collect();
        let columns: Vec<(String, ArrayRef)> = vec![
            ("snapshot".into(), Arc::new(snapshots)),
            ("file".into(), Arc::new(files)),
            ("begin".into(), as_time.column(time(|t| t.0))),
            ("end".into(), as_time.column(time(|t| t.1))),
            ("content".into(), Arc::new(content.finish())),
        ];
        Stream::new(columns, self.metadata())
    }

    /// What is known of the host and of the recording, by name. Each table has it as the metadata of its schema.
    #[getter]
    fn metadata(&self) -> HashMap<String, String> {
        let meta = &self.inner.meta;
        let known = [
            ("kernel_release", meta.kernel_release.clone()),
            ("page_size", meta.page_size.to_string()),
            ("cpus", meta.cpus.to_string()),
            ("source", meta.source.clone()),
            ("clock", meta.clock.clone()),
            ("lost_events", meta.lost_events().to_string()),
        ];
        let known = known.map(|(name, value)| (name.to_owned(), value));
        let facts = meta.facts.iter();
        let facts = facts.map(|(name, value)| (format!("facts.{name}"), value.clone()));
        known.into_iter().chain(facts).collect()
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
    #[pyo3(signature = (time))]
    fn events(&self, time: &str) -> PyResult<Stream> {
        let time = Time::of(time)?;
        let (r, e) = (&self.inner, &self.inner.events);
        let comms = r.tasks.iter().map(|t| t.comm.clone()).collect();
        let pid = |task: &u32| r.tasks.get(*task as usize).map_or(0, |t| t.pid);
        let pids: PrimitiveArray<Int32Type> = e.task.iter().map(pid).collect();
        // The numbers are small, so that they read the same with a sign, which pandas wants of them.
        let task = primitive::<Int32Type, _>(&e.task, r);
        let kind = primitive::<Int8Type, _>(&e.kind, r);
        let kinds = e.tables.iter().map(full_name).collect();
        let columns = vec![
            ("time".into(), time.column(signed(&e.time, r)?)),
            ("cpu".into(), column::<UInt16Type, _>(&e.cpu, r)),
            ("comm".into(), named(&task, comms)?),
            ("pid".into(), Arc::new(pids)),
            ("flags".into(), column::<UInt8Type, _>(&e.flags, r)),
            ("preempt".into(), column::<UInt8Type, _>(&e.preempt, r)),
            ("kind".into(), named(&kind, kinds)?),
        ];
        Stream::new(columns, self.metadata())
    }

    /// The events of one kind, such as `kmem:mm_page_alloc`: their time, CPU and task, and their own fields, which are not
    /// copied. A field that is called as one of the first columns has `own_` before its name.
    #[pyo3(signature = (kind, time))]
    fn table(&self, kind: &str, time: &str) -> PyResult<Stream> {
        let as_time = Time::of(time)?;
        let (r, e) = (&self.inner, &self.inner.events);
        let at = e
            .tables
            .iter()
            .position(|t| full_name(t) == kind || t.name == kind);
        let at = at.ok_or_else(|| {
            let known: Vec<String> = e.tables.iter().map(full_name).collect();
            unknown_name(format!(
                "no events of kind {kind:?}: there are {}",
                known.join(", ")
            ))
        })?;
        let table = &e.tables[at];
        let rows: Vec<usize> = (0..e.kind.len())
            .filter(|&i| usize::from(e.kind[i]) == at)
            .collect();
        let all = signed(&e.time, r)?;
        let time: PrimitiveArray<Int64Type> = rows.iter().map(|&i| all.value(i)).collect();
        let cpu: PrimitiveArray<UInt16Type> = rows.iter().map(|&i| e.cpu[i]).collect();
        let task: PrimitiveArray<Int32Type> = rows.iter().map(|&i| e.task[i] as i32).collect();
        let comms = r.tasks.iter().map(|t| t.comm.clone()).collect();
        let mut columns: Vec<(String, ArrayRef)> = vec![
            ("time".into(), as_time.column(time)),
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
            let mut name = field.name.clone();
            while columns.iter().any(|(taken, _)| *taken == name) {
                name.insert_str(0, OWN);
            }
            columns.push((name, array));
        }
        Stream::new(columns, self.metadata())
    }
}

/// What stands before a field's name where the event itself has a column of that name.
const OWN: &str = "own_";

/// What a time is in a table.
#[derive(Clone, Copy)]
enum Time {
    /// A duration of nanoseconds.
    Duration,
    /// A number of nanoseconds.
    Number,
}

impl Time {
    fn of(name: &str) -> PyResult<Time> {
        chosen(
            "time",
            name,
            &[("duration", Time::Duration), ("ns", Time::Number)],
        )
    }

    /// A column of such times, over the same values.
    fn column(self, ns: PrimitiveArray<Int64Type>) -> ArrayRef {
        match self {
            Time::Duration => Arc::new(ns.reinterpret_cast::<DurationNanosecondType>()),
            Time::Number => Arc::new(ns),
        }
    }
}

/// Times with a sign, so that one less another is what it should be, over values of the recording.
fn signed(times: &[u64], r: &Arc<recording::Recording>) -> PyResult<PrimitiveArray<Int64Type>> {
    match times.iter().max() {
        Some(&most) if i64::try_from(most).is_err() => Err(UnfragError::new_err(format!(
            "a time of {most} ns is beyond 292 years of its clock: the recording is damaged"
        ))),
        _ => Ok(primitive::<Int64Type, _>(times, r)),
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
