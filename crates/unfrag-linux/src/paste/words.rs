//! A word of a paste: a key and a value, and the sum over several words.
//!
//! Invariant: no word has a blank, a hyphen at which a line could be broken, or a sign that Markdown takes for its own
//! beside others. None is longer than [`MOST_WORD`].

use std::fmt::Display;

/// Characters of a word at most.
const MOST_WORD: usize = 56;

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Word {
    pub key: String,
    pub value: String,
}

/// The words of a part, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(pub Vec<Word>);

impl Words {
    /// Adds a value.
    pub fn put(&mut self, key: &str, value: impl Display) {
        // A hyphen is where a line may be broken.
        let value = value.to_string().replace('-', ";");
        // A list may be empty, and a key alone is no word.
        if value.is_empty() {
            return;
        }
        self.0.push(Word {
            key: key.to_owned(),
            value,
        });
    }

    /// Adds several values. A word that ends in a comma goes on in the next one of its key.
    pub fn put_list(&mut self, key: &str, values: impl IntoIterator<Item = String>) {
        let mut rest = values.into_iter().peekable();
        let mut value = String::new();
        loop {
            let next = rest.next().unwrap_or_default();
            if !value.is_empty() && key.len() + value.len() + next.len() + 2 > MOST_WORD {
                self.put(key, std::mem::take(&mut value));
            }
            value += &next;
            if rest.peek().is_none() {
                break;
            }
            value.push(',');
        }
        self.put(key, value);
    }

    /// The sum over the words: how many, and a check of what they say.
    pub fn sum(&self) -> String {
        let mut crc = flate2::Crc::new();
        for word in &self.0 {
            crc.update(word.text().as_bytes());
            crc.update(b" ");
        }
        format!("{}.{:08x}", self.0.len(), crc.sum())
    }
}

impl Word {
    pub fn text(&self) -> String {
        format!("{}:{}", self.key, self.value)
    }

    /// The word that stands between blanks, without what quotes, lists and fences put around it; `None` if it is none.
    pub fn of(text: &str) -> Option<Word> {
        let text = text.trim_matches(|c: char| "`*|>\"'\\".contains(c));
        let (key, value) = text.split_once(':')?;
        let of_key = |b: u8| b.is_ascii_alphanumeric() || b"_.()".contains(&b);
        let of_value = |b: u8| b.is_ascii_alphanumeric() || b"_.,;+~[]".contains(&b);
        let fits = key.starts_with(|c: char| c.is_ascii_alphanumeric())
            && key.bytes().all(of_key)
            && !value.is_empty()
            && value.bytes().all(of_value);
        fits.then(|| Word {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }
}
