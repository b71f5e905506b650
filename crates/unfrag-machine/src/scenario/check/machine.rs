//! The check of a machine: its memory, its devices, and the ranges of its devices.

use crate::Calibration;
use crate::block::DiskConfig;
use crate::calibration::unknown_cost;
use crate::input::Bytes;
use crate::input::ScenarioError;
use crate::scenario::file::{Disk, Elevator, Fault, FileSystem, FsKind, Layout, Machine};
use crate::scenario::source::{Checked, Source};
use crate::scenario::zones;
use std::ops::Range;
use toml::Spanned;

/// Time slices that a scheduler may have, in nanoseconds.
const LEAST_QUANTUM: u64 = 10_000;
const MOST_QUANTUM: u64 = 10_000_000_000;

/// Pages of the smallest ext3: below that its journal and tables leave no room.
const LEAST_EXT3: u64 = 1024;

/// Bytes of the smallest area of a device: a page.
const LEAST_AREA: u64 = 4096;

impl Source<'_> {
    pub(super) fn machine(&self, m: &Machine) -> Checked {
        self.within("the number of CPUs", &m.cpus, 1..257)?;
        if ![100, 250, 300, 1000].contains(m.hz.get_ref()) {
            let message = format!("no kernel has a timer of {} Hz", m.hz.get_ref());
            return self.wrong(&m.hz, message, "hz is 100, 250, 300 or 1000");
        }
        if let Some(cpu) = &m.scheduler.irq_cpu {
            self.within("the CPU for interrupts", cpu, 0..*m.cpus.get_ref() as u64)?;
        }
        if let Some(quantum) = &m.scheduler.quantum
            && !(LEAST_QUANTUM..=MOST_QUANTUM).contains(&quantum.get_ref().0)
        {
            let message = "no kernel has such turns".to_owned();
            return self.wrong(quantum, message, "give a quantum of 10 us to 10 s");
        }
        if m.layout == Layout::X86_64
            && let Some(highpte) = m.highpte.as_ref().filter(|h| *h.get_ref())
        {
            let message = "x86-64 has no high memory for page tables".to_owned();
            return self.wrong(highpte, message, "leave `highpte` out");
        }
        if let Some(busy) = &m.owners_busy
            && busy.get_ref().0 >= busy.get_ref().1
        {
            let message = "owners that are always busy".to_owned();
            return self.wrong(busy, message, "give times and of how many, such as [1, 20]");
        }
        let frames = m.memory.get_ref().pages();
        let (most, help) = match m.layout {
            Layout::X86 => (1 << 24, "64 GiB at most on x86-32"),
            Layout::X86_64 => (1 << 31, "8 TiB at most"),
        };
        if frames > most {
            return self.wrong(&m.memory, "too much memory".to_owned(), help);
        }
        let keeps = m.kernel_keeps.as_ref();
        let kept = keeps.map_or(zones::kernel_keeps(m.layout, frames), |k| {
            k.get_ref().pages()
        });
        if zones::zones(m.layout, frames, kept).is_none() {
            let message = "the kernel leaves nothing of this memory".to_owned();
            if let Some(keeps) = keeps {
                return self.wrong(keeps, message, "let it keep less of it");
            }
            return self.wrong(&m.memory, message, "give the machine 32 MiB or more");
        }
        if let Some(percent) = &m.cost_percent
            && !(1..=10_000).contains(percent.get_ref())
        {
            let message = format!(
                "the kernel's work takes {} % of its time",
                percent.get_ref()
            );
            return self.wrong(percent, message, "give 1 to 10000");
        }
        let mut calibration = Calibration::standard();
        for name in m.costs.keys() {
            if calibration.cost(name.get_ref()).is_none() {
                let (message, help) = unknown_cost(name.get_ref());
                return self.wrong(name, message, &help);
            }
        }
        self.devices(m)?;
        self.places(m)
    }

    fn devices(&self, m: &Machine) -> Checked {
        let disks: Vec<_> = m.disks.iter().map(|d| d.name.get_ref().as_str()).collect();
        let layers = m.crypts.iter().map(|c| &c.name);
        self.unique(m.disks.iter().map(|d| &d.name).chain(layers))?;
        for d in &m.disks {
            self.disk(d)?;
        }
        for c in &m.crypts {
            self.known("disk", &c.disk, &disks)?;
        }
        if m.disks.len() + m.crypts.len() > 255 {
            let last = &m.disks[m.disks.len() - 1].name;
            return self.wrong(last, "too many devices".into(), "255 at most");
        }
        Ok(())
    }

    fn disk(&self, d: &Disk) -> Checked {
        if d.size.get_ref().0 < 1 << 20 {
            return self.wrong(&d.size, "too small a disk".into(), "1 MiB at least");
        }
        if let Some(b) = d.bandwidth.as_ref().filter(|b| b.get_ref().0 == 0) {
            return self.wrong(b, "a disk without bandwidth".into(), "1 B/s at least");
        }
        if let Some(nr) = &d.nr_requests {
            self.within("the number of requests", nr, 16..65_537)?;
        }
        if let Some(batch) = &d.batch {
            self.within("the requests of a batch", batch, 1..65_537)?;
        }
        if let Some(max) = d.max_request.as_ref().filter(|m| m.get_ref().0 < 4096) {
            return self.wrong(max, "requests of less than a page".into(), "4 KiB at least");
        }
        let usual = DiskConfig::desktop("", d.size.get_ref().0);
        let least = d.seek_min.map_or(usual.seek_min, |t| t.0);
        if let Some(most) = d.seek_max.as_ref().filter(|m| m.get_ref().0 < least) {
            let message = "a seek over the whole disk that is shorter than to the next track";
            return self.wrong(
                most,
                message.into(),
                "give `seek-min` of at most `seek-max`",
            );
        }
        let of_batches = [
            ("batch", d.batch.is_some()),
            ("async-starved", d.async_starved.is_some()),
            ("sync-expire", d.sync_expire.is_some()),
            ("async-expire", d.async_expire.is_some()),
        ];
        if let Some((key, _)) = of_batches.iter().find(|k| k.1)
            && d.elevator == Elevator::Cfq
        {
            let message = format!("`{key}` says nothing to CFQ");
            let help = "leave it out, or leave out `elevator = \"cfq\"`";
            return self.wrong(&d.name, message, help);
        }
        if d.ncq && d.elevator != Elevator::Cfq {
            let message = "`ncq` says something to CFQ alone".to_owned();
            let help = "leave it out, or give `elevator = \"cfq\"`";
            return self.wrong(&d.name, message, help);
        }
        for fault in &d.faults {
            let (Fault::Stall { from, to } | Fault::Fail { from, to, .. }) = fault.get_ref();
            if from.0 >= to.0 {
                let message = "a fault that is over before it begins".to_owned();
                return self.wrong(fault, message, "give `from` before `to`");
            }
        }
        Ok(())
    }

    /// Swap and file systems: each on a device, inside of it, and on no other.
    fn places(&self, m: &Machine) -> Checked {
        let disks = m.disks.iter().map(|d| &d.name);
        let names = disks.chain(m.crypts.iter().map(|c| &c.name));
        let devices: Vec<_> = names.map(|n| n.get_ref().as_str()).collect();
        self.unique(m.file_systems.iter().map(|f| &f.name))?;
        let mut taken: Vec<(&str, Range<u64>, String)> = vec![];
        let mut place =
            |device: &Spanned<String>, at: Bytes, size: &Spanned<Bytes>, who: String| {
                self.known("disk or encrypting layer", device, &devices)?;
                let (disk, begin, end) = extent(m, device.get_ref());
                let from = begin.saturating_add(at.0);
                let range = from..from.saturating_add(size.get_ref().0);
                if size.get_ref().0 < LEAST_AREA {
                    let message = format!("{who} has no room for a page");
                    return self.wrong(size, message, "4 KiB at least");
                }
                if range.end > end {
                    let message = format!("{who} does not fit on `{}`", device.get_ref());
                    let help = format!("the device has {} MiB", (end - begin) >> 20);
                    return self.wrong(size, message, &help);
                }
                let clash = taken
                    .iter()
                    .find(|t| t.0 == disk && t.1.start < range.end && range.start < t.1.end);
                if let Some((_, there, other)) = clash {
                    let message = format!("{who} lies on {other}");
                    let free = (there.end - begin.min(there.end)) >> 20;
                    let help = format!("{other} ends at {free} MiB of the device; set `at`");
                    return self.wrong(size, message, &help);
                }
                taken.push((disk, range, who));
                Ok(())
            };
        if let Some(s) = &m.swap {
            place(&s.device, s.at, &s.size, "swap".to_owned())?;
        }
        for (i, fs) in m.file_systems.iter().enumerate() {
            if let Some(device) = self.file_system(fs, &m.file_systems[..i])? {
                let who = format!("file system `{}`", fs.name.get_ref());
                place(device, fs.begin(), &fs.size, who)?;
            }
        }
        Ok(())
    }

    /// Checks that a file system is where its kind can be; returns the device that it is on, if any.
    fn file_system<'f>(
        &self,
        fs: &'f FileSystem,
        before: &[FileSystem],
    ) -> Result<Option<&'f Spanned<String>>, ScenarioError> {
        if fs.size.get_ref().pages() > 1 << 31 {
            self.wrong(&fs.size, "too large a file system".into(), "8 TiB at most")?;
        }
        let least = match fs.kind {
            FsKind::Ext3 => LEAST_EXT3,
            _ => 1,
        };
        if fs.size.get_ref().pages() < least {
            let help = format!("{} KiB at least", least * 4);
            self.wrong(&fs.size, "too small a file system".into(), &help)?;
        }
        match (fs.kind, &fs.device, &fs.image_in) {
            (FsKind::Tmpfs, None, None) => {}
            (FsKind::Tmpfs, Some(at), _) | (FsKind::Tmpfs, _, Some(at)) => {
                let help = "leave `device` and `image-in` out";
                self.wrong(at, "tmpfs is on no device".into(), help)?;
            }
            (_, Some(device), None) => return Ok(Some(device)),
            (_, None, Some(holder)) => {
                let tmpfs = before.iter().filter(|f| f.kind == FsKind::Tmpfs);
                let names: Vec<_> = tmpfs.map(|f| f.name.get_ref().as_str()).collect();
                self.known("tmpfs above this one", holder, &names)?;
                let of = |f: &&FileSystem| f.name.get_ref() == holder.get_ref();
                let room = before.iter().find(of).map_or(0, |f| f.size.get_ref().0);
                if fs.size.get_ref().0 > room {
                    let message = format!("it does not fit on `{}`", holder.get_ref());
                    self.wrong(&fs.size, message, "make it smaller, or that larger")?;
                }
            }
            (_, Some(at), Some(_)) => {
                let help = "give `device` or `image-in`";
                self.wrong(at, "a file system is in one place".into(), help)?;
            }
            (_, None, None) => {
                let message = format!("file system `{}` is nowhere", fs.name.get_ref());
                let help = "give its `device`, or the tmpfs that holds it as `image-in`";
                self.wrong(&fs.name, message, help)?;
            }
        }
        if let Some(at) = &fs.at {
            let message = format!("file system `{}` is on no device", fs.name.get_ref());
            self.wrong(at, message, "leave `at` out")?;
        }
        Ok(None)
    }
}

/// Disk, first byte and end of a known device.
fn extent<'m>(m: &'m Machine, device: &str) -> (&'m str, u64, u64) {
    let (disk, begin) = match m.crypts.iter().find(|c| c.name.get_ref() == device) {
        Some(c) => (c.disk.get_ref().as_str(), c.at.0),
        None => (device, 0),
    };
    let disk = m.disks.iter().find(|d| d.name.get_ref() == disk);
    let size = disk.map_or(0, |d| d.size.get_ref().0);
    let name = disk.map_or("", |d| d.name.get_ref().as_str());
    (name, begin.min(size), size)
}
