//! Citations of the rules in comments and strings: `spec:` and numbers of sections.
//!
//! The numbers are a list, `4.3, 4.8`; each can be a range, `1.4-1.6`, or a point of a section, `6.5 (d)`. A citation in
//! backticks holds nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use crate::package::files_below;
use crate::rules::Rules;
use crate::text::{Passage, passages};

/// The citations of a repository.
#[derive(Debug, Default)]
pub struct Citations {
    /// How many there are.
    pub count: usize,
    /// Those that lead nowhere: file, line, what is wrong.
    pub wrong: Vec<(PathBuf, usize, String)>,
}

impl Citations {
    /// Checks the citations of every Rust source of the repository, and of scripts and settings beside them.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(repository: &Path, rules: &Rules) -> Result<Self, String> {
        let mut citations = Self::default();
        let has_citations = |path: &Path| {
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            matches!(&*extension, "rs" | "toml" | "sh" | "py") || path.ends_with("run")
        };
        for path in files_below(repository, &has_citations).map_err(|error| error.to_string())? {
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let name = path.strip_prefix(repository).unwrap_or(&path);
            let passages = if path.extension().is_some_and(|e| e == "rs") {
                passages(&text)
            } else {
                text.lines()
                    .enumerate()
                    .map(|(n, line)| Passage::line(line, n + 1))
                    .collect()
            };
            for passage in passages {
                citations.check(name, &passage, rules);
            }
        }
        Ok(citations)
    }

    fn check(&mut self, file: &Path, passage: &Passage, rules: &Rules) {
        for (place, cited) in citations(&passage.text) {
            self.count += 1;
            let errors = match cited {
                Ok(cited) => cited
                    .iter()
                    .filter_map(|cited| missing(cited, rules))
                    .collect(),
                Err(error) => vec![error],
            };
            let line = passage.line_at(place);
            self.wrong.extend(
                errors
                    .into_iter()
                    .map(|error| (file.to_owned(), line, error)),
            );
        }
    }
}

/// What is cited: a section, the sections from one to another, or a point of a section.
#[derive(Debug, PartialEq, Eq)]
pub struct Cited {
    /// The number of the section, or of the first one.
    pub section: String,
    /// The number of the last section of a range.
    pub to: Option<String>,
    /// The point.
    pub point: Option<String>,
}

/// What of a citation is not in the rules.
fn missing(cited: &Cited, rules: &Rules) -> Option<String> {
    let section = &cited.section;
    if !rules.has(section) {
        return Some(format!("section {section} is not in the rules"));
    }
    if let Some(to) = &cited.to {
        let (Some((chapter, first)), Some((chapter_to, last))) =
            (last_number(section), last_number(to))
        else {
            return Some(format!("{section}-{to} is no range"));
        };
        if chapter != chapter_to || last <= first {
            return Some(format!("{section}-{to} is no range"));
        }
        let lost = (first..=last)
            .map(|n| format!("{chapter}{n}"))
            .find(|number| !rules.has(number))?;
        return Some(format!(
            "section {lost} of {section}-{to} is not in the rules"
        ));
    }
    let point = cited
        .point
        .as_ref()
        .filter(|point| !rules.has_point(section, point))?;
    Some(format!("section {section} has no point {point}"))
}

/// `("4.", 3)` of `4.3`.
fn last_number(section: &str) -> Option<(&str, u32)> {
    let at = section.rfind('.').map_or(0, |at| at + 1);
    Some((&section[..at], section[at..].parse().ok()?))
}

/// Every citation in a text: its place, and what it cites.
pub fn citations(text: &str) -> Vec<(usize, Result<Vec<Cited>, String>)> {
    let mut found = Vec::new();
    for (place, _) in text.match_indices("spec") {
        let before = text[..place].chars().next_back();
        let after = &text[place + "spec".len()..];
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let without_colon = after
            .strip_prefix("ification")
            .unwrap_or(after)
            .trim_start();
        if let Some(list) = after
            .strip_prefix(':')
            .filter(|list| list.starts_with(char::is_whitespace))
        {
            found.push((place, parse(list, before == Some('`'))));
        } else if without_colon.len() < after.len()
            && without_colon.starts_with(|c: char| c.is_ascii_digit())
        {
            found.push((
                place,
                Err("a section is cited in another form than `spec:` and numbers".to_owned()),
            ));
        }
    }
    found
}

/// The list after `spec:`.
fn parse(text: &str, in_backticks: bool) -> Result<Vec<Cited>, String> {
    let text = if in_backticks {
        let end = text.find('`').ok_or("a citation has no second backtick")?;
        &text[..end]
    } else {
        text
    };
    let shown: String = text.trim().chars().take(40).collect();
    let wrong = || format!("not numbers of sections: {shown}");
    let (first, mut rest) = cited(text.trim_start()).ok_or_else(wrong)?;
    let mut list = vec![first];
    while let Some((next, after)) = rest
        .strip_prefix([',', ';'])
        .and_then(|rest| cited(rest.trim_start()))
    {
        list.push(next);
        rest = after;
    }
    let ends = if in_backticks {
        rest.is_empty()
    } else {
        rest.is_empty() || rest.starts_with(['.', ',', ';', ':', ')', '"'])
    };
    if ends { Ok(list) } else { Err(wrong()) }
}

/// One element of the list at the beginning of `text`, and what follows it.
fn cited(text: &str) -> Option<(Cited, &str)> {
    let (section, mut rest) = number(text)?;
    let mut to = None;
    let mut point = None;
    if let Some((last, after)) = rest.strip_prefix('-').and_then(number) {
        to = Some(last.to_owned());
        rest = after;
    } else if let Some(inside) = rest.strip_prefix(" (") {
        let end = inside.find(')')?;
        point = Some(inside[..end].to_owned());
        rest = &inside[end + 1..];
    }
    Some((
        Cited {
            section: section.to_owned(),
            to,
            point,
        },
        rest,
    ))
}

/// The number of a section at the beginning of `text`, and what follows it.
fn number(text: &str) -> Option<(&str, &str)> {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let lettered = text.starts_with(|c: char| c.is_ascii_uppercase())
        && !text[1..].starts_with(|c: char| c.is_alphanumeric());
    let mut end = if lettered { 1 } else { digits(text) };
    if end == 0 {
        return None;
    }
    while text[end..].starts_with('.') && digits(&text[end + 1..]) > 0 {
        end += 1 + digits(&text[end + 1..]);
    }
    Some((&text[..end], &text[end..]))
}
