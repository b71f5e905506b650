//! slabinfo and `slabinfo -AD` of caches in use, and Debian's `slabtop` as a reader of that slabinfo.

use std::alloc::{Layout, alloc, dealloc};
use std::io::Write as _;
use std::process::Command;
use std::ptr::NonNull;
use unfrag_eras::{Builder, Gfp, NullHost, Pfn};
use unfrag_linux::procfs::SlabInfo;
use unfrag_linux::procfs::slab_activity::{self, Columns};
use unfrag_slab::{
    CacheInfo, CacheOptions, Design, FrameEntry, LockedPages, Rules, SlabConfig, Slabs,
};

const FRAMES: usize = 4096;

/// Counts of three caches of a design, with 1195 filps, 64 names and no journal handle in use.
fn infos(design: Design) -> Vec<CacheInfo> {
    let config = Builder::new().region(Pfn(0), FRAMES as u64).era("6.18");
    let mut metadata = vec![0; config.layout().unwrap().words];
    let manager = config.boot(NullHost, &mut metadata).unwrap();
    let room = Layout::from_size_align(FRAMES * 4096, 4096).unwrap();
    let base = NonNull::new(unsafe { alloc(room) }).unwrap();
    let mut all = vec![];
    {
        let pages: LockedPages<NullHost> = unsafe { LockedPages::new(manager, base) }.unwrap();
        let mut table: Vec<FrameEntry> = (0..FRAMES).map(|_| FrameEntry::new()).collect();
        let config = SlabConfig::new(8).rules(Rules::S2);
        let slabs = Slabs::new(&pages, &mut table, &config).unwrap();
        let cpu = slabs.cpu(0).unwrap();
        for (name, size, kept) in [
            ("filp", 192, 1195),
            ("names_cache", 4096, 64),
            ("journal_handle", 24, 0),
        ] {
            let cache = slabs
                .create(&CacheOptions::new(name, size).design(design))
                .unwrap();
            let objects: Vec<_> = (0..kept)
                .map(|_| cache.alloc(&cpu, Gfp::KERNEL).unwrap())
                .collect();
            for _ in 0..kept + 100 {
                let o = cache.alloc(&cpu, Gfp::KERNEL).unwrap();
                unsafe { cache.free(&cpu, o) }.unwrap();
            }
            all.push(cache.info());
            for o in objects {
                unsafe { cache.free(&cpu, o) }.unwrap();
            }
        }
    }
    unsafe { dealloc(base.as_ptr(), room) };
    all
}

/// `spec: 7.4`
#[test]
fn slabinfo_of_caches_is_read_as_it_was_written() {
    for design in Design::ALL {
        let written = SlabInfo::of(&infos(design)).write();
        let read = SlabInfo::parse(written.as_bytes()).unwrap();
        assert_eq!(read.write(), written);
        let filp = read.cache("filp").unwrap();
        assert!(filp.active_objs >= 1195 && filp.num_objs >= filp.active_objs);
        assert_eq!(filp.num_objs, filp.num_slabs * u64::from(filp.objperslab));
        let tunables = (filp.limit, filp.batchcount, filp.sharedfactor);
        match design {
            Design::Slab => assert_eq!((filp.objperslab, tunables), (20, (120, 60, 8))),
            _ => assert_eq!(
                (filp.objperslab, tunables),
                (21, (0, 0, 0)),
                "zeros with SLUB"
            ),
        }
        let names = read.cache("names_cache").unwrap();
        let pages = if design == Design::Slub { 8 } else { 1 };
        assert_eq!((names.pagesperslab, names.objsize), (pages, 4096));
    }
}

/// `spec: 6.4`
#[test]
fn slabinfo_ad_sorts_by_activity() {
    let infos = infos(Design::Slub);
    let text = slab_activity::write(&infos, Columns::S2);
    let lines: Vec<&str> = text.lines().collect();
    let head: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(head, ["Name", "Objects", "Alloc", "Free", "%Fast"]);
    // filp: 1195 + 1295 allocations, 57 slabs of 21, so 57 slow ones; all frees hit the CPU's slab.
    assert_eq!(
        lines[1],
        "filp                      1197       2490       1295  97 100"
    );
    let names: Vec<&str> = lines[1..].iter().map(|l| l[..21].trim_end()).collect();
    assert_eq!(names, ["filp", "names_cache", "journal_handle"]);
    let modern = slab_activity::write(&infos, Columns::Modern);
    assert!(modern.lines().nth(2).unwrap().ends_with(" 0 3"), "{modern}");
}

/// Why slabtop cannot run here; `None` if it can.
fn lacks() -> Option<&'static str> {
    let works = |script: &str| {
        let out = Command::new("bash").args(["-c", script]).output();
        out.is_ok_and(|o| o.status.success())
    };
    if !works("slabtop --version") {
        Some("slabtop is not installed (Debian's procps)")
    } else if !works("[ $(id -u) = 0 ]") {
        Some("only root may mount something over /proc/slabinfo")
    } else if !works("unshare -m true && [ -e /proc/slabinfo ]") {
        Some("this host gives no mount namespace, or has no /proc/slabinfo")
    } else {
        None
    }
}

/// `spec: 7.4`
#[test]
fn slabtop_reads_slabinfo_of_caches() {
    if let Some(why) = lacks() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
        return;
    }
    for design in Design::ALL {
        let info = SlabInfo::of(&infos(design));
        let name = format!("unfrag-slabinfo-{}-{design}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, info.write()).unwrap();
        let script = r#"mount --bind "$1" /proc/slabinfo && slabtop -o -s a"#;
        let out = Command::new("unshare")
            .args(["-m", "bash", "-c", script, "bash"])
            .arg(&path)
            .output()
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{said}");
        let shown = String::from_utf8(out.stdout).unwrap();
        let total: u64 = info.caches.iter().map(|c| c.num_objs).sum();
        let objects = shown.lines().find(|l| l.contains("Objects")).unwrap();
        assert!(
            objects.contains(&format!("/ {total} ")),
            "{total} objects: {objects}"
        );
        for c in &info.caches {
            let row = shown
                .lines()
                .find(|l| l.trim_end().ends_with(&c.name))
                .unwrap();
            let first = row.split_whitespace().next().unwrap();
            assert_eq!(first, c.num_objs.to_string(), "{row}");
        }
    }
}
