//! Reads tables from Parquet.
//!
//! The decoder is a foreign crate, so [`pages`] checks its input first. A panic of the decoder becomes an
//! error here; that is the last resort, not the way in which damage is found.

use std::io::{Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::page::Page;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::columns::Number;
use super::container::Reader;
use super::manifest::{Column, ReadAs, Stored, Table, Transform, least_size};
use super::{pages, table};
use crate::error::{Error, Result};

/// Values decoded at a time: few enough to stay in a CPU's cache.
const BATCH: usize = 1 << 13;

/// A table being read.
pub struct TableReader<'a> {
    table: &'a Table,
    /// `None` if the table has no member.
    member: Option<SerializedFileReader<Bytes>>,
    name: &'a str,
    /// Size of the whole file in bytes.
    size: u64,
    /// Columns that are read some numbers at a time.
    cursors: Vec<Option<Cursor>>,
}

impl<'a> TableReader<'a> {
    /// Opens the member that `table` describes.
    pub fn open<R: Read + Seek>(table: &'a Table, members: &mut Reader<R>) -> Result<Self> {
        let size = members.size();
        let Some(name) = table.member.as_deref() else {
            if table.rows > 0 && !table.columns.is_empty() {
                return Err(Error::malformed(
                    "manifest.json: a table with rows, but no member",
                ));
            }
            return Ok(Self {
                table,
                member: None,
                name: "manifest.json",
                size,
                cursors: vec![],
            });
        };
        let content = Bytes::from(members.member(name)?);
        let member = guarded(name, || {
            let schema = SchemaDescriptor::new(table::schema(&table.columns)?);
            let options = ReadOptionsBuilder::new()
                .with_parquet_schema(Arc::new(schema))
                .build();
            SerializedFileReader::new_with_options(content.clone(), options)
        })?;
        pages::check(&content, member.metadata(), table)
            .map_err(|e| Error::malformed(format!("{name}: {e}")))?;
        Ok(Self {
            table,
            member: Some(member),
            name,
            size,
            cursors: table.columns.iter().map(|_| None).collect(),
        })
    }

    /// The numbers of the column `name`.
    pub fn numbers<T: Number>(&mut self, name: &str) -> Result<Vec<T>> {
        self.numbers_at(self.index(name)?)
    }

    /// The numbers of the column with this index.
    pub fn numbers_at<T: Number>(&mut self, index: usize) -> Result<Vec<T>> {
        let mut numbers = vec![];
        if self.member.is_some() {
            self.cursors[index] = None;
            self.next_numbers_at(index, self.table.rows as usize, &mut numbers)?;
        }
        Ok(numbers)
    }

    /// Appends the next `count` numbers of the column `name` to `out`.
    pub fn next_numbers<T: Number>(
        &mut self,
        name: &str,
        count: usize,
        out: &mut Vec<T>,
    ) -> Result<()> {
        self.next_numbers_at(self.index(name)?, count, out)
    }

    /// Appends the next `count` numbers of the column with this index to `out`.
    pub fn next_numbers_at<T: Number>(
        &mut self,
        index: usize,
        count: usize,
        out: &mut Vec<T>,
    ) -> Result<()> {
        let column = &self.table.columns[index];
        let Some(member) = &self.member else {
            return match count {
                0 => Ok(()),
                _ => Err(self.malformed(&column.name, "has too few rows")),
            };
        };
        let cursor = self.cursors[index].get_or_insert_with(Cursor::begin);
        let fits = guarded(self.name, || {
            cursor.next(member, (index, column), count, out)
        })?;
        match fits {
            true => Ok(()),
            false => Err(self.malformed(&column.name, "holds a number that is too large for it")),
        }
    }

    /// Gives the byte strings of the column `name`, one after the other.
    pub fn bytes(&mut self, name: &str, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let index = self.index(name)?;
        let Some(member) = &self.member else {
            return Ok(());
        };
        let mut failed = None;
        let all = guarded(self.name, || {
            read_bytes(member, index, self.size, |value| match each(value) {
                Ok(()) => true,
                Err(e) => {
                    failed = Some(e);
                    false
                }
            })
        })?;
        match (failed, all) {
            (Some(e), _) => Err(e),
            (None, true) => Ok(()),
            (None, false) => Err(self.malformed(name, "holds more than a file of this size may")),
        }
    }

    /// The texts of the column `name`.
    pub fn texts(&mut self, name: &str) -> Result<Vec<String>> {
        let mut texts = vec![];
        let mut is_text = true;
        self.bytes(name, |value| {
            match std::str::from_utf8(value) {
                Ok(text) => texts.push(text.to_owned()),
                Err(_) => is_text = false,
            }
            Ok(())
        })?;
        match is_text {
            true => Ok(texts),
            false => Err(self.malformed(name, "is not UTF-8")),
        }
    }

    fn index(&self, name: &str) -> Result<usize> {
        let index = self.table.columns.iter().position(|c| c.name == name);
        index.ok_or_else(|| self.malformed(name, "is missing"))
    }

