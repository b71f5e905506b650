//! A mistake in a file: what is wrong, where, and how to mend it.

use std::fmt;
use std::ops::Range;

/// A mistake in a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: String,
    /// Where; none if it is the file as a whole.
    pub place: Option<Box<TextPlace>>,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPlace {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The line itself.
    pub text: String,
    /// Number of characters that are marked.
    pub width: usize,
}

impl ScenarioError {
    /// A mistake at a range of bytes of a file, or about the file as a whole.
    pub fn at(
        file: &str,
        text: &str,
        span: Option<Range<usize>>,
        message: impl Into<String>,
    ) -> ScenarioError {
        let mut error = ScenarioError {
            file: file.to_owned(),
            place: None,
            message: message.into(),
            help: None,
        };
        if let Some(span) = span {
            let start = text.floor_char_boundary(span.start);
            let begin = text[..start].rfind('\n').map_or(0, |i| i + 1);
            let end = text[begin..].find('\n').map_or(text.len(), |i| begin + i);
            let stop = text
                .ceil_char_boundary(span.end)
                .clamp(start, end.max(start));
            let number = text[..start].matches('\n').count() + 1;
            error.place = Some(Box::new(TextPlace {
                line: number,
                column: text[begin..start].chars().count() + 1,
                text: text[begin..end].to_owned(),
                width: text[start..stop].chars().count().max(1),
            }));
        }
        error
    }

    /// Adds the help.
    pub fn help(self, help: impl Into<String>) -> ScenarioError {
        ScenarioError {
            help: Some(help.into()),
            ..self
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.place.as_deref() {
            None => write!(f, "{}: {}", self.file, self.message)?,
            Some(TextPlace {
                line,
                column,
                text,
                width,
            }) => {
                writeln!(f, "{}:{line}:{column}: {}", self.file, self.message)?;
                let margin = line.to_string().len();
                writeln!(f, " {line} | {text}")?;
                let marks = "^".repeat(*width);
                let indent = " ".repeat(column - 1);
                write!(f, " {:margin$} | {indent}{marks}", "")?;
            }
        }
        match &self.help {
            Some(help) => write!(f, "\n help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_shows_the_place() {
        let text = "a = 1\nüb = \"x\"\n";
        let at = text.find('"').unwrap();
        let e = ScenarioError::at("f.toml", text, Some(at..at + 3), "no").help("say yes");
        let shown = "f.toml:2:6: no\n 2 | üb = \"x\"\n   |      ^^^\n help: say yes";
        assert_eq!(e.to_string(), shown);
        let whole = ScenarioError::at("f.toml", text, None, "no");
        assert_eq!(whole.to_string(), "f.toml: no");
        // Beyond the end, as at a missing value.
        let e = ScenarioError::at("f.toml", text, Some(text.len()..text.len() + 4), "no");
        assert!(e.place.is_some_and(|p| (p.line, p.column) == (3, 1)));
    }
}
