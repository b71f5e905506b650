use crate::block::{DeviceId, Fault};
use crate::engine::{Rng, SEC, Spec};
use crate::error::Fail;
use crate::fs::tree::{Tree, TreePlan, TreeShape};
use crate::fs::{FsConfig, FsId, FsKind, NodeId, Readahead, Store};
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Engine};
use crate::kmem::caches::CacheKind;
use crate::test_support::{add_disk, add_swap, finish, machine_config};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A machine with a disk of 8 GiB: swap in its upper half, file systems in its lower.
fn machine(kernel: &str, frames: u64) -> Engine {
    let mut config = machine_config(kernel, frames, 2);
    add_disk(&mut config, 8);
    add_swap(&mut config, 8 << 20, 1 << 18);
    let mut e = Engine::new(&config).unwrap();
    e.sim().start_kswapd();
    e.sim().start_flushers();
    e
}

fn mount(e: &mut Engine, kind: FsKind) -> FsId {
    let store = match kind {
        FsKind::Tmpfs => Store::Memory,
        _ => Store::Disk {
            device: DeviceId(0),
            sector: 0,
        },
    };
    e.sim().mount(&FsConfig {
        name: "test".into(),
        kind,
        store,
        pages: 1 << 18,
    })
}

/// An ext2 of so many pages in a new file of a directory of tmpfs; returns its root.
fn mount_image(cx: &mut Cx, on: NodeId, pages: u32) -> NodeId {
    let image = cx.create_node(WHO, on, false).unwrap();
    cx.with(|sim| {
        let l = sim.setup_loop(image);
        let config = FsConfig {
            name: "loop".into(),
            kind: FsKind::Ext2,
            store: Store::Loop(l),
            pages,
        };
        let fs = sim.mount(&config);
        sim.root(fs)
    })
}

fn task(e: &mut Engine, body: impl FnOnce(&mut Cx) + 'static) {
    e.spawn(Spec::new("test"), body);
}

fn shape(dirs: u32, files: u32) -> TreeShape {
    TreeShape {
        dirs,
        files,
        ..TreeShape::kernel_sources()
    }
}

fn plan(dirs: u32, files: u32) -> TreePlan {
    TreePlan::draw(&shape(dirs, files), &mut Rng::named(1, "tree"))
}

const WHO: Who = Who::KERNEL;

#[test]
fn sequential_read_uses_large_requests() {
    let mut e = machine("2.6.32", 64 << 8);
    let fs = mount(&mut e, FsKind::Ext2);
    let file = e.sim().lay_file(fs, 4000).unwrap();
    task(&mut e, move |cx| {
        cx.read_whole(WHO, file).unwrap();
        let t = cx.now();
        cx.read_whole(WHO, file).unwrap();
        assert!(cx.now() - t < 10_000_000, "the second time from memory");
    });
    finish(&mut e, 3600);
    let a = e.sim().check(0).unwrap();
    assert_eq!(a.file, 4000);
    let stats = e.sim().block.disk_stats(DeviceId(0));
    let requests = stats.reads;
    assert!(requests < 4000 / 16, "{requests} requests for 4000 pages");
    // Directory, inode table: two blocks more.
    assert_eq!(e.sim().kernel().counters.pgpgin, 4002);
}

#[test]
fn file_larger_than_memory_is_read() {
    for kernel in [
        "2.6.14", "2.6.24", "2.6.30", "2.6.32", "2.6.36", "6.1", "6.18",
    ] {
        let mut e = machine(kernel, 16 << 8);
        let fs = mount(&mut e, FsKind::Ext2);
        let file = e.sim().lay_file(fs, 20_000).unwrap();
        task(&mut e, move |cx| cx.read_whole(WHO, file).unwrap());
        finish(&mut e, 3600);
        e.sim().check(0).unwrap();
        let c = e.sim().kernel().counters;
        assert!(
            c.pgpgin >= 20_000 && c.pgpgin < 21_000,
            "{kernel}: {}",
            c.pgpgin
        );
        assert_eq!(c.oom_victims, 0, "{kernel}");
    }
}

