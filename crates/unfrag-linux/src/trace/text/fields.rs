//! The columns of an event's text.
//!
//! Text is `key=value` pairs (`pairs`). What stands before the first pair, or a text without any pair,
//! goes to the field `text`. A column is of numbers as long as
//! all its values are, and of strings otherwise; a pair that an event lacks reads as 0 or as the
//! empty string.
//!
//! Invariant: after [`Tables::row`] all columns of the table have one more row.

use std::collections::{BTreeMap, HashMap};

use crate::error::{Error, Result};
use crate::gfp_text::Era;
use crate::recording::{Field, FieldKind};
use crate::trace::event::columns::Columns;
use crate::trace::event::format::MAX_FIELDS;

use super::pairs::Pairs;
use super::value::{address, number, trim, trim_end};

/// Kinds of events that are known without being looked for in a table.
const RECENT: usize = 4;

/// The field for text without a key.
const TEXT: &[u8] = b"text";

/// How a key's values are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    /// A number if it looks like one, else a string.
    Auto,
    /// Hexadecimal, also without `0x`.
    Address,
    /// Names of gfp bits.
    Gfp,
    /// `true` or `false`.
    Bool,
    /// `sync` or `async`, as the field `sync` (1 or 0) that the kernel records.
    Mode,
    /// `(0x1 ~ 0x2)`, as the fields `start_pfn` and `end_pfn`.
    Range,
    /// Not kept.
    Drop,
}

impl Hint {
    fn of(key: &[u8]) -> Hint {
        match key {
            b"page" => Hint::Drop,
            b"ptr" | b"addr" | b"pte" | b"i_ino" => Hint::Address,
            b"gfp_flags" | b"gfp_mask" => Hint::Gfp,
            b"accounted" => Hint::Bool,
            b"mode" => Hint::Mode,
            b"range" => Hint::Range,
            _ => Hint::Auto,
        }
    }
}

/// What a table does with a key.
struct Key {
    key: Box<[u8]>,
    hint: Hint,
    /// Its column, once it has one.
    column: Option<usize>,
}

/// A table being filled.
#[derive(Default)]
struct Table {
    keys: Vec<Key>,
}

/// All tables being filled.
#[derive(Default)]
pub(super) struct Tables {
    kinds: HashMap<Box<[u8]>, u8>,
    /// Names of events that came lately, and their tables.
    recent: [Option<(Box<[u8]>, u8)>; RECENT],
    /// Which of them is given up for the next one.
    oldest: usize,
    tables: Vec<Table>,
    gfp: Gfp,
}

/// Gfp strings seen, as masks.
#[derive(Default)]
struct Gfp {
    release: Option<Era>,
    masks: HashMap<Box<[u8]>, u64>,
    /// The one that was asked for last.
    last: Option<(Box<[u8]>, u64)>,
    named: bool,
    unknown: BTreeMap<String, u64>,
}

