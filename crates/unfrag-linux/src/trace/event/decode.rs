//! Decoders of raw records: each kind of event has one, made from its format at its first event.
//!
//! Invariant: a field outside its record reads as 0 or as the empty string, never as bytes of another
//! record. How fields become columns:
//! - a number of 1, 2, 4 or 8 bytes: one column, sign-extended where it is signed;
//! - characters, inline or located (`__data_loc`, `__rel_loc`): an interned string up to its NUL;
//! - an inline array of 2 to [`MAX_ELEMENTS`] numbers: one column an element, `pair[0]`,
//!   `pair[1]`, ...;
//! - any other array or structure: an interned string of its bytes in hexadecimal, in the order of
//!   memory;
//! - the addresses of a kernel stack: an interned string of their names (`stack`).
//!
//! `common_type`, `common_flags`, `common_preempt_count` and `common_pid` are no columns: they go to
//! the columns of all events. Other `common_` fields stay.

use crate::error::Result;
use crate::recording::{Field, FieldKind};

use super::columns::Columns;
use super::format::{Array, EventFormat, FormatField, MAX_FIELDS};
use super::stack::{self, StackFields};
use crate::trace::bytes::{u16_at, u32_at, u64_at};

/// Inline arrays of up to this many numbers get a column for each element.
pub(crate) const MAX_ELEMENTS: u32 = 16;

/// Longest string kept of one field; the kernel's records are at most a page.
const MAX_STRING: usize = 64 << 10;

/// How the value of a column stands in the record.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    /// Characters: this many bytes at the offset, or up to the record's end.
    Text(Option<u32>),
    /// Bytes as hexadecimal: this many at the offset, or up to the record's end.
    Hex(Option<u32>),
    /// Located elsewhere in the record.
    Located {
        relative: bool,
        text: bool,
    },
}

/// How to fill one column.
#[derive(Clone, Copy, Debug)]
struct Step {
    at: u32,
    encoding: Encoding,
}

/// The decoder of one kind of event.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    /// Its table.
    pub kind: u8,
    steps: Vec<Step>,
    flags_at: Option<u32>,
    preempt_at: Option<u32>,
    pid_at: Option<u32>,
    naming: Option<Naming>,
    stack: Option<StackFields>,
}

/// Columns of an event that names a task: `task_newtask`, `task_rename`.
#[derive(Clone, Copy, Debug)]
struct Naming {
    /// The task; `None` for the one that runs.
    pid: Option<usize>,
    /// What it was called before.
    old: Option<usize>,
    /// What it is called from here on.
    comm: usize,
}

/// The common fields of a record.
pub(crate) struct CommonFields {
    pub flags: u8,
    pub preempt: u8,
    pub pid: i32,
}

/// Decoders by event id.
pub(crate) struct Decoders {
    formats: Vec<EventFormat>,
    /// By id: 0 if unknown, else index of the format + 1.
    by_id: Vec<u32>,
    /// By id: 0 if not yet made, else index into `made` + 1.
    made_by_id: Vec<u32>,
    made: Vec<Decoder>,
    big_endian: bool,
}

impl Decoders {
    /// For these formats; of two with the same id the first counts.
    pub fn new(formats: Vec<EventFormat>, big_endian: bool) -> Self {
        let mut by_id = vec![0; 1 << 16];
        for (i, f) in formats.iter().enumerate() {
            let slot = &mut by_id[f.id as usize];
            if *slot == 0 {
                *slot = i as u32 + 1;
            }
        }
        Decoders {
            formats,
            by_id,
            made_by_id: vec![0; 1 << 16],
            made: Vec::new(),
            big_endian,
        }
    }
    /// The decoder of events with this id. An id without a format gets a table `event_ID` without
    /// fields, so that no event is dropped.
    #[inline]
    pub fn get(&mut self, id: u16, columns: &mut Columns) -> Result<&Decoder> {
        let mut i = self.made_by_id[id as usize];
        if i == 0 {
            i = self.make(id, columns)?;
        }
        Ok(&self.made[i as usize - 1])
    }
    #[cold]
    fn make(&mut self, id: u16, columns: &mut Columns) -> Result<u32> {
        let decoder = match self.by_id[id as usize] {
            0 => Decoder {
                kind: columns.add_table("", &format!("event_{id}"), Vec::new())?,
                steps: Vec::new(),
                flags_at: None,
                preempt_at: None,
                pid_at: None,
                naming: None,
                stack: None,
            },
            f => Decoder::new(&self.formats[f as usize - 1], columns)?,
        };
        self.made.push(decoder);
        let i = self.made.len() as u32;
        self.made_by_id[id as usize] = i;
        Ok(i)
    }
    /// The events that were enabled, where a tracer notes the formats of those alone: `kmem:mm_page_alloc` and so on, in
    /// order. The tracer's own events are left out.
    pub fn enabled(&self) -> String {
        let kernels = self.formats.iter().filter(|f| f.system != "ftrace");
        let mut names: Vec<String> = kernels
            .map(|f| format!("{}:{}", f.system, f.name))
            .collect();
        names.sort();
        names.join(" ")
    }
    /// Whether there is a format for this id.
    pub fn knows(&self, id: u16) -> bool {
        self.by_id[id as usize] != 0
    }
    /// The endianness of the records.
    pub fn big_endian(&self) -> bool {
        self.big_endian
    }
    /// Where `common_type` is in every record.
    pub fn type_at(&self) -> u32 {
        let field = self.formats.iter().find_map(|f| f.field("common_type"));
        field.map_or(0, |f| f.offset)
    }
}

