//! The manager in a program that embeds it.

use unfrag_eras::{Builder, CpuId, Gfp, Manager, NullHost, Order, Pfn, Request};

fn goes_to_threads<T: Send + Sync>() {}

#[test]
fn a_manager_may_go_to_any_thread_and_several_may_look_at_it() {
    goes_to_threads::<Manager<'static, NullHost>>();
    let config = Builder::new().region(Pfn(0x1000), 4096).cpus(2);
    let mut memory = vec![0; config.layout().unwrap().words];
    let m = std::sync::Mutex::new(config.boot(NullHost, &mut memory).unwrap());
    std::thread::scope(|s| {
        for cpu in [0, 1].map(CpuId) {
            let m = &m;
            s.spawn(move || {
                for _ in 0..1000 {
                    let request = Request::new(Order(2), Gfp::KERNEL).on(cpu);
                    let p = m.lock().unwrap().alloc(&request).unwrap();
                    m.lock().unwrap().free(cpu, p, Order(2)).unwrap();
                }
            });
        }
    });
    m.into_inner().unwrap().inspect().validate().unwrap();
}

#[test]
fn a_manager_boots_in_memory_of_any_alignment_and_content() {
    for skip in 0..8 {
        let config = Builder::new().region(Pfn(0x10_0000), 65536).era("6.18");
        let words = config.layout().unwrap().words;
        let mut memory = vec![0xdead_beef_dead_beef; words + skip];
        let mut m = config.boot(NullHost, &mut memory[skip..]).unwrap();
        let request = Request::new(Order::HUGE, Gfp::HIGHUSER_MOVABLE);
        let huge = m.alloc(&request).unwrap();
        m.free(CpuId(0), huge, Order::HUGE).unwrap();
        m.inspect().validate().unwrap();
    }
}

#[test]
fn too_little_memory_for_metadata_is_refused_with_what_it_takes() {
    let config = Builder::new().region(Pfn(0), 4096);
    let words = config.layout().unwrap().words;
    let mut memory = vec![0; words - 1];
    let refused = config.boot(NullHost, &mut memory).map(|_| ());
    assert_eq!(refused, Err(unfrag_eras::ConfigError::Memory(words)));
}

#[test]
fn a_manager_fits_a_boot_stack() {
    let bytes = size_of::<Manager<NullHost>>();
    println!("a manager has {bytes} bytes");
    assert!(bytes <= 2048, "{bytes}");
}
