//! Flame graphs: amounts by path, a row for each step and the widest share where the most is.
//!
//! Invariant: the same amounts give the same bytes: neighbours stand by name, a colour is a function of a name. The
//! picture has no script and refers to nothing outside itself; each box says its name, amount and share where it is
//! pointed at.

use super::number::percent;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use unfrag_linux::input_text::escaped;

/// Width in pixels, margins, and height of a row and of the title.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 18.0;
const TITLE: f64 = 36.0;
/// Narrower boxes are left out: nobody can point at them.
const NARROWEST: f64 = 0.4;
/// Width of a character.
const CHARACTER: f64 = 6.8;
/// Most rows; stacks of kernels are far below.
const DEEPEST: usize = 200;

/// Amounts by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flame {
    amount: u64,
    children: BTreeMap<String, Flame>,
}

impl Flame {
    /// Adds an amount at the end of a path.
    pub fn add<'p>(&mut self, path: impl Iterator<Item = &'p str>, amount: u64) {
        let mut at = self;
        at.amount += amount;
        for step in path.take(DEEPEST) {
            at = at.children.entry(step.to_owned()).or_default();
            at.amount += amount;
        }
    }

    fn depth(&self) -> usize {
        let below = self.children.values().map(Flame::depth).max();
        1 + below.unwrap_or(0)
    }
}

/// A drawing under way.
struct Drawing<'d> {
    out: String,
    whole: u64,
    bottom: f64,
    words: &'d dyn Fn(u64) -> String,
}

/// The picture as SVG; `words` says an amount.
pub(crate) fn render(flame: &Flame, title: &str, words: &dyn Fn(u64) -> String) -> String {
    let rows = flame.depth();
    let height = TITLE + rows as f64 * ROW + MARGIN;
    let mut drawing = Drawing {
        out: String::new(),
        whole: flame.amount,
        bottom: height - MARGIN,
        words,
    };
    let _ = writeln!(
        drawing.out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {WIDTH:.0} {height:.0}\" font-family=\"monospace\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN:.0}\" y=\"22\" font-family=\"sans-serif\" font-size=\"15\" fill=\"#1b1f24\">{}</text>",
        xml(title)
    );
    if flame.amount > 0 {
        drawing.draw("all", flame, MARGIN, WIDTH - 2.0 * MARGIN, 0);
    }
    drawing.out.push_str("</svg>\n");
    drawing.out
}

impl Drawing<'_> {
    fn draw(&mut self, name: &str, flame: &Flame, x: f64, width: f64, row: usize) {
        if width < NARROWEST {
            return;
        }
        let y = self.bottom - (row + 1) as f64 * ROW;
        let share = flame.amount as f64 / self.whole.max(1) as f64;
        let amount = (self.words)(flame.amount);
        let name = xml(name);
        let _ = write!(
            self.out,
            "<g><title>{name}: {amount}, {}</title>\
             <rect x=\"{x:.2}\" y=\"{y:.0}\" width=\"{width:.2}\" height=\"{:.0}\" fill=\"{}\" stroke=\"#ffffff\" \
             stroke-width=\"0.5\"/>",
            percent(share),
            ROW - 1.0,
            color(&name)
        );
        if let Some(label) = label(&name, width) {
            let _ = write!(
                self.out,
                "<text x=\"{:.2}\" y=\"{:.0}\" fill=\"#1b1f24\">{label}</text>",
                x + 3.0,
                y + 13.0
            );
        }
        self.out.push_str("</g>\n");
        let mut at = x;
        for (name, child) in &flame.children {
            let part = width * child.amount as f64 / flame.amount.max(1) as f64;
            self.draw(name, child, at, part, row + 1);
            at += part;
        }
    }
}

/// As much of a name as a box has room for. An entity is one character, and is not cut.
fn label(name: &str, width: f64) -> Option<String> {
    let room = ((width - 6.0) / CHARACTER) as usize;
    let mut label = String::new();
    let mut rest = name;
    for taken in 0.. {
        let Some(first) = rest.chars().next() else {
            return Some(label);
        };
        if taken == room {
            break;
        }
        let end = match first {
            '&' => rest.find(';').map_or(1, |i| i + 1),
            c => c.len_utf8(),
        };
        label.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    // A few letters tell nothing.
    (room >= 4).then(|| label + "…")
}

/// A warm colour; what a module has is cold.
fn color(name: &str) -> String {
    let hash = name.bytes().fold(2_166_136_261_u32, |h, b| {
        (h ^ u32::from(b)).wrapping_mul(16_777_619)
    });
    let (a, b) = (hash % 60, hash / 60 % 60);
    match name.ends_with(']') {
        true => format!("rgb({},{},{})", 110 + a, 170 + b, 225),
        false => format!("rgb({},{},{})", 235, 130 + a, 70 + b),
    }
}

/// Text that XML can hold.
fn xml(text: &str) -> String {
    let text = escaped(text);
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(paths: &[(&str, u64)]) -> String {
        let mut flame = Flame::default();
        for (path, amount) in paths {
            flame.add(path.split(';'), *amount);
        }
        render(&flame, "a <title>", &|n| format!("{n} ms"))
    }

    #[test]
    fn boxes_are_as_wide_as_their_share_and_the_order_of_adding_is_none() {
        let one = picture(&[("a;b", 30), ("a;c", 60), ("d", 10)]);
        let other = picture(&[("d", 10), ("a;c", 60), ("a;b", 30)]);
        assert_eq!(one, other);
        for wanted in [
            "<title>all: 100 ms, 100 %</title><rect x=\"10.00\" y=\"72\" width=\"1180.00\"",
            "<title>a: 90 ms, 90 %</title><rect x=\"10.00\" y=\"54\" width=\"1062.00\"",
            "<title>c: 60 ms, 60 %</title><rect x=\"364.00\" y=\"36\" width=\"708.00\"",
            "a &lt;title&gt;",
        ] {
            assert!(one.contains(wanted), "{wanted}\n{one}");
        }
    }

    #[test]
    fn names_break_neither_the_picture_nor_a_screen() {
        let all = picture(&[("<script>&\u{1b}[2J", 1), ("x", 300)]);
        assert!(!all.contains("<script") && !all.contains('\u{1b}'), "{all}");
        assert_eq!(
            label("&lt;&lt;&lt;&lt;&lt;&lt;", 6.0 + 4.0 * CHARACTER).unwrap(),
            "&lt;&lt;&lt;&lt;…"
        );
        assert_eq!(label("abcdef", 20.0), None);
    }

    #[test]
    fn nothing_is_a_picture_with_a_title_alone() {
        let none = picture(&[]);
        assert!(none.starts_with("<svg") && none.ends_with("</svg>\n") && !none.contains("<g>"));
        let deep = vec!["f"; 100_000].join(";");
        assert!(picture(&[(&deep, 1)]).matches("<g>").count() <= DEEPEST + 1);
    }
}