impl Decoder {
    fn new(format: &EventFormat, columns: &mut Columns) -> Result<Decoder> {
        let mut fields = Vec::new();
        let mut steps = Vec::new();
        let byte_at = |name| match format.field(name) {
            Some(f) if f.size == 1 => Some(f.offset),
            _ => None,
        };
        let stack = StackFields::of(format);
        for f in &format.fields {
            match f.name.as_str() {
                "common_type" | "common_flags" | "common_preempt_count" | "common_pid" => {}
                _ if stack.is_some() => {}
                _ => plan(f, &mut fields, &mut steps),
            }
        }
        if stack.is_some() {
            fields.push(Field {
                name: stack::FIELD.into(),
                kind: FieldKind::String,
            });
        }
        fields.truncate(MAX_FIELDS);
        steps.truncate(MAX_FIELDS);
        let naming = Naming::of(format, &fields);
        Ok(Decoder {
            naming,
            stack,
            kind: columns.add_table(&format.system, &format.name, fields)?,
            steps,
            flags_at: byte_at("common_flags"),
            preempt_at: byte_at("common_preempt_count"),
            pid_at: match format.field("common_pid") {
                Some(f) if f.size == 4 => Some(f.offset),
                _ => None,
            },
        })
    }
    /// The common fields of `record`; 0 where it lacks them.
    #[inline]
    pub fn common(&self, record: &[u8], big_endian: bool) -> CommonFields {
        let byte = |at: Option<u32>| at.and_then(|at| record.get(at as usize)).copied();
        let pid = match self.pid_at {
            Some(at) if at as usize + 4 <= record.len() => u32_at(record, at as usize, big_endian),
            _ => 0,
        };
        CommonFields {
            flags: byte(self.flags_at).unwrap_or(0),
            preempt: byte(self.preempt_at).unwrap_or(0),
            pid: pid as i32,
        }
    }
    /// Takes the name of a task from the row that was added last, where it tells one; `running` is the event's own task.
    #[inline]
    pub fn name(&self, running: i32, columns: &mut Columns) {
        if let Some(naming) = self.naming {
            naming.apply(self.kind, running, columns);
        }
    }
    /// Adds the row of `record` to its table.
    #[inline]
    pub fn row(&self, record: &[u8], big_endian: bool, columns: &mut Columns) -> Result<()> {
        let table = &mut columns.events.tables[self.kind as usize];
        columns.budget.charge(self.steps.len() as u64 * 8 + 24)?;
        if let Some(fields) = &self.stack {
            let (index, bytes) =
                columns
                    .stacks
                    .fold(fields, record, big_endian, &mut columns.strings);
            table.columns[0].push(index.into());
            return columns.budget.charge(bytes);
        }
        for (step, column) in self.steps.iter().zip(&mut table.columns) {
            let at = step.at as usize;
            let left = record.len().saturating_sub(at);
            let value = match step.encoding {
                Encoding::U64 if left >= 8 => u64_at(record, at, big_endian),
                Encoding::U32 if left >= 4 => u64::from(u32_at(record, at, big_endian)),
                Encoding::I32 if left >= 4 => {
                    i64::from(u32_at(record, at, big_endian) as i32) as u64
                }
                Encoding::U8 if left >= 1 => u64::from(record[at]),
                Encoding::I8 if left >= 1 => i64::from(record[at] as i8) as u64,
                Encoding::U16 if left >= 2 => u64::from(u16_at(record, at, big_endian)),
                Encoding::I16 if left >= 2 => {
                    i64::from(u16_at(record, at, big_endian) as i16) as u64
                }
                Encoding::Text(_) | Encoding::Hex(_) | Encoding::Located { .. } => {
                    let (bytes, text) = step.bytes(record, big_endian);
                    let before = columns.strings.len();
                    let index = if text {
                        columns.strings.intern(until_nul(bytes))
                    } else {
                        columns.strings.intern(hex(bytes).as_bytes())
                    };
                    if columns.strings.len() > before {
                        columns.budget.charge(bytes.len() as u64 * 4 + 64)?;
                    }
                    u64::from(index)
                }
                _ => 0,
            };
            column.push(value);
        }
        Ok(())
    }
}

