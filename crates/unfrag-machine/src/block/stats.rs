//! The counters of the devices.

use super::bio::DeviceId;
use super::crypt::CryptStats;
use super::disk::DiskStats;
use super::layer::BlockLayer;
use std::collections::BTreeMap;

impl BlockLayer {
    /// Counters of the disk of a device.
    pub fn disk_stats(&self, device: DeviceId) -> DiskStats {
        let d = &self.disks[self.disk_index(device)];
        DiskStats {
            merges: d.queue.merges,
            ..d.stats
        }
    }

    /// Counters of an encrypting layer; none, if the device is a disk.
    pub fn crypt_stats(&self, device: DeviceId) -> Option<CryptStats> {
        let crypt = usize::from(device.0).checked_sub(self.disks.len())?;
        Some(self.crypts[crypt].stats)
    }

    /// Counters of all devices, by device and name.
    pub fn all_stats(&self) -> BTreeMap<String, BTreeMap<&'static str, u64>> {
        let disks = self.disks.iter().map(|d| {
            let s = &d.stats;
            let stats = [
                ("reads", s.reads),
                ("writes", s.writes),
                ("sectors_read", s.sectors_read),
                ("sectors_written", s.sectors_written),
                ("merges", d.queue.merges),
                ("failed_bios", s.failed_bios),
                ("busy_ns", s.busy),
                ("seeks", s.seeks),
            ];
            (d.config.name.clone(), BTreeMap::from(stats))
        });
        let crypts = self.crypts.iter().map(|c| {
            let s = &c.stats;
            let stats = [
                ("pages_read", s.pages_read),
                ("pages_written", s.pages_written),
                ("longest_line", s.longest_line.into()),
                ("blocked_ns", s.blocked),
            ];
            (c.config.name.clone(), BTreeMap::from(stats))
        });
        disks.chain(crypts).collect()
    }
}
