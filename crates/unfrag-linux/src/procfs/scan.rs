//! A cursor over the text of a procfs file; its errors name the byte at which they arose.
//!
//! Invariant: `at` never passes the end and only moves forwards. Spaces and tabs between tokens are
//! skipped in any number, newlines never: a token that is missing is reported on its own line.

use crate::error::Error;

/// The cursor.
pub(crate) struct Scan<'a> {
    /// Name of the format, such as `buddyinfo`, to put into errors.
    format: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// A cursor at the start of `bytes`, a text of `format`.
    pub fn new(format: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            format,
            bytes,
            at: 0,
        }
    }

    /// An error at the current place.
    pub fn error(&self, cause: impl std::fmt::Display) -> Error {
        self.error_at(self.at, cause)
    }

    /// An error at byte `at`.
    pub fn error_at(&self, at: usize, cause: impl std::fmt::Display) -> Error {
        Error::malformed(format!("{}: {cause}", self.format)).at(at as u64)
    }

    /// Offset of the next byte.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The bytes from `from` to here.
    pub fn since(&self, from: usize) -> &'a [u8] {
        &self.bytes[from..self.at]
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips spaces and tabs; gives their number.
    pub fn spaces(&mut self) -> usize {
        let from = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.at - from
    }

    /// How many spaces stand here, without passing them.
    pub fn indent(&self) -> usize {
        self.rest().iter().take_while(|&&b| b == b' ').count()
    }

    /// Whether, after spaces, `text` comes next; nothing is passed.
    pub fn sees(&self, text: &str) -> bool {
        let rest = self.rest();
        let skip = rest
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        rest[skip..].starts_with(text.as_bytes())
    }

    /// Passes spaces and then `text` if it comes next.
    pub fn accept(&mut self, text: &str) -> bool {
        let found = self.sees(text);
        if found {
            self.spaces();
            self.at += text.len();
        }
        found
    }

    /// Passes spaces and then `text`.
    pub fn expect(&mut self, text: &str) -> Result<(), Error> {
        if self.accept(text) {
            return Ok(());
        }
        self.spaces();
        Err(self.error(format!("expected {text:?}, found {:?}", self.excerpt())))
    }

    /// Whether, after spaces, the line is at its end; nothing is passed.
    pub fn is_at_line_end(&self) -> bool {
        self.rest()
            .iter()
            .find(|b| !matches!(b, b' ' | b'\t'))
            .is_none_or(|&b| b == b'\n')
    }

    /// Passes spaces and the end of the line.
    pub fn line_end(&mut self) -> Result<(), Error> {
        self.spaces();
        match self.peek() {
            Some(b'\n') => {
                self.at += 1;
                Ok(())
            }
            None => Err(self.cut_off()),
            Some(_) => {
                let found = self.excerpt();
                Err(self.error(format!("expected the end of the line, found {found:?}")))
            }
        }
    }

    /// The next word: what stands up to a space, a newline or one of `stops`.
    pub fn word(&mut self, stops: &[u8]) -> Result<&'a str, Error> {
        self.spaces();
        let from = self.at;
        while self
            .peek()
            .is_some_and(|b| !b.is_ascii_whitespace() && !stops.contains(&b))
        {
            self.at += 1;
        }
        if from == self.at {
            return Err(self.error(format!("expected a name, found {:?}", self.excerpt())));
        }
        std::str::from_utf8(self.since(from)).map_err(|_| self.error_at(from, "name is not UTF-8"))
    }

    /// The next number, in decimal.
    pub fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Error> {
        self.spaces();
        let from = self.at;
        let mut value = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = value
                .checked_mul(10)
                .and_then(|v| v.checked_add(u64::from(digit - b'0')))
                .ok_or_else(|| self.error_at(from, "number does not fit 64 bits"))?;
            self.at += 1;
        }
        if from == self.at {
            return Err(self.error(format!("expected a number, found {:?}", self.excerpt())));
        }
        T::try_from(value)
            .map_err(|_| self.error_at(from, format!("{value} is too large for this field")))
    }

    /// The next number, which may be negative.
    pub fn signed<T: TryFrom<i64>>(&mut self) -> Result<T, Error> {
        self.spaces();
        let from = self.at;
        let negative = self.accept("-");
        let magnitude: u64 = self.number()?;
        let value = if negative {
            0i64.checked_sub_unsigned(magnitude)
        } else {
            i64::try_from(magnitude).ok()
        };
        value
            .and_then(|v| T::try_from(v).ok())
            .ok_or_else(|| self.error_at(from, "number is out of this field's range"))
    }

    /// `text` and then a number.
    pub fn labelled<T: TryFrom<u64>>(&mut self, text: &str) -> Result<T, Error> {
        self.expect(text)?;
        self.number()
    }

    /// The rest of the line without its newline, which is passed.
    pub fn line(&mut self) -> Result<&'a str, Error> {
        let rest = self.rest();
        let len = rest
            .iter()
            .position(|&b| b == b'\n')
            .ok_or_else(|| self.cut_off())?;
        let line = std::str::from_utf8(&rest[..len]);
        let line = line.map_err(|e| self.error_at(self.at + e.valid_up_to(), "not UTF-8"))?;
        self.at += len + 1;
        Ok(line)
    }

    fn cut_off(&self) -> Error {
        let what = format!("{}: a line with its newline", self.format);
        Error::truncated(what, self.rest().len() as u64 + 1, self.rest().len() as u64)
            .at(self.at as u64)
    }

    /// The beginning of what is left of the line, for an error.
    fn excerpt(&self) -> String {
        let rest = self.rest();
        let len = rest
            .iter()
            .take(40)
            .position(|&b| b == b'\n')
            .unwrap_or(rest.len().min(40));
        String::from_utf8_lossy(&rest[..len]).into_owned()
    }
}
