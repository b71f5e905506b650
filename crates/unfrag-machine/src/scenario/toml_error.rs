//! Messages of the TOML reader, in the terms of a scenario and with help.

use crate::input::ScenarioError;
use std::ops::Range;

/// The error for a message of the reader, at its place.
pub(super) fn mistake(
    file: &str,
    text: &str,
    span: Option<Range<usize>>,
    said: &str,
) -> ScenarioError {
    let (message, help) = in_words(said);
    let error = ScenarioError::at(file, text, span, message);
    match help {
        Some(help) => error.help(help),
        None => error,
    }
}

fn in_words(said: &str) -> (String, Option<String>) {
    if said.starts_with("wanted exactly 1 element") {
        let help = "give each step a table of its own, { … }, { … }";
        return ("a step is one thing".to_owned(), Some(help.to_owned()));
    }
    if said.contains("expected newtype variant") || said.contains("expected struct variant") {
        let help = "write it as a table, { STEP = … }";
        return (
            "this step needs to be told more".to_owned(),
            Some(help.to_owned()),
        );
    }
    if said == "invalid type: map, expected a sequence" {
        let help = "write its name in two brackets, [[…]]: there may be several";
        return ("this is one of a list".to_owned(), Some(help.to_owned()));
    }
    if let Some(key) = said.strip_prefix("missing field `") {
        let key = key.trim_end_matches('`');
        let help = format!("give it, `{key} = …`; or, if it is a table, [{key}] or [[{key}]]");
        return (said.to_owned(), Some(help));
    }
    let mut message = said.to_owned();
    for number in ["usize", "u64", "u32", "u8"] {
        message = message.replace(&format!("expected {number}"), "expected a whole number");
    }
    // `like` is resolved before the keys of a machine are read.
    message = message.replace(
        "expected one of `name`, `layout`",
        "expected one of `name`, `like`, `layout`",
    );
    (message, None)
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    #[test]
    fn reader_messages_have_help() {
        let small = include_str!("../../../../samples/small-build.toml");
        assert!(Scenario::parse("s.toml", small).is_ok());
        for (from, to, message, help) in [
            ("limit = ", "limits = ", "unknown field `limits`", ""),
            ("[[task]]", "[task]", "this is one of a list", "[[…]]"),
            ("cpus = 2", "cpus = \"2\"", "expected a whole number", ""),
            ("cpus = 2", "cpu = 2", "`name`, `like`, `layout`", ""),
            (
                "{ exec = \"cc\" }",
                "\"exec\"",
                "needs to be told more",
                "{ STEP = … }",
            ),
            (
                "{ exec = \"cc\" }",
                "{ exec = \"cc\", compute = \"1 ms\" }",
                "a step is one thing",
                "own",
            ),
        ] {
            let text = small.replacen(from, to, 1);
            assert_ne!(text, small, "{from}");
            let e = Scenario::parse("s.toml", &text).unwrap_err();
            assert!(e.message.contains(message), "{e}");
            assert!(e.help.unwrap_or_default().contains(help), "{message}");
            assert!(e.place.is_some(), "{message}");
        }
        let without = small.lines().filter(|l| !l.starts_with("limit"));
        let without: Vec<_> = without.collect();
        let e = Scenario::parse("s.toml", &without.join("\n")).unwrap_err();
        assert_eq!(e.message, "missing field `limit`");
        assert!(
            e.help
                .is_some_and(|h| h.starts_with("give it, `limit = …`"))
        );
    }
}
