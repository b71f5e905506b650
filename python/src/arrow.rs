//! Arrow's C data interface: a table that others take without a copy (`__arrow_c_stream__`).

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_buffer::Buffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::HashMap;
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;

/// A table in Arrow's layout. `pyarrow.table`, `polars.DataFrame` and others take it as it is.
#[pyclass(frozen, module = "unfrag")]
pub struct Stream(RecordBatch);

impl Stream {
    /// A table of columns of the same length, and what is known of all of it.
    pub fn new(
        columns: Vec<(String, ArrayRef)>,
        metadata: HashMap<String, String>,
    ) -> PyResult<Stream> {
        let batch = RecordBatch::try_from_iter(columns).and_then(|batch| {
            let schema = batch.schema().as_ref().clone().with_metadata(metadata);
            batch.with_schema(Arc::new(schema))
        });
        batch
            .map(Stream)
            .map_err(|e| PyValueError::new_err(e.to_string()))
    }
}

#[pymethods]
impl Stream {
    /// The table as an Arrow C stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer that asks for other types casts by itself.
        let _ = requested_schema;
        let batches = [Ok(self.0.clone())];
        let reader = RecordBatchIterator::new(batches, self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new(py, stream, Some(CString::from(c"arrow_array_stream")))
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.0.schema();
        schema.fields().iter().map(|f| f.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!(
            "<unfrag.Table: {} rows, columns {}>",
            self.0.num_rows(),
            self.column_names().join(", ")
        )
    }
}

/// A buffer over values that `owner` keeps where they are.
pub fn borrowed<T, O: Send + Sync + std::panic::RefUnwindSafe + 'static>(
    values: &[T],
    owner: &Arc<O>,
) -> Buffer {
    let at = NonNull::from(values).cast::<u8>();
    // SAFETY: The owner, which the buffer holds, neither moves nor changes the values.
    unsafe { Buffer::from_custom_allocation(at, size_of_val(values), owner.clone()) }
}
