//! The extraction of a profile from a recording.
//!
//! Invariant: programs below a thousandth of all pages are left out and counted in [`Profile::programs_left_out`].

use super::contents::{Profile, Source, VERSION};
use super::identity::Identity;
use super::object_counts;
use super::objects;
use super::process::{self, Processes};
use super::purposes::{Known, Purposes};
use super::summary;
use super::usage::Use;
use super::walk::Walk;
use crate::era::Era;
use crate::error::{Error, Remedy, Result};
use crate::geometry::recorded::{Question, RecordedGeometry};
use crate::host::Host;
use crate::input::Input;
use unfrag_linux::event::{Coverage, Kind, walk};
use unfrag_linux::recording::Recording;

impl Profile {
    /// The profile of a recording, whose file is `identity`.
    ///
    /// # Errors
    /// If it does not say which pages were allocated, or its kernel is not known.
    pub fn of(rec: &Recording, identity: &Identity) -> Result<Profile> {
        let mut purposes = Profile::purposes(rec)?;
        walk(&rec.events, &rec.strings, &mut purposes)?;
        Profile::with(rec, identity, purposes.known())
    }

    /// What has to be known of the events before they are walked over.
    ///
    /// # Errors
    /// If the recording does not say which pages were allocated and freed, or its kernel is not known.
    fn purposes(rec: &Recording) -> Result<Purposes> {
        RecordedGeometry::of(rec).check(Question::Profile)?;
        let recorded = Coverage::of(rec);
        if !recorded.has(Kind::Alloc) {
            return Err(
                Error::lacking("the recording has no page events").remedy(Remedy::RecordProcesses)
            );
        }
        if !recorded.has(Kind::Free) {
            return Err(Error::lacking(
                "frees of pages were not recorded, so that nothing tells how long they live",
            )
            .help(Kind::Free.how()));
        }
        let needed = [Kind::Alloc, Kind::Free, Kind::CacheAdd, Kind::CacheDelete];
        Input::from(rec).check(&needed)?;
        Ok(Purposes::of(Era::of(&rec.meta.kernel_release)?))
    }

    /// Checks before the events are read that there is an answer.
    ///
    /// # Errors
    /// As [`Profile::of`].
    pub(crate) fn check(rec: &Recording) -> Result<()> {
        Profile::purposes(rec).map(drop)
    }

    /// The profile, where it is known what each page is for.
    ///
    /// # Errors
    /// As [`Profile::of`].
    fn with(rec: &Recording, identity: &Identity, known: Known) -> Result<Profile> {
        let geometry = RecordedGeometry::of(rec).check(Question::Profile)?;
        let processes = Processes::of(rec)?;
        let programs = processes.programs();
        let mut pages = Walk::new(rec, geometry, &processes, &programs, known);
        walk(&rec.events, &rec.strings, &mut pages)?;
        pages.end();
        let (mut all, mut program) = summary::of(&pages.finish(), &processes, &programs);
        object_counts::add(rec, &processes, &programs, &mut all, &mut program)?;
        let taken = |u: &Use| u.pages.values().map(|c| c.taken_pages).sum::<u64>();
        let least = taken(&all) / 1000;
        let programs = if processes.known { program.len() } else { 0 };
        program.retain(|p| processes.known && taken(p) >= least.max(1));
        program.sort_by_key(|p| (std::cmp::Reverse(taken(p)), p.name.clone()));
        for p in &mut program {
            objects::keep_most(&mut p.slab);
        }
        Ok(Profile {
            profile: VERSION,
            recording: source(rec, identity),
            programs_left_out: (programs - program.len()) as u64,
            all,
            program,
        })
    }
}

/// Whether a profile is made of this field of this event.
pub(crate) fn reads(event: &str, field: &str) -> bool {
    let is_of_page = Kind::of(event).is_some_and(|k| k.fields().contains(&field));
    is_of_page || process::reads(event, field)
}

fn source(rec: &Recording, identity: &Identity) -> Source {
    let fact = |name: &str| rec.meta.facts.get(name).cloned().unwrap_or_default();
    let mut with_amounts = rec.snapshots.iter().filter(|s| s.file("meminfo").is_some());
    let host = with_amounts.next().map(Host::of_snapshot);
    let memory = host.and_then(|host| host.meminfo_bytes("MemTotal"));
    Source {
        file: identity.file.clone(),
        file_bytes: identity.bytes,
        sha256: identity.sha256.clone(),
        command: fact("command"),
        kernel: rec.meta.kernel_release.clone(),
        date: fact("date"),
        cpus: rec.meta.cpus,
        memory_bytes: memory.unwrap_or(0),
        page_bytes: rec.meta.page_size,
        recorder: fact("recorder"),
        profiler: format!("unfrag {}", env!("CARGO_PKG_VERSION")),
        events: rec.events.len() as u64,
        lost_events: rec.meta.lost_events(),
    }
}
