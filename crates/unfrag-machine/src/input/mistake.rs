//! A mistake in a part of a scenario, before its place in the file is known.

use std::fmt;

/// Where a name stands that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioPart {
    /// In the tree of this name.
    Tree(String),
    /// In the file of this name.
    File(String),
    /// In the image of this name.
    Image(String),
    /// In a step of a program.
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

/// A name that means nothing, or something that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub place: ScenarioPart,
    /// The name there that is meant, if it is one.
    pub name: Option<String>,
    /// What is wrong.
    pub message: String,
    /// The way out.
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

    /// The same about a name that stands there.
    pub(crate) fn about(self, name: &str) -> Mistake {
        Mistake {
            name: Some(name.to_owned()),
            ..self
        }
    }
}
