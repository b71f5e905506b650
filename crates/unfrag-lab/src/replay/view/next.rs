//! What to ask next: the last line of a report on the terminal.
//!
//! Invariant: what is said to be added to the command works together with what is asked already.

use super::said::{Answer, Says};
use crate::era::Era;
use crate::replay::answer::Report;

/// The kernel that stands for the recorded one, and another to hold beside it.
fn kernels(report: &Report) -> Option<[&'static str; 2]> {
    let own = Era::of(&report.recording.kernel_release).ok()?.preset();
    let other = if own == "6.18" { "6.12" } else { "6.18" };
    Some([own, other])
}

/// The next command, as what to add to this one, in one line.
pub fn next(report: &Report, answer: &Answer) -> String {
    let says = |those: &[Says]| answer.kernels.iter().any(|k| those.contains(&k.says));
    let held = report.own.is_some() || says(&[Says::Follows, Says::DoesNotFollow]);
    let others = answer.kernels.iter().filter(|k| !k.says.is_of_own());
    let others: Vec<&str> = others.map(|k| &k.kernel[..]).collect();
    let kernels = kernels(report);
    let first = match kernels {
        Some([own, other]) if others.is_empty() => format!(
            "another kernel: --kernel {own},{other}; another setting: --set vm.min_free_kbytes=65536"
        ),
        _ if says(&[Says::NotComparable]) && report.start == "boot" => {
            "begin with the memory of the host: leave out --start boot".into()
        }
        _ if says(&[Says::NotComparable]) => {
            "a kernel from 4.4 on, in the host's size of memory, begins as the host did".into()
        }
        _ if !held && !report.asked_settings.is_empty() => {
            "how well does the model follow this host? Leave out --set and --kernel".into()
        }
        Some([own, _]) if !held => format!(
            "how well does the model follow this host? --kernel {}",
            once([own].into_iter().chain(others.iter().copied()))
        ),
        _ if says(&[Says::CannotSay]) || answer.cannot_say.is_some() => {
            "a host of your own: unfrag record --system --for 60s -o host.unfrag".into()
        }
        _ => "curves and a map: --html report.html".into(),
    };
    format!("Next: {first}; all rows: --all")
}

/// Each name once, separated by commas.
fn once<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut all: Vec<&str> = vec![];
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all.join(",")
}
