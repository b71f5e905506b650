//! Profiles as programs of scenarios: where they are found, and what a recorded process does on the machine.
//!
//! A profile is named as it ships (`make-j2`), or is a file beside the scenario.

use super::class::Class;
use super::spread::Spread;
use super::{Each, Profile, Use};
use std::path::{Path, PathBuf};
use unfrag_machine::program::recorded::{Behaviour, Profiles, Quantiles};

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

/// Where a scenario finds its profiles.
#[derive(Clone, Debug)]
pub struct Shelf {
    dir: PathBuf,
}

impl Shelf {
    /// For a scenario in this file: what ships, and what lies beside it.
    pub fn beside(scenario: &Path) -> Shelf {
        let dir = scenario.parent().unwrap_or(Path::new("")).to_owned();
        Shelf { dir }
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

impl Profiles for Shelf {
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
                    [] => "it was recorded without --processes: leave `program` out".to_owned(),
                    names => format!("there are: {}", names.join(", ")),
                };
                let message = format!("profile `{name}` has no program `{program}`");
                (message, help)
            })?,
        };
        Ok(behaviour(used))
    }
}

/// What a process does that was recorded so; the whole command as one process, if it was not recorded by process.
///
/// A process keeps what it did not give back while it ran, so the mean of its memory is that of pages taken and not
/// freed by the running process. Sizes beyond the ninth tenth follow from the mean.
pub fn behaviour(u: &Use) -> Behaviour {
    let pages = |class| u.pages.get(&class).cloned().unwrap_or_default();
    let [anonymous, read, written] =
        [Class::Anonymous, Class::FileRead, Class::FileWritten].map(pages);
    let Some(each) = &u.each else {
        let one = |n: u64| Quantiles::new(n, n, n, n, n);
        return Behaviour {
            anonymous: one(anonymous.high_water_pages),
            tenths: [10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
            cpu: one(u.cpu_us.unwrap_or(0) * 1000),
            read: one(read.taken_pages),
            written: one(written.taken_pages),
        };
    };
    let processes = u.processes.max(1);
    let of = |s: &Spread, sum: u64| Quantiles::new(s.p10, s.median, s.p90, s.max, sum / processes);
    let kept = anonymous
        .taken_pages
        .saturating_sub(anonymous.freed_pages.running);
    let cpu = each.cpu_us.unwrap_or_default();
    let ns = |us: u64| us * 1000;
    let cpu = Spread {
        p10: ns(cpu.p10),
        median: ns(cpu.median),
        p90: ns(cpu.p90),
        max: ns(cpu.max),
    };
    Behaviour {
        anonymous: of(&each.anonymous_high_water_pages, kept),
        tenths: tenths(each),
        cpu: of(&cpu, ns(u.cpu_us.unwrap_or(0))),
        read: of(&each.file_read_pages, read.taken_pages),
        written: of(&each.file_written_pages, written.taken_pages),
    }
}

/// How its memory grows; whoever takes none has nothing to grow.
fn tenths(each: &Each) -> [u8; 10] {
    let recorded = each.anonymous_percent_by_tenth.iter().copied();
    let mut all = recorded.chain(std::iter::repeat(100));
    std::array::from_fn(|_| all.next().unwrap_or(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_that_ships_can_be_a_program() {
        let shelf = Shelf::beside(Path::new("s.toml"));
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
            assert!(shelf.behaviour(name, None).is_ok());
            for p in &profile.program {
                let b = shelf.behaviour(name, Some(&p.name)).expect(name);
                let each = p.each.as_ref().expect("by process");
                let most = each.anonymous_high_water_pages.max;
                assert_eq!(b.anonymous.at(9_999), most, "{name} {}", p.name);
            }
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let shelf = Shelf::beside(Path::new("dir/s.toml"));
        let (message, help) = shelf.behaviour("tar.toml", None).unwrap_err();
        assert!(message.contains("dir/tar.toml"), "{message}");
        assert!(
            help.contains("unfrag profile") && help.contains("make-j2,"),
            "{help}"
        );
        let (message, help) = shelf.behaviour("compile", Some("cc2")).unwrap_err();
        assert_eq!(message, "profile `compile` has no program `cc2`");
        assert!(help.starts_with("there are: cc1"), "{help}");
    }
}
