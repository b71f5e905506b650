//! The answer for people.

use super::answer::{Advice, Explanation, Failure, When};
use super::sentences::where_to_look;
use super::{held, one_line, zone_table};
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
    if !e.is_log {
        wrapped(
            &mut out,
            Place::Hanging(""),
            width,
            "Not known: no line of it is a kernel's, so it is no kernel log. Is the path right? A trace is read by unfrag summary, copies of /proc by unfrag doctor.",
        );
    } else if e.reports.is_empty() {
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
    let ran = match (&f.killed, f.count) {
        (Some(killed), 1) => format!("the OOM killer ended {killed}"),
        (Some(killed), _) => format!("the OOM killer ran ({killed} was ended first)"),
        (None, _) => "the OOM killer ran".to_owned(),
    };
    let text = match f.kind {
        "oom" if f.is_fault => format!("{ran}: a page fault of {who} failed"),
        "oom" => format!("{ran}: {who} asked for {what}"),
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
    for advice in in_order(f) {
        let mut likely = match advice.cost.as_str() {
            "none" | "none but that" => helps(advice.sure).to_owned(),
            cost => format!("{}; cost: {cost}", helps(advice.sure)),
        };
        if let Some(look) = advice.look_first {
            likely += &format!("; look longer first: {look}");
        }
        line(
            out,
            width,
            when(advice),
            &format!("{} ({likely})", advice.action),
        );
        if let Some(command) = &advice.command {
            *out += &format!("              {command}\n");
        }
    }
    if f.verdict.is_some() && f.advice.is_empty() {
        line(out, width, "DO", where_to_look(f.kind == "oom"));
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
    if f.verdict.is_some() && !f.answer.eq_ignore_ascii_case(&f.meaning) && !is_in_table(f) {
        line(out, width, "why", &f.meaning);
    }
    for note in &f.notes {
        line(out, width, "note", note);
    }
    out.push('\n');
}

/// Whether the verdict and the rows of the zones have all that the sentence of the cause has.
fn is_in_table(f: &Failure) -> bool {
    matches!(f.verdict, Some("fragmented" | "short" | "zone"))
        && f.zones.iter().all(|z| z.why.is_some())
}

/// What to do: what is done once before what stays, and what may help after what is likely to.
fn in_order(f: &Failure) -> Vec<&Advice> {
    let mut all: Vec<&Advice> = f.advice.iter().collect();
    all.sort_by_key(|a| a.when);
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

/// What stands before it: whether to do it now, later or perhaps.
fn when(a: &Advice) -> &'static str {
    match (a.action.starts_with("nothing"), a.when) {
        (true, _) => "DO",
        (_, When::Now) => "DO now",
        (_, When::Later) => "DO later",
        (_, When::Perhaps) => "perhaps",
    }
}
