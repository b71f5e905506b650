//! What mails, web pages and chats made of a text, as plain text again.
//!
//! Three encodings are undone: quoted-printable of mails (`=3D`, a line that ends in `=`), HTML (`<br>`, `&gt;`), and the
//! escapes of JSON and of programs (`\n`).
//!
//! Invariant: no sign that a word of a paste may have is changed, so text that is plain stays as it is.

use std::borrow::Cow;

/// Characters of a tag of HTML at most; what is longer is no tag.
const MOST_TAG: usize = 4096;

/// Tags that may stand inside of a word.
const INSIDE: [&str; 12] = [
    "a", "b", "code", "em", "font", "i", "mark", "s", "span", "strong", "u", "wbr",
];

/// The text without the encodings.
pub(super) fn plain(text: &str) -> String {
    let text = without_quoted_printable(text);
    let text = without_tags(&text);
    let text = without_entities(&text);
    let text = match text.contains('\\') {
        true => text
            .replace("\\r", " ")
            .replace("\\n", " ")
            .replace("\\t", " "),
        false => text.into_owned(),
    };
    text.replace(is_invisible, "")
}

/// Signs without width, which editors and chats put where a line may be broken.
fn is_invisible(c: char) -> bool {
    [
        '\u{ad}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}',
    ]
    .contains(&c)
}

/// Quoted-printable, undone. A line that ends in `=` goes on in the next, before which a mailer may have put its marks of
/// quotes.
fn without_quoted_printable(text: &str) -> Cow<'_, str> {
    if !text.contains('=') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        out += &rest[..at];
        let after = &rest[at + 1..];
        let line = after.trim_start_matches([' ', '\t', '\r']);
        let code = after
            .get(..2)
            .filter(|c| c.bytes().all(|b| b.is_ascii_hexdigit()));
        if let Some(next) = line.strip_prefix('\n') {
            rest = without_quotes(next);
        } else if let Some(byte) = code.and_then(|c| u8::from_str_radix(c, 16).ok()) {
            // Signs beyond ASCII are in no word.
            out.push(if byte.is_ascii() { byte.into() } else { ' ' });
            rest = &after[2..];
        } else {
            out.push('=');
            rest = after;
        }
    }
    out += rest;
    out.into()
}

/// A line without the marks of quotes at its beginning.
fn without_quotes(line: &str) -> &str {
    let mut rest = line;
    while let Some(inner) = rest.strip_prefix('>') {
        rest = inner.strip_prefix(' ').unwrap_or(inner);
    }
    rest
}

/// HTML's tags as blanks, or as nothing where they may stand inside of a word.
fn without_tags(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out += &rest[..at];
        rest = &rest[at..];
        let inner = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
        let name_end = inner.find(|c: char| !c.is_ascii_alphanumeric());
        let name = &inner[..name_end.unwrap_or(inner.len())];
        let end = rest.bytes().take(MOST_TAG).position(|b| b == b'>');
        match end.filter(|_| name.starts_with(|c: char| c.is_ascii_alphabetic())) {
            Some(end) => {
                if !INSIDE.contains(&name.to_ascii_lowercase().as_str()) {
                    out.push(' ');
                }
                rest = &rest[end + 1..];
            }
            None => {
                out.push('<');
                rest = &rest[1..];
            }
        }
    }
    out += rest;
    out.into()
}

/// HTML's names and numbers of signs as the signs.
fn without_entities(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out += &rest[..at];
        rest = &rest[at..];
        let end = rest.bytes().take(10).position(|b| b == b';');
        match end.and_then(|end| Some((entity(&rest[1..end])?, end))) {
            Some((sign, end)) => {
                out.push(sign);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out += rest;
    out.into()
}

/// The sign of an entity's name or number.
fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return code.ok().and_then(char::from_u32);
    }
    Some(match name {
        "nbsp" => ' ',
        "gt" => '>',
        "lt" => '<',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "colon" => ':',
        "comma" => ',',
        "period" => '.',
        "lowbar" => '_',
        "plus" => '+',
        "lpar" => '(',
        "rpar" => ')',
        "lsqb" => '[',
        "rsqb" => ']',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mails_and_pages_add_is_taken_away() {
        for (given, wanted) in [
            (
                "MemFree:5k nr:1,2+,[x](y)_;.~",
                "MemFree:5k nr:1,2+,[x](y)_;.~",
            ),
            ("MemFr=\nee:5k", "MemFree:5k"),
            ("MemFr=  \r\n> > ee:5k", "MemFree:5k"),
            ("MemFree:5k=\n swap:1", "MemFree:5k swap:1"),
            ("MemFree=3A5k=20\nswap=3D", "MemFree:5k \nswap="),
            ("a=C3=A4b", "a  b"),
            ("a=", "a="),
            ("a=3", "a=3"),
            ("a=\u{e4}", "a=\u{e4}"),
            ("a:1<br>b:2<BR/>c:3", "a:1 b:2 c:3"),
            ("<pre style=\"x:1\">a:<b>1</b></pre>", " a:1 "),
            ("a:1<wbr>2", "a:12"),
            ("a < b > c", "a < b > c"),
            ("a<", "a<"),
            ("&gt;&#32;a&#58;1&nbsp;b&amp;&zz;&", "> a:1 b&&zz;&"),
            ("&#xffffffff; &#", "&#xffffffff; &#"),
            ("a:1\\nb:2\\r\\nc", "a:1 b:2  c"),
            ("a\u{200b}:1", "a:1"),
        ] {
            assert_eq!(plain(given), wanted, "{given}");
        }
    }
}