    fn malformed(&self, column: &str, what: &str) -> Error {
        Error::malformed(format!("{}: column {column:?} {what}", self.name))
    }
}

/// Runs the decoder; its errors, and its panics, name the member.
fn guarded<T>(
    member: &str,
    run: impl FnOnce() -> std::result::Result<T, ParquetError>,
) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|e| Error::malformed(format!("{member}: {e}"))),
        Err(_) => Err(Error::malformed(format!(
            "{member}: damaged in a way the decoder cannot take"
        ))),
    }
}

/// Where the reading of a column of numbers is.
struct Cursor {
    /// The row group after the one that is being read.
    group: usize,
    reader: Option<ColumnReader>,
    /// The value before the next.
    before: u64,
    narrow: Vec<i32>,
    wide: Vec<i64>,
}

impl Cursor {
    /// At the beginning of a column.
    fn begin() -> Self {
        Self {
            group: 0,
            reader: None,
            before: 0,
            narrow: vec![],
            wide: vec![],
        }
    }

    /// Appends the next `count` numbers to `out`; gives whether all of them fit.
    fn next<T: Number>(
        &mut self,
        member: &SerializedFileReader<Bytes>,
        (index, column): (usize, &Column),
        count: usize,
        out: &mut Vec<T>,
    ) -> std::result::Result<bool, ParquetError> {
        let signed = column.read_as == ReadAs::Signed && column.transform == Transform::None;
        let (transform, before) = (column.transform, &mut self.before);
        out.reserve(count);
        let end = out.len() + count;
        while out.len() < end {
            let most = BATCH.min(end - out.len());
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None => {
                    let group = member.get_row_group(self.group)?;
                    self.group += 1;
                    self.reader.insert(group.get_column_reader(index)?)
                }
            };
            let (read, fits) = match (reader, column.stored) {
                (ColumnReader::Int32ColumnReader(reader), Stored::Int32) => {
                    let narrow = &mut self.narrow;
                    narrow.clear();
                    let (read, _, _) = reader.read_records(most, None, None, narrow)?;
                    let fits = if signed {
                        extend(out, narrow, |&v| i64::from(v) as u64, transform, before)
                    } else {
                        extend(out, narrow, |&v| u64::from(v as u32), transform, before)
                    };
                    (read, fits)
                }
                (ColumnReader::Int64ColumnReader(reader), Stored::Int64) => {
                    let wide = &mut self.wide;
                    wide.clear();
                    let (read, _, _) = reader.read_records(most, None, None, wide)?;
                    let fits = extend(out, wide, |&v| v as u64, transform, before);
                    (read, fits)
                }
                _ => return Err(ParquetError::General("a column of another type".to_owned())),
            };
            if !fits {
                return Ok(false);
            }
            if read == 0 {
                self.reader = None;
            }
        }
        Ok(true)
    }
}

/// Appends the values of `stored` to `out`; gives whether all of them fit.
fn extend<S, T: Number>(
    out: &mut Vec<T>,
    stored: &[S],
    widen: impl Fn(&S) -> u64,
    transform: Transform,
    before: &mut u64,
) -> bool {
    // One loop for each transform, without a branch inside.
    let values = stored.iter();
    match transform {
        Transform::None => T::append(out, values.map(widen)),
        Transform::Delta => T::append(out, values.map(|s| Transform::Delta.undo(widen(s), before))),
        Transform::ZigzagDelta => T::append(
            out,
            values.map(|s| Transform::ZigzagDelta.undo(widen(s), before)),
        ),
    }
}

/// Gives the values of a column of bytes while `each` is true. Returns whether it was to the end, and they are no more
/// than a file of `size` may hold.
///
/// The decoder gives the pages; in them each value has its length before it.
fn read_bytes(
    member: &SerializedFileReader<Bytes>,
    index: usize,
    size: u64,
    mut each: impl FnMut(&[u8]) -> bool,
) -> std::result::Result<bool, ParquetError> {
    let damaged = || ParquetError::General("a page of bytes that is damaged".to_owned());
    let mut total = 0;
    for group in 0..member.num_row_groups() {
        let mut pages = member.get_row_group(group)?.get_column_page_reader(index)?;
        while let Some(page) = pages.get_next_page()? {
            let Page::DataPage {
                buf, num_values, ..
            } = page
            else {
                return Err(damaged());
            };
            total += buf.len() as u64;
            if least_size(0, total) > size {
                return Ok(false);
            }
            let mut rest = &buf[..];
            for _ in 0..num_values {
                let (len, tail) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
                let len = u32::from_le_bytes(*len) as usize;
                let (value, tail) = tail.split_at_checked(len).ok_or_else(damaged)?;
                if !each(value) {
                    return Ok(false);
                }
                rest = tail;
            }
            if !rest.is_empty() {
                return Err(damaged());
            }
        }
    }
    Ok(true)
}
