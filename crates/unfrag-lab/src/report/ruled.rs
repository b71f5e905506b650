//! A table with a line below its head, as wide as its cells and no wider than a screen.
//!
//! Invariant: numbers stand to the right and are never broken; columns of words are made narrower where a screen demands it,
//! broken between words, and within a word that is longer than the column.

use std::ops::Range;

/// Blanks between two columns.
const GAP: &str = "   ";
/// Fewest characters of a column of words.
const NARROWEST: usize = 8;

/// The table.
pub(crate) struct Ruled {
    rows: Vec<Vec<String>>,
    numbers: Range<usize>,
}

impl Ruled {
    /// A table with this head; the columns `numbers` hold numbers, the others words.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>, numbers: Range<usize>) -> Ruled {
        let mut table = Ruled {
            rows: vec![],
            numbers,
        };
        table.push(head);
        table
    }

    /// Adds a row; cells that it lacks are empty.
    pub fn push<S: Into<String>>(&mut self, row: impl IntoIterator<Item = S>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// Its lines, the head's first, with `rule` for the line below that.
    pub fn lines(&self, width: usize, rule: char) -> Vec<String> {
        let widths = self.widths(width);
        let mut lines = vec![];
        for (i, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<String>> = widths
                .iter()
                .enumerate()
                .map(|(i, w)| broken(row.get(i).map_or("", |c| c), *w))
                .collect();
            let high = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..high {
                let padded = cells.iter().zip(&widths).enumerate().map(|(i, (cell, w))| {
                    let text = cell.get(line).map_or("", |l| l);
                    match self.numbers.contains(&i) {
                        true => format!("{text:>w$}"),
                        false => format!("{text:<w$}"),
                    }
                });
                let text = padded.collect::<Vec<_>>().join(GAP);
                lines.push(format!(" {text}").trim_end().to_owned());
            }
            if i == 0 {
                lines.push(rule.to_string().repeat(total(&widths)));
            }
        }
        lines
    }

    /// Widths of the columns, so that all fit if words can be broken for it.
    fn widths(&self, room: usize) -> Vec<usize> {
        let columns = self.rows[0].len();
        let widest = |i: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(i));
            cells.map(|c| c.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(widest).collect();
        let words = |i: &usize| !self.numbers.contains(i);
        while total(&widths) > room {
            let longest = (0..columns).filter(words).max_by_key(|&i| widths[i]);
            match longest.filter(|&i| widths[i] > NARROWEST) {
                Some(i) => widths[i] -= 1,
                None => break,
            }
        }
        widths
    }
}

/// Characters of a line: a blank stands at both ends.
fn total(widths: &[usize]) -> usize {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    widths.iter().sum::<usize>() + gaps + 2
}

/// The lines of a cell; those after the first are indented as the first is.
fn broken(cell: &str, width: usize) -> Vec<String> {
    if cell.chars().count() <= width {
        return vec![cell.to_owned()];
    }
    let indent = cell.len() - cell.trim_start_matches(' ').len();
    let indent = " ".repeat(indent.min(width / 2));
    let mut lines = vec![];
    let mut line = indent.clone();
    for word in cell.split_whitespace() {
        let is_begun = line.len() > indent.len();
        if is_begun && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, indent.clone()));
        } else if is_begun {
            line.push(' ');
        }
        for c in word.chars() {
            if line.chars().count() == width {
                lines.push(std::mem::replace(&mut line, indent.clone()));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Ruled {
        let mut table = Ruled::new(["what", "6.1"], 1..2);
        table.push(["free huge pages", "41"]);
        table.push(["  at the beginning", "1,280"]);
        table.push(["none"]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let lines = [
            " what                   6.1",
            "============================",
            " free huge pages         41",
            "   at the beginning   1,280",
            " none",
        ];
        assert_eq!(table().lines(80, '='), lines);
    }

    #[test]
    fn words_are_broken_where_the_screen_is_narrow_and_numbers_never() {
        let lines = [
            " what           6.1",
            "====================",
            " free huge       41",
            " pages",
            "   at the     1,280",
            "   beginnin",
            "   g",
            " none",
        ];
        assert_eq!(table().lines(20, '='), lines);
        let widest = table()
            .lines(0, '=')
            .iter()
            .map(|l| l.chars().count())
            .max();
        assert_eq!(widest, Some(NARROWEST + 5 + 3 + 2));
    }
}
