//! Checked caches report misuse with cache and object, and stay usable.

use super::support::{Memory, few};
use std::ptr::NonNull;
use unfrag::Gfp;
use unfrag_slab::{
    CacheFlags, CacheOptions, Cpu, Design, Fault, FaultKind, KmemCache, SlabConfig, Slabs,
};

/// A checked cache of objects of 40 bytes of each design.
fn with(flags: CacheFlags, f: impl Fn(&Memory, &Slabs, &KmemCache, &Cpu)) {
    for design in Design::ALL {
        let memory = Memory::new(1, few(1024));
        memory.with(&SlabConfig::default(), |s| {
            let cpu = s.cpu(0).unwrap();
            let options = CacheOptions::new("inode", 40).flags(flags).design(design);
            let cache = s.create(&options).unwrap();
            assert!(cache.is_checked());
            f(&memory, s, &cache, &cpu);
        });
    }
}

fn free(cache: &KmemCache, cpu: &Cpu, object: NonNull<u8>) -> Result<(), Fault> {
    unsafe { cache.free(cpu, object) }
}

#[test]
fn a_double_free_names_cache_and_object_and_does_no_harm() {
    for flags in [
        CacheFlags::CONSISTENCY,
        CacheFlags::RED_ZONE,
        CacheFlags::POISON,
    ] {
        with(flags, |memory, _, cache, cpu| {
            let object = cache.alloc(cpu, Gfp::KERNEL).unwrap();
            free(cache, cpu, object).unwrap();
            let fault = free(cache, cpu, object).unwrap_err();
            assert_eq!(fault.kind, FaultKind::DoubleFree);
            assert_eq!(memory.pages.faults.lock().unwrap()[..], [fault]);
            let text = fault.to_string();
            let address = format!("{:p}", object.as_ptr());
            assert!(text.contains("inode") && text.contains(&address), "{text}");
            let (a, b) = (cache.alloc(cpu, Gfp::KERNEL), cache.alloc(cpu, Gfp::KERNEL));
            assert_ne!(a, b, "the object is not on the list twice");
            free(cache, cpu, a.unwrap()).unwrap();
            free(cache, cpu, b.unwrap()).unwrap();
            assert_eq!(cache.info().faults, 1);
        });
    }
}

#[test]
fn a_write_beyond_an_object_is_found_when_it_is_freed() {
    with(CacheFlags::RED_ZONE, |_, _, cache, cpu| {
        for (offset, kind) in [
            (40, FaultKind::RedZoneBehind),
            (-1, FaultKind::RedZoneBefore),
        ] {
            let object = cache.alloc(cpu, Gfp::KERNEL).unwrap();
            let beyond = unsafe { object.as_ptr().offset(offset) };
            let before = unsafe { beyond.replace(0x77) };
            let fault = free(cache, cpu, object).unwrap_err();
            assert_eq!(fault.kind, kind, "{}", cache.design());
            unsafe { beyond.write(before) };
            free(cache, cpu, object).unwrap();
        }
    });
}

#[test]
fn a_write_to_a_free_object_is_found_and_nobody_gets_that_object() {
    with(CacheFlags::POISON, |memory, _, cache, cpu| {
        let object = cache.alloc(cpu, Gfp::KERNEL).unwrap();
        free(cache, cpu, object).unwrap();
        let old = unsafe { object.as_ptr().add(13).replace(1) };
        let mut all = vec![];
        for _ in 0..200 {
            all.push(cache.alloc(cpu, Gfp::KERNEL).unwrap());
        }
        assert!(!all.contains(&object));
        let faults = std::mem::take(&mut *memory.pages.faults.lock().unwrap());
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].kind, FaultKind::WrittenAfterFree(13));
        assert_eq!(faults[0].object, object.as_ptr() as usize);
        assert_eq!((faults[0].cache.as_str(), old), ("inode", 0x6b));
        all.into_iter().for_each(|o| free(cache, cpu, o).unwrap());
    });
}

/// `spec: 6.1`
#[test]
fn poison_is_that_of_the_kernels() {
    with(CacheFlags::POISON, |_, _, cache, cpu| {
        let object = cache.alloc(cpu, Gfp::KERNEL).unwrap();
        let bytes = |o: NonNull<u8>| unsafe { std::slice::from_raw_parts(o.as_ptr(), 40) }.to_vec();
        let new = bytes(object);
        assert!(new[..39].iter().all(|b| *b == 0x5a) && new[39] == 0xa5);
        free(cache, cpu, object).unwrap();
        let freed = bytes(object);
        assert!(freed[..39].iter().all(|b| *b == 0x6b) && freed[39] == 0xa5);
    });
}

/// `spec: 6.1, 6.2`
#[test]
fn red_zones_are_those_of_the_kernels() {
    with(CacheFlags::RED_ZONE, |_, _, cache, cpu| {
        let object = cache.alloc(cpu, Gfp::KERNEL).unwrap();
        let words = || unsafe {
            let o = object.as_ptr();
            [
                o.sub(8).cast::<u64>().read(),
                o.add(40).cast::<u64>().read(),
            ]
        };
        let (active, inactive) = match cache.design() {
            Design::Slab => (0xD841_56C5_6356_88C0, 0x09F9_1102_9D74_E35B),
            _ => (0xcccc_cccc_cccc_cccc, 0xbbbb_bbbb_bbbb_bbbb),
        };
        assert_eq!(words(), [active; 2]);
        free(cache, cpu, object).unwrap();
        assert_eq!(words(), [inactive; 2]);
    });
}

#[test]
fn an_address_where_no_object_begins_is_refused() {
    with(CacheFlags::CONSISTENCY, |_, s, cache, cpu| {
        let object = cache.alloc(cpu, Gfp::KERNEL).unwrap();
        let inside = unsafe { object.add(8) };
        assert_eq!(
            free(cache, cpu, inside).unwrap_err().kind,
            FaultKind::NotAnObject
        );
        let mut outside = 0u64;
        let outside = NonNull::from(&mut outside).cast();
        assert_eq!(
            free(cache, cpu, outside).unwrap_err().kind,
            FaultKind::NotInASlab
        );
        let other = s.create(&CacheOptions::new("dentry", 40)).unwrap();
        let fault = free(&other, cpu, object).unwrap_err();
        assert_eq!(fault.kind, FaultKind::OtherCache(cache.name()));
        let text = fault.to_string();
        assert!(text.contains("dentry") && text.contains("inode"), "{text}");
        free(cache, cpu, object).unwrap();
    });
}

#[test]
fn checked_objects_keep_what_their_constructor_made() {
    fn ctor(object: NonNull<u8>) {
        unsafe { object.as_ptr().write_bytes(9, 40) };
    }
    for design in Design::ALL {
        let memory = Memory::new(1, few(1024));
        memory.with(&SlabConfig::default(), |s| {
            let cpu = s.cpu(0).unwrap();
            let options = CacheOptions::new("inode", 40)
                .flags(CacheFlags::DEBUG)
                .design(design);
            let options = unsafe { options.ctor(ctor) };
            let cache = s.create(&options).unwrap();
            for _ in 0..3 {
                let o = cache.alloc(&cpu, Gfp::KERNEL).unwrap();
                let bytes = unsafe { std::slice::from_raw_parts(o.as_ptr(), 40) };
                assert!(bytes.iter().all(|b| *b == 9), "{design}");
                free(&cache, &cpu, o).unwrap();
            }
        });
    }
}