#[test]
// `spec: 4.5`
fn dirty_pages_are_written_within_the_expiry() {
    for kernel in ["2.6.30", "2.6.32"] {
        let mut e = machine(kernel, 64 << 8);
        let fs = mount(&mut e, FsKind::Ext2);
        let root = e.sim().root(fs);
        task(&mut e, move |cx| {
            let file = cx.create_node(WHO, root, false).unwrap();
            cx.write_file(WHO, file, 0, 500).unwrap();
            let dirty = cx.with(|sim| sim.kernel().vfs.dirty.nr_dirty);
            assert!(dirty >= 500, "{dirty} dirty pages");
            cx.sleep(20 * SEC);
            assert!(cx.with(|sim| sim.kernel().vfs.dirty.nr_dirty) >= 500);
            cx.sleep(20 * SEC);
            let d = cx.with(|sim| sim.kernel().vfs.dirty);
            assert_eq!((d.nr_dirty, d.nr_writeback), (0, 0));
            cx.with(|sim| sim.unpin(file));
        });
        finish(&mut e, 3600);
        let a = e.sim().check(0).unwrap();
        assert_eq!(a.file, 500, "{kernel}");
        assert!(e.sim().kernel().counters.pgpgout >= 500);
    }
}

#[test]
// `spec: 4.5`
fn writer_is_throttled_near_the_dirty_limit() {
    for kernel in ["2.6.30", "2.6.32", "6.1"] {
        let mut e = machine(kernel, 64 << 8);
        let fs = mount(&mut e, FsKind::Ext2);
        let root = e.sim().root(fs);
        let most = Rc::new(RefCell::new((0, 0)));
        let seen = most.clone();
        task(&mut e, move |cx| {
            let file = cx.create_node(WHO, root, false).unwrap();
            for i in 0..300 {
                cx.write_file(WHO, file, i * 64, 64).unwrap();
                let (d, l) = cx.with(|sim| (sim.kernel().vfs.dirty, sim.dirty_limits()));
                let mut m = seen.borrow_mut();
                if d.nr_dirty + d.nr_writeback > m.0 {
                    *m = (d.nr_dirty + d.nr_writeback, l.dirty);
                }
            }
            cx.with(|sim| sim.unpin(file));
        });
        finish(&mut e, 3600);
        e.sim().check(0).unwrap();
        let (most, limit) = *most.borrow();
        assert!(
            most > limit / 2 && most < limit + limit / 2,
            "{kernel}: {most} against {limit}"
        );
        assert!(e.sim().kernel().counters.dirty_pause > 0);
    }
}

#[test]
fn ext3_writes_data_of_new_files_at_the_next_commit() {
    let mut e = machine("2.6.32", 64 << 8);
    let fs = mount(&mut e, FsKind::Ext3);
    let root = e.sim().root(fs);
    task(&mut e, move |cx| {
        let file = cx.create_node(WHO, root, false).unwrap();
        cx.write_file(WHO, file, 0, 300).unwrap();
        cx.sleep(8 * SEC);
        let object = cx.with(|sim| sim.object_of(file));
        assert_eq!(cx.with(|sim| sim.kernel().objects.get(object).nr_dirty), 0);
        cx.with(|sim| sim.unpin(file));
    });
    finish(&mut e, 3600);
    let sim = e.sim();
    let j = sim.kernel().vfs.systems()[0].journal.clone().unwrap();
    // Inode, two bitmaps, directory, and the two blocks of the commit itself.
    assert_eq!((j.commits, j.blocks), (1, 6));
    sim.check(0).unwrap();
}

