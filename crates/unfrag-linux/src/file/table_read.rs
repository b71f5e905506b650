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
        })
    }

    /// The numbers of the column `name`.
    pub fn numbers<T: Number>(&mut self, name: &str) -> Result<Vec<T>> {
        self.numbers_at(self.index(name)?)
    }

    /// The numbers of the column with this index.
    pub fn numbers_at<T: Number>(&mut self, index: usize) -> Result<Vec<T>> {
        let Some(member) = &self.member else {
            return Ok(vec![]);
        };
        let column = &self.table.columns[index];
        let rows = self.table.rows as usize;
        let numbers = guarded(self.name, || read_numbers(member, index, column, rows))?;
        numbers
            .ok_or_else(|| self.malformed(&column.name, "holds a number that is too large for it"))
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

/// All numbers of a column; `None` if one does not fit.
fn read_numbers<T: Number>(
    member: &SerializedFileReader<Bytes>,
    index: usize,
    column: &Column,
    rows: usize,
) -> std::result::Result<Option<Vec<T>>, ParquetError> {
    let mut out = Vec::with_capacity(rows);
    let signed = column.read_as == ReadAs::Signed && column.transform == Transform::None;
    let mut before = 0;
    let mut narrow = vec![];
    let mut wide = vec![];
    for group in 0..member.num_row_groups() {
        let fits = match (
            member.get_row_group(group)?.get_column_reader(index)?,
            column.stored,
        ) {
            (ColumnReader::Int32ColumnReader(mut reader), Stored::Int32) => loop {
                narrow.clear();
                let (count, _, _) = reader.read_records(BATCH, None, None, &mut narrow)?;
                let fits = if signed {
                    extend(
                        &mut out,
                        &narrow,
                        |&v| i64::from(v) as u64,
                        column.transform,
                        &mut before,
                    )
                } else {
                    extend(
                        &mut out,
                        &narrow,
                        |&v| u64::from(v as u32),
                        column.transform,
                        &mut before,
                    )
                };
                if count == 0 || !fits {
                    break fits;
                }
            },
            (ColumnReader::Int64ColumnReader(mut reader), Stored::Int64) => loop {
                wide.clear();
                let (count, _, _) = reader.read_records(BATCH, None, None, &mut wide)?;
                let fits = extend(
                    &mut out,
                    &wide,
                    |&v| v as u64,
                    column.transform,
                    &mut before,
                );
                if count == 0 || !fits {
                    break fits;
                }
            },
            _ => return Err(ParquetError::General("a column of another type".to_owned())),
        };
        if !fits {
            return Ok(None);
        }
    }
    Ok(Some(out))
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
    match transform {
        Transform::None => extend_with(out, stored, widen),
        Transform::Delta => extend_with(out, stored, |s| Transform::Delta.undo(widen(s), before)),
        Transform::ZigzagDelta => extend_with(out, stored, |s| {
            Transform::ZigzagDelta.undo(widen(s), before)
        }),
    }
}

fn extend_with<S, T: Number>(
    out: &mut Vec<T>,
    stored: &[S],
    mut value: impl FnMut(&S) -> u64,
) -> bool {
    let len = out.len() + stored.len();
    out.extend(stored.iter().map_while(|s| T::narrow(value(s))));
    out.len() == len
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
