//! The answer for people.

use super::answer::{Advice, Explanation, Failure};
use super::held;
use super::{one_line, zone_table};
use crate::report::number::{bytes, thousands};
use crate::report::screen::Text;
use crate::report::wrap::{Place, wrapped};

/// Failures that are shown in full; of more the rest is a line each.
const IN_FULL: usize = 20;
/// Lines not understood that are shown.
const MOST_SKIPPED: usize = 10;

/// The whole answer, of lines of at most `width` columns; commands and tables are never broken. Nothing of the log in it
/// controls the terminal.
pub fn render(e: &Explanation, width: usize) -> Text {
    whole(e, width).into()
}

fn whole(e: &Explanation, width: usize) -> String {
    let mut out = String::new();
    if e.reports.is_empty() {
        out += "No report of a failed allocation, of the OOM killer or of memory is in it.\n";
    }
    if e.reports.len() > 1 {
        let total: u64 = e.reports.iter().map(|f| f.count).sum();
        out += &format!(
            "{} reports, {} of them different.\n\n",
            thousands(total),
            e.reports.len()
        );
    }
    for (i, f) in e.reports.iter().enumerate() {
        if i == IN_FULL {
            out += "More of them, a line each:\n";
        }
        if i < IN_FULL {
            failure(&mut out, i + 1, f, width);
        } else {
            out += &format!("{:>4}. {}: {}\n", i + 1, headline(f), f.answer);
        }
    }
    if !e.skipped.is_empty() {
        out += "Not understood:\n";
        for s in e.skipped.iter().take(MOST_SKIPPED) {
            out += &format!("  line {}: {}\n", s.line, s.why);
        }
        if e.skipped.len() > MOST_SKIPPED {
            out += &format!(
                "  and {} more lines; --json lists them\n",
                e.skipped.len() - MOST_SKIPPED
            );
        }
    }
    for note in &e.notes {
        wrapped(
            &mut out,
            Place::Hanging("  "),
            width,
            &format!("note: {note}"),
        );
    }
    if !e.reports.is_empty() {
        out += "Is the host still like that?  unfrag doctor\n";
    }
    out
}

fn headline(f: &Failure) -> String {
    let who = f.task.as_deref().unwrap_or("a task without a name");
    let what = match (f.bytes, f.order) {
        // Pages of a virtual request need not be in a row.
        (Some(b), Some(0)) if f.kind == "vmalloc" => bytes(b),
        (_, Some(-1)) => "no memory".to_owned(),
        (Some(b), Some(o)) => format!("{} (order {o})", bytes(b)),
        (Some(b), None) => bytes(b),
        (None, Some(o)) => format!("a block of order {o}"),
        (None, None) => "memory".to_owned(),
    };
    let text = match f.kind {
        "oom" if f.is_fault => format!("the OOM killer ran: a page fault of {who} failed"),
        "oom" => format!("the OOM killer ran: {who} asked for {what}"),
        "stall" => format!("{who} waited for {what}"),
        "slab" => format!(
            "the cache {} got no pages: {what}",
            f.cache.as_deref().unwrap_or("?")
        ),
        "vmalloc" => format!("virtual memory failed: {who} asked for {what}"),
        "cma" => "a contiguous memory area gave no range".to_owned(),
        "show-memory" => "a report of memory".to_owned(),
        kind => match one_line::title(kind) {
            Some(title) => title.to_owned(),
            None => format!("allocation failed: {who} asked for {what}"),
        },
    };
    match f.count {
        1 => text,
        n => format!("{text}, {} times", thousands(n)),
    }
}

/// Appends what one name stands before, unless it is empty.
fn line(out: &mut String, width: usize, name: &str, text: &str) {
    if !text.is_empty() {
        let text = format!("   {name:<9}{text}");
        wrapped(out, Place::Hanging("            "), width, &text);
    }
}

fn failure(out: &mut String, number: usize, f: &Failure, width: usize) {
    *out += &format!("{number}. {} (line {})\n", headline(f), f.line);
    line(out, width, "verdict", &f.answer);
    for (when, advice) in in_order(f) {
        let likely = match advice.cost.as_str() {
            "none" | "none but that" => helps(advice.sure).to_owned(),
            cost => format!("{}; cost: {cost}", helps(advice.sure)),
        };
        line(out, width, when, &format!("{} ({likely})", advice.action));
        if let Some(command) = &advice.command {
            *out += &format!("              {command}\n");
        }
    }
    if f.verdict.is_some() && f.advice.is_empty() {
        line(
            out,
            width,
            "DO",
            "nothing to set: look for another reason in the lines around it",
        );
    }
    line(out, width, "sure", &f.sure);
    for (head, text) in held::lines(&f.held) {
        line(out, width, head, &text);
    }
    // A message of one line is no report: it has neither a kernel nor rules.
    if !f.rules.is_empty() {
        let kernel = f.kernel.as_deref().unwrap_or("not in the text");
        line(
            out,
            width,
            "kernel",
            &format!("{kernel} (rules: {})", f.rules),
        );
    }
    if !f.gfp.is_empty() {
        let how = match f.how.as_str() {
            "" => String::new(),
            how => format!(": {how}"),
        };
        line(out, width, "flags", &format!("{}{how}", f.gfp.join("|")));
    }
    let when = match (&f.first, &f.last) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(first), _) => first.clone(),
        _ => String::new(),
    };
    line(out, width, "when", &when);
    zone_table::push(out, f);
    if f.verdict.is_some() && !f.answer.eq_ignore_ascii_case(&f.meaning) {
        line(out, width, "why", &f.meaning);
    }
    for note in &f.notes {
        line(out, width, "note", note);
    }
    out.push('\n');
}

/// What to do, with when to do it: what a command does at once before what needs a change of something else, and what may
/// help after what is likely to.
fn in_order(f: &Failure) -> Vec<(&'static str, &Advice)> {
    let mut all: Vec<(&'static str, &Advice)> = f.advice.iter().map(|a| (when(a), a)).collect();
    all.sort_by_key(|(when, _)| match *when {
        "DO now" => 0,
        "perhaps" => 2,
        _ => 1,
    });
    all
}

/// How surely it helps.
fn helps(sure: &'static str) -> &'static str {
    match sure {
        "likely" => "likely to help",
        "possible" => "may help",
        sure => sure,
    }
}

/// Whether to do it now, later or perhaps.
fn when(a: &Advice) -> &'static str {
    match (a.action.starts_with("nothing"), a.sure, &a.command) {
        (true, ..) => "DO",
        (_, "possible", _) => "perhaps",
        (_, _, Some(_)) => "DO now",
        (_, _, None) => "DO later",
    }
}
