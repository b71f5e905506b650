//! A mistake in a part of a scenario, before its place in the file is known.

use std::fmt;

/// A part of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioPart {
    /// The tree of this name.
    Tree(String),
    /// The file of this name.
    File(String),
    /// The image of this name.
    Image(String),
    /// A step of a program.
    Step {
        /// The program.
        program: String,
        /// The step, from 0; for one in another, the outermost.
        step: usize,
    },
}

impl fmt::Display for ScenarioPart {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ScenarioPart::Tree(name) => write!(f, "tree `{name}`"),
            ScenarioPart::File(name) => write!(f, "file `{name}`"),
            ScenarioPart::Image(name) => write!(f, "image `{name}`"),
            ScenarioPart::Step { program, .. } => write!(f, "program `{program}`"),
        }
    }
}

/// A mistake in a part of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The part.
    pub place: ScenarioPart,
    /// The name in that part that is wrong, if it is a name.
    pub name: Option<String>,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: String,
}

impl Mistake {
    pub(crate) fn new(
        place: &ScenarioPart,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Mistake {
        Mistake {
            place: place.clone(),
            name: None,
            message: message.into(),
            help: help.into(),
        }
    }

    /// Adds the name that is wrong.
    pub(crate) fn about(self, name: &str) -> Mistake {
        Mistake {
            name: Some(name.to_owned()),
            ..self
        }
    }
}
