//! Event format files: `events/SYSTEM/EVENT/format` of tracefs, as recorders embed them.
//!
//! Invariant: a parsed field lies within 64 KiB of the record's start, and an event has at most
//! [`MAX_FIELDS`] fields; what a record really holds is checked when it is decoded.

use crate::error::{Error, Result};

/// Most fields an event may have; the richest kernel events have some fifty.
pub(crate) const MAX_FIELDS: usize = 256;

/// One event's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventFormat {
    pub system: String,
    pub name: String,
    pub id: u16,
    pub fields: Vec<FormatField>,
}

/// One `field:` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormatField {
    pub name: String,
    /// Its type, without the array's brackets.
    pub ty: String,
    /// Bytes from the record's start.
    pub offset: u32,
    /// Bytes; 0 for an array up to the record's end.
    pub size: u32,
    pub signed: bool,
    pub array: Array,
    /// Elements of an inline array whose brackets hold a number, else 0.
    pub elements: u32,
}

/// Whether a field is an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Array {
    /// A single value.
    No,
    /// `name[N]` or `name[]`.
    Inline,
    /// `__data_loc type[] name`: length and offset from the record's start.
    DataLoc,
    /// `__rel_loc type[] name`: length and offset from this field's end.
    RelLoc,
}

impl EventFormat {
    /// Parses a format file.
    pub fn parse(system: &str, text: &[u8]) -> Result<EventFormat> {
        let text = String::from_utf8_lossy(text);
        let mut name = None;
        let mut id = None;
        let mut fields = Vec::new();
        for line in text.lines() {
            let line = line.trim();
            if let Some(n) = line.strip_prefix("name:") {
                name.get_or_insert_with(|| n.trim().to_owned());
            } else if let Some(n) = line.strip_prefix("ID:") {
                id = n.trim().parse::<u16>().ok();
            } else if line.starts_with("field:") || line.starts_with("field ") {
                fields.push(parse_field(line)?);
                if fields.len() > MAX_FIELDS {
                    return Err(Error::too_large(
                        format!(
                            "the number of fields of {system}:{}",
                            name.unwrap_or_default()
                        ),
                        fields.len() as u64,
                        MAX_FIELDS as u64,
                    ));
                }
            } else if line.starts_with("print fmt:") {
                break;
            }
        }
        match (name, id) {
            (Some(name), Some(id)) => Ok(EventFormat {
                system: system.to_owned(),
                name,
                id,
                fields,
            }),
            _ => Err(Error::malformed(format!(
                "an event format of system {system:?} lacks its name or a 16-bit ID"
            ))),
        }
    }
    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<&FormatField> {
        self.fields.iter().find(|f| f.name == name)
    }
}

/// Parses `field:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;`.
pub(crate) fn parse_field(line: &str) -> Result<FormatField> {
    let bad = || {
        let shown: String = line.chars().take(80).collect();
        Error::malformed(format!("format line {shown:?} is not a field"))
    };
    let mut declaration = "";
    let (mut offset, mut size, mut signed) = (None, None, None);
    for part in line.split(';') {
        let Some((key, value)) = part.trim().split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key.trim() {
            "field" => declaration = value,
            "offset" => offset = value.parse::<u32>().ok(),
            "size" => size = value.parse::<u32>().ok(),
            "signed" => signed = value.parse::<u32>().ok().map(|v| v != 0),
            _ => {}
        }
    }
    let (Some(offset), Some(size)) = (offset, size) else {
        return Err(bad());
    };
    if offset > 0xffff || size > 0xffff {
        return Err(bad());
    }
    let (ty, name, array) = split_declaration(declaration).ok_or_else(bad)?;
    let elements = match declaration.rfind('[') {
        Some(i) if array == Array::Inline => {
            let inside = declaration[i + 1..].trim_end_matches(']');
            inside.trim().parse().unwrap_or(0)
        }
        _ => 0,
    };
    Ok(FormatField {
        // Kernels before 2.6.31 do not say; the type does.
        signed: signed.unwrap_or_else(|| type_is_signed(&ty)),
        name,
        ty,
        offset,
        size,
        array,
        elements,
    })
}