impl Naming {
    fn of(format: &EventFormat, fields: &[Field]) -> Option<Naming> {
        let at = |name: &str| fields.iter().position(|f| f.name == name);
        match (&format.system[..], &format.name[..]) {
            ("task", "task_newtask") => Some(Naming {
                pid: Some(at("pid")?),
                old: None,
                comm: at("comm")?,
            }),
            ("task", "task_rename") => Some(Naming {
                pid: at("pid"),
                old: Some(at("oldcomm")?),
                comm: at("newcomm")?,
            }),
            _ => None,
        }
    }

    #[cold]
    fn apply(self, kind: u8, running: i32, columns: &mut Columns) {
        let Columns {
            events,
            tasks,
            strings,
            ..
        } = columns;
        let table = &events.tables[usize::from(kind)];
        let value = |column: usize| table.columns[column].last().copied();
        let text = |column: usize| strings.get(value(column)?);
        let Some(comm) = text(self.comm).filter(|c| !c.is_empty()) else {
            return;
        };
        match self.pid.and_then(value) {
            Some(pid) => tasks.rename(pid as i32, comm),
            // A task may name another thread of its process. Its number is not told then, but its old name is.
            None if self
                .old
                .and_then(text)
                .is_some_and(|old| tasks.is_called(running, old)) =>
            {
                tasks.rename(running, comm);
            }
            None => {}
        }
    }
}

impl Step {
    /// The bytes of a field that is no number, and whether they are characters.
    fn bytes<'a>(&self, record: &'a [u8], big_endian: bool) -> (&'a [u8], bool) {
        let at = self.at as usize;
        let inline = |len: Option<u32>| {
            let end = len.map_or(record.len(), |n| at + n as usize);
            record.get(at..end.min(record.len())).unwrap_or(&[])
        };
        let (bytes, text) = match self.encoding {
            Encoding::Text(len) => (inline(len), true),
            Encoding::Hex(len) => (inline(len), false),
            Encoding::Located { relative, text } => {
                if at + 4 > record.len() {
                    return (&[], text);
                }
                let location = u32_at(record, at, big_endian);
                let base = if relative { at + 4 } else { 0 };
                let start = base + (location & 0xffff) as usize;
                let end = (start + (location >> 16) as usize).min(record.len());
                (record.get(start..end).unwrap_or(&[]), text)
            }
            _ => (&[][..], false),
        };
        (&bytes[..bytes.len().min(MAX_STRING)], text)
    }
}

fn plan(f: &FormatField, fields: &mut Vec<Field>, steps: &mut Vec<Step>) {
    let is_char = matches!(
        f.ty.trim_start_matches("const ").trim(),
        "char" | "unsigned char" | "signed char"
    );
    let mut add = |name: String, kind, at, encoding| {
        fields.push(Field { name, kind });
        steps.push(Step { at, encoding });
    };
    let name = f.name.clone();
    match f.array {
        Array::DataLoc | Array::RelLoc => {
            let relative = f.array == Array::RelLoc;
            let encoding = Encoding::Located {
                relative,
                text: is_char,
            };
            add(name, FieldKind::String, f.offset, encoding);
        }
        Array::Inline => {
            let len = (f.size > 0).then_some(f.size);
            let width = element_width(f);
            match (len, width) {
                _ if f.ty == "char" || (is_char && len.is_none()) => {
                    add(name, FieldKind::String, f.offset, Encoding::Text(len));
                }
                (Some(len), Some(width))
                    if len.is_multiple_of(width) && (1..=MAX_ELEMENTS).contains(&(len / width)) =>
                {
                    let (encoding, kind) = number(width, f.signed);
                    for i in 0..len / width {
                        add(format!("{name}[{i}]"), kind, f.offset + i * width, encoding);
                    }
                }
                _ => add(name, FieldKind::String, f.offset, Encoding::Hex(len)),
            }
        }
        Array::No => match f.size {
            1 | 2 | 4 | 8 => {
                let (encoding, kind) = number(f.size, f.signed);
                add(name, kind, f.offset, encoding);
            }
            n => add(
                name,
                FieldKind::String,
                f.offset,
                Encoding::Hex((n > 0).then_some(n)),
            ),
        },
    }
}

