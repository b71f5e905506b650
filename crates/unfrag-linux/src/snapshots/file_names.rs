//! Names of the files that a snapshot may hold.

/// The files that are read: those that change with time, and `version`, `sysctl-vm` and `settings`, which
/// describe the host.
pub const KNOWN: &[&str] = &[
    "buddyinfo",
    "pagetypeinfo",
    "zoneinfo",
    "vmstat",
    "slabinfo",
    "allocinfo",
    "meminfo",
    "extfrag_index",
    "unusable_index",
    "freelists",
    "kpageflags",
    "uptime",
    "version",
    "sysctl-vm",
    "settings",
];