#[test]
fn unpacking_and_removing_a_tree_leaves_nothing() {
    for kind in [FsKind::Ext2, FsKind::Ext3, FsKind::Tmpfs] {
        let mut e = machine("2.6.32", 64 << 8);
        let fs = mount(&mut e, kind);
        let root = e.sim().root(fs);
        let free = e.sim().kernel().vfs.systems()[0].blocks.free();
        task(&mut e, move |cx| {
            let mut tree = Tree::default();
            let plan = plan(20, 600);
            let mut wanted = vec![0];
            cx.unpack(WHO, root, &plan, 1000, &mut tree, |_, n| {
                wanted.push(n);
                Ok(())
            })
            .unwrap();
            assert!(wanted.is_sorted() && wanted.last() == Some(&plan.pages()));
            assert_eq!((tree.files.len(), wanted.len()), (600, 601));
            let a = cx.with(|sim| sim.check(0).unwrap());
            assert_eq!(a.file + a.shmem, plan.pages());
            cx.walk_tree(WHO, &tree).unwrap();
            let mut copy = Tree::default();
            cx.copy_tree(WHO, &tree, root, &mut copy).unwrap();
            assert_eq!(copy.files.len(), 600);
            cx.remove_tree(WHO, tree);
            cx.remove_tree(WHO, copy);
            cx.sync_all();
        });
        finish(&mut e, 3600);
        let a = e.sim().check(0).unwrap();
        assert_eq!((a.file, a.shmem, a.orphans), (0, 0, 0), "{kind:?}");
        let left = e.sim().kernel().vfs.systems()[0].blocks.free();
        // The root directory keeps its block.
        assert!(free - left <= 1, "{kind:?}: {} blocks lost", free - left);
    }
}

#[test]
fn nothing_is_read_from_beyond_the_end_of_a_file() {
    let mut e = machine("2.6.30", 16 << 8);
    let fs = mount(&mut e, FsKind::Tmpfs);
    let root = e.sim().root(fs);
    task(&mut e, move |cx| {
        let file = cx.create_node(WHO, root, false).unwrap();
        cx.write_file(WHO, file, 0, 9).unwrap();
        for first in [9, 1000] {
            cx.read_file(WHO, file, first, 20, &mut Readahead::default())
                .unwrap();
        }
        cx.with(|sim| {
            let object = sim.object_of(file);
            assert_eq!(sim.kernel().objects.get(object).frames, 9);
        });
    });
    finish(&mut e, 3600);
}

/// Maps a cached file and touches its first 100 pages twice, then every fifth of the next 100. Returns the
/// faults of the first and the last round.
fn mapped(kernel: &str) -> (u64, u64) {
    let mut e = machine(kernel, 64 << 8);
    let fs = mount(&mut e, FsKind::Ext2);
    let file = e.sim().lay_file(fs, 1000).unwrap();
    let found = Rc::new(Cell::new((0, 0)));
    let found_by = found.clone();
    task(&mut e, move |cx| {
        cx.read_whole(WHO, file).unwrap();
        let p = cx.create_process(WHO, &"reader".into()).unwrap();
        let area = cx.with(|sim| sim.map_file_area(p, file, 1000, false, None));
        let faults = |cx: &mut Cx, pages: &mut dyn Iterator<Item = u32>| {
            let before = cx.with(|sim| sim.kernel().counters.pgfault);
            cx.touch(p, area, &mut pages.map(|i| i..i + 1), false, 100)
                .unwrap();
            cx.with(|sim| sim.kernel().counters.pgfault) - before
        };
        let first = faults(cx, &mut (0..100));
        assert_eq!(faults(cx, &mut (0..100)), 0, "they are mapped");
        found_by.set((first, faults(cx, &mut (100..200).step_by(5))));
        let (rss, mapped) = cx.with(|sim| {
            sim.check(0).unwrap();
            (
                sim.kernel().procs.get(p).rss,
                sim.manager().inspect().nr_mapped(),
            )
        });
        assert_eq!(u64::from(rss), mapped);
        cx.unmap_area(p, area);
        assert_eq!(cx.with(|sim| sim.manager().inspect().nr_mapped()), 0);
        cx.destroy_process(p);
    });
    finish(&mut e, 3600);
    e.sim().check(0).unwrap();
    found.get()
}

