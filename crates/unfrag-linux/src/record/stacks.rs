//! Kernel stacks: which events have one, whose time on a CPU is recorded with them, and names for what they hold.
//!
//! The stack is taken by a trigger of the event in the recorder's own instance, so that only events that a condition lets
//! through pay for one. Names are noted as addresses are in this boot, and those in use go into the file.
//!
//! Invariant: a kernel whose triggers write into the host's own trace is refused.

use std::fs;

use super::events::format_of;
use super::names;
use super::spool::{Job, SYMBOLS, Spool};
use super::tracefs::Instance;
use crate::error::{Error, Result};
use crate::event::page::STACK_ORDER;
use crate::trace::event::symbols::{Symbols, code_of};

/// Requests, of which the large ones have a stack.
const REQUESTS: &str = "kmem/mm_page_alloc";
/// Events that have one each.
const EVENTS: [&str; 3] = [
    "vmscan/mm_vmscan_wakeup_kswapd",
    "compaction/mm_compaction_wakeup_kcompactd",
    "compaction/mm_compaction_begin",
];

const STACK: &str = "ftrace/kernel_stack";
const SWITCH: &str = "sched/sched_switch";

/// Daemons that the filter names by number; of more it asks for their names.
const MOST_NUMBERS: usize = 8;

/// The fact that says what the functions of stacks are named by.
pub(crate) const FACT: &str = "stacks";

/// Has events record their stacks, and when kswapd and kcompactd are on a CPU; gives subsystem and format of what comes
/// on top. `switches` tells that all switches of tasks are recorded anyway.
///
/// # Errors
/// If this kernel cannot.
pub(super) fn enable(instance: &Instance, switches: bool) -> Result<Vec<(String, String)>> {
    let release = rustix::system::uname();
    check_release(&release.release().to_string_lossy())?;
    let large = format!("stacktrace if order >= {STACK_ORDER}");
    let each = EVENTS.map(|event| (event, "stacktrace"));
    for (event, trigger) in each.into_iter().chain([(REQUESTS, large.as_str())]) {
        let path = format!("events/{event}/trigger");
        if instance.path(&path).exists() {
            instance.set(&path, trigger).map_err(|e| {
                e.help("kernel stacks need CONFIG_STACKTRACE; record without --stacks")
            })?;
        }
    }
    let mut formats = vec![format_of(instance, STACK)?];
    let daemons = names::of_daemons();
    if !switches && !daemons.is_empty() && instance.path(&format!("events/{SWITCH}")).exists() {
        instance.set(&format!("events/{SWITCH}/filter"), &filter(&daemons))?;
        formats.push(format_of(instance, SWITCH)?);
        instance.set(&format!("events/{SWITCH}/enable"), "1")?;
    }
    Ok(formats)
}

/// Lets switches to and from these tasks through.
fn filter(daemons: &[i32]) -> String {
    let each: Vec<String> = match daemons.len() {
        ..=MOST_NUMBERS => {
            let one = |pid: &i32| format!("prev_pid=={pid}||next_pid=={pid}");
            daemons.iter().map(one).collect()
        }
        _ => {
            let one = |name| format!("prev_comm~\"{name}*\"||next_comm~\"{name}*\"");
            ["kswapd", "kcompactd"].map(one).into()
        }
    };
    each.join("||")
}

/// Before Linux 5.17 a trigger of an instance writes its stacks into the main trace, which is the host's.
fn check_release(release: &str) -> Result<()> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    match (number(), number()) {
        (Some(major), Some(minor)) if (major, minor) < (5, 17) => Err(Error::unsupported(format!(
            "the tracer of Linux {major}.{minor} writes stacks into the host's own trace (before 5.17)"
        ))
        .help("record without --stacks: `unfrag blame --wakes` then names programs, orders and flags")),
        _ => Ok(()),
    }
}

/// Adds the names of the kernel's code of this moment to the spool.
///
/// # Errors
/// If the spool cannot be written.
pub(super) fn note_symbols(spool: &Spool) -> Result<()> {
    // Where it cannot be read, addresses stay numbers.
    let list = fs::read("/proc/kallsyms").unwrap_or_default();
    spool.add_lines(SYMBOLS, &code_of(&list))
}

/// The names that a spool has.
///
/// # Errors
/// If it cannot be read.
pub(super) fn symbols(spool: &Spool, job: &Job) -> Result<Symbols> {
    match job.stacks {
        true => Ok(Symbols::parse(&spool.lines(SYMBOLS)?)),
        false => Ok(Symbols::default()),
    }
}

/// What a recording with stacks says of their names.
pub(super) fn fact(job: &Job, symbols: &Symbols) -> Option<(String, String)> {
    let value = match symbols.is_empty() {
        true => "addresses",
        false => "names",
    };
    job.stacks.then(|| (FACT.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_whose_stacks_would_go_elsewhere_is_refused() {
        for (release, is_fit) in [
            ("5.17.0", true),
            ("6.1.0-56-cloud-amd64", true),
            ("5.16.20", false),
            ("4.19.0-8", false),
        ] {
            assert_eq!(check_release(release).is_ok(), is_fit, "{release}");
        }
    }

    #[test]
    fn many_daemons_are_told_by_their_names() {
        assert_eq!(filter(&[45]), "prev_pid==45||next_pid==45");
        let many: Vec<i32> = (1..40).collect();
        assert!(
            filter(&many).contains("next_comm~\"kcompactd*\""),
            "{}",
            filter(&many)
        );
    }
}
