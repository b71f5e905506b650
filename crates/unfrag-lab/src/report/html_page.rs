//! The parts that all pages share: the style sheet, the scripts of charts over time, templates, escaping.
//!
//! Invariant: nothing reaches a page unescaped, and a page loads nothing.

use super::table::SideBySide;
use serde::Serialize;
use std::fmt::Write as _;
use unfrag_linux::input_text::{escaped, escaped_json, escaped_lines};

const FRAME: &str = include_str!("../../assets/page/frame.html");
/// The style sheet.
pub(crate) const STYLE: &str = include_str!("../../assets/page/page.css");
/// Time axes, areas, tooltips; before the script of a page.
pub(crate) const TIMELINE: &str = include_str!("../../assets/page/timeline.js");
/// The library that draws them.
pub(crate) const ECHARTS: &str = include_str!("../../assets/echarts/echarts.unfrag.min.js");

/// A page with charts: `title` is plain text, `data` what the scripts read, as [`json`]; `scripts` come
/// after the library that draws.
pub(crate) fn with_charts(
    title: &str,
    summary: &str,
    body: &str,
    data: &str,
    scripts: &[&str],
) -> String {
    fill(FRAME, |name| match name {
        "title" => escape(title),
        "css" => STYLE.into(),
        "summary" => summary.into(),
        "body" => body.into(),
        "data" => data.into(),
        "echarts" => ECHARTS.into(),
        "script" => scripts.join("\n"),
        other => unreachable!("the frame has no {other}"),
    })
}

/// `template` with every `{{name}}` replaced. Inserted text is not scanned for names.
pub(crate) fn fill(template: &str, part: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(template.len() + ECHARTS.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the template is ours");
        out.push_str(before);
        out.push_str(&part(name));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Data as JSON in which nothing can end the script element that holds it.
pub(crate) fn json(data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).expect("plain data with string keys");
    escaped_json(&json).replace('<', "\\u003c")
}

/// Text on one line, made safe for elements and quoted attributes, and for the terminal that a page may be printed to.
pub(crate) fn escape(text: &str) -> String {
    entities(&escaped(text))
}

/// As [`escape`], with its line breaks.
pub(crate) fn escape_lines(text: &str) -> String {
    entities(&escaped_lines(text))
}

fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A paragraph of plain text.
pub(crate) fn paragraph(out: &mut String, class: &str, text: &str) {
    let _ = writeln!(out, "<p class=\"{class}\">{}</p>", escape(text));
}

/// A table; `corner` stands over the labels of its rows, and what was recorded stands out.
pub(crate) fn table(corner: &str, table: &SideBySide, caption: Option<&str>) -> String {
    let mut out = String::from("<div class=\"scroll\"><table>");
    if let Some(caption) = caption {
        let _ = write!(out, "<caption>{}</caption>", escape(caption));
    }
    let recorded = |i: usize| {
        if table.heads[i] == "recorded" {
            " class=\"recorded\""
        } else {
            ""
        }
    };
    let _ = write!(out, "<thead><tr><th>{}</th>", escape(corner));
    for (i, head) in table.heads.iter().enumerate() {
        let _ = write!(
            out,
            "<th scope=\"col\"{}>{}</th>",
            recorded(i),
            escape(head)
        );
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        let label = escape(&row.label);
        if row.values.is_empty() {
            let _ = writeln!(
                out,
                "<tr class=\"heading\"><th>{label}</th><td colspan=\"{}\"></td></tr>",
                table.heads.len()
            );
            continue;
        }
        let class = if row.depth > 0 { " class=\"deep\"" } else { "" };
        let _ = write!(out, "<tr{class}><th scope=\"row\">{label}</th>");
        for (i, value) in row.values.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", recorded(i), escape(value));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_looked_at_again() {
        let filled = fill("a {{x}} b {{y}}", |name| match name {
            "x" => "{{y}}".into(),
            _ => "z".into(),
        });
        assert_eq!(filled, "a {{y}} b z");
    }
}
