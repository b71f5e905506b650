//! A short way to make a [`Config`] and to boot a manager from it.

use crate::config::{Config, ConfigError, Layout, layout};
use crate::frame::{Geometry, MAX_ZONES, NodeId, Pfn, ZoneConfig, ZoneKind};
use crate::host::Host;
use crate::kernel::{Sysctl, preset};
use crate::manager::Manager;

/// Builds a configuration step by step.
///
/// ```
/// use unfrag_eras::{Builder, CpuId, Gfp, NullHost, Order, Pfn, Request};
///
/// let config = Builder::new().region(Pfn(0x10_0000), 65536).cpus(2).era("6.18");
/// let mut memory = vec![0u64; config.layout()?.words];
/// let mut manager = config.boot(NullHost, &mut memory)?;
/// let huge = manager.alloc(&Request::new(Order::HUGE, Gfp::HIGHUSER_MOVABLE))?;
/// manager.free(CpuId(0), huge, Order::HUGE)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Builder<'a> {
    zones: [ZoneConfig; MAX_ZONES],
    nr_zones: usize,
    node: NodeId,
    cpus: usize,
    era: &'a str,
    geometry: Option<Geometry>,
    sysctl: Sysctl,
}

impl Default for Builder<'_> {
    fn default() -> Self {
        Builder::new()
    }
}

impl<'a> Builder<'a> {
    /// One CPU, the rules of 6.18, default settings, and no memory yet.
    pub fn new() -> Builder<'a> {
        let none = ZoneConfig::whole(NodeId(0), ZoneKind::Normal, Pfn(0), 0);
        Builder {
            zones: [none; MAX_ZONES],
            nr_zones: 0,
            node: NodeId(0),
            cpus: 1,
            era: "6.18",
            geometry: None,
            sysctl: Sysctl::default(),
        }
    }

    /// Memory: `frames` frames from `start`, all of them to be managed, as a Normal zone. Regions come by
    /// ascending address.
    #[must_use]
    pub fn region(self, start: Pfn, frames: u64) -> Self {
        let node = self.node;
        self.zone(ZoneConfig::whole(node, ZoneKind::Normal, start, frames))
    }

    /// Memory of another kind, or with holes.
    #[must_use]
    pub fn zone(mut self, zone: ZoneConfig) -> Self {
        if let Some(slot) = self.zones.get_mut(self.nr_zones) {
            *slot = zone;
        }
        self.nr_zones += 1;
        self
    }

    /// Regions from here on are of this node.
    #[must_use]
    pub fn node(mut self, node: NodeId) -> Self {
        self.node = node;
        self
    }

    /// Number of CPUs.
    #[must_use]
    pub fn cpus(mut self, cpus: usize) -> Self {
        self.cpus = cpus;
        self
    }

    /// The era whose rules hold, such as `6.1`; [`PRESETS`](crate::kernel::PRESETS) has all.
    #[must_use]
    pub fn era(mut self, name: &'a str) -> Self {
        self.era = name;
        self
    }

    /// Other sizes of pages and blocks than those of 4 KiB pages.
    #[must_use]
    pub fn geometry(mut self, geometry: Geometry) -> Self {
        self.geometry = Some(geometry);
        self
    }

    /// Settings of the administrator.
    #[must_use]
    pub fn sysctl(mut self, sysctl: Sysctl) -> Self {
        self.sysctl = sysctl;
        self
    }

    /// The full configuration.
    ///
    /// # Errors
    /// [`ConfigError::NoSuchEra`], [`ConfigError::Zones`].
    pub fn config(&self) -> Result<Config<'_>, ConfigError> {
        let preset = preset(self.era).ok_or(ConfigError::NoSuchEra)?;
        let zones = self.zones.get(..self.nr_zones);
        let zones = zones.ok_or(ConfigError::Zones(self.nr_zones))?;
        let config = Config::new(zones, preset.rules);
        Ok(Config {
            cpus: self.cpus,
            geometry: self.geometry.unwrap_or(config.geometry),
            sysctl: self.sysctl,
            ..config
        })
    }

    /// Memory that the manager needs for its metadata.
    ///
    /// # Errors
    /// [`ConfigError`], if there is no such manager.
    pub fn layout(&self) -> Result<Layout, ConfigError> {
        layout(&self.config()?)
    }

    /// Boots the manager in `memory`, which holds at least [`layout`](Self::layout)`().words` words: all
    /// frames are free.
    ///
    /// # Errors
    /// [`ConfigError`], if there is no such manager, or the memory is too small for it.
    pub fn boot<H: Host>(self, host: H, memory: &mut [u64]) -> Result<Manager<'_, H>, ConfigError> {
        Manager::boot(&self.config()?, host, memory)
    }
}
