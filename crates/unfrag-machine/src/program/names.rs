//! The check of the names in programs and initial files.
//!
//! A tree or file may be created by a step of any program, so a name is known if it is an initial file or any
//! step creates it. `{number}` in a name matches any number. A tree or file that does not exist when a step
//! needs it is reported as a failure at the end.

use super::initial_files::InitialFiles;
use super::spec::{FileRef, Step, Steps};
use super::{limits, recorded, recursion};
use crate::input::{Mistake, ScenarioPart};
use crate::kmem::caches::CacheKind;
use std::collections::{BTreeMap, BTreeSet};

/// KnownNames of a scenario outside of its initial files and programs.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// File systems of a machine.
    pub systems: BTreeSet<String>,
    /// Those on a disk, which can have files before the run.
    pub on_disk: BTreeSet<String>,
    /// Those in a file, which has their name.
    pub backing: BTreeSet<String>,
    /// Tasks.
    pub tasks: BTreeSet<String>,
}

/// The known names, by what they name.
struct KnownNames<'a> {
    trees: BTreeSet<&'a str>,
    files: BTreeSet<&'a str>,
    around: &'a Around,
    areas: BTreeSet<&'a str>,
    kept: BTreeSet<&'a str>,
    flags: BTreeSet<&'a str>,
    images: BTreeSet<&'a str>,
    shapes: BTreeSet<&'a str>,
    programs: BTreeSet<&'a str>,
}

/// Checks the names and steps of programs and initial files.
///
/// # Errors
/// The first unknown name, with the known ones, or the first wrong step.
pub fn check(
    things: &InitialFiles,
    programs: &BTreeMap<String, Steps>,
    around: &Around,
) -> Result<(), Mistake> {
    fn keys<T>(map: &BTreeMap<String, T>) -> BTreeSet<&str> {
        map.keys().map(String::as_str).collect()
    }
    let mut names = KnownNames {
        trees: BTreeSet::new(),
        files: keys(&things.files),
        around,
        areas: ["stack", "data", recorded::AREA].into(),
        kept: BTreeSet::new(),
        flags: BTreeSet::new(),
        images: keys(&things.images),
        shapes: keys(&things.trees),
        programs: keys(programs),
    };
    names.trees = keys(&things.trees);
    names.trees.retain(|t| things.trees[*t].on.is_some());
    names
        .files
        .extend(around.backing.iter().map(String::as_str));
    for steps in programs.values() {
        names.made(steps);
    }
    for (name, t) in &things.trees {
        let place = &ScenarioPart::Tree(name.clone());
        if let Some(on) = &t.on {
            names.on_disk(on, place)?;
        }
        let shape = t.shape();
        if u64::from(shape.dirs) + u64::from(shape.files) > limits::MOST_NODES {
            let message = "a tree of more than 20 million files and directories";
            return Err(Mistake::new(place, message, "make it smaller"));
        }
        let sizes = t.sizes.as_deref();
        if sizes.is_some_and(|s| s.iter().all(|s| s.1 == 0)) {
            let message = "`sizes` needs one with a weight above 0";
            return Err(Mistake::new(place, message, "or leave it out"));
        }
    }
    for (name, f) in &things.files {
        let place = &ScenarioPart::File(name.clone());
        names.not_backing(name, place)?;
        names.on_disk(&f.on, place)?;
    }
    for (name, i) in &things.images {
        let place = &ScenarioPart::Image(name.clone());
        names.on_disk(&i.on, place)?;
        for l in &i.libraries {
            names.known("image", l, names.images.iter().copied(), place)?;
        }
    }
    for (program, steps) in programs {
        for (i, step) in steps.iter().enumerate() {
            let place = ScenarioPart::Step {
                program: program.clone(),
                step: i,
            };
            names.step_and_inner(step, &place)?;
        }
    }
    recursion::check(programs)
}

/// Whether a name, perhaps with `{number}` for a task's number, can be a known one.
fn fits(name: &str, known: &str) -> bool {
    let Some((before, after)) = name.split_once("{number}") else {
        return name == known;
    };
    name == known
        || known
            .strip_prefix(before)
            .and_then(|k| k.strip_suffix(after))
            .is_some_and(|k| !k.is_empty() && k.bytes().all(|b| b.is_ascii_digit()))
}

impl<'a> KnownNames<'a> {
    /// Collects the names that steps create.
    fn made(&mut self, steps: &'a [Step]) {
        for step in steps {
            match step {
                Step::Unpack(u) => {
                    self.trees.insert(&u.name);
                }
                Step::CopyTree(c) => {
                    self.trees.insert(&c.name);
                }
                Step::Create(c) => self.files.extend(c.name.as_deref()),
                Step::Grow(g) => {
                    self.areas.insert(&g.area);
                }
                Step::Kmalloc(k) => self.kept.extend(k.keep.as_deref()),
                Step::Set(flag) => {
                    self.flags.insert(flag);
                }
                _ => {}
            }
            self.made(step.inner());
        }
    }