/// `__data_loc char[] name` is (`char`, `name`, DataLoc); `char comm[16]` is (`char`, `comm`, Inline).
fn split_declaration(declaration: &str) -> Option<(String, String, Array)> {
    let (rest, located) = match declaration.split_once(char::is_whitespace) {
        Some(("__data_loc", rest)) => (rest, Some(Array::DataLoc)),
        Some(("__rel_loc", rest)) => (rest, Some(Array::RelLoc)),
        _ => (declaration, None),
    };
    let (body, suffix) = match (located, rest.find('[')) {
        (None, Some(i)) => (&rest[..i], true),
        _ => (rest, false),
    };
    let body = body.trim_end();
    let cut = body.rfind(|c: char| c.is_whitespace() || c == '*' || c == ']')?;
    let name = body[cut + 1..].trim();
    let mut ty = body[..=cut].trim();
    if name.is_empty() || ty.is_empty() {
        return None;
    }
    let mut array = match (located, suffix) {
        (Some(a), _) => a,
        (None, true) => Array::Inline,
        (None, false) => Array::No,
    };
    if let Some(i) = ty.find('[') {
        ty = ty[..i].trim_end();
        if array == Array::No {
            array = Array::Inline;
        }
    }
    Some((ty.to_owned(), name.to_owned(), array))
}

fn type_is_signed(ty: &str) -> bool {
    if ty.contains('*') || ty.starts_with("unsigned") {
        return false;
    }
    matches!(
        ty.trim_start_matches("const ").trim(),
        "int"
            | "long"
            | "short"
            | "char"
            | "long long"
            | "s8"
            | "s16"
            | "s32"
            | "s64"
            | "pid_t"
            | "ssize_t"
            | "loff_t"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_strings_arrays_and_pointers() {
        let f = |s: &str| parse_field(s).unwrap();
        let a = f("\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;");
        assert_eq!((a.name.as_str(), a.ty.as_str()), ("pfn", "unsigned long"));
        assert_eq!(
            (a.offset, a.size, a.signed, a.array),
            (8, 8, false, Array::No)
        );
        let a = f("field:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;");
        assert_eq!(
            (a.name.as_str(), a.ty.as_str(), a.array),
            ("name", "char", Array::DataLoc)
        );
        let a = f("field:char comm[16];\toffset:8;\tsize:16;\tsigned:0;");
        assert_eq!(
            (a.name.as_str(), a.ty.as_str(), a.array),
            ("comm", "char", Array::Inline)
        );
        let a = f("field:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;");
        assert_eq!((a.name.as_str(), a.ty.as_str()), ("ptr", "const void *"));
        let a = f("field:char buf[];\toffset:12;\tsize:0;\tsigned:1;");
        assert_eq!((a.size, a.array), (0, Array::Inline));
        let a = f("field:__rel_loc u8[] data; offset:24; size:4; signed:0;");
        assert_eq!((a.ty.as_str(), a.array), ("u8", Array::RelLoc));
    }

    #[test]
    fn old_kernels_without_signed_take_it_from_the_type() {
        assert!(
            parse_field("field:int order;\toffset:8;\tsize:4;")
                .unwrap()
                .signed
        );
        assert!(
            !parse_field("field:gfp_t flags;\toffset:8;\tsize:4;")
                .unwrap()
                .signed
        );
    }

    #[test]
    fn a_format_without_an_id_or_with_a_senseless_field_is_refused() {
        assert!(EventFormat::parse("kmem", b"name: x\nformat:\n").is_err());
        assert!(EventFormat::parse("kmem", b"name: x\nID: 70000\n").is_err());
        assert!(parse_field("field:;offset:1;size:1;").is_err());
        assert!(parse_field("field:int x;offset:-1;size:1;").is_err());
        assert!(parse_field("field:int x;offset:99999999;size:1;").is_err());
    }
}
