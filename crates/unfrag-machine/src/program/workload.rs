//! What the tasks of a run share: programs, images, trees and files by name, barriers, and the report.

use super::initial_files::InitialFiles;
use super::report::ProgramReport;
use super::spec::Steps;
use crate::channels::PROGRAM;
use crate::engine::Rng;
use crate::error::Fail;
use crate::fs::tree::{Tree, TreePlan};
use crate::fs::{FsId, NodeId, Store};
use crate::input::Percent;
use crate::input::{Mistake, ScenarioPart};
use crate::{Channel, Sim, TaskId};
use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A tree by name.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveTree {
    pub tree: Tree,
    /// Files that were created in it later.
    pub made: Vec<NodeId>,
    /// Index of the next file to be taken.
    pub next: usize,
}

/// An image of a program.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub node: NodeId,
    pub text: u32,
    pub data: u32,
    pub used: Percent,
    pub libraries: Vec<String>,
    pub areas: u32,
}

/// The state of a barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BarrierState {
    pub came: u32,
    pub round: u64,
    pub channel: u64,
}

#[derive(Default)]
pub(super) struct WorkloadState {
    pub trees: BTreeMap<String, LiveTree>,
    pub files: BTreeMap<String, NodeId>,
    pub flags: BTreeSet<String>,
    pub barriers: BTreeMap<String, BarrierState>,
    /// Tasks of a name, and all that they forked.
    pub groups: BTreeMap<Rc<str>, Vec<TaskId>>,
    pub report: ProgramReport,
    channels: u64,
}

impl WorkloadState {
    /// A channel key of its own.
    pub fn channel(&mut self) -> u64 {
        self.channels += 1;
        self.channels
    }
}

/// What the tasks of a run share.
pub struct Workload {
    pub(super) programs: BTreeMap<String, Steps>,
    pub(super) images: BTreeMap<String, Image>,
    pub(super) plans: BTreeMap<String, TreePlan>,
    pub(super) seed: u64,
    state: RefCell<WorkloadState>,
}

pub(super) fn program_channel(key: u64) -> Channel {
    Channel::new(PROGRAM, key)
}

impl Workload {
    /// Lays out the initial files. The names in `programs` and `things` are those of
    /// a scenario that was checked, see [`names`](super::names).
    ///
    /// # Errors
    /// The first file that does not fit.
    pub fn set_up(
        things: &InitialFiles,
        programs: BTreeMap<String, Steps>,
        sim: &mut Sim,
        seed: u64,
    ) -> Result<Rc<Workload>, Mistake> {
        let mut state = WorkloadState::default();
        let mut plans = BTreeMap::new();
        for (name, spec) in &things.trees {
            // The tree belongs to the scenario, not the run: it has the same files for each seed.
            let mut rng = Rng::named(0, &format!("tree {name}"));
            let plan = TreePlan::draw(&spec.shape(), &mut rng);
            if let Some(on) = &spec.on {
                let tree = sim.lay_out(sim.checked_file_system(on), &plan);
                let tree =
                    tree.map_err(|e| does_not_fit(ScenarioPart::Tree(name.clone()), on, e))?;
                let live = LiveTree {
                    tree,
                    ..LiveTree::default()
                };
                state.trees.insert(name.clone(), live);
            }
            plans.insert(name.clone(), plan);
        }
        state.files.extend(sim.images());
        for (name, spec) in &things.files {
            let fs = sim.checked_file_system(&spec.on);
            let node = sim.lay_file(fs, spec.size.pages32());
            let node =
                node.map_err(|e| does_not_fit(ScenarioPart::File(name.clone()), &spec.on, e))?;
            state.files.insert(name.clone(), node);
        }
        let mut images = BTreeMap::new();
        for (name, spec) in &things.images {
            let fs = sim.checked_file_system(&spec.on);
            let (text, data) = (spec.text.pages32(), spec.data.pages32());
            let node = sim.lay_file(fs, text.saturating_add(data));
            let image = Image {
                node: node
                    .map_err(|e| does_not_fit(ScenarioPart::Image(name.clone()), &spec.on, e))?,
                text,
                data,
                used: spec.used,
                libraries: spec.libraries.clone(),
                areas: spec.areas,
            };
            images.insert(name.clone(), image);
        }
        Ok(Rc::new(Workload {
            programs,
            images,
            plans,
            seed,
            state: RefCell::new(state),
        }))
    }

    /// The report of the programs so far.
    pub fn report(&self) -> ProgramReport {
        self.state.borrow().report.clone()
    }

    /// The borrow must end before anything waits.
    pub(super) fn state(&self) -> RefMut<'_, WorkloadState> {
        self.state.borrow_mut()
    }

    /// A file by name.
    pub(super) fn file(&self, name: &str) -> Option<NodeId> {
        self.state.borrow().files.get(name).copied()
    }
}

fn does_not_fit(place: ScenarioPart, on: &str, why: Fail) -> Mistake {
    let message = format!("{place} does not fit on file system `{on}` ({why})");
    let help = "make the file system larger, or this smaller";
    Mistake::new(&place, message, help)
}

impl Sim {
    /// The files behind loop devices, each with the name of its file system.
    fn images(&self) -> impl Iterator<Item = (String, NodeId)> + '_ {
        let vfs = &self.kernel_ref().vfs;
        vfs.systems().iter().filter_map(|s| match s.store {
            Store::Loop(l) => Some((s.name.to_string(), vfs.loops[usize::from(l)].image())),
            Store::Disk { .. } | Store::Memory => None,
        })
    }

    /// The file system of a name that was checked.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn checked_file_system(&self, name: &str) -> FsId {
        let systems = self.kernel_ref().vfs.systems();
        match systems.iter().position(|s| &*s.name == name) {
            Some(i) => FsId(i as u8),
            None => panic!("the scenario was not checked: no file system `{name}`"),
        }
    }
}