    fn known<'k>(
        &self,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'k str>,
        place: &ScenarioPart,
    ) -> Result<(), Mistake> {
        let known: Vec<_> = known.collect();
        if known.iter().any(|k| fits(name, k) || fits(k, name)) {
            return Ok(());
        }
        let way_out = match known.as_slice() {
            [] => "there is none in this file".to_owned(),
            _ => format!("there are: {}", known.join(", ")),
        };
        let message = format!("there is no {what} `{name}`");
        Err(Mistake::new(place, message, way_out).about(name))
    }

    /// Checks that a name is not that of a file that a file system is in.
    fn not_backing(&self, name: &str, place: &ScenarioPart) -> Result<(), Mistake> {
        if !self.around.backing.contains(name) {
            return Ok(());
        }
        let message = format!("`{name}` is the file that the file system of this name is in");
        Err(Mistake::new(place, message, "give this one another name").about(name))
    }

    fn system(&self, name: &str, place: &ScenarioPart) -> Result<(), Mistake> {
        let systems = self.around.systems.iter().map(String::as_str);
        self.known("file system", name, systems, place)
    }

    /// Checks that a file system can have files before the run.
    fn on_disk(&self, name: &str, place: &ScenarioPart) -> Result<(), Mistake> {
        self.system(name, place)?;
        if self.around.on_disk.contains(name) {
            return Ok(());
        }
        let message = format!("nothing is on `{name}` before the run: it is in memory");
        let help = match self.around.on_disk.is_empty() {
            true => "let a program make it there".to_owned(),
            false => {
                let names: Vec<_> = self.around.on_disk.iter().map(String::as_str).collect();
                let names = names.join(", ");
                format!("let a program make it there, or have it on a disk: {names}")
            }
        };
        Err(Mistake::new(place, message, help).about(name))
    }

    fn step_and_inner(&self, step: &Step, place: &ScenarioPart) -> Result<(), Mistake> {
        self.step(step, place)?;
        limits::check(step, place)?;
        let mut inner = step.inner().iter();
        inner.try_for_each(|s| self.step_and_inner(s, place))
    }

    fn step(&self, step: &Step, place: &ScenarioPart) -> Result<(), Mistake> {
        let tree = |name: &str| self.known("tree", name, self.trees.iter().copied(), place);
        let file = |name: &str| self.known("file", name, self.files.iter().copied(), place);
        let system = |name: &str| self.system(name, place);
        let program =
            |name: &str| self.known("program", name, self.programs.iter().copied(), place);
        match step {
            Step::Read(r) => match &r.file {
                FileRef::Name(n) => file(n),
                FileRef::Of(of) => tree(&of.tree),
            },
            Step::Recorded(r) => {
                let trees = [&r.reads, &r.writes];
                trees.into_iter().flatten().try_for_each(|t| tree(t))
            }
            Step::Touch(t) => self.known("area", &t.area, self.areas.iter().copied(), place),
            Step::Discard(d) => self.known("area", &d.area, self.areas.iter().copied(), place),
            Step::Unmap(n) => self.known("area", n, self.areas.iter().copied(), place),
            Step::Kfree(n) => self.known("kept object", n, self.kept.iter().copied(), place),
            Step::Kill(n) => {
                let tasks = self.around.tasks.iter().map(String::as_str);
                self.known("task", n, tasks, place)
            }
            Step::Repeat(r) => r.until.as_deref().map_or(Ok(()), |n| {
                self.known("`set` of", n, self.flags.iter().copied(), place)
            }),
            Step::Write(w) => file(&w.file),
            Step::Unlink(n) => file(n),
            Step::Create(c) => {
                let name = c.name.as_deref();
                name.map_or(Ok(()), |n| self.not_backing(n, place))?;
                match (&c.tree, &c.on) {
                    (Some(t), None) => tree(t),
                    (None, Some(on)) => system(on),
                    _ => Err(Mistake::new(
                        place,
                        "a file has one place",
                        "give `tree` or `on`, one of the two",
                    )),
                }
            }
            Step::Churn(c) => system(&c.on),
            Step::Unpack(u) => {
                system(&u.on)?;
                self.known("tree", &u.like, self.shapes.iter().copied(), place)?;
                u.archive.as_deref().map_or(Ok(()), file)
            }
            Step::CopyTree(c) => {
                system(&c.on)?;
                tree(&c.from)
            }
            Step::RemoveTree(n) | Step::Walk(n) => tree(n),
            Step::ReadTree(r) => tree(&r.tree),
            Step::Fork(f) => program(&f.program),
            Step::Parallel(p) => program(&p.program),
            Step::Exec(image) => self.known("image", image, self.images.iter().copied(), place),
            Step::Kmalloc(k) => match (&k.cache, k.size) {
                (Some(name), None) => {
                    let kinds = CacheKind::all().map(CacheKind::name);
                    self.known("slab cache", name, kinds, place)
                }
                _ => Ok(()),
            },
            Step::Receive(r) => r.file.as_deref().map_or(Ok(()), file),
            _ => Ok(()),
        }
    }
}
