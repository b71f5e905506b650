//! What a line of pasted text is.

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line of a file; the key, where there is one, comes only once in a reading of that file.
    Of(&'static str, Option<String>),
    /// The release of the kernel.
    Release(String),
    /// A setting: its name in a snapshot, and its value.
    Setting(String, String),
    /// A heading or a prompt; it may name files, settings, and a node whose files these are.
    Heading {
        files: Vec<&'static str>,
        settings: Vec<String>,
        node: Option<u32>,
    },
    /// A program's complaint that it could not read a file.
    Refused(&'static str),
    /// The same of a setting.
    NoSetting(String),
    /// None of these.
    Other,
}

impl Line {
    /// A heading that names nothing.
    pub const HEADING: Line = Line::Heading {
        files: vec![],
        settings: vec![],
        node: None,
    };
}
