//! Names by number: each once, so that what a walk counts is counted by a number.
//!
//! Invariant: a name keeps its number, and `all` has it there.

use std::collections::HashMap;

/// Number of a name.
pub(crate) type NameId = u32;

/// Names, by number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<String, NameId>,
    pub all: Vec<String>,
}

impl Names {
    /// The number of a name, which it gets if it has none.
    pub fn number(&mut self, name: &str) -> NameId {
        if let Some(&number) = self.known.get(name) {
            return number;
        }
        let number = self.all.len() as NameId;
        self.all.push(name.to_owned());
        self.known.insert(name.to_owned(), number);
        number
    }
}
