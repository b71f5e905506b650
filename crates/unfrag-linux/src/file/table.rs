//! Writes tables as Parquet.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::columns::{self, Numbers, Plan};
use super::manifest::{Column, ReadAs, Stored, Table, Transform, plain, unique};
use crate::content::Content;
use crate::error::{Error, Result};

/// Rows in a row group, at most.
pub const GROUP_ROWS: usize = 1 << 22;
/// Rows in a page of numbers: 1 MiB of 32-bit ones, which a CPU's cache holds.
const PAGE_ROWS: usize = 1 << 18;
/// Bytes after which a page of bytes ends.
const PAGE_BYTES: usize = 1 << 20;
/// Bytes of a value, at most.
pub const VALUE_BYTES: usize = 16 << 20;
/// Bytes of a piece of a content that is packed, so that little of it is unpacked at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Level of zstd.
const LEVEL: i32 = 3;

/// A column to be written.
pub struct Source<'a> {
    pub name: &'a str,
    pub read_as: ReadAs,
    pub data: Data<'a>,
}

/// Values of a column.
pub enum Data<'a> {
    Numbers(Numbers<'a>),
    Bytes(Vec<&'a [u8]>),
    /// Contents one after the other, each in [`pieces`]; one that is empty is one empty piece.
    Contents(Vec<&'a Content>),
}

/// Number of pieces of a content.
pub fn pieces(content: &Content) -> usize {
    (content.len().div_ceil(piece_bytes(content)) as usize).max(1)
}

fn piece_bytes(content: &Content) -> u64 {
    match content.packed() {
        Some(_) => PIECE_BYTES as u64,
        None => VALUE_BYTES as u64,
    }
}

/// Reads pieces of contents, one after the other.
struct Pieces<'a> {
    contents: std::slice::Iter<'a, &'a Content>,
    /// A content, the size of its pieces, and how many are left.
    under_way: Option<(Box<dyn Read + 'a>, u64, usize)>,
}

impl Iterator for Pieces<'_> {
    type Item = std::io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.under_way.is_none() {
            let content = self.contents.next()?;
            self.under_way = Some((content.reader(), piece_bytes(content), pieces(content)));
        }
        let (reader, size, left) = self.under_way.as_mut()?;
        let mut piece = vec![];
        let read = reader.take(*size).read_to_end(&mut piece);
        *left -= 1;
        if *left == 0 {
            self.under_way = None;
        }
        Some(read.map(|_| piece))
    }
}

impl<'a> Source<'a> {
    /// A column of numbers.
    pub fn numbers(name: &'a str, read_as: ReadAs, numbers: Numbers<'a>) -> Self {
        Self {
            name,
            read_as,
            data: Data::Numbers(numbers),
        }
    }

    fn pieces(&self) -> Option<Pieces<'_>> {
        match &self.data {
            Data::Contents(contents) => Some(Pieces {
                contents: contents.iter(),
                under_way: None,
            }),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        match &self.data {
            Data::Numbers(numbers) => numbers.len(),
            Data::Bytes(bytes) => bytes.len(),
            Data::Contents(contents) => contents.iter().map(|c| pieces(c)).sum(),
        }
    }
}

/// How a table is to be written.
pub struct Design {
    /// What the manifest says of it; it has a member if it has rows.
    pub table: Table,
    plans: Vec<Plan>,
    /// Bytes of strings and snapshots in it, with four for the length of each.
    pub bytes: u64,
}

/// How to write a table as `member`. All columns must be of one length.
pub fn design(member: &str, columns: &[Source]) -> Result<Design> {
    let rows = columns.first().map_or(0, Source::len);
    let mut names = BTreeSet::new();
    let mut described = vec![];
    let mut plans = vec![];
    let mut bytes = 0;
    for source in columns {
        let as_bytes = Plan {
            stored: Stored::ByteArray,
            transform: Transform::None,
            dictionary: false,
        };
        let plan = match &source.data {
            Data::Numbers(numbers) => columns::plan(numbers, source.read_as),
            Data::Contents(contents) => {
                let of = |c: &&Content| c.len() + 4 * pieces(c) as u64;
                bytes += contents.iter().map(of).sum::<u64>();
                as_bytes
            }
            Data::Bytes(values) => {
                bytes += values.iter().map(|v| v.len() as u64 + 4).sum::<u64>();
                let longest = values.iter().map(|v| v.len()).max().unwrap_or(0);
                if longest > VALUE_BYTES {
                    let (size, limit) = (longest as u64, VALUE_BYTES as u64);
                    return Err(Error::too_large(
                        "the length of a string in bytes",
                        size,
                        limit,
                    ));
                }
                as_bytes
            }
        };
        plans.push(plan);
        described.push(Column {
            name: source.name.to_owned(),
            column: unique(&plain(source.name), &mut names),
            read_as: source.read_as,
            stored: plan.stored,
            transform: plan.transform,
        });
    }
    let table = Table {
        member: (rows > 0).then(|| member.to_owned()),
        rows: rows as u64,
        columns: described,
    };
    Ok(Design {
        table,
        plans,
        bytes,
    })
}