fn number(width: u32, signed: bool) -> (Encoding, FieldKind) {
    let encoding = match (width, signed) {
        (1, false) => Encoding::U8,
        (1, true) => Encoding::I8,
        (2, false) => Encoding::U16,
        (2, true) => Encoding::I16,
        (4, false) => Encoding::U32,
        (4, true) => Encoding::I32,
        _ => Encoding::U64,
    };
    let kind = if signed {
        FieldKind::Signed
    } else {
        FieldKind::Unsigned
    };
    (encoding, kind)
}

/// Bytes of an element of an inline array, where the format tells.
fn element_width(f: &FormatField) -> Option<u32> {
    if f.elements > 0 && f.size.is_multiple_of(f.elements) {
        return Some(f.size / f.elements).filter(|w| [1, 2, 4, 8].contains(w));
    }
    Some(match f.ty.as_str() {
        "u8" | "s8" | "unsigned char" => 1,
        "u16" | "s16" | "unsigned short" | "short" => 2,
        "u32" | "s32" | "unsigned int" | "int" => 4,
        "u64" | "s64" | "unsigned long long" | "long long" => 8,
        _ => return None,
    })
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut s = String::with_capacity(bytes.len() * 2);
    for &b in bytes {
        s.push(DIGITS[b as usize >> 4] as char);
        s.push(DIGITS[b as usize & 15] as char);
    }
    s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Meta, Recording};

    const FORMAT: &str = "name: x\nID: 9\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int order;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\
        \tfield:u16 pair[2];\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:__rel_loc u8[] data;\toffset:20;\tsize:4;\tsigned:0;\n\
        \tfield:char comm[4];\toffset:24;\tsize:4;\tsigned:0;\n\nprint fmt: \"\"\n";

    fn decode(record: &[u8], big: bool) -> Recording {
        let mut columns = Columns::default();
        let formats = vec![EventFormat::parse("kmem", FORMAT.as_bytes()).unwrap()];
        let mut decoders = Decoders::new(formats, big);
        let d = decoders.get(9, &mut columns).unwrap().clone();
        d.row(record, big, &mut columns).unwrap();
        columns.finish(Meta::default())
    }

    #[test]
    fn numbers_located_strings_and_arrays_become_columns() {
        let mut record = vec![9, 0, 1, 2, 7, 0, 0, 0];
        record.extend((-3i32).to_le_bytes());
        record.extend((3u32 << 16 | 28).to_le_bytes());
        record.extend([1, 0, 2, 0]);
        record.extend((2u32 << 16 | 7).to_le_bytes());
        record.extend(b"ab\0d");
        record.extend(b"xy\0\xbe\xef");
        let r = decode(&record, false);
        let t = &r.events.tables[0];
        assert_eq!(t.column("order"), Some(&[-3i64 as u64][..]));
        assert_eq!(t.column("pair[1]"), Some(&[2][..]));
        let text = |name| &r.strings[t.column(name).unwrap()[0] as usize];
        assert_eq!(text("name"), "xy");
        assert_eq!(text("comm"), "ab");
        assert_eq!(text("data"), "beef");
        assert!(t.column("common_pid").is_none());
    }

    #[test]
    fn fields_outside_their_record_read_as_nothing() {
        let r = decode(
            &[0, 9, 0, 0, 0, 0, 0, 7, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff],
            true,
        );
        let t = &r.events.tables[0];
        assert_eq!(t.column("order"), Some(&[5][..]));
        assert_eq!(t.column("pair[0]"), Some(&[0][..]));
        assert_eq!(r.strings, [""]);
    }

    #[test]
    fn an_event_without_a_format_keeps_a_table_without_fields() {
        let mut columns = Columns::default();
        let mut decoders = Decoders::new(Vec::new(), false);
        assert_eq!(decoders.get(77, &mut columns).unwrap().kind, 0);
        assert!(!decoders.knows(77));
        assert_eq!(columns.events.tables[0].name, "event_77");
    }
}
