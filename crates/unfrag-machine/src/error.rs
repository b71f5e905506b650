//! Errors of the simulated kernel.

/// Why an operation on memory or files failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// No page could be allocated.
    NoMemory,
    /// The file system is full.
    NoSpace,
    /// A device could not read or write.
    Io,
    /// The task was killed.
    Killed,
}

impl std::fmt::Display for Fail {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Fail::NoMemory => "no memory",
            Fail::NoSpace => "no space on the file system",
            Fail::Io => "I/O error",
            Fail::Killed => "killed",
        })
    }
}

impl std::error::Error for Fail {}
