//! What this process itself takes, as procfs says it.

use std::fs;

/// The number after `name` in a file of lines `NAME: NUMBER`.
pub fn number(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The largest size that this process had in memory, in bytes.
pub fn most_memory() -> Option<u64> {
    number("/proc/self/status", "VmHWM:").map(|kib| kib << 10)
}
