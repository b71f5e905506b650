//! Which questions are alike: those whose predictions err alike.

use serde::Serialize;

/// How hard memory was pressed, on the recorded host or in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pressure {
    /// Little or nothing was reclaimed or moved.
    None,
    /// Pages were moved, and few reclaimed.
    Compaction,
    /// Pages were reclaimed.
    Reclaim,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// The recorded kernel as it was.
    Own,
    /// The recorded kernel with other settings.
    Setting,
    /// Another kernel.
    Kernel,
}

/// Where the replay begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Begins {
    /// At the kernel's own free lists.
    Exact,
    /// With each page free or in use as page flags say.
    Occupancy,
    /// With counts alone.
    Counts,
    /// With what was in use placed anew, as after a boot or in another size of memory.
    Anew,
}

/// A class of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Class {
    /// How hard memory was pressed.
    pub pressure: Pressure,
    /// What is asked.
    pub asked: Asked,
    /// Where the replay begins.
    pub start: Begins,
}

impl Pressure {
    /// As text.
    pub fn words(self) -> &'static str {
        match self {
            Pressure::None => "little reclaimed or moved",
            Pressure::Compaction => "pages moved, few reclaimed",
            Pressure::Reclaim => "much reclaimed",
        }
    }

    /// By its name in the table of measured errors.
    pub fn named(name: &str) -> Option<Pressure> {
        match name {
            "none" => Some(Pressure::None),
            "compaction" => Some(Pressure::Compaction),
            "reclaim" => Some(Pressure::Reclaim),
            _ => None,
        }
    }
}

impl Asked {
    /// As text.
    pub fn words(self) -> &'static str {
        match self {
            Asked::Own => "the recorded kernel as it was",
            Asked::Setting => "the recorded kernel with another setting",
            Asked::Kernel => "another kernel",
        }
    }
}

impl Begins {
    /// As text.
    pub fn words(self) -> &'static str {
        match self {
            Begins::Exact => "from the kernel's free lists",
            Begins::Occupancy => "from page flags",
            Begins::Counts => "from counts",
            Begins::Anew => "placed anew",
        }
    }

    /// By its name in the table of measured errors.
    pub fn named(name: &str) -> Option<Begins> {
        match name {
            "exact" => Some(Begins::Exact),
            "occupancy" => Some(Begins::Occupancy),
            "counts" => Some(Begins::Counts),
            _ => None,
        }
    }
}

impl Class {
    /// As text.
    pub fn words(&self) -> String {
        format!(
            "{}, {}, {}",
            self.asked.words(),
            self.pressure.words(),
            self.start.words()
        )
    }
}
