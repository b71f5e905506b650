//! The sections of the rules by kernel: the numbered headings of the files in `rules`, a folder of the book.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::package::files_below;

/// The sections by number, each with the points that its text numbers: `(a)`, `3.`, or the first cell of a row.
#[derive(Debug, Default)]
pub struct Rules {
    sections: BTreeMap<String, BTreeSet<String>>,
}

impl Rules {
    /// Reads every folder `rules` below `docs` of the repository.
    ///
    /// # Errors
    /// A file that cannot be read, or a number that two headings have.
    pub fn read(repository: &Path) -> Result<Self, String> {
        let mut rules = Self::default();
        let docs = repository.join("docs");
        let in_rules = |path: &Path| {
            let folder = path.parent().and_then(Path::file_name);
            path.extension().is_some_and(|e| e == "md")
                && folder.is_some_and(|name| name == "rules")
        };
        if docs.is_dir() {
            for path in files_below(&docs, &in_rules).map_err(|error| error.to_string())? {
                let text = fs::read_to_string(&path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                rules
                    .add(&text)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        Ok(rules)
    }

    /// Adds the sections of one file.
    ///
    /// # Errors
    /// A number that a section has already.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let mut section: Option<String> = None;
        let mut in_code = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            } else if !in_code && line.starts_with('#') {
                section = heading_number(line);
                if let Some(number) = &section
                    && self
                        .sections
                        .insert(number.clone(), BTreeSet::new())
                        .is_some()
                {
                    return Err(format!("section {number} stands twice"));
                }
            } else if let Some(number) = &section
                && let Some(point) = point(line)
            {
                self.sections
                    .get_mut(number)
                    .expect("it was entered")
                    .insert(point);
            }
        }
        Ok(())
    }

    /// True if there is a section of this number.
    pub fn has(&self, number: &str) -> bool {
        self.sections.contains_key(number)
    }

    /// True if the section has a point of this name.
    pub fn has_point(&self, number: &str, point: &str) -> bool {
        self.sections
            .get(number)
            .is_some_and(|points| points.contains(point))
    }

    /// The number of sections.
    pub fn len(&self) -> usize {
        self.sections.len()
    }

    /// True if there is no section.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }
}

/// `5` of `# 5. Compaction`, `4.3` of `## 4.3 Slow path`, `K.2` of `## K.2 Failures`.
fn heading_number(line: &str) -> Option<String> {
    let word = line.trim_start_matches('#').split_whitespace().next()?;
    let number = word.strip_suffix('.').unwrap_or(word);
    let mut parts = number.split('.');
    let chapter = parts.next()?;
    let is_digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let lettered = chapter.len() == 1
        && chapter.starts_with(|c: char| c.is_ascii_uppercase())
        && word.contains('.');
    ((is_digits(chapter) || lettered) && parts.all(is_digits)).then(|| number.to_owned())
}

/// `a` of `(a) …` and `| (a) | …`, `3` of `3. …` and `| 3 | …`.
fn point(line: &str) -> Option<String> {
    let line = line.trim_start();
    let (line, in_row) = line
        .strip_prefix('|')
        .map_or((line, false), |cell| (cell.trim_start(), true));
    let end = line.find(|c: char| c == '|' || c.is_whitespace())?;
    let word = &line[..end];
    let bare = word
        .strip_prefix('(')
        .and_then(|w| w.strip_suffix(')'))
        .or_else(|| word.strip_suffix('.'))
        .or(in_row.then_some(word))?;
    (bare.len() <= 2 && !bare.is_empty() && bare.chars().all(|c| c.is_ascii_alphanumeric()))
        .then(|| bare.to_owned())
}