impl Tables {
    /// For events of this kernel.
    pub fn new(release: Option<&str>) -> Self {
        let mut tables = Tables::default();
        if let Some(release) = release {
            tables.set_release(release);
        }
        tables
    }
    /// From here on, events are of this kernel.
    pub fn set_release(&mut self, release: &str) {
        self.gfp.release = Era::of_release(release);
        self.gfp.masks.clear();
        self.gfp.last = None;
    }
    /// The table of an event.
    pub fn kind(&mut self, system: &[u8], event: &[u8], columns: &mut Columns) -> Result<u8> {
        let is_it = |(name, kind): &&(Box<[u8]>, u8)| {
            **name == *event && columns.events.tables[*kind as usize].system.as_bytes() == system
        };
        if let Some((_, kind)) = self.recent.iter().flatten().find(is_it) {
            return Ok(*kind);
        }
        let name = [system, b":", event].concat();
        let kind = match self.kinds.get(&name[..]) {
            Some(&kind) => kind,
            None => {
                let text = String::from_utf8_lossy;
                let kind = columns.add_table(&text(system), &text(event), Vec::new())?;
                self.kinds.insert(name.into(), kind);
                self.tables.push(Table::default());
                kind
            }
        };
        self.recent[self.oldest] = Some((event.into(), kind));
        self.oldest = (self.oldest + 1) % RECENT;
        Ok(kind)
    }
    /// Adds the row of `text` to the table `kind`.
    pub fn row(&mut self, kind: u8, text: &[u8], columns: &mut Columns) -> Result<()> {
        let mut row = Row {
            table: &mut self.tables[kind as usize],
            gfp: &mut self.gfp,
            kind: kind as usize,
            columns,
            expected: 0,
            filled: 0,
        };
        row.charge(64)?;
        let mut pairs = Pairs { rest: text };
        let before = pairs.before_first();
        if !before.is_empty() {
            row.set(TEXT, before)?;
        }
        // Whether the next pair was found to have the key that is expected.
        let mut is_next = false;
        loop {
            // Mostly it has the keys of the row before, in their order, and no blanks in their values.
            let known = row.table.keys.get(row.expected);
            let behind = row.table.keys.get(row.expected + 1).map(|k| &*k.key);
            let pair = known.and_then(|known| pairs.next_of(&known.key, is_next, behind));
            if let Some((key, value)) = pair {
                let k = row.expected;
                row.expected += 1;
                row.set_known(k, key, value)?;
                is_next = !pairs.rest.is_empty() && row.expected == k + 1;
            } else if let Some((key, value)) = pairs.next() {
                row.set(key, value)?;
                is_next = false;
            } else {
                break;
            }
        }
        row.finish();
        Ok(())
    }
    /// Adds to `facts` what was assumed of gfp names.
    pub fn facts(self, facts: &mut BTreeMap<String, String>) {
        if self.gfp.named && self.gfp.release.is_none() {
            let name = "gfp flags read as those of".to_owned();
            facts.insert(
                name,
                "the newest kernel known, for lack of a release".to_owned(),
            );
        }
        if !self.gfp.unknown.is_empty() {
            let names: Vec<&str> = self.gfp.unknown.keys().map(String::as_str).collect();
            facts.insert("gfp flags not understood".to_owned(), names.join(" "));
        }
    }
}

/// A row being filled.
struct Row<'a> {
    table: &'a mut Table,
    gfp: &'a mut Gfp,
    kind: usize,
    columns: &'a mut Columns,
    /// Index at which the next key is looked for first: keys mostly come in the order of the line before.
    expected: usize,
    filled: usize,
}

