//! Names of the kernel's code by address, as `/proc/kallsyms` lists them.
//!
//! Invariant: an address has a name only if a listed function begins at most [`LONGEST`] bytes before it, and the end of the
//! kernel's own code does not lie between them. Where the list hides its addresses, none has one.

/// Most bytes from the beginning of a function to an address in it.
const LONGEST: u64 = 256 << 10;

/// The list of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    /// Beginning of each function and its name, with its module; ascending, and of several at one address the first listed.
    functions: Vec<(u64, String)>,
    /// End of the kernel's own code.
    end: Option<u64>,
}

impl Symbols {
    /// Reads lines `ADDRESS TYPE NAME [MODULE]`, of one list or of several.
    pub fn parse(list: &[u8]) -> Symbols {
        let mut symbols = Symbols::default();
        for (address, name, module) in String::from_utf8_lossy(list).lines().filter_map(line) {
            if name == "_etext" && module.is_none() {
                symbols.end = Some(address);
            }
            let name = match module {
                Some(module) => format!("{name} {module}"),
                None => name.to_owned(),
            };
            symbols.functions.push((address, name));
        }
        symbols.functions.sort_by_key(|(address, _)| *address);
        symbols.functions.dedup_by_key(|(address, _)| *address);
        symbols
    }

    /// Whether it holds no name: the kernel hid the addresses, or there was no list.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that a call came from which returns to `address`.
    pub fn caller(&self, address: u64) -> Option<&str> {
        // A call may be the last instruction of a function.
        let inside = address.checked_sub(1)?;
        let after = self
            .functions
            .partition_point(|(begin, _)| *begin <= inside);
        let (begin, name) = self.functions.get(after.checked_sub(1)?)?;
        let beyond = self.end.is_some_and(|end| *begin <= end && end <= inside);
        (inside - begin <= LONGEST && !beyond).then_some(name)
    }
}

/// The code on a line of the list; `None` for data, and where the address is hidden.
fn line(line: &str) -> Option<(u64, &str, Option<&str>)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = words.next()?;
    let (name, module) = (words.next()?, words.next());
    (address != 0 && is_code(kind)).then_some((address, name, module))
}

/// Whether nm(1) calls it code.
fn is_code(kind: &str) -> bool {
    matches!(kind, "t" | "T" | "w" | "W")
}

/// The lines of code in a list, and no others.
pub(crate) fn code_of(list: &[u8]) -> Vec<u8> {
    let mut code = Vec::with_capacity(list.len());
    for l in list.split_inclusive(|&b| b == b'\n') {
        if std::str::from_utf8(l).ok().and_then(line).is_some() {
            code.extend_from_slice(l);
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] =
        b"ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000100 t do_one\n\
        ffffffff81000200 D data\nffffffff81000300 T _etext\nffffffffc0a00000 t send\t[e1000]\n";

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let s = Symbols::parse(LIST);
        assert_eq!(s.caller(0xffff_ffff_8100_0101), Some("do_one"));
        assert_eq!(s.caller(0xffff_ffff_8100_02ff), Some("do_one"));
        assert_eq!(
            s.caller(0xffff_ffff_8100_0100),
            Some("_stext"),
            "returned behind it"
        );
        assert_eq!(s.caller(0xffff_ffff_c0a0_0010), Some("send [e1000]"));
    }

    #[test]
    fn what_is_far_from_any_function_has_no_name() {
        let s = Symbols::parse(LIST);
        for address in [0, 1, 0xffff_ffff_8100_0400, 0xffff_ffff_c0b0_0000] {
            assert_eq!(s.caller(address), None, "{address:#x}");
        }
    }

    #[test]
    fn a_list_without_addresses_names_nothing() {
        let hidden = b"0000000000000000 T _stext\n0000000000000000 t do_one\n";
        assert!(Symbols::parse(hidden).is_empty());
        assert_eq!(code_of(hidden), b"");
    }

    #[test]
    fn only_code_is_kept() {
        assert_eq!(code_of(LIST).iter().filter(|&&b| b == b'\n').count(), 5);
    }
}
