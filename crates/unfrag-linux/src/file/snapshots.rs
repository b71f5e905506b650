//! The snapshots as a table: one row a file; a large file takes several rows.

use std::io::{Seek, Write};

use super::columns::Numbers;
use super::container::Writer;
use super::manifest::{ReadAs, Table};
use super::table::{Data, Source, pieces};
use super::table_read::TableReader;
use crate::content::{Content, Packer};
use crate::error::{Error, Result};
use crate::kpageflags;
use crate::recording::{Snapshot, SnapshotFile};

/// The part number of a row that stands for a snapshot without any file.
const NO_FILE: i32 = -1;

/// Writes the member `snapshots`.
pub fn write<W: Write + Seek + Send>(
    snapshots: &[Snapshot],
    members: &mut Writer<W>,
) -> Result<Table> {
    let (mut index, mut part, mut timed) = (vec![], vec![], vec![]);
    let (mut t0, mut t1) = (vec![], vec![]);
    let (mut names, mut files, mut contents) = (vec![], vec![], vec![]);
    let empty = SnapshotFile::default();
    for (i, snapshot) in snapshots.iter().enumerate() {
        let no_file = snapshot.files.is_empty().then_some(&empty);
        for file in snapshot.files.iter().chain(no_file) {
            contents.push(&file.content);
            for p in 0..pieces(&file.content) {
                index.push(i as u32);
                names.push(snapshot.name.as_bytes());
                files.push(file.name.as_bytes());
                part.push(match snapshot.files.is_empty() {
                    true => NO_FILE,
                    false => p as i32,
                });
                timed.push(u8::from(file.time.is_some()));
                t0.push(file.time.map_or(0, |(begin, _)| begin));
                t1.push(file.time.map_or(0, |(_, end)| end));
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
                data: Data::Contents(contents),
            },
        ],
    )
}

/// The content of a file while its rows are read.
enum Reading {
    Plain(Vec<u8>),
    Packed(Packer),
}

impl Reading {
    /// Of the file called `name`: page flags are packed.
    fn of(name: &str) -> Result<Reading> {
        Ok(match name == kpageflags::NAME {
            true => Reading::Packed(Packer::new()?),
            false => Reading::Plain(vec![]),
        })
    }

    fn add(&mut self, piece: &[u8]) -> Result<()> {
        match self {
            Reading::Plain(bytes) => bytes.extend_from_slice(piece),
            Reading::Packed(packer) => packer.write_all(piece)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<Content> {
        Ok(match self {
            Reading::Plain(bytes) => bytes.into(),
            Reading::Packed(packer) => packer.finish()?,
        })
    }
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
    let mut snapshots: Vec<Snapshot> = vec![];
    let mut under_way: Option<Reading> = None;
    let mut row = 0;
    table.bytes("content", |content| {
        let malformed = |what| Error::malformed(format!("snapshots.parquet: row {row} {what}"));
        let (Some(name), Some(file), Some(&at)) = (names.next(), files.next(), index.get(row))
        else {
            return Err(malformed("is not complete"));
        };
        if part[row] <= 0 {
            end(&mut snapshots, &mut under_way)?;
        }
        match (at as usize).checked_sub(snapshots.len()) {
            Some(0) => snapshots.push(Snapshot {
                name,
                files: vec![],
            }),
            None if at as usize + 1 == snapshots.len() => {}
            _ => return Err(malformed("is out of order")),
        }
        let snapshot = snapshots
            .last_mut()
            .ok_or_else(|| malformed("is out of order"))?;
        match part[row] {
            NO_FILE => {}
            0 => {
                let mut reading = Reading::of(&file)?;
                reading.add(content)?;
                under_way = Some(reading);
                snapshot.files.push(SnapshotFile {
                    name: file,
                    time: (timed[row] != 0).then_some((t0[row], t1[row])),
                    content: Content::default(),
                });
            }
            _ => under_way
                .as_mut()
                .ok_or_else(|| malformed("goes on with a file that has no beginning"))?
                .add(content)?,
        }
        row += 1;
        Ok(())
    })?;
    if row < index.len() {
        return Err(Error::malformed(format!(
            "snapshots.parquet: row {row} is not complete"
        )));
    }
    end(&mut snapshots, &mut under_way)?;
    Ok(snapshots)
}

/// The file under way is complete.
fn end(snapshots: &mut [Snapshot], under_way: &mut Option<Reading>) -> Result<()> {
    let file = snapshots.last_mut().and_then(|s| s.files.last_mut());
    if let (Some(reading), Some(file)) = (under_way.take(), file) {
        file.content = reading.finish()?;
    }
    Ok(())
}
