//! The file that a profile is kept in: TOML, for people to read and for scenarios to name.
//!
//! Invariant: what is written is read back as the same profile. Quantiles, frees and slab objects take a line each.

use super::contents::{Profile, VERSION};
use serde::Deserialize;
use toml_edit::visit_mut::VisitMut;
use toml_edit::{Array, ArrayOfTables, Formatted, InlineTable, Item, Table, Value};
use unfrag_linux::{Error, Result};

/// The comment at the head of every profile.
const HEAD: &str = "# What a command does to memory, made from a recording of it by `unfrag profile`.\n\
    # Pages are of `page_bytes`; times are in microseconds; quantiles are numbers that were seen (nearest rank).\n\n";

/// Help where a file cannot be used.
const MAKE_AGAIN: &str = "make it anew with: unfrag profile RECORDING -o FILE.toml";

impl Profile {
    /// The file's text.
    ///
    /// # Errors
    /// None is known.
    pub fn to_toml(&self) -> Result<String> {
        let mut document = toml_edit::ser::to_document(self)
            .map_err(|e| Error::malformed(format!("the profile cannot be written: {e}")))?;
        for (_, item) in document.as_table_mut().iter_mut() {
            *item = headed(std::mem::take(item), true);
        }
        OneLine.visit_document_mut(&mut document);
        Ok(format!("{HEAD}{document}"))
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// If it is no profile, or one of another format; says where.
    pub fn from_toml(text: &str) -> Result<Profile> {
        #[derive(Deserialize)]
        struct Head {
            profile: u32,
        }
        let bad = |e: toml_edit::de::Error| {
            let place = e.span().map_or(0, |s| s.start as u64);
            Error::malformed(format!("no profile: {}", e.message()))
                .at(place)
                .help(MAKE_AGAIN)
        };
        let head: Head = toml_edit::de::from_str(text).map_err(bad)?;
        if head.profile != VERSION {
            let found = format!("version {} of the format of profiles", head.profile);
            return Err(
                Error::unsupported(format!("{found}; this program reads {VERSION}"))
                    .help(MAKE_AGAIN),
            );
        }
        toml_edit::de::from_str(text).map_err(bad)
    }
}

/// Writes strings within a line: a name that has lines could pass for other lines of the file.
struct OneLine;

impl VisitMut for OneLine {
    fn visit_string_mut(&mut self, node: &mut Formatted<String>) {
        if !node.value().contains('\n') {
            return;
        }
        let escaped = node.value().chars().map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.into(),
        });
        let text = format!("\"{}\"", escaped.collect::<String>());
        if let Ok(Value::String(line)) = text.parse::<Value>() {
            *node = line;
        }
    }
}

/// The item with a heading for each table in it. A table that holds single values only takes a line, unless it is at
/// the `top`.
fn headed(item: Item, top: bool) -> Item {
    match item {
        Item::Value(Value::InlineTable(inline)) if top || !is_line(&inline) => {
            Item::Table(table_of(inline))
        }
        Item::Value(Value::Array(array)) => of_array(array),
        other => other,
    }
}

fn table_of(inline: InlineTable) -> Table {
    let mut table = inline.into_table();
    for (_, item) in table.iter_mut() {
        *item = headed(std::mem::take(item), false);
    }
    let headings_only = table.iter().all(|(_, item)| item.is_table());
    table.set_implicit(headings_only);
    table
}

/// Tables that are too long for a line get a heading each, other tables a line each; numbers share one line.
fn of_array(mut array: Array) -> Item {
    let tables: Vec<InlineTable> = array
        .iter()
        .filter_map(|v| v.as_inline_table().cloned())
        .collect();
    if tables.is_empty() {
        return Item::Value(Value::Array(array));
    }
    if tables.iter().all(is_line) {
        for value in array.iter_mut() {
            value.decor_mut().set_prefix("\n    ");
        }
        array.set_trailing_comma(true);
        array.set_trailing("\n");
        return Item::Value(Value::Array(array));
    }
    let mut all = ArrayOfTables::new();
    for inline in tables {
        all.push(table_of(inline));
    }
    Item::ArrayOfTables(all)
}

/// Whether all that it holds are single values.
fn is_line(table: &InlineTable) -> bool {
    table
        .iter()
        .all(|(_, v)| !v.is_inline_table() && !v.is_array())
}
