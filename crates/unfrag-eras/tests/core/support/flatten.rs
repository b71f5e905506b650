//! The rules of an era as paths and values, read from what `Debug` prints.

use unfrag_eras::Rules;

/// Every rule: its path through the fields, and its value or the name of its variant.
pub fn flat(rules: &Rules) -> Vec<(String, String)> {
    let text = format!("{rules:#?}");
    let mut all = Vec::new();
    // What each open bracket adds to the path.
    let mut open: Vec<Option<String>> = Vec::new();
    for line in text.lines().skip(1) {
        let line = line.trim().trim_end_matches(',');
        if matches!(line, "}" | ")") {
            open.pop();
            continue;
        }
        let (field, value) = match line.split_once(": ") {
            Some((field, value)) => (Some(field.to_owned()), value),
            None => (None, line),
        };
        let path: Vec<&str> = open
            .iter()
            .flatten()
            .chain(&field)
            .map(|s| s.as_str())
            .collect();
        let path = path.join(".");
        let begins = value.ends_with([' ', '{', '(']);
        let value = value.trim_end_matches([' ', '{', '(']);
        // A struct's name says nothing that its fields do not say.
        if field.is_some() && !value.ends_with("Rules") {
            all.push((path, value.to_owned()));
        } else if !begins {
            // What a tuple variant holds in itself.
            if let Some(last) = all.last_mut() {
                last.1 = format!("{}({value})", last.1);
            }
        }
        if begins {
            open.push(field);
        }
    }
    all
}
