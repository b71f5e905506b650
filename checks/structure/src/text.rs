//! The comments and strings of a Rust file.

/// A comment or a string. Line comments that follow each other are one passage.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    /// The text, without comment marks, each line after a blank.
    pub text: String,
    /// Where in the text each line begins, with its number.
    lines: Vec<(usize, usize)>,
}

impl Passage {
    /// One line that is a passage.
    pub fn line(text: &str, number: usize) -> Self {
        let mut passage = Self::default();
        passage.push(text, number);
        passage
    }

    fn push(&mut self, text: &str, number: usize) {
        for (n, line) in text.lines().enumerate() {
            self.text.push(' ');
            self.lines.push((self.text.len(), number + n));
            self.text.push_str(line);
        }
    }

    /// The number of the line at this place of the text.
    pub fn line_at(&self, place: usize) -> usize {
        self.lines
            .iter()
            .rev()
            .find(|(start, _)| *start <= place)
            .map_or(1, |&(_, line)| line)
    }
}

/// The comments and strings of a Rust source.
pub(crate) fn passages(source: &str) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    // The line of the last line comment, if nothing but blanks stands after it.
    let mut comment_before = None;
    let mut rest = source;
    let mut line = 1;
    let mut in_word = false;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            let text = rest[..length]
                .trim_start_matches('/')
                .trim_start_matches('!')
                .trim();
            match found.last_mut() {
                Some(passage) if comment_before == Some(line - 1) => passage.push(text, line),
                _ => found.push(Passage::line(text, line)),
            }
            comment_before = Some(line);
            length
        } else if rest.starts_with("/*") {
            let length = block_comment(rest);
            found.push(Passage::line(&rest[..length], line));
            length
        } else if let Some(string) = string(rest).filter(|_| !in_word || first == '"') {
            found.push(Passage::line(&rest[string.text.clone()], line));
            string.length
        } else if first == '\'' {
            character(rest)
        } else {
            first.len_utf8()
        };
        if !rest.starts_with("//") && !first.is_whitespace() {
            comment_before = None;
        }
        in_word = first.is_alphanumeric() || first == '_';
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

struct StringLiteral {
    text: std::ops::Range<usize>,
    length: usize,
}

/// The string literal at the beginning of `text`, if one is there.
fn string(text: &str) -> Option<StringLiteral> {
    let prefix = text
        .find(|c| !matches!(c, 'b' | 'c' | 'r'))
        .filter(|&length| length <= 2)?;
    let hashes = text[prefix..].find(|c| c != '#')?;
    let open = prefix + hashes;
    let raw = text[..prefix].contains('r');
    if !text[open..].starts_with('"') || (hashes > 0 && !raw) {
        return None;
    }
    let begin = open + 1;
    if raw {
        let close = format!("\"{}", "#".repeat(hashes));
        let end = text[begin..]
            .find(&close)
            .map_or(text.len(), |at| begin + at);
        return Some(StringLiteral {
            text: begin..end,
            length: (end + close.len()).min(text.len()),
        });
    }
    let mut escaped = false;
    for (at, c) in text[begin..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                return Some(StringLiteral {
                    text: begin..begin + at,
                    length: begin + at + 1,
                });
            }
            _ => {}
        }
    }
    Some(StringLiteral {
        text: begin..text.len(),
        length: text.len(),
    })
}

/// The length of a character literal, or 1 for the mark of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars
                .find(|(_, c)| *c == '\'')
                .map_or(text.len(), |(at, _)| at + 1)
        }
        Some(_) => chars
            .next()
            .filter(|(_, c)| *c == '\'')
            .map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}
