//! The snapshots as a table: one row a file; a large file takes several rows.

use super::columns::Numbers;
use super::container::Writer;
use super::manifest::{ReadAs, Table};
use super::table::{Data, Source, VALUE_BYTES};
use super::table_read::TableReader;
use crate::error::{Error, Result};
use crate::recording::{Snapshot, SnapshotFile};

/// The part number of a row that stands for a snapshot without any file.
const NO_FILE: i32 = -1;

/// Writes the member `snapshots`.
pub fn write(snapshots: &[Snapshot], members: &mut Writer) -> Result<Table> {
    let (mut index, mut part, mut timed) = (vec![], vec![], vec![]);
    let (mut t0, mut t1) = (vec![], vec![]);
    let (mut names, mut files, mut contents) = (vec![], vec![], vec![]);
    let empty = SnapshotFile::default();
    for (i, snapshot) in snapshots.iter().enumerate() {
        let no_file = snapshot.files.is_empty().then_some(&empty);
        for file in snapshot.files.iter().chain(no_file) {
            let count = file.content.len().div_ceil(VALUE_BYTES).max(1);
            for p in 0..count {
                index.push(i as u32);
                names.push(snapshot.name.as_bytes());
                files.push(file.name.as_bytes());
                part.push(if snapshot.files.is_empty() {
                    NO_FILE
                } else {
                    p as i32
                });
                timed.push(u8::from(file.time.is_some()));
                t0.push(file.time.map_or(0, |(begin, _)| begin));
                t1.push(file.time.map_or(0, |(_, end)| end));
                let end = ((p + 1) * VALUE_BYTES).min(file.content.len());
                contents.push(&file.content[p * VALUE_BYTES..end]);
            }
        }
    }
    let numbers = |name, numbers| Source::numbers(name, ReadAs::Unsigned, numbers);
    let text = |name, values| Source {
        name,
        read_as: ReadAs::Text,
        data: Data::Bytes(values),
    };
    members.table(
        "snapshots",
        &[
            numbers("index", Numbers::U32(&index)),
            text("snapshot", names),
            text("file", files),
            Source::numbers("part", ReadAs::Signed, Numbers::I32(&part)),
            numbers("timed", Numbers::U8(&timed)),
            numbers("t0", Numbers::U64(&t0)),
            numbers("t1", Numbers::U64(&t1)),
            Source {
                name: "content",
                read_as: ReadAs::Bytes,
                data: Data::Bytes(contents),
            },
        ],
    )
}

/// Reads the snapshots.
pub fn read(mut table: TableReader) -> Result<Vec<Snapshot>> {
    let index: Vec<u32> = table.numbers("index")?;
    let part: Vec<i32> = table.numbers("part")?;
    let timed: Vec<u8> = table.numbers("timed")?;
    let t0: Vec<u64> = table.numbers("t0")?;
    let t1: Vec<u64> = table.numbers("t1")?;
    let mut names = table.texts("snapshot")?.into_iter();
    let mut files = table.texts("file")?.into_iter();
    let mut contents = table.bytes("content")?.into_iter();
    let mut snapshots: Vec<Snapshot> = vec![];
    for row in 0..index.len() {
        let malformed = |what| Error::malformed(format!("snapshots.parquet: row {row} {what}"));
        let (Some(name), Some(file), Some(content)) = (names.next(), files.next(), contents.next())
        else {
            return Err(malformed("is not complete"));
        };
        match (index[row] as usize).checked_sub(snapshots.len()) {
            Some(0) => snapshots.push(Snapshot {
                name,
                files: vec![],
            }),
            None if index[row] as usize + 1 == snapshots.len() => {}
            _ => return Err(malformed("is out of order")),
        }
        let snapshot = snapshots
            .last_mut()
            .ok_or_else(|| malformed("is out of order"))?;
        let time = (timed[row] != 0).then_some((t0[row], t1[row]));
        match part[row] {
            NO_FILE => {}
            0 => snapshot.files.push(SnapshotFile {
                name: file,
                time,
                content,
            }),
            _ => {
                let first = snapshot.files.last_mut();
                let first =
                    first.ok_or_else(|| malformed("goes on with a file that has no beginning"))?;
                first.content.extend_from_slice(&content);
            }
        }
    }
    Ok(snapshots)
}