/// The schema of a table with these columns.
pub fn schema(columns: &[Column]) -> std::result::Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| {
        let signed = column.read_as == ReadAs::Signed && column.transform == Transform::None;
        let (physical, logical) = match column.stored {
            Stored::Int32 => (Physical::INT32, Some(LogicalType::integer(32, signed))),
            Stored::Int64 => (Physical::INT64, Some(LogicalType::integer(64, signed))),
            Stored::ByteArray if column.read_as == ReadAs::Text => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
            Stored::ByteArray => (Physical::BYTE_ARRAY, None),
        };
        let field = Type::primitive_type_builder(&column.column, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(field))
    });
    let fields = fields.collect::<std::result::Result<Vec<_>, ParquetError>>()?;
    Ok(Arc::new(
        Type::group_type_builder("schema")
            .with_fields(fields)
            .build()?,
    ))
}

fn properties(
    columns: &[Column],
    plans: &[Plan],
) -> std::result::Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_created_by("unfrag".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_data_page_size_limit(8 * PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS / 4);
    for (column, plan) in columns.iter().zip(plans) {
        let path = ColumnPath::new(vec![column.column.clone()]);
        properties = properties.set_column_dictionary_enabled(path.clone(), plan.dictionary);
        if plan.stored == Stored::ByteArray {
            properties = properties.set_column_data_page_size_limit(path, PAGE_BYTES);
        } else if !plan.dictionary {
            properties = properties.set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT);
        }
    }
    Ok(properties.build())
}

/// Writes a table with rows, as it was designed.
pub fn write(
    to: &mut (dyn Write + Send),
    sources: &[Source],
    design: &Design,
) -> std::result::Result<(), ParquetError> {
    let Design { table, plans, .. } = design;
    let (columns, rows) = (&table.columns, table.rows as usize);
    let properties = Arc::new(properties(columns, plans)?);
    let mut file = SerializedFileWriter::new(to, schema(columns)?, properties)?;
    let mut contents: Vec<Option<Pieces>> = sources.iter().map(Source::pieces).collect();
    // Transforms go on from one row group to the next.
    let mut before = vec![0; columns.len()];
    for start in (0..rows).step_by(GROUP_ROWS) {
        let range = start..(start + GROUP_ROWS).min(rows);
        let mut group = file.next_row_group()?;
        let columns = sources
            .iter()
            .zip(plans)
            .zip(&mut before)
            .zip(&mut contents);
        for (((source, plan), before), contents) in columns {
            let mut column = group
                .next_column()?
                .ok_or_else(|| ParquetError::General("a column too many".to_owned()))?;
            match &source.data {
                Data::Numbers(numbers) => {
                    write_numbers(
                        column.untyped(),
                        numbers,
                        range.clone(),
                        plan.transform,
                        before,
                    )?;
                }
                Data::Bytes(values) => write_bytes(column.untyped(), &values[range.clone()])?,
                Data::Contents(_) => {
                    for piece in contents.iter_mut().flatten().take(range.len()) {
                        let piece = piece.map_err(|e| ParquetError::External(Box::new(e)))?;
                        write_bytes(column.untyped(), &[&piece])?;
                    }
                }
            }
            column.close()?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

fn write_numbers(
    column: &mut ColumnWriter,
    numbers: &Numbers,
    range: std::ops::Range<usize>,
    transform: Transform,
    before: &mut u64,
) -> std::result::Result<(), ParquetError> {
    let mut wide = vec![];
    let mut narrow = vec![];
    for start in range.clone().step_by(PAGE_ROWS) {
        numbers.widen(start..(start + PAGE_ROWS).min(range.end), &mut wide);
        transform.apply(&mut wide, before);
        match column {
            ColumnWriter::Int32ColumnWriter(column) => {
                narrow.clear();
                narrow.extend(wide.iter().map(|&v| v as i32));
                column.write_batch(&narrow, None, None)?;
            }
            ColumnWriter::Int64ColumnWriter(column) => {
                let values: Vec<i64> = wide.iter().map(|&v| v as i64).collect();
                column.write_batch(&values, None, None)?;
            }
            _ => {
                return Err(ParquetError::General(
                    "numbers in a column of bytes".to_owned(),
                ));
            }
        }
    }
    Ok(())
}

fn write_bytes(
    column: &mut ColumnWriter,
    values: &[&[u8]],
) -> std::result::Result<(), ParquetError> {
    let ColumnWriter::ByteArrayColumnWriter(column) = column else {
        return Err(ParquetError::General(
            "bytes in a column of numbers".to_owned(),
        ));
    };
    // Pages end between batches, so a batch must not hold many pages' worth.
    let mut rest = values;
    while !rest.is_empty() {
        let mut size = 0;
        let fits = |v: &&&[u8]| {
            let room = size < PAGE_BYTES;
            size += v.len() + 4;
            room
        };
        let count = rest.iter().take_while(fits).take(PAGE_ROWS / 4).count();
        let batch: Vec<ByteArray> = rest[..count]
            .iter()
            .map(|v| ByteArray::from(v.to_vec()))
            .collect();
        column.write_batch(&batch, None, None)?;
        rest = &rest[count..];
    }
    Ok(())
}