impl Row<'_> {
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let k = self.key(key)?;
        self.set_known(k, key, value)
    }
    /// Sets the value of a key, which has this index.
    fn set_known(&mut self, k: usize, key: &[u8], value: &[u8]) -> Result<()> {
        let Key { hint, column, .. } = self.table.keys[k];
        // Most values are numbers of a column that is there.
        if let (Hint::Auto, Some(c)) = (hint, column)
            && let Some((v, false)) = number(value)
            && self.is_of_numbers(c)
        {
            self.push(c, v);
            return Ok(());
        }
        match hint {
            Hint::Drop => Ok(()),
            Hint::Auto => self.auto(k, column, key, value),
            Hint::Address => match address(value) {
                Some(v) => self.number(k, column, key, v, false),
                None => self.auto(k, column, key, value),
            },
            Hint::Gfp => {
                let mask = self.gfp.mask(value);
                self.number(k, column, key, mask, false)
            }
            Hint::Bool => match value {
                b"true" => self.number(k, column, key, 1, false),
                b"false" => self.number(k, column, key, 0, false),
                _ => self.auto(k, column, key, value),
            },
            Hint::Mode => match value {
                b"sync" => self.number(k, column, b"sync", 1, false),
                b"async" => self.number(k, column, b"sync", 0, false),
                _ => self.auto(k, column, key, value),
            },
            Hint::Range => match range(value) {
                Some((start, end)) => {
                    self.number_of(b"start_pfn", start)?;
                    self.number_of(b"end_pfn", end)
                }
                None => self.auto(k, column, key, value),
            },
        }
    }
    fn is_of_numbers(&self, c: usize) -> bool {
        let table = &self.columns.events.tables[self.kind];
        table.fields[c].kind != FieldKind::String
    }
    /// The index of a key of this table.
    fn key(&mut self, key: &[u8]) -> Result<usize> {
        let keys = &mut self.table.keys;
        let found = match keys.get(self.expected) {
            Some(k) if *k.key == *key => Some(self.expected),
            _ => keys.iter().position(|k| *k.key == *key),
        };
        let k = match found {
            Some(k) => k,
            None => {
                if keys.len() >= MAX_FIELDS {
                    let limit = MAX_FIELDS as u64;
                    return Err(Error::too_large(
                        "the number of keys of an event",
                        limit + 1,
                        limit,
                    ));
                }
                keys.push(Key {
                    key: key.into(),
                    hint: Hint::of(key),
                    column: None,
                });
                keys.len() - 1
            }
        };
        self.expected = k + 1;
        Ok(k)
    }
    fn auto(&mut self, k: usize, column: Option<usize>, key: &[u8], value: &[u8]) -> Result<()> {
        let kind = column.map(|c| self.columns.events.tables[self.kind].fields[c].kind);
        match (kind, number(value)) {
            (None | Some(FieldKind::Unsigned | FieldKind::Signed), Some((v, negative))) => {
                self.number(k, column, key, v, negative)
            }
            _ => self.string(k, column, key, value),
        }
    }
    /// Sets a field that is no key of the text.
    fn number_of(&mut self, name: &[u8], v: u64) -> Result<()> {
        let k = self.key(name)?;
        self.number(k, self.table.keys[k].column, name, v, false)
    }
    fn number(
        &mut self,
        k: usize,
        column: Option<usize>,
        name: &[u8],
        v: u64,
        negative: bool,
    ) -> Result<()> {
        let kind = if negative {
            FieldKind::Signed
        } else {
            FieldKind::Unsigned
        };
        let c = match column {
            Some(c) => c,
            None => self.add_column(k, name, kind)?,
        };
        let table = &mut self.columns.events.tables[self.kind];
        if table.fields[c].kind == FieldKind::String {
            let text = if negative {
                (v as i64).to_string()
            } else {
                v.to_string()
            };
            return self.string(k, Some(c), name, text.as_bytes());
        }
        if negative {
            table.fields[c].kind = FieldKind::Signed;
        }
        self.push(c, v);
        Ok(())
    }
    fn string(&mut self, k: usize, column: Option<usize>, name: &[u8], value: &[u8]) -> Result<()> {
        let c = match column {
            Some(c) => c,
            None => self.add_column(k, name, FieldKind::String)?,
        };
        self.make_strings(c)?;
        let v = self.intern(value)?;
        self.push(c, v);
        Ok(())
    }
    /// Turns a column of numbers into one of strings.
    fn make_strings(&mut self, c: usize) -> Result<()> {
        let kind = self.columns.events.tables[self.kind].fields[c].kind;
        if kind == FieldKind::String {
            return Ok(());
        }
        self.columns.all_are_here()?;
        let mut column = std::mem::take(&mut self.columns.events.tables[self.kind].columns[c]);
        for v in &mut column {
            let text = match kind {
                FieldKind::Signed => (*v as i64).to_string(),
                _ => v.to_string(),
            };
            *v = self.intern(text.as_bytes())?;
        }
        let table = &mut self.columns.events.tables[self.kind];
        table.columns[c] = column;
        table.fields[c].kind = FieldKind::String;
        Ok(())
    }
    fn intern(&mut self, value: &[u8]) -> Result<u64> {
        let before = self.columns.strings.len();
        let v = self.columns.strings.intern(value);
        if self.columns.strings.len() > before {
            self.charge(value.len() as u64 * 4 + 64)?;
        }
        Ok(v.into())
    }
    /// Adds a column, with nothing in the rows so far.
    fn add_column(&mut self, k: usize, name: &[u8], kind: FieldKind) -> Result<usize> {
        self.charge(self.rows() as u64 * 8 + 256)?;
        let nothing = match kind {
            FieldKind::String => self.intern(b"")?,
            _ => 0,
        };
        let rows = self.rows();
        let table = &mut self.columns.events.tables[self.kind];
        table.fields.push(Field {
            name: String::from_utf8_lossy(name).into_owned(),
            kind,
        });
        table.columns.push(vec![nothing; rows]);
        let c = table.columns.len() - 1;
        self.table.keys[k].column = Some(c);
        Ok(c)
    }
    /// Sets this row's value; a key's second value in a line is dropped.
    fn push(&mut self, c: usize, v: u64) {
        let rows = self.rows();
        let column = &mut self.columns.events.tables[self.kind].columns[c];
        if column.len() == rows {
            column.push(v);
            self.filled += 1;
        }
    }
    /// Rows of the table so far, without those that were given away.
    fn rows(&self) -> usize {
        self.columns.rows[self.kind]
    }
    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.columns.budget.charge(bytes)
    }
    fn finish(self) {
        let rows = self.rows() + 1;
        self.columns.rows[self.kind] = rows;
        let table = &mut self.columns.events.tables[self.kind];
        if self.filled == table.columns.len() {
            return;
        }
        for (field, column) in table.fields.iter().zip(&mut table.columns) {
            if column.len() < rows {
                column.push(match field.kind {
                    FieldKind::String => self.columns.strings.intern(b"").into(),
                    _ => 0,
                });
            }
        }
    }
}