#[test]
fn file_fault_maps_around() {
    assert_eq!(mapped("2.6.28"), (100, 20));
    // Pages 96 to 111 came with page 96.
    assert_eq!(mapped("6.1"), (7, 6));
}

#[test]
fn tmpfs_swaps_out_and_in() {
    let mut e = machine("2.6.30", 16 << 8);
    let fs = mount(&mut e, FsKind::Tmpfs);
    let root = e.sim().root(fs);
    task(&mut e, move |cx| {
        let file = cx.create_node(WHO, root, false).unwrap();
        cx.write_file(WHO, file, 0, 9000).unwrap();
        for _ in 0..2 {
            cx.read_file(WHO, file, 0, 9000, &mut Readahead::default())
                .unwrap();
        }
        cx.with(|sim| {
            let object = sim.object_of(file);
            let o = sim.kernel().objects.get(object);
            assert_eq!(o.frames + o.swapped, 9000);
            sim.check(0).unwrap();
        });
        cx.remove_node(WHO, file);
        cx.with(|sim| sim.unpin(file));
        // Pages under writeback stay until it ends.
        cx.sleep(SEC);
    });
    finish(&mut e, 3600);
    let a = e.sim().check(0).unwrap();
    assert_eq!((a.shmem, a.swap_cache), (0, 0));
    let c = e.sim().kernel().counters;
    assert!(c.pswpout > 5000 && c.pswpin > 9000, "{c:?}");
    assert_eq!(e.sim().kernel().swap.as_ref().unwrap().used(), 0);
}

/// Fills memory with pages of a tmpfs file until reclaim scans them once. Returns how many are in the swap
/// cache, and how many were written.
fn met_once(second_round: bool) -> (u64, u64) {
    let mut config = machine_config("2.6.30", 16 << 8, 1);
    add_disk(&mut config, 8);
    add_swap(&mut config, 0, 1 << 18);
    config.mem.shmem_second_round = second_round;
    let mut e = Engine::new(&config).unwrap();
    e.sim().start_kswapd();
    let fs = mount(&mut e, FsKind::Tmpfs);
    let root = e.sim().root(fs);
    let found = std::rc::Rc::new(std::cell::Cell::new((0, 0)));
    let there = found.clone();
    task(&mut e, move |cx| {
        let file = cx.create_node(WHO, root, false).unwrap();
        let mut at = 0;
        while cx.with(|sim| sim.kernel().swap.as_ref().unwrap().used()) == 0 {
            cx.write_file(WHO, file, at, 10).unwrap();
            at += 10;
        }
        let cached = cx.with(|sim| sim.check(0).unwrap().swap_cache);
        there.set((cached, cx.with(|sim| sim.kernel().counters.pswpout)));
        cx.read_file(WHO, file, 0, at, &mut Readahead::default())
            .unwrap();
    });
    finish(&mut e, 3600);
    e.sim().check(0).unwrap();
    found.get()
}

#[test]
fn shmem_second_round() {
    let (cached, written) = met_once(true);
    assert!(
        cached > 0 && written == 0,
        "{cached} cached, {written} written"
    );
    let (_, written) = met_once(false);
    assert!(written > 0);
}

#[test]
fn loop_over_tmpfs_keeps_data_twice() {
    let mut e = machine("2.6.30", 64 << 8);
    let tmpfs = mount(&mut e, FsKind::Tmpfs);
    let root = e.sim().root(tmpfs);
    task(&mut e, move |cx| {
        let root = mount_image(cx, root, 1 << 16);
        let mut tree = Tree::default();
        cx.unpack(WHO, root, &plan(10, 300), 1000, &mut tree, |_, _| Ok(()))
            .unwrap();
        cx.sync_all();
        let a = cx.with(|sim| sim.check(0).unwrap());
        assert!(
            a.shmem >= a.file && a.file >= plan(10, 300).pages(),
            "{a:?}"
        );
        // Only the image stays in memory: everything is read again through the device.
        cx.with(|sim| {
            for &f in &tree.files {
                assert!(sim.invalidate(f));
            }
        });
        for &f in &tree.files {
            cx.read_whole(WHO, f).unwrap();
        }
    });
    finish(&mut e, 3600);
    e.sim().check(0).unwrap();
    let copied = e.sim().kernel().vfs.loops[0].copied;
    assert!(copied >= 2 * plan(10, 300).pages());
}

