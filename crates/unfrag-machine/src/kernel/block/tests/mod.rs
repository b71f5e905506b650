//! The block layer from outside. `spec: 4.4, 8.6`

mod congestion;
mod crypt;
mod elevator;
mod faults;
mod timing;

use crate::block::{Bio, CryptConfig, DeviceId, Dir, DiskConfig, Done, PAGE_SECTORS, QueueConfig};
use crate::channels::BIO;
use crate::config::MachineConfig;
use crate::engine::{Channel, Spec};
use crate::kernel::{Engine, Sim};
use crate::test_support::machine_config;
use std::cell::RefCell;
use std::rc::Rc;

const DISK: DeviceId = DeviceId(0);
const CRYPT: DeviceId = DeviceId(1);

/// A disk on which all takes time in round numbers: a page 50 µs, a seek 1 to 9 ms, no turning, no
/// overhead.
fn plain_disk() -> DiskConfig {
    DiskConfig {
        name: "sda".into(),
        sectors: 1 << 20,
        bandwidth: 81_920_000,
        seek_min: 1_000_000,
        seek_max: 9_000_000,
        rotation: 0,
        overhead: 0,
        queue: QueueConfig::default(),
        faults: Vec::new(),
    }
}

/// One CPU on which only the encrypting takes time, over the disk and a layer over it.
fn config(disk: DiskConfig) -> MachineConfig {
    let mut config = machine_config("2.6.31", 4096, 1);
    config.costs.context_switch = 0;
    config.costs.interrupt = 0;
    config.costs.end_io_page = 0;
    config.costs.crypt_page = 10_000;
    config.disks = vec![disk];
    config.crypts = vec![CryptConfig {
        name: "crypt".into(),
        disk: 0,
        first_sector: 0,
        io_thread: false,
    }];
    config
}

fn machine(disk: DiskConfig) -> Engine {
    Engine::new(&config(disk)).unwrap()
}

/// A bio of some pages from a page on.
fn bio(device: DeviceId, dir: Dir, sync: bool, page: u64, pages: u32) -> Bio {
    let mut bio = Bio::new(device, page * PAGE_SECTORS, dir, sync, Done::User(1 << 40));
    for i in 0..pages {
        assert!(bio.push(page as u32 + i));
    }
    bio
}

fn read(page: u64, pages: u32) -> Bio {
    bio(DISK, Dir::Read, true, page, pages)
}

fn write(page: u64, pages: u32) -> Bio {
    bio(DISK, Dir::Write, false, page, pages)
}

/// Submits a bio under a token and notes when it ends.
#[derive(Clone, Default)]
struct Ends(Rc<RefCell<Vec<(u64, u64)>>>);

impl Ends {
    /// Starts a task that waits for a token and notes token and time.
    fn submit(&self, sim: &mut Sim, token: u64, mut bio: Bio) {
        bio.done = Done::User(token);
        sim.world().submit(bio);
        let ends = self.clone();
        sim.spawn(Spec::new("waiter"), move |cx| {
            while cx.with(|sim| sim.world().block.take_ended(token)).is_none() {
                cx.wait_io(Channel::new(BIO, token), None);
            }
            let at = cx.now();
            ends.0.borrow_mut().push((token, at));
        });
    }
    fn order(&self) -> Vec<u64> {
        self.0.borrow().iter().map(|e| e.0).collect()
    }
    fn times(&self) -> Vec<u64> {
        self.0.borrow().iter().map(|e| e.1).collect()
    }
}
