//! Kernels whose frames the host chooses, on hosts that do not.

use unfrag_eras::kernel::{UNFRAG, kernels, preset};
use unfrag_eras::restore::Restore;
use unfrag_eras::source::{Next, Room, Source};
use unfrag_eras::{
    ClaimError, Config, ConfigError, CpuId, Host, Manager, MigrateType, NodeId, NullHost, Order,
    Pfn, ZoneConfig, ZoneId, ZoneKind,
};

/// Chooses nothing, and says whether it could.
struct Idle(bool);

impl Source for Idle {
    fn start(&mut self, _: &[ZoneConfig]) -> bool {
        self.0
    }
    fn ready(&mut self) {}
    fn choose(&mut self, _: ZoneId, _: Order, _: MigrateType) -> Option<Pfn> {
        None
    }
    fn claim(&mut self, _: ZoneId, _: Pfn, _: Order, _: MigrateType) -> bool {
        false
    }
    fn give(&mut self, _: ZoneId, _: Pfn, _: Order) {}
    fn type_of(&self, _: ZoneId, _: Pfn) -> MigrateType {
        MigrateType::Movable
    }
    fn begin(&mut self, _: ZoneId, _: Room) -> u32 {
        0
    }
    fn next(&mut self, _: u32, _: &mut dyn FnMut(Pfn) -> Option<Order>) -> Next {
        Next::Done
    }
    fn after(&self, _: u32, _: Pfn) -> Option<Pfn> {
        None
    }
    fn place(&mut self, _: u32, _: Order) -> Option<Pfn> {
        None
    }
    fn end(&mut self, _: u32) -> u32 {
        0
    }
}

/// A host with one, which it may deny.
struct With(Idle);

impl Host for With {
    const SOURCES: bool = true;
    fn source(&mut self) -> Option<&mut dyn Source> {
        Some(&mut self.0)
    }
}

/// A host that has one and says that it has none.
struct Denied(Idle);

impl Host for Denied {
    fn source(&mut self) -> Option<&mut dyn Source> {
        Some(&mut self.0)
    }
}

fn error<H: Host>(host: H) -> Option<ConfigError> {
    let zones = [ZoneConfig::whole(NodeId(0), ZoneKind::Normal, Pfn(0), 4096)];
    let config = Config::new(&zones, UNFRAG.rules);
    let words = unfrag_eras::layout(&config).expect("a layout").words;
    let mut memory = vec![0; words];
    Manager::boot(&config, host, &mut memory).err()
}

#[test]
fn a_kernel_whose_host_does_not_choose_is_refused() {
    let no = Some(ConfigError::NoSource);
    assert_eq!(error(NullHost), no);
    assert_eq!(error(With(Idle(false))), no, "no such memory");
    assert_eq!(error(Denied(Idle(true))), no, "it says that it has none");
    assert_eq!(error(With(Idle(true))), None);
    assert!(ConfigError::NoSource.to_string().contains("Host::source"));
    let zones = [ZoneConfig::whole(NodeId(0), ZoneKind::Normal, Pfn(0), 4096)];
    let config = Config::new(&zones, UNFRAG.rules);
    let mut memory = vec![0; unfrag_eras::layout(&config).expect("a layout").words];
    assert_eq!(Restore::new(&config, NullHost, &mut memory).err(), no);
}

/// Ranges are the source's: lists alone would give out what it has.
#[test]
fn no_range_is_claimed_behind_the_hosts_back() {
    let zones = [ZoneConfig::whole(NodeId(0), ZoneKind::Normal, Pfn(0), 4096)];
    let config = Config::new(&zones, UNFRAG.rules);
    let mut memory = vec![0; unfrag_eras::layout(&config).expect("a layout").words];
    let mut m = Manager::boot(&config, With(Idle(true)), &mut memory).expect("a manager");
    let refused = m.offline_unused(CpuId(0), Pfn(1024), 512);
    assert_eq!(refused, Err(ClaimError::Sourced));
    assert!(ClaimError::Sourced.to_string().contains("the host"));
    assert_eq!(m.inspect().validate(), Ok(()));
}

#[test]
fn all_others_are_chosen_by_lists() {
    let sourced: Vec<_> = kernels().filter(|p| p.rules.is_sourced()).collect();
    assert_eq!(sourced, [&UNFRAG]);
    assert_eq!(preset("UNFRAG"), Some(&UNFRAG));
}
