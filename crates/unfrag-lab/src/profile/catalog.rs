//! The profiles that a scenario can name: those that ship, such as `make-j2`, and files beside the scenario.

use super::behaviour::behaviour;
use super::contents::Profile;
use std::path::{Path, PathBuf};
use unfrag_machine::program::recorded::{Behaviour, Profiles};

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../profiles/", $name, ".toml")))),*]
    };
}

/// The profiles that ship, by name.
pub const SHIPPED: &[(&str, &str)] = shipped![
    "compile",
    "cp-a",
    "git-log",
    "gitk",
    "link",
    "make-j2",
    "make-j2-part",
    "rm-rf",
    "rsync",
    "tar-x",
    "updatedb",
    "updatedb-findutils",
];

/// The profiles of one scenario.
#[derive(Clone, Debug)]
pub struct Catalog {
    dir: PathBuf,
}

impl Catalog {
    /// For a scenario in this file: what ships, and the files in its directory.
    pub fn beside(scenario: &Path) -> Catalog {
        let dir = scenario.parent().unwrap_or(Path::new("")).to_owned();
        Catalog { dir }
    }

    fn text(&self, name: &str) -> Result<String, (String, String)> {
        if let Some((_, text)) = SHIPPED.iter().find(|s| s.0 == name) {
            return Ok((*text).to_owned());
        }
        let path = self.dir.join(name);
        std::fs::read_to_string(&path).map_err(|e| {
            let names: Vec<_> = SHIPPED.iter().map(|s| s.0).collect();
            (
                format!("there is no profile `{name}`: {}: {e}", path.display()),
                format!(
                    "name a file that `unfrag profile` wrote, or one that ships: {}",
                    names.join(", ")
                ),
            )
        })
    }
}

impl Profiles for Catalog {
    fn behaviour(&self, name: &str, program: Option<&str>) -> Result<Behaviour, (String, String)> {
        let profile = Profile::from_toml(&self.text(name)?).map_err(|e| {
            (
                format!("profile `{name}`: {}", e.cause),
                e.help.into_owned(),
            )
        })?;
        let used = match program {
            None => &profile.all,
            Some(program) => profile.program(program).ok_or_else(|| {
                let names: Vec<_> = profile.program.iter().map(|p| p.name.as_str()).collect();
                let help = match names.as_slice() {
                    [] => "it was recorded without its processes: leave `program` out".to_owned(),
                    names => format!("there are: {}", names.join(", ")),
                };
                let message = format!("profile `{name}` has no program `{program}`");
                (message, help)
            })?,
        };
        Ok(behaviour(used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shipped_profile_is_a_program() {
        let catalog = Catalog::beside(Path::new("s.toml"));
        let mut dir: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles"))
            .expect("the profiles")
            .map(|f| f.expect("a file").file_name().into_string().expect("text"))
            .collect();
        dir.sort();
        let mut names: Vec<_> = SHIPPED.iter().map(|s| format!("{}.toml", s.0)).collect();
        names.sort();
        assert_eq!(names, dir);
        for (name, text) in SHIPPED {
            let profile = Profile::from_toml(text).expect(name);
            assert!(catalog.behaviour(name, None).is_ok());
            for p in &profile.program {
                let b = catalog.behaviour(name, Some(&p.name)).expect(name);
                let each = p.each.as_ref().expect("by process");
                let most = each.anonymous_high_water_pages.max;
                assert_eq!(b.anonymous.at(9_999), most, "{name} {}", p.name);
            }
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let catalog = Catalog::beside(Path::new("dir/s.toml"));
        let (message, help) = catalog.behaviour("tar.toml", None).unwrap_err();
        assert!(message.contains("dir/tar.toml"), "{message}");
        assert!(
            help.contains("unfrag profile") && help.contains("make-j2,"),
            "{help}"
        );
        let (message, help) = catalog.behaviour("compile", Some("cc2")).unwrap_err();
        assert_eq!(message, "profile `compile` has no program `cc2`");
        assert!(help.starts_with("there are: cc1"), "{help}");
    }
}
