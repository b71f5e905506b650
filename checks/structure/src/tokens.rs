//! Paths and definitions in tokens that are not parsed: macro calls, macro bodies, attributes.

use proc_macro2::{Delimiter, Literal, Spacing, TokenStream, TokenTree};

use crate::scope::Segments;

/// A path found in tokens.
pub(crate) struct Found {
    /// The path.
    pub path: Segments,
    /// The line.
    pub line: usize,
}

/// What looks like a path: names joined by `::`, or a name alone that is no field, method or keyword.
pub(crate) fn paths(stream: TokenStream) -> Vec<Found> {
    let mut found = Vec::new();
    scan(stream, &mut found);
    found
}

fn scan(stream: TokenStream, found: &mut Vec<Found>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => scan(group.stream(), found),
            TokenTree::Ident(first) => {
                let line = first.span().start().line;
                let mut names = vec![plain(first)];
                let start = at;
                while let Some(TokenTree::Ident(next)) = tokens.get(at + 3)
                    && is_colons(&tokens, at + 1)
                {
                    names.push(plain(next));
                    at += 3;
                }
                if begins_path(&tokens, start)
                    && (names.len() > 1 || stands_alone(&tokens, start, &names[0]))
                {
                    // `a::{b, c}` is a `use` inside a macro: each of its names.
                    if let Some(TokenTree::Group(group)) = tokens.get(at + 3)
                        && is_colons(&tokens, at + 1)
                        && group.delimiter() == Delimiter::Brace
                    {
                        for inner in paths(group.stream()) {
                            let mut names = names.clone();
                            names.extend(inner.path.names);
                            found.push(Found {
                                path: Segments {
                                    global: false,
                                    names,
                                },
                                line: inner.line,
                            });
                        }
                        at += 3;
                    } else {
                        found.push(Found {
                            path: Segments {
                                global: false,
                                names,
                            },
                            line,
                        });
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
}

fn plain(ident: &proc_macro2::Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == wanted)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':' && p.spacing() == Spacing::Joint)
        && is_punct(tokens.get(at + 1), ':')
}

/// False after `.` (a field), `::` (the rest of a longer path), `'` (a lifetime) and `$` (unless it is `$crate`).
fn begins_path(tokens: &[TokenTree], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|i| tokens.get(i));
    if is_punct(before(1), '$') {
        return matches!(&tokens[at], TokenTree::Ident(name) if *name == "crate");
    }
    if is_punct(before(1), '.') {
        // A range, `0..LIMIT`, ends in two points.
        return is_punct(before(2), '.');
    }
    let colons = is_punct(before(1), ':') && is_punct(before(2), ':');
    !colons && !is_punct(before(1), '\'')
}

fn stands_alone(tokens: &[TokenTree], at: usize, name: &str) -> bool {
    const KEYWORDS: &[&str] = &["crate", "super", "self", "Self"];
    // `name: value` is a field, or a variable with its type.
    let field = is_punct(tokens.get(at + 1), ':') && !is_colons(tokens, at + 1);
    !field && !KEYWORDS.contains(&name)
}

/// The items that a macro call may define.
pub(crate) struct Definitions {
    /// Names after `struct`, `enum`, `fn` and the like.
    pub certain: Vec<String>,
    /// Every other name in the call.
    pub possible: Vec<String>,
}

/// The items that a macro call with these tokens may define.
pub(crate) fn definitions(stream: TokenStream) -> Definitions {
    const WORDS: &[&str] = &[
        "struct", "enum", "union", "trait", "fn", "const", "static", "type", "mod",
    ];
    let mut made = Definitions {
        certain: Vec::new(),
        possible: Vec::new(),
    };
    let mut streams = vec![(stream, true)];
    while let Some((stream, outermost)) = streams.pop() {
        let mut after_word = false;
        for token in stream {
            match token {
                TokenTree::Ident(ident) => {
                    let name = plain(&ident);
                    if WORDS.contains(&name.as_str()) {
                        after_word = true;
                        continue;
                    }
                    if after_word && outermost {
                        // `const fn` and `static mut` have two words.
                        if name != "mut" && name != "unsafe" {
                            made.certain.push(name);
                        } else {
                            continue;
                        }
                    } else {
                        made.possible.push(name);
                    }
                }
                TokenTree::Group(group) => streams.push((group.stream(), false)),
                _ => {}
            }
            after_word = false;
        }
    }
    made
}

/// Paths in an attribute: those of two names or more, a name after `=`, and strings that `serde` reads as paths.
pub(crate) fn attribute_paths(stream: TokenStream) -> Vec<Found> {
    const KEYS: &[&str] = &[
        "with",
        "default",
        "serialize_with",
        "deserialize_with",
        "skip_serializing_if",
        "remote",
        "from",
        "into",
    ];
    let mut found = paths(stream.clone());
    found.retain(|found| found.path.names.len() > 1);
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for window in tokens.windows(3) {
        let [TokenTree::Ident(key), equals, value] = window else {
            continue;
        };
        if !is_punct(Some(equals), '=') {
            continue;
        }
        match value {
            TokenTree::Ident(name) => {
                let path = Segments {
                    global: false,
                    names: vec![plain(name)],
                };
                found.push(Found {
                    path,
                    line: name.span().start().line,
                });
            }
            TokenTree::Literal(text) if KEYS.contains(&key.to_string().as_str()) => {
                found.extend(string_path(text))
            }
            _ => {}
        }
    }
    found
}

fn string_path(literal: &Literal) -> Option<Found> {
    let text = literal.to_string();
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    let names: Vec<String> = text.split("::").map(str::to_owned).collect();
    let is_name =
        |name: &String| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
    names.iter().all(is_name).then(|| Found {
        path: Segments {
            global: false,
            names,
        },
        line: literal.span().start().line,
    })
}
