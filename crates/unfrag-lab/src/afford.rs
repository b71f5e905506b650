//! What a model takes, against what this process may take.
//!
//! A model has metadata for each frame that it manages, so an option or a number in a file can ask for more than there
//! is. That is said before anything is taken: an allocation that fails ends the process, and one that the kernel grants
//! without having it ends some process later.
//!
//! Invariant: nothing that is computed depends on what is free here; only whether it is refused does.

use crate::error::{self, Asked, Error, Remedy};
use crate::host;
use crate::report::number::bytes;
use std::fs;

/// Bytes in a frame of a model.
const FRAME: u64 = 4096;

/// What a replay takes for each frame of the recorded host: its state at the start, what the trace says of it, and the
/// model's own. Measured.
pub(crate) const REPLAY: u64 = 64;
/// What the model of a replay takes for each frame. Measured.
pub(crate) const MODEL: u64 = 28;
/// What a simulated machine takes for each frame.
pub(crate) const MACHINE: u64 = 36;
/// What the manager alone takes for each frame.
pub(crate) const CORE: u64 = 18;

/// Checks that so many models of `memory` bytes can be had at a time, with `each` bytes for a frame.
///
/// # Errors
/// Says how much they take, and what can be modelled here.
pub(crate) fn check(memory: u64, each: u64, models: u64) -> Result<(), String> {
    check_pages(memory / FRAME, FRAME, each, models)
}

/// The same, of so many frames of `page` bytes.
///
/// # Errors
/// Says how much they take, and what can be modelled here.
pub(crate) fn check_pages(frames: u64, page: u64, each: u64, models: u64) -> Result<(), String> {
    match left() {
        Some(left) => fits(frames, page, each, models, left),
        None => Ok(()),
    }
}

fn fits(frames: u64, page: u64, each: u64, models: u64, left: u64) -> Result<(), String> {
    let each = each.saturating_mul(models.max(1));
    let needed = frames.saturating_mul(each);
    if needed <= left {
        return Ok(());
    }
    let possible = (left / each).saturating_mul(page);
    Err(format!(
        "{} of memory take {} to model, and this process may take {}: up to {} can be modelled here",
        bytes(frames.saturating_mul(page)),
        bytes(needed),
        bytes(left),
        bytes(possible >> 20 << 20)
    ))
}

/// Memory for so many words, all 0; `None` if there is none.
pub(crate) fn zeroed(words: usize) -> Option<Vec<u64>> {
    let mut memory = vec![];
    memory.try_reserve_exact(words).ok()?;
    memory.resize(words, 0);
    Some(memory)
}

/// The same for a model.
///
/// # Errors
/// If there is none.
pub(crate) fn model(words: usize) -> error::Result<Vec<u64>> {
    zeroed(words).ok_or_else(|| {
        Error::option(Asked::Memory, "there is no memory for this model")
            .remedy(Remedy::Other(Asked::Memory))
    })
}

/// Bytes that this process may still take: what is available on this host, in its control group, and in its address
/// space. `None` if nothing says it.
fn left() -> Option<u64> {
    let sources = [available(), left_in_group(), left_of_addresses()];
    sources.into_iter().flatten().min()
}

/// What the kernel says is available.
fn available() -> Option<u64> {
    let info = host::files::meminfo(&fs::read("/proc/meminfo").ok()?).ok()?;
    let kib = |name| info.get(name);
    Some(kib("MemAvailable")?.saturating_add(kib("SwapFree").unwrap_or(0)) << 10)
}

/// What the limit of the control group leaves, by version 2 of control groups.
fn left_in_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|l| l.strip_prefix("0::/"))?;
    let group = std::path::Path::new("/sys/fs/cgroup").join(path);
    // Page cache is given back where memory is wanted.
    let stat = fs::read_to_string(group.join("memory.stat")).ok()?;
    let anon = stat.lines().find_map(|l| l.strip_prefix("anon "))?;
    let most: u64 = number(&fs::read_to_string(group.join("memory.max")).ok()?)?;
    Some(most.saturating_sub(number(anon)?))
}

/// What the limit of address space (`ulimit -v`) leaves.
fn left_of_addresses() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max address space"))?;
    let most = number(line.split_whitespace().next()?)?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let used = status.lines().find_map(|l| l.strip_prefix("VmSize:"))?;
    let used = number(used.trim().strip_suffix(" kB")?)?;
    Some(most.saturating_sub(used << 10))
}

/// A number in a file of the kernel; `None` of words such as `max` and `unlimited`.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_refused_with_what_is_possible() {
        let gib = |n: u64| n << 30;
        assert_eq!(fits(gib(64) / FRAME, FRAME, 16, 1, gib(1)), Ok(()));
        let said = fits((1 << 40) / FRAME, FRAME, 16, 2, gib(1)).unwrap_err();
        assert_eq!(
            said,
            "1 TiB of memory take 8 GiB to model, and this process may take 1 GiB: up to 128 GiB can be modelled here"
        );
        assert!(fits(u64::MAX, FRAME, u64::MAX, u64::MAX, gib(1)).is_err());
        let pages_of_64k = fits(1 << 24, 64 << 10, 64, 1, gib(1));
        assert!(pages_of_64k.is_ok(), "1 TiB of pages of 64 KiB");
        assert!(left().is_some_and(|n| n > 1 << 20));
    }
}
