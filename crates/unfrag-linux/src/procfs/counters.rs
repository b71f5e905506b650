//! Named numbers in the order in which they stand in a file.

/// Named numbers, in order. Names may be unknown here, and may repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(pub Vec<(String, u64)>);

impl Counters {
    /// Value of the first counter called `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0
            .iter()
            .find(|(n, _)| n == name)
            .map(|&(_, value)| value)
    }

    /// Gives `name` the value, in its place if it is there, else at the end.
    pub fn set(&mut self, name: &str, value: u64) {
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, v)) => *v = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Adds a counter at the end.
    pub fn push(&mut self, name: &str, value: u64) {
        self.0.push((name.to_owned(), value));
    }

    /// All names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl<'a> FromIterator<(&'a str, u64)> for Counters {
    fn from_iter<I: IntoIterator<Item = (&'a str, u64)>>(items: I) -> Self {
        Self(
            items
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }
}