impl Gfp {
    fn mask(&mut self, text: &[u8]) -> u64 {
        if let Some((last, mask)) = &self.last
            && **last == *text
        {
            return *mask;
        }
        if let Some(&mask) = self.masks.get(text) {
            self.last = Some((text.into(), mask));
            return mask;
        }
        let era = self.release.unwrap_or(Era::NEWEST);
        let mut mask = 0;
        for name in String::from_utf8_lossy(text).split('|') {
            match era.parse(name) {
                Ok(bits) => mask |= bits,
                Err(unknown) => {
                    if self.unknown.len() < 64 {
                        *self.unknown.entry(unknown.name).or_default() += 1;
                    }
                }
            }
        }
        self.named |= memchr::memmem::find(text, b"GFP_").is_some();
        if self.masks.len() < 1 << 16 {
            self.masks.insert(text.into(), mask);
        }
        mask
    }
}

/// `(0x1 ~ 0x2)`.
fn range(value: &[u8]) -> Option<(u64, u64)> {
    let inside = value.strip_prefix(b"(")?.strip_suffix(b")")?;
    let tilde = memchr::memchr(b'~', inside)?;
    let (start, _) = number(trim_end(&inside[..tilde]))?;
    let (end, _) = number(trim(&inside[tilde + 1..]))?;
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Meta, Recording};

    fn rows(release: Option<&str>, lines: &[&str]) -> Recording {
        let mut columns = Columns::default();
        let mut tables = Tables::new(release);
        for text in lines {
            let kind = tables.kind(b"", b"e", &mut columns).unwrap();
            tables.row(kind, text.as_bytes(), &mut columns).unwrap();
        }
        let mut meta = Meta::default();
        tables.facts(&mut meta.facts);
        columns.finish(meta)
    }

    /// `spec: 7.6`
    #[test]
    fn frame_numbers_and_gfp_names_become_numbers() {
        let lines = [
            "page=000000004b2335c2 pfn=970745 order=0 migratetype=0 gfp_flags=GFP_HIGHUSER|GFP_ZERO",
            "page=0x176a17 pfn=0x176a17 order=2 migratetype=-1 gfp_flags=0x152c4a",
        ];
        let r = rows(Some("2.6.32"), &lines);
        let t = &r.events.tables[0];
        assert_eq!(t.column("pfn"), Some(&[970_745, 0x17_6a17][..]));
        assert_eq!(t.column("gfp_flags"), Some(&[0x28_0d2, 0x15_2c4a][..]));
        assert_eq!(t.column("migratetype"), Some(&[0, u64::MAX][..]));
        assert_eq!(t.fields[2].kind, FieldKind::Signed);
        assert!(t.column("page").is_none());
    }

    #[test]
    fn range_and_mode_of_compaction_get_field_names() {
        let lines = [
            "range=(0x10 ~ 0x20) nr_scanned=16 nr_taken=3",
            "zone_start=0x1 migrate_pfn=0x2 free_pfn=0x3 zone_end=0x4, mode=async status=complete",
        ];
        let r = rows(None, &lines);
        let t = &r.events.tables[0];
        assert_eq!(t.column("start_pfn"), Some(&[0x10, 0][..]));
        assert_eq!(t.column("end_pfn"), Some(&[0x20, 0][..]));
        assert_eq!(t.column("zone_end"), Some(&[0, 4][..]));
        assert_eq!(t.column("sync"), Some(&[0, 0][..]));
        let status = t.column("status").unwrap();
        assert_eq!(r.strings[status[0] as usize], "");
        assert_eq!(r.strings[status[1] as usize], "complete");
    }

    #[test]
    fn a_column_with_a_value_that_is_no_number_becomes_strings() {
        let r = rows(
            None,
            &["dev 0:22 ino 62 ret=5 comm=a b", "nothing here", "ret=ok"],
        );
        let t = &r.events.tables[0];
        let text = |name: &str, row: usize| &r.strings[t.column(name).unwrap()[row] as usize];
        assert_eq!(text("text", 0), "dev 0:22 ino 62");
        assert_eq!(text("text", 1), "nothing here");
        assert_eq!(text("comm", 0), "a b");
        assert_eq!(
            (text("ret", 0), text("ret", 1), text("ret", 2)),
            (&"5".into(), &"0".into(), &"ok".into())
        );
    }

    /// A row like the one before is read by that one's keys; what differs in any way, as if there had been none.
    #[test]
    fn rows_are_read_alike_whatever_came_before() {
        let rows_of = [
            "pfn=1 order=0 comm=a",
            "pfn=1  order=0\tcomm=a b",
            "pfn=2 order=1, comm=a b c=5",
            "pfn=2 order=1 x order=2 comm=",
            "order=3 pfn=3 comm=a=b",
            "pfn=3 orders=1 comm=c",
            "pfn= order= comm=",
            "pfn=4 ordercomm=a",
            "before pfn=5 order=0 comm=z",
            "pfn=6",
            "pfn=6 7=8 order=0 comm=a",
            "",
        ];
        // Each field of a row, by name, as text.
        let shown = |r: &Recording, row: usize| {
            let t = &r.events.tables[0];
            let columns = t.fields.iter().zip(&t.columns);
            let mut all: Vec<(String, String)> = columns
                .map(|(f, c)| {
                    let text = match f.kind {
                        FieldKind::String => r.strings[c[row] as usize].clone(),
                        _ => c[row].to_string(),
                    };
                    (f.name.clone(), text)
                })
                .filter(|(_, text)| !text.is_empty() && text != "0")
                .collect();
            all.sort();
            all
        };
        for first in rows_of {
            for second in rows_of {
                let both = rows(None, &[first, second]);
                assert_eq!(
                    shown(&both, 1),
                    shown(&rows(None, &[second]), 0),
                    "{first:?}, {second:?}"
                );
            }
        }
    }

    #[test]
    fn assumptions_and_unknown_names_become_facts() {
        let r = rows(None, &["gfp_flags=GFP_KERNEL|GFP_NEVER"]);
        assert_eq!(r.events.tables[0].columns[0], [0xcc0]);
        assert!(r.meta.facts.contains_key("gfp flags read as those of"));
        assert_eq!(r.meta.facts["gfp flags not understood"], "GFP_NEVER");
    }
}
