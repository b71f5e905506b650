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

/// The next command, as what to add to this one.
pub fn next(report: &Report, answer: &Answer) -> String {
    let says = |those: &[Says]| answer.kernels.iter().any(|k| those.contains(&k.says));
    let held = says(&[Says::Follows, Says::DoesNotFollow]);
    let others = answer.kernels.iter().filter(|k| !k.says.is_of_own());
    let others: Vec<&str> = others.map(|k| &k.kernel[..]).collect();
    let kernels = kernels(report);
    let first = match kernels {
        Some([own, other]) if others.is_empty() => format!(
            "another kernel: add --kernel {own},{other}; another setting: add --set vm.min_free_kbytes=65536"
        ),
        _ if says(&[Says::NotComparable]) && report.start == "boot" => {
            "leave out --start boot, to begin with the memory of the host".into()
        }
        _ if says(&[Says::NotComparable]) => {
            "ask for a kernel from 4.4 on, in the host's own size of memory: it begins with the memory of the host".into()
        }
        _ if !held && !report.asked_settings.is_empty() => {
            "leave out --set (and --kernel), to see how well the model follows this host".into()
        }
        Some([own, _]) if !held => format!(
            "--kernel {}, to see how well the model follows this host",
            once([own].into_iter().chain(others.iter().copied()))
        ),
        _ if says(&[Says::CannotSay]) => {
            "replay a recording of your own host: unfrag record --system --for 60s -o host.unfrag".into()
        }
        _ => "curves and a map: add --html report.html".into(),
    };
    format!("Next: {first}; every number: add --all.")
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
