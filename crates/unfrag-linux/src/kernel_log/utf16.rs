//! Text that Windows consoles save, as UTF-8.
//!
//! Invariant: text without the mark of UTF-16 passes as it is.

use std::io::{self, ErrorKind, Read};

/// A text as UTF-8.
pub struct Utf8<R> {
    input: R,
    form: Form,
    /// Bytes that are decoded and not given yet.
    ready: Vec<u8>,
    given: usize,
    /// Half of a unit or of a pair of units.
    left: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    NotKnown,
    AsItIs,
    LittleEndian,
    BigEndian,
}

impl<R: Read> Utf8<R> {
    /// The text of `input`.
    pub fn new(input: R) -> Utf8<R> {
        Utf8 {
            input,
            form: Form::NotKnown,
            ready: vec![],
            given: 0,
            left: vec![],
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        let mut mark = [0; 2];
        let mut n = 0;
        while n < 2 {
            match self.input.read(&mut mark[n..]) {
                Ok(0) => break,
                Ok(more) => n += more,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.form = match mark[..n] {
            [0xff, 0xfe] => Form::LittleEndian,
            [0xfe, 0xff] => Form::BigEndian,
            _ => {
                self.ready = mark[..n].to_vec();
                Form::AsItIs
            }
        };
        Ok(())
    }

    fn decode(&mut self) -> io::Result<usize> {
        let had = self.left.len();
        self.left.resize(had + (64 << 10), 0);
        let read = self.input.read(&mut self.left[had..]);
        self.left.truncate(had + *read.as_ref().unwrap_or(&0));
        let n = read?;
        let unit = |pair: &[u8]| match self.form {
            Form::BigEndian => u16::from_be_bytes([pair[0], pair[1]]),
            _ => u16::from_le_bytes([pair[0], pair[1]]),
        };
        let mut units: Vec<u16> = self.left.chunks_exact(2).map(unit).collect();
        // The first half of a pair waits for the second.
        let is_half = units.last().is_some_and(|u| (0xd800..0xdc00).contains(u)) && n > 0;
        if is_half {
            units.pop();
        }
        self.left.drain(..2 * units.len());
        let text: String = char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        self.ready = text.into_bytes();
        self.given = 0;
        Ok(n)
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.form == Form::NotKnown {
            self.begin()?;
        }
        while self.given == self.ready.len() {
            if self.form == Form::AsItIs {
                return self.input.read(buffer);
            }
            if self.decode()? == 0 {
                return Ok(0);
            }
        }
        let n = buffer.len().min(self.ready.len() - self.given);
        buffer[..n].copy_from_slice(&self.ready[self.given..self.given + n]);
        self.given += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_and_plain_text_are_read() {
        let text = "order:4 \u{1f427}\n".repeat(10_000);
        let read = |bytes: Vec<u8>| {
            let mut out = String::new();
            Utf8::new(&bytes[..]).read_to_string(&mut out).unwrap();
            out
        };
        let marked: Vec<u16> = std::iter::once(0xfeff).chain(text.encode_utf16()).collect();
        assert_eq!(
            read(marked.iter().flat_map(|u| u.to_le_bytes()).collect()),
            text
        );
        assert_eq!(
            read(marked.iter().flat_map(|u| u.to_be_bytes()).collect()),
            text
        );
        assert_eq!(read(text.clone().into_bytes()), text);
        assert_eq!(read(vec![b'x']), "x");
    }
}