#[test]
fn swapped_image_is_read_and_overwritten() {
    let mut e = machine("2.6.28", 16 << 8);
    let tmpfs = mount(&mut e, FsKind::Tmpfs);
    let root = e.sim().root(tmpfs);
    task(&mut e, move |cx| {
        let root = mount_image(cx, root, 12_000);
        for _ in 0..2 {
            let file = cx.create_node(WHO, root, false).unwrap();
            cx.write_file(WHO, file, 0, 9000).unwrap();
            cx.sync_all();
            cx.remove_node(WHO, file);
            cx.with(|sim| sim.unpin(file));
        }
        let failed = cx.with(|sim| sim.kernel().vfs.loops[0].failed);
        assert_eq!(failed, 0);
    });
    finish(&mut e, 3600);
    let a = e.sim().check(0).unwrap();
    let c = e.sim().kernel().counters;
    assert!(
        c.pswpin > 3000,
        "the second round overwrites swapped pages: {c:?}"
    );
    assert!(
        a.shmem + u64::from(e.sim().kernel().swap.as_ref().unwrap().used()) >= 9000,
        "{a:?}"
    );
}

#[test]
fn reclaim_shrinks_inodes_and_dentries() {
    let mut e = machine("2.6.30", 16 << 8);
    let fs = mount(&mut e, FsKind::Ext3);
    let tree = e.sim().lay_out(fs, &plan(300, 24_000)).unwrap();
    task(&mut e, move |cx| cx.walk_tree(WHO, &tree).unwrap());
    finish(&mut e, 3600);
    e.sim().check(0).unwrap();
    let c = e.sim().kernel().counters;
    assert!(c.slabs_scanned > 1000, "{c:?}");
    let inodes = e.sim().cache(CacheKind::Ext3Inode);
    let v = e.sim().kernel().kmem.view(inodes).unwrap();
    assert!(v.in_use < 24_000 && v.stat.shrunk > 100, "{v:?}");
}

#[test]
fn failing_disk_is_reported_and_nothing_leaks() {
    let mut e = machine("2.6.32", 64 << 8);
    let fs = mount(&mut e, FsKind::Ext2);
    let root = e.sim().root(fs);
    let file = e.sim().lay_file(fs, 100).unwrap();
    task(&mut e, move |cx| {
        cx.with(|sim| {
            let forever = Fault::Fail {
                from: 0,
                to: 2 * SEC,
                first_sector: 0,
                end_sector: u64::MAX,
            };
            sim.world().block.inject(DeviceId(0), forever);
        });
        assert_eq!(cx.read_whole(WHO, file), Err(Fail::Io));
        cx.sleep(3 * SEC);
        cx.read_whole(WHO, file).unwrap();
        let written = cx.create_node(WHO, root, false).unwrap();
        cx.write_file(WHO, written, 0, 200).unwrap();
        let now = cx.now();
        cx.with(|sim| {
            let window = Fault::Fail {
                from: now,
                to: now + 40 * SEC,
                first_sector: 0,
                end_sector: u64::MAX,
            };
            sim.world().block.inject(DeviceId(0), window);
        });
        cx.sleep(45 * SEC);
        // Dirty while the disk failed, written afterwards.
        cx.sync_all();
        let d = cx.with(|sim| sim.kernel().vfs.dirty);
        assert_eq!((d.nr_dirty, d.nr_writeback), (0, 0));
        cx.with(|sim| sim.unpin(written));
    });
    finish(&mut e, 3600);
    e.sim().check(0).unwrap();
    let c = e.sim().kernel().counters;
    assert!(c.read_errors > 0 && c.write_errors >= 200, "{c:?}");
}
