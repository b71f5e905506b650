//! Kernel stacks: the addresses of a `kernel_stack` event, folded into one string.
//!
//! Invariant: the outermost function stands first, and functions are parted by `;`, so that stacks of one beginning sort
//! together. An address without a name stays a number, `0xffffffff81000000`. A stack that was met before is its number.

use std::collections::HashMap;

use super::format::{Array, EventFormat};
use super::intern::Strings;
use super::symbols::Symbols;
use crate::trace::bytes::{u32_at, u64_at};

/// What a tracer writes for code that it made itself.
const TRAMPOLINE: u64 = i32::MAX as u64;

/// The field of the event in a recording.
pub(crate) const FIELD: &str = "stack";

/// Where the addresses stand in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackFields {
    /// Number of addresses.
    size_at: Option<u32>,
    /// The innermost of them.
    callers_at: u32,
    /// Bytes of an address.
    width: u32,
}

impl StackFields {
    /// Of an event's format; `None` if it is no kernel stack.
    pub fn of(format: &EventFormat) -> Option<StackFields> {
        if (&format.system[..], &format.name[..]) != ("ftrace", "kernel_stack") {
            return None;
        }
        let callers = format.field("caller")?;
        let width = match (callers.array, callers.size.checked_div(callers.elements)) {
            (Array::Inline, Some(width @ (4 | 8))) => width,
            // An array without a length; its place tells how it is aligned.
            (Array::Inline, _) if callers.offset % 8 == 0 => 8,
            (Array::Inline, _) => 4,
            _ => return None,
        };
        Some(StackFields {
            size_at: format
                .field("size")
                .filter(|f| f.size == 4)
                .map(|f| f.offset),
            callers_at: callers.offset,
            width,
        })
    }

    /// The bytes of the addresses: as many as the record says and has.
    fn addresses<'r>(&self, record: &'r [u8], big_endian: bool) -> &'r [u8] {
        let rest = record.get(self.callers_at as usize..).unwrap_or(&[]);
        let whole = rest.len() / self.width as usize * self.width as usize;
        let said = match self.size_at {
            Some(at) if at as usize + 4 <= record.len() => u32_at(record, at as usize, big_endian),
            _ => u32::MAX,
        };
        let said = (said as usize).saturating_mul(self.width as usize);
        &rest[..whole.min(said)]
    }
}

/// The stacks met so far.
#[derive(Default)]
pub(crate) struct Stacks {
    pub symbols: Symbols,
    /// By bytes of the addresses, the number of the string.
    known: HashMap<Box<[u8]>, u32>,
}

impl Stacks {
    /// The number of the string of a record's stack, and bytes that it newly takes.
    pub fn fold(
        &mut self,
        fields: &StackFields,
        record: &[u8],
        big_endian: bool,
        strings: &mut Strings,
    ) -> (u32, u64) {
        let bytes = fields.addresses(record, big_endian);
        if let Some(&index) = self.known.get(bytes) {
            return (index, 0);
        }
        let width = fields.width as usize;
        let addresses = bytes.chunks_exact(width).map(|a| match width {
            8 => u64_at(a, 0, big_endian),
            _ => u32_at(a, 0, big_endian).into(),
        });
        // Kernels before 5.2 end a stack with such a mark.
        let end = |&a: &u64| a != 0 && a != u64::MAX && !(width == 4 && a == u64::from(u32::MAX));
        let mut names: Vec<String> = addresses.take_while(end).map(|a| self.name(a)).collect();
        names.reverse();
        let folded = names.join(";");
        let index = strings.intern(folded.as_bytes());
        self.known.insert(bytes.into(), index);
        (index, (bytes.len() + folded.len()) as u64 + 96)
    }

    fn name(&self, address: u64) -> String {
        match self.symbols.caller(address) {
            // It parts functions here.
            Some(name) => name.replace(';', "_"),
            None if address == TRAMPOLINE => "ftrace_trampoline".into(),
            None => format!("{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &[u8] = b"name: kernel_stack\nID: 4\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";

    fn record(size: u32, callers: &[u64]) -> Vec<u8> {
        let mut r = vec![4, 0, 0, 0, 0, 0, 0, 0];
        r.extend(size.to_le_bytes());
        r.extend([0; 4]);
        callers.iter().for_each(|c| r.extend(c.to_le_bytes()));
        r
    }

    fn folded(stacks: &mut Stacks, record: &[u8]) -> String {
        let format = EventFormat::parse("ftrace", FORMAT).unwrap();
        let fields = StackFields::of(&format).unwrap();
        let mut strings = Strings::default();
        stacks.known.clear();
        let (index, _) = stacks.fold(&fields, record, false, &mut strings);
        strings.get(index.into()).unwrap().to_owned()
    }

    #[test]
    fn a_stack_has_its_outermost_function_first_and_more_than_the_format_shows() {
        let list = b"1000 T entry\n2000 T write\n3000 t alloc\t[mod]\n";
        let mut stacks = Stacks {
            symbols: Symbols::parse(list),
            ..Stacks::default()
        };
        let all = [0x3010, 0x2010, 0x1010].repeat(4);
        let text = folded(&mut stacks, &record(12, &all));
        assert_eq!(text.split(';').count(), 12);
        assert!(text.ends_with("entry;write;alloc [mod]"), "{text}");
        // What the record does not count is room that was not used.
        assert_eq!(folded(&mut stacks, &record(2, &all)), "write;alloc [mod]");
    }

    #[test]
    fn what_has_no_name_stays_a_number_and_a_cut_record_is_no_more_than_it_holds() {
        let mut stacks = Stacks::default();
        assert_eq!(folded(&mut stacks, &record(9, &[0x11, 0x22])), "0x22;0x11");
        assert_eq!(
            folded(&mut stacks, &record(3, &[0x11, u64::MAX, 0x22])),
            "0x11"
        );
        assert_eq!(folded(&mut stacks, &record(0, &[])), "");
        assert_eq!(folded(&mut stacks, &[4, 0]), "");
    }

    #[test]
    fn only_the_tracers_own_event_is_a_stack() {
        for (system, from, to) in [
            ("kmem", "", ""),
            ("ftrace", "kernel_stack", "user_stack"),
            ("ftrace", "caller", "called"),
        ] {
            let text = String::from_utf8_lossy(FORMAT).replace(from, to);
            let text = if from.is_empty() {
                String::from_utf8_lossy(FORMAT).into()
            } else {
                text
            };
            let format = EventFormat::parse(system, text.as_bytes()).unwrap();
            assert_eq!(StackFields::of(&format), None, "{system} {to}");
        }
    }
}
