//! Checks of a Parquet member before its pages are given to the decoder.
//!
//! Columns here are flat and required, so sizes and counts are known to the byte: a page that says
//! otherwise is refused. What is left for the decoder cannot make it read beyond its input, nor
//! take more memory than [`MAX_PAGE`] at a time.

use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::manifest::{Stored, Table};

/// Bytes of a page before compression, at most.
const MAX_PAGE: u64 = 64 << 20;

/// Page types and encodings, as the format numbers them.
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE_DICTIONARY: i64 = 8;
const BYTE_STREAM_SPLIT: i64 = 9;

/// Checks a member's metadata and page headers against what the manifest says of it. An error says
/// what is wrong.
pub fn check(content: &[u8], metadata: &ParquetMetaData, table: &Table) -> Result<(), String> {
    let mut rows = 0u64;
    for group in metadata.row_groups() {
        let group_rows = u64::try_from(group.num_rows()).map_err(|_| "rows below 0")?;
        rows = rows.checked_add(group_rows).ok_or("too many rows")?;
        if group.columns().len() != table.columns.len() {
            return Err("a row group lacks a column".to_owned());
        }
        for (chunk, column) in group.columns().iter().zip(&table.columns) {
            check_chunk(content, chunk, column.stored, group_rows)
                .map_err(|e| format!("column {:?}: {e}", column.column))?;
        }
    }
    if rows != table.rows {
        return Err(format!("{rows} rows, but the manifest says {}", table.rows));
    }
    Ok(())
}

fn check_chunk(
    content: &[u8],
    chunk: &ColumnChunkMetaData,
    stored: Stored,
    rows: u64,
) -> Result<(), String> {
    if !matches!(
        chunk.compression(),
        Compression::ZSTD(_) | Compression::UNCOMPRESSED
    ) {
        return Err(format!(
            "compression {} is not supported",
            chunk.compression()
        ));
    }
    if u64::try_from(chunk.num_values()) != Ok(rows) {
        return Err(format!("{} values for {rows} rows", chunk.num_values()));
    }
    let start = chunk
        .dictionary_page_offset()
        .unwrap_or(chunk.data_page_offset());
    let start = usize::try_from(start).map_err(|_| "pages before the file's beginning")?;
    let len = usize::try_from(chunk.compressed_size()).map_err(|_| "a size below 0")?;
    let end = start.checked_add(len).filter(|&end| end <= content.len());
    let end = end.ok_or("pages beyond the file's end")?;
    let mut pages = Thrift {
        bytes: &content[start..end],
        at: 0,
    };
    let mut values = 0u64;
    let mut has_dictionary = false;
    while pages.at < pages.bytes.len() {
        let at = start + pages.at;
        let page = pages
            .page()
            .ok_or_else(|| format!("byte {at}: no page header"))?;
        let is_dictionary = page.kind == DICTIONARY_PAGE;
        let body = usize::try_from(page.compressed)
            .ok()
            .filter(|&n| n <= pages.bytes.len() - pages.at);
        let size = u64::try_from(page.uncompressed)
            .ok()
            .filter(|&n| n <= MAX_PAGE);
        let count = u64::try_from(page.values).ok();
        let (Some(body), Some(size), Some(count)) = (body, size, count) else {
            return Err(format!("byte {at}: a page of impossible size"));
        };
        let known = match page.kind {
            DATA_PAGE => true,
            DICTIONARY_PAGE => !has_dictionary && values == 0,
            _ => false,
        };
        if !known {
            return Err(format!("byte {at}: a page of type {} here", page.kind));
        }
        let width = match stored {
            Stored::Int32 => Some(4),
            Stored::Int64 => Some(8),
            Stored::ByteArray => None,
        };
        let fits = match (page.encoding, width) {
            (PLAIN, Some(width)) => size == count * width,
            (BYTE_STREAM_SPLIT, Some(width)) => !is_dictionary && size == count * width,
            (PLAIN_DICTIONARY, Some(width)) if is_dictionary => size == count * width,
            (PLAIN_DICTIONARY | RLE_DICTIONARY, Some(_)) => {
                has_dictionary && !is_dictionary && size > 0
            }
            (PLAIN, None) => !is_dictionary && size >= 4 * count,
            _ => false,
        };
        if !fits {
            return Err(format!(
                "byte {at}: a page with encoding {}, {count} values and {size} bytes",
                page.encoding
            ));
        }
        if is_dictionary {
            has_dictionary = true;
        } else {
            values = values.saturating_add(count);
        }
        pages.at += body;
    }
    if values != rows {
        return Err(format!("pages with {values} values for {rows} rows"));
    }
    Ok(())
}

/// A page header.
#[derive(Default)]
struct Page {
    kind: i64,
    uncompressed: i64,
    compressed: i64,
    values: i64,
    encoding: i64,
}

/// A cursor over Thrift's compact encoding, in which page headers are written.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    const I32: u8 = 5;
    const STRUCT: u8 = 12;
    /// Structures inside structures, at most.
    const DEPTH: u32 = 8;

    fn page(&mut self) -> Option<Page> {
        let mut page = Page {
            kind: -1,
            encoding: -1,
            ..Page::default()
        };
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (1, Self::I32) => page.kind = self.integer()?,
                (2, Self::I32) => page.uncompressed = self.integer()?,
                (3, Self::I32) => page.compressed = self.integer()?,
                (5 | 7, Self::STRUCT) => self.values(&mut page)?,
                _ => self.skip(kind, Self::DEPTH)?,
            }
        }
        Some(page)
    }

    /// The header of a data or dictionary page: number of values, encoding, and more.
    fn values(&mut self, page: &mut Page) -> Option<()> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (1, Self::I32) => page.values = self.integer()?,
                (2, Self::I32) => page.encoding = self.integer()?,
                _ => self.skip(kind, Self::DEPTH)?,
            }
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn pass(&mut self, count: u64) -> Option<()> {
        let left = (self.bytes.len() - self.at) as u64;
        self.at += usize::try_from(count).ok().filter(|_| count <= left)?;
        Some(())
    }

    /// Type of the next field; moves `id` to its number. The inner `None` is the structure's end.
    fn field(&mut self, id: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *id = match head >> 4 {
            0 => self.integer()?,
            delta => id.checked_add(i64::from(delta))?,
        };
        Some(Some(head & 15))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            1 | 2 => Some(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.pass(8),
            8 => {
                let len = self.varint()?;
                self.pass(len)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    count => u64::from(count),
                };
                // Elements take a byte at least, so a false count soon meets the end.
                (0..count).try_for_each(|_| match head & 15 {
                    1 | 2 => self.pass(1),
                    kind => self.skip(kind, depth.checked_sub(1)?),
                })
            }
            Self::STRUCT => {
                let depth = depth.checked_sub(1)?;
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth)?;
                }
                Some(())
            }
            _ => None,
        }
    }
}
