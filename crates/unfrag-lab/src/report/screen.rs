//! What a screen can show, and text that is safe on it.

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub color: bool,
    /// Whether characters beyond ASCII may be used, such as box-drawing and braille.
    pub unicode: bool,
}

impl Default for Screen {
    /// Eighty columns, unicode, no colour.
    fn default() -> Self {
        Screen {
            width: 80,
            color: false,
            unicode: true,
        }
    }
}

impl Screen {
    /// Text that stands out, where there is colour.
    pub fn stressed(&self, text: &str) -> String {
        match self.color {
            true => format!("\x1b[1m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// Text of an input with its control characters replaced, so that it cannot control the terminal.
pub fn printable(text: &str) -> String {
    let printable = |c: char| if c.is_control() { '?' } else { c };
    text.chars().map(printable).collect()
}

/// Lines of text, each of them [`printable`].
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(printable).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("s\x1b[2J\n0001"), "s?[2J?0001");
    }
}
