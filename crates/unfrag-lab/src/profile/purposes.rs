//! Block devices among the files of page cache, and the purpose of each allocation: what a walk over the events has to know
//! before it begins.

use super::class::Class;
use super::refused::Refused;
use crate::era::Era;
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};
use unfrag_eras::{Gfp, Pfn};
use unfrag_linux::event::page::Cache;
use unfrag_linux::event::{At, Kind, Page, Tracker};
use unfrag_linux::recording::IN_INTERRUPT;

/// Bits of a device number that hold its minor number.
const MINOR_BITS: u32 = 20;

/// The anonymous devices (major number 0) that hold block devices as files: each inode of theirs that entered page cache
/// is numbered by a block device.
#[derive(Default)]
struct DeviceFiles {
    devices: HashSet<u64>,
    others: HashSet<u64>,
}

impl DeviceFiles {
    fn note(&mut self, device: u64, inode: u64) {
        let is_device = device >> MINOR_BITS == 0 && (1..4096).contains(&(inode >> MINOR_BITS));
        let known = match is_device {
            true => &mut self.devices,
            false => &mut self.others,
        };
        known.insert(device);
    }
}

/// What allocations turn out to be for, while events are counted.
pub(crate) struct Purposes {
    era: Era,
    files: DeviceFiles,
    /// By number of the allocation: its class by its request.
    classes: Vec<Class>,
    /// By allocation whose first page entered page cache: its flags, and the device of the file it entered last.
    cached: HashMap<usize, (Gfp, u64)>,
    refused: Refused,
    /// The last allocation of a first frame, and its flags.
    live: HashMap<Pfn, (usize, Gfp)>,
}

/// What each allocation is for, in order; and the devices whose files are block devices.
pub(crate) struct Known {
    pub(super) classes: Vec<Class>,
    pub(super) device_files: HashSet<u64>,
}

impl Purposes {
    pub(crate) fn of(era: Era) -> Purposes {
        Purposes {
            era,
            files: DeviceFiles::default(),
            classes: vec![],
            cached: HashMap::new(),
            refused: Refused::default(),
            live: HashMap::new(),
        }
    }

    /// What it amounts to.
    pub(crate) fn known(self) -> Known {
        let device_files = &self.files.devices - &self.files.others;
        let mut classes = self.classes;
        for (n, (gfp, device)) in self.cached {
            classes[n] = Class::in_page_cache(gfp, device_files.contains(&device));
        }
        Known {
            classes,
            device_files,
        }
    }
}

impl Tracker for Purposes {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Alloc | Kind::Free | Kind::CacheAdd)
    }

    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        match page {
            Some(Page::Alloc(request)) => {
                let gfp = self.era.gfp(request.gfp.unwrap_or_default().0);
                if let Some(pfn) = request.pfn {
                    self.live.insert(pfn, (self.classes.len(), gfp));
                }
                let by = (at.task, at.flags & IN_INTERRUPT != 0);
                let found = request.pfn.is_some();
                let class = self.refused.class(by, gfp, request.order, found, self.era);
                self.classes.push(class);
            }
            Some(Page::Free(block)) => {
                self.live.remove(&block.pfn);
            }
            Some(Page::Cache(Cache::Add {
                block,
                place: Some(place),
            })) => {
                self.files.note(place.device, place.inode);
                if let Some(&(n, gfp)) = self.live.get(&block.pfn) {
                    self.cached.insert(n, (gfp, place.device));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
